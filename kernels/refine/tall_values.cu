/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of tall_values.h: a block for each column. */
#include "tall_values.h"
#include "refine.cuh"
#include "common/panel/jacobi.cuh"

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
  for (int i = thread_id(); i < t.n; i += threads)
    to[i] = good ? sign * static_cast<T>(vector_of(t, j)[i] * scale) : T(0);
}

template <class T>
__global__ void __launch_bounds__(threads) core_kernel(const __grid_constant__ bqr_tall_values t) {
  if (is_off(t.state)) return;
  const int64_t j = blockIdx.x;
  const T *from = static_cast<const T *>(t.a) + j * t.lda;
  T *to = static_cast<T *>(t.core) + j * t.n;
  for (int i = thread_id(); i < t.n; i += threads) to[i] = i <= j ? from[i] : T(0);
}

/* f(row) for the block's share of the rows. */
template <class F> __device__ __forceinline__ void each_row(const bqr_tall_values &t, F &&f) {
  const int stride = static_cast<int>(gridDim.y) * threads;
#pragma unroll 4
  for (int i = static_cast<int>(blockIdx.y) * threads + thread_id(); i < t.m; i += stride) f(i);
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
} // namespace

extern "C" {

batchqr_status bqr_tall_values_prepare(batchqr_type type) {
  return for_real_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(judge_kernel<T>, 0);
    if (!status) status = prepare_kernel(core_kernel<T>, 0);
    if (!status) status = prepare_kernel(lift_kernel<T>, 0);
    if (!status) status = prepare_kernel(store_kernel<T>, 0);
    return status ? status : prepare_kernel(end_kernel<T>, 0);
  });
}

batchqr_status bqr_tall_values_judge(const bqr_tall_values *t, batchqr_stream stream) {
  return for_real_type(t->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(judge_kernel<T>, columns_of(*t), threads, 0, stream, *t);
  });
}

batchqr_status bqr_tall_values_core(const bqr_tall_values *t, batchqr_stream stream) {
  return for_real_type(t->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(core_kernel<T>, columns_of(*t), threads, 0, stream, *t);
  });
}

batchqr_status bqr_tall_values_lift(const bqr_tall_values *t, batchqr_stream stream) {
  return for_real_type(t->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(lift_kernel<T>, parts_of(*t), threads, 0, stream, *t);
  });
}

batchqr_status bqr_tall_values_store(const bqr_tall_values *t, batchqr_stream stream) {
  return for_real_type(t->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(store_kernel<T>, parts_of(*t), threads, 0, stream, *t);
  });
}

batchqr_status bqr_tall_values_end(const bqr_tall_values *t, batchqr_stream stream) {
  return for_real_type(t->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(end_kernel<T>, columns_of(*t), threads, 0, stream, *t);
  });
}
}
