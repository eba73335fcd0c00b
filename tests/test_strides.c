/* SPDX-License-Identifier: BSD-3-Clause */
/* A by any strides, and A that stays: QR, GEQR_R and GELS, on members of all sizes. Nothing of A is written,
 * nor what lies between the elements of Q and R. */
#include "api.h"
#include "matgen.h"
#include "residual.h"

#include <string.h>

enum { MEMBERS = 3, MOST = 320, RIGHT_HAND_SIDES = 2 };

/* Where a matrix's elements are: (i, j) of member k at origin + k * stride + i * row + j * col. */
typedef struct arrangement {
  const char *name;
  int64_t origin, stride, row, col;
} arrangement;

static arrangement by_columns(int m, int n) {
  return (arrangement){"by columns", 0, (int64_t)m * n + 3, 1, m + 2 > 0 ? m + 2 : 1};
}

enum { KEPT, BY_ROWS, WITH_GAPS, BACKWARDS, REPEATED, NUM_ARRANGEMENTS };
static arrangement arrange(int which, int m, int n) {
  const int64_t all = (int64_t)(m + 1) * (n + 1);
  switch (which) {
  case KEPT:
    return (arrangement){"kept, by columns", 0, (int64_t)(m + 1) * n, 1, m + 1};
  case BY_ROWS:
    return (arrangement){"by rows", 0, (int64_t)m * (n > 2 ? n : 2), n > 2 ? n : 2, 1};
  case WITH_GAPS:
    return (arrangement){"with gaps", 5, 4 * all + 6, 2 * n + 3, 2};
  case BACKWARDS:
    return (arrangement){"backwards", all, all, -(int64_t)n - 1, -1};
  default:
    return (arrangement){"one column again and again", 0, 2 * m + 1, 2, 0};
  }
}

static size_t elements_of(const arrangement *x) {
  return (size_t)(x->origin + MEMBERS * x->stride + 4 * MOST * MOST);
}
static char *at(const arrangement *x, char *base, batchqr_type type, int k, int i, int j) {
  return base + (x->origin + k * x->stride + i * x->row + j * x->col) * (int64_t)bqr_type_bytes(type);
}
static batchqr_storage storage_of(const arrangement *x) {
  return (batchqr_storage){.ld = (int)x->col, .stride = x->stride, .row_stride = x->row};
}

/* A matrix of each member, close-packed by columns. */
static char *gather(const arrangement *x, char *base, batchqr_type type, int k, int m, int n) {
  char *to = malloc((size_t)m * (size_t)n * bqr_type_bytes(type) + 1);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++)
      memcpy(to + ((size_t)j * (size_t)m + (size_t)i) * bqr_type_bytes(type), at(x, base, type, k, i, j),
             bqr_type_bytes(type));
  return to;
}

/* An operand in both memories, and which of its bytes are elements. */
typedef struct placed {
  arrangement where;
  size_t bytes;
  char *device, *before, *after;
} placed;

enum { FILL = 0x5a };
static placed place(batchqr_type type, arrangement where) {
  placed p = {.where = where, .bytes = elements_of(&where) * bqr_type_bytes(type)};
  p.before = malloc(p.bytes);
  p.after = malloc(p.bytes);
  memset(p.before, FILL, p.bytes);
  return p;
}
static void upload(placed *p) { p->device = memory_clone(backend, p->before, p->bytes); }
static void discard(placed *p) {
  memory_free(backend, p->device);
  free(p->before);
  free(p->after);
}
static void *origin(const placed *p, batchqr_type type) {
  return p->device + p->where.origin * (int64_t)bqr_type_bytes(type);
}

/* Downloads, and checks that all but the elements of m x n members is as it was. */
static void fetch(placed *p, batchqr_type type, int m, int n) {
  memory_download(backend, p->after, p->device, p->bytes);
  for (int k = 0; k < MEMBERS; k++)
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++)
        memcpy(at(&p->where, p->before, type, k, i, j), at(&p->where, p->after, type, k, i, j),
               bqr_type_bytes(type));
  ck_assert_mem_eq(p->before, p->after, p->bytes);
}

static void fill_a(placed *a, batchqr_type type, int m, int n) {
  for (int k = 0; k < MEMBERS; k++) {
    char *x = malloc((size_t)m * (size_t)n * bqr_type_bytes(type) + 1);
    matgen_fill(type, MATGEN_RANDOM, (uint64_t)(m + 1000 * n + k), m, n, x, m > 0 ? m : 1);
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++)
        memcpy(at(&a->where, a->before, type, k, i, j),
               x + ((size_t)j * (size_t)m + (size_t)i) * bqr_type_bytes(type), bqr_type_bytes(type));
    free(x);
  }
}

static void expect_a_as_it_was(const placed *a) {
  memory_download(backend, a->after, a->device, a->bytes);
  ck_assert_mem_eq(a->before, a->after, a->bytes);
}

static batchqr_batch batch_for(batchqr_type type, int m, int n, const placed *a) {
  return (batchqr_batch){.type = type,
                         .count = MEMBERS,
                         .m = m,
                         .n = n,
                         .k = RIGHT_HAND_SIDES,
                         .keep_a = 1,
                         .a = storage_of(&a->where)};
}

static int least(int x, int y) { return x < y ? x : y; }

static void try_qr(batchqr_type type, int m, int n, const placed *a, bool by_rows) {
  const int k = least(m, n);
  placed q = place(type, by_rows ? arrange(BY_ROWS, m, k) : by_columns(m, k)),
         r = place(type, by_rows ? arrange(WITH_GAPS, k, n) : by_columns(k, n)), alone = place(type, r.where);
  q.where.stride += 2 * m + 4, r.where.stride += 2 * n + 4, alone.where.stride += 2 * n + 4;
  upload(&q), upload(&r), upload(&alone);
  batchqr_batch batch = batch_for(type, m, n, a);
  batch.c = storage_of(&q.where);
  batch.r = storage_of(&r.where);
  expect_success(batch_qr(handle, &batch, origin(a, type), origin(&q, type), origin(&r, type), NULL));
  expect_success(batch_geqr_r(handle, &batch, origin(a, type), origin(&alone, type), NULL));
  fetch(&q, type, m, k);
  fetch(&r, type, k, n);
  fetch(&alone, type, k, n);
  for (int i = 0; i < MEMBERS && k > 0; i++) {
    char *ai = gather(&a->where, a->before, type, i, m, n), *qi = gather(&q.where, q.after, type, i, m, k),
         *ri = gather(&r.where, r.after, type, i, k, n),
         *si = gather(&alone.where, alone.after, type, i, k, n);
    const double ratio = residual_qr(type, m, n, ai, m, qi, m, ri, k, 0),
                 other = residual_gram(type, m, n, ai, m, si, k, 0),
                 turned = residual_orthogonality(type, m, k, qi, m, 0);
    ck_assert_msg(ratio < RESIDUAL_BOUND && other < RESIDUAL_BOUND && turned < RESIDUAL_BOUND,
                  "%c, %d x %d %s, Q and R %s, member %d: ratios %g, %g, %g", type_letter(type), m, n,
                  a->where.name, by_rows ? "by rows" : "by columns", i, ratio, other, turned);
    free(ai), free(qi), free(ri), free(si);
  }
  discard(&q), discard(&r), discard(&alone);
}

static void try_gels(batchqr_type type, batchqr_trans trans, int m, int n, const placed *a) {
  const int most = m > n ? m : n, rows = trans ? n : m, cols = trans ? m : n;
  placed b = place(type, by_columns(most, RIGHT_HAND_SIDES));
  for (int k = 0; k < MEMBERS; k++)
    matgen_fill(type, MATGEN_RANDOM, (uint64_t)(7 + k), most, RIGHT_HAND_SIDES,
                at(&b.where, b.before, type, k, 0, 0), (int)b.where.col);
  upload(&b);
  batchqr_batch batch = batch_for(type, m, n, a);
  batch.trans = trans;
  batch.c = (batchqr_storage){.ld = (int)b.where.col, .stride = b.where.stride};
  char *old[MEMBERS];
  for (int k = 0; k < MEMBERS; k++) old[k] = gather(&b.where, b.before, type, k, rows, RIGHT_HAND_SIDES);
  expect_success(batch_gels(handle, &batch, trans, origin(a, type), origin(&b, type), NULL, NULL));
  fetch(&b, type, most, RIGHT_HAND_SIDES);
  for (int k = 0; k < MEMBERS; k++) {
    char *x = gather(&b.where, b.after, type, k, cols, RIGHT_HAND_SIDES),
         *ak = gather(&a->where, a->before, type, k, m, n);
    if (m > 0 && n > 0) {
      const double ratio =
          residual_gels(type, trans, m, n, RIGHT_HAND_SIDES, ak, m, old[k], rows, x, cols, NULL, 0);
      ck_assert_msg(ratio < RESIDUAL_BOUND, "%c, gels of %d x %d %s, trans %d, member %d: ratio %g",
                    type_letter(type), m, n, a->where.name, (int)trans, k, ratio);
    }
    free(x), free(ak), free(old[k]);
  }
  discard(&b);
}

START_TEST(a_by_strides_is_only_read) {
  static const int sizes[][2] = {{1, 1},    {4, 4},    {7, 3},     {3, 7},    {17, 17},
                                 {32, 32},  {64, 20},  {20, 64},   {100, 40}, {200, 30},
                                 {33, 130}, {300, 40}, {300, 150}, {0, 3},    {3, 0}};
  const batchqr_type type = (batchqr_type)_i;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int which = 0; which < NUM_ARRANGEMENTS; which++) {
      const int m = sizes[s][0], n = sizes[s][1];
      placed a = place(type, arrange(which, m, n));
      fill_a(&a, type, m, n);
      upload(&a);
      for (int by_rows = 0; by_rows < 2; by_rows++) try_qr(type, m, n, &a, by_rows);
      const batchqr_trans adjoint = type_is_complex(type) ? BATCHQR_CONJ_TRANS : BATCHQR_TRANS;
      if (which != REPEATED) try_gels(type, BATCHQR_NO_TRANS, m, n, &a);
      if (which != REPEATED) try_gels(type, adjoint, m, n, &a);
      expect_a_as_it_was(&a);
      discard(&a);
    }
}
END_TEST

/* Sizes of each member's own, on the host and on the device: members of several families in one call. */
START_TEST(members_of_many_sizes_by_rows) {
  static const int m[MEMBERS] = {5, 300, 30}, n[MEMBERS] = {3, 40, 50};
  const batchqr_type type = BATCHQR_D;
  int *m_device = memory_clone(backend, m, sizeof m), *n_device = memory_clone(backend, n, sizeof n);
  placed a = place(type, (arrangement){"by rows", 0, 300 * 50, 50, 1});
  fill_a(&a, type, 300, 50);
  upload(&a);
  for (int hidden = 0; hidden < 2; hidden++) {
    placed q = place(type, a.where), r = place(type, a.where);
    upload(&q), upload(&r);
    batchqr_batch batch = batch_for(type, 300, 50, &a);
    batch.sizes = hidden ? BATCHQR_DEVICE_SIZES : BATCHQR_HOST_SIZES;
    batch.m_array = hidden ? m_device : m;
    batch.n_array = hidden ? n_device : n;
    batch.c = storage_of(&q.where), batch.r = storage_of(&r.where);
    expect_success(batch_qr(handle, &batch, a.device, q.device, r.device, NULL));
    memory_download(backend, q.after, q.device, q.bytes);
    memory_download(backend, r.after, r.device, r.bytes);
    for (int i = 0; i < MEMBERS; i++) {
      const int k = least(m[i], n[i]);
      char *ai = gather(&a.where, a.before, type, i, m[i], n[i]),
           *qi = gather(&q.where, q.after, type, i, m[i], k),
           *ri = gather(&r.where, r.after, type, i, k, n[i]);
      const double ratio = residual_qr(type, m[i], n[i], ai, m[i], qi, m[i], ri, k, 0);
      ck_assert_msg(ratio < RESIDUAL_BOUND, "member %d, sizes on the %s: ratio %g", i,
                    hidden ? "device" : "host", ratio);
      free(ai), free(qi), free(ri);
    }
    expect_a_as_it_was(&a);
    discard(&q), discard(&r);
  }
  discard(&a);
  memory_free(backend, m_device);
  memory_free(backend, n_device);
}
END_TEST

START_TEST(bad_strides_are_refused) {
  batchqr_batch b = batch_of(BATCHQR_D);
  char *a = pool, *q = pool + POOL_PLACE, *r = pool + 2 * POOL_PLACE;
  const batchqr_storage plain = {.ld = 4, .stride = 12};
  b.m = 4, b.n = 3, b.count = 2;
  b.a = b.c = b.tau = plain, b.r = (batchqr_storage){.ld = 3, .stride = 9};
  b.a.row_stride = 5;
  expect(batch_geqrf(handle, &b, a, q, NULL), BATCHQR_INVALID_ARGUMENT,
         "batch.a.row_stride = 5: geqrf takes a by columns only, with row_stride 0 or 1");
  b.a = plain, b.c.row_stride = -1;
  expect(batch_qr(handle, &b, a, q, r, NULL), BATCHQR_INVALID_ARGUMENT,
         "batch.c.row_stride = -1, batch.c.ld = 4: c is written, and its distances must be positive");
  b.c.row_stride = 2;
  expect(batch_qr(handle, &b, a, q, r, NULL), BATCHQR_INVALID_ARGUMENT,
         "batch.c.row_stride = 2, batch.c.ld = 4: elements of 4 x 3 overlap");
  b.c.row_stride = 3, b.c.ld = 1, b.c.stride = 11;
  expect(batch_qr(handle, &b, a, q, r, NULL), BATCHQR_INVALID_ARGUMENT,
         "batch.c.stride = 11: members of 4 x 3 with row_stride 3 and ld 1 overlap");
  b.c = plain, b.keep_a = 1;
  expect(batch_qr(handle, &b, a, a, r, NULL), BATCHQR_INVALID_ARGUMENT, "q is the same address as a");
}
END_TEST

int main(void) {
  Suite *suite = api_suite("strides");
  TCase *types = api_case(suite, "a_by_strides_is_only_read");
  tcase_add_loop_test(types, a_by_strides_is_only_read, 0, SUITE_TYPES);
  TCase *rest = api_case(suite, "rest");
  tcase_add_test(rest, members_of_many_sizes_by_rows);
  tcase_add_test(rest, bad_strides_are_refused);
  return suite_run(suite);
}
