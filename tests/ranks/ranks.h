/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of what several ranks do together. Each rank runs all cases, in the same order, and judges what they
 * have come to by itself. */
#ifndef BQR_TESTS_RANKS_H
#define BQR_TESTS_RANKS_H

#include <batchqr/ranks.h>
#include <stdbool.h>

/* What one rank has. */
typedef struct world {
  const batchqr_communicator *communicator;
  batchqr_handle_t handle, reference; /* the second one is of the CPU */
  batchqr_backend backend;
  int failures;
  uint64_t hash; /* of what all ranks have alike: the same with any communicator */
} world;

/* Counts and prints a failure. */
__attribute__((format(printf, 3, 4))) void expect_that(world *w, bool truth, const char *format, ...);

/* Says on rank 0 which case begins, and when: a run that is cut off tells where it was. */
__attribute__((format(printf, 2, 3))) void enter_case(const world *w, const char *format, ...);

/* Plans, executes, waits and releases. */
batchqr_status over_ranks(world *w, batchqr_op op, const batchqr_batch *batch,
                          const batchqr_operands *operands);

/* Whether all ranks have the same bytes; to be called by all. */
bool all_have(world *w, const void *bytes, size_t size);

/* Routines on matrices of all types and kinds, spread in several ways; `large`: of a size for a GPU, too. */
void test_routines(world *w, bool large);
/* What goes wrong, on one rank or on all. */
void test_errors(world *w);
/* The same for one matrix whose columns are spread. */
void test_columns(world *w, bool large);
void test_columns_errors(world *w);
/* On a communicator of its own with a short time limit, which is of no use afterwards: a rank that does not
 * come. */
void test_absence(world *w, const batchqr_communicator *communicator);

#endif
