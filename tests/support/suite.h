/* SPDX-License-Identifier: BSD-3-Clause */
/* What the test programs of the routines have in common. */
#ifndef BQR_TESTS_SUITE_H
#define BQR_TESTS_SUITE_H

#include "config.h"
#include "memory.h"
#include "types.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* The four types, for loops of Check. */
enum { SUITE_TYPES = 4 };

static inline bool suite_on_gpu(void) { return memory_backend() == BATCHQR_BACKEND_CUDA; }

/* A test for each type that the backend was compiled for. */
static inline void suite_add_types(TCase *tcase, const TTest *test) {
  const unsigned types = suite_on_gpu() ? BQR_CUDA_TYPES : BQR_ALL_TYPES;
  for (int type = 0; type < SUITE_TYPES; type++)
    if (types >> type & 1) tcase_add_loop_test(tcase, test, type, type + 1);
}

/* Likewise, as a case of the test's name, so that CK_RUN_CASE finds it. */
static inline void suite_add(Suite *suite, const TTest *test) {
  TCase *tcase = tcase_create(test->name);
  suite_add_types(tcase, test);
  suite_add_tcase(suite, tcase);
}

/* Runs a suite in this process (CUDA does not survive a fork); returns main()'s status. */
static inline int suite_run(Suite *suite) {
  memory_backend();
  SRunner *runner = srunner_create(suite);
  srunner_set_fork_status(runner, CK_NOFORK);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
