/* SPDX-License-Identifier: BSD-3-Clause */
/* Routines on one matrix whose columns are dealt to ranks in blocks. */
#include "dense.h"
#include "inspect.h"
#include "matgen.h"
#include "memory.h"
#include "ranks.h"
#include "types.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct spread {
  world *w;
  batchqr_type type;
  matgen_kind kind;
  int m, n, nb;
  int rank, size, own, right, blocks; /* columns of A and of C on this rank */
  size_t bytes;                       /* of an element */
  double eps;                         /* of the arithmetic */
  void *a;                            /* the whole, on the host, m x n */
} spread;

static spread spread_of(world *w, batchqr_type type, matgen_kind kind, int m, int n, int nb) {
  const batchqr_communicator *c = w->communicator;
  spread s = {.w = w,
              .type = type,
              .kind = kind,
              .m = m,
              .n = n,
              .nb = nb,
              .rank = c->rank,
              .size = c->size,
              .own = batchqr_columns_count(n, nb, c->rank, c->size),
              .right = c->size > 1 && c->rank == 0 ? 0 : 2 + c->rank,
              .blocks = ((m < n ? m : n) + nb - 1) / nb,
              .bytes = bqr_type_bytes(type),
              .eps = type_eps(type)};
  s.a = memory_host((size_t)m * (size_t)n * s.bytes);
  matgen_fill(type, kind, 31, m, n, s.a, m ? m : 1);
  return s;
}

static void judge(const spread *s, const char *what, double ratio, double bound) {
  expect_that(s->w, ratio < bound, "%s by columns of type %c, %s, %d x %d, nb %d: ratio %g", what,
              "sdcz"[s->type], matgen_name(s->kind), s -> m, s -> n, s -> nb, ratio);
}

static void judge_status(const spread *s, const char *what, batchqr_status status) {
  expect_that(s->w, !status, "%s by columns of type %c, %s, %d x %d, nb %d: %s", what, "sdcz"[s->type],
              matgen_name(s->kind), s -> m, s -> n, s -> nb, batchqr_error_message(s->w->handle));
}

/* --- matrices by columns of ranks: each column has a gap of one element behind it */

/* The block that a rank's block of columns is in the whole, and its columns there. */
static int column_of(const spread *s, int rank, int own) {
  return (own / s->nb * s->size + rank) * s->nb + own % s->nb;
}

static void *new_columns(const spread *s, int cols) {
  const size_t bytes = (size_t)(s->m + 1) * (size_t)cols * s->bytes;
  void *x = memory_alloc(s->w->backend, bytes);
  memory_fill(s->w->backend, x, 0x5a, bytes);
  return x;
}

static char *host_columns(const spread *s, const void *x, int cols) {
  char *host = memory_host((size_t)(s->m + 1) * (size_t)cols * s->bytes);
  memory_download(s->w->backend, host, x, (size_t)(s->m + 1) * (size_t)cols * s->bytes);
  for (size_t j = 0; j < (size_t)cols; j++)
    expect_that(s->w, ((unsigned char *)host)[(j + 1) * (size_t)(s->m + 1) * s->bytes - 1] == 0x5a,
                "a gap behind a column has changed");
  return host;
}

static void put_column(const spread *s, char *to, int at, const char *from, int column) {
  const size_t bytes = (size_t)s->m * s->bytes;
  memcpy(to + (size_t)at * (bytes + s->bytes), from + (size_t)column * bytes, bytes);
}

/* This rank's columns of A. */
static void *own_columns(const spread *s) {
  void *x = new_columns(s, s->own);
  char *host = host_columns(s, x, s->own);
  for (int j = 0; j < s->own; j++) put_column(s, host, j, s->a, column_of(s, s->rank, j));
  memory_upload(s->w->backend, x, host, (size_t)(s->m + 1) * (size_t)s->own * s->bytes);
  free(host);
  return x;
}

/* This rank's columns of C, of random numbers that are its own; also, close-packed, in *whole. */
static void *own_right(const spread *s, char **whole) {
  void *x = new_columns(s, s->right);
  char *host = host_columns(s, x, s->right);
  *whole = memory_host((size_t)s->m * (size_t)s->right * s->bytes);
  matgen_fill(s->type, MATGEN_RANDOM, 7 + (uint64_t)s->rank, s->m, s->right, *whole, s->m ? s->m : 1);
  for (int j = 0; j < s->right; j++) put_column(s, host, j, *whole, j);
  memory_upload(s->w->backend, x, host, (size_t)(s->m + 1) * (size_t)s->right * s->bytes);
  free(host);
  return x;
}

/* The whole, of what all ranks have. */
static char *collect(const spread *s, const void *x) {
  const batchqr_communicator *c = s->w->communicator;
  const int most = batchqr_columns_count(s->n, s->nb, 0, s->size);
  const size_t bytes = (size_t)(s->m + 1) * (size_t)most * s->bytes, column = (size_t)s->m * s->bytes;
  char *host = host_columns(s, x, s->own), *mine = memory_host(bytes),
       *all = memory_host(bytes * (size_t)s->size), *whole = memory_host(column * (size_t)s->n);
  memcpy(mine, host, (size_t)(s->m + 1) * (size_t)s->own * s->bytes);
  if (bytes > 0)
    expect_that(s->w, !c->agree(c->context, mine, all, bytes), "collecting: %s", c->message(c->context));
  int columns = 0;
  for (int r = 0; r < s->size; r++)
    for (int j = 0; j < batchqr_columns_count(s->n, s->nb, r, s->size); j++, columns++)
      memcpy(whole + (size_t)column_of(s, r, j) * column,
             all + (size_t)r * bytes + (size_t)j * (column + s->bytes), column);
  expect_that(s->w, columns == s->n, "the ranks have %d columns of %d", columns, s->n);
  free(host);
  free(mine);
  free(all);
  return whole;
}

static void *host_vector(const spread *s, const void *x, size_t elements) {
  void *host = memory_host(elements * s->bytes);
  memory_download(s->w->backend, host, x, elements * s->bytes);
  return host;
}

/* --- the routines */

static batchqr_status by_columns(const spread *s, batchqr_op op, const batchqr_batch *batch,
                                 const batchqr_operands *operands) {
  world *w = s->w;
  batchqr_columns_t plan;
  batchqr_status status = batchqr_columns_create(w->handle, w->communicator, op, batch, s->nb, &plan);
  if (!status) status = batchqr_columns_execute(w->handle, plan, operands);
  if (!status) status = batchqr_wait(w->handle, w->communicator);
  expect_that(w, status || strstr(batchqr_columns_describe(plan), "blocks of"), "no description");
  expect_that(w, status || batchqr_columns_memory(plan) > 0, "no memory");
  batchqr_columns_destroy(plan);
  return status;
}

static batchqr_batch batch_of(const spread *s, batchqr_op op, int n, int k) {
  batchqr_batch batch = batchqr_batch_packed(op, s->type, s->m, n, k, 1);
  batch.a.ld = batch.c.ld = s->m + 1;
  return batch;
}

static dense read_whole(const spread *s, const void *x, int cols, int exponent) {
  return dense_read(s->type, x, s->m ? s->m : 1, s->m, cols, exponent);
}

/* ||A - Q R|| and ||I - Q^H Q||. */
static void judge_qr(const spread *s, const char *factored, const void *tau) {
  const int k = s->m < s->n ? s->m : s->n, ld = s->m ? s->m : 1;
  const int e = dense_exponent(s->type, s->a, ld, s->m, s->n);
  char *q = memory_host((size_t)s->m * (size_t)k * s->bytes);
  memcpy(q, factored, (size_t)s->m * (size_t)k * s->bytes);
  const batchqr_batch batch = batchqr_batch_packed(BATCHQR_ORGQR, s->type, s->m, k, k, 1);
  judge_status(s, "orgqr", k ? batch_orgqr(s->w->reference, &batch, q, tau, NULL) : BATCHQR_SUCCESS);
  dense a = read_whole(s, s->a, s->n, e), dq = read_whole(s, q, k, 0),
        r = dense_read(s->type, factored, ld, k, s->n, e);
  for (int j = 0; j < s->n; j++)
    for (int i = j + 1; i < k; i++) *dense_at(&r, i, j) = 0;
  dense product = dense_product(&dq, false, &r);
  const double norm = dense_norm(&a), high = fmax(1, fmax(s->m, s->n)), eps = s->eps;
  dense_subtract(&a, &product);
  judge(s, "geqrf", dense_norm(&a) / (high * eps * norm + dense_spacing(s->type, e) + 1e-300), 30);
  judge(s, "Q", dense_orthogonality(&dq) / (fmax(1, s->m) * eps), 30);
  dense_free(&a);
  dense_free(&dq);
  dense_free(&r);
  dense_free(&product);
  free(q);
}

/* The first zero of R's diagonal in each block. */
static void judge_info(const spread *s, const char *factored, const int *info) {
  for (int b = 0; b < s->blocks; b++) {
    int zero = 0;
    for (int j = b * s->nb; j < s->m && j < s->n && j < (b + 1) * s->nb && !zero; j++) {
      dense x = dense_read(s->type, factored + ((size_t)j * (size_t)s->m + (size_t)j) * s->bytes, 1, 1, 1, 0);
      if (*dense_at(&x, 0, 0) == 0) zero = j - b * s->nb + 1;
      dense_free(&x);
    }
    expect_that(s->w, info[b] == zero, "info[%d] is %d, not %d (%s, %d x %d)", b, info[b], zero,
                matgen_name(s->kind), s->m, s->n);
  }
}

/* The largest difference of columns of C, by the norm of the second. */
static double difference(const spread *s, const void *x, int ldx, const void *y, int rows) {
  const int e = dense_exponent(s->type, y, s->m ? s->m : 1, rows, s->right);
  dense dx = dense_read(s->type, x, ldx, rows, s->right, e),
        dy = dense_read(s->type, y, s->m ? s->m : 1, rows, s->right, e);
  const double norm = dense_norm(&dy);
  dense_subtract(&dx, &dy);
  const double found = dense_norm(&dx) / ((norm + 1e-300) * s->eps * fmax(1, s->m));
  dense_free(&dx);
  dense_free(&dy);
  return found;
}

/* op(Q) C against the CPU's; `a`: this rank's columns of V. */
static void test_ormqr(const spread *s, void *a, void *tau, const char *factored, const void *host_tau) {
  const int k = s->m < s->n ? s->m : s->n;
  spread v = *s; /* V may have fewer columns than A */
  v.n = k;
  v.own = batchqr_columns_count(k, s->nb, s->rank, s->size);
  for (int adjoint = 1; adjoint >= 0 && k > 0; adjoint--) {
    const batchqr_trans trans = adjoint ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
    char *reference;
    void *c = own_right(s, &reference);
    batchqr_batch batch = batch_of(&v, BATCHQR_ORMQR, s->right, k);
    batch.trans = trans;
    const batchqr_operands operands = {.a = a, .tau = tau, .c = c};
    judge_status(s, "ormqr", by_columns(&v, BATCHQR_ORMQR, &batch, &operands));
    batch = batchqr_batch_packed(BATCHQR_ORMQR, s->type, s->m, s->right, k, 1);
    if (s->right > 0)
      judge_status(
          s, "reference",
          batch_ormqr(s->w->reference, &batch, BATCHQR_LEFT, trans, factored, host_tau, reference, NULL));
    char *found = host_columns(s, c, s->right);
    judge(s, "ormqr", difference(s, found, s->m + 1, reference, s->m), 100);
    free(found);
    free(reference);
    memory_free(s->w->backend, c);
  }
}

static void test_geqrf(const spread *s) {
  const int k = s->m < s->n ? s->m : s->n;
  void *a = own_columns(s), *again = own_columns(s), *tau = new_columns(s, k + 1);
  int *info = memory_alloc(s->w->backend, sizeof(int) * (size_t)(s->blocks + 1));
  const batchqr_batch batch = batch_of(s, BATCHQR_GEQRF, s->n, 0);
  judge_status(s, "geqrf", by_columns(s, BATCHQR_GEQRF, &batch, &(batchqr_operands){.a = again, .tau = tau}));
  judge_status(s, "geqrf",
               by_columns(s, BATCHQR_GEQRF, &batch, &(batchqr_operands){.a = a, .tau = tau, .info = info}));
  char *factored = collect(s, a), *second = collect(s, again), *host_tau = host_vector(s, tau, (size_t)k);
  int *host_info = memory_host(sizeof(int) * (size_t)(s->blocks + 1));
  memory_download(s->w->backend, host_info, info, sizeof(int) * (size_t)s->blocks);
  expect_that(s->w, !memcmp(factored, second, (size_t)s->m * (size_t)s->n * s->bytes), "another result");
  expect_that(s->w, all_have(s->w, host_tau, (size_t)k * s->bytes), "the ranks' tau differ");
  expect_that(s->w, all_have(s->w, host_info, sizeof(int) * (size_t)s->blocks), "the ranks' info differ");
  judge_qr(s, factored, host_tau);
  judge_info(s, factored, host_info);
  test_ormqr(s, a, tau, factored, host_tau);
  free(factored);
  free(second);
  free(host_tau);
  free(host_info);
  memory_free(s->w->backend, a);
  memory_free(s->w->backend, again);
  memory_free(s->w->backend, tau);
  memory_free(s->w->backend, info);
}

static void judge_norms(const spread *s, const void *found, const void *expected) {
  for (int j = 0; j < s->right; j++) {
    const double x = dense_real(s->type, found, j, 0), y = dense_real(s->type, expected, j, 0);
    judge(s, "norms of gels", fabs(x - y) / (s->eps * s->m * (y + 1)), 100);
  }
}

/* Solutions and residual norms against the CPU's. */
static void test_gels(const spread *s) {
  char *b;
  void *a = own_columns(s), *c = own_right(s, &b), *norms = new_columns(s, s->right + 1);
  batchqr_batch batch = batch_of(s, BATCHQR_GELS, s->n, s->right);
  batch.norms.stride = s->right;
  const batchqr_operands operands = {.a = a, .c = c, .norms = norms};
  judge_status(s, "gels", by_columns(s, BATCHQR_GELS, &batch, &operands));
  batch = batchqr_batch_packed(BATCHQR_GELS, s->type, s->m, s->n, s->right, 1);
  double expected[2 * 64];
  judge_status(s, "reference",
               batch_gels(s->w->reference, &batch, BATCHQR_NO_TRANS, s->a, b, expected, NULL));
  char *x = host_columns(s, c, s->right), *found = host_vector(s, norms, (size_t)s->right);
  judge(s, "gels", difference(s, x, s->m + 1, b, s->n), 1000);
  judge_norms(s, found, expected);
  free(x);
  free(found);
  free(b);
  memory_free(s->w->backend, a);
  memory_free(s->w->backend, c);
  memory_free(s->w->backend, norms);
}

/* R with a diagonal that is not negative, by a handle that wants it. */
static void test_positive(world *w) {
  enter_case(w, "columns, R with a diagonal that is not negative");
  world positive = *w;
  positive.handle = memory_handle(w->backend, &(batchqr_options){.threads = 1, .positive_diagonal = 1});
  const spread s = spread_of(&positive, BATCHQR_D, MATGEN_RANDOM, 50, 40, 7);
  void *a = own_columns(&s), *tau = new_columns(&s, s.n);
  const batchqr_batch batch = batch_of(&s, BATCHQR_GEQRF, s.n, 0);
  judge_status(&s, "geqrf", by_columns(&s, BATCHQR_GEQRF, &batch, &(batchqr_operands){.a = a, .tau = tau}));
  char *factored = collect(&s, a), *host_tau = host_vector(&s, tau, (size_t)s.n);
  judge_qr(&s, factored, host_tau);
  for (int j = 0; j < s.n; j++)
    expect_that(&positive, dense_real(s.type, factored, j * (s.m + 1), 0) >= 0, "R(%d,%d) is negative", j, j);
  w->failures = positive.failures;
  free(factored);
  free(host_tau);
  free(s.a);
  memory_free(w->backend, a);
  memory_free(w->backend, tau);
  batchqr_destroy(positive.handle);
}

static void test_spread(spread s) {
  enter_case(s.w, "columns, type %c, %s, %d x %d, nb %d", "sdcz"[s.type], matgen_name(s.kind), s.m, s.n,
             s.nb);
  const bool solvable =
      s.kind == MATGEN_RANDOM || s.kind == MATGEN_LARGE_POWER || s.kind == MATGEN_SMALL_POWER;
  test_geqrf(&s);
  if (s.m >= s.n && s.m > 0 && solvable) test_gels(&s); /* which destroys s.a */
  free(s.a);
}

/* Blocks so wide, and so long, that the next one's products go in slices. */
static void test_slices(world *w, batchqr_compute mode) {
  batchqr_set_compute(w->handle, mode);
  spread s = spread_of(w, BATCHQR_S, MATGEN_RANDOM, 4100, 2048, 1024);
  enter_case(w, "columns, slices, mode %d", mode);
  if (mode == BATCHQR_COMPUTE_HALF) s.eps = 0x1p-11;
  test_geqrf(&s);
  free(s.a);
}

void test_columns(world *w, bool large) {
  static const int sizes[][3] = {{60, 35, 8},  {40, 40, 10}, {33, 50, 7},  {25, 60, 16},
                                 {50, 20, 64}, {70, 9, 1},   {1, 5, 2},    {9, 1, 4},
                                 {0, 6, 2},    {6, 0, 2},    {120, 97, 32}};
  static const matgen_kind kinds[] = {
      MATGEN_ZERO,        MATGEN_WORST,      MATGEN_RANK_DEFICIENT, MATGEN_ZERO_COLUMNS, MATGEN_ZERO_ROWS,
      MATGEN_OVERFLOW,    MATGEN_UNDERFLOW,  MATGEN_LARGEST,        MATGEN_LARGE_POWER,  MATGEN_TINY,
      MATGEN_SMALL_POWER, MATGEN_ROW_SCALED, MATGEN_COLUMN_SCALED};
  for (int type = BATCHQR_S; type <= BATCHQR_Z; type++) {
    const batchqr_type t = (batchqr_type)type;
    if (!(bqr_handle_device(w->handle)->types >> type & 1)) continue;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
      test_spread(spread_of(w, t, MATGEN_RANDOM, sizes[i][0], sizes[i][1], sizes[i][2]));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
      test_spread(spread_of(w, t, kinds[i], 70, 31, 6));
    bqr_set_strip(w->handle, 1000);
    test_spread(spread_of(w, t, MATGEN_RANDOM, 80, 75, 5));
    bqr_set_strip(w->handle, 0);
    for (int i = 0; i < 3 && large; i++) { /* which are brought into range once for all blocks */
      static const matgen_kind scaled[] = {MATGEN_OVERFLOW, MATGEN_UNDERFLOW, MATGEN_COLUMN_SCALED};
      test_spread(spread_of(w, t, scaled[i], 600, 330, 128));
    }
    for (int mode = BATCHQR_COMPUTE_NATIVE; mode <= BATCHQR_COMPUTE_HALF && large; mode++) {
      batchqr_set_compute(w->handle, (batchqr_compute)mode);
      spread s = spread_of(w, t, MATGEN_RANDOM, 1100, 900, 256);
      if (mode == BATCHQR_COMPUTE_HALF && !type_is_double(t)) s.eps = 0x1p-11;
      test_spread(s);
    }
    for (int mode = BATCHQR_COMPUTE_EMULATED; mode <= BATCHQR_COMPUTE_HALF && large && t == BATCHQR_S; mode++)
      test_slices(w, (batchqr_compute)mode);
    batchqr_set_compute(w->handle, BATCHQR_COMPUTE_AUTO);
  }
  test_positive(w);
}

/* --- what goes wrong */

static void expect_create(world *w, const char *what, batchqr_op op, const batchqr_batch *batch, int nb,
                          batchqr_status of_one, batchqr_status of_others, const char *text) {
  batchqr_columns_t plan;
  const bool one = w->communicator->rank == 1;
  const batchqr_status status = batchqr_columns_create(w->handle, w->communicator, op, batch, nb, &plan),
                       expected = one ? of_one : of_others;
  const char *found = batchqr_error_message(w->handle);
  expect_that(w, status == expected && (plan != NULL) == !status, "%s: %s (%s)", what,
              batchqr_status_string(status), found);
  expect_that(w, strstr(found, text) != NULL, "%s: \"%s\" without \"%s\"", what, found, text);
  batchqr_columns_destroy(plan);
}

static void test_disagreement(world *w) {
  const batchqr_status no = BATCHQR_RANK_ERROR, invalid = BATCHQR_INVALID_ARGUMENT;
  const int one = w->communicator->rank == 1;
  const batchqr_batch good = batchqr_batch_packed(BATCHQR_GEQRF, BATCHQR_D, 20, 12, 0, 1);
  batchqr_batch batch = good;
  expect_create(w, "nb", BATCHQR_GEQRF, &batch, 4 + one, no, no, "rank 1 has nb = 5, and rank 0 4");
  expect_create(w, "no nb", BATCHQR_GEQRF, &batch, 1 - one, invalid, no, "nb = 0 is not positive");
  batch.m -= one;
  expect_create(w, "m", BATCHQR_GEQRF, &batch, 4, no, no, "rank 1 has batch.m = 19, and rank 0 20");
  batch = good;
  batch.n -= one;
  expect_create(w, "n", BATCHQR_GEQRF, &batch, 4, no, no, "rank 1 has batch.n = 11, and rank 0 12");
  batch = good;
  batch.a.ld -= one;
  expect_create(w, "lda", BATCHQR_GEQRF, &batch, 4, invalid, no, "batch.a.ld = 19");
  batch = good;
  batch.count += one;
  expect_create(w, "count", BATCHQR_GEQRF, &batch, 4, BATCHQR_UNSUPPORTED, no, "batch.count = 2");
  expect_create(w, "an operation", BATCHQR_QR, &good, 4, BATCHQR_UNSUPPORTED, BATCHQR_UNSUPPORTED, "op = 3");
  batch = batchqr_batch_packed(BATCHQR_GELS, BATCHQR_D, 4, 9, 1, 1);
  expect_create(w, "a wide A", BATCHQR_GELS, &batch, 4, BATCHQR_UNSUPPORTED, BATCHQR_UNSUPPORTED,
                "A is not wide");
  expect_create(w, "no batch", BATCHQR_GEQRF, one ? NULL : &good, 4, invalid, no, "batch is NULL");
}

/* A rank with another call, and one without a handle. */
static void test_other_call(world *w) {
  const bool one = w->communicator->rank == 1;
  const batchqr_batch batch = batchqr_batch_packed(BATCHQR_GEQRF, BATCHQR_D, 20, 12, 0, 1);
  batchqr_columns_t plan;
  batchqr_tsqr_t other;
  batchqr_status status;
  if (one)
    status = batchqr_tsqr_create(w->handle, w->communicator, BATCHQR_GEQRF, &batch, &other);
  else
    status = batchqr_columns_create(w->handle, w->communicator, BATCHQR_GEQRF, &batch, 4, &plan);
  expect_that(w, status == BATCHQR_RANK_ERROR, "another call: %s", batchqr_status_string(status));
  status = batchqr_columns_create(one ? NULL : w->handle, w->communicator, BATCHQR_GEQRF, &batch, 4, &plan);
  expect_that(w, status == (one ? BATCHQR_INVALID_ARGUMENT : BATCHQR_RANK_ERROR), "no handle: %s",
              batchqr_status_string(status));
}

/* Factors a matrix that has a NaN in column `column`, or, for -1, that rank 1 does not give; from block
 * `first` on there must be NaNs. */
static void test_bad_block(world *w, batchqr_op op, int column, int first) {
  spread s = spread_of(w, BATCHQR_D, MATGEN_RANDOM, 40, 30, 4);
  const bool missing = column < 0 && s.rank == 1;
  if (column >= 0) ((double *)s.a)[column * s.m + 17] = NAN;
  char *b;
  void *a = own_columns(&s), *c = own_right(&s, &b), *tau = new_columns(&s, s.n);
  int *info = memory_alloc(w->backend, sizeof(int) * (size_t)s.blocks), found[16] = {0};
  const batchqr_batch batch = batch_of(&s, op, s.n, s.right);
  const batchqr_operands operands = {.a = missing ? NULL : a, .tau = tau, .c = c, .info = info};
  const batchqr_status status = by_columns(&s, op, &batch, &operands);
  expect_that(w, status == (missing ? BATCHQR_INVALID_ARGUMENT : BATCHQR_SUCCESS), "a bad block: %s: %s",
              batchqr_status_string(status), batchqr_error_message(w->handle));
  if (!missing) memory_download(w->backend, found, info, sizeof(int) * (size_t)s.blocks);
  for (int i = 0; i < s.blocks && !missing; i++)
    expect_that(w, found[i] == (i < first ? 0 : BATCHQR_INFO_NONFINITE), "info[%d] is %d with block %d bad",
                i, found[i], first);
  char *x = host_columns(&s, c, s.right);
  for (int j = 0; j < s.right && op == BATCHQR_GELS && !missing; j++)
    expect_that(w, isnan(((double *)(void *)x)[j * (s.m + 1)]), "X of a bad block is a number");
  free(x);
  free(b);
  free(s.a);
  memory_free(w->backend, a);
  memory_free(w->backend, c);
  memory_free(w->backend, tau);
  memory_free(w->backend, info);
}

void test_columns_errors(world *w) {
  enter_case(w, "columns, what goes wrong");
  test_bad_block(w, BATCHQR_GEQRF, 0, 0);
  test_bad_block(w, BATCHQR_GEQRF, 13, 3);
  test_bad_block(w, BATCHQR_GELS, 29, 7);
  if (w->communicator->size < 2) return;
  test_bad_block(w, BATCHQR_GEQRF, -1, 1);
  test_bad_block(w, BATCHQR_GELS, -1, 1);
  test_disagreement(w);
  test_other_call(w);
}
