/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_CP_ASYNC_CUH
#define BQR_KERNELS_COMMON_PTX_CP_ASYNC_CUH

namespace bqr {

template <int BYTES, bool STREAMED = false>
inline void copy_async_part(void *shared, const void *global, int bytes) {
  emulator::copy_later(shared, global, bytes, BYTES);
}
template <int BYTES> inline void copy_async(void *shared, const void *global) {
  emulator::copy_later(shared, global, BYTES, BYTES);
}
template <int BYTES> inline void copy_async_if(bool some, void *shared, const void *global) {
  emulator::copy_later(shared, global, some ? BYTES : 0, BYTES);
}
inline void copy_async_group() { emulator::end_group(); }
template <int PENDING> inline void copy_async_wait_groups() { emulator::finish_groups(PENDING); }
inline void copy_async_wait() { emulator::finish_copies(); }

} // namespace bqr

#endif
