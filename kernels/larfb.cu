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

/* Which of the 8 reflectors of a tile of X V the units' column n is. With columns of V 32 bytes apart, modulo
 * 128, both orders in which they are read from shared memory are then free of bank conflicts (z: one of
 * them). */
__device__ __forceinline__ int reflector_of(int n) { return n % 2 ? 4 + (n / 2 ^ 2) : n / 2; }

/* V in shared memory: `stages` tiles of rows, tile t in place t % stages. */
template <class T> class v_ring {
  using part = chunk<T>;

public:
  static constexpr int stages = 3, chunks = 8, rows = chunks * part::rows;
  static constexpr int ld = rows + 32 / static_cast<int>(sizeof(T)), elements = ld * W;

  __device__ __forceinline__ v_ring(T *shared, const vectors<T> &v)
      : ring_(shared), v_(v), packs_(tile_packs(v.data, v.ld, v.rows)) {}

  __device__ __forceinline__ int tiles() const { return (v_.rows - 1) / rows + 1; }

  /* Starts loading a tile, if there is one. Ends a group of copies. */
  __device__ __forceinline__ void load(int tile) const {
    if (tile >= 0 && tile * rows < v_.rows) {
      if (packs_)
        load_units<pack<T>::size>(tile);
      else
        load_units<1>(tile);
    }
    copy_async_group();
  }
  /* Its copies are the oldest that may be under way. The barrier also tells that the tile before is free. */
  __device__ __forceinline__ void wait() const {
    copy_async_wait_groups<stages - 2>();
    block_sync();
  }
  __device__ __forceinline__ const T *tile(int t) const { return ring_ + t % stages * elements; }

  /* The lane's column of 8 j .. in chunk c as the operand b of X V. */
  __device__ __forceinline__ static void read_column(operand<T> (&b)[part::steps][2], const T *tile, int c,
                                                     int j) {
    constexpr int unit = pack<T>::size;
    const T *column = tile + reflector_of(lane_id() / 4) * ld + part::row(lane_id() % 4, 0);
    T x[part::each];
#pragma unroll
    for (int e = 0; e < part::each; e += unit) {
      pack<T> p = *reinterpret_cast<const pack<T> *>(column + 8 * j * ld + c * part::rows + part::row(0, e));
#pragma unroll
      for (int i = 0; i < unit; i++) x[e + i] = p.v[i];
    }
#pragma unroll
    for (int t = 0; t < part::steps; t++)
#pragma unroll
      for (int i = 0; i < 2; i++) b[t][i] = split(x[part::entry(t, i)]);
  }

  /* The lane's row of chunk c, two of the columns 8 j .., as the operand b of the product with V^H. */
  __device__ __forceinline__ static void read_rows(operand<T> (&b)[part::steps][2], const T *tile, int c,
                                                   int j) {
    struct alignas(part::steps * sizeof(T)) neighbours {
      T v[part::steps];
    }; /* of two products */
    const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const T *row = tile + reflector_of(2 * q + i) * ld + part::row(g / 2, part::entry(0, g % 2));
      const neighbours p = *reinterpret_cast<const neighbours *>(row + 8 * j * ld + c * part::rows);
#pragma unroll
      for (int t = 0; t < part::steps; t++) b[t][i] = conj(split(p.v[t]));
    }
  }

private:
  /* A thread's units lie in the same rows, of every so many columns. */
  template <int UNIT> __device__ __forceinline__ void load_units(int tile) const {
    constexpr int units = rows / UNIT, bytes = UNIT * static_cast<int>(sizeof(T));
    const int threads = least(num_threads(), units), columns = num_threads() / threads;
    for (int i = thread_id() % threads; i < units; i += threads) {
      const int row = tile * rows + i * UNIT, first = thread_id() / threads;
      const bool inside = row < v_.rows;
      const T *from = inside ? v_.data + row + first * v_.ld : v_.data;
      T *to = ring_ + tile % stages * elements + i * UNIT + first * ld;
      const int64_t step = inside ? columns * v_.ld : 0;
#pragma unroll 4
      for (int j = first; j < W; j += columns, from += step, to += columns * ld)
        if (row > j)
          copy_async_if<bytes>(inside && j < v_.width, to, from);
        else
          load_head<UNIT>(to, from, row, j);
    }
  }
  /* Where ones and zeros are among the entries. */
  template <int UNIT> __device__ __forceinline__ void load_head(T *to, const T *from, int row, int j) const {
#pragma unroll
    for (int k = 0; k < UNIT; k++)
      if (row + k > j)
        copy_async_if<static_cast<int>(sizeof(T))>(row + k < v_.rows && j < v_.width, to + k, from + k);
      else
        to[k] = row + k == j && j < v_.width ? one<T>() : zero<T>();
  }

  T *ring_;
  vectors<T> v_;
  bool packs_;
};

template <class T> using row_of_tiles = T[W / 8][4]; /* X V of 16 lines: 8 columns to a tile */

constexpr int exchanged = W / 4; /* entries of a lane that warps exchange at a time */

template <class T> constexpr size_t larfb_smem(int warps) {
  return sizeof(T) * (v_ring<T>::stages * v_ring<T>::elements + factor_tile<T>::elements +
                      exchanged * warp_lanes * static_cast<size_t>(warps));
}

/* What a block of threads does with its lines. */
template <class T, bool LEFT, bool PACKS> class block_update {
  using ring = v_ring<T>;
  using part = chunk<T>;
  using strip = warp_strip<T, LEFT, PACKS>;
  static constexpr int chunks = ring::chunks / row_warps; /* of a warp in a tile */
  static constexpr int prefetched = 4;                    /* tiles that loads are ahead of the products */

public:
  __device__ __forceinline__ block_update(T *shared, const vectors<T> &v, const strip &lines)
      : ring_(shared, v), factor_(shared + ring::stages * ring::elements),
        exchange_(shared + ring::stages * ring::elements + factor_tile<T>::elements), lines_(lines) {}

  __device__ void run(const T *t, int width, bool adjoint) {
    typename strip::entries x[chunks];
    load(x, 0);
    for (int tile = 1; tile < prefetched; tile++) prefetch(tile);
    for (int tile = 0; tile < ring::stages - 1; tile++) ring_.load(tile);
    factor_.load(t, width, adjoint);
    row_of_tiles<T> w = {};
    project(w, x);
    add_parts(w);
    operand<T> y[W / 8][4];
    multiply_factor(y, w);
    update(x, y);
  }

private:
  /* Between C and X. */
  __device__ __forceinline__ static T turned(T c) { return LEFT ? conj(c) : c; }
  /* Where the warp's chunk c is in a tile: two at a time, 128 bytes of a line. */
  __device__ __forceinline__ static int number(int c) {
    return (c / 2 * row_warps + warp_id() % row_warps) * 2 + c % 2;
  }
  __device__ __forceinline__ void load(typename strip::entries (&x)[chunks], int tile) const {
#pragma unroll
    for (int c = 0; c < chunks; c++) lines_.load(x[c], entry(tile, c));
  }
  /* Brings the warp's part of a tile, if there is one, into the L2 cache. */
  __device__ __forceinline__ void prefetch(int tile) const {
    if (tile >= 0)
#pragma unroll
      for (int c = 0; c < chunks; c += 2) lines_.template prefetch<2 * part::rows>(entry(tile, c));
  }
  __device__ __forceinline__ static int entry(int tile, int c) {
    return tile * ring::rows + number(c) * part::rows;
  }

  /* w := X V over the warp's rows. x holds the first tile, in the end the last one. */
  __device__ __forceinline__ void project(row_of_tiles<T> &w, typename strip::entries (&x)[chunks]) const {
    const int tiles = ring_.tiles();
    for (int tile = 0; tile < tiles; tile++) {
      ring_.wait();
      ring_.load(tile + ring::stages - 1);
      prefetch(tile + prefetched);
      const T *v = ring_.tile(tile);
#pragma unroll
      for (int c = 0; c < chunks; c++) {
        operand<T> a[part::steps][4];
#pragma unroll
        for (int i = 0; i < 4 * part::steps; i++) {
          const int t = i / 4, h = i / 2 % 2, s = i % 2;
          a[t][2 * h + s] = split(turned(x[c][h][part::entry(t, s)]));
        }
        if (tile + 1 < tiles) lines_.load(x[c], entry(tile + 1, c));
        if (entry(tile, c) >= lines_.length()) continue;
#pragma unroll
        for (int j = 0; j < W / 8; j++) {
          operand<T> b[part::steps][2];
          ring::read_column(b, v, number(c), j);
#pragma unroll
          for (int t = 0; t < part::steps; t++) multiply_add(w[j], a[t], b[t]);
        }
      }
    }
  }

  /* The sum over the warps that share lines, in all of them. */
  __device__ __forceinline__ void add_parts(row_of_tiles<T> &w) const {
    auto at = [&](int warp, int i) { return exchange_ + (warp * exchanged + i) * warp_lanes + lane_id(); };
    const int first = warp_id() / row_warps * row_warps;
#pragma unroll
    for (int start = 0; start < W / 2; start += exchanged) {
      block_sync();
#pragma unroll
      for (int i = 0; i < exchanged; i++) *at(warp_id(), i) = w[(start + i) / 4][i % 4];
      block_sync();
#pragma unroll
      for (int i = 0; i < exchanged; i++) {
        T sum = *at(first, i);
#pragma unroll
        for (int p = 1; p < row_warps; p++) sum += *at(first + p, i);
        w[(start + i) / 4][i % 4] = sum;
      }
    }
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
        factor_.read(b, 8 * i + reflector_of(2 * q), 8 * i + reflector_of(2 * q + 1),
                     8 * j + reflector_of(g));
        multiply_add(product[j], a, b);
      }
    }
#pragma unroll
    for (int j = 0; j < W / 8; j++)
#pragma unroll
      for (int c = 0; c < 4; c++) y[j][c] = split(zero<T>() - product[j][c]);
  }

  /* X += Y V^H, Y = -(X V) M, from the last tile to the first. */
  __device__ __forceinline__ void update(typename strip::entries (&x)[chunks],
                                         const operand<T> (&y)[W / 8][4]) const {
    const int tiles = ring_.tiles();
    for (int tile = tiles - 1; tile >= 0; tile--) {
      ring_.wait();
      ring_.load(tile < tiles - 1 ? tile + 1 - ring::stages : -1);
      prefetch(tile - prefetched);
#pragma unroll
      for (int c = 0; c < chunks; c++) {
        if (entry(tile, c) < lines_.length()) {
          add_product(x[c], y, ring_.tile(tile), number(c));
          lines_.store(x[c], entry(tile, c));
        }
        if (tile > 0) lines_.load(x[c], entry(tile - 1, c));
      }
    }
  }
  __device__ __forceinline__ static void add_product(typename strip::entries &x,
                                                     const operand<T> (&y)[W / 8][4], const T *v, int chunk) {
    T sum[part::steps][4];
#pragma unroll
    for (int i = 0; i < 4 * part::steps; i++)
      sum[i / 4][i % 4] = turned(x[i / 2 % 2][part::entry(i / 4, i % 2)]);
#pragma unroll
    for (int j = 0; j < W / 8; j++) {
      operand<T> b[part::steps][2];
      ring::read_rows(b, v, chunk, j);
#pragma unroll
      for (int t = 0; t < part::steps; t++) multiply_add(sum[t], y[j], b[t]);
    }
#pragma unroll
    for (int i = 0; i < 4 * part::steps; i++)
      x[i / 2 % 2][part::entry(i / 4, i % 2)] = turned(sum[i / 4][i % 4]);
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

/* The lines from .. to of each member, a strip to a block of threads, which takes them through `blocks`
 * blocks of reflectors from step.first on, `backward` from the last to the first. */
struct larfb_task {
  bool adjoint, backward;
  int blocks, from, to, strips;
  int64_t stride_t, stride_block; /* from T to T, of the next member and of the next block */
};

template <class T, bool LEFT>
__device__ __forceinline__ void apply_step(const batchqr_args &args, const member &x, const block_step &step,
                                           const larfb_task &task, int number, const T *t) {
  const vectors<T> v = vectors_of<T>(args, x, step);
  const batchqr_matrix &operand = step.op == BATCHQR_ORMQR ? args.c : args.a;
  const int strip = num_warps() / row_warps * warp_lines;
  const int begin = step.op == BATCHQR_ORGQR ? step.first + v.width : task.from;
  const int top = begin + number * strip, end = least(task.to, LEFT ? x.n : x.m);
  if (v.width <= 0 || top >= end) return;
  const int64_t ld = matrix_ld(operand, x.id);
  T *c = matrix_data<T>(args, operand, x.id);
  c += LEFT ? step.first + top * ld : top + step.first * ld;
  const bool transposed = LEFT != task.adjoint;
  if (warp_strip<T, LEFT, true>::packs(c, ld, end - top, v.rows))
    update_strip<T, LEFT, true>(c, ld, end - top, v, t, step.width, transposed);
  else
    update_strip<T, LEFT, false>(c, ld, end - top, v, t, step.width, transposed);
  block_sync();
}

template <class T, bool LEFT>
__global__ void __launch_bounds__(most_warps *warp_lanes, sizeof(T) == 16 ? 1 : 2)
    larfb_kernel(const __grid_constant__ batchqr_args args, block_step step, larfb_task task, const T *t) {
  const int64_t pieces = args.count * task.strips;
  for (int64_t i = blockIdx.x; i < pieces; i += gridDim.x) {
    const member x = member_of_step(args, i / task.strips, step);
    const T *of_member = t + i / task.strips * task.stride_t;
    for (int n = 0; n < task.blocks; n++) {
      const int block = task.backward ? task.blocks - 1 - n : n;
      block_step mine = step;
      mine.first += block * step.width;
      apply_step<T, LEFT>(args, x, mine, task, static_cast<int>(i % task.strips),
                          of_member + block * task.stride_block);
    }
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

batchqr_status batchqr_larfb_blocks(const batchqr_problem *problem, const batchqr_args *args, int first,
                                    int width, int blocks, const void *t, int64_t stride_t,
                                    int64_t stride_block, bool adjoint, int from, int to,
                                    batchqr_stream stream) {
  if (from >= to) return BATCHQR_SUCCESS;
  const bool left = problem->op != BATCHQR_ORMQR || problem->side == BATCHQR_LEFT;
  const int strip = strip_for(args->count, to - from), warps = strip / warp_lines * row_warps;
  const block_step step = {problem->op, problem->side, first, width};
  const larfb_task task = {adjoint,  left != adjoint, blocks, from, to, (to - from - 1) / strip + 1,
                           stride_t, stride_block};
  return for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(left ? larfb_kernel<T, true> : larfb_kernel<T, false>,
                         grid_for(args->count * task.strips), warps * warp_lanes, larfb_smem<T>(warps),
                         stream, *args, step, task, static_cast<const T *>(t));
  });
}

batchqr_status batchqr_larfb(const batchqr_problem *problem, const batchqr_args *args, int first, int width,
                             const void *t, int64_t stride_t, bool adjoint, int from, int to,
                             batchqr_stream stream) {
  return batchqr_larfb_blocks(problem, args, first, width, 1, t, stride_t, 0, adjoint, from, to, stream);
}

batchqr_status batchqr_larfb_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr size_t smem = larfb_smem<T>(most_warps);
    batchqr_status status = prepare_kernel(larfb_kernel<T, true>, smem);
    return status ? status : prepare_kernel(larfb_kernel<T, false>, smem);
  });
}

bool batchqr_larfb_fits(const batchqr_device *device) {
  return larfb_smem<complex_double>(most_warps) <= static_cast<size_t>(device->smem_per_block);
}
