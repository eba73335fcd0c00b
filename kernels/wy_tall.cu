/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of 64 columns of tall large members, V, R and T, in two passes over A. The first one sums up G =
 * A^H A; its last block makes the factors of common/panel_factors.cuh, two panels of 32 columns one after the
 * other, of which the second one's G and first rows are what the first one leaves of them. The second pass
 * divides the rows by W, and one block of its own makes T. A is read once and read and written once.
 *
 * The square of the columns' condition number is what that may lose: panels whose columns are not far from
 * dependent, or whose norms cannot be squared, are left as they are. Sums and factors are in double
 * precision. */
#include "wy.h"
#include "arrival.cuh"
#include "overlap.cuh"
#include "panel_factors.cuh"
#include "ring.cuh"
#include "tile.cuh"
#include "view.cuh"

namespace {
using namespace bqr;
using panel_factors::add_product, panel_factors::divisor, panel_factors::each_element,
    panel_factors::factorization, panel_factors::lower_adjoint, panel_factors::matrix,
    panel_factors::multiply, panel_factors::rows16, panel_factors::upper;

constexpr int N = panel_factors::N, tile = panel_factors::tile, tiles = panel_factors::tiles,
              warps = panel_factors::warps, threads = warps * warp_lanes;
constexpr int columns = 2 * N, most_blocks = 128;
constexpr int group = 16; /* of blocks whose sums are added up at once */

/* What A^H A may lose of a single-precision panel is far below its rounding. */
template <class R>
constexpr panel_factors::limits panel_limits = {
    sizeof(R) == 4 ? 0x1p-60 : 0x1p-600, sizeof(R) == 4 ? 0x1p60 : 0x1p600,
    sizeof(R) == 4 ? 0x1p-20 : 0x1p-10, sizeof(R) == 4 ? 0x1p-20 : 0x1p-4};

/* G in 16 x 8 tiles as lanes have them: those on and above the diagonal. */
constexpr int gram_tiles = 20, values = gram_tiles * 4 * warp_lanes;
template <class F> __device__ __forceinline__ void each_tile(F &&f) {
  static_for<gram_tiles>([&](auto number) {
    constexpr int n = decltype(number)::value, I = n < 8 ? 0 : n < 14 ? 1 : n < 18 ? 2 : 3;
    constexpr int before = I == 0 ? 0 : I == 1 ? 8 : I == 2 ? 14 : 18;
    f(number, std::integral_constant<int, I>{}, std::integral_constant<int, n - before + 2 * I>{});
  });
}

/* The factors as blocks of 32: R, and below the diagonal Y, W on and above it. */
struct factors {
  matrix r1, r12, r2, lw1, w12, lw2, y21;
  double sign[columns];
};
/* W as the second pass takes it. */
struct divisors {
  divisor w1, w2;
  two<double> minus_w12[tiles * tiles][warp_lanes];
};
struct workspace {
  double part[most_blocks][values], norms[most_blocks + 1][columns];
  divisors by;
  factors f;
  int done;
};

/* By a block, between global and shared memory. */
template <class X> __device__ __forceinline__ void copy(X &to, const X &from) {
  static_assert(sizeof(X) % sizeof(double) == 0, "whole numbers");
#pragma unroll 8
  for (int e = thread_id(); e < static_cast<int>(sizeof(X) / sizeof(double)); e += threads)
    reinterpret_cast<double *>(&to)[e] = reinterpret_cast<const double *>(&from)[e];
}

/* A block's rows, slab by slab through shared memory: bulk copies bring whole ones, ahead. */
template <class T> class row_ring {
  static constexpr int unit = pack<T>::size, stages = 3;

public:
  static constexpr int warp_rows = 8 * unit, height = warps * warp_rows, ld = height + unit;
  struct slabs {
    alignas(16) T x[stages][columns * ld];
  };
  /* Their memory serves nothing else. */
  struct barriers {
    phase_barrier full[stages];
  };

  /* All threads call it, and run(), together. */
  __device__ __forceinline__ row_ring(slabs &s, barriers &b, const T *a, int64_t lda, int first, int end)
      : s(s), full_(b.full), a_(a), lda_(lda), first_(first), end_(end) {
    if (thread_id() == 0)
      for (int i = 0; i < stages; i++) full_[i].init(1);
    block_sync();
    for (int turn = 0; turn < stages; turn++) start(turn);
  }
  /* f(the warp's rows of a slab, the first of them); ends with a barrier. */
  template <class F> __device__ __forceinline__ void run(F &&f) {
    int turn = 0;
#pragma unroll 1
    for (int first = first_; first < end_; first += height, turn++) {
      T *slab = s.x[turn % stages];
      if (first + height <= end_)
        full_[turn % stages].wait(turn / stages & 1);
      else
        fill(slab, first);
      const int mine = warp_id() * warp_rows;
      if (first + mine < end_) f(slab + mine, first + mine);
      block_sync();
      start(turn + stages);
    }
  }

private:
  __device__ __forceinline__ void start(int turn) const {
    constexpr int bytes = height * static_cast<int>(sizeof(T));
    const int first = first_ + turn * height;
    if (warp_id() > 0 || first + height > end_) return;
    phase_barrier &full = full_[turn % stages];
    bulk_fence();
    if (lane_id() == 0) full.arrive_before_bytes(columns * bytes);
    warp_sync();
#pragma unroll
    for (int j = lane_id(); j < columns; j += warp_lanes)
      full.copy_bulk(s.x[turn % stages] + j * ld, a_ + first + j * lda_, bytes);
  }
  /* The last rows of all, with zeros behind. */
  __device__ __forceinline__ void fill(T *slab, int first) const {
    for (int e = thread_id(); e < columns * height; e += threads) {
      const int i = e % height, j = e / height;
      slab[i + j * ld] = first + i < end_ ? a_[first + i + j * lda_] : zero<T>();
    }
    block_sync();
  }

  slabs &s;
  phase_barrier *full_;
  const T *a_;
  int64_t lda_;
  int first_, end_;
};

/* --- the first pass */

struct factor_storage {
  panel_factors::storage f[2];
  matrix g12, a1, a12, a21, a2, r12, w12, y21;
  divisor by[3]; /* R1, Y1^H, W1 */
  double norm2[columns];
  bool good;
};
template <class T> struct gram_storage {
  union {
    typename row_ring<T>::slabs rows;
    double part[warps][values];
    factor_storage factors;
  };
  typename row_ring<T>::barriers arrived;
  panel_factors::row_steps steps;
};

/* Adds a warp's rows. nothing: 0, see apart(). */
template <class T>
__device__ __forceinline__ void add_rows(double (&c)[gram_tiles][4], const T *slab, uint32_t nothing) {
  constexpr int unit = pack<T>::size, ld = row_ring<T>::ld;
  const T *mine = slab + lane_id() / 4 * ld + 2 * unit * (lane_id() % 4);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    pack<T> x[2 * tiles];
#pragma unroll
    for (int J = 0; J < 2 * tiles; J++)
      x[J] = *reinterpret_cast<const pack<T> *>(mine + tile * J * ld + unit * h);
#pragma unroll
    for (int t = 0; t < unit; t += 2) {
      double left[4];
      each_tile([&](auto number, auto down, auto across) {
        constexpr int n = decltype(number)::value, I = decltype(down)::value, J = decltype(across)::value;
        if (J == 2 * I)
#pragma unroll
          for (int e = 0; e < 4; e++)
            left[e] = apart(split(double(x[2 * I + e / 2].v[t + e % 2])), nothing).x;
        add_product(c[n], left, x[J].v[t], x[J].v[t + 1]);
      });
    }
  }
}

/* The sums of all blocks, from each one's own: true in the block that comes last, which has them. */
__device__ __forceinline__ bool sum_blocks(workspace &w, const double (&own)[values / threads],
                                           double (&sum)[values / threads], int *counters) {
  const int blocks = static_cast<int>(gridDim.x), mine = static_cast<int>(blockIdx.x) / group;
  const int groups = (blocks - 1) / group + 1, in_group = least(group, blocks - mine * group);
  auto put = [&](double *to, const double(&x)[values / threads]) {
#pragma unroll
    for (int k = 0; k < values / threads; k++) to[thread_id() + threads * k] = x[k];
  };
  auto add_up = [&](const double *from, int64_t stride, int count) {
#pragma unroll
    for (int k = 0; k < values / threads; k++)
      sum[k] = sum_shared<group>(from + thread_id() + threads * k, stride, count);
  };
  put(w.part[blockIdx.x], own);
  if (!last_to_arrive(counters + 1 + mine, in_group)) return false;
  add_up(w.part[mine * group], values, in_group);
  put(w.part[mine * group], sum);
  if (!last_to_arrive(counters, groups)) return false;
  add_up(w.part[0], group * values, groups);
  if (thread_id() <= groups) counters[thread_id()] = 0;
  return true;
}

/* x -= a b, or a b^H, of 16 rows by a warp. */
__device__ __forceinline__ void subtract_product(rows16 &x, const rows16 &a, matrix &b, bool adjoint) {
  const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
  for (int l = 0; l < tiles; l++)
#pragma unroll
    for (int J = 0; J < tiles; J++) {
      const int i = tile * l + 2 * q, j = tile * J + g;
      add_product(x[J], a[l], adjoint ? -b(j, i) : -b(i, j), adjoint ? -b(j, i + 1) : -b(i + 1, j));
    }
}

/* From G, in s, and A's first rows to the workspace. */
template <class T>
__device__ __noinline__ void make_factors(const T *a, int64_t lda, workspace &w, int *rows) {
  auto &s = shared_memory<gram_storage<T>>()->factors;
  auto &steps = shared_memory<gram_storage<T>>()->steps;
  constexpr panel_factors::limits limits = panel_limits<T>;
#pragma unroll 4
  for (int e = thread_id(); e < columns * columns; e += threads) {
    const int i = e % columns, j = e / columns;
    matrix &to = i < N ? (j < N ? s.a1 : s.a12) : j < N ? s.a21 : s.a2;
    to(i % N, j % N) = a[i + j * lda];
  }
  if (thread_id() < columns) s.norm2[thread_id()] = s.f[thread_id() / N].g(thread_id() % N, thread_id() % N);
  block_sync();
  panel_factors::storage &f1 = s.f[0], &f2 = s.f[1];
  factorization(f1, s.a1, limits, steps, 0);
  if (!f1.good) return;
  const int strip = warp_id() % 2 * 16;
  if (warp_id() < 3)
    s.by[warp_id()].set(warp_id() == 0 ? upper(f1.r) : warp_id() == 1 ? lower_adjoint(f1.lw) : upper(f1.lw));
  block_sync();
  if (warp_id() < 2) { /* columns of R and W as rows */
    rows16 x;
    each_element(x, [&](double &y, int i, int j) { y = s.g12(j, strip + i); });
    s.by[0].divide(x);
    each_element(x, [&](double &y, int i, int j) {
      s.r12(j, strip + i) = y;
      y = s.a12(j, strip + i) - f1.sign[j] * y;
    });
    s.by[1].divide(x);
    each_element(x, [&](double &y, int i, int j) { s.w12(j, strip + i) = y; });
  } else if (warp_id() < 4) {
    rows16 x;
    each_element(x, [&](double &y, int i, int j) { y = s.a21(strip + i, j); });
    s.by[2].divide(x);
    each_element(x, [&](double &y, int i, int j) { s.y21(strip + i, j) = y; });
  }
  block_sync();
  multiply([&](int i, int l) { return s.r12(l, i); }, [&](int l, int j) { return s.r12(l, j); },
           [&](int i, int j, double x) { f2.g(i, j) -= x; });
  multiply([&](int i, int l) { return s.y21(i, l); }, [&](int l, int j) { return s.w12(l, j); },
           [&](int i, int j, double x) { s.a2(i, j) -= x; });
  block_sync();
  factorization(f2, s.a2, limits, steps, 1);
  if (warp_id() == 0) {
    double share = 1;
    bool good = f2.good;
#pragma unroll
    for (int k = 0; k < 2; k++) {
      const double norm2 = s.norm2[lane_id() + k * N], r = s.f[k].r(lane_id(), lane_id());
      const double left = r * r * fast_recip(norm2);
      good = good && norm2 < limits.most_norm2 && left > limits.least_share;
      share *= left;
    }
#pragma unroll
    for (int d = 1; d < warp_lanes; d *= 2) share *= exchange(share, d);
    good = !group_any(!good) && share > limits.least_determinant;
    if (lane_id() == 0) s.good = good;
  }
  if (warp_id() == 1) w.by.w1.set(upper(f1.lw));
  if (warp_id() == 2) w.by.w2.set(upper(f2.lw));
  for (int t = warp_id(); t < tiles * tiles; t += warps)
#pragma unroll
    for (int e = 0; e < 2; e++)
      w.by.minus_w12[t][lane_id()].v[e] =
          -s.w12(tile * (t / tiles) + 2 * (lane_id() % 4) + e, tile * (t % tiles) + lane_id() / 4);
  copy(w.f.r1, f1.r);
  copy(w.f.r12, s.r12);
  copy(w.f.r2, f2.r);
  copy(w.f.lw1, f1.lw);
  copy(w.f.w12, s.w12);
  copy(w.f.lw2, f2.lw);
  copy(w.f.y21, s.y21);
  if (thread_id() < columns) w.f.sign[thread_id()] = s.f[thread_id() / N].sign[thread_id() % N];
  block_sync();
  if (thread_id() > 0 || !s.good) return;
  w.done = 1;
  rows[0] = rows[1] = 0;
}

template <class T>
__global__ void __launch_bounds__(threads, 1)
    gram_kernel(const __grid_constant__ batchqr_wy_panel p, int share, workspace *w, int *rows) {
  wait_for_previous();
  auto &s = *shared_memory<gram_storage<T>>();
  const T *a = static_cast<const T *>(p.a) + p.at * (p.lda + 1);
  const int first = static_cast<int>(blockIdx.x) * share, end = least(first + share, p.rows - p.at);
  if (blockIdx.x == 0 && thread_id() == 0) w->done = 0;
  s.steps.init();
  double c[gram_tiles][4] = {};
  row_ring<T>(s.rows, s.arrived, a, p.lda, first, end).run([&](const T *slab, int from) {
    add_rows(c, slab, static_cast<uint32_t>(from) >> 31);
  });
#pragma unroll
  for (int e = 0; e < 4 * gram_tiles; e++) s.part[warp_id()][e * warp_lanes + lane_id()] = c[e / 4][e % 4];
  block_sync();
  double own[values / threads], sum[values / threads];
#pragma unroll
  for (int k = 0; k < values / threads; k++) {
    own[k] = s.part[0][thread_id() + threads * k];
#pragma unroll
    for (int v = 1; v < warps; v++) own[k] += s.part[v][thread_id() + threads * k];
  }
  if (!sum_blocks(*w, own, sum, p.counters)) return;
  each_tile([&](auto number, auto down, auto across) {
    constexpr int n = decltype(number)::value, I = decltype(down)::value, J = decltype(across)::value;
    constexpr int k = n / 2; /* two tiles at once */
    if (thread_id() / (threads / 2) != n % 2) return;
    matrix &to = J < tiles ? s.factors.f[0].g : I < 2 ? s.factors.g12 : s.factors.f[1].g;
    const int h = warp_id() % 4;
    to(16 * (I % 2) + lane_id() / 4 + 8 * (h / 2), tile * (J % tiles) + 2 * (lane_id() % 4) + h % 2) = sum[k];
  });
  block_sync();
  make_factors<T>(a, p.lda, *w, rows);
}

/* --- the second pass */

struct top_storage {
  factors f;
  divisor by[4]; /* R1, R2, Y1^H, Y2^H */
};
template <class T> struct divide_storage {
  union {
    typename row_ring<T>::slabs rows;
    double norms[warps][columns];
    top_storage top;
  };
  typename row_ring<T>::barriers arrived;
  divisors by;
};

/* The panel's first rows: V's, of the columns from `stored` on above them R, which is else r's; their
 * norms. */
template <class T>
__device__ __forceinline__ void store_top(const batchqr_wy_panel &p, int stored, factors &f, double *norms) {
  T *a = static_cast<T *>(p.a) + p.at * (p.lda + 1), *r = static_cast<T *>(p.r) + p.at * (p.ldr + 1);
  auto below = [&](int i, int j) {
    return static_cast<T>(j >= N ? f.lw2(i - N, j - N) : i >= N ? f.y21(i - N, j) : f.lw1(i, j));
  };
  for (int e = thread_id(); e < columns * columns; e += threads) {
    const int i = e % columns, j = e / columns;
    const bool here = j >= stored;
    if (i <= j) {
      const matrix &from = j < N ? f.r1 : i < N ? f.r12 : f.r2;
      const T x = static_cast<T>(f.sign[i] * from.x[i % N][j % N]);
      if (here)
        a[i + j * p.lda] = x;
      else
        r[i + j * p.ldr] = x;
    }
    if (i > j || !here) a[i + j * p.lda] = i > j ? below(i, j) : i == j ? one<T>() : zero<T>();
  }
  if (thread_id() >= columns) return;
  double sum = 1;
  for (int i = thread_id() + 1; i < columns; i++) {
    const double x = below(i, thread_id());
    sum = fused(x, x, sum);
  }
  norms[thread_id()] = sum;
}

/* T = -U S Y^-H with U = W R^-1, 16 rows by a warp, and the panel's first rows. */
template <class T>
__device__ __noinline__ void make_top(const batchqr_wy_panel &p, int stored, workspace &w) {
  auto &s = shared_memory<divide_storage<T>>()->top;
  copy(s.f, w.f);
  block_sync();
  if (warp_id() < 4)
    s.by[warp_id()].set(warp_id() == 0   ? upper(s.f.r1)
                        : warp_id() == 1 ? upper(s.f.r2)
                        : warp_id() == 2 ? lower_adjoint(s.f.lw1)
                                         : lower_adjoint(s.f.lw2));
  store_top<T>(p, stored, s.f, w.norms[gridDim.x - 1]);
  T *t = static_cast<T *>(p.t) + p.at + p.at * p.ldt;
  for (int j = warp_id(); j < columns; j += warps)
    for (int i = columns + lane_id(); i < p.cols - p.at; i += warp_lanes) t[i + j * p.ldt] = zero<T>();
  block_sync();
  if (warp_id() >= 4) return;
  const bool first = warp_id() < 2;
  const int top = warp_id() % 2 * 16, row = warp_id() * 16;
  rows16 u1, u2;
  each_element(u1, [&](double &x, int i, int j) { x = first && top + i <= j ? s.f.lw1(top + i, j) : 0; });
  each_element(u2, [&](double &x, int i, int j) {
    x = first ? s.f.w12(top + i, j) : top + i <= j ? s.f.lw2(top + i, j) : 0;
  });
  s.by[0].divide(u1);
  subtract_product(u2, u1, s.f.r12, false);
  s.by[1].divide(u2);
  each_element(u1, [&](double &x, int, int j) { x *= -s.f.sign[j]; });
  each_element(u2, [&](double &x, int, int j) { x *= -s.f.sign[N + j]; });
  s.by[2].divide(u1);
  subtract_product(u2, u1, s.f.y21, true);
  s.by[3].divide(u2);
  each_element(u1, [&](double &x, int i, int j) {
    t[row + i + j * p.ldt] = row + i <= j ? static_cast<T>(x) : zero<T>();
  });
  each_element(u2, [&](double &x, int i, int j) {
    t[row + i + (N + j) * p.ldt] = row + i <= N + j ? static_cast<T>(x) : zero<T>();
  });
}

/* 16 rows of V in place of A's, and the squares of them. */
template <class T>
__device__ __forceinline__ void divide_rows(const T *slab, T *a, int64_t lda, int first, int end,
                                            const divisors &by, double (&norms)[2][tiles][2]) {
  constexpr int ld = row_ring<T>::ld;
  const int g = lane_id() / 4, q = lane_id() % 4;
  rows16 x[2];
#pragma unroll
  for (int set = 0; set < 2; set++)
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        T pair[2];
        read_two(pair, slab + (set * N + tile * J + 2 * q + e) * ld + 2 * g);
        x[set][J][e] = pair[0];
        x[set][J][2 + e] = pair[1];
      }
  by.w1.divide(x[0]);
#pragma unroll
  for (int l = 0; l < tiles; l++)
#pragma unroll
    for (int J = 0; J < tiles; J++) {
      const two<double> w = by.minus_w12[tiles * l + J][lane_id()];
      add_product(x[1][J], x[0][l], w.v[0], w.v[1]);
    }
  by.w2.divide(x[1]);
  T *to = a + first + 2 * g + 2 * q * lda;
  const int left = first < columns ? 0 : end - first - 2 * g;
#pragma unroll
  for (int set = 0; set < 2; set++)
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const T y[2] = {static_cast<T>(x[set][J][e]), static_cast<T>(x[set][J][2 + e])};
        T *here = to + (set * N + tile * J + e) * lda;
        if (left > 1)
          write_two(here, y);
        else if (left > 0)
          *here = y[0];
        double &norm = norms[set][J][e];
        if (left > 0) norm = fused(static_cast<double>(y[0]), static_cast<double>(y[0]), norm);
        if (left > 1) norm = fused(static_cast<double>(y[1]), static_cast<double>(y[1]), norm);
      }
}

/* What is above the panel in the columns stored goes to r, with zeros in its place. */
template <class T> __device__ __forceinline__ void clear(const batchqr_wy_panel &p, int stored) {
  T *a = static_cast<T *>(p.a) + p.at * p.lda, *r = static_cast<T *>(p.r) + p.at * p.ldr;
  const int step = static_cast<int>(gridDim.x) * warps;
  for (int j = static_cast<int>(blockIdx.x) * warps + warp_id(); j < stored; j += step)
#pragma unroll 4
    for (int i = lane_id(); i < p.at; i += warp_lanes) {
      r[i + j * p.ldr] = a[i + j * p.lda];
      a[i + j * p.lda] = zero<T>();
    }
}

/* The block's share of the columns' squared norms; the last block makes tau, which fits its vector's norm to
 * rounding. */
template <class T> __device__ __forceinline__ void finish_tau(const batchqr_wy_panel &p, workspace &w) {
  const int parts = static_cast<int>(gridDim.x);
  if (!last_to_arrive(p.counters, parts)) return;
  auto &sums = shared_memory<divide_storage<T>>()->norms;
  constexpr int shares = threads / columns;
  const int j = thread_id() % columns, share = thread_id() / columns;
  double sum = 0;
  for (int b = share; b < parts; b += shares * group)
    sum += sum_shared<group>(&w.norms[b][j], shares * columns, least(group, (parts - b - 1) / shares + 1));
  sums[share][j] = sum;
  block_sync();
  if (thread_id() < columns) {
    for (int k = 1; k < shares; k++) sum += sums[k][j];
    static_cast<T *>(p.tau)[j] = static_cast<T>(2 / sum);
  }
  if (thread_id() == 0) *p.counters = 0;
}

template <class T>
__global__ void __launch_bounds__(threads, 1)
    divide_kernel(const __grid_constant__ batchqr_wy_panel p, int share, int stored, workspace *w) {
  auto &s = *shared_memory<divide_storage<T>>();
  T *a = static_cast<T *>(p.a) + p.at * (p.lda + 1);
  const bool last = blockIdx.x + 1 == gridDim.x;
  const int first = last ? 0 : static_cast<int>(blockIdx.x) * share,
            end = last ? 0 : least(first + share, p.rows - p.at);
  row_ring<T> rows(s.rows, s.arrived, a, p.lda, first, end); /* the kernel before only reads A, too */
  wait_for_previous();
  const bool done = w->done;
  if (done && !last) copy(s.by, w->by);
  block_sync();
  double norms[2][tiles][2] = {};
  rows.run([&](const T *slab, int from) {
    if (!done) return;
#pragma unroll 1
    for (int i = 0; i < row_ring<T>::warp_rows && from + i < end; i += 16)
      divide_rows(slab + i, a, p.lda, from + i, end, s.by, norms);
  });
  if (!done) return;
  clear<T>(p, stored);
  if (last) {
    make_top<T>(p, stored, *w);
  } else {
#pragma unroll
    for (int k = 0; k < 2 * tiles * 2; k++) {
      double sum = norms[k / (2 * tiles)][k / 2 % tiles][k % 2];
#pragma unroll
      for (int d = 4; d < warp_lanes; d *= 2) sum += exchange(sum, d);
      if (lane_id() < 4) s.norms[warp_id()][tile * (k / 2) + 2 * lane_id() + k % 2] = sum;
    }
    block_sync();
    if (thread_id() < columns) {
      double sum = 0;
#pragma unroll
      for (int v = 0; v < warps; v++) sum += s.norms[v][thread_id()];
      w->norms[blockIdx.x][thread_id()] = sum;
    }
  }
  finish_tau<T>(p, *w);
}

template <class T>
batchqr_status enqueue(const batchqr_wy_panel *p, int stored, void *memory, int *rows,
                       batchqr_stream stream) {
  constexpr int height = row_ring<T>::height;
  const int slabs = (p->rows - p->at - 1) / height + 1, share = (slabs - 1) / most_blocks + 1;
  const unsigned blocks = static_cast<unsigned>((slabs - 1) / share + 1);
  auto *w = static_cast<workspace *>(memory);
  batchqr_status status = launch_overlapped(gram_kernel<T>, blocks, threads, sizeof(gram_storage<T>), stream,
                                            *p, share * height, w, rows);
  if (status) return status;
  return launch_overlapped(divide_kernel<T>, blocks + 1, threads, sizeof(divide_storage<T>), stream, *p,
                           share * height, stored, w);
}
} // namespace

extern "C" {

size_t batchqr_wy_tall_bytes(void) { return sizeof(workspace); }

bool batchqr_wy_tall_possible(batchqr_type type, const batchqr_device *device) {
  const bool real = type == BATCHQR_S || type == BATCHQR_D;
  return real && device->sm >= 90 &&
         device->smem_per_block >= static_cast<int>(sizeof(divide_storage<double>)) &&
         device->smem_per_block >= static_cast<int>(sizeof(divide_storage<float>));
}

const int *batchqr_wy_tall_done(const void *memory) { return &static_cast<const workspace *>(memory)->done; }

batchqr_status batchqr_wy_tall(batchqr_type type, const batchqr_wy_panel *panel, int stored, void *memory,
                               int *rows, batchqr_stream stream) {
  return type == BATCHQR_S ? enqueue<float>(panel, stored, memory, rows, stream)
                           : enqueue<double>(panel, stored, memory, rows, stream);
}

batchqr_status batchqr_wy_tall_prepare(batchqr_type type) {
  auto go = [](auto tag) {
    using T = typename decltype(tag)::type;
    const batchqr_status status = prepare_kernel(gram_kernel<T>, sizeof(gram_storage<T>));
    return status ? status : prepare_kernel(divide_kernel<T>, sizeof(divide_storage<T>));
  };
  return type == BATCHQR_S ? go(type_tag<float>{}) : go(type_tag<double>{});
}
}
