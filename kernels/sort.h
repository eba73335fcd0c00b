/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting the members of a batch by the sizes of A, where only the device knows these: what the family of
 * BATCHQR_SORT is told, besides a launch's args, and what it writes. C and CUDA C++ both read it. */
#ifndef BATCHQR_KERNELS_SORT_H
#define BATCHQR_KERNELS_SORT_H

#include "family.h"

enum { BATCHQR_SORT_ROWS = 8, BATCHQR_SORT_COLS = 6, BATCHQR_SORT_BOXES = 64, BATCHQR_SORT_LISTS = 64 };

/* Box i * num_cols + j holds the members of up to rows[i] x cols[j] that no box of a smaller i or j holds.
 *
 * A list has count + 1 entries: the members of its boxes, those of the last box first, and from there on
 * member `count`, which is empty. All arrays by members have count + 1 entries for its sake. */
typedef struct batchqr_sort {
  int num_rows, num_cols, num_lists;
  int rows[BATCHQR_SORT_ROWS], cols[BATCHQR_SORT_COLS]; /* ascending */
  uint64_t boxes[BATCHQR_SORT_LISTS];                   /* of each list, a bit for each */
  bool rhs;                                             /* members have right-hand sides: GELS */
  /* Copies of all members' sizes and leading dimensions, 0 and 1 for the empty one, and what was found out:
   * info of members whose sizes do not fit. NULL where there is no such thing. */
  int *m, *n, *k, *lda, *ldc, *ldr, *info;
  int *lists;
  int *box;    /* a member's, -1 for sizes that do not fit */
  int *counts; /* 2 * BATCHQR_SORT_BOXES */
} batchqr_sort;

#endif
