/* SPDX-License-Identifier: BSD-3-Clause */
/* batchqr_split(): who gets which member. */
#include "api.h"
#include "operations.h"

#include <batchqr/ranks.h>
#include <stdlib.h>

enum { MEMBERS = 500, MOST = 7 };

static int rank_of[MEMBERS];

START_TEST(equal_members_are_dealt_in_contiguous_parts) {
  const batchqr_batch batch = batchqr_batch_packed(BATCHQR_GEQRF, BATCHQR_D, 32, 16, 0, 20);
  double times[3];
  expect_success(batchqr_split(handle, BATCHQR_GEQRF, &batch, 3, rank_of, times));
  for (int i = 0; i < 20; i++) ck_assert_int_eq(rank_of[i], i < 7 ? 0 : i < 14 ? 1 : 2);
  ck_assert_double_gt(times[2], 0);
  ck_assert_double_eq_tol(times[0] / times[2], 7.0 / 6.0, 1e-12);
  /* More ranks than members. */
  batchqr_batch few = batch;
  few.count = 2;
  expect_success(batchqr_split(handle, BATCHQR_GEQRF, &few, 3, rank_of, times));
  ck_assert(rank_of[0] == 0 && rank_of[1] == 1 && times[2] == 0);
  few.count = 0;
  expect_success(batchqr_split(handle, BATCHQR_GEQRF, &few, 3, NULL, times));
}
END_TEST

/* Sizes from 1 to 300, most of them small; one of 900 in the middle. */
static void sizes_of(int *m, int *n) {
  for (int i = 0; i < MEMBERS; i++) {
    m[i] = 1 + (i * 37 % 300) * (i % 3) / 2;
    n[i] = 1 + i * 53 % 97;
  }
  m[MEMBERS / 2] = n[MEMBERS / 2] = 900;
}

START_TEST(mixed_members_are_balanced) {
  int m[MEMBERS], n[MEMBERS], again[MEMBERS];
  sizes_of(m, n);
  const batchqr_batch batch = {
      .type = BATCHQR_Z, .sizes = BATCHQR_HOST_SIZES, .count = MEMBERS, .m_array = m, .n_array = n};
  for (const bqr_operation *const *o = bqr_builtin_operations; (*o)->op < BQR_NUM_ROUTINES; o++)
    for (int size = 1; size <= MOST; size++) {
      double times[MOST], total = 0, most = 0, largest[1];
      expect_success(batchqr_split(handle, (batchqr_op)(*o)->op, &batch, size, rank_of, times));
      for (int r = 0; r < size; r++) {
        total += times[r];
        most = times[r] > most ? times[r] : most;
      }
      const batchqr_batch one = {
          .type = BATCHQR_Z, .count = 1, .m = 900, .n = 900, .k = (*o)->k == BQR_REFLECTORS ? 900 : 0};
      expect_success(batchqr_split(handle, (batchqr_op)(*o)->op, &one, 1, again, largest));
      /* Graham's bound; and within a percent where no member is too large for that. */
      ck_assert_double_le(most, total / size + largest[0]);
      if (largest[0] < total / size) ck_assert_double_le(most, 1.01 * total / size);
      expect_success(batchqr_split(handle, (batchqr_op)(*o)->op, &batch, size, again, NULL));
      for (int i = 0; i < MEMBERS; i++)
        ck_assert(rank_of[i] == again[i] && rank_of[i] >= 0 && rank_of[i] < size);
    }
}
END_TEST

START_TEST(wrong_arguments_are_named) {
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  batchqr_batch batch = batchqr_batch_packed(BATCHQR_GEQRF, BATCHQR_D, 32, 16, 0, 20);
  expect(batchqr_split(NULL, BATCHQR_GEQRF, &batch, 2, rank_of, NULL), invalid, NULL);
  expect(batchqr_split(handle, (batchqr_op)99, &batch, 2, rank_of, NULL), invalid,
         "op = 99 is not a batchqr_op");
  expect(batchqr_split(handle, BATCHQR_GEQRF, NULL, 2, rank_of, NULL), invalid, "batch is NULL");
  expect(batchqr_split(handle, BATCHQR_GEQRF, &batch, 0, rank_of, NULL), invalid,
         "size = 0, and is to be 1 at least");
  expect(batchqr_split(handle, BATCHQR_GEQRF, &batch, 2, NULL, NULL), invalid, "rank_of is NULL");
  batch.sizes = BATCHQR_HOST_SIZES;
  expect(batchqr_split(handle, BATCHQR_GEQRF, &batch, 2, rank_of, NULL), invalid, "batch.m_array is NULL");
  batch.sizes = BATCHQR_DEVICE_SIZES;
  expect(batchqr_split(handle, BATCHQR_GEQRF, &batch, 2, rank_of, NULL), BATCHQR_UNSUPPORTED,
         "batch.sizes: sizes on the device are not read on the host");
  int sizes[] = {3, -1};
  batch = (batchqr_batch){
      .type = BATCHQR_D, .sizes = BATCHQR_HOST_SIZES, .count = 2, .m_array = sizes, .n_array = sizes};
  expect(batchqr_split(handle, BATCHQR_GEQRF, &batch, 2, rank_of, NULL), invalid,
         "member 1 has a negative size");
}
END_TEST

int main(void) {
  Suite *suite = api_suite("split");
  TCase *tc = api_case(suite, "split");
  tcase_add_test(tc, equal_members_are_dealt_in_contiguous_parts);
  tcase_add_test(tc, mixed_members_are_balanced);
  tcase_add_test(tc, wrong_arguments_are_named);
  return suite_run(suite);
}
