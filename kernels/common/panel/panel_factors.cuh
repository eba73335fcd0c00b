/* SPDX-License-Identifier: BSD-3-Clause */
/* The small factors of a panel of 32 or 64 columns whose Householder vectors are made all at once, by one
 * block of 8 or 4 warps in double precision. From G = A^H A, R is the Cholesky factor. With A1 the panel's
 * first rows and S the signs of R's, A1 - S R = Y1 W is an LU factorization, whose pivots are sums of what
 * has the same sign; then V = A W^-1, of which Y1 are the first rows, and T = -U S Y1^-H with U = W R^-1. (G.
 * Ballard, J. Demmel et al., Reconstructing Householder vectors from tall-skinny QR, 2014.) For an R whose
 * diagonal is not negative S is I, and pivots may be next to nothing: see are_far_from_zero().
 *
 * What it may lose is the square of the columns' condition number: see trace_of_rows(). */
#ifndef BQR_KERNELS_COMMON_PANEL_PANEL_FACTORS_CUH
#define BQR_KERNELS_COMMON_PANEL_PANEL_FACTORS_CUH

#include "common/matrix/member.cuh"
#include "panel_rows.cuh"
#include "common/ptx/approximate.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/mbarrier.cuh"

namespace bqr {
namespace panel_factors {

constexpr int warps = 8, threads = warps * warp_lanes;

/* The tiles of 16 x 8 on and above the diagonal of N x N. */
template <int N> struct upper_tiles {
  static constexpr int count = N / 16 * (N / 16 + 1), values = count * 4 * warp_lanes;

  /* f(number, I, J), constants: the tile's rows are from 16 I on, its columns from 8 J on. */
  template <class F> __device__ __forceinline__ static void each(F &&f) {
    static_for<N / 16>([&](auto down) {
      static_for<N / tile - 2 * decltype(down)::value>([&](auto right) {
        constexpr int I = decltype(down)::value, J = 2 * I + decltype(right)::value;
        f(std::integral_constant<int, J + I *(N / tile - 1 - I)>{}, down, std::integral_constant<int, J>{});
      });
    });
  }
  /* f(i, j): the place of value e, of those of all lanes by tiles and elements. */
  template <class F> __device__ __forceinline__ static void place(int e, F &&f) {
    const int lane = e % warp_lanes, h = e / warp_lanes % 4;
    int n = e / (4 * warp_lanes), I = 0;
    for (int in_row = N / tile; n >= in_row; in_row -= 2, I++) n -= in_row;
    f(16 * I + lane / 4 + 8 * (h / 2), tile * (2 * I + n) + 2 * (lane % 4) + h % 2);
  }
};

/* What goes with R, W and Y1. */
template <int N, class X = double> struct divisors {
  inverses<N, X> by_r, by_w, by_y; /* by_y: of Y1^H */
  double sign[N];                  /* S */
  X back[N];                       /* 1 / W(i, i) */
};

/* What tells warps that tiles of rows of R, or of Y1 and W, are there, or all of R and what goes with it. The
 * sanitizers follow these barriers, not named ones of some warps. */
template <int N, int WARPS = warps> struct row_barriers {
  phase_barrier r[N / tile], w[N / tile], all_r;

  /* A barrier must follow. */
  __device__ __forceinline__ void init() {
    if (thread_id() == 0) all_r.init(WARPS / 2 * warp_lanes);
    if (thread_id() >= N / tile) return;
    r[thread_id()].init(warp_lanes);
    w[thread_id()].init(warp_lanes);
  }
  /* Before their memory serves anything else. */
  __device__ __forceinline__ void end() {
    if (thread_id() == 0) all_r.end();
    if (thread_id() >= N / tile) return;
    r[thread_id()].end();
    w[thread_id()].end();
  }
};

/* Panels of four warps, of which a multiprocessor has several, wait for shared memory: rows above come into
 * theirs by matrix units, which takes a fifth of the reads. Those of eight are alone as a rule, and wait for
 * less where rows stay in registers. */
template <int WARPS> constexpr bool by_tiles = WARPS == 4;

/* Eight rows as operands: the lane's element s of tile J is in row g, column 8 J + 2 q + s. */
template <int N, class X = double> using rows8 = X[N / tile][2];
/* f(element, column), from tile `from` on */
template <int N, class X, class F>
__device__ __forceinline__ void each_of_rows8(rows8<N, X> &x, int from, F &&f) {
#pragma unroll
  for (int J = 0; J < N / tile; J++)
#pragma unroll
    for (int s = 0; s < 2; s++)
      if (J >= from) f(x[J][s], tile * J + 2 * (lane_id() % 4) + s);
}
/* c += a b */
template <class X> __device__ __forceinline__ void add_eight(X (&c)[2], X a0, X a1, const two<X> &b) {
  X sum[4] = {c[0], c[1], zero<X>(), zero<X>()};
  add_product(sum, {a0, a1, zero<X>(), zero<X>()}, b.v[0], b.v[1]);
  c[0] = sum[0], c[1] = sum[1];
}
/* Tile (K, J) of an upper triangle as an operand. */
template <int N, class X> __device__ __forceinline__ two<X> upper_operand(matrix<N, X> &a, int K, int J) {
  const int i = tile * K + 2 * (lane_id() % 4), j = tile * J + lane_id() / 4;
  return {a(i, j), a(i + 1, j)};
}
/* Eight rows of `a` from tile J's on := f(them), from tile `from` on. */
template <int N, class X, class F>
__device__ __forceinline__ void change_rows8(matrix<N, X> &a, int J, int from, F &&f) {
  const int row = J * tile + lane_id() / 4;
  rows8<N, X> x;
  each_of_rows8<N, X>(x, 0, [&](X &y, int j) { y = a(row, j); });
  f(x);
  warp_sync();
  each_of_rows8<N, X>(x, from, [&](X &y, int j) { a(row, j) = y; });
  warp_sync();
}

/* Tile J's rows of R, by one warp: lanes are columns, H the 32 of them that have the rows' diagonal. What the
 * next pivot needs comes first, and is known to all lanes, so that a row waits for little more than a
 * reciprocal. */
template <int H, int N, class X, int WARPS>
__device__ __forceinline__ void make_r(matrix<N, X> &r, row_barriers<N, WARPS> &rows, int J) {
  constexpr int parts = N / warp_lanes - H;
  const int top = J * tile, first = top % warp_lanes, lane = lane_id(), c = H * warp_lanes + lane;
  if (by_tiles<WARPS> && J > 0)
    change_rows8(r, J, J, [&](rows8<N, X> &sum) {
#pragma unroll 1
      for (int K = 0; K < J; K++) {
        rows.r[K].wait(0);
        const two<X> above = upper_operand(r, K, J);
#pragma unroll
        for (int j = 0; j < N / tile; j++)
          if (j >= J) add_eight(sum[j], -conj(above.v[0]), -conj(above.v[1]), upper_operand(r, K, j));
      }
    });
  X x[tile][parts];
#pragma unroll
  for (int i = 0; i < tile; i++)
#pragma unroll
    for (int u = 0; u < parts; u++) x[i][u] = r(top + i, c + warp_lanes * u);
#pragma unroll 1
  for (int K = 0; K < J && !by_tiles<WARPS>; K++) {
    rows.r[K].wait(0);
#pragma unroll
    for (int k = 0; k < tile; k++)
#pragma unroll
      for (int i = 0; i < tile; i++)
#pragma unroll
        for (int u = 0; u < parts; u++)
          x[i][u] = madd(-conj(r(K * tile + k, top + i)), r(K * tile + k, c + warp_lanes * u), x[i][u]);
  }
  double pivot = broadcast(real_part(x[0][0]), first);
#pragma unroll
  for (int k = 0; k < tile; k++) {
    const double guess = estimated_recip(pivot), root = estimated_rsqrt(pivot), near = pivot * root;
    double next2 = 0, corner = 0;
    if (k + 1 < tile) {
      const X next = broadcast(x[k][0], first + k + 1);
      next2 = real_part(conj(next) * next);
      corner = broadcast(real_part(x[k + 1][0]), first + k + 1);
    }
    const double e = fused(-pivot, guess, 1.0), share = next2 * guess, most = fused(-next2, guess, corner);
    const double e2 = fused(e, e, e), scale = refined_rsqrt(root, fused(-near, root, 1.0));
    pivot = fused(-share, e2, most);
    X factor[parts];
#pragma unroll
    for (int u = 0; u < parts; u++) {
      const X part = scaled(x[k][u], guess);
      factor[u] = scaled_add(part, e2, part);
    }
#pragma unroll
    for (int i = k + 1; i < tile; i++) {
      const X minus = -conj(broadcast(x[k][0], first + i));
#pragma unroll
      for (int u = 0; u < parts; u++) x[i][u] = madd(minus, factor[u], x[i][u]);
    }
#pragma unroll
    for (int u = 0; u < parts; u++)
      if (u > 0 || lane >= first + k) {
        X y = scaled(x[k][u], scale);
        if (is_complex<X> && u == 0 && lane == first + k) y = make<X>(real_part(y)); /* but for rounding */
        r(top + k, c + warp_lanes * u) = y;
      }
  }
  rows.r[J].arrive();
}

/* Those of Y1 in the columns of a tile of W's rows, in place: four lanes have a row. */
template <int N, class X>
__device__ __forceinline__ void solve(matrix<N, X> &lw, const divisors<N, X> &by, int top, int left) {
  const int row = top + lane_id() / 4, q = lane_id() % 4;
  X y[tile];
#pragma unroll
  for (int k = 0; k < tile; k++) y[k] = lw(row, left + k);
  warp_sync();
#pragma unroll
  for (int k = 0; k < tile; k++) {
    const X back = by.back[left + k];
#pragma unroll
    for (int j = k + 1; j < tile; j++) y[j] = madd(-(lw(left + k, left + j) * back), y[k], y[j]);
    if (k / 2 == q) lw(row, left + k) = y[k] * back;
  }
  warp_sync();
}

/* What is divided by a pivot. What follows from an estimate of a real one's reciprocal is only what refines
 * it, so that chains overlap. */
template <class X> struct quotients {
  X guess, e2, one, rest; /* rest: x - y / pivot */

  __device__ __forceinline__ static X estimate(X pivot) { return estimated_recip(pivot); }
  __device__ __forceinline__ quotients(X pivot, X estimate, X x, X y) : guess(estimate) {
    const X e = fused(-pivot, guess, 1.0), share = y * guess, most = fused(-y, guess, x);
    e2 = fused(e, e, e);
    one = fused(guess, e2, guess);
    rest = fused(-share, e2, most);
  }
  __device__ __forceinline__ X of(X x) const {
    const X part = x * guess;
    return fused(part, e2, part);
  }
};
template <class R> struct quotients<complex<R>> {
  using X = complex<R>;
  X one, rest;

  __device__ __forceinline__ static X estimate(X pivot) { return fast_recip(pivot); }
  __device__ __forceinline__ quotients(X, X inverse, X x, X y) : one(inverse), rest(madd(-y, inverse, x)) {}
  __device__ __forceinline__ X of(X x) const { return x * one; }
};

/* x >= 0 with the sign of the pivot, or, where `positive`, with a minus. */
__device__ __forceinline__ double signed_by(double x, double pivot, bool positive) {
  constexpr int sign = static_cast<int>(0x80000000u);
  return __hiloint2double(__double2hiint(x) | (positive ? sign : 0) | (__double2hiint(pivot) & sign),
                          __double2loint(x));
}

/* Those of Y1 and W likewise, and of by_w. */
template <int H, int N, class X, int WARPS>
__device__ __forceinline__ void make_lw(matrix<N, X> &lw, matrix<N, X> &r, divisors<N, X> &by,
                                        row_barriers<N, WARPS> &rows, bool positive, int J) {
  constexpr int parts = N / warp_lanes, tiles_of_part = warp_lanes / tile;
  const int top = J * tile, first = top % warp_lanes, c = lane_id();
  if (by_tiles<WARPS> && J > 0)
    change_rows8(lw, J, 0, [&](rows8<N, X> &sum) {
      static_for<N / tile - 1>([&](auto number) {
        constexpr int K = decltype(number)::value;
        if (K >= J) return;
        rows.w[K].wait(0);
        X y[2] = {};
        add_eight(y, sum[K][0], sum[K][1], by.by_w(K));
        sum[K][0] = y[0], sum[K][1] = y[1];
#pragma unroll
        for (int j = K + 1; j < N / tile; j++) add_eight(sum[j], -y[0], -y[1], upper_operand(lw, K, j));
      });
    });
  X x[tile][parts];
#pragma unroll
  for (int i = 0; i < tile; i++)
#pragma unroll
    for (int u = 0; u < parts; u++) x[i][u] = lw(top + i, c + warp_lanes * u);
  static_for<by_tiles<WARPS> ? 0 : H + 1>([&](auto part) {
    constexpr int h = decltype(part)::value;
#pragma unroll 1
    for (int K = h * tiles_of_part; K < least(J, (h + 1) * tiles_of_part); K++) {
      const int left = K * tile;
      rows.w[K].wait(0);
      if (c / tile == K % tiles_of_part)
#pragma unroll
        for (int i = 0; i < tile; i++) lw(top + i, left + c % tile) = x[i][h];
      warp_sync();
      solve(lw, by, top, left);
#pragma unroll
      for (int k = 0; k < tile; k++)
#pragma unroll
        for (int u = h; u < parts; u++) {
          const X w = lw(left + k, c + warp_lanes * u);
#pragma unroll
          for (int i = 0; i < tile; i++) x[i][u] = madd(-lw(top + i, left + k), w, x[i][u]);
        }
    }
  });
  X diagonal = broadcast(x[0][H], first), back = make<X>(1); /* the lane's column's 1 / W(c, c) */
  X row[parts], next = zero<X>();                            /* R's */
  double own = 0;
  auto read_r = [&](int i, bool last) {
#pragma unroll
    for (int u = H; u < parts; u++) row[u] = r(i, c + warp_lanes * u);
    own = real_part(r(i, i));
    if (!last) next = r(i, i + 1);
  };
  rows.r[J].wait(0);
  read_r(top, false);
#pragma unroll
  for (int k = 0; k < tile; k++) {
    const double turned = signed_by(1, real_part(diagonal), positive);
    const X pivot = diagonal + make<X>(signed_by(own, real_part(diagonal), positive));
    const X guess = quotients<X>::estimate(pivot);
    X w[parts], next2 = zero<X>(), corner = zero<X>();
#pragma unroll
    for (int u = H; u < parts; u++) w[u] = scaled_add(row[u], turned, x[k][u]);
    if (k + 1 < tile) {
      next2 = broadcast(x[k + 1][H], first + k) * scaled_add(next, turned, broadcast(x[k][H], first + k + 1));
      corner = broadcast(x[k + 1][H], first + k + 1);
      read_r(top + k + 1, k + 2 == tile);
    }
    const quotients<X> over(pivot, guess, corner, next2);
    diagonal = over.rest;
    X factor[parts];
#pragma unroll
    for (int u = H; u < parts; u++) factor[u] = u > H || c > first + k ? over.of(w[u]) : zero<X>();
#pragma unroll
    for (int i = k + 1; i < tile; i++) {
      const X minus = -broadcast(x[i][H], first + k);
#pragma unroll
      for (int u = H; u < parts; u++) x[i][u] = madd(minus, factor[u], x[i][u]);
    }
#pragma unroll
    for (int u = H; u < parts; u++)
      if (u > H || c >= first)
        lw(top + k, c + warp_lanes * u) = u > H || c >= first + k ? w[u] : x[k][u] * back;
    if (c == first + k) {
      back = over.one;
      by.sign[top + k] = -turned;
      by.back[top + k] = over.one;
    }
  }
  if (!by_tiles<WARPS>) rows.w[J].arrive();
  warp_sync();
  by.by_w.set(J, upper(lw));
  if (by_tiles<WARPS>) rows.w[J].arrive();
}

/* r: G's upper triangle becomes R; lw: A1 becomes Y1 and W. Half of the warps make R, a tile of rows each at
 * a time, the others Y1 and W, which takes longer; rows above come from other warps. f(number of a warp):
 * what those of R do then, when all of it and by_r are there. By all threads, after a barrier; ends with one.
 * positive: S = I. */
template <int N, class X, int WARPS, class F>
__device__ __forceinline__ void factor(matrix<N, X> &r, matrix<N, X> &lw, divisors<N, X> &by,
                                       row_barriers<N, WARPS> &rows, bool positive, F &&f) {
  constexpr int half = WARPS / 2, of_lanes = warp_lanes / tile;
  const int warp = broadcast(warp_id(), 0); /* so that it is known to be one number */
  static_for<N / warp_lanes>([&](auto number) {
    constexpr int H = decltype(number)::value;
    auto each = [&](auto &&f) {
#pragma unroll 1
      for (int i = 0; i < of_lanes / half; i++) f(warp % half + i * half + H * of_lanes);
    };
    if (warp < half)
      each([&](int J) { make_lw<H>(lw, r, by, rows, positive, J); });
    else {
      each([&](int J) {
        make_r<H>(r, rows, J);
        warp_sync();
        by.by_r.set(J, upper(r));
      });
      if ((H + 1) * of_lanes == N / tile) rows.all_r.arrive();
      each([&](int J) {
        rows.w[J].wait(0);
        by.by_y.set(J, lower_adjoint(lw));
      });
    }
  });
  if (warp >= half) {
    rows.all_r.wait(0);
    f(warp - half);
  }
  block_sync();
}
template <int N>
__device__ __forceinline__ void factor(matrix<N> &r, matrix<N> &lw, divisors<N> &by, row_barriers<N> &rows,
                                       bool positive) {
  factor(r, lw, by, rows, positive, [](int) {});
}

/* Whether the pivots, with S = I, are not small beside R's diagonal: what cancels in A1 - R then costs no
 * more than a few bits. By all threads, each with the same answer. */
template <int N, class X>
__device__ __forceinline__ bool are_far_from_zero(matrix<N, X> &r, const divisors<N, X> &by) {
  constexpr double most = 8;
  const int j = thread_id();
  return !block_any(j < N &&
                    !(abs2(scaled(by.back[j < N ? j : 0], real_part(r(j % N, j % N)))) < most * most));
}

/* x := the 16 rows of T from row `top` on, with what is below the diagonal. */
template <int N, class X>
__device__ __forceinline__ void make_t(rows16<N, X> &x, int top, matrix<N, X> &r, matrix<N, X> &lw,
                                       const divisors<N, X> &by) {
  each_element(x, [&](X &y, int i, int j) { y = top + i <= j ? lw(top + i, j) : zero<X>(); });
  divide(x, upper(r), by.by_r);
  each_element(x, [&](X &y, int, int j) { y = scaled(y, -by.sign[j]); });
  divide(x, lower_adjoint(lw), by.by_y);
}

/* What columns must be like: their squared norms, and the trace of the inverse of the matrix of their
 * cosines, which is at least what errors of the products grow by. Factors of single-precision panels are in
 * double precision, too. */
template <class T> constexpr double least_norm2 = sizeof(real_t<T>) == 4 ? 0x1p-60 : 0x1p-600;
template <class T> constexpr double most_norm2 = 1 / least_norm2<T>;
template <class T> constexpr double most_trace = sizeof(real_t<T>) == 4 ? 0x1p24 : 512;

/* Part of that trace, of the 16 rows of R^-1 from row `top` on; NaN if a norm is out of range. */
template <class T, int N, class X>
__device__ __forceinline__ double trace_of_rows(int top, matrix<N, X> &r, const divisors<N, X> &by,
                                                const double (&norm2)[N]) {
  rows16<N, X> x;
  each_element(x, [&](X &y, int i, int j) { y = make<X>(top + i == j); });
  divide(x, upper(r), by.by_r);
  double sum = 0;
  each_element(x, [&](X &y, int i, int j) {
    if (top + i <= j) sum = fused(real_part(conj(y) * y), norm2[top + i], sum);
  });
  const double mine = norm2[top + lane_id() % 16];
  const bool bad = group_any(!(mine > least_norm2<T> && mine < most_norm2<T>));
  return bad ? NAN : group_sum(sum);
}

} // namespace panel_factors
} // namespace bqr

#endif
