/* SPDX-License-Identifier: BSD-3-Clause */
/* Children of a driver that are steps of an operation (see bqr_family.child): their families may have a state
 * of their own. Each is launched with `members` members, whatever number of them it was chosen for. */
#ifndef BQR_SRC_DRIVERS_STEP_CHILDREN_H
#define BQR_SRC_DRIVERS_STEP_CHILDREN_H

#include "family.h"

enum { BQR_MOST_STEP_CHILDREN = 8 };

/* Of one child. */
size_t bqr_step_child_workspace(const bqr_problem *problem, int number, int64_t members,
                                const bqr_device *device);
/* Of the child that takes most. */
size_t bqr_step_children_most(const bqr_problem *problem, int64_t members, const bqr_device *device);
int bqr_step_child_launches(const bqr_problem *problem, int number, int64_t members,
                            const bqr_device *device);
/* Launches it; state and count of `args` are set here. `states`: see bqr_step_children_open(). */
batchqr_status bqr_step_child_launch(const bqr_problem *problem, int number, int64_t members,
                                     const bqr_device *device, bqr_args args, const void *states,
                                     batchqr_stream stream);

/* Of all children: see bqr_family.prepare, open and close. *states is to be closed even where open fails. */
batchqr_status bqr_step_children_prepare(const bqr_problem *problem, int64_t members,
                                         const bqr_device *device);
batchqr_status bqr_step_children_open(const bqr_problem *problem, int64_t members, const bqr_device *device,
                                      void **states);
void bqr_step_children_close(void *states);

#endif
