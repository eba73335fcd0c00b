/* SPDX-License-Identifier: BSD-3-Clause */
/* PRESET on the CPU, where X is always found directly. */
#include "host/member.h"
#include "host/numbers.h"

static void preset_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_args *args = launch->args;
  const batchqr_type type = launch->problem->type;
  int *iterations = bqr_host_vector(&args->iterations, sizeof(int), x->id);
  void *relres = bqr_host_vector(&args->relres, bqr_real_bytes(type), x->id);
  (void)scratch;
  for (int j = 0; j < x->k; j++) {
    if (iterations) iterations[j] = 0;
    if (relres) bqr_host_set_real(type, relres, j, -1);
  }
}

HOST_FAMILY(preset_host, BQR_PRESET, bqr_host_no_scratch, preset_member);
