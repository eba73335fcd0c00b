/* SPDX-License-Identifier: BSD-3-Clause */
/* The reflectors of a tall real member of up to 32 columns from the Cholesky factor R that its order was
 * found by, in A's place and in one pass over A P.
 *
 * Columns are eliminated, those of H - S R above C = I: H being A P's first n rows, S signs. Column k of that
 * is in the end V's head below row k, and above it column k of C, with which V's tail is that of A P times C.
 * (Ballard, Demmel et al., Reconstructing Householder vectors from tall-skinny QR, 2014;
 * families/geqrf/narrow_cholesky.cuh does it without pivots.) A thread has a column.
 *
 * Digits are lost where little is left of a column, and where a column of C is long. The member then keeps A
 * P. */
#ifndef BQR_KERNELS_PIVOTS_PIVOTS_MEMBER_QR_CUH
#define BQR_KERNELS_PIVOTS_PIVOTS_MEMBER_QR_CUH

#include "pivots_member.cuh"

namespace bqr {

/* How much larger a column's squared norm may be than what is left of it, and the squares that a column of V
 * is a sum of than V's. Double precision has digits to spare for single. */
template <class T> struct member_losses;
template <> struct member_losses<float> { static constexpr double cancelled = 0x1p16, lost = 0x1p20; };
template <> struct member_losses<double> { static constexpr double cancelled = 4, lost = 32; };

/* In shared memory. */
template <int N> struct member_qr_memory {
  static constexpr int ld = N + 2;
  using S = member_shape<double, N>;
  alignas(16) double earlier[(N - 1) / S::panel * N * S::ld + 2]; /* R's first panels */
  alignas(16) double pivot[2][N + 2]; /* the column, its size, R's diagonal entry */
  double sign[N];
  alignas(16) double c[N * ld]; /* C, a column after the other */
  int order[N];
  bool fails;
};

template <class T, int N> class member_qr {
  using S = member_shape<double, N>;
  using memory = member_qr_memory<N>;

public:
  static_assert(N <= 2 * S::panel, "two panels");

  __device__ __forceinline__ member_qr(const matrix_view<T> &a, member_memory<double, N> &s, memory &q)
      : a_(a), s_(s), q_(q) {}

  /* By all threads, with the order in s.place. False: nothing is done. */
  __device__ __forceinline__ bool run(T *tau) {
    if (thread_id() == 0) q_.fails = false;
    if (thread_id() < a_.cols) q_.order[s_.place[thread_id()]] = thread_id();
    block_sync();
    if (warp_id() < S::choosing) {
      double x[N], tau_of = 0;
      if (!eliminate(x, tau_of)) q_.fails = true;
      columns_sync();
      if (!q_.fails) {
        store_head(x);
        if (thread_id() < a_.cols) tau[thread_id()] = static_cast<T>(tau_of);
      }
    }
    block_sync();
    if (q_.fails) return false;
    form_tail();
    return true;
  }

private:
  static __device__ __forceinline__ void columns_sync() {
    if (S::choosing > 1)
      named_sync(1, S::choosing * warp_lanes);
    else
      warp_sync();
  }

  /* R(k, k) is the root of what was left of column k. */
  __device__ __forceinline__ double r(int k) const {
    const int j = thread_id();
    if (k > j || j >= a_.cols) return 0;
    if (k == j) return sqrt(s_.pivots2[k]);
    const bool early = k < (a_.cols - 1) / S::panel * S::panel;
    return (early ? q_.earlier : s_.factor)[q_.order[j] * S::ld + k % S::panel];
  }

  /* Column thread_id(). Whether no digits are lost. */
  __device__ __forceinline__ bool eliminate(double (&x)[N], double &tau) {
    const int j = thread_id(), n = a_.cols;
    const bool mine = j < n;
    const int column = mine ? q_.order[j] : 0;
    const T *const from = a_.at(0, column);
    const double own2 = mine ? s_.first2[column] : 0;
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = mine && i < n ? static_cast<double>(from[i]) : 0;
    const double beta2 = mine ? s_.pivots2[j] : 1, beta = sqrt(beta2);
    double size = own2 * (1 / member_losses<T>::lost), own_pivot = 1;
    bool good = own2 * (1 / member_losses<T>::cancelled) <= beta2;
    static_for<N>([&](auto step) {
      constexpr int k = decltype(step)::value;
      if (k >= n) return;
      double *const pivot = q_.pivot[k % 2];
      if (j == k) {
#pragma unroll
        for (int i = 0; i < N; i += 2) write_two(pivot + i, {x[i], x[i + 1]});
        write_two(pivot + N, {size, beta});
      }
      columns_sync();
      const double head = pivot[k], size_of = pivot[N], diagonal = pivot[N + 1];
      const double turn = copysign(1.0, -head), divisor = head - turn * diagonal;
      if (j == k) {
        q_.sign[k] = turn;
        own_pivot = divisor;
        tau = fabs(divisor) * fast_recip(diagonal);
        good = good && fabs(head) < (1 - 0x1p-16) * diagonal; /* else there may be nothing in the tail */
      }
      const double factor = j > k && mine ? (x[k] - turn * r(k)) * fast_recip(divisor) : 0;
      size = fused(factor * factor, size_of, size);
#pragma unroll
      for (int i = 0; i < N; i += 2) {
        double two[2];
        read_two(two, pivot + i);
        if (i != k) x[i] = fused(-factor, two[0], x[i]);
        if (i + 1 != k) x[i + 1] = fused(-factor, two[1], x[i + 1]);
      }
      if (j > k) x[k] = -factor;
    });
    good = good && size <= beta2;
    const double scale = fast_recip(own_pivot);
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = x[i] * scale;
#pragma unroll
    for (int i = 0; i < N; i++)
      if (j < N) q_.c[j * memory::ld + i] = !mine || i > j ? 0 : i == j ? scale : x[i];
    return !mine || good;
  }

  /* V's rows from n on, 16 for a warp at a time. */
  __device__ __forceinline__ void form_tail() const {
    constexpr int tiles = N / 8;
    const int g = lane_id() / 4, q = lane_id() % 4, n = a_.cols;
    int64_t from[tiles][2];
    constexpr bool holds = N <= 32; /* C in registers */
    double c[holds ? tiles : 1][holds ? tiles : 1][2];
    auto from_memory = [&](int k, int j, int e) {
      return q_.c[(8 * j + g) * memory::ld + 8 * k + 2 * q + e];
    };
#pragma unroll
    for (int k = 0; k < tiles; k++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int col = 8 * k + 2 * q + e;
        from[k][e] = (col < n ? q_.order[col] : 0) * a_.ld;
#pragma unroll
        for (int j = k; holds && j < tiles; j++) c[holds ? k : 0][holds ? j : 0][e] = from_memory(k, j, e);
      }
#pragma unroll 1
    for (int row = n + 16 * warp_id(); row < a_.rows; row += 16 * S::warps) {
      double x[tiles][4];
#pragma unroll
      for (int k = 0; k < tiles; k++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int i = row + g + 8 * (e / 2);
          x[k][e] =
              i < a_.rows && 8 * k + 2 * q + e % 2 < n ? static_cast<double>(a_.data[i + from[k][e % 2]]) : 0;
        }
      warp_sync();
#pragma unroll
      for (int j = 0; j < tiles; j++) {
        piece_sums<double> v;
#pragma unroll
        for (int k = 0; k <= j; k++) {
          if (holds)
            v.add(x[k], c[holds ? k : 0][holds ? j : 0]);
          else
            v.add(x[k], {from_memory(k, j, 0), from_memory(k, j, 1)});
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int i = row + g + 8 * (e / 2), col = 8 * j + 2 * q + e % 2;
          if (i < a_.rows && col < n) *a_.at(i, col) = static_cast<T>(v.get(e));
        }
      }
    }
  }

  /* R above V. */
  __device__ __forceinline__ void store_head(const double (&x)[N]) const {
    const int j = thread_id();
#pragma unroll
    for (int i = 0; i < N; i++)
      if (i < a_.cols && j < a_.cols) *a_.at(i, j) = static_cast<T>(i > j ? x[i] : q_.sign[i] * r(i));
  }

  const matrix_view<T> &a_;
  member_memory<double, N> &s_;
  memory &q_;
};

} // namespace bqr

#endif
