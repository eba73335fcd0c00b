/* SPDX-License-Identifier: BSD-3-Clause */
/* Tiny members: how the *_warp families factor them and form Q. A member lies in the registers of LANES lanes
 * of a warp: SPLIT lanes share a column, in turns of 16 bytes, and LANES / SPLIT columns lie side by side. To
 * factor, the pivot's lanes publish its column in shared memory; each lane multiplies it with its own
 * columns, and the product of the pivot with itself is the squared norm. To form Q, the vectors lie in shared
 * memory and each lane has columns of Q. Sums cross SPLIT lanes only; with one lane for a member nothing is
 * exchanged at all.
 *
 * Methods: xGEQR2 with columns in range as in columns.cuh; xORG2R. */
#ifndef BATCHQR_KERNELS_COMMON_TINY_CUH
#define BATCHQR_KERNELS_COMMON_TINY_CUH

#include "columns.cuh"
#include "member.cuh"
#include "tile.cuh"

namespace bqr {

/* The places of a warp's members in shared memory: their tiles, tau and scales of the vectors, and two of the
 * pivots' rows. */
template <class T, int ROWS, int COLS, int LANES, int SPLIT> struct tiny_tile {
  static constexpr int rows = ROWS, cols = COLS, lanes = LANES;
  static constexpr int unit = pack<T>::size, members = warp_lanes / LANES;
  static constexpr int width = LANES / SPLIT, slots = COLS / width, local = ROWS / SPLIT;
  static_assert(COLS <= ROWS && COLS % width == 0 && ROWS % (SPLIT * unit) == 0, "the same for all lanes");

  /* A multiprocessor serves 8 units at once: here lanes' reads of their columns, and of the pivot's, that lie
   * in 8 different places. */
  static constexpr int ld_rule = LANES >= 8 ? 1 : 8 / LANES, ld_modulus = 2 * ld_rule;
  static constexpr int ld_blocks(int b) {
    return LANES == 1 || b % ld_modulus == ld_rule ? b : ld_blocks(b + 1);
  }
  static constexpr int block = unit * SPLIT, ld = block * ld_blocks(ROWS / block);
  static constexpr int size = block * (COLS * ld / block | 1);
  static constexpr size_t smem = sizeof(T) * members * (size + (LANES == 1 ? 1 : SPLIT == 1 ? 2 : 4) * COLS);

  /* Steps that share their code. Unrolled code of more multiply-adds than this is fetched more slowly than it
   * is executed: 32 x 32, c 2.1 ms instead of 0.68, z 1.6 instead of 0.72; for less, loops are slower (16 x
   * 16, d: 0.45 ms instead of 0.29). Forming Q, they cost next to nothing. */
  static constexpr int multiply_adds = COLS * slots * local * (is_complex<T> ? 4 : 1);
  static constexpr bool rolled = SPLIT > 1 && multiply_adds > 2048;
  static constexpr int segment = !rolled ? 1 : width < block ? width : block;
  static constexpr int q_segment = width < 8 ? width : 8;

  /* Lanes that move one member: as many as it has units, at most a warp. */
  static constexpr int movers(int lanes) {
    return lanes < warp_lanes && lanes < ROWS * COLS / unit ? movers(2 * lanes) : lanes;
  }
};

/* Whether a column with this largest magnitude() needs no scale. */
template <class T> __device__ __forceinline__ bool column_in_range(uint32_t u) {
  using C = column_range<real_t<T>>;
  return u - C::lo < C::hi - C::lo;
}

/* The most of the warp's members. */
__device__ __forceinline__ int tiny_steps(int k) {
  return static_cast<int>(group_max(static_cast<uint32_t>(k)));
}

/* Entry (row(q), column(s)) of the member is a_[s][q]. */
template <class T, int ROWS, int COLS, int LANES, int SPLIT> class tiny_qr {
  using R = real_t<T>;
  using tile = tiny_tile<T, ROWS, COLS, LANES, SPLIT>;
  static constexpr int unit = tile::unit, block = tile::block, width = tile::width, slots = tile::slots,
                       local = tile::local;

public:
  __device__ __forceinline__ explicit tiny_qr(T *shared)
      : r_(lane_id() % SPLIT), c_(lane_id() % LANES / SPLIT) {
    const int g = lane_id() / LANES;
    tile_ = shared + g * tile::size;
    shared += tile::members * tile::size;
    all_taus_ = shared;
    tau_ = shared + g * COLS;
    scale_ = tau_ + tile::members * COLS;
    lines_ = shared + (tile::members + g) * 2 * COLS;
  }

  /* From the tile, the first m x n entries; zeros around them. */
  __device__ __forceinline__ void read(int m, int n) {
#pragma unroll
    for (int s = 0; s < slots; s++) get<0>(a_[s], tile_ + column(s) * tile::ld);
    if (group_any(m < ROWS || n < COLS))
      each_entry([&](T &x, int row, int col) {
        if (row >= m || col >= n) x = zero<T>();
      });
  }

  __device__ __forceinline__ void write() const {
#pragma unroll
    for (int s = 0; s < slots; s++) put<0>(tile_ + column(s) * tile::ld, [&](int q) { return a_[s][q]; });
  }

  /* The vectors alone, with their ones and zeros. */
  __device__ __forceinline__ void write_vectors() const {
#pragma unroll
    for (int s = 0; s < slots; s++)
      put<0>(tile_ + column(s) * tile::ld, [&](int q) {
        return row(q) > column(s) ? a_[s][q] : row(q) == column(s) ? one<T>() : zero<T>();
      });
  }

  /* Factors n columns, k of them by reflectors. Without `vectors`, what is below R is of no use after it.
   * Returns the largest magnitude that was in the lane's columns. */
  template <bool vectors> __device__ __forceinline__ uint32_t factor(int n, int k) {
    uint32_t top = 0, u[slots];
    const bool out_of_range = bring_into_range(n, u, top);
    const int steps = tiny_steps(k);
    reduce(steps);
    if constexpr (vectors) scale_vectors(steps);
    if (out_of_range) {
#pragma unroll
      for (int s = 0; s < slots; s++) scale_column(s, -column_exponent<T>(u[s]), true);
    }
    return top;
  }

  /* Of n columns, those before the first k are factored, and Q^H is applied to the rest. All stay in range,
   * multiplied by powers of two, whose exponents come where tau was. Returns what factor() does. */
  __device__ __forceinline__ uint32_t factor_system(int n, int k, bool &scaled) {
    uint32_t top = 0, u[slots];
    scaled = bring_into_range(n, u, top);
    reduce<true>(tiny_steps(k), k);
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
      constexpr int base = decltype(index)::value, first = base / block * unit;
      T x[local];
      get<first>(x, tile_ + k * tile::ld);
      const T t = tau_[k];
#pragma unroll
      for (int s = base / width; s < slots; s++)
        add<first>(s, -(t * product<first, slots - base / width>(x, a_[s])), x);
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
    dense_walk<T, COLS, 1, tile::members, COLS, COLS>::store(to, all_taus_);
  }

  /* The entry of info for a member of k reflectors, written to its tile, whose largest magnitude over its
   * lanes' `top` says whether it was finite. */
  __device__ __forceinline__ int info(uint32_t top, int k) const {
    uint32_t zero_column = 0; /* counted from the end */
    for (int j = lane_id() % LANES; j < k; j += LANES)
      if (real_part(tile_[j * tile::ld + j]) == 0) zero_column = greater(zero_column, COLS - j);
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
  T *tile_, *all_taus_, *tau_, *scale_, *lines_;
  int r_, c_;

  __device__ __forceinline__ int row(int q) const { return (q / unit * SPLIT + r_) * unit + q % unit; }
  __device__ __forceinline__ int column(int s) const { return c_ + width * s; }

  /* f(entry, row, column) */
  template <class F> __device__ __forceinline__ void each_entry(F &&f) {
#pragma unroll
    for (int s = 0; s < slots; s++)
#pragma unroll
      for (int q = 0; q < local; q++) f(a_[s][q], row(q), column(s));
  }

  /* f(index, k) for the steps in order, or backwards; index: the first of k's segment, a constant. The steps
   * of a segment share their code. */
  template <int segment, bool backwards, class F>
  static __device__ __forceinline__ void each_step(int steps, F &&f) {
    static_for<COLS / segment>([&](auto i) {
      constexpr int base =
          (backwards ? COLS / segment - 1 - decltype(i)::value : decltype(i)::value) * segment;
#pragma unroll 1
      for (int j = 0; j < segment; j++) {
        const int k = base + (backwards ? segment - 1 - j : j);
        if (k < steps) f(std::integral_constant<int, base>{}, k);
      }
    });
  }

  /* Entries FIRST .. of a column, from shared memory and to it. */
  template <int FIRST> __device__ __forceinline__ void get(T (&x)[local], const T *col) const {
#pragma unroll
    for (int q = FIRST / unit * unit; q < local; q += unit) {
      pack<T> p = *reinterpret_cast<const pack<T> *>(col + r_ * unit + q * SPLIT);
#pragma unroll
      for (int j = 0; j < unit; j++) x[q + j] = p.v[j];
    }
  }
  template <int FIRST, class F> __device__ __forceinline__ void put(T *col, F &&f) const {
#pragma unroll
    for (int q = FIRST / unit * unit; q < local; q += unit) {
      pack<T> p;
#pragma unroll
      for (int j = 0; j < unit; j++) p.v[j] = f(q + j);
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
   * `own`. */
  template <bool others = false> __device__ __forceinline__ void reduce(int steps, int own = 0) {
    if constexpr (LANES == 1) {
#pragma unroll
      for (int j = 0; j < COLS; j++) own_tau_[j] = own_scale_[j] = zero<T>();
    }
    each_step<tile::segment, false>(steps, [&](auto index, int k) {
      constexpr int base = decltype(index)::value, slot = base / width,
                    below = SPLIT == 1 ? base + 1 : base / block * unit;
      const int owner = k % width;
      T x[local], pivot[slots], w[slots];
      publish<base>(k);
      take<base>(k, x, pivot);
      const T alpha = SPLIT == 1 ? x[base] : lines_[k % 2 * COLS + k];
#pragma unroll
      for (int s = slot; s < slots; s++) w[s] = product<below, slots - slot>(x, a_[s]);
      R norm2 = real_part(w[slot]);
      if constexpr (LANES > 1) norm2 = broadcast<LANES>(norm2, owner * SPLIT + r_);
      column_reflector<T> h = larfg_in_range(alpha, norm2);
      const bool pivots = !others || k < own;
      if (!pivots) h.tau = h.scale = zero<T>();
      const T v = -h.scale;
#pragma unroll
      for (int s = slot; s < slots; s++) {
        /* H^H a = a - conj(tau) v (v^H a), v = (1; scale x) */
        w[s] = conj(h.tau) * cmadd(h.scale, w[s], pivot[s]);
        if (s == slot && (LANES == 1 || c_ <= owner)) w[s] = zero<T>();
        pivot[s] -= w[s];
        if (s == slot && c_ == owner && pivots) pivot[s] = make<T>(h.beta);
        set_pivot<base>(k, s, pivot[s]);
        if (LANES > 1 || s > slot) add<below>(s, w[s] * v, x);
      }
      if constexpr (LANES == 1) {
        own_tau_[base] = h.tau;
        own_scale_[base] = h.scale;
      } else if (c_ == owner && r_ == 0) {
        tau_[k] = h.tau;
        scale_[k] = h.scale;
      }
    });
    if constexpr (LANES == 1) column_write<0>(tau_, own_tau_);
  }

  /* Step k's column to shared memory; where columns are shared, with zeros down to row k, which goes to a
   * line of its own. */
  template <int base> __device__ __forceinline__ void publish(int k) const {
    constexpr int slot = base / width, first = base / block * unit;
    if constexpr (LANES > 1) {
      if (c_ == k % width)
        put<first>(tile_ + k * tile::ld, [&](int q) {
          return SPLIT == 1 || q >= first + unit || row(q) > k ? a_[slot][q] : zero<T>();
        });
      if constexpr (SPLIT > 1)
#pragma unroll
        for (int s = slot; s < slots; s++) {
          T x = a_[s][first];
#pragma unroll
          for (int j = 1; j < unit; j++)
            if (k % unit == j) x = a_[s][first + j];
          if (has_row(k)) lines_[k % 2 * COLS + column(s)] = x;
        }
      warp_sync();
    }
  }

  /* What was published: the lane's entries of the column, and of row k. */
  template <int base> __device__ __forceinline__ void take(int k, T (&x)[local], T (&pivot)[slots]) const {
    constexpr int slot = base / width;
    if constexpr (LANES == 1) {
#pragma unroll
      for (int q = base; q < local; q++) x[q] = a_[slot][q];
    } else {
      get<base / block * unit>(x, tile_ + k * tile::ld);
    }
#pragma unroll
    for (int s = slot; s < slots; s++) pivot[s] = SPLIT == 1 ? a_[s][base] : lines_[k % 2 * COLS + column(s)];
  }

  /* Entry (k, column(s)). */
  template <int base> __device__ __forceinline__ void set_pivot(int k, int s, T x) {
    constexpr int first = base / block * unit;
    if constexpr (SPLIT == 1) {
      a_[s][base] = x;
    } else {
#pragma unroll
      for (int j = 0; j < unit; j++)
        if (has_row(k) && k % unit == j) a_[s][first + j] = x;
    }
  }
  __device__ __forceinline__ bool has_row(int k) const { return k / unit % SPLIT == r_; }

  /* From what reduce() left below the diagonal, the vectors; columns without one have zeros there. */
  __device__ __forceinline__ void scale_vectors(int steps) {
    warp_sync();
#pragma unroll
    for (int s = 0; s < slots; s++) {
      const T f = LANES == 1 ? own_scale_[s] : column(s) < steps ? scale_[column(s)] : zero<T>();
#pragma unroll
      for (int q = 0; q < local; q++)
        if ((q / unit + 1) * block > width * s && row(q) > column(s)) a_[s][q] = a_[s][q] * f;
    }
  }

  /* Column s times 2^exponent; only what belongs to R, where r_only. */
  __device__ __forceinline__ void scale_column(int s, int exponent, bool r_only) {
    R scale = exponent_scale<R>(exponent);
#pragma unroll
    for (int q = 0; q < local; q++)
      if (!r_only || row(q) <= column(s)) a_[s][q] = scaled(a_[s][q], scale);
  }

  /* x^H y from entry FIRST on, over the lanes that share a column; one of `columns` such products at a time.
   */
  template <int FIRST, int columns> static __device__ __forceinline__ T product(const T *x, const T *y) {
    constexpr int chains = columns > 2 ? 1 : 4 / columns;
    T part[chains] = {};
#pragma unroll
    for (int q = FIRST; q < local; q++) part[q % chains] = cmadd(x[q], y[q], part[q % chains]);
#pragma unroll
    for (int i = 1; i < chains; i++) part[0] += part[i];
    return group_sum<SPLIT>(part[0]);
  }

  /* Column s += w x from entry FIRST on. */
  template <int FIRST> __device__ __forceinline__ void add(int s, T w, const T *x) {
#pragma unroll
    for (int q = FIRST; q < local; q++) a_[s][q] = madd(w, x[q], a_[s][q]);
  }
};

} // namespace bqr

#endif
