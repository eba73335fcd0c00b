/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract between planner and kernels. C and CUDA C++ both read it.
 *
 * A family is one way to do one operation: one file, one constant descriptor. It comes in variants, the
 * compiled instances. The planner asks `supports` and `workspace`, both pure; `prepare` runs once for each
 * plan; `launch` enqueues and does nothing else. */
#ifndef BQR_KERNELS_FAMILY_H
#define BQR_KERNELS_FAMILY_H

#ifdef __CUDACC__ /* kernels use types of their own, and <complex> would take nvcc a second for each file */
#define BATCHQR_COMPLEX_FLOAT  float2
#define BATCHQR_COMPLEX_DOUBLE double2
#endif
#include <batchqr/batchqr.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Steps that compose public operations. They follow the last batchqr_op, move when there are more of those,
 * and are seen by planner and families only. UPRIGHT and TRSM are steps of GELS: with p = max(m,n),
 * q = min(m,n), UPRIGHT has GELS's sizes and operands, and what follows it works on p x q matrices. */
enum {
  BQR_NUM_ROUTINES = BATCHQR_SYEVD + 1,
  BQR_COPY = BQR_NUM_ROUTINES, /* c := a, m x n; either by any strides */
  BQR_COPY_R,                  /* r := upper trapezoid of a, min(m,n) x n, zeros below; r == a:
                                                             zeros below, all m rows */
  BQR_COPY_V,                  /* c := columns 0 .. min(m,n) of a, all rows */
  BQR_UPRIGHT, /* brings a and B (in c) into range, notes `scales`; where r is given, r := a, or a^H where
                      that is wide, p x q, and a stays */
  BQR_TRSM,    /* m x n: a, R in its upper triangle. k right-hand sides in c: R^-1 of the first n rows, or
                      with problem.trans R^-H and zeros below, brought back from `scales`; norms */
  BQR_SORT, /* with sizes on the device: what later steps read as members and sizes, see families/sort/sort.h
             */
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

/* What a group of members has in common. Sizes are the largest of each kind in the group: a variant that
 * supports a problem serves every member with sizes up to these. */
typedef struct bqr_problem {
  int op; /* batchqr_op or one of the steps above */
  batchqr_type type;
  batchqr_compute compute;
  batchqr_side side;
  batchqr_trans trans;
  batchqr_uplo uplo;
  bool pointers; /* some operand is an array of addresses */
  bool uniform;  /* all members are exactly m x n (and k) */
  bool positive; /* R(j,j) >= 0 */
  bool tall;     /* all members have m >= n, for sure */
  bool keeps_a;  /* A is only to be read, and by the row stride that it has */
  int m, n, k;
  int64_t count;
} bqr_problem;

/* One compiled instance. The name spells the parameters ("rows32.lanes8.mpw4"); p holds them for the
 * family's own use, kernels[t] the entry points of type t where the family keeps such a table. */
typedef struct bqr_variant {
  const char *name;
  int p[6];
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

/* One launch. Passed to kernels by value. Members are `count` entries of `members` (or 0 .. count-1 where
 * it is NULL); all other arrays, info too, are indexed by the member, not by its place in `members`. A
 * member's sizes are those of the arrays, or m, n, k where an array is NULL; k without an array is
 * min(k, as many reflectors as fit: n for ORGQR, the rows of V for ORMQR), or k for GELS, its steps and
 * GEQP3. Where `thin` is set, n and k are then both replaced by min(m, n): ORGQR as a step of QR reads the
 * sizes of A.
 *
 * Where `untrusted` is set, a member's sizes must obey 0 <= m_array[i] <= m, likewise n and k, the
 * operation's own rules (ORGQR: m >= n >= k; ORMQR: rows of V >= k; SYEVD: m = n), and its entries of the
 * ld_arrays ld >= max(1, rows), for each of a, c, r, u and v that has one; rows are m for a, c and u, min(m,
 * n) for r, n for v, the rows of V for ORMQR's a, and max(m, n) for GELS's and UPRIGHT's c. A member that
 * does not is left alone, with info BATCHQR_INFO_SIZES. All steps of a plan get the same a, c and r (ORGQR as
 * a step of QR has them as c and a), so that they agree; those of GELS after UPRIGHT get sizes that it wrote.
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
  bool untrusted; /* sizes come from the caller's device arrays: check them against m, n, k and ld */
  int64_t count;
  void *workspace; /* at least workspace() bytes, aligned to 256 */
  void *state;     /* what the family's open() made; SORT: its bqr_sort, on the host */
  /* The steps of GELS. */
  double *scales;     /* 2 for each member: what A and what B were multiplied by; NaN: the member holds a NaN
                         or an Inf */
  int *upright_sizes; /* UPRIGHT writes 4 * count ints where not NULL: all p (-1: sizes that do not fit), all
                         q, then the right-hand sides of least squares and those of least norm, 0 for the
                         other */
  /* GEQP3, GESVD and SYEVD. */
  bqr_vector jpvt, rank; /* n ints, and one */
  bqr_vector s;          /* min(m,n) real numbers */
  bqr_matrix u, v;
  int kmax;              /* at least 1 */
  double abstol, reltol; /* at least 0 */
} bqr_args;

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
  /* What the launches of one plan's group share, such as a library's handle, or the choice of panels: made
   * once, after prepare(). Launches of several threads may use it at once. NULL: nothing. */
  batchqr_status (*open)(const bqr_problem *, const bqr_variant *, const bqr_device *, void **);
  void (*close)(void *state);
  /* Where the number depends on the problem. Pure. */
  int (*count_launches)(const bqr_problem *, const bqr_variant *, const bqr_device *);
  /* Whether the variant is a good choice for a problem that it supports, where no tuning line decides. Pure.
   * NULL: it is. */
  bool (*prefers)(const bqr_problem *, const bqr_variant *, const bqr_device *);
  /* Its products are in the arithmetic that the problem's mode asks for; `compute` is then 0. */
  bool follows_mode;
  /* It reads A by any row stride, and does not write it. */
  bool keeps_a;
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
