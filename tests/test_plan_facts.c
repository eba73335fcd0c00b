/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan knows of its operands, and the families of this build. */
#include "device.h"
#include "fakes.h"
#include "inspect.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

START_TEST(touched_operands_are_known) {
  static const struct {
    batchqr_op op;
    int m, n, k;
    bool a, tau, c, r;
  } cases[] = {
      {BATCHQR_GEQRF, 3, 2, 0, true, true, false, false},
      {BATCHQR_GEQRF, 0, 2, 0, false, false, false, false},
      {BATCHQR_ORGQR, 3, 2, 0, true, false, false, false},
      {BATCHQR_ORGQR, 3, 0, 0, false, false, false, false},
      {BATCHQR_ORMQR, 3, 2, 0, false, false, true, false},
      {BATCHQR_ORMQR, 3, 2, 1, true, true, true, false},
      {BATCHQR_ORMQR, 3, 0, 2, true, true, false, false},
      {BATCHQR_QR, 3, 2, 0, true, false, true, true},
      {BATCHQR_QR, 0, 2, 0, false, false, false, false},
      {BATCHQR_GEQR_R, 3, 2, 0, true, false, false, true},
      {BATCHQR_GELS, 3, 2, 1, true, false, true, false},
      {BATCHQR_GELS, 3, 2, 0, true, false, false, false},
      {BATCHQR_GELS, 3, 0, 1, false, false, true, false},
      {BATCHQR_R_RANGE, 3, 2, 0, true, false, false, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    batchqr_batch batch = uniform(cases[i].m, cases[i].n, 2);
    batch.k = cases[i].k;
    batchqr_plan_t plan = plan_of(cases[i].op, &batch);
    ck_assert((plan->largest[BQR_A] > 0) == cases[i].a && (plan->largest[BQR_TAU] > 0) == cases[i].tau &&
              (plan->largest[BQR_C] > 0) == cases[i].c && (plan->largest[BQR_R] > 0) == cases[i].r);
    bqr_plan_free(plan);
  }
}
END_TEST

START_TEST(storages_are_compared) {
  static const int m[] = {5, 5}, n[] = {3, 4}, ld[] = {7, 7}, other[] = {7, 8};
  batchqr_batch batch = host_sizes(m, n, 2);
  struct {
    batchqr_storage a, c;
    batchqr_layout layout;
    bool alike;
  } cases[] = {
      {{.ld = 7, .stride = 50}, {.ld = 7, .stride = 50}, BATCHQR_STRIDED, true},
      {{.ld = 7, .stride = 50}, {.ld = 7, .stride = 60}, BATCHQR_STRIDED, false},
      {{.ld = 7, .stride = 50}, {.ld = 7, .stride = 60}, BATCHQR_POINTERS, true},
      {{.ld = 7, .stride = 50}, {.ld = 8, .stride = 50}, BATCHQR_STRIDED, false},
      {{.ld = 7}, {.ld_array = ld}, BATCHQR_POINTERS, true},
      {{.ld = 7}, {.ld_array = other}, BATCHQR_POINTERS, false},
      {{.ld_array = ld}, {.ld_array = other}, BATCHQR_POINTERS, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    batch.a = cases[i].a;
    batch.c = cases[i].c;
    batch.a.layout = batch.c.layout = cases[i].layout;
    batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
    ck_assert_msg(plan->stored_as_a[BQR_C] == cases[i].alike, "case %d", (int)i);
    bqr_plan_free(plan);
  }
}
END_TEST

/* The parameters that names of variants spell; flags have no number. */
static const struct parameter {
  const char *word;
  size_t at;
  bool flag;
} parameters[] = {
    {"rows", offsetof(bqr_variant, rows), false},     {"cols", offsetof(bqr_variant, cols), false},
    {"lanes", offsetof(bqr_variant, lanes), false},   {"warps", offsetof(bqr_variant, warps), false},
    {"blocks", offsetof(bqr_variant, blocks), false}, {"chunk", offsetof(bqr_variant, chunk), false},
    {"stream", offsetof(bqr_variant, stream), false}, {"width", offsetof(bqr_variant, width), false},
    {"by", offsetof(bqr_variant, by), false},         {"many", offsetof(bqr_variant, many), true},
    {"wide", offsetof(bqr_variant, wide), true},      {"left", offsetof(bqr_variant, left), true},
    {"tree", offsetof(bqr_variant, tree), true},      {"global", offsetof(bqr_variant, global), true},
};
enum { NUM_PARAMETERS = sizeof parameters / sizeof parameters[0] };

static int value_of(const bqr_variant *variant, const struct parameter *parameter) {
  const char *at = (const char *)variant + parameter->at;
  return parameter->flag ? *(const bool *)at : *(const int *)at;
}

/* The number that a name gives to the word: 1 to a word without one, 0 if it is not there. */
static int spelled(const char *name, const char *word) {
  const size_t length = strlen(word);
  while (name) {
    const char *digits = name + length;
    if (strncmp(name, word, length) == 0 && strchr(".0123456789", *digits))
      return *digits && *digits != '.' ? atoi(digits) : 1;
    name = strchr(name, '.');
    if (name) name++;
  }
  return 0;
}

static void check_name(const bqr_family *f, const bqr_variant *variant) {
  for (int i = 0; i < NUM_PARAMETERS; i++) {
    const int value = value_of(variant, &parameters[i]), said = spelled(variant->name, parameters[i].word);
    const bool one_block = strcmp(parameters[i].word, "blocks") == 0 && value == 1 && said == 0;
    ck_assert_msg(value == said || one_block, "%s %s: %s is %d", f->name, variant->name, parameters[i].word,
                  value);
  }
}

START_TEST(names_of_variants_spell_their_parameters) {
  ck_assert_int_eq(spelled("rows32.cols8", "cols"), 8);
  ck_assert_int_eq(spelled("rows32.cols8", "col"), 0);
  ck_assert_int_eq(spelled("rows32.wide", "wide"), 1);
  ck_assert_int_eq(spelled("rows32", "lanes"), 0);
  for (int i = 0; i < bqr_num_families(); i++) {
    const bqr_family *f = bqr_family_at(i);
    for (int v = 0; v < f->nvariants; v++) check_name(f, &f->variants[v]);
  }
}
END_TEST

START_TEST(the_registry_is_sound) {
  for (int i = 0; i < bqr_num_families(); i++) {
    const bqr_family *f = bqr_family_at(i);
    ck_assert_ptr_eq(bqr_family_find(f->name), f); /* names differ */
    ck_assert(f->op >= 0 && f->op < BQR_NUM_OPS && f->types != 0 && f->nvariants >= 1);
    ck_assert(f->supports && f->launch && (f->launches >= 1) != (f->count_launches != NULL));
    const char *op = bqr_op_name(f->op);
    ck_assert_msg(strncmp(f->name, op, strlen(op)) == 0 && f->name[strlen(op)] == '_', "%s", f->name);
    for (int v = 0; v < f->nvariants; v++) {
      ck_assert_int_eq(bqr_variant_find(f, f->variants[v].name), v);
      ck_assert_int_eq(strcspn(f->variants[v].name, " #"), strlen(f->variants[v].name));
    }
  }
  ck_assert_ptr_null(bqr_family_at(-1));
  ck_assert_ptr_null(bqr_family_at(bqr_num_families()));
  ck_assert_ptr_null(bqr_family_find("geqrf"));
  ck_assert_str_eq(bqr_op_name(BQR_COPY), "copy");
}
END_TEST

START_TEST(compiled_architectures_run_where_they_can) {
  ck_assert(bqr_archs_run_on("90a", 90));
  ck_assert(!bqr_archs_run_on("90a", 100));
  ck_assert(!bqr_archs_run_on("90a", 80));
  ck_assert(bqr_archs_run_on("80", 80));
  ck_assert(bqr_archs_run_on("80", 89));
  ck_assert(bqr_archs_run_on("80", 90)); /* as PTX */
  ck_assert(!bqr_archs_run_on("80", 75));
  ck_assert(bqr_archs_run_on("90a,80", 120));
  ck_assert(bqr_archs_run_on("80,90a,100", 90));
  ck_assert(bqr_archs_run_on("100f", 103));
  ck_assert(!bqr_archs_run_on("100f", 120));
  ck_assert(!bqr_archs_run_on("", 90));
}
END_TEST

/* Of a build that has the families which between them serve everything; else for the CPU. */
START_TEST(every_operation_is_planned_for_a_device) {
  static const char *const needed[] = {"geqrf_block", "orgqr_block",     "ormqr_block", "copy_r_block",
                                       "copy_block",  "transpose_block", "trsm_block"};
  fake.planner.registry = bqr_registry_builtin();
  bool whole = true;
  for (int i = 0; i < 7; i++) whole = whole && bqr_family_find(needed[i]);
  if (!whole || _i == 1) bqr_device_cpu(&fake.device, 2);
  static const int m[] = {0, 5, 300, 5}, n[] = {3, 4, 200, 5};
  for (int type = 0; type < 4; type++)
    for (int op = BATCHQR_GEQRF; op <= BATCHQR_GELS; op++) {
      batchqr_batch batch = uniform(70000, 3000, 2);
      batch.type = (batchqr_type)type;
      batch.k = 3;
      batchqr_plan_t plan = plan_of((batchqr_op)op, &batch);
      ck_assert_int_ge(plan->num_groups, 1);
      bqr_plan_free(plan);
      batch = host_sizes(m, n, op == BATCHQR_ORGQR ? 1 : 4);
      if (op == BATCHQR_ORGQR) batch.m_array = batch.n_array = m + 1;
      batch.type = (batchqr_type)type;
      plan = plan_of((batchqr_op)op, &batch);
      ck_assert_int_ge(plan->num_groups, 1);
      bqr_plan_free(plan);
    }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan_facts");
  TCase *tests = fake_case(suite, "facts");
  tcase_add_test(tests, touched_operands_are_known);
  tcase_add_test(tests, storages_are_compared);
  tcase_add_test(tests, the_registry_is_sound);
  tcase_add_test(tests, names_of_variants_spell_their_parameters);
  tcase_add_test(tests, compiled_architectures_run_where_they_can);
  tcase_add_loop_test(tests, every_operation_is_planned_for_a_device, 0, 2);
  return suite_run(suite);
}
