/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's memory is the host's, with a name for what is whose. New memory holds NaNs, and what lies
 * before and behind it must not change. */
#include "runtime.h"
#include "emulator/engine.h"
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

namespace {

constexpr size_t alignment = 256, guard_bytes = 4096, all_bytes = size_t(8) << 30;
constexpr int unset = 0xff, guard_byte = 0xa5;

struct piece {
  size_t bytes;
  cudaMemoryType type;
};
std::mutex lock;
size_t used;
std::map<uintptr_t, piece> &pieces() {
  static std::map<uintptr_t, piece> all;
  return all;
}

/* Rounded up to whole aligned units. */
size_t rounded(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

cudaError_t allocate(void **memory, size_t bytes, cudaMemoryType type) {
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  std::lock_guard<std::mutex> hold(lock);
  if (bytes > all_bytes - used) return emulator::result(cudaErrorMemoryAllocation);
  void *start = operator new(rounded(bytes) + 2 * guard_bytes, std::align_val_t(alignment), std::nothrow);
  if (!start) return emulator::result(cudaErrorMemoryAllocation);
  char *p = static_cast<char *>(start) + guard_bytes;
  memset(start, guard_byte, guard_bytes);
  memset(p, unset, bytes);
  memset(p + bytes, guard_byte, rounded(bytes) - bytes + guard_bytes);
  pieces()[reinterpret_cast<uintptr_t>(p)] = {bytes, type};
  used += bytes;
  *memory = p;
  return cudaSuccess;
}

void check_guards(const char *p, size_t bytes) {
  const char *first = p - guard_bytes, *end = p + rounded(bytes) + guard_bytes;
  for (const char *c = first; c < end; c = c == p - 1 ? p + bytes : c + 1)
    if (static_cast<unsigned char>(*c) != guard_byte)
      emulator::die("byte %td of a piece of device memory of %zu bytes was written to", c - p, bytes);
}

cudaError_t release(void *memory) {
  if (!memory) return cudaSuccess;
  std::lock_guard<std::mutex> hold(lock);
  const auto found = pieces().find(reinterpret_cast<uintptr_t>(memory));
  if (found == pieces().end()) return emulator::result(cudaErrorInvalidValue);
  const size_t bytes = found->second.bytes;
  check_guards(static_cast<char *>(memory), bytes);
  memset(memory, unset, bytes);
  operator delete(static_cast<char *>(memory) - guard_bytes, std::align_val_t(alignment));
  used -= bytes;
  pieces().erase(found);
  return cudaSuccess;
}

cudaMemoryType type_of(const void *address) {
  const uintptr_t a = reinterpret_cast<uintptr_t>(address);
  std::lock_guard<std::mutex> hold(lock);
  auto next = pieces().upper_bound(a);
  if (next == pieces().begin()) return cudaMemoryTypeUnregistered;
  const auto &[start, found] = *--next;
  return a < start + found.bytes ? found.type : cudaMemoryTypeUnregistered;
}

void copy_lines(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height) {
  for (size_t i = 0; i < height; i++)
    memmove(static_cast<char *>(to) + i * to_pitch, static_cast<const char *>(from) + i * from_pitch, width);
}

void fill_lines(void *to, size_t pitch, int byte, size_t width, size_t height) {
  for (size_t i = 0; i < height; i++) memset(static_cast<char *>(to) + i * pitch, byte, width);
}

} // namespace

extern "C" {

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  const cudaError_t error = emulator::check_no_capture();
  return error != cudaSuccess ? error : allocate(memory, bytes, cudaMemoryTypeDevice);
}
cudaError_t cudaFree(void *memory) { return release(memory); }
cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t) {
  return allocate(memory, bytes, cudaMemoryTypeDevice);
}
cudaError_t cudaFreeAsync(void *memory, cudaStream_t) { return release(memory); }
cudaError_t cudaMallocHost(void **memory, size_t bytes) {
  return allocate(memory, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaFreeHost(void *memory) { return release(memory); }

cudaError_t cudaMemGetInfo(size_t *unused, size_t *all) {
  std::lock_guard<std::mutex> hold(lock);
  *all = all_bytes;
  *unused = all_bytes - used;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *address) {
  attributes->type = type_of(address);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int) { return *pool = nullptr, cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) { return cudaSuccess; }

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return emulator::enqueue(stream, [=] { memmove(to, from, bytes); });
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t stream) {
  return emulator::enqueue(stream, [=] { copy_lines(to, to_pitch, from, from_pitch, width, height); });
}
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
  return emulator::enqueue(stream, [=] { memset(to, byte, bytes); });
}
cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int byte, size_t width, size_t height,
                              cudaStream_t stream) {
  return emulator::enqueue(stream, [=] { fill_lines(to, pitch, byte, width, height); });
}

/* In the default stream. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
cudaError_t cudaMemset(void *to, int byte, size_t bytes) { return cudaMemsetAsync(to, byte, bytes, nullptr); }

} // extern "C"
