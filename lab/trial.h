/* SPDX-License-Identifier: BSD-3-Clause */
/* One call of one operation on a batch of generated members, in guarded memory, and the judgement of its
 * results. What is made, bound and compared is what the operation's row says; see routines.h for the rest.
 *
 *   trial t = trial_new(BATCHQR_GEQRF, BATCHQR_D, count);
 *   for (i ...) t.members[i] = (trial_member){.m = 5, .n = 3, .kind = MATGEN_ILL, .seed = i};
 *   t.layout = BATCHQR_POINTERS;          (and so on)
 *   trial_once(&t, handle, TRIAL_CALL);
 *
 * A failure is a failure of the Check test; its text says what reproduces it. */
#ifndef BQR_LAB_TRIAL_H
#define BQR_LAB_TRIAL_H

#include "guard.h"
#include "routines.h"

#include <stdbool.h>

/* What is put into a member to spoil it. */
typedef enum trial_spoil { TRIAL_SOUND = 0, TRIAL_NAN, TRIAL_INF, TRIAL_MINUS_INF } trial_spoil;

/* What size arrays on the device claim of a member that is to be left alone. */
typedef enum trial_claim {
  TRIAL_TRUE = 0,
  TRIAL_NEGATIVE_M,
  TRIAL_NEGATIVE_N,
  TRIAL_LARGE_M, /* beyond the batch's bound */
  TRIAL_LARGE_N,
  TRIAL_LARGE_K,   /* more reflectors than fit, or right-hand sides beyond the bound */
  TRIAL_FEW_ROWS,  /* fewer than columns, where the operation needs m >= n */
  TRIAL_SMALL_LDA, /* these need ld_vary */
  TRIAL_SMALL_LDC,
  TRIAL_SMALL_LDR,
  TRIAL_LEFT_OUT /* nothing wrong: the routine does not get to see the member */
} trial_claim;

typedef struct trial_member {
  int m, n, k; /* k: where the operation reads it */
  matgen_kind kind;
  uint64_t seed;
  trial_spoil spoil;
  trial_claim claim;
  int ld[BQR_NUM_OPERANDS];     /* from here on set by trial_build(), by place */
  int64_t at[BQR_NUM_OPERANDS]; /* first elements in the guards */
} trial_member;

/* A guarded array and how far its members are apart on the device (strided). */
typedef struct trial_array {
  guard g;
  batchqr_layout layout;
  int64_t stride, lead; /* elements; before member 0 */
} trial_array;

enum { TRIAL_ARRAYS = 3 + BQR_NUM_OPERANDS };

typedef struct trial {
  const bqr_operation *operation;
  const lab_routine *routine;
  batchqr_op op;
  batchqr_type type;
  batchqr_layout layout;
  bool own_layouts; /* each operand has a layout of its own, at random */
  batchqr_sizes sizes;
  batchqr_side side;
  batchqr_trans trans;
  batchqr_uplo uplo;
  int kmax, il, iu;
  double abstol, reltol, vl, vu;
  int oversampling, power_steps;
  bool in_place;     /* the first operand that may be A is A */
  bool shared;       /* all members use member 0's reflectors (strided) */
  bool ld_vary;      /* every member has its own leading dimensions (sizes not uniform) */
  bool no_info;      /* info is NULL */
  bool all_k;        /* k_array is NULL: every member has as many reflectors as fit, or the same number of
                        right-hand sides (sizes not uniform) */
  bool no_optional;  /* optional operands are NULL */
  unsigned left_out; /* those of these places are: sum of 1 << place */
  bool keep_a;       /* where the operation can leave A as it is */
  bool sparse;       /* members far apart on the device lie close-packed on the host; gaps are not guarded */
  bool positive;     /* made with positive_diagonal: the diagonal is judged so */
  bool tight;        /* no gaps between columns and strided members, the first of which is aligned */
  int slack;         /* added to the upper bounds of sizes on the device */
  double bound;      /* what ratios must stay below; 0: RESIDUAL_BOUND */
  int64_t judged;    /* how many members are judged, spread over the batch; 0: all */
  int64_t count;
  trial_member *members;
  trial_array operands[BQR_NUM_OPERANDS]; /* by place */
  guard info;
  int bound_m, bound_n, bound_k; /* upper bounds of all members' sizes */
  int *arrays[TRIAL_ARRAYS];     /* m, n, k, then the leading dimensions by place */
} trial;

/* How a routine is called. */
typedef enum trial_mode {
  TRIAL_CALL,  /* batch_...(); where there is none, as TRIAL_PLAN */
  TRIAL_PLAN,  /* batchqr_plan_create() and so on, in a workspace of NaNs */
  TRIAL_GRAPH, /* likewise, captured into a CUDA graph, then replayed twice on fresh data */
  TRIAL_ALONE  /* likewise for every member by itself: a uniform batch of one */
} trial_mode;

trial trial_new(batchqr_op op, batchqr_type type, int64_t count);
/* Of an operation that is not among the library's. */
trial trial_of(const bqr_operation *operation, const lab_routine *routine, batchqr_type type, int64_t count);
/* Makes all members random ones of this size, with seeds from `seed` on. */
void trial_fill(trial *t, int m, int n, int k, uint64_t seed);
/* Makes the members, MATGEN_NUM_KINDS of them, one of each kind; strided or by addresses, as sizes have it.
 */
void trial_fill_kinds(trial *t, int m, int n, int k);
void trial_free(trial *t);

/* Whether the operation looks at what the member claims. */
bool trial_sees_claim(const trial *t, const trial_member *x);
/* Members claim the truth and all that can be wrong with it in turn, as far as the operation looks at it. */
void trial_claim_wrongly(trial *t);

/* Storage, data, guards. All else must be set. */
void trial_build(trial *t);

/* Restores the data, runs, leaves the results in the guards. */
batchqr_status trial_run(trial *t, batchqr_handle_t handle, trial_mode mode);

/* The same with a function of the caller's in place of the library's routine. */
typedef batchqr_status (*trial_function)(const batchqr_batch *batch, const batchqr_operands *operands,
                                         void *context);
batchqr_status trial_run_with(trial *t, batchqr_handle_t handle, trial_function function, void *context);

/* Checks that nothing was written but what may be. Fails the Check test. */
void trial_check_guards(const trial *t, batchqr_handle_t handle);

/* Checks that nothing at all was written since the data were restored. Fails the Check test. */
void trial_check_untouched(const trial *t, batchqr_handle_t handle);

/* Judges results: guards, info, ratios. Fails the Check test. */
void trial_judge(const trial *t, batchqr_handle_t handle);

/* Both; a status other than success fails the test. */
void trial_run_and_judge(trial *t, batchqr_handle_t handle, trial_mode mode);

/* Fails the test unless all that the routine writes is bitwise the same for member i of t and member j of u.
 * `what`: what must not matter. */
void trial_check_same(const trial *t, int64_t i, const trial *u, int64_t j, batchqr_handle_t handle,
                      const char *what);

/* From trial_build() to trial_free(). */
void trial_once(trial *t, batchqr_handle_t handle, trial_mode mode);
/* The same twice, the second time with a NaN or an Inf in every third member: the others come out bitwise the
 * same. */
void trial_spoil_some(trial *t, batchqr_handle_t handle, trial_mode mode);

/* The batch as the library sees it, with size arrays in host memory that live until trial_free(). For sizes
 * on the device they are to be replaced by copies there. */
batchqr_batch trial_batch(const trial *t);

#endif
