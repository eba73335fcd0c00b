/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMULATOR_ATOMICS_H
#define EMULATOR_ATOMICS_H

#include "engine.h"
#include <type_traits>

namespace emulator {

/* *p := f(*p); returns what was there. */
template <class T, class F> T change(T *p, F &&f) {
  T old, now;
  __atomic_load(p, &old, __ATOMIC_SEQ_CST);
  do now = f(old);
  while (!__atomic_compare_exchange(p, &old, &now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  progress_of_all();
  return old;
}

template <class T> struct same { using type = T; };
template <class T> using same_t = typename same<T>::type; /* takes no part in finding T */

} // namespace emulator

template <class T> T atomicAdd(T *p, emulator::same_t<T> v) {
  return emulator::change(p, [&](T x) { return x + v; });
}
template <class T> T atomicMax(T *p, emulator::same_t<T> v) {
  return emulator::change(p, [&](T x) { return x < v ? v : x; });
}
template <class T> T atomicOr(T *p, emulator::same_t<T> v) {
  return emulator::change(p, [&](T x) { return x | v; });
}
template <class T> T atomicExch(T *p, emulator::same_t<T> v) {
  return emulator::change(p, [&](T) { return v; });
}
template <class T> T atomicCAS(T *p, emulator::same_t<T> expected, emulator::same_t<T> v) {
  return emulator::change(p, [&](T x) { return x == expected ? v : x; });
}

/* Loads and stores that say where they want to be cached. */
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }

#endif
