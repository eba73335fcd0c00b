/* SPDX-License-Identifier: BSD-3-Clause */
/* The children of families that drive others, see bqr_family.child: chosen as any other problem is, with the
 * same tables, forced choices and registry. */
#ifndef BQR_SRC_CHILDREN_H
#define BQR_SRC_CHILDREN_H

#include "choose.h"

/* Whether there is a choice for the first child of each role. */
bool bqr_children_exist(const bqr_planner *planner, const bqr_choice *choice, const bqr_problem *problem);

/* Chooses the children of a problem that the variant serves, and theirs, and sets problem->children. The
 * problem is to be given to bqr_children_free(), whatever the status. */
batchqr_status bqr_children_plan(const bqr_planner *planner, const bqr_family *family,
                                 const bqr_variant *variant, bqr_problem *problem, bqr_error *error);
void bqr_children_free(bqr_problem *problem);

#endif
