/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting the members of a batch by the sizes of A, where only the device knows these: what the family of
 * BQR_SORT is told, besides a launch's args, and what it writes. C and CUDA C++ both read it. */
#ifndef BQR_KERNELS_FAMILIES_SORT_SORT_H
#define BQR_KERNELS_FAMILIES_SORT_SORT_H

#include "family.h"

enum { BQR_SORT_ROWS = 8, BQR_SORT_COLS = 6, BQR_SORT_BOXES = 64, BQR_SORT_LISTS = 64 };

/* Box i * num_cols + j holds the members of up to rows[i] x cols[j] that no box of a smaller i or j holds.
 *
 * A list has count + 1 entries: the members of its boxes, those of the last box first, and from there on
 * member `count`, which is empty. All arrays by members have count + 1 entries for its sake. */
typedef struct bqr_sort {
  int num_rows, num_cols, num_lists;
  int rows[BQR_SORT_ROWS], cols[BQR_SORT_COLS]; /* ascending */
  uint64_t boxes[BQR_SORT_LISTS];               /* of each list, a bit for each */
  bool rhs;                                     /* members have right-hand sides: GELS */
  /* Copies of all members' sizes and leading dimensions, 0 and 1 for the empty one, and what was found out:
   * info of members whose sizes do not fit. NULL where there is no such thing. */
  int *m, *n, *k, *lda, *ldc, *ldr, *info;
  int *lists;
  int *box;    /* a member's, -1 for sizes that do not fit */
  int *counts; /* 2 * BQR_SORT_BOXES */
} bqr_sort;

#endif
