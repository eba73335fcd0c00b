/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans at work: the steps of composed operations, what each is given, the workspace. */
#include "device.h"
#include "fakes.h"
#include "drivers/launch_part.h"

#include <stdlib.h>
#include <string.h>

START_TEST(workspace_is_tau_and_the_largest) {
  batchqr_batch batch = uniform(20, 10, 3);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  /* 3 x 10 tau of 8 bytes: 256 with their alignment; ORGQR's 200 bytes: 256. */
  ck_assert_uint_eq(plan->temporaries[0].bytes, 240);
  ck_assert_uint_eq(batchqr_plan_workspace(plan), 512);
  ck_assert_int_eq(plan->temporaries[0].stride, 10);
  ck_assert_str_eq(plan->description,
                   "geqrf 3 x (20x10) d: geqrf_new n16 by heuristic; workspace 0 B and 240 B for tau\n"
                   "copy_r 3 x (20x10) d: copy_r_any any by heuristic; workspace 0 B\n"
                   "copy 3 x (20x10) d: copy_any any by heuristic; workspace 0 B\n"
                   "orgqr 3 x (20x10, k 10) d: orgqr_any work by heuristic; workspace 200 B");
  bqr_plan_free(plan);
  plan = plan_of(BATCHQR_GEQR_R, &batch);
  ck_assert_uint_eq(batchqr_plan_workspace(plan), 256);
  bqr_plan_free(plan);
}
END_TEST

/* One large member must not make every small one as dear. */
START_TEST(tau_of_mixed_sizes_is_close_packed) {
  static const int m[] = {2, 100, 0, 3}, n[] = {5, 60, 4, 1};
  batchqr_batch batch = host_sizes(m, n, 4);
  batch.type = BATCHQR_C;
  batchqr_plan_t plan = plan_of(BATCHQR_GEQR_R, &batch);
  static const int64_t offsets[] = {0, 2, 62, 62};
  ck_assert_mem_eq(plan->temporaries[0].offsets, offsets, sizeof offsets);
  ck_assert_uint_eq(plan->temporaries[0].bytes, 63 * 8);
  bqr_plan_free(plan);

  fake_move_to_cpu();
  plan = plan_of(BATCHQR_GEQR_R, &batch);
  execute(plan, &operands, space);
  ck_assert_int_ge(fake.num_launched, 3);
  for (int i = 0; i < fake.num_launched; i++) {
    const bqr_vector *tau = &fake.launched[i].args.tau;
    if (fake.launched[i].problem.op == BATCHQR_GEQRF) {
      ck_assert_mem_eq(tau->offsets, offsets, sizeof offsets);
      ck_assert_mem_eq(tau->host_offsets, offsets, sizeof offsets);
      ck_assert_ptr_eq(tau->data, space);
    }
    ck_assert_ptr_eq(fake.launched[i].args.workspace, space + 512);
  }
  bqr_plan_free(plan);
}
END_TEST

START_TEST(workspaces_beyond_counting_are_unsupported) {
  static const char text[] = "the workspace would need more bytes than can be counted";
  static const bqr_family *const families[] = {&geqrf_huge, NULL};
  static const bqr_registry huge = {families, fake_none, bqr_builtin_operations};
  batchqr_batch batch = uniform(5, 5, INT64_MAX / 4);
  expect_failure(BATCHQR_GEQR_R, &batch, BATCHQR_UNSUPPORTED, text);
  batch = uniform(5, 5, (int64_t)1 << 60);
  expect_failure(BATCHQR_GEQR_R, &batch, BATCHQR_UNSUPPORTED, text);
  fake.planner.registry = &huge;
  batch = uniform(5, 5, 1);
  expect_failure(BATCHQR_GEQRF, &batch, BATCHQR_UNSUPPORTED, text);
}
END_TEST

START_TEST(qr_is_composed) {
  fake_move_to_cpu();
  fake.planner.positive = true;
  batchqr_batch batch = uniform(20, 10, 3);
  batch.c.stride = 300;
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  execute(plan, &operands, space);
  ck_assert_int_eq(fake.num_prepared, 4);
  ck_assert_int_eq(fake.num_launched, 4);
  static const int steps[] = {BATCHQR_GEQRF, BQR_COPY_R, BQR_COPY, BATCHQR_ORGQR};
  for (int i = 0; i < 4; i++) {
    const bqr_args *args = &fake.launched[i].args;
    bool orgqr = steps[i] == BATCHQR_ORGQR;
    ck_assert_int_eq(fake.launched[i].problem.op, steps[i]);
    ck_assert_int_eq(fake.launched[i].problem.positive, i == 0);
    ck_assert_ptr_eq(args->a.data, orgqr ? operands.c : operands.a);
    ck_assert_ptr_eq(args->c.data, orgqr ? operands.a : operands.c);
    ck_assert_int_eq(args->a.stride, orgqr ? 300 : 200);
    ck_assert_int_eq(args->c.stride, orgqr ? 200 : 300);
    ck_assert_ptr_eq(args->r.data, operands.r);
    const bool reflects = i == 0 || orgqr;
    ck_assert_ptr_eq(args->tau.data, reflects ? space : NULL);
    ck_assert_int_eq(args->tau.stride, reflects ? 10 : 0);
    ck_assert_ptr_eq(args->workspace, space + 256);
    ck_assert_ptr_eq(args->info, i == 0 ? operands.info : NULL);
    ck_assert(args->thin == (orgqr || i == 2) && !args->untrusted && !args->a.pointers &&
              !args->tau.pointers);
    ck_assert(args->m == 20 && args->n == 10 && args->k == (orgqr || i == 2 ? 10 : 0) && args->count == 3);
    ck_assert(!args->m_array && !args->members && !args->tau.offsets);
  }
  ck_assert(fake.launched[3].problem.n == 10 && fake.launched[3].problem.k == 10);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(qr_in_place_copies_no_vectors) {
  fake_move_to_cpu();
  batchqr_batch batch = uniform(10, 20, 3);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  ck_assert_int_eq(plan->groups[3].problem.n, 10);
  ck_assert_int_eq(plan->groups[3].problem.k, 10);
  batchqr_operands in_place = operands;
  in_place.c = in_place.a;
  execute(plan, &in_place, space);
  ck_assert_int_eq(fake.num_launched, 3);
  ck_assert_int_eq(fake.launched[2].problem.op, BATCHQR_ORGQR);
  ck_assert_ptr_eq(fake.launched[2].args.a.data, operands.a);
  ck_assert(fake.launched[2].args.n == 20 && fake.launched[2].args.k == 10 && fake.launched[2].args.thin);
  bqr_plan_free(plan);
}
END_TEST

static const bqr_family *const of_gesvd[] = {&gesvd_any,  &geqrf_any, &ormqr_any, &copy_any,
                                             &copy_r_any, &turn_any,  NULL};
static const bqr_registry with_gesvd = {of_gesvd, fake_none, bqr_builtin_operations};

static batchqr_plan_t plan_gesvd(int m, int n) {
  fake.planner.registry = &with_gesvd;
  batchqr_batch batch = uniform(m, n, 3);
  batch.u = (batchqr_storage){.ld = m, .stride = (int64_t)m * n};
  batch.v = (batchqr_storage){.ld = m, .stride = (int64_t)m * n};
  batch.s.stride = n;
  return plan_of(BATCHQR_GESVD, &batch);
}

static void expect_launched(batchqr_plan_t plan, const batchqr_operands *o, const int *ops, int count) {
  execute(plan, o, space);
  ck_assert_int_eq(fake.num_launched, count);
  for (int i = 0; i < count; i++) ck_assert_int_eq(fake.launched[i].problem.op, ops[i]);
}

/* On a GPU; what is launched is then looked at without one. */
START_TEST(gesvd_of_tall_members_is_composed) {
  static const int whole[] = {BATCHQR_GESVD}, values[] = {BATCHQR_GEQRF, BQR_COPY_R, BATCHQR_GESVD},
                   u_and_v[] = {BATCHQR_GEQRF, BQR_COPY_R, BQR_COPY_R, BATCHQR_GESVD, BATCHQR_ORMQR},
                   u[] = {BATCHQR_GEQRF, BQR_COPY_R, BQR_COPY_R, BATCHQR_GESVD, BATCHQR_ORMQR, BQR_TURN},
                   aliased[] = {BQR_COPY,   BATCHQR_GEQRF, BQR_COPY_R,
                                BQR_COPY_R, BATCHQR_GESVD, BATCHQR_ORMQR};
  double u_data, v_data, s_data;
  batchqr_operands o = {.a = operands.a, .s = &s_data};
  batchqr_plan_t plan = plan_gesvd(32, 10);
  ck_assert_int_eq(plan->num_groups, 1);
  bqr_device_cpu(&plan->device, 1);
  expect_launched(plan, &o, whole, 1);
  bqr_plan_free(plan);

  plan = plan_gesvd(1000, 10);
  bqr_device_cpu(&plan->device, 1);
  expect_launched(plan, &o, values, 3);
  o.u = &u_data;
  expect_launched(plan, &o, u, 6);
  o.v = &v_data;
  o.info = operands.info;
  expect_launched(plan, &o, u_and_v, 5);
  const bqr_args *zeros = &fake.launched[2].args, *of_r = &fake.launched[3].args,
                 *apply = &fake.launched[4].args;
  ck_assert(fake.launched[0].args.a.data == o.a && !fake.launched[0].args.info);
  ck_assert(zeros->a.data == o.u && zeros->r.data == o.u && zeros->m == 1000 && zeros->n == 10);
  ck_assert(of_r->m == 10 && of_r->n == 10 && of_r->a.ld == 10 && of_r->u.data == o.u && of_r->v.data == o.v);
  ck_assert(of_r->info == o.info && of_r->a.data == fake.launched[1].args.r.data &&
            !fake.launched[3].problem.whole);
  ck_assert(apply->a.data == o.a && apply->c.data == o.u && apply->m == 1000 && apply->k == 10 &&
            apply->thin);
  o.v = o.a; /* then the reflectors are elsewhere */
  expect_launched(plan, &o, aliased, 6);
  ck_assert_ptr_eq(fake.launched[1].args.a.data, fake.launched[0].args.c.data);
  ck_assert_ptr_eq(fake.launched[5].args.a.data, fake.launched[0].args.c.data);
  ck_assert(fake.launched[0].args.c.data != o.a);
  bqr_plan_free(plan);
}
END_TEST

/* Where a family is forced, or one of those for a step is missing, one does it all. */
START_TEST(gesvd_of_tall_members_in_one_step) {
  static const bqr_family *const few[] = {&gesvd_any, &geqrf_any, &copy_any, &copy_r_any, &turn_any, NULL};
  static const bqr_registry without_ormqr = {few, fake_none, bqr_builtin_operations};
  batchqr_batch batch = uniform(1000, 10, 3);
  fake.planner.registry = &without_ormqr;
  batchqr_plan_t plan = plan_of(BATCHQR_GESVD, &batch);
  ck_assert(plan->num_groups == 1 && plan->groups[0].problem.whole);
  bqr_plan_free(plan);
  fake.forced[bqr_forced_index(BATCHQR_GESVD, BQR_ROLE_STEP)] = (bqr_forced){&gesvd_any, 0};
  plan = plan_gesvd(1000, 10);
  ck_assert(plan->num_groups == 1 && plan->groups[0].problem.m == 1000);
  bqr_plan_free(plan);
}
END_TEST

/* All eigenvalues, with vectors in A's place where V is wanted, of which a step behind chooses; not where the
 * family knows the range, nor without one. */
START_TEST(parts_of_the_spectrum_are_selected) {
  static const bqr_family *const families[] = {&syevd_any, &select_any, NULL};
  static const bqr_registry of_syevd = {families, fake_none, bqr_builtin_operations};
  static const int whole[] = {BATCHQR_SYEVD}, selected[] = {BATCHQR_SYEVD, BQR_SELECT};
  double v_data, w_data;
  int found;
  batchqr_operands o = {.a = operands.a, .s = &w_data, .v = &v_data, .info = operands.info};
  batchqr_batch batch = uniform(16, 16, 3);
  batch.v = batch.a;
  batch.s.stride = 16;
  fake.planner.registry = &of_syevd;
  for (int way = 0; way < 4; way++) { /* all, by index, by value, by index by a family that does so itself */
    batch.il = way % 2 ? 3 : 0, batch.iu = way % 2 ? 7 : 0;
    batch.vl = way == 2 ? -1 : 0;
    syevd_any.ranges = way == 3 ? BQR_BY_INDEX : 0;
    o.rank = way ? &found : NULL;
    o.v = &v_data;
    batchqr_plan_t plan = plan_of(BATCHQR_SYEVD, &batch);
    bqr_device_cpu(&plan->device, 1);
    if (way % 3 == 0) {
      expect_launched(plan, &o, whole, 1);
      ck_assert(fake.launched[0].args.v.data == o.v && fake.launched[0].args.s.data == o.s);
      ck_assert_int_eq(fake.launched[0].problem.range, syevd_any.ranges);
      ck_assert_int_eq(fake.launched[0].problem.il, batch.il);
    } else {
      expect_launched(plan, &o, selected, 2);
      const bqr_args *all = &fake.launched[0].args, *part = &fake.launched[1].args;
      ck_assert(all->v.data == o.a && all->s.data != o.s && all->info == o.info && part->info == NULL);
      ck_assert(part->a.data == o.a && part->tau.data == all->s.data && part->v.data == o.v);
      ck_assert(part->s.data == o.s && part->rank.data == &found);
      ck_assert(part->il == batch.il && part->iu == batch.iu && part->vl == batch.vl && part->vu == 0);
      ck_assert_int_eq(fake.launched[0].problem.range, 0);
      o.v = NULL;
      expect_launched(plan, &o, selected, 2);
      ck_assert_ptr_null(fake.launched[0].args.v.data);
    }
    bqr_plan_free(plan);
  }
  syevd_any.ranges = 0;
}
END_TEST

START_TEST(geqr_r_is_composed) {
  fake_move_to_cpu();
  batchqr_batch batch = uniform(20, 10, 3);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQR_R, &batch);
  execute(plan, &operands, space);
  ck_assert_int_eq(fake.num_launched, 2);
  ck_assert_int_eq(fake.launched[0].problem.op, BATCHQR_GEQRF);
  ck_assert_int_eq(fake.launched[1].problem.op, BQR_COPY_R);
  ck_assert_ptr_eq(fake.launched[1].args.r.data, operands.r);
  ck_assert_ptr_null(fake.launched[1].args.c.data);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(a_whole_operation_is_preferred_where_there_is_one) {
  fake_move_to_cpu();
  static const int m[] = {4, 30, 2, 5}, n[] = {4, 2, 3, 1};
  batchqr_batch batch = host_sizes(m, n, 4);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  execute(plan, &operands, space);
  ck_assert_int_eq(fake.num_launched, 5);
  ck_assert_int_eq(fake.launched[0].problem.op, BATCHQR_QR);
  ck_assert_int_eq(fake.launched[0].args.count, 2);
  ck_assert_ptr_eq(fake.launched[0].args.info, operands.info);
  ck_assert_ptr_eq(fake.launched[0].args.c.data, operands.c);
  expect_members(plan, 0, (const int[]){0, 2}, 2);
  for (int g = 1; g < 5; g++) expect_members(plan, g, (const int[]){1, 3}, 2);
  ck_assert_int_eq(plan->groups[1].list, plan->groups[4].list);
  bqr_plan_free(plan);

  batch = uniform(4, 4, 10);
  plan = plan_of(BATCHQR_QR, &batch);
  ck_assert(plan->num_groups == 1 && plan->workspace_bytes == 0);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(arguments_of_mixed_sizes_lie_in_the_image) {
  fake_move_to_cpu();
  int m[] = {4, 30, 100}, n[] = {4, 2, 60}, k[] = {1, 2, 3}, lda[] = {5, 31, 101}, ldc[] = {6, 32, 102};
  batchqr_batch batch = host_sizes(m, n, 3);
  batch.k_array = k;
  batch.a.ld_array = lda;
  batch.c.ld_array = ldc;
  batchqr_plan_t plan = plan_of(BATCHQR_ORMQR, &batch);
  memset(m, 0, sizeof m); /* the plan has its own */
  execute(plan, &operands, space);
  ck_assert_int_eq(fake.num_launched, 1);
  const bqr_args *args = &fake.launched[0].args;
  static const int m_was[] = {4, 30, 100}, members[] = {2, 1, 0};
  ck_assert_mem_eq(args->m_array, m_was, sizeof m_was);
  ck_assert_mem_eq(args->n_array, n, sizeof n);
  ck_assert_mem_eq(args->k_array, k, sizeof k);
  ck_assert_mem_eq(args->a.ld_array, lda, sizeof lda);
  ck_assert_mem_eq(args->c.ld_array, ldc, sizeof ldc);
  ck_assert_mem_eq(args->a.host_ld_array, lda, sizeof lda);
  ck_assert_mem_eq(args->members, members, sizeof members);
  ck_assert_mem_eq(args->host_members, members, sizeof members);
  ck_assert(args->a.pointers && args->tau.pointers && !args->untrusted);
  ck_assert(args->m == 100 && args->n == 60 && args->k == 3);
  ck_assert_ptr_eq(args->tau.data, operands.tau);
  ck_assert_ptr_null(args->r.data);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(sizes_on_the_device_are_not_trusted) {
  fake_move_to_cpu();
  static const int m[2], n[2], ld[2];
  batchqr_batch batch = {.type = BATCHQR_D,
                         .sizes = BATCHQR_DEVICE_SIZES,
                         .count = 2,
                         .m = 30,
                         .n = 40,
                         .k = 99,
                         .m_array = m,
                         .n_array = n,
                         .a = {.layout = BATCHQR_POINTERS, .ld_array = ld},
                         .c = {.ld = 30},
                         .r = {.ld = 30}};
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  execute(plan, &operands, space);
  for (int i = 0; i < 4; i++) {
    const bqr_args *args = &fake.launched[i].args;
    ck_assert(args->untrusted && args->m == 30 && args->n == 40);
    ck_assert(args->m_array == m && args->n_array == n && !args->members);
    ck_assert_ptr_eq(fake.launched[i].problem.op == BATCHQR_ORGQR ? args->c.ld_array : args->a.ld_array, ld);
  }
  ck_assert(fake.launched[3].args.thin && fake.launched[3].args.k == 30);
  ck_assert_uint_eq(plan->temporaries[0].bytes, 2 * 30 * 8);
  bqr_plan_free(plan);
}
END_TEST

/* What sorts gets the caller's sizes, what follows gets copies of them and lists, and the caller gets the
 * info of members that there are. */
START_TEST(sorted_members_are_read_from_the_workspace) {
  enum { COUNT = 26880 }; /* an entry more does not fit what is reserved for them */
  fake.planner.registry = &fake_sorting;
  fake_move_to_cpu();
  static const int m[1], n[1], ld[1];
  static int info[COUNT + 1];
  batchqr_batch batch = {.type = BATCHQR_D,
                         .sizes = BATCHQR_DEVICE_SIZES,
                         .count = COUNT,
                         .m = 100,
                         .n = 40,
                         .m_array = m,
                         .n_array = n,
                         .a = {.layout = BATCHQR_POINTERS, .ld_array = ld},
                         .tau = {.layout = BATCHQR_POINTERS}};
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  char *memory = aligned_alloc(256, (plan->workspace_bytes + 255) / 256 * 256);
  batchqr_operands with_info = operands;
  with_info.info = info;
  memset(memory, 7, plan->workspace_bytes);
  execute(plan, &with_info, memory);
  const bqr_args *sort = &fake.launched[0].args, *rest = &fake.launched[1].args,
                 *small = &fake.launched[2].args;
  ck_assert(fake.num_launched == 3 && fake.launched[0].problem.op == BQR_SORT);
  ck_assert(sort->untrusted && sort->m_array == m && sort->n_array == n && sort->a.ld_array == ld);
  ck_assert(sort->m == 100 && sort->n == 40 && !sort->members && sort->count == COUNT);
  ck_assert(!small->untrusted && small->m == 64 && small->n == 16 && small->count == COUNT + 1);
  ck_assert(!rest->untrusted && rest->m == 100 && rest->n == 40 && rest->count == COUNT + 1);
  ck_assert_ptr_eq(small->members, rest->members + COUNT + 1);
  ck_assert(small->m_array == rest->m_array && small->info == rest->info && !small->host_members);
  /* Each array has its place, with room for the empty member. */
  const void *places[] = {small->m_array, small->n_array, small->a.ld_array, small->info,
                          memory + plan->workspace_bytes};
  for (int i = 0; i < 4; i++)
    ck_assert_int_ge((const char *)places[i + 1] - (const char *)places[i], (COUNT + 1) * 4);
  ck_assert_int_ge(memory + plan->workspace_bytes - (const char *)small->members, (COUNT + 1) * 4);
  ck_assert_int_eq(info[COUNT - 1], 0x07070707);
  ck_assert_int_eq(info[COUNT], 0);
  fake.num_launched = 0;
  execute(plan, &(batchqr_operands){.a = operands.a, .tau = operands.tau}, memory);
  ck_assert_ptr_null(fake.launched[1].args.info);
  free(memory);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(a_launch_that_fails_ends_the_execute) {
  fake_move_to_cpu();
  batchqr_batch batch = uniform(20, 10, 3);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  fake.launch_status = BATCHQR_OUT_OF_MEMORY;
  execute(plan, &operands, space);
  ck_assert_int_eq(fake.num_launched, 1);
  ck_assert_str_eq(fake.error.text, "geqrf_new n16: BATCHQR_OUT_OF_MEMORY");
  bqr_plan_free(plan);
}
END_TEST

/* States are counted; n8 has none that can be made. */
static int states;
static batchqr_status open_state(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                                 void **state) {
  (void)p, (void)device;
  if (v == &geqrf_new.variants[0]) return BATCHQR_OUT_OF_MEMORY;
  states++;
  *state = &states;
  return BATCHQR_SUCCESS;
}
static void close_state(void *state) { --*(int *)state; }

START_TEST(plans_own_what_families_open) {
  fake_move_to_cpu();
  geqrf_new.open = open_state;
  geqrf_new.close = close_state;
  batchqr_batch batch = uniform(32, 9, 1);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_int_eq(bqr_plan_prepare(plan, &fake.error), BATCHQR_SUCCESS);
  ck_assert_int_eq(states, 1);
  double a[32 * 9], tau[9];
  batchqr_operands operands = {.a = a, .tau = tau};
  ck_assert_int_eq(bqr_plan_launch(plan, &operands, NULL, NULL, &fake.error), BATCHQR_SUCCESS);
  ck_assert_ptr_eq(fake.launched[0].args.state, &states);
  bqr_plan_free(plan);
  ck_assert_int_eq(states, 0);
  batch = uniform(32, 8, 1);
  plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_int_eq(bqr_plan_prepare(plan, &fake.error), BATCHQR_OUT_OF_MEMORY);
  bqr_plan_free(plan);
  ck_assert_int_eq(states, 0);
  geqrf_new.open = NULL;
  geqrf_new.close = NULL;
}
END_TEST

/* What is read of an entry, by kernels and by the host. */
typedef struct entry_view {
  const void *a, *c, *r, *tau, *info;
  int m, n, k, lda, ldc, ldr, host_lda, host_ldc;
  int64_t host_offset, host_tau_offset;
} entry_view;

static const void *element(const bqr_matrix *x, int id) {
  if (x->pointers) return ((void **)x->data)[id];
  return (double *)x->data + (x->offsets ? x->offsets[id] : id * x->stride);
}

static int ld_of(const bqr_matrix *x, int id) { return x->ld_array ? x->ld_array[id] : x->ld; }

static entry_view view(const bqr_args *args, int entry) {
  const int id = args->members ? args->members[entry] : entry;
  const int64_t tau = args->tau.offsets ? args->tau.offsets[id] : id * args->tau.stride;
  entry_view v;
  memset(&v, 0, sizeof v); /* it is compared byte by byte */
  v.a = element(&args->a, id);
  v.c = element(&args->c, id);
  v.r = element(&args->r, id);
  v.tau = args->tau.pointers ? ((void **)args->tau.data)[id] : (double *)args->tau.data + tau;
  v.info = args->info + id;
  v.m = args->m_array ? args->m_array[id] : args->m;
  v.n = args->n_array ? args->n_array[id] : args->n;
  v.k = args->k_array ? args->k_array[id] : args->k;
  v.lda = ld_of(&args->a, id);
  v.ldc = ld_of(&args->c, id);
  v.ldr = ld_of(&args->r, id);
  const int host_id = args->host_members ? args->host_members[entry] : entry;
  v.host_lda = args->a.host_ld_array[host_id];
  v.host_ldc = args->c.host_ld_array[host_id];
  v.host_offset = args->a.host_offsets[host_id];
  v.host_tau_offset = args->tau.host_offsets[host_id];
  return v;
}

START_TEST(entries_are_a_launch_of_their_own) {
  enum { COUNT = 7, FIRST = 2, PART = 4 };
  static double x[600], *addresses[COUNT] = {x + 5, x + 50, x + 20, x, x + 90, x + 70, x + 33};
  static const int members[COUNT] = {3, 6, 0, 1, 5, 4, 2}, m[COUNT] = {1, 9, 4, 5, 3, 6, 2},
                   n[COUNT] = {4, 3, 2, 6, 7, 1, 5}, ld[COUNT] = {20, 14, 13, 12, 15, 18, 17};
  static const int64_t offsets[COUNT] = {0, 30, 40, 90, 95, 130, 144};
  static int info[COUNT];
  const bqr_matrix strided = {.data = x, .stride = 40, .ld = 8},
                   listed = {.data = addresses, .ld_array = ld, .pointers = true},
                   packed = {.data = x, .ld_array = ld, .offsets = offsets};
  const bqr_args cases[] = {
      {.a = strided,
       .c = {.data = x, .stride = 3, .ld_array = n},
       .r = strided,
       .tau = {.data = x, .stride = 6}},
      {.a = listed, .c = listed, .r = packed, .tau = {.data = addresses, .pointers = true}},
      {.a = packed, .c = listed, .r = listed, .tau = {.data = x, .offsets = offsets}},
      {.a = packed, .c = strided, .r = strided, .tau = {.data = x, .stride = 6}, .members = members},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int sized = 0; sized < 2; sized++) {
      bqr_args all = cases[i];
      all.count = COUNT;
      all.info = info;
      all.m = all.n = all.k = 9;
      all.host_members = all.members;
      all.a.host_ld_array = ld, all.c.host_ld_array = m;
      all.a.host_offsets = all.tau.host_offsets = offsets;
      if (sized) all.m_array = m, all.n_array = n, all.k_array = ld;
      const bqr_args part = bqr_launch_part(&all, BATCHQR_D, FIRST, PART);
      ck_assert_int_eq(part.count, PART);
      for (int entry = 0; entry < PART; entry++) {
        const entry_view seen = view(&part, entry), expected = view(&all, FIRST + entry);
        ck_assert_mem_eq(&seen, &expected, sizeof seen);
      }
    }
  const bqr_args empty = bqr_launch_part(&(bqr_args){.count = COUNT}, BATCHQR_D, FIRST, PART);
  ck_assert(!empty.a.data && !empty.tau.data && !empty.info && !empty.m_array && !empty.a.ld_array);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan_execute");
  TCase *tests = fake_case(suite, "execute");
  tcase_add_test(tests, workspace_is_tau_and_the_largest);
  tcase_add_test(tests, tau_of_mixed_sizes_is_close_packed);
  tcase_add_test(tests, workspaces_beyond_counting_are_unsupported);
  tcase_add_test(tests, qr_is_composed);
  tcase_add_test(tests, qr_in_place_copies_no_vectors);
  tcase_add_test(tests, gesvd_of_tall_members_is_composed);
  tcase_add_test(tests, gesvd_of_tall_members_in_one_step);
  tcase_add_test(tests, parts_of_the_spectrum_are_selected);
  tcase_add_test(tests, geqr_r_is_composed);
  tcase_add_test(tests, a_whole_operation_is_preferred_where_there_is_one);
  tcase_add_test(tests, arguments_of_mixed_sizes_lie_in_the_image);
  tcase_add_test(tests, sizes_on_the_device_are_not_trusted);
  tcase_add_test(tests, sorted_members_are_read_from_the_workspace);
  tcase_add_test(tests, a_launch_that_fails_ends_the_execute);
  tcase_add_test(tests, plans_own_what_families_open);
  tcase_add_test(tests, entries_are_a_launch_of_their_own);
  return suite_run(suite);
}
