/* SPDX-License-Identifier: BSD-3-Clause */
/* Families that drive others: their children are planned as any other problem is, kept in the plan and
 * described. */
#include "children.h"
#include "config.h"
#include "fakes.h"
#include "inspect.h"

#include <limits.h>
#include <string.h>
#include <time.h>

/* --- made-up drivers */

/* Panels of 8 columns, and then a leaf of 4 x 4. */
static bool panels_and_leaf(const bqr_problem *p, const bqr_variant *v, const bqr_device *device, int number,
                            bqr_problem *child) {
  (void)v, (void)device;
  const int panels = (p->n + 7) / 8;
  if (number > panels) return false;
  const bool leaf = number == panels;
  *child = *p;
  child->role = leaf ? BQR_ROLE_LEAF : BQR_ROLE_PANEL;
  child->m = leaf ? 4 : p->m - 8 * number;
  child->n = leaf ? 4 : 8;
  child->count = leaf ? 300 : 1;
  return true;
}

static bool one_leaf(const bqr_problem *p, const bqr_variant *v, const bqr_device *device, int number,
                     bqr_problem *child) {
  (void)v, (void)device;
  *child = *p;
  child->role = BQR_ROLE_LEAF;
  child->m = 16;
  return number == 0;
}

/* A family that would be its own child. */
static bool itself(const bqr_problem *p, const bqr_variant *v, const bqr_device *device, int number,
                   bqr_problem *child) {
  (void)v, (void)device;
  *child = *p;
  return number == 0;
}

static batchqr_status open_nothing(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                                   void **state) {
  (void)p, (void)v, (void)device;
  *state = NULL;
  return BATCHQR_SUCCESS;
}

static bqr_family blocked, tree, leaf_family;
static const bqr_family *const driving[] = {&blocked, &tree, &leaf_family, NULL};
static const bqr_registry registry = {driving, fake_none, bqr_builtin_operations};

/* blocked is for more than 8 columns, tree for members of more than 32 rows, leaf_family for the others. */
static void set_up(void) {
  static const bqr_variant any = {.name = "any"}, small = {.name = "small", .rows = 32, .cols = 8};
  blocked = tree = leaf_family = geqrf_any;
  blocked.name = "geqrf_blocks", tree.name = "geqrf_tree", leaf_family.name = "geqrf_leaves";
  blocked.workspace = tree.workspace = leaf_family.workspace = NULL;
  blocked.variants = tree.variants = &any;
  leaf_family.variants = &small;
  blocked.child = panels_and_leaf;
  blocked.open = open_nothing; /* no child has a state */
  tree.child = one_leaf;
  fake.planner.registry = &registry;
}

#define PLAN      "geqrf 2 x (48x16) d: geqrf_blocks any by heuristic; workspace 0 B"
#define TREE(WHY) "geqrf_tree any " WHY "\n    1 x geqrf.leaf <=16x8: geqrf_leaves small by heuristic"

START_TEST(children_are_planned_and_described) {
  batchqr_batch batch = uniform(48, 16, 2);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_str_eq(plan->description, PLAN "\n  2 x geqrf.panel <=48x8: " TREE("by heuristic") /**/
                   "\n  1 x geqrf.leaf <=4x4: geqrf_leaves small by heuristic");
  const bqr_problem *p = &plan->groups[0].problem;
  ck_assert_int_eq(p->num_children, 3);
  ck_assert_int_eq(p->children[1].problem.m, 40);
  ck_assert(p->aligned && !p->children[1].problem.aligned);
  ck_assert_int_eq(p->children[1].problem.num_children, 1);
  ck_assert(p->children[1].family == &tree && p->children[2].family == &leaf_family);
  bqr_plan_free(plan);
}
END_TEST

/* The table for children is read after the other, and lines for the operation itself are not theirs. */
START_TEST(tables_choose_children) {
  static const char text[] = "batchqr-tuning 1\n"
                             "geqrf d 1.. 1.. 1.. geqrf_blocks any 1\n"
                             "geqrf.panel d 1..40 1.. 1.. geqrf_tree any 1\n";
  static const char children[] = "batchqr-tuning 1\n"
                                 "geqrf.panel d 1.. 1.. 1..255 geqrf_tree any 1\n"
                                 "geqrf.leaf d 1.. 1.. 300 geqrf_leaves small 1\n";
  bqr_table *tables[2];
  ck_assert_int_eq(bqr_table_parse(&registry, "t.tune", text, strlen(text), &tables[0], &fake.error), 0);
  ck_assert_int_eq(bqr_table_parse(&registry, "c.tune", children, strlen(children), &tables[1], &fake.error),
                   0);
  fake.planner.table = tables[0];
  fake.planner.child_table = tables[1];
  batchqr_batch batch = uniform(48, 16, 2);
  expect_text(BATCHQR_GEQRF, &batch,
              "geqrf 2 x (48x16) d: geqrf_blocks any from t.tune:2; workspace 0 B"
              "\n  1 x geqrf.panel <=48x8: " TREE("from c.tune:2") /**/
              "\n  1 x geqrf.panel <=40x8: " TREE("from t.tune:3") /**/
              "\n  1 x geqrf.leaf <=4x4: geqrf_leaves small from c.tune:3");
  bqr_table_free(tables[0]);
  bqr_table_free(tables[1]);
}
END_TEST

START_TEST(children_can_be_forced) {
  batchqr_batch batch = uniform(24, 16, 2);
  fake.forced[bqr_forced_index(BATCHQR_GEQRF, BQR_ROLE_PANEL)] = (bqr_forced){&leaf_family, -1};
  expect_text(BATCHQR_GEQRF, &batch,
              "geqrf 2 x (24x16) d: geqrf_blocks any by heuristic; workspace 0 B"
              "\n  2 x geqrf.panel <=24x8: geqrf_leaves small, forced"
              "\n  1 x geqrf.leaf <=4x4: geqrf_leaves small by heuristic");
  batch = uniform(48, 8, 2); /* the panel is too high for it: what has panels is left out */
  expect_text(BATCHQR_GEQRF, &batch,
              "geqrf 2 x (48x8) d: geqrf_tree any by heuristic; workspace 0 B"
              "\n  1 x geqrf.leaf <=16x8: geqrf_leaves small by heuristic");
}
END_TEST

/* What a role excludes: states; in leaves workspaces and children, too. And no role comes again. */
START_TEST(roles_restrict_families) {
  const bqr_choice leaves = {.family = &leaf_family, .variant = &leaf_family.variants[0]};
  bqr_problem p = {
      .op = BATCHQR_GEQRF, .role = BQR_ROLE_PANEL, .type = BATCHQR_D, .m = 8, .n = 8, .count = 1};
  ck_assert(bqr_choice_serves(&fake.planner, &leaves, &p));
  leaf_family.workspace = orgqr_any.workspace;
  ck_assert(bqr_choice_serves(&fake.planner, &leaves, &p));
  p.role = BQR_ROLE_LEAF;
  ck_assert(!bqr_choice_serves(&fake.planner, &leaves, &p));
  leaf_family.workspace = NULL;
  ck_assert(bqr_choice_serves(&fake.planner, &leaves, &p));
  leaf_family.open = open_nothing;
  ck_assert(!bqr_choice_serves(&fake.planner, &leaves, &p));
  p.role = BQR_ROLE_PANEL;
  ck_assert(!bqr_choice_serves(&fake.planner, &leaves, &p));
  leaf_family.open = NULL;
  leaf_family.child = itself;
  for (p.role = BQR_ROLE_STEP; p.role < BQR_NUM_ROLES; p.role++)
    ck_assert(!bqr_choice_serves(&fake.planner, &leaves, &p));
}
END_TEST

START_TEST(what_has_no_children_to_drive_is_left_out) {
  batchqr_batch batch = uniform(48, 16, 2);
  fake.forced[BATCHQR_GEQRF] = (bqr_forced){&blocked, -1};
  fake.forced[bqr_forced_index(BATCHQR_GEQRF, BQR_ROLE_LEAF)] = (bqr_forced){&tree, -1};
  expect_failure(BATCHQR_GEQRF, &batch, BATCHQR_UNSUPPORTED,
                 "geqrf_blocks was forced and does not support geqrf of 48 x 16");
}
END_TEST

/* --- the library's own families, whose choices need no GPU */

typedef struct recorded {
  int sm;
  bqr_role role;
  batchqr_type type;
  int count, n, first, last; /* from .. to so many rows */
  const char *family, *variant;
} recorded;

static const recorded choices[] = {
#include "panel_choices.inc"
};

static void use_library(int sm) {
  fake.device.sm = sm;
  fake.device.types = BQR_HAVE_CUDA ? BQR_CUDA_TYPES : 0;
  fake.device.multiprocessors = sm < 90 ? 108 : 132;
  fake.device.smem_per_block = sm < 90 ? 166912 : 232448;
  fake.device.smem_per_sm = sm < 90 ? 167936 : 233472;
  fake.planner.registry = bqr_registry_builtin();
  bqr_table *table, *children;
  ck_assert_int_eq(bqr_table_builtin(fake.planner.registry, sm, &table, &fake.error), BATCHQR_SUCCESS);
  ck_assert_int_eq(bqr_table_children(fake.planner.registry, &children, &fake.error), BATCHQR_SUCCESS);
  fake.planner.table = table;
  fake.planner.child_table = children;
}

static void drop_library(void) {
  bqr_table_free((bqr_table *)fake.planner.table);
  bqr_table_free((bqr_table *)fake.planner.child_table);
}

static bool builds_all_panels(void) {
  return bqr_family_find("geqrf_mma") && bqr_family_find("geqrf_rows") && bqr_family_find("geqrf_tsqr") &&
         bqr_family_find("geqrf_block");
}

START_TEST(panels_and_leaves_have_the_families_that_they_had) {
  for (size_t i = 0; i < sizeof choices / sizeof choices[0] && builds_all_panels(); i++) {
    const recorded *r = &choices[i];
    use_library(r->sm);
    const int rows[] = {r->first, r->first + (r->last - r->first) / 2, r->last};
    for (int j = 0; j < 3 && fake.device.types >> r->type & 1; j++) {
      const bqr_problem p = {.op = BATCHQR_GEQRF,
                             .role = r->role,
                             .type = r->type,
                             .pointers = true,
                             .m = rows[j],
                             .n = r->n,
                             .count = r->count};
      bqr_choice choice;
      ck_assert_int_eq(bqr_choose(&fake.planner, &p, p.count, &choice, &fake.error), BATCHQR_SUCCESS);
      ck_assert_msg(choice.family && strcmp(choice.family->name, r->family) == 0 &&
                        strcmp(choice.variant->name, r->variant) == 0,
                    "sm_%d%s %c, %d rows, %d members: %s %s instead of %s %s", r->sm,
                    bqr_role_suffix(r->role), "sdcz"[r->type], rows[j], r -> count, choice.family->name,
                    choice.variant->name, r->family, r->variant);
    }
    drop_library();
  }
}
END_TEST

/* Columns right of the reflectors are shared by blocks of threads, where there are many and members are few.
 */
START_TEST(few_wide_members_are_blocked) {
  static const struct {
    int m, n, count;
    bool blocked;
  } members[] = {{28, 100000, 1, true}, {2, 40000, 43, true}, {28, 100000, 2000, false}, {28, 60, 1, false}};
  if (!builds_all_panels() || !bqr_family_find("geqrf_blocked")) return;
  use_library(90);
  for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
    const bqr_problem p = {.op = BATCHQR_GEQRF,
                           .type = BATCHQR_D,
                           .uniform = true,
                           .m = members[i].m,
                           .n = members[i].n,
                           .count = members[i].count};
    bqr_choice choice;
    ck_assert_int_eq(bqr_choose(&fake.planner, &p, p.count, &choice, &fake.error), BATCHQR_SUCCESS);
    ck_assert_msg((strcmp(choice.family->name, "geqrf_blocked") == 0) == members[i].blocked,
                  "%d of %d x %d: %s", members[i].count, p.m, p.n, choice.family->name);
  }
  drop_library();
}
END_TEST

/* Eigenvalues of members of a few hundred rows: as many blocks for each as there are. */
START_TEST(clusters_share_the_device) {
  static const struct {
    batchqr_type type;
    int n, count;
    const char *family, *variant;
  } members[] = {{BATCHQR_D, 256, 16, "syevd_cluster", "rows256"},
                 {BATCHQR_Z, 256, 16, "syevd_cluster", "blocks8"},
                 {BATCHQR_D, 512, 16, "syevd_cluster", "rows1024.blocks4"},
                 {BATCHQR_D, 512, 33, "syevd_cluster", "rows1024.blocks3"},
                 {BATCHQR_D, 1024, 10, "syevd_cluster", "rows1024.blocks8"},
                 {BATCHQR_D, 512, 1, "syevd_cluster", "wide"},
                 {BATCHQR_D, 512, 2, "syevd_cluster", "rows1024.blocks8"},
                 {BATCHQR_D, 514, 2, "syevd_cluster", "wide"},
                 {BATCHQR_C, 257, 1, "syevd_cluster", "wide"},
                 {BATCHQR_D, 1024, 1, "syevd_cluster", "wide"},
                 {BATCHQR_Z, 1024, 1, "syevd_cluster", "wide"},
                 {BATCHQR_Z, 1025, 1, "syevd_large", NULL},
                 {BATCHQR_D, 2048, 3, "syevd_cluster", "wide"},
                 {BATCHQR_D, 2049, 1, "syevd_large", NULL},
                 {BATCHQR_D, 256, 33, "syevd_cluster", "rows256"},
                 {BATCHQR_S, 129, 132, "syevd_cluster", "rows256"},
                 {BATCHQR_D, 512, 1000, "syevd_cluster", "rows1024.blocks3"},
                 {BATCHQR_S, 512, 100, "syevd_cluster", "rows1024.blocks2"},
                 {BATCHQR_C, 512, 16, "syevd_cluster", "blocks8.global"},
                 {BATCHQR_C, 512, 33, "syevd_cluster", "blocks4.global"},
                 {BATCHQR_Z, 512, 1000, "syevd_cluster", "blocks1.global"},
                 {BATCHQR_D, 256, 200, "syevd_tridiagonal", NULL},
                 {BATCHQR_S, 256, 200, "syevd_tridiagonal", NULL},
                 {BATCHQR_D, 128, 16, "syevd_tridiagonal", NULL}};
  if (!bqr_family_find("syevd_cluster") || !bqr_family_find("syevd_tridiagonal")) return;
  use_library(90);
  for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
    const int n = members[i].n;
    const bqr_problem p = {.op = BATCHQR_SYEVD,
                           .type = members[i].type,
                           .uniform = true,
                           .vectors = true,
                           .m = n,
                           .n = n,
                           .k = n,
                           .count = members[i].count};
    if (!(fake.device.types >> p.type & 1) || !bqr_family_find(members[i].family)) continue;
    bqr_choice choice;
    ck_assert_int_eq(bqr_choose(&fake.planner, &p, p.count, &choice, &fake.error), BATCHQR_SUCCESS);
    ck_assert_msg(choice.family && strcmp(choice.family->name, members[i].family) == 0 &&
                      (!members[i].variant || strcmp(choice.variant->name, members[i].variant) == 0),
                  "%d of %d x %d %c: %s %s", members[i].count, n, n, "sdcz"[p.type], choice.family->name,
                  choice.variant->name);
  }
  drop_library();
}
END_TEST

/* Whole operations as children: of members whose pivots come from products, and of no others. Those of few
 * columns without a C are ordered in place. */
START_TEST(pivots_of_larger_members_come_from_products) {
  static const struct {
    int m, n, k, count;
    bool products;
  } members[] = {{256, 256, 3, 1000, true}, {512, 64, 3, 1000, true},  {8192, 8192, 3, 1, true},
                 {64, 64, 3, 1000, false},  {20, 2000, 3, 300, false}, {1 << 24, 64, 3, 1, false},
                 {100, 64, 0, 1000, true},  {512, 64, 0, 1000, true},  {32, 32, 0, 1000, false},
                 {256, 256, 0, 1000, true}, {64, 64, 0, 1000, false}};
  if (!builds_all_panels() || !bqr_family_find("geqp3_gram") || !bqr_family_find("geqp3_grid")) return;
  use_library(90);
  for (size_t i = 0; i < sizeof members / sizeof members[0] && fake.device.types >> BATCHQR_D & 1; i++) {
    const int m = members[i].m, n = members[i].n;
    batchqr_batch batch =
        batchqr_batch_packed(BATCHQR_GEQP3, BATCHQR_D, m, n, members[i].k, members[i].count);
    batchqr_plan_t plan;
    const batchqr_status status = bqr_plan_new(&fake.planner, BATCHQR_GEQP3, &batch, &plan, &fake.error);
    ck_assert_int_eq(status, BATCHQR_SUCCESS);
    const bqr_group *group = &plan->groups[0];
    const bqr_problem *p = &group->problem;
    ck_assert_msg((strcmp(group->family->name, "geqp3_gram") == 0) == members[i].products, "%s",
                  plan->description);
    const int ops[] = {BATCHQR_GEQRF, members[i].k ? BATCHQR_ORMQR : BATCHQR_GEQP3, BATCHQR_GEQP3},
              children = members[i].k ? 3 : 2;
    for (int c = 0; c < children && members[i].products; c++) {
      ck_assert_int_eq(p->num_children, children);
      ck_assert_int_eq(p->children[c].problem.op, ops[c]);
      ck_assert(ops[c] != BATCHQR_GEQP3 || strcmp(p->children[c].family->name, "geqp3_gram") != 0);
    }
    if (members[i].products) ck_assert_int_eq(group->variant->many, members[i].k == 0 && members[i].n <= 128);
    bqr_plan_free(plan);
  }
  drop_library();
}
END_TEST

static void expect_quick_plan(batchqr_op op, const batchqr_batch *batch) {
  batchqr_plan_t plan;
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  const batchqr_status status = bqr_plan_new(&fake.planner, op, batch, &plan, &fake.error);
  clock_gettime(CLOCK_MONOTONIC, &end);
  ck_assert(status == BATCHQR_SUCCESS || status == BATCHQR_UNSUPPORTED || status == BATCHQR_OUT_OF_MEMORY);
  const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
  ck_assert_msg(seconds < 1, "op %d of %d x %d: %g s", op, batch->m, batch->n, seconds);
  bqr_plan_free(plan);
}

/* However large members may be: not all their panels are gone through. */
START_TEST(planning_ends) {
  static const int sizes[] = {1 << 19, 1 << 20, 1 << 30, INT_MAX};
  static const batchqr_op ops[] = {BATCHQR_GEQRF, BATCHQR_ORGQR, BATCHQR_ORMQR,
                                   BATCHQR_QR,    BATCHQR_GELS,  BATCHQR_GEQR_R};
  use_library(90);
  for (int i = 0; i < 4; i++)
    for (int form = 0; form < 3; form++)
      for (int op = 0; op < 6; op++) {
        batchqr_batch batch = uniform(sizes[i], sizes[i], 1);
        batch.k = ops[op] == BATCHQR_GELS ? 1 : sizes[i];
        batch.c.ld = batch.a.ld;
        if (form > 0) batch.a.layout = batch.c.layout = batch.r.layout = batch.tau.layout = BATCHQR_POINTERS;
        if (form > 1) batch.sizes = BATCHQR_DEVICE_SIZES;
        expect_quick_plan(ops[op], &batch);
      }
  drop_library();
}
END_TEST

/* A family of a whole operation may leave all of it to steps, which may have states; and where it is chosen
 * only if it says that it is good, programs do what it does not prefer. */
static bool steps_of_gels(const bqr_problem *p, const bqr_variant *v, const bqr_device *device, int number,
                          bqr_problem *child) {
  static const int ops[] = {BATCHQR_GEQRF, BATCHQR_TRSM};
  (void)v, (void)device;
  if (number > 1) return false;
  *child = *p;
  child->op = ops[number];
  child->whole = false;
  return true;
}

static bool is_wide_enough(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)v, (void)device;
  return p->n >= 20;
}

START_TEST(a_whole_operation_is_left_to_steps) {
  static const bqr_variant any = {.name = "any"};
  bqr_family rungs = geqrf_any, stateful = geqrf_any;
  rungs.name = "gels_rungs", rungs.op = BATCHQR_GELS, rungs.variants = &any, rungs.workspace = NULL;
  rungs.child = steps_of_gels, rungs.prefers = is_wide_enough, rungs.only_where_good = true;
  stateful.open = open_nothing;
  const bqr_family *const families[] = {&rungs, &stateful, &transpose_any, &ormqr_any, &trsm_any, NULL};
  const bqr_registry with_rungs = {families, fake_none, bqr_builtin_operations};
  fake.planner.registry = &with_rungs;
  batchqr_batch batch = uniform(48, 24, 2);
  batch.k = 1;
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &batch);
  ck_assert_int_eq(plan->num_groups, 1);
  ck_assert_ptr_eq(plan->groups[0].family, &rungs);
  const bqr_problem *p = &plan->groups[0].problem;
  ck_assert_int_eq(p->num_children, 2);
  ck_assert(p->children[0].family == &stateful && p->children[1].family == &trsm_any);
  bqr_plan_free(plan);
  batch = uniform(48, 16, 2);
  batch.k = 1;
  plan = plan_of(BATCHQR_GELS, &batch);
  ck_assert_int_eq(plan->num_groups, 4);
  bqr_plan_free(plan);
  fake.forced[BATCHQR_GELS] = (bqr_forced){&rungs, -1};
  plan = plan_of(BATCHQR_GELS, &batch);
  ck_assert_int_eq(plan->num_groups, 1);
  bqr_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan_children");
  TCase *tests = fake_case(suite, "children");
  tcase_add_checked_fixture(tests, set_up, NULL);
  tcase_add_test(tests, children_are_planned_and_described);
  tcase_add_test(tests, tables_choose_children);
  tcase_add_test(tests, children_can_be_forced);
  tcase_add_test(tests, roles_restrict_families);
  tcase_add_test(tests, what_has_no_children_to_drive_is_left_out);
  tests = fake_case(suite, "library");
  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, panels_and_leaves_have_the_families_that_they_had);
  tcase_add_test(tests, few_wide_members_are_blocked);
  tcase_add_test(tests, clusters_share_the_device);
  tcase_add_test(tests, pivots_of_larger_members_come_from_products);
  tcase_add_test(tests, planning_ends);
  tcase_add_test(tests, a_whole_operation_is_left_to_steps);
  return suite_run(suite);
}
