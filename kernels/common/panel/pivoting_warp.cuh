/* SPDX-License-Identifier: BSD-3-Clause */
/* QR with column pivoting of members of up to ROWS rows, by LANES lanes of a warp for each: a lane has a
 * column in its registers, of which the rows that are left come first. Reflectors' vectors go through shared
 * memory, and stay there.
 *
 * Norms are summed up anew in each step, while the columns are at hand, so that a reflector's numbers do not
 * wait for its products. The next pivot does not wait for these sums: it is chosen by norms downdated from
 * the step before, while the columns change. Where a downdated norm has lost digits, or two are about as
 * long, the new ones choose. */
#ifndef BQR_KERNELS_COMMON_PANEL_PIVOTING_WARP_CUH
#define BQR_KERNELS_COMMON_PANEL_PIVOTING_WARP_CUH

#include "columns.cuh"
#include "common/simt/tile.cuh"
#include "exponents.cuh"
#include "longest.cuh"

namespace bqr {

/* What a factorization is besides R, in shared memory. Position j of A P holds column order[j], and the
 * vector of reflector j is scale[j] times vector(j), of which the first element, row j's, counts as 1. */
template <class T, int ROWS, int COLS> struct warp_factors {
  static constexpr int steps = ROWS < COLS ? ROWS : COLS;
  alignas(16) T vectors[steps * ROWS];
  T tau[steps], scale[steps];
  int order[COLS];
  int exponent[steps + 1]; /* rows: R is 2^exponent times that of A; at the rank, what remains of A */

  __device__ __forceinline__ T *vector(int j) { return vectors + j * ROWS; }
};

/* How far to go: at most so many steps, and while the longest column is longer than abstol and reltol times
 * the longest of A. */
struct pivoting_limits {
  int most;
  double abstol, reltol;
};

template <class T, int ROWS, int LANES> class pivoting_warp {
  using R = real_t<T>;
  static constexpr int chains = 4;     /* of sums */
  static constexpr R lost = R(1) / 64; /* of a norm is left: digits are missing */

public:
  using factors = warp_factors<T, ROWS, LANES>;
  /* Steps that work on the same number of rows. */
  static constexpr int group = ROWS < 16 ? 4 : 8;
  static_assert(ROWS % group == 0, "rows are whole groups");

  __device__ __forceinline__ explicit pivoting_warp(factors &made)
      : lane_(lane_id() & (LANES - 1)), made_(made) {}

  /* Whether any member of the warp says so; each says it with all its lanes. */
  static __device__ __forceinline__ bool any_member(bool v) { return LANES == warp_lanes ? v : group_any(v); }
  /* The largest number of those that members say. */
  static __device__ __forceinline__ int most_of_members(int v) {
    return LANES == warp_lanes ? v : static_cast<int>(group_max(static_cast<uint32_t>(v)));
  }

  /* The lane's column: f(i), which is 0 from `rows` on. column: whether there is one. */
  template <class F> __device__ __forceinline__ void fill(int rows, bool column, F &&f) {
    rows_ = rows;
    taken_ = !column;
#pragma unroll
    for (int i = 0; i < ROWS; i++) a_[i] = f(i);
  }

  /* The lanes hold A times 2^exponent. entry(i, x) is told, in the columns' lanes, what R has in row i, and
   * what remains below R where it is not to the last column. Returns the rank. Members without columns or
   * rows take part, because all lanes do. */
  template <class F> __device__ __forceinline__ int run(const pivoting_limits &to, int exponent, F &&entry) {
    begin(to, exponent);
    const int most = most_of_members(going_ ? most_ : 0), rows = most_of_members(rows_);
    int j = 0;
    while (any_member(going_)) {
      bool settled = true;
      static_for<ROWS / group>([&](auto g) {
        constexpr int left = ROWS - decltype(g)::value * group;
#pragma unroll 1
        while (settled && j < most && rows - j > left - group) {
          settled = step<left>(j, entry);
          j += settled;
        }
      });
      const bool more = settled ? false : reconsider(j);
      if (going_ && !more) end(j, entry);
    }
    tell_order();
    return rank_;
  }

private:
  __device__ __forceinline__ void begin(const pivoting_limits &to, int exponent) {
    sum_up();
    pivot_ = longest_lane<LANES>(norm2_);
    const double longest2 = static_cast<double>(broadcast<LANES>(norm2_, pivot_));
    const double absolute = to.abstol > 0 ? times_power(to.abstol, exponent) : 0;
    set_tolerance(static_cast<R>(to.reltol > 0 ? fmax(absolute, to.reltol * sqrt(longest2)) : absolute));
    exponent_ = exponent;
    most_ = to.most;
    going_ = most_ > 0;
  }

  __device__ __forceinline__ void set_tolerance(R tolerance) {
    tolerance_ = tolerance;
    bound2_ = fmax(R(1.01) * tolerance * tolerance, span<R>::least2);
  }
  /* Whether that is a pivot's squared norm; a root is for the few that come near the tolerance. */
  __device__ __forceinline__ bool long_enough(R norm2) const {
    return norm2 > bound2_ || (norm2 > span<R>::least2 && sqrt(norm2) > tolerance_);
  }

  __device__ __forceinline__ void sum_up() {
    R sums[chains] = {};
#pragma unroll
    for (int i = 1; i < ROWS; i++) sums[i % chains] = abs2_add(a_[i], sums[i % chains]);
    set_norm((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  __device__ __forceinline__ void set_norm(R rest2) {
    rest2_ = rest2;
    norm2_ = taken_ ? R(-1) : abs2_add(a_[0], rest2);
  }

  /* Step j, of LEFT rows at most. False: nothing is done, because some member may have no pivot. */
  template <int LEFT, class F> __device__ __forceinline__ bool step(int j, F &&entry) {
    const bool pivots = lane_ == pivot_;
    T x[LEFT];
#pragma unroll
    for (int i = 0; i < LEFT; i++) x[i] = a_[i];
    if (pivots && going_) column_write<0>(made_.vector(j), x);
    warp_sync();
    column_read<0>(x, made_.vector(j));
    const R rest2 = broadcast<LANES>(rest2_, pivot_);
    T dots[chains] = {};
#pragma unroll
    for (int i = 1; i < LEFT; i++) dots[i % chains] = cmadd(x[i], a_[i], dots[i % chains]);
    const R norm2 = abs2_add(x[0], rest2);
    if (any_member(going_ && (j >= most_ || !(norm2 > bound2_))))
      if (any_member(going_ && (j >= most_ || !long_enough(norm2)))) return false;
    const column_reflector<T> h = larfg_in_range(x[0], rest2);
    /* H^H y = y - w v; v = scale x */
    const T of_top = conj(h.tau), of_dot = of_top * conj(h.scale),
            dot = (dots[0] + dots[1]) + (dots[2] + dots[3]);
    const T w = madd(of_dot, dot, of_top * a_[0]);
    const T minus = -madd(h.scale * of_dot, dot, (h.scale * of_top) * a_[0]);
    const T r = pivots ? make<T>(h.beta) : a_[0] - w;
    if (going_ && !taken_) entry(j, r);
    if (pivots && going_) {
      taken_ = true;
      made_.tau[j] = h.tau;
      made_.scale[j] = h.scale;
      made_.order[j] = lane_;
      made_.exponent[j] = exponent_;
    }
    const R left2 = taken_ ? R(-1) : norm2_ - abs2(r);
    const unsigned next = longest_lanes<LANES>(left2);
    const unsigned doubts = member_votes<LANES>(!taken_ && left2 < lost * norm2_);
    R sums[chains] = {};
#pragma unroll
    for (int i = 1; i < LEFT; i++) {
      a_[i - 1] = madd(x[i], minus, a_[i]);
      if (i > 1) sums[i % chains] = abs2_add(a_[i - 1], sums[i % chains]);
    }
    a_[LEFT - 1] = zero<T>();
    set_norm((sums[0] + sums[1]) + (sums[2] + sums[3]));
    pivot_ = first_of(next);
    const bool doubt = doubts != 0 || several(next);
    if (any_member(doubt)) {
      const int sure = longest_lane<LANES>(norm2_);
      if (doubt) pivot_ = sure;
    }
    return true;
  }

  /* Where sums of squares are too small to work with, what remains is multiplied by a power of two. Returns
   * whether the member has a pivot, or may have one now. */
  __device__ __forceinline__ bool reconsider(int j) {
    warp_sync(); /* the vector has been read */
    const R before = broadcast<LANES>(norm2_, pivot_);
    const bool may = going_ && j < most_, tiny = may && !(before > span<R>::least2);
    uint32_t u = 0;
    if (tiny && !taken_) {
#pragma unroll
      for (int i = 0; i < ROWS; i++) u = greater(u, magnitude_or_one(a_[i]));
    }
    u = member_max<LANES>(u);
    const int more = tiny && u ? exponent_to<T>(u, span<R>::top) : 0;
    if (more) {
      const R half = exponent_scale<R>(more / 2), rest = exponent_scale<R>(more - more / 2);
#pragma unroll
      for (int i = 0; i < ROWS; i++) a_[i] = scaled(scaled(a_[i], half), rest);
      exponent_ += more;
      set_tolerance(times_power(tolerance_, more));
      sum_up();
    }
    const int longest = longest_lane<LANES>(norm2_);
    if (more) pivot_ = longest; /* else as it is, whatever other members of the warp need */
    const R norm2 = broadcast<LANES>(norm2_, pivot_);
    return may && (more || long_enough(norm2));
  }

  template <class F> __device__ __forceinline__ void end(int rank, F &&entry) {
    going_ = false;
    rank_ = rank;
    if (lane_ == 0) made_.exponent[rank] = exponent_;
    if (taken_) return;
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      if (i < rows_ - rank) entry(rank + i, a_[i]);
  }

  /* Columns that are not taken, behind the others. */
  __device__ __forceinline__ void tell_order() {
    const unsigned others = member_votes<LANES>(!taken_);
    if (!taken_) made_.order[rank_ + __popc(others & ((1u << lane_) - 1))] = lane_;
  }

  T a_[ROWS];
  R rest2_,
      norm2_; /* squared, of the column's rows that are left, without the first and with it; -1: taken */
  R tolerance_, bound2_;
  bool taken_, going_ = false;
  int lane_, pivot_, rows_, most_, exponent_, rank_ = 0;
  factors &made_;
};

} // namespace bqr

#endif
