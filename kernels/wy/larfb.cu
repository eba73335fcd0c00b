/* SPDX-License-Identifier: BSD-3-Clause */
/* larfb: a block of reflectors applied to columns of a matrix from the left, or to rows from the right. Both
 * are X := X - (X V) M V^H, where X is C^H or C and M is T or T^H: the lines of X, columns or rows of C, are
 * independent. A block of threads takes a strip of lines through two passes: X V streaming X from global
 * memory, and back from the end of the lines, where X is still in registers and then in the L2 cache, the
 * update. Each warp owns 16 lines and half of the rows of V, which come in tiles through shared memory.
 *
 * Columns of real types go to wy/larfb_columns.cu, of members whose rows it holds.
 *
 * The matrix units' order of k is free (common/simt/product.cuh), so that X V is the next product's operand
 * without any exchange, and X is loaded in the form in which it is updated. */
#include "larfb_columns.h"
#include "known_clusters.cuh"
#include "common/simt/block.cuh"
#include "strip.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cp_async.cuh"
#include <cstdlib>

namespace {
using namespace bqr;

constexpr int W = BQR_BLOCK_WIDTH;
constexpr int most_strip = 64;
constexpr int row_warps = 2; /* warps that share lines; fixed, as the order of sums depends on it */
constexpr int most_warps = most_strip / warp_lines * row_warps;

/* V in shared memory: `stages` tiles of rows, tile t in place t % stages. */
template <class T> class v_pipeline {
public:
  static constexpr int stages = 3, chunks = 8, rows = chunks * chunk<T>::rows;
  using part = v_tile<T, rows>;
  static constexpr int elements = part::elements;

  __device__ __forceinline__ v_pipeline(T *shared, const vectors<T> &v)
      : pipeline_(shared), v_(v), packs_(pack<T>::size == 1 || tile_packs(v.data, v.ld, v.rows)) {}

  __device__ __forceinline__ int tiles() const { return (v_.rows - 1) / rows + 1; }

  /* Starts loading a tile, if there is one. Ends a group of copies. */
  __device__ __forceinline__ void load(int tile) const {
    if (tile >= 0 && tile * rows < v_.rows) {
      if (packs_)
        this->tile(tile).template load<pack<T>::size>(v_, tile * rows, rows);
      else
        this->tile(tile).template load<1>(v_, tile * rows, rows);
    }
    copy_async_group();
  }
  /* Its copies are the oldest that may be under way. The barrier also tells that the tile before is free. */
  __device__ __forceinline__ void wait() const {
    copy_async_wait_groups<stages - 2>();
    block_sync();
  }
  __device__ __forceinline__ part tile(int t) const { return part(pipeline_ + t % stages * elements); }

private:
  T *pipeline_;
  vectors<T> v_;
  bool packs_;
};

template <class T> using row_of_tiles = T[W / 8][4]; /* X V of 16 lines: 8 columns to a tile */

constexpr int exchanged = W / 4; /* entries of a lane that warps exchange at a time */

template <class T> constexpr size_t larfb_smem(int warps) {
  return sizeof(T) * (v_pipeline<T>::stages * v_pipeline<T>::elements + factor_tile<T>::elements +
                      exchanged * warp_lanes * static_cast<size_t>(warps));
}

/* What a block of threads does with its lines. */
template <class T, bool LEFT> class block_update {
  using pipeline = v_pipeline<T>;
  using part = chunk<T>;
  using strip = warp_strip<T, LEFT>;
  static constexpr int chunks = pipeline::chunks / row_warps; /* of a warp in a tile */
  static constexpr int prefetched = 4;                        /* tiles that loads are ahead of the products */

public:
  __device__ __forceinline__ block_update(T *shared, const vectors<T> &v, const strip &lines)
      : pipeline_(shared, v), factor_(shared + pipeline::stages * pipeline::elements),
        exchange_(shared + pipeline::stages * pipeline::elements + factor_tile<T>::elements), lines_(lines) {}

  __device__ void run(const T *t, int width, bool adjoint) {
    typename strip::entries x[chunks];
    load(x, 0);
    for (int tile = 1; tile < prefetched; tile++) prefetch(tile);
    for (int tile = 0; tile < pipeline::stages - 1; tile++) pipeline_.load(tile);
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
    return tile * pipeline::rows + number(c) * part::rows;
  }

  /* w := X V over the warp's rows. x holds the first tile, in the end the last one. */
  __device__ __forceinline__ void project(row_of_tiles<T> &w, typename strip::entries (&x)[chunks]) const {
    const int tiles = pipeline_.tiles();
    for (int tile = 0; tile < tiles; tile++) {
      pipeline_.wait();
      pipeline_.load(tile + pipeline::stages - 1);
      prefetch(tile + prefetched);
      const typename pipeline::part v = pipeline_.tile(tile);
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
          v.read_column(b, number(c), j);
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
    const int tiles = pipeline_.tiles();
    for (int tile = tiles - 1; tile >= 0; tile--) {
      pipeline_.wait();
      pipeline_.load(tile < tiles - 1 ? tile + 1 - pipeline::stages : -1);
      prefetch(tile - prefetched);
#pragma unroll
      for (int c = 0; c < chunks; c++) {
        if (entry(tile, c) < lines_.length()) {
          add_product(x[c], y, pipeline_.tile(tile), number(c));
          lines_.store(x[c], entry(tile, c));
        }
        if (tile > 0) lines_.load(x[c], entry(tile - 1, c));
      }
    }
  }
  __device__ __forceinline__ static void add_product(typename strip::entries &x,
                                                     const operand<T> (&y)[W / 8][4],
                                                     const typename pipeline::part &v, int chunk) {
    T sum[part::steps][4];
#pragma unroll
    for (int i = 0; i < 4 * part::steps; i++)
      sum[i / 4][i % 4] = turned(x[i / 2 % 2][part::entry(i / 4, i % 2)]);
#pragma unroll
    for (int j = 0; j < W / 8; j++) {
      operand<T> b[part::steps][2];
      v.read_rows(b, chunk, j);
#pragma unroll
      for (int t = 0; t < part::steps; t++) multiply_add(sum[t], y[j], b[t]);
    }
#pragma unroll
    for (int i = 0; i < 4 * part::steps; i++)
      x[i / 2 % 2][part::entry(i / 4, i % 2)] = turned(sum[i / 4][i % 4]);
  }

  pipeline pipeline_;
  factor_tile<T> factor_;
  T *exchange_;
  const strip &lines_;
};

/* The lines from .. to of each member, a strip to a block of threads, which takes them through `blocks`
 * blocks of reflectors from step.first on, `backward` from the last to the first. */
struct larfb_task {
  bool adjoint, backward;
  int blocks, from, to, strips, above; /* members of more than `above` rows */
  int64_t stride_t, stride_block;      /* from T to T, of the next member and of the next block */
};

template <class T, bool LEFT>
__device__ __forceinline__ void apply_step(const bqr_args &args, const member &x, const block_step &step,
                                           const larfb_task &task, int number, const T *t) {
  const vectors<T> v = vectors_of<T>(args, x, step);
  const bqr_matrix &operand = step.op == BATCHQR_ORMQR ? args.c : args.a;
  const int strip = num_warps() / row_warps * warp_lines;
  const int begin = step.op == BATCHQR_ORGQR ? step.first + v.width : task.from;
  const int top = begin + number * strip, end = least(task.to, LEFT ? x.n : x.m);
  if (v.width <= 0 || top >= end) return;
  const int64_t ld = matrix_ld(operand, x.id);
  T *c = matrix_data<T>(args, operand, x.id);
  c += LEFT ? step.first + top * ld : top + step.first * ld;
  const bool transposed = LEFT != task.adjoint;
  const int line = warp_id() / row_warps * warp_lines;
  auto update = [&](bool packs) {
    const warp_strip<T, LEFT> mine(LEFT ? c + line * ld : c + line, ld, end - top - line, v.rows, packs);
    block_update<T, LEFT>(shared_memory<T>(), v, mine).run(t, step.width, transposed);
  };
  const bool packs = warp_strip<T, LEFT>::packs(c, ld, end - top, v.rows);
  if (!LEFT || is_complex<T>)
    update(packs);
  else if (packs) /* in code of its own: 4 % for tall members of double precision */
    update(true);
  else
    update(false);
  block_sync();
}

template <class T, bool LEFT>
__global__ void __launch_bounds__(most_warps *warp_lanes, sizeof(T) == 16 ? 1 : 2)
    larfb_kernel(const __grid_constant__ bqr_args args, block_step step, larfb_task task, const T *t) {
  const int64_t pieces = args.count * task.strips;
  for (int64_t i = blockIdx.x; i < pieces; i += gridDim.x) {
    const member x = member_of_step(args, i / task.strips, step);
    if (LEFT && x.m - step.first <= task.above) continue;
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

batchqr_status launch_larfb(const bqr_problem *problem, const bqr_args *args, int first, int width,
                            int blocks, const void *t, int64_t stride_t, int64_t stride_block, bool adjoint,
                            int from, int to, int above, batchqr_stream stream) {
  if (from >= to) return BATCHQR_SUCCESS;
  const bool left = problem->op != BATCHQR_ORMQR || problem->side == BATCHQR_LEFT;
  const int strip = strip_for(args->count, to - from), warps = strip / warp_lines * row_warps;
  const block_step step = {problem->op, problem->side, first, width};
  const larfb_task task = {adjoint, left != adjoint, blocks,      from, to, (to - from - 1) / strip + 1,
                           above,   stride_t,        stride_block};
  return for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(left ? larfb_kernel<T, true> : larfb_kernel<T, false>,
                         grid_for(args->count * task.strips), warps * warp_lanes, larfb_smem<T>(warps),
                         stream, *args, step, task, static_cast<const T *>(t));
  });
}

} // namespace

batchqr_status bqr_larfb_blocks(const bqr_problem *problem, const bqr_args *args, int first, int width,
                                int blocks, const void *t, int64_t stride_t, int64_t stride_block,
                                bool adjoint, int from, int to, batchqr_stream stream) {
  return launch_larfb(problem, args, first, width, blocks, t, stride_t, stride_block, adjoint, from, to, 0,
                      stream);
}

batchqr_status bqr_larfb(const bqr_problem *problem, const bqr_args *args, int first, int width,
                         const void *t, int64_t stride_t, bool adjoint, int from, int to,
                         const bqr_clusters *clusters, batchqr_stream stream) {
  if (from >= to) return BATCHQR_SUCCESS;
  const int above = bqr_larfb_columns_rows(problem), rows = args->m - first;
  if (above > 0 && (rows <= above || !problem->uniform)) {
    const batchqr_status status =
        bqr_larfb_columns(problem, args, first, width, t, stride_t, adjoint, from, to, clusters, stream);
    if (status || rows <= above) return status;
  }
  return launch_larfb(problem, args, first, width, 1, t, stride_t, 0, adjoint, from, to, above, stream);
}

batchqr_status bqr_larfb_prepare(batchqr_type type) {
  const batchqr_status status = bqr_larfb_columns_prepare(type);
  return status ? status : for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr size_t smem = larfb_smem<T>(most_warps);
    batchqr_status status = prepare_kernel(larfb_kernel<T, true>, smem);
    return status ? status : prepare_kernel(larfb_kernel<T, false>, smem);
  });
}

batchqr_status bqr_clusters_new(const bqr_problem *problem, const bqr_device *device, int rows,
                                bqr_clusters **clusters) {
  *clusters = static_cast<bqr_clusters *>(calloc(1, sizeof **clusters));
  if (!*clusters) return BATCHQR_OUT_OF_MEMORY;
  if (rows == 0)
    bqr_larfb_columns_ask(problem, *clusters);
  else if (bqr_larfb_stream_rows(problem, device) > 0)
    bqr_larfb_stream_ask(problem, rows, *clusters);
  return BATCHQR_SUCCESS;
}

void bqr_clusters_free(bqr_clusters *clusters) { free(clusters); }

bool bqr_larfb_fits(const bqr_device *device) {
  return larfb_smem<complex_double>(most_warps) <= static_cast<size_t>(device->smem_per_block);
}
