/* SPDX-License-Identifier: BSD-3-Clause */
/* QR with column pivoting by a block of threads, in shared or in global memory. Columns stay where they are:
 * their order is written down. So does the pivot's column, which the reflector's vector is a multiple of:
 * nothing but the columns that are not taken yet is written, and a step has one barrier. Their norms are
 * summed up anew in each step, while they are at hand: none is downdated. */
#ifndef BQR_KERNELS_COMMON_PANEL_PIVOTED_QR_CUH
#define BQR_KERNELS_COMMON_PANEL_PIVOTED_QR_CUH

#include "common/matrix/view.cuh"
#include "common/simt/squad.cuh"
#include "exponents.cuh"
#include "larfg.cuh"
#include "longest.cuh"

namespace bqr {

/* What a factorization is besides its columns. Position j of A P holds column order[j], of which rows 0 ..
 * j-1 are R's, R(j,j) is diagonal[j], and the vector below it is scale[j] times what lies there. */
template <class T> struct pivoting {
  T *tau, *scale;
  real_t<T> *norms[2]; /* squared, of what remains of the columns; -1: taken. In turn. */
  real_t<T> *diagonal;
  int *order;
  int *exponent; /* rows: R is 2^exponent times that of A; at the rank, what remains of A */

  BQR_INLINE static size_t bytes(int n) {
    const size_t cols = static_cast<size_t>(n) + 1;
    return (cols * (2 * sizeof(T) + 3 * sizeof(real_t<T>) + 2 * sizeof(int)) + 15) / 16 * 16;
  }
  BQR_INLINE static pivoting at(void *memory, int n) {
    pivoting p;
    p.tau = static_cast<T *>(memory);
    p.scale = p.tau + n + 1;
    p.norms[0] = reinterpret_cast<real_t<T> *>(p.scale + n + 1);
    p.norms[1] = p.norms[0] + n + 1;
    p.diagonal = p.norms[1] + n + 1;
    p.order = reinterpret_cast<int *>(p.diagonal + n + 1);
    p.exponent = p.order + n + 1;
    return p;
  }
};

/* The longest column: of equally long ones the first. */
template <class R> struct pivot {
  R norm2;
  int column;
};

template <class R> __device__ __forceinline__ pivot<R> longest_column(const R *norms, int n) {
  pivot<R> p = {R(-1), n};
  for (int j = lane_id(); j < n; j += warp_lanes)
    if (norms[j] > p.norm2) p = {norms[j], j};
#pragma unroll
  for (int d = warp_lanes / 2; d > 0; d /= 2) {
    const pivot<R> other = {exchange(p.norm2, d), exchange(p.column, d)};
    if (other.norm2 > p.norm2 || (other.norm2 == p.norm2 && other.column < p.column)) p = other;
  }
  return p;
}

/* Of each lane's candidate, the longest: of equally long ones the first. */
template <class R> __device__ __forceinline__ pivot<R> longest_of_lanes(const pivot<R> &mine) {
  bool best = mine.norm2 >= 0;
  const uint32_t high = best ? magnitude(mine.norm2) : 0, highest = group_max(high);
  best = best && high == highest;
  if (sizeof(R) > sizeof(uint32_t)) {
    const uint32_t low = best ? low_bits(mine.norm2) : 0, most = group_max(low);
    best = best && low == most;
  }
  const uint32_t before = best ? ~static_cast<uint32_t>(mine.column) : 0, foremost = group_max(before);
  const int lane = first_lane(best && before == foremost);
  if (lane < 0) return {R(-1), mine.column};
  return {broadcast(mine.norm2, lane), broadcast(mine.column, lane)};
}

/* y := H^H y in rows j .. m-1, where H's vector is 1 and below that scale times x. Returns the squared norm
 * of what is below row j. Called with y null by squads without a column. ANY_RANGE: y has not been brought
 * into x's range: its products with x may overflow and those with scale underflow; those with H's vector do
 * neither. */
template <bool ANY_RANGE, class T>
__device__ __forceinline__ real_t<T> reflect(const squad &s, const T *x, T *y, int j, int m, T tau, T scale) {
  T dot = zero<T>(), top = zero<T>();
  real_t<T> norm2 = 0;
  if (y)
    for (int i = j + 1 + s.lane; i < m; i += s.lanes) dot = cmadd(ANY_RANGE ? scale * x[i] : x[i], y[i], dot);
  dot = squad_sum(s, dot);
  if (y) {
    const T w = conj(tau) * (ANY_RANGE ? dot + y[j] : cmadd(scale, dot, y[j])), ws = scale * w;
    top = y[j] - w;
    for (int i = j + 1 + s.lane; i < m; i += s.lanes) {
      const T z = y[i] - (ANY_RANGE ? scale * x[i] * w : x[i] * ws);
      y[i] = z;
      norm2 = abs2_add(z, norm2);
    }
  }
  norm2 = squad_sum(s, norm2);
  warp_sync(); /* all lanes have read y[j] */
  if (y && s.lane == 0) y[j] = top;
  return norm2;
}

template <class T>
__device__ __forceinline__ real_t<T> column_norm2(const squad &s, const T *x, int first, int m) {
  real_t<T> norm2 = 0;
  for (int i = first + s.lane; x && i < m; i += s.lanes) norm2 = abs2_add(x[i], norm2);
  return squad_sum(s, norm2);
}

/* Steps of one member. word: see block_max(). */
template <class T> class pivoted_qr {
  using R = real_t<T>;

public:
  __device__ __forceinline__ pivoted_qr(const matrix_view<T> &a, const matrix_view<T> &c,
                                        const pivoting<T> &state, const squad &s, uint32_t *word)
      : a_(a), c_(c), state_(state), squad_(s), word_(word) {}

  /* a holds A times 2^exponent; norms[0] are to be set. Steps until `most` or until the longest column is not
   * longer than abstol or reltol times the longest of A. whole_range: until then or until nothing but zeros
   * remain; else also where columns are below the span of sums of squares. Returns the rank. */
  __device__ int factor(int most, double abstol, double reltol, int exponent, bool whole_range) {
    pivot<R> p = longest_column(state_.norms[0], a_.cols);
    /* of the type, times 2^exponent */
    R tolerance =
        static_cast<R>(fmax(times_power(abstol, exponent), reltol * sqrt(static_cast<double>(p.norm2))));
    int j = 0;
    for (; j < most; j++) {
      const R *norms = state_.norms[j & 1];
      p = longest_column(norms, a_.cols);
      if (p.norm2 <= span<R>::least2) {
        if (!whole_range) break;
        const int more = bring_up(j);
        if (more == 0) break;
        exponent += more;
        tolerance = times_power(tolerance, more);
        j--;
        continue;
      }
      if (!(sqrt(p.norm2) > tolerance)) break;
      if (thread_id() == 0) state_.exponent[j] = exponent;
      step(j, p.column);
      block_sync();
    }
    if (thread_id() == 0) {
      state_.exponent[j] = exponent;
      int next = j;
      for (int i = 0; i < a_.cols; i++)
        if (state_.norms[j & 1][i] >= 0) state_.order[next++] = i;
    }
    block_sync();
    return j;
  }

  /* Sets norms[0]. */
  __device__ void sum_norms() {
    for_columns(squad_, a_.cols, [&](int col) {
      const R norm2 = column_norm2(squad_, col >= 0 ? a_.at(0, col) : nullptr, 0, a_.rows);
      if (col >= 0 && squad_.lane == 0) state_.norms[0][col] = norm2;
    });
  }

private:
  __device__ __forceinline__ void step(int j, int column) {
    const R *norms = state_.norms[j & 1];
    R *next = state_.norms[(j + 1) & 1];
    const T *x = a_.at(0, column);
    R below = 0;
    for (int i = j + 1 + lane_id(); i < a_.rows; i += warp_lanes) below = abs2_add(x[i], below);
    const reflector<T> h = larfg(x[j], group_sum(below), R(1), false);
    if (thread_id() == 0) {
      state_.order[j] = column;
      state_.tau[j] = h.tau;
      state_.scale[j] = h.scale;
      state_.diagonal[j] = h.beta;
    }
    for_columns(squad_, a_.cols, [&](int col) {
      const bool left = col >= 0 && col != column && norms[col] >= 0;
      const R norm2 = reflect<false>(squad_, x, left ? a_.at(0, col) : nullptr, j, a_.rows, h.tau, h.scale);
      if (col >= 0 && squad_.lane == 0) next[col] = left ? norm2 : R(-1);
    });
    for_columns(squad_, c_.cols, [&](int col) {
      reflect<true>(squad_, x, col >= 0 ? c_.at(0, col) : nullptr, j, a_.rows, h.tau, h.scale);
    });
  }

  /* Multiplies what remains in rows from j on by a power of two, whose exponent is returned; 0: nothing
   * remains. */
  __device__ int bring_up(int j) {
    R *norms = state_.norms[j & 1];
    uint32_t u = 0;
    for_columns(squad_, a_.cols, [&](int col) {
      for (int i = j + squad_.lane; col >= 0 && norms[col] >= 0 && i < a_.rows; i += squad_.lanes)
        u = greater(u, magnitude_or_one(*a_.at(i, col)));
    });
    u = block_max(word_, u);
    if (u == 0) return 0;
    const int more = exponent_to<T>(u, span<R>::top);
    for_columns(squad_, a_.cols, [&](int col) {
      T *x = col >= 0 && norms[col] >= 0 ? a_.at(0, col) : nullptr;
      for (int i = j + squad_.lane; x && i < a_.rows; i += squad_.lanes) x[i] = times_power(x[i], more);
      const R norm2 = column_norm2(squad_, x, j, a_.rows);
      if (x && squad_.lane == 0) norms[col] = norm2;
    });
    block_sync();
    return more;
  }

  matrix_view<T> a_, c_;
  pivoting<T> state_;
  squad squad_;
  uint32_t *word_;
};

} // namespace bqr

#endif
