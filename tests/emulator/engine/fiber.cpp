/* SPDX-License-Identifier: BSD-3-Clause */
#include "fiber.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace emulator {

/* Not a multiple of a page: the tops of all stacks would share a few sets of the cache. */
static constexpr size_t stack_bytes = 192 * 1024 + 17 * 64;
static constexpr uint64_t canary = 0x5afe57acc0ffee11u;

#if defined(__x86_64__)

/* Registers that a call preserves, and the stack. */
extern "C" void emulator_switch(void **from, void *to);
asm(R"(
.text
.type emulator_switch, @function
emulator_switch:
  endbr64
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size emulator_switch, . - emulator_switch
)");

void switch_context(context &from, context &to) { emulator_switch(&from.stack_pointer, to.stack_pointer); }

static void prepare(unsigned char *stack, size_t bytes, context &fiber, void (*entry)()) {
  constexpr int saved = 6;
  void **top = reinterpret_cast<void **>(stack + bytes);
  *--top = nullptr; /* where entry() would return to */
  *--top = reinterpret_cast<void *>(entry);
  for (int i = 0; i < saved; i++) *--top = nullptr;
  fiber.stack_pointer = top;
}

#else

void switch_context(context &from, context &to) { swapcontext(&from.state, &to.state); }

static void prepare(unsigned char *stack, size_t bytes, context &fiber, void (*entry)()) {
  getcontext(&fiber.state);
  fiber.state.uc_stack.ss_sp = stack;
  fiber.state.uc_stack.ss_size = bytes;
  fiber.state.uc_link = nullptr;
  makecontext(&fiber.state, entry, 0);
}

#endif

unsigned char *stacks::at(size_t i) const { return memory_ + i * stack_bytes; }

stacks::~stacks() {
  if (memory_) munmap(memory_, count_ * stack_bytes);
}

void stacks::reserve(size_t count) {
  if (count <= count_) return;
  if (memory_) munmap(memory_, count_ * stack_bytes);
  void *p = mmap(nullptr, count * stack_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    perror("emulator: stacks of threads");
    abort();
  }
  memory_ = static_cast<unsigned char *>(p);
  count_ = count;
}

void stacks::begin(size_t i, context &fiber, void (*entry)()) {
  memcpy(at(i), &canary, sizeof canary);
  prepare(at(i), stack_bytes, fiber, entry);
}

bool stacks::overrun(size_t i) const { return memcmp(at(i), &canary, sizeof canary) != 0; }

} // namespace emulator
