/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_MESSAGE_CUH
#define BQR_KERNELS_COMMON_PTX_MESSAGE_CUH

#include <cstdint>
#include <mutex>

namespace bqr {

/* The tag tells that the number is there: it is written behind it, and read before it. */
template <class R> struct message {
  R number;
  uint32_t tag;
};

template <class R> void send(message<R> *to, R number, uint32_t tag) {
  __atomic_store(&to->number, &number, __ATOMIC_RELAXED);
  __atomic_store_n(&to->tag, tag, __ATOMIC_RELEASE);
  emulator::progress_of_all();
}
template <class R> bool received(const message<R> *from, R &number, uint32_t tag) {
  emulator::yield(); /* who asks waits, mostly */
  if (__atomic_load_n(&from->tag, __ATOMIC_ACQUIRE) != tag) return false;
  __atomic_load(&from->number, &number, __ATOMIC_RELAXED);
  return true;
}

struct alignas(16) two_words {
  uint64_t first, second;
};
inline std::mutex &at_once() {
  static std::mutex lock;
  return lock;
}
template <class W> void write_at_once(W *to, W x) {
  {
    const std::lock_guard<std::mutex> guard(at_once());
    *to = x;
  }
  emulator::progress_of_all();
}
template <class W> W read_at_once(const W *from) {
  emulator::yield(); /* who asks waits, mostly */
  const std::lock_guard<std::mutex> guard(at_once());
  return *from;
}

} // namespace bqr

#endif
