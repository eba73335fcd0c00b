/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of trial.h share: the operands of a routine and their shapes. */
#ifndef BQR_TESTS_TRIAL_PARTS_H
#define BQR_TESTS_TRIAL_PARTS_H

#include "trial.h"

enum { A, C, R, TAU, NUM_OPERANDS };

static inline int least(int a, int b) { return a < b ? a : b; }
static inline int largest(int a, int b) { return a > b ? a : b; }

static inline bool reflects(const trial *t) { return t->op == BATCHQR_ORGQR || t->op == BATCHQR_ORMQR; }
static inline bool has_k(const trial *t) { return reflects(t) || t->op == BATCHQR_GELS; }

/* GELS: the rows of B, and those of X. */
static inline int b_rows(const trial *t, const trial_member *x) { return t->trans ? x->n : x->m; }
static inline int x_rows(const trial *t, const trial_member *x) { return t->trans ? x->m : x->n; }

/* Whether the operand is an array of its own. */
static inline bool has(const trial *t, int operand) {
  switch (operand) {
  case A:
    return true;
  case C:
    return t->op == BATCHQR_ORMQR || t->op == BATCHQR_GELS || (t->op == BATCHQR_QR && !t->in_place);
  case R:
    return t->op == BATCHQR_QR || (t->op == BATCHQR_GEQR_R && !t->in_place);
  default:
    return t->op == BATCHQR_GEQRF || reflects(t);
  }
}

static inline bool writes(const trial *t, int operand) {
  if (operand == A) return t->op != BATCHQR_ORMQR;
  return operand == TAU ? t->op == BATCHQR_GEQRF : has(t, operand);
}

/* Rows of V, and most reflectors that fit. */
static inline int reach(const trial *t, const trial_member *x) {
  return t->op == BATCHQR_ORMQR && t->side == BATCHQR_LEFT ? x->m : x->n;
}

static inline int rows_of(const trial *t, const trial_member *x, int operand) {
  switch (operand) {
  case A:
    return t->op == BATCHQR_ORMQR ? reach(t, x) : x->m;
  case C:
    return t->op == BATCHQR_GELS ? largest(x->m, x->n) : x->m;
  case R:
    return least(x->m, x->n);
  default:
    return reflects(t) ? x->k : least(x->m, x->n);
  }
}

static inline int cols_of(const trial *t, const trial_member *x, int operand) {
  switch (operand) {
  case A:
    return t->op == BATCHQR_ORMQR ? x->k : x->n;
  case C:
    return t->op == BATCHQR_ORMQR ? x->n : t->op == BATCHQR_GELS ? x->k : least(x->m, x->n);
  case R:
    return x->n;
  default:
    return 1;
  }
}

static inline trial_array *array_of(trial *t, int operand) {
  return operand == A ? &t->a : operand == C ? &t->c : operand == R ? &t->r : &t->tau;
}

static inline int64_t *place_of(trial_member *x, int operand) {
  return operand == A ? &x->a : operand == C ? &x->c : operand == R ? &x->r : &x->tau;
}

/* tau has none: it is one column. */
static inline int *ld_of(trial_member *x, int operand) {
  return operand == A ? &x->lda : operand == C ? &x->ldc : &x->ldr;
}

static inline int ld_value(trial_member *x, int operand, int rows) {
  return operand == TAU ? largest(1, rows) : *ld_of(x, operand);
}

/* Elements from a member's first to behind its last. */
static inline int64_t extent(int rows, int cols, int ld) {
  return rows > 0 && cols > 0 ? (int64_t)(cols - 1) * ld + rows : 0;
}

static inline int64_t extent_of(const trial *t, trial_member *x, int operand) {
  int rows = rows_of(t, x, operand);
  return extent(rows, cols_of(t, x, operand), ld_value(x, operand, rows));
}

/* Makes the arrays of sizes, with what members claim. */
void trial_build_sizes(trial *t);

#endif
