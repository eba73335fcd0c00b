/* SPDX-License-Identifier: BSD-3-Clause */
/* Trailing columns of a matrix that is factored elsewhere in part, block by block: reflectors arrive one
 * block after another, and each is applied to what is left of the columns here. What ORMQR would do for each
 * block and each part of the columns is done once: I - V T V^H is formed for all parts of them, and the
 * columns are brought into range before the first block, since reflectors leave their lengths alone.
 *
 * Blocks are formed, and applied to a few urgent columns, on one stream; to all others on another one. There
 * are two places for blocks, so that one is formed while the last one is applied. */
#ifndef BQR_SRC_DRIVERS_TRAILING_H
#define BQR_SRC_DRIVERS_TRAILING_H

#include "family.h"

typedef struct bqr_trailing bqr_trailing;

/* Columns are brought into range by so many. */
enum { BQR_TRAILING_COLUMNS = 32 };

typedef enum bqr_trailing_part {
  BQR_TRAILING_REST,
  BQR_TRAILING_URGENT,
  BQR_TRAILING_PARTS
} bqr_trailing_part;

/* Whether problems that the family was chosen for are done so. */
bool bqr_trailing_serves(const bqr_family *family, const bqr_problem *problem);

/* problem: ORMQR from the left, of m x n, n being all columns here, and the k reflectors of a block; as many
 * columns are urgent at most. Loads kernels. `device` must outlive it; *trailing is to be freed, whatever the
 * status. */
batchqr_status bqr_trailing_new(const bqr_problem *problem, const bqr_device *device,
                                bqr_trailing **trailing);
void bqr_trailing_free(bqr_trailing *trailing);
/* The memory that it needs, and is then given, aligned to 256 bytes. */
size_t bqr_trailing_bytes(const bqr_trailing *trailing);
void bqr_trailing_place(bqr_trailing *trailing, void *memory);

/* Brings all columns into range, a with leading dimension lda; and columns first .. first+n-1 back, which are
 * at a. `first`: a multiple of BQR_TRAILING_COLUMNS. */
batchqr_status bqr_trailing_begin(const bqr_trailing *trailing, void *a, int lda, batchqr_stream stream);
batchqr_status bqr_trailing_end(const bqr_trailing *trailing, int first, int n, void *a, int lda,
                                batchqr_stream stream);

/* Forms a block of k reflectors in `rows` rows, as LAPACK stores them, at place 0 or 1. */
batchqr_status bqr_trailing_form(bqr_trailing *trailing, int place, int rows, int k, const void *v, int ldv,
                                 const void *tau, batchqr_stream stream);
/* Applies the adjoint of the place's block to n columns of c, which begin with the block's first row. */
batchqr_status bqr_trailing_apply(const bqr_trailing *trailing, int place, bqr_trailing_part part, void *c,
                                  int ldc, int n, batchqr_stream stream);

#endif
