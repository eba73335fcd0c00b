/* SPDX-License-Identifier: BSD-3-Clause */
/* Tiny members: their places in shared memory, and the numbers of their reflectors. */
#ifndef BQR_KERNELS_COMMON_PANEL_TINY_TILE_CUH
#define BQR_KERNELS_COMMON_PANEL_TINY_TILE_CUH

#include "columns.cuh"
#include "common/simt/tile.cuh"
#include "common/ptx/approximate.cuh"

namespace bqr {

/* The places of a warp's members in shared memory: their tiles, tau and scales of the vectors. In a tile,
 * columns are as in global memory or, where lanes share them, in packs of a lane's rows, behind which there
 * is room for the lanes' parts of a squared norm. */
template <class T, int ROWS, int COLS, int LANES, int SPLIT> struct tiny_tile {
  static constexpr int rows = ROWS, cols = COLS, lanes = LANES;
  static constexpr int unit = pack<T>::size, members = warp_lanes / LANES;
  static constexpr int width = LANES / SPLIT, slots = COLS / width, local = ROWS / SPLIT;
  static_assert(COLS <= ROWS && COLS % width == 0 && ROWS % SPLIT == 0, "the same for all lanes");

  /* A multiprocessor serves 8 units at once: here lanes' reads of their columns, and of the pivot's, that lie
   * in 8 different places. */
  static constexpr int ld_rule = LANES >= 8 ? 1 : 8 / LANES, ld_modulus = 2 * ld_rule;
  static constexpr int ld_blocks(int b) {
    return LANES == 1 || b % ld_modulus == ld_rule ? b : ld_blocks(b + 1);
  }
  static constexpr int packs = (local - 1) / unit + 1; /* of a lane's part of a column */
  static constexpr bool early = SPLIT > 1;             /* norms are formed before the products */
  static constexpr bool late = early && is_complex<T>; /* and the pivots' row comes last in these */
  static constexpr int norm_packs = early ? (SPLIT - 1) / pack<real_t<T>>::size + 1 : 0;
  static constexpr int norm_at = packs * SPLIT * unit, ld = unit * ld_blocks(packs * SPLIT + norm_packs);
  static constexpr int size = unit * (COLS * ld / unit | 1);
  static constexpr size_t smem = sizeof(T) * members * (size + (LANES == 1 ? 1 : 2) * COLS);

  /* Steps that share their code: of wide members, those whose rows are in one register of the lanes, or in
   * two (c: 10 000 of 32 x 32 0.127 ms -> 0.116). Long
   * unrolled code is fetched more slowly than it is executed; short code is faster without loops, because
   * steps overlap (1000 of 64 x 16, s: 0.0099 ms instead of 0.0108). */
  static constexpr int multiply_adds = COLS * slots * local * (is_complex<T> ? 4 : 1);
  static constexpr bool rolled = SPLIT > 1 && (COLS > 16 || multiply_adds >= 2048);
  static constexpr int turns = is_complex<T> && SPLIT < 4 ? 4 : SPLIT;
  static constexpr int segment = !rolled ? 1 : turns < width ? turns : width;
  static constexpr int q_segment = width < 8 ? width : 8;

  /* Of many columns, all of a segment's steps are done if one is: those too many find zeros and change
   * nothing (32 768 of 64 x 64, s: 0.723 ms -> 0.686). */
  static constexpr bool whole = COLS > 32 && !late;

  /* Blocks that a multiprocessor shall hold, a few registers more than are needed left to each. Without such
   * a number the compiler saves registers where it can, and forms one sum after another. */
  static constexpr int registers = (slots + 1) * local * static_cast<int>(sizeof(T) / 4) + 46;
  static constexpr int schedulers = 4, warps = 512 / registers;
  static constexpr int blocks = early ? schedulers * (warps < 7 ? warps : 7) : 0;

  /* Lanes that move one member: as many as it has units, at most a warp. */
  static constexpr int movers(int lanes) {
    return lanes < warp_lanes && lanes < ROWS * COLS / unit ? movers(2 * lanes) : lanes;
  }
};

/* H^H = I - factor u u^H with u = (head; x), H^H (alpha; x) = (beta; 0), beta = alpha - head real. */
template <class T> struct pivot_reflector {
  T head, factor;
  real_t<T> beta;
};

/* larfg_in_range() for an x that is used as it is: what a step needs comes sooner. */
template <class T> BQR_INLINE pivot_reflector<T> pivot_larfg(T alpha, real_t<T> ss, bool positive = false) {
  using R = real_t<T>;
  R ar = fabs(real_part(alpha)), ai = imag_part(alpha), norm2 = abs2_add(alpha, ss);
  bool identity = norm2 < column_range<R>::tail || (ss == 0 && ai == 0);
  R y = estimated_rsqrt(norm2), near = norm2 * y, near_d = ar + near;
  R e = fused(-near, y, R(1));
  R rnorm = refined_rsqrt(y, e), norm = refined_rsqrt(near, e), d = ar + norm; /* no cancellation */
  pivot_reflector<T> h;
  if (positive) { /* where alpha is next to nothing, so is x beside a head of 1 */
    const positive_head<T> p = make_positive(alpha, ss, norm, rnorm);
    const bool turned = real_part(alpha) < 0;
    h = {p.head, scaled(p.inverse, -rnorm), norm};
    if (p.dropped) h = {make<T>(turned), turned ? make<T>(2) : tau_of_identity(alpha), ar};
    return h;
  }
  h.beta = copysign(norm, -real_part(alpha));
  if constexpr (is_complex<T>) {
    R r = estimated_recip(fused(near_d, near_d, ai * ai));
    r = refined_recip(r, fused(-fused(d, d, ai * ai), r, R(1)));
    h.head = T{copysign(d, real_part(alpha)), ai};
    h.factor = T{d * r * rnorm, -(ai * r * copysign(rnorm, real_part(alpha)))};
  } else {
    R r = estimated_recip(near_d);
    h.head = copysign(d, alpha);
    h.factor = refined_recip(r, fused(-d, r, R(1))) * rnorm;
  }
  if (identity) h = {zero<T>(), tau_of_identity(alpha), real_part(alpha)};
  return h;
}

/* H = I - tau v v^H with v = u / head = (1; scale x); zeros where it is I. */
template <class T> BQR_INLINE T pivot_tau(T head, T factor) { return head * (head * factor); }
template <class T> BQR_INLINE T pivot_scale(T head) { return is_zero(head) ? head : fast_recip(head); }

/* Whether a column with this largest magnitude() needs no scale. */
template <class T> __device__ __forceinline__ bool column_in_range(uint32_t u) {
  using C = column_range<real_t<T>>;
  return u - C::lo < C::hi - C::lo;
}

} // namespace bqr

#endif
