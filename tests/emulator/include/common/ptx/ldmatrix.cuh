/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_LDMATRIX_CUH
#define BQR_KERNELS_COMMON_PTX_LDMATRIX_CUH

#include "target.cuh"

namespace bqr {

template <bool TURNED> inline void read_tiles(uint32_t (&x)[4], const uint32_t *from) {
  struct slot {
    uint32_t *x;
    const uint32_t *from;
  } mine = {x, from};
  emulator::with_lanes(~0u, &mine, [](void *const *lanes, unsigned) {
    for (int l = 0; l < 32; l++)
      for (int t = 0; t < 4; t++) {
        const int g = l / 4, q = l % 4;
        uint16_t two[2];
        for (int s = 0; s < 2; s++) {
          const int row = TURNED ? 2 * q + s : g, col = TURNED ? g : 2 * q + s;
          const uint32_t *line = static_cast<slot *>(lanes[8 * t + row])->from;
          std::memcpy(&two[s], reinterpret_cast<const char *>(line) + 2 * col, 2);
        }
        static_cast<slot *>(lanes[l])->x[t] = two[0] | uint32_t(two[1]) << 16;
      }
  });
}

} // namespace bqr

#endif
