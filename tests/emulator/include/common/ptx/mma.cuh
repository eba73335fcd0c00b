/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_MMA_CUH
#define BQR_KERNELS_COMMON_PTX_MMA_CUH

#include "emulator/tensor.h"

namespace bqr {

/* Lane (g, q) = (l / 4, l % 4). FP64 units round each product's addition, in the order of k. */
inline void multiply_add(double &c0, double &c1, double a, double b) {
  struct slot {
    double *c0, *c1;
    double a, b;
  } mine = {&c0, &c1, a, b};
  emulator::with_lanes(~0u, &mine, [](void *const *lanes, unsigned) {
    auto lane = [&](int l) { return static_cast<slot *>(lanes[l]); };
    for (int l = 0; l < 32; l++)
      for (int k = 0; k < 4; k++) {
        const double x = lane(l / 4 * 4 + k)->a;
        *lane(l)->c0 = std::fma(x, lane(l % 4 * 2 * 4 + k)->b, *lane(l)->c0);
        *lane(l)->c1 = std::fma(x, lane((l % 4 * 2 + 1) * 4 + k)->b, *lane(l)->c1);
      }
  });
}

/* A product of 16 rows by K by 8 columns. A SLOT has c[4], addresses of elements of rows g, g, g + 8, g + 8
 * and columns 2 q, 2 q + 1, 2 q, 2 q + 1, and puts what it has of a into two rows of it, of b into a column.
 * sum(c, a, b). */
template <class SLOT, class E, int K, class SUM> void multiply_lanes(void *const *lanes, SUM &&sum) {
  E a[16][K], b[8][K];
  for (int l = 0; l < 32; l++) {
    const SLOT &s = *static_cast<SLOT *>(lanes[l]);
    s.put_a(a[l / 4], a[l / 4 + 8], l % 4);
    s.put_b(b[l / 4], l % 4);
  }
  for (int l = 0; l < 32; l++) {
    auto &c = static_cast<SLOT *>(lanes[l])->c;
    for (int i = 0; i < 4; i++) *c[i] = sum(*c[i], a[l / 4 + i / 2 * 8], b[l % 4 * 2 + i % 2]);
  }
}

inline void multiply_add(double &c0, double &c1, double &c2, double &c3, double a0, double a1, double a2,
                         double a3, double b0, double b1) {
  struct slot {
    double *c[4], a[4], b[2];
    void put_a(double *upper, double *lower, int q) const {
      upper[q] = a[0], upper[q + 4] = a[1], lower[q] = a[2], lower[q + 4] = a[3];
    }
    void put_b(double *column, int q) const { column[q] = b[0], column[q + 4] = b[1]; }
  } mine = {{&c0, &c1, &c2, &c3}, {a0, a1, a2, a3}, {b0, b1}};
  emulator::with_lanes(~0u, &mine, [](void *const *lanes, unsigned) {
    multiply_lanes<slot, double, 8>(lanes, [](double c, const double *a, const double *b) {
      for (int k = 0; k < 8; k++) c = std::fma(a[k], b[k], c);
      return c;
    });
  });
}

inline void multiply_add_tf32(float &c0, float &c1, float &c2, float &c3, uint32_t a0, uint32_t a1,
                              uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
  struct slot {
    float *c[4];
    uint32_t a[4], b[2];
    void put_a(float *upper, float *lower, int q) const {
      upper[q] = emulator::tf32(a[0]), upper[q + 4] = emulator::tf32(a[1]);
      lower[q] = emulator::tf32(a[2]), lower[q + 4] = emulator::tf32(a[3]);
    }
    void put_b(float *column, int q) const {
      column[q] = emulator::tf32(b[0]), column[q + 4] = emulator::tf32(b[1]);
    }
  } mine = {{&c0, &c1, &c2, &c3}, {a0, a1, a2, a3}, {b0, b1}};
  emulator::with_lanes(~0u, &mine, [](void *const *lanes, unsigned) {
    multiply_lanes<slot, float, 8>(lanes, emulator::cut_sum<8>);
  });
}

inline void multiply_add_f16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                             uint32_t b1) {
  struct slot {
    float *c[4];
    uint32_t a[4], b[2];
    static void put(float *to, uint32_t two) {
      _Float16 x[2];
      std::memcpy(x, &two, sizeof two);
      to[0] = x[0], to[1] = x[1];
    }
    void put_a(float *upper, float *lower, int q) const {
      put(upper + 2 * q, a[0]), put(lower + 2 * q, a[1]);
      put(upper + 2 * q + 8, a[2]), put(lower + 2 * q + 8, a[3]);
    }
    void put_b(float *column, int q) const { put(column + 2 * q, b[0]), put(column + 2 * q + 8, b[1]); }
  } mine = {{&c[0], &c[1], &c[2], &c[3]}, {a0, a1, a2, a3}, {b0, b1}};
  emulator::with_lanes(~0u, &mine, [](void *const *lanes, unsigned) {
    multiply_lanes<slot, float, 16>(lanes, emulator::cut_sum<16>);
  });
}

} // namespace bqr

#endif
