/* SPDX-License-Identifier: BSD-3-Clause */
/* The reflector of the on-chip families, larfg_in_range(), which compiles for the host too: H is unitary and
 * H^H (alpha; x) = (beta; 0), whatever the lengths of alpha and x next to each other; beta >= 0 if asked for.
 */
#include <cmath>
#include <complex>
#include <cstdio>
#include <limits>
#define __host__
#define __device__
#define __forceinline__ inline
using std::copysign, std::fabs; /* as CUDA has them, for float too */
#include "common/panel/columns.cuh"

namespace {
using bqr::real_t;
using wide = std::complex<long double>;

template <class T> T make(double re, double im) {
  if constexpr (bqr::is_complex<T>)
    return T{static_cast<real_t<T>>(re), static_cast<real_t<T>>(im)};
  else
    return static_cast<T>(re);
}
template <class T> wide widened(T x) { return {bqr::real_part(x), bqr::imag_part(x)}; }

/* Errors in units of the rounding. */
struct errors {
  long double unitary, result;
};
template <class T> errors errors_of(T alpha, T x, const bqr::column_reflector<T> &h) {
  const long double eps = bqr::limits<real_t<T>>::eps;
  const wide v = widened(T(x * h.scale)), tau = widened(h.tau), a = widened(alpha), b = widened(x);
  const wide w = std::conj(tau) * (a + std::conj(v) * b);
  const long double norm = std::sqrt(std::norm(a) + std::norm(b));
  return {std::abs(std::abs(1.0L - tau * (1 + std::norm(v))) - 1) / eps,
          (std::abs(a - w - wide(h.beta)) + std::abs(b - w * v)) / (norm * eps)};
}

/* How many reflectors are wrong. */
template <class T> int check(const char *type) {
  constexpr double bound = 30;
  const int digits = sizeof(real_t<T>) == 4 ? 24 : 53;
  int wrong = 0;
  for (int e = 0; e < digits + 8; e++)
    for (int turn = 0; turn < 16; turn++)
      for (int kind = 0; kind < 12; kind++) {
        const double angle = 0.1 + 0.4 * turn, rest = std::ldexp(1 + 0.05 * kind, -e);
        const double im = kind % 3 == 0 ? 0 : kind % 3 == 1 ? std::sin(angle) : std::ldexp(1.0, e - digits);
        const T small = make<T>(rest * std::cos(2 * angle), rest * std::sin(2 * angle));
        const T large = make<T>(kind % 3 == 0 ? (turn % 2 ? -1.25 : 1.25) : std::cos(angle), im);
        const bool swap = kind >= 6;
        const T alpha = swap ? small : large, x = kind == 11 ? bqr::zero<T>() : swap ? large : small;
        for (int positive = 0; positive < 2; positive++) {
          const auto h = bqr::larfg_in_range(alpha, bqr::abs2(x), positive != 0);
          const errors found = errors_of(alpha, x, h);
          if (found.unitary < bound && found.result < bound && (!positive || h.beta >= 0)) continue;
          std::printf("%s, alpha %g %g, x %g %g%s: beta %g, |H^H H - I| %Lg eps, |H^H a - b| %Lg eps\n", type,
                      double(bqr::real_part(alpha)), double(bqr::imag_part(alpha)), double(bqr::real_part(x)),
                      double(bqr::imag_part(x)), positive ? ", positive" : "", double(h.beta), found.unitary,
                      found.result);
          wrong++;
        }
      }
  return wrong;
}

/* Columns that are zero, or next to nothing, or not finite. */
template <class T> bool edges_hold() {
  using R = real_t<T>;
  const R tiny = std::sqrt(bqr::column_range<R>::tail) / 4, huge = std::numeric_limits<R>::infinity();
  auto reflector = [](R alpha, R ss) { return bqr::larfg_in_range(make<T>(alpha, 0), ss, true); };
  const auto zero = reflector(0, 0), kept = reflector(2, 0), turned = reflector(-2, 0);
  const auto nothing = reflector(-tiny, tiny * tiny), infinite = reflector(huge, 1);
  return zero.beta == 0 && bqr::is_zero(zero.tau) && kept.beta == 2 && bqr::is_zero(kept.tau) &&
         turned.beta == 2 && bqr::real_part(turned.tau) == 2 && nothing.beta == tiny &&
         bqr::real_part(nothing.tau) == 2 && bqr::is_zero(nothing.scale) && !bqr::is_finite(infinite.tau);
}
} // namespace

int main() {
  const bool edges = edges_hold<float>() && edges_hold<double>() && edges_hold<bqr::complex_float>() &&
                     edges_hold<bqr::complex_double>();
  if (!edges) std::puts("columns at the edges");
  const int wrong = check<float>("s") + check<double>("d") + check<bqr::complex_float>("c") +
                    check<bqr::complex_double>("z");
  return edges && wrong == 0 ? 0 : 1;
}
