/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of GEQP3, GESVD and SYEVD have in common: calls of many members, each a hard matrix, in
 * every form, by every family. */
#ifndef BQR_TESTS_SPECTRA_H
#define BQR_TESTS_SPECTRA_H

#include "dense.h"
#include "hard.h"
#include "rows.h"
#include "suite.h"

/* The largest ratio of a residual to what rounding explains. */
enum { SPECTRA_RATIO = 30 };

/* What is tested. */
typedef struct spectra {
  int op;
  bool square;                /* members are n x n */
  void (*fill)(rows_call *c); /* more than A */
  void (*judge)(const rows_call *c, int64_t i, const char *what);
} spectra;

/* Member i is of kind kinds[i % number]. */
void spectra_fill(rows_call *c, const int *kinds, int number, uint64_t seed);
void spectra_run(const spectra *test, rows_call *c, batchqr_handle_t handle, const char *what);

/* ck_assert of a ratio, naming member, type, size. */
void spectra_expect(const rows_call *c, int64_t i, const char *what, const char *ratio, double value,
                    double most);

/* Tests, each for one type. */
void spectra_every_kind(const spectra *test, batchqr_type type);
void spectra_every_form(const spectra *test, batchqr_type type);
void spectra_every_variant(const spectra *test, batchqr_type type);
/* Members' results are the same bits in any place and in every run. */
void spectra_places(const spectra *test, batchqr_type type);
/* A NaN or an Inf in a member, whose neighbours are well. In the first column, which every triangle has. */
void spectra_nonfinite(const spectra *test, batchqr_type type);
void spectra_wrong_sizes(const spectra *test, batchqr_type type);

#endif
