/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole tests made of trials. */
#include "trial.h"

#include <string.h>

void trial_once(trial *t, batchqr_handle_t handle, trial_mode mode) {
  trial_build(t);
  trial_run_and_judge(t, handle, mode);
  trial_free(t);
}

static trial with_spoiled(const trial *t) {
  trial u = *t;
  u.members = trial_of(t->operation, t->routine, t->type, t->count).members;
  memcpy(u.members, t->members, (size_t)t->count * sizeof *t->members);
  for (int64_t i = 1; i < t->count; i += 3) u.members[i].spoil = (trial_spoil)(1 + i / 3 % 3);
  return u;
}

void trial_spoil_some(trial *t, batchqr_handle_t handle, trial_mode mode) {
  trial spoiled = with_spoiled(t);
  trial_build(t);
  trial_build(&spoiled);
  trial_run_and_judge(t, handle, TRIAL_CALL);
  trial_run_and_judge(&spoiled, handle, mode);
  for (int64_t i = 0; i < t->count; i++)
    if (spoiled.members[i].spoil == TRIAL_SOUND)
      trial_check_same(&spoiled, i, t, i, handle, "NaNs in other members");
  trial_free(t);
  trial_free(&spoiled);
}
