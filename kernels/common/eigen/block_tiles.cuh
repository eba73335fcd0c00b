/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of a Hermitian matrix of up to N = 32 TILES rows to tridiagonal form, as tridiagonal.cuh does it,
 * by a block that holds the lower triangle on the chip, in tiles of 32 x 32: those of the last columns in
 * registers, HELD to a warp, the others in shared memory. A smaller matrix lies in the last of the N rows.
 *
 * A lane has rows lane / 4, 8 rows further ... of a tile, and columns lane % 4, 4 columns further ... It
 * updates its entries by the step before, and multiplies them by the column x both ways: sums over the tile's
 * columns for its rows, and over its rows for its columns, which are rows of the other triangle. Tiles on the
 * diagonal are held whole.
 *
 * A step has two barriers of the block and one of the warps that have a row to a thread between them. Before
 * the first, all warps work on tiles, and the last one makes the reflector. After it, v, w and the next x are
 * made of the sums. */
#ifndef BQR_KERNELS_COMMON_EIGEN_BLOCK_TILES_CUH
#define BQR_KERNELS_COMMON_EIGEN_BLOCK_TILES_CUH

#include "common/eigen/step.cuh"
#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"
#include "common/simt/block.cuh"

namespace bqr {

template <class T, int TILES, int WARPS, int HELD> class block_tiles {
  using R = real_t<T>;
  static_assert(WARPS >= TILES, "a thread for each row");
  static constexpr int side = warp_lanes, N = side * TILES, number = TILES * (TILES + 1) / 2,
                       kept = WARPS * HELD; /* tiles in registers */
  static constexpr int lane_rows = 4, lane_columns = 8, maker = WARPS - 1;
  struct alignas(2 * sizeof(T)) pair_of {
    T x[2];
  };
  struct alignas(2 * sizeof(T)) step_entry {
    T v, w;
  };
  struct place {
    int row, column; /* of tiles */
  };
  using tile_entries = T[lane_columns][lane_rows];

public:
  static constexpr int registers = HELD * lane_rows * lane_columns * static_cast<int>(sizeof(T)) / 4;
  struct storage {
    pair_of tiles[number - kept][side * side / 2];
    step_entry entries[N]; /* of the last step */
    T x[N];                /* the column of this step */
    T next[N];             /* column k + 1 */
    T part[TILES][N];      /* A x */
    R energy[TILES];       /* x^H A x */
    R rest[TILES];         /* |x|^2 without its first entry */
    reflector<T> h;
    T first; /* (A x)(k + 1) */
    uint32_t most;
  };

  __device__ block_tiles(storage &shared, int n)
      : s(shared), before_(N - n), warp_(warp_id()), row_(lane_id() / 4), column_(lane_id() % 4) {}

  /* Reads a triangle. Returns the largest magnitude of it, see magnitude_or_one(). */
  __device__ __forceinline__ uint32_t load(const matrix_view<T> &a, bool lower) {
    if (thread_id() == 0) s.most = 0;
    block_sync();
    uint32_t u = 0;
    each_tile([&](auto &tile, const place &at) {
#pragma unroll
      for (int c = 0; c < lane_columns; c++) {
        T z[lane_rows];
#pragma unroll
        for (int r = 0; r < lane_rows; r++) {
          const int i = row_of(at, r), j = column_of(at, c);
          const bool stored = lower ? i >= j : i <= j; /* off the diagonal tiles i > j */
          z[r] = zero<T>();
          if (least(i, j) >= before_)
            z[r] = stored ? *a.at(i - before_, j - before_) : conj(*a.at(j - before_, i - before_));
          if (i == j) z[r] = make<T>(real_part(z[r]));
          u = greater(u, magnitude_or_one(z[r]));
        }
        tile.write(c, z);
      }
    });
    u = group_max(u);
    if (lane_id() == 0) shared_max(&s.most, u);
    block_sync();
    return s.most;
  }

  /* After load(): the matrix times 2^exponent to tridiagonal form. d: n numbers, e: n - 1. v of H(k) goes to
   * column k of `to`, rows k + 1 on, and tau, which is tau[tau_step k], unless there is nothing to write to.
   */
  __device__ __forceinline__ void run(int exponent, R *d, R *e, const matrix_view<T> &to, T *tau,
                                      int tau_step) {
    const R half = times_power(R(1), exponent / 2), rest = times_power(R(1), exponent - exponent / 2);
    each_tile([&](auto &tile, const place &at) {
#pragma unroll
      for (int c = 0; c < lane_columns; c++) {
        T z[lane_rows];
        tile.read(c, z);
#pragma unroll
        for (int r = 0; r < lane_rows; r++) z[r] = scaled(scaled(z[r], half), rest);
        tile.write(c, z);
        if (column_of(at, c) == before_) store_next(at, z);
      }
    });
    block_sync();
    if (warp_ < TILES) {
      const int i = thread_id();
      const T x = i > before_ ? s.next[i] : zero<T>();
      if (i == before_) d[0] = real_part(s.next[i]);
      s.entries[i] = {zero<T>(), zero<T>()};
      begin_step(i, before_ + 1, x);
    }
    block_sync();
    for (int k = before_; k < N - 1; k++) {
      if (warp_ == maker) make_reflector(k);
      each_active_tile(k + 1, [&](auto &tile, const place &at) { pass(k, tile, at); });
      block_sync();
      if (warp_ < TILES) finish(k, d, e, to, tau + (k - before_) * tau_step);
      block_sync();
    }
  }

private:
  /* A lane's part of a tile. */
  struct held_tile {
    tile_entries &a;
    __device__ __forceinline__ void read(int c, T (&z)[lane_rows]) const {
#pragma unroll
      for (int r = 0; r < lane_rows; r++) z[r] = a[c][r];
    }
    __device__ __forceinline__ void write(int c, const T (&z)[lane_rows]) const {
#pragma unroll
      for (int r = 0; r < lane_rows; r++) a[c][r] = z[r];
    }
  };
  struct shared_tile {
    pair_of *a;
    __device__ __forceinline__ pair_of &at(int c, int half) const {
      return a[(2 * c + half) * warp_lanes + lane_id()];
    }
    __device__ __forceinline__ void read(int c, T (&z)[lane_rows]) const {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const pair_of p = at(c, half);
        z[2 * half] = p.x[0];
        z[2 * half + 1] = p.x[1];
      }
    }
    __device__ __forceinline__ void write(int c, const T (&z)[lane_rows]) const {
#pragma unroll
      for (int half = 0; half < 2; half++) at(c, half) = {{z[2 * half], z[2 * half + 1]}};
    }
  };

  /* Tiles are counted from the last column back, so that those that a step has work in are the first ones. */
  __device__ __forceinline__ static int tiles_from(int column) {
    return (TILES - column) * (TILES - column + 1) / 2;
  }
  __device__ __forceinline__ static place place_of(int tile) {
    int column = 0;
#pragma unroll
    for (int c = 1; c < TILES; c++) column += tile < tiles_from(c) ? 1 : 0;
    return {column + tile - tiles_from(column + 1), column};
  }
  __device__ __forceinline__ int row_of(const place &at, int r) const {
    return side * at.row + row_ + side / lane_rows * r;
  }
  __device__ __forceinline__ int column_of(const place &at, int c) const {
    return side * at.column + column_ + side / lane_columns * c;
  }

  /* The first `count` tiles. */
  template <class F> __device__ __forceinline__ void each_of(int count, F &&f) {
#pragma unroll
    for (int h = 0; h < HELD; h++) {
      const int tile = h * WARPS + warp_;
      if (tile >= count) continue;
      held_tile held{a_[h]};
      f(held, place_of(tile));
    }
    for (int tile = kept + warp_; tile < count; tile += WARPS) {
      shared_tile shared{s.tiles[tile - kept]};
      f(shared, place_of(tile));
    }
  }
  template <class F> __device__ __forceinline__ void each_tile(F &&f) { each_of(number, f); }
  /* Those with columns from `first` on. */
  template <class F> __device__ __forceinline__ void each_active_tile(int first, F &&f) {
    each_of(tiles_from(first / side), f);
  }

  __device__ __forceinline__ void store_next(const place &at, const T (&z)[lane_rows]) {
#pragma unroll
    for (int r = 0; r < lane_rows; r++) s.next[row_of(at, r)] = z[r];
  }

  /* Column k's reflector. */
  __device__ __forceinline__ void make_reflector(int k) {
    const T alpha = s.x[k + 1];
    R rest = 0;
#pragma unroll
    for (int w = 0; w < TILES; w++) rest += s.rest[w];
    reflector<T> h = {zero<T>(), R(0), R(1), zero<T>()};
    if (abs2_add(alpha, rest) > least2_of_step<R>) h = larfg(alpha, rest, R(1), false);
    if (lane_id() == 0) s.h = h;
  }

  /* N sums over lanes that differ in N STEP: the one of v[i] comes out where lane / STEP % N == i. */
  template <int STEP, int COUNT> __device__ __forceinline__ static T sum_scatter(T (&v)[COUNT]) {
#pragma unroll
    for (int n = COUNT / 2; n > 0; n /= 2) {
      const bool upper = (lane_id() & (n * STEP)) != 0;
#pragma unroll
      for (int i = 0; i < COUNT / 2; i++)
        if (i < n) {
          const T mine = upper ? v[i + n] : v[i], other = upper ? v[i] : v[i + n];
          v[i] = mine + exchange(other, n * STEP);
        }
    }
    return v[0];
  }

  /* Columns up to k are left alone, but for some that have zeros for x, v and w. */
  template <class TILE> __device__ __forceinline__ void pass(int k, TILE &tile, const place &at) {
    const int from = k + 1 - side * at.column, begin = largest(from, 0) / 4;
    const bool has_next = from >= 0 && column_ == from % 4;
    step_entry mine[lane_rows];
    T x[lane_rows], y[lane_rows], down[lane_columns];
#pragma unroll
    for (int r = 0; r < lane_rows; r++) {
      mine[r] = s.entries[row_of(at, r)];
      x[r] = s.x[row_of(at, r)];
      y[r] = zero<T>();
    }
#pragma unroll
    for (int c = 0; c < lane_columns; c++) {
      down[c] = zero<T>();
      if (c < begin) continue;
      const step_entry other = s.entries[column_of(at, c)];
      const T factor = s.x[column_of(at, c)];
      T z[lane_rows];
      tile.read(c, z);
#pragma unroll
      for (int r = 0; r < lane_rows; r++) {
        z[r] = updated(z[r], mine[r].v, mine[r].w, other.v, other.w);
        y[r] = madd(z[r], factor, y[r]);
        down[c] = cmadd(z[r], x[r], down[c]);
      }
      tile.write(c, z);
      if (c == begin && has_next) store_next(at, z);
    }
    const T across = sum_scatter<1>(y);
    s.part[at.column][row_of(at, column_)] = across;
    if (at.row == at.column) return;
    const T total = sum_scatter<4>(down);
    s.part[at.row][side * at.column + column_ + 4 * row_] = total;
  }

  /* x: this thread's entry, row i, of the column whose reflector begins in row `first`. */
  __device__ __forceinline__ void begin_step(int i, int first, T x) {
    s.x[i] = x;
    const R rest = group_sum(i > first ? abs2_add(x, R(0)) : R(0));
    if (lane_id() == 0) s.rest[warp_] = rest;
  }

  /* v and w of step k, and the next column. Threads have rows. */
  __device__ __forceinline__ void finish(int k, R *d, R *e, const matrix_view<T> &to, T *tau) {
    const int i = thread_id(), first = k + 1, column = k - before_;
    const bool active = i > k;
    T q = zero<T>(), a = zero<T>(), x = zero<T>();
    if (active) {
      x = s.x[i];
      a = s.next[i];
#pragma unroll
      for (int p = 0; p < TILES; p++)
        if (p >= first / side) q = q + s.part[p][i];
      if (i == first) s.first = q;
    }
    const R mine = group_sum(real_part(cmadd(x, q, zero<T>())));
    if (lane_id() == 0) s.energy[warp_] = mine;
    named_sync(1, TILES * warp_lanes);
    if (warp_ < k / side) return;
    const reflector<T> h = s.h;
    R energy = 0;
#pragma unroll
    for (int w = 0; w < TILES; w++) energy += s.energy[w];
    const T a_first = s.next[first], q_first = s.first;
    const R most = fused(h.beta, fused(h.beta, real_part(a_first), -2 * real_part(q_first)), energy) *
                   abs2(h.scale), /* v^H A v */
        half = R(-0.5) * abs2(h.tau) * most;
    const auto find_w = [&](T product, T entry, T v) {
      return madd(h.tau, h.scale * madd(make<T>(-h.beta), entry, product), scaled(v, half));
    };
    const T w_first = find_w(q_first, a_first, one<T>());
    T v = zero<T>(), w = zero<T>(), next = zero<T>();
    if (active) {
      v = i == first ? one<T>() : x * h.scale;
      w = i == first ? w_first : find_w(q, a, v);
      next = updated(a, v, w, one<T>(), w_first);
      if (to.data) *to.at(i - before_, column) = v;
    }
    s.entries[i] = {v, w};
    begin_step(i, first + 1, i > first ? next : zero<T>());
    if (i == first) {
      d[column + 1] = real_part(next);
      e[column] = h.beta;
      if (to.data) *tau = h.tau;
    }
  }

  storage &s;
  int before_, warp_, row_, column_; /* of the lane in a tile */
  tile_entries a_[HELD];
};

} // namespace bqr

#endif
