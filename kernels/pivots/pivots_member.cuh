/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of a member's columns by one block, on the chip: A^H A of up to N columns in double precision,
 * and the pivots of its Cholesky factorization.
 *
 * A^H A lies in shared memory in pieces of 16 x 8, those on and below the diagonal. Its factor is made in
 * panels of 32 pivots. Within one, a thread has a column: what is left of it is A^H A's row of the pivot less
 * a sum over the panel's rows, which the thread holds of its own column and reads of the pivot's. A step has
 * one barrier, of the warps that have columns. Between panels, matrix units make the Schur complement of all
 * columns. */
#ifndef BQR_KERNELS_PIVOTS_PIVOTS_MEMBER_CUH
#define BQR_KERNELS_PIVOTS_PIVOTS_MEMBER_CUH

#include "pivots_piece.cuh"
#include "common/matrix/member.cuh"
#include "common/panel/longest.cuh"
#include "common/matrix/view.cuh"
#include "common/simt/block.cuh"
#include "common/simt/fragment.cuh"

namespace bqr {

/* Warps share A^H A: a row of 16 columns of pieces goes with the one that is as far from the end as it is
 * from the beginning, to `halves` warps; where that leaves more warps, these share the rows of A. */
template <class W, int N> struct member_shape {
  static constexpr int panel = is_complex<W> || N < 32 ? 16 : 32,
                       group = 8; /* pivots; of a panel, those that share code */
  static constexpr int blocks = N / 16, warps = N > 64 ? 8 : 4, threads = warps * warp_lanes;
  static constexpr int pairs = blocks > 1 ? blocks / 2 : 1, halves = N > 32 ? 2 : 1;
  static constexpr int slices = warps / (pairs * halves);
  static constexpr int pieces = blocks * (blocks + 1), piece = 16 * 8;
  static constexpr int choosing = N > warp_lanes ? N / warp_lanes : 1; /* warps that have columns */
  static constexpr int ld = panel + 2;                                 /* of the factor's columns */
};

/* The longest column of a warp's; the leading bits of the largest of A's squared columns that are left. */
struct member_offer {
  double norm2;
  int column;
  uint32_t first2;
};

template <class W, int N> struct member_memory {
  using S = member_shape<W, N>;
  alignas(16) W gram[S::pieces * S::piece];
  alignas(16) W factor[N * S::ld]; /* the panel's rows, a column after the other */
  member_offer offers[2][S::choosing];
  double first2[N], pivots2[N]; /* A's squared columns; what was left of the pivots, in the order of these */
  int place[N];                 /* of each column, in A P; -1: not taken */
  bool doubtful;

  /* Where element (r, c) of a piece is: without bank conflicts in rows, and nearly so in columns. */
  __device__ __forceinline__ static int within(int r, int c) { return r % 16 * 8 + ((c ^ r) & 7); }
  __device__ __forceinline__ static int first_of(int i, int j) { return (i * (i + 1) + j) * S::piece; }
  __device__ __forceinline__ W at(int r, int c) const {
    const bool swaps = c / 16 > r / 16;
    const int row = swaps ? c : r, col = swaps ? r : c;
    const W x = gram[first_of(row / 16, col / 8) + within(row, col)];
    return swaps ? conj(x) : x;
  }
};

/* A^H A. */
template <class T, int N> class member_gram {
  using W = wide<T>;
  using S = member_shape<W, N>;
  using sums = piece_sums<W>;

public:
  __device__ __forceinline__ member_gram(const matrix_view<T> &a, member_memory<W, N> &s)
      : a_(a), s_(s), g_(lane_id() / 4), q_(lane_id() % 4), half_(warp_id() % S::halves),
        slice_(warp_id() / (S::halves * S::pairs)) {
    aligned_ =
        (reinterpret_cast<uint64_t>(a.data) | static_cast<uint64_t>(a.ld) * sizeof(T)) % (2 * sizeof(T)) == 0;
  }

  /* By all threads; ends with a barrier. */
  __device__ __forceinline__ void run() {
    const int pair = broadcast(warp_id() / S::halves % S::pairs, 0);
    static_for<S::pairs>([&](auto first) {
      if (pair == decltype(first)::value) multiply<decltype(first)::value>();
    });
    block_sync();
  }

private:
  /* Rows LOW and HIGH of pieces. */
  template <int LOW> __device__ __forceinline__ void multiply() {
    constexpr int high = S::blocks - 1 - LOW, across = 2 * (high + 1) / S::halves,
                  across_low = LOW == high ? 0 : 2 * (LOW + 1) / S::halves;
    sums upper[across], lower[across_low + 1];
    for (int row = 16 * slice_; row < a_.rows; row += 16 * S::slices) {
      if (aligned_ && row + 16 <= a_.rows)
        add<LOW, true>(upper, lower, row);
      else
        add<LOW, false>(upper, lower, row);
    }
#pragma unroll
    for (int turn = 0; turn < S::slices; turn++) {
      if (turn > 0) block_sync();
      if (slice_ != turn) continue;
#pragma unroll
      for (int j = 0; j < across; j++) put(upper[j], high, j, turn > 0);
#pragma unroll
      for (int j = 0; j < across_low; j++) put(lower[j], LOW, j, turn > 0);
    }
  }

  template <int LOW, bool WHOLE, int UPPER, int LOWER>
  __device__ __forceinline__ void add(sums (&upper)[UPPER], sums (&lower)[LOWER], int row) const {
    constexpr int high = S::blocks - 1 - LOW;
#pragma unroll
    for (int r = 0; r < 16; r += 8) {
      W b[UPPER][2], x[4];
#pragma unroll
      for (int j = 0; j < UPPER; j++) take<WHOLE>(b[j], S::halves * j + half_, row + r);
      auto take_rows = [&](int i) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
          W two[2];
          if constexpr (S::halves == 1) {
            two[0] = b[2 * i + h][0];
            two[1] = b[2 * i + h][1];
          } else {
            take<WHOLE>(two, 2 * i + h, row + r);
          }
          x[2 * h] = two[0];
          x[2 * h + 1] = two[1];
        }
      };
      take_rows(high);
#pragma unroll
      for (int j = 0; j < UPPER; j++) upper[j].add(x, b[j]);
      if constexpr (LOW < high) {
        take_rows(LOW);
#pragma unroll
        for (int j = 0; j < LOWER - 1; j++) lower[j].add(x, b[j]);
      }
    }
  }

  /* This lane's two elements of 8 columns and 8 rows. */
  template <bool WHOLE> __device__ __forceinline__ void take(W (&v)[2], int columns, int row) const {
    const int col = 8 * columns + g_, i = row + 2 * q_;
    v[0] = v[1] = zero<W>();
    if (col >= a_.cols) return;
    const T *from = a_.at(i, col);
    if (WHOLE) {
      T two[2];
      read_two(two, from);
      v[0] = converted<W>(two[0]);
      v[1] = converted<W>(two[1]);
    } else {
      if (i < a_.rows) v[0] = converted<W>(from[0]);
      if (i + 1 < a_.rows) v[1] = converted<W>(from[1]);
    }
  }

  __device__ __forceinline__ void put(const sums &c, int i, int j, bool adds) {
    W *const to = s_.gram + s_.first_of(i, S::halves * j + half_);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      W &x = to[s_.within(g_ + 8 * (e / 2), 2 * q_ + e % 2)];
      x = adds ? x + c.get(e) : c.get(e);
    }
  }

  const matrix_view<T> &a_;
  member_memory<W, N> &s_;
  int g_, q_, half_, slice_;
  bool aligned_;
};

template <class W, int N> class member_chooser {
  using S = member_shape<W, N>;

public:
  /* m x n; of its columns `steps` are to be taken, which may be in doubt below this part of the longest. */
  __device__ __forceinline__ member_chooser(member_memory<W, N> &s, int m, int n, int steps, double reltol)
      : s_(s), rounding_((m + n) * 0x1p-46), reltol_(reltol), n_(n), steps_(steps), column_(thread_id()),
        taken_(column_ >= n) {}

  /* By all threads, behind a barrier; ends with one. False: A^H A does not tell for sure. earlier: where
   * panels but the last one are kept; or NULL. */
  __device__ __forceinline__ bool run(W *earlier) {
    for (int i = thread_id(); i < N * S::ld; i += S::threads) s_.factor[i] = zero<W>();
    for (int i = thread_id(); i < N; i += S::threads) s_.place[i] = -1;
    if (thread_id() == 0) s_.doubtful = false;
    block_sync();
    begin();
#pragma unroll 1
    for (int first = 0; first < steps_; first += S::panel) {
      if (first > 0 && earlier)
        for (int i = thread_id(); i < N * S::ld; i += S::threads)
          earlier[(first / S::panel - 1) * N * S::ld + i] = s_.factor[i];
      if (first > 0) form_complement();
      if (chooses()) choose_panel(first);
      block_sync();
      if (s_.doubtful) return false;
    }
    if (thread_id() == 0)
      for (int c = 0, next = steps_; next < n_; c++)
        if (s_.place[c] < 0) s_.place[c] = next++;
    block_sync();
    return true;
  }

private:
  static __device__ __forceinline__ bool chooses() { return warp_id() < S::choosing; }
  static __device__ __forceinline__ void choosers_sync() {
    if (S::choosing > 1)
      named_sync(1, S::choosing * warp_lanes);
    else
      warp_sync();
  }

  __device__ __forceinline__ void begin() {
    if (!chooses()) return;
    first2_ = left2_ = taken_ ? -1 : real_part(s_.at(column_, column_));
    if (!taken_) s_.first2[column_] = first2_;
    const bool finite = taken_ || left2_ <= 0x1p1000;
    best_ = longest();
    const double tolerance2 = reltol_ * reltol_ * best_.norm2;
    least2_ = fmax(1.002 * tolerance2, 0x1p-900);
    if (!finite) s_.doubtful = true;
  }

  /* The first of the longest columns, in all warps that choose; what these have written before is seen after.
   */
  __device__ __forceinline__ member_offer longest() {
    const int lane = longest_lane<warp_lanes>(left2_);
    member_offer best = {broadcast(left2_, lane), warp_id() * warp_lanes + lane, 0};
    if (S::choosing > 1) {
      member_offer *const offers = s_.offers[turn_];
      turn_ ^= 1;
      if (lane_id() == 0) offers[warp_id()] = best;
      choosers_sync();
      best = offers[0];
#pragma unroll
      for (int w = 1; w < S::choosing; w++) {
        const member_offer o = offers[w];
        if (o.norm2 > best.norm2) best = o;
      }
    } else {
      choosers_sync();
    }
    return best;
  }

  /* At least the largest of A's squared columns that are left. */
  __device__ __forceinline__ double largest_first2() {
    uint32_t high = group_max(leading_bits(taken_ ? -1.0 : first2_));
    if (S::choosing > 1) {
      member_offer *const offers = s_.offers[turn_];
      turn_ ^= 1;
      if (lane_id() == 0) offers[warp_id()].first2 = high;
      choosers_sync();
#pragma unroll
      for (int w = 0; w < S::choosing; w++) high = greater(high, offers[w].first2);
    }
    return __hiloint2double(static_cast<int>(high + 1), 0);
  }

  __device__ __forceinline__ void choose_panel(int first) {
    const double doubt2 = fmax(rounding_ * largest_first2(), least2_);
    W own[S::panel] = {};
    bool sure = true;
    static_for<S::panel / S::group>([&](auto g) {
      constexpr int begin = decltype(g)::value * S::group;
#pragma unroll 1
      for (int k = 0; k < S::group && first + begin + k < steps_ && sure; k++) {
        sure = best_.norm2 > doubt2;
        if (sure) take<begin>(own, first, k);
      }
    });
    if (!sure && column_ == 0) s_.doubtful = true;
  }

  /* Step BEGIN + k of the panel. */
  template <int BEGIN> __device__ __forceinline__ void take(W (&own)[S::panel], int first, int k) {
    const int pivot = best_.column;
    const W *const of_pivot = s_.factor + pivot * S::ld;
    const W row = taken_ ? zero<W>() : s_.at(pivot, column_);
    const double scale = fast_rsqrt(best_.norm2);
    W sums[4] = {};
#pragma unroll
    for (int l = 0; l < BEGIN + S::group; l += 2) { /* zeros from this step on */
      W two[2];
      read_two(two, of_pivot + l);
      sums[l % 4] = cmadd(two[0], own[l], sums[l % 4]);
      sums[l % 4 + 1] = cmadd(two[1], own[l + 1], sums[l % 4 + 1]);
    }
    if (column_ == pivot) {
      taken_ = true;
      s_.place[column_] = first + BEGIN + k;
      s_.pivots2[first + BEGIN + k] = best_.norm2;
    }
    const W x = taken_ ? zero<W>() : scaled(row - ((sums[0] + sums[1]) + (sums[2] + sums[3])), scale);
    left2_ = taken_ ? -1 : fmax(left2_ - abs2(x), 0.0);
#pragma unroll
    for (int l = BEGIN; l < BEGIN + S::group; l++) own[l] = l == BEGIN + k ? x : own[l];
    if (!taken_) s_.factor[column_ * S::ld + BEGIN + k] = x;
    best_ = longest();
  }

  /* What is left of A^H A after a panel, taken columns and all. By all threads, between barriers. */
  __device__ __forceinline__ void form_complement() {
    const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll 1
    for (int piece = warp_id(); piece < S::pieces; piece += S::warps) {
      int i = 0;
      while ((i + 1) * (i + 2) <= piece) i++;
      const int j = piece - i * (i + 1);
      const W *const rows = s_.factor + (16 * i + g) * S::ld + 2 * q, *const cols = s_.factor +
                                                                                    (8 * j + g) * S::ld +
                                                                                    2 * q;
      W *const to = s_.gram + piece * S::piece;
      piece_sums<W> c;
#pragma unroll
      for (int e = 0; e < 4; e++) c.set(e, to[s_.within(g + 8 * (e / 2), 2 * q + e % 2)]);
#pragma unroll
      for (int k = 0; k < S::panel; k += 8) {
        W upper[2], lower[2], b[2];
        read_two(upper, rows + k);
        read_two(lower, rows + 8 * S::ld + k);
        read_two(b, cols + k);
        c.add({-upper[0], -upper[1], -lower[0], -lower[1]}, b);
      }
#pragma unroll
      for (int e = 0; e < 4; e++) to[s_.within(g + 8 * (e / 2), 2 * q + e % 2)] = c.get(e);
    }
    block_sync();
  }

  member_memory<W, N> &s_;
  double rounding_, reltol_;
  int n_, steps_, column_;
  bool taken_;
  int turn_ = 0;
  double first2_ = -1, left2_ = -1,
         least2_ = 0; /* squared; A's columns', what is left of them, the least to take */
  member_offer best_{};
};

} // namespace bqr

#endif
