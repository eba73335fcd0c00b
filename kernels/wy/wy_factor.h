/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of many members by clusters, see bqr_wy_factor(). */
#ifndef BQR_KERNELS_WY_WY_FACTOR_H
#define BQR_KERNELS_WY_WY_FACTOR_H

#include "wy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* bqr_wy_factor_rows() of panels of members that go together: of the widest, too, which no cluster holds. */
int bqr_wy_factor_rows_of_many(batchqr_type type, int width, const bqr_device *device);

#ifdef __cplusplus
}
#endif
#endif
