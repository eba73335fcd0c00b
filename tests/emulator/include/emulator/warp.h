/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchange within a warp: lanes bring what they give and where the answer goes; the last one that comes
 * answers all.
 */
#ifndef EMULATOR_WARP_H
#define EMULATOR_WARP_H

#include "engine.h"

namespace emulator {

inline int lane() { return static_cast<int>(threadIdx.x % 32); }

/* f(lane) for every lane of a mask. */
template <class F> void for_lanes(unsigned mask, F &&f) {
  for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

template <class T> struct shuffle_slot {
  T given, answer;
  int source;
};

template <class T> T shuffle(unsigned mask, T v, int source) {
  if (!(mask >> source & 1)) die("shuffle from lane %d, which is not in the mask %08x", source, mask);
  shuffle_slot<T> mine = {v, v, source};
  with_lanes(mask, &mine, [](void *const *lanes, unsigned all) {
    for_lanes(all, [&](int i) {
      shuffle_slot<T> *slot = static_cast<shuffle_slot<T> *>(lanes[i]);
      slot->answer = static_cast<shuffle_slot<T> *>(lanes[slot->source])->given;
    });
  });
  return mine.answer;
}

} // namespace emulator

inline void __syncwarp(unsigned mask = ~0u) { emulator::with_lanes(mask, nullptr, nullptr); }

template <class T> T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
  return emulator::shuffle(mask, v, (emulator::lane() & -width) | (source & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int lanes) {
  return emulator::shuffle(mask, v, emulator::lane() ^ lanes);
}

inline unsigned __ballot_sync(unsigned mask, int v) {
  unsigned mine = v != 0;
  emulator::with_lanes(mask, &mine, [](void *const *lanes, unsigned all) {
    unsigned votes = 0;
    emulator::for_lanes(all, [&](int i) { votes |= *static_cast<unsigned *>(lanes[i]) << i; });
    emulator::for_lanes(all, [&](int i) { *static_cast<unsigned *>(lanes[i]) = votes; });
  });
  return mine;
}
inline int __any_sync(unsigned mask, int v) { return __ballot_sync(mask, v) != 0; }

inline unsigned __reduce_max_sync(unsigned mask, unsigned v) {
  unsigned mine = v;
  emulator::with_lanes(mask, &mine, [](void *const *lanes, unsigned all) {
    unsigned most = 0;
    emulator::for_lanes(all, [&](int i) {
      const unsigned x = *static_cast<unsigned *>(lanes[i]);
      if (x > most) most = x;
    });
    emulator::for_lanes(all, [&](int i) { *static_cast<unsigned *>(lanes[i]) = most; });
  });
  return mine;
}

#endif
