/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of a real symmetric matrix of up to N rows, 32 < N <= 64, to tridiagonal form, as lane_rows.cuh
 * does it, by a warp: a lane has rows lane and lane + 32, both triangles, in registers. A smaller matrix lies
 * in the last of the N rows and columns. */
#ifndef BQR_KERNELS_FAMILIES_SYEVD_WARP_ROWS_CUH
#define BQR_KERNELS_FAMILIES_SYEVD_WARP_ROWS_CUH

#include "common/eigen/step.cuh"
#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"
#include "common/simt/warp.cuh"

namespace bqr {

template <class T, int N> class warp_rows {
  using R = real_t<T>;
  static constexpr int rows = 2, places = rows * warp_lanes, ld = N + 1, quarter = N / 4;
  static_assert(N > warp_lanes && N <= places && N % 4 == 0, "two rows to a lane");
  struct alignas(2 * sizeof(T)) step_entry {
    T v, w;
  };

public:
  union storage {
    T square[N * ld]; /* the matrix, on its way to rows */
    struct {
      step_entry entries[places]; /* of this step, from row k + 1 on; the rest is zero */
      alignas(16) T x[places];
    } step;
  };

  __device__ warp_rows(storage &shared, int n) : shared_(shared), before_(N - n), lane_(lane_id()) {}

  /* The triangle that is read. Returns the largest magnitude of it, see magnitude_or_one(). */
  __device__ __forceinline__ uint32_t load(const matrix_view<T> &a, bool lower) {
    uint32_t u = 0;
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
      for (int r = 0; r < rows; r++) {
        const int i = row(r);
        T z = zero<T>();
        if (there(i, j, lower)) z = *a.at(i - before_, j - before_);
        if (i == j) z = make<T>(real_part(z));
        u = greater(u, magnitude_or_one(z));
        a_[r][j] = z;
      }
    return group_max(u);
  }

  /* After load(): the matrix times 2^exponent to tridiagonal form. d: n numbers, e: n - 1. v of H(k) goes to
   * column k of `to`, rows k + 1 on, and tau above it, unless there is nothing to write to. */
  __device__ __forceinline__ void run(bool lower, int exponent, R *d, R *e, const matrix_view<T> &to) {
    spread(lower, exponent);
    static_for<4>([&](auto part) {
      constexpr int from = decltype(part)::value * quarter;
      for (int k = largest(before_, from); k < from + quarter && k < N - 1; k++)
        step<N - 1 - from>(k, d, e, to);
    });
    if (row(1) == N - 1) d[N - 1 - before_] = real_part(a_[1][0]);
  }

private:
  __device__ __forceinline__ int row(int r) const { return lane_ + r * warp_lanes; }
  __device__ __forceinline__ bool there(int i, int j, bool lower) const {
    return i < N && least(i, j) >= before_ && (lower ? i >= j : i <= j);
  }

  /* Both triangles, times 2^exponent, column `before` first. */
  __device__ __forceinline__ void spread(bool lower, int exponent) {
    const R half = times_power(R(1), exponent / 2), rest = times_power(R(1), exponent - exponent / 2);
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
      for (int r = 0; r < rows; r++) {
        const int i = row(r);
        if (!there(i, j, lower)) continue;
        const T x = scaled(scaled(a_[r][j], half), rest);
        shared_.square[i + j * ld] = x;
        if (i != j) shared_.square[j + i * ld] = conj(x);
      }
    warp_sync();
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
      for (int r = 0; r < rows; r++) {
        const int i = row(r);
        a_[r][j] =
            i >= before_ && i < N && before_ + j < N ? shared_.square[i + (before_ + j) * ld] : zero<T>();
      }
    warp_sync();
  }

  /* COLUMNS: no fewer than there are after column k, which is the first one in registers. */
  template <int COLUMNS> __device__ __forceinline__ void step(int k, R *d, R *e, const matrix_view<T> &to) {
    auto &s = shared_.step;
    const int column = k - before_, first = k + 1;
    T x[rows], q[rows];
    int at[rows];
    R rest = 0, energy = 0;
#pragma unroll
    for (int r = 0; r < rows; r++) {
      const int i = row(r);
      const bool below = i > k;
      x[r] = below ? a_[r][0] : zero<T>();
      at[r] = below ? i - first : i - first + places;
      if (i == k) d[column] = real_part(a_[r][0]);
      s.x[at[r]] = x[r];
      if (i != first) rest = abs2_add(x[r], rest);
    }
    warp_sync();
    T product[rows][2] = {};
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
      const T factor = s.x[j];
#pragma unroll
      for (int r = 0; r < rows; r++) product[r][j % 2] = madd(a_[r][j + 1], factor, product[r][j % 2]);
    }
    const T alpha = s.x[0];
    rest = group_sum(rest);
#pragma unroll
    for (int r = 0; r < rows; r++) {
      q[r] = product[r][0] + product[r][1];
      energy += real_part(cmadd(x[r], q[r], zero<T>()));
    }
    energy = group_sum(energy);
    const bool in_second = first >= warp_lanes;
    const R q_first = broadcast(real_part(in_second ? q[1] : q[0]), first % warp_lanes),
            a_first = broadcast(real_part(in_second ? a_[1][1] : a_[0][1]), first % warp_lanes);
    reflector<T> h = {zero<T>(), R(0), R(1), zero<T>()};
    if (abs2_add(alpha, rest) > least2_of_step<R>) h = larfg(alpha, rest, R(1), false);
    const R most = fused(h.beta, fused(h.beta, a_first, -2 * q_first), energy) * abs2(h.scale), /* v^H A v */
        half = R(-0.5) * abs2(h.tau) * most;
    T v[rows], w[rows];
#pragma unroll
    for (int r = 0; r < rows; r++) {
      const int i = row(r);
      v[r] = i == first ? one<T>() : x[r] * h.scale;
      w[r] = i > k ? madd(h.tau, h.scale * madd(make<T>(-h.beta), a_[r][1], q[r]), scaled(v[r], half))
                   : zero<T>();
      s.entries[at[r]] = {v[r], w[r]};
      if (to.data && i > k && i < N) *to.at(i - before_, column) = v[r];
    }
    if (lane_ == 0) {
      e[column] = h.beta;
      if (to.data) *to.at(column, column) = h.tau;
    }
    warp_sync();
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
      const step_entry other = s.entries[j];
#pragma unroll
      for (int r = 0; r < rows; r++) a_[r][j] = updated(a_[r][j + 1], v[r], w[r], other.v, other.w);
    }
  }

  storage &shared_;
  int before_, lane_;
  T a_[rows][N];
};

} // namespace bqr

#endif
