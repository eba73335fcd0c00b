/* SPDX-License-Identifier: BSD-3-Clause */
/* The elementary reflector, LAPACK's xLARFG and xLARFGP: H = I - tau v v^H with v(0) = 1 and
 * H^H (alpha; x) = (beta; 0), beta real.
 *
 * Norms are plain sums of squares, followed by one range test. Only a column outside the safe range is
 * summed again, multiplied by a power of two:
 *
 *   R ss = sum(abs2(x_i));
 *   R pre = norm_prescale(abs2_add(alpha, ss), positive);
 *   if (pre != 1) ss = sum(abs2(scaled(x_i, pre)));
 *   reflector<T> h = larfg(alpha, ss, pre, positive);
 *   v_i = h.v(x_i);
 *
 * The sums must be the same in all threads that take the branch together. */
#ifndef BQR_KERNELS_COMMON_PANEL_LARFG_CUH
#define BQR_KERNELS_COMMON_PANEL_LARFG_CUH

#include "common/simt/scalar.cuh"

namespace bqr {

template <class T> struct reflector {
  T tau;
  real_t<T> beta;
  real_t<T> pre;
  T scale;

  /* The entry of v for the entry x of the column. Two factors: 1 / (alpha - beta) overflows for a column of
   * subnormals. */
  BQR_INLINE T v(T x) const { return pre == 1 ? x * scale : scaled(x, pre) * scale; }
};

/* 1, or what to multiply a column by whose |alpha|^2 + |x|^2 is unusable. NaN counts as too large. With
 * `positive`, |x|^2 must be accurate also where it is a small part of the sum. */
template <class R> BQR_INLINE R norm_prescale(R norm2, bool positive) {
  using L = limits<R>;
  if (norm2 >= (positive ? L::norm_part_lo : L::norm_lo) && norm2 <= L::norm_hi) return R(1);
  return norm2 < L::norm_lo ? L::norm_up : norm2 <= L::norm_hi ? L::norm_mid : L::norm_down;
}

/* The tau in a direction with which H is unitary, v being of this squared norm. */
template <class T> BQR_INLINE T unitary_tau(T direction, real_t<T> norm2) {
  return scaled(direction, 2 * real_part(direction) / (abs2(direction) * norm2));
}

/* With alpha and beta of the same sign alpha - beta is small, and v long: tau as the formulas have it is then
 * known to so few of its last digits that orthogonality shows it. This one is v's own. scale: v is the rest
 * multiplied by it; ss: the rest's squared norm. */
template <class T> BQR_INLINE T tau_of_long(T tau, T scale, real_t<T> ss) {
  using R = real_t<T>;
  const T w = scaled(scale, ss);
  const R norm2 = fused(real_part(w), real_part(scale), fused(imag_part(w), imag_part(scale), R(1)));
  if constexpr (is_complex<T>)
    return unitary_tau(tau, norm2);
  else
    return 2 / norm2;
}

/* tau of H = I: zero, or NaN where alpha is not finite. */
template <class T> BQR_INLINE T tau_of_identity(T alpha) {
  return make<T>(real_t<T>(0) * static_cast<real_t<T>>(fabs(real_part(alpha))));
}

/* ss: the squared norm of the rest x, of pre * x where pre is not 1; alpha as it is. If `positive`,
 * beta >= 0. A zero rest gives tau = 0, H = I, as LAPACK does (unless alpha must be turned to become real
 * or positive). Columns with NaN or Inf, or whose norm overflows, give non-finite tau and beta. */
template <class T> BQR_INLINE reflector<T> larfg(T alpha, real_t<T> ss, real_t<T> pre, bool positive) {
  using R = real_t<T>;
  using L = limits<R>;
  T a = pre == 1 ? alpha : scaled(alpha, pre);
  R ar = real_part(a), ai = imag_part(a);
  R norm2 = abs2_add(a, ss);
  bool away = positive && ar > 0; /* alpha and beta have the same sign */
  /* The rest is below the rounding of alpha: drop it. What the formulas below give for it is a reflector
   * along x with tau next to nothing and a huge v, of no more use. */
  bool dropped = away && (ss < L::negligible * norm2 || ss == 0);
  if (dropped) {
    ss = 0;
    norm2 = abs2(a);
  }
  if (ss == 0 && ai == 0 && !(positive && ar < 0))
    return {tau_of_identity(alpha), real_part(alpha), R(1), zero<T>()};

  R rnorm = fast_rsqrt(norm2), norm = norm2 * rnorm;
  norm = fused(fused(-norm, norm, norm2), R(0.5) * rnorm, norm);
  bool plus = positive || ar < 0;
  R beta = plus ? norm : -norm, rbeta = plus ? rnorm : -rnorm;
  /* d = alpha - beta without cancellation */
  R dr = away ? -abs2_add(make<T>(ai), ss) * fast_recip(norm + ar) : ar - beta;
  reflector<T> h;
  h.pre = pre;
  h.beta = pre == 1 ? beta : beta / pre;
  if constexpr (is_complex<T>) {
    h.tau = T{-dr * rbeta, -ai * rbeta};
    /* 1 / d = -conj(tau) / (beta |tau|^2), in this order because |d|^2 may underflow */
    R w = dropped ? R(0) : -fast_recip(abs2(h.tau));
    h.scale = scaled(scaled(conj(h.tau), w), rbeta);
  } else {
    h.tau = positive ? -dr / beta : -dr * rbeta;
    h.scale = dropped ? R(0) : fast_recip(dr);
  }
  if (away && !dropped) h.tau = tau_of_long(h.tau, h.scale, ss);
  return h;
}

} // namespace bqr

#endif
