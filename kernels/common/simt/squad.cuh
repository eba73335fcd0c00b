/* SPDX-License-Identifier: BSD-3-Clause */
/* Squads: 1, 2, 4 ... 32 adjacent lanes of a warp that share the rows of a column. How many is known at run
 * time and depends on the column's length alone, so that sums are formed in one order whatever the block. All
 * lanes of a warp call these words together. */
#ifndef BQR_KERNELS_COMMON_SIMT_SQUAD_CUH
#define BQR_KERNELS_COMMON_SIMT_SQUAD_CUH

#include "block.cuh"

namespace bqr {

struct squad {
  int lanes, lane; /* of a squad; which this thread is */
  int id, count;   /* which of the block's squads; how many there are */
};

/* Lanes for columns of that many rows, about `each` of them to a lane. */
BQR_INLINE int squad_lanes(int rows, int each) {
  int lanes = 1;
  while (lanes < warp_lanes && lanes * each < rows) lanes *= 2;
  return lanes;
}

__device__ __forceinline__ squad make_squad(int lanes) {
  return {lanes, thread_id() & (lanes - 1), thread_id() / lanes, num_threads() / lanes};
}

/* The first of the lane's rows from `first` on: row i is lane i % lanes's. */
__device__ __forceinline__ int squad_row(const squad &s, int first) {
  return first + ((s.lane - first) & (s.lanes - 1));
}

/* The sum over the squad, in all its lanes. */
template <class V> __device__ __forceinline__ V squad_sum(const squad &s, V v) {
  for (int d = s.lanes / 2; d > 0; d /= 2) v = v + exchange(v, d);
  return v;
}

/* f(column) for the squad's columns, and f(-1) in those turns in which other squads of the block have one:
 * sums need all lanes. */
template <class F> __device__ __forceinline__ void for_columns(const squad &s, int columns, F &&f) {
  for (int first = 0; first < columns; first += s.count) f(first + s.id < columns ? first + s.id : -1);
}

/* The largest that any thread of the block offers. word: of shared memory, for this alone; between two calls
 * with the same word lies a barrier. */
__device__ __forceinline__ uint32_t block_max(uint32_t *word, uint32_t v) {
  if (thread_id() == 0) *word = 0;
  block_sync();
  v = group_max(v);
  if (lane_id() == 0) shared_max(word, v);
  block_sync();
  v = *word;
  block_sync();
  return v;
}

} // namespace bqr

#endif
