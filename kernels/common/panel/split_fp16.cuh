/* SPDX-License-Identifier: BSD-3-Clause */
/* Block reflectors in single precision on the matrix units for FP16, which do twice as many products at a
 * time as those for TF32: x = hi + lo, both of 11 bits, and a b = hi hi + (hi lo + lo hi). V takes no more
 * memory than it does as it is, and is split only once.
 *
 * FP16 has 5 bits of exponent. Entries of V are at most 1 and kept multiplied by 2^8, so that what
 * lo loses is below 2^-33; T is multiplied by 2^-16 therefore. Columns of C are multiplied by a power of two
 * that brings their largest entry to 2^8 when they are read: no reflection makes a column longer than 2^14
 * then, for up to 1024 rows, and T^H V^H C, at most 2^8 times as long, comes multiplied by 2^-8. */
#ifndef BQR_KERNELS_COMMON_PANEL_SPLIT_FP16_CUH
#define BQR_KERNELS_COMMON_PANEL_SPLIT_FP16_CUH

#include "common/ptx/cvt.cuh"
#include "common/ptx/ldmatrix.cuh"
#include "common/ptx/mma.cuh"
#include "common/simt/fragment.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

/* Two numbers, neighbours in k, as the units take them. */
struct split_fp16 {
  uint32_t hi, lo;
};
/* Of scale x and scale y. */
__device__ __forceinline__ split_fp16 split_to_fp16(float x, float y, float scale) {
  split_fp16 a;
  float x_hi, y_hi;
  a.hi = rounded_to_fp16(scale * x, scale * y);
  unpack_fp16(a.hi, x_hi, y_hi);
  a.lo = rounded_to_fp16(fused(scale, x, -x_hi), fused(scale, y, -y_hi));
  return a;
}
__device__ __forceinline__ split_fp16 negated(split_fp16 a) {
  return {a.hi ^ 0x80008000u, a.lo ^ 0x80008000u};
}

/* c += a b, 16 x 16 by 16 x 8; a[2 i + h]: rows g + 8 h, k from 8 i on. */
__device__ __forceinline__ void multiply_add(float (&c)[4], const split_fp16 (&a)[4],
                                             const split_fp16 (&b)[2]) {
  multiply_add_f16(c, a[0].lo, a[1].lo, a[2].lo, a[3].lo, b[0].hi, b[1].hi);
  multiply_add_f16(c, a[0].hi, a[1].hi, a[2].hi, a[3].hi, b[0].lo, b[1].lo);
  multiply_add_f16(c, a[0].hi, a[1].hi, a[2].hi, a[3].hi, b[0].hi, b[1].hi);
}
/* The same for 8 rows; the units' others take small parts, so that the sum is c[0] + c[2] and c[1] + c[3]. */
__device__ __forceinline__ void multiply_add_8(float (&c)[4], const split_fp16 (&a)[2],
                                               const split_fp16 (&b)[2]) {
  multiply_add_f16(c, 0, a[0].hi, 0, a[1].hi, b[0].lo, b[1].lo);
  multiply_add_f16(c, a[0].hi, a[0].lo, a[1].hi, a[1].lo, b[0].hi, b[1].hi);
}

/* Of the power of two that brings a column to 2^8 that has been multiplied by one already; biased: the
 * exponent of its largest magnitude() before. */
__device__ __forceinline__ int kept_exponent(int biased, int already) {
  const int e = 135 - biased - already;
  return e < 126 ? e : 126;
}

/* What unit_reflector is, for float and complex_float, in the same memory. Columns go with their scales, one
 * for each of 8 of them, and back: 1 / scale. */
template <class T, int U, int W, bool TIGHT> class fp16_reflector {
  using columns = unit_fragment<T, U, W>;
  static constexpr int units = U, parts = is_complex<T> ? 2 : 1;
  static constexpr int unit = 64 * parts; /* words */

public:
  static constexpr float v_scale = 0x1p8f;
  static constexpr float t_scale = 1 / (v_scale * v_scale);

  /* Two entries of y of one column, in as much memory. */
  struct alignas(2 * sizeof(T)) split_type {
    split_fp16 part[parts];
  };
  __device__ __forceinline__ static split_type split_y(const T (&y)[2]) {
    split_type a;
    split_unit(a.part, y, 1);
    return a;
  }

  template <class S>
  __device__ __forceinline__ fp16_reflector(S &storage, int first)
      : v_(reinterpret_cast<uint32_t *>(storage.x) + unit * first), first_(first) {}

  /* Keeps x and, behind, zeros. */
  __device__ __forceinline__ void set(const columns &x, int warp, int rows) const {
    warp_sync();
    const T zeros[2] = {zero<T>(), zero<T>()};
#pragma unroll
    for (int u = 0; u <= units; u++)
      if ((u == 0 || columns::has_rows(warp, u - 1, rows)) && fits(u)) write(u, u < units ? x.x[u] : zeros);
    warp_sync();
  }
  __device__ __forceinline__ void clear_before(int first) const {
    const T zeros[2] = {zero<T>(), zero<T>()};
    for (int u = -first; u < 0; u++) write(u, zeros);
  }

  /* Of 8 columns and of 16, see unit_reflector; w is that of columns multiplied by their scales. */
  __device__ __forceinline__ void multiply(T (&w)[2], const columns &x, float scale, int warp,
                                           int rows) const {
    float sum[parts][2] = {};
    each_two(warp, rows, [&](int u) {
      split_fp16 a[2][2], v[2][2];
      split_two(a, x, u, scale);
      read_two_units<false>(v, u);
#pragma unroll
      for (int i = 0; i < parts; i++)
#pragma unroll
        for (int p = 0; p < parts; p++) {
          float step[4] = {};
          multiply_add_8(step, {a[i][0], a[i][1]}, {p ? negated(v[i][1]) : v[i][0], v[i][1 - p]});
#pragma unroll
          for (int s = 0; s < 2; s++) sum[p][s] += step[s] + step[2 + s];
        }
    });
#pragma unroll
    for (int s = 0; s < 2; s++) w[s] = joined(sum[0][s], sum[parts - 1][s]);
  }
  __device__ __forceinline__ void multiply(T (&w)[8], const fp16_reflector &next, const columns (&x)[2],
                                           const float (&scale)[2], int warp, int rows) const {
    float sum[2][parts][4] = {};
    each_two(warp, rows, [&](int u) {
      split_fp16 a[2][2][2];
#pragma unroll
      for (int h = 0; h < 2; h++) split_two(a[h], x[h], u, scale[h]);
#pragma unroll
      for (int n = 0; n < 2; n++) {
        split_fp16 v[2][2];
        (n ? next : *this).template read_two_units<false>(v, u);
#pragma unroll
        for (int i = 0; i < parts; i++)
#pragma unroll
          for (int p = 0; p < parts; p++) {
            float step[4] = {};
            multiply_add(step, {a[0][i][0], a[1][i][0], a[0][i][1], a[1][i][1]},
                         {p ? negated(v[i][1]) : v[i][0], v[i][1 - p]});
#pragma unroll
            for (int s = 0; s < 4; s++) sum[n][p][s] += step[s];
          }
      }
    });
#pragma unroll
    for (int i = 0; i < 8; i++) w[i] = joined(sum[i / 4][0][i % 4], sum[i / 4][parts - 1][i % 4]);
  }

  /* x -= V y, y of columns multiplied by their scales. */
  __device__ __forceinline__ void subtract(columns &x, const T (&y)[2], float back, int warp,
                                           int rows) const {
    split_fp16 a[parts][2]; /* of the product's parts */
    left_operand(a, split_y(y));
    each_two(warp, rows, [&](int u) {
      split_fp16 v[2][2];
      read_two_units<true>(v, u);
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float step[parts][4] = {};
#pragma unroll
        for (int p = 0; p < parts; p++) {
          if constexpr (is_complex<T>)
            multiply_add_8(step[p], a[p], v[i]);
          else /* k has room for small parts */
            multiply_add_f16(step[0], a[0][0].hi, a[0][0].lo, 0, a[0][0].hi, v[0][i].hi, v[0][i].lo);
        }
#pragma unroll
        for (int s = 0; s < 2; s++)
          x.x[u + i][s] = add(x.x[u + i][s], step[0][s] + step[0][2 + s],
                              step[parts - 1][s] + step[parts - 1][2 + s], -back);
      }
    });
  }
  /* y[p][h]: of V number p and of x[h], see split_y(). */
  __device__ __forceinline__ void subtract(columns (&x)[2], const split_type (&y)[2][2],
                                           const fp16_reflector &next, const float (&back)[2], int warp,
                                           int rows) const {
    split_fp16 a[2][2][parts][2]; /* of panels, columns, the product's parts */
#pragma unroll
    for (int i = 0; i < 4; i++) left_operand(a[i / 2][i % 2], y[i / 2][i % 2]);
    each_two(warp, rows, [&](int u) {
      split_fp16 v[2][2][2];
      read_two_units<true>(v[0], u);
      next.template read_two_units<true>(v[1], u);
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float step[parts][4] = {};
#pragma unroll
        for (int p = 0; p < parts; p++) {
          if constexpr (is_complex<T>) {
#pragma unroll
            for (int n = 0; n < 2; n++)
              multiply_add(step[p], {a[n][0][p][0], a[n][1][p][0], a[n][0][p][1], a[n][1][p][1]}, v[n][i]);
          } else {
            multiply_add(step[0], {a[0][0][0][0], a[0][1][0][0], a[1][0][0][0], a[1][1][0][0]},
                         {v[0][0][i], v[1][0][i]});
          }
        }
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
          for (int s = 0; s < 2; s++)
            x[h].x[u + i][s] =
                add(x[h].x[u + i][s], step[0][2 * h + s], step[parts - 1][2 * h + s], -back[h]);
      }
    });
  }

private:
  __device__ __forceinline__ static T joined(float re, [[maybe_unused]] float im) {
    if constexpr (is_complex<T>)
      return T{re, im};
    else
      return re;
  }
  __device__ __forceinline__ static T add(T x, float re, [[maybe_unused]] float im, float factor) {
    if constexpr (is_complex<T>)
      return T{fused(factor, re, x.re), fused(factor, im, x.im)};
    else
      return fused(factor, re, x);
  }
  /* Parts of a lane's two entries of a unit. */
  __device__ __forceinline__ static void split_unit(split_fp16 *a, const T (&x)[2], float scale) {
    a[0] = split_to_fp16(real_part(x[0]), real_part(x[1]), scale);
    if constexpr (is_complex<T>) a[1] = split_to_fp16(x[0].im, x[1].im, scale);
  }
  /* What two units are multiplied as, 16 of k at a time: a[unit][part], of real numbers a[0][unit]. */
  __device__ __forceinline__ static void split_two(split_fp16 (&a)[2][2], const columns &x, int u,
                                                   float scale) {
    split_unit(a[0], x.x[u], scale);
    split_unit(parts == 2 ? a[1] : a[0] + 1, x.x[u + 1], scale);
  }
  /* For y^T V^T: real parts and imaginary ones of V are neighbours in k. */
  __device__ __forceinline__ static void left_operand(split_fp16 (&a)[parts][2], const split_type &y) {
    a[0][0] = y.part[0];
    if constexpr (is_complex<T>) {
      a[0][1] = negated(y.part[1]);
      a[1][0] = y.part[1];
      a[1][1] = y.part[0];
    }
  }

  __device__ __forceinline__ void write(int u, const T (&x)[2]) const {
    split_fp16 a[2];
    split_unit(a, x, v_scale);
#pragma unroll
    for (int p = 0; p < parts; p++) {
      uint32_t *to = v_ + unit * u + 64 * p + lane_id();
      to[0] = a[p].hi;
      to[32] = a[p].lo;
    }
  }
  /* Likewise of V; zeros of a unit that there is no memory for. */
  template <bool TURNED> __device__ __forceinline__ void read_two_units(split_fp16 (&v)[2][2], int u) const {
    const bool both = fits(u + 1);
    const uint32_t *from = v_ + unit * u + (both || parts == 2 ? 4 * lane_id() : 4 * lane_id() % 64);
#pragma unroll
    for (int p = 0; p < parts; p++) {
      uint32_t x[4];
      read_tiles<TURNED>(x, both ? from + 128 * p : from);
      v[p][0] = {x[0], x[1]};
      v[p][1] = {x[2], x[3]};
    }
#pragma unroll
    for (int p = 0; p < parts; p++)
      if (!both) v[parts - 1][parts == 2 ? p : 1] = {0, 0};
  }

  /* Whether there is memory for the unit. */
  __device__ __forceinline__ bool fits(int u) const { return !TIGHT || first_ + u < units; }
  template <class F> __device__ __forceinline__ static void each_two(int warp, int rows, F &&f) {
#pragma unroll
    for (int u = 0; u < units; u += 2)
      if (columns::has_rows(warp, u, rows)) f(u);
  }

  uint32_t *v_;
  int first_;
};

} // namespace bqr

#endif
