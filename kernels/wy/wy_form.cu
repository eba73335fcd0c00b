/* SPDX-License-Identifier: BSD-3-Clause */
/* V and T of wide blocks from what LAPACK keeps of them: V below A's diagonal, and tau. T is made of V^H V:
 * that of each 32 columns by a warp; then those of neighbours are united, 32 and 32, 64 and 64, and so on,
 * all of a size in one launch: above the diagonal of both T is -T1 (V1^H V2) T2. */
#include "wy.h"
#include "common/simt/product.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/griddepcontrol.cuh"
#include "common/simt/launch_dependent.cuh"

namespace {
using namespace bqr;

constexpr int threads = 256, warps = threads / warp_lanes;
constexpr int W = warp_lanes; /* columns of a warp */

/* By what a column of V is multiplied: 1, or a power of two near 1 / ||v|| if that is small, which |tau|
 * tells, since it is about 2 / ||v||^2. */
template <class T> __device__ __forceinline__ real_t<T> scale_of(T tau) {
  const real_t<T> size = fabs(real_part(tau)) + fabs(imag_part(tau));
  if (!(size > 0 && size < real_t<T>(0.25))) return 1;
  return scalbn(real_t<T>(1), ilogb(size) / 2);
}

/* A block takes so many rows of a column. */
constexpr int rows_of_block = 4 * threads;

template <class T>
__global__ void __launch_bounds__(threads) take_kernel(const __grid_constant__ bqr_wy_block p) {
  const int j = static_cast<int>(blockIdx.y);
  T *a = static_cast<T *>(p.a) + j * p.lda, *v = static_cast<T *>(p.v) + j * p.ldv;
  const int first = (p.unit ? -p.above : 0) + static_cast<int>(blockIdx.x) * rows_of_block + thread_id();
  const T tau = static_cast<const T *>(p.tau)[j];
  const real_t<T> scale = scale_of(tau);
  bool finite = is_finite(tau);
#pragma unroll
  for (int e = 0; e < rows_of_block / threads; e++) {
    const int i = first + e * threads;
    if (i >= p.rows) break;
    const T diagonal = i == j ? one<T>() : zero<T>(), x = i > j ? a[p.above + i] : diagonal;
    finite = finite && is_finite(x);
    if (i >= 0) v[i] = scaled(x, scale);
    if (p.unit) a[p.above + i] = diagonal;
  }
  if (p.info && !finite) *p.info = BATCHQR_INFO_NONFINITE;
}

/* T in squares of 32 x 32, a warp's each: on the diagonal T of 32 columns as in xLARFT, a row to a lane; the
 * others are zeros. */
template <class T>
__global__ void __launch_bounds__(W) triangles_kernel(const __grid_constant__ bqr_wy_block p) {
  wait_for_previous();
  __shared__ T gram[W][W + 1];
  const int top = static_cast<int>(blockIdx.x) * W, left = static_cast<int>(blockIdx.y) * W;
  const int lane = lane_id(), width = least(W, p.cols - left), row = top + lane;
  T *to = static_cast<T *>(p.t) + row + left * p.ldt;
  if (top != left) {
    for (int k = 0; k < width; k++)
      if (row < p.cols) to[k * p.ldt] = zero<T>();
    return;
  }
  const T *from = static_cast<const T *>(p.gram) + row + left * p.ldt;
#pragma unroll 8
  for (int k = 0; k < W; k++) gram[k][lane] = k < width && lane < k ? from[k * p.ldt] : zero<T>();
  T tau = lane < width ? static_cast<const T *>(p.tau)[left + lane] : zero<T>();
  const real_t<T> scale = scale_of(tau);
  tau = scaled(tau, 1 / (scale * scale));
  block_sync();
  T t[W];
#pragma unroll
  for (int k = 0; k < W; k++) t[k] = zero<T>();
#pragma unroll
  for (int k = 0; k < W; k++) {
    const T factor = broadcast(tau, k);
    t[k] = k < lane || is_zero(factor) ? zero<T>() : k == lane ? factor : -(factor * t[k]);
#pragma unroll
    for (int l = k + 1; l < W; l++) t[l] = madd(t[k], gram[l][k], t[l]);
  }
#pragma unroll
  for (int k = 0; k < W; k++)
    if (k < width && lane < width) to[k * p.ldt] = t[k];
}

constexpr int tile = 32;

/* to := from^H, from having `rows` rows; through a tile, so that both sides are read and written in lines. */
template <class T>
__global__ void __launch_bounds__(threads)
    adjoint_kernel(int rows, int cols, const T *from, int64_t ld_from, T *to, int64_t ld_to) {
  __shared__ T x[tile][tile + 1];
  const int top = static_cast<int>(blockIdx.x) * tile, left = static_cast<int>(blockIdx.y) * tile;
  for (int k = warp_id(); k < tile; k += warps) {
    const int i = top + lane_id(), j = left + k;
    if (i < rows && j < cols) x[k][lane_id()] = from[i + j * ld_from];
  }
  block_sync();
  for (int k = warp_id(); k < tile; k += warps) {
    const int i = top + k, j = left + lane_id();
    if (i < rows && j < cols) to[j + i * ld_to] = conj(x[lane_id()][k]);
  }
}

constexpr int narrow = 8; /* columns of a block of threads */
constexpr int depth = 32; /* of a product's k at once */
constexpr int pad = 4;    /* of columns in shared memory */

/* sum(e) += A(g + 8 h, k) B(k, g) for the k's of one step of the loop; a(row, k), b(k, column). */
template <class T, class A, class B>
__device__ __forceinline__ void add_product(T (&sum)[4], int from, int end, A &&a, B &&b) {
  const int g = lane_id() / 4, q = lane_id() % 4;
  for (int first = from; first < end; first += depth)
#pragma unroll
    for (int l = 0; l < depth; l += 8) {
      operand<T> left[4], right[2];
#pragma unroll
      for (int h = 0; h < 4; h++) left[h] = split(a(g + 8 * (h / 2), first + l + 2 * q + h % 2));
#pragma unroll
      for (int h = 0; h < 2; h++) right[h] = split(b(first + l + 2 * q + h, g));
      add_apart(sum, left, right);
    }
}

/* Blocks in y are pairs of neighbours of `half` columns, blocks in x share the columns of the second. */
template <class T>
__global__ void __launch_bounds__(threads) unite_kernel(int half, int cols, const T *gram, T *t, int64_t ld) {
  wait_for_previous();
  T *x = shared_memory<T>();
  const int first = static_cast<int>(blockIdx.y) * 2 * half, second = first + half;
  const int left = second + static_cast<int>(blockIdx.x) * narrow, end = least(cols, second + half);
  const int g = lane_id() / 4, q = lane_id() % 4;
  if (left >= end) return;
  for (int top = warp_id() * 16; top < half; top += warps * 16) {
    T sum[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
    const int last = least(end, left + narrow);
    add_product(
        sum, second, last,
        [&](int i, int k) { return k < last ? gram[first + top + i + k * ld] : zero<T>(); },
        [&](int k, int j) { return k <= left + j && left + j < end ? t[k + (left + j) * ld] : zero<T>(); });
#pragma unroll
    for (int h = 0; h < 4; h++) x[top + g + 8 * (h / 2) + (2 * q + h % 2) * (half + pad)] = sum[h];
  }
  block_sync();
  for (int top = warp_id() * 16; top < half; top += warps * 16) {
    T sum[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
    add_product(
        sum, top, half,
        [&](int i, int k) {
          return top + i <= k && k < half ? -t[first + top + i + (first + k) * ld] : zero<T>();
        },
        [&](int k, int j) { return k < half ? x[k + j * (half + pad)] : zero<T>(); });
#pragma unroll
    for (int h = 0; h < 4; h++) {
      const int i = first + top + g + 8 * (h / 2), j = left + 2 * q + h % 2;
      if (j < end) t[i + j * ld] = sum[h];
    }
  }
}

template <class T> constexpr size_t unite_smem(int half) {
  return sizeof(T) * narrow * static_cast<size_t>(half + pad);
}

unsigned pieces(int count, int each) { return static_cast<unsigned>((count - 1) / each + 1); }

} // namespace

extern "C" {

batchqr_status bqr_wy_take(batchqr_type type, const bqr_wy_block *block, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    const int rows = block->rows + (block->unit ? block->above : 0);
    const dim3 grid(pieces(rows, rows_of_block), static_cast<unsigned>(block->cols));
    return launch_kernel(take_kernel<typename decltype(tag)::type>, grid, threads, 0, stream, *block);
  });
}

batchqr_status bqr_wy_form(batchqr_type type, const bqr_wy_block *block, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int cols = block->cols;
    batchqr_status status =
        launch_dependent(triangles_kernel<T>, dim3(pieces(cols, W), pieces(cols, W)), W, 0, stream, *block);
    for (int half = W; half < cols && !status; half *= 2) {
      const dim3 grid(pieces(least(half, cols - half), narrow), pieces(cols - half, 2 * half));
      status = launch_dependent(unite_kernel<T>, grid, threads, unite_smem<T>(half), stream, half, cols,
                                static_cast<const T *>(block->gram), static_cast<T *>(block->t), block->ldt);
    }
    return status;
  });
}

batchqr_status bqr_wy_adjoint(batchqr_type type, int rows, int cols, const void *from, int64_t ld_from,
                              void *to, int64_t ld_to, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(adjoint_kernel<T>, dim3(pieces(rows, tile), pieces(cols, tile)), threads, 0, stream,
                         rows, cols, static_cast<const T *>(from), ld_from, static_cast<T *>(to), ld_to);
  });
}

batchqr_status bqr_wy_form_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(take_kernel<T>, 0);
    if (!status) status = prepare_kernel(triangles_kernel<T>, 0);
    if (!status) status = prepare_kernel(adjoint_kernel<T>, 0);
    return status ? status : prepare_kernel(unite_kernel<T>, unite_smem<T>(BQR_WY_WIDEST / 2));
  });
}
}
