/* SPDX-License-Identifier: BSD-3-Clause */
/* Which family and variant a problem gets. */
#ifndef BQR_SRC_CHOOSE_H
#define BQR_SRC_CHOOSE_H

#include "plan.h"

typedef struct bqr_choice {
  const bqr_family *family; /* NULL: none supports the problem, or it is to be done in steps */
  const bqr_variant *variant;
  const bqr_rule *rule;   /* the table's; NULL: forced, or by heuristic */
  const bqr_table *table; /* of the rule */
  bool forced;
} bqr_choice;

/* Whether the choice supports a problem on the planner's device, and there are families for its children. */
bool bqr_choice_serves(const bqr_planner *planner, const bqr_choice *choice, const bqr_problem *problem);

/* The forced choice; else the first rule that fits, of the planner's table and then of its table for
 * children; else the heuristic: the first family of the registry and the first of its variants that supports
 * the problem and says that it is good at it, or, if none does, that supports it. What takes more workspace
 * than the problem's limit is passed over, unless all do: then it is what takes least. Rules are asked for
 * `count` members, which may be more than the problem's. A forced choice that does not support the problem is
 * BATCHQR_UNSUPPORTED. */
batchqr_status bqr_choose(const bqr_planner *planner, const bqr_problem *problem, int64_t count,
                          bqr_choice *choice, bqr_error *error);

/* What made the choice, see bqr_group_info. */
void bqr_choice_source(const bqr_choice *choice, char *text, size_t size);

#endif
