/* SPDX-License-Identifier: BSD-3-Clause */
/* Fibers: stacks of their own between which a thread of the host switches. */
#ifndef EMULATOR_FIBER_H
#define EMULATOR_FIBER_H

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulator {

struct context {
#if defined(__x86_64__)
  void *stack_pointer;
#else
  ucontext_t state;
#endif
};

/* Leaves the running context in `from` and goes on with `to`. */
void switch_context(context &from, context &to);

/* Stacks, of which the pages that nobody touches cost nothing. */
class stacks {
public:
  ~stacks();
  void reserve(size_t count);
  /* A context that begins with entry() on stack i. */
  void begin(size_t i, context &fiber, void (*entry)());
  /* Whether a fiber used more than its stack. */
  bool overrun(size_t i) const;

private:
  unsigned char *at(size_t i) const;
  unsigned char *memory_ = nullptr;
  size_t count_ = 0;
};

} // namespace emulator

#endif
