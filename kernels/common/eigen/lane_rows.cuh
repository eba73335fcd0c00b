/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of a Hermitian matrix of N rows to tridiagonal form, as tridiagonal.cuh does it, in registers: a
 * lane for each row. In step k a lane has the row's entries of columns k on, the first of them in its first
 * register: the update moves them.
 *
 * With v = scale (x - beta e) for a column x, A v and v^H A v come from A x and x^H A x, so that the norm of
 * x is summed together with the latter, and not before A is multiplied. */
#ifndef BQR_KERNELS_COMMON_EIGEN_LANE_ROWS_CUH
#define BQR_KERNELS_COMMON_EIGEN_LANE_ROWS_CUH

#include "common/eigen/step.cuh"
#include "common/simt/warp.cuh"

namespace bqr {

/* What the lanes of a matrix share. */
template <class T, int N> struct reduced_rows {
  alignas(16) T vectors[N * N]; /* v of H(k) in column k, with zeros to row k */
  T tau[N];
  real_t<T> d[N], e[N];
  struct alignas(16) entry {
    T v, w;
  } entries[N]; /* of this step, from row k + 1 on */
  alignas(16) T x[N];
};

template <class T, int N> class lane_rows {
  using R = real_t<T>;
  static constexpr int quarter = N / 4;

public:
  __device__ lane_rows(reduced_rows<T, N> &shared) : shared_(shared), lane_(lane_id() & (N - 1)) {}

  T a[N]; /* the row, from column `first` on */

  /* Rows before the first are zero, in all matrices of the warp. All its lanes call it together. */
  __device__ void run(int first) {
    static_for<4>([&](auto part) {
      constexpr int from = decltype(part)::value * quarter;
      for (int k = first > from ? first : from; k < from + quarter && k < N - 1; k++) step<N - 1 - from>(k);
    });
    if (lane_ == N - 1) shared_.d[N - 1] = real_part(a[0]);
    warp_sync();
  }

private:
  /* COLUMNS: no fewer than there are after column k. */
  template <int COLUMNS> __device__ __forceinline__ void step(int k) {
    const bool below = lane_ > k;
    const int place = below ? lane_ - k - 1 : lane_ + N - k - 1; /* the rest of memory is zero */
    const T x = below ? a[0] : zero<T>();
    if (lane_ == k) shared_.d[k] = real_part(a[0]);
    shared_.x[place] = x;
    warp_sync();
    T product[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) product[j % 4] = madd(a[j + 1], shared_.x[j], product[j % 4]);
    const T q = (product[0] + product[1]) + (product[2] + product[3]), alpha = shared_.x[0];
    const R rest = group_sum<N>(below && lane_ != k + 1 ? abs2(x) : R(0)),
            energy = group_sum<N>(real_part(cmadd(x, q, zero<T>())));
    const R q_first = broadcast<N>(real_part(q), k + 1), a_first = broadcast<N>(real_part(a[1]), k + 1);
    reflector<T> h = {zero<T>(), R(0), R(1), zero<T>()};
    if (abs2_add(alpha, rest) > least2_of_step<R>) h = larfg(alpha, rest, R(1), false);
    const R most = fused(h.beta, fused(h.beta, a_first, -2 * q_first), energy) * abs2(h.scale); /* v^H A v */
    const T v = lane_ == k + 1 ? one<T>()
                : below        ? x * h.scale
                               : zero<T>(),
            av = h.scale * madd(make<T>(-h.beta), a[1], q),
            w = below ? madd(h.tau, av, scaled(v, R(-0.5) * abs2(h.tau) * most)) : zero<T>();
    shared_.entries[place] = {v, w};
    shared_.vectors[k * N + lane_] = v;
    if (lane_ == k) {
      shared_.e[k] = h.beta;
      shared_.tau[k] = h.tau;
    }
    warp_sync();
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
      const auto other = shared_.entries[j];
      a[j] = updated(a[j + 1], v, w, other.v, other.w);
    }
  }

  reduced_rows<T, N> &shared_;
  int lane_;
};

} // namespace bqr

#endif
