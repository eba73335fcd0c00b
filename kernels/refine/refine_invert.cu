/* SPDX-License-Identifier: BSD-3-Clause */
/* The triangles on R's diagonal inverted, refine_block columns each: those of 64 columns first, then
 * [X1 -X1 R12 X2; 0 X2] of two neighbours, all pairs at a time. R12 X2 goes to where the copy of A D holds
 * nothing any more, below R. Beyond R's end all is as if it went on as the unit matrix. */
#include "tall.cuh"

namespace {
using namespace bqr;

constexpr int tile = 64, tile_ld = tile + 1, threads = 256;
constexpr int each = 4, depth = 16; /* a thread's rows and columns of a tile; columns of a step of it */

/* A block for a tile of the inverse, not above the diagonal: those below become zeros. */
template <class L>
__global__ void __launch_bounds__(threads)
    invert_tiles_kernel(const L *r, int64_t ldr, int n, L *inverse, const bqr_refine_state *state) {
  constexpr int tiles = refine_block / tile;
  __shared__ L memory[tile * tile_ld], diagonal[tile]; /* above its diagonal R, below it the inverse's rows */
  if (is_off(state)) return;
  const int col = static_cast<int>(blockIdx.x) % tiles, row = static_cast<int>(blockIdx.x) / tiles % tiles;
  const int64_t block = blockIdx.x / (tiles * tiles);
  if (row < col) return;
  L *to = inverse + (block * refine_block + col * tile) * refine_block + row * tile;
  const int first = static_cast<int>(block) * refine_block + row * tile;
  if (row == col) {
    for (int e = thread_id(); e < tile * tile; e += threads) {
      const int i = e % tile, j = e / tile;
      const bool in = first + j < n && i <= j;
      const L x = in ? r[first + i + (first + j) * ldr] : make<L>(i == j);
      if (i < j) memory[i + j * tile_ld] = x;
      if (i == j) diagonal[i] = make<L>(1 / real_part(x));
    }
    block_sync();
    const int j = thread_id();
    for (int i = j - 1; i >= 0 && j < tile; i--) {
      L sum = memory[i + j * tile_ld] * diagonal[j];
      for (int k = i + 1; k < j; k++) sum = madd(memory[i + k * tile_ld], memory[j + k * tile_ld], sum);
      memory[j + i * tile_ld] = -(sum * diagonal[i]);
    }
    block_sync();
  }
  for (int e = thread_id(); e < tile * tile; e += threads) {
    const int i = e % tile, j = e / tile;
    const bool in = row == col && i <= j;
    to[i + static_cast<int64_t>(j) * refine_block] = !in      ? zero<L>()
                                                     : i == j ? diagonal[i]
                                                              : memory[j + i * tile_ld];
  }
}

/* Of a pair of triangles of `half` columns at column `at`: R12 X2 to `below` R, or X12 := -X1 times that. */
template <class L, bool FIRST>
__global__ void __launch_bounds__(threads)
    invert_pairs_kernel(L *r, int64_t ldr, int n, L *inverse, int half, const bqr_refine_state *state) {
  __shared__ L left[depth * tile_ld], right[depth * tile_ld];
  if (is_off(state)) return;
  const int tiles = half / tile, per_block = refine_block / (2 * half);
  const int ti = static_cast<int>(blockIdx.x) % tiles, tj = static_cast<int>(blockIdx.x) / tiles % tiles;
  const int64_t pair = blockIdx.x / (static_cast<unsigned>(tiles) * static_cast<unsigned>(tiles));
  const int in_block = static_cast<int>(pair % per_block) * 2 * half;
  const int64_t block = pair / per_block, at = block * refine_block + in_block;
  if (at + half >= n) return; /* R12 has no columns: X12 is what it is, zero */
  L *x = inverse + block * refine_block * refine_block + in_block * (refine_block + 1);
  const L *x2 = x + half * (refine_block + 1);
  L *x12 = x + static_cast<int64_t>(half) * refine_block;
  L *below = r + at + half + at * ldr; /* half x half */
  const int rows =
      least(half, static_cast<int>(n - at) - half); /* of `below` and columns of R12 that exist */
  const int i0 = ti * tile, j0 = tj * tile;
  /* FIRST: below^T := (R12 X2)^T, which has `rows` rows; rows beyond that are zeros */
  const int begin = FIRST ? 0 : i0, end = FIRST ? j0 + tile : half;
  L sum[each][each] = {};
  const int ri = thread_id() % 16, rj = thread_id() / 16;
  for (int k0 = begin; k0 < end; k0 += depth) {
    for (int e = thread_id(); e < depth * tile; e += threads) {
      const int i = e % tile, k = e / tile;
      const int kr = e % depth, j = e / depth;
      L a, b;
      if (FIRST) {
        a = k0 + k < rows ? r[at + i0 + i + (at + half + k0 + k) * ldr] : zero<L>();
        b = x2[k0 + kr + static_cast<int64_t>(j0 + j) * refine_block];
      } else {
        a = x[i0 + i + static_cast<int64_t>(k0 + k) * refine_block];
        b = j0 + j < rows ? below[j0 + j + static_cast<int64_t>(k0 + kr) * ldr] : zero<L>();
      }
      left[k * tile_ld + i] = a;
      right[kr * tile_ld + j] = b;
    }
    block_sync();
#pragma unroll
    for (int k = 0; k < depth; k++) {
      L a[each], b[each];
#pragma unroll
      for (int i = 0; i < each; i++) a[i] = left[k * tile_ld + ri + 16 * i];
#pragma unroll
      for (int j = 0; j < each; j++) b[j] = right[k * tile_ld + rj + 16 * j];
#pragma unroll
      for (int i = 0; i < each; i++)
#pragma unroll
        for (int j = 0; j < each; j++) sum[i][j] = madd(a[i], b[j], sum[i][j]);
    }
    block_sync();
  }
#pragma unroll
  for (int i = 0; i < each; i++)
#pragma unroll
    for (int j = 0; j < each; j++) {
      const int row = i0 + ri + 16 * i, col = j0 + rj + 16 * j;
      if (FIRST) {
        if (col < rows) below[col + row * ldr] = sum[i][j];
      } else {
        x12[row + static_cast<int64_t>(col) * refine_block] = -sum[i][j];
      }
    }
}

/* From triangles of `tile` columns to those of refine_block columns. */
template <class L>
batchqr_status invert_pairs(L *r, int64_t ldr, int n, L *inverse, const bqr_refine_state *state,
                            batchqr_stream stream) {
  const unsigned blocks = static_cast<unsigned>(refine_blocks_of(n));
  batchqr_status status = BATCHQR_SUCCESS;
  for (int half = tile; half < refine_block && half < n && !status; half *= 2) {
    const unsigned side = static_cast<unsigned>(half / tile),
                   grid = blocks * static_cast<unsigned>(refine_block / (2 * half)) * side * side;
    status = launch_kernel(invert_pairs_kernel<L, true>, grid, threads, 0, stream, r, ldr, n, inverse, half,
                           state);
    if (!status)
      status = launch_kernel(invert_pairs_kernel<L, false>, grid, threads, 0, stream, r, ldr, n, inverse,
                             half, state);
  }
  return status;
}
} // namespace

batchqr_status bqr::bqr_invert_pairs(double *r, int n, double *inverse, const bqr_refine_state *state,
                                     batchqr_stream stream) {
  return invert_pairs(r, refine_block, n, inverse, state, stream);
}

extern "C" {

batchqr_status bqr_refine_invert(const bqr_refine *r, batchqr_stream stream) {
  return for_real_type(r->type, [&](auto tag) {
    const auto s = refine_task_of<typename decltype(tag)::type>(*r);
    using L = low;
    constexpr unsigned tiles = refine_block / tile;
    const unsigned blocks = static_cast<unsigned>(refine_blocks_of(r->n));
    batchqr_status status = launch_kernel(invert_tiles_kernel<L>, blocks * tiles * tiles, threads, 0, stream,
                                          s.copy, s.ldcopy, s.n, s.inverse, s.state);
    return status ? status : invert_pairs(s.copy, s.ldcopy, s.n, s.inverse, s.state, stream);
  });
}

batchqr_status bqr_refine_invert_prepare(void) {
  batchqr_status status = prepare_kernel(invert_tiles_kernel<low>, 0);
  if (!status) status = prepare_kernel(invert_pairs_kernel<low, true>, 0);
  if (!status) status = prepare_kernel(invert_pairs_kernel<low, false>, 0);
  if (!status) status = prepare_kernel(invert_pairs_kernel<double, true>, 0);
  return status ? status : prepare_kernel(invert_pairs_kernel<double, false>, 0);
}
}
