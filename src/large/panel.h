/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of blocked factorizations: which kernel family factors them. A panel of every member is a batch in
 * itself. */
#ifndef BQR_SRC_LARGE_PANEL_H
#define BQR_SRC_LARGE_PANEL_H

#include "family.h"

typedef struct bqr_panel {
  const bqr_family *family;
  const bqr_variant *variant;
} bqr_panel;

/* The choice for a geqrf problem; `tree`: TSQR may be chosen too, as for all but the nodes of its own trees.
 * Pure. false: there is none. */
bool bqr_panel_choose(const bqr_problem *problem, const bqr_device *device, bool tree, bqr_panel *panel);

#endif
