/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of GELS and what each is given. */
#include "fakes.h"

#include <stdlib.h>

static void expect_steps(const int (*steps)[2], int count) {
  ck_assert_int_eq(fake.num_launched, count);
  for (int i = 0; i < count; i++) {
    ck_assert_int_eq(fake.launched[i].problem.op, steps[i][0]);
    ck_assert_int_eq((int)fake.launched[i].problem.trans, steps[i][1]);
  }
}

static void expect_sizes(int i, int m, int n, int k) {
  const bqr_problem *p = &fake.launched[i].problem;
  const bqr_args *args = &fake.launched[i].args;
  ck_assert_msg(p->m == m && p->n == n && p->k == k, "step %d: %d x %d, %d", i, p->m, p->n, p->k);
  ck_assert_msg(args->m == m && args->n == n && args->k == k, "step %d: %d x %d, %d", i, args->m, args->n,
                args->k);
}

/* Least squares: Q^H, then R^-1, with A where it is. */
START_TEST(gels_is_composed) {
  static const int steps[][2] = {
      {BQR_TRANSPOSE, 0}, {BATCHQR_GEQRF, 0}, {BATCHQR_ORMQR, BATCHQR_CONJ_TRANS}, {BATCHQR_TRSM, 0}};
  fake_move_to_cpu();
  fake.planner.positive = true;
  batchqr_batch batch = uniform(20, 10, 3);
  batch.k = 2;
  batch.norms.stride = 5;
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &batch);
  ck_assert_int_eq(plan->largest[BQR_NORMS], 2);
  /* 3 x 10 tau of 8 bytes; 3 x 2 scales of 8 bytes */
  ck_assert_uint_eq(plan->workspace_bytes, 256 + 256);
  execute(plan, &operands, space);
  expect_steps(steps, 4);
  expect_sizes(0, 20, 10, 2);
  expect_sizes(1, 20, 10, 0);
  expect_sizes(2, 20, 2, 10);
  expect_sizes(3, 20, 10, 2);
  for (int i = 0; i < 4; i++) {
    const bqr_args *args = &fake.launched[i].args;
    ck_assert_ptr_eq(args->a.data, operands.a);
    ck_assert_ptr_eq(args->c.data, i == 1 ? NULL : operands.c);
    ck_assert_ptr_null(args->r.data);
    ck_assert_ptr_eq(args->tau.data, i % 3 ? space : NULL); /* GEQRF's and ORMQR's */
    ck_assert_ptr_eq(args->scales, space + 256);
    ck_assert_ptr_eq(args->norms.data, operands.norms);
    ck_assert_int_eq(args->norms.stride, 5);
    ck_assert_ptr_eq(args->workspace, space + 512);
    ck_assert_ptr_eq(args->info, i % 2 ? operands.info : NULL); /* of GEQRF and TRSM */
    ck_assert(!fake.launched[i].problem.positive && !args->m_array && !args->tall_sizes);
  }
  bqr_plan_free(plan);
}
END_TEST

/* A factorization that applies Q^H itself is given B, where Q^H B is what comes next. */
START_TEST(gels_leaves_q_to_its_factorization) {
  static const int squares[][2] = {{BQR_TRANSPOSE, 0}, {BATCHQR_GEQRF, 0}, {BATCHQR_TRSM, 0}};
  static const int norms[][2] = {{BQR_TRANSPOSE, BATCHQR_CONJ_TRANS},
                                 {BATCHQR_GEQRF, 0},
                                 {BATCHQR_TRSM, BATCHQR_CONJ_TRANS},
                                 {BATCHQR_ORMQR, 0}};
  fake_move_to_cpu();
  bqr_family geqrf_applies = geqrf_any;
  geqrf_applies.applies_q = true;
  const bqr_family *families[] = {&geqrf_applies, &transpose_any, &ormqr_any, &trsm_any, NULL};
  const bqr_registry registry = {families, fake_none, bqr_builtin_operations};
  fake.planner.registry = &registry;
  batchqr_batch batch = uniform(20, 10, 3);
  batch.k = 2;
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &batch);
  execute(plan, &operands, space);
  expect_steps(squares, 3);
  expect_sizes(1, 20, 10, 2);
  ck_assert_ptr_eq(fake.launched[1].args.c.data, operands.c);
  bqr_plan_free(plan);

  batch.trans = BATCHQR_CONJ_TRANS;
  fake.num_launched = 0;
  plan = plan_of(BATCHQR_GELS, &batch);
  execute(plan, &operands, space);
  expect_steps(norms, 4);
  expect_sizes(1, 20, 10, 0);
  ck_assert_ptr_null(fake.launched[1].args.c.data);
  bqr_plan_free(plan);
}
END_TEST

/* Least norm: R^-H, then Q, with a transposed copy of A. */
START_TEST(gels_of_wide_members_works_on_copies) {
  static const int steps[][2] = {
      {BQR_TRANSPOSE, 0}, {BATCHQR_GEQRF, 0}, {BATCHQR_TRSM, BATCHQR_CONJ_TRANS}, {BATCHQR_ORMQR, 0}};
  fake_move_to_cpu();
  batchqr_batch batch = uniform(2, 6, 3);
  set_layouts(&batch, BATCHQR_POINTERS);
  batch.k = 4;
  batch.c.ld = 6;
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &batch);
  ck_assert_uint_eq(plan->workspace_bytes, 256 + 256 + 512); /* copies of 3 x 12 x 8 bytes */
  execute(plan, &operands, space);
  expect_steps(steps, 4);
  expect_sizes(0, 2, 6, 4);
  expect_sizes(1, 6, 2, 0);
  expect_sizes(2, 6, 2, 4);
  expect_sizes(3, 6, 4, 2);
  ck_assert_ptr_eq(fake.launched[0].args.a.data, operands.a);
  for (int i = 0; i < 4; i++) {
    const bqr_args *args = &fake.launched[i].args;
    const bqr_matrix *copy = i == 0 ? &args->r : &args->a;
    ck_assert_ptr_eq(copy->data, space + 512);
    ck_assert(!copy->pointers && copy->ld == 6 && copy->stride == 12 && !copy->offsets);
    ck_assert(args->c.pointers == (i != 1));
  }
  bqr_plan_free(plan);
}
END_TEST

/* Tall and wide members are of different kinds, whose steps follow each other. */
START_TEST(gels_of_mixed_members_is_in_two_parts) {
  static const int steps[][2] = {{BQR_TRANSPOSE, BATCHQR_CONJ_TRANS}, {BATCHQR_GEQRF, 0},
                                 {BATCHQR_TRSM, BATCHQR_CONJ_TRANS},  {BATCHQR_ORMQR, 0},
                                 {BQR_TRANSPOSE, BATCHQR_CONJ_TRANS}, {BATCHQR_GEQRF, 0},
                                 {BATCHQR_ORMQR, BATCHQR_CONJ_TRANS}, {BATCHQR_TRSM, 0}};
  static const int m[] = {9, 3, 5, 2}, n[] = {4, 7, 5, 4}, k[] = {1, 2, 3, 4};
  static const int64_t offsets[] = {0, 0, 21, 21};
  fake_move_to_cpu();
  batchqr_batch batch = host_sizes(m, n, 4);
  batch.k_array = k;
  batch.trans = BATCHQR_CONJ_TRANS;
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &batch);
  execute(plan, &operands, space);
  expect_steps(steps, 8);
  for (int i = 0; i < 4; i++) expect_members(plan, i, (const int[]){0, 2}, 2);
  for (int i = 4; i < 8; i++) expect_members(plan, i, (const int[]){1, 3}, 2);
  expect_sizes(1, 9, 5, 0);
  expect_sizes(3, 9, 3, 5);
  expect_sizes(5, 7, 3, 0);
  expect_sizes(6, 7, 4, 3);
  ck_assert_mem_eq(fake.launched[3].args.m_array, m, sizeof m);
  ck_assert_mem_eq(fake.launched[3].args.n_array, k, sizeof k);
  ck_assert_mem_eq(fake.launched[3].args.k_array, n, sizeof n);
  ck_assert_mem_eq(fake.launched[7].args.m_array, n, sizeof n);
  ck_assert_mem_eq(fake.launched[7].args.n_array, m, sizeof m);
  ck_assert_mem_eq(fake.launched[7].args.k_array, k, sizeof k);
  ck_assert_mem_eq(fake.launched[7].args.a.ld_array, n, sizeof n);
  ck_assert_mem_eq(fake.launched[7].args.a.offsets, offsets, sizeof offsets);
  ck_assert_mem_eq(fake.launched[7].args.a.host_offsets, offsets, sizeof offsets);
  ck_assert_ptr_null(fake.launched[3].args.a.host_offsets);
  ck_assert(fake.launched[3].args.a.pointers && !fake.launched[7].args.a.pointers);
  bqr_plan_free(plan);

  batch.k_array = NULL; /* one number for all */
  batch.k = 6;
  plan = plan_of(BATCHQR_GELS, &batch);
  execute(plan, &operands, space);
  ck_assert(fake.launched[6].args.n == 6 && !fake.launched[6].args.n_array && fake.launched[7].args.k == 6);
  bqr_plan_free(plan);
}
END_TEST

/* With sizes on the device all steps of both kinds are there, and their sizes are written beside the
 * copies.
 */
START_TEST(gels_with_sizes_on_the_device_does_both) {
  static const int steps[][2] = {{BQR_TRANSPOSE, 0}, {BATCHQR_GEQRF, 0}, {BATCHQR_TRSM, 2},
                                 {BATCHQR_ORMQR, 0}, {BATCHQR_ORMQR, 2}, {BATCHQR_TRSM, 0}};
  static const int m[2], n[2];
  fake_move_to_cpu();
  batchqr_batch batch = {.type = BATCHQR_D,
                         .sizes = BATCHQR_DEVICE_SIZES,
                         .count = 2,
                         .m = 4,
                         .n = 5,
                         .k = 3,
                         .m_array = m,
                         .n_array = n,
                         .a = {.ld = 4, .stride = 20},
                         .c = {.ld = 5, .stride = 15}};
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &batch);
  execute(plan, &operands, space);
  expect_steps(steps, 6);
  int *sizes = fake.launched[0].args.tall_sizes;
  ck_assert_ptr_eq(sizes, space + 512);
  for (int i = 1; i < 6; i++) {
    const bqr_args *args = &fake.launched[i].args;
    bool ormqr = steps[i][0] == BATCHQR_ORMQR, squares = i > 3;
    ck_assert_ptr_eq(args->m_array, sizes);
    ck_assert_ptr_eq(ormqr ? args->k_array : args->n_array, sizes + 2);
    if (i > 1) ck_assert_ptr_eq(ormqr ? args->n_array : args->k_array, sizes + (squares ? 4 : 6));
    ck_assert(args->untrusted && args->a.data != operands.a && args->a.ld == 5 && args->a.stride == 20);
  }
  bqr_plan_free(plan);
}
END_TEST

/* One launch for members that are tall for sure, of more rows than a power of 2 and no more columns; what is
 * left in steps, whose copies are of the largest sizes in all groups. */
static bool tall(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)v, (void)device;
  return p->tall;
}

START_TEST(gels_with_sizes_on_the_device_is_sorted) {
  enum { COUNT = 4160 }; /* an entry more does not fit what is reserved for them */
  fake_move_to_cpu();
  bqr_family gels_tall = qr_tiny;
  gels_tall.op = BATCHQR_GELS;
  gels_tall.supports = tall;
  const bqr_family *families[] = {&sort_any,      &gels_tall, &geqrf_new, &geqrf_any,
                                  &transpose_any, &ormqr_any, &trsm_any,  NULL};
  const bqr_registry registry = {families, fake_none, bqr_builtin_operations};
  fake.planner.registry = &registry;
  static const int m[1], n[1], ldb[1];
  batchqr_batch batch = {.type = BATCHQR_D,
                         .sizes = BATCHQR_DEVICE_SIZES,
                         .count = COUNT,
                         .m = 60,
                         .n = 20,
                         .k = 3,
                         .m_array = m,
                         .n_array = n,
                         .a = {.ld = 60, .stride = 1200},
                         .c = {.stride = 180, .ld_array = ldb}};
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &batch);
  char *memory = aligned_alloc(256, (plan->workspace_bytes + 255) / 256 * 256);
  execute(plan, &(batchqr_operands){.a = operands.a, .c = operands.c}, memory);
  static const int steps[] = {BQR_SORT,      BATCHQR_GELS, BQR_TRANSPOSE, BATCHQR_GEQRF, BATCHQR_GEQRF,
                              BATCHQR_GEQRF, BATCHQR_TRSM, BATCHQR_ORMQR, BATCHQR_ORMQR, BATCHQR_TRSM};
  ck_assert_int_eq(fake.num_launched, 10);
  const bqr_args *whole = &fake.launched[1].args, *transpose = &fake.launched[2].args;
  const bqr_args *sort = &fake.launched[0].args;
  ck_assert(sort->untrusted && sort->m_array == m && sort->c.ld_array == ldb && sort->a.data == operands.a);
  ck_assert(whole->m == 60 && whole->n == 20 && whole->k_array && !whole->untrusted);
  ck_assert(whole->k_array == transpose->k_array && whole->m_array == transpose->m_array);
  ck_assert_ptr_ne(whole->members, transpose->members);
  ck_assert_uint_eq(plan->groups[1].boxes, 0xff7310); /* fewer columns than the least rows */
  ck_assert(transpose->r.data != operands.a && transpose->r.ld == 60 && transpose->r.stride == 1200);
  for (int i = 1; i < 10; i++) {
    const bqr_args *args = &fake.launched[i].args;
    ck_assert_int_eq(fake.launched[i].problem.op, steps[i]);
    ck_assert(args->count == COUNT + 1 && !args->untrusted && args->members);
    if (i < 3 || i > 5) ck_assert(args->c.ld_array == whole->c.ld_array && args->c.ld_array != ldb);
    if (i < 3) continue;
    ck_assert(args->a.data == transpose->r.data && args->a.ld == 60 && !args->a.ld_array);
    ck_assert_ptr_eq(args->m_array, transpose->tall_sizes);
    ck_assert_ptr_eq(fake.launched[i].problem.op == BATCHQR_ORMQR ? args->k_array : args->n_array,
                     transpose->tall_sizes + COUNT + 1);
  }
  free(memory);
  bqr_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan_gels");
  TCase *tests = fake_case(suite, "gels");
  tcase_add_test(tests, gels_is_composed);
  tcase_add_test(tests, gels_leaves_q_to_its_factorization);
  tcase_add_test(tests, gels_of_wide_members_works_on_copies);
  tcase_add_test(tests, gels_of_mixed_members_is_in_two_parts);
  tcase_add_test(tests, gels_with_sizes_on_the_device_does_both);
  tcase_add_test(tests, gels_with_sizes_on_the_device_is_sorted);
  return suite_run(suite);
}
