/* SPDX-License-Identifier: BSD-3-Clause */
#include "costs.h"
#include "costs.inc"

enum { NUM_COSTS = sizeof bqr_costs_by_sm / sizeof bqr_costs_by_sm[0] };

const bqr_costs *bqr_costs_of(const bqr_device *device) {
  int nearest = 0;
  for (int i = 1; i < NUM_COSTS && bqr_costs_by_sm[i].sm <= device->sm; i++) nearest = i;
  return &bqr_costs_by_sm[nearest].costs;
}
