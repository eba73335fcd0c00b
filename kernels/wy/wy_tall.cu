/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of 64 columns of tall large members, V, R and T, in two passes over A. The first one sums up G =
 * A^H A; its last block makes the factors of common/panel/panel_factors.cuh. The second pass divides the rows
 * by W, and one block of its own makes T. A is read once and read and written once.
 *
 * The square of the columns' condition number is what that may lose: panels whose columns are not far from
 * dependent, or whose norms cannot be squared, are left as they are. Sums and factors are in double
 * precision. */
#include "wy.h"
#include "common/simt/arrival.cuh"
#include "wy_tall_rows.cuh"
#include "common/panel/panel_factors.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/griddepcontrol.cuh"
#include "common/simt/launch_dependent.cuh"

namespace {
using namespace bqr;
using namespace bqr::panel_factors;

constexpr int columns = 64, tiles = columns / tile, most_blocks = 128;
constexpr int group = 16; /* of blocks whose sums are added up at once */

using upper_sums = upper_tiles<columns>;
constexpr int values = upper_sums::values;

/* W as the second pass takes it. */
struct operands {
  two<double> above[tiles * (tiles - 1) / 2][warp_lanes];
  inverses<columns> on_diagonal;

  __device__ __forceinline__ void divide(rows16<columns> &x) const {
    divide_by(
        x, [&](int K, int J) { return above[J * (J - 1) / 2 + K][lane_id()]; }, on_diagonal);
  }
};
struct factors {
  matrix<columns> r, lw;
  divisors<columns> by;
};
struct workspace {
  double part[most_blocks][values], norms[most_blocks + 1][columns];
  operands w;
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

template <class T> using row_ring = bulk_rows<T, columns, warps>;

/* --- the first pass */

template <class T> struct gram_storage {
  union {
    typename row_ring<T>::slabs rows;
    double part[warps][values];
    struct {
      factors f;
      double norm2[columns], trace[columns / 16];
    };
  };
  typename row_ring<T>::barriers arrived;
  row_barriers<columns> ready;
};

/* Adds a warp's rows. nothing: 0, see apart(). */
template <class T>
__device__ __forceinline__ void add_rows(double (&c)[upper_sums::count][4], const T *slab, uint32_t nothing) {
  constexpr int unit = pack<T>::size, ld = row_ring<T>::ld;
  const T *mine = slab + lane_id() / 4 * ld + 2 * unit * (lane_id() % 4);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    pack<T> x[tiles];
#pragma unroll
    for (int J = 0; J < tiles; J++)
      x[J] = *reinterpret_cast<const pack<T> *>(mine + tile * J * ld + unit * h);
#pragma unroll
    for (int t = 0; t < unit; t += 2) {
      double left[4];
      upper_sums::each([&](auto number, auto down, auto across) {
        constexpr int n = decltype(number)::value, I = decltype(down)::value, J = decltype(across)::value;
        if (J == 2 * I)
#pragma unroll
          for (int e = 0; e < 4; e++)
            left[e] = apart(split(double(x[2 * I + e / 2].v[t + e % 2])), nothing).x;
        add_product(c[n], left, double(x[J].v[t]), double(x[J].v[t + 1]));
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

/* From G, in s, and A's first rows to the workspace. */
template <class T>
__device__ __noinline__ void make_factors(const T *a, int64_t lda, workspace &w, int *rows, bool positive) {
  auto &s = *shared_memory<gram_storage<T>>();
#pragma unroll 4
  for (int e = thread_id(); e < columns * columns; e += threads)
    s.f.lw(e % columns, e / columns) = a[e % columns + e / columns * lda];
  if (thread_id() < columns) s.norm2[thread_id()] = s.f.r(thread_id(), thread_id());
  block_sync();
  factor(s.f.r, s.f.lw, s.f.by, s.ready, positive);
  if (warp_id() < columns / 16) {
    const double part = trace_of_rows<T>(16 * warp_id(), s.f.r, s.f.by, s.norm2);
    if (lane_id() == 0) s.trace[warp_id()] = part;
  } else {
    const int g = lane_id() / 4, q = lane_id() % 4;
    for (int n = warp_id() - columns / 16; n < tiles * tiles; n += warps - columns / 16) {
      const int K = n % tiles, J = n / tiles, i = tile * K + 2 * q, j = tile * J + g;
      if (K < J) w.w.above[J * (J - 1) / 2 + K][lane_id()] = {s.f.lw(i, j), s.f.lw(i + 1, j)};
    }
  }
  copy(w.w.on_diagonal, s.f.by.by_w);
  copy(w.f, s.f);
  block_sync();
  if (positive && !are_far_from_zero(s.f.r, s.f.by)) return;
  double trace = 0;
  for (double part : s.trace) trace += part;
  if (thread_id() > 0 || !(trace < most_trace<T>)) return;
  w.done = 1;
  rows[0] = rows[1] = 0;
}

template <class T>
__global__ void __launch_bounds__(threads, 1)
    gram_kernel(const __grid_constant__ bqr_wy_panel p, int share, workspace *w, int *rows) {
  wait_for_previous();
  auto &s = *shared_memory<gram_storage<T>>();
  const T *a = static_cast<const T *>(p.a) + p.at * (p.lda + 1);
  const int first = static_cast<int>(blockIdx.x) * share, end = least(first + share, p.rows - p.at);
  const bool done = p.done && *p.done;
  if (blockIdx.x == 0 && thread_id() == 0) w->done = done;
  if (done) return;
  s.ready.init();
  double c[upper_sums::count][4] = {};
  row_ring<T>(s.rows, s.arrived, a, p.lda, first, end).run([&](const T *slab, int from) {
    add_rows(c, slab, static_cast<uint32_t>(from) >> 31);
  });
#pragma unroll
  for (int e = 0; e < 4 * upper_sums::count; e++)
    s.part[warp_id()][e * warp_lanes + lane_id()] = c[e / 4][e % 4];
  block_sync();
  double own[values / threads], sum[values / threads];
#pragma unroll
  for (int k = 0; k < values / threads; k++) {
    own[k] = s.part[0][thread_id() + threads * k];
#pragma unroll
    for (int v = 1; v < warps; v++) own[k] += s.part[v][thread_id() + threads * k];
  }
  if (!sum_blocks(*w, own, sum, p.counters)) return;
#pragma unroll
  for (int k = 0; k < values / threads; k++)
    upper_sums::place(thread_id() + threads * k, [&](int i, int j) { s.f.r(i, j) = sum[k]; });
  block_sync();
  make_factors<T>(a, p.lda, *w, rows, p.positive);
}

/* --- the second pass */

template <class T> struct divide_storage {
  union {
    typename row_ring<T>::slabs rows;
    double norms[warps][columns];
    factors f;
  };
  typename row_ring<T>::barriers arrived;
  operands w;
};

/* The panel's first rows: V's, of the columns from `stored` on above them R, which is else r's; their
 * norms. */
template <class T>
__device__ __forceinline__ void store_top(const bqr_wy_panel &p, int stored, factors &f, double *norms) {
  T *a = static_cast<T *>(p.a) + p.at * (p.lda + 1), *r = static_cast<T *>(p.r) + p.at * (p.ldr + 1);
  for (int e = thread_id(); e < columns * columns; e += threads) {
    const int i = e % columns, j = e / columns;
    const bool here = j >= stored;
    if (i <= j) {
      const T x = static_cast<T>(f.by.sign[i] * f.r(i, j));
      if (here)
        a[i + j * p.lda] = x;
      else
        r[i + j * p.ldr] = x;
    }
    if (i > j || !here) a[i + j * p.lda] = i > j ? static_cast<T>(f.lw(i, j)) : i == j ? one<T>() : zero<T>();
  }
  if (thread_id() >= columns) return;
  double sum = 1;
  for (int i = thread_id() + 1; i < columns; i++) {
    const double x = static_cast<T>(f.lw(i, thread_id()));
    sum = fused(x, x, sum);
  }
  norms[thread_id()] = sum;
}

/* T, 16 rows by a warp, and the panel's first rows. */
template <class T> __device__ __noinline__ void make_top(const bqr_wy_panel &p, int stored, workspace &w) {
  factors &f = shared_memory<divide_storage<T>>()->f;
  copy(f, w.f);
  block_sync();
  T *t = static_cast<T *>(p.t) + p.at + p.at * p.ldt;
  for (int j = warp_id(); j < columns; j += warps)
    for (int i = columns + lane_id(); i < p.cols - p.at; i += warp_lanes) t[i + j * p.ldt] = zero<T>();
  store_top<T>(p, stored, f, w.norms[gridDim.x - 1]);
  if (warp_id() >= columns / 16) return;
  const int top = 16 * warp_id();
  rows16<columns> x;
  make_t(x, top, f.r, f.lw, f.by);
  each_element(x, [&](double &y, int i, int j) {
    t[top + i + j * p.ldt] = top + i <= j ? static_cast<T>(y) : zero<T>();
  });
}

/* 16 rows of V in place of A's, and the squares of them. The panel's first rows are not here. */
template <class T>
__device__ __forceinline__ void divide_rows(const T *slab, T *a, int64_t lda, int first, int end,
                                            const operands &w, column_norms<T, columns> &norms) {
  if (first < columns) return;
  rows16<columns> x;
  read_rows(x, slab, row_ring<T>::ld);
  w.divide(x);
  norms.add(x);
  const int row = first + 2 * (lane_id() / 4);
  T *to = a + row + 2 * (lane_id() % 4) * lda;
#pragma unroll
  for (int J = 0; J < tiles; J++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const T y[2] = {static_cast<T>(x[J][e]), static_cast<T>(x[J][2 + e])};
      if (row + 1 < end)
        write_two(to + (tile * J + e) * lda, y);
      else if (row < end)
        to[(tile * J + e) * lda] = y[0];
    }
}

/* What is above the panel in the columns stored goes to r, with zeros in its place. */
template <class T> __device__ __forceinline__ void clear(const bqr_wy_panel &p, int stored) {
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
template <class T> __device__ __forceinline__ void finish_tau(const bqr_wy_panel &p, workspace &w) {
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
    divide_kernel(const __grid_constant__ bqr_wy_panel p, int share, int stored, workspace *w) {
  auto &s = *shared_memory<divide_storage<T>>();
  T *a = static_cast<T *>(p.a) + p.at * (p.lda + 1);
  const bool last = blockIdx.x + 1 == gridDim.x;
  const int first = last ? 0 : static_cast<int>(blockIdx.x) * share,
            end = last ? 0 : least(first + share, p.rows - p.at);
  row_ring<T> rows(s.rows, s.arrived, a, p.lda, first, end); /* the kernel before only reads A, too */
  wait_for_previous();
  if (p.done && *p.done) return;
  const bool done = w->done;
  if (done && !last) copy(s.w, w->w);
  block_sync();
  column_norms<T, columns> norms;
  rows.run([&](const T *slab, int from) {
    if (!done) return;
#pragma unroll 1
    for (int i = 0; i < row_ring<T>::warp_rows && from + i < end; i += 16)
      divide_rows(slab + i, a, p.lda, from + i, end, s.w, norms);
  });
  if (!done) return;
  clear<T>(p, stored);
  if (last) {
    make_top<T>(p, stored, *w);
  } else {
    norms.store(s.norms[warp_id()]);
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
batchqr_status enqueue(const bqr_wy_panel *p, int stored, void *memory, int *rows, batchqr_stream stream) {
  constexpr int height = row_ring<T>::height;
  const int slabs = (p->rows - p->at - 1) / height + 1, share = (slabs - 1) / most_blocks + 1;
  const unsigned blocks = static_cast<unsigned>((slabs - 1) / share + 1);
  auto *w = static_cast<workspace *>(memory);
  batchqr_status status = launch_dependent(gram_kernel<T>, blocks, threads, sizeof(gram_storage<T>), stream,
                                           *p, share * height, w, rows);
  if (status) return status;
  return launch_dependent(divide_kernel<T>, blocks + 1, threads, sizeof(divide_storage<T>), stream, *p,
                          share * height, stored, w);
}
} // namespace

extern "C" {

size_t bqr_wy_tall_bytes(void) { return sizeof(workspace); }

bool bqr_wy_tall_possible(batchqr_type type, const bqr_device *device) {
  const bool real = type == BATCHQR_S || type == BATCHQR_D;
  return real && bqr_has_clusters(device) &&
         device->smem_per_block >= static_cast<int>(sizeof(divide_storage<double>)) &&
         device->smem_per_block >= static_cast<int>(sizeof(divide_storage<float>));
}

const int *bqr_wy_tall_done(const void *memory) { return &static_cast<const workspace *>(memory)->done; }

batchqr_status bqr_wy_tall(batchqr_type type, const bqr_wy_panel *panel, int stored, void *memory, int *rows,
                           batchqr_stream stream) {
  return type == BATCHQR_S ? enqueue<float>(panel, stored, memory, rows, stream)
                           : enqueue<double>(panel, stored, memory, rows, stream);
}

batchqr_status bqr_wy_tall_prepare(batchqr_type type) {
  auto go = [](auto tag) {
    using T = typename decltype(tag)::type;
    const batchqr_status status = prepare_kernel(gram_kernel<T>, sizeof(gram_storage<T>));
    return status ? status : prepare_kernel(divide_kernel<T>, sizeof(divide_storage<T>));
  };
  return type == BATCHQR_S ? go(type_tag<float>{}) : go(type_tag<double>{});
}
}
