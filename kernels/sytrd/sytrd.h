/* SPDX-License-Identifier: BSD-3-Clause */
/* Hermitian matrices of one order to real tridiagonal ones and eigenvectors of these back: all members of a
 * launch at once, a cluster of blocks for each, or one after another by the whole GPU. C interface for
 * src/drivers. Nothing here allocates or synchronises. From compute capability 9.0 on. */
#ifndef BQR_KERNELS_SYTRD_H
#define BQR_KERNELS_SYTRD_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bqr_sytrd_state {
  int exponent; /* the matrix has been multiplied by 2^exponent */
  bool sound;   /* false: it holds a NaN or an Inf, or its sizes do not fit; d and e are zeros */
} bqr_sytrd_state;

/* Arrays on the device, aligned to 256 bytes, for each member: a, n x n, and tau, n, reflectors as xSYTRD
 * leaves them in the lower triangle; q, n x n, and w, n, real: vectors and values of the tridiagonal matrix;
 * d and e, n real numbers, its diagonal and what is beside it, brought near 1; z, n x n, which is q itself
 * for real types: vectors while the reflectors are applied to them. */
typedef struct bqr_sytrd_work {
  void *a, *tau, *q, *d, *e, *w, *z;
  void *letters; /* bqr_sytrd_grid_bytes() */
  bqr_sytrd_state *states;
} bqr_sytrd_work;

/* Of a SYEVD problem, whose members all are n x n, n = 1 ... 1024. variant.blocks: of a cluster; global: the
 * matrices lie in `a`, else in shared memory. */
bool bqr_sytrd_supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device);
batchqr_status bqr_sytrd_prepare(const bqr_problem *problem, const bqr_variant *variant);

/* Of `count` entries of the launch, the first of which is `first`: writes a, d, e and states, info, and NaN
 * for eigenvalues of members that are not finite. */
batchqr_status bqr_sytrd_reduce(const bqr_problem *problem, const bqr_variant *variant, const bqr_args *args,
                                int64_t first, int count, const bqr_sytrd_work *work, batchqr_stream stream);

/* The same by the whole GPU, one member after another, n = 1 ... 2048 (z: 1024). Blocks wait for one another:
 * all of them run at once, or none does. */
size_t bqr_sytrd_grid_bytes(const bqr_problem *problem);
bool bqr_sytrd_grid_supports(const bqr_problem *problem, const bqr_device *device);
batchqr_status bqr_sytrd_grid_prepare(const bqr_problem *problem);
batchqr_status bqr_sytrd_grid_reduce(const bqr_problem *problem, const bqr_device *device,
                                     const bqr_args *args, int64_t first, int count,
                                     const bqr_sytrd_work *work, batchqr_stream stream);

/* The same of real members of n = 1 ... 256, a block for each, which holds it on the chip. */
bool bqr_sytrd_tiles_supports(const bqr_problem *problem, const bqr_device *device);
batchqr_status bqr_sytrd_tiles_prepare(const bqr_problem *problem);
batchqr_status bqr_sytrd_tiles_reduce(const bqr_problem *problem, const bqr_args *args, int64_t first,
                                      int count, const bqr_sytrd_work *work, batchqr_stream stream);

/* The same of real members of n = 1 ... variant.rows, a cluster of variant.blocks blocks for each, which
 * holds it on the chip, but for what has no room there. */
bool bqr_sytrd_cluster_tiles_supports(const bqr_problem *problem, const bqr_variant *variant,
                                      const bqr_device *device);
batchqr_status bqr_sytrd_cluster_tiles_prepare(const bqr_problem *problem, const bqr_variant *variant,
                                               const bqr_device *device);
batchqr_status bqr_sytrd_cluster_tiles_reduce(const bqr_problem *problem, const bqr_variant *variant,
                                              const bqr_device *device, const bqr_args *args, int64_t first,
                                              int count, const bqr_sytrd_work *work, batchqr_stream stream);

/* Loads what follows. */
batchqr_status bqr_sytrd_prepare_back(const bqr_problem *problem);

/* Eigenvalues from w. */
batchqr_status bqr_sytrd_values(const bqr_problem *problem, const bqr_args *args, int64_t first, int count,
                                const bqr_sytrd_work *work, batchqr_stream stream);
/* z := q, of complex types. */
batchqr_status bqr_sytrd_widen(const bqr_problem *problem, int count, const bqr_sytrd_work *work,
                               batchqr_stream stream);
/* Eigenvectors from z, with their signs. */
batchqr_status bqr_sytrd_vectors(const bqr_problem *problem, const bqr_args *args, int64_t first, int count,
                                 const bqr_sytrd_work *work, batchqr_stream stream);

#ifdef __cplusplus
}
#endif
#endif
