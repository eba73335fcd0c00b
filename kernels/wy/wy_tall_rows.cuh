/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_WY_WY_TALL_ROWS_CUH
#define BQR_KERNELS_WY_WY_TALL_ROWS_CUH

#include "common/simt/tile.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/cp_async_bulk.cuh"

namespace bqr {

/* A block's rows of a panel of N columns, slab by slab through shared memory: bulk copies bring whole ones,
 * ahead. */
template <class T, int N, int WARPS> class bulk_rows {
  static constexpr int unit = pack<T>::size, stages = 3;

public:
  static constexpr int warp_rows = 8 * unit, height = WARPS * warp_rows, ld = height + unit;
  struct slabs {
    alignas(16) T x[stages][N * ld];
  };
  /* Their memory serves nothing else. */
  struct barriers {
    phase_barrier full[stages];
  };

  /* All threads call it, and run(), together. */
  __device__ __forceinline__ bulk_rows(slabs &s, barriers &b, const T *a, int64_t lda, int first, int end)
      : s(s), full_(b.full), a_(a), lda_(lda), first_(first), end_(end) {
    if (thread_id() == 0)
      for (int i = 0; i < stages; i++) full_[i].init(1);
    block_sync();
    for (int turn = 0; turn < stages; turn++) start(turn);
  }
  /* f(the warp's rows of a slab, the first of them); ends with a barrier. */
  template <class F> __device__ __forceinline__ void run(F &&f) {
    int turn = 0;
#pragma unroll 1
    for (int first = first_; first < end_; first += height, turn++) {
      T *slab = s.x[turn % stages];
      if (first + height <= end_)
        full_[turn % stages].wait(turn / stages & 1);
      else
        fill(slab, first);
      const int mine = warp_id() * warp_rows;
      if (first + mine < end_) f(slab + mine, first + mine);
      block_sync();
      start(turn + stages);
    }
  }

private:
  __device__ __forceinline__ void start(int turn) const {
    constexpr int bytes = height * static_cast<int>(sizeof(T));
    const int first = first_ + turn * height;
    if (warp_id() > 0 || first + height > end_) return;
    phase_barrier &full = full_[turn % stages];
    bulk_fence();
    if (lane_id() == 0) full.arrive_before_bytes(N * bytes);
    warp_sync();
#pragma unroll
    for (int j = lane_id(); j < N; j += warp_lanes)
      full.copy_bulk(s.x[turn % stages] + j * ld, a_ + first + j * lda_, bytes);
  }
  /* The last rows of all, with zeros behind. */
  __device__ __forceinline__ void fill(T *slab, int first) const {
    for (int e = thread_id(); e < N * height; e += WARPS * warp_lanes) {
      const int i = e % height, j = e / height;
      slab[i + j * ld] = first + i < end_ ? a_[first + i + j * lda_] : zero<T>();
    }
    block_sync();
  }

  slabs &s;
  phase_barrier *full_;
  const T *a_;
  int64_t lda_;
  int first_, end_;
};

} // namespace bqr

#endif
