/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters: the blocks' shared memory is at the same distance from the thread pointer of each. */
#include "block.h"
#include <cstdint>
#include <link.h>

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

/* The variables of a thread of the host, of the program or library that has the kernels. */
struct range {
  uintptr_t begin = 0, end = 0;
  bool has(const void *p) const {
    return reinterpret_cast<uintptr_t>(p) >= begin && reinterpret_cast<uintptr_t>(p) < end;
  }
};

static int find_variables(dl_phdr_info *module, size_t, void *found) {
  for (int i = 0; i < module->dlpi_phnum && module->dlpi_tls_data; i++) {
    if (module->dlpi_phdr[i].p_type != PT_TLS) continue;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(module->dlpi_tls_data);
    const range variables = {begin, begin + module->dlpi_phdr[i].p_memsz};
    if (variables.has(emulator_shared)) *static_cast<range *>(found) = variables;
  }
  return 0;
}

bool is_shared(const void *address) {
  static thread_local range variables;
  if (variables.end == 0) dl_iterate_phdr(find_variables, &variables);
  return variables.has(address);
}

} // namespace emulator
