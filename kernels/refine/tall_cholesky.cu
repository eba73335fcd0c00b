/* SPDX-License-Identifier: BSD-3-Clause */
/* R of A^H A = R^H R and R^-1, in double precision, 64 columns at a time: their triangle, with its inverse,
 * in one block; then R's rows right of it and the rest of A^H A in a block for each tile. A pivot that is
 * small next to its column says that columns are nearly dependent: then R would not be good enough to tell
 * how good X is. */
#include "common/matrix/view.cuh"
#include "small_square.cuh"
#include "tall.cuh"

namespace {
using namespace bqr;

constexpr int tile = 64, threads = 256, begin_threads = 512;

template <class T>
__global__ void __launch_bounds__(begin_threads) begin_kernel(const __grid_constant__ tall_task<T> s) {
  begin_state(s.state, false, s.k);
  block_sync();
  for (int j = thread_id(); j < s.n; j += begin_threads) {
    const double x = s.gram[j * static_cast<int64_t>(refine_block + 1)];
    const bool usable = x >= least_square && x <= largest_square;
    s.norms2[j] = usable ? x : 1;
    s.exponents[j] = usable ? -ilogb(sqrt(x)) : 0;
    if (!usable) s.state->failed = s.state->stop = 1;
  }
}

/* All of it for up to 128 columns. */
constexpr int small_warps = 8;
struct small_memory {
  square_memory<gram_side, small_warps> square;
  square_scales<gram_side> scales;
  double sums[2 * small_warps * 4];
};
template <class T>
__global__ void __launch_bounds__(small_warps *warp_lanes, 1)
    small_kernel(const __grid_constant__ tall_task<T> s) {
  auto &m = *shared_memory<small_memory>();
  constexpr int ld = square_memory<gram_side, small_warps>::ld, threads = small_warps * warp_lanes;
  for (int e = thread_id(); e < gram_side * gram_side; e += threads) {
    const int i = e % gram_side, j = e / gram_side;
    if (i <= j && j < s.n) m.square.x[i * ld + j] = s.gram[i + j * static_cast<int64_t>(refine_block)];
  }
  block_sync();
  small_square<gram_side, small_warps> square(m.square, m.scales, m.sums, s.n);
  const bool good = square.invert();
  begin_state(s.state, !good, s.k);
  for (int j = thread_id(); j < s.n && good; j += threads) {
    s.norms2[j] = times_power(m.scales.lengths2[j], -2 * m.scales.exponents[j]);
    s.exponents[j] = m.scales.exponents[j];
  }
  for (int e = thread_id(); e < s.n * gram_side && good; e += threads) {
    const int i = e % gram_side, j = e / gram_side;
    s.inverse[i + j * static_cast<int64_t>(refine_block)] =
        i <= j ? times_power(m.square.x[j * ld + i], m.scales.exponents[i]) : 0;
  }
}

/* [A^H A, I] of a tile on the diagonal becomes [R, R^-H], a row at a time. */
struct diagonal_memory {
  static constexpr int ld = 2 * tile + 1;
  double x[tile * ld];
};

template <class T>
__global__ void __launch_bounds__(threads, 1)
    diagonal_kernel(const __grid_constant__ tall_task<T> s, int at) {
  constexpr int ld = diagonal_memory::ld;
  double *x = shared_memory<diagonal_memory>()->x;
  const int cols = least(tile, s.n - at);
  if (s.state->failed) return;
  for (int e = thread_id(); e < tile * 2 * tile; e += threads) {
    const int i = e % tile, j = e / tile;
    const bool in = i <= j && j < cols;
    x[i * ld + j] =
        in ? s.gram[at + i + (at + j) * static_cast<int64_t>(refine_block)] : j % tile == i && j >= cols;
  }
  block_sync();
  const int col = thread_id() % (2 * tile), share = thread_id() / (2 * tile);
  bool failed = false;
  for (int p = 0; p < cols; p++) {
    const double pivot = x[p * ld + p];
    failed = failed || !(pivot > least_pivot * s.norms2[at + p]);
    const double inverse = failed ? 1 : fast_rsqrt(pivot), mine = x[p * ld + col] * inverse;
    const bool reflects = col < tile ? col > p : col - tile <= p;
    for (int i = p + 1 + share; i < cols; i += threads / (2 * tile))
      if (reflects && col >= i) x[i * ld + col] -= x[p * ld + i] * inverse * mine;
    block_sync();
    if (share == 0 && (col < tile ? col >= p : true)) x[p * ld + col] = mine;
    block_sync();
  }
  if (failed && thread_id() == 0) s.state->failed = s.state->stop = 1;
  for (int e = thread_id(); e < tile * tile; e += threads) {
    const int i = e % tile, j = e / tile;
    if (i < cols && j < cols && i <= j)
      s.r[at + i + (at + j) * static_cast<int64_t>(refine_block)] = x[i * ld + j];
    s.inverse[at + i + (at + j) * static_cast<int64_t>(refine_block)] = i <= j ? x[j * ld + tile + i] : 0;
  }
}

/* c := left^H right of two tiles, by columns with ld: a thread has rows and columns 16 apart. */
constexpr int tile_ld = tile + 1, each = 4;
__device__ __forceinline__ void multiply(double (&c)[each][each], const double *left, const double *right) {
  const int ri = thread_id() % 16, rj = thread_id() / 16;
#pragma unroll
  for (int i = 0; i < each; i++)
#pragma unroll
    for (int j = 0; j < each; j++) c[i][j] = 0;
#pragma unroll 4
  for (int k = 0; k < tile; k++) {
    double a[each], b[each];
#pragma unroll
    for (int i = 0; i < each; i++) a[i] = left[(ri + 16 * i) * tile_ld + k];
#pragma unroll
    for (int j = 0; j < each; j++) b[j] = right[(rj + 16 * j) * tile_ld + k];
#pragma unroll
    for (int i = 0; i < each; i++)
#pragma unroll
      for (int j = 0; j < each; j++) c[i][j] = fused(a[i], b[j], c[i][j]);
  }
}
template <class F> __device__ __forceinline__ void each_element(F &&f) {
#pragma unroll
  for (int i = 0; i < each; i++)
#pragma unroll
    for (int j = 0; j < each; j++) f(thread_id() % 16 + 16 * i, thread_id() / 16 + 16 * j, i, j);
}

struct row_memory {
  double inverse[tile * tile_ld], left[tile * tile_ld], right[tile * tile_ld];
};

/* A block for a tile right of and below the one at `at`. */
template <class T>
__global__ void __launch_bounds__(threads, 1) row_kernel(const __grid_constant__ tall_task<T> s, int at) {
  auto &memory = *shared_memory<row_memory>();
  if (s.state->failed) return;
  int right = 1, left = static_cast<int>(blockIdx.x); /* tiles behind `at`: left <= right */
  for (; left >= right; right++) left -= right;
  const int rows = at + (left + 1) * tile, cols = at + right * tile;
  auto read = [&](double *to, const double *from, int first, bool upper) {
    for (int e = thread_id(); e < tile * tile; e += threads) {
      const int i = e % tile, j = e / tile;
      const bool in = at + i < s.n && first + j < s.n && (!upper || i <= j);
      to[j * tile_ld + i] = in ? from[at + i + (first + j) * static_cast<int64_t>(refine_block)] : 0;
    }
  };
  read(memory.inverse, s.inverse, at, true);
  read(memory.left, s.gram, rows, false);
  read(memory.right, s.gram, cols, false);
  block_sync();
  double a[each][each], b[each][each];
  multiply(a, memory.inverse, memory.left);
  multiply(b, memory.inverse, memory.right);
  block_sync();
  each_element([&](int i, int j, int u, int v) {
    memory.left[j * tile_ld + i] = a[u][v];
    memory.right[j * tile_ld + i] = b[u][v];
    if (rows == cols && rows + j < s.n)
      s.r[at + i + (rows + j) * static_cast<int64_t>(refine_block)] = a[u][v];
  });
  block_sync();
  multiply(a, memory.left, memory.right);
  each_element([&](int i, int j, int u, int v) {
    if (rows + i < s.n && cols + j < s.n)
      s.gram[rows + i + (cols + j) * static_cast<int64_t>(refine_block)] -= a[u][v];
  });
}
} // namespace

extern "C" {
batchqr_status bqr_refine_invert_prepare(void);
batchqr_status bqr_tall_iterate_prepare(batchqr_type type, int n);

batchqr_status bqr_tall_factor(const bqr_refine *r, batchqr_stream stream) {
  batchqr_status status = bqr_tall_gram(r, stream);
  return status ? status : for_real_type(r->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto s = tall_task_of<T>(*r);
    if (s.n <= gram_side)
      return launch_kernel(small_kernel<T>, 1, small_warps * warp_lanes, sizeof(small_memory), stream, s);
    batchqr_status done = launch_kernel(begin_kernel<T>, 1, begin_threads, 0, stream, s);
    for (int at = 0; at < s.n && !done; at += tile) {
      const unsigned behind = static_cast<unsigned>((s.n - 1) / tile - at / tile);
      done = launch_kernel(diagonal_kernel<T>, 1, threads, sizeof(diagonal_memory), stream, s, at);
      if (!done && behind > 0)
        done = launch_kernel(row_kernel<T>, behind * (behind + 1) / 2, threads, sizeof(row_memory), stream, s,
                             at);
    }
    return done ? done : bqr_invert_pairs(s.r, s.n, s.inverse, s.state, stream);
  });
}

batchqr_status bqr_tall_prepare(batchqr_type type, int n) {
  batchqr_status status = bqr_tall_gram_prepare(type);
  if (!status) status = bqr_refine_invert_prepare();
  if (!status) status = bqr_tall_iterate_prepare(type, n);
  return status ? status : for_real_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status done = prepare_kernel(begin_kernel<T>, 0);
    if (!done) done = prepare_kernel(small_kernel<T>, sizeof(small_memory));
    if (!done) done = prepare_kernel(diagonal_kernel<T>, sizeof(diagonal_memory));
    return done ? done : prepare_kernel(row_kernel<T>, sizeof(row_memory));
  });
}
}
