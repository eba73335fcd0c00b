/* SPDX-License-Identifier: BSD-3-Clause */
/* The reflectors of a panel of 8 columns from its Gram matrix, by one warp, with the columns as fragments
 * (common/simt/fragment.cuh).
 *
 * A panel [H; A] with H its first 8 rows takes one sum over all rows. From S = A^H A, H and, for C = I,
 * columns A C, one warp alone makes the 8 reflectors: A^H (A C) and C take the updates that A C would, and
 * have its columns' products and norms. V is then A C, one product. What this loses in accuracy is
 * cancellation within a column of S C: where a column may have lost more than a few bits, A C is formed with
 * the reflectors so far, S anew, and the rest made from that. Ill-conditioned panels take more rounds, 8 at
 * most.
 *
 * STORAGE s, in shared memory: z[i][k] = v_i^H v_k, i < k; tau; zero_column, counted from 1; pivot. COLUMNS:
 * the fragments' type. */
#ifndef BQR_KERNELS_COMMON_PANEL_GRAM_PANEL_CUH
#define BQR_KERNELS_COMMON_PANEL_GRAM_PANEL_CUH

#include "columns.cuh"
#include "common/simt/fragment.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

constexpr int panel_width = 8;
/* How much larger than a column's squared norm that of what it is a sum of may be. */
template <class R> constexpr R most_loss = 32;

/* The column of which the reflector is made; there are two, used in turn. */
template <class T> struct pivot_column {
  alignas(16) T head[panel_width], c[panel_width], y[panel_width];
  real_t<T> size;
};

/* Makes reflectors from number `done` on; returns how many there are then. For lane (g, q): head, entries
 * (row(s), g) of the first 8 rows; c and y, (2 q + s, g) of C and of A^H A, then A^H A C; tau and v_scale of
 * column g. positive: R's diagonal is not negative. STRAIGHT: no loop over columns, which pays where a
 * multiprocessor has few members: others' instructions are then not driven from its caches. */
template <class COLUMNS, bool STRAIGHT = false, class STORAGE, class T>
__device__ __forceinline__ int make_reflectors(STORAGE &s, T (&head)[2], T (&y)[2], T (&c)[2], int done,
                                               int reflectors, bool positive, T &tau, T &v_scale) {
  using real = real_t<T>;
  const int g = COLUMNS::column(), q = COLUMNS::lane();
  real size = real_part(broadcast<4>(g % 2 ? y[1] : y[0], g / 2)); /* bounds sum |C_i| |a_i| */
  size = size < column_range<real>::tail ? 0 : size * fast_rsqrt(size);
  c[0] = g == 2 * q ? one<T>() : zero<T>();
  c[1] = g == 2 * q + 1 ? one<T>() : zero<T>();
  int k = STRAIGHT ? 0 : done;
  bool lost = false;
#pragma unroll(STRAIGHT ? panel_width : 1)
  for (; k < (STRAIGHT ? panel_width : reflectors); k++) {
    if (STRAIGHT && k < done) continue;
    if (STRAIGHT && k == reflectors) break;
    auto &pivot = s.pivot[k & 1];
    if (g == k) {
      write_two(pivot.head + 2 * q, head);
      write_two(pivot.c + 2 * q, c);
      write_two(pivot.y + 2 * q, y);
      pivot.size = size;
    }
    warp_sync();
    T pivot_head[2], pivot_c[2], pivot_y[2];
    read_two(pivot_head, pivot.head + 2 * q);
    read_two(pivot_c, pivot.c + 2 * q);
    read_two(pivot_y, pivot.y + 2 * q);
    const T alpha = pivot.head[COLUMNS::place_of(k)],
            row = broadcast<4>(COLUMNS::element_of(k) ? head[1] : head[0], COLUMNS::lane_of(k));
    const real pivot_size = pivot.size;
#pragma unroll
    for (int e = 0; e < 2; e++)
      if (COLUMNS::row(e) <= k) pivot_head[e] = zero<T>();
    T product = cmadd(pivot_head[0], head[0], cmadd(pivot_head[1], head[1], zero<T>())) +
                cmadd(pivot_c[0], y[0], cmadd(pivot_c[1], y[1], zero<T>()));
    product = product + exchange(product, 2);
    /* the pivot column's with itself is its squared norm */
    const real norm2 = broadcast(real_part(product), 4 * k) + broadcast(real_part(product), 4 * k + 1);
    product = product + exchange(product, 1);
    lost = group_any(k > done && pivot_size * pivot_size > most_loss<real> * norm2);
    const column_reflector<T> h = larfg_in_range(alpha, norm2, positive);
    const T tau_h = conj(h.tau), dot = cmadd(h.scale, product, row); /* v_k^H a_g */
    s.z[g][k] = conj(dot * v_scale);                                 /* of use where g < k */
    T w = cmadd(h.scale, tau_h * product, tau_h * row);
    w = g > k && !lost ? w : zero<T>();
    const T factor = -(h.scale * w);
    size += pivot_size * (fabs(real_part(factor)) + fabs(imag_part(factor)));
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const T rest = g == k ? make<T>(h.beta) : head[e] - w;
      head[e] = madd(factor, pivot_head[e], head[e]);
      if (COLUMNS::row(e) == k && !lost) head[e] = rest;
      c[e] = madd(factor, pivot_c[e], c[e]);
      y[e] = madd(factor, pivot_y[e], y[e]);
    }
    if (lost) break;
    if (g == k) {
      tau = h.tau;
      v_scale = h.scale;
    }
  }
  return k;
}

/* When all reflectors of a panel are made. back(x): an entry of R of this lane's column as it will be
 * stored. */
template <class COLUMNS, class STORAGE, class T, class F>
__device__ __forceinline__ void finish_reflectors(STORAGE &s, T (&head)[2], T (&c)[2], int top,
                                                  int reflectors, T tau, T v_scale, F &&back) {
  const int g = COLUMNS::column(), q = COLUMNS::lane();
  const T diagonal = COLUMNS::element_of(g) ? head[1] : head[0];
  const int zero_column = first_lane(q == COLUMNS::lane_of(g) && g < reflectors && is_zero(back(diagonal)));
  if (lane_id() == 0 && zero_column >= 0 && s.zero_column == 0) s.zero_column = top + zero_column / 4 + 1;
  s.tau[g] = tau;
#pragma unroll
  for (int e = 0; e < 2; e++)
    if (g < reflectors) {
      c[e] = c[e] * v_scale;
      if (COLUMNS::row(e) > g) head[e] = head[e] * v_scale;
    }
}

/* Row i of T, in the lanes of column i: T(i, k) = -tau_k sum_l T(i, l) z_lk. Past the last reflector tau is 0
 * and z undefined. t: zeros. By the warp that made the reflectors, after a warp_sync(). */
template <class T>
__device__ __forceinline__ void make_factor_row(T (&t)[panel_width], int i,
                                                const T (&z)[panel_width][panel_width],
                                                const T (&all_tau)[panel_width]) {
#pragma unroll
  for (int k = 0; k < panel_width; k++) {
    const T tau = all_tau[k];
    t[k] = k < i || is_zero(tau) ? zero<T>() : k == i ? tau : -(tau * t[k]);
#pragma unroll
    for (int l = k + 1; l < panel_width; l++) t[l] = madd(t[k], z[k][l], t[l]);
  }
}

} // namespace bqr

#endif
