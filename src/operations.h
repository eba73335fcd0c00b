/* SPDX-License-Identifier: BSD-3-Clause */
/* What the operations are, as data. Each one is a row: its operands with their shapes, the fields that it
 * reads, what is to be known of it. An operation that several others compose has a program, too. Argument
 * checks, the cache's keys, the planner, execution, descriptions, tuning tables, tests and benchmarks read
 * the rows; none of them knows the list. */
#ifndef BQR_SRC_OPERATIONS_H
#define BQR_SRC_OPERATIONS_H

#include "family.h"
#include <stddef.h>

/* The places of the public batchqr_batch and batchqr_operands, and behind them a program's temporaries. */
typedef enum bqr_operand {
  BQR_NO_OPERAND,
  BQR_A,
  BQR_C,
  BQR_R,
  BQR_TAU,
  BQR_NORMS,
  BQR_RANGE,
  BQR_JPVT,
  BQR_RANK,
  BQR_S,
  BQR_U,
  BQR_V,
  BQR_ITERATIONS,
  BQR_RELRES,
  BQR_NUM_OPERANDS,
  /* Temporaries, in the workspace. */
  BQR_WORK_TAU = BQR_NUM_OPERANDS, /* of a factorization inside the program: min(m,n) elements */
  BQR_WORK_SCALES,                 /* what A and what B were multiplied by: see bqr_args */
  BQR_WORK_SIZES, /* with sizes on the device, those of the transposed copies: see bqr_args */
  BQR_WORK_A,     /* max(m,n) x min(m,n): the transposed copy of a wide A; A itself where that is not wide */
  BQR_COPY_OF_A,  /* what a program works on where A is to stay, or is not stored by columns */
  BQR_COPY_OF_C,  /* what it writes where C or R are not stored by columns */
  BQR_COPY_OF_R,
  BQR_WORK_Q,      /* of GESVDR: a basis of l columns of A's range, */
  BQR_WORK_P,      /* of A^H's, */
  BQR_WORK_CORE,   /* an l x l matrix, */
  BQR_WORK_CORE_U, /* its left singular vectors, */
  BQR_WORK_CORE_S, /* and its singular values */
  BQR_WORK_R,      /* R of a factorization inside the program, n x n, of members that are not wide */
  BQR_WORK_JPVT,   /* the caller's, or what stands for it where there is none: n ints, */
  BQR_WORK_RANK,   /* and one */
  BQR_WORK_W,      /* all eigenvalues, of a range */
  BQR_NUM_SOURCES
} bqr_operand;
enum { BQR_NUM_TEMPORARIES = BQR_NUM_SOURCES - BQR_NUM_OPERANDS };
#define BQR_TEMPORARY(place) (1u << ((place)-BQR_NUM_OPERANDS))

/* A place in the structs. */
typedef struct bqr_place {
  const char *name; /* "a" */
  size_t storage;   /* its offset in batchqr_batch */
  size_t address;   /* its offset in batchqr_operands */
  size_t argument;  /* its offset in bqr_args, */
  bool is_matrix;   /* where it is a bqr_matrix, or a bqr_vector */
} bqr_place;
extern const bqr_place bqr_places[BQR_NUM_OPERANDS];

/* What an operand is made of. */
typedef enum bqr_kind {
  BQR_MATRIX, /* of the batch's type, by columns */
  BQR_VECTOR, /* of the batch's type */
  BQR_REALS,  /* real numbers of the batch's precision */
  BQR_INTS
} bqr_kind;

/* A number of rows or columns, of a member of m x n with k. */
typedef enum bqr_extent {
  BQR_ONE = 1,
  BQR_TWO,
  BQR_M,
  BQR_N,
  BQR_K,
  BQR_MIN_MN,
  BQR_MAX_MN,
  BQR_ORDER,   /* of Q: m where it stands on the left, else n */
  BQR_CHOSEN,  /* eigenvalues that are wanted: n, or how many a range of indices has */
  BQR_SAMPLES, /* k and the oversampling, at most min(m,n): the l of GESVDR */
} bqr_extent;

enum {
  BQR_READ = 1,
  BQR_WRITTEN = 2,
  BQR_OPTIONAL = 4,
  BQR_MAY_BE_A = 8,
  BQR_STRIDES = 16,
  BQR_ANNOUNCED = 32
};

/* One operand of an operation. */
typedef struct bqr_use {
  bqr_operand place; /* BQR_NO_OPERAND: behind the last one */
  bqr_kind kind;
  bqr_extent rows, cols;
  unsigned access; /* BQR_READ, BQR_WRITTEN: one or both; BQR_OPTIONAL: the address may be NULL; BQR_MAY_BE_A:
                      it may be A's address, if it is stored as A is; BQR_STRIDES: it may be stored with any
                      row_stride, and A may be one to keep; BQR_ANNOUNCED, of optional vectors: none is wanted
                      by any execute of a batch whose stride is 0, that is, a stride announces one */
  const char *called; /* the routine's argument; NULL: the place's name */
} bqr_use;

/* What k counts. */
typedef enum bqr_k {
  BQR_NO_K,
  BQR_REFLECTORS, /* at most as many as Q has rows or, for ORGQR, columns; that many where k_array is NULL */
  BQR_RIGHT_HAND_SIDES,
  BQR_TRIPLETS /* singular values that are wanted: min(m,n) where k is more */
} bqr_k;

/* Which way round a step works: a program's own, the batch's, or the adjoint. */
typedef enum bqr_way { BQR_PLAIN, BQR_AS_BATCH, BQR_ADJOINT } bqr_way;

/* Which members a step serves. Of a member and its op(A), least squares if op(A) is not wide, else least
 * norm. */
typedef enum bqr_systems { BQR_ALL_SYSTEMS, BQR_LEAST_SQUARES, BQR_LEAST_NORM } bqr_systems;

/* A step of a program: another operation, and what its operands and sizes are in terms of the program's. */
typedef struct bqr_step {
  int op;
  bqr_operand a, c, r, tau; /* BQR_NO_OPERAND: none */
  bqr_operand s, u, v;      /* BQR_NO_OPERAND: the operation's own, where it has them; a v of the step's is
                               made where the caller wants one */
  bqr_extent m, n, k;
  bqr_way trans;
  bqr_systems systems;
  bool tells_info;       /* it writes the caller's info */
  bool skipped_in_place; /* not done where its c is the caller's A */
  bool unscaled;         /* it is not given the scales */
  bool pivots;           /* it is given WORK_JPVT and WORK_RANK */
  bool no_abstol;       /* it is not given the absolute tolerance, which is that of a matrix without scales */
  bool repeated;        /* it is one of those steps, side by side, that are done batch.power_steps times */
  bool joins_geqrf;     /* not done where the family of the step before applies Q^H to c, see bqr_family */
  bool if_aliased;      /* done only where an operand that may be A is A */
  bqr_operand needs;    /* not done where this operand's address is NULL */
  bqr_operand or_needs; /* and that of this one is, too */
  bqr_operand unless;   /* not done where this operand's address is not NULL */
  unsigned introduces;  /* temporaries that it is the first to use: BQR_TEMPORARY(place), added up */
  const char *called;   /* these, in words */
} bqr_step;

typedef struct bqr_program {
  const bqr_step *steps;
  int num_steps;
  unsigned temporaries; /* BQR_TEMPORARY(place), added up */
  /* Wide members are worked on as transposed copies, which are not wide: the steps are planned for these and
   * for the other members apart. With sizes on the device all members have such a copy. */
  bool transposes_wide;
  /* Members of different sizes are in launches of their own, which find sizes in no arrays. */
  bool one_size;
  /* COPY_OF_A is a copy only where an operand that may be A is A, else A itself. */
  bool copies_aliased_a;
  /* Whether it is better than a family that does the whole operation at once, for members of one size on a
   * GPU. NULL: it is not. */
  bool (*better)(const bqr_problem *whole);
} bqr_program;

/* Which batches whose sizes are on the device are worth sorting by size. */
typedef enum bqr_sorting {
  BQR_NEVER_SORTED,
  BQR_SORTED,       /* of enough arithmetic */
  BQR_SORTED_SMALL, /* of small members, enough of them */
} bqr_sorting;

enum { BQR_MOST_USES = 6 };
typedef struct bqr_operation {
  int op; /* batchqr_op, or a step of family.h */
  const char *name;
  bqr_use uses[BQR_MOST_USES + 1];
  bqr_k k;
  bool reads_side, reads_trans, reads_uplo;
  bool finds_rank;     /* reads kmax, abstol and reltol */
  bool ranges;         /* reads il, iu, vl and vu; its program is for families that know no such ranges */
  bool sketches;       /* reads oversampling, power_steps and seed */
  bool host_sizes;     /* not for sizes on the device */
  bool tall;           /* m >= n is a rule of the operation */
  bool square;         /* m = n, likewise */
  bool makes_r;        /* R, whose diagonal can be asked to be >= 0 */
  bool orthogonalises; /* reads gram_schmidt */
  char transposed;     /* reads_trans: what trans transposes, in words of the errors: Q or A */
  bqr_sorting sorting;
  /* Operations of real numbers for a member of m x n with k, leading terms; of complex types four times as
   * many. Every routine's row has it. */
  double (*flops)(double m, double n, double k);
  bool estimated; /* flops depends on the data, or is not LAPACK's: it predicts times, and tells no rate */
  bool rotates;   /* most of them are plane rotations */
  /* Done first for all members of a batch that announces an operand: it writes such operands for all families
   * that know nothing of them. NULL: there are none. */
  const bqr_step *preset;
  const bqr_program *program; /* NULL: done by one family */
} bqr_operation;

/* Rows by op; NULL behind the last one. A registry holds such a list, see registry.h. */
extern const bqr_operation *const bqr_builtin_operations[];

/* The row's operand at a place; NULL where it has none. */
const bqr_use *bqr_use_at(const bqr_operation *operation, int place);

#endif
