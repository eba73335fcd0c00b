/* SPDX-License-Identifier: BSD-3-Clause */
/* larfb: a block of reflectors applied to columns of a matrix from the left, or to rows from the right. Both
 * are X := X - (X V) M V^H, where X is C^H or C and M is T or T^H: the lines of X, columns or rows of C, are
 * independent. A block of threads takes a strip of lines through two passes: X V streaming X from global
 * memory, and back from the end of the lines, where X is still in registers and then in the L2 cache, the
 * update. Each warp owns 16 lines and half of the rows of V, which come in tiles through shared memory.
 *
 * The matrix units' order of k is free (common/product.cuh), so that X V is the next product's operand
 * without any exchange, and X is loaded in the form in which it is updated. */
#include "blocked.h"
#include "block.cuh"
#include "cluster.cuh"
#include "strip.cuh"
#include "view.cuh"

namespace {
using namespace bqr;

constexpr int W = BATCHQR_BLOCK_WIDTH;
constexpr int most_strip = 64;
constexpr int row_warps = 2; /* warps that share lines; fixed, as the order of sums depends on it */
constexpr int most_warps = most_strip / warp_lines * row_warps;

/* V in shared memory: `stages` tiles of rows, tile t in place t % stages. */
template <class T> class v_ring {
  using part = chunk<T>;

public:
  static constexpr int stages = 3, chunks = 8, rows = chunks * part::rows, elements = rows * W;

  __device__ __forceinline__ v_ring(T *shared, const vectors<T> &v)
      : ring_(shared), v_(v), packs_(tile_packs(v.data, v.ld, v.rows)) {}

  __device__ __forceinline__ int tiles() const { return (v_.rows - 1) / rows + 1; }

  /* Starts loading a tile, if there is one. Ends a group of copies. */
  __device__ __forceinline__ void load(int tile) const {
    T *to = ring_ + tile % stages * elements;
    const int top = tile * rows;
    if (tile == 0)
      each_entry([&](int i, int j) { *address(to, i, j) = v_.at(i, j); });
    else if (tile > 0 && top < v_.rows && packs_)
      load_packs(to, top);
    else if (tile > 0 && top < v_.rows)
      each_entry([&](int i, int j) { copy<1>(to, top, i, j); });
    copy_async_group();
  }
  /* Its copies are the oldest that may be under way. The barrier also tells that the tile before is free. */
  __device__ __forceinline__ void wait() const {
    copy_async_wait_groups<stages - 2>();
    block_sync();
  }
  __device__ __forceinline__ const T *tile(int t) const { return ring_ + t % stages * elements; }

  /* In a tile: free of bank conflicts for whole columns and for both words below. */
  template <class U> __device__ __forceinline__ static U *address(U *tile, int i, int j) {
    constexpr int bytes = static_cast<int>(sizeof(T));
    const int swizzle = bytes == 16 ? 16 * (j >> 1 & 3) ^ 64 * (j & 1) : 32 * ((j >> 1 ^ j << 1) & 3);
    using byte = std::conditional_t<std::is_const<U>::value, const char, char>;
    return reinterpret_cast<U *>(reinterpret_cast<byte *>(tile + j * rows) + (i * bytes ^ swizzle));
  }

  /* Column j of chunk c as the operand b of X V. */
  __device__ __forceinline__ static void read_column(operand<T> (&b)[part::steps][2], const T *tile, int c,
                                                     int j) {
    constexpr int unit = pack<T>::size;
    T x[part::each];
#pragma unroll
    for (int e = 0; e < part::each; e += unit) {
      pack<T> p =
          *reinterpret_cast<const pack<T> *>(address(tile, c * part::rows + part::row(lane_id() % 4, e), j));
#pragma unroll
      for (int i = 0; i < unit; i++) x[e + i] = p.v[i];
    }
#pragma unroll
    for (int t = 0; t < part::steps; t++)
#pragma unroll
      for (int i = 0; i < 2; i++) b[t][i] = split(x[part::entry(t, i)]);
  }

  /* Rows of chunk c, columns j and j + 1, as the operand b of the product with V^H. */
  __device__ __forceinline__ static void read_rows(operand<T> (&b)[part::steps][2], const T *tile, int c,
                                                   int j) {
    const int g = lane_id() / 4, row = c * part::rows + part::row(g / 2, part::entry(0, g % 2));
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const T *at = address(tile, row, j + i); /* entries of two products are neighbours */
      struct alignas(part::steps * sizeof(T)) {
        T v[part::steps];
      } p = *reinterpret_cast<const decltype(p) *>(at);
#pragma unroll
      for (int t = 0; t < part::steps; t++) b[t][i] = conj(split(p.v[t]));
    }
  }

private:
  template <class F> __device__ __forceinline__ static void each_entry(F &&f) {
#pragma unroll 4
    for (unsigned e = threadIdx.x; e < rows * W; e += blockDim.x)
      f(static_cast<int>(e % rows), static_cast<int>(e / rows));
  }
  /* A thread's units all lie in the same rows. */
  __device__ __forceinline__ void load_packs(T *to, int top) const {
    constexpr unsigned units = rows / pack<T>::size;
    const int i = static_cast<int>(threadIdx.x % units * pack<T>::size),
              step = static_cast<int>(blockDim.x / units);
#pragma unroll 4
    for (int j = static_cast<int>(threadIdx.x / units); j < W; j += step) copy<pack<T>::size>(to, top, i, j);
  }
  template <int UNIT> __device__ __forceinline__ void copy(T *to, int top, int i, int j) const {
    const bool some = top + i < v_.rows && j < v_.width;
    copy_async_if<UNIT *static_cast<int>(sizeof(T))>(some, address(to, i, j),
                                                     some ? v_.data + top + i + j * v_.ld : v_.data);
  }

  T *ring_;
  vectors<T> v_;
  bool packs_;
};

template <class T> using row_of_tiles = T[W / 8][4]; /* X V of 16 lines: 8 columns to a tile */

template <class T> constexpr size_t larfb_smem(int warps) {
  return sizeof(T) * (v_ring<T>::stages * v_ring<T>::elements + factor_tile<T>::elements +
                      W / 2 * warp_lanes * static_cast<size_t>(warps));
}

/* What a block of threads does with its lines. */
template <class T, bool LEFT, bool PACKS> class block_update {
  using ring = v_ring<T>;
  using part = chunk<T>;
  using strip = warp_strip<T, LEFT, PACKS>;
  static constexpr int chunks = ring::chunks / row_warps; /* of a warp in a tile */

public:
  __device__ __forceinline__ block_update(T *shared, const vectors<T> &v, const strip &lines)
      : ring_(shared, v), factor_(shared + ring::stages * ring::elements),
        exchange_(shared + ring::stages * ring::elements + factor_tile<T>::elements), lines_(lines) {}

  __device__ void run(const T *t, int width, bool adjoint) {
    typename strip::entries x[chunks];
    load(x, 0);
    for (int tile = 0; tile < ring::stages - 1; tile++) ring_.load(tile);
    factor_.load(t, width, adjoint);
    row_of_tiles<T> w = {};
    project(w, x);
    add_halves(w);
    operand<T> y[W / 8][4];
    multiply_factor(y, w);
    update(x, y);
  }

private:
  /* Between C and X. */
  __device__ __forceinline__ static T turned(T c) { return LEFT ? conj(c) : c; }
  __device__ __forceinline__ static int first_chunk() { return warp_id() % row_warps * chunks; }
  __device__ __forceinline__ void load(typename strip::entries (&x)[chunks], int tile) const {
#pragma unroll
    for (int c = 0; c < chunks; c++) lines_.load(x[c], entry(tile, c));
  }
  __device__ __forceinline__ static int entry(int tile, int c) {
    return tile * ring::rows + (first_chunk() + c) * part::rows;
  }

  /* w := X V over the warp's rows. x holds the first tile, in the end the last one. */
  __device__ __forceinline__ void project(row_of_tiles<T> &w, typename strip::entries (&x)[chunks]) const {
    const int tiles = ring_.tiles(), g = lane_id() / 4;
    for (int tile = 0; tile < tiles; tile++) {
      ring_.wait();
      ring_.load(tile + ring::stages - 1);
#pragma unroll
      for (int c = 0; c < chunks; c++) {
        operand<T> a[part::steps][4];
#pragma unroll
        for (int i = 0; i < 4 * part::steps; i++) {
          const int t = i / 4, h = i / 2 % 2, s = i % 2;
          a[t][2 * h + s] = split(turned(x[c][h][part::entry(t, s)]));
        }
        if (tile + 1 < tiles) lines_.load(x[c], entry(tile + 1, c));
#pragma unroll
        for (int j = 0; j < W / 8; j++) {
          operand<T> b[part::steps][2];
          ring::read_column(b, ring_.tile(tile), first_chunk() + c, 8 * j + g);
#pragma unroll
          for (int t = 0; t < part::steps; t++) multiply_add(w[j], a[t], b[t]);
        }
      }
    }
  }

  /* The sum over the warps that share lines. */
  __device__ __forceinline__ void add_halves(row_of_tiles<T> &w) const {
    static_assert(row_warps == 2, "the same bits for both because there are two");
    auto at = [&](int warp, int i) { return exchange_ + (warp * (W / 2) + i) * warp_lanes + lane_id(); };
#pragma unroll
    for (int i = 0; i < W / 2; i++) *at(warp_id(), i) = w[i / 4][i % 4];
    block_sync();
#pragma unroll
    for (int i = 0; i < W / 2; i++) w[i / 4][i % 4] += *at(warp_id() ^ 1, i);
  }

  __device__ __forceinline__ void multiply_factor(operand<T> (&y)[W / 8][4], const row_of_tiles<T> &w) const {
    const int g = lane_id() / 4, q = lane_id() % 4;
    row_of_tiles<T> product = {};
#pragma unroll
    for (int i = 0; i < W / 8; i++) {
      operand<T> a[4];
#pragma unroll
      for (int c = 0; c < 4; c++) a[c] = split(w[i][c]);
#pragma unroll
      for (int j = 0; j < W / 8; j++) {
        operand<T> b[2];
        factor_.read(b, 8 * i + 2 * q, 8 * i + 2 * q + 1, 8 * j + g);
        multiply_add(product[j], a, b);
      }
    }
#pragma unroll
    for (int j = 0; j < W / 8; j++)
#pragma unroll
      for (int c = 0; c < 4; c++) y[j][c] = split(product[j][c]);
  }

  /* X += Y V^H, from the last tile to the first. */
  __device__ __forceinline__ void update(typename strip::entries (&x)[chunks],
                                         const operand<T> (&y)[W / 8][4]) const {
    const int tiles = ring_.tiles(), q = lane_id() % 4;
    for (int tile = tiles - 1; tile >= 0; tile--) {
      ring_.wait();
      ring_.load(tile < tiles - 1 ? tile + 1 - ring::stages : -1);
#pragma unroll
      for (int c = 0; c < chunks; c++) {
        T sum[part::steps][4];
#pragma unroll
        for (int i = 0; i < 4 * part::steps; i++)
          sum[i / 4][i % 4] = turned(x[c][i / 2 % 2][part::entry(i / 4, i % 2)]);
#pragma unroll
        for (int j = 0; j < W / 8; j++) {
          operand<T> b[part::steps][2];
          ring::read_rows(b, ring_.tile(tile), first_chunk() + c, 8 * j + 2 * q);
#pragma unroll
          for (int t = 0; t < part::steps; t++) multiply_add(sum[t], y[j], b[t]);
        }
#pragma unroll
        for (int i = 0; i < 4 * part::steps; i++)
          x[c][i / 2 % 2][part::entry(i / 4, i % 2)] = turned(sum[i / 4][i % 4]);
        lines_.store(x[c], entry(tile, c));
        if (tile > 0) lines_.load(x[c], entry(tile - 1, c));
      }
    }
  }

  ring ring_;
  factor_tile<T> factor_;
  T *exchange_;
  const strip &lines_;
};

template <class T, bool LEFT, bool PACKS>
__device__ __forceinline__ void update_strip(T *c, int64_t ld, int lines, const vectors<T> &v, const T *t,
                                             int width, bool transposed) {
  const int line = warp_id() / row_warps * warp_lines;
  const warp_strip<T, LEFT, PACKS> mine(LEFT ? c + line * ld : c + line, ld, lines - line, v.rows);
  block_update<T, LEFT, PACKS> update(shared_memory<T>(), v, mine);
  update.run(t, width, transposed);
}

/* The lines from .. to of each member, a strip to a block. */
template <class T, bool LEFT>
__global__ void __launch_bounds__(most_warps *warp_lanes, sizeof(T) == 16 ? 1 : 2)
    larfb_kernel(const __grid_constant__ batchqr_args args, block_step step, const T *t, int64_t stride_t,
                 bool adjoint, int from, int to, int strips) {
  const batchqr_matrix &operand = step.op == BATCHQR_ORMQR ? args.c : args.a;
  const int64_t pieces = args.count * strips;
  const int strip = num_warps() / row_warps * warp_lines;
  for (int64_t i = blockIdx.x; i < pieces; i += gridDim.x) {
    const member x = member_of_step(args, i / strips, step);
    const vectors<T> v = vectors_of<T>(args, x, step);
    const int begin = step.op == BATCHQR_ORGQR ? step.first + v.width : from;
    const int top = begin + static_cast<int>(i % strips) * strip, end = least(to, LEFT ? x.n : x.m);
    if (v.width <= 0 || top >= end) continue;
    const int64_t ld = matrix_ld(operand, x.id);
    T *c = matrix_data<T>(args, operand, x.id);
    c += LEFT ? step.first + top * ld : top + step.first * ld;
    const T *mine = t + i / strips * stride_t;
    const bool transposed = LEFT != adjoint;
    if (warp_strip<T, LEFT, true>::packs(c, ld, end - top, v.rows))
      update_strip<T, LEFT, true>(c, ld, end - top, v, mine, step.width, transposed);
    else
      update_strip<T, LEFT, false>(c, ld, end - top, v, mine, step.width, transposed);
    block_sync();
  }
}

/* Lines of a strip: the fewer, the more blocks share the work, and the more often V is read. */
int strip_for(int64_t members, int lines) {
  const int64_t enough = 2 * static_cast<int64_t>(device_attribute(cudaDevAttrMultiProcessorCount));
  int strip = most_strip;
  while (strip > warp_lines && (strip / 2 >= lines || members * ((lines - 1) / strip + 1) < enough))
    strip /= 2;
  return strip;
}

} // namespace

batchqr_status batchqr_larfb(const batchqr_problem *problem, const batchqr_args *args, int first, int width,
                             const void *t, int64_t stride_t, bool adjoint, int from, int to,
                             batchqr_stream stream) {
  if (from >= to) return BATCHQR_SUCCESS;
  const bool left = problem->op != BATCHQR_ORMQR || problem->side == BATCHQR_LEFT;
  const int strip = strip_for(args->count, to - from), warps = strip / warp_lines * row_warps;
  const int strips = (to - from - 1) / strip + 1;
  const block_step step = {problem->op, problem->side, first, width};
  return for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(left ? larfb_kernel<T, true> : larfb_kernel<T, false>,
                         grid_for(args->count * strips), warps * warp_lanes, larfb_smem<T>(warps), stream,
                         *args, step, static_cast<const T *>(t), stride_t, adjoint, from, to, strips);
  });
}

batchqr_status batchqr_larfb_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr size_t smem = larfb_smem<T>(most_warps);
    batchqr_status status = prepare_kernel(larfb_kernel<T, true>, smem);
    return status ? status : prepare_kernel(larfb_kernel<T, false>, smem);
  });
}
