/* SPDX-License-Identifier: BSD-3-Clause */
/* A^H A of a member of up to N columns, and A^H B of up to RIGHT right-hand sides, by P warps, summed up in
 * double precision. A streams past once, 32 rows at a time: of N / 32 = Q blocks of columns there are
 * Q (Q + 1) / 2 products, a warp's job each. STAGES: of 32 rows that shared memory has room for. */
#ifndef BQR_KERNELS_REFINE_SMALL_GRAM_CUH
#define BQR_KERNELS_REFINE_SMALL_GRAM_CUH

#include "common/ptx/cp_async.cuh"
#include "small_square.cuh"

namespace bqr {

template <class T, int N, int P, int RIGHT, int STAGES> class small_gram {
  static constexpr int slab = 32, slab_ld = slab + 4; /* rows; fragments are free of conflicts */
  static constexpr int job = 32;                      /* columns */
  static constexpr int ld = square_memory<N, P>::ld;
  static constexpr int blocks = N / job, jobs = blocks * (blocks + 1) / 2;
  static constexpr int most_jobs = jobs + (RIGHT > 0) > P ? 2 : 1; /* of a warp */
  /* Warps that share a job, a part of the rows for each, where there is nothing else for them to do. */
  static constexpr int sharing = RIGHT == 0 && P >= 2 * jobs ? P / jobs : 1;
  static_assert(slab % (8 * sharing) == 0, "parts are whole steps");

public:
  struct alignas(16) stage {
    T a[N * slab_ld], b[(RIGHT > 0 ? 8 : 0) * slab_ld + 1];
  };
  using slabs = stage[STAGES];

  /* square: on and above the diagonal, by rows of square_memory's length; it may lie where `m` does.
   * put_right(c, j, x): entry (j, c) of A^H B. Barriers stand behind it. */
  template <class F>
  static __device__ __forceinline__ void form(slabs &m, const T *a, int64_t lda, const T *b, int64_t ldb,
                                              int rows, int cols, int k, double *square, F &&put_right) {
    /* job numbers of this warp; `jobs` is A^H B. Those of a block with itself go two to a warp. */
    int mine[most_jobs];
    mine[0] = warp_id() / sharing;
    if constexpr (most_jobs == 2) {
      static_assert(most_jobs == 1 || (jobs == 10 && P == 8), "6 jobs beside the diagonal, 4 on it");
      mine[0] = warp_id() < 7 ? warp_id() : 8;
      mine[1] = warp_id() == 6 ? 7 : warp_id() == 7 ? 9 : warp_id() == 4 && RIGHT > 0 ? jobs : jobs + 1;
    }
    const int part = warp_id() % sharing;
    const bool packs = (reinterpret_cast<uint64_t>(a) | static_cast<uint64_t>(lda) * sizeof(T)) % 16 == 0;
    double c[most_jobs][8][4] = {};
    const int slabs_of_a = (rows - 1) / slab + 1;
    auto next = [&](int number) {
      fetch(m[number % STAGES], number * slab, a, lda, packs, b, ldb, rows, cols, k);
    };
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) next(i); /* without rows, too: groups are counted */
#pragma unroll 1
    for (int number = 0; number < slabs_of_a; number++) {
      copy_async_wait_groups<STAGES - 2>();
      block_sync();
      next(number + STAGES - 1);
      const stage &from = m[number % STAGES];
#pragma unroll
      for (int q = 0; q < most_jobs; q++) {
        int row, col;
        if (RIGHT > 0 && mine[q] == jobs)
          add_right(c[q], from.a, from.b);
        else if (place(mine[q], row, col) && row * job < cols && col * job < cols)
          add_job(c[q], from.a + row * job * slab_ld, from.a + col * job * slab_ld, row == col, part);
      }
    }
    copy_async_wait();
    block_sync(); /* the slabs' memory becomes the square's */
#pragma unroll
    for (int p = 0; p < sharing; p++) {
#pragma unroll
      for (int q = 0; q < most_jobs; q++) {
        int row, col;
        if (part != p) continue;
        if (RIGHT > 0 && mine[q] == jobs)
          put(c[q], put_right);
        else if (place(mine[q], row, col))
          put_job(c[q], square + row * job * ld + col * job, p > 0);
      }
      block_sync();
    }
  }

private:
  /* Starts copying the rows from `first` on, zeros behind the last one. packs: columns of A are aligned to 16
   * bytes. */
  static __device__ __forceinline__ void fetch(stage &to, int first, const T *a, int64_t lda, bool packs,
                                               const T *b, int64_t ldb, int rows, int cols, int k) {
    constexpr int unit = 16 / sizeof(T), lanes = slab / unit, at_once = warp_lanes / lanes; /* of a column */
    static_assert(N % (P * at_once) == 0, "each warp copies as many columns");
    const int row = first + lane_id();
    const bool in = row < rows;
    if (packs) {
      const int place = lane_id() % lanes * unit, left = rows - (first + place);
      const int bytes = left >= unit ? 16 : left > 0 ? left * static_cast<int>(sizeof(T)) : 0;
#pragma unroll
      for (int i = 0; i < N / (P * at_once); i++) {
        const int col = (i * P + warp_id()) * at_once + lane_id() / lanes;
        const bool there = bytes > 0 && col < cols;
        copy_async_part<16>(to.a + col * slab_ld + place, there ? a + first + place + col * lda : a,
                            there ? bytes : 0);
      }
    } else {
#pragma unroll 4
      for (int col = warp_id(); col < N; col += P) {
        const bool there = in && col < cols;
        copy_async_if<sizeof(T)>(there, to.a + col * slab_ld + lane_id(), there ? a + row + col * lda : a);
      }
    }
    for (int c = warp_id(); c < RIGHT; c += P) { /* what else a tile has is not read of its results */
      const bool there = in && c < k;
      copy_async_if<sizeof(T)>(there, to.b + c * slab_ld + lane_id(), there ? b + row + c * ldb : a);
    }
    copy_async_group();
  }

  /* Column blocks of job number `which`: first those beside the diagonal, which take longest, by turns so
   * that a multiprocessor's four parts have as much to do. */
  __device__ __forceinline__ static bool place(int which, int &row, int &col) {
    constexpr int beside = jobs - blocks;
    if (which >= jobs) return false;
    row = col = which - beside;
    if (which >= beside) return true;
    for (col = 1, row = which; row >= col; col++) row -= col;
    return true;
  }

  /* c += left^H right of 32 columns each, of this part of the rows; of a block with itself without what is
   * below the diagonal. */
  __device__ __forceinline__ static void add_job(double (&c)[8][4], const T *left, const T *beside, bool own,
                                                 int part) {
    const int at = lane_id() / 4 * slab_ld + lane_id() % 4 + part * (slab / sharing);
#pragma unroll
    for (int k = 0; k < slab / sharing; k += 8) {
      double a[2][4], b[4][2];
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          a[i][e] = static_cast<double>(left[(16 * i + e / 2 * 8) * slab_ld + k + e % 2 * 4 + at]);
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) b[j][e] = beside[8 * j * slab_ld + k + e * 4 + at];
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          if (i == 0 || j >= 2 || !own)
            multiply_add(c[4 * i + j][0], c[4 * i + j][1], c[4 * i + j][2], c[4 * i + j][3], a[i][0], a[i][1],
                         a[i][2], a[i][3], b[j][0], b[j][1]);
    }
  }
  /* A^H B: 16 columns of A at a time. */
  __device__ __forceinline__ static void add_right(double (&c)[8][4], const T *left, const T *of_b) {
    const int at = lane_id() / 4 * slab_ld + lane_id() % 4;
#pragma unroll 2
    for (int k = 0; k < slab; k += 8) {
      const double b0 = of_b[k + at], b1 = of_b[k + 4 + at];
#pragma unroll
      for (int i = 0; i < N / 16; i++) {
        double a[4];
#pragma unroll
        for (int e = 0; e < 4; e++) a[e] = left[(16 * i + e / 2 * 8) * slab_ld + k + e % 2 * 4 + at];
        multiply_add(c[i][0], c[i][1], c[i][2], c[i][3], a[0], a[1], a[2], a[3], b0, b1);
      }
    }
  }
  __device__ __forceinline__ static void put_job(const double (&c)[8][4], double *to, bool more) {
#pragma unroll
    for (int t = 0; t < 8; t++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        double &x = to[(t / 4 * 16 + square_tile_row(e)) * ld + t % 4 * 8 + square_tile_col(e)];
        x = more ? x + c[t][e] : c[t][e];
      }
  }
  template <class F> __device__ __forceinline__ static void put(const double (&c)[8][4], F &&put_right) {
    if (square_tile_col(0) >= RIGHT) return;
#pragma unroll
    for (int t = 0; t < N / 16; t++)
#pragma unroll
      for (int e = 0; e < 4; e++) put_right(square_tile_col(e), 16 * t + square_tile_row(e), c[t][e]);
  }
};

} // namespace bqr

#endif
