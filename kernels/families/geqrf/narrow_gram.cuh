/* SPDX-License-Identifier: BSD-3-Clause */
/* The reflectors of a panel [H; A] of N columns, H its first N rows, by one warp and from H and the products
 * G = H^H H + A^H A alone.
 *
 * Reflectors do not change products of columns. With row k of R taken out after reflector k, G(k, j) / beta_k
 * is R(k, j), and what is left of G are the products of the columns from row k + 1 on: no sums are formed. H
 * takes the updates of the reflectors, and so does C, with which V is A C: row k of C, an upper triangle,
 * takes the place of row k of H, which is R's then. The next column's norm and head come first and are known
 * to all lanes, so that a step waits for little more than a reciprocal square root or a reciprocal.
 *
 * What this loses in accuracy is cancellation: in a column's squared norm, and in a column of A C. Where the
 * first falls below a part of what it was, or of the squares of what A C is a sum of, the rest is to be made
 * from the products of what H and A C are by then.
 *
 * The matrices are one warp's, 32 / N lanes to a column, which take its rows in turn. */
#ifndef BQR_KERNELS_FAMILIES_GEQRF_NARROW_GRAM_CUH
#define BQR_KERNELS_FAMILIES_GEQRF_NARROW_GRAM_CUH

#include "common/panel/columns.cuh"
#include "common/simt/fragment.cuh"
#include "common/ptx/approximate.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

template <class T, int N> class gram_panel {
  using real = real_t<T>;
  static constexpr int lanes = warp_lanes / N, rows = N / lanes; /* of a column, of a lane */
  /* How much larger than a column's squared norm may be: what it was, and that of what A C is a sum of. */
  static constexpr real most_cancelled = 4, most_lost = 32;

public:
  static constexpr int small_stride = N + 2; /* of columns in shared memory: free of bank conflicts */
  struct storage {
    struct {
      alignas(16) T m[lanes][rows], p[lanes][rows], next[4];
      real size;
    } pivot[2];              /* column, used in turn */
    T tau[N], scale[N];      /* of the reflectors that there are */
    bool filled[warp_lanes]; /* by lanes: whether A is not zero in their column */
  };

  /* x: H, columns `stride` elements apart; it becomes R above V. small: G, of a complex matrix perhaps only
   * its real part and, in place of the imaginary part, what this is minus the transpose of; it becomes C. */
  __device__ __forceinline__ gram_panel(storage &s, T *x, int stride, T *small)
      : s(s), x_(x + column() * stride), small_(small + column() * small_stride), stride_(stride) {}

  /* Makes reflectors from number `first` on, before which it has made those; returns how many
   * there are then. filled: bit j: column j of A is not zero. */
  template <bool PARTS> __device__ __forceinline__ int make(int first, int count, uint32_t filled) {
    int top = first / lanes; /* of the first registers' rows: they move up */
    start<PARTS>(first, top, count);
    all_filled_ = filled == ~0u;
    filled_ = first == 0 ? filled >> column() & 1 : s.filled[lane_id()];
    done_ = first;
    end_ = count;
#pragma unroll 1
    for (; lanes * top < end_; top++) {
      static_for<lanes>([&](auto u) {
        const int k = lanes * top + decltype(u)::value;
        if (k >= first && k < end_) step<decltype(u)::value>(k);
      });
      move_up(m_);
      move_up(p_);
    }
    s.filled[lane_id()] = filled_;
    warp_sync();
    put(top, done_ == count);
    return done_;
  }

  /* Of this lane's column, when all are made. */
  __device__ __forceinline__ T tau() const { return s.tau[column()]; }
  __device__ __forceinline__ static int column() { return lane_id() / lanes; }
  __device__ __forceinline__ static bool has_tau() { return lane_id() % lanes == 0; }

private:
  __device__ __forceinline__ static int row(int r) { return lanes * r + lane_id() % lanes; }

  template <bool PARTS> __device__ __forceinline__ void start(int first, int top, int count) {
    const int g = column();
#pragma unroll
    for (int r = 0; r < rows; r++) {
      const int j = row((top + r) % rows);
      m_[r] = j >= first || j > g ? x_[j] : zero<T>();
      p_[r] = small_[j];
      if (j == g && g >= count) p_[r] = one<T>(); /* no reflectors are wanted from there on */
      if constexpr (PARTS) p_[r].im -= small_[g + (j - g) * small_stride].im;
    }
    const real own2 = real_part(small_[g]);
    size_ = own2 * (1 / most_lost);
    least_ = own2 * (1 / most_cancelled);
    alpha_ = x_[first + (first - g) * stride_];
    norm2_ = real_part(small_[first + (first - g) * small_stride]);
    guess_ = estimated_rsqrt(norm2_);
  }

  /* Reflector k, number U of those that are made at once. */
  template <int U> __device__ __forceinline__ void step(int k) {
    constexpr int odd = U % lanes, at = U / lanes;                              /* of row k: lane, register */
    constexpr int next_odd = (U + 1) % lanes, next_at = (U + 1) / lanes % rows; /* of row k + 1 */
    constexpr int left = odd + 1 < lanes ? at : at + 1;                         /* rows of p below row k */
    const int g = column(), h = lane_id() % lanes;
    auto &pivot = s.pivot[U & 1];
    if (g == k) {
      write(pivot.m[h], m_, 0);
      write(pivot.p[h], p_, left);
      pivot.size = size_;
    }
    if (g == k + 1) {
      if (h == odd) write_two(pivot.next, {m_[at], p_[at]});
      if (h == next_odd) write_two(pivot.next + 2, {m_[next_at], p_[next_at]});
    }
    const T own = broadcast<lanes>(m_[at], odd), product = broadcast<lanes>(p_[at], odd);
    const bool negligible = norm2_ < column_range<real>::tail;
    const real near = norm2_ * guess_, e = fused(-near, guess_, real(1));
    const real rnorm = refined_rsqrt(guess_, e), norm = refined_rsqrt(near, e);
    warp_sync();
    T next_row[2], next_corner[2], m[rows], p[rows];
    read_two(next_row, pivot.next);
    read_two(next_corner, pivot.next + 2);
    const T below = pivot.m[next_odd][next_at];
    const real pivot_size = pivot.size;
    read(m, pivot.m[h], 0);
    read(p, pivot.p[h], left);

    const T next_part = scaled(next_row[1], rnorm);
    norm2_ = real_part(next_corner[1]) - abs2(next_part);
    guess_ = estimated_rsqrt(norm2_);
    const real turn = copysign(real(1), -real_part(alpha_));
    reflector h_k = reflector_of(alpha_, near, norm, rnorm, turn);
    T of_r = scaled(product, turn * rnorm), share = scaled(product, -rnorm * rnorm);
    bool pivot_filled = true;
    if (negligible || !all_filled_) {
      bool identity = negligible;
      pivot_filled = broadcast(static_cast<int>(filled_), lanes * k) != 0;
      if (!pivot_filled) {
        bool rest = imag_part(alpha_) != 0;
#pragma unroll
        for (int r = 0; r < rows; r++)
          rest |= k - odd + lanes * (r - at) + h < N && (r == at ? h > odd : r > at) && !is_zero(m[r]);
        identity |= !group_any(rest);
      }
      if (identity) {
        h_k = {tau_of_identity(alpha_), zero<T>(), bqr::make<T>(real_part(alpha_))};
        of_r = own;
      }
      if (negligible) share = zero<T>();
    }
    const T factor = g > k ? h_k.scale * (of_r - own) : zero<T>();
    alpha_ = madd(h_k.scale * (scaled(next_part, turn) - next_row[0]), below, next_corner[0]);
    size_ = fused(abs2(factor), pivot_size, size_);
    const bool lost = group_any(g == k + 1 && !(size_ <= norm2_ && least_ <= norm2_));
    if (!all_filled_ && !is_zero(factor)) filled_ |= pivot_filled;
    if (h == odd) m[at] = zero<T>();
#pragma unroll
    for (int r = 0; r < rows; r++) {
      m_[r] = madd(factor, m[r], m_[r]);
      if (r >= left) p_[r] = madd(share, p[r], p_[r]);
    }
    if (h == odd) {
      if (g > k) m_[at] = factor;
      if (g >= k) x_[k] = g == k ? h_k.beta : of_r;
    }
    if (g == k && h == 0) {
      s.tau[k] = h_k.tau;
      s.scale[k] = h_k.scale;
    }
    done_ = k + 1;
    if (negligible || lost) end_ = done_;
  }

  struct reflector {
    T tau, scale, beta;
  };
  /* H^H (alpha; x) = (beta; 0); norm: that of both, near: an estimate of it, rnorm: its reciprocal, turn: the
   * sign of beta. */
  __device__ __forceinline__ static reflector reflector_of(T alpha, real near, real norm, real rnorm,
                                                           real turn) {
    const real ar = fabs(real_part(alpha)), ai = imag_part(alpha), d = ar + norm, near_d = ar + near;
    reflector h = {bqr::make<T>(fused(ar, rnorm, real(1))), zero<T>(), bqr::make<T>(turn * norm)};
    if constexpr (is_complex<T>) {
      real z = estimated_recip(fused(near_d, near_d, ai * ai));
      z = refined_recip(z, fused(-fused(d, d, ai * ai), z, real(1)));
      h.tau.im = -ai * (turn * rnorm);
      h.scale = {-turn * (d * z), -ai * z};
    } else {
      const real z = estimated_recip(near_d) * -turn;
      h.scale = refined_recip(z, fused(turn * d, z, real(1)));
    }
    return h;
  }

  __device__ __forceinline__ static void write(T *to, const T (&x)[rows], int from) {
#pragma unroll
    for (int r = 0; r < rows; r += 2)
      if (r + 1 >= from) write_two(to + r, {x[r], x[r + 1]});
  }
  __device__ __forceinline__ static void read(T (&x)[rows], const T *from, int first) {
#pragma unroll
    for (int r = 0; r < rows; r += 2)
      if (r + 1 >= first) {
        T pair[2];
        read_two(pair, from + r);
        x[r] = pair[0];
        x[r + 1] = pair[1];
      }
  }
  __device__ __forceinline__ static void move_up(T (&x)[rows]) {
    T old[rows];
#pragma unroll
    for (int r = 0; r < rows; r++) old[r] = x[r];
#pragma unroll
    for (int r = 0; r < rows; r++) x[r] = old[(r + 1) % rows];
  }

  /* C, and V below R, with its scale if it is all. */
  __device__ __forceinline__ void put(int top, bool all) {
    const int g = column();
    const T scale = all && g < done_ ? s.scale[g] : zero<T>();
#pragma unroll
    for (int r = 0; r < rows; r++) {
      const int j = row((top + r) % rows);
      T c = j < g && j < done_ ? m_[r] : bqr::make<T>(j == g);
      if (all) {
        c = c * scale;
        m_[r] = m_[r] * scale;
      }
      small_[j] = j <= g ? c : zero<T>();
      if (j > g || (j >= done_ && !all)) x_[j] = m_[r];
    }
  }

  storage &s;
  T *x_, *small_;
  int stride_;
  T m_[rows]; /* C above the rest of H */
  T p_[rows]; /* products of the columns that are left */
  T alpha_;   /* of the next column: its head, squared norm, and an estimate of 1 / norm */
  real norm2_, guess_;
  real size_, least_;        /* what this lane's column's squared norm must not fall below */
  bool all_filled_, filled_; /* whether A is zero in this lane's column */
  int done_, end_;
};

} // namespace bqr

#endif
