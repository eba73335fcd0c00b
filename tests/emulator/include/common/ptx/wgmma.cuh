/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_WGMMA_CUH
#define BQR_KERNELS_COMMON_PTX_WGMMA_CUH

#include "emulator/tensor.h"
#include "target.cuh"

namespace bqr {

constexpr bool has_wgmma = true;

constexpr int wgmma_rows = 64, wgmma_cols = 256, wgmma_step = 32;
constexpr int wgmma_sums = wgmma_rows * wgmma_cols / 128;

/* Offsets in shared memory in units of 16 bytes. */
inline uint64_t wgmma_tile(const void *tile) { return shared_address(tile) >> 4; }
constexpr uint64_t wgmma_steps(int s) { return static_cast<uint64_t>(s * wgmma_step) >> 4; }

/* Products are done when they are issued. */
inline void wgmma_begin() {}
inline void wgmma_end() {}
template <int N> inline void wgmma_wait() {}
template <class S> inline void wgmma_hold(S (&)[wgmma_sums]) {}

/* The step that starts at `offset` of row r of a tile: its 32 bytes. */
inline void wgmma_row(uint64_t offset, int r, unsigned char (&row)[wgmma_step]) {
  const uint64_t tile = offset & ~uint64_t(7), chunk = offset & 7; /* rows are 8 chunks of 16 bytes */
  for (int i = 0; i < 2; i++)
    std::memcpy(row + 16 * i,
                emulator_shared + (tile + 8 * static_cast<uint64_t>(r) + ((chunk + i) ^ (r % 8))) * 16, 16);
}

/* c += a b^T by 128 threads; E: the operands' type, F: the type that a sum takes them as. */
template <class S, class E, class F, class SUM>
void wgmma_all(S (&c)[wgmma_sums], uint64_t a, uint64_t b, SUM) {
  struct slot {
    S *c;
    uint64_t a, b;
  } mine = {c, a, b};
  emulator::with_four_warps(&mine, [](void *const *threads, unsigned) {
    constexpr int k = wgmma_step / sizeof(E);
    static thread_local F rows_a[wgmma_rows][k], rows_b[wgmma_cols][k];
    auto unpack = [](uint64_t tile, int r, F *to) {
      unsigned char row[wgmma_step];
      wgmma_row(tile, r, row);
      for (int i = 0; i < k; i++) {
        E x;
        std::memcpy(&x, row + i * sizeof(E), sizeof x);
        to[i] = static_cast<F>(x);
      }
    };
    const slot &first = *static_cast<slot *>(threads[0]);
    for (int r = 0; r < wgmma_rows; r++) unpack(first.a, r, rows_a[r]);
    for (int r = 0; r < wgmma_cols; r++) unpack(first.b, r, rows_b[r]);
    for (int t = 0; t < 128; t++)
      for (int i = 0; i < wgmma_sums; i++) {
        const int w = t / 32, l = t % 32, g = i / 4, h = i / 2 % 2, s = i % 2;
        S &sum = static_cast<slot *>(threads[t])->c[i];
        sum = SUM()(sum, rows_a[16 * w + l / 4 + 8 * h], rows_b[8 * g + 2 * (l % 4) + s]);
      }
  });
}

struct wgmma_fp16_sum {
  float operator()(float c, const float *a, const float *b) const { return emulator::cut_sum<16>(c, a, b); }
};
struct wgmma_int8_sum {
  int operator()(int c, const int *a, const int *b) const {
    for (int k = 0; k < 32; k++) c += a[k] * b[k];
    return c;
  }
};
inline void wgmma(float (&c)[wgmma_sums], uint64_t a, uint64_t b) {
  wgmma_all<float, _Float16, float>(c, a, b, wgmma_fp16_sum());
}
/* Of a in registers, 16 numbers of k. */
inline void wgmma(float (&c)[wgmma_sums], const uint32_t (&a)[4], uint64_t b) {
  struct slot {
    float *c;
    const uint32_t *a;
    uint64_t b;
  } mine = {c, a, b};
  emulator::with_four_warps(&mine, [](void *const *threads, unsigned) {
    constexpr int k = 16;
    static thread_local float rows_a[wgmma_rows][k], rows_b[wgmma_cols][k];
    auto unpack = [](const void *from, float *to, int count) {
      _Float16 x[k];
      std::memcpy(x, from, static_cast<size_t>(count) * sizeof x[0]);
      for (int i = 0; i < count; i++) to[i] = static_cast<float>(x[i]);
    };
    for (int t = 0; t < 128; t++)
      for (int i = 0; i < 4; i++) {
        const int w = t / 32, l = t % 32, g = i / 2, h = i % 2;
        unpack(static_cast<slot *>(threads[t])->a + i, &rows_a[16 * w + l / 4 + 8 * h][8 * g + 2 * (l % 4)],
               2);
      }
    for (int r = 0; r < wgmma_cols; r++) {
      unsigned char row[wgmma_step];
      wgmma_row(static_cast<slot *>(threads[0])->b, r, row);
      unpack(row, rows_b[r], k);
    }
    for (int t = 0; t < 128; t++)
      for (int i = 0; i < wgmma_sums; i++) {
        const int w = t / 32, l = t % 32, g = i / 4, h = i / 2 % 2, s = i % 2;
        float &sum = static_cast<slot *>(threads[t])->c[i];
        sum = wgmma_fp16_sum()(sum, rows_a[16 * w + l / 4 + 8 * h], rows_b[8 * g + 2 * (l % 4) + s]);
      }
  });
}
inline void wgmma(int (&c)[wgmma_sums], uint64_t a, uint64_t b) {
  wgmma_all<int, int8_t, int>(c, a, b, wgmma_int8_sum());
}

} // namespace bqr

#endif
