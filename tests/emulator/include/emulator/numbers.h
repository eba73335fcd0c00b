/* SPDX-License-Identifier: BSD-3-Clause */
/* Bits of numbers, and functions of CUDA's own. */
#ifndef EMULATOR_NUMBERS_H
#define EMULATOR_NUMBERS_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace emulator {

template <class TO, class FROM> TO bits(FROM x) {
  static_assert(sizeof(TO) == sizeof(FROM), "");
  TO y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}

} // namespace emulator

inline unsigned __float_as_uint(float x) { return emulator::bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return emulator::bits<float>(x); }
inline float __int_as_float(int x) { return emulator::bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulator::bits<long long>(x); }
inline int __double2hiint(double x) { return static_cast<int>(emulator::bits<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(emulator::bits<uint64_t>(x)); }
inline double __hiloint2double(int hi, int lo) {
  return emulator::bits<double>(uint64_t(static_cast<unsigned>(hi)) << 32 | static_cast<unsigned>(lo));
}

inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t(a) * b >> 32); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t both = uint64_t(y) << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) r |= static_cast<unsigned>(both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return r;
}

/* Time goes on by steps: who waits for some to pass does not wait long. */
inline long long clock64() {
  static thread_local long long cycles;
  return cycles += 1000;
}

inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

#endif
