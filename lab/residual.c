/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything is computed column by column: reflectors are applied to one wide vector at a time, so that a
 * sample of the columns costs what it should. residual_typed.inc holds the code, once for each type. */
#include "residual.h"
#include "memory.h"
#include "types.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Where long double is no wider than double, these tests could not judge double precision. Twice the range of
 * exponents, and more, lets squares and products of any two numbers be formed. */
_Static_assert(LDBL_MANT_DIG >= DBL_MANT_DIG + 10 && LDBL_MAX_EXP > 2 * DBL_MAX_EXP,
               "long double must be wider than double");

/* What is to be measured; residual.h's arguments. `v` and `tau` are k reflectors of length p. */
typedef struct job {
  int m, n, k, p;
  const void *a, *v, *tau, *q, *r;
  int lda, ldv, ldq, ldr;
  batchqr_trans trans;
  bool right;
} job;

typedef long double (*column_norm)(const job *, int j, void *x, void *y);

/* The larger one, NaN if one is. */
static long double worst(long double a, long double b) { return a != a || a > b ? a : b; }

#define CONCAT_(a, b) a##b
#define CONCAT(a, b)  CONCAT_(a, b)

#define LETTER s
#define NUMBER float
#define WIDE   double
#define PARTS  1
#include "residual_typed.inc"

#define LETTER d
#define NUMBER double
#define WIDE   long double
#define PARTS  1
#include "residual_typed.inc"

#define LETTER c
#define NUMBER float
#define WIDE   double
#define PARTS  2
#include "residual_typed.inc"

#define LETTER z
#define NUMBER double
#define WIDE   long double
#define PARTS  2
#include "residual_typed.inc"

/* The functions of one name, by type. */
#define BY_TYPE(name) ((const column_norm[]){name##_s, name##_d, name##_c, name##_z})

static long double matrix_norm(batchqr_type type, int m, int n, const void *a, int ld, bool rows) {
  switch (type) {
  case BATCHQR_S:
    return matrix_norm_s(m, n, a, ld, rows);
  case BATCHQR_D:
    return matrix_norm_d(m, n, a, ld, rows);
  case BATCHQR_C:
    return matrix_norm_c(m, n, a, ld, rows);
  default:
    return matrix_norm_z(m, n, a, ld, rows);
  }
}

/* The largest column norm among `columns` of the `total` columns; see residual.h. */
static long double largest_norm(batchqr_type type, const job *t, const column_norm *norm, int columns,
                                int total) {
  int chosen = columns > 0 && columns < total ? columns : total;
  size_t bytes = (size_t)bqr_max(bqr_max(t->m, t->n), t->p) * 2 * sizeof(long double) + 1;
  long double largest = 0.0L;
#pragma omp parallel if ((int64_t)chosen * t->m * bqr_max(t->k, 1) > 200000)
  {
    void *x = memory_host(bytes), *y = memory_host(bytes);
#pragma omp for schedule(dynamic)
    for (int i = 0; i < chosen; i++) {
      int j = chosen > 1 ? (int)((int64_t)i * (total - 1) / (chosen - 1)) : 0;
      long double value = norm[type](t, j, x, y);
#pragma omp critical(batchqr_residual)
      largest = worst(largest, value);
    }
    free(x);
    free(y);
  }
  return largest;
}

/* error / (size (norm eps + eta)); nothing to compare is no error. */
static double ratio(batchqr_type type, int size, long double error, long double norm) {
  if (error == 0.0L) return 0.0;
  return (double)(error / ((long double)size * (norm * type_eps(type) + type_eta(type))));
}

double residual_geqrf(batchqr_type type, int m, int n, const void *a, int lda, const void *qr, int ldqr,
                      const void *tau, int columns) {
  job t = {.m = m, .n = n, .k = bqr_min(m, n), .p = m, .a = a, .lda = lda, .v = qr, .ldv = ldqr, .tau = tau};
  long double error = largest_norm(type, &t, BY_TYPE(geqrf), columns, n);
  return ratio(type, bqr_max(m, n), error, matrix_norm(type, m, n, a, lda, false));
}

double residual_reflectors(batchqr_type type, int m, int n, int k, const void *v, int ldv, const void *tau,
                           int columns) {
  job t = {.m = m, .n = n, .k = k, .p = m, .v = v, .ldv = ldv, .tau = tau};
  return ratio(type, m, largest_norm(type, &t, BY_TYPE(reflectors), columns, n), 1.0L);
}

double residual_orgqr(batchqr_type type, int m, int n, int k, const void *v, int ldv, const void *tau,
                      const void *q, int ldq, int columns) {
  job t = {.m = m, .n = n, .k = k, .p = m, .v = v, .ldv = ldv, .tau = tau, .q = q, .ldq = ldq};
  return ratio(type, m, largest_norm(type, &t, BY_TYPE(orgqr), columns, n), 1.0L);
}

double residual_ormqr(batchqr_type type, batchqr_side side, batchqr_trans trans, int m, int n, int k,
                      const void *v, int ldv, const void *tau, const void *b, int ldb, const void *c, int ldc,
                      int columns) {
  bool right = side == BATCHQR_RIGHT;
  job t = {.m = m,
           .n = n,
           .k = k,
           .p = right ? n : m,
           .v = v,
           .ldv = ldv,
           .tau = tau,
           .a = b,
           .lda = ldb,
           .r = c,
           .ldr = ldc,
           .trans = trans,
           .right = right};
  long double error = largest_norm(type, &t, BY_TYPE(ormqr), columns, right ? m : n);
  return ratio(type, t.p, error, matrix_norm(type, m, n, b, ldb, right));
}

double residual_qr(batchqr_type type, int m, int n, const void *a, int lda, const void *q, int ldq,
                   const void *r, int ldr, int columns) {
  job t = {.m = m, .n = n, .k = bqr_min(m, n), .a = a, .lda = lda, .q = q, .ldq = ldq, .r = r, .ldr = ldr};
  long double error = largest_norm(type, &t, BY_TYPE(qr), columns, n);
  return ratio(type, bqr_max(m, n), error, matrix_norm(type, m, n, a, lda, false));
}

double residual_projection(batchqr_type type, int m, int n, const void *a, int lda, const void *q, int ldq,
                           const void *r, int ldr, int columns) {
  job t = {.m = m, .n = n, .k = bqr_min(m, n), .a = a, .lda = lda, .q = q, .ldq = ldq, .r = r, .ldr = ldr};
  long double error = largest_norm(type, &t, BY_TYPE(projection), columns, n);
  return ratio(type, bqr_max(m, n), error, matrix_norm(type, m, n, a, lda, false));
}

double residual_orthogonality(batchqr_type type, int m, int n, const void *q, int ldq, int columns) {
  job t = {.m = m, .n = n, .k = n, .q = q, .ldq = ldq};
  return ratio(type, m, largest_norm(type, &t, BY_TYPE(orthogonality), columns, n), 1.0L);
}

double residual_gram(batchqr_type type, int m, int n, const void *a, int lda, const void *r, int ldr,
                     int columns) {
  job t = {.m = m, .n = n, .k = bqr_min(m, n), .a = a, .lda = lda, .r = r, .ldr = ldr};
  long double error = largest_norm(type, &t, BY_TYPE(gram), columns, n);
  long double one = matrix_norm(type, m, n, a, lda, false), inf = matrix_norm(type, m, n, a, lda, true);
  if (error == 0.0L) return 0.0;
  return (double)(error /
                  (bqr_max(m, n) * (one + inf + type_eta(type)) * (one * type_eps(type) + type_eta(type))));
}
