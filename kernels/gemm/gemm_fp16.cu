/* SPDX-License-Identifier: BSD-3-Clause */
/* Single precision on FP16 units. Each row of op(a) and column of b is scaled so that its largest entry lies
 * in [2^14, 2^15), and rounded to FP16, or split, x = hi + lo, both FP16, of which lo is below 2^-11 |x|. The
 * product of split entries is hi hi + hi lo + lo hi; what is left out is below 2^-22 |a b|. (Markidis et al.,
 * NVIDIA Tensor Core Programmability, 2018.)
 *
 * The units cut off what they add up instead of rounding it: of 32768 products the sum's error is 1.3e-6. So
 * c takes them every 1024, and adds them up itself. */
#include "convert.cuh"
#include "common/ptx/prefetch.cuh"
#include "common/ptx/opaque.cuh"
#include "common/ptx/wgmma.cuh"
#include <cuda_fp16.h>

namespace {
using namespace bqr;

constexpr int stretch_reals = 1024;

template <bool SPLIT> struct fp16_tiles {
  static constexpr int reals = chunk_bytes / 2, tile_reals = tile_row_bytes / (SPLIT ? 4 : 2);
  static constexpr int kept = 4; /* so that columns of 2^14 are read once */
  static constexpr bool need_norm = false;
  char *tiles;
  float *scales;
  int k_tiles;

  __device__ __forceinline__ float scale(uint32_t largest, float, int) const {
    const int e = 14 + 127 - static_cast<int>(largest >> 23);
    return exponent_scale<float>(e < 126 ? e : 126);
  }

  /* A tile's row of split numbers: 32 times hi, then 32 times lo. */
  __device__ __forceinline__ void store(const float (&v)[reals], int64_t row, int unit) const {
    __half hi[reals], lo[reals];
#pragma unroll
    for (int i = 0; i < reals; i++) {
      hi[i] = __float2half_rn(v[i]);
      lo[i] = __float2half_rn(v[i] - __half2float(hi[i]));
    }
    constexpr int half_row = row_chunks / 2;
    const int64_t chunk = SPLIT ? unit / half_row * row_chunks + unit % half_row : unit;
    put(hi, row, chunk);
    if (SPLIT) put(lo, row, chunk + half_row);
  }

private:
  __device__ __forceinline__ void put(const __half (&x)[reals], int64_t row, int64_t chunk) const {
    uint4 bits;
    memcpy(&bits, x, sizeof bits);
    *reinterpret_cast<uint4 *>(tiles + chunk_offset(row, chunk, k_tiles)) = bits;
  }
};

/* c in memory, as reals. */
struct destination {
  float *c;
  int64_t ldc;
  int m, n;
  float alpha, beta;
  const float *row_scales, *col_scales;
  int64_t stride; /* of c; and scales of one member: */
  int rows, cols;
};

template <bool SPLIT> struct fp16_sums : destination {
  using sums = float;
  static constexpr int products = SPLIT ? 6 : 4;
  static constexpr int a_step(int i) { return SPLIT ? (i < 4 ? i % 2 : i - 2) : i; }
  static constexpr int b_step(int i) { return SPLIT ? (i < 4 ? i : i - 4) : i; }
  static constexpr int stretch = SPLIT ? stretch_reals / fp16_tiles<SPLIT>::tile_reals : 1 << 30;
  static constexpr float start = 0;

  /* c will be wanted: half a column of the tile for each warp at a time. */
  __device__ __forceinline__ void begin(const tile_place &place, int group) const {
    const int row = place.a * c_rows + group * wgmma_rows + lane_id() % 2 * 32;
    const int warp = warp_id() % 4 * 16 + lane_id() / 2;
    if (beta == 0 || row >= m) return;
    const float *own = c + place.layer * stride;
    for (int j = place.b * c_cols + warp; j < n && j < (place.b + 1) * c_cols; j += 64)
      prefetch_l2(own + row + j * ldc);
  }

  __device__ __forceinline__ void done(const float (&x)[wgmma_sums], const tile_place &place, int group,
                                       bool first) const {
    int row = place.a * c_rows + sums_row(group), col = place.b * c_cols + sums_col();
    BQR_OPAQUE_HERE(row, col); /* else addresses are kept in registers during the products */
    const bool add = !first || beta != 0;
    if ((place.a + 1) * c_rows <= m && (place.b + 1) * c_cols <= n)
      put<true>(x, place.layer, row, col, add);
    else
      put<false>(x, place.layer, row, col, add);
  }

private:
  template <bool WHOLE>
  __device__ __forceinline__ void put(const float (&x)[wgmma_sums], int member, int row, int col,
                                      bool add) const {
    constexpr int batch = 32; /* loads at a time */
    const float *own_row_scales = row_scales + member * rows;
    const bool inside[2] = {WHOLE || row < m, WHOLE || row + 8 < m};
    const float row_scale[2] = {inside[0] ? alpha * own_row_scales[row] : 0,
                                inside[1] ? alpha * own_row_scales[row + 8] : 0};
    float *to = c + member * stride + row + static_cast<int64_t>(col) * ldc;
    const float *col_scale = col_scales + member * cols + col;
#pragma unroll
    for (int i = 0; i < wgmma_sums; i += batch) {
      float y[batch];
#pragma unroll
      for (int j = 0; j < batch; j++) {
        const int at = j / 4 * 8 + j % 2, h = j / 2 % 2; /* column and half, see wgmma() */
        const bool mine = inside[h] && (WHOLE || col + i * 2 + at < n);
        y[j] = add && mine ? to[at * ldc + 8 * h] : 0.0f;
      }
#pragma unroll
      for (int j = 0; j < batch; j++) {
        const int at = j / 4 * 8 + j % 2, h = j / 2 % 2;
        if (inside[h] && (WHOLE || col + i * 2 + at < n))
          to[at * ldc + 8 * h] = fused(x[i + j], row_scale[h] * col_scale[i * 2 + at], y[j]);
      }
      to += batch * 2 * ldc;
    }
  }
};

template <bool SPLIT>
__global__ void __launch_bounds__(tiled_threads, 1)
    multiply_fp16_kernel(const __grid_constant__ tiled_product p,
                         const __grid_constant__ fp16_sums<SPLIT> sums) {
  if (has_wgmma) multiply_tiles(p, sums);
}

/* A sum of batch members, by columns. */
constexpr int add_threads = 256;
__global__ void __launch_bounds__(add_threads)
    add_kernel(const float *from, int slices, float *c, int64_t ldc, int m, int n, bool more,
               const int *done) {
  const int row = static_cast<int>(blockIdx.x) * add_threads + thread_id();
  if (row >= m || (done && *done)) return;
  const int64_t stride = static_cast<int64_t>(m) * n;
  for (int j = static_cast<int>(blockIdx.y); j < n; j += static_cast<int>(gridDim.y)) {
    const float *x = from + row + static_cast<int64_t>(j) * m;
    float sum = *x;
    for (int i = 1; i < slices; i++) sum += x[i * stride];
    float *to = c + row + j * ldc;
    *to = more ? *to + sum : sum;
  }
}

template <bool SPLIT>
tiling_shape shape_of(batchqr_type type, bqr_gemm_operand operand, int64_t rows, int64_t k) {
  return tiling_shape_of(type, operand, rows, k, fp16_tiles<SPLIT>::tile_reals, 1);
}

template <bool SPLIT>
size_t operand_bytes(batchqr_type type, bqr_gemm_operand operand, int64_t rows, int64_t k) {
  return static_cast<size_t>(shape_of<SPLIT>(type, operand, rows, k).bytes);
}

size_t product_bytes(batchqr_type, int64_t, int64_t) { return 0; }

template <bool SPLIT> batchqr_status prepare() {
  batchqr_status status = prepare_kernel(multiply_fp16_kernel<SPLIT>, tiled_smem);
  if (!status) status = prepare_kernel(add_kernel, 0);
  return status ? status : prepare_conversion<fp16_tiles<SPLIT>, complex_float>();
}

template <bool SPLIT>
batchqr_status convert(batchqr_type type, bqr_gemm_operand operand, int64_t rows, int64_t k,
                       const bqr_tiled_source *from, void *tiles, batchqr_stream stream) {
  const tiling_shape shape = shape_of<SPLIT>(type, operand, rows, k);
  char *to = static_cast<char *>(tiles);
  const fp16_tiles<SPLIT> format = {to, reinterpret_cast<float *>(to + from->count * shape.tiles_bytes),
                                    static_cast<int>(shape.k_tiles)};
  return type == BATCHQR_S
             ? convert_operand<fp16_tiles<SPLIT>, float>(operand, rows, k, *from, shape, format, stream)
             : convert_operand<fp16_tiles<SPLIT>, complex_float>(operand, rows, k, *from, shape, format,
                                                                 stream);
}

template <bool SPLIT>
batchqr_status multiply(const bqr_tiled_product *p, const bqr_device *device, batchqr_stream stream) {
  const tiling_shape a = shape_of<SPLIT>(p->type, BQR_GEMM_A, p->m, p->k),
                     b = shape_of<SPLIT>(p->type, BQR_GEMM_B, p->n, p->k);
  const int parts = p->type == BATCHQR_C ? 2 : 1;
  const tiled_product tiles = {static_cast<const char *>(p->a),
                               static_cast<const char *>(p->b),
                               static_cast<int>(a.rows / c_rows),
                               static_cast<int>(b.rows / c_cols),
                               static_cast<int>(a.k_tiles),
                               p->count,
                               p->done};
  fp16_sums<SPLIT> sums;
  static_cast<destination &>(sums) = {static_cast<float *>(p->c),
                                      p->ldc * parts,
                                      static_cast<int>(p->m * parts),
                                      static_cast<int>(p->n),
                                      static_cast<float>(p->alpha),
                                      static_cast<float>(p->beta),
                                      reinterpret_cast<const float *>(tiles.a + p->count * a.tiles_bytes),
                                      reinterpret_cast<const float *>(tiles.b + p->count * b.tiles_bytes),
                                      p->stride_c * parts,
                                      static_cast<int>(a.rows),
                                      static_cast<int>(b.rows)};
  return launch_tiled(multiply_fp16_kernel<SPLIT>, device, stream, tiles, p->many_blocks, sums);
}

batchqr_status add(const bqr_tiled_product *p, int beta, void *c, int64_t ldc, batchqr_stream stream) {
  const int parts = p->type == BATCHQR_C ? 2 : 1, m = static_cast<int>(p->m) * parts;
  const dim3 grid(static_cast<unsigned>(round_up(m, add_threads) / add_threads),
                  static_cast<unsigned>(p->n < 65535 ? p->n : 65535));
  return launch_kernel(add_kernel, grid, add_threads, 0, stream, static_cast<const float *>(p->c), p->count,
                       static_cast<float *>(c), ldc * parts, m, static_cast<int>(p->n), beta != 0, p->done);
}
} // namespace

extern "C" const bqr_tiling bqr_tiling_half = {1 << BATCHQR_S | 1 << BATCHQR_C,
                                               INT64_MAX,
                                               true,
                                               prepare<false>,
                                               operand_bytes<false>,
                                               product_bytes,
                                               convert<false>,
                                               multiply<false>,
                                               add};
extern "C" const bqr_tiling bqr_tiling_split = {1 << BATCHQR_S | 1 << BATCHQR_C,
                                                INT64_MAX,
                                                true,
                                                prepare<true>,
                                                operand_bytes<true>,
                                                product_bytes,
                                                convert<true>,
                                                multiply<true>,
                                                add};
