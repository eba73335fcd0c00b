/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_WGMMA_ROWS_CUH
#define BQR_KERNELS_COMMON_PTX_WGMMA_ROWS_CUH

#include "wgmma.cuh"

namespace bqr {

constexpr int wgmma_narrow = 32, wgmma_narrow_bytes = wgmma_narrow * 16 * 2;

inline uint64_t wgmma_columns(const void *columns) { return shared_address(columns); }

inline uint64_t wgmma_columns_at(uint64_t columns, int bytes) {
  return columns + static_cast<uint64_t>(bytes);
}

template <bool ADD> void wgmma_rows_by(float (&c)[4][4], const uint32_t (&a)[4], uint64_t b) {
  struct slot {
    float (*c)[4];
    const uint32_t *a;
    uint64_t b;
  } mine = {c, a, b};
  emulator::with_four_warps(&mine, [](void *const *threads, unsigned) {
    static thread_local float rows[wgmma_rows][16], columns[wgmma_narrow][16];
    auto slot_of = [&](int t) -> const slot & { return *static_cast<slot *>(threads[t]); };
    for (int t = 0; t < 128; t++)
      for (int i = 0; i < 4; i++)
        for (int e = 0; e < 2; e++) {
          _Float16 two[2];
          std::memcpy(two, &slot_of(t).a[i], sizeof two);
          rows[t / 32 * 16 + t % 32 / 4 + i % 2 * 8][t % 4 * 2 + e + i / 2 * 8] = two[e];
        }
    for (int n = 0; n < wgmma_narrow; n++)
      for (int k = 0; k < 16; k++) {
        _Float16 x;
        std::memcpy(&x, emulator_shared + slot_of(0).b + n / 8 * 256 + k / 8 * 128 + n % 8 * 16 + k % 8 * 2,
                    sizeof x);
        columns[n][k] = x;
      }
    for (int t = 0; t < 128; t++)
      for (int i = 0; i < 16; i++) {
        float &sum = slot_of(t).c[i / 4][i % 4];
        sum = emulator::cut_sum<16>(ADD ? sum : 0, rows[t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8],
                                    columns[i / 4 * 8 + t % 4 * 2 + i % 2]);
      }
  });
}
inline void wgmma_over(float (&)[4][4]) {}
inline void wgmma_over(const uint32_t (&)[4]) {}

} // namespace bqr

#endif
