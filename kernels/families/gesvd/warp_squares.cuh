/* SPDX-License-Identifier: BSD-3-Clause */
/* Singular values and vectors of a member of up to N x N by way of the eigenvectors V of A^H A, in double
 * precision, by a warp, or by half of one where N = 16: what gesvd_eigen does (docs/decisions/0043), in
 * registers and shared memory. Of X = A or, where that is wide, A^H, columns of B = X V are orthogonal but
 * for what squaring has lost; steps B := B (I + W), V := V (I + W) make up for it. The members for which that
 * will not do are left alone. Products are those of matrix units, of the whole warp for one member after
 * another. */
#ifndef BQR_KERNELS_FAMILIES_GESVD_WARP_SQUARES_CUH
#define BQR_KERNELS_FAMILIES_GESVD_WARP_SQUARES_CUH

#include "common/eigen/lane_vectors.cuh"
#include "common/matrix/member.cuh"
#include "common/ptx/mma.cuh"
#include "common/simt/fragment.cuh"

namespace bqr {

/* Fewer columns are rotated as fast. */
template <class T, int N> constexpr bool squares_pay = !is_complex<T> && N >= (sizeof(T) == 4 ? 32 : 16);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
template <class T, int N> constexpr bool takes_squares = squares_pay<T, N>;
#else
template <class T, int N> constexpr bool takes_squares = false;
#endif

/* What a member has in shared memory. Both ways fragments are nearly free of bank conflicts. */
template <int N> struct squared_memory {
  static constexpr int lanes = N > warp_lanes / 2 ? warp_lanes : N, ld = lanes + 2;
  struct eigen_memory {
    reduced_rows<double, lanes> reduced;
    tridiagonal_pairs<lanes> pairs;
  };
  struct square {
    alignas(16) double x[lanes * ld];
  };
  union {
    eigen_memory eigen;
    square of[2]; /* X, then B; X^H X, then V */
  };
  double lengths2[lanes], left[lanes],
      right[lanes]; /* of B's columns; what columns are to be multiplied by */
};

/* A product of up to lanes x N elements, in the registers of a warp. Element e of tile (i, j) is that of row
 * 16 i + 8 (e / 2) + l / 4 and column 8 j + 2 (l % 4) + e % 2, l being the lane. */
template <int N> class squared_product {
  static constexpr int ld = squared_memory<N>::ld, I = squared_memory<N>::lanes / 16, J = N / 8;

public:
  /* f(row, column, element) */
  template <class F> __device__ __forceinline__ void each(F &&f) {
    const int row = lane_id() / 4, col = lane_id() % 4 * 2;
#pragma unroll
    for (int i = 0; i < I; i++)
#pragma unroll
      for (int j = 0; j < J; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) f(16 * i + e / 2 * 8 + row, 8 * j + e % 2 + col, c_[i][j][e]);
  }

  /* x^H x, of `rows` rows */
  __device__ __forceinline__ void form(const double *x, int rows) {
    clear();
    const double *const own = x + lane_id() / 4 * ld + lane_id() % 4 * 2;
#pragma unroll 1
    for (int k = 0; k < rows; k += 8) {
      double a[I][2][2];
#pragma unroll
      for (int i = 0; i < 2 * I; i++) read_two(a[i / 2][i % 2], own + 8 * i * ld + k);
#pragma unroll
      for (int i = 0; i < I; i++)
#pragma unroll
        for (int j = 0; j < J; j++) add(c_[i][j], a[i], a[j / 2][j % 2]);
    }
  }
  /* x v, of `cols` columns of x */
  __device__ __forceinline__ void form(const double *x, const double *v, int cols) {
    clear();
    const double *const own = v + lane_id() / 4 * ld + lane_id() % 4 * 2;
#pragma unroll 1
    for (int k = 0; k < cols; k += 8) {
      double b[J][2];
#pragma unroll
      for (int j = 0; j < J; j++) read_two(b[j], own + 8 * j * ld + k);
      add_rows(x, k, b);
    }
  }
  /* x times the transpose of w, of which what is below row and right of column `cols` is zero */
  __device__ __forceinline__ void form(const double *x, const squared_product &w, int cols) {
    clear();
#pragma unroll
    for (int k = 0; k < J; k++) {
      if (8 * k >= cols) break;
      double b[J][2];
#pragma unroll
      for (int j = 0; j < J; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) b[j][e] = w.c_[j / 2][k][j % 2 * 2 + e];
      add_rows(x, 8 * k, b);
    }
  }
  /* w w^T, likewise */
  __device__ __forceinline__ void form(const squared_product &w) {
    clear();
#pragma unroll
    for (int k = 0; k < J; k++)
#pragma unroll
      for (int i = 0; i < I; i++)
#pragma unroll
        for (int j = 0; j < J; j++) {
          const double a[2][2] = {{w.c_[i][k][0], w.c_[i][k][1]}, {w.c_[i][k][2], w.c_[i][k][3]}},
                       b[2] = {w.c_[j / 2][k][j % 2 * 2], w.c_[j / 2][k][j % 2 * 2 + 1]};
          add(c_[i][j], a, b);
        }
  }
  /* this := - this - other / 2 */
  __device__ __forceinline__ void turn_with(const squared_product &other) {
#pragma unroll
    for (int i = 0; i < I; i++)
#pragma unroll
      for (int j = 0; j < J; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) c_[i][j][e] = fused(-0.5, other.c_[i][j][e], -c_[i][j][e]);
  }
  __device__ __forceinline__ void clear() {
    each([](int, int, double &x) { x = 0; });
  }

private:
  static __device__ __forceinline__ void add(double (&c)[4], const double (&a)[2][2], const double (&b)[2]) {
    multiply_add(c[0], c[1], c[2], c[3], a[0][0], a[0][1], a[1][0], a[1][1], b[0], b[1]);
  }
  __device__ __forceinline__ void add_rows(const double *x, int k, const double (&b)[J][2]) {
    const double *const own = x + (k + lane_id() % 4 * 2) * ld + lane_id() / 4;
#pragma unroll
    for (int i = 0; i < I; i++) {
      double a[2][2];
#pragma unroll
      for (int e = 0; e < 4; e++) a[e / 2][e % 2] = own[e % 2 * ld + 16 * i + e / 2 * 8];
#pragma unroll
      for (int j = 0; j < J; j++) add(c_[i][j], a, b[j]);
    }
  }

  double c_[I][J][4];
};

/* Of a warp's members. MEMORY: of a member, with a squared_memory<N> `squares`. */
template <class T, int N, class MEMORY> class squared_svd {
  using memory = squared_memory<N>;
  static constexpr int lanes = memory::lanes, members = warp_lanes / lanes, ld = memory::ld;
  /* As in kernels/refine/eigen_svd.cu. */
  static constexpr uint32_t most_apart = sizeof(T) == 4 ? 40 : 10;
  static constexpr double least_eigenvalue = 1e-12, eps = limits<T>::eps;
  static constexpr int most_steps = 3;

public:
  /* a: this lane's member, m x n; all: those of the warp. */
  __device__ __forceinline__ squared_svd(const T *a, int64_t lda, int m, int n, MEMORY *all)
      : a_(a), lda_(lda), m_(m), n_(n), all_(all), lane_(lane_id() & (lanes - 1)), q_(least(m, n)),
        first_(lanes - q_), mine_(all[lane_id() / lanes].squares) {}

  /* Whether B and V are there, with lengths2, for this lane's member. All lanes of the warp call it together.
   */
  __device__ __forceinline__ bool run() {
    load<true>();
    bool sound = false;
    for (int w = 0; w < members; w++) {
      const bool good = form_square(w);
      if (lane_id() / lanes == w) sound = good;
    }
    if (!group_any(sound)) return false;
    sound = find_vectors() && sound;
    load<false>();
    bool done = false;
    for (int w = 0; w < members; w++) {
      const bool wanted = of_member(sound, w) != 0;
      const bool good = wanted && refine(w);
      if (lane_id() / lanes == w) done = good;
    }
    return done;
  }

  /* left and right := what columns of B and V, in that order, are to be multiplied by: U's lengths are 1, and
   * the first of the largest entries of a column of U (by_left) or of V is positive. any: whether the lane
   * has a column. */
  __device__ __forceinline__ void find_factors(const int *order, bool any, bool by_left) {
    if (!any) return;
    const int from = order[lane_];
    const double inverse = fast_rsqrt(mine_.lengths2[from]), factor = by_left ? inverse : 1;
    const double *const x = mine_.of[by_left ? 0 : 1].x + from * ld;
    T most = -1;
    bool negative = false;
#pragma unroll
    for (int i = 0; i < lanes; i++) { /* zeros are the last ones */
      const T y = static_cast<T>(x[i] * factor);
      if (fabs(y) > most) most = fabs(y), negative = y < 0;
    }
    mine_.left[lane_] = negative ? -inverse : inverse;
    mine_.right[lane_] = negative ? -1 : 1;
  }

  /* B and V are those of A times this power of two. */
  __device__ __forceinline__ int exponent() const { return exponent_; }

private:
  /* X, and zeros around it. All elements are on their way before the first is needed: no branch for one. */
  template <bool FIRST> __device__ __forceinline__ void load() {
    T a[lanes] = {};
    if (q_ > 0) {
      const T *const from = a_ + least(lane_, m_ - 1);
#pragma unroll
      for (int j = 0; j < lanes; j++) a[j] = from[least(j, n_ - 1) * lda_];
    }
    if (FIRST) {
      uint32_t u = 0;
#pragma unroll
      for (int j = 0; j < lanes; j++) u = greater(u, magnitude_or_one(a[j]));
      u = group_max<lanes>(u);
      finite_ = magnitude_finite<T>(u);
      exponent_ = finite_ && u ? exponent_to<T>(u, 0) : 0;
    }
    const double half = times_power(1.0, exponent_ / 2), rest = times_power(1.0, exponent_ - exponent_ / 2);
    const int step = m_ < n_ ? 1 : ld; /* to the next of A's columns */
    double *const x = mine_.of[0].x + (m_ < n_ ? lane_ * ld : lane_);
#pragma unroll
    for (int j = 0; j < lanes; j++) {
      const bool there = finite_ && lane_ < m_ && j < n_;
      x[j * step] = there ? static_cast<double>(a[j]) * half * rest : 0;
    }
    warp_sync();
  }

  /* X^H X of the warp's member w, in the last rows and columns. False: it will not do, and there is another
   * matrix, whose eigenvalues are apart. */
  __device__ __forceinline__ bool form_square(int w) {
    memory &m = all_[w].squares;
    const int p = of_member(largest(m_, n_), w), q = of_member(q_, w), first = lanes - q;
    product_.form(m.of[0].x, p);
    product_.each([&](int r, int c, double &sum) {
      if (r == c) m.lengths2[r] = sum;
    });
    warp_sync();
    const uint32_t own = lane_id() < q ? magnitude(m.lengths2[lane_id()]) : 0, most = group_max(own),
                   fewest = ~group_max(lane_id() < q ? ~own : 0);
    const bool good = q > 0 && most > 0 && fewest > 0 && (most - fewest) >> 20 <= most_apart;
    double *const to = m.of[1].x;
    for (int i = 0; i < lanes && N < lanes; i++) to[i * ld + lane_id()] = 0;
    warp_sync();
    product_.each([&](int r, int c, double &sum) {
      to[((c + first) & (lanes - 1)) * ld + ((r + first) & (lanes - 1))] = good ? sum : r == c ? 1 + r : 0;
    });
    warp_sync();
    return good;
  }

  /* V of this lane's member. */
  __device__ __forceinline__ bool find_vectors() {
    double column[lanes];
    bool good;
    {
      lane_rows<double, lanes> rows(mine_.eigen.reduced);
      const int first = lanes - static_cast<int>(group_max(static_cast<uint32_t>(q_)));
#pragma unroll
      for (int j = 0; j < lanes; j++)
        rows.a[j] = first + j < lanes ? mine_.of[1].x[lane_ + (first + j) * ld] : 0;
      warp_sync();
      rows.run(first);
      split_tridiagonal(mine_.eigen.reduced, mine_.eigen.pairs, first_);
      lane_pairs<lanes> pairs(mine_.eigen.pairs, first_, 2.0 / lanes);
      good = pairs.run_apart(true);
      const double low = broadcast<lanes>(pairs.value(), least(first_, lanes - 1)),
                   high = broadcast<lanes>(pairs.value(), lanes - 1);
      good = good && low >= least_eigenvalue * high;
#pragma unroll
      for (int i = 0; i < lanes; i++) column[i] = pairs.vector()[i];
    }
    for (int k = lanes - 2; k >= 0; k--)
      if (group_any(k >= first_)) apply_reflector(mine_.eigen.reduced, k, column);
    warp_sync();
    double *const to = mine_.of[1].x + ((lane_ - first_) & (lanes - 1)) * ld;
#pragma unroll
    for (int i = 0; i < lanes; i++)
      to[(i - first_) & (lanes - 1)] = lane_ >= first_ && i >= first_ ? column[i] : 0;
    warp_sync();
    return good;
  }

  /* Whether B's columns become orthogonal, and V's stay it. See eigen_svd.cu; where W is not small enough for
   * that, a member is left. */
  __device__ __forceinline__ bool refine(int w) {
    memory &m = all_[w].squares;
    double *const b = m.of[0].x, *const v = m.of[1].x;
    const int p = of_member(largest(m_, n_), w), q = of_member(q_, w);
    product_.form(b, v, q);
    warp_sync();
    product_.each([&](int r, int c, double &sum) { b[c * ld + r] = sum; });
    warp_sync();
    const double tolerance = eps * (2 * sqrt(static_cast<double>(p)) + 4);
    for (int step = 0; step < most_steps; step++) {
      double turned2, cosines2;
      const double most = find_turns(m, p, q, tolerance, turned2, cosines2);
      if (!(turned2 * turned2 <= eps && cosines2 <= 1)) return false; /* or NaN */
      if (most <= tolerance) return true;
      squared_product<N> other;
      if (turned2 > eps / 8)
        other.form(product_);
      else
        other.clear();
      product_.turn_with(other);
      turn(b, q, other);
      turn(v, q, other);
      if (turned2 * cosines2 <= eps * eps / 16) return true;
    }
    return false;
  }

  /* x := x (I + W), with the transpose of W in registers. */
  __device__ __forceinline__ void turn(double *x, int q, squared_product<N> &sum) {
    sum.form(x, product_, q);
    warp_sync();
    sum.each([&](int r, int c, double &y) { x[c * ld + r] += y; });
    warp_sync();
  }

  /* lengths2 := squared lengths of B's columns; W in registers. Returns the largest cosine of two columns;
   * turned2 := ||W||_F^2, cosines2 := the sum of cosines squared. */
  __device__ __forceinline__ double find_turns(memory &m, int p, int q, double tolerance, double &turned2,
                                               double &cosines2) {
    product_.form(m.of[0].x, p);
    product_.each([&](int r, int c, double &sum) {
      if (r == c) m.lengths2[r] = sum, m.left[r] = fast_rsqrt(sum);
    });
    warp_sync();
    double most = 0;
    turned2 = cosines2 = 0;
    product_.each([&](int r, int c, double &sum) {
      const bool pair = r != c && r < q && c < q;
      const double cosine = pair ? fabs(sum * m.left[r] * m.left[c]) : 0;
      double angle = 0;
      if (!(cosine <= tolerance)) angle = sum * fast_recip(m.lengths2[c] - m.lengths2[r]); /* NaN, too */
      sum = angle;
      most = fmax(most, cosine);
      turned2 = fused(angle, angle, turned2);
      cosines2 = fused(cosine, cosine, cosines2);
    });
    turned2 = group_sum(turned2);
    cosines2 = group_sum(cosines2);
    return __hiloint2double(static_cast<int>(group_max(magnitude(most))), 0);
  }

  /* A number of the warp's member w. */
  static __device__ __forceinline__ int of_member(int x, int w) { return broadcast(x, w * lanes); }

  const T *a_;
  int64_t lda_;
  int m_, n_;
  MEMORY *all_;
  int lane_, q_, first_; /* of the member */
  memory &mine_;
  bool finite_ = false;
  int exponent_ = 0;
  squared_product<N> product_;
};

} // namespace bqr

#endif
