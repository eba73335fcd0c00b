/* SPDX-License-Identifier: BSD-3-Clause */
/* Triangles of 32 columns of every type: Cholesky factors by one block, and division by them. Sums are in
 * double precision. */
#ifndef BQR_KERNELS_TSQR_TSQR_TRIANGLES_CUH
#define BQR_KERNELS_TSQR_TSQR_TRIANGLES_CUH

#include "tsqr.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {
namespace tsqr {

/* A triangle as it is kept: by columns, and the inverses of its tiles on the diagonal. */
constexpr int inverses = tiles * tile * tile, factor_elements = N * N + inverses;

/* 32 x 32 numbers in shared memory, of which rows are read as well as columns. */
template <class X> struct triangle {
  X x[N][N + 1];
  __device__ __forceinline__ X &operator()(int i, int j) { return x[j][i]; }
};

/* g := R, g = R^H R. Lanes have a column each and warps every eighth row, in registers; row j comes to all
 * through g. Whether all pivots were above their lanes' bounds. Others must be done with g before; ends with
 * a barrier. */
template <class X> __device__ bool cholesky(triangle<X> &g, int n, double bound) {
  constexpr int shares = N / warps;
  const int c = lane_id();
  bool good = true;
  X a[shares];
#pragma unroll
  for (int k = 0; k < shares; k++) a[k] = g(warp_id() + warps * k, c);
  block_sync();
#pragma unroll
  for (int k = 0; k < shares; k++)
#pragma unroll 1
    for (int owner = 0; owner < warps; owner++) {
      const int j = owner + warps * k;
      if (warp_id() == owner) g(j, c) = a[k];
      block_sync();
      const double pivot = real_part(g(j, j)), r = fast_rsqrt(pivot);
      if (c == j) good = pivot > bound;
      const X x = scaled(g(j, c), r);
      const X factor = scaled(x, r);
#pragma unroll
      for (int q = k; q < shares; q++) {
        const int i = warp_id() + warps * q;
        if (i > j) a[q] = madd(-conj(g(j, i)), factor, a[q]);
      }
      if (warp_id() == owner) a[k] = c < j ? zero<X>() : c == j ? make<X>(pivot * r) : x;
      if (j + 1 >= n) break;
    }
  good = !block_any(!good);
#pragma unroll
  for (int k = 0; k < shares; k++)
    if (warp_id() + warps * k < n) g(warp_id() + warps * k, c) = a[k];
  block_sync();
  return good;
}

/* Rounds a triangle to T, in place and to a factor, and inverts its diagonal tiles. Lanes of warp 0 are left
 * with a column each of the inverses, in z. */
template <class T> __device__ void store_factor(triangle<wide<T>> &r, T *to, wide<T> (&z)[tile]) {
  using X = wide<T>;
  for (int j = warp_id(); j < N; j += warps) {
    const T x = converted<T>(r(lane_id(), j));
    to[lane_id() + j * N] = x;
    r(lane_id(), j) = converted<X>(x);
  }
  block_sync();
  if (warp_id() > 0) return;
  const int first = lane_id() / tile * tile, c = lane_id() % tile;
#pragma unroll
  for (int i = tile - 1; i >= 0; i--) {
    X sum = i == c ? one<X>() : zero<X>();
#pragma unroll
    for (int k = i + 1; k < tile; k++) sum = madd(-r(first + i, first + k), z[k], sum);
    z[i] = i <= c ? sum * fast_recip(r(first + i, first + i)) : zero<X>();
    to[N * N + first * tile + i + c * tile] = converted<T>(z[i]);
  }
}

/* |x|, or up to its square root of two fold. */
BQR_INLINE double size_of(double x) { return fabs(x); }
BQR_INLINE double size_of(complex<double> x) { return fabs(x.re) + fabs(x.im); }

/* Squares of norms between these bounds: what T holds with room to multiply. */
template <class R> constexpr double least_norm2 = sizeof(R) == 4 ? 0x1p-60 : 0x1p-600;
template <class R> constexpr double most_norm2 = sizeof(R) == 4 ? 0x1p60 : 0x1p600;

/* Whether rounding grows where diagonal tiles of R are divided by with their inverses z: |inverse| |R|, for
 * columns of the lanes' norms. By warp 0. */
template <class X> __device__ bool needs_refinement(triangle<X> &r, const X (&z)[tile], double norm) {
  const int c = lane_id(), first = c / tile * tile;
  double sum = 0, growth = 0;
#pragma unroll
  for (int i = 0; i < tile; i++) sum += size_of(z[i]) * broadcast<tile>(norm, i);
#pragma unroll
  for (int k = 0; k < tile; k++) growth += broadcast<tile>(sum, k) * size_of(r(first + k, c));
  return group_any(!(growth < 64 * norm));
}

/* f(i, j, element) of a product a b, elements being those of a(i, k) and b(k, j). f may write what a and b
 * read. Ends with a barrier. */
template <class X, class A, class B, class F> __device__ void product(A &&a, B &&b, F &&f) {
  const int g = lane_id() / 4, q = lane_id() % 4, I = 16 * (warp_id() / tiles),
            J = tile * (warp_id() % tiles);
  X c[4] = {zero<X>(), zero<X>(), zero<X>(), zero<X>()};
#pragma unroll
  for (int K = 2 * q; K < N; K += tile) {
    const operand<X> left[4] = {split(a(I + g, K)), split(a(I + g, K + 1)), split(a(I + g + 8, K)),
                                split(a(I + g + 8, K + 1))};
    const operand<X> right[2] = {split(b(K, J + g)), split(b(K + 1, J + g))};
    multiply_add(c, left, right);
  }
  block_sync();
#pragma unroll
  for (int e = 0; e < 4; e++) f(I + g + 8 * (e / 2), J + 2 * q + e % 2, c[e]);
  block_sync();
}

/* q := q r^-1, 8 threads to a row. A barrier must follow. */
template <class X> __device__ void divide_rows(triangle<X> &q, triangle<X> &r) {
  const int row = thread_id() / 8, sub = thread_id() % 8;
  X b[N / 8];
#pragma unroll
  for (int k = 0; k < N / 8; k++) b[k] = q(row, sub + 8 * k);
#pragma unroll
  for (int first = 0; first < N / 8; first++)
#pragma unroll 1
    for (int o = 0; o < 8; o++) {
      const int j = 8 * first + o;
      const X x = scaled(broadcast<8>(b[first], o), fast_recip(real_part(r(j, j))));
      if (sub == o) b[first] = x;
#pragma unroll
      for (int k = first; k < N / 8; k++)
        if (sub + 8 * k > j) b[k] = madd(-x, r(j, sub + 8 * k), b[k]);
    }
#pragma unroll
  for (int k = 0; k < N / 8; k++) q(row, sub + 8 * k) = b[k];
}

/* q := q R2^-1 and r2 := R2, from X^H X in r2. Where that differs from I by no more than the square root of
 * the rounding, R2 = I + D to rounding with D the upper triangle of X^H X - I, its diagonal halved, and R2^-1
 * = I - D. Ends with a barrier. */
template <class X> __device__ void second_cholesky(triangle<X> &r2, triangle<X> &q, int n, bool nearly_one) {
  if (!nearly_one) {
    cholesky(r2, n, 0);
    divide_rows(q, r2);
    block_sync();
    return;
  }
  if (thread_id() < N) {
    X &x = r2(thread_id(), thread_id());
    x = make<X>(0.5 + 0.5 * real_part(x));
  }
  block_sync();
  product<X>([&](int i, int k) { return q(i, k); }, [&](int k, int j) { return r2(k, j); },
             [&](int i, int j, X x) { q(i, j) = q(i, j) + q(i, j) - x; });
}

/* Whether columns with these products are nearly orthogonal to each other: all eigenvalues of the matrix of
 * their cosines are between 1/2 and 3/2. */
template <class X> __device__ bool is_nearly_orthogonal(triangle<X> &g, int n) {
  __shared__ double sums[warps];
  const int i = lane_id();
  double sum = 0;
  for (int j = warp_id(); j < n; j += warps)
    if (i < j)
      sum += abs2(scaled(scaled(g(i, j), fast_rsqrt(real_part(g(i, i)))), fast_rsqrt(real_part(g(j, j)))));
  sum = group_sum(sum);
  if (i == 0) sums[warp_id()] = sum;
  block_sync();
  sum = 0;
  for (double part : sums) sum += part;
  return sum < 0.125;
}

/* An upper triangle R as operands, to divide rows by. */
template <class T> class divisor {
public:
  /* From a factor. A barrier must follow. */
  __device__ void load(const T *factor) {
    for (int e = thread_id(); e < (above + tiles) * warp_lanes; e += threads) {
      const int lane = e % warp_lanes, g = lane / 4, q = lane % 4;
      int K = e / warp_lanes - above, J = K; /* a tile on the diagonal, or one above it */
      if (K < 0)
        for (K += above, J = 1; K >= J; J++) K -= J;
      for (int s = 0; s < 2; s++) {
        const int i = 2 * q + s;
        r_[e][s] = split(-factor[tile * K + i + (tile * J + g) * N]);
        if (K == J)
          inverse_[K * warp_lanes + lane][s] = split(factor[N * N + J * tile * tile + i + g * tile]);
      }
    }
  }

  /* x := x R^-1, columns beyond the first `used` tiles being zero. */
  __device__ __forceinline__ void divide(product_rows<T> &x, int used, bool refined) const {
#pragma unroll
    for (int p = 0; p < product_rows<T>::height; p += 2) {
      operand<T> done[tiles][4];
#pragma unroll
      for (int J = 0; J < tiles; J++) {
        if (J >= used) break;
        T rest[4] = {x.x[J][0][p], x.x[J][1][p], x.x[J][0][p + 1], x.x[J][1][p + 1]};
#pragma unroll
        for (int K = 0; K < J; K++) add(rest, done[K], r_ + (J * (J - 1) / 2 + K) * warp_lanes);
        T y[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
        operand<T> a[4];
        split_all(a, rest);
        add(y, a, inverse_ + J * warp_lanes);
        if (refined) {
          split_all(a, y);
          add(rest, a, r_ + (above + J) * warp_lanes);
          split_all(a, rest);
          add(y, a, inverse_ + J * warp_lanes);
        }
        split_all(done[J], y);
        x.x[J][0][p] = y[0];
        x.x[J][1][p] = y[1];
        x.x[J][0][p + 1] = y[2];
        x.x[J][1][p + 1] = y[3];
      }
    }
  }

private:
  static constexpr int above = tiles * (tiles - 1) / 2;

  __device__ __forceinline__ static void split_all(operand<T> (&a)[4], const T (&x)[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) a[e] = split(x[e]);
  }
  /* c += a times the tile that starts at b. */
  __device__ __forceinline__ static void add(T (&c)[4], const operand<T> (&a)[4], const operand<T> (*b)[2]) {
    const operand<T>(&mine)[2] = b[lane_id()];
    multiply_add(c, a, mine);
  }

  operand<T> r_[(above + tiles) * warp_lanes][2]; /* -R: tiles above the diagonal, tiles on it */
  operand<T> inverse_[tiles * warp_lanes][2];
};

} // namespace tsqr
} // namespace bqr

#endif
