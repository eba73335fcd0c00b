/* SPDX-License-Identifier: BSD-3-Clause */
/* What small.h says, of one member by P warps. A streams past once for A^H A and A^H B, by matrix units for
 * double precision, and once more for each step, then out of the cache. */
#include "common/matrix/view.cuh"
#include "common/simt/launch.cuh"
#include "gram_job.cuh"
#include "small.h"
#include "small_square.cuh"

namespace {
using namespace bqr;

constexpr int job = 32, right = BQR_SMALL_RIGHT; /* columns of a warp's part of A^H A; right-hand sides */
constexpr int chunk = 256, chunk_tiles = chunk / warp_lanes; /* rows of A for which r is kept */
constexpr int at_once = 16;                                  /* loads */
constexpr int most_passes = 4;

/* Of up to N columns, by P warps: of N / 32 = Q blocks of columns Q (Q + 1) / 2 jobs. */
template <class T, int N, int P> struct small_memory {
  static constexpr int stages = N > 64 ? 3 : 2;
  union {
    struct alignas(16) {
      T a[N * slab_ld], b[8 * slab_ld];
    } slabs[stages];
    struct {
      square_memory<N, P> square;
      double solution[right][N], s[N], z[N], r[chunk]; /* z: D times x */
    };
  };
  square_scales<N> scales;
  double w[right][N];   /* D A^H B */
  double norms2[right]; /* ||b - A x||^2 */
  double sums[2 * P * 4];
};

template <class T, int N, int P> class small_solver {
  using memory = small_memory<T, N, P>;
  static constexpr int stages = memory::stages, threads = P * warp_lanes, ld = square_memory<N, P>::ld;
  static constexpr int blocks = N / job, jobs = blocks * (blocks + 1) / 2;
  static constexpr int most_jobs = jobs + 1 > P ? 2 : 1, columns = N / P; /* of a warp */
  static constexpr int right_rows = N / most_jobs;                        /* of A^H B, likewise */

public:
  __device__ __forceinline__ small_solver(memory &m, const T *a, int64_t lda, const T *b, int64_t ldb,
                                          int rows, int cols, int k)
      : m_(m), reducer_(m.sums), a_(a), b_(b), lda_(lda), ldb_(ldb), rows_(rows), cols_(cols), k_(k),
        packs_(is_packed(a, lda)), square_(m.square, m.scales, m.sums, cols) {}

  /* Whether all right-hand sides are solved for: then X is written, and norms, where there are such. */
  __device__ __forceinline__ bool run(T *x, T *norms) {
    alone_ = !norms;
    form_square();
    if (!square_.invert()) return false;
    for (int i = thread_id(); i < cols_ * k_; i += threads) {
      double &w = m_.w[i / cols_][i % cols_];
      w = times_power(w, m_.scales.exponents[i % cols_]);
    }
    for (int c = 0; c < k_; c++)
      if (!solve(c)) return false;
    block_sync();
    for (int i = thread_id(); i < cols_ * k_; i += threads) {
      const int c = i / cols_, j = i % cols_;
      x[j + c * ldb_] = static_cast<T>(times_power(m_.solution[c][j], m_.scales.exponents[j]));
    }
    if (norms && thread_id() < k_)
      norms[thread_id()] = rows_ > cols_ ? static_cast<T>(sqrt(m_.norms2[thread_id()])) : T(0);
    return true;
  }

private:
  /* --- A^H A and A^H B */

  /* Starts copying 32 rows, zeros behind the last one. */
  __device__ __forceinline__ void fetch(int number) const {
    auto &to = m_.slabs[number % stages];
    fetch_slab<N, P>(to.a, a_, lda_, packs_, number * slab, rows_, cols_);
    const int row = number * slab + lane_id();
    for (int c = warp_id(); c < right; c += P) { /* what else a tile has is not read of its results */
      const bool there = row < rows_ && c < k_;
      copy_async_if<sizeof(T)>(there, to.b + c * slab_ld + lane_id(), there ? b_ + row + c * ldb_ : a_);
    }
    copy_async_group();
  }

  /* Column blocks of job number `which`: first those beside the diagonal, which take longest, by turns so
   * that a multiprocessor's four parts have as much to do. */
  __device__ __forceinline__ static bool place(int which, int &row, int &col) {
    constexpr int beside = jobs - blocks;
    if (which >= jobs) return false;
    row = col = which - beside;
    if (which >= beside) return true;
    for (col = 1, row = which; row >= col; col++) row -= col;
    return true;
  }

  __device__ __forceinline__ static void put_job(const double (&c)[8][4], double *to) {
#pragma unroll
    for (int t = 0; t < 8; t++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        to[(t / 4 * 16 + square_tile_row(e)) * ld + t % 4 * 8 + square_tile_col(e)] = c[t][e];
  }
  __device__ __forceinline__ void put_right(const double (&c)[8][4], int row) const {
    if (square_tile_col(0) >= right) return;
#pragma unroll
    for (int t = 0; t < right_rows / 16; t++)
#pragma unroll
      for (int e = 0; e < 4; e++) m_.w[square_tile_col(e)][row + 16 * t + square_tile_row(e)] = c[t][e];
  }

  /* The square, and w. */
  __device__ __forceinline__ void form_square() {
    /* job numbers of this warp; `jobs` is A^H B, from row right_row on. Where warps have two jobs, those of a
     * block with itself go two to a warp, and half of A^H B to each of two others. */
    int mine[most_jobs];
    const int right_row = most_jobs == 2 && warp_id() == 5 ? right_rows : 0;
    mine[0] = warp_id();
    if constexpr (most_jobs == 2) {
      static_assert(most_jobs == 1 || (jobs == 10 && P == 8), "6 jobs beside the diagonal, 4 on it");
      mine[0] = warp_id() < 7 ? warp_id() : 8;
      mine[1] = warp_id() == 6 ? 7 : warp_id() == 7 ? 9 : warp_id() >= 4 ? jobs : jobs + 1;
    }
    double c[most_jobs][8][4] = {};
    const int slabs = (rows_ - 1) / slab + 1;
#pragma unroll
    for (int i = 0; i < stages - 1; i++) fetch(i); /* without rows, too: groups are counted */
#pragma unroll 1
    for (int number = 0; number < slabs; number++) {
      copy_async_wait_groups<stages - 2>();
      block_sync();
      fetch(number + stages - 1);
      const auto &from = m_.slabs[number % stages];
#pragma unroll
      for (int q = 0; q < most_jobs; q++) {
        int row, col;
        if (mine[q] == jobs)
          add_right<right_rows, 2>(c[q], from.a + right_row * slab_ld, from.b);
        else if (place(mine[q], row, col) && row * job < cols_ && col * job < cols_)
          add_job(c[q], from.a + row * job * slab_ld, from.a + col * job * slab_ld, row == col);
      }
    }
    copy_async_wait();
    block_sync(); /* the slabs' memory becomes the square's */
#pragma unroll
    for (int q = 0; q < most_jobs; q++) {
      int row, col;
      if (mine[q] == jobs)
        put_right(c[q], right_row);
      else if (place(mine[q], row, col))
        put_job(c[q], m_.square.x + row * job * ld + col * job);
    }
    block_sync();
  }

  /* --- steps */

  /* x / of, where 0 is a part of anything. */
  __device__ __forceinline__ static double part(double x, double of) {
    return of > 0 ? x / of : x > 0 ? INFINITY : 0;
  }

  /* X's column c, and the norm of its residual. Whether it is accurate. */
  __device__ __forceinline__ bool solve(int c) {
    constexpr double aim = static_cast<double>(limits<T>::eps) / 2;
    const double gain = square_.condition() * square_.condition() * step_loss;
    double yy = 0, ww = 0, norm2 = 0, before = 0;
    block_sync(); /* the last step's memory */
    if (thread_id() < N) m_.solution[c][thread_id()] = 0;
    for (int pass = 0;; pass++) {
      const double ss = project(c);
      if (pass == 0 && alone_ && square_.condition() <= safe_condition<T>(cols_) && is_safe_square(ss)) {
        improve(c);
        return true;
      }
      if (pass > 0) {
        const double error = fmin(part(sqrt(ss), sqrt(yy)), part(sqrt(ww), sqrt(norm2))) / square_.length();
        const bool better = pass == 1 || error <= before / 4;
        if (!(ss + yy + ww + norm2 <= 1e300)) return false; /* or NaN */
        if (error <= aim || (!better && error <= 2 * aim)) {
          if (thread_id() == 0) m_.norms2[c] = norm2;
          return true;
        }
        if (!(error <= 1) || !better || pass == most_passes) return false;
        if (error * gain <= aim / 2) { /* what one step more leaves is known without A */
          improve(c);
          if (thread_id() == 0) m_.norms2[c] = fmax(norm2 - ss, 0.0);
          return true;
        }
        before = error;
      }
      yy = improve(c);
      if (!read_a(c, norm2, ww)) return false;
    }
  }

  /* s = R^-H w; its squared length. */
  __device__ __forceinline__ double project(int c) {
    const int i = thread_id() / 2, half = thread_id() % 2;
    double sum = 0;
    if (i < cols_)
#pragma unroll 4
      for (int j = half; j <= i; j += 2) sum = fused(m_.square.x[i * ld + j], m_.w[c][j], sum);
    sum += exchange(sum, 1);
    if (half == 0) m_.s[i] = i < cols_ ? sum : 0;
    return reducer_.sum(half == 0 ? sum * sum : 0.0);
  }

  /* x += R^-1 s; its squared length. */
  __device__ __forceinline__ double improve(int c) {
    const int j = thread_id() / 2, half = thread_id() % 2;
    double sum = 0;
    if (j < cols_)
#pragma unroll 4
      for (int i = j + half; i < cols_; i += 2) sum = fused(m_.square.x[i * ld + j], m_.s[i], sum);
    sum += exchange(sum, 1);
    sum += m_.solution[c][j];
    warp_sync(); /* both threads have read it */
    if (half == 0) {
      m_.solution[c][j] = sum;
      m_.z[j] = j < cols_ ? times_power(sum, m_.scales.exponents[j]) : 0;
    }
    return reducer_.sum(half == 0 ? sum * sum : 0.0);
  }

  /* r = b - A x, w = D A^H r, and their squared lengths; whether b's can be told. */
  __device__ __forceinline__ bool read_a(int c, double &rr, double &ww) {
    const T *b = b_ + c * ldb_;
    double sum[columns] = {}, sums[4] = {}; /* of A^H r; ||r||^2, ||b||^2, how many of b are not 0 */
    for (int first = 0; first < rows_; first += chunk) {
      for (int tile = warp_id(); tile < chunk_tiles; tile += P) {
        const int row = first + tile * warp_lanes + lane_id();
        const bool in = row < rows_;
        const T *from = a_ + (in ? row : 0);
        double r = 0;
        if (in) {
          r = static_cast<double>(b[row]);
          sums[1] = fused(r, r, sums[1]);
          sums[2] += r != 0;
        }
#pragma unroll 1
        for (int j = 0; j < cols_; j += at_once) {
          T y[at_once]; /* all on their way before the first is needed */
#pragma unroll
          for (int i = 0; i < at_once; i++) y[i] = from[(j + i < cols_ ? j + i : j) * lda_];
#pragma unroll
          for (int i = 0; i < at_once; i++) r = fused(-static_cast<double>(y[i]), m_.z[j + i], r);
        }
        r = in ? r : 0;
        m_.r[tile * warp_lanes + lane_id()] = r;
        sums[0] = fused(r, r, sums[0]);
      }
      block_sync();
      double r[chunk_tiles];
#pragma unroll
      for (int t = 0; t < chunk_tiles; t++) r[t] = m_.r[t * warp_lanes + lane_id()];
#pragma unroll
      for (int e = 0; e < columns; e += 2) {
        T y[2][chunk_tiles];
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int col = (e + h) * P + warp_id();
          const T *from = a_ + (col < cols_ ? col : 0) * lda_;
#pragma unroll
          for (int t = 0; t < chunk_tiles; t++) /* r is 0 behind the last row */
            y[h][t] = from[least(first + t * warp_lanes + lane_id(), rows_ - 1)];
        }
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
          for (int t = 0; t < chunk_tiles; t++)
            sum[e + h] = fused(static_cast<double>(y[h][t]), r[t], sum[e + h]);
      }
      block_sync();
    }
#pragma unroll
    for (int e = 0; e < columns; e++) {
      const int col = e * P + warp_id();
      const double total = group_sum(sum[e]);
      if (col < cols_) {
        const double w = times_power(total, m_.scales.exponents[col]);
        if (lane_id() == 0) {
          m_.w[c][col] = w;
          sums[3] = fused(w, w, sums[3]);
        }
      }
    }
    reducer_.sum(sums);
    rr = sums[0];
    ww = sums[3];
    return sums[2] == 0 || (sums[1] >= least_square && sums[1] <= largest_square);
  }

  memory &m_;
  block_reducer<double, 4> reducer_;
  const T *a_, *b_;
  int64_t lda_, ldb_;
  int rows_, cols_, k_;
  bool packs_, alone_; /* alone_: X is all that is wanted */
  small_square<N, P> square_;
};

template <class T, int N, int P, int RESIDENT>
__global__ void __launch_bounds__(P *warp_lanes, RESIDENT)
    small_kernel(const __grid_constant__ bqr_args args, int *sizes) {
  auto &m = *shared_memory<small_memory<T, N, P>>();
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GELS>(args, i);
    T *b = matrix_data<T>(args, args.c, x.id);
    small_solver<T, N, P> solver(m, matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), b,
                                 matrix_ld(args.c, x.id), x.m, x.n, x.k);
    const bool solved = solver.run(b, args.norms.data ? vector_data<T>(args.norms, x.id) : nullptr);
    block_sync();
    if (thread_id() == 0) {
      sizes[i] = solved ? 0 : x.m;
      sizes[i + args.count] = solved ? 0 : x.n;
      sizes[i + 2 * args.count] = solved ? 0 : x.k;
    }
  }
}

/* f(kernel, threads, bytes of shared memory) */
template <class F> batchqr_status with_kernel(batchqr_type type, int cols, F &&f) {
  auto of = [&](auto tag) {
    using T = decltype(tag);
    constexpr bool single = sizeof(T) == 4; /* blocks at once: as many as leave registers */
    return cols <= 32   ? f(small_kernel < T, 32, 2, single ? 8 : 7 >, 64, sizeof(small_memory<T, 32, 2>))
           : cols <= 64 ? f(small_kernel < T, 64, 4, single ? 4 : 3 >, 128, sizeof(small_memory<T, 64, 4>))
                        : f(small_kernel<T, 128, 8, 1>, 256, sizeof(small_memory<T, 128, 8>));
  };
  return type == BATCHQR_S ? of(float()) : of(double());
}
} // namespace

extern "C" {

batchqr_status bqr_small_prepare(batchqr_type type, int cols) {
  return with_kernel(type, cols, [](auto kernel, int, size_t smem) { return prepare_kernel(kernel, smem); });
}

batchqr_status bqr_small_solve(batchqr_type type, int cols, const bqr_args *args, int *sizes,
                               batchqr_stream stream) {
  return with_kernel(type, cols, [&](auto kernel, int threads, size_t smem) {
    return launch_kernel(kernel, grid_for(args->count), static_cast<unsigned>(threads), smem, stream, *args,
                         sizes);
  });
}
}
