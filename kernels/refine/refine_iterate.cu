/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of refine.h in one launch, of blocks that run at once and wait for one another: so many steps as
 * the numbers ask for are done, and nothing of the next kernels has to know how many.
 *
 * Vectors: y, r = b - A D y; s = R^-H (A D)^H r; p, the direction in the space of R y; u = R^-1 p, q = A D u.
 * R^-1 p and R^-H w, in single precision, go block by block: with the inverse of a triangle on the diagonal,
 * then with what is beside it. One column more, of random signs, is solved for beside the right-hand sides,
 * and has to be: it finds directions that A D R^-1 shrinks and that a right-hand side may not have. Steps err
 * by a rounding that CGLS bears, since q is A D times the u that was found. In turn with steps, `checks` form
 * r anew. */
#include "refine_products.cuh"
#include "common/matrix/view.cuh"

namespace {
using namespace bqr;

enum phase { ITERATES, CHECKS, FINISHED };
enum sum_name { OF_Q, OF_R, OF_Y, OF_S, OF_W = OF_Q }; /* squared lengths; w is A D's (A D)^H r */

/* What all threads know of a right-hand side. */
struct course {
  phase now;
  double gamma; /* ||s||^2 */
  double alpha, beta;
  double yy, rr;     /* squared lengths */
  double shrinks;    /* sigma^2 of A D R^-1 as far as it is known, or 1 */
  double most, last; /* see remember() */
  double first;      /* ||s|| of y = 0 */
  double start;      /* ||s|| when r was last formed anew */
  double least;      /* the least since */
  double error;      /* when r was last formed anew: see refine.h */
  double far, apart; /* its two bounds, the first without sigma */
  int steps, since;  /* in all; since then */
  int idle;          /* since `least` became less by more than a little */
  int to_p, to_w;    /* exponents that bring p and w near 1 */
};

__device__ __forceinline__ int exponent_of(double x2) { /* of a squared length: brings it near 1 */
  return x2 > 0 && x2 < 1e300 * 1e8 ? -ilogb(x2) / 2 : 0;
}

constexpr int patience = 6; /* steps */

template <class T, int K> class solver {
  using R = real_t<T>;
  using L = low;
  using grid = refine_grid<K>;
  /* Of single precision QR leaves less of the rounding that it may. */
  static constexpr double aim = static_cast<double>(limits<R>::eps) / (sizeof(R) == 4 ? 4 : 2);

public:
  struct memory {
    union {
      T of_t[grid_warps * K * warp_lanes];
      L of_l[grid_warps * K * warp_lanes];
    };
  };

  __device__ __forceinline__ solver(const refine_task<T> &s, int first, int most, memory &m)
      : s_(s), m_(m), grid_(&s.state->arrivals[first], s.sums), first_(first), most_(most),
        columns_(least(K - 1, s.k - first)) {}

  __device__ void run() {
    begin();
    bool failed = false, left = true;
    for (int step = 0; left && !failed; step++) {
      if (step > 0) move();
      project();
      failed = decide(step);
      left = false;
#pragma unroll
      for (int c = 0; c < K; c++) left = left || course_[c].now != FINISHED;
      if (left && !failed) turn();
    }
    const double sigma = least_sigma();
#pragma unroll
    for (int c = 0; c < K; c++) {
      if (c > columns_ || failed) continue;
      course_[c].error = fmin(course_[c].far / sigma, course_[c].apart);
      failed = course_[c].error > 2 * aim;
    }
    if (blockIdx.x > 0 || thread_id() > 0) return;
    if (failed) s_.state->failed = 1;
#pragma unroll
    for (int c = 0; c < K; c++) {
      if (c >= columns_) continue;
      s_.state->steps[first_ + c] += course_[c].steps;
      s_.state->error[first_ + c] = course_[c].error;
      s_.state->norm[first_ + c] = sqrt(course_[c].rr);
    }
  }

private:
  /* y = 0, r = b, ||A D||_F */
  __device__ void begin() {
    double f2 = 0;
    for (int j = lane_id(); j < s_.n; j += warp_lanes) f2 += s_.norms2[j];
    length_ = sqrt(group_sum(f2));
#pragma unroll
    for (int c = 0; c < K; c++) {
      course_[c] = {};
      course_[c].now = c <= columns_ ? ITERATES : FINISHED;
      course_[c].shrinks = 1;
      exponent_[c] = 0;
    }
    /* the largest entries, as sums of none but one: each block tells its own */
    double top[K] = {};
    grid_.elements(s_.m, [&](int i, int c) {
      if (c <= columns_) top[c] = fmax(top[c], static_cast<double>(largest_part(b(i, c))));
    });
    grid_.give_largest(OF_S, top);
    grid_.wait_for_all();
    grid_.take_largest(OF_S, top);
#pragma unroll
    for (int c = 0; c < K; c++) exponent_[c] = top[c] > 0 ? -ilogb(top[c]) : 0;
    if (blockIdx.x == 0 && thread_id() < columns_) {
#pragma unroll
      for (int c = 0; c < K; c++)
        if (c == thread_id()) s_.state->exponents[first_ + c] = exponent_[c];
    }
    double rr[K] = {}, none[K] = {};
    grid_.elements(s_.m, [&](int i, int c) {
      const T x = c <= columns_ ? by_power(b(i, c), exponent_[c]) : zero<T>();
      s_.r[at_m(i, c)] = x;
      rr[c] += static_cast<double>(abs2(x));
    });
    grid_.elements(s_.n, [&](int j, int c) {
      if (c <= columns_) y(j, c) = zero<T>();
    });
    grid_.give(OF_R, rr);
    grid_.give(OF_Y, none);
    grid_.wait_for_all();
  }

  /* A step along u = R^-1 p, or r anew. */
  __device__ void move() {
    bool any = false;
#pragma unroll
    for (int c = 0; c < K; c++) any = any || course_[c].now == ITERATES;
    if (any) solve_upper();
    double qq[K] = {};
    grid_.rows(
        s_.a, s_.lda, s_.m, s_.n, false, m_.of_t, [&](int j, int c) { return direction(j, c); },
        [&](int i, int c, T q) {
          s_.q[at_m(i, c)] = q;
          add_at(qq, c, static_cast<double>(abs2(q)));
        });
    grid_.give(OF_Q, qq);
    grid_.wait_for_all();
    grid_.take(OF_Q, qq);
    double rr[K] = {}, yy[K] = {};
#pragma unroll
    for (int c = 0; c < K; c++) {
      course &x = course_[c];
      const bool goes = x.now == ITERATES && qq[c] > 0;
      const double alpha = goes ? x.gamma / qq[c] : 0;
      if (goes) remember(x, alpha);
      x.alpha = alpha;
    }
    grid_.elements(s_.m, [&](int i, int c) {
      if (course_[c].now == FINISHED) return;
      const T q = load_shared(s_.q + at_m(i, c));
      const T r = course_[c].now == CHECKS
                      ? by_power(b(i, c), exponent_[c]) - q
                      : scaled_add(q, static_cast<R>(-course_[c].alpha), load_shared(s_.r + at_m(i, c)));
      s_.r[at_m(i, c)] = r;
      rr[c] += static_cast<double>(abs2(r));
    });
    grid_.elements(s_.n, [&](int j, int c) {
      if (course_[c].now == FINISHED) return;
      T x = load_shared(&y(j, c));
      if (course_[c].now == ITERATES) {
        x = scaled_add(along(j, c), static_cast<R>(course_[c].alpha), x);
        y(j, c) = x;
      }
      yy[c] += static_cast<double>(abs2(x));
    });
    grid_.give(OF_R, rr);
    grid_.give(OF_Y, yy);
    grid_.wait_for_all();
  }

  /* s = R^-H (A D)^H r, and the lengths of y, r and w. */
  __device__ void project() {
    double rr[K], yy[K], ww[K] = {}, ss[K] = {};
    grid_.take(OF_R, rr);
    grid_.take(OF_Y, yy);
    const int64_t part = static_cast<int64_t>(s_.n) * K;
    grid_.columns(
        s_.a, s_.lda, s_.m, s_.n, refine_chunk, false,
        [&](int i, int c) { return load_shared(s_.r + at_m(i, c)); },
        [&](int j, int c, int number, T sum) { s_.w[number * part + at_n(j, c)] = sum; });
    grid_.wait_for_all();
    const int chunks = (s_.m - 1) / refine_chunk + 1;
#pragma unroll
    for (int c = 0; c < K; c++) {
      if (course_[c].now != FINISHED) course_[c].rr = rr[c], course_[c].yy = yy[c];
      course_[c].to_w = exponent_of(rr[c] * length_ * length_);
    }
    grid_.elements(s_.n, [&](int j, int c) {
      T sum = zero<T>();
      for (int k = 0; k < chunks; k++) sum += load_shared(s_.w + k * part + at_n(j, c));
      sum = course_[c].now == FINISHED ? zero<T>() : by_power(sum, s_.exponents[j]);
      ww[c] += static_cast<double>(abs2(sum));
      s_.t[at_n(j, c)] = converted<L>(by_power(sum, course_[c].to_w));
    });
    grid_.give(OF_W, ww);
    grid_.wait_for_all();
    grid_.take(OF_W, ww);
    solve_adjoint(ss);
    grid_.give(OF_S, ss);
    grid_.wait_for_all();
    grid_.take(OF_S, ss);
#pragma unroll
    for (int c = 0; c < K; c++) {
      ww_[c] = ww[c];
      ss_[c] = times_power(ss[c], -2 * course_[c].to_w);
    }
  }

  /* What a step's numbers tell of A D R^-1. In the basis of the s, (A D R^-1)^H A D R^-1 is B^H B, where B is
   * upper bidiagonal with 1 / sqrt(alpha) on the diagonal, and beside it sqrt(beta / alpha) of the next step
   * and this one. `most` is ||B^-H z||^2 for a z of length 1 that is chosen anew for each column, so as to
   * make that as large as can be (Bischof, 1990), and `last` is the last entry of B^-H z. */
  __device__ __forceinline__ static void remember(course &x, double alpha) {
    const bool goes_on = x.beta > 0 && x.alpha > 0;
    const double before = goes_on ? x.most : 0, own = sqrt(alpha),
                 carried = goes_on ? x.last * sqrt(x.beta / x.alpha) * own : 0;
    const double top = before + carried * carried, beside = -carried * own, half = (top - alpha) / 2,
                 root = sqrt(half * half + beside * beside);
    double u = half > 0 ? root + half : beside, v = half > 0 ? beside : root - half;
    const double size = sqrt(u * u + v * v);
    u = size > 0 ? u / size : 0;
    v = size > 0 ? v / size : 1;
    x.most = (top + alpha) / 2 + root;
    x.last = v * own - u * carried;
    x.shrinks = fmin(x.shrinks, 1 / x.most);
  }

  /* The probe has to have been reduced by so much that no direction of it can be left as it was. */
  __device__ __forceinline__ double error_of(const course &x, int c, double s, double sigma) const {
    const double error = fmin(x.far / sigma, x.apart);
    return c < columns_ ? error : fmax(error, aim * 32 * sqrt(static_cast<double>(s_.n)) * part(s, x.first));
  }

  /* What each right-hand side does next. Whether one cannot be solved for. */
  __device__ bool decide(int step) {
    const double sigma = least_sigma();
    bool failed = false;
#pragma unroll
    for (int c = 0; c < K; c++) {
      course &x = course_[c];
      if (x.now == FINISHED) continue;
      const double s = sqrt(ss_[c]), r = sqrt(x.rr);
      x.far = part(s, sqrt(x.yy)) / length_;
      x.apart = part(sqrt(ww_[c]), r) / length_;
      if (step == 0) x.first = s;
      const double error = error_of(x, c, s, sigma);
      x.steps += step > 0;
      x.beta = 0;
      if (!(s <= 1e300) || !(r <= 1e300)) { /* or NaN */
        failed = true;
      } else if (step == 0 || x.now == CHECKS) {
        const bool better = step == 0 || error <= x.error / 2;
        const bool good = error <= aim || (!better && error <= 2 * aim);
        x.error = error;
        if (good)
          x.now = FINISHED;
        else if (!better || x.steps >= most_)
          failed = true;
        else
          x.now = ITERATES, x.start = x.least = s, x.since = x.idle = 0;
      } else {
        x.since++;
        x.idle = s < 0.7 * x.least ? 0 : x.idle + 1;
        x.least = fmin(x.least, s);
        x.beta = ss_[c] / x.gamma;
        if (error <= aim || x.idle >= patience)
          x.now = CHECKS;
        else
          failed = failed || x.steps >= most_ || is_hopeless(x, log2(error / aim));
      }
      x.gamma = ss_[c];
      x.to_p = exponent_of(x.gamma);
    }
    return failed;
  }

  /* Of A D R^-1, as far as the steps have come to know. */
  __device__ __forceinline__ double least_sigma() const {
    double shrinks = 1;
#pragma unroll
    for (int c = 0; c < K; c++) shrinks = fmin(shrinks, course_[c].shrinks);
    return sqrt(shrinks);
  }

  /* x / of, where 0 is a part of anything. */
  __device__ __forceinline__ static double part(double x, double of) {
    return of > 0 ? x / of : x > 0 ? INFINITY : 0;
  }

  /* Whether twice the steps that are left are less than what the rate so far asks for. CGLS gets faster. */
  __device__ __forceinline__ bool is_hopeless(const course &x, double bits) const {
    if (x.since < patience) return false;
    const double rate = log2(x.start / x.least) / x.since;
    return rate * 2 * (most_ - x.steps) < bits;
  }

  /* p := s + beta p, and t := that near 1. */
  __device__ void turn() {
    grid_.elements(s_.n, [&](int j, int c) {
      T p = zero<T>();
      if (course_[c].now == ITERATES) {
        const T s = by_power(converted<T>(load_shared(s_.u + at_n(j, c))), -course_[c].to_w);
        p = course_[c].beta > 0 ? scaled_add(s_.p[at_n(j, c)], static_cast<R>(course_[c].beta), s) : s;
        s_.p[at_n(j, c)] = p;
      }
      s_.t[at_n(j, c)] = converted<L>(by_power(p, course_[c].to_p));
    });
    grid_.wait_for_all();
  }

  /* --- R */

  /* u := R^-1 t, which destroys t. */
  __device__ void solve_upper() {
    auto t = [&](int offset) {
      return [this, offset](int j, int c) { return load_shared(s_.t + at_n(offset + j, c)); };
    };
    for (int block = (s_.n - 1) / refine_block; block >= 0; block--) {
      const int at = block * refine_block, cols = least(refine_block, s_.n - at);
      grid_.rows(s_.inverse + static_cast<int64_t>(at) * refine_block, refine_block, cols, cols, true,
                 m_.of_l, t(at), [&](int i, int c, L x) { s_.u[at_n(at + i, c)] = x; });
      grid_.wait_for_all();
      if (block == 0) continue;
      grid_.rows(
          s_.copy + at * s_.ldcopy, s_.ldcopy, at, cols, false, m_.of_l,
          [&](int j, int c) { return load_shared(s_.u + at_n(at + j, c)); },
          [&](int i, int c, L x) { s_.t[at_n(i, c)] = load_shared(s_.t + at_n(i, c)) - x; });
      grid_.wait_for_all();
    }
  }

  /* u := R^-H t, likewise; ss: this thread's part of its squared lengths. */
  __device__ void solve_adjoint(double (&ss)[K]) {
    for (int at = 0; at < s_.n; at += refine_block) {
      const int cols = least(refine_block, s_.n - at), right = s_.n - at - cols;
      grid_.columns(
          s_.inverse + static_cast<int64_t>(at) * refine_block, refine_block, cols, cols, refine_block, true,
          [&](int i, int c) { return load_shared(s_.t + at_n(at + i, c)); },
          [&](int j, int c, int, L x) {
            s_.u[at_n(at + j, c)] = x;
            ss[c] += static_cast<double>(abs2(x));
          });
      if (right == 0) continue;
      grid_.wait_for_all();
      grid_.columns(
          s_.copy + at + (at + cols) * s_.ldcopy, s_.ldcopy, cols, right, refine_block, false,
          [&](int i, int c) { return load_shared(s_.u + at_n(at + i, c)); },
          [&](int j, int c, int, L x) {
            L *to = s_.t + at_n(at + cols + j, c);
            *to = load_shared(to) - x;
          });
      grid_.wait_for_all();
    }
  }

  /* --- elements */

  __device__ __forceinline__ int64_t at_n(int j, int c) const { return j + static_cast<int64_t>(c) * s_.n; }
  __device__ __forceinline__ int64_t at_m(int i, int c) const { return i + static_cast<int64_t>(c) * s_.m; }
  __device__ __forceinline__ T &y(int j, int c) const {
    return s_.x[at_n(j, c < columns_ ? first_ + c : s_.k)];
  }
  __device__ __forceinline__ T b(int i, int c) const {
    return c < columns_ ? s_.b[i + (first_ + c) * s_.ldb] : sign(static_cast<uint32_t>(i));
  }
  /* Of the probe: a hash's last bit. */
  __device__ __forceinline__ static T sign(uint32_t x) {
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return make<T>((x ^ x >> 16) & 1 ? 1 : -1);
  }
  /* u as it is */
  __device__ __forceinline__ T along(int j, int c) const {
    return by_power(converted<T>(load_shared(s_.u + at_n(j, c))), -course_[c].to_p);
  }
  /* What A is to be multiplied by. */
  __device__ __forceinline__ T direction(int j, int c) const {
    if (course_[c].now == FINISHED) return zero<T>();
    return by_power(course_[c].now == CHECKS ? load_shared(&y(j, c)) : along(j, c), s_.exponents[j]);
  }
  __device__ __forceinline__ static R largest_part(T x) {
    return fmax(fabs(real_part(x)), fabs(imag_part(x)));
  }
  /* x[c] += v, c not being known when this is compiled */
  __device__ __forceinline__ static void add_at(double (&x)[K], int c, double v) {
#pragma unroll
    for (int i = 0; i < K; i++)
      if (i == c) x[i] += v;
  }

  const refine_task<T> &s_;
  memory &m_;
  grid grid_;
  int first_, most_, columns_;
  double length_; /* ||A D||_F */
  int exponent_[K];
  course course_[K];
  double ww_[K], ss_[K];
};

template <class T, int K>
__global__ void __launch_bounds__(grid_threads, 1)
    iterate_kernel(const __grid_constant__ refine_task<T> s, int first, int most) {
  using S = solver<T, K>;
  auto &m = *shared_memory<typename S::memory>();
  if (is_off(s.state) || s.state->failed) return;
  S(s, first, most, m).run();
}

/* f(type_tag<T>, kernel, right-hand sides of a launch, bytes of shared memory) */
template <class F> batchqr_status with_kernel(batchqr_type type, int k, F &&f) {
  return for_real_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int most = BQR_REFINE_COLUMNS;
    return k == 1 ? f(tag, iterate_kernel<T, 2>, 1, sizeof(typename solver<T, 2>::memory))
                  : f(tag, iterate_kernel<T, most + 1>, most, sizeof(typename solver<T, most + 1>::memory));
  });
}

} // namespace

extern "C" {

batchqr_status bqr_refine_copy_prepare(batchqr_type type);
batchqr_status bqr_refine_invert_prepare(void);
batchqr_status bqr_refine_cholesky_prepare(void);

batchqr_status bqr_refine_prepare(batchqr_type type, int k) {
  batchqr_status status = bqr_refine_copy_prepare(type);
  if (!status) status = bqr_refine_invert_prepare();
  if (!status) status = bqr_refine_cholesky_prepare();
  if (status) return status;
  return with_kernel(type, k,
                     [](auto, auto kernel, int, size_t smem) { return prepare_kernel(kernel, smem); });
}

batchqr_status bqr_refine_iterate(const bqr_refine *r, int most, batchqr_stream stream) {
  return with_kernel(r->type, r->k, [&](auto tag, auto kernel, int columns, size_t smem) {
    const auto s = refine_task_of<typename decltype(tag)::type>(*r);
    batchqr_status status = BATCHQR_SUCCESS;
    for (int first = 0; first < r->k && !status; first += columns)
      status = launch_together(kernel, static_cast<unsigned>(r->blocks), grid_threads, smem, stream, s, first,
                               most);
    return status;
  });
}

int bqr_refine_launches(const bqr_refine *r) {
  const int columns = r->k == 1 ? 1 : BQR_REFINE_COLUMNS;
  return 4 + (r->k + columns - 1) / columns; /* state, copy, judge, end */
}
}
