/* SPDX-License-Identifier: BSD-3-Clause */
/* QR with column pivoting of a member that a block of threads holds in registers. A lane has ROWS rows of one
 * column; row r of a column is the warp r % W's, W being as many warps as the rows need, so that a
 * reflector's products with all columns are sums within lanes and over W numbers in shared memory. The warp
 * whose row is the next to be done has it apart, and its other rows move up while they change.
 *
 * Norms are downdated: all warps of a column do so alike, and need not tell one another. Where digits are
 * lost, all are summed up anew. Up to 32 columns, a step has one barrier, else two. */
#ifndef BQR_KERNELS_COMMON_PANEL_HELD_QR_CUH
#define BQR_KERNELS_COMMON_PANEL_HELD_QR_CUH

#include "columns.cuh"
#include "common/simt/tile.cuh"
#include "pivoted_qr.cuh"

namespace bqr {

/* Rows of a lane that are worked on together, or skipped together once they are done. */
constexpr int held_group = 8;

BQR_INLINE int held_row_warps(int m, int rows) { return m > rows ? (m - 1) / rows + 1 : 1; }
/* Warps for a member of m x n. */
BQR_INLINE int held_warps(int m, int n, int rows) {
  return held_row_warps(m, rows) * (n > warp_lanes ? (n - 1) / warp_lanes + 1 : 1);
}

/* The column that a warp would take. */
template <class R> struct held_offer {
  R norm2;
  int column; /* < 0: norms are to be summed up first */
};

/* What the threads tell one another, for members of up to m x n. */
template <class T> struct held_space {
  T *columns; /* pivots to choose from, of each row's warp rows after one another; of two steps */
  T *dots;    /* of the pivot and each column: of each row's warp, columns after one another; of two steps */
  T *tops;    /* row j of each column; of two steps */
  real_t<T> *norms;              /* squared, as the dots of one step; -1: the column is taken */
  held_offer<real_t<T>> *offers; /* of each 32 columns' warps; of two steps */

  BQR_INLINE static int groups(int n) { return n > warp_lanes ? (n - 1) / warp_lanes + 1 : 1; }
  BQR_INLINE static size_t columns_size(int m, int n, int rows) {
    return 2 * static_cast<size_t>(held_row_warps(m, rows)) * static_cast<size_t>(rows * groups(n));
  }
  BQR_INLINE static size_t bytes(int m, int n, int rows) {
    const size_t w = static_cast<size_t>(held_row_warps(m, rows)), cols = static_cast<size_t>(n);
    const size_t elements = columns_size(m, n, rows) + (2 * w + 2) * cols;
    const size_t rest = w * cols * sizeof(real_t<T>) + 16 + 2 * groups(n) * sizeof(held_offer<real_t<T>>);
    return (elements * sizeof(T) + rest + 15) / 16 * 16;
  }
  BQR_INLINE static held_space at(void *memory, int m, int n, int rows) {
    const size_t w = static_cast<size_t>(held_row_warps(m, rows)), cols = static_cast<size_t>(n);
    held_space s;
    s.columns = static_cast<T *>(memory);
    s.dots = s.columns + columns_size(m, n, rows);
    s.tops = s.dots + 2 * w * cols;
    s.norms = reinterpret_cast<real_t<T> *>(s.tops + 2 * cols);
    const size_t end = reinterpret_cast<uint64_t>(s.norms + w * cols);
    s.offers = reinterpret_cast<held_offer<real_t<T>> *>((end + 7) / 8 * 8);
    return s;
  }
};

/* A column's rows in the registers of a lane and of those with the same number in the other warps. */
template <class T, int ROWS> class held_column {
  using R = real_t<T>;
  static constexpr int groups = ROWS / held_group;

public:
  /* narrow: up to 32 columns, of which warps that are more than the rows need have no rows. */
  __device__ __forceinline__ held_column(int m, int n, bool narrow = false)
      : warps_(held_row_warps(m, ROWS)), warp_(narrow ? warp_id() : warp_id() % warps_), first_(0),
        left_(m > warp_ && warp_ < warps_ ? (m - warp_ - 1) / warps_ + 1 : 0),
        col_((narrow ? 0 : warp_id() / warps_ * warp_lanes) + lane_id()), cols_(n) {}

  __device__ __forceinline__ int warps() const { return warps_; }
  __device__ __forceinline__ int warp() const { return warp_; }
  __device__ __forceinline__ int column() const { return col_; }
  __device__ __forceinline__ bool there() const { return col_ < cols_; }
  /* Whether a lane of that number has rows of the column. */
  __device__ __forceinline__ bool shares() const { return there() && warp_ < warps_; }
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
    drop();
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

  /* Of LEFT rows at most, with vectors in shared memory, aligned to 16 bytes: */
  template <int LEFT> __device__ __forceinline__ void publish(T *v) const {
    T x[LEFT];
#pragma unroll
    for (int i = 0; i < LEFT; i++) x[i] = x_[i];
    column_write<0>(v, x);
  }
  template <int LEFT> __device__ __forceinline__ T product(const T *from) const {
    T sums[4] = {};
#pragma unroll
    for (int g = 0; g < LEFT; g += held_group) {
      T v[held_group];
      column_read<0>(v, from + g);
#pragma unroll
      for (int i = 0; i < held_group; i++) sums[i % 4] = cmadd(v[i], x_[g + i], sums[i % 4]);
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  /* x += v w. DROP: returns the first row, and the others move up. */
  template <int LEFT, bool DROP> __device__ __forceinline__ T add(const T *from, T w) {
    T first = zero<T>();
    if (DROP) opaque_here(from); /* or the products would be shared with the other way, and then moved */
#pragma unroll
    for (int g = 0; g < LEFT; g += held_group) {
      T v[held_group];
      column_read<0>(v, from + g);
#pragma unroll
      for (int i = 0; i < held_group; i++) {
        const T y = madd(v[i], w, x_[g + i]);
        if (DROP && g + i == 0)
          first = y;
        else
          x_[DROP ? g + i - 1 : g + i] = y;
      }
    }
    if (DROP) {
      x_[LEFT - 1] = zero<T>();
      drop();
    }
    return first;
  }
  __device__ __forceinline__ R norm2() const {
    R sums[4] = {};
#pragma unroll
    for (int i = 0; i < ROWS; i++) sums[i % 4] = abs2_add(x_[i], sums[i % 4]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

private:
  __device__ __forceinline__ void drop() {
    first_++;
    left_--;
  }

  T x_[ROWS];
  int warps_, warp_; /* that share the rows; which this is */
  int first_, left_; /* rows that are done; that are left */
  int col_, cols_;
};

/* The steps of one member, with the results of pivoted_qr. NARROW: it has up to 32 columns. */
template <class T, int ROWS, bool NARROW> class held_qr {
  using R = real_t<T>;
  static constexpr R lost = sizeof(R) > 4 ? R(1) / (1 << 20)
                                          : R(1) / 64; /* of a norm is left: digits are missing */

public:
  __device__ __forceinline__ held_qr(const matrix_view<T> &a, const pivoting<T> &state,
                                     const held_space<T> &space, uint32_t *word)
      : a_(a), state_(state), space_(space), word_(word), x_(a.rows, a.cols, NARROW), taken_(!x_.there()) {}

  /* See pivoted_qr::factor(). */
  __device__ int factor(int most, double abstol, double reltol, int exponent, bool whole_range) {
    x_.fill([&](int i) { return *a_.at(i, x_.column()); });
    exponent_ = exponent;
    if (has_top() && a_.rows > 0) top_ = x_.shift();
    sum_up();
    const double longest2 = static_cast<double>(longest_of_all().norm2);
    const double absolute = abstol > 0 ? times_power(abstol, exponent) : 0;
    set_tolerance(static_cast<R>(reltol > 0 ? fmax(absolute, reltol * sqrt(longest2)) : absolute));
    int j = 0;
    while (j < most) {
      bool settled = true;
      static_for<ROWS / held_group>([&](auto g) {
        constexpr int left = ROWS - decltype(g)::value * held_group;
#pragma unroll 1
        while (settled && j < most && (left == held_group || have_more(left - held_group, j))) {
          settled = step<left>(j);
          j += settled;
        }
      });
      if (!settled && !reconsider(whole_range)) break;
    }
    return finish(j);
  }

private:
  /* Whether this warp has the row that is the next to be done. */
  __device__ __forceinline__ bool has_top() const { return top_warp_ == x_.warp(); }
  __device__ __forceinline__ void next_top() { top_warp_ = top_warp_ + 1 == x_.warps() ? 0 : top_warp_ + 1; }
  /* Whether warps have more than so many rows below row j. */
  __device__ __forceinline__ bool have_more(int rows, int j) const {
    return a_.rows - 1 - j > rows * x_.warps();
  }
  /* Of each 32 columns. */
  __device__ __forceinline__ int group() const { return x_.column() / warp_lanes; }

  __device__ __forceinline__ void set_tolerance(R tolerance) {
    tolerance_ = tolerance;
    bound2_ = fmax(R(1.01) * tolerance * tolerance, span<R>::least2);
  }
  /* Whether that is a pivot's squared norm; a root is for the few that come near the tolerance. */
  __device__ __forceinline__ bool long_enough(R norm2) const {
    return norm2 > bound2_ || (norm2 > span<R>::least2 && sqrt(norm2) > tolerance_);
  }

  /* norm2_, of the rows that are left; with a barrier. The next one that writes norms is behind another. */
  __device__ __forceinline__ void sum_up() {
    const R mine = x_.norm2() + (has_top() ? abs2(top_) : R(0));
    if (x_.shares()) space_.norms[x_.warp() * a_.cols + x_.column()] = mine;
    block_sync();
    R norm2 = 0;
    for (int w = 0; w < x_.warps() && !taken_; w++) norm2 += space_.norms[w * a_.cols + x_.column()];
    norm2_ = since2_ = taken_ ? R(-1) : norm2;
    choice_ = longest_lane<warp_lanes>(norm2_);
    doubt_ = false;
  }

  /* Of all columns, by the norms that sum_up() has left. */
  __device__ __forceinline__ pivot<R> longest_of_all() {
    if (NARROW) return {broadcast(norm2_, choice_), choice_};
    offer(0);
    block_sync();
    const pivot<R> p = taken_offer(0);
    block_sync();
    return p;
  }

  /* Its 32 columns' choice, told by one warp of those that have them. */
  __device__ __forceinline__ void offer(int turn) {
    const R norm2 = broadcast(norm2_, choice_);
    if (x_.warp() == 0 && lane_id() == 0 && group() < space_.groups(a_.cols))
      space_.offers[turn * space_.groups(a_.cols) + group()] = {norm2,
                                                                doubt_ ? -1 : group() * warp_lanes + choice_};
  }
  /* The first of the longest. column < 0: norms are to be summed up first. */
  __device__ __forceinline__ pivot<R> taken_offer(int turn) const {
    const held_offer<R> *offers = space_.offers + turn * space_.groups(a_.cols);
    pivot<R> p = {offers[0].norm2, offers[0].column};
    for (int g = 1; g < space_.groups(a_.cols); g++) {
      const held_offer<R> o = offers[g];
      if (o.column < 0 || p.column < 0)
        p.column = -1;
      else if (o.norm2 > p.norm2)
        p = {o.norm2, o.column};
    }
    return p;
  }

  /* The rows of a group's choice that warps with the same rows look at. */
  __device__ __forceinline__ T *rows_of(int group, int turn) const {
    const int at = turn * space_.groups(a_.cols) + group, warp = x_.warp() < x_.warps() ? x_.warp() : 0;
    return space_.columns + (at * x_.warps() + warp) * ROWS;
  }

  /* The pivot, whose rows below row j are then in shared memory; < 0: norms are to be summed up first. */
  template <int LEFT> __device__ __forceinline__ int find_pivot(int turn) {
    if (NARROW && doubt_) return -1;
    if (lane_id() == choice_ && x_.shares()) x_.template publish<LEFT>(rows_of(group(), turn));
    if (NARROW) {
      warp_sync();
      return choice_;
    }
    offer(turn);
    block_sync();
    return taken_offer(turn).column;
  }

  __device__ __forceinline__ T total(const T *dots, int col) const {
    T sum = dots[col];
#pragma unroll 4
    for (int w = 1; w < x_.warps(); w++) sum = sum + dots[w * a_.cols + col];
    return sum;
  }

  /* Of LEFT rows below row j at most. False: nothing is done, because norms are to be summed up, or
   * there may be no pivot. */
  template <int LEFT> __device__ __forceinline__ bool step(int j) {
    const int turn = j & 1, column = find_pivot<LEFT>(turn);
    if (column < 0) return false;
    T *const dots = space_.dots + turn * x_.warps() * a_.cols, *const tops = space_.tops + turn * a_.cols;
    const T *const v = rows_of(column / warp_lanes, turn);
    const T mine = x_.template product<LEFT>(v);
    if (x_.shares()) {
      dots[x_.warp() * a_.cols + x_.column()] = mine;
      if (has_top()) tops[x_.column()] = top_;
    }
    block_sync();
    const bool pivots = x_.column() == column;
    const T top = x_.there() ? tops[x_.column()] : zero<T>(),
            dot = x_.there() ? total(dots, x_.column()) : zero<T>();
    const T head = NARROW ? broadcast(top, column) : tops[column];
    const R rest2 = real_part(NARROW ? broadcast(dot, column) : total(dots, column)),
            norm2 = abs2_add(head, rest2);
    if (!sure_ && !long_enough(norm2)) return false;
    sure_ = false;
    if (group() == column / warp_lanes)
      for (int i = lane_id(); i < x_.rows(); i += warp_lanes) *a_.at(x_.row(i), column) = v[i];
    const column_reflector<T> h = larfg_in_range(head, rest2);
    /* H^H y = y - w v */
    const T of_top = conj(h.tau), of_dot = of_top * conj(h.scale);
    const T w = madd(of_dot, dot, of_top * top), r = top - w;
    const T minus = -madd(h.scale * of_dot, dot, (h.scale * of_top) * top);
    if (pivots) taken_ = true;
    if (!taken_ && has_top()) *a_.at(j, x_.column()) = r;
    if (thread_id() == 0) {
      state_.order[j] = column;
      state_.tau[j] = h.tau;
      state_.scale[j] = h.scale;
      state_.diagonal[j] = h.beta;
      state_.exponent[j] = exponent_;
    }
    norm2_ = taken_ ? R(-1) : norm2_ - abs2(r);
    const unsigned next = longest_lanes<warp_lanes>(norm2_), left = member_votes<warp_lanes>(!taken_);
    doubt_ = group_any(!taken_ && norm2_ < lost * since2_) || several(next & left);
    next_top();
    if (has_top())
      top_ = x_.template add<LEFT, true>(v, minus);
    else
      x_.template add<LEFT, false>(v, minus);
    choice_ = first_of(next);
    return true;
  }

  /* Where sums of squares are too small to work with, what remains is multiplied by a power of two. Returns
   * whether there is a pivot. */
  __device__ __forceinline__ bool reconsider(bool whole_range) {
    sum_up();
    R norm2 = longest_of_all().norm2;
    while (norm2 <= span<R>::least2) {
      const int more = whole_range ? bring_up() : 0;
      if (more == 0) return false;
      exponent_ += more;
      set_tolerance(times_power(tolerance_, more));
      sum_up();
      norm2 = longest_of_all().norm2;
    }
    return sure_ = long_enough(norm2);
  }

  /* Multiplies what remains by a power of two, whose exponent is returned; 0: nothing remains. */
  __device__ __forceinline__ int bring_up() {
    uint32_t u = 0;
    if (!taken_) {
      x_.for_rows([&](int, T &x) { u = greater(u, magnitude_or_one(x)); });
      u = greater(u, magnitude_or_one(top_));
    }
    u = block_max(word_, u);
    if (u == 0) return 0;
    const int more = exponent_to<T>(u, span<R>::top);
    const R half = times_power(R(1), more / 2), rest = times_power(R(1), more - more / 2);
    x_.for_rows([&](int, T &x) { x = scaled(scaled(x, half), rest); });
    top_ = scaled(scaled(top_, half), rest);
    return more;
  }

  /* Columns that are not taken go back, behind the others. */
  __device__ __forceinline__ int finish(int rank) {
    if (!taken_) {
      x_.drain([&](int i, const T &x) { *a_.at(i, x_.column()) = x; });
      if (has_top() && rank < a_.rows) *a_.at(rank, x_.column()) = top_;
    }
    block_sync(); /* norms have been read */
    if (x_.there() && x_.warp() == 0) space_.norms[x_.column()] = taken_ ? R(-1) : R(0);
    block_sync();
    if (thread_id() == 0) {
      state_.exponent[rank] = exponent_;
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
  held_column<T, ROWS> x_; /* below the row that is the next to be done */
  T top_ = zero<T>();      /* that row, in its warp */
  bool taken_, doubt_ = false, sure_ = false;
  int top_warp_ = 0, exponent_ = 0, choice_ = 0; /* the lane with the longest of the warp's columns */
  R norm2_ = -1, since2_ = -1;                   /* squared; when it was summed up; -1: the column is taken */
  R tolerance_ = 0, bound2_ = 0;
};

} // namespace bqr

#endif
