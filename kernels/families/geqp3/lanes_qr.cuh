/* SPDX-License-Identifier: BSD-3-Clause */
/* QR with column pivoting of a member that a block of threads holds in registers, all rows of a column in one
 * warp: a lane has ROWS rows of COLS columns, LANES lanes share these, and row i is lane i % LANES's. So an
 * element of a reflector's vector serves COLS columns once it has been read, and what a step adds up is added
 * up within warps. What there is one of for each column, its norm, its place, its part of the reflector, is
 * with one of the lanes that share it, or alike with some. Nothing moves: rows of R and vectors stay where
 * their columns are.
 *
 * A step has one barrier, of the warp or of the block: before it, each warp publishes the column that it
 * would take. Norms are downdated; where one has lost digits, its warp sums up its columns' anew. */
#ifndef BQR_KERNELS_FAMILIES_GEQP3_LANES_QR_CUH
#define BQR_KERNELS_FAMILIES_GEQP3_LANES_QR_CUH

#include "common/matrix/view.cuh"
#include "common/panel/columns.cuh"
#include "common/panel/exponents.cuh"
#include "common/panel/longest.cuh"
#include "common/panel/pivoting_warp.cuh"
#include "common/simt/squad.cuh"
#include "common/simt/tile.cuh"

namespace bqr {

/* The column that a warp would take. */
template <class R> struct lanes_offer {
  R norm2; /* -1: none */
  int column;
};

/* How lanes share members. */
template <int ROWS, int COLS, int LANES> struct lanes_shape {
  static constexpr int rows = ROWS * LANES, owners = LANES / COLS; /* lanes that are alike for a column */
  static constexpr int columns = warp_lanes / owners;              /* of a warp */
  static_assert(LANES % COLS == 0 && warp_lanes % LANES == 0, "a lane for each column at least");

  BQR_INLINE static int warps(int n) { return n > columns ? (n - 1) / columns + 1 : 1; }
};

/* What the threads tell one another, for members of up to n columns. */
template <class T, class SHAPE> struct lanes_space {
  using R = real_t<T>;
  T *columns;             /* published ones, one of each warp; of two steps */
  T *tops;                /* of all columns, the row that is the next to be done; of two steps */
  T *tau, *scale;         /* of reflectors: the vector is scale[j] times what lies in the column */
  R *diagonal;            /* of R */
  lanes_offer<R> *offers; /* of each warp; of two steps */
  int *exponent;          /* rows: R is 2^exponent times that of A; at the rank, what remains of A */
  int *left;              /* columns of each warp that are not taken in the end */
  uint32_t *word;

  /* As many steps as columns have room; 16 bytes for each of the last three. */
  BQR_INLINE static size_t bytes(int n) {
    const size_t w = static_cast<size_t>(SHAPE::warps(n)), cols = w * SHAPE::columns;
    return (2 * w * SHAPE::rows + 4 * cols) * sizeof(T) + cols * sizeof(R) + 2 * w * sizeof(lanes_offer<R>) +
           (cols + 4 + w + 4) * sizeof(int);
  }
  BQR_INLINE static lanes_space at(void *memory, int n) {
    const int w = SHAPE::warps(n), cols = w * SHAPE::columns;
    lanes_space s;
    s.columns = static_cast<T *>(memory);
    s.tops = s.columns + 2 * w * SHAPE::rows;
    s.tau = s.tops + 2 * cols;
    s.scale = s.tau + cols;
    s.diagonal = reinterpret_cast<R *>(s.scale + cols);
    s.offers = reinterpret_cast<lanes_offer<R> *>(s.diagonal + cols);
    s.exponent = reinterpret_cast<int *>(s.offers + 2 * w);
    s.left = s.exponent + cols + 4;
    s.word = reinterpret_cast<uint32_t *>(s.left + w);
    return s;
  }
};

/* WARPS: the most that a member has. */
template <class T, int ROWS, int COLS, int LANES, int WARPS> class lanes_qr {
  using R = real_t<T>;
  using shape = lanes_shape<ROWS, COLS, LANES>;
  static constexpr bool ONE = WARPS == 1;
  static constexpr int owners = shape::owners, columns = shape::columns;
  /* Rows of a lane that have pivots, and of these, those that a copy of a step's code serves: more copies
   * would skip more rows, and be fetched as often as a copy serves. */
  static constexpr int pivots = WARPS * columns > shape::rows ? ROWS : (WARPS *columns - 1) / LANES + 1;
  static constexpr int part = (pivots + 1) / 2, copies = (pivots - 1) / part + 1;
  static constexpr R lost = sizeof(R) > 4 ? R(1) / (1 << 20)
                                          : R(1) / 64; /* of a norm is left: digits are missing */

public:
  using space = lanes_space<T, shape>;

  __device__ __forceinline__ lanes_qr(int m, int n, const space &s)
      : s_(s), m_(m), n_(n), warps_(ONE ? 1 : num_warps()), warp_(ONE ? 0 : warp_id()),
        row_(lane_id() % LANES), first_(warp_ * columns + lane_id() / LANES * COLS),
        col_(warp_ * columns + lane_id() / owners), taken_(col_ >= n) {}

  /* Takes A, and returns the largest magnitude_or_one() of the member. */
  __device__ __forceinline__ uint32_t load(const matrix_view<T> &a) {
    uint32_t u = 0;
#pragma unroll
    for (int c = 0; c < COLS; c++) {
      const T *from = a.data + (first_ + c) * a.ld + row_;
      __builtin_assume(__isGlobal(from));
#pragma unroll
      for (int t = 0; t < ROWS; t++)
        x_[t][c] = first_ + c < n_ && t * LANES + row_ < m_ ? from[t * LANES] : zero<T>();
    }
    for_all([&](T &x, int, int) { u = greater(u, magnitude(x)); });
    u = member_max(u);
    if (u != 0) return u;
    /* perhaps not 0, but too small for the leading bits to tell */
    for_all([&](T &x, int, int) { u = greater(u, magnitude_or_one(x)); });
    return member_max(u);
  }

  /* u: as load() says. Returns the rank. */
  __device__ __forceinline__ int factor(const pivoting_limits &to, uint32_t u) {
    exponent_ = u ? exponent_to<T>(u, span<R>::top) : 0;
    multiply(exponent_, [](int, int) { return true; });
    int j = 0;
    bool begun = false;
    while (j < to.most) {
      if (doubt_) sum_up(j);
      if (!begun) begin(to);
      begun = true;
      bool settled = true;
      static_for<copies>([&](auto copy) {
        constexpr int from = decltype(copy)::value * part, end = from + part < pivots ? from + part : pivots;
#pragma unroll 1
        while (settled && !doubt_ && j < to.most && j < end * LANES) {
          settled = step<from, end>(j);
          j += settled;
        }
      });
      if (!settled && !bring_up(j)) break;
    }
    end(j);
    return j;
  }

  __device__ __forceinline__ void store(const matrix_view<T> &a, int rank) {
    int places[COLS];
#pragma unroll
    for (int c = 0; c < COLS; c++) {
      places[c] = broadcast<LANES>(place_, c * owners);
      const R diagonal = places[c] < rank ? s_.diagonal[places[c]] : R(0);
#pragma unroll
      for (int t = 0; t < pivots; t++)
        if (places[c] < rank && t * LANES + row_ == places[c]) x_[t][c] = make<T>(diagonal);
    }
    int back = -s_.exponent[rank];
    if (s_.exponent[0] + back != 0 || back <= -span<R>::bias) {
      back = 0;
      undo_powers(places, rank);
    }
    const R undo = exponent_scale<R>(back);
#pragma unroll
    for (int c = 0; c < COLS; c++) {
      if (first_ + c >= n_) continue;
      const int place = places[c];
      const T scale = place < rank ? s_.scale[place] : make<T>(undo);
      T *const to = a.data + place * a.ld + row_;
      __builtin_assume(__isGlobal(to));
#pragma unroll
      for (int t = 0; t < ROWS; t++) {
        const T factor = t >= pivots || t * LANES + row_ > place ? scale : make<T>(undo);
        if (t * LANES + row_ < m_) to[t * LANES] = x_[t][c] * factor;
      }
    }
  }

  /* The lane's column, whether it is the first that has it, and its position in A P. */
  __device__ __forceinline__ int column() const { return col_; }
  __device__ __forceinline__ bool tells() const { return col_ < n_ && lane_id() % owners == 0; }
  __device__ __forceinline__ int place() const { return place_; }

private:
  __device__ __forceinline__ void meet() const {
    if (ONE)
      warp_sync();
    else
      block_sync();
  }

  template <class F> __device__ __forceinline__ void for_all(F &&f) {
#pragma unroll
    for (int t = 0; t < ROWS; t++)
#pragma unroll
      for (int c = 0; c < COLS; c++) f(x_[t][c], t, c);
  }

  __device__ __forceinline__ void set_tolerance(R tolerance) {
    tolerance_ = tolerance;
    bound2_ = fmax(R(1.01) * tolerance * tolerance, span<R>::least2);
  }
  /* Whether that is a pivot's squared norm; a root is for the few that come near the tolerance. */
  __device__ __forceinline__ bool long_enough(R norm2) const {
    return norm2 > bound2_ || (norm2 > span<R>::least2 && sqrt(norm2) > tolerance_);
  }

  __device__ __forceinline__ void begin(const pivoting_limits &to) {
    const R mine = broadcast(norm2_, choice_);
    R longest2 = mine;
    if (!ONE) {
      if (lane_id() == 0) s_.offers[warps_ + warp_].norm2 = mine; /* of odd steps */
      block_sync();
#pragma unroll 1
      for (int w = 0; w < warps_; w++) longest2 = fmax(longest2, s_.offers[warps_ + w].norm2);
    }
    const double absolute = to.abstol > 0 ? times_power(to.abstol, exponent_) : 0;
    set_tolerance(static_cast<R>(
        to.reltol > 0 ? fmax(absolute, to.reltol * sqrt(static_cast<double>(longest2))) : absolute));
  }

  __device__ __forceinline__ uint32_t member_max(uint32_t u) const {
    return ONE ? group_max(u) : block_max(s_.word, u);
  }

  /* What f(t, c) says times 2^exponent. */
  template <class F> __device__ __forceinline__ void multiply(int exponent, F &&f) {
    const int most = span<R>::bias; /* the largest that is one number */
    const R first = exponent_scale<R>(least(exponent, most));
    for_all([&](T &x, int t, int c) { x = scaled(x, f(t, c) ? first : R(1)); });
    if (exponent <= most) return;
    const R rest = exponent_scale<R>(exponent - most);
    for_all([&](T &x, int t, int c) { x = scaled(x, f(t, c) ? rest : R(1)); });
  }

  /* Rows of R and what remains without their powers of two. */
  __device__ __forceinline__ void undo_powers(const int (&places)[COLS], int rank) {
#pragma unroll
    for (int t = 0; t < ROWS; t++) {
      const int i = t * LANES + row_;
      /* what is multiplied by less is 0 in the end */
      const int e = largest(-s_.exponent[least(i, rank)], 2 - 2 * span<R>::bias);
      const R half = exponent_scale<R>(e / 2), rest = exponent_scale<R>(e - e / 2);
#pragma unroll
      for (int c = 0; c < COLS; c++)
        if (places[c] >= rank || i <= places[c]) x_[t][c] = scaled(scaled(x_[t][c], half), rest);
    }
  }

  /* The warp's norms, of rows from j on. */
  __device__ __forceinline__ void sum_up(int j) {
    R sums[COLS] = {};
    for_all([&](const T &x, int t, int c) {
      if (t * LANES + row_ >= j) sums[c] = abs2_add(x, sums[c]);
    });
    const R norm2 = group_sum_scatter<COLS, LANES>(sums);
    norm2_ = since2_ = taken_ ? R(-1) : norm2;
    choose();
    doubt_ = false;
  }

  /* A norm less than 0 is no candidate's. */
  __device__ __forceinline__ R candidate() const { return lane_id() % owners == 0 ? norm2_ : R(-1); }
  __device__ __forceinline__ void choose() { choice_ = longest_lane<warp_lanes>(candidate()); }

  /* The warp's choice, without the first FROM rows of a lane. */
  template <int FROM, int FIRST, int LAST> __device__ __forceinline__ void publish(T *to, int column) const {
    if constexpr (LAST - FIRST == 1) {
#pragma unroll
      for (int t = FROM; t < ROWS; t++) to[t * LANES + row_] = x_[t][FIRST];
    } else {
      constexpr int middle = (FIRST + LAST) / 2;
      if (column < middle)
        publish<FROM, FIRST, middle>(to, column);
      else
        publish<FROM, middle, LAST>(to, column);
    }
  }
  /* The lane's row t, one of FIRST .. LAST - 1. */
  template <int FIRST, int LAST> __device__ __forceinline__ void publish_row(T *to, int t) const {
    if constexpr (LAST - FIRST == 1) {
      if constexpr (COLS % pack<T>::size == 0) {
        column_write<0>(to, x_[FIRST]);
      } else {
#pragma unroll
        for (int c = 0; c < COLS; c++) to[c] = x_[FIRST][c];
      }
    } else {
      constexpr int middle = (FIRST + LAST) / 2;
      if (t < middle)
        publish_row<FIRST, middle>(to, t);
      else
        publish_row<middle, LAST>(to, t);
    }
  }

  /* The longest of what warps have offered: of equally long ones the first. Returns its warp. */
  __device__ __forceinline__ int taken_offer(const lanes_offer<R> *offers, int &column) const {
    const lanes_offer<R> mine = lane_id() < warps_ ? offers[lane_id()] : lanes_offer<R>{R(-1), 0};
    const int warp = longest_lane<warp_lanes>(mine.norm2);
    column = broadcast(mine.column, warp);
    return warp;
  }

  /* Step j, whose row is one of lanes' rows FROM .. END - 1. False: nothing is done, because there may be no
   * pivot. */
  template <int FROM, int END> __device__ __forceinline__ bool step(int j) {
    const int turn = j & 1;
    T *const published = s_.columns + turn * warps_ * shape::rows;
    T *const tops = s_.tops + (turn * warps_ + warp_) * columns;
    if (lane_id() / LANES == choice_ / LANES)
      publish<FROM, 0, COLS>(published + warp_ * shape::rows, choice_ % LANES / owners);
    if (row_ == j % LANES) publish_row<FROM, END>(tops + lane_id() / LANES * COLS, j / LANES);
    int column = choice_ / owners, warp = 0;
    if (!ONE) {
      lanes_offer<R> *const offers = s_.offers + turn * warps_;
      const R norm2 = broadcast(norm2_, choice_);
      if (lane_id() == 0) offers[warp_] = {norm2, warp_ * columns + column};
      block_sync();
      warp = taken_offer(offers, column);
    } else {
      warp_sync();
    }
    const T *const pivot = published + warp * shape::rows;
    T v[ROWS];
#pragma unroll
    for (int t = FROM; t < ROWS; t++) v[t] = pivot[t * LANES + row_];
    const T head = pivot[j], top = tops[lane_id() / owners];
#pragma unroll
    for (int t = FROM; t < END; t++)
      if (t * LANES + row_ <= j) v[t] = zero<T>();
    R rest2 = 0;
    if (!ONE) {
      R squares[2] = {};
#pragma unroll
      for (int t = FROM; t < ROWS; t++) squares[t & 1] = abs2_add(v[t], squares[t & 1]);
      rest2 = group_sum<LANES>(squares[0] + squares[1]);
    }
    T dots[COLS] = {};
#pragma unroll
    for (int t = FROM; t < ROWS; t++)
#pragma unroll
      for (int c = 0; c < COLS; c++) dots[c] = cmadd(v[t], x_[t][c], dots[c]);
    const T dot = group_sum_scatter<COLS, LANES>(dots);
    if (ONE) rest2 = real_part(broadcast(dot, choice_)); /* the pivot's product with itself */
    const R norm2 = abs2_add(head, rest2);
    const column_reflector<T> h = larfg_in_range(head, rest2);
    /* no earlier, so that what comes before it need not wait for the norm */
    if (!(norm2 > bound2_))
      if (!long_enough(norm2)) return false;
    /* H^H y = y - w v; v is scale times what has been read, and 1 in row j */
    const T of_top = conj(h.tau), of_dot = of_top * conj(h.scale);
    const T r = top - madd(of_dot, dot, of_top * top);
    T minus = -madd(h.scale * of_dot, dot, (h.scale * of_top) * top);
    if (col_ == column) {
      taken_ = true;
      place_ = j;
    }
    if (taken_) minus = zero<T>();
    norm2_ = taken_ ? R(-1) : norm2_ - abs2(r);
    const unsigned next = longest_lanes<warp_lanes>(candidate());
    doubt_ = group_any(!taken_ && norm2_ < lost * since2_);
#pragma unroll
    for (int t = FROM; t < END; t++)
      if (t * LANES + row_ == j) v[t] = head - make<T>(h.beta);
#pragma unroll
    for (int c = 0; c < COLS; c++) {
      const T w = broadcast<LANES>(minus, c * owners);
#pragma unroll
      for (int t = FROM; t < ROWS; t++) x_[t][c] = madd(v[t], w, x_[t][c]);
    }
    choice_ = first_of(next);
    if (several(next)) choose();
    if (thread_id() == 0) {
      s_.tau[j] = h.tau;
      s_.scale[j] = h.scale;
      s_.diagonal[j] = h.beta;
      s_.exponent[j] = exponent_;
    }
    return true;
  }

  /* Where sums of squares are too small to work with, what remains is multiplied by a power of two. Returns
   * whether there may be a pivot now. */
  __device__ __forceinline__ bool bring_up(int j) {
    const int turn = j & 1;
    R longest2 = ONE ? broadcast(norm2_, choice_) : R(-1);
#pragma unroll 1
    for (int w = 0; w < warps_ && !ONE; w++) longest2 = fmax(longest2, s_.offers[turn * warps_ + w].norm2);
    if (longest2 > R(2) * span<R>::least2) return false;
    const unsigned mine = __ballot_sync(full_mask, taken_) >> (lane_id() / LANES * LANES);
    const auto remains = [&](int t, int c) { return t * LANES + row_ >= j && !(mine >> c * owners & 1); };
    uint32_t u = 0;
    for_all([&](const T &x, int t, int c) {
      if (remains(t, c)) u = greater(u, magnitude_or_one(x));
    });
    u = member_max(u);
    const int more = u ? exponent_to<T>(u, span<R>::top) : 0;
    if (more <= 0) return false;
    multiply(more, remains);
    exponent_ += more;
    set_tolerance(times_power(tolerance_, more));
    doubt_ = true;
    return true;
  }

  /* Columns that are not taken, behind the others. */
  __device__ __forceinline__ void end(int rank) {
    const unsigned others = __ballot_sync(full_mask, !taken_ && lane_id() % owners == 0);
    int before = 0;
    if (thread_id() == 0) s_.exponent[rank] = exponent_;
    if (!ONE && lane_id() == 0) s_.left[warp_] = __popc(others);
    meet();
#pragma unroll 1
    for (int w = 0; w < warp_ && !ONE; w++) before += s_.left[w];
    const int lane = lane_id() / owners * owners;
    if (!taken_) place_ = rank + before + __popc(others & ((1u << lane) - 1));
  }

  T x_[ROWS][COLS];
  const space &s_;
  int m_, n_, warps_, warp_;
  int row_, first_;           /* the lane's first row, and its first column */
  int col_;                   /* the one that the lane has the norm of */
  bool taken_, doubt_ = true; /* doubt: norms are to be summed up */
  int place_ = 0, choice_ = 0, exponent_ = 0;
  R norm2_ = -1, since2_ = -1; /* squared; when it was summed up; -1: the column is taken */
  R tolerance_ = 0, bound2_ = 0;
};

} // namespace bqr

#endif
