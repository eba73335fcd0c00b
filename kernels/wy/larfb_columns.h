/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of bqr_larfb() that keeps columns on the chip. */
#ifndef BQR_KERNELS_WY_LARFB_COLUMNS_H
#define BQR_KERNELS_WY_LARFB_COLUMNS_H

#include "wy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most rows of members that it serves, from the block's diagonal on; taller ones it leaves alone. 0: it
 * serves none. */
int bqr_larfb_columns_rows(const bqr_problem *problem);

/* As bqr_larfb(). */
batchqr_status bqr_larfb_columns(const bqr_problem *problem, const bqr_args *args, int first, int width,
                                 const void *t, int64_t stride_t, bool adjoint, int from, int to,
                                 const bqr_clusters *clusters, batchqr_stream stream);
batchqr_status bqr_larfb_columns_prepare(batchqr_type type);

#ifdef __cplusplus
}
#endif
#endif
