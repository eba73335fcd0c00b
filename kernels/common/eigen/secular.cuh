/* SPDX-License-Identifier: BSD-3-Clause */
/* A root of the secular equation 1 / rho + sum z(i)^2 / (d(i) - lambda) = 0, d ascending, as LAPACK's xLAED4
 * finds it: by rational interpolation with the two poles beside it, safeguarded by bisection. It comes out as
 * its distance from the nearer pole, so that lambda - d(i) is accurate for all i. LANES lanes of a warp,
 * whole groups of them, share the poles of one root. */
#ifndef BQR_KERNELS_COMMON_EIGEN_SECULAR_CUH
#define BQR_KERNELS_COMMON_EIGEN_SECULAR_CUH

#include "common/simt/warp.cuh"

namespace bqr {

template <class R> struct secular_root {
  int origin;
  R distance; /* lambda - d(origin) */
  bool converged;
};

template <class R, int LANES = 1> class secular {
  static constexpr int most_steps = 60;

public:
  /* number: of poles. */
  __device__ __forceinline__ secular(const R *d, const R *z, int number, R rho)
      : d_(d), z_(z), number_(number), inverse_rho_(R(1) / rho), rho_(rho) {}

  /* Between poles j and j + 1; the last one beyond the last pole. */
  __device__ __forceinline__ secular_root<R> find(int j) {
    if (number_ == 1) return {0, rho_ * z_[0] * z_[0], true};
    last_ = j == number_ - 1;
    lower_ = last_ ? j - 1 : j;
    if (last_)
      begin_at_end();
    else
      begin_between(j);
    return iterate();
  }

private:
  /* 1 / rho + psi + phi: psi of the poles up to lower_, phi of those beyond. */
  struct sums {
    R psi, phi, psi_slope, phi_slope;
  };

  __device__ __forceinline__ static int lane() { return LANES > 1 ? lane_id() % LANES : 0; }
  __device__ __forceinline__ static R sum(R x) {
    constexpr unsigned lanes = full_mask >> (warp_lanes - LANES);
    return group_sum<LANES>(x, lanes << (lane_id() - lane()));
  }
  __device__ __forceinline__ void add(int i, R t, R &value, R &slope) const {
    const R q = z_[i] * fast_recip((d_[i] - origin_value_) - t);
    value = fused(z_[i], q, value);
    slope = fused(q, q, slope);
  }
  __device__ __forceinline__ sums evaluate(R t) const {
    sums s = {0, 0, 0, 0};
#pragma unroll 4
    for (int i = lane(); i <= lower_; i += LANES) add(i, t, s.psi, s.psi_slope);
#pragma unroll 4
    for (int i = number_ - 1 - lane(); i > lower_; i -= LANES) add(i, t, s.phi, s.phi_slope);
    if constexpr (LANES > 1) s = {sum(s.psi), sum(s.phi), sum(s.psi_slope), sum(s.phi_slope)};
    return s;
  }

  __device__ __forceinline__ void set_origin(int i) {
    origin_ = i;
    origin_value_ = d_[i];
    below_ = d_[lower_] - origin_value_;
    above_ = d_[lower_ + 1] - origin_value_;
  }

  /* The value in the middle says which pole is nearer; from there a quadratic equation, in which the other
   * poles are what they are in the middle. */
  __device__ __forceinline__ void begin_between(int j) {
    set_origin(j);
    const R gap = above_, middle = R(0.5) * gap;
    const sums s = evaluate(middle);
    const R za = z_[j] * z_[j], zb = z_[j + 1] * z_[j + 1];
    const R value = inverse_rho_ + s.psi + s.phi;
    const R c = value + za / middle - zb / middle;
    if (value >= 0) {
      const R a = fused(c, gap, za + zb), b = za * gap, root = sqrt(fabs(fused(a, a, -4 * b * c)));
      t_ = a > 0 ? 2 * b / (a + root) : (a - root) / (2 * c);
      lo_ = 0;
      hi_ = middle;
    } else {
      set_origin(j + 1);
      const R a = fused(c, gap, -(za + zb)), b = zb * gap, root = sqrt(fabs(fused(a, a, 4 * b * c)));
      t_ = a < 0 ? 2 * b / (a - root) : -(a + root) / (2 * c);
      lo_ = -middle;
      hi_ = 0;
    }
  }

  __device__ __forceinline__ void begin_at_end() {
    const int n = number_ - 1;
    set_origin(n);
    R norm2 = 0;
    for (int i = lane(); i <= n; i += LANES) norm2 = fused(z_[i], z_[i], norm2);
    if constexpr (LANES > 1) norm2 = sum(norm2);
    lo_ = 0;
    hi_ = rho_ * norm2 * (1 + 16 * limits<R>::eps);
    const R middle = R(0.5) * hi_, za = z_[n - 1] * z_[n - 1], zb = z_[n] * z_[n], gap = -below_;
    const sums s = evaluate(middle);
    const R value = inverse_rho_ + s.psi + s.phi;
    const R c = value + za / (gap + middle) + zb / middle;
    const R a = fused(-c, gap, za + zb), b = zb * gap, root = sqrt(fused(a, a, 4 * b * c));
    t_ = a < 0 ? 2 * b / (root - a) : (a + root) / (2 * c);
    (value <= 0 ? lo_ : hi_) = middle;
  }

  __device__ __forceinline__ secular_root<R> iterate() {
    bool middle_way = false;
    R before = 0;
    for (int step = 0; step < most_steps; step++) {
      if (!(t_ > lo_ && t_ < hi_)) t_ = R(0.5) * (lo_ + hi_);
      const sums s = evaluate(t_);
      const R value = inverse_rho_ + s.psi + s.phi, slope = s.psi_slope + s.phi_slope;
      const R error = 8 * (fabs(s.phi) + fabs(s.psi)) + 2 * inverse_rho_ + fabs(t_) * slope;
      if (fabs(value) <= limits<R>::eps * error) return {origin_, t_, true};
      (value < 0 ? lo_ : hi_) = t_;
      if (step > 0 && value * before > 0 && fabs(value) > R(0.1) * fabs(before)) middle_way = !middle_way;
      before = value;
      const R next = t_ + correction(s, value, slope, middle_way);
      if (next == t_ || !(R(0.5) * (lo_ + hi_) > lo_ && R(0.5) * (lo_ + hi_) < hi_))
        return {origin_, t_, true};
      /* where steps are small and the bracket is not, the root may be far: halve it from time to time */
      t_ = step % 8 == 7 ? R(0.5) * (lo_ + hi_) : next;
    }
    return {origin_, t_, false};
  }

  /* The root of c + s / (below - t) + S / (above - t), which agrees with value and slope here. */
  __device__ __forceinline__ R correction(const sums &s, R value, R slope, bool middle_way) const {
    const R p = below_ - t_, q = above_ - t_;
    R c;
    if (middle_way || last_)
      c = value - p * s.psi_slope - q * s.phi_slope;
    else if (origin_ == lower_)
      c = value - q * slope - (below_ - above_) * square(z_[lower_] / p);
    else
      c = value - p * slope - (above_ - below_) * square(z_[lower_ + 1] / q);
    if (last_) c = fabs(c);
    const R a = (p + q) * value - p * q * slope, b = p * q * value,
            root = sqrt(fabs(fused(a, a, -4 * b * c)));
    R step;
    if (c == 0)
      step = b / a;
    else if (last_)
      step = a >= 0 ? (a + root) / (2 * c) : 2 * b / (a - root);
    else
      step = a <= 0 ? (a - root) / (2 * c) : 2 * b / (a + root);
    return value * step < 0 ? step : -value / slope; /* NaN too */
  }
  __device__ __forceinline__ static R square(R x) { return x * x; }

  const R *d_, *z_;
  int number_, lower_ = 0, origin_ = 0;
  R inverse_rho_, rho_, origin_value_ = 0, below_ = 0, above_ = 0, lo_ = 0, hi_ = 0, t_ = 0;
  bool last_ = false;
};

} // namespace bqr

#endif
