/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of tall_values.h: a block for each column, but for the product, of which a warp has 16 rows: all
 * of them that it writes, so that they may be those that it has read. */
#include "tall_values.h"
#include "refine.cuh"
#include "common/matrix/view.cuh"
#include "common/panel/jacobi.cuh"
#include "common/simt/product.cuh"

namespace {
using namespace bqr;

constexpr int threads = 128;
/* Of A: up to it U^H U is I to some 1000 roundings of double precision, which tall members' bounds leave room
 * for; what single precision rounds in Z S^-1 grows with the condition number alone. */
template <class T> constexpr double most_condition = sizeof(T) == 4 ? 256 : 32;
/* Squares that are neither too small nor too large, nor are 1 / S. */
template <class T> constexpr double largest_square = sizeof(T) == 4 ? 1e60 : 1e240;

/* No diagonal entry of A^H A is smaller than its least eigenvalue: squares are in range if that is. NaN is
 * not. */
template <class T> __device__ __forceinline__ bool is_good(const bqr_tall_values &t) {
  const double least = t.w[0], most = t.w[t.n - 1];
  return *t.failed == 0 && least >= 1 / largest_square<T> && most <= largest_square<T> &&
         most <= most_condition<T> * most_condition<T> * least;
}
/* Singular value j. */
__device__ __forceinline__ double value_of(const bqr_tall_values &t, int j) { return sqrt(t.w[t.n - 1 - j]); }
__device__ __forceinline__ const double *vector_of(const bqr_tall_values &t, int j) {
  return t.z + static_cast<int64_t>(t.n - 1 - j) * t.n;
}

/* The sign of V's column j, by its first largest entry after rounding: in all threads. */
template <class T> __device__ T sign_of_column(const bqr_tall_values &t, int j) {
  __shared__ T sizes[threads];
  __shared__ int rows[threads];
  const double *z = vector_of(t, j);
  T size = -1;
  int row = 0;
  for (int i = thread_id(); i < t.n; i += threads) {
    const T here = fabs(static_cast<T>(z[i]));
    if (here > size) size = here, row = i;
  }
  sizes[thread_id()] = size;
  rows[thread_id()] = row;
  block_sync();
  for (int i = 0; i < threads; i++)
    if (sizes[i] > size || (sizes[i] == size && rows[i] < row)) size = sizes[i], row = rows[i];
  return z[row] < 0 ? T(-1) : T(1);
}

template <class T>
__global__ void __launch_bounds__(threads) judge_kernel(const __grid_constant__ bqr_tall_values t) {
  const bool good = is_good<T>(t);
  const int j = static_cast<int>(blockIdx.x);
  if (j == 0 && thread_id() == 0) {
    t.state->off.off = good;
    t.state->m = t.state->n = good ? 0 : t.n;
  }
  if (!t.z) return;
  const T sign = good ? sign_of_column<T>(t, j) : T(0);
  const double scale = good ? 1 / value_of(t, j) : 0;
  T *to = static_cast<T *>(t.right) + static_cast<int64_t>(j) * t.n;
  for (int i = thread_id(); i < t.n; i += threads) {
    const double x = good ? static_cast<double>(sign) * vector_of(t, j)[i] * scale : 0;
    to[i] = static_cast<T>(x);
    t.wide_right[i + static_cast<int64_t>(j) * t.n] = x;
  }
}

/* Z S^-1 as the matrix units take it: 8 x 8 tiles, a lane's elements of each. Double precision for both
 * types: FP64 units take less time than TF32's with operands of single precision split. */
constexpr int product_tiles = BQR_TALL_VALUES_PRODUCT / 8, product_warps = 8;
struct product_memory {
  operand<double> right[product_tiles * product_tiles * warp_lanes][2];
};

/* 16 rows of 8 columns for each of `ahead` steps, on their way while others are multiplied. */
template <class T> class row_product {
  static constexpr int ahead = sizeof(T) == 4 ? 4 : 2;

public:
  __device__ __forceinline__ row_product(const bqr_tall_values &t, const product_memory &memory)
      : t_(t), memory_(memory), tiles_((t.n - 1) / 8 + 1), from_(static_cast<const T *>(t.a)),
        to_(static_cast<T *>(t.u)) {}

  __device__ __forceinline__ void run(int first, int step) {
    T next[ahead][4];
    if (first < t_.m) read(next, first, 0);
    for (int top = first; top < t_.m; top += step) {
      double sum[product_tiles][4];
#pragma unroll
      for (int J = 0; J < product_tiles; J++)
#pragma unroll
        for (int e = 0; e < 4; e++) sum[J][e] = 0;
      for (int K = 0; K < tiles_; K += ahead) {
        T now[ahead][4];
#pragma unroll
        for (int k = 0; k < ahead; k++)
#pragma unroll
          for (int e = 0; e < 4; e++) now[k][e] = next[k][e];
        if (K + ahead < tiles_)
          read(next, top, K + ahead);
        else if (top + step < t_.m)
          read(next, top + step, 0);
#pragma unroll
        for (int k = 0; k < ahead; k++)
          if (K + k < tiles_) add(sum, now[k], K + k);
      }
      write(sum, top);
    }
  }

private:
  __device__ __forceinline__ static int row(int e) { return lane_id() / 4 + e / 2 * 8; }
  __device__ __forceinline__ static int col(int e) { return 2 * (lane_id() % 4) + e % 2; }

  __device__ __forceinline__ void read(T (&x)[ahead][4], int top, int K) const {
#pragma unroll
    for (int k = 0; k < ahead; k++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int i = top + row(e), j = 8 * (K + k) + col(e);
        x[k][e] = i < t_.m && j < t_.n ? from_[i + j * t_.lda] : T(0);
      }
  }
  __device__ __forceinline__ void add(double (&sum)[product_tiles][4], const T (&x)[4], int K) const {
    operand<double> left[4];
#pragma unroll
    for (int e = 0; e < 4; e++) left[e] = split(static_cast<double>(x[e]));
#pragma unroll
    for (int J = 0; J < product_tiles; J++)
      if (J < tiles_) multiply_add(sum[J], left, memory_.right[(K * tiles_ + J) * warp_lanes + lane_id()]);
  }
  __device__ __forceinline__ void write(const double (&sum)[product_tiles][4], int top) const {
#pragma unroll
    for (int J = 0; J < product_tiles; J++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int i = top + row(e), j = 8 * J + col(e);
        if (i < t_.m && j < t_.n) to_[i + j * t_.ldu] = static_cast<T>(sum[J][e]);
      }
  }

  const bqr_tall_values &t_;
  const product_memory &memory_;
  int tiles_;
  const T *from_;
  T *to_;
};

template <class T>
__global__ void __launch_bounds__(product_warps *warp_lanes, 1)
    multiply_kernel(const __grid_constant__ bqr_tall_values t) {
  if (!is_off(t.state)) return;
  auto &memory = *shared_memory<product_memory>();
  const int tiles = (t.n - 1) / 8 + 1;
  for (int e = warp_id(); e < tiles * tiles; e += product_warps)
#pragma unroll
    for (int s = 0; s < 2; s++) {
      const int i = e / tiles * 8 + 2 * (lane_id() % 4) + s, j = e % tiles * 8 + lane_id() / 4;
      memory.right[e * warp_lanes + lane_id()][s] =
          split(i < t.n && j < t.n ? t.wide_right[i + j * t.n] : 0.0);
    }
  block_sync();
  const int step = static_cast<int>(gridDim.x) * product_warps * 16;
  row_product<T>(t, memory).run((static_cast<int>(blockIdx.x) * product_warps + warp_id()) * 16, step);
}

/* f(row) for the block's share of the rows. */
template <class F> __device__ __forceinline__ void each_row(const bqr_tall_values &t, F &&f) {
  const int stride = static_cast<int>(gridDim.y) * threads;
#pragma unroll 4
  for (int i = static_cast<int>(blockIdx.y) * threads + thread_id(); i < t.m; i += stride) f(i);
}

template <class T>
__global__ void __launch_bounds__(threads) copy_kernel(const __grid_constant__ bqr_tall_values t) {
  if (is_off(t.state)) return;
  const int64_t j = blockIdx.x;
  const T *from = static_cast<const T *>(t.a) + j * t.lda;
  T *to = static_cast<T *>(t.factored) + j * t.ldfactored;
  each_row(t, [&](int i) { to[i] = from[i]; });
}

template <class T>
__global__ void __launch_bounds__(threads) core_kernel(const __grid_constant__ bqr_tall_values t) {
  if (is_off(t.state)) return;
  const int64_t j = blockIdx.x;
  const T *from = static_cast<const T *>(t.factored) + j * t.ldfactored;
  T *to = static_cast<T *>(t.core) + j * t.n;
  for (int i = thread_id(); i < t.n; i += threads) to[i] = i <= j ? from[i] : T(0);
}

template <class T>
__global__ void __launch_bounds__(threads) lift_kernel(const __grid_constant__ bqr_tall_values t) {
  if (is_off(t.state)) return;
  const int64_t j = blockIdx.x;
  const T *from = static_cast<const T *>(t.left) + j * t.n;
  T *to = static_cast<T *>(t.lifted) + j * t.ldlifted;
  each_row(t, [&](int i) { to[i] = i < t.n ? from[i] : T(0); });
}

template <class T>
__global__ void __launch_bounds__(threads) store_kernel(const __grid_constant__ bqr_tall_values t) {
  if (is_off(t.state)) return;
  const int64_t j = blockIdx.x;
  const T *from = static_cast<const T *>(t.lifted) + j * t.ldlifted;
  T *to = static_cast<T *>(t.u) + j * t.ldu;
  each_row(t, [&](int i) { to[i] = from[i]; });
}

template <class T>
__global__ void __launch_bounds__(threads) end_kernel(const __grid_constant__ bqr_tall_values t) {
  if (!is_off(t.state)) return;
  const int j = static_cast<int>(blockIdx.x);
  T *s = static_cast<T *>(t.s);
  if (thread_id() == 0) s[j] = static_cast<T>(value_of(t, j));
  if (t.v) {
    const T sign = sign_of_column<T>(t, j);
    T *to = static_cast<T *>(t.v) + j * t.ldv;
    for (int i = thread_id(); i < t.n; i += threads) to[i] = sign * static_cast<T>(vector_of(t, j)[i]);
  }
  if (j > 0 || !t.rank || warp_id() > 0) return;
  const double tolerance = fmax(t.abstol, t.reltol * static_cast<double>(static_cast<T>(value_of(t, 0))));
  int above = 0;
  for (int i = lane_id(); i < t.n; i += warp_lanes)
    above += static_cast<double>(static_cast<T>(value_of(t, i))) > tolerance;
  above = group_sum(above);
  if (thread_id() == 0) *t.rank = least(above, t.kmax);
}

dim3 columns_of(const bqr_tall_values &t) { return dim3(static_cast<unsigned>(t.n)); }
dim3 parts_of(const bqr_tall_values &t) {
  return dim3(static_cast<unsigned>(t.n), static_cast<unsigned>(least((t.m - 1) / (8 * threads) + 1, 32)));
}
/* kernel_of(a number of T): T's kernel. */
template <class F>
batchqr_status launch_blocks(const bqr_tall_values *t, dim3 blocks, batchqr_stream stream, F &&kernel_of) {
  return for_real_type(t->type, [&](auto tag) {
    const auto kernel = kernel_of(typename decltype(tag)::type());
    return launch_kernel(kernel, blocks, threads, 0, stream, *t);
  });
}
} // namespace

extern "C" {

batchqr_status bqr_tall_values_prepare(batchqr_type type) {
  return for_real_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(judge_kernel<T>, 0);
    if (!status) status = prepare_kernel(multiply_kernel<T>, sizeof(product_memory));
    if (!status) status = prepare_kernel(copy_kernel<T>, 0);
    if (!status) status = prepare_kernel(core_kernel<T>, 0);
    if (!status) status = prepare_kernel(lift_kernel<T>, 0);
    if (!status) status = prepare_kernel(store_kernel<T>, 0);
    return status ? status : prepare_kernel(end_kernel<T>, 0);
  });
}

batchqr_status bqr_tall_values_judge(const bqr_tall_values *t, batchqr_stream stream) {
  return launch_blocks(t, columns_of(*t), stream, [](auto x) { return judge_kernel<decltype(x)>; });
}

batchqr_status bqr_tall_values_multiply(const bqr_tall_values *t, const bqr_device *device,
                                        batchqr_stream stream) {
  return for_real_type(t->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const unsigned blocks =
        static_cast<unsigned>(least((t->m - 1) / (16 * product_warps) + 1, device->multiprocessors));
    return launch_kernel(multiply_kernel<T>, blocks, product_warps * warp_lanes, sizeof(product_memory),
                         stream, *t);
  });
}

batchqr_status bqr_tall_values_copy(const bqr_tall_values *t, batchqr_stream stream) {
  return launch_blocks(t, parts_of(*t), stream, [](auto x) { return copy_kernel<decltype(x)>; });
}

batchqr_status bqr_tall_values_core(const bqr_tall_values *t, batchqr_stream stream) {
  return launch_blocks(t, columns_of(*t), stream, [](auto x) { return core_kernel<decltype(x)>; });
}

batchqr_status bqr_tall_values_lift(const bqr_tall_values *t, batchqr_stream stream) {
  return launch_blocks(t, parts_of(*t), stream, [](auto x) { return lift_kernel<decltype(x)>; });
}

batchqr_status bqr_tall_values_store(const bqr_tall_values *t, batchqr_stream stream) {
  return launch_blocks(t, parts_of(*t), stream, [](auto x) { return store_kernel<decltype(x)>; });
}

batchqr_status bqr_tall_values_end(const bqr_tall_values *t, batchqr_stream stream) {
  return launch_blocks(t, columns_of(*t), stream, [](auto x) { return end_kernel<decltype(x)>; });
}
}
