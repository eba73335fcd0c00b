/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests and benchmarks may see of the inside: the registry, forced choices, a plan's groups. Not
 * installed, not exported: link the static library. */
#ifndef BQR_SRC_INSPECT_H
#define BQR_SRC_INSPECT_H

#include "family.h"

/* The compiled families in order of preference: an operation without a table line goes to the first that
 * supports it. */
int bqr_num_families(void);
const bqr_family *bqr_family_at(int i);
/* NULL if there is none of that name. */
const bqr_family *bqr_family_find(const char *name);
/* Index in family->variants, or -1. */
int bqr_variant_find(const bqr_family *family, const char *name);
/* "geqrf", "copy_r", ... */
const char *bqr_op_name(int op);

/* The machine that a handle works on. */
const bqr_device *bqr_handle_device(batchqr_handle_t handle);

/* Makes later plans of this handle use one family and variant for their steps of operation `op`; a problem
 * that it does not support is then BATCHQR_UNSUPPORTED. family NULL: back to the tables; variant NULL: the
 * family's first that supports the problem. Empties the handle's plan cache. */
batchqr_status bqr_force(batchqr_handle_t handle, int op, const char *family, const char *variant);

/* The same for the children that have this operation and role. Children that a forced choice does not support
 * leave their family out. */
batchqr_status bqr_force_child(batchqr_handle_t handle, int op, bqr_role role, const char *family,
                               const char *variant);

/* Whether later plans of this handle sort members whose sizes are on the device, however few they are. */
void bqr_sort_always(batchqr_handle_t handle, bool always);

/* To how many elements later plans of batchqr_columns_create() apply reflectors at once, at most; 0: as ever.
 */
void bqr_set_strip(batchqr_handle_t handle, int64_t elements);

/* One group of members of one step of a plan. */
typedef struct bqr_group_info {
  int op;
  const char *family, *variant;
  const char *source; /* "sm_90.tune:12", "heuristic", "forced" */
  int64_t members;
  int m, n, k; /* the group's largest sizes */
} bqr_group_info;

int bqr_plan_num_groups(batchqr_plan_t plan);
bqr_group_info bqr_plan_group(batchqr_plan_t plan, int i);

#endif
