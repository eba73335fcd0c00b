/* SPDX-License-Identifier: BSD-3-Clause */
#include "temporaries.h"

/* Where only the device knows the sizes, all members have a copy. */
bool bqr_has_copy(const batchqr_batch *batch, bqr_dims s) {
  return s.m < s.n || batch->sizes == BATCHQR_DEVICE_SIZES;
}

int64_t bqr_temporary_elements(int place, const batchqr_batch *batch, bqr_dims s) {
  switch (place) {
  case BQR_WORK_JPVT:
    return s.n;
  case BQR_WORK_RANK:
    return 1;
  case BQR_WORK_TAU:
    return bqr_min(s.m, s.n);
  case BQR_WORK_A:
    return bqr_has_copy(batch, s) ? (int64_t)s.m * s.n : 0;
  case BQR_COPY_OF_A:
    return (int64_t)s.m * s.n;
  case BQR_COPY_OF_C:
    return (int64_t)s.m * bqr_min(s.m, s.n);
  case BQR_WORK_R:
    return s.m >= s.n ? (int64_t)s.n * s.n : 0;
  case BQR_COPY_OF_R:
    return (int64_t)bqr_copy_rows(place, batch, s) * s.n;
  case BQR_WORK_SCALES:
    return 2;
  case BQR_WORK_CORE_S:
    return bqr_extent_of(BQR_SAMPLES, batch, s);
  case BQR_WORK_Q:
  case BQR_WORK_P:
  case BQR_WORK_CORE:
  case BQR_WORK_CORE_U:
    return (int64_t)bqr_copy_rows(place, batch, s) * bqr_extent_of(BQR_SAMPLES, batch, s);
  default: /* BQR_WORK_SIZES */
    return batch->sizes == BATCHQR_DEVICE_SIZES ? 4 : 0;
  }
}

size_t bqr_temporary_bytes(int place, batchqr_type type) {
  if (place == BQR_WORK_SCALES) return sizeof(double);
  if (place == BQR_WORK_CORE_S) return bqr_real_bytes(type);
  const bool ints = place == BQR_WORK_SIZES || place == BQR_WORK_JPVT || place == BQR_WORK_RANK;
  return ints ? sizeof(int) : bqr_type_bytes(type);
}

bool bqr_temporary_varies(int place) {
  return place != BQR_WORK_SCALES && place != BQR_WORK_SIZES && place != BQR_WORK_RANK;
}

/* Members of different sizes have their own leading dimensions, of which there is an array: the rows of A. */
int bqr_copy_rows(int place, const batchqr_batch *batch, bqr_dims s) {
  switch (place) {
  case BQR_WORK_R:
  case BQR_WORK_P:
    return s.n;
  case BQR_WORK_CORE:
  case BQR_WORK_CORE_U:
    return bqr_extent_of(BQR_SAMPLES, batch, s);
  case BQR_COPY_OF_R:
    return batch->sizes != BATCHQR_HOST_SIZES ? bqr_min(s.m, s.n) : s.m;
  default:
    return s.m;
  }
}
