/* SPDX-License-Identifier: BSD-3-Clause */
/* The eigenvectors of tridiagonal matrices that a thread of syevd_tridiagonal finds, twisted_in_place, which
 * compiles for the host too: (T - x) z is small, and what is said of it is true. A kernel would not show that
 * it is wrong, since members whose vectors are not accurate are left to another way. */
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>
#define __host__
#define __device__
#define __forceinline__ inline
using std::copysign, std::fabs; /* as CUDA has them, for float too */
#include "families/syevd/twisted_in_place.cuh"

namespace {

struct tridiagonal {
  std::vector<bqr::sturm_row> rows;
  std::vector<double> e;
};

enum { NORMAL, TOEPLITZ, WILKINSON, GRADED, NEARLY_SPLIT, NUM_KINDS };

/* Of norm 1 at most. */
tridiagonal make(int kind, int n, std::mt19937 &random) {
  std::normal_distribution<double> normal;
  tridiagonal t{std::vector<bqr::sturm_row>(static_cast<size_t>(n)),
                std::vector<double>(static_cast<size_t>(n))};
  for (int i = 0; i < n; i++) {
    double &d = t.rows[static_cast<size_t>(i)].d, &e = t.e[static_cast<size_t>(i)];
    const double scale = kind == GRADED ? std::ldexp(1.0, -i) : 1;
    d = kind == TOEPLITZ ? 2 : kind == WILKINSON ? std::fabs(i - (n - 1) / 2.0) : normal(random) * scale;
    e = kind == TOEPLITZ || kind == WILKINSON ? 1
        : kind == NEARLY_SPLIT                ? 1e-6 * normal(random)
                                              : normal(random) * scale;
  }
  double norm = 0;
  for (int i = 0; i < n; i++) {
    const size_t k = static_cast<size_t>(i);
    norm =
        std::fmax(norm, fabs(t.rows[k].d) + (i > 0 ? fabs(t.e[k - 1]) : 0) + (i < n - 1 ? fabs(t.e[k]) : 0));
  }
  for (int i = 0; i < n; i++) {
    const size_t k = static_cast<size_t>(i);
    t.rows[k].d /= norm;
    t.e[k] = i < n - 1 ? t.e[k] / norm : 0;
    t.rows[k].square = i > 0 ? t.e[k - 1] * t.e[k - 1] : 0;
  }
  return t;
}

/* Eigenvalues below x. */
int count_below(const tridiagonal &t, long double x) {
  long double pivot = 1;
  int below = 0;
  for (const bqr::sturm_row &row : t.rows) {
    pivot = row.d - x - row.square / (pivot == 0 ? 1e-4000L : pivot);
    below += pivot < 0;
  }
  return below;
}
double eigenvalue(const tridiagonal &t, int j) {
  long double low = -1.01L, high = 1.01L;
  for (int step = 0; step < 80; step++) {
    const long double middle = (low + high) / 2;
    (count_below(t, middle) > j ? high : low) = middle;
  }
  return static_cast<double>((low + high) / 2);
}

/* Whether the vector of eigenvalue x in column j of z, n x n by rows, is one. */
bool check(const tridiagonal &t, int j, double x, std::vector<double> &z) {
  const int n = static_cast<int>(t.rows.size());
  const bqr::twisted_rest rest = bqr::twisted_in_place(t.rows.data(), t.e.data(), n, x, z.data() + j).run();
  const auto at = [&](int i) -> long double {
    return i < 0 || i >= n ? 0 : z[static_cast<size_t>(i) * static_cast<size_t>(n) + static_cast<size_t>(j)];
  };
  long double norm2 = 0, left2 = 0;
  for (int i = 0; i < n; i++) {
    const size_t k = static_cast<size_t>(i);
    const long double left = (t.rows[k].d - static_cast<long double>(x)) * at(i) + t.e[k] * at(i + 1) +
                             (i > 0 ? t.e[k - 1] : 0) * at(i - 1);
    norm2 += at(i) * at(i);
    left2 += left * left;
  }
  const double eps = std::numeric_limits<double>::epsilon(), norm = static_cast<double>(std::sqrt(norm2)),
               left = static_cast<double>(std::sqrt(left2)) / norm;
  return fabs(rest.inverse * norm - 1) <= 100 * eps && left <= n * eps && rest.residual <= n * eps &&
         fabs(rest.shift) <= rest.residual && fabs(left - rest.residual) <= n * eps;
}

} // namespace

int main() {
  std::mt19937 random(7);
  int wrong = 0, all = 0;
  for (int kind = 0; kind < NUM_KINDS; kind++)
    for (const int n : {2, 3, 4, 5, 8, 13, 16, 31, 32, 33, 64, 100}) {
      const tridiagonal t = make(kind, n, random);
      std::vector<double> z(static_cast<size_t>(n) * static_cast<size_t>(n));
      for (int j = 0; j < n; j++, all++) {
        if (check(t, j, eigenvalue(t, j), z)) continue;
        if (wrong++ < 10) std::printf("kind %d, n = %d: vector %d is wrong\n", kind, n, j);
      }
    }
  if (wrong) std::printf("%d of %d vectors are wrong\n", wrong, all);
  return wrong > 0;
}
