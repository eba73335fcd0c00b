/* SPDX-License-Identifier: BSD-3-Clause */
/* What eigen_svd.h says, one member by a block. */
#include "eigen_svd.h"
#include "block_product.cuh"
#include "common/panel/triplets.cuh"
#include "common/simt/launch.cuh"

namespace {
using namespace bqr;

/* Exponents by which squared lengths of columns may differ. In double precision a small singular value's
 * relative error may be as many times that of the matrix with columns of one length; in single precision only
 * the condition number counts. */
template <class T> constexpr uint32_t most_apart = sizeof(T) == 4 ? 40 : 10;
/* Of squared lengths, and the least eigenvalue, of the largest: B^H B is then far from singular. */
constexpr double largest_square = 1e200, least_square = 1e-200, least_eigenvalue = 1e-12;
constexpr int most_steps = 16; /* those that make V orthonormal, too */
/* ||W||_F^2: up to it steps are taken. */
constexpr double most_turned2 = 0.01;

/* Of two eigenvectors: its square is nothing; in single precision, where it is nothing itself beside the
 * rounding of V and B, but for one in eps of cond(A)^2. */
constexpr double most_product = 0x1p-40, most_product_single = 0x1p-32;

/* Blocks that a multiprocessor has registers and shared memory for. */
template <int N> struct instance {
  static constexpr int threads = product_warps<N> * warp_lanes;
  static constexpr int blocks = N == 64 ? 4 : N == 96 ? 2 : 1, stages = N == 64 ? 2 : 3;
};

/* A member as it is decomposed: X = A or A^H, p x q. */
template <class T> struct upright {
  member at;
  bool turned;
  int p, q;
  const T *a;
  int64_t lda;

  __device__ __forceinline__ upright(const bqr_args &args, int64_t entry)
      : at(member_at<BATCHQR_GESVD>(args, entry)), turned(at.m < at.n), p(largest(at.m, at.n)),
        q(least(at.m, at.n)), a(matrix_data<T>(args, args.a, at.id)), lda(matrix_ld(args.a, at.id)) {}
};

template <int N> struct common_memory {
  uint32_t word;
  double diagonal[N];
  product_memory<N, instance<N>::stages> product;
};

/* --- X^H X */

template <class T, int N> __device__ __forceinline__ bool are_alike(common_memory<N> &m, int q) {
  const uint32_t mine = thread_id() < q ? magnitude(m.diagonal[thread_id()]) : 0,
                 most = block_max(&m.word, mine), fewest = ~block_max(&m.word, thread_id() < q ? ~mine : 0);
  const uint32_t high = magnitude(largest_square), low = magnitude(least_square);
  return most <= high && fewest >= low && (most - fewest) >> 20 <= most_apart<T>;
}

template <class T, int N>
__global__ void __launch_bounds__(instance<N>::threads, instance<N>::blocks)
    gram_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_eigen_svd w) {
  auto &m = *shared_memory<common_memory<N>>();
  for (int64_t i = blockIdx.x; i < w.count; i += gridDim.x) {
    const upright<T> x(args, w.first + i);
    block_product<N> product;
    if (x.turned) {
      const product_lines<T, false, false> rows = {x.a, x.lda, x.q, x.p};
      product.form(m.product, rows);
    } else {
      const product_lines<T, true, false> columns = {x.a, x.lda, x.q, x.p};
      product.form(m.product, columns);
    }
    product.each(x.q, x.q, [&](int r, int c, double sum) {
      if (r == c) m.diagonal[r] = sum;
    });
    block_sync();
    const bool good = are_alike<T>(m, x.q);
    double *const to = w.square + i * w.ld * x.q;
    product.each(x.q, x.q, [&](int r, int c, double sum) { to[r + c * w.ld] = good ? sum : r == c ? 1 : 0; });
    if (thread_id() == 0) {
      w.m_left[i] = good ? 0 : x.at.m;
      w.n_left[i] = good ? 0 : x.at.n;
      w.a[i] = const_cast<T *>(x.a);
      w.lda[i] = static_cast<int>(x.lda);
      w.u[i] = args.u.data ? matrix_data<T>(args, args.u, x.at.id) : nullptr;
      w.ldu[i] = args.u.data ? static_cast<int>(matrix_ld(args.u, x.at.id)) : 0;
      w.v[i] = args.v.data ? matrix_data<T>(args, args.v, x.at.id) : nullptr;
      w.ldv[i] = args.v.data ? static_cast<int>(matrix_ld(args.v, x.at.id)) : 0;
      w.s[i] = vector_data<T>(args.s, x.at.id);
    }
    block_sync();
  }
}

/* --- B, and what becomes of it */

template <class T, int N> struct finish_memory {
  common_memory<N> common;
  double roots[N]; /* 1 / |b_j| */
  double sums[block_reducer<double, 2>::elements_for(product_warps<N>)];
  T values[N + 1];
  int places[N + 1];
};

template <class T, int N> class finish {
  using lines_along = product_lines<double, true, true>;
  using lines_across = product_lines<double, false, true>;

public:
  __device__ __forceinline__ finish(const bqr_args &args, const bqr_eigen_svd &w, int64_t entry,
                                    finish_memory<T, N> &m)
      : args_(args), m_(m), x_(args, w.first + entry), q_(x_.q), ld_(w.ld), ldb_(w.ldb),
        square_(w.square + entry * ld_ * q_), z_(w.z + entry * ld_ * q_), b_(w.b + entry * ldb_ * q_),
        values_(w.values + entry * q_), sound_(w.failed[entry] == 0 && w.n_left[entry] == 0) {}

  /* Whether all results are there; else none is. */
  __device__ __forceinline__ bool run() {
    if (!sound_ || !(values_[0] >= least_eigenvalue * values_[q_ - 1])) return false; /* all threads */
    if (!refine()) return false;
    store();
    return true;
  }

private:
  __device__ __forceinline__ lines_along columns_of(const double *x, int64_t ld, int length) const {
    return {x, ld, q_, length};
  }
  __device__ __forceinline__ void form(double *to, int64_t ld, int rows) {
    product_.each(rows, q_, [&](int r, int c, double sum) { to[r + c * ld] = sum; });
    block_sync();
  }

  __device__ __forceinline__ void make_b() {
    const lines_along vectors = columns_of(z_, ld_, q_);
    if (x_.turned)
      product_.form(m_.common.product, product_lines<T, true, false>{x_.a, x_.lda, x_.p, q_}, vectors);
    else
      product_.form(m_.common.product, product_lines<T, false, false>{x_.a, x_.lda, x_.p, q_}, vectors);
    form(b_, ldb_, x_.p);
  }

  /* to := to (I + square). All of it is read before any is written. */
  __device__ __forceinline__ void turn(double *to, int64_t ld, int rows) {
    product_.form(m_.common.product, lines_across{to, ld, rows, q_}, columns_of(square_, ld_, q_));
    product_.each(rows, q_, [&](int r, int c, double &sum) { sum += to[r + c * ld]; });
    form(to, ld, rows);
  }
  /* Of V^H V: square := (I - V^H V) / 2; columns of V (I + square) are orthonormal. */
  __device__ __forceinline__ void find_lack() {
    product_.each(q_, q_,
                  [&](int r, int c, double sum) { square_[r + c * ld_] = ((r == c ? 1 : 0) - sum) / 2; });
    block_sync();
  }

  /* Of B^H B: lengths of B's columns; W in `square`. Returns the largest cosine of two columns; turned2 :=
   * ||W||_F^2, cosines2 := the sum of cosines squared. */
  __device__ __forceinline__ double find_turns(double tolerance, double &turned2, double &cosines2) {
    double *const diagonal = m_.common.diagonal;
    product_.each(q_, q_, [&](int r, int c, double sum) {
      if (r == c) diagonal[r] = sum;
    });
    block_sync();
    for (int j = thread_id(); j < q_; j += num_threads()) m_.roots[j] = 1 / sqrt(diagonal[j]);
    block_sync();
    double sums[2] = {0, 0}, most = 0;
    product_.each(q_, q_, [&](int r, int c, double sum) {
      const double cosine = r == c ? 0 : sum * m_.roots[r] * m_.roots[c];
      const bool turns = !(fabs(cosine) <= tolerance); /* NaN, too */
      double angle = 0;
      if (turns) angle = sum * fast_recip(diagonal[c] - diagonal[r]);
      square_[r + c * ld_] = angle;
      most = fmax(most, fabs(cosine));
      sums[0] = fused(angle, angle, sums[0]);
      sums[1] = fused(cosine, cosine, sums[1]);
    });
    block_reducer<double, 2>(m_.sums).sum(sums);
    turned2 = sums[0];
    cosines2 = sums[1];
    return __hiloint2double(static_cast<int>(block_max(&m_.common.word, magnitude(most))), 0);
  }

  /* square := W + W^2 / 2, for W^H = -W. */
  __device__ __forceinline__ void add_square() {
    product_.form(m_.common.product, columns_of(square_, ld_, q_));
    product_.each(q_, q_, [&](int r, int c, double &sum) { sum = square_[r + c * ld_] - sum / 2; });
    form(square_, ld_, q_);
  }

  /* Makes B. Whether its columns become orthogonal, and V's orthonormal. A step leaves cosines of ||W||_F
   * times what they were, and what makes V's columns orthonormal to ||W||^4. Each product is there once in
   * the code, of which a block runs most once: instructions have to come as data have. */
  __device__ __forceinline__ bool refine() {
    constexpr double eps = limits<T>::eps;
    const double tolerance = eps * (2 * sqrt(static_cast<double>(x_.p)) + 4);
    bool mends = sizeof(T) == sizeof(double), made = false, last = false; /* V; B is */
#pragma unroll 1
    for (int step = 0; step < most_steps; step++) {
      if (!mends && !made) {
        make_b();
        made = true;
      }
      product_.form(m_.common.product, mends ? columns_of(z_, ld_, q_) : columns_of(b_, ldb_, x_.p));
      if (mends) {
        find_lack();
        mends = false;
      } else {
        double turned2, cosines2;
        const double most = find_turns(tolerance, turned2, cosines2);
        if (!(turned2 <= most_turned2 && cosines2 <= 1)) return false; /* or NaN */
        if (most <= tolerance) return true;
        if (turned2 > eps / 8) add_square();
        mends = turned2 * turned2 > eps;
        last = !mends && turned2 * cosines2 <= eps * eps / 16;
      }
#pragma unroll 1
      for (int side = made ? 0 : 1; side < 2; side++)
        turn(side ? z_ : b_, side ? ld_ : ldb_, side ? q_ : x_.p);
      if (last) return true;
    }
    return false;
  }

  __device__ __forceinline__ void store() const {
    const triplets<T> out(args_, x_.at, make_squad(warp_lanes), m_.values, m_.places);
    for (int j = thread_id(); j < q_; j += num_threads())
      m_.values[j] = static_cast<T>(sqrt(m_.common.diagonal[j]));
    block_sync();
    out.order_values();
    block_sync();
    out.store_values(0);
    if (thread_id() == 0) set_info(args_, x_.at.id, 0);
    if (!args_.u.data && !args_.v.data) return;
    store_columns(args_.v.data ? x_.turned : !x_.turned);
  }
  using column = double[N / warp_lanes]; /* of a lane */

  /* by_left: whose signs are ruled. A warp reads the next columns of B and V before it writes these. */
  __device__ __forceinline__ void store_columns(bool by_left) const {
    const matrix_view<double> b = {b_, ldb_, x_.p, q_}, z = {z_, ld_, q_, q_};
    column left, right, next_left, next_right;
    load_column(next_left, b, warp_id());
    load_column(next_right, z, warp_id());
#pragma unroll 1
    for (int j = warp_id(); j < q_; j += num_warps()) {
      column ruled;
#pragma unroll
      for (int e = 0; e < N / warp_lanes; e++) {
        left[e] = next_left[e] * m_.roots[j];
        right[e] = next_right[e];
        ruled[e] = by_left ? left[e] : right[e];
      }
      load_column(next_left, b, j + num_warps());
      load_column(next_right, z, j + num_warps());
      const double turn = sign_of_column(ruled, by_left ? x_.p : q_);
      store_column(x_.turned ? args_.v : args_.u, left, x_.p, j, turn);
      store_column(x_.turned ? args_.u : args_.v, right, q_, j, turn);
    }
  }
  static __device__ __forceinline__ void load_column(column &x, const matrix_view<double> &from, int j) {
#pragma unroll
    for (int e = 0; e < N / warp_lanes; e++)
      x[e] = *from.at(least(lane_id() + warp_lanes * e, from.rows - 1), least(j, from.cols - 1));
  }
  /* That of the first of the largest entries, as they are stored. */
  static __device__ __forceinline__ double sign_of_column(const column &x, int rows) {
    T most = -1;
    int at = rows;
    bool negative = false;
#pragma unroll
    for (int e = 0; e < N / warp_lanes; e++) {
      const int i = lane_id() + warp_lanes * e;
      const T y = static_cast<T>(x[e]);
      if (i < rows && fabs(y) > most) most = fabs(y), at = i, negative = y < 0;
    }
#pragma unroll
    for (int d = warp_lanes / 2; d > 0; d /= 2) {
      const T other = exchange(most, d);
      const int other_at = exchange(at, d), other_negative = exchange(static_cast<int>(negative), d);
      if (other > most || (other == most && other_at < at))
        most = other, at = other_at, negative = other_negative != 0;
    }
    return negative ? -1 : 1;
  }
  __device__ __forceinline__ void store_column(const bqr_matrix &to, const column &from, int rows, int j,
                                               double factor) const {
    if (!to.data) return;
    T *const x = matrix_data<T>(args_, to, x_.at.id) + m_.places[j] * matrix_ld(to, x_.at.id);
#pragma unroll
    for (int e = 0; e < N / warp_lanes; e++) {
      const int i = lane_id() + warp_lanes * e;
      if (i < rows) x[i] = static_cast<T>(from[e] * factor);
    }
  }

  const bqr_args &args_;
  finish_memory<T, N> &m_;
  const upright<T> x_;
  const int q_;
  const int64_t ld_, ldb_;
  double *square_, *z_, *b_;
  const double *values_;
  bool sound_;
  block_product<N> product_;
};

template <class T, int N>
__global__ void __launch_bounds__(instance<N>::threads, instance<N>::blocks)
    finish_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_eigen_svd w) {
  auto &m = *shared_memory<finish_memory<T, N>>();
  for (int64_t i = blockIdx.x; i < w.count; i += gridDim.x) {
    const bool done = finish<T, N>(args, w, i, m).run();
    block_sync();
    if (thread_id() == 0 && !done) {
      const member x = member_at<BATCHQR_GESVD>(args, w.first + i);
      w.m_left[i] = x.m;
      w.n_left[i] = x.n;
    }
  }
}

constexpr int take_threads = 128;
__global__ void __launch_bounds__(take_threads)
    take_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_eigen_svd w) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * take_threads + threadIdx.x;
  if (i >= w.count || w.n_left[i] == 0) return;
  const int64_t id = args.members ? args.members[w.first + i] : w.first + i;
  if (args.rank.data) *vector_data<int>(args.rank, id) = w.rank[i];
  set_info(args, id, w.info[i]);
}

/* f(type_tag, width) */
template <class F> batchqr_status with_instance(batchqr_type type, int width, F &&f) {
  const auto of = [&](auto tag) { return for_value<64, 96, 128>(width, [&](auto n) { return f(tag, n); }); };
  return type == BATCHQR_S ? of(float()) : of(double());
}
} // namespace

extern "C" {

double bqr_eigen_svd_product(batchqr_type type) {
  return type == BATCHQR_S ? most_product_single : most_product;
}

batchqr_status bqr_eigen_svd_prepare(batchqr_type type, int width) {
  const batchqr_status status = prepare_kernel(take_kernel, 0);
  return status ? status : with_instance(type, width, [](auto tag, auto n) {
    using T = decltype(tag);
    constexpr int N = decltype(n)::value;
    const batchqr_status first = prepare_kernel(gram_kernel<T, N>, sizeof(common_memory<N>));
    return first ? first : prepare_kernel(finish_kernel<T, N>, sizeof(finish_memory<T, N>));
  });
}

batchqr_status bqr_eigen_svd_gram(batchqr_type type, int width, const bqr_args *args, const bqr_eigen_svd *w,
                                  batchqr_stream stream) {
  return with_instance(type, width, [&](auto tag, auto n) {
    constexpr int N = decltype(n)::value;
    return launch_kernel(gram_kernel<decltype(tag), N>, dim3(grid_for(w->count)), instance<N>::threads,
                         sizeof(common_memory<N>), stream, *args, *w);
  });
}

batchqr_status bqr_eigen_svd_finish(batchqr_type type, int width, const bqr_args *args,
                                    const bqr_eigen_svd *w, batchqr_stream stream) {
  return with_instance(type, width, [&](auto tag, auto n) {
    using T = decltype(tag);
    constexpr int N = decltype(n)::value;
    return launch_kernel(finish_kernel<T, N>, dim3(grid_for(w->count)), instance<N>::threads,
                         sizeof(finish_memory<T, N>), stream, *args, *w);
  });
}

batchqr_status bqr_eigen_svd_take(const bqr_args *args, const bqr_eigen_svd *w, batchqr_stream stream) {
  return launch_kernel(take_kernel, dim3(grid_for((w->count - 1) / take_threads + 1)), take_threads, 0,
                       stream, *args, *w);
}
}
