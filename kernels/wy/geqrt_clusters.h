/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of few members by clusters of blocks. */
#ifndef BQR_KERNELS_WY_GEQRT_CLUSTERS_H
#define BQR_KERNELS_WY_GEQRT_CLUSTERS_H

#include "wy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As a rule. */
enum { BQR_GEQRT_BLOCKS = 8 };

/* bqr_geqrt() with a cluster of `blocks` blocks for a panel, 4 or 8, or, of real types, of 16 for those that
 * shared memory does not hold, which is decided by `rows`. Entry i's T is at t + i * stride_t elements. */
batchqr_status bqr_geqrt_clusters(batchqr_type type, const bqr_args *panels, int rows, int blocks,
                                  bool positive, void *t, int64_t stride_t, batchqr_stream stream);

/* What bqr_wy_store() does with such a panel of 32 columns, whose T is there already. */
batchqr_status bqr_geqrt_heads(batchqr_type type, const bqr_wy_panel *panel, const void *t, int64_t stride_t,
                               batchqr_stream stream);

/* The most rows of panels that it serves; 0: it serves none. */
int bqr_geqrt_clusters_rows(batchqr_type type, int blocks, const bqr_device *device);

/* Loads them; once for each plan. */
batchqr_status bqr_geqrt_clusters_prepare(batchqr_type type, int blocks, const bqr_device *device);

#ifdef __cplusplus
}
#endif
#endif
