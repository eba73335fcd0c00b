/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharing out a batch to threads where elements are independent: members are cut into pieces of whole
 * columns, and each piece goes to a team of threads, a part of a block; tiny members share a block. */
#ifndef BQR_KERNELS_COMMON_MATRIX_PIECES_CUH
#define BQR_KERNELS_COMMON_MATRIX_PIECES_CUH

#include "common/simt/block.cuh"
#include "common/simt/launch.cuh"
#include "member.cuh"

namespace bqr {

/* How members are cut. */
struct piece_plan {
  int cols;   /* columns of a piece */
  int pieces; /* of a member */
  int team;   /* threads for a piece */
  int lanes;  /* adjacent threads for adjacent rows */

  static constexpr int block_threads = 256;
  static constexpr int piece_elements = 8192; /* about; enough for a block to have loads in flight */
};

/* For members of which up to m x n elements are walked over. */
inline piece_plan plan_pieces(int m, int n) {
  piece_plan p;
  p.cols = least(largest(1, n), largest(1, piece_plan::piece_elements / largest(1, m)));
  p.pieces = (largest(1, n) - 1) / p.cols + 1;
  p.lanes = 1;
  while (p.lanes < m && p.lanes < warp_lanes) p.lanes *= 2;
  int64_t elements = static_cast<int64_t>(largest(m, 1)) * p.cols;
  p.team = p.lanes;
  while (p.team < elements && p.team < piece_plan::block_threads) p.team *= 2;
  return p;
}

inline unsigned piece_grid(const piece_plan &p, int64_t count) {
  int64_t teams = piece_plan::block_threads / p.team;
  return grid_for((count * p.pieces - 1) / teams + 1);
}

/* The teams of the grid call f(x, walk) for each piece of every valid member x that has elements;
 * walk(rows, cols, g) calls g(row, column) for the piece's share of the member's first rows x cols elements.
 */
template <int OP, class F>
__device__ __forceinline__ void for_pieces(const bqr_args &args, const piece_plan &p, F &&f) {
  const int64_t total = args.count * p.pieces, teams = num_threads() / p.team;
  const int thread = thread_id() % p.team;
  for (int64_t i = blockIdx.x * teams + thread_id() / p.team; i < total; i += gridDim.x * teams) {
    member x = member_at<OP>(args, i / p.pieces);
    if (!x.ok || x.m <= 0 || x.n <= 0) continue;
    int first = static_cast<int>(i % p.pieces) * p.cols;
    f(x, [&](int rows, int cols, auto &&g) {
      int end = least(cols, first + p.cols);
      for (int column = first + thread / p.lanes; column < end; column += p.team / p.lanes)
        for (int row = thread % p.lanes; row < rows; row += p.lanes) g(row, column);
    });
  }
}

} // namespace bqr

#endif
