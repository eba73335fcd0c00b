/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations that find ranks, singular values and eigenvalues. Sums are in long double, whose range holds
 * all squares. */
#include "memory.h"
#include "number.h"
#include "residual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static long double real_entry(const lab_member *x, int place, int i) {
  const void *a = x->now[place];
  return type_is_double(x->type) ? ((const double *)a)[i] : ((const float *)a)[i];
}

/* x y; the compiler's own looks for NaNs, which takes several times as long. */
static number product(number x, number y) {
  const long double a = creall(x), b = cimagl(x), c = creall(y), d = cimagl(y);
  return CMPLXL(a * c - b * d, a * d + b * c);
}

static long double modulus_squared(number z) { return creall(z) * creall(z) + cimagl(z) * cimagl(z); }

/* Entry (i, j) of A; of the Hermitian matrix whose triangle is read. */
static number entry_of_a(const lab_member *x, int i, int j) {
  const void *a = x->before[BQR_A];
  if (!x->operation->square) return number_at(x, BQR_A, a, i, j);
  if (i == j) return creall(number_at(x, BQR_A, a, i, i));
  const bool there = x->uplo == BATCHQR_LOWER ? i > j : i < j;
  return there ? number_at(x, BQR_A, a, i, j) : conjl(number_at(x, BQR_A, a, j, i));
}

static long double norm_of_a(const lab_member *x) {
  long double sum = 0;
  for (int j = 0; j < x->n; j++)
    for (int i = 0; i < x->m; i++) sum += modulus_squared(entry_of_a(x, i, j));
  return sqrtl(sum);
}

/* What rounding explains, next to A. */
static long double unit(const lab_member *x, long double norm) {
  return bqr_max(x->m, x->n) * (norm * type_eps(x->type) + type_eta(x->type));
}

/* The columns that are looked at: one of so many. */
static int step(int all, int columns) { return columns > 0 && columns < all ? all / columns : 1; }

static long double larger(long double a, long double b) { return isnan(b) || b > a ? b : a; }

/* --- GEQP3 */

static batchqr_status call_geqp3(batchqr_handle_t handle, const batchqr_batch *batch,
                                 const batchqr_operands *o) {
  return batch_geqp3(handle, batch, o->a, o->tau, o->jpvt, o->rank, o->c, o->info);
}

static bool has_order(const lab_member *x) { return x->now[BQR_JPVT] && x->now[BQR_RANK]; }
static int rank_of(const lab_member *x) { return *(const int *)x->now[BQR_RANK]; }

/* A P, without gaps; NULL: there is no P. */
static void *permuted(const lab_member *x) {
  const size_t size = bqr_type_bytes(x->type), column = (size_t)x->m * size;
  const int *jpvt = x->now[BQR_JPVT];
  char *p = memory_host(column * (size_t)x->n);
  bool *taken = memory_host((size_t)x->n * sizeof *taken), good = true;
  for (int j = 0; j < x->n && good; j++) {
    good = jpvt[j] >= 0 && jpvt[j] < x->n && !taken[jpvt[j]];
    if (!good) break;
    taken[jpvt[j]] = true;
    memcpy(p + (size_t)j * column,
           (const char *)x->before[BQR_A] + (size_t)jpvt[j] * (size_t)x->ld[BQR_A] * size, column);
  }
  free(taken);
  if (good) return p;
  free(p);
  return NULL;
}

/* R and what remains of A: zeros below the diagonal of the first `rank` columns. */
static void *remaining(const lab_member *x, int rank) {
  const size_t size = bqr_type_bytes(x->type), column = (size_t)x->m * size;
  char *r = memory_host(column * (size_t)x->n);
  for (int j = 0; j < x->n; j++) {
    const int rows = j < rank ? j + 1 : x->m;
    memcpy(r + (size_t)j * column, (const char *)x->now[BQR_A] + (size_t)j * (size_t)x->ld[BQR_A] * size,
           (size_t)rows * size);
  }
  return r;
}

static double geqp3_residual(const lab_member *x, int columns) {
  if (!has_order(x)) return 0;
  const int rank = rank_of(x);
  if (rank < 0 || rank > bqr_min(x->m, x->n)) return INFINITY;
  void *ap = permuted(x);
  if (!ap) return INFINITY;
  void *r = remaining(x, rank);
  const double ratio =
      residual_ormqr(x->type, BATCHQR_LEFT, BATCHQR_NO_TRANS, x->m, x->n, rank, x->now[BQR_A], x->ld[BQR_A],
                     x->now[BQR_TAU], r, x->m, ap, x->m, columns);
  free(ap);
  free(r);
  return ratio;
}

static double geqp3_orthogonality(const lab_member *x, int columns) {
  const int rank = x->now[BQR_RANK] ? rank_of(x) : 0;
  return residual_reflectors(x->type, x->m, rank, rank, x->now[BQR_A], x->ld[BQR_A], x->now[BQR_TAU],
                             columns);
}

static double geqp3_product(const lab_member *x, int columns) {
  if (!x->now[BQR_C] || !x->now[BQR_RANK]) return 0;
  return residual_ormqr(x->type, BATCHQR_LEFT, BATCHQR_CONJ_TRANS, x->m, x->k, rank_of(x), x->now[BQR_A],
                        x->ld[BQR_A], x->now[BQR_TAU], x->before[BQR_C], x->ld[BQR_C], x->now[BQR_C],
                        x->ld[BQR_C], columns);
}

/* Columns of zeros are no error. */
static bool judge_geqp3(const lab_member *x, lab_verdict *v) {
  if (x->info) lab_require(v, *x->info == 0, "info is not 0", *x->info);
  if (x->now[BQR_RANK] && x->kmax > 0)
    lab_require(v, rank_of(x) <= x->kmax, "rank is beyond kmax", rank_of(x));
  return x->m > 0 && x->n > 0;
}

const lab_routine lab_geqp3 = {.op = BATCHQR_GEQP3,
                               .call = call_geqp3,
                               .ratios = {{"||A P - Q R||", geqp3_residual},
                                          {"||I - Q^H Q||", geqp3_orthogonality},
                                          {"||C - Q^H B||", geqp3_product}},
                               .judge = judge_geqp3,
                               .wants_optional = true};

/* --- GESVD */

static batchqr_status call_gesvd(batchqr_handle_t handle, const batchqr_batch *batch,
                                 const batchqr_operands *o) {
  return batch_gesvd(handle, batch, o->a, o->s, o->u, o->v, o->rank, o->info);
}

/* ||A v - s u||, or | ||A v|| - s | where there is no U. */
static long double error_of_v(const lab_member *x, int j) {
  const long double s = real_entry(x, BQR_S, j);
  long double sum = 0;
  for (int i = 0; i < x->m; i++) {
    number av = 0;
    for (int l = 0; l < x->n; l++)
      av += product(entry_of_a(x, i, l), number_at(x, BQR_V, x->now[BQR_V], l, j));
    if (x->now[BQR_U]) av -= s * number_at(x, BQR_U, x->now[BQR_U], i, j);
    sum += modulus_squared(av);
  }
  return x->now[BQR_U] ? sqrtl(sum) : fabsl(sqrtl(sum) - s);
}

/* | ||A^H u|| - s |. */
static long double error_of_u(const lab_member *x, int j) {
  long double sum = 0;
  for (int l = 0; l < x->n; l++) {
    number au = 0;
    for (int i = 0; i < x->m; i++)
      au += product(conjl(entry_of_a(x, i, l)), number_at(x, BQR_U, x->now[BQR_U], i, j));
    sum += modulus_squared(au);
  }
  return fabsl(sqrtl(sum) - real_entry(x, BQR_S, j));
}

/* | ||S||_F - ||A||_F |, too. */
static double gesvd_residual(const lab_member *x, int columns) {
  const int k = bqr_min(x->m, x->n);
  const long double norm = norm_of_a(x);
  long double sum = 0;
  for (int j = 0; j < k; j++) sum += real_entry(x, BQR_S, j) * real_entry(x, BQR_S, j);
  long double worst = larger(0, fabsl(sqrtl(sum) - norm));
  for (int j = 0; j < k; j += step(k, columns))
    if (x->now[BQR_V] || x->now[BQR_U])
      worst = larger(worst, x->now[BQR_V] ? error_of_v(x, j) : error_of_u(x, j));
  return (double)(worst / unit(x, norm));
}

static double orthogonality_of(const lab_member *x, int place, int rows, int columns) {
  if (!x->now[place]) return 0;
  return residual_orthogonality(x->type, rows, bqr_min(x->m, x->n), x->now[place], x->ld[place], columns);
}

static double gesvd_orthogonality(const lab_member *x, int columns) {
  return orthogonality_of(x, BQR_U, x->m, columns);
}
static double gesvd_orthogonality_of_v(const lab_member *x, int columns) {
  return orthogonality_of(x, BQR_V, x->n, columns);
}

static bool judge_gesvd(const lab_member *x, lab_verdict *v) {
  const int k = bqr_min(x->m, x->n), most = x->kmax > 0 ? bqr_min(k, x->kmax) : k;
  if (x->info) lab_require(v, *x->info == 0, "info is not 0", *x->info);
  for (int j = 0; j < k; j++) {
    const long double s = real_entry(x, BQR_S, j);
    lab_require(v, s >= 0 && (j == 0 || s <= real_entry(x, BQR_S, j - 1)), "s do not descend", (double)s);
  }
  if (!x->now[BQR_RANK]) return k > 0;
  const long double largest = k > 0 ? real_entry(x, BQR_S, 0) : 0,
                    tolerance = fmaxl(fmaxl(0, x->abstol), (long double)x->reltol * largest);
  int rank = 0;
  while (rank < most && real_entry(x, BQR_S, rank) > tolerance) rank++;
  lab_require(v, rank_of(x) == rank, "rank is not the number of s above the tolerance", rank_of(x));
  return k > 0;
}

const lab_routine lab_gesvd = {.op = BATCHQR_GESVD,
                               .call = call_gesvd,
                               .ratios = {{"||A V - U S||", gesvd_residual},
                                          {"||I - U^H U||", gesvd_orthogonality},
                                          {"||I - V^H V||", gesvd_orthogonality_of_v}},
                               .judge = judge_gesvd,
                               .destroys_a = true,
                               .wants_optional = true};

/* --- GESVDR */

static batchqr_status call_gesvdr(batchqr_handle_t handle, const batchqr_batch *batch,
                                  const batchqr_operands *o) {
  return batch_gesvdr(handle, batch, o->a, o->s, o->u, o->v, o->info);
}

/* ||A^H U - V S||, which is rounding however well the singular values are approximated. */
static double gesvdr_residual(const lab_member *x, int columns) {
  const long double norm = norm_of_a(x);
  long double worst = 0;
  for (int j = 0; j < x->k; j += step(x->k, columns)) {
    long double sum = 0;
    for (int l = 0; l < x->n; l++) {
      number au = -real_entry(x, BQR_S, j) * number_at(x, BQR_V, x->now[BQR_V], l, j);
      for (int i = 0; i < x->m; i++)
        au += product(conjl(entry_of_a(x, i, l)), number_at(x, BQR_U, x->now[BQR_U], i, j));
      sum += modulus_squared(au);
    }
    worst = larger(worst, sqrtl(sum));
  }
  return (double)(worst / unit(x, norm));
}

static double gesvdr_orthogonality(const lab_member *x, int columns) {
  return residual_orthogonality(x->type, x->m, x->k, x->now[BQR_U], x->ld[BQR_U], columns);
}
static double gesvdr_orthogonality_of_v(const lab_member *x, int columns) {
  return residual_orthogonality(x->type, x->n, x->k, x->now[BQR_V], x->ld[BQR_V], columns);
}

static bool judge_gesvdr(const lab_member *x, lab_verdict *v) {
  if (x->info) lab_require(v, *x->info == 0, "info is not 0", *x->info);
  for (int j = 0; j < x->k; j++) {
    const long double s = real_entry(x, BQR_S, j);
    lab_require(v, s >= 0 && (j == 0 || s <= real_entry(x, BQR_S, j - 1)), "s do not descend", (double)s);
  }
  return x->k > 0;
}

const lab_routine lab_gesvdr = {.op = BATCHQR_GESVDR,
                                .call = call_gesvdr,
                                .ratios = {{"||A^H U - V S||", gesvdr_residual},
                                           {"||I - U^H U||", gesvdr_orthogonality},
                                           {"||I - V^H V||", gesvdr_orthogonality_of_v}},
                                .judge = judge_gesvdr};

/* --- SYEVD */

static batchqr_status call_syevd(batchqr_handle_t handle, const batchqr_batch *batch,
                                 const batchqr_operands *o) {
  if (o->rank)
    return (type_is_complex(batch->type) ? batch_heevr : batch_syevr)(handle, batch, o->a, o->s, o->v,
                                                                      o->rank, o->info);
  return (type_is_complex(batch->type) ? batch_heevd : batch_syevd)(handle, batch, o->a, o->s, o->v, o->info);
}

/* Eigenvalues that are results: with a range of values, those before the NaNs. */
static int found_of(const lab_member *x) {
  const int room = lab_shape(x, bqr_use_at(x->operation, BQR_S)).rows;
  int found = 0;
  while (found < room && !isnan(real_entry(x, BQR_S, found))) found++;
  return found;
}

static bool has_range(const lab_member *x) { return x->iu > 0 || x->vl != 0 || x->vu != 0; }

/* With a range of values, vectors behind those are none. */
static bqr_shape syevd_part(const lab_member *x, int place, bool result, bqr_shape whole) {
  if (result && place == BQR_V && x->now[BQR_S]) whole.cols = bqr_min(whole.cols, found_of(x));
  return whole;
}

/* ||A v - w v||. */
static long double error_of_vector(const lab_member *x, int j) {
  long double sum = 0;
  for (int i = 0; i < x->n; i++) {
    number av = -real_entry(x, BQR_S, j) * number_at(x, BQR_V, x->now[BQR_V], i, j);
    for (int l = 0; l < x->n; l++)
      av += product(entry_of_a(x, i, l), number_at(x, BQR_V, x->now[BQR_V], l, j));
    sum += modulus_squared(av);
  }
  return sqrtl(sum);
}

/* | trace(W) - trace(A) | and | ||W||_F - ||A||_F |, too. */
static double syevd_residual(const lab_member *x, int columns) {
  const long double norm = norm_of_a(x);
  const int found = found_of(x);
  long double trace = 0, sum = 0, worst = 0;
  for (int j = 0; j < x->n && !has_range(x); j++) {
    const long double w = real_entry(x, BQR_S, j);
    trace += w - creall(entry_of_a(x, j, j));
    sum += w * w;
  }
  if (!has_range(x)) worst = larger(larger(0, fabsl(trace) / x->n), fabsl(sqrtl(sum) - norm));
  for (int j = 0; j < found && x->now[BQR_V]; j += step(found, columns))
    worst = larger(worst, error_of_vector(x, j));
  return (double)(worst / unit(x, norm));
}

static double syevd_orthogonality(const lab_member *x, int columns) {
  if (!x->now[BQR_V]) return 0;
  return residual_orthogonality(x->type, x->n, found_of(x), x->now[BQR_V], x->ld[BQR_V], columns);
}

static void judge_spoiled_syevd(const lab_member *x, lab_verdict *v) {
  if (x->now[BQR_RANK])
    lab_require(v, *(const int *)x->now[BQR_RANK] == 0, "found of a member that is not finite is not 0",
                *(const int *)x->now[BQR_RANK]);
}

/* Of numbers up to the largest, half of which are read, eigenvalues may be beyond it. */
static bool judge_syevd(const lab_member *x, lab_verdict *v) {
  if (x->info) lab_require(v, *x->info == 0, "info is not 0", *x->info);
  const int room = lab_shape(x, bqr_use_at(x->operation, BQR_S)).rows, found = found_of(x);
  const bool by_value = has_range(x) && x->iu == 0;
  lab_require(v, by_value || found == room, "a wanted eigenvalue is a NaN", found);
  for (int j = found; j < room; j++)
    lab_require(v, isnan(real_entry(x, BQR_S, j)), "a number behind those found", j);
  for (int j = 1; j < found; j++)
    lab_require(v, real_entry(x, BQR_S, j) >= real_entry(x, BQR_S, j - 1), "w do not ascend",
                (double)real_entry(x, BQR_S, j));
  for (int j = 0; j < found && by_value; j++)
    lab_require(v, real_entry(x, BQR_S, j) > x->vl && real_entry(x, BQR_S, j) <= x->vu,
                "an eigenvalue out of range", (double)real_entry(x, BQR_S, j));
  if (x->now[BQR_RANK])
    lab_require(v, *(const int *)x->now[BQR_RANK] == found, "found is not the number of eigenvalues",
                *(const int *)x->now[BQR_RANK]);
  return x->n > 0 && norm_of_a(x) < type_max(x->type);
}

const lab_routine lab_syevd = {
    .op = BATCHQR_SYEVD,
    .call = call_syevd,
    .ratios = {{"||A V - V W||", syevd_residual}, {"||I - V^H V||", syevd_orthogonality}},
    .judge = judge_syevd,
    .part = syevd_part,
    .judge_spoiled = judge_spoiled_syevd,
    .destroys_a = true,
    .wants_optional = true};
