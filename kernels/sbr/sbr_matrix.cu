/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole matrices: a member brought into range, both triangles; one triangle from the other; results. */
#include "sbr.h"
#include "common/panel/jacobi.cuh"
#include "common/simt/launch.cuh"

namespace {
using namespace bqr;

constexpr int threads = 256, warps = threads / warp_lanes;
constexpr int tile = 32;

/* Exponents of the largest element and of the least one that is kept. */
template <class R> constexpr int top_exponent = sizeof(R) == sizeof(float) ? 10 : 0;
template <class R> constexpr int least_exponent = sizeof(R) == sizeof(float) ? -30 : -140;

template <class T> __device__ __forceinline__ matrix_view<T> matrix_of(const bqr_args &args, int64_t entry) {
  const member x = member_at<BATCHQR_SYEVD>(args, entry);
  return {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.n, x.n};
}

/* An element as it is read: diagonals are real. */
template <class T> __device__ __forceinline__ T element(const matrix_view<T> &a, int i, int j) {
  const T x = *a.at(i, j);
  return i == j ? make<T>(real_part(x)) : x;
}

__global__ void start_kernel(bqr_sbr_state *state) { *state = {0, 0, 0}; }

/* Warps share the columns of the triangle. */
template <class T>
__global__ void __launch_bounds__(threads)
    magnitude_kernel(const __grid_constant__ bqr_args args, int64_t entry, bool lower, bqr_sbr_state *state) {
  const matrix_view<T> a = matrix_of<T>(args, entry);
  uint32_t u = 0;
  const int stride = static_cast<int>(gridDim.x) * warps;
  for (int j = static_cast<int>(blockIdx.x) * warps + warp_id(); j < a.cols; j += stride) {
    const int end = lower ? a.rows : j + 1;
#pragma unroll 8
    for (int i = (lower ? j : 0) + lane_id(); i < end; i += warp_lanes)
      u = greater(u, magnitude_or_one(element(a, i, j)));
  }
  u = group_max(u);
  if (lane_id() == 0 && u > 0) atomicMax(&state->magnitude, u);
}

/* f(row, column, element) of a square of 32 x 32, then, once the whole square is in shared memory, g(row,
 * column, element) of the square's transpose. */
template <class T, class F, class G>
__device__ __forceinline__ void turn_square(T (&square)[tile][tile + 1], F &&from, G &&to) {
  for (int k = warp_id(); k < tile; k += warps) square[k][lane_id()] = from(lane_id(), k);
  block_sync();
  for (int k = warp_id(); k < tile; k += warps) to(lane_id(), k, conj(square[lane_id()][k]));
}

/* Squares of the lower triangle, or of the upper one, whose place the block's number tells. */
__device__ __forceinline__ void find_square(int64_t number, int &down, int &across) {
  down = static_cast<int>((sqrt(8.0 * static_cast<double>(number) + 1) - 1) / 2);
  while (static_cast<int64_t>(down) * (down + 1) / 2 > number) down--;
  while (static_cast<int64_t>(down + 1) * (down + 2) / 2 <= number) down++;
  across = static_cast<int>(number - static_cast<int64_t>(down) * (down + 1) / 2);
}
unsigned squares_of(int n) {
  const int64_t side = (n + tile - 1) / tile;
  return static_cast<unsigned>(side * (side + 1) / 2);
}

template <class T>
__global__ void __launch_bounds__(threads)
    load_kernel(const __grid_constant__ bqr_args args, int64_t entry, bool lower, T *work, int64_t ld,
                bqr_sbr_state *state) {
  using R = real_t<T>;
  __shared__ T square[tile][tile + 1];
  const matrix_view<T> a = matrix_of<T>(args, entry), to = {work, ld, a.rows, a.cols};
  const uint32_t u = state->magnitude;
  const bool finite = magnitude_finite<T>(u);
  const int exponent = finite && u > 0 ? exponent_to<T>(u, top_exponent<R>) : 0;
  const R least = times_power(R(1), least_exponent<R>);
  const auto kept = [&](T x) {
    const T y = times_power(x, exponent);
    return finite && (fabs(real_part(y)) >= least || fabs(imag_part(y)) >= least) ? y : zero<T>();
  };
  int down, across;
  find_square(blockIdx.x, down, across);
  const int top = (lower ? down : across) * tile, left = (lower ? across : down) * tile;
  turn_square(
      square,
      [&](int i, int j) {
        const int row = top + i, col = left + j;
        if (row >= a.rows || col >= a.cols || (lower ? row < col : row > col)) return zero<T>();
        const T x = kept(element(a, row, col));
        *to.at(row, col) = x;
        return x;
      },
      [&](int j, int i, T x) {
        const int row = top + i, col = left + j;
        if (row < a.rows && col < a.cols && (lower ? row > col : row < col)) *to.at(col, row) = x;
      });
  if (blockIdx.x == 0 && thread_id() == 0) {
    state->exponent = exponent;
    state->info = finite ? 0 : BATCHQR_INFO_NONFINITE;
  }
}

template <class T> __global__ void __launch_bounds__(threads) mirror_kernel(int n, T *data, int64_t ld) {
  __shared__ T square[tile][tile + 1];
  const matrix_view<T> a = {data, ld, n, n};
  int down, across;
  find_square(blockIdx.x, down, across);
  const int top = down * tile, left = across * tile;
  turn_square(
      square,
      [&](int i, int j) {
        const int row = top + i, col = left + j;
        return row < n && col < n && row > col ? *a.at(row, col) : zero<T>();
      },
      [&](int j, int i, T x) {
        const int row = top + i, col = left + j;
        if (row < n && col < n && row > col) *a.at(col, row) = x;
      });
}

/* --- results */

template <class T>
__global__ void __launch_bounds__(threads)
    values_kernel(const __grid_constant__ bqr_args args, int64_t entry, int count, const real_t<T> *from,
                  const bqr_sbr_state *state) {
  using R = real_t<T>;
  const member x = member_at<BATCHQR_SYEVD>(args, entry);
  const int i = static_cast<int>(blockIdx.x) * threads + thread_id();
  const bool finite = state->info == 0;
  if (i < count)
    vector_data<R>(args.s, x.id)[i] =
        finite ? times_power(from[i], -state->exponent) : static_cast<R>(nan(""));
  if (i == 0) set_info(args, x.id, state->info);
  if (i == 0 && args.rank.data) *vector_data<int>(args.rank, x.id) = finite ? count : 0;
}

template <class T>
__global__ void __launch_bounds__(threads)
    widen_kernel(int n, int cols, const real_t<T> *q, int64_t ldq, T *z, int64_t ldz) {
  for (int j = static_cast<int>(blockIdx.x); j < cols; j += static_cast<int>(gridDim.x))
    for (int i = thread_id(); i < n; i += threads) z[i + j * ldz] = make<T>(q[i + j * ldq]);
}

/* The first of the largest entries of a column. */
template <class R> struct candidate {
  R size;
  int row;

  __device__ __forceinline__ void take(const candidate &other) {
    if (other.size > size || (other.size == size && other.row < row)) *this = other;
  }
};

/* A block for each column. */
template <class T>
__global__ void __launch_bounds__(threads)
    vectors_kernel(const __grid_constant__ bqr_args args, int64_t entry, const T *z, int64_t ldz) {
  using R = real_t<T>;
  __shared__ candidate<R> found[warps];
  const member x = member_at<BATCHQR_SYEVD>(args, entry);
  const int col = static_cast<int>(blockIdx.x);
  const T *from = z + col * ldz;
  T *to = matrix_data<T>(args, args.v, x.id) + col * matrix_ld(args.v, x.id);
  candidate<R> most = {0, x.n};
  for (int i = thread_id(); i < x.n; i += threads) most.take({abs2(from[i]), i});
#pragma unroll
  for (int d = warp_lanes / 2; d > 0; d /= 2) most.take({exchange(most.size, d), exchange(most.row, d)});
  if (lane_id() == 0) found[warp_id()] = most;
  block_sync();
  for (int w = 0; w < warps; w++) most.take(found[w]);
  const sign<T> turn = most.row < x.n ? sign_of(from[most.row], most.row) : sign<T>{one<T>(), x.n};
  block_sync();
  if (to == from && imag_part(turn.phase) == 0 && real_part(turn.phase) > 0 && !is_complex<T>) return;
  for (int i = thread_id(); i < x.n; i += threads) to[i] = turn.of(from[i], i);
}

} // namespace

extern "C" {

batchqr_status bqr_sbr_load(batchqr_type type, const bqr_args *args, int64_t entry, bool lower, void *work,
                            int64_t ld, bqr_sbr_state *state, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = launch_kernel(start_kernel, dim3(1), 1, 0, stream, state);
    const int blocks = least((args->n - 1) / warps + 1, 1024);
    if (!status)
      status = launch_kernel(magnitude_kernel<T>, dim3(static_cast<unsigned>(blocks)), threads, 0, stream,
                             *args, entry, lower, state);
    if (status) return status;
    return launch_kernel(load_kernel<T>, dim3(squares_of(args->n)), threads, 0, stream, *args, entry, lower,
                         static_cast<T *>(work), ld, state);
  });
}

batchqr_status bqr_sbr_mirror(batchqr_type type, int n, void *a, int64_t ld, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(mirror_kernel<T>, dim3(squares_of(n)), threads, 0, stream, n, static_cast<T *>(a),
                         ld);
  });
}

batchqr_status bqr_sbr_values(batchqr_type type, const bqr_args *args, int64_t entry, int count,
                              const void *w, const bqr_sbr_state *state, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(values_kernel<T>, dim3(grid_for((count - 1) / threads + 1)), threads, 0, stream,
                         *args, entry, count, static_cast<const real_t<T> *>(w), state);
  });
}

batchqr_status bqr_sbr_widen(batchqr_type type, int n, int cols, const void *q, int64_t ldq, void *z,
                             int64_t ldz, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(widen_kernel<T>, dim3(grid_for(cols)), threads, 0, stream, n, cols,
                         static_cast<const real_t<T> *>(q), ldq, static_cast<T *>(z), ldz);
  });
}

batchqr_status bqr_sbr_vectors(batchqr_type type, const bqr_args *args, int64_t entry, int count,
                               const void *z, int64_t ldz, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(vectors_kernel<T>, dim3(static_cast<unsigned>(count)), threads, 0, stream, *args,
                         entry, static_cast<const T *>(z), ldz);
  });
}

batchqr_status bqr_sbr_join_prepare(batchqr_type type);

batchqr_status bqr_sbr_prepare(batchqr_type type) {
  const batchqr_status joined = bqr_sbr_join_prepare(type);
  return joined ? joined : for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(start_kernel, 0);
    if (!status) status = prepare_kernel(magnitude_kernel<T>, 0);
    if (!status) status = prepare_kernel(load_kernel<T>, 0);
    if (!status) status = prepare_kernel(mirror_kernel<T>, 0);
    if (!status) status = prepare_kernel(values_kernel<T>, 0);
    if (!status) status = prepare_kernel(widen_kernel<T>, 0);
    return status ? status : prepare_kernel(vectors_kernel<T>, 0);
  });
}
}
