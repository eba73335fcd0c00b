/* SPDX-License-Identifier: BSD-3-Clause */
/* GELSY and PINV. The pseudoinverse is judged by Moore and Penrose's conditions, in long double. */
#include "memory.h"
#include "number.h"
#include "residual.h"

#include <math.h>
#include <stdlib.h>

static bool all_finite(const lab_member *x, int rows, int cols) {
  for (int j = 0; j < cols; j++)
    for (int i = 0; i < rows; i++) {
      const number z = number_at(x, BQR_C, x->now[BQR_C], i, j);
      if (!isfinite(creall(z)) || !isfinite(cimagl(z))) return false;
    }
  return true;
}

/* Matrices whose columns are as long as one another, or nearly, and far from dependent: there X is in range.
 */
static bool is_regular(matgen_kind kind) {
  static const matgen_kind kinds[] = {MATGEN_RANDOM, MATGEN_IDENTITY, MATGEN_ORTHONORMAL,
                                      MATGEN_WELL,   MATGEN_OVERFLOW, MATGEN_UNDERFLOW,
                                      MATGEN_HUGE,   MATGEN_LARGEST,  MATGEN_ZERO};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i] == kind) return true;
  return false;
}

static void judge_rank(const lab_member *x, lab_verdict *v) {
  if (x->info) lab_require(v, *x->info == 0, "info is not 0", *x->info);
  if (!x->now[BQR_RANK]) return;
  const int rank = *(const int *)x->now[BQR_RANK], k = bqr_min(x->m, x->n);
  lab_require(v, rank >= 0 && rank <= k, "rank is none", rank);
  lab_require(v, x->kmax <= 0 || rank <= x->kmax, "rank is beyond kmax", rank);
}

/* --- GELSY */

static batchqr_status call_gelsy(batchqr_handle_t handle, const batchqr_batch *batch,
                                 const batchqr_operands *o) {
  return batch_gelsy(handle, batch, o->a, o->c, o->jpvt, o->rank, o->info);
}

/* C is B, with as many rows as A, then X, with as many as A has columns. */
static bqr_shape gelsy_part(const lab_member *x, int place, bool result, bqr_shape whole) {
  if (place == BQR_C) whole.rows = result ? x->n : x->m;
  return whole;
}

static bool judge_gelsy(const lab_member *x, lab_verdict *v) {
  judge_rank(x, v);
  return x->n > 0 && (is_regular(x->kind) || all_finite(x, x->n, x->k));
}

/* Of four right-hand sides at most. */
static double gelsy_residual(const lab_member *x, int columns) {
  (void)columns;
  if (!x->now[BQR_JPVT] || !x->now[BQR_RANK]) return 0;
  return residual_gelsy(x->type, x->m, x->n, x->k, x->before[BQR_A], x->ld[BQR_A], x->before[BQR_C],
                        x->ld[BQR_C], x->now[BQR_C], x->ld[BQR_C], x->now[BQR_JPVT],
                        *(const int *)x->now[BQR_RANK], 4);
}

const lab_routine lab_gelsy = {.op = BATCHQR_GELSY,
                               .call = call_gelsy,
                               .ratios = {{"the residual of X", gelsy_residual}},
                               .judge = judge_gelsy,
                               .part = gelsy_part,
                               .destroys_a = true,
                               .wants_optional = true};

/* --- PINV */

static batchqr_status call_pinv(batchqr_handle_t handle, const batchqr_batch *batch,
                                const batchqr_operands *o) {
  return batch_pinv(handle, batch, o->a, o->c, o->s, o->rank, o->info);
}

static bool judge_pinv(const lab_member *x, lab_verdict *v) {
  judge_rank(x, v);
  return x->m > 0 && x->n > 0 && all_finite(x, x->n, x->m);
}

static long double frobenius(const number *a, int64_t size) {
  long double sum = 0;
  for (int64_t i = 0; i < size; i++) sum = hypotl(sum, cabsl(a[i]));
  return sum;
}

static number *times(int m, int n, int k, const number *a, const number *b) {
  number *c = memory_host((size_t)m * (size_t)n * sizeof *c);
  for (int64_t i = 0; i < (int64_t)m * n; i++) c[i] = 0;
  for (int j = 0; j < n; j++)
    for (int l = 0; l < k; l++) {
      const number z = b[(int64_t)j * k + l];
      for (int i = 0; i < m; i++) c[(int64_t)j * m + i] += a[(int64_t)l * m + i] * z;
    }
  return c;
}

/* ||X - X^H||, n x n. */
static long double skew(const number *x, int n) {
  long double sum = 0;
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++)
      sum = hypotl(sum, cabsl(x[(int64_t)j * n + i] - conjl(x[(int64_t)i * n + j])));
  return sum;
}

/* The weights divided out of C; false where that cannot be done, or all of C is too near the ends of the
 * range.
 */
static bool unweighted(const lab_member *x, number *p) {
  for (int j = 0; j < x->m; j++) {
    const void *s = x->before[BQR_S];
    const long double w = !x->now[BQR_S]            ? 1
                          : type_is_double(x->type) ? ((const double *)s)[j]
                                                    : ((const float *)s)[j];
    if (!(fabsl(w) > 1e-3L && fabsl(w) < 1e3L)) return false;
    for (int i = 0; i < x->n; i++) p[(int64_t)j * x->n + i] = number_at(x, BQR_C, x->now[BQR_C], i, j) / w;
  }
  return true;
}

/* A P A = A, P A P = P, (A P)^H = A P, (P A)^H = P A, next to what a small change of A makes of these: of
 * well-conditioned A whose rank is not cut off. */
static double pinv_residual(const lab_member *x, int columns) {
  (void)columns;
  const int m = x->m, n = x->n;
  number *a = memory_host((size_t)m * (size_t)n * sizeof *a),
         *p = memory_host((size_t)m * (size_t)n * sizeof *p);
  long double worst = 0;
  const bool there = unweighted(x, p);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) a[(int64_t)j * m + i] = number_at(x, BQR_A, x->before[BQR_A], i, j);
  const long double of_a = frobenius(a, (int64_t)m * n), of_p = frobenius(p, (int64_t)m * n);
  const long double condition = of_a * of_p, eps = type_eps(x->type) * bqr_max(m, n);
  const bool cut = x->kmax > 0 || x->abstol > 0 || x->reltol > 0;
  if (there && !cut && of_p > 0 && condition * eps < 1e-2L) {
    number *ap = times(m, m, n, a, p), *pa = times(n, n, m, p, a);
    number *apa = times(m, n, m, ap, a), *pap = times(n, m, n, pa, p);
    for (int64_t i = 0; i < (int64_t)m * n; i++) apa[i] -= a[i], pap[i] -= p[i];
    worst = fmaxl(frobenius(apa, (int64_t)m * n) / (of_a * condition * eps),
                  frobenius(pap, (int64_t)m * n) / (of_p * condition * condition * eps));
    worst = fmaxl(worst, fmaxl(skew(ap, m), skew(pa, n)) / (condition * condition * eps));
    free(ap), free(pa), free(apa), free(pap);
  }
  free(a), free(p);
  return worst != worst ? INFINITY : (double)worst;
}

const lab_routine lab_pinv = {.op = BATCHQR_PINV,
                              .call = call_pinv,
                              .ratios = {{"A P A - A and the other three", pinv_residual}},
                              .judge = judge_pinv,
                              .destroys_a = true};
