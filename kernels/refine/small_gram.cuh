/* SPDX-License-Identifier: BSD-3-Clause */
/* A^H A of a member of up to N columns by P warps, summed up in double precision. A streams past once, 32
 * rows at a time: of N / 32 = Q blocks of columns there are Q (Q + 1) / 2 products, a warp's job each; where
 * there are warps for it, they take turns. STAGES: of 32 rows that shared memory has room for. */
#ifndef BQR_KERNELS_REFINE_SMALL_GRAM_CUH
#define BQR_KERNELS_REFINE_SMALL_GRAM_CUH

#include "common/simt/block.cuh"
#include "gram_job.cuh"

namespace bqr {

template <class T, int N, int P, int STAGES> class small_gram {
  static constexpr int job = 32; /* columns */
  static constexpr int blocks = N / job, jobs = blocks * (blocks + 1) / 2,
                       sharing = P >= 2 * jobs ? P / jobs : 1;
  static_assert(jobs <= P, "a job for each warp");

public:
  struct alignas(16) stage {
    T a[N * slab_ld];
  };
  using slabs = stage[STAGES];

  /* square: on and above the diagonal, by rows of ld elements; it may lie where `m` does. Barriers stand
   * behind it. */
  static __device__ __forceinline__ void form(slabs &m, const T *a, int64_t lda, int rows, int cols,
                                              double *square, int ld) {
    const int mine = warp_id() / sharing, turn = warp_id() % sharing;
    const int row = mine == 0 ? 0 : mine - 1, col = mine == 0 ? blocks - 1 : mine - 1; /* of up to 2 blocks */
    static_assert(blocks <= 2, "block 0 beside block 1 is job 0, where there are two");
    const bool active = mine < jobs && row * job < cols && col * job < cols;
    const bool packs = is_packed(a, lda);
    const int number_of_slabs = (rows - 1) / slab + 1;
    double c[8][4] = {};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) /* without rows, too: groups are counted */
      fetch(m[i], i * slab, a, lda, packs, rows, cols);
#pragma unroll 1
    for (int number = 0; number < number_of_slabs; number++) {
      copy_async_wait_groups<STAGES - 2>();
      block_sync();
      fetch(m[(number + STAGES - 1) % STAGES], (number + STAGES - 1) * slab, a, lda, packs, rows, cols);
      const T *const from = m[number % STAGES].a;
      if (active && number % sharing == turn)
        add_job(c, from + row * job * slab_ld, from + col * job * slab_ld, row == col);
    }
    copy_async_wait();
    block_sync(); /* the slabs' memory becomes the square's */
#pragma unroll
    for (int t = 0; t < sharing; t++) {
      if (active && turn == t) put(c, square + row * job * ld + col * job, ld, t > 0);
      block_sync();
    }
  }

private:
  static __device__ __forceinline__ void fetch(stage &to, int first, const T *a, int64_t lda, bool packs,
                                               int rows, int cols) {
    fetch_slab<N, P>(to.a, a, lda, packs, first, rows, cols);
    copy_async_group();
  }

  __device__ __forceinline__ static void put(const double (&c)[8][4], double *to, int ld, bool more) {
    double *const mine = to + lane_id() / 4 * ld + lane_id() % 4 * 2;
#pragma unroll
    for (int t = 0; t < 8; t++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        double &x = mine[(t / 4 * 16 + e / 2 * 8) * ld + t % 4 * 8 + e % 2];
        x = more ? x + c[t][e] : c[t][e];
      }
  }
};

} // namespace bqr

#endif
