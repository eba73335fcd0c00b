/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of tall.h, and the solution. Blocks that run at once read A a pass at a time: of each set of 32
 * rows (or 16, of more than 256 columns) a thread has the elements of a row in every 16th column. Their
 * products with x give r = b - A x, and those with r, which stay in the thread until the end of the pass,
 * A^H r. So many sets go together that what is on its way from memory keeps that busy. */
#include "common/matrix/view.cuh"
#include "refine_products.cuh"
#include "small_square.cuh"
#include "tall.cuh"

namespace {
using namespace bqr;

constexpr int most_passes = 6;
enum sum_name { OF_R, OF_X, OF_S, OF_W }; /* squared lengths, of D^-1 x and D A^H r */

constexpr int most_rows = 64; /* of all sets */
struct pass_memory {
  union {
    double products[2][grid_warps][most_rows]; /* in turn */
    double sums[grid_warps * warp_lanes];      /* of refine_grid */
  };
  double x[BQR_TALL_COLUMNS];
};

/* SETS of ROWS of A at a time, EACH elements of a set to a thread. */
template <class T, int ROWS, int EACH, int SETS> class tall_solver {
  static_assert(SETS * ROWS <= most_rows, "products have a place");
  static constexpr int side = warp_lanes / ROWS; /* columns of a warp at a time */
  static constexpr int stride = side * grid_warps;

public:
  __device__ __forceinline__ tall_solver(const tall_task<T> &s, pass_memory &m)
      : s_(s), m_(m), grid_(&s.state->arrivals[0], s.sums) {}

  /* Whether it fails. */
  __device__ bool run(int c) {
    x_ = s_.x + static_cast<int64_t>(c) * s_.n;
    w_ = s_.right + static_cast<int64_t>(c) * s_.n;
    b_ = s_.b + c * s_.ldb;
    begin(c);
    double error = 0, before = 0, rr = 0;
    bool failed = false;
    int pass = 0;
    if (!(condition_ <= most_condition)) return true;
    if (s_.alone && condition_ <= safe_condition<T>(s_.n) && solve_at_once(c)) return false;
    for (;; pass++) {
      double ww = 0, yy = 0;
      if (pass > 0) { /* before the barrier behind which others give the next ones */
        take(OF_R, rr);
        take(OF_W, ww);
        take(OF_X, yy);
      }
      const double ss = project();
      if (pass > 0) {
        error = fmin(part(sqrt(ss), sqrt(yy)), part(sqrt(ww), sqrt(rr))) / length_;
        const double aim = static_cast<double>(limits<T>::eps) / 2;
        const bool better = pass == 1 || error <= before / 4;
        const bool good = error <= aim || (!better && error <= 2 * aim);
        failed = !(ss + yy + ww + rr <= 1e300) /* or NaN */ ||
                 (!good && (!(error <= 1) || !better || pass == most_passes));
        if (failed || good) break;
        if (error * gain() <= aim / 2) { /* what one step more leaves is known without A */
          improve();
          rr = fmax(rr - ss, 0.0);
          error = aim;
          pass++;
          break;
        }
        before = error;
      }
      improve();
      read_a();
    }
    if (blockIdx.x == 0 && thread_id() == 0) {
      s_.state->exponents[c] = exponent_;
      s_.state->steps[c] = pass;
      s_.state->error[c] = error;
      s_.state->norm[c] = sqrt(rr);
    }
    return failed;
  }

private:
  /* What a step makes of the error: a bound, with room for what sums of A^H A lose. */
  __device__ __forceinline__ double gain() const { return condition_ * condition_ * step_loss; }

  /* Without a step. Whether that can be done. */
  __device__ bool solve_at_once(int c) {
    if (!is_safe_square(times_power(project(), -2 * exponent_))) return false; /* or NaN */
    improve();
    if (blockIdx.x == 0 && thread_id() == 0) {
      s_.state->exponents[c] = exponent_;
      s_.state->steps[c] = 1;
      s_.state->error[c] = s_.state->norm[c] = 0; /* not wanted */
    }
    return true;
  }

  /* What b is multiplied by; x = 0. A^H b is there. */
  __device__ void begin(int c) {
    double f2 = 0, top = 0;
    for (int j = lane_id(); j < s_.n; j += warp_lanes) f2 += times_power(s_.norms2[j], 2 * s_.exponents[j]);
    length_ = sqrt(group_sum(f2));
    grid_.elements(s_.m, [&](int i, int) { top = fmax(top, fabs(static_cast<double>(b_[i]))); });
    grid_.give_largest(OF_W, {top}); /* of which nobody still takes the last sums */
    grid_.wait_for_all();
    double largest[1];
    grid_.take_largest(OF_W, largest);
    exponent_ = largest[0] > 0 && largest[0] < INFINITY ? -ilogb(largest[0]) : 0;
    grid_.elements(s_.n, [&](int j, int) {
      x_[j] = 0;
      w_[j] = times_power(w_[j], exponent_);
    });
    double inverse[1] = {0};
    grid_.each_warp(s_.n, [&](int j) {
      for (int i = lane_id(); i <= j; i += warp_lanes) {
        const double x =
            times_power(s_.inverse[i + static_cast<int64_t>(j) * refine_block], -s_.exponents[i]);
        inverse[0] = fused(x, x, inverse[0]);
      }
    });
    grid_.give(OF_X, inverse);
    grid_.wait_for_all();
    grid_.take(OF_X, inverse);
    condition_ = length_ * sqrt(inverse[0]);
  }

  /* s = R^-H A^H r; its squared length. */
  __device__ double project() {
    double ss[1] = {0};
    grid_.columns(
        s_.inverse, refine_block, s_.n, s_.n, refine_block, true,
        [&](int i, int) { return load_shared(w_ + i); },
        [&](int j, int, int, double x) {
          s_.s[j] = x;
          ss[0] = fused(x, x, ss[0]);
        });
    grid_.give(OF_S, ss);
    grid_.wait_for_all();
    grid_.take(OF_S, ss);
    return ss[0];
  }

  /* x += R^-1 s */
  __device__ void improve() {
    double yy[1] = {0};
    grid_.rows(
        s_.inverse, refine_block, s_.n, s_.n, true, m_.sums,
        [&](int j, int) { return load_shared(s_.s + j); },
        [&](int i, int, double d) {
          const double x = load_shared(x_ + i) + d, y = times_power(x, -s_.exponents[i]);
          x_[i] = x;
          yy[0] = fused(y, y, yy[0]);
        });
    grid_.give(OF_X, yy);
    grid_.wait_for_all();
  }

  struct elements {
    T a[SETS][EACH];
    T b[SETS];
  };
  __device__ __forceinline__ void read(elements &to, int first) const {
    const int row = first + lane_id() % ROWS, col = warp_id() * side + lane_id() / ROWS;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      const T *a = s_.a + row + (col + i * stride) * s_.lda;
#pragma unroll
      for (int q = 0; q < SETS; q++)
        to.a[q][i] = row + q * ROWS < s_.m && col + i * stride < s_.n ? a[q * ROWS] : T(0);
    }
#pragma unroll
    for (int q = 0; q < SETS; q++) to.b[q] = row + q * ROWS < s_.m ? b_[row + q * ROWS] : T(0);
  }

  /* r and A^H r, of which each block leaves its part, and their squared lengths. */
  __device__ void read_a() {
    const int col = warp_id() * side + lane_id() / ROWS, step = static_cast<int>(gridDim.x) * SETS * ROWS;
    double sum[EACH] = {}, rr[1] = {0};
    elements now, next;
    read(next, static_cast<int>(blockIdx.x) * SETS * ROWS);
    block_sync();
    for (int j = thread_id(); j < s_.n; j += grid_threads) m_.x[j] = load_shared(x_ + j);
    block_sync();
    int turn = 0;
    for (int first = static_cast<int>(blockIdx.x) * SETS * ROWS; first < s_.m; first += step, turn ^= 1) {
      now = next;
      if (first + step < s_.m) read(next, first + step);
#pragma unroll
      for (int q = 0; q < SETS; q++) {
        double product = 0;
#pragma unroll
        for (int i = 0; i < EACH; i++)
          if (col + i * stride < s_.n)
            product = fused(static_cast<double>(now.a[q][i]), m_.x[col + i * stride], product);
        if (ROWS < warp_lanes) product += exchange(product, ROWS);
        if (lane_id() < ROWS) m_.products[turn][warp_id()][q * ROWS + lane_id()] = product;
      }
      block_sync();
#pragma unroll
      for (int q = 0; q < SETS; q++) {
        double r = by_power(static_cast<double>(now.b[q]), exponent_);
#pragma unroll
        for (int w = 0; w < grid_warps; w++) r -= m_.products[turn][w][q * ROWS + lane_id() % ROWS];
        if (warp_id() == 0 && lane_id() < ROWS) rr[0] = fused(r, r, rr[0]);
#pragma unroll
        for (int i = 0; i < EACH; i++) sum[i] = fused(static_cast<double>(now.a[q][i]), r, sum[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      const double total = group_sum<ROWS>(sum[i]);
      if (lane_id() % ROWS == 0 && col + i * stride < s_.n)
        s_.w[static_cast<int64_t>(blockIdx.x) * s_.n + col + i * stride] = total;
    }
    grid_.give(OF_R, rr);
    grid_.wait_for_all();
    double ww[1] = {0};
    grid_.each_warp(s_.n, [&](int j) {
      double total = 0;
      for (int block = lane_id(); block < static_cast<int>(gridDim.x); block += warp_lanes)
        total += load_shared(s_.w + static_cast<int64_t>(block) * s_.n + j);
      total = group_sum(total);
      if (lane_id() > 0) return;
      w_[j] = total;
      const double scaled = times_power(total, s_.exponents[j]);
      ww[0] = fused(scaled, scaled, ww[0]);
    });
    grid_.give(OF_W, ww);
    grid_.wait_for_all();
  }

  __device__ __forceinline__ void take(int which, double &x) const {
    double sum[1];
    grid_.take(which, sum);
    x = sum[0];
  }
  /* x / of, where 0 is a part of anything. */
  __device__ __forceinline__ static double part(double x, double of) {
    return of > 0 ? x / of : x > 0 ? INFINITY : 0;
  }

  const tall_task<T> &s_;
  pass_memory &m_;
  refine_grid<1> grid_;
  double *x_, *w_;
  const T *b_;
  int exponent_;
  double length_; /* ||A D||_F */
  double condition_;
};

template <class T, int ROWS, int EACH, int SETS>
__global__ void __launch_bounds__(grid_threads, 1) tall_kernel(const __grid_constant__ tall_task<T> s) {
  auto &m = *shared_memory<pass_memory>();
  if (s.state->failed) return;
  tall_solver<T, ROWS, EACH, SETS> solver(s, m);
  bool failed = false;
  for (int c = 0; c < s.k && !failed; c++) failed = solver.run(c);
  if (failed && blockIdx.x == 0 && thread_id() == 0) s.state->failed = 1;
}

template <class F> batchqr_status with_kernel(batchqr_type type, int n, F &&f) {
  return for_real_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return n <= 128   ? f(tag, tall_kernel<T, 32, 8, 2>)
           : n <= 256 ? f(tag, tall_kernel<T, 32, 16, 1>)
                      : f(tag, tall_kernel<T, 16, 16, 1>);
  });
}

/* --- the solution */

constexpr int end_threads = 512;
template <class T> struct outputs {
  T *c, *norms, *relres;
  int *info, *iterations;
};
template <class T>
__global__ void __launch_bounds__(end_threads)
    tall_end_kernel(const __grid_constant__ tall_task<T> s, const __grid_constant__ outputs<T> to) {
  const bool off = is_off(s.state);
  for (int i = thread_id(); i < s.n * s.k && off; i += end_threads) {
    const int c = i / s.n;
    to.c[i % s.n + c * s.ldb] = static_cast<T>(times_power(s.x[i], -s.state->exponents[c]));
  }
  for (int c = thread_id(); c < s.k; c += end_threads) {
    const double norm = times_power(s.state->norm[c], -s.state->exponents[c]);
    if (off && to.norms) to.norms[c] = s.m > s.n ? static_cast<T>(norm) : T(0);
    if (to.iterations) to.iterations[c] = off ? s.state->steps[c] : -1 - s.state->steps[c];
    if (to.relres) to.relres[c] = off ? static_cast<T>(s.state->error[c]) : T(-1);
  }
  if (off && thread_id() == 0 && to.info) *to.info = 0;
}
} // namespace

extern "C" {

size_t bqr_tall_bytes(const bqr_refine *r) {
  return for_real_type(r->type, [&](auto tag) {
    tall_task<typename decltype(tag)::type> s;
    bqr_refine sizes = *r;
    sizes.memory = nullptr;
    return tall_lay_out(sizes, &s);
  });
}

batchqr_status bqr_tall_iterate_prepare(batchqr_type type, int n) {
  batchqr_status status =
      with_kernel(type, n, [](auto, auto kernel) { return prepare_kernel(kernel, sizeof(pass_memory)); });
  return status ? status : for_real_type(type, [](auto tag) {
    return prepare_kernel(tall_end_kernel<typename decltype(tag)::type>, 0);
  });
}

batchqr_status bqr_tall_iterate(const bqr_refine *r, batchqr_stream stream) {
  return with_kernel(r->type, r->n, [&](auto tag, auto kernel) {
    const auto s = tall_task_of<typename decltype(tag)::type>(*r);
    return launch_together(kernel, static_cast<unsigned>(r->blocks), grid_threads, sizeof(pass_memory),
                           stream, s);
  });
}

batchqr_status bqr_tall_end(const bqr_refine *r, void *c, void *norms, int *info, int *iterations,
                            void *relres, batchqr_stream stream) {
  return for_real_type(r->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const outputs<T> to = {static_cast<T *>(c), static_cast<T *>(norms), static_cast<T *>(relres), info,
                           iterations};
    return launch_kernel(tall_end_kernel<T>, 1, end_threads, 0, stream, tall_task_of<T>(*r), to);
  });
}

int bqr_tall_launches(const bqr_refine *r) {
  const int tiles = (r->n - 1) / 64 + 1;
  if (r->n <= gram_side) return 2 + 1 + 3; /* gram; R; steps, judge, end */
  int launches = 3 + 1 + 2 * tiles - 1 + 3;
  for (int half = 64; half < r->n; half *= 2) launches += 2;
  return launches;
}
}
