/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters: the blocks' shared memory is at the same distance from the thread pointer of each. */
#include "block.h"

namespace emulator {

void cluster_barrier() {
  if (here->cluster())
    here->wait_for_cluster();
  else
    here->wait_at(0, 0, false);
}

int cluster_size() { return here->cluster() ? here->cluster()->size : 1; }
int cluster_rank() { return here->rank(); }

void *in_block(void *mine, int rank) {
  if (rank < 0 || rank >= cluster_size()) die("block %d of a cluster of %d", rank, cluster_size());
  if (!here->cluster()) return mine;
  char *const *pointers = here->cluster()->thread_pointer;
  return static_cast<char *>(mine) - pointers[here->rank()] + pointers[rank];
}

/* Not exact: variables that a block has as __shared__ lie somewhere near. */
bool is_shared(const void *address) {
  const char *p = static_cast<const char *>(address), *self = static_cast<const char *>(__builtin_thread_pointer());
  constexpr long most = long(4) << 20;
  return p - self < most && self - p < most;
}

} // namespace emulator
