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
  static constexpr int group = 4; /* rows that are worked on, or skipped once they are done */
  static_assert(N % group == 0, "rows are whole groups");

public:
  __device__ __forceinline__ explicit warp_qr(const reflectors<T, N> &made)
      : lane_(lane_id() & (lanes - 1)), made_(made) {}

  /* Column i of `l` := the adjoint of R's row i, with its columns in the order of A's. A is in `l` before.
   * live: whether there is one; factor: what A is to be multiplied by, in two parts. */
  __device__ __forceinline__ void run(const matrix_view<T> &l, bool live, R factor, R more) {
    T a[N];
    R norm2 = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
      a[i] = live && lane_ < N ? scaled(scaled(*l.at(i, lane_), factor), more) : zero<T>();
      norm2 = abs2_add(a[i], norm2);
    }
    warp_sync(); /* l is free */
    int j = 0;
    for (; j < N; j++) {
      const uint32_t first = static_cast<uint32_t>(warp_lanes - 1 - lane_);
      const uint32_t best =
          group_max<lanes>(norm2 > span<R>::least2 ? (magnitude(norm2) & ~31u) | first : 0);
      if (!group_any(best != 0)) break;
      step(j, l, best, a, norm2);
    }
    steps_ = j;
    for (; j < N; j++) {
      if (lane_ < N) *l.at(lane_, j) = zero<T>();
    }
    warp_sync();
  }

  /* y := Q y, y an N x N matrix of which this lane has a column. */
  __device__ __forceinline__ void apply(const T *from, T (&y)[N]) const {
#pragma unroll
    for (int i = 0; i < N; i++) y[i] = i + steps_ < N ? from[i + steps_] : zero<T>();
    for (int j = steps_ - 1; j >= 0; j--) {
      const T top = from[j];
      T u[N];
      read(j, u);
      T sums[2] = {conj(u[0]) * top, zero<T>()};
      for_groups(j, [&](int i) {
        if (i > 0) sums[i % 2] = cmadd(u[i], y[i - 1], sums[i % 2]);
      });
      const T f = scaled(sums[0] + sums[1], made_.gamma[j]);
#pragma unroll
      for (int g = N / group - 1; g >= 0; g--)
        if (g * group < N - j) {
#pragma unroll
          for (int i = (g + 1) * group - 1; i >= g * group; i--)
            if (i > 0) y[i] = y[i - 1] - u[i] * f;
        }
      y[0] = top - u[0] * f;
    }
  }

private:
  /* f(i) for rows that are left behind j steps. */
  template <class F> static __device__ __forceinline__ void for_groups(int j, F &&f) {
#pragma unroll
    for (int g = 0; g < N / group; g++)
      if (g * group < N - j) {
#pragma unroll
        for (int i = g * group; i < (g + 1) * group; i++) f(i);
      }
  }

  /* Of vector j, the groups that have rows behind j steps. */
  __device__ __forceinline__ void read(int j, T (&u)[N]) const {
#pragma unroll
    for (int g = 0; g < N / group; g++)
      if (g * group < N - j) {
        T some[group];
        column_read<0>(some, made_.vector(j) + g * group);
#pragma unroll
        for (int i = 0; i < group; i++) u[g * group + i] = some[i];
      }
  }
  __device__ __forceinline__ void write(int j, const T (&u)[N]) const {
#pragma unroll
    for (int g = 0; g < N / group; g++)
      if (g * group < N - j) {
        T some[group];
#pragma unroll
        for (int i = 0; i < group; i++) some[i] = u[g * group + i];
        column_write<0>(made_.vector(j) + g * group, some);
      }
  }

  /* best: 0 where the member has no more columns; lanes of other members go on. */
  __device__ __forceinline__ void step(int j, const matrix_view<T> &l, uint32_t best, T (&a)[N], R &norm2) {
    const bool any = best != 0;
    const int pivot = any ? warp_lanes - 1 - static_cast<int>(best & 31u) : 0;
    const R pivots_norm2 = broadcast<lanes>(norm2, pivot);
    if (lane_ == pivot) write(j, a);
    warp_sync();
    T v[N];
    read(j, v);
    warp_sync(); /* all have read the vector's first element */
    const R rnorm = fast_rsqrt(pivots_norm2), norm = pivots_norm2 * rnorm;
    T head;
    const R longer = lengthen(v[0], norm, head), gamma = any ? rnorm * fast_recip(longer) : R(0);
    T sums[2] = {conj(head) * a[0], zero<T>()};
    for_groups(j, [&](int i) {
      if (i > 0) sums[i % 2] = cmadd(v[i], a[i], sums[i % 2]);
    });
    const T f = any ? scaled(sums[0] + sums[1], gamma) : zero<T>();
    if (lane_ == 0) {
      *made_.vector(j) = any ? head : zero<T>();
      made_.gamma[j] = gamma;
    }
    const bool taken = norm2 < 0;
    if (lane_ < N) {
      const T r = lane_ == pivot ? v[0] - head : a[0] - head * f;
      *l.at(lane_, j) = any && !taken ? conj(r) : zero<T>();
    }
    R more[2] = {0, 0};
    for_groups(j, [&](int i) {
      if (i == 0) return;
      a[i - 1] = a[i] - v[i] * f;
      more[i % 2] = abs2_add(a[i - 1], more[i % 2]);
    });
#pragma unroll
    for (int g = 1; g <= N / group; g++) /* behind the last row */
      if (g * group >= N - j) a[g * group - 1] = zero<T>();
    norm2 = taken || (any && lane_ == pivot) ? R(-1) : more[0] + more[1];
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
