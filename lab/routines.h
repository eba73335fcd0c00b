/* SPDX-License-Identifier: BSD-3-Clause */
/* What the laboratory knows of an operation beyond its row in src/operations.c: how its results are judged,
 * what of an operand counts where that is not all of it, and the routine that does it in one call. An
 * operation without an entry in routines.c can be run and timed, and is judged by its row alone. */
#ifndef BQR_LAB_ROUTINES_H
#define BQR_LAB_ROUTINES_H

#include "matgen.h"
#include "types.h"

/* A member before and after an operation, in host memory. Operands are found by their place. */
typedef struct lab_member {
  const bqr_operation *operation;
  batchqr_type type;
  batchqr_side side;
  batchqr_trans trans;
  batchqr_uplo uplo;
  int m, n, k;
  int kmax, il, iu;
  double abstol, reltol, vl, vu;
  matgen_kind kind; /* of its input */
  bool positive;    /* R(j,j) >= 0 was asked for */
  const void *before[BQR_NUM_OPERANDS];
  void *now[BQR_NUM_OPERANDS]; /* NULL: there is none; one operand may be another */
  int ld[BQR_NUM_OPERANDS];
  const int *info; /* NULL: not wanted */
} lab_member;

/* What is wrong with a member; `what` is NULL as long as nothing is. */
typedef struct lab_verdict {
  const char *what;
  double value;
} lab_verdict;
void lab_require(lab_verdict *v, bool good, const char *what, double value);

/* A test ratio of residual.h. `columns`: how many of them are looked at; 0: all. */
typedef struct lab_ratio {
  const char *what; /* NULL: there is none */
  double (*of)(const lab_member *x, int columns);
} lab_ratio;
enum { LAB_RESIDUAL, LAB_ORTHOGONALITY, LAB_FURTHER, LAB_RATIOS };

typedef struct lab_ratios {
  double residual, orthogonality; /* < 0: there is none */
} lab_ratios;

struct lab_probed;

typedef struct lab_routine {
  int op;
  batchqr_status (*call)(batchqr_handle_t, const batchqr_batch *, const batchqr_operands *); /* NULL: none */
  lab_ratio ratios[LAB_RATIOS];
  /* Estimates of these for large members, see probe.h; NULL: they are always computed. */
  lab_ratios (*probe)(const struct lab_probed *x);
  /* What else must be true of a sound member; false: there is nothing to measure. NULL: what lab_judge() says
   * of all operations. */
  bool (*judge)(const lab_member *x, lab_verdict *v);
  /* The part of an operand that is input, or a result. NULL: all of it. */
  bqr_shape (*part)(const lab_member *x, int place, bool result, bqr_shape whole);
  /* What is to be true of the results of a member that holds a NaN or an Inf, beyond
   * lab_judge_without_result(); NULL: nothing. */
  void (*judge_spoiled)(const lab_member *x, lab_verdict *v);
  /* Whether the member has results; NULL: it has. */
  bool (*solved)(const lab_member *x);
  bool destroys_a;     /* what is left of A is no result, unless one is written over it */
  bool wants_optional; /* `bench` asks for the optional operands that are only written */
  bool diagonal_only;  /* of A only the diagonal is read, which is real */
  bool triangle_only;  /* of A only the upper triangle of its first n rows is read */
} lab_routine;

/* routines_rank.c, routines_least.c: some of the entries. */
extern const lab_routine lab_geqp3, lab_gesvd, lab_gesvdr, lab_syevd, lab_gelsy, lab_pinv;

/* The entry of an operation; one with nothing in it where there is none. */
const lab_routine *lab_routine_of(int op);

/* The shape of an operand, and of that part of it that is input, or a result. */
bqr_shape lab_shape(const lab_member *x, const bqr_use *use);
bqr_shape lab_part(const lab_routine *routine, const lab_member *x, const bqr_use *use, bool result);
/* Whether entry (i, j) of an operand is input, with its imaginary part where it has one; of a Hermitian
 * matrix only what is off its diagonal. */
bool lab_reads(const lab_routine *routine, const lab_member *x, const bqr_use *use, int i, int j);
/* Elements from the first of a dense or spaced array of that shape to behind the last one. */
int64_t lab_extent(bqr_shape shape, int ld);

/* Makes the input of a member in x->now. `seed` is its own. */
void lab_fill(const lab_routine *routine, const lab_member *x, uint64_t seed);

/* Judges a sound member but for its ratios: R's diagonal and what is below it, info. False: there is nothing
 * to measure. */
bool lab_judge(const lab_routine *routine, const lab_member *x, lab_verdict *v);
/* That all real numbers among a member's results are NaN: it holds a NaN or an Inf, or has no solution. */
void lab_judge_without_result(const lab_member *x, lab_verdict *v);

#endif
