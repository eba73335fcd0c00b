/* SPDX-License-Identifier: BSD-3-Clause */
/* What small_svd.h says, one member by P warps. */
#include "small_svd.h"
#include "common/matrix/view.cuh"
#include "common/simt/fragment.cuh"
#include "common/simt/launch.cuh"
#include "small_gram.cuh"
#include "small_square.cuh"

namespace {
using namespace bqr;

/* A R^-1 is orthogonal to the rounding of A^H A times the square of R^-1's length. In double precision, where
 * that is the result's rounding, too, R^-1 may be so long for each of its columns: of orthogonal ones, whose
 * lengths are brought into [1, 2), the square is 1 at most. */
constexpr double most_inverse2 = 4;

/* --- R */

template <class T, int N, int P> struct factor_memory {
  /* up to 32 columns, of 8 blocks at once: 1000 members are then all there */
  using gram = small_gram<T, N, P, N == 32 && sizeof(T) == 8 ? 2 : 3>;
  union {
    typename gram::slabs slabs;
    square_memory<N, P> square;
  };
  square_scales<N> scales;
  double sums[2 * P * 4];
};

/* ||R^-1||_F^2 for the R of A D. */
template <int N, int P, class MEMORY> __device__ __forceinline__ double inverse_length2(MEMORY &m, int n) {
  constexpr int ld = square_memory<N, P>::ld;
  double sum = 0;
  for (int i = warp_id(); i < n; i += P)
    for (int j = lane_id(); j <= i; j += warp_lanes)
      sum = fused(m.square.x[i * ld + j], m.square.x[i * ld + j], sum);
  block_sync(); /* sums have been read */
  block_reducer<double, 4> reducer(m.sums);
  return reducer.sum(sum);
}

/* R = R^-H D X, of the upper triangle of X = A^H A that `inverse` has, and then that becomes R^-1. */
template <class T, int N, int P>
__device__ __forceinline__ void finish(factor_memory<T, N, P> &m, int n, T *r, double *inverse) {
  constexpr int threads = P * warp_lanes, ld = square_memory<N, P>::ld;
  for (int e = thread_id(); e < n * n; e += threads)
    if (e % n <= e / n) inverse[e] = times_power(inverse[e], m.scales.exponents[e % n]);
  block_sync();
  for (int e = thread_id(); e < n * n; e += threads) {
    const int row = e % n, col = e / n;
    const double *const x = inverse + col * n, *const y = m.square.x + row * ld;
    double sum = 0;
#pragma unroll 4
    for (int k = 0; k <= row && row <= col; k++) sum = fused(y[k], x[k], sum);
    r[e] = static_cast<T>(sum);
  }
  block_sync();
  for (int e = thread_id(); e < n * n; e += threads) {
    const int row = e % n, col = e / n;
    inverse[e] = row > col ? 0 : times_power(m.square.x[col * ld + row], m.scales.exponents[row]);
  }
}

template <class T, int N, int P, int RESIDENT>
__global__ void __launch_bounds__(P *warp_lanes, RESIDENT)
    factor_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_small_svd w) {
  using memory = factor_memory<T, N, P>;
  constexpr int threads = P * warp_lanes, ld = square_memory<N, P>::ld;
  auto &m = *shared_memory<memory>();
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GESVD>(args, i);
    T *const a = matrix_data<T>(args, args.a, x.id);
    const int64_t lda = matrix_ld(args.a, x.id), square = static_cast<int64_t>(x.n) * x.n;
    T *const r = static_cast<T *>(w.r) + i * square;
    double *const inverse = w.inverse + i * square;
    memory::gram::form(m.slabs, a, lda, x.m, x.n, m.square.x, ld);
    for (int e = thread_id(); e < x.n * x.n; e += threads) /* for R, below */
      if (e % x.n <= e / x.n) inverse[e] = m.square.x[e % x.n * ld + e / x.n];
    small_square<N, P> of_a(m.square, m.scales, m.sums, x.n);
    bool known = of_a.invert();
    if (known && sizeof(T) == sizeof(double)) known = inverse_length2<N, P>(m, x.n) <= most_inverse2 * x.n;
    if (known) finish(m, x.n, r, inverse);
    if (thread_id() == 0) {
      w.a[i] = a;
      w.lda[i] = static_cast<int>(lda);
      w.m_left[i] = known ? 0 : x.m;
      w.n_left[i] = known ? 0 : x.n;
    }
    block_sync();
  }
}

template <class T>
__global__ void take_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_small_svd w) {
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const int n = w.n_left[i];
    if (n == 0) continue;
    const T *const a = static_cast<const T *>(w.a[i]);
    const matrix_view<T> r = {static_cast<T *>(w.r) + i * n * n, n, n, n};
    for_each(r, [&](T &x, int row, int col) { x = row > col ? T(0) : a[row + col * int64_t{w.lda[i]}]; });
  }
}

/* --- vectors */

template <int N> struct back_memory {
  static constexpr int ld = N + 4; /* fragments are free of conflicts */
  double u[N * ld], product[N * ld];
};

/* a b, with rows x n elements in a, and b in shared memory, by rows: store(i, j, x, two) for rows i and,
 * where `two`, i + 1 of column j. A warp reads 16 rows before it stores any of them. Rows 2 g and 2 g + 1 are
 * those that the units number g and g + 8. */
template <int N, int P, class A, class F>
__device__ __forceinline__ void multiply_rows(const A *a, int64_t lda, int rows, int n, const double *b,
                                              F &&store) {
  constexpr int steps = N / 8, ld = back_memory<N>::ld;
  const int g = lane_id() / 4, q = lane_id() % 4;
  const bool packs = unit_fragment<A, 2, 1>::packs(a, lda, 0);
#pragma unroll 1
  for (int first = 16 * warp_id(); first < rows; first += 16 * P) {
    const int row = first + 2 * g;
    /* All are on their way before the first is needed: no branch for an element. What is read for columns
     * behind the last one meets zeros in b. */
    A y[2 * steps][2];
    const auto column = [&](int k) { return a + least(4 * k + q, n - 1) * lda; };
    if (packs && first + 16 <= rows) { /* the same for the warp */
#pragma unroll
      for (int k = 0; k < 2 * steps; k++) read_two(y[k], column(k) + row);
    } else {
      const int rows_of[2] = {least(row, rows - 1), least(row + 1, rows - 1)};
#pragma unroll
      for (int k = 0; k < 2 * steps; k++)
#pragma unroll
        for (int e = 0; e < 2; e++) y[k][e] = column(k)[rows_of[e]];
    }
    double x[steps][4];
#pragma unroll
    for (int k = 0; k < steps; k++)
#pragma unroll
      for (int e = 0; e < 4; e++) x[k][e] = static_cast<double>(y[2 * k + e % 2][e / 2]);
#pragma unroll(N == 32 ? 2 : 1)
    for (int j = 0; j < steps; j++) {
      if (8 * j >= n) break;
      double c[4] = {0, 0, 0, 0};
      const double *const from = b + q * ld + 8 * j + g;
#pragma unroll
      for (int k = 0; k < steps; k++)
        multiply_add(c[0], c[1], c[2], c[3], x[k][0], x[k][1], x[k][2], x[k][3], from[8 * k * ld],
                     from[(8 * k + 4) * ld]);
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int col = 8 * j + 2 * q + e;
        const double y[2] = {c[e], c[2 + e]};
        if (col < n && row < rows) store(row, col, y, row + 1 < rows);
      }
    }
  }
}

template <class T, int N, int P, int RESIDENT>
__global__ void __launch_bounds__(P *warp_lanes, RESIDENT)
    back_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_small_svd w) {
  constexpr int threads = P * warp_lanes, ld = back_memory<N>::ld;
  auto &m = *shared_memory<back_memory<N>>();
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GESVD>(args, i);
    const int n = x.n;
    const int64_t square = static_cast<int64_t>(n) * n;
    if (args.u.data) {
      const T *const u = static_cast<const T *>(w.u) + i * square;
      for (int e = thread_id(); e < N * N; e += threads) {
        const int row = e % N, col = e / N;
        m.u[row * ld + col] = row < n && col < n ? static_cast<double>(u[row + col * n]) : 0;
        m.product[row * ld + col] = 0;
      }
      block_sync();
      const bool known = w.n_left[i] == 0;
      if (known)
        multiply_rows<N, P>(w.inverse + i * square, n, n, n, m.u,
                            [&](int row, int col, const double(&y)[2], bool two) {
                              m.product[row * ld + col] = y[0];
                              if (two) m.product[(row + 1) * ld + col] = y[1];
                            });
      block_sync();
      T *const to = matrix_data<T>(args, args.u, x.id);
      const int64_t ldu = matrix_ld(args.u, x.id);
      const bool packs = unit_fragment<T, 2, 1>::packs(to, ldu, 0);
      multiply_rows<N, P>(matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, n,
                          known ? m.product : m.u, [&](int row, int col, const double(&y)[2], bool two) {
                            const T z[2] = {static_cast<T>(y[0]), static_cast<T>(y[1])};
                            T *const at = to + row + col * ldu;
                            if (two && packs) {
                              write_two(at, z);
                            } else {
                              at[0] = z[0];
                              if (two) at[1] = z[1];
                            }
                          });
      block_sync(); /* V may take A's place */
    }
    if (args.v.data) {
      const T *const v = static_cast<const T *>(w.v) + i * square;
      for_each(matrix_view<T>{matrix_data<T>(args, args.v, x.id), matrix_ld(args.v, x.id), n, n},
               [&](T &y, int row, int col) { y = v[row + col * n]; });
    }
    T *const s = vector_data<T>(args.s, x.id);
    for (int j = thread_id(); j < n; j += threads) s[j] = static_cast<const T *>(w.s)[i * n + j];
    if (thread_id() == 0) {
      if (args.rank.data) *vector_data<int>(args.rank, x.id) = w.rank[i];
      set_info(args, x.id, w.info[i]);
    }
  }
}

/* f(T(), columns) */
template <class F> batchqr_status with_instance(batchqr_type type, int cols, F &&f) {
  auto of = [&](auto tag) {
    return cols <= 32 ? f(tag, std::integral_constant<int, 32>{}) : f(tag, std::integral_constant<int, 64>{});
  };
  return type == BATCHQR_S ? of(float()) : of(double());
}
/* f(kernel, threads, bytes of shared memory); blocks at once: as many as leave registers */
template <class F> batchqr_status with_factor(batchqr_type type, int cols, F &&f) {
  return with_instance(type, cols, [&](auto tag, auto columns) {
    using T = decltype(tag);
    constexpr int N = decltype(columns)::value, P = N / 16, blocks = N == 32 ? 8 : 3;
    return f(factor_kernel<T, N, P, blocks>, P * warp_lanes, sizeof(factor_memory<T, N, P>));
  });
}
template <class F> batchqr_status with_back(batchqr_type type, int cols, F &&f) {
  return with_instance(type, cols, [&](auto tag, auto columns) {
    using T = decltype(tag);
    constexpr int N = decltype(columns)::value, P = N / 16, blocks = N == 32 ? 8 : 3;
    return f(back_kernel<T, N, P, blocks>, P * warp_lanes, sizeof(back_memory<N>));
  });
}
template <class F> batchqr_status with_take(batchqr_type type, F &&f) {
  return type == BATCHQR_S ? f(take_kernel<float>) : f(take_kernel<double>);
}
} // namespace

extern "C" {

batchqr_status bqr_small_svd_prepare(batchqr_type type, int cols) {
  const auto load = [](auto kernel, int, size_t smem) { return prepare_kernel(kernel, smem); };
  batchqr_status status = with_factor(type, cols, load);
  if (!status) status = with_take(type, [](auto kernel) { return prepare_kernel(kernel, 0); });
  return status ? status : with_back(type, cols, load);
}

batchqr_status bqr_small_svd_factor(batchqr_type type, int cols, const bqr_args *args, const bqr_small_svd *w,
                                    batchqr_stream stream) {
  return with_factor(type, cols, [&](auto kernel, int threads, size_t smem) {
    return launch_kernel(kernel, grid_for(args->count), static_cast<unsigned>(threads), smem, stream, *args,
                         *w);
  });
}

batchqr_status bqr_small_svd_take(batchqr_type type, const bqr_args *args, const bqr_small_svd *w,
                                  batchqr_stream stream) {
  return with_take(type, [&](auto kernel) {
    return launch_kernel(kernel, grid_for(args->count), 4 * warp_lanes, 0, stream, *args, *w);
  });
}

batchqr_status bqr_small_svd_back(batchqr_type type, int cols, const bqr_args *args, const bqr_small_svd *w,
                                  batchqr_stream stream) {
  return with_back(type, cols, [&](auto kernel, int threads, size_t smem) {
    return launch_kernel(kernel, grid_for(args->count), static_cast<unsigned>(threads), smem, stream, *args,
                         *w);
  });
}
}
