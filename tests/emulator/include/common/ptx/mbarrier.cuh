/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_MBARRIER_CUH
#define BQR_KERNELS_COMMON_PTX_MBARRIER_CUH

/* Bytes that bulk copies and remote stores bring are there when the call returns. */
#include "cluster.cuh"
#include <cstring>

namespace bqr {

class phase_barrier {
public:
  void init(int count) { set({0, uint32_t(count), uint32_t(count), 0}); }
  void end() {}
  void arrive() { change(1, 0); }
  void arrive_after_copies() {
    emulator::finish_copies();
    change(1, 0);
  }
  void arrive_before_bytes(int bytes) { change(1, bytes); }
  void copy_bulk(void *shared, const void *global, int bytes) {
    std::memcpy(shared, global, static_cast<size_t>(bytes));
    change(0, -bytes);
  }
  void copy_bulk_to(uint16_t ranks, void *shared, const void *global, int bytes) {
    for (int r = 0; r < cluster_size(); r++)
      if (ranks >> r & 1)
        cluster_shared(this, r)->copy_bulk(cluster_shared(static_cast<char *>(shared), r), global, bytes);
  }
  void arrive_at(int rank) { cluster_shared(this, rank)->arrive(); }
  void arrive_everywhere() {
    for (int r = 0; r < cluster_size(); r++) arrive_at(r);
  }
  template <class T> void send(T *to, T x, int rank) {
    *cluster_shared(to, rank) = x;
    cluster_shared(this, rank)->change(0, -static_cast<int>(sizeof x));
  }
  /* Lanes of a warp test together on a GPU. Here some may be late for a phase that others already left
   * behind: who began to wait goes on even if the phase after it is over as well. */
  void wait(uint32_t parity) {
    const unsigned before = get().phase;
    if ((before & 1) != parity) return;
    while (get().phase == before) emulator::yield();
  }
  void wait_cluster(uint32_t parity) { wait(parity); }

private:
  struct state {
    uint64_t phase : 16, count : 12, missing : 12; /* threads of a phase, and those that have not arrived */
    int64_t bytes : 24;                            /* announced and not there */
  };
  static_assert(sizeof(state) == 8, "");

  state get() const { return unpacked(__atomic_load_n(&state_, __ATOMIC_SEQ_CST)); }
  void set(state s) { __atomic_store_n(&state_, packed(s), __ATOMIC_SEQ_CST); }
  static state unpacked(uint64_t word) {
    state s;
    std::memcpy(&s, &word, sizeof s);
    return s;
  }
  static uint64_t packed(state s) {
    uint64_t word;
    std::memcpy(&word, &s, sizeof s);
    return word;
  }
  void change(int arrivals, int bytes) {
    uint64_t old = __atomic_load_n(&state_, __ATOMIC_SEQ_CST), now;
    do {
      state s = unpacked(old);
      if (arrivals > static_cast<int>(s.missing)) emulator::die("more threads arrive than a phase waits for");
      s.missing -= static_cast<unsigned>(arrivals);
      s.bytes += bytes;
      if (s.missing == 0 && s.bytes == 0) {
        s.phase++;
        s.missing = s.count;
      }
      now = packed(s);
    } while (!__atomic_compare_exchange_n(&state_, &old, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    if (cluster_size() > 1)
      emulator::progress_of_all();
    else
      emulator::progress();
  }
  uint64_t state_;
};

inline void mbarrier_init_fence() {}

template <int PLACES> struct pipeline_state {
  int place = 0;
  uint32_t parity = 0;

  void next() {
    if (++place < PLACES) return;
    place = 0;
    parity ^= 1;
  }
};

} // namespace bqr

#endif
