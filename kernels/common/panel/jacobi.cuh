/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided Jacobi by a block of threads: columns are rotated in pairs until all are orthogonal to one
 * another, as in LAPACK's xGESVJ. A round has as many pairs as there can be, a squad for each; n - 1 rounds
 * (n if n is odd) make a sweep. Columns whose squared norm is below span::least2 are left alone. */
#ifndef BQR_KERNELS_COMMON_PANEL_JACOBI_CUH
#define BQR_KERNELS_COMMON_PANEL_JACOBI_CUH

#include "common/matrix/view.cuh"
#include "common/simt/squad.cuh"
#include "exponents.cuh"

namespace bqr {

constexpr int most_sweeps = 30;

/* (x, y) := (cosine x - sine y, sine x + cosine y) with y := y conj(phase) before. */
template <class T> struct rotation {
  real_t<T> cosine, sine;
  T phase;

  BQR_INLINE void apply(T &x, T &y) const {
    const T p = x, q = y * phase;
    x = scaled_add(q, -sine, scaled(p, cosine));
    y = scaled_add(q, cosine, scaled(p, sine));
  }
};

/* Of columns with squared norms a and b whose product is x^H y = product. False: they are orthogonal.
 * cosine_before: of the angle between them; moved: what b gets of a. */
template <class T>
BQR_INLINE bool find_rotation(real_t<T> a, real_t<T> b, T product, real_t<T> tolerance, rotation<T> &r,
                              real_t<T> &cosine_before, real_t<T> &moved) {
  using R = real_t<T>;
  if (!(a > span<R>::least2 && b > span<R>::least2)) return false;
  const R ra = fast_rsqrt(a), rb = fast_rsqrt(b);
  const T angle = scaled(scaled(product, ra), rb); /* its cosine */
  const R c2 = abs2(angle);
  if (!(c2 > tolerance * tolerance)) return false;
  const R rc = fast_rsqrt(c2);
  r.phase = conj(scaled(angle, rc));
  const R apart = b > a ? (b - a) * rb * ra : (b - a) * ra * rb; /* in an order that does not overflow */
  const R zeta = R(0.5) * apart * rc, z = fabs(zeta), root2 = fused(z, z, R(1));
  const R t = copysign(fast_recip(z > span<R>::far ? 2 * z : fused(root2, fast_rsqrt(root2), z)), zeta);
  r.cosine = fast_rsqrt(fused(t, t, R(1)));
  r.sine = r.cosine * t;
  cosine_before = c2 * rc;
  moved = t * cosine_before * (a * ra) * (b * rb);
  return true;
}
template <class T>
BQR_INLINE bool find_rotation(real_t<T> a, real_t<T> b, T product, real_t<T> tolerance, rotation<T> &r) {
  real_t<T> angle, moved;
  return find_rotation(a, b, product, tolerance, r, angle, moved);
}

/* Columns x and y of `rows` rows, EACH of them at most for a lane; 0: any number, from memory twice. Null:
 * none. */
template <int EACH, class T>
__device__ __forceinline__ bool rotate(const squad &s, T *x, T *y, int rows, real_t<T> tolerance,
                                       rotation<T> &r) {
  using R = real_t<T>;
  constexpr int held = EACH > 0 ? EACH : 1;
  T xs[held], ys[held], product = zero<T>();
  R a = 0, b = 0;
  const auto add = [&](T p, T q) {
    a = abs2_add(p, a);
    b = abs2_add(q, b);
    product = cmadd(p, q, product);
  };
  if constexpr (EACH > 0) {
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int i = s.lane + e * s.lanes;
      const bool there = x && i < rows;
      xs[e] = there ? x[i] : zero<T>();
      ys[e] = there ? y[i] : zero<T>();
      add(xs[e], ys[e]);
    }
  } else {
    for (int i = s.lane; x && i < rows; i += s.lanes) add(x[i], y[i]);
  }
  a = squad_sum(s, a);
  b = squad_sum(s, b);
  product = squad_sum(s, product);
  if (!find_rotation(a, b, product, tolerance, r)) return false;
  if constexpr (EACH > 0) {
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int i = s.lane + e * s.lanes;
      if (i >= rows) break;
      r.apply(xs[e], ys[e]);
      x[i] = xs[e];
      y[i] = ys[e];
    }
  } else {
    for (int i = s.lane; i < rows; i += s.lanes) r.apply(x[i], y[i]);
  }
  return true;
}

/* The two of pair i in a round of n players, n even: all meet once in n - 1 rounds. */
BQR_INLINE void meet(int i, int round, int n, int &p, int &q) {
  const int others = n - 1;
  p = i == 0 ? others : (round + i) % others;
  q = i == 0 ? round : (round - i + others) % others;
}

/* Rotates the columns of x, and those of w (of any number of rows) likewise. False: still not orthogonal
 * after most_sweeps. */
template <int EACH, class T>
__device__ bool orthogonalize(const squad &s, const matrix_view<T> &x, const matrix_view<T> &w) {
  using R = real_t<T>;
  const int n = x.cols + x.cols % 2;
  const R tolerance = limits<R>::eps * (2 * sqrt(static_cast<R>(x.rows)) + 4);
  for (int sweep = 0; sweep < most_sweeps; sweep++) {
    bool rotated = false;
    for (int round = 0; round < n - 1; round++) {
      for_columns(s, n / 2, [&](int i) {
        int p = n, q = n;
        if (i >= 0) meet(i, round, n, p, q);
        const bool both = p < x.cols && q < x.cols;
        rotation<T> r;
        if (!rotate<EACH>(s, both ? x.at(0, p) : nullptr, both ? x.at(0, q) : nullptr, x.rows, tolerance, r))
          return;
        rotated = true;
        for (int k = s.lane; k < w.rows; k += s.lanes) r.apply(*w.at(k, p), *w.at(k, q));
      });
      block_sync();
    }
    if (!block_any(rotated)) return true;
  }
  return x.cols < 2;
}

/* place[j] := the number of values before values[j] in descending (or ascending) order, equal ones in theirs.
 */
template <class R>
__device__ __forceinline__ void find_places(const R *values, int n, bool ascending, int *place) {
  for (int j = thread_id(); j < n; j += num_threads()) {
    const R mine = values[j];
    int before = 0;
    for (int i = 0; i < n; i++)
      before += (ascending ? values[i] < mine : values[i] > mine) || (values[i] == mine && i < j);
    place[j] = before;
  }
}

/* What makes the first of the largest entries of a column real and positive: a number of magnitude 1; and
 * that entry's row. */
template <class T> struct sign {
  T phase;
  int row;

  BQR_INLINE T of(T x, int i) const {
    const T z = x * phase;
    return i == row ? make<T>(real_part(z)) : z;
  }
};

/* That of a column with z, not 0, in that row. */
template <class T> BQR_INLINE sign<T> sign_of(T z, int row) {
  if constexpr (is_complex<T>)
    return {scaled(conj(z), real_t<T>(1) / sqrt(abs2(z))), row};
  else
    return {z < 0 ? T(-1) : T(1), row};
}

template <class T> __device__ __forceinline__ sign<T> find_sign(const squad &s, const T *x, int rows) {
  using R = real_t<T>;
  R most = 0;
  int at = rows;
  for (int i = s.lane; x && i < rows; i += s.lanes) {
    const R here = abs2(x[i]);
    if (here > most) {
      most = here;
      at = i;
    }
  }
  for (int d = s.lanes / 2; d > 0; d /= 2) {
    const R other = exchange(most, d);
    const int other_at = exchange(at, d);
    if (other > most || (other == most && other_at < at)) {
      most = other;
      at = other_at;
    }
  }
  return x && at < rows ? sign_of(x[at], at) : sign<T>{one<T>(), rows};
}

/* The leading dimension of columns in shared memory, read by squads of that many lanes side by side: the
 * accesses of a warp lie in different banks. */
template <class T> BQR_INLINE int squad_ld(int rows, int lanes) {
  constexpr int units = 128 / static_cast<int>(sizeof(T));
  if (lanes >= units) return rows;
  int ld = rows;
  while (ld % units != lanes) ld++;
  return ld;
}

} // namespace bqr

#endif
