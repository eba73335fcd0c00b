/* SPDX-License-Identifier: BSD-3-Clause */
#include "routines.h"
#include "probe.h"
#include "reflectors.h"
#include "residual.h"
#include "spoiled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void lab_require(lab_verdict *v, bool good, const char *what, double value) {
  if (v->what == NULL && !good) *v = (lab_verdict){what, value};
}

static double real_number(batchqr_type type, const void *at, int64_t i) {
  return type_is_double(type) ? ((const double *)at)[i] : ((const float *)at)[i];
}

/* Entry (i, j) of a matrix among the results. */
static const void *entry(const lab_member *x, int place, int i, int j) {
  return (const char *)x->now[place] + ((int64_t)j * x->ld[place] + i) * (int64_t)bqr_type_bytes(x->type);
}

static bool is_zero(batchqr_type type, const void *at) {
  return real_number(type, at, 0) == 0.0 && (!type_is_complex(type) || real_number(type, at, 1) == 0.0);
}

/* --- shapes */

bqr_shape lab_shape(const lab_member *x, const bqr_use *use) {
  return bqr_shape_of(use, &(batchqr_batch){.side = x->side, .il = x->il, .iu = x->iu},
                      (bqr_dims){x->m, x->n, x->k});
}

bqr_shape lab_part(const lab_routine *routine, const lab_member *x, const bqr_use *use, bool result) {
  const bqr_shape whole = lab_shape(x, use);
  return routine->part ? routine->part(x, (int)use->place, result, whole) : whole;
}

bool lab_reads(const lab_routine *routine, const lab_member *x, const bqr_use *use, int i, int j) {
  const bqr_shape part = lab_part(routine, x, use, false);
  if (!(use->access & BQR_READ) || i >= part.rows || j >= part.cols) return false;
  if (use->place != BQR_A) return true;
  if (routine->diagonal_only) return i == j;
  if (routine->triangle_only) return i <= j;
  if (x->operation->square) return x->uplo == BATCHQR_LOWER ? i > j : i < j;
  return x->operation->k != BQR_REFLECTORS || (i > j && j < x->k);
}

int64_t lab_extent(bqr_shape shape, int ld) {
  return shape.rows > 0 && shape.cols > 0 ? (int64_t)(shape.cols - 1) * ld + shape.rows : 0;
}

/* --- input */

/* All but the diagonal of A becomes NaN: nobody reads it. The diagonal becomes real. */
static void leave_diagonal(const lab_member *x) {
  const size_t bytes = bqr_type_bytes(x->type), real = bqr_real_bytes(x->type);
  for (int j = 0; j < x->n; j++)
    for (int i = 0; i < x->m; i++) {
      char *at = (char *)x->now[BQR_A] + ((int64_t)j * x->ld[BQR_A] + i) * (int64_t)bytes;
      if (i != j)
        memset(at, 0xff, bytes);
      else
        memset(at + real, 0, bytes - real);
    }
}

/* What is below the diagonal becomes NaN: nobody reads it. */
static void leave_upper_triangle(const lab_member *x) {
  const size_t bytes = bqr_type_bytes(x->type);
  for (int j = 0; j < x->n; j++)
    for (int i = j + 1; i < x->m; i++)
      memset((char *)x->now[BQR_A] + ((int64_t)j * x->ld[BQR_A] + i) * (int64_t)bytes, 0xff, bytes);
}

/* What is not read of a Hermitian matrix becomes NaN: one triangle, and imaginary parts on the diagonal. */
static void leave_triangle(const lab_member *x) {
  const size_t bytes = bqr_type_bytes(x->type), real = bqr_real_bytes(x->type);
  for (int j = 0; j < x->n; j++)
    for (int i = 0; i < x->n; i++) {
      char *at = (char *)x->now[BQR_A] + ((int64_t)j * x->ld[BQR_A] + i) * (int64_t)bytes;
      if (i == j)
        memset(at + real, 0xff, bytes - real);
      else if (x->uplo == BATCHQR_LOWER ? i < j : i > j)
        memset(at, 0xff, bytes);
    }
}

void lab_fill(const lab_routine *routine, const lab_member *x, uint64_t seed) {
  const bool reflects = x->operation->k == BQR_REFLECTORS;
  for (const bqr_use *use = x->operation->uses; use->place; use++) {
    const bqr_shape part = lab_part(routine, x, use, false);
    const bool made = reflects && (use->place == BQR_A || use->place == BQR_TAU);
    if (!(use->access & BQR_READ) || made || !x->now[use->place]) continue;
    const batchqr_type type = use->kind == BQR_REALS ? type_real(x->type) : x->type;
    matgen_fill(type, x->kind, seed + (use->place != BQR_A), part.rows, part.cols, x->now[use->place],
                x->ld[use->place]);
  }
  if (reflects && x->now[BQR_A])
    reflectors_fill(x->type, x->kind, seed, lab_shape(x, bqr_use_at(x->operation, BQR_A)).rows, x->k,
                    x->now[BQR_A], x->ld[BQR_A], x->now[BQR_TAU]);
  if (routine->diagonal_only) leave_diagonal(x);
  if (routine->triangle_only) leave_upper_triangle(x);
  if (x->operation->square) leave_triangle(x);
}

/* --- what is true of every operation's results */

/* R is where the row says, or in A. R's diagonal is real, and >= 0 if asked for; info is the first zero on
 * it; what is below it is zero where R is not beside V. */
static void judge_r(const lab_member *x, lab_verdict *v) {
  const bool apart = bqr_use_at(x->operation, BQR_R) != NULL;
  const int place = apart ? BQR_R : BQR_A, k = bqr_min(x->m, x->n);
  const int rows = !apart ? 0 : x->now[BQR_R] == x->now[BQR_A] ? x->m : k;
  int zero = 0;
  for (int j = k - 1; j >= 0; j--) {
    const void *r = entry(x, place, j, j);
    const double re = real_number(x->type, r, 0);
    if (is_zero(x->type, r)) zero = j + 1;
    if (x->positive) lab_require(v, re >= 0.0, "R(j,j) is not >= 0", re);
    if (type_is_complex(x->type))
      lab_require(v, real_number(x->type, r, 1) == 0.0, "R(j,j) is not real", real_number(x->type, r, 1));
  }
  if (x->info)
    lab_require(v, *x->info == zero, zero > 0 ? "info does not name the first zero R(j,j)" : "info is not 0",
                *x->info);
  for (int j = 0; j < x->n; j++)
    for (int i = j + 1; i < rows; i++)
      lab_require(v, is_zero(x->type, entry(x, place, i, j)), "an entry below R's diagonal is not 0",
                  real_number(x->type, entry(x, place, i, j), 0));
}

bool lab_judge(const lab_routine *routine, const lab_member *x, lab_verdict *v) {
  if (routine->judge) return routine->judge(x, v);
  const bool empty = x->m == 0 || x->n == 0, has_r = x->operation->makes_r && !empty;
  if (has_r)
    judge_r(x, v);
  else if (x->info)
    lab_require(v, *x->info == 0, "info is not 0", *x->info);
  return !empty;
}

void lab_judge_without_result(const lab_member *x, lab_verdict *v) {
  for (const bqr_use *use = x->operation->uses; use->place; use++) {
    if (use->kind != BQR_REALS || !(use->access & BQR_WRITTEN) || !x->now[use->place]) continue;
    if (use->access & BQR_ANNOUNCED) continue; /* it tells of the way there */
    for (int i = 0; i < lab_shape(x, use).rows; i++) {
      const double value = real_number(x->type, x->now[use->place], i);
      lab_require(v, value != value, "a real number of a member without a result is not NaN", value);
    }
  }
}

/* --- GEQRF */

static batchqr_status call_geqrf(batchqr_handle_t handle, const batchqr_batch *batch,
                                 const batchqr_operands *o) {
  return batch_geqrf(handle, batch, o->a, o->tau, o->info);
}

static double geqrf_residual(const lab_member *x, int columns) {
  return residual_geqrf(x->type, x->m, x->n, x->before[BQR_A], x->ld[BQR_A], x->now[BQR_A], x->ld[BQR_A],
                        x->now[BQR_TAU], columns);
}

static double geqrf_orthogonality(const lab_member *x, int columns) {
  const int k = bqr_min(x->m, x->n);
  return residual_reflectors(x->type, x->m, k, k, x->now[BQR_A], x->ld[BQR_A], x->now[BQR_TAU], columns);
}

static const lab_routine geqrf = {
    .op = BATCHQR_GEQRF,
    .call = call_geqrf,
    .ratios = {{"||A - QR||", geqrf_residual}, {"||I - Q^H Q||", geqrf_orthogonality}},
    .probe = probe_geqrf,
    .judge_spoiled = lab_spoiled_factors};

/* --- ORGQR */

static batchqr_status call_orgqr(batchqr_handle_t handle, const batchqr_batch *batch,
                                 const batchqr_operands *o) {
  return (type_is_complex(batch->type) ? batch_ungqr : batch_orgqr)(handle, batch, o->a, o->tau, o->info);
}

static double orgqr_residual(const lab_member *x, int columns) {
  return residual_orgqr(x->type, x->m, x->n, x->k, x->before[BQR_A], x->ld[BQR_A], x->before[BQR_TAU],
                        x->now[BQR_A], x->ld[BQR_A], columns);
}

static double orgqr_orthogonality(const lab_member *x, int columns) {
  return residual_orthogonality(x->type, x->m, x->n, x->now[BQR_A], x->ld[BQR_A], columns);
}

static const lab_routine orgqr = {
    .op = BATCHQR_ORGQR,
    .call = call_orgqr,
    .ratios = {{"||Q - H_1 ... H_k||", orgqr_residual}, {"||I - Q^H Q||", orgqr_orthogonality}},
    .probe = probe_orgqr,
    .judge_spoiled = lab_spoiled_q};

/* --- ORMQR */

static batchqr_status call_ormqr(batchqr_handle_t handle, const batchqr_batch *batch,
                                 const batchqr_operands *o) {
  return (type_is_complex(batch->type) ? batch_unmqr : batch_ormqr)(handle, batch, batch->side, batch->trans,
                                                                    o->a, o->tau, o->c, o->info);
}

static double ormqr_residual(const lab_member *x, int columns) {
  return residual_ormqr(x->type, x->side, x->trans, x->m, x->n, x->k, x->before[BQR_A], x->ld[BQR_A],
                        x->before[BQR_TAU], x->before[BQR_C], x->ld[BQR_C], x->now[BQR_C], x->ld[BQR_C],
                        columns);
}

static const lab_routine ormqr = {.op = BATCHQR_ORMQR,
                                  .call = call_ormqr,
                                  .ratios = {{"||C - op(Q) B||", ormqr_residual}},
                                  .probe = probe_ormqr,
                                  .judge_spoiled = lab_spoiled_lines};

/* --- QR and GEQR_R */

static batchqr_status call_qr(batchqr_handle_t handle, const batchqr_batch *batch,
                              const batchqr_operands *o) {
  return batch_qr(handle, batch, o->a, o->c, o->r, o->info);
}

static batchqr_status call_geqr_r(batchqr_handle_t handle, const batchqr_batch *batch,
                                  const batchqr_operands *o) {
  return batch_geqr_r(handle, batch, o->a, o->r, o->info);
}

static double qr_residual(const lab_member *x, int columns) {
  return residual_qr(x->type, x->m, x->n, x->before[BQR_A], x->ld[BQR_A], x->now[BQR_C], x->ld[BQR_C],
                     x->now[BQR_R], x->ld[BQR_R], columns);
}

static double qr_orthogonality(const lab_member *x, int columns) {
  return residual_orthogonality(x->type, x->m, bqr_min(x->m, x->n), x->now[BQR_C], x->ld[BQR_C], columns);
}

static double qr_projection(const lab_member *x, int columns) {
  return residual_projection(x->type, x->m, x->n, x->before[BQR_A], x->ld[BQR_A], x->now[BQR_C], x->ld[BQR_C],
                             x->now[BQR_R], x->ld[BQR_R], columns);
}

static double geqr_r_residual(const lab_member *x, int columns) {
  return residual_gram(x->type, x->m, x->n, x->before[BQR_A], x->ld[BQR_A], x->now[BQR_R], x->ld[BQR_R],
                       columns);
}

static const lab_routine qr = {.op = BATCHQR_QR,
                               .call = call_qr,
                               .ratios = {{"||A - QR||", qr_residual},
                                          {"||I - Q^H Q||", qr_orthogonality},
                                          {"||R - Q^H A||", qr_projection}},
                               .probe = probe_qr,
                               .judge_spoiled = lab_spoiled_factors,
                               .destroys_a = true};
static const lab_routine geqr_r = {.op = BATCHQR_GEQR_R,
                                   .call = call_geqr_r,
                                   .ratios = {{"||A^H A - R^H R||", geqr_r_residual}},
                                   .probe = probe_geqr_r,
                                   .judge_spoiled = lab_spoiled_factors,
                                   .destroys_a = true};

/* --- GELS */

static batchqr_status call_gels(batchqr_handle_t handle, const batchqr_batch *batch,
                                const batchqr_operands *o) {
  if (!o->iterations && !o->relres)
    return batch_gels(handle, batch, batch->trans, o->a, o->c, o->norms, o->info);
  return batch_gels_refined(handle, batch, batch->trans, o->a, o->c, o->norms, o->iterations, o->relres,
                            o->info);
}

/* C is B, with as many rows as op(A), then X, with as many as op(A) has columns. */
static bqr_shape gels_part(const lab_member *x, int place, bool result, bqr_shape whole) {
  if (place == BQR_C) whole.rows = result == (x->trans == BATCHQR_NO_TRANS) ? x->n : x->m;
  return whole;
}

static bool gels_solved(const lab_member *x) { return x->info && *x->info == 0; }

static bool one_of(matgen_kind kind, const matgen_kind *kinds, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (kinds[i] == kind) return true;
  return false;
}

/* Whether X holds finite numbers only. */
static bool solution_finite(const lab_member *x) {
  const bqr_shape part = lab_part(lab_routine_of(x->operation->op), x, bqr_use_at(x->operation, BQR_C), true);
  const int rows = part.rows * (type_is_complex(x->type) ? 2 : 1);
  for (int j = 0; j < x->k; j++)
    for (int i = 0; i < rows; i++) {
      const double value = real_number(x->type, entry(x, BQR_C, 0, j), i);
      if (!(value - value == 0.0)) return false;
    }
  return true;
}

/* The column of A, or of A^H where A is wide, counted from 1, where R(j,j) is zero without a rounding;
 * negative: that or an earlier one; 0: not known. */
static int known_zero(const lab_member *x) {
  const int q = bqr_min(x->m, x->n);
  if (q == 0) return 0;
  if (x->kind == MATGEN_ZERO || (x->kind == MATGEN_ZERO_FIRST && x->m >= x->n)) return 1;
  return x->kind == MATGEN_ZERO_LAST && x->m >= x->n ? -q : 0;
}

/* What is told of the refinement: steps with the error that they came to, or without one. */
static void judge_refinement(const lab_member *x, lab_verdict *v) {
  const int *iterations = x->now[BQR_ITERATIONS];
  for (int j = 0; j < x->k; j++) {
    const double error = x->now[BQR_RELRES] ? real_number(x->type, x->now[BQR_RELRES], j) : -1;
    const bool direct = error == -1;
    lab_require(v, direct || (error >= 0 && error <= 4 * type_eps(x->type)),
                "relres is no backward error of QR's", error);
    if (!iterations) continue;
    lab_require(v, abs(iterations[j]) < 1000, "iterations are not as many as there can be", iterations[j]);
    lab_require(v, !x->now[BQR_RELRES] || (iterations[j] < 0 ? direct : !direct || iterations[j] == 0),
                "iterations do not say what relres says", iterations[j]);
  }
}

static bool judge_gels(const lab_member *x, lab_verdict *v) {
  static const matgen_kind kinds[] = {MATGEN_RANDOM, MATGEN_IDENTITY, MATGEN_DIAGONAL,    MATGEN_ORTHONORMAL,
                                      MATGEN_WELL,   MATGEN_ILL,      MATGEN_OVERFLOW,    MATGEN_UNDERFLOW,
                                      MATGEN_HUGE,   MATGEN_LARGEST,  MATGEN_LARGE_POWER, MATGEN_SMALL_POWER};
  const bool regular = one_of(x->kind, kinds, sizeof kinds / sizeof *kinds);
  const int zero = known_zero(x);
  judge_refinement(x, v);
  if (x->info) {
    const int info = *x->info;
    lab_require(v, info >= 0 && info <= bqr_min(x->m, x->n), "info is not a column", info);
    lab_require(v, !regular || info == 0, "info of a regular matrix is not 0", info);
    lab_require(v, zero <= 0 || info == zero, "info does not name the first zero R(j,j)", info);
    lab_require(v, zero >= 0 || info > 0, "info does not name a zero R(j,j)", info);
    if (info > 0) lab_judge_without_result(x, v);
    if (info > 0) return false;
  }
  /* Without info there may be no solution. Where columns nearly depend on each other, or lie far apart, X can
   * be out of range. */
  return regular || (x->info && solution_finite(x));
}

/* Of four right-hand sides at most. */
static double gels_residual(const lab_member *x, int columns) {
  (void)columns;
  return residual_gels(x->type, x->trans, x->m, x->n, x->k, x->before[BQR_A], x->ld[BQR_A], x->before[BQR_C],
                       x->ld[BQR_C], x->now[BQR_C], x->ld[BQR_C], x->now[BQR_NORMS], 4);
}

static const lab_routine gels = {.op = BATCHQR_GELS,
                                 .call = call_gels,
                                 .ratios = {{"the residual of X", gels_residual}},
                                 .judge = judge_gels,
                                 .part = gels_part,
                                 .solved = gels_solved,
                                 .destroys_a = true};

/* --- TRSM */

static batchqr_status call_trsm(batchqr_handle_t handle, const batchqr_batch *batch,
                                const batchqr_operands *o) {
  return batch_trsm(handle, batch, batch->trans, o->a, o->c, o->info);
}

/* B and X are C's first rows. */
static bqr_shape trsm_part(const lab_member *x, int place, bool result, bqr_shape whole) {
  (void)result;
  if (place == BQR_C) whole.rows = x->n;
  return whole;
}

/* Whether rows of C from `first` on, before `end`, are bitwise what they were. */
static bool rows_kept(const lab_member *x, int first, int end) {
  const size_t bytes = bqr_type_bytes(x->type), at = (size_t)first * bytes;
  const size_t column = (size_t)x->ld[BQR_C] * bytes;
  for (int j = 0; j < x->k && first < end; j++)
    if (memcmp((const char *)x->now[BQR_C] + (size_t)j * column + at,
               (const char *)x->before[BQR_C] + (size_t)j * column + at, (size_t)(end - first) * bytes) != 0)
      return false;
  return true;
}

/* X of finite data may overflow. */
static bool judge_trsm(const lab_member *x, lab_verdict *v) {
  int zero = 0;
  for (int j = x->n - 1; j >= 0; j--)
    if (is_zero(x->type, entry(x, BQR_A, j, j))) zero = j + 1;
  lab_require(v, rows_kept(x, x->n, x->m), "rows below X were written", x->n);
  if (zero) lab_require(v, rows_kept(x, 0, x->n), "B of a singular R was written", zero);
  const bool finite = zero || x->n == 0 || x->k == 0 || solution_finite(x);
  if (x->info)
    lab_require(v, *x->info == (finite ? zero : BATCHQR_INFO_NONFINITE),
                zero ? "info does not name the first zero R(j,j)" : "info is not what X says", *x->info);
  return finite && !zero && x->n > 0;
}

/* Of four right-hand sides at most. */
static double trsm_residual(const lab_member *x, int columns) {
  const size_t bytes = bqr_type_bytes(x->type);
  char *r = calloc((size_t)x->n * (size_t)x->n, bytes);
  (void)columns;
  for (int j = 0; j < x->n; j++)
    memcpy(r + (size_t)j * (size_t)x->n * bytes, entry(x, BQR_A, 0, j), (size_t)(j + 1) * bytes);
  const double ratio = residual_gels(x->type, x->trans, x->n, x->n, x->k, r, x->n, x->before[BQR_C],
                                     x->ld[BQR_C], x->now[BQR_C], x->ld[BQR_C], NULL, 4);
  free(r);
  return ratio;
}

static const lab_routine trsm = {.op = BATCHQR_TRSM,
                                 .call = call_trsm,
                                 .ratios = {{"the residual of X", trsm_residual}},
                                 .judge = judge_trsm,
                                 .part = trsm_part,
                                 .judge_spoiled = lab_spoiled_solutions,
                                 .triangle_only = true};

/* --- R_RANGE */

static batchqr_status call_r_range(batchqr_handle_t handle, const batchqr_batch *batch,
                                   const batchqr_operands *o) {
  return batch_r_range(handle, batch, o->a, o->range, o->info);
}

/* The smallest and the largest modulus of the diagonal; the first zero on it, from 1. */
static int find_range(const lab_member *x, double range[2]) {
  const int k = bqr_min(x->m, x->n);
  int zero = 0;
  range[0] = k > 0 ? INFINITY : 0, range[1] = 0;
  for (int j = k - 1; j >= 0; j--) {
    const void *r = entry(x, BQR_A, j, j);
    const double modulus =
        hypot(real_number(x->type, r, 0), type_is_complex(x->type) ? real_number(x->type, r, 1) : 0);
    if (modulus == 0) zero = j + 1;
    range[0] = fmin(range[0], modulus);
    range[1] = fmax(range[1], modulus);
  }
  return zero;
}

/* The diagonal is real: nothing is rounded. */
static bool judge_r_range(const lab_member *x, lab_verdict *v) {
  double expected[2];
  const int zero = find_range(x, expected);
  for (int i = 0; i < 2; i++) {
    const double got = real_number(x->type, x->now[BQR_RANGE], i);
    lab_require(v, got == expected[i], i ? "not the largest |R(j,j)|" : "not the smallest |R(j,j)|", got);
  }
  if (x->info) lab_require(v, *x->info == zero, "info does not name the first zero R(j,j)", *x->info);
  return false;
}

/* In units of roundoff, where the diagonal is not real. */
static double r_range_residual(const lab_member *x, int columns) {
  (void)columns;
  double expected[2], worst = 0;
  find_range(x, expected);
  for (int i = 0; i < 2; i++) {
    const double got = real_number(x->type, x->now[BQR_RANGE], i);
    const double error = fabs(got - expected[i]) / (expected[i] * type_eps(x->type) + type_eta(x->type));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

static const lab_routine r_range = {.op = BATCHQR_R_RANGE,
                                    .call = call_r_range,
                                    .ratios = {{"R's range", r_range_residual}},
                                    .judge = judge_r_range,
                                    .diagonal_only = true};

/* --- all */

const lab_routine *lab_routine_of(int op) {
  static const lab_routine *const all[] = {&geqrf,     &orgqr,   &ormqr,     &qr,        &geqr_r,
                                           &gels,      &r_range, &lab_geqp3, &lab_gesvd, &lab_gesvdr,
                                           &lab_syevd, &trsm,    &lab_gelsy, &lab_pinv};
  static const lab_routine none = {.op = -1};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i]->op == op) return all[i];
  return &none;
}
