/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_r_range(): every variant, layout and kind of sizes, and what is on a diagonal. */
#include "handle.h"
#include "inspect.h"
#include "matgen.h"
#include "suite.h"

#include <float.h>
#include <math.h>
#include <string.h>

static int least(int a, int b) { return a < b ? a : b; }
static int parts(batchqr_type type) { return type_is_complex(type) ? 2 : 1; }
static size_t real_size(batchqr_type type) { return type_size(type) / (size_t)parts(type); }

static double number(batchqr_type type, const void *x, int64_t i) {
  return type_is_double(type) ? ((const double *)x)[i] : ((const float *)x)[i];
}
static void set_number(batchqr_type type, void *x, int64_t i, double value) {
  if (type_is_double(type))
    ((double *)x)[i] = value;
  else
    ((float *)x)[i] = (float)value;
}

/* --- members, on the host */

typedef struct members {
  batchqr_type type;
  int64_t count;
  int *m, *n, *ld;
  int64_t *at, elements; /* where members begin; all elements */
  void *a;
} members;

/* Entry (j,j) of member i, as a number of x->a. */
static int64_t diagonal(const members *x, int64_t i, int j) {
  return (x->at[i] + (int64_t)j * x->ld[i] + j) * parts(x->type);
}

/* What member i of a diagonal of k entries has on it. */
static double diagonal_number(batchqr_type type, int64_t i, int j, int k) {
  double tiny = type_is_double(type) ? 0x1p-1074 : 0x1p-149, huge = type_is_double(type) ? DBL_MAX : FLT_MAX;
  double usual = rng_uniform((uint64_t)i, (uint64_t)j);
  int factor = rng_int((uint64_t)i, (uint64_t)j, 1, 100);
  switch (i % 8) {
  case 0:
    return j == k - 1 ? 0 : usual;
  case 1:
    return j == k / 3 || j == k / 2 ? 0 : usual;
  case 2:
    return j == k / 2 ? NAN : usual;
  case 3:
    return j == k - 1 ? -INFINITY : usual;
  case 4:
    return factor * tiny;
  case 5:
    return -huge / factor;
  default:
    return usual;
  }
}

/* Members of m x n, or of up to that where they vary. */
static members new_members(batchqr_type type, int64_t count, int m, int n, bool vary) {
  size_t ints = (size_t)count * sizeof(int);
  members x = {.type = type, .count = count, .m = malloc(ints), .n = malloc(ints), .ld = malloc(ints)};
  x.at = malloc((size_t)count * sizeof *x.at);
  for (int64_t i = 0; i < count; i++) {
    uint64_t seed = (uint64_t)i;
    x.m[i] = vary ? rng_int(seed, 1000, 0, m) : m;
    x.n[i] = vary ? rng_int(seed, 1001, 0, n) : n;
    x.ld[i] = x.m[i] + (vary ? rng_int(seed, 1002, 1, 3) : 1);
    x.at[i] = x.elements;
    x.elements += (int64_t)x.ld[i] * x.n[i] + 1;
  }
  x.a = calloc((size_t)x.elements, type_size(type));
  for (int64_t i = 0; i < x.elements * parts(type); i++)
    set_number(type, x.a, i, rng_uniform(7, (uint64_t)i));
  for (int64_t i = 0; i < count; i++)
    for (int j = 0, k = least(x.m[i], x.n[i]); j < k; j++) {
      set_number(type, x.a, diagonal(&x, i, j), diagonal_number(type, i, j, k));
      if (type_is_complex(type)) set_number(type, x.a, diagonal(&x, i, j) + 1, 0); /* as R's is */
    }
  return x;
}

static void free_members(members *x) {
  void *all[] = {x->m, x->n, x->ld, x->at, x->a};
  for (int i = 0; i < 5; i++) free(all[i]);
}

/* --- a call, in the backend's memory */

typedef struct call {
  const members *x;
  batchqr_batch batch;
  void *a, *addresses, *sizes[3], *range;
  int *info;
} call;

static call new_call(const members *x, batchqr_layout layout, batchqr_sizes sizes) {
  batchqr_backend backend = memory_backend();
  size_t ints = (size_t)x->count * sizeof(int), ranges = 2 * real_size(x->type) * (size_t)x->count;
  call c = {.x = x, .batch = {.type = x->type, .sizes = sizes, .count = x->count, .range = {.stride = 2}}};
  const int *arrays[] = {x->m, x->n, x->ld};
  for (int i = 0; i < 3; i++) c.sizes[i] = memory_clone(backend, arrays[i], ints);
  c.a = memory_clone(backend, x->a, (size_t)x->elements * type_size(x->type));
  c.addresses = memory_pointers(backend, c.a, type_size(x->type), x->at, x->count);
  c.range = memory_alloc(backend, ranges);
  c.info = memory_alloc(backend, ints);
  memory_fill(backend, c.range, 0x55, ranges);
  memory_fill(backend, c.info, 0x55, ints);
  for (int64_t i = 0; i < x->count; i++) {
    c.batch.m = x->m[i] > c.batch.m ? x->m[i] : c.batch.m;
    c.batch.n = x->n[i] > c.batch.n ? x->n[i] : c.batch.n;
  }
  bool host = sizes == BATCHQR_HOST_SIZES;
  c.batch.a = (batchqr_storage){.layout = layout, .ld = x->ld[0], .stride = x->count > 1 ? x->at[1] : 0};
  if (sizes != BATCHQR_UNIFORM) {
    c.batch.m_array = host ? x->m : c.sizes[0];
    c.batch.n_array = host ? x->n : c.sizes[1];
    c.batch.a.ld_array = host ? x->ld : c.sizes[2];
  }
  return c;
}

static void free_call(call *c) {
  void *all[] = {c->a, c->addresses, c->sizes[0], c->sizes[1], c->sizes[2], c->range, c->info};
  for (int i = 0; i < 7; i++) memory_free(memory_backend(), all[i]);
}

static void run(const call *c, batchqr_handle_t handle) {
  const void *a = c->batch.a.layout == BATCHQR_POINTERS ? c->addresses : c->a;
  batchqr_status status = batch_r_range(handle, &c->batch, a, c->range, c->info);
  ck_assert_msg(status == BATCHQR_SUCCESS, "%s", batchqr_error_message(handle));
}

static void run_plan(const call *c, batchqr_handle_t handle) {
  batchqr_plan_t plan;
  batchqr_operands operands = {
      .a = c->batch.a.layout == BATCHQR_POINTERS ? c->addresses : c->a, .range = c->range, .info = c->info};
  ck_assert_int_eq(batchqr_plan_create(handle, BATCHQR_R_RANGE, &c->batch, &plan), BATCHQR_SUCCESS);
  ck_assert_uint_eq(batchqr_plan_workspace(plan), 0);
  ck_assert_int_eq(batchqr_plan_execute(handle, plan, &operands, NULL, 0), BATCHQR_SUCCESS);
  memory_sync(memory_backend());
  batchqr_plan_destroy(plan);
}

static void judge_member(const members *x, int64_t i, const double got[2], int info) {
  int k = least(x->m[i], x->n[i]), expected = 0;
  double smallest = k > 0 ? INFINITY : 0, largest = 0;
  for (int j = 0; j < k; j++) {
    double r = fabs(number(x->type, x->a, diagonal(x, i, j)));
    if (!isfinite(r)) expected = BATCHQR_INFO_NONFINITE;
    if (r == 0 && expected == 0) expected = j + 1;
    smallest = fmin(smallest, r);
    largest = fmax(largest, r);
  }
  bool right = expected == BATCHQR_INFO_NONFINITE ? isnan(got[0]) && isnan(got[1])
                                                  : got[0] == smallest && got[1] == largest;
  ck_assert_msg(right && info == expected,
                "%c, member %lld of %d x %d: %g to %g, info %d, instead of %g to %g, info %d",
                type_letter(x->type), (long long)i, x->m[i], x->n[i], got[0], got[1], info, smallest, largest,
                expected);
}

/* A must be as it is on the host. */
static void judge(const call *c) {
  const members *x = c->x;
  size_t bytes = (size_t)x->elements * type_size(x->type), count = (size_t)x->count;
  void *a = malloc(bytes), *range = malloc(2 * real_size(x->type) * count);
  int *info = malloc(count * sizeof *info);
  memory_download(memory_backend(), a, c->a, bytes);
  memory_download(memory_backend(), range, c->range, 2 * real_size(x->type) * count);
  memory_download(memory_backend(), info, c->info, count * sizeof *info);
  ck_assert_mem_eq(a, x->a, bytes);
  for (int64_t i = 0; i < x->count; i++) {
    double got[] = {number(x->type, range, 2 * i), number(x->type, range, 2 * i + 1)};
    judge_member(x, i, got, info[i]);
  }
  free(a);
  free(range);
  free(info);
}

/* --- tests */

START_TEST(all_ways) {
  static const int sizes[][2] = {{1, 1}, {0, 3},   {3, 0},   {4, 4},    {8, 7},  {7, 9},
                                 {9, 9}, {32, 32}, {33, 40}, {100, 70}, {300, 2}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 6; way++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      batchqr_layout layout = (batchqr_layout)(way % 2);
      batchqr_sizes kind = (batchqr_sizes)(way / 2);
      bool vary = kind != BATCHQR_UNIFORM && layout == BATCHQR_POINTERS; /* no stride fits those that do */
      members x = new_members((batchqr_type)_i, 37, sizes[s][0], sizes[s][1], vary);
      call c = new_call(&x, layout, kind);
      if (s % 2)
        run_plan(&c, handle);
      else
        run(&c, handle);
      judge(&c);
      free_call(&c);
      free_members(&x);
    }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(many_members) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  members x = new_members((batchqr_type)_i, 70001, 5, 3, false);
  call c = new_call(&x, BATCHQR_STRIDED, BATCHQR_UNIFORM);
  run(&c, handle);
  judge(&c);
  free_call(&c);
  free_members(&x);
  batchqr_destroy(handle);
}
END_TEST

static void test_variant(const bqr_family *family, const bqr_variant *variant, batchqr_type type, int n) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  bqr_problem problem = {.op = BATCHQR_R_RANGE, .type = type, .m = n + 1, .n = n, .count = 50};
  if (family->supports(&problem, variant, bqr_handle_device(handle))) {
    ck_assert_int_eq(bqr_force(handle, BATCHQR_R_RANGE, family->name, variant->name), BATCHQR_SUCCESS);
    members x = new_members(type, 50, n + 1, n, false);
    call c = new_call(&x, BATCHQR_STRIDED, BATCHQR_UNIFORM);
    run(&c, handle);
    judge(&c);
    free_call(&c);
    free_members(&x);
  }
  batchqr_destroy(handle);
}

START_TEST(every_variant) {
  for (int f = 0; f < bqr_num_families(); f++) {
    const bqr_family *family = bqr_family_at(f);
    if (family->op != BATCHQR_R_RANGE || family->backend != memory_backend()) continue;
    for (int v = 0; v < family->nvariants; v++)
      for (int n = 1; n <= 70; n += n < 12 ? 1 : 11)
        test_variant(family, &family->variants[v], (batchqr_type)_i, n);
  }
}
END_TEST

/* Of what batch_geqrf() leaves, on the handle's stream. */
START_TEST(of_a_factorization) {
  batchqr_type type = (batchqr_type)_i;
  batchqr_backend backend = memory_backend();
  batchqr_handle_t handle = memory_handle(backend, NULL);
  members x = new_members(type, 9, 20, 12, false);
  for (int64_t i = 0; i < x.elements * parts(type); i++)
    set_number(type, x.a, i, rng_uniform(3, (uint64_t)i));
  call c = new_call(&x, BATCHQR_STRIDED, BATCHQR_UNIFORM);
  c.batch.tau.stride = 12;
  void *tau = memory_alloc(backend, (size_t)(9 * 12) * type_size(type));
  ck_assert_int_eq(batch_geqrf(handle, &c.batch, c.a, tau, NULL), BATCHQR_SUCCESS);
  run(&c, handle);
  memory_download(backend, x.a, c.a, (size_t)x.elements * type_size(type));
  judge(&c);
  memory_free(backend, tau);
  free_call(&c);
  free_members(&x);
  batchqr_destroy(handle);
}
END_TEST

START_TEST(captured) {
  if (!suite_on_gpu()) return;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  batchqr_stream stream = memory_stream_new();
  ck_assert_int_eq(batchqr_set_stream(handle, stream), BATCHQR_SUCCESS);
  members x = new_members((batchqr_type)_i, 33, 6, 6, false);
  call first = new_call(&x, BATCHQR_STRIDED, BATCHQR_UNIFORM),
       c = new_call(&x, BATCHQR_STRIDED, BATCHQR_UNIFORM);
  run(&first, handle); /* makes the plan */
  memory_capture_begin(stream);
  run(&c, handle);
  memory_graph *graph = memory_capture_end(stream);
  memory_graph_launch(graph, stream);
  memory_sync(memory_backend());
  judge(&c);
  memory_graph_free(graph);
  free_call(&first);
  free_call(&c);
  free_members(&x);
  batchqr_destroy(handle);
  memory_stream_free(stream);
}
END_TEST

/* Sizes on the device that do not fit: the member is left alone. */
START_TEST(wrong_sizes) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  members x = new_members((batchqr_type)_i, 5, 4, 4, false);
  static const int m[] = {3, 9, 3, -1, 3}, n[] = {2, 2, 7, 2, 2}, ld[] = {5, 9, 5, 5, 2};
  for (int i = 0; i < 5; i++) x.m[i] = m[i], x.n[i] = n[i], x.ld[i] = ld[i];
  call c = new_call(&x, BATCHQR_STRIDED, BATCHQR_DEVICE_SIZES);
  c.batch.m = c.batch.n = 4;
  run(&c, handle);
  int info[5];
  unsigned char ranges[10 * sizeof(double)], untouched[10 * sizeof(double)];
  size_t each = 2 * real_size(x.type);
  memset(untouched, 0x55, sizeof untouched);
  memory_download(memory_backend(), info, c.info, sizeof info);
  memory_download(memory_backend(), ranges, c.range, 5 * each);
  double got[] = {number(x.type, ranges, 0), number(x.type, ranges, 1)};
  judge_member(&x, 0, got, info[0]);
  for (int i = 1; i < 5; i++) ck_assert_int_eq(info[i], BATCHQR_INFO_SIZES);
  ck_assert_mem_eq(ranges + each, untouched, 4 * each);
  free_call(&c);
  free_members(&x);
  batchqr_destroy(handle);
}
END_TEST

/* --- arguments */

static void expect(batchqr_handle_t handle, batchqr_status got, const char *text) {
  ck_assert_int_eq(got, BATCHQR_INVALID_ARGUMENT);
  ck_assert_str_eq(batchqr_error_message(handle), text);
}

START_TEST(arguments) {
  batchqr_backend backend = memory_backend();
  batchqr_handle_t handle = memory_handle(backend, NULL);
  char *a = memory_alloc(backend, 4096), *range = a + 2048, text[100];
  memory_fill(backend, a, 0, 4096);
  batchqr_batch batch = {.type = (batchqr_type)_i,
                         .count = 2,
                         .m = 4,
                         .n = 3,
                         .a = {.ld = 4, .stride = 12},
                         .range = {.stride = 2}};
  ck_assert_int_eq(batch_r_range(NULL, &batch, a, range, NULL), BATCHQR_INVALID_ARGUMENT);
  expect(handle, batch_r_range(handle, NULL, a, range, NULL), "batch is NULL");
  expect(handle, batch_r_range(handle, &batch, NULL, range, NULL), "a is NULL");
  expect(handle, batch_r_range(handle, &batch, a, NULL, NULL), "range is NULL");
  snprintf(text, sizeof text, "range = %p is not aligned to %zu bytes", (void *)(range + 2),
           real_size(batch.type));
  expect(handle, batch_r_range(handle, &batch, a, range + 2, NULL), text);
  batch.a.ld = 3;
  expect(handle, batch_r_range(handle, &batch, a, range, NULL),
         "batch.a.ld = 3 is smaller than max(1, m) = 4");
  batch.a = (batchqr_storage){.ld = 4, .stride = 0}; /* members may share what is not written */
  ck_assert_int_eq(batch_r_range(handle, &batch, a, range, NULL), BATCHQR_SUCCESS);
  batchqr_plan_t plan;
  batchqr_operands operands = {.a = a};
  ck_assert_int_eq(batchqr_plan_create(handle, BATCHQR_R_RANGE, &batch, &plan), BATCHQR_SUCCESS);
  expect(handle, batchqr_plan_execute(handle, plan, &operands, NULL, 0), "operands.range is NULL");
  batch.count = 0;
  ck_assert_int_eq(batch_r_range(handle, &batch, NULL, NULL, NULL), BATCHQR_SUCCESS);
  memory_sync(backend);
  batchqr_plan_destroy(plan);
  memory_free(backend, a);
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("r_range");
  suite_add(suite, all_ways);
  suite_add(suite, many_members);
  suite_add(suite, every_variant);
  suite_add(suite, of_a_factorization);
  suite_add(suite, captured);
  suite_add(suite, wrong_sizes);
  suite_add(suite, arguments);
  return suite_run(suite);
}
