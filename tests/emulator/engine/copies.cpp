/* SPDX-License-Identifier: BSD-3-Clause */
#include "block.h"
#include <cstring>

namespace emulator {

void copy_later(void *to, const void *from, int bytes, int room) {
  fiber &f = *here->current();
  f.copies.push_back({to, from, bytes, room, f.groups});
}

void end_group() { here->current()->groups++; }

static void finish(fiber &f, int last_group) {
  size_t done = 0;
  for (; done < f.copies.size() && f.copies[done].group <= last_group; done++) {
    const pending_copy &c = f.copies[done];
    memcpy(c.to, c.from, static_cast<size_t>(c.bytes));
    memset(static_cast<char *>(c.to) + c.bytes, 0, static_cast<size_t>(c.room - c.bytes));
  }
  f.copies.erase(f.copies.begin(), f.copies.begin() + static_cast<long>(done));
}

void finish_groups(int pending) {
  fiber &f = *here->current();
  if (!f.copies.empty()) finish(f, f.groups - 1 - pending);
}

void finish_copies() {
  fiber &f = *here->current();
  if (!f.copies.empty()) finish(f, f.groups);
}

} // namespace emulator
