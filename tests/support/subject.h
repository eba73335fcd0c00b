/* SPDX-License-Identifier: BSD-3-Clause */
/* A variant of a family under test, and the sizes at which it has to be tested: its limits are found by
 * asking supports(). */
#ifndef BQR_TESTS_SUBJECT_H
#define BQR_TESTS_SUBJECT_H

#include "operations.h"
#include "trial.h"

/* What is under test. */
typedef struct subject {
  const bqr_family *family;
  const bqr_variant *variant;
  batchqr_type type;
  batchqr_side side;
  batchqr_trans trans;
  batchqr_compute compute;
  bool whole;                        /* the operation as the caller's, no step of a program: TRSM */
  batchqr_handle_t handle, positive; /* the variant is forced in both */
} subject;

/* The row of the family's operation. */
const bqr_operation *subject_operation(const subject *s);
/* Whether its member is a Q to be made of k reflectors, as ORGQR's; a C to be multiplied by one, as ORMQR's.
 */
bool subject_makes_q(const subject *s);
bool subject_applies_q(const subject *s);

/* k: reflectors; 0 where the operation has none. Where Q is applied, m x n is C. */
typedef struct size {
  int m, n, k;
} size;

enum { MAX_SIZES = 96 };

typedef struct size_list {
  size x[MAX_SIZES];
  int count;
} size_list;

/* Whether the operation has such members. */
bool subject_is_legal(const subject *s, size x);
/* Whether the variant does members of that size, in a batch of that form. */
bool subject_supports_as(const subject *s, size x, batchqr_layout layout, bool uniform, bool positive,
                         int64_t count);
/* In some form. */
bool subject_supports(const subject *s, size x);

/* The operation's size of two numbers: m and n; where Q is made: k = n; where Q is applied: its order and k,
 * C having `other` columns (left) or rows; with other = 0, Q's order and the other size, one reflector. */
size subject_size(const subject *s, int a, int b, int other);
/* The largest a for which (a, b) fits, or the largest b for which (a, b) does; 0 if none. Support is
 * monotone: a variant that supports a size serves all smaller ones. */
int subject_limit(const subject *s, int a, int b, bool of_a, int other);

/* A legal size at random, up to x. */
size subject_smaller(const subject *s, size x, uint64_t seed);

/* Common sizes, and those around the variant's limits. Of at most BATCHQR_TEST_ELEMENTS elements, where the
 * environment says so. */
size_list subject_sizes(const subject *s);

/* A trial of the subject's, of so many members. */
trial subject_trial(const subject *s, int64_t count);
/* Turns a trial of members up to x into one that the variant supports; false if there is none like it. */
bool subject_takes(const subject *s, trial *t, size x);

#endif
