/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters of launches that others run beside. */
#ifndef BQR_KERNELS_WY_CLUSTERS_H
#define BQR_KERNELS_WY_CLUSTERS_H

#include "wy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A launch of bqr_larfb_stream() that is given these has so many clusters less than run at the same time. */
void bqr_clusters_spare(bqr_clusters *clusters, int spared);

#ifdef __cplusplus
}
#endif
#endif
