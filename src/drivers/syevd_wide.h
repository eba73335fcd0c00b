/* SPDX-License-Identifier: BSD-3-Clause */
/* Which SYEVD problems the whole GPU reduces to tridiagonal form in one stage, one member after another: what
 * the chip holds, where that takes less time than all members side by side, a cluster of blocks for each, or
 * than two stages for one after another. */
#ifndef BQR_SRC_DRIVERS_SYEVD_WIDE_H
#define BQR_SRC_DRIVERS_SYEVD_WIDE_H

#include "costs.h"
#include "sytrd/sytrd.h"

static inline bool bqr_syevd_prefers_wide(const bqr_problem *problem, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const double n = problem->n;
  const bool few = (double)problem->count * costs->syevd.cluster_rows < n || n > costs->syevd.block_rows;
  return few && bqr_sytrd_grid_supports(problem, device);
}

#endif
