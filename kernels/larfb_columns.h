/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of batchqr_larfb() that keeps columns on the chip. */
#ifndef BATCHQR_KERNELS_LARFB_COLUMNS_H
#define BATCHQR_KERNELS_LARFB_COLUMNS_H

#include "blocked.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most rows of members that it serves, from the block's diagonal on; taller ones it leaves alone. 0: it
 * serves none. */
int batchqr_larfb_columns_rows(const batchqr_problem *problem);

/* As batchqr_larfb(). */
batchqr_status batchqr_larfb_columns(const batchqr_problem *problem, const batchqr_args *args, int first,
                                     int width, const void *t, int64_t stride_t, bool adjoint, int from,
                                     int to, batchqr_stream stream);
batchqr_status batchqr_larfb_columns_prepare(batchqr_type type);

#ifdef __cplusplus
}
#endif
#endif
