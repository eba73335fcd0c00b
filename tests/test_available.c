/* SPDX-License-Identifier: BSD-3-Clause */
/* What the examples take for available memory: made-up /proc and /sys/fs/cgroup in a folder of their own. */
#define _XOPEN_SOURCE 700
#include "../examples/program.h"

#include <check.h>
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];

static void make_root(void) {
  strcpy(root, "/tmp/batchqr-available-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(root));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at) {
  (void)status, (void)type, (void)at;
  return remove(path);
}

static void remove_root(void) { nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* Writes the file, and makes the folders that it is in. */
static void put(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", root, name);
  for (char *s = path + strlen(root) + 1; (s = strchr(s, '/')); s++) {
    *s = 0;
    mkdir(path, 0700);
    *s = '/';
  }
  FILE *f = fopen(path, "w");
  ck_assert_ptr_nonnull(f);
  fputs(text, f);
  fclose(f);
}

static void put_machine(void) {
  put("proc/meminfo",
      "MemTotal:       64000000 kB\nMemFree:         1000000 kB\nMemAvailable:   32000000 kB\n");
}

START_TEST(nothing_known) { ck_assert(isinf(ex_available_below(root))); }
END_TEST

START_TEST(machine) {
  put_machine();
  put("proc/self/cgroup", "0::/\n");
  ck_assert_double_eq(ex_available_below(root), 32768e6);
}
END_TEST

/* The narrowest of the groups counts, and pages of files can be given back. */
START_TEST(groups) {
  put_machine();
  put("proc/self/cgroup", "0::/outer/inner\n");
  put("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  put("sys/fs/cgroup/outer/inner/memory.current", "500000000\n");
  put("sys/fs/cgroup/outer/memory.max", "2000000000\n");
  put("sys/fs/cgroup/outer/memory.current", "700000000\n");
  put("sys/fs/cgroup/outer/memory.stat", "anon 600000000\ninactive_file 100000000\n");
  ck_assert_double_eq(ex_available_below(root), 1.4e9);
  put("sys/fs/cgroup/outer/inner/memory.max", "600000000\n");
  ck_assert_double_eq(ex_available_below(root), 1e8);
}
END_TEST

/* In a container the group's name is the host's, and its limits are in the mount's own folder. */
START_TEST(groups_of_version_1) {
  put_machine();
  put("proc/self/cgroup", "5:cpu:/\n4:memory:/docker/0123\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000000\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "1200000000\n");
  ck_assert_double_eq(ex_available_below(root), 0);
  put("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 300000000\n");
  ck_assert_double_eq(ex_available_below(root), 1e8);
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  ck_assert_double_eq(ex_available_below(root), 32768e6);
}
END_TEST

START_TEST(this_process) { ck_assert_double_gt(ex_available_memory(), 1e6); }
END_TEST

int main(void) {
  Suite *suite = suite_create("available");
  TCase *cases = tcase_create("available");
  tcase_add_checked_fixture(cases, make_root, remove_root);
  tcase_add_test(cases, nothing_known);
  tcase_add_test(cases, machine);
  tcase_add_test(cases, groups);
  tcase_add_test(cases, groups_of_version_1);
  tcase_add_test(cases, this_process);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
