/* SPDX-License-Identifier: BSD-3-Clause */
#include "step_children.h"
#include <stdlib.h>

typedef struct states {
  void *of[BQR_MOST_STEP_CHILDREN];
  void (*close[BQR_MOST_STEP_CHILDREN])(void *);
} states;

/* The child's problem as it is launched. */
static bqr_problem launched(const bqr_child *child, int64_t members) {
  bqr_problem problem = child->problem;
  problem.count = members;
  return problem;
}

size_t bqr_step_child_workspace(const bqr_problem *problem, int number, int64_t members,
                                const bqr_device *device) {
  const bqr_child *c = &problem->children[number];
  const bqr_problem own = launched(c, members);
  return c->family->workspace ? c->family->workspace(&own, c->variant, device) : 0;
}

size_t bqr_step_children_most(const bqr_problem *problem, int64_t members, const bqr_device *device) {
  size_t most = 0;
  for (int i = 0; i < problem->num_children; i++) {
    const size_t bytes = bqr_step_child_workspace(problem, i, members, device);
    if (bytes > most) most = bytes;
  }
  return most;
}

int bqr_step_child_launches(const bqr_problem *problem, int number, int64_t members,
                            const bqr_device *device) {
  const bqr_child *c = &problem->children[number];
  const bqr_problem own = launched(c, members);
  return c->family->count_launches ? c->family->count_launches(&own, c->variant, device)
                                   : c->family->launches;
}

batchqr_status bqr_step_child_launch(const bqr_problem *problem, int number, int64_t members,
                                     const bqr_device *device, bqr_args args, const void *all,
                                     batchqr_stream stream) {
  const bqr_child *c = &problem->children[number];
  const bqr_problem own = launched(c, members);
  args.count = members;
  args.state = ((const states *)all)->of[number];
  return c->family->launch(&own, c->variant, device, &args, stream);
}

batchqr_status bqr_step_children_prepare(const bqr_problem *problem, int64_t members,
                                         const bqr_device *device) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < problem->num_children && !status; i++) {
    const bqr_child *c = &problem->children[i];
    const bqr_problem own = launched(c, members);
    if (c->family->prepare) status = c->family->prepare(&own, c->variant, device);
  }
  return status;
}

batchqr_status bqr_step_children_open(const bqr_problem *problem, int64_t members, const bqr_device *device,
                                      void **opened) {
  states *all = calloc(1, sizeof *all);
  *opened = all;
  if (!all) return BATCHQR_OUT_OF_MEMORY;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < problem->num_children && !status; i++) {
    const bqr_child *c = &problem->children[i];
    const bqr_problem own = launched(c, members);
    all->close[i] = c->family->close;
    if (c->family->open) status = c->family->open(&own, c->variant, device, &all->of[i]);
  }
  return status;
}

void bqr_step_children_close(void *opened) {
  states *all = opened;
  for (int i = 0; all && i < BQR_MOST_STEP_CHILDREN; i++)
    if (all->of[i]) all->close[i](all->of[i]);
  free(all);
}
