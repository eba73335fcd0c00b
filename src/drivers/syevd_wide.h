/* SPDX-License-Identifier: BSD-3-Clause */
/* Which SYEVD problems the whole GPU reduces to tridiagonal form in one stage, one member after another. */
#ifndef BQR_SRC_DRIVERS_SYEVD_WIDE_H
#define BQR_SRC_DRIVERS_SYEVD_WIDE_H

#include "costs.h"
#include "sytrd/sytrd.h"

static inline bool bqr_syevd_prefers_wide(const bqr_problem *problem, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const double n = problem->n;
  const bool is_real = problem->type == BATCHQR_S || problem->type == BATCHQR_D;
  return is_real && problem->count == 1 && n >= costs->syevd.alone_rows && n <= costs->syevd.block_rows &&
         bqr_sytrd_grid_supports(problem, device);
}

#endif
