/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes up to the largest that an int holds: a plan's workspace is counted right, or there is no plan. The
 * sanitizers look for sizes that overflow on the way. */
#include "device.h"
#include "fakes.h"
#include "inspect.h"

#include <limits.h>

/* A batch whose addresses lie in arrays: no distance between members bounds their sizes. */
static batchqr_batch batch_of(const bqr_operation *operation, batchqr_type type, int m, int n, int k) {
  batchqr_batch batch = batchqr_batch_packed((batchqr_op)operation->op, type, m, n, k, 1);
  for (const bqr_use *use = operation->uses; use->place; use++)
    ((batchqr_storage *)bqr_storage_at(&batch, (int)use->place))->layout = BATCHQR_POINTERS;
  return batch;
}

/* The workspace of so many members; SIZE_MAX where there is no plan for them. */
static size_t workspace_of(const bqr_operation *operation, batchqr_batch batch, int64_t count) {
  batch.count = count;
  struct batchqr_plan *plan;
  const batchqr_status status = bqr_plan_new(&fake.planner, operation->op, &batch, &plan, &fake.error);
  if (status) {
    ck_assert_msg(status == BATCHQR_UNSUPPORTED, "%s: %s", operation->name, fake.error.text);
    return SIZE_MAX;
  }
  const size_t bytes = plan->workspace_bytes;
  bqr_plan_free(plan);
  return bytes;
}

static int times(int size, int factor) { return size > INT_MAX / factor ? INT_MAX : size * factor; }

/* Members of one shape, larger and larger: none needs less than a smaller one. */
static void grow(const bqr_operation *operation, batchqr_type type, int rows, int cols, int k) {
  static const int64_t counts[] = {1, 1000, (int64_t)1 << 40, INT64_MAX / 2};
  size_t before[4] = {0};
  for (int factor = 1;; factor *= 2) {
    const int m = times(rows, factor), n = times(cols, factor);
    const batchqr_batch batch = batch_of(operation, type, m, n, k < n ? k : n);
    for (int i = 0; i < 4; i++) {
      const size_t bytes = workspace_of(operation, batch, counts[i]);
      ck_assert_msg(bytes >= before[i], "%s %c, %lld of %d x %d, k %d: %zu bytes, fewer than the %zu of half",
                    operation->name, "sdcz"[type], (long long)counts[i], m, n, k, bytes, before[i]);
      before[i] = bytes;
    }
    if (m == INT_MAX || n == INT_MAX) break;
  }
}

/* Each operation, in one type. */
START_TEST(workspaces_grow_with_sizes) {
  static const int ones[] = {1, INT_MAX};
  const batchqr_type type = (batchqr_type)(_i % 4);
  fake.planner.registry = bqr_registry_builtin();
  bqr_device_cpu(&fake.device, 3);
  for (int op = 0; op < BQR_NUM_ROUTINES; op++) {
    const bqr_operation *operation = bqr_registry_operation(fake.planner.registry, op);
    for (int i = 0; i < 2; i++) {
      grow(operation, type, 64, 64, ones[i]);
      if (operation->square) continue;
      grow(operation, type, 1024, 2, ones[i]);
      if (!operation->tall) grow(operation, type, 2, 1024, ones[i]);
    }
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan_sizes");
  TCase *tests = fake_case(suite, "sizes");
  tcase_add_loop_test(tests, workspaces_grow_with_sizes, 0, 4);
  return suite_run(suite);
}
