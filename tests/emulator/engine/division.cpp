/* SPDX-License-Identifier: BSD-3-Clause */
/* On a GPU a division of integers by zero gives all ones and goes on; kernels do divide so where they do not
 * use what comes out. Processors of x86 stop the program: here it goes on behind the instruction. */
#include "division.h"

#if defined(__x86_64__)
#include <csignal>
#include <ucontext.h>

namespace emulator {

/* The bytes of a DIV or IDIV, or 0 of another instruction. */
static int division_bytes(const unsigned char *code) {
  int at = 0;
  if ((code[at] & 0xf0) == 0x40) at++; /* REX */
  if (code[at] != 0xf7 || (code[at + 1] & 0x30) != 0x30) return 0;
  const int mode = code[at + 1] >> 6, base = code[at + 1] & 7;
  at += 2;
  if (mode == 3) return at;
  int sum = base;
  if (base == 4) sum = code[at++] & 7;
  if (mode == 0) return at + (sum == 5 ? 4 : 0);
  return at + (mode == 1 ? 1 : 4);
}

static void go_on(int, siginfo_t *, void *state) {
  auto &registers = static_cast<ucontext_t *>(state)->uc_mcontext.gregs;
  const int bytes = division_bytes(reinterpret_cast<const unsigned char *>(registers[REG_RIP]));
  if (bytes == 0) {
    signal(SIGFPE, SIG_DFL); /* the same again ends the program */
    return;
  }
  registers[REG_RAX] = -1;
  registers[REG_RIP] += bytes;
}

void allow_division_by_zero() {
  struct sigaction action = {};
  action.sa_sigaction = go_on;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGFPE, &action, nullptr);
}

} // namespace emulator
#else
void emulator::allow_division_by_zero() {}
#endif
