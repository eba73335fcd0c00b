/* SPDX-License-Identifier: BSD-3-Clause */
/* geqp3_grid: members in global memory, each worked on by one block of threads or by several, all of which
 * run at once and wait for one another.
 *
 * Panels as in LAPACK's xLAQPS: within one, trailing columns stay as they are at its beginning, A, while what
 * they have become is A - V F, F having a row for each reflector. A step reads them once, for F's next row.
 * It has two halves. First blocks share the rows: they make of the longest column what it has become,
 * exchange it with the one in its place, and sum up its norm and its products with V. Then they share the
 * columns, C's too: F's next row, the next row of R, and norms, downdated. A panel ends early where a norm
 * has lost too much to cancellation, or with the last step; then A - V F takes A's place, and all norms are
 * summed up anew.
 */
#include "common/matrix/range.cuh"
#include "common/panel/columns.cuh"
#include "common/panel/pivoted_qr.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

constexpr int tile_cols = 8; /* columns whose products are formed together */

/* Threads of a block; where several share a member, its warps share a column's rows, too. */
template <bool SHARED> constexpr int threads_of = SHARED ? 512 : 256;
/* Reflectors of a panel. */
template <class T> constexpr int panel_of = sizeof(T) == 16 ? 16 : 32;

/* A block's offer: its longest column, and whether one of its norms is to be summed up anew. */
template <class R> struct offer {
  R norm;
  int column, doubtful;
};

/* The memory of those who share a member. */
template <class T> struct places {
  using R = real_t<T>;
  T *f;              /* cols x panel: F^T */
  T *partial;        /* a panel's length + 1 for each block */
  R *norms, *before; /* of each column what is left of it, and what was when it was summed up last */
  R *diagonal;
  offer<R> *offers;                /* of each block */
  int *exponents;                  /* of R's rows, as pivoting::exponent */
  unsigned *arrivals, *magnitudes; /* of blocks that have come to a barrier; see largest_magnitude() */

  /* At the beginning, and 0 before the launch. */
  static constexpr size_t words = 256;

  BQR_INLINE static size_t bytes(int m, int n, int k, int blocks) {
    const size_t cols = static_cast<size_t>(n) + static_cast<size_t>(k),
                 steps = static_cast<size_t>(least(m, n)), b = static_cast<size_t>(blocks), nb = panel_of<T>;
    return words + ((cols * nb + b * (nb + 1)) * sizeof(T) + (2 * cols + steps) * sizeof(R) +
                    b * sizeof(offer<R>) + (steps + 1) * sizeof(int) + 255) /
                       256 * 256;
  }
  __device__ __forceinline__ static places at(void *memory, int m, int n, int k, int blocks) {
    const int64_t cols = int64_t(n) + k, steps = least(m, n), nb = panel_of<T>;
    places p;
    p.arrivals = static_cast<unsigned *>(memory);
    p.magnitudes = p.arrivals + 1;
    p.f = reinterpret_cast<T *>(static_cast<unsigned char *>(memory) + words);
    p.partial = p.f + cols * nb;
    p.norms = reinterpret_cast<R *>(p.partial + blocks * (nb + 1));
    p.before = p.norms + cols;
    p.diagonal = p.before + cols;
    p.offers = reinterpret_cast<offer<R> *>(p.diagonal + steps);
    p.exponents = reinterpret_cast<int *>(p.offers + blocks);
    return p;
  }
};

/* What a block's threads tell one another. */
template <class T, bool SHARED> struct block_memory {
  static constexpr int warps = threads_of<SHARED> / warp_lanes;
  T sums[warps][panel_of<T> + 1];
  T vector[panel_of<T>], row[panel_of<T>]; /* V^H v of this step; row j of V */
  T total;
  T dots[threads_of<SHARED>]; /* of as many columns, or of tile_cols of each warp */
  T f[panel_of<T>][tile_cols];
  real_t<T> norms[warps][tile_cols];
  offer<real_t<T>> offers[warps];
  uint32_t word;
};

/* How often a block has waited for the others of its group, and what for, all members together. */
struct progress {
  unsigned arrivals;
  int magnitudes;
};

template <class T, bool SHARED> class grid_qr {
  using R = real_t<T>;
  static constexpr int threads = threads_of<SHARED>, warps = threads / warp_lanes, nb = panel_of<T>;

public:
  __device__ grid_qr(const bqr_args &args, const member &x, const places<T> &p, int block, int blocks,
                     progress &so_far, block_memory<T, SHARED> &shared)
      : args_(args), x_(x), p_(p), s_(shared), so_far_(so_far), block_(block), blocks_(blocks), m_(x.m),
        n_(x.n), cols_(x.n + (args.c.data ? x.k : 0)), ldf_(int64_t(x.n) + x.k) {
    lda_ = matrix_ld(args.a, x.id);
    ldc_ = matrix_ld(args.c, x.id);
    if (m_ > 0 && n_ > 0) a_ = matrix_data<T>(args, args.a, x.id);
    if (m_ > 0 && cols_ > n_) c_ = matrix_data<T>(args, args.c, x.id);
    if (m_ == 0) cols_ = n_;
  }

  __device__ int run() {
    const uint32_t u = largest_magnitude(
        [&](auto &&f) { for_elements(0, 0, cols_, [&](T &x, int, int) { f(magnitude_or_one(x)); }); });
    int rank = 0;
    const bool finite = magnitude_finite<T>(u);
    if (finite) {
      rank = factor();
      finish(rank);
    }
    if (args_.rank.data && is_first()) *vector_data<int>(args_.rank, x_.id) = rank;
    return finite ? 0 : BATCHQR_INFO_NONFINITE;
  }

private:
  /* --- blocks that share a member */

  __device__ __forceinline__ bool is_first() const { return block_ == 0 && thread_id() == 0; }

  /* Waits for all of them, and for what they have written. */
  __device__ void meet() {
    block_sync();
    if (!SHARED) return;
    if (thread_id() == 0) {
      so_far_.arrivals += static_cast<unsigned>(blocks_);
      device_fence();
      atomicAdd(p_.arrivals, 1u);
      while (static_cast<int>(*const_cast<const volatile unsigned *>(p_.arrivals) - so_far_.arrivals) < 0)
        __nanosleep(20);
      device_fence();
    }
    block_sync();
  }

  /* The largest number that any thread offers: offers(f) calls f for each. Three words take turns: that
   * of the call before is made 0. */
  template <class F> __device__ uint32_t largest_magnitude(F &&offers) {
    uint32_t u = 0;
    offers([&](uint32_t x) { u = greater(u, x); });
    u = block_max(&s_.word, u);
    const int turn = so_far_.magnitudes++ % 3;
    if (thread_id() == 0) atomicMax(p_.magnitudes + turn, u);
    meet();
    u = *const_cast<const volatile unsigned *>(p_.magnitudes + turn);
    if (is_first()) p_.magnitudes[(turn + 2) % 3] = 0;
    return u;
  }

  __device__ __forceinline__ T *column(int col) const {
    return col < n_ ? a_ + col * lda_ : c_ + (col - n_) * ldc_;
  }

  /* f(element, row, column): columns first .. end-1 are shared by all warps. */
  template <class F> __device__ __forceinline__ void for_elements(int row, int first, int end, F &&f) const {
    for (int col = first + block_ * warps + warp_id(); col < end; col += blocks_ * warps) {
      T *x = column(col);
      for (int i = row + lane_id(); i < m_; i += warp_lanes) f(x[i], i, col);
    }
  }

  /* --- the factorization */

  __device__ int factor() {
    const int most = least(least(m_, n_), args_.kmax);
    scale_c(false);
    int j = 0, exponent = bring_up(0);
    if (exponent == nothing) return note_exponent(0, 0);
    offer<R> best = longest();
    R tolerance = static_cast<R>(
        fmax(times_power(args_.abstol, exponent), args_.reltol * static_cast<double>(best.norm)));
    const R lowest = sqrt(span<R>::least2);
    while (j < most) {
      if (best.norm <= lowest) {
        const int more = bring_up(j);
        if (more == nothing) break;
        exponent += more;
        tolerance = times_power(tolerance, more);
        best = longest();
      }
      if (!(best.norm > tolerance)) break;
      const int first = j;
      T scale = zero<T>();
      do {
        note_exponent(j, exponent);
        make_column(first, j, best.column, scale);
        meet();
        scale = make_row(first, j, best.column);
        meet();
        best = longest();
        j++;
      } while (j < most && j - first < nb && !best.doubtful && best.norm > lowest && best.norm > tolerance);
      scale_column(j - 1, j, scale);
      meet();
      update(first, j);
      meet();
      best = longest();
    }
    return note_exponent(j, exponent);
  }

  __device__ int note_exponent(int j, int exponent) const {
    if (is_first()) p_.exponents[j] = exponent;
    return j;
  }

  /* The longest of all blocks' columns. */
  __device__ offer<R> longest() const {
    pivot<R> p = {R(-1), n_};
    bool doubtful = false;
    for (int b = lane_id(); b < blocks_; b += warp_lanes) {
      const offer<R> o = p_.offers[b];
      if (o.norm > p.norm2 || (o.norm == p.norm2 && o.column < p.column)) p = {o.norm, o.column};
      doubtful = doubtful || o.doubtful;
    }
    p = longest_of_lanes(p);
    return {p.norm2, p.column, group_any(doubtful)};
  }

  __device__ void offer_longest(pivot<R> mine, bool doubtful) {
    mine = longest_of_lanes(mine);
    doubtful = group_any(doubtful);
    if (lane_id() == 0) s_.offers[warp_id()] = {mine.norm2, mine.column, doubtful};
    block_sync();
    if (warp_id() > 0) return;
    offer<R> o = {R(-1), n_, 0};
    if (lane_id() < warps) o = s_.offers[lane_id()];
    const pivot<R> all = longest_of_lanes(pivot<R>{o.norm, o.column});
    doubtful = group_any(o.doubtful != 0);
    if (lane_id() == 0) p_.offers[block_] = {all.norm2, all.column, doubtful};
  }

  /* Multiplies what is left from row and column j on by the power of two, whose exponent is returned, that
   * brings it to the top of the range; offers its norms. */
  static constexpr int nothing = 1 << 30;
  __device__ int bring_up(int j) {
    const uint32_t u = largest_magnitude(
        [&](auto &&f) { for_elements(j, j, n_, [&](T &x, int, int) { f(magnitude_or_one(x)); }); });
    if (u == 0) return nothing;
    const int more = exponent_to<T>(u, span<R>::top);
    const R half = times_power(R(1), more / 2), rest = times_power(R(1), more - more / 2);
    pivot<R> mine = {R(-1), n_};
    for (int col = j + block_ * warps + warp_id(); col < n_; col += blocks_ * warps) {
      T *x = column(col);
      R norm2 = 0;
      for (int i = j + lane_id(); i < m_; i += warp_lanes) {
        x[i] = scaled(scaled(x[i], half), rest);
        norm2 = abs2_add(x[i], norm2);
      }
      const R norm = sqrt(group_sum(norm2));
      if (lane_id() == 0) p_.norms[col] = p_.before[col] = norm;
      if (norm > mine.norm2) mine = {norm, col};
    }
    block_sync();
    offer_longest(mine, false);
    meet();
    return more;
  }

  /* Rows of V in column `col` from row j on := scale times what is there. */
  __device__ __forceinline__ void scale_column(int col, int j, T scale) const {
    T *x = column(col);
    for (int i = j + block_ * threads + thread_id(); i < m_; i += blocks_ * threads) x[i] = x[i] * scale;
  }

  /* The rows of a block, of rows from..m-1. */
  __device__ __forceinline__ void share_of_rows(int from, int &begin, int &end) const {
    const int each = (m_ - from + blocks_ - 1) / blocks_;
    begin = least(m_, from + block_ * each);
    end = least(m_, begin + each);
  }

  /* The first half of step j, of a panel that began with `first`; scale: of the step before. */
  __device__ void make_column(int first, int j, int pivot_column, T scale) {
    const int k = j - first;
    int begin, end;
    share_of_rows(j, begin, end);
    T *from = column(pivot_column), *to = column(j);
    exchange_rows(0, j, from, to);
    if (k > 0) {
      T *last = column(j - 1);
      for (int i = begin + thread_id(); i < end; i += threads) last[i] = last[i] * scale;
      if (thread_id() < k) s_.vector[thread_id()] = p_.f[pivot_column + thread_id() * ldf_];
    }
    block_sync();
    T products[nb] = {};
    T norm2 = zero<T>();
    const T *v = a_ + first * lda_;
    for (int i = begin + thread_id(); i < end; i += threads) {
      T x = from[i];
#pragma unroll 8
      for (int l = 0; l < k; l++) x = x - v[i + l * lda_] * s_.vector[l];
      if (from != to) from[i] = to[i];
      to[i] = x;
      if (i == j) continue;
      norm2 = cmadd(x, x, norm2);
#pragma unroll
      for (int l = 0; l < nb; l++)
        if (l < k) products[l] = cmadd(v[i + l * lda_], x, products[l]);
    }
    tell_products(products, norm2, k);
  }

  __device__ __forceinline__ void exchange_rows(int first, int end, T *x, T *y) const {
    if (x == y) return;
    for (int i = first + block_ * threads + thread_id(); i < end; i += blocks_ * threads) {
      const T t = x[i];
      x[i] = y[i];
      y[i] = t;
    }
  }

  __device__ __forceinline__ void tell_products(T (&products)[nb], T norm2, int k) {
    constexpr int lanes = warp_lanes / nb; /* of one product */
    norm2 = group_sum(norm2);
    const T product = group_sum_scatter<nb>(products);
    if (lane_id() % lanes == 0) s_.sums[warp_id()][lane_id() / lanes] = product;
    if (lane_id() == 0) s_.sums[warp_id()][nb] = norm2;
    block_sync();
    if (thread_id() > nb || (thread_id() >= k && thread_id() < nb)) return;
    T sum = zero<T>();
    for (int w = 0; w < warps; w++) sum = sum + s_.sums[w][thread_id()];
    p_.partial[block_ * (nb + 1) + thread_id()] = sum;
  }

  /* The sums of all blocks: into s_.vector V^H v but for row j, and the norm into s_.total. */
  __device__ void take_products(int k) {
    for (int l = warp_id(); l <= nb; l += warps) {
      if (l >= k && l < nb) continue;
      T sum = zero<T>();
      for (int b = lane_id(); b < blocks_; b += warp_lanes) sum = sum + p_.partial[b * (nb + 1) + l];
      sum = group_sum(sum);
      if (lane_id() == 0) (l == nb ? s_.total : s_.vector[l]) = sum;
    }
  }

  /* The second half. Returns what V's column is to be multiplied by. */
  __device__ T make_row(int first, int j, int pivot_column) {
    const int k = j - first;
    const T *x = column(j);
    take_products(k);
    if (thread_id() < k) s_.row[thread_id()] = a_[j + (first + thread_id()) * lda_];
    block_sync();
    const reflector<T> h = larfg(x[j], real_part(s_.total), R(1), false);
    if (is_first()) {
      tau_data<T>(args_, x_.id)[j] = h.tau;
      p_.diagonal[j] = h.beta;
    }
    if (is_first() && args_.jpvt.data) {
      int *jpvt = vector_data<int>(args_.jpvt, x_.id);
      const int t = jpvt[pivot_column];
      jpvt[pivot_column] = jpvt[j];
      jpvt[j] = t;
    }
    if (thread_id() < k)
      s_.vector[thread_id()] = conj(s_.row[thread_id()]) + h.scale * s_.vector[thread_id()];
    block_sync();
    pivot<R> mine = {R(-1), n_};
    bool doubtful = false;
    const int columns = cols_ - j - 1, shares = (columns + blocks_ * tile_cols - 1) / (blocks_ * tile_cols);
    for (int tile = 0; tile < shares; tile += threads / tile_cols) {
      const int tiles = least(shares - tile, threads / tile_cols);
      for (int t = SHARED ? 0 : warp_id(); t < tiles; t += SHARED ? 1 : warps)
        dot_tile(x, j, first_of_tile(j, tile + t), t);
      block_sync();
      const int col = first_of_tile(j, tile + thread_id() / tile_cols) + thread_id() % tile_cols;
      if (thread_id() < tiles * tile_cols && col < cols_)
        finish_column(k, j, col, pivot_column, h, mine, doubtful);
      block_sync();
    }
    offer_longest(mine, doubtful);
    return h.scale;
  }

  __device__ __forceinline__ int first_of_tile(int j, int tile) const {
    const int64_t col = j + 1 + (int64_t(tile) * blocks_ + block_) * tile_cols;
    return col < cols_ ? static_cast<int>(col) : cols_;
  }

  /* s_.dots[tile] := x^H times columns col .. col+7, rows below j. */
  __device__ __forceinline__ void dot_tile(const T *x, int j, int col, int tile) {
    if (col >= cols_) return;
    constexpr int lanes = warp_lanes / tile_cols;
    const T *y[tile_cols];
    T dots[tile_cols] = {};
#pragma unroll
    for (int c = 0; c < tile_cols; c++) y[c] = column(least(col + c, cols_ - 1));
#pragma unroll 2
    for (int i = j + 1 + (SHARED ? thread_id() : lane_id()); i < m_; i += SHARED ? threads : warp_lanes) {
      const T v = x[i];
#pragma unroll
      for (int c = 0; c < tile_cols; c++) dots[c] = cmadd(v, y[c][i], dots[c]);
    }
    const T dot = group_sum_scatter<tile_cols>(dots);
    if (!SHARED) {
      if (lane_id() % lanes == 0) s_.dots[tile * tile_cols + lane_id() / lanes] = dot;
      return;
    }
    if (lane_id() % lanes == 0) s_.sums[warp_id()][lane_id() / lanes] = dot;
    block_sync();
    if (thread_id() < tile_cols) {
      T sum = zero<T>();
      for (int w = 0; w < warps; w++) sum = sum + s_.sums[w][thread_id()];
      s_.dots[tile * tile_cols + thread_id()] = sum;
    }
    block_sync();
  }

  /* F's element, R's in row j, and the norm of column `col`, which until now was `from` if it is the one that
   * the pivot was exchanged with. */
  __device__ __forceinline__ void finish_column(int k, int j, int col, int pivot_column,
                                                const reflector<T> &h, pivot<R> &mine, bool &doubtful) {
    T *const y = column(col), *const f = p_.f + col;
    const T *const old = p_.f + (col == pivot_column ? j : col);
    T product = cmadd(h.scale, s_.dots[thread_id()], y[j]), sum = zero<T>();
#pragma unroll 4
    for (int l = 0; l < k; l++) {
      const T fl = old[l * ldf_];
      if (col == pivot_column) f[l * ldf_] = fl;
      product = product - conj(s_.vector[l]) * fl;
      sum = madd(s_.row[l], fl, sum);
    }
    const T next = conj(h.tau) * product, r = y[j] - (sum + next);
    f[k * ldf_] = next;
    y[j] = r;
    if (col >= n_) return;
    R norm = p_.norms[col == pivot_column ? j : col];
    const R before = p_.before[col == pivot_column ? j : col];
    if (norm > 0) {
      const R part = sqrt(abs2(r)) / norm, left = fmax((R(1) + part) * (R(1) - part), R(0)),
              ratio = norm / before;
      norm = norm * sqrt(left);
      doubtful = doubtful || left * ratio * ratio <= sqrt(limits<R>::eps);
    }
    p_.norms[col] = norm;
    p_.before[col] = before;
    if (norm > mine.norm2) mine = {norm, col};
  }

  /* A := A - V F in rows and columns from `end` on, and C's, for the panel that began with `first`. */
  __device__ void update(int first, int end) {
    const int k = end - first, columns = cols_ - end;
    const T *v = a_ + first * lda_;
    pivot<R> mine = {R(-1), n_};
    for (int tile = block_; tile * tile_cols < columns; tile += blocks_) {
      const int col = end + tile * tile_cols;
      for (int i = thread_id(); i < k * tile_cols; i += threads)
        s_.f[i / tile_cols][i % tile_cols] =
            p_.f[least(col + i % tile_cols, cols_ - 1) + i / tile_cols * ldf_];
      block_sync();
      R norms2[tile_cols] = {};
      for (int i = end + thread_id(); i < m_; i += threads) {
        T x[tile_cols];
#pragma unroll
        for (int c = 0; c < tile_cols; c++) x[c] = column(least(col + c, cols_ - 1))[i];
#pragma unroll 4
        for (int l = 0; l < k; l++) {
          const T vl = v[i + l * lda_];
#pragma unroll
          for (int c = 0; c < tile_cols; c++) x[c] = x[c] - vl * s_.f[l][c];
        }
#pragma unroll
        for (int c = 0; c < tile_cols; c++) {
          if (col + c < cols_) column(col + c)[i] = x[c];
          norms2[c] = abs2_add(x[c], norms2[c]);
        }
      }
      note_norms(norms2, col, mine);
    }
    offer_longest(mine, false);
  }

  __device__ __forceinline__ void note_norms(R (&norms2)[tile_cols], int col, pivot<R> &mine) {
    constexpr int lanes = warp_lanes / tile_cols;
    const R norm2 = group_sum_scatter<tile_cols>(norms2);
    if (lane_id() % lanes == 0) s_.norms[warp_id()][lane_id() / lanes] = norm2;
    block_sync();
    if (thread_id() < tile_cols && col + thread_id() < n_) {
      R sum = 0;
      for (int w = 0; w < warps; w++) sum += s_.norms[w][thread_id()];
      const R norm = sqrt(sum);
      p_.norms[col + thread_id()] = p_.before[col + thread_id()] = norm;
      if (norm > mine.norm2) mine = {norm, col + thread_id()};
    }
    block_sync();
  }

  /* --- before and after */

  /* C's columns into range, see common/panel/columns.cuh: A is near the top of the exponents' range, where
   * products of both must not overflow. `back`: out of it. The scale is kept where a norm of a column of A
   * would be. */
  __device__ void scale_c(bool back) {
    for (int col = n_ + block_ * warps + warp_id(); col < cols_; col += blocks_ * warps) {
      T *x = column(col);
      uint32_t u = 0;
      for (int i = lane_id(); i < m_ && !back; i += warp_lanes) u = greater(u, magnitude(x[i]));
      const R scale =
          back ? range_unscale(p_.norms[col]) : exponent_scale<R>(column_exponent<T>(group_max(u)));
      if (lane_id() == 0 && !back) p_.norms[col] = scale;
      if (scale == 1) continue;
      for (int i = lane_id(); i < m_; i += warp_lanes) x[i] = scaled(x[i], scale);
    }
    for (int col = thread_id(); block_ == 0 && !back && args_.jpvt.data && col < n_; col += threads)
      vector_data<int>(args_.jpvt, x_.id)[col] = col;
  }

  __device__ void finish(int rank) {
    meet();
    for_elements(0, 0, n_, [&](T &x, int i, int j) {
      if (i > j && j < rank) return;
      const T y = i == j && j < rank ? make<T>(p_.diagonal[j]) : x;
      x = times_power(y, -p_.exponents[least(i, rank)]);
    });
    scale_c(true);
    const int k = least(m_, n_);
    for (int j = rank + thread_id(); block_ == 0 && j < k; j += threads)
      tau_data<T>(args_, x_.id)[j] = zero<T>();
  }

  const bqr_args &args_;
  const member &x_;
  places<T> p_;
  block_memory<T, SHARED> &s_;
  progress &so_far_;
  int block_, blocks_, m_, n_, cols_;
  int64_t lda_, ldc_, ldf_;
  T *a_ = nullptr, *c_ = nullptr;
};

/* `blocks` blocks for a member, one group of them after another. */
template <class T, bool SHARED>
__global__ void __launch_bounds__(threads_of<SHARED>, SHARED ? 1 : 2)
    geqp3_grid_kernel(const __grid_constant__ bqr_args args, size_t slot, int blocks) {
  auto &shared = *shared_memory<block_memory<T, SHARED>>();
  const int group = static_cast<int>(blockIdx.x) / blocks, block = static_cast<int>(blockIdx.x) % blocks;
  const int groups = static_cast<int>(gridDim.x) / blocks;
  const auto p = places<T>::at(static_cast<unsigned char *>(args.workspace) + group * slot, args.m, args.n,
                               args.k, blocks);
  progress so_far = {0, 0};
  for (int64_t i = group; i < args.count; i += groups) {
    const member x = member_at<BATCHQR_GEQP3>(args, i);
    int info = BATCHQR_INFO_SIZES;
    if (x.ok) {
      grid_qr<T, SHARED> qr(args, x, p, block, blocks, so_far, shared);
      info = qr.run();
    }
    if (block == 0 && thread_id() == 0) set_info(args, x.id, info);
    block_sync();
  }
}

/* blocks: that share a member; wide: as many as there are multiprocessors. */
const bqr_variant variants[] = {
    {.name = "blocks1", .blocks = 1}, {.name = "blocks16", .blocks = 16}, {.name = "wide", .wide = true}};

int blocks_of(const bqr_variant *v, const bqr_device *device) {
  return v->wide || v->blocks > device->multiprocessors ? largest(device->multiprocessors, 1) : v->blocks;
}

/* Groups of blocks, all of which run at once where several share a member. */
int64_t groups_of(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  constexpr int at_once = 4; /* blocks of a multiprocessor that have a member each */
  const int blocks = blocks_of(v, device);
  const int64_t most =
      blocks == 1 ? int64_t(at_once) * device->multiprocessors : device->multiprocessors / blocks;
  return p->count < most ? p->count : most > 0 ? most : 1;
}

size_t slot_of(const bqr_problem *p, int blocks) {
  return for_type(p->type, [&](auto tag) {
    return places<typename decltype(tag)::type>::bytes(p->m, p->n, p->k, blocks);
  });
}

bool supports(const bqr_problem *, const bqr_variant *, const bqr_device *) { return true; }

size_t workspace(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return static_cast<size_t>(groups_of(p, v, device)) * slot_of(p, blocks_of(v, device));
}

/* f(kernel, threads, shared memory) */
template <class F> batchqr_status with_kernel(const bqr_problem *p, bool shared, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return shared ? f(geqp3_grid_kernel<T, true>, threads_of<true>, sizeof(block_memory<T, true>))
                  : f(geqp3_grid_kernel<T, false>, threads_of<false>, sizeof(block_memory<T, false>));
  });
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return with_kernel(p, blocks_of(v, device) > 1,
                     [](auto kernel, int, size_t smem) { return prepare_kernel(kernel, smem); });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                      const bqr_args *args, batchqr_stream stream) {
  const int blocks = blocks_of(v, device);
  const int64_t groups = groups_of(p, v, device);
  const size_t slot = slot_of(p, blocks);
  const cudaError_t error =
      cudaMemset2DAsync(args->workspace, slot, 0, places<float>::words, static_cast<size_t>(groups), stream);
  if (error != cudaSuccess) return status_of(error);
  const dim3 grid(grid_for(groups * blocks));
  return with_kernel(p, blocks > 1, [&](auto kernel, int threads, size_t smem) {
    return blocks > 1 ? launch_together(kernel, grid, threads, smem, stream, *args, slot, blocks)
                      : launch_kernel(kernel, grid, threads, smem, stream, *args, slot, blocks);
  });
}

/* Those that are not on chip; more blocks for a member where there are few of them. */
bool prefers(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  const int64_t mine = p->count * blocks_of(v, device);
  return v->wide ? true : 2 * mine > device->multiprocessors;
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_geqp3_grid = {
    .name = "geqp3_grid",
    .op = BATCHQR_GEQP3,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .launches = 2,
    .supports = bqr::supports,
    .workspace = bqr::workspace,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
    .prefers = bqr::prefers,
};
