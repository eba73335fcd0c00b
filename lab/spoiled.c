/* SPDX-License-Identifier: BSD-3-Clause */
#include "spoiled.h"

/* Whether a part of an operand, its columns ld elements apart, holds a NaN or an Inf. */
static bool tells(const lab_member *x, const void *part, int ld, int rows, int cols) {
  const int parts = type_is_complex(x->type) ? 2 : 1;
  for (int j = 0; j < cols; j++)
    for (int64_t i = (int64_t)j * ld * parts; i < ((int64_t)j * ld + rows) * parts; i++) {
      const double value =
          type_is_double(x->type) ? ((const double *)part)[i] : (double)((const float *)part)[i];
      if (!(value - value == 0.0)) return true;
    }
  return false;
}

static const void *at(const lab_member *x, const void *matrix, int ld, int i, int j) {
  return (const char *)matrix + ((int64_t)j * ld + i) * (int64_t)bqr_type_bytes(x->type);
}

/* A reflector of one row is none, whatever the row holds. */
void lab_spoiled_factors(const lab_member *x, lab_verdict *v) {
  const int k = bqr_min(x->m, x->n), lda = x->ld[BQR_A];
  const int place = bqr_use_at(x->operation, BQR_R) ? BQR_R : BQR_A, ldr = x->ld[place];
  int bad = 0;
  while (bad < x->n && !tells(x, at(x, x->before[BQR_A], lda, 0, bad), lda, x->m, 1)) bad++;
  if (bad == x->n) return;
  lab_require(v, tells(x, at(x, x->now[place], ldr, 0, bad), ldr, bqr_min(bad + 1, k), 1),
              "this column of R does not tell of a NaN or an Inf in A", bad);
  if (bad >= k || x->m <= bad + 1) return;
  if (bqr_use_at(x->operation, BQR_TAU))
    lab_require(v, tells(x, x->now[BQR_TAU], k, k, 1), "tau does not tell of a NaN or an Inf in A", bad);
  if (bqr_use_at(x->operation, BQR_C))
    lab_require(v, tells(x, x->now[BQR_C], x->ld[BQR_C], x->m, k), "Q does not tell of a NaN or an Inf in A",
                bad);
}

void lab_spoiled_q(const lab_member *x, lab_verdict *v) {
  lab_require(v, tells(x, x->now[BQR_A], x->ld[BQR_A], x->m, x->n),
              "Q does not tell of a NaN or an Inf in V or tau", 0);
}

void lab_spoiled_lines(const lab_member *x, lab_verdict *v) {
  const bool left = x->side == BATCHQR_LEFT;
  const int ldc = x->ld[BQR_C];
  const bool all = !tells(x, x->before[BQR_C], ldc, x->m, x->n);
  for (int l = 0; l < (left ? x->n : x->m); l++) {
    const int i = left ? 0 : l, j = left ? l : 0, rows = left ? x->m : 1, cols = left ? 1 : x->n;
    const bool bad = all || tells(x, at(x, x->before[BQR_C], ldc, i, j), ldc, rows, cols);
    lab_require(v, tells(x, at(x, x->now[BQR_C], ldc, i, j), ldc, rows, cols) == bad,
                bad ? "this line of C does not tell of a NaN or an Inf" : "this line of C is not finite", l);
  }
}
