/* SPDX-License-Identifier: BSD-3-Clause */
/* The SVD of a lone square member X by gesvd_cluster's rotations, between the first and the last of whose
 * launches src/drivers/gesvd_core.c multiplies X by a unitary V: (X V) W = Z S. C interface for src/drivers;
 * nothing here allocates or synchronises. `args`: GESVD's, of which the workspace has bqr_gesvd_core_bytes().
 */
#ifndef BQR_KERNELS_FAMILIES_GESVD_GESVD_CORE_H
#define BQR_KERNELS_FAMILIES_GESVD_GESVD_CORE_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

bool bqr_gesvd_core_supports(const bqr_problem *problem, const bqr_device *device);
size_t bqr_gesvd_core_bytes(const bqr_problem *problem);
/* Where begin() leaves A, brought into range, and where rotate() finds V. Both are n x n, their columns side
 * by side. */
void *bqr_gesvd_core_x(const bqr_problem *problem, void *workspace);
void *bqr_gesvd_core_v(const bqr_problem *problem, void *workspace);
/* Loads the kernels; once for each plan. */
batchqr_status bqr_gesvd_core_prepare(const bqr_problem *problem);
batchqr_status bqr_gesvd_core_begin(const bqr_problem *problem, const bqr_device *device,
                                    const bqr_args *args, batchqr_stream stream);
/* turned: X V, n x n; failed, on the device: not 0 where V is not to be used. */
batchqr_status bqr_gesvd_core_rotate(const bqr_problem *problem, const bqr_device *device,
                                     const bqr_args *args, const void *turned, const int *failed,
                                     batchqr_stream stream);
enum { BQR_GESVD_CORE_LAUNCHES = 7 };

#ifdef __cplusplus
}
#endif
#endif
