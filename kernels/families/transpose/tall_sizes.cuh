/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_FAMILIES_TRANSPOSE_TALL_SIZES_CUH
#define BQR_KERNELS_FAMILIES_TRANSPOSE_TALL_SIZES_CUH

#include "common/matrix/member.cuh"
#include "common/simt/block.cuh"

namespace bqr {

/* What TRANSPOSE writes for one member, see bqr_args.tall_sizes. */
__device__ inline void write_tall_sizes(const bqr_args &args, const member &x, bool transposed) {
  if (!args.tall_sizes || thread_id() > 0) return;
  const bool least_squares = (x.m < x.n) == transposed;
  int *to = args.tall_sizes + x.id;
  to[0] = x.ok ? largest(x.m, x.n) : -1;
  to[args.count] = x.ok ? least(x.m, x.n) : 0;
  to[2 * args.count] = x.ok && least_squares ? x.k : 0;
  to[3 * args.count] = x.ok && !least_squares ? x.k : 0;
}

} // namespace bqr

#endif
