/* SPDX-License-Identifier: BSD-3-Clause */
/* The reflectors of a tall real member of up to 32 columns from the Cholesky factor R that its order was
 * found by, in A's place and in one pass over A P.
 *
 * Columns are eliminated, those of H - S R above C = I: H being A P's first n rows, S signs. Column k of that
 * is in the end V's head below row k, and above it column k of C, with which V's tail is that of A P times C.
 * (Ballard, Demmel et al., Reconstructing Householder vectors from tall-skinny QR, 2014;
 * families/geqrf/narrow_cholesky.cuh does it without pivots.) One warp does that, a lane for each column.
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
  alignas(16) double pivot[2][N];
  alignas(16) double c[N * ld]; /* C, a column after the other */
  int order[N];
  bool done;
};

template <class T, int N> class member_qr {
  using S = member_shape<double, N>;
  using memory = member_qr_memory<N>;

public:
  static_assert(N <= warp_lanes, "a lane for each column");

  __device__ __forceinline__ member_qr(const matrix_view<T> &a, member_memory<double, N> &s, memory &q)
      : a_(a), s_(s), q_(q) {}

  /* By all threads, with the order in s.place; ends with a barrier. False: nothing is done. */
  __device__ __forceinline__ bool run(T *tau) {
    if (thread_id() < a_.cols) q_.order[s_.place[thread_id()]] = thread_id();
    warp_sync();
    if (warp_id() == 0) {
      double x[N], sign = 1, tau_of = 0;
      const bool good = eliminate(x, sign, tau_of);
      if (good) {
        store_head(x, sign);
        if (lane_id() < a_.cols) tau[lane_id()] = static_cast<T>(tau_of);
      }
      if (lane_id() == 0) q_.done = good;
    }
    block_sync();
    if (!q_.done) return false;
    form_tail();
    return true;
  }

private:
  /* R(k, k) is the root of what was left of column k. */
  __device__ __forceinline__ double r(int k) const {
    const int j = lane_id();
    return k < j && j < a_.cols ? s_.factor[q_.order[j] * S::ld + k] : k == j ? sqrt(s_.pivots2[k]) : 0;
  }

  /* Column lane_id(). */
  __device__ __forceinline__ bool eliminate(double (&x)[N], double &sign, double &tau) {
    const int j = lane_id(), n = a_.cols;
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
      }
      const double head = broadcast(x[k], k), diagonal = broadcast(beta, k), size_of = broadcast(size, k);
      const double turn = copysign(1.0, -head), divisor = head - turn * diagonal;
      warp_sync();
      if (j == k) {
        sign = turn;
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
    return !group_any(mine && !good);
  }

  /* V's rows from n on, 16 for a warp at a time. */
  __device__ __forceinline__ void form_tail() const {
    constexpr int tiles = N / 8;
    const int g = lane_id() / 4, q = lane_id() % 4, n = a_.cols;
    int64_t from[tiles][2];
    double c[tiles][tiles][2];
#pragma unroll
    for (int k = 0; k < tiles; k++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int col = 8 * k + 2 * q + e;
        from[k][e] = (col < n ? q_.order[col] : 0) * a_.ld;
#pragma unroll
        for (int j = k; j < tiles; j++) c[k][j][e] = q_.c[(8 * j + g) * memory::ld + col];
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
        for (int k = 0; k <= j; k++) v.add(x[k], c[k][j]);
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int i = row + g + 8 * (e / 2), col = 8 * j + 2 * q + e % 2;
          if (i < a_.rows && col < n) *a_.at(i, col) = static_cast<T>(v.get(e));
        }
      }
    }
  }

  /* R above V. */
  __device__ __forceinline__ void store_head(const double (&x)[N], double sign) const {
    const int j = lane_id();
#pragma unroll
    for (int i = 0; i < N; i++) {
      const double of_row = broadcast(sign, i);
      if (i < a_.cols && j < a_.cols) *a_.at(i, j) = static_cast<T>(i > j ? x[i] : of_row * r(i));
    }
  }

  const matrix_view<T> &a_;
  member_memory<double, N> &s_;
  memory &q_;
};

} // namespace bqr

#endif
