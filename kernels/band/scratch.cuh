/* SPDX-License-Identifier: BSD-3-Clause */
/* Block reflectors of the back-transformation. The reflectors of KB sweeps that follow one another, at hop h,
 * lie in a parallelogram: V's column l is at rows l, ..., l + B - 1 from row KB g + B h on. H_1 H_2 ... = I -
 * Y V^H, Y = V T.
 *
 * Of their 8 x 8 tiles those that are not zero are stored as the units take them, see
 * common/simt/product.cuh: 512 bytes, 16 of each lane, for the real parts and as many for the imaginary ones.
 * First V's conjugates as b(row, reflector), by rows and in these by reflectors, then -Y as b(reflector, row)
 * in the same order. */
#ifndef BQR_KERNELS_BAND_SCRATCH_CUH
#define BQR_KERNELS_BAND_SCRATCH_CUH

#include "common/simt/product.cuh"

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
__device__ __forceinline__ void unpack(operand<double> (&b)[2], const packed &p) {
  b[0].x = __hiloint2double(static_cast<int>(p.x[1]), static_cast<int>(p.x[0]));
  b[1].x = __hiloint2double(static_cast<int>(p.x[3]), static_cast<int>(p.x[2]));
}
__device__ __forceinline__ void unpack(operand<float> (&b)[2], const packed &p) {
  b[0] = {p.x[0], p.x[1]};
  b[1] = {p.x[2], p.x[3]};
}
template <class T, int B> struct block_shape {
  static constexpr int sweeps = !is_complex<T> && B >= 64 ? 64 : 32; /* KB */
  static constexpr int across = sweeps / 8, high = B / 8, down = across + high;
  static constexpr int parts = is_complex<T> ? 2 : 1, unit = 512;

  /* Tile (i, t) of V is not zero for first(i) <= t < last(i), that of Y for first(i) <= t < across. */
  BQR_INLINE static constexpr int first(int i) { return i > high ? i - high : 0; }
  BQR_INLINE static constexpr int last(int i) { return i < across ? i + 1 : across; }
  /* Tiles above row i. */
  BQR_INLINE static constexpr int v_before(int i) {
    int count = 0;
    for (int k = 0; k < i; k++) count += last(k) - first(k);
    return count;
  }
  BQR_INLINE static constexpr int y_before(int i) {
    int count = 0;
    for (int k = 0; k < i; k++) count += across - first(k);
    return count;
  }
  static constexpr int v_tiles() { return v_before(down); }
  static constexpr int y_tiles() { return y_before(down); }
  static constexpr int v_bytes() { return v_tiles() * parts * unit; }
  static constexpr int y_bytes() { return y_tiles() * parts * unit; }
  static constexpr int bytes() { return v_bytes() + y_bytes(); }

  static constexpr int at_once = 16; /* groups of sweeps for which there is scratch */
  BQR_INLINE static int groups(int n) { return (n + sweeps - 1) / sweeps; }
  BQR_INLINE static int hops(int n) { return (n + B - 1) / B; }
};

template <class T, int B> size_t back_scratch_bytes(int n) {
  using shape = block_shape<T, B>;
  const int groups = shape::groups(n) < shape::at_once ? shape::groups(n) : shape::at_once;
  return static_cast<size_t>(groups) * static_cast<size_t>(shape::hops(n)) * shape::bytes();
}

} // namespace bqr

#endif
