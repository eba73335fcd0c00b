/* SPDX-License-Identifier: BSD-3-Clause */
/* An eigenvalue of a real symmetric tridiagonal matrix T of n rows, |T| <= 1, by a thread: the signs of the
 * leading minors of T - x, which count the eigenvalues below x, and their last one, whose zero is looked for.
 *
 * The minors themselves, not their quotients: a step is one dependent operation and no division. They are at
 * most 2^n or so, of usual matrices 2^-n. Where the last two of them vanish, for close eigenvalues and nearly
 * split matrices, signs are lost, and the thread says so. */
#ifndef BQR_KERNELS_COMMON_EIGEN_STURM_CUH
#define BQR_KERNELS_COMMON_EIGEN_STURM_CUH

#include "common/simt/scalar.cuh"

namespace bqr {

/* A row of T, and the square of the entry before its diagonal. */
struct alignas(16) sturm_row {
  double d, square;
};

/* What is known of T - x. */
struct sturm_point {
  double x, minor; /* the whole matrix's determinant */
  int below;       /* eigenvalues below x */
};

constexpr double sturm_lost = 0x1p-800; /* minors below it may be anything */

__device__ __forceinline__ uint32_t sign_bits(double x) {
#ifdef __CUDA_ARCH__
  return static_cast<uint32_t>(__double2hiint(x));
#else
  uint64_t u;
  std::memcpy(&u, &x, sizeof u);
  return static_cast<uint32_t>(u >> 32);
#endif
}

/* N: n, or 0, where that is not known when compiled. False: signs may be lost. */
template <int N>
__device__ __forceinline__ bool sturm_at(const sturm_row *rows, int n, double x, sturm_point &to) {
  double before = 1, minor = rows[0].d - x;
  uint32_t below = sign_bits(minor) >> 31;
#pragma unroll(N ? N : 8)
  for (int i = 1; i < (N ? N : n); i++) {
    const sturm_row row = rows[i];
    const double next = fused(row.d - x, minor, -(row.square * before));
    below += (sign_bits(next) ^ sign_bits(minor)) >> 31;
    before = minor;
    minor = next;
  }
  to = {x, minor, static_cast<int>(below)};
  return fabs(minor) > sturm_lost || fabs(before) > sturm_lost;
}

/* What is known of an eigenvalue: points of which one is not above it and one is, and whether the minors
 * there are those of a point. */
struct sturm_interval {
  sturm_point low, high;
  bool known_low, known_high;
};

/* Point i of `points` at which threads look first; powers of two are not among them. */
__device__ __forceinline__ double sturm_place(int i, int points) { return (2 * i + 1.0137) / points - 1; }

/* Of eigenvalue `index` of n, 0 being the least, from so many points in ascending order. */
__device__ __forceinline__ sturm_interval sturm_interval_of(const sturm_point *points, int number, int n,
                                                            int index) {
  int low = -1, high = number;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (points[middle].below <= index ? low : high) = middle;
  }
  return {low < 0 ? sturm_point{-1.01, 0, 0} : points[low],
          high == number ? sturm_point{1.01, 0, n} : points[high], low >= 0, high < number};
}

/* The eigenvalue: by bisection until it is the only one of the interval, then by interpolation, truncated and
 * projected (ITP; Oliveira and Takahashi, ACM Transactions on Mathematical Software 47, 2020): never more
 * than two steps more than by bisection. */
template <int N> class sturm_search {
public:
  __device__ __forceinline__ sturm_search(const sturm_row *rows, int n, int index)
      : rows_(rows), n_(n), index_(index) {}

  /* Narrows the interval to 2^-52; or until it is narrower than `apart` and has other eigenvalues. False:
   * signs may be lost. */
  __device__ __forceinline__ bool run(sturm_interval from, double apart) {
    sturm_point &low = from.low, &high = from.high;
    constexpr double narrow = 0x1p-52;
    double room = 0,
           first = 0; /* of interpolation: how far it may go from bisection; 0.2 over its first width */
    bool sound = true;
    for (int step = 0; step < 2 * 64 && high.x - low.x > narrow && sound; step++) {
      const double width = high.x - low.x, middle = 0.5 * (low.x + high.x);
      const bool alone = high.below - low.below == 1;
      if (!alone && width < apart) break;
      double x = middle;
      if (alone && from.known_low && from.known_high) {
        if (room == 0) {
          room = 2 * width;
          first = 0.2 * fast_recip(width);
        }
        const double reach = room - 0.5 * width;
        const bool reaches = reach > 0.3 * width;
        if (reaches) x = interpolated(low, high, middle, fmax(first * width * width, 0.5 * narrow), reach);
        room = reaches ? 0.5 * room : 0; /* else it begins anew after a bisection */
      }
      sturm_point at;
      sound = sturm_at<N>(rows_, n_, x, at);
      if (at.below <= index_) {
        low = at;
        from.known_low = true;
      } else {
        high = at;
        from.known_high = true;
      }
    }
    value_ = 0.5 * (low.x + high.x);
    alone_ = high.below - low.below == 1;
    return sound;
  }

  __device__ __forceinline__ double value() const { return value_; }
  __device__ __forceinline__ bool alone() const { return alone_; }

private:
  __device__ __forceinline__ static double interpolated(const sturm_point &low, const sturm_point &high,
                                                        double middle, double shift, double room) {
    const double zero = fused(-(high.minor * (high.x - low.x)), fast_recip(high.minor - low.minor), high.x),
                 away = middle - zero, truncated = fabs(away) > shift ? zero + copysign(shift, away) : middle,
                 x = fabs(truncated - middle) <= room ? truncated : middle - copysign(room, away);
    return x > low.x && x < high.x ? x : middle; /* not so for NaN */
  }

  const sturm_row *rows_;
  int n_, index_;
  double value_ = 0;
  bool alone_ = false;
};

} // namespace bqr

#endif
