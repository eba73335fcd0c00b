/* SPDX-License-Identifier: BSD-3-Clause */
/* Tiny members: how the *_warp families factor them and form Q. A member lies in the registers of LANES lanes
 * of a warp: SPLIT lanes share a column, row by row in turns, and LANES / SPLIT columns lie side by side. To
 * factor, the pivot's lanes publish its column and its squared norm in shared memory; each lane makes the
 * reflector from the norm and, beside that, multiplies the column with its own columns. To form Q, the
 * vectors lie in shared memory and each lane has columns of Q. Sums cross SPLIT lanes only; with one lane for
 * a member nothing is exchanged at all.
 *
 * Methods: xGEQR2 with columns in range as in common/panel/columns.cuh; xORG2R. */
#ifndef BQR_KERNELS_COMMON_PANEL_TINY_CUH
#define BQR_KERNELS_COMMON_PANEL_TINY_CUH

#include "tiny_tile.cuh"
#include "common/matrix/member.cuh"
#include "common/simt/tile.cuh"
#include "common/ptx/approximate.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/opaque.cuh"

namespace bqr {

/* The most of the warp's members. */
__device__ __forceinline__ int tiny_steps(int k) {
  return static_cast<int>(group_max(static_cast<uint32_t>(k)));
}

/* Entry (row(q), column(s)) of the member is a_[s][q]. */
template <class T, int ROWS, int COLS, int LANES, int SPLIT> class tiny_qr {
  using R = real_t<T>;
  using tile = tiny_tile<T, ROWS, COLS, LANES, SPLIT>;
  static constexpr int unit = tile::unit, width = tile::width, slots = tile::slots, local = tile::local;

public:
  __device__ __forceinline__ explicit tiny_qr(T *shared)
      : r_(lane_id() % SPLIT), c_(lane_id() % LANES / SPLIT) {
    const int g = lane_id() / LANES;
    tile_ = shared + g * tile::size;
    shared += tile::members * tile::size;
    all_taus_ = shared;
    tau_ = shared + g * COLS;
    scale_ = tau_ + tile::members * COLS;
  }

  /* From the tile, the first m x n entries; zeros around them. Where members lie flat, columns have no gaps
   * between them, and the first one begins `shift` behind the tile. Lanes with whole columns skip those that
   * are zeros (100 000 of 14 x 14, d: 0.124 ms -> 0.119); a lane alone, or a part of a column, reads them. */
  __device__ __forceinline__ void read(int m, int n, bool flat = false, int shift = 0) {
    const T *from = tile_ + shift;
    if (SPLIT > 1 || (LANES == 1 && flat)) {
      const int ld = flat ? m : tile::ld;
      each_entry([&](T &x, int row, int col) { x = from[col * ld + row]; });
      warp_sync();
    } else if (flat) {
      each_entry([&](T &x, int row, int col) { x = row < m && col < n ? from[col * m + row] : zero<T>(); });
      warp_sync();
      return;
    } else {
#pragma unroll
      for (int s = 0; s < slots; s++) get<0>(a_[s], from + column(s) * tile::ld);
    }
    if (group_any(m < ROWS || n < COLS))
      each_entry([&](T &x, int row, int col) {
        if (row >= m || col >= n) x = zero<T>();
      });
  }

  /* Likewise, to the tile; all of it, or the m x n entries of a flat member. */
  __device__ __forceinline__ void write(int m = ROWS, int n = COLS, bool flat = false, int shift = 0) {
    if constexpr (SPLIT == 1)
      if (!flat) {
#pragma unroll
        for (int s = 0; s < slots; s++) put<0>(tile_ + column(s) * tile::ld, [&](int q) { return a_[s][q]; });
        return;
      }
    if constexpr (tile::members == 1) /* long code, which most members take */
      if (!flat) {
        each_entry([&](T &x, int row, int col) { tile_[col * tile::ld + row] = x; });
        return;
      }
    T *to = tile_ + shift;
    const int ld = flat ? m : tile::ld, rows = flat ? m : ROWS, columns = flat ? n : COLS;
    each_entry([&](T &x, int row, int col) {
      if (row < rows && col < columns) to[col * ld + row] = x;
    });
  }

  /* The vectors alone, with their ones and zeros. */
  __device__ __forceinline__ void write_vectors() const {
#pragma unroll
    for (int s = 0; s < slots; s++)
      put<0>(tile_ + column(s) * tile::ld, [&](int q) {
        return row(q) > column(s) ? a_[s][q] : row(q) == column(s) ? one<T>() : zero<T>();
      });
  }

  /* Factors n columns, k of them by reflectors. positive: whether R's diagonal is not to be negative, maybe a
   * constant. Returns the largest magnitude that was in the lane's columns. */
  template <class P> __device__ __forceinline__ uint32_t factor(int n, int k, P positive) {
    uint32_t top = 0, u[slots];
    const bool out_of_range = bring_into_range(n, u, top);
    const int steps = tiny_steps(k);
    if constexpr (tile::early && std::is_same_v<P, bool>) {
      if (positive) /* a branch within a step would keep its chains from overlapping */
        reduce(steps, std::true_type{});
      else
        reduce(steps, std::false_type{});
    } else {
      reduce(steps, positive);
    }
    scale_vectors(steps);
    if (out_of_range) {
#pragma unroll
      for (int s = 0; s < slots; s++) scale_column(s, -column_exponent<T>(u[s]), true);
    }
    return top;
  }

  /* Rows of R with a negative diagonal times -1. */
  __device__ __forceinline__ void turn_rows() {
    warp_sync();
    if constexpr (LANES == 1) {
#pragma unroll
      for (int j = 0; j < COLS; j++) own_scale_[j] = make<T>(real_part(a_[j][j]) < 0 ? R(-1) : R(1));
    } else {
      each_entry([&](T x, int row, int col) {
        if (row == col) scale_[col] = make<T>(real_part(x) < 0 ? R(-1) : R(1));
      });
      warp_sync();
    }
#pragma unroll
    for (int s = 0; s < slots; s++)
#pragma unroll
      for (int q = 0; q < local; q++)
        if (q * SPLIT < width * (s + 1) && row(q) <= column(s))
          a_[s][q] = scaled(a_[s][q], sign_of(q, row(q)));
  }

  /* After that, and form_q(): these columns of Q times -1. */
  __device__ __forceinline__ void turn_columns() {
#pragma unroll
    for (int s = 0; s < slots; s++)
#pragma unroll
      for (int q = 0; q < local; q++) a_[s][q] = scaled(a_[s][q], sign_of(s, column(s)));
  }

  /* Of n columns, those before the first k are factored, and Q^H is applied to the rest. All stay in range,
   * multiplied by powers of two, whose exponents come where tau was. Returns what factor() does. */
  __device__ __forceinline__ uint32_t factor_system(int n, int k, bool &scaled) {
    uint32_t top = 0, u[slots];
    scaled = bring_into_range(n, u, top);
    reduce<true>(tiny_steps(k), std::false_type{}, k);
    warp_sync();
#pragma unroll
    for (int s = 0; s < slots; s++)
      if (r_ == 0) tau_[column(s)] = make<T>(static_cast<R>(column_exponent<T>(u[s])));
    return top;
  }

  /* f(column, the norm of its rows from k on), after factor_system(). */
  template <class F> __device__ __forceinline__ void each_norm(int k, F &&f) const {
#pragma unroll
    for (int s = 0; s < slots; s++) {
      R ss = 0;
#pragma unroll
      for (int q = 0; q < local; q++)
        if (row(q) >= k) ss = abs2_add(a_[s][q], ss);
      f(column(s), sqrt(group_sum<SPLIT>(ss)) * exponent_scale<R>(-column_exponent_at(column(s))));
    }
  }

  /* In the tile, columns n .. n + k become the X that R, the columns before them, makes them of. Lanes share
   * the rows. */
  __device__ __forceinline__ void solve(int n, int k, bool scaled) const {
    constexpr int parts = (COLS - 1) / LANES + 1;
    const int lane = lane_id() % LANES, steps = tiny_steps(n), columns = tiny_steps(k);
#pragma unroll 1
    for (int c = 0; c < columns; c++) {
      T *b = tile_ + (n + c) * tile::ld, x[parts];
#pragma unroll
      for (int p = 0; p < parts; p++) {
        const int i = p * LANES + lane;
        x[p] = i < n && c < k ? b[i] : zero<T>();
      }
#pragma unroll
      for (int p = parts - 1; p >= 0; p--)
#pragma unroll 1
        for (int l = least(LANES, steps - p * LANES) - 1; l >= 0; l--) {
          const int j = p * LANES + l;
          const T *r = tile_ + j * tile::ld;
          T known = divided(broadcast<LANES>(x[p], l), real_part(r[j]));
          if (j >= n) known = zero<T>();
          if (lane == l) x[p] = known;
#pragma unroll
          for (int i = 0; i <= p; i++)
            if (i * LANES + lane < j) x[i] = madd(-r[i * LANES + lane], known, x[i]);
        }
      if (scaled) {
#pragma unroll
        for (int p = 0; p < parts; p++) x[p] = brought_back(x[p], p * LANES + lane, n + c);
      }
#pragma unroll
      for (int p = 0; p < parts; p++) {
        const int i = p * LANES + lane;
        if (i < n && c < k) b[i] = x[p];
      }
    }
  }

  /* Q = H_0 ... H_(steps-1) I, from write_vectors() and tau; vectors with tau = 0 must be finite. Before H_k
   * is applied, columns beyond k have zeros down to row k, and column k and those before are still the
   * identity's. */
  __device__ __forceinline__ void form_q(int steps) {
    each_entry([](T &x, int row, int col) { x = row == col ? one<T>() : zero<T>(); });
    each_step<tile::q_segment, true>(steps, [&](auto index, int k) {
      constexpr int base = decltype(index)::value, slot = base / width, first = base / SPLIT;
      T x[local], w[slots];
      get<first>(x, tile_ + k * tile::ld);
      const T t = -tau_[k];
#pragma unroll
      for (int s = slot; s < slots; s++) w[s] = product<first, slots - slot>(x, a_[s]);
      sum_from<slot>(w);
#pragma unroll
      for (int s = slot; s < slots; s++) add<first>(s, t * w[s], x);
    });
  }

  /* tau of a member of k reflectors, from global memory: */
  __device__ __forceinline__ void set_tau(const T *from, int k) const {
    for (int j = lane_id() % LANES; j < COLS; j += LANES) tau_[j] = j < k ? from[j] : zero<T>();
  }
  /* ... and to it: a member's, or those of all of the warp's members, one behind the other. */
  __device__ __forceinline__ void store_tau(T *to, int k) const {
    for (int j = lane_id() % LANES; j < k; j += LANES) to[j] = tau_[j];
  }
  __device__ __forceinline__ void store_taus(T *to) const {
    dense_walk<T, COLS, 1, tile::members, COLS, COLS>::each(
        all_taus_, to, [](const auto *from, auto *at, int, int) { *at = *from; });
  }

  /* That of reflector j of the lane's member. */
  __device__ __forceinline__ T tau(int j) const { return tau_[j]; }

  /* The entry of info for a member of k reflectors, whose largest magnitude over its lanes' `top` says
   * whether it was finite. */
  __device__ __forceinline__ int info(uint32_t top, int k) const {
    uint32_t zero_column = 0; /* counted from the end */
#pragma unroll
    for (int s = 0; s < slots; s++)
#pragma unroll
      for (int q = width * s / SPLIT; q < local && q * SPLIT < width * (s + 1); q++)
        if (row(q) == column(s) && column(s) < k && real_part(a_[s][q]) == 0)
          zero_column = greater(zero_column, COLS - column(s));
    zero_column = group_max<LANES>(zero_column);
    return !magnitude_finite<T>(group_max<LANES>(top)) ? BATCHQR_INFO_NONFINITE
           : zero_column > 0                           ? COLS + 1 - static_cast<int>(zero_column)
                                                       : 0;
  }

  /* Whether tau and the vectors in the registers are finite, for all the member's lanes. */
  __device__ __forceinline__ bool vectors_finite() {
    uint32_t u = 0;
    for (int j = lane_id() % LANES; j < COLS; j += LANES) u = greater(u, magnitude(tau_[j]));
    each_entry([&](T x, int row, int col) {
      if (row > col) u = greater(u, magnitude(x));
    });
    return magnitude_finite<T>(group_max<LANES>(u));
  }

private:
  T a_[slots][local];
  T own_tau_[LANES == 1 ? COLS : 1], own_scale_[LANES == 1 ? COLS : 1]; /* else they are in shared memory */
  T *tile_, *all_taus_, *tau_, *scale_;
  int r_, c_;

  /* What turn_rows() multiplied this row of R by; `own` is the same number where a lane has all rows. */
  __device__ __forceinline__ R sign_of(int own, int row) const {
    return real_part(LANES == 1 ? own_scale_[own] : scale_[row]);
  }

  __device__ __forceinline__ int row(int q) const { return q * SPLIT + r_; }
  __device__ __forceinline__ int column(int s) const { return c_ + width * s; }

  /* f(entry, row, column) */
  template <class F> __device__ __forceinline__ void each_entry(F &&f) {
#pragma unroll
    for (int s = 0; s < slots; s++)
#pragma unroll
      for (int q = 0; q < local; q++) f(a_[s][q], row(q), column(s));
  }

  /* f(index, k) for the steps in order, or backwards; index: the first of k's segment, a constant. The steps
   * of a segment share their code; forwards it is asked once for them how many there are. */
  template <int segment, bool backwards, class F>
  static __device__ __forceinline__ void each_step(int steps, F &&f) {
    static_for<COLS / segment>([&](auto i) {
      constexpr int base =
          (backwards ? COLS / segment - 1 - decltype(i)::value : decltype(i)::value) * segment;
      constexpr bool whole = !backwards && tile::whole;
      if (whole && base >= steps) return;
      const int count = backwards || whole ? segment : least(segment, steps - base);
#pragma unroll 1
      for (int j = 0; j < count; j++) {
        const int k = base + (backwards ? segment - 1 - j : j);
        if (!backwards || k < steps) f(std::integral_constant<int, base>{}, k);
      }
    });
  }

  /* Entries FIRST .. of a column, from shared memory and to it. */
  template <int FIRST> __device__ __forceinline__ void get(T (&x)[local], const T *col) const {
#pragma unroll
    for (int q = FIRST / unit * unit; q < local; q += unit) {
      pack<T> p = *reinterpret_cast<const pack<T> *>(col + r_ * unit + q * SPLIT);
#pragma unroll
      for (int j = 0; j < unit; j++)
        if (q + j < local) x[q + j] = p.v[j];
    }
  }
  template <int FIRST, class F> __device__ __forceinline__ void put(T *col, F &&f) const {
#pragma unroll
    for (int q = FIRST / unit * unit; q < local; q += unit) {
      pack<T> p;
#pragma unroll
      for (int j = 0; j < unit; j++) p.v[j] = q + j < local ? f(q + j) : zero<T>();
      *reinterpret_cast<pack<T> *>(col + r_ * unit + q * SPLIT) = p;
    }
  }

  /* The largest magnitude of a slot's column. */
  __device__ __forceinline__ uint32_t magnitude_of(int s) const {
    uint32_t u = 0;
#pragma unroll
    for (int q = 0; q < local; q++) u = greater(u, magnitude(a_[s][q]));
    return group_max<SPLIT>(u);
  }

  /* Multiplies each of n columns by the power of two that brings it into range; u: their largest magnitudes,
   * top: of all of the lane's. Returns whether any of the warp's was outside. */
  __device__ __forceinline__ bool bring_into_range(int n, uint32_t (&u)[slots], uint32_t &top) {
    bool out_of_range = false;
#pragma unroll
    for (int s = 0; s < slots; s++) {
      u[s] = magnitude_of(s);
      top = greater(top, u[s]);
      out_of_range |= !column_in_range<T>(u[s]) && column(s) < n;
    }
    out_of_range = group_any(out_of_range);
    if (out_of_range) {
#pragma unroll
      for (int s = 0; s < slots; s++) scale_column(s, column_exponent<T>(u[s]), false);
    }
    return out_of_range;
  }

  /* x / d; the diagonal of R is real. */
  static __device__ __forceinline__ T divided(T x, R d) {
    if constexpr (is_complex<T>)
      return T{x.re / d, x.im / d};
    else
      return x / d;
  }

  /* After factor_system(): a column's exponent, and entry `row` of the solution in range for column b. */
  __device__ __forceinline__ int column_exponent_at(int column) const {
    return static_cast<int>(real_part(tau_[column]));
  }
  __device__ __forceinline__ T brought_back(T x, int row, int b) const {
    if (row >= COLS || b >= COLS) return x;
    const int e = column_exponent_at(row) - column_exponent_at(b), half = e / 2; /* 2^e may be out of range */
    return scaled(scaled(x, exponent_scale<R>(half)), exponent_scale<R>(e - half));
  }

  /* Columns 0 .. steps, in range; where some are `others`, a member's own are only those before the first
   * `own`. positive: whether R's diagonal is not to be negative, maybe a constant. */
  template <bool others = false, class P>
  __device__ __forceinline__ void reduce(int steps, P positive, int own = 0) {
    if constexpr (tile::late) return reduce_late<others>(steps, positive, own);
    if constexpr (LANES == 1) {
#pragma unroll
      for (int j = 0; j < COLS; j++) own_tau_[j] = own_scale_[j] = zero<T>();
    }
    T *col = tile_;
    each_step<tile::segment, false>(steps, [&](auto index, int k) {
      constexpr int base = decltype(index)::value, slot = base / width, first = base / SPLIT,
                    low = SPLIT == 1 ? first + 1 : first; /* of what is multiplied: row k is not */
      const int owner = base % width + k - base, turn = base % SPLIT + k - base;
      const bool owns = LANES == 1 || c_ == owner, has_row = SPLIT == 1 || r_ == turn;
      T x[local], w[slots], pivot[slots], alpha = a_[slot][first];
      const T below = SPLIT == 1 || r_ > turn ? alpha : zero<T>();
      R ss = 0;
      if constexpr (tile::early) {
        ss = abs2(below);
        column_norm<first + 1>(a_[slot], ss);
        opaque_here(ss); /* or it would be formed in a branch */
      }
      if constexpr (LANES > 1) {
        if (owns) {
          put<first>(col, [&](int q) { return q == first ? below : a_[slot][q]; });
          if constexpr (tile::early) norm_parts(col)[r_] = ss;
        }
        warp_sync();
        if constexpr (SPLIT > 1) alpha = broadcast<LANES>(alpha, owner * SPLIT + turn);
        if constexpr (tile::early) ss = sum_of(norm_parts(col));
        get<first>(x, col);
        col += tile::ld;
      } else {
#pragma unroll
        for (int q = first; q < local; q++) x[q] = a_[slot][q];
      }
      if constexpr (SPLIT == 1) alpha = x[first];
#pragma unroll
      for (int s = slot; s < slots; s++) {
        pivot[s] = SPLIT == 1 ? a_[s][first] : broadcast<SPLIT>(a_[s][first], turn);
        w[s] = product<low, slots - slot>(x, a_[s]);
      }
      sum_from<slot>(w);
      if constexpr (!tile::early)
        ss = LANES == 1 ? real_part(w[slot]) : broadcast<LANES>(real_part(w[slot]), owner * SPLIT);
      pivot_reflector<T> h = pivot_larfg(alpha, ss, positive);
      const bool pivots = !others || k < own;
      if (!pivots) h.head = h.factor = zero<T>();
      if (has_row) x[first] = h.head;
#pragma unroll
      for (int s = slot; s < slots; s++) {
        w[s] = h.factor * cmadd(h.head, pivot[s], w[s]);
        if (s == slot && (LANES == 1 || c_ <= owner)) w[s] = zero<T>();
        if (LANES > 1 || s > slot) add<first>(s, -w[s], x);
      }
      if (owns && has_row && pivots) a_[slot][first] = make<T>(h.beta);
      if constexpr (LANES == 1) {
        own_tau_[base] = pivot_tau(h.head, h.factor);
        own_scale_[base] = pivot_scale(h.head);
      } else if (owns && has_row) {
        tau_[k] = h.factor;
        scale_[k] = h.head;
      }
    });
    if constexpr (LANES > 1 && !others) finish_tau();
    if constexpr (LANES == 1) column_write<0>(tau_, own_tau_);
  }

  /* The same for complex members whose columns lanes share: row k enters the products as the head of u, last,
   * and so needs no exchange of its own. A segment's rows may lie in several registers. */
  template <bool others, class P>
  __device__ __forceinline__ void reduce_late(int steps, P positive, int own) {
    T *col = tile_;
    each_step<tile::segment, false>(steps, [&](auto index, int k) {
      constexpr int base = decltype(index)::value, slot = base / width, first = base / SPLIT,
                    rest = (base + tile::segment - 1) / SPLIT + 1; /* rows from there on are below row k */
      const int owner = base % width + k - base;
      const bool owns = c_ == owner;
      R ss = 0;
#pragma unroll
      for (int q = first; q < rest; q++) ss = row(q) > k ? abs2_add(a_[slot][q], ss) : ss;
      column_norm<rest>(a_[slot], ss);
      opaque_here(ss); /* or it would be formed in a branch */
      if (owns) {
        put<first>(col, [&](int q) { return q >= rest || row(q) >= k ? a_[slot][q] : zero<T>(); });
        norm_parts(col)[r_] = ss;
      }
      warp_sync();
      ss = sum_of(norm_parts(col));
      T x[local], w[slots];
      get<first>(x, col);
#pragma unroll
      for (int s = slot; s < slots; s++) w[s] = product<rest, slots - slot>(x, a_[s]);
      pivot_reflector<T> h = pivot_larfg(col[place_of_row(k)], ss, positive);
      const bool pivots = !others || k < own;
      if (!pivots) h.head = h.factor = zero<T>();
#pragma unroll
      for (int q = first; q < rest; q++) {
        if (row(q) == k) x[q] = h.head;
#pragma unroll
        for (int s = slot; s < slots; s++) w[s] = cmadd(x[q], a_[s][q], w[s]);
      }
      sum_from<slot>(w);
#pragma unroll
      for (int s = slot; s < slots; s++) {
        w[s] = -(h.factor * w[s]);
        if (s == slot && c_ <= owner) w[s] = zero<T>();
        add<first>(s, w[s], x);
      }
      if (owns && pivots && r_ == k % SPLIT) {
#pragma unroll
        for (int q = first; q < rest; q++)
          if (row(q) == k) a_[slot][q] = make<T>(h.beta);
        tau_[k] = h.factor;
        scale_[k] = h.head;
      }
      col += tile::ld;
    });
    if constexpr (!others) finish_tau();
  }

  /* From the factors and heads that the steps left in their places, tau and the scales. */
  __device__ __forceinline__ void finish_tau() const {
    warp_sync();
    for (int j = lane_id() % LANES; j < COLS; j += LANES) {
      const T head = scale_[j], factor = tau_[j];
      tau_[j] = pivot_tau(head, factor);
      scale_[j] = pivot_scale(head);
    }
  }

  /* Where put() leaves a row of a column. */
  static __device__ __forceinline__ int place_of_row(int i) {
    const int q = i / SPLIT;
    return i % SPLIT * unit + q / unit * unit * SPLIT + q % unit;
  }

  /* |a|^2 from entry FIRST on, added to ss. */
  template <int FIRST> static __device__ __forceinline__ void column_norm(const T *a, R &ss) {
    R part[4] = {ss, 0, 0, 0};
#pragma unroll
    for (int q = FIRST; q < local; q++) part[q % 4] = abs2_add(a[q], part[q % 4]);
    ss = (part[0] + part[1]) + (part[2] + part[3]);
  }

  /* A published column's squared norm: the lanes' parts, and their sum. */
  static __device__ __forceinline__ R *norm_parts(T *col) {
    return reinterpret_cast<R *>(col + tile::norm_at);
  }
  static __device__ __forceinline__ R sum_of(const R *parts) {
    constexpr int each = SPLIT < pack<R>::size ? SPLIT : pack<R>::size;
    struct alignas(each * sizeof(R)) some {
      R v[each];
    };
    R sum = 0;
#pragma unroll
    for (int r = 0; r < SPLIT; r += each) {
      some p = *reinterpret_cast<const some *>(parts + r);
#pragma unroll
      for (int i = 0; i < each; i++) sum = r + i == 0 ? p.v[0] : sum + p.v[i];
    }
    return sum;
  }

  /* From what reduce() left below the diagonal, the vectors; columns without one have zeros there. */
  __device__ __forceinline__ void scale_vectors(int steps) {
    warp_sync();
#pragma unroll
    for (int s = 0; s < slots; s++) {
      const T f = LANES == 1 ? own_scale_[s] : column(s) < steps ? scale_[column(s)] : zero<T>();
#pragma unroll
      for (int q = 0; q < local; q++)
        if ((q + 1) * SPLIT > width * s && row(q) > column(s)) a_[s][q] = a_[s][q] * f;
    }
  }

  /* Column s times 2^exponent; only what belongs to R, where r_only. */
  __device__ __forceinline__ void scale_column(int s, int exponent, bool r_only) {
    R scale = exponent_scale<R>(exponent);
#pragma unroll
    for (int q = 0; q < local; q++)
      if (!r_only || row(q) <= column(s)) a_[s][q] = scaled(a_[s][q], scale);
  }

  /* The lane's part of x^H y from entry FIRST on; one of `columns` such products at a time. */
  template <int FIRST, int columns> static __device__ __forceinline__ T product(const T *x, const T *y) {
    constexpr int chains = columns > 2 ? 1 : 4 / columns;
    T part[chains] = {};
#pragma unroll
    for (int q = FIRST; q < local; q++) part[q % chains] = cmadd(x[q], y[q], part[q % chains]);
#pragma unroll
    for (int i = 1; i < chains; i++) part[0] += part[i];
    return part[0];
  }

  /* The sums of the lanes' parts, side by side. */
  template <int SLOT> static __device__ __forceinline__ void sum_from(T (&w)[slots]) {
#pragma unroll
    for (int d = SPLIT / 2; d > 0; d /= 2)
#pragma unroll
      for (int s = SLOT; s < slots; s++) w[s] += exchange(w[s], d);
  }

  /* Column s += w x from entry FIRST on. */
  template <int FIRST> __device__ __forceinline__ void add(int s, T w, const T *x) {
#pragma unroll
    for (int q = FIRST; q < local; q++) a_[s][q] = madd(w, x[q], a_[s][q]);
  }
};

} // namespace bqr

#endif
