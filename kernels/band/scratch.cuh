/* SPDX-License-Identifier: BSD-3-Clause */
/* Block reflectors as TF32 and FP64 units take them. Of their 8 x 8 tiles those that are not zero are stored,
 * see common/simt/product.cuh: 512 bytes, 16 of each lane, for the real parts and as many for the imaginary
 * ones. First V's conjugates as b(row, reflector), by rows and in these by reflectors, then -Y as
 * b(reflector, row) in the same order. */
#ifndef BQR_KERNELS_BAND_SCRATCH_CUH
#define BQR_KERNELS_BAND_SCRATCH_CUH

#include "parallelogram.cuh"
#include "common/simt/product.cuh"
#include "common/simt/block.cuh"

namespace bqr {

struct alignas(16) packed {
  uint32_t x[4];
};

/* Two elements, as the units take them. */
__device__ __forceinline__ packed pack(double a, double b) {
  return {{static_cast<uint32_t>(__double2loint(a)), static_cast<uint32_t>(__double2hiint(a)),
           static_cast<uint32_t>(__double2loint(b)), static_cast<uint32_t>(__double2hiint(b))}};
}
__device__ __forceinline__ packed pack(float a, float b) {
  const operand<float> x = split(a), y = split(b);
  return {{x.hi, x.lo, y.hi, y.lo}};
}
template <class T> __device__ __forceinline__ void put(packed *tile, T a, T b) {
  if constexpr (is_complex<T>) {
    tile[lane_id()] = pack(a.re, b.re);
    tile[warp_lanes + lane_id()] = pack(a.im, b.im);
  } else {
    tile[lane_id()] = pack(a, b);
  }
}
__device__ __forceinline__ void unpack(operand<double> (&b)[2], const packed *p) {
  const double2 both = *reinterpret_cast<const double2 *>(p);
  b[0].x = both.x;
  b[1].x = both.y;
}
__device__ __forceinline__ void unpack(operand<float> (&b)[2], const packed *p) {
  b[0] = {p->x[0], p->x[1]};
  b[1] = {p->x[2], p->x[3]};
}

constexpr int form_threads = 256;

template <class T, int B> struct tile_shape : parallelogram<B, !is_complex<T> && B >= 64 ? 64 : 32> {
  using base = parallelogram<B, !is_complex<T> && B >= 64 ? 64 : 32>;
  using type = T;
  static constexpr int parts = is_complex<T> ? 2 : 1, unit = 512;
  static constexpr int columns = is_complex<T> ? 8 : 16, together = 1; /* of a warp; warps */
  /* What Z is multiplied by while it is worked on. */
  static constexpr real_t<T> scale = 1;

  /* Tiles above row i. */
  BQR_INLINE static constexpr int v_before(int i) {
    int count = 0;
    for (int k = 0; k < i; k++) count += base::last(k) - base::first(k);
    return count;
  }
  BQR_INLINE static constexpr int y_before(int i) {
    int count = 0;
    for (int k = 0; k < i; k++) count += base::across - base::first(k);
    return count;
  }
  static constexpr int v_tiles() { return v_before(base::down); }
  static constexpr int y_tiles() { return y_before(base::down); }
  static constexpr int v_bytes() { return v_tiles() * parts * unit; }
  static constexpr int y_bytes() { return y_tiles() * parts * unit; }
  static constexpr int bytes() { return v_bytes() + y_bytes(); }

  /* By form_threads threads. */
  template <class S> __device__ __forceinline__ static void store(const S &s, char *block) {
    const int row = lane_id() / 4, column = 2 * (lane_id() % 4);
    for (int i = 0; i < base::down; i++) {
      packed *v = reinterpret_cast<packed *>(block + v_before(i) * parts * unit);
      packed *y = reinterpret_cast<packed *>(block + v_bytes() + y_before(i) * parts * unit);
      for (int t = base::first(i) + warp_id(); t < base::across; t += form_threads / warp_lanes) {
        constexpr int tile = warp_lanes * parts;
        if (t < base::last(i))
          put(v + (t - base::first(i)) * tile, conj(s.get_v(8 * i + column, 8 * t + row)),
              conj(s.get_v(8 * i + column + 1, 8 * t + row)));
        T sum[2];
        s.get_y(sum, 8 * i + row, 8 * t + column);
        put(y + (t - base::first(i)) * tile, sum[0], sum[1]);
      }
    }
  }

  /* Warps of a block with STAGES stages; what registers allow: 255 for double precision, without which it
   * spills. */
  static constexpr int most_warps(int) {
    return is_complex<T> && B == 32 ? 12 : sizeof(T) == 4 && B == 32 ? 16 : 8;
  }
  /* Stages, of a few columns of a block and of more. */
  static constexpr int stages_of_few = B > 32 ? 1 : is_complex<T> ? 3 : 4;
  static constexpr int stages_of_many = B == 32 && std::is_same_v<T, double> ? 2 : stages_of_few;
};

} // namespace bqr

#endif
