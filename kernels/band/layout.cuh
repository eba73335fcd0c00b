/* SPDX-License-Identifier: BSD-3-Clause */
/* Where things lie in the memory that band.h's functions share. */
#ifndef BQR_KERNELS_BAND_LAYOUT_CUH
#define BQR_KERNELS_BAND_LAYOUT_CUH

#include "common/ptx/message.cuh"
#include "common/simt/launch.cuh"

namespace bqr {

/* The band and as many diagonals below it for the bulges, with zeros to twice its width behind it, so that no
 * tile of it is cut. */
template <int B> struct band_storage {
  static constexpr int ld = 2 * B; /* from an entry to its neighbour to the right */
  BQR_INLINE static int64_t columns(int n) { return int64_t(n) + 2 * B; }
  BQR_INLINE static int64_t elements(int n) { return columns(n) * (ld + 1); }
  BQR_INLINE static int64_t at(int64_t row, int64_t column) { return row + column * ld; }
};

/* Sweep j takes care of column j by reflectors at rows j + 1 + B h, ..., of which those of one h lie one
 * after the other. Sweep j has number j + 1 there: then row and place of the first of a group of sweeps are
 * multiples of the group's size. Number 0 is none. */
template <int B> struct reflector_storage {
  /* Of reflectors with a smaller h. */
  BQR_INLINE static int64_t before(int n, int h) { return int64_t(h) * n - int64_t(B) * h * (h - 1) / 2; }
  BQR_INLINE static int hops(int n, int sweep) { return (n - 1 - sweep + B - 1) / B; }
  BQR_INLINE static int64_t count(int n) { return before(n, (n + B - 1) / B); }
};

/* What sweep j sends to the next one at each hop: the first column of both tiles, from the diagonal to the
 * first entry of O, below which there are zeros. Sweep j + 2 makes its hop h when sweep j + 1 has received
 * what came from hop h of sweep j: two places for each hop suffice. */
template <class T, int B> struct border_storage {
  static constexpr int parts = is_complex<T> ? 2 : 1, numbers = parts * (B + 1);
  BQR_INLINE static int64_t count(int n) { return 2 * int64_t(reflector_storage<B>::hops(n, 0)) * numbers; }
  BQR_INLINE static int64_t at(int n, int j, int h) {
    return ((j & 1) * int64_t(reflector_storage<B>::hops(n, 0)) + h) * numbers;
  }
  BQR_INLINE static uint32_t tag(int j) { return static_cast<uint32_t>(j) + 1; } /* 0: none */
};

/* f(type_tag<T>{}, std::integral_constant<int, B>{}). */
template <class F> auto for_band(batchqr_type type, int width, F &&f) {
  return for_type(type,
                  [&](auto tag) { return for_value<32, 64>(width, [&](auto b) { return f(tag, b); }); });
}

constexpr size_t band_align = 256;
inline size_t aligned_bytes(size_t bytes) { return (bytes + band_align - 1) / band_align * band_align; }

/* The parts of the memory. */
template <class T, int B> struct band_memory {
  int *ticket, *progress; /* progress[j]: hops of sweep j that are done */
  message<real_t<T>> *borders;
  T *band, *tau, *v;
  void *scratch; /* the back-transformation's */
  size_t bytes;

  band_memory(void *memory, int n, bool vectors, size_t scratch_bytes) {
    char *at = static_cast<char *>(memory);
    auto take = [&](size_t size) {
      char *p = at;
      at += aligned_bytes(size);
      return static_cast<void *>(p);
    };
    const size_t reflectors = vectors ? static_cast<size_t>(reflector_storage<B>::count(n)) : 0;
    ticket = static_cast<int *>(take(sizeof(int)));
    progress = static_cast<int *>(take((static_cast<size_t>(n) + 1) * sizeof(int)));
    borders = static_cast<message<real_t<T>> *>(
        take(static_cast<size_t>(border_storage<T, B>::count(n)) * sizeof(message<real_t<T>>)));
    band = static_cast<T *>(take(static_cast<size_t>(band_storage<B>::elements(n)) * sizeof(T)));
    tau = static_cast<T *>(take(reflectors * sizeof(T)));
    v = static_cast<T *>(take(reflectors * B * sizeof(T)));
    scratch = take(vectors ? scratch_bytes : 0);
    bytes = static_cast<size_t>(at - static_cast<char *>(memory));
  }
};

} // namespace bqr

/* What bqr_band_prepare() and bqr_band_bytes() leave to sb2st_back.cu; the bytes are those of `scratch`. */
extern "C" batchqr_status bqr_band_prepare_back(batchqr_type type, int width);
extern "C" size_t bqr_band_back_bytes(batchqr_type type, int width, int n);

#endif
