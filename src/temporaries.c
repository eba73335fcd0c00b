/* SPDX-License-Identifier: BSD-3-Clause */
#include "temporaries.h"

/* Which members have a part of it. */
typedef enum owners { ALL_MEMBERS, TRANSPOSED_MEMBERS, MEMBERS_NOT_WIDE, OF_DEVICE_SIZES } owners;

typedef struct temporary {
  bqr_kind kind;
  bqr_extent rows, cols;
  owners owners;
  bool doubles; /* whatever the precision of the batch */
  bool ld_of_a; /* members of different sizes have the leading dimensions of copies of A */
} temporary;

#define AT(PLACE) [(PLACE)-BQR_NUM_OPERANDS]
static const temporary temporaries[BQR_NUM_TEMPORARIES] = {
    AT(BQR_WORK_TAU) = {BQR_VECTOR, BQR_MIN_MN, BQR_ONE},
    AT(BQR_WORK_SCALES) = {BQR_REALS, BQR_TWO, BQR_ONE, .doubles = true},
    AT(BQR_WORK_SIZES) = {BQR_INTS, BQR_TWO, BQR_TWO, .owners = OF_DEVICE_SIZES},
    AT(BQR_WORK_A) = {BQR_MATRIX, BQR_MAX_MN, BQR_MIN_MN, .owners = TRANSPOSED_MEMBERS},
    AT(BQR_COPY_OF_A) = {BQR_MATRIX, BQR_M, BQR_N},
    AT(BQR_COPY_OF_C) = {BQR_MATRIX, BQR_M, BQR_MIN_MN},
    AT(BQR_COPY_OF_R) = {BQR_MATRIX, BQR_MIN_MN, BQR_N, .ld_of_a = true},
    AT(BQR_WORK_Q) = {BQR_MATRIX, BQR_M, BQR_SAMPLES},
    AT(BQR_WORK_P) = {BQR_MATRIX, BQR_N, BQR_SAMPLES},
    AT(BQR_WORK_CORE) = {BQR_MATRIX, BQR_SAMPLES, BQR_SAMPLES},
    AT(BQR_WORK_CORE_U) = {BQR_MATRIX, BQR_SAMPLES, BQR_SAMPLES},
    AT(BQR_WORK_CORE_S) = {BQR_REALS, BQR_SAMPLES, BQR_ONE},
    AT(BQR_WORK_R) = {BQR_MATRIX, BQR_N, BQR_N, .owners = MEMBERS_NOT_WIDE},
    AT(BQR_WORK_JPVT) = {BQR_INTS, BQR_N, BQR_ONE},
    AT(BQR_WORK_RANK) = {BQR_INTS, BQR_ONE, BQR_ONE},
    AT(BQR_WORK_W) = {BQR_REALS, BQR_N, BQR_ONE},
};

static const temporary *row(int place) { return &temporaries[place - BQR_NUM_OPERANDS]; }

/* Where only the device knows the sizes, all members have a copy. */
bool bqr_has_copy(const batchqr_batch *batch, bqr_dims s) {
  return s.m < s.n || batch->sizes == BATCHQR_DEVICE_SIZES;
}

static bool has_part(owners owners, const batchqr_batch *batch, bqr_dims s) {
  switch (owners) {
  case TRANSPOSED_MEMBERS:
    return bqr_has_copy(batch, s);
  case MEMBERS_NOT_WIDE:
    return s.m >= s.n;
  case OF_DEVICE_SIZES:
    return batch->sizes == BATCHQR_DEVICE_SIZES;
  case ALL_MEMBERS:
    break;
  }
  return true;
}

int bqr_temporary_rows(int place, const batchqr_batch *batch, bqr_dims s) {
  const bool of_a = row(place)->ld_of_a && batch->sizes == BATCHQR_HOST_SIZES;
  return of_a ? s.m : bqr_extent_of(row(place)->rows, batch, s);
}

int64_t bqr_temporary_elements(int place, const batchqr_batch *batch, bqr_dims s) {
  if (!has_part(row(place)->owners, batch, s)) return 0;
  return (int64_t)bqr_temporary_rows(place, batch, s) * bqr_extent_of(row(place)->cols, batch, s);
}

size_t bqr_temporary_bytes(int place, batchqr_type type) {
  return row(place)->doubles ? sizeof(double) : bqr_kind_bytes(row(place)->kind, type);
}

bool bqr_temporary_varies(int place) { return row(place)->rows > BQR_TWO || row(place)->cols > BQR_TWO; }
