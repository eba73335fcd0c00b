/* SPDX-License-Identifier: BSD-3-Clause */
/* QR with column pivoting of a member that a block of threads holds in registers. A lane has ROWS rows of one
 * column; row r of a column is the warp r % W's, W being as many warps as the rows need, so that a
 * reflector's products with all columns are sums within lanes and, where W > 1, over W numbers in shared
 * memory. A step shifts the registers of the warp whose row is done, so that rows that are left come first.
 * Norms are summed up anew in each step, as in pivoted_qr. */
#ifndef BQR_KERNELS_COMMON_PANEL_HELD_QR_CUH
#define BQR_KERNELS_COMMON_PANEL_HELD_QR_CUH

#include "longest.cuh"
#include "pivoted_qr.cuh"

namespace bqr {

/* Rows of a lane that are worked on together, or skipped together once they are done. */
constexpr int held_group = 8;

BQR_INLINE int held_row_warps(int m, int rows) { return m > rows ? (m - 1) / rows + 1 : 1; }
/* Warps for a member of m x n. */
BQR_INLINE int held_warps(int m, int n, int rows) {
  return held_row_warps(m, rows) * (n > warp_lanes ? (n - 1) / warp_lanes + 1 : 1);
}

/* What the threads tell one another, for members of up to m x n. */
template <class T> struct held_space {
  T *column;        /* the pivot's: that of each row's warp, rows after one another */
  T *dots;          /* of it and each column: of each row's warp, columns after one another; of two steps */
  T *tops;          /* row j of each column */
  real_t<T> *norms; /* squared: as dots, but of one step; -1: the column is taken */

  BQR_INLINE static size_t bytes(int m, int n, int rows) {
    const size_t w = static_cast<size_t>(held_row_warps(m, rows)), cols = static_cast<size_t>(n);
    const size_t elements = w * static_cast<size_t>(rows) + (2 * w + 1) * cols;
    return (elements * sizeof(T) + w * cols * sizeof(real_t<T>) + 15) / 16 * 16;
  }
  BQR_INLINE static held_space at(void *memory, int m, int n, int rows) {
    const int w = held_row_warps(m, rows);
    held_space s;
    s.column = static_cast<T *>(memory);
    s.dots = s.column + w * rows;
    s.tops = s.dots + 2 * w * n;
    s.norms = reinterpret_cast<real_t<T> *>(s.tops + n);
    return s;
  }
};

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

/* A column's rows in the registers of a lane and of those with the same number in the other warps. */
template <class T, int ROWS> class held_column {
  using R = real_t<T>;
  static constexpr int groups = ROWS / held_group;

public:
  __device__ __forceinline__ held_column(int m, int n)
      : warps_(held_row_warps(m, ROWS)), warp_(warp_id() % warps_), first_(0),
        left_(m > warp_ ? (m - warp_ - 1) / warps_ + 1 : 0),
        col_(warp_id() / warps_ * warp_lanes + lane_id()), cols_(n) {}

  __device__ __forceinline__ int warps() const { return warps_; }
  __device__ __forceinline__ int warp() const { return warp_; }
  __device__ __forceinline__ int column() const { return col_; }
  __device__ __forceinline__ bool there() const { return col_ < cols_; }
  __device__ __forceinline__ int rows() const { return left_; }
  /* The row of the member that the i-th row here is. */
  __device__ __forceinline__ int row(int i) const { return (first_ + i) * warps_ + warp_; }

  /* f(i, element) for the rows that are left, and some that are zero; from: not for all before this row. */
  template <class F> __device__ __forceinline__ void for_rows(F &&f, int from = 0) {
#pragma unroll
    for (int g = 0; g < groups; g++)
      if (g * held_group < left_ && row((g + 1) * held_group - 1) >= from) {
#pragma unroll
        for (int i = g * held_group; i < (g + 1) * held_group; i++) f(i, x_[i]);
      }
  }
  /* row -> element */
  template <class F> __device__ __forceinline__ void fill(F &&f) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) x_[i] = i < left_ && there() ? f(row(i)) : zero<T>();
  }
  template <class F> __device__ __forceinline__ void drain(F &&f) const {
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      if (i < left_ && there()) f(row(i), x_[i]);
  }
  /* Drops the first row, which is returned. */
  __device__ __forceinline__ T shift() {
    const T top = x_[0];
#pragma unroll
    for (int g = 0; g < groups; g++)
      if (g * held_group < left_) {
#pragma unroll
        for (int i = g * held_group; i < (g + 1) * held_group; i++)
          x_[i] = i + 1 < ROWS ? x_[i + 1] : zero<T>();
      }
    first_++;
    left_--;
    return top;
  }

  /* conj(v)^T x, v: element i for the i-th row. */
  template <class F> __device__ __forceinline__ T dot(F &&v, int from = 0) {
    T sums[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
    for_rows([&](int i, T &x) { sums[i % 4] = cmadd(v(i), x, sums[i % 4]); }, from);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  /* x -= v w. Returns its squared norm. */
  template <class F> __device__ __forceinline__ R subtract(F &&v, T w, int from = 0) {
    R sums[4] = {0, 0, 0, 0};
    for_rows(
        [&](int i, T &x) {
          x = x - v(i) * w;
          sums[i % 4] = abs2_add(x, sums[i % 4]);
        },
        from);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

private:
  T x_[ROWS];
  int warps_, warp_; /* that share the rows; which this is */
  int first_, left_; /* rows that are done; that are left */
  int col_, cols_;
};

/* The steps of one member, with the results of pivoted_qr. ALONE: the block is one warp, whose lanes tell one
 * another without shared memory what they can. */
template <class T, int ROWS, bool ALONE> class held_qr {
  using R = real_t<T>;

public:
  __device__ __forceinline__ held_qr(const matrix_view<T> &a, const pivoting<T> &state,
                                     const held_space<T> &space, uint32_t *word)
      : a_(a), state_(state), space_(space), word_(word), x_(a.rows, a.cols), taken_(!x_.there()) {}

  /* See pivoted_qr::factor(). */
  __device__ int factor(int most, double abstol, double reltol, int exponent, bool whole_range) {
    x_.fill([&](int i) { return *a_.at(i, x_.column()); });
    tell_norm(x_.subtract([](int) { return zero<T>(); }, zero<T>()));
    sync();
    pivot<R> p = longest();
    R tolerance =
        static_cast<R>(fmax(times_power(abstol, exponent), reltol * sqrt(static_cast<double>(p.norm2))));
    int j = 0;
    for (; j < most; j++) {
      if (j > 0) p = longest();
      while (p.norm2 <= span<R>::least2) {
        const int more = whole_range ? bring_up() : 0;
        if (more == 0) return finish(j, exponent);
        exponent += more;
        tolerance = times_power(tolerance, more);
        p = longest();
      }
      /* a root is for the few that come near it */
      if (!(p.norm2 > R(1.01) * tolerance * tolerance) && !(sqrt(p.norm2) > tolerance)) break;
      if (thread_id() == 0) state_.exponent[j] = exponent;
      step(j, p.column);
    }
    return finish(j, exponent);
  }

private:
  static __device__ __forceinline__ void sync() {
    if (ALONE)
      warp_sync();
    else
      block_sync();
  }

  __device__ __forceinline__ void tell_norm(R norm2) {
    norm2_ = taken_ ? R(-1) : norm2;
    if (!ALONE && x_.there()) space_.norms[x_.warp() * a_.cols + x_.column()] = taken_ ? R(-1) : norm2;
  }

  __device__ __forceinline__ pivot<R> longest() const {
    if (ALONE) return longest_of_lanes(pivot<R>{norm2_, x_.column()});
    pivot<R> p = {R(-1), a_.cols};
    for (int col = lane_id(); col < a_.cols; col += warp_lanes) {
      R norm2 = 0;
#pragma unroll 4
      for (int w = 0; w < x_.warps(); w++) norm2 += space_.norms[w * a_.cols + col];
      if (norm2 > p.norm2) p = {norm2, col};
    }
    return longest_of_lanes(p);
  }

  __device__ __forceinline__ T total(const T *dots, int col) const {
    T sum = dots[col];
#pragma unroll 4
    for (int w = 1; w < x_.warps(); w++) sum = sum + dots[w * a_.cols + col];
    return sum;
  }

  __device__ __forceinline__ void step(int j, int column) {
    T *const xs = space_.column + x_.warp() * ROWS;
    const bool has_top = ALONE || x_.warp() == top_warp_;
    top_warp_ = top_warp_ + 1 == x_.warps() ? 0 : top_warp_ + 1;
    T top = zero<T>();
    if (has_top) {
      top = x_.shift();
      if (!ALONE && x_.there()) space_.tops[x_.column()] = top;
    }
    if (x_.column() == column) {
      taken_ = true;
      x_.for_rows([&](int i, T &x) { xs[i] = x; });
    }
    sync();
    if (ALONE || x_.column() / warp_lanes == column / warp_lanes)
      for (int i = lane_id(); i < x_.rows(); i += warp_lanes) *a_.at(x_.row(i), column) = xs[i];
    const auto v = [&](int i) { return xs[i]; };
    T dot = x_.dot(v), pivots_top = zero<T>(), pivots_dot = zero<T>();
    if (ALONE) {
      pivots_top = broadcast(top, column);
      pivots_dot = broadcast(dot, column);
    } else {
      if (x_.there()) space_.dots[x_.warp() * a_.cols + x_.column()] = dot;
      block_sync();
      pivots_top = space_.tops[column];
      pivots_dot = total(space_.dots, column);
    }
    const reflector<T> h = larfg(pivots_top, real_part(pivots_dot), R(1), false);
    if (thread_id() == 0) {
      state_.order[j] = column;
      state_.tau[j] = h.tau;
      state_.scale[j] = h.scale;
      state_.diagonal[j] = h.beta;
    }
    R norm2 = 0;
    if (!taken_) {
      if (!ALONE) {
        top = space_.tops[x_.column()];
        dot = total(space_.dots, x_.column());
      }
      const T w = conj(h.tau) * cmadd(h.scale, dot, top);
      if (has_top) *a_.at(j, x_.column()) = top - w;
      norm2 = x_.subtract(v, h.scale * w);
    }
    tell_norm(norm2);
    sync();
  }

  /* Multiplies what remains by a power of two, whose exponent is returned; 0: nothing remains. */
  __device__ __forceinline__ int bring_up() {
    uint32_t u = 0;
    if (!taken_) x_.for_rows([&](int, T &x) { u = greater(u, magnitude_or_one(x)); });
    u = block_max(word_, u);
    if (u == 0) return 0;
    const int more = exponent_to<T>(u, span<R>::top);
    const R half = times_power(R(1), more / 2), rest = times_power(R(1), more - more / 2);
    x_.for_rows([&](int, T &x) { x = scaled(scaled(x, half), rest); });
    tell_norm(x_.subtract([](int) { return zero<T>(); }, zero<T>()));
    sync();
    return more;
  }

  /* Columns that are not taken go back, behind the others. */
  __device__ __forceinline__ int finish(int rank, int exponent) {
    if (!taken_) x_.drain([&](int i, const T &x) { *a_.at(i, x_.column()) = x; });
    if (ALONE && x_.there()) space_.norms[x_.column()] = norm2_;
    sync();
    if (thread_id() == 0) {
      state_.exponent[rank] = exponent;
      int next = rank;
      for (int i = 0; i < a_.cols && next < a_.cols; i++)
        if (space_.norms[i] >= 0) state_.order[next++] = i;
    }
    block_sync();
    return rank;
  }

  matrix_view<T> a_;
  pivoting<T> state_;
  held_space<T> space_;
  uint32_t *word_;
  held_column<T, ROWS> x_;
  bool taken_;
  int top_warp_ = 0; /* that has the first of the rows that are left */
  R norm2_ = -1;     /* of the rows that this lane has; -1: its column is taken */
};

} // namespace bqr

#endif
