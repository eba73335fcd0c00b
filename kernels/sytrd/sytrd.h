/* SPDX-License-Identifier: BSD-3-Clause */
/* Hermitian matrices of one order to real tridiagonal ones and eigenvectors of these back, all members of a
 * launch at once: a cluster of blocks for each. C interface for src/drivers. Nothing here allocates or
 * synchronises. From compute capability 9.0 on. */
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

/* Arrays on the device, aligned to 256 bytes, for each member: a, n x n, reflectors; q, n x n, and w, n,
 * real: vectors and values of the tridiagonal matrix; d and e, n real numbers, its diagonal and what is
 * beside it, brought near 1. */
typedef struct bqr_sytrd_work {
  void *a, *q, *d, *e, *w;
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

/* Eigenvalues from w, and, where the launch wants them, eigenvectors from q, by one more kernel. */
batchqr_status bqr_sytrd_back(const bqr_problem *problem, const bqr_args *args, int64_t first, int count,
                              const bqr_sytrd_work *work, batchqr_stream stream);

#ifdef __cplusplus
}
#endif
#endif
