/* SPDX-License-Identifier: BSD-3-Clause */
#include "fakes.h"
#include "device.h"
#include "tuning.h"

#include <string.h>

struct fake fake;

static bool within(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)device;
  return (v->rows == 0 || p->m <= v->rows) && (v->cols == 0 || p->n <= v->cols) &&
         (v->most == 0 || (int64_t)p->m * p->n <= v->most);
}

static size_t some_workspace(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)v, (void)device;
  return 10 * (size_t)p->m;
}

static size_t too_much_workspace(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)p, (void)v, (void)device;
  return SIZE_MAX;
}

static batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)device, (void)stream;
  fake.launched[fake.num_launched].problem = *p;
  fake.launched[fake.num_launched].variant = v;
  fake.launched[fake.num_launched++].args = *args;
  return fake.launch_status;
}

static batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)p, (void)v, (void)device;
  fake.num_prepared++;
  return BATCHQR_SUCCESS;
}

static const bqr_variant small_variants[] = {{.name = "n8", .rows = 32, .cols = 8},
                                             {.name = "n16", .rows = 64, .cols = 16}};
static const bqr_variant area_variants[] = {{.name = "area64", .most = 64}};
static const bqr_variant any_variants[] = {{.name = "any"}};
static const bqr_variant work_variants[] = {{.name = "work"}};
static const bqr_variant huge_variants[] = {{.name = "huge"}};
static const bqr_variant tiny_variants[] = {{.name = "tiny", .rows = 4, .cols = 4}};

#define FAKE(NAME, OP, VARIANTS)                                                                             \
  .name = NAME, .op = OP, .types = BQR_ALL_TYPES, .variants = VARIANTS,                                      \
  .nvariants = sizeof VARIANTS / sizeof VARIANTS[0], .launches = 1, .supports = within, .launch = launch,    \
  .prepare = prepare

bqr_family geqrf_new = {FAKE("geqrf_new", BATCHQR_GEQRF, small_variants), .sm_min = 90};
bqr_family geqrf_any = {FAKE("geqrf_any", BATCHQR_GEQRF, any_variants)};
bqr_family geqrf_area = {FAKE("geqrf_area", BATCHQR_GEQRF, area_variants)};
bqr_family geqrf_huge = {FAKE("geqrf_huge", BATCHQR_GEQRF, huge_variants), .workspace = too_much_workspace};
bqr_family geqrf_emulated = {FAKE("geqrf_emulated", BATCHQR_GEQRF, any_variants),
                             .compute = BATCHQR_COMPUTE_EMULATED};
bqr_family geqrf_half = {FAKE("geqrf_half", BATCHQR_GEQRF, any_variants), .compute = BATCHQR_COMPUTE_HALF};
bqr_family orgqr_any = {FAKE("orgqr_any", BATCHQR_ORGQR, work_variants), .workspace = some_workspace};
bqr_family ormqr_any = {FAKE("ormqr_any", BATCHQR_ORMQR, any_variants)};
bqr_family copy_r_any = {FAKE("copy_r_any", BQR_COPY_R, any_variants)};
bqr_family copy_any = {FAKE("copy_any", BQR_COPY, any_variants)};
bqr_family transpose_any = {FAKE("transpose_any", BQR_TRANSPOSE, any_variants)};
bqr_family trsm_any = {FAKE("trsm_any", BATCHQR_TRSM, any_variants)};
bqr_family r_range_any = {FAKE("r_range_any", BATCHQR_R_RANGE, any_variants)};
bqr_family sort_any = {FAKE("sort_any", BQR_SORT, any_variants)};
bqr_family gesvd_any = {FAKE("gesvd_any", BATCHQR_GESVD, any_variants)};
bqr_family turn_any = {FAKE("turn_any", BQR_TURN, any_variants)};
bqr_family syevd_any = {FAKE("syevd_any", BATCHQR_SYEVD, any_variants)};
bqr_family select_any = {FAKE("select_any", BQR_SELECT, any_variants)};
bqr_family qr_tiny = {FAKE("qr_tiny", BATCHQR_QR, tiny_variants)};

static bqr_family *const all[] = {&geqrf_new, &geqrf_any,     &geqrf_area,     &geqrf_huge,  &geqrf_half,
                                  &orgqr_any, &ormqr_any,     &geqrf_emulated, &copy_r_any,  &copy_any,
                                  &qr_tiny,   &transpose_any, &trsm_any,       &r_range_any, &sort_any,
                                  &gesvd_any, &turn_any,      &syevd_any,      &select_any};
enum { NUM_ALL = sizeof all / sizeof all[0] };

const char *const fake_none[] = {NULL};
static const bqr_family *const usual_families[] = {&geqrf_new, &geqrf_any,   &orgqr_any, &ormqr_any,
                                                   &qr_tiny,   &copy_r_any,  &copy_any,  &transpose_any,
                                                   &trsm_any,  &r_range_any, NULL};
const bqr_registry fake_usual = {usual_families, fake_none, bqr_builtin_operations};
static const bqr_family *const sorting_families[] = {&sort_any,  &geqrf_new,  &geqrf_any,
                                                     &orgqr_any, &copy_r_any, NULL};
const bqr_registry fake_sorting = {sorting_families, fake_none, bqr_builtin_operations};

static void set_up(void) {
  for (int i = 0; i < NUM_ALL; i++) all[i]->backend = BATCHQR_BACKEND_CUDA;
  geqrf_new.sm_min = 90;
  fake = (struct fake){.device = {.backend = BATCHQR_BACKEND_CUDA,
                                  .sm = 90,
                                  .multiprocessors = 132,
                                  .smem_per_block = 232448,
                                  .smem_per_sm = 233472,
                                  .threads = 1,
                                  .types = BQR_ALL_TYPES,
                                  .name = "Made-up 90"}};
  fake.planner = (bqr_planner){.registry = &fake_usual, .device = &fake.device, .forced = fake.forced};
}

TCase *fake_case(Suite *suite, const char *name) {
  TCase *tests = tcase_create(name);
  tcase_add_checked_fixture(tests, set_up, NULL);
  suite_add_tcase(suite, tests);
  return tests;
}

void fake_move_to_cpu(void) {
  bqr_device_cpu(&fake.device, 3);
  for (int i = 0; i < NUM_ALL; i++) all[i]->backend = BATCHQR_BACKEND_CPU;
  geqrf_new.sm_min = 0;
}

batchqr_plan_t plan_of(batchqr_op op, const batchqr_batch *batch) {
  batchqr_plan_t plan;
  batchqr_status status = bqr_plan_new(&fake.planner, op, batch, &plan, &fake.error);
  ck_assert_msg(status == BATCHQR_SUCCESS, "%s", fake.error.text);
  return plan;
}

void expect_failure(batchqr_op op, const batchqr_batch *batch, batchqr_status status, const char *text) {
  batchqr_plan_t plan;
  ck_assert_int_eq(bqr_plan_new(&fake.planner, op, batch, &plan, &fake.error), status);
  ck_assert_ptr_null(plan);
  ck_assert_str_eq(fake.error.text, text);
}

void expect_text(batchqr_op op, const batchqr_batch *batch, const char *text) {
  batchqr_plan_t plan = plan_of(op, batch);
  ck_assert_str_eq(plan->description, text);
  bqr_plan_free(plan);
}

batchqr_batch uniform(int m, int n, int64_t count) {
  return (batchqr_batch){.type = BATCHQR_D,
                         .count = count,
                         .m = m,
                         .n = n,
                         .a = {.ld = m, .stride = (int64_t)m * n},
                         .c = {.ld = m, .stride = (int64_t)m * n},
                         .r = {.ld = n, .stride = (int64_t)n * n},
                         .tau = {.stride = n},
                         .range = {.stride = 2}};
}

batchqr_batch host_sizes(const int *m, const int *n, int64_t count) {
  return (batchqr_batch){.type = BATCHQR_D,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = count,
                         .m_array = m,
                         .n_array = n,
                         .a = {.layout = BATCHQR_POINTERS, .ld = 1000},
                         .c = {.layout = BATCHQR_POINTERS, .ld = 1000},
                         .r = {.layout = BATCHQR_POINTERS, .ld = 1000},
                         .tau = {.layout = BATCHQR_POINTERS}};
}

void expect_members(batchqr_plan_t plan, int group, const int *members, int count) {
  const bqr_group *g = &plan->groups[group];
  ck_assert_int_eq(g->problem.count, count);
  ck_assert_int_ge(g->list, 0);
  for (int i = 0; i < count; i++) ck_assert_int_eq(plan->lists[g->list + i], members[i]);
}

void set_table(const char *text, int sm) {
  bqr_table *table;
  batchqr_status status = bqr_table_parse(&fake_usual, "t.tune", text, strlen(text), &table, &fake.error);
  ck_assert_msg(status == BATCHQR_SUCCESS, "%s", fake.error.text);
  table->sm = sm;
  fake.planner.table = table;
}

void drop_table(void) { bqr_table_free((bqr_table *)fake.planner.table); }

void execute(batchqr_plan_t plan, const batchqr_operands *operands, void *space) {
  ck_assert_int_eq(bqr_plan_prepare(plan, &fake.error), BATCHQR_SUCCESS);
  fake.num_launched = 0;
  batchqr_status status = bqr_plan_launch(plan, operands, space, NULL, &fake.error);
  ck_assert_msg(status == fake.launch_status, "%s", fake.error.text);
}

static double a_data, c_data, r_data, tau_data, norms_data;
static int info_data;
const batchqr_operands operands = {
    .a = &a_data, .tau = &tau_data, .c = &c_data, .r = &r_data, .info = &info_data, .norms = &norms_data};
_Alignas(256) char space[1024];
