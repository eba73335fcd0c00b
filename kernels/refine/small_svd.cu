/* SPDX-License-Identifier: BSD-3-Clause */
/* What small_svd.h says, one member by P warps. */
#include "small_svd.h"
#include "common/matrix/view.cuh"
#include "common/simt/fragment.cuh"
#include "common/simt/launch.cuh"
#include "small_gram.cuh"

namespace {
using namespace bqr;

/* Squares of columns' lengths that are neither too small nor too large. */
constexpr double least_square = 1e-200, largest_square = 1e200;

/* Of the largest eigenvalue, 1 / cond(A)^2. ||I - U^H U|| is up to 3 n eps cond(A)^2 of double precision: a
 * third of what LAPACK's tests permit, 30 m eps; in single precision less than its rounding. */
template <class T> __device__ __forceinline__ double least_eigenvalue(int m, int n) {
  return sizeof(T) == sizeof(double) ? static_cast<double>(n) / m / 4 : 1e-8;
}

/* --- A^H A */

template <class T, int N, int P> struct gram_memory {
  /* up to 32 columns, of 8 blocks at once: 1000 members are then all there */
  using gram = small_gram<T, N, P, N == 32 && sizeof(T) == 8 ? 2 : 3>;
  static constexpr int ld = N + 1;
  union {
    typename gram::slabs slabs;
    double square[N * ld];
  };
};

/* Up to 16 columns: each warp adds up 32 rows at a time of its own, on their way before the first is needed.
 */
template <class T, int P> struct gram_memory<T, 16, P> {
  static constexpr int ld = 17, each = 32;
  double square[16 * ld], parts[P][2][4][warp_lanes];

  struct gram {
    static __device__ __forceinline__ void form(gram_memory &m, const T *a, int64_t lda, int rows, int cols) {
      const int g = lane_id() / 4, q = lane_id() % 4 * 2;
      const T *const own[2] = {a + least(g, cols - 1) * lda + q, a + least(g + 8, cols - 1) * lda + q};
      const bool packs = unit_fragment<T, 2, 1>::packs(a, lda, 0);
      double c[2][4] = {};
#pragma unroll 1
      for (int first = each * warp_id(); first < rows; first += each * P) {
        T x[each / 8][2][2];
        if (packs && first + each <= rows) { /* the same for the warp */
#pragma unroll
          for (int k = 0; k < each / 8; k++)
#pragma unroll
            for (int h = 0; h < 2; h++) read_two(x[k][h], own[h] + first + 8 * k);
        } else {
#pragma unroll
          for (int k = 0; k < each / 8; k++)
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
              for (int e = 0; e < 2; e++) {
                const int row = first + 8 * k + e;
                x[k][h][e] = row + q < rows ? own[h][row] : T(0);
              }
        }
#pragma unroll
        for (int k = 0; k < each / 8; k++) {
          double y[2][2];
#pragma unroll
          for (int e = 0; e < 4; e++) y[e / 2][e % 2] = static_cast<double>(x[k][e / 2][e % 2]);
#pragma unroll
          for (int j = 0; j < 2; j++)
            multiply_add(c[j][0], c[j][1], c[j][2], c[j][3], y[0][0], y[0][1], y[1][0], y[1][1], y[j][0],
                         y[j][1]);
        }
      }
#pragma unroll
      for (int e = 0; e < 8; e++) m.parts[warp_id()][e / 4][e % 4][lane_id()] = c[e / 4][e % 4];
      block_sync();
      for (int e = thread_id(); e < 256; e += P * warp_lanes) {
        const int lane = e % warp_lanes, j = e / 128, i = e / warp_lanes % 4;
        double sum = 0;
#pragma unroll
        for (int p = 0; p < P; p++) sum += m.parts[p][j][i][lane];
        m.square[(lane / 4 + i / 2 * 8) * ld + 8 * j + lane % 4 * 2 + i % 2] = sum;
      }
      block_sync();
    }
  };
};

template <class T, int N, int P, int RESIDENT>
__global__ void __launch_bounds__(P *warp_lanes, RESIDENT)
    gram_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_small_svd w) {
  using memory = gram_memory<T, N, P>;
  constexpr int threads = P * warp_lanes, ld = memory::ld;
  auto &m = *shared_memory<memory>();
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GESVD>(args, i);
    T *const a = matrix_data<T>(args, args.a, x.id);
    const int64_t lda = matrix_ld(args.a, x.id);
    if constexpr (N == 16)
      memory::gram::form(m, a, lda, x.m, x.n);
    else
      memory::gram::form(m.slabs, a, lda, x.m, x.n, m.square, ld);
    bool outside = false;
    for (int j = thread_id(); j < x.n; j += threads)
      outside = outside || !(m.square[j * ld + j] >= least_square && m.square[j * ld + j] <= largest_square);
    const bool good = !block_any(outside);
    double *const to = w.square + i * x.n * x.n;
    for (int e = thread_id(); e < x.n * x.n; e += threads) {
      const int row = e % x.n, col = e / x.n;
      if (row >= col) to[e] = good ? m.square[col * ld + row] : row == col ? 1 : 0;
    }
    if (thread_id() == 0) {
      w.a[i] = a;
      w.lda[i] = static_cast<int>(lda);
      w.m_left[i] = good ? 0 : x.m;
      w.n_left[i] = good ? 0 : x.n;
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

/* Its rows are free of conflicts. */
template <int N> struct factor_memory {
  static constexpr int ld = N + 4;
  double x[N * ld], roots[N];
};

/* 16 rows of `a`, which has rows x n elements, from `first` on. All are on their way before the first is
 * needed: no branch for an element. What is read for columns behind the last one meets zeros. Rows 2 g and 2
 * g + 1 are those that the units number g and g + 8. */
template <class A, int STEPS>
__device__ __forceinline__ void read_rows(A (&y)[2 * STEPS][2], const A *a, int64_t lda, int first, int rows,
                                          int n, bool packs) {
  const int row = first + lane_id() / 4 * 2;
  const auto column = [&](int k) { return a + least(4 * k + lane_id() % 4, n - 1) * lda; };
  if (packs && first + 16 <= rows) { /* the same for the warp */
#pragma unroll
    for (int k = 0; k < 2 * STEPS; k++) read_two(y[k], column(k) + row);
  } else {
    const int rows_of[2] = {least(row, rows - 1), least(row + 1, rows - 1)};
#pragma unroll
    for (int k = 0; k < 2 * STEPS; k++)
#pragma unroll
      for (int e = 0; e < 2; e++) y[k][e] = column(k)[rows_of[e]];
  }
}

/* a b, with b in shared memory, by rows: store(i, j, x, two) for rows i and, where `two`, i + 1 of column j.
 * A warp reads 16 rows before it stores any of them, and the next ones, too, where there are registers for
 * it. */
template <int N, int P, class A, class F>
__device__ __forceinline__ void multiply_rows(const A *a, int64_t lda, int rows, int n, const double *b,
                                              F &&store) {
  constexpr int steps = N / 8, ld = factor_memory<N>::ld;
  constexpr bool ahead = N < 32;
  const int g = lane_id() / 4, q = lane_id() % 4;
  const bool packs = unit_fragment<A, 2, 1>::packs(a, lda, 0);
  A y[2 * steps][2];
  if (ahead && 16 * warp_id() < rows) read_rows<A, steps>(y, a, lda, 16 * warp_id(), rows, n, packs);
#pragma unroll 1
  for (int first = 16 * warp_id(); first < rows; first += 16 * P) {
    const int row = first + 2 * g;
    if (!ahead) read_rows<A, steps>(y, a, lda, first, rows, n, packs);
    double x[steps][4];
#pragma unroll
    for (int k = 0; k < steps; k++)
#pragma unroll
      for (int e = 0; e < 4; e++) x[k][e] = static_cast<double>(y[2 * k + e % 2][e / 2]);
    if (ahead && first + 16 * P < rows) read_rows<A, steps>(y, a, lda, first + 16 * P, rows, n, packs);
#pragma unroll(N == 64 ? 1 : 2)
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
        const double sums[2] = {c[e], c[2 + e]};
        if (col < n && row < rows) store(row, col, sums, row + 1 < rows);
      }
    }
  }
}

/* f(row, column, element) for the n x n elements of `from`, 16 of a thread at a time, all of which are read
 * before the first is used. */
template <int THREADS, class A, class F>
__device__ __forceinline__ void each_of_square(const A *from, int n, F &&f) {
  constexpr int at_once = 16;
  for (int first = thread_id(); first < n * n; first += at_once * THREADS) {
    A x[at_once];
#pragma unroll
    for (int k = 0; k < at_once; k++) x[k] = from[least(first + k * THREADS, n * n - 1)];
#pragma unroll
    for (int k = 0; k < at_once; k++) {
      const int e = first + k * THREADS;
      if (e < n * n) f(e % n, e / n, x[k]);
    }
  }
}
/* Zeros where there are no rows and columns. */
template <int N, int THREADS> __device__ __forceinline__ void clear(factor_memory<N> &m, int n) {
  if (n == N) return;
  for (int e = thread_id(); e < N * N; e += THREADS) m.x[e / N * factor_memory<N>::ld + e % N] = 0;
  block_sync();
}

/* U := A times what shared memory has. */
template <class T, int N, int P>
__device__ __forceinline__ void store_left(const bqr_args &args, const member &x, const factor_memory<N> &m) {
  T *const to = matrix_data<T>(args, args.u, x.id);
  const int64_t ldu = matrix_ld(args.u, x.id);
  const bool packs = unit_fragment<T, 2, 1>::packs(to, ldu, 0);
  multiply_rows<N, P>(matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n, m.x,
                      [&](int row, int col, const double(&y)[2], bool two) {
                        const T z[2] = {static_cast<T>(y[0]), static_cast<T>(y[1])};
                        T *const at = to + row + col * ldu;
                        if (two && packs) {
                          write_two(at, z);
                        } else {
                          at[0] = z[0];
                          if (two) at[1] = z[1];
                        }
                      });
}

/* Eigenvalues ascend, singular values descend. */
template <class T, int N, int P, int RESIDENT>
__global__ void __launch_bounds__(P *warp_lanes, RESIDENT)
    finish_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_small_svd w) {
  constexpr int threads = P * warp_lanes, ld = factor_memory<N>::ld;
  auto &m = *shared_memory<factor_memory<N>>();
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GESVD>(args, i);
    const int n = x.n;
    const double *const values = w.values + i * n, *const z = w.z + i * n * n;
    const bool done = w.n_left[i] == 0 && w.failed[i] == 0 &&
                      values[0] >= least_eigenvalue<T>(x.m, n) * values[n - 1]; /* all threads */
    if (!done) {
      block_sync(); /* n_left has been read */
      if (thread_id() == 0) {
        w.m_left[i] = x.m;
        w.n_left[i] = n;
      }
      continue;
    }
    const auto value = [&](int j) { return static_cast<T>(sqrt(values[n - 1 - j])); };
    for (int j = thread_id(); j < n; j += threads) {
      m.roots[j] = 1 / sqrt(values[n - 1 - j]);
      vector_data<T>(args.s, x.id)[j] = value(j);
    }
    if (warp_id() == 0) {
      const double tolerance = fmax(args.abstol, args.reltol * static_cast<double>(value(0)));
      int above = 0;
      for (int j = lane_id(); j < n; j += warp_lanes) above += static_cast<double>(value(j)) > tolerance;
      above = group_sum(above);
      if (lane_id() == 0) {
        if (args.rank.data) *vector_data<int>(args.rank, x.id) = least(above, args.kmax);
        set_info(args, x.id, 0);
      }
    }
    block_sync();
    if (args.u.data) {
      clear<N, threads>(m, n);
      each_of_square<threads>(
          z, n, [&](int row, int col, double x) { m.x[row * ld + n - 1 - col] = x * m.roots[n - 1 - col]; });
      block_sync();
      store_left<T, N, P>(args, x, m);
      block_sync(); /* V may take A's place */
    }
    if (args.v.data) {
      T *const v = matrix_data<T>(args, args.v, x.id);
      const int64_t ldv = matrix_ld(args.v, x.id);
      each_of_square<threads>(
          z, n, [&](int row, int col, double y) { v[row + (n - 1 - col) * ldv] = static_cast<T>(y); });
    }
    block_sync();
  }
}

template <class T, int N, int P, int RESIDENT>
__global__ void __launch_bounds__(P *warp_lanes, RESIDENT)
    back_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_small_svd w) {
  constexpr int threads = P * warp_lanes, ld = factor_memory<N>::ld;
  auto &m = *shared_memory<factor_memory<N>>();
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    if (w.n_left[i] == 0) continue;
    const member x = member_at<BATCHQR_GESVD>(args, i);
    const int n = x.n;
    const int64_t square = static_cast<int64_t>(n) * n;
    if (args.u.data) {
      clear<N, threads>(m, n);
      each_of_square<threads>(static_cast<const T *>(w.u) + i * square, n,
                              [&](int row, int col, T y) { m.x[row * ld + col] = static_cast<double>(y); });
      block_sync();
      store_left<T, N, P>(args, x, m);
      block_sync(); /* V may take A's place */
    }
    if (args.v.data) {
      T *const v = matrix_data<T>(args, args.v, x.id);
      const int64_t ldv = matrix_ld(args.v, x.id);
      each_of_square<threads>(static_cast<const T *>(w.v) + i * square, n,
                              [&](int row, int col, T y) { v[row + col * ldv] = y; });
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
    return for_value<16, 32, 64>(cols, [&](auto columns) { return f(tag, columns); });
  };
  return type == BATCHQR_S ? of(float()) : of(double());
}
/* f(kernel, threads, bytes of shared memory); blocks at once: as many as leave registers */
enum stage { GRAM, FINISH, BACK };
template <stage STAGE, class F> batchqr_status with_stage(batchqr_type type, int cols, F &&f) {
  return with_instance(type, cols, [&](auto tag, auto columns) {
    using T = decltype(tag);
    constexpr int N = decltype(columns)::value, P = N == 64 ? 4 : 2, blocks = N == 64 ? 3 : 8;
    if constexpr (STAGE == GRAM)
      return f(gram_kernel<T, N, P, blocks>, P * warp_lanes, sizeof(gram_memory<T, N, P>));
    else
      return f(STAGE == FINISH ? finish_kernel<T, N, P, blocks> : back_kernel<T, N, P, blocks>,
               P * warp_lanes, sizeof(factor_memory<N>));
  });
}
template <class F> batchqr_status with_take(batchqr_type type, F &&f) {
  return type == BATCHQR_S ? f(take_kernel<float>) : f(take_kernel<double>);
}

template <stage STAGE>
batchqr_status launch_stage(batchqr_type type, int cols, const bqr_args *args, const bqr_small_svd *w,
                            batchqr_stream stream) {
  return with_stage<STAGE>(type, cols, [&](auto kernel, int threads, size_t smem) {
    return launch_kernel(kernel, grid_for(args->count), threads, smem, stream, *args, *w);
  });
}
} // namespace

extern "C" {

batchqr_status bqr_small_svd_prepare(batchqr_type type, int cols) {
  const auto load = [](auto kernel, int, size_t smem) { return prepare_kernel(kernel, smem); };
  batchqr_status status = with_stage<GRAM>(type, cols, load);
  if (!status) status = with_stage<FINISH>(type, cols, load);
  if (!status) status = with_take(type, [](auto kernel) { return prepare_kernel(kernel, 0); });
  return status ? status : with_stage<BACK>(type, cols, load);
}

batchqr_status bqr_small_svd_gram(batchqr_type type, int cols, const bqr_args *args, const bqr_small_svd *w,
                                  batchqr_stream stream) {
  return launch_stage<GRAM>(type, cols, args, w, stream);
}

batchqr_status bqr_small_svd_finish(batchqr_type type, int cols, const bqr_args *args, const bqr_small_svd *w,
                                    batchqr_stream stream) {
  return launch_stage<FINISH>(type, cols, args, w, stream);
}

batchqr_status bqr_small_svd_take(batchqr_type type, const bqr_args *args, const bqr_small_svd *w,
                                  batchqr_stream stream) {
  return with_take(type, [&](auto kernel) {
    return launch_kernel(kernel, grid_for(args->count), 4 * warp_lanes, 0, stream, *args, *w);
  });
}

batchqr_status bqr_small_svd_back(batchqr_type type, int cols, const bqr_args *args, const bqr_small_svd *w,
                                  batchqr_stream stream) {
  return launch_stage<BACK>(type, cols, args, w, stream);
}
}
