/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan knows of the clusters of its launches, see bqr_clusters_new(). */
#ifndef BQR_KERNELS_WY_KNOWN_CLUSTERS_CUH
#define BQR_KERNELS_WY_KNOWN_CLUSTERS_CUH

#include "wy.h"
#include "common/simt/launch_cluster.cuh"

namespace bqr {

/* Numbers of shapes, from 0 on: of blocks of a cluster, and of warps or of teams of blocks. */
constexpr int most_shape_warps = 8, most_shape_blocks = 16;
constexpr int columns_shape(int blocks, int warps) { return blocks * (most_shape_warps + 1) + warps; }
constexpr int stream_shape(int instance, int team) { return instance + (most_cluster_blocks + 1) * team; }

} // namespace bqr

struct bqr_clusters {
  bqr::cluster_counts<bqr::columns_shape(bqr::most_shape_blocks, bqr::most_shape_warps) + 1> columns;
  bqr::cluster_counts<bqr::stream_shape(bqr::most_cluster_blocks, bqr::most_cluster_blocks) + 1> stream;
  int spared; /* of launches of bqr_larfb_stream() */
};

/* Fill in what launches of the problem read. */
void bqr_larfb_columns_ask(const bqr_problem *problem, bqr_clusters *clusters);
void bqr_larfb_stream_ask(const bqr_problem *problem, int rows, bqr_clusters *clusters);

#endif
