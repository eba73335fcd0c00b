/* SPDX-License-Identifier: BSD-3-Clause */
/* QR with column pivoting of a member of up to N x N, by as many lanes of a warp: a lane has a column in its
 * registers, whose rows that are left come first. The reflectors' vectors u, H = I - gamma u u^H, lie in
 * shared memory, also for what follows. Norms are summed up anew in each step. */
#ifndef BQR_KERNELS_FAMILIES_GESVD_WARP_QR_CUH
#define BQR_KERNELS_FAMILIES_GESVD_WARP_QR_CUH

#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"
#include "common/simt/tile.cuh"

namespace bqr {

/* In shared memory. */
template <class T, int N> struct reflectors {
  T *vectors;       /* N of N elements; of each those from its first row on */
  real_t<T> *gamma; /* 0: there is none */

  __device__ __forceinline__ T *vector(int j) const { return vectors + j * N; }
};

template <class T, int N> class warp_qr {
  using R = real_t<T>;
  static constexpr int lanes = N > warp_lanes / 2 ? warp_lanes : N;
  static constexpr int group = N < 16 ? 4 : 8; /* steps that work on the same number of rows */
  static_assert(N % group == 0, "rows are whole groups");

public:
  __device__ __forceinline__ explicit warp_qr(const reflectors<T, N> &made)
      : lane_(lane_id() & (lanes - 1)), made_(made) {}

  /* Column i of `l` := the adjoint of R's row i, with its columns in the order of A's. A is in `l` before.
   * live: whether there is one; factor, more: what A is to be multiplied by. */
  __device__ __forceinline__ void run(const matrix_view<T> &l, bool live, R factor, R more) {
    T a[N];
    R norm2 = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
      a[i] = live && lane_ < N ? scaled(scaled(*l.at(i, lane_), factor), more) : zero<T>();
      norm2 = abs2_add(a[i], norm2);
    }
    warp_sync(); /* l is free */
    bool ended = false;
    static_for<N / group>([&](auto g) {
      constexpr int first = decltype(g)::value * group;
#pragma unroll 1
      for (int j = first; j < first + group && !ended; j++) {
        const uint32_t before = static_cast<uint32_t>(warp_lanes - 1 - lane_);
        const uint32_t best =
            group_max<lanes>(norm2 > span<R>::least2 ? (magnitude(norm2) & ~31u) | before : 0);
        ended = !group_any(best != 0);
        if (!ended) step<N - first>(j, l, best, a, norm2);
      }
    });
    for (int j = steps_; j < N; j++)
      if (lane_ < N) *l.at(lane_, j) = zero<T>();
    warp_sync();
  }

  /* y := Q times the column of N elements that this lane gives. */
  __device__ __forceinline__ void apply(const T *from, T (&y)[N]) const {
#pragma unroll
    for (int i = 0; i < N; i++) y[i] = zero<T>();
    static_for<N / group>([&](auto g) {
      constexpr int rows = (decltype(g)::value + 1) * group;
#pragma unroll 1
      for (int j = N - rows + group - 1; j >= N - rows; j--) reflect<rows>(j, from[j], y);
    });
  }

private:
  /* The vector's elements, and zeros. */
  template <int ROWS> __device__ __forceinline__ void read(int j, T (&u)[ROWS]) const {
    column_read<0>(u, made_.vector(j));
  }

  /* Of ROWS rows at most. best: 0 where the member has no more columns; lanes of others go on. */
  template <int ROWS>
  __device__ __forceinline__ void step(int j, const matrix_view<T> &l, uint32_t best, T (&a)[N], R &norm2) {
    const bool any = best != 0, taken = norm2 < 0;
    const int pivot = any ? warp_lanes - 1 - static_cast<int>(best & 31u) : 0;
    const R pivots_norm2 = broadcast<lanes>(norm2, pivot);
    T v[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) v[i] = a[i];
    if (lane_ == pivot) column_write<0>(made_.vector(j), v);
    warp_sync();
    read(j, v);
    warp_sync(); /* all have read the vector's first element */
    const R rnorm = fast_rsqrt(pivots_norm2), norm = pivots_norm2 * rnorm;
    T head;
    const R longer = lengthen(v[0], norm, head), gamma = any ? rnorm * fast_recip(longer) : R(0);
    T sums[2] = {conj(head) * a[0], zero<T>()};
#pragma unroll
    for (int i = 1; i < ROWS; i++) sums[i % 2] = cmadd(v[i], a[i], sums[i % 2]);
    const T f = any ? scaled(sums[0] + sums[1], gamma) : zero<T>();
    if (lane_ == 0) {
      *made_.vector(j) = any ? head : zero<T>();
      made_.gamma[j] = gamma;
    }
    if (lane_ < N) {
      const T r = lane_ == pivot ? v[0] - head : a[0] - head * f;
      *l.at(lane_, j) = any && !taken ? conj(r) : zero<T>();
    }
    R left[2] = {0, 0};
#pragma unroll
    for (int i = 1; i < ROWS; i++) {
      a[i - 1] = a[i] - v[i] * f;
      left[i % 2] = abs2_add(a[i - 1], left[i % 2]);
    }
    a[ROWS - 1] = zero<T>();
    norm2 = taken || (any && lane_ == pivot) ? R(-1) : left[0] + left[1];
    steps_ = j + 1;
  }

  /* Rows from j + 1 on of y become those from j on, with `top` the first of them: behind j steps, ROWS at
   * most. */
  template <int ROWS> __device__ __forceinline__ void reflect(int j, const T &top, T (&y)[N]) const {
    T u[ROWS];
    T f = zero<T>();
    if (j < steps_) {
      read(j, u);
      T sums[2] = {conj(u[0]) * top, zero<T>()};
#pragma unroll
      for (int i = 1; i < ROWS; i++) sums[i % 2] = cmadd(u[i], y[i - 1], sums[i % 2]);
      f = scaled(sums[0] + sums[1], made_.gamma[j]);
    } else {
#pragma unroll
      for (int i = 0; i < ROWS; i++) u[i] = zero<T>();
    }
#pragma unroll
    for (int i = ROWS - 1; i > 0; i--) y[i] = y[i - 1] - u[i] * f;
    y[0] = top - u[0] * f;
  }

  /* head := x + phase(x) norm; returns |head|. */
  static __device__ __forceinline__ R lengthen(const T &x, R norm, T &head) {
    R size;
    if constexpr (is_complex<T>) {
      const R x2 = abs2(x), rsize = fast_rsqrt(x2);
      const bool there = x2 > span<R>::least2 * limits<R>::eps * limits<R>::eps;
      size = there ? x2 * rsize : R(0);
      head = x + (there ? scaled(x, rsize * norm) : make<T>(norm));
    } else {
      size = fabs(x);
      head = x + copysign(norm, x);
    }
    return size + norm;
  }

  int lane_, steps_ = 0;
  reflectors<T, N> made_;
};

} // namespace bqr

#endif
