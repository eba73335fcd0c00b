/* SPDX-License-Identifier: BSD-3-Clause */
#include "panel.h"
#include "inspect.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Panels of more rows, which no cluster holds, are faster as trees of blocks of rows. */
enum { MOST_ROWS_OF_A_BLOCK = 1024 };
/* So many members fill the device with few threads for each. Real panels of more rows are then faster without
 * matrix units. */
enum { MANY_MEMBERS = 256, MMA_ROWS = 64 };

static bool without_mma(const bqr_problem *problem) {
  const bool real = problem->type == BATCHQR_S || problem->type == BATCHQR_D;
  return real && problem->count >= MANY_MEMBERS && problem->m > MMA_ROWS;
}

/* Less is better. Drivers that use panels themselves are no panels: -1. node: of a tree. */
static int rank(const bqr_family *family, const bqr_problem *problem, bool node) {
  static const char *const drivers[] = {"geqrf_blocked", "geqrf_large", "geqrf_tsqr"};
  static const char *const mma_first[] = {"geqrf_mma", "geqrf_rows", "", "geqrf_block"};
  static const char *const rows_first[] = {"geqrf_rows", "geqrf_mma", "", "geqrf_block"};
  const char *const *ranks = !node && without_mma(problem) ? rows_first : mma_first;
  for (int i = 0; i < 3; i++)
    if (strcmp(family->name, drivers[i]) == 0) return -1;
  for (int i = 0; i < 4; i++)
    if (strcmp(family->name, ranks[i]) == 0) return i;
  return 2;
}

static bool serves(const bqr_family *family, const bqr_problem *problem, const bqr_device *device) {
  return family->op == BATCHQR_GEQRF && bqr_family_runs_on(family, device, problem->type);
}

/* The rows of the tallest problem of these columns that a variant holds, to a power of two. */
static int capacity(const bqr_family *family, const bqr_variant *variant, const bqr_problem *problem,
                    const bqr_device *device) {
  bqr_problem taller = *problem;
  int rows = 1;
  while (rows < problem->m && rows <= INT_MAX / 2) rows *= 2;
  for (taller.m = rows; taller.m <= INT_MAX / 4; taller.m *= 2)
    if (!family->supports(&taller, variant, device)) break;
  return taller.m / 2;
}

/* The number behind a word of the variant's name; 1 if it is not there. */
static int number(const bqr_variant *variant, const char *word) {
  const char *text = strstr(variant->name, word);
  return text ? atoi(text + strlen(word)) : 1;
}

static int warps(const bqr_variant *variant) { return number(variant, "warps") * number(variant, "blocks"); }

/* The smallest variant that holds the problem; of equal ones that with more warps where members are few. */
static const bqr_variant *smallest(const bqr_family *family, const bqr_problem *problem,
                                   const bqr_device *device) {
  const bqr_variant *best = NULL;
  for (int i = 0; i < family->nvariants; i++) {
    const bqr_variant *v = &family->variants[i];
    if (!family->supports(problem, v, device)) continue;
    int more = best ? capacity(family, best, problem, device) - capacity(family, v, problem, device) : 1;
    if (more == 0) more = problem->count < MANY_MEMBERS ? warps(v) - warps(best) : warps(best) - warps(v);
    if (more > 0) best = v;
  }
  return best;
}

/* Returns the family's rank. */
static int choose_block(const bqr_problem *problem, const bqr_device *device, bool node, bqr_panel *panel) {
  int best = INT_MAX;
  for (int i = 0; i < bqr_num_families(); i++) {
    const bqr_family *family = bqr_family_at(i);
    const int its_rank = rank(family, problem, node);
    if (its_rank < 0 || its_rank >= best || !serves(family, problem, device)) continue;
    const bqr_variant *variant = smallest(family, problem, device);
    if (!variant) continue;
    *panel = (bqr_panel){family, variant};
    best = its_rank;
  }
  return best;
}

static bool choose_tree(const bqr_problem *problem, const bqr_device *device, bqr_panel *panel) {
  const bqr_family *family = bqr_family_find("geqrf_tsqr");
  if (!family || !serves(family, problem, device)) return false;
  for (int good = 1; good >= 0; good--)
    for (int i = 0; i < family->nvariants; i++) {
      const bqr_variant *variant = &family->variants[i];
      if (!family->supports(problem, variant, device)) continue;
      if (good && !family->prefers(problem, variant, device)) continue;
      *panel = (bqr_panel){family, variant};
      return true;
    }
  return false;
}

bool bqr_panel_choose(const bqr_problem *problem, const bqr_device *device, bool tree, bqr_panel *panel) {
  const int best = choose_block(problem, device, !tree, panel);
  if (tree && best > 0 && problem->m > MOST_ROWS_OF_A_BLOCK && choose_tree(problem, device, panel))
    return true;
  return best < INT_MAX;
}
