/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract between planner and kernels. C and CUDA C++ both read it.
 *
 * A family is one way to do one operation: one file, one constant descriptor. It comes in variants, the
 * compiled instances. The planner asks `supports`, `child` and `workspace`, all pure; `prepare` runs once for
 * each plan; `launch` enqueues and does nothing else. */
#ifndef BQR_KERNELS_FAMILY_H
#define BQR_KERNELS_FAMILY_H

#ifdef __CUDACC__ /* kernels use types of their own, and <complex> would take nvcc a second for each file */
#define BATCHQR_COMPLEX_FLOAT  float2
#define BATCHQR_COMPLEX_DOUBLE double2
#endif
#include <batchqr/batchqr.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Steps that compose public operations. They follow the last batchqr_op, move when there are more of those,
 * and are seen by planner and families only. TRANSPOSE is a step of GELS: with p = max(m,n), q = min(m,n), it
 * has GELS's sizes and operands, and what follows it works on p x q matrices. Among that is TRSM: where it is
 * not `whole`, it brings X back from `scales`, puts zeros below what it makes with R^-H, writes norms, and
 * info only where a scale is NaN. */
enum {
  BQR_NUM_ROUTINES = BATCHQR_PINV + 1,
  BQR_COPY = BQR_NUM_ROUTINES, /* c := a, m x n; either by any strides */
  BQR_COPY_R,                  /* r := upper trapezoid of a, min(m,n) x n, zeros below; r == a: zeros
                                                     below, all m rows */
  BQR_TRANSPOSE,               /* brings a and B (in c) into range, notes `scales`; where r is given, r := a,
                                  or a^H where that is wide, p x q, and a stays */
  BQR_SKETCH,   /* of A, m x n: notes in `scales` what brings it into range, and c, n x k, becomes
                   random, see families/sketch/sketch.h */
  BQR_MULTIPLY, /* c := op(a) r, where there are `scales` op(a) (scale r), a m x n, r of k columns;
                   r is what it was before. With bqr_problem.subtracts: c := c - op(a) r */
  BQR_COPY_S,   /* s := tau / scale, both n real numbers */
  BQR_TURN,     /* the first of the largest entries of each column of c becomes positive: the
                   column is multiplied by a number of magnitude 1 */
  BQR_SOLVE,    /* the X of least norm of GELSY and of PINV: of a, factored by GEQP3 with jpvt and rank, after
                   TRANSPOSE. c holds Q^H B, and becomes X, n x k; where r is given, Q's first columns, c, n x
                   m, becomes that of Q^H diag(s), or Q^H where there is no s. a and tau are destroyed; rank
                   becomes smaller where abstol says so, info is told */
  BQR_PRESET,   /* iterations := 0, relres := -1, where there are such: of X that was found directly */
  BQR_SORT,     /* with sizes on the device: what later steps read as members and sizes, see
                   families/sort/sort.h */
  BQR_SELECT,   /* of n eigenvalues, tau, and their vectors, a, those of a range: s, v and rank, as SYEVD has
                   them; v may be a, or not be there */
  BQR_NUM_OPS
};
/* Numbers of operations are below this, those that a registry of its own adds too. */
enum { BQR_MOST_OPS = 32 };

/* What `types` is made of: 1 << batchqr_type. */
enum { BQR_ALL_TYPES = 15 };

/* The machine, as far as choices depend on it. */
typedef struct bqr_device {
  batchqr_backend backend;
  int ordinal; /* CUDA device */
  int sm;      /* compute capability, 10 * major + minor; 0 on the CPU */
  int multiprocessors;
  int smem_per_block; /* bytes of shared memory that one block may opt in to */
  int smem_per_sm;
  int threads;    /* CPU threads */
  unsigned types; /* that this build's families have for it: sum of 1 << batchqr_type */
  char name[128];
} bqr_device;

/* Clusters of up to 8 blocks; and those that kernels for Hopper and Blackwell's data-centre GPUs use, of up
 * to 16 blocks and more than 100 KB of shared memory to a block. */
static inline bool bqr_has_clusters(const bqr_device *device) { return device->sm >= 90; }
static inline bool bqr_has_wide_clusters(const bqr_device *device) {
  return device->sm >= 90 && device->sm < 120;
}

/* What a problem is to the one who has it solved. A child has a later role, or is a step of an earlier op. */
typedef enum bqr_role {
  BQR_ROLE_STEP,  /* a step of an operation, or all of it */
  BQR_ROLE_PANEL, /* a panel of a blocked factorization: its family has no state */
  BQR_ROLE_LEAF,  /* a block of rows of a tree, or the last panels of square members: its family has no state,
                     no workspace and no children */
  BQR_NUM_ROLES
} bqr_role;

/* How a part of the spectrum is chosen. */
enum { BQR_BY_INDEX = 1, BQR_BY_VALUE = 2 };

struct bqr_child;

/* What a group of members has in common. Sizes are the largest of each kind in the group: a variant that
 * supports a problem serves every member with sizes up to these. */
typedef struct bqr_problem {
  int op; /* batchqr_op or one of the steps above */
  bqr_role role;
  batchqr_type type;
  batchqr_compute compute;
  batchqr_side side;
  batchqr_trans trans;
  batchqr_uplo uplo;
  bool pointers;  /* some operand is an array of addresses */
  bool uniform;   /* all members are exactly m x n (and k) */
  bool positive;  /* R(j,j) >= 0 */
  bool tall;      /* all members have m >= n, for sure */
  bool keeps_a;   /* A is only to be read, and by the row stride that it has */
  bool whole;     /* all of the caller's operation, no step of a program */
  bool subtracts; /* MULTIPLY: see there */
  bool vectors;   /* SYEVD: launches may ask for v */
  bool aligned;   /* all columns of the matrices that are written are aligned to 16 bytes */
  int m, n, k;
  int64_t count;
  int gram_schmidt; /* QR, all of it: see the batch */
  /* What the planner has chosen for the children of the problem's family, see bqr_family.child. `supports`,
   * `prefers` and `child` come before that, and must not read it. */
  const struct bqr_child *children;
  int num_children;
  bool switched; /* launches may be given a switch, see bqr_args.off */
  /* Bytes: what is faster with more workspace is to do with so much, if it can. 0: no limit. */
  size_t workspace_limit;
  unsigned range; /* SYEVD: BQR_BY_INDEX, BQR_BY_VALUE: only a part of the spectrum is wanted; 0: all of it */
  int il, iu;     /* BQR_BY_INDEX: the il-th to the iu-th eigenvalue, counted from 1; members may have fewer
                     rows than either */
} bqr_problem;

/* One compiled instance. Its name spells its parameters: "rows32.cols8.lanes4" has rows 32, cols 8, lanes 4,
 * and "rows512.wide" has rows 512, wide true. A parameter that the name does not spell is 0, but `blocks` may
 * be 1. What a family takes them for stands above its table of variants. */
typedef struct bqr_variant {
  const char *name;
  int rows, cols;
  int lanes, warps, blocks; /* of a member: lanes of a warp, warps of a block, blocks of a cluster */
  int chunk, stream, width, by;
  bool many, wide, left, tree, global;
  /* What names do not spell. Types are sums of 1 << batchqr_type. */
  unsigned types;        /* that have this instance; not read where all of the family's do */
  int most;              /* the largest size that the variant takes; 0: any */
  int split;             /* lanes that share a column */
  int panels;            /* of a group; 0: the family's choice */
  int resident;          /* warps that fit on a multiprocessor by the registers; 0: as many as do */
  unsigned fewest_warps; /* types for which no other variant serves as many rows with fewer warps */
  unsigned tails;        /* types whose square members leave their last panels to another family */
  bool full;             /* good for members that fill most of rows x cols */
} bqr_variant;

/* A matrix operand: where members' data and leading dimensions are. Member i's entry (0, 0) is at data + i *
 * stride; at data + offsets[i] where there are offsets; or at the i-th address of data. */
typedef struct bqr_matrix {
  void *data;          /* NULL, and then not to be read, where no member has an element of it */
  const int *ld_array; /* NULL: ld for all */
  int64_t stride;
  int64_t row_stride; /* 1 but for COPY, and for the A of families that say keeps_a */
  int ld;
  bool pointers;          /* data is an array of addresses */
  const int64_t *offsets; /* in the workspace, where sizes vary; or NULL */
  /* The host's copies of ld_array and offsets; NULL where these are, and where sizes are the device's alone.
   */
  const int *host_ld_array;
  const int64_t *host_offsets;
} bqr_matrix;

/* A vector operand, likewise; strides count its own elements. */
typedef struct bqr_vector {
  void *data; /* NULL too where an optional one is not wanted */
  int64_t stride;
  bool pointers;
  const int64_t *offsets, *host_offsets;
} bqr_vector;

/* What on the device makes launches do nothing, though they were enqueued: see bqr_args. */
typedef struct bqr_switch {
  int off; /* not 0: they need not be done */
} bqr_switch;

/* One launch. Passed to kernels by value. Members are `count` entries of `members` (or 0 .. count-1 where
 * it is NULL); all other arrays, info too, are indexed by the member, not by its place in `members`. A
 * member's sizes are those of the arrays, or m, n, k where an array is NULL; k without an array is
 * min(k, as many reflectors as fit: n for ORGQR, the rows of V for ORMQR), or k for GELS, its steps, TRSM
 * and GEQP3. Where `thin` is set, n and k are then both replaced by min(m, n): ORGQR as a step of QR reads
 * the sizes of A.
 *
 * Where `untrusted` is set, a member's sizes must obey 0 <= m_array[i] <= m, likewise n and k, the
 * operation's own rules (ORGQR: m >= n >= k; ORMQR: rows of V >= k; SYEVD: m = n; TRSM: m >= n), and its
 * entries of the ld_arrays ld >= rows, or ld >= 0 without columns, for each of a, c, r, u and v that has one;
 * rows are m for a, c and u, min(m, n) for r, n for v, the rows of V for ORMQR's a, and max(m, n) for the c
 * of GELS, TRANSPOSE and SOLVE, and where `tall_c` is set. A member that does not is left alone, with info
 * BATCHQR_INFO_SIZES. All steps of a plan get the same a, c and r (ORGQR as a step of QR has them as c and
 * a), so that they agree; those of GELS after TRANSPOSE get sizes that it wrote.
 *
 * Every member's info is written, that of empty members too. All arrays are in the backend's memory. Kernels
 * read this through the words of kernels/common/matrix/member.cuh, CPU families through src/host/member.h. */
typedef struct bqr_args {
  bqr_matrix a, c, r;
  bqr_vector tau;
  bqr_vector norms; /* GELS and TRSM: k real numbers, of residuals */
  bqr_vector range; /* R_RANGE: 2 real numbers */
  int *info;        /* NULL: not wanted */
  const int *members;
  const int *host_members; /* the host's copy, like a matrix's host_ld_array */
  const int *m_array, *n_array, *k_array;
  int m, n, k;
  bool thin;      /* n and k of a member are min(m, n) */
  bool tall_c;    /* C is GELSY's, of max(m, n) rows: see below about `untrusted` */
  bool untrusted; /* sizes come from the caller's device arrays: check them against m, n, k and ld */
  int64_t count;
  void *workspace; /* at least workspace() bytes, aligned to 256 */
  void *state;     /* what the family's open() made; SORT: its bqr_sort, on the host */
  /* The steps of GELS; NULL with TRSM as a routine. Scales are those of the steps of GESVDR, too, of A alone
   * and never NaN. */
  double *scales;  /* 2 for each member: what A and what B were multiplied by; NaN: the member holds a NaN
                      or an Inf */
  int *tall_sizes; /* TRANSPOSE writes 4 * count ints where not NULL: all p (-1: sizes that do not fit), all
                         q, then the right-hand sides of least squares and those of least norm, 0 for the
                         other */
  /* GEQP3, GESVD and SYEVD. */
  bqr_vector jpvt, rank; /* n ints, and one */
  bqr_vector s;          /* min(m,n) real numbers */
  bqr_matrix u, v;
  uint64_t seed; /* SKETCH */
  /* NULL, or, on the device, whether the launch need not be done: then a family that `heeds_switch` takes
   * little time, and what it leaves in its operands is undefined. Other families do as ever. */
  const bqr_switch *off;
  int kmax;                      /* at least 1 */
  double abstol, reltol;         /* at least 0 */
  bqr_vector iterations, relres; /* PRESET, and GELS by refinement: k ints; k real numbers */
  int il, iu;                    /* SYEVD, SELECT: see the batch; 0: not given */
  double vl, vu;
} bqr_args;

/* A problem that a family leaves to another one, and which one. A launch of it may be given fewer rows, other
 * columns and another number of members than it was chosen for, but has to have its `children`. */
typedef struct bqr_child {
  bqr_problem problem;
  const struct bqr_family *family;
  const bqr_variant *variant;
  char source[80]; /* what chose it: "sm_90.tune:12", "heuristic" or "forced" */
} bqr_child;

typedef struct bqr_family {
  const char *name; /* "geqrf_block": operation_scope, mostly the name of its file */
  int op;           /* batchqr_op or a step */
  unsigned types;   /* sum of 1 << batchqr_type */
  batchqr_backend backend;
  int sm_min; /* least compute capability; 0 on the CPU */
  const bqr_variant *variants;
  int nvariants;
  int launches; /* kernels that one launch enqueues; 0: see count_launches */
  /* Whether this variant serves the problem on this device, whatever the members' data. Called only where
   * op, type, backend and sm_min fit already. Pure. */
  bool (*supports)(const bqr_problem *, const bqr_variant *, const bqr_device *);
  /* Bytes of workspace; SIZE_MAX if more than can be counted. Pure. NULL: none. */
  size_t (*workspace)(const bqr_problem *, const bqr_variant *, const bqr_device *);
  /* Once for each group of a plan, with the plan's device current: raises shared-memory limits, loads code
   * that could not be loaded under capture. NULL: nothing to do. */
  batchqr_status (*prepare)(const bqr_problem *, const bqr_variant *, const bqr_device *);
  /* Enqueues, for any count >= 1. Its status is that of the launch itself, not of an earlier error of the
   * caller's; a CUDA error is left for cudaGetLastError(), from which the planner takes the text. */
  batchqr_status (*launch)(const bqr_problem *, const bqr_variant *, const bqr_device *, const bqr_args *,
                           batchqr_stream);
  /* The arithmetic of its products; 0 (BATCHQR_COMPUTE_AUTO) means native. The planner uses an emulated
   * family with compute modes auto, emulated and half only, a half one with half only. */
  batchqr_compute compute;
  /* What the launches of one plan's group share, such as a library's handle or streams: made
   * once, after prepare(). Launches of several threads may use it at once. NULL: nothing. */
  batchqr_status (*open)(const bqr_problem *, const bqr_variant *, const bqr_device *, void **);
  void (*close)(void *state);
  /* What open() makes depends on the device and the problem's count alone, and so serves any sizes. */
  bool one_state;
  /* Where the number depends on the problem. Pure. */
  int (*count_launches)(const bqr_problem *, const bqr_variant *, const bqr_device *);
  /* Whether the variant is a good choice for a problem that it supports, where no tuning line decides. Pure.
   * NULL: it is. */
  bool (*prefers)(const bqr_problem *, const bqr_variant *, const bqr_device *);
  /* Its products are in the arithmetic that the problem's mode asks for; `compute` is then 0. */
  bool follows_mode;
  /* It reads A by any row stride, and does not write it. */
  bool keeps_a;
  /* Of a family that drives others: sets *child to the problem of child `number`, counted from 0; false where
   * there are no more. Children have later roles than the problem, those of one role follow one another,
   * and the first of a role is the hardest: a variant serves a problem if the planner finds a family for the
   * first child of each role. Pure. NULL: there are no children. */
  bool (*child)(const bqr_problem *, const bqr_variant *, const bqr_device *, int number, bqr_problem *child);
  /* Whether a launch leaves at the beginning of its workspace, for each member, what bqr_wy_unfold() makes V
   * and T of, see tsqr.h. Pure. NULL: it does not. */
  bool (*leaves_tops)(const bqr_problem *, const bqr_variant *);
  /* GEQRF: where problem.k > 0, it applies Q^H to the k columns of c, too, which have m rows. */
  bool applies_q;
  bool heeds_switch;    /* see bqr_args */
  bool only_where_good; /* not chosen, but by a table or by force, where it does not prefer the problem */
  /* Where the problem says `aligned`, it has no room for aligned copies of what it writes. */
  bool trusts_alignment;
  /* SYEVD: BQR_BY_INDEX, BQR_BY_VALUE or both: the ranges that it knows. It then writes what is wanted of s,
   * v and rank alone. Where SELECT follows instead, the problem has none. */
  unsigned char ranges;
} bqr_family;

/* Whether the family has anything for this type on the device: what `supports` may be asked about. */
static inline bool bqr_family_runs_on(const bqr_family *family, const bqr_device *device, batchqr_type type) {
  return family->backend == device->backend && family->sm_min <= device->sm &&
         ((family->types & device->types) >> type & 1);
}

#ifdef __cplusplus
}
#endif
#endif
