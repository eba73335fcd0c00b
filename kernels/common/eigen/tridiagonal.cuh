/* SPDX-License-Identifier: BSD-3-Clause */
/* Householder's reduction of a Hermitian matrix to a real tridiagonal one, A = Q T Q^H with Q = H(0) H(1) ...
 * H(n-2), as LAPACK's xSYTD2 with the lower triangle; but both triangles are kept, so that all accesses go
 * down columns. A step updates the rest of the matrix by the step before it (A - v w^H - w v^H) and
 * multiplies it by its own column x in one pass.
 *
 * With v = scale (x - beta e), A v and v^H A v come from A x and x^H A x: the norm of x is summed together
 * with the latter, by each warp for itself, and a step has two barriers. */
#ifndef BQR_KERNELS_COMMON_EIGEN_TRIDIAGONAL_CUH
#define BQR_KERNELS_COMMON_EIGEN_TRIDIAGONAL_CUH

#include "common/eigen/step.cuh"
#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"
#include "common/simt/scope.cuh"

namespace bqr {

/* Warps of a block that work on members of order n. */
template <class SCOPE> BQR_INLINE int tridiagonal_warps(int n) {
  return least(SCOPE::most_warps, n <= 64 ? 4 : n <= 128 ? 8 : 16);
}

template <class T, class SCOPE> class tridiagonal {
  using R = real_t<T>;
  static constexpr int at_once = sizeof(T) > 8 ? 4 : 8; /* loads in flight */
  struct alignas(2 * sizeof(T)) step_entry {
    T v, w;
  }; /* of the last step */

public:
  /* Bytes of shared memory for members of order n. */
  BQR_INLINE static size_t bytes(int n) {
    const size_t rows =
        3 * static_cast<size_t>(n) + warp_lanes * static_cast<size_t>(tridiagonal_warps<SCOPE>(n));
    return sizeof(step_entry) * static_cast<size_t>(n) + sizeof(T) * rows;
  }

  /* a: in shared memory or elsewhere, both triangles, the largest entry near 1. */
  __device__ tridiagonal(SCOPE &scope, const matrix_view<T> &a, unsigned char *memory)
      : scope_(scope), a_(a), entries_(reinterpret_cast<step_entry *>(memory)),
        x_(reinterpret_cast<T *>(entries_ + a.rows)), part_(x_ + 2 * a.rows),
        warps_(tridiagonal_warps<SCOPE>(a.rows)) {}

  /* d: n numbers, e: n - 1. Leaves v of H(k) in column k, rows k + 1 on, and tau above it. */
  __device__ void run(R *d, R *e) {
    for (int i = scope_.thread(); i < a_.rows; i += scope_.threads()) {
      entries_[i] = {zero<T>(), zero<T>()};
      x_[i] = *a_.at(i, 0);
      if (i == 0) d[0] = real_part(x_[0]);
    }
    scope_.sync();
    for (int k = 0; k < a_.rows - 1; k++) {
      const T *x = x_ + (k & 1) * a_.rows;
      pass(k + 1, x);
      scope_.sync();
      step(k, x, x_ + (1 - (k & 1)) * a_.rows, d, e);
      scope_.sync();
    }
  }

private:
  /* (A x)(i), of what the slices have summed. */
  __device__ __forceinline__ T product(int i, int first) const {
    const int number = slices(first), stride = (a_.rows - first + warp_lanes - 1) / warp_lanes * warp_lanes;
    T y = part_[i - first];
    for (int s = 1; s < number; s++) y = y + part_[s * stride + i - first];
    return y;
  }

  /* Of column x, rows k + 1 on, with A x known: v, w, and the next column, to `next`. */
  __device__ __forceinline__ void step(int k, const T *x, T *next, R *d, R *e) {
    const int first = k + 1;
    R rest = 0, energy = 0; /* |x|^2 below its first entry, x^H A x */
    for (int i = first + lane_id(); i < a_.rows; i += warp_lanes) {
      if (i > first) rest = abs2_add(x[i], rest);
      energy += real_part(cmadd(x[i], product(i, first), zero<T>()));
    }
#pragma unroll
    for (int lanes = warp_lanes / 2; lanes > 0; lanes /= 2) {
      rest += exchange(rest, lanes);
      energy += exchange(energy, lanes);
    }
    const T alpha = x[first], a_first = *a_.at(first, first), q_first = product(first, first);
    reflector<T> h = {zero<T>(), R(0), R(1), zero<T>()};
    if (abs2_add(alpha, rest) > least2_of_step<R>) h = larfg(alpha, rest, R(1), false);
    const R most = fused(h.beta, fused(h.beta, real_part(a_first), -2 * real_part(q_first)), energy) *
                   abs2(h.scale); /* v^H A v */
    const T half = make<T>(R(-0.5) * abs2(h.tau) * most);
    const auto find_w = [&](T q, T a, T v) {
      return madd(h.tau, h.scale * madd(make<T>(-h.beta), a, q), half * v);
    };
    const T w_first = find_w(q_first, a_first, one<T>());
    for (int i = first + scope_.thread(); i < a_.rows; i += scope_.threads()) {
      const T v = i == first ? one<T>() : x[i] * h.scale, a = *a_.at(i, first),
              w = i == first ? w_first : find_w(product(i, first), a, v);
      entries_[i] = {v, w};
      next[i] = updated(a, v, w, one<T>(), w_first);
      *a_.at(i, k) = v;
      if (i == first) {
        d[first] = real_part(next[i]);
        e[k] = h.beta;
        *a_.at(k, k) = h.tau;
      }
    }
  }

  /* Rows from `first` on, 32 to a warp; where there are more warps, they share the columns. */
  __device__ __forceinline__ int slices(int first) const {
    const int chunks = (a_.rows - first + warp_lanes - 1) / warp_lanes;
    return largest(1, warps_ / chunks);
  }

  __device__ __forceinline__ void pass(int first, const T *x) {
    const int rest = a_.rows - first, chunks = (rest + warp_lanes - 1) / warp_lanes, number = slices(first),
              width = (rest + number - 1) / number;
    for (int item = scope_.warp(); scope_.warp() < warps_ && item < chunks * number; item += warps_) {
      const int chunk = item % chunks, slice = item / chunks, i = first + chunk * warp_lanes + lane_id();
      if (i >= a_.rows) continue;
      const int begin = first + slice * width, end = least(a_.rows, begin + width);
      const step_entry mine = entries_[i];
      T y = zero<T>();
      for (int j = begin; j < end; j += at_once) columns(i, j, end, mine, x, y);
      part_[slice * (chunks * warp_lanes) + i - first] = y;
    }
  }

  __device__ __forceinline__ void columns(int i, int j, int end, const step_entry &mine, const T *x, T &y) {
    T z[at_once];
#pragma unroll
    for (int c = 0; c < at_once; c++) z[c] = *a_.at(i, least(j + c, end - 1));
#pragma unroll
    for (int c = 0; c < at_once; c++) {
      const int column = least(j + c, end - 1);
      const step_entry other = entries_[column];
      z[c] = updated(z[c], mine.v, mine.w, other.v, other.w);
      if (j + c < end) y = madd(z[c], x[column], y);
    }
#pragma unroll
    for (int c = 0; c < at_once; c++)
      if (j + c < end) *a_.at(i, j + c) = z[c];
  }

  SCOPE &scope_;
  matrix_view<T> a_;
  step_entry *entries_;
  T *x_; /* columns of even and of odd steps */
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
