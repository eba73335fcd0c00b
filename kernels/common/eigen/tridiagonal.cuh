/* SPDX-License-Identifier: BSD-3-Clause */
/* Householder's reduction of a Hermitian matrix to a real tridiagonal one, A = Q T Q^H with Q = H(0) H(1) ...
 * H(n-2), as LAPACK's xSYTD2 with the lower triangle; but both triangles are kept, so that all accesses go
 * down columns. A step updates the rest of the matrix by the step before it (A - v w^H - w v^H) and
 * multiplies it by its own vector in one pass. */
#ifndef BQR_KERNELS_COMMON_EIGEN_TRIDIAGONAL_CUH
#define BQR_KERNELS_COMMON_EIGEN_TRIDIAGONAL_CUH

#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"
#include "common/panel/larfg.cuh"
#include "common/simt/scope.cuh"

namespace bqr {

/* Entries of the vectors that a pass reads together: v and w of the last step, v of this one. */
template <class T> struct alignas(16) pass_entry { T v, w, next; };

/* Warps of a scope that work on members of order n. */
template <class SCOPE> BQR_INLINE int tridiagonal_warps(int n) {
  return least(SCOPE::most_warps, n <= 64 ? 4 : n <= 128 ? 8 : 16);
}

template <class T, class SCOPE> class tridiagonal {
  using R = real_t<T>;
  static constexpr int at_once = sizeof(T) > 8 ? 4 : 8; /* loads in flight */

public:
  /* Bytes of shared memory for members of order n. */
  BQR_INLINE static size_t bytes(int n) {
    const size_t rows =
        static_cast<size_t>(n) + warp_lanes * static_cast<size_t>(tridiagonal_warps<SCOPE>(n));
    return sizeof(pass_entry<T>) * static_cast<size_t>(n) + sizeof(T) * rows;
  }

  /* a: in shared memory or elsewhere, both triangles, the largest entry near 2^span::top. */
  __device__ tridiagonal(SCOPE &scope, const matrix_view<T> &a, unsigned char *memory)
      : scope_(scope), a_(a), x_(reinterpret_cast<pass_entry<T> *>(memory)),
        part_(reinterpret_cast<T *>(x_ + a.rows)), warps_(tridiagonal_warps<SCOPE>(a.rows)) {}

  /* d: n numbers, e: n - 1, both brought near 1. Leaves v of H(k) in column k, rows k + 1 on, and tau above
   * it.
   */
  __device__ void run(R *d, R *e) {
    for (int i = scope_.thread(); i < a_.rows; i += scope_.threads()) x_[i].v = x_[i].w = zero<T>();
    scope_.sync();
    for (int k = 0; k < a_.rows; k++) {
      const reflector<T> h = next_reflector(k, d);
      if (k == a_.rows - 1) break;
      write_vector(k, h);
      if (scope_.thread() == 0) {
        e[k] = h.beta * span<R>::unit;
        *a_.at(k, k) = h.tau;
      }
      scope_.sync();
      pass(k + 1);
      scope_.sync();
      find_w(k + 1, h.tau);
      scope_.sync();
    }
  }

private:
  /* Updates column k, the next to be reduced. A norm that is nothing beside A's is taken for zero. */
  __device__ __forceinline__ reflector<T> next_reflector(int k, R *d) {
    const T v = x_[k].v, w = x_[k].w;
    R ss = 0;
    for (int i = k + scope_.thread(); i < a_.rows; i += scope_.threads()) {
      const T z = updated(*a_.at(i, k), x_[i].v, x_[i].w, v, w);
      if (i == k)
        d[k] = real_part(z) * span<R>::unit;
      else
        x_[i == k + 1 ? k : i].next = z;
      if (i > k + 1) ss = abs2_add(z, ss);
    }
    ss = scope_.sum(ss);
    scope_.sync();
    if (k == a_.rows - 1) return {};
    const T alpha = x_[k].next;
    if (!(abs2_add(alpha, ss) > span<R>::least2)) return {zero<T>(), R(0), R(1), zero<T>()};
    return larfg(alpha, ss, R(1), false);
  }

  __device__ __forceinline__ static T updated(T z, T vi, T wi, T vj, T wj) {
    return madd(-vi, conj(wj), madd(-wi, conj(vj), z));
  }

  __device__ __forceinline__ void write_vector(int k, const reflector<T> &h) {
    for (int i = k + scope_.thread(); i < a_.rows; i += scope_.threads()) {
      if (i == k) continue; /* others read alpha there */
      const T v = i == k + 1 ? one<T>() : x_[i].next * h.scale;
      x_[i].next = v;
      *a_.at(i, k) = v;
    }
  }

  /* Rows from `first` on, 32 to a warp; where there are more warps, they share the columns. */
  __device__ __forceinline__ int slices(int first) const {
    const int chunks = (a_.rows - first + warp_lanes - 1) / warp_lanes;
    return largest(1, warps_ / chunks);
  }

  __device__ __forceinline__ void pass(int first) {
    const int rest = a_.rows - first, chunks = (rest + warp_lanes - 1) / warp_lanes, number = slices(first),
              width = (rest + number - 1) / number;
    for (int item = scope_.warp(); scope_.warp() < warps_ && item < chunks * number; item += warps_) {
      const int chunk = item % chunks, slice = item / chunks, i = first + chunk * warp_lanes + lane_id();
      if (i >= a_.rows) continue;
      const int begin = first + slice * width, end = least(a_.rows, begin + width);
      const T v = x_[i].v, w = x_[i].w;
      T y = zero<T>();
      for (int j = begin; j < end; j += at_once) columns(i, j, end, v, w, y);
      part_[slice * (chunks * warp_lanes) + i - first] = y;
    }
  }

  __device__ __forceinline__ void columns(int i, int j, int end, T v, T w, T &y) {
    T z[at_once];
#pragma unroll
    for (int c = 0; c < at_once; c++) z[c] = *a_.at(i, least(j + c, end - 1));
#pragma unroll
    for (int c = 0; c < at_once; c++) {
      const pass_entry<T> x = x_[least(j + c, end - 1)];
      z[c] = updated(z[c], v, w, x.v, x.w);
      if (j + c < end) y = madd(z[c], x.next, y);
    }
#pragma unroll
    for (int c = 0; c < at_once; c++)
      if (j + c < end) *a_.at(i, j + c) = z[c];
  }

  /* w := x - tau / 2 (x^H v) v with x = tau A v. */
  __device__ __forceinline__ void find_w(int first, T tau) {
    const int number = slices(first), stride = (a_.rows - first + warp_lanes - 1) / warp_lanes * warp_lanes;
    T dot = zero<T>();
    for (int i = first + scope_.thread(); i < a_.rows; i += scope_.threads()) {
      T y = part_[i - first];
      for (int s = 1; s < number; s++) y = y + part_[s * stride + i - first];
      y = tau * y;
      dot = cmadd(y, x_[i].next, dot);
      x_[i].w = y;
    }
    const T factor = scaled(tau, R(-0.5)) * scope_.sum(dot);
    for (int i = first + scope_.thread(); i < a_.rows; i += scope_.threads()) {
      const T v = x_[i].next;
      x_[i].w = madd(factor, v, x_[i].w);
      x_[i].v = v;
    }
  }

  SCOPE &scope_;
  matrix_view<T> a_;
  pass_entry<T> *x_;
  T *part_;
  int warps_;
};

/* The largest magnitude of the triangle that is read, see magnitude_or_one(). */
template <class T, class SCOPE>
__device__ uint32_t triangle_magnitude(SCOPE &scope, const matrix_view<T> &a, bool lower) {
  uint32_t u = 0;
  for (int j = scope.warp(); j < a.cols; j += scope.warps())
    for (int i = (lower ? j : 0) + lane_id(); i < (lower ? a.rows : j + 1); i += warp_lanes) {
      const T x = *a.at(i, j);
      u = greater(u, magnitude_or_one(i == j ? make<T>(real_part(x)) : x));
    }
  return scope.max(u);
}

/* Both triangles of `to`, times 2^exponent. They do not overlap. */
template <class T, class SCOPE>
__device__ void copy_triangle(SCOPE &scope, const matrix_view<T> &from, bool lower, int exponent,
                              const matrix_view<T> &to) {
  for (int j = scope.warp(); j < from.cols; j += scope.warps())
    for (int i = (lower ? j : 0) + lane_id(); i < (lower ? from.rows : j + 1); i += warp_lanes) {
      const T x = *from.at(i, j), y = times_power(i == j ? make<T>(real_part(x)) : x, exponent);
      *to.at(i, j) = y;
      if (i != j) *to.at(j, i) = conj(y);
    }
  scope.sync();
}

} // namespace bqr

#endif
