/* SPDX-License-Identifier: BSD-3-Clause */
/* Routines on matrices whose rows are spread over ranks. */
#include "inspect.h"
#include "memory.h"
#include "rows.h"
#include "types.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void expect_that(world *w, bool truth, const char *format, ...) {
  if (truth) return;
  va_list args;
  va_start(args, format);
  printf("rank %d: ", w->communicator->rank);
  vprintf(format, args);
  printf("\n");
  fflush(stdout);
  va_end(args);
  w->failures++;
}

void enter_case(const world *w, const char *format, ...) {
  static struct timespec begin;
  struct timespec now;
  if (w->communicator->rank != 0) return;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!begin.tv_sec) begin = now;
  va_list args;
  va_start(args, format);
  printf("%7.2f s: ", (double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec));
  vprintf(format, args);
  printf("\n");
  fflush(stdout);
  va_end(args);
}

batchqr_status over_ranks(world *w, batchqr_op op, const batchqr_batch *batch,
                          const batchqr_operands *operands) {
  batchqr_tsqr_t plan;
  batchqr_status status = batchqr_tsqr_create(w->handle, w->communicator, op, batch, &plan);
  if (!status) status = batchqr_tsqr_execute(w->handle, plan, operands);
  if (!status) status = batchqr_wait(w->handle, w->communicator);
  batchqr_tsqr_destroy(plan);
  return status;
}

bool all_have(world *w, const void *bytes, size_t size) {
  const batchqr_communicator *c = w->communicator;
  char *all = memory_host(size * (size_t)c->size);
  bool same = size == 0 || !c->agree(c->context, bytes, all, size);
  for (int r = 0; r < c->size && size > 0; r++) same = same && !memcmp(bytes, all + (size_t)r * size, size);
  free(all);
  return same;
}

/* --- the routines */

static void upper_of(const problem *p, const void *whole, void *r, int k) {
  memset(r, 0, (size_t)k * (size_t)p->n * COUNT * p->size);
  for (int64_t i = 0; i < COUNT; i++)
    for (int64_t j = 0; j < p->n; j++)
      memcpy((char *)r + (size_t)((i * p->n + j) * k) * p->size,
             (const char *)whole + (size_t)((i * p->n + j) * p->m) * p->size,
             (size_t)(j + 1 < k ? j + 1 : k) * p->size);
}

/* Q of LAPACK's format, by the CPU. */
static void *reference_q(const problem *p, const void *whole, const void *tau, int64_t stride_tau, int k) {
  const size_t column = (size_t)p->m * p->size;
  char *q = memory_host(column * (size_t)k * COUNT);
  for (size_t i = 0; i < COUNT; i++)
    memcpy(q + i * (size_t)k * column, (const char *)whole + i * (size_t)p->n * column, (size_t)k * column);
  batchqr_batch batch = batchqr_batch_packed(BATCHQR_ORGQR, p->type, p->m, k, k, COUNT);
  batch.tau.stride = stride_tau;
  if (k > 0)
    expect_that(p->w, !batch_orgqr(p->w->reference, &batch, q, tau, NULL), "orgqr: %s",
                batchqr_error_message(p->w->reference));
  return q;
}

/* op(Q) C against the CPU's. */
static void test_ormqr(const problem *p, piece v, piece tau, const void *whole_v, const void *host_tau,
                       int k) {
  enum { COLS = 3 };
  const piece c = piece_new(p, p->own, COLS, p->own + 2);
  char *reference = memory_host((size_t)p->m * COLS * COUNT * p->size);
  for (size_t i = 0; i < COUNT; i++)
    matgen_fill(p->type, MATGEN_RANDOM, 7 + i, p->m, COLS, reference + i * (size_t)p->m * COLS * p->size,
                p->m);
  for (int adjoint = 1; adjoint >= 0; adjoint--) {
    const batchqr_trans trans = adjoint ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
    piece_put(p, c, reference);
    batchqr_batch batch = {.type = p->type, .count = COUNT, .m = p->own, .n = COLS, .k = k, .trans = trans};
    batch.a = stored(v);
    batch.c = stored(c);
    batch.tau.stride = tau.stride;
    const batchqr_operands operands = {.a = v.data, .tau = k > 0 ? tau.data : NULL, .c = c.data};
    judge_status(p, "ormqr", over_ranks(p->w, BATCHQR_ORMQR, &batch, &operands));
    batch = batchqr_batch_packed(BATCHQR_ORMQR, p->type, p->m, COLS, k, COUNT);
    batch.a.stride = (int64_t)p->m * p->n;
    batch.tau.stride = tau.stride;
    expect_that(p->w,
                k == 0 || !batch_ormqr(p->w->reference, &batch, BATCHQR_LEFT, trans, whole_v, host_tau,
                                       reference, NULL),
                "ormqr: %s", batchqr_error_message(p->w->reference));
    void *found = collect(p, c);
    for (int i = 0; i < COUNT; i++) judge(p, "ormqr", difference(p, found, reference, COLS, i), 100);
    free(found);
  }
  free(reference);
  piece_free(p, c);
}

/* Q from the format's own rows, in place. */
static void test_orgqr(const problem *p, piece v, piece tau, const void *r, int k) {
  const batchqr_batch batch = {.type = p->type,
                               .count = COUNT,
                               .m = p->own,
                               .n = k,
                               .k = k,
                               .a = stored(v),
                               .tau = {.stride = tau.stride}};
  const batchqr_operands operands = {.a = v.data, .tau = k > 0 ? tau.data : NULL};
  judge_status(p, "orgqr", over_ranks(p->w, BATCHQR_ORGQR, &batch, &operands));
  v.cols = k;
  void *q = collect(p, v);
  judge_qr(p, "orgqr", q, r, k, (int64_t)k * p->n);
  free(q);
}

static void test_geqrf(const problem *p) {
  const int k = p->m < p->n ? p->m : p->n;
  const piece a = piece_a(p), tau = piece_new(p, k, 1, k > 0 ? k : 1);
  const batchqr_batch batch = {
      .type = p->type, .count = COUNT, .m = p->own, .n = p->n, .a = stored(a), .tau = {.stride = tau.stride}};
  const batchqr_operands operands = {.a = a.data, .tau = tau.data};
  judge_status(p, "geqrf", over_ranks(p->w, BATCHQR_GEQRF, &batch, &operands));
  judge_same(p, "tau", tau);
  void *whole = collect(p, a), *host_tau = piece_host(p, tau),
       *r = memory_host((size_t)k * (size_t)p->n * COUNT * p->size);
  upper_of(p, whole, r, k);
  void *q = reference_q(p, whole, host_tau, tau.stride, k);
  judge_qr(p, "geqrf", q, r, k, (int64_t)k * p->n);
  if (p->kind == MATGEN_RANDOM) { /* well enough conditioned to be the same, signs and all */
    const size_t bytes = (size_t)p->m * (size_t)p->n * COUNT * p->size;
    void *reference = memory_host(bytes), *other_tau = memory_host((size_t)tau.stride * COUNT * p->size);
    if (bytes) memcpy(reference, p->a, bytes);
    batchqr_batch packed = batchqr_batch_packed(BATCHQR_GEQRF, p->type, p->m, p->n, 0, COUNT);
    packed.tau.stride = tau.stride;
    expect_that(p->w, !batch_geqrf(p->w->reference, &packed, reference, other_tau, NULL),
                "geqrf of the whole");
    for (int i = 0; i < COUNT; i++)
      judge(p, "geqrf against LAPACK", difference(p, whole, reference, p->n, i), 1000);
    free(reference);
    free(other_tau);
  }
  test_ormqr(p, a, tau, whole, host_tau, k);
  if (k > 0) test_orgqr(p, a, tau, r, k);
  free(whole);
  free(host_tau);
  free(r);
  free(q);
  piece_free(p, a);
  piece_free(p, tau);
}

static void test_qr(const problem *p, bool in_place) {
  const int k = p->m < p->n ? p->m : p->n;
  const piece a = piece_a(p), r = piece_new(p, k, p->n, k + 1);
  const piece other = in_place ? a : piece_new(p, p->own, k, p->own + 3);
  const batchqr_batch batch = {.type = p->type,
                               .count = COUNT,
                               .m = p->own,
                               .n = p->n,
                               .a = stored(a),
                               .c = stored(other),
                               .r = stored(r)};
  const batchqr_operands operands = {.a = a.data, .c = other.data, .r = r.data};
  judge_status(p, "qr", over_ranks(p->w, BATCHQR_QR, &batch, &operands));
  judge_same(p, "R", r);
  piece q = other;
  q.cols = k;
  void *whole = collect(p, q), *host_r = piece_host(p, r);
  judge_qr(p, in_place ? "qr in place" : "qr", whole, host_r, r.ld, r.stride);
  free(whole);
  free(host_r);
  if (!in_place) piece_free(p, other);
  piece_free(p, a);
  piece_free(p, r);
}

static void judge_values(const problem *p, const char *what, const double *found, int i) {
  const int k = p->m < p->n ? p->m : p->n, e = exponent_of(p, i);
  dense a = whole_dense(p, p->a, i, p->n, e);
  double *s = memory_host((size_t)(k + 1) * sizeof *s), worst = 0;
  dense_singular_values(&a, s, false);
  for (int j = 0; j < k; j++) worst = fmax(worst, isnan(found[j]) ? INFINITY : fabs(s[j] - found[j]));
  if (k > 0)
    judge(p, what, worst / (p->eps * fmax(p->m, p->n) * s[0] + dense_spacing(p->type, e) + 1e-300), 30);
  free(s);
  dense_free(&a);
}

static void test_geqr_r(const problem *p) {
  const int k = p->m < p->n ? p->m : p->n;
  const piece a = piece_a(p), r = piece_new(p, k, p->n, k + 1);
  const batchqr_batch batch = {
      .type = p->type, .count = COUNT, .m = p->own, .n = p->n, .a = stored(a), .r = stored(r)};
  const batchqr_operands operands = {.a = a.data, .r = r.data};
  judge_status(p, "geqr_r", over_ranks(p->w, BATCHQR_GEQR_R, &batch, &operands));
  judge_same(p, "R alone", r);
  char *host = piece_host(p, r);
  for (int i = 0; i < COUNT; i++) {
    dense x = dense_read(p->type, host + (size_t)(i * r.stride) * p->size, r.ld, k, p->n, exponent_of(p, i));
    double *s = memory_host((size_t)(k + 1) * sizeof *s);
    dense_singular_values(&x, s, false);
    judge_values(p, "geqr_r", s, i);
    free(s);
    dense_free(&x);
  }
  free(host);
  piece_free(p, a);
  piece_free(p, r);
}

/* Solutions and residual norms against the CPU's. */
static void test_gels(const problem *p) {
  enum { RIGHT = 3 };
  const int high = p->own > p->n ? p->own : p->n;
  const piece a = piece_a(p), b = piece_new(p, p->own, RIGHT, high + 1),
              norms = piece_new(p, RIGHT, 1, RIGHT);
  char *whole_b = memory_host((size_t)p->m * RIGHT * COUNT * p->size),
       *whole_a = memory_host((size_t)p->m * (size_t)p->n * COUNT * p->size);
  for (size_t i = 0; i < COUNT; i++)
    matgen_fill(p->type, MATGEN_RANDOM, 9 + i, p->m, RIGHT, whole_b + i * (size_t)p->m * RIGHT * p->size,
                p->m);
  piece_put(p, b, whole_b);
  memcpy(whole_a, p->a, (size_t)p->m * (size_t)p->n * COUNT * p->size);
  batchqr_batch batch = {.type = p->type, .count = COUNT, .m = p->own, .n = p->n, .k = RIGHT};
  batch.a = stored(a);
  batch.c = stored(b);
  batch.norms.stride = RIGHT;
  const batchqr_operands operands = {.a = a.data, .c = b.data, .norms = norms.data};
  judge_status(p, "gels", over_ranks(p->w, BATCHQR_GELS, &batch, &operands));
  double residuals[2 * RIGHT * COUNT];
  batch = batchqr_batch_packed(BATCHQR_GELS, p->type, p->m, p->n, RIGHT, COUNT);
  batch.norms.stride = RIGHT;
  expect_that(p->w, !batch_gels(p->w->reference, &batch, BATCHQR_NO_TRANS, whole_a, whole_b, residuals, NULL),
              "gels");
  char *x = piece_host(p, b), *found = piece_host(p, norms);
  for (int i = 0; i < COUNT; i++) {
    dense dx = dense_read(p->type, x + (size_t)(i * b.stride) * p->size, b.ld, p->n, RIGHT, 0);
    dense dy =
        dense_read(p->type, whole_b + (size_t)i * (size_t)p->m * RIGHT * p->size, p->m, p->n, RIGHT, 0);
    expect_that(p->w, all_have(p->w, dx.x, (size_t)p->n * RIGHT * sizeof *dx.x), "gels: the ranks' X differ");
    const double norm = dense_norm(&dy);
    dense_subtract(&dx, &dy);
    judge(p, "gels", dense_norm(&dx) / (norm * p->eps * p->m + 1e-300), 1000);
    for (int j = 0; j < RIGHT; j++) {
      const double y = dense_real(p->type, residuals, i * RIGHT + j, 0),
                   z = dense_real(p->type, found, i * RIGHT + j, 0);
      judge(p, "norms of gels", fabs(z - y) / (p->eps * p->m * (y + 1)), 100);
    }
    dense_free(&dx);
    dense_free(&dy);
  }
  free(x);
  free(found);
  free(whole_a);
  free(whole_b);
  piece_free(p, a);
  piece_free(p, b);
  piece_free(p, norms);
}

/* U S, in place of U. */
static void scale_columns(const problem *p, dense *u, const void *s, int i, int k, int e) {
  for (int j = 0; j < k; j++)
    for (int row = 0; row < u->m; row++) *dense_at(u, row, j) *= dense_real(p->type, s, i * k + j, e);
}

static void test_gesvd(const problem *p, bool vectors) {
  const int k = p->m < p->n ? p->m : p->n;
  const piece a = piece_a(p), v = piece_new(p, p->n, k, p->n), s = piece_new(p, k, 1, k);
  batchqr_batch batch = {
      .type = p->type, .count = COUNT, .m = p->own, .n = p->n, .a = stored(a), .s = {.stride = k}};
  batchqr_operands operands = {.a = a.data, .s = s.data};
  if (vectors) {
    batch.u = stored(a);
    batch.v = stored(v);
    operands.u = a.data;
    operands.v = v.data;
  }
  judge_status(p, "gesvd", over_ranks(p->w, BATCHQR_GESVD, &batch, &operands));
  judge_same(p, "s", s);
  judge_same(p, "V", v);
  piece u = a;
  u.cols = k;
  char *whole = collect(p, u), *host_v = piece_host(p, v), *host_s = piece_host(p, s);
  for (int i = 0; i < COUNT; i++) {
    const int e = exponent_of(p, i);
    double *found = memory_host((size_t)k * sizeof *found);
    for (int j = 0; j < k; j++) found[j] = dense_real(p->type, host_s, i * k + j, e);
    judge_values(p, "gesvd", found, i);
    free(found);
    if (!vectors) continue;
    dense x = whole_dense(p, p->a, i, p->n, e), du = whole_dense(p, whole, i, k, 0);
    dense dv = dense_read(p->type, host_v + (size_t)(i * v.stride) * p->size, v.ld, p->n, k, 0),
          vh = dense_new(k, p->n);
    for (int j = 0; j < p->n; j++)
      for (int row = 0; row < k; row++) *dense_at(&vh, row, j) = conj(*dense_at(&dv, j, row));
    judge(p, "U", dense_orthogonality(&du) / (p->eps * p->m), 30);
    scale_columns(p, &du, host_s, i, k, e);
    dense product = dense_product(&du, false, &vh);
    const double norm = dense_norm(&x);
    dense_subtract(&x, &product);
    judge(p, "U S V^H",
          dense_norm(&x) / (norm * p->eps * fmax(p->m, p->n) + dense_spacing(p->type, e) + 1e-300), 30);
    dense_free(&x);
    dense_free(&du);
    dense_free(&dv);
    dense_free(&vh);
    dense_free(&product);
  }
  free(whole);
  free(host_v);
  free(host_s);
  piece_free(p, a);
  piece_free(p, v);
  piece_free(p, s);
}

static void test_problem(problem p) {
  enter_case(p.w, "rows, type %c, %s, %d x %d, manner %d", "sdcz"[p.type], matgen_name(p.kind), p.m, p.n,
             (int)p.manner);
  problem_new(&p);
  test_geqrf(&p);
  test_qr(&p, false);
  test_qr(&p, p.n <= p.m);
  test_geqr_r(&p);
  if (p.m >= p.n && p.n > 0 && (p.kind == MATGEN_RANDOM || p.kind == MATGEN_ROW_SCALED)) test_gels(&p);
  if (p.m > 0 && p.n > 0) {
    test_gesvd(&p, false);
    if (p.n <= p.m) test_gesvd(&p, true);
  }
  free(p.a);
}

void test_routines(world *w, bool large) {
  static const int sizes[][2] = {{60, 5}, {17, 12}, {200, 33}, {9, 14}, {64, 1}, {3, 3}, {20, 0}, {0, 4}};
  static const matgen_kind kinds[] = {MATGEN_ZERO,         MATGEN_WORST,       MATGEN_RANK_DEFICIENT,
                                      MATGEN_ZERO_COLUMNS, MATGEN_ZERO_ROWS,   MATGEN_OVERFLOW,
                                      MATGEN_UNDERFLOW,    MATGEN_LARGE_POWER, MATGEN_SMALL_POWER};
  for (int type = BATCHQR_S; type <= BATCHQR_Z; type++) {
    if (!(bqr_handle_device(w->handle)->types >> type & 1)) continue;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
      for (int manner = 0; manner < NUM_MANNERS; manner++) {
        /* All manners with one type, one with each of the others. */
        if (type != BATCHQR_D && manner != ((int)i + type) % NUM_MANNERS) continue;
        test_problem((problem){.w = w,
                               .type = (batchqr_type)type,
                               .kind = MATGEN_RANDOM,
                               .manner = manner,
                               .m = sizes[i][0],
                               .n = sizes[i][1]});
      }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
      test_problem((problem){.w = w,
                             .type = (batchqr_type)type,
                             .kind = kinds[i],
                             .manner = (int)i % NUM_MANNERS,
                             .m = 70,
                             .n = 9});
    if (large)
      test_problem((problem){
          .w = w, .type = (batchqr_type)type, .kind = MATGEN_RANDOM, .manner = EVEN, .m = 3000, .n = 64});
  }
}
