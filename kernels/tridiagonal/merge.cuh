/* SPDX-License-Identifier: BSD-3-Clause */
/* What the merges of a level work on. */
#ifndef BQR_KERNELS_TRIDIAGONAL_MERGE_CUH
#define BQR_KERNELS_TRIDIAGONAL_MERGE_CUH

#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"

namespace bqr {

/* At depth k there are 2^k blocks of next to equal orders. They begin at multiples of 4 rows. */
struct merge_tree {
  int n, depth;

  BQR_INLINE int64_t units() const { return (n + 3) / 4; }
  BQR_INLINE int first(int block, int at) const {
    const int64_t row = 4 * (block * units() >> at);
    return row < n ? static_cast<int>(row) : n;
  }
  BQR_INLINE int block_of(int row, int at) const {
    return static_cast<int>(((static_cast<int64_t>(row / 4 + 1) << at) - 1) / units());
  }
  /* The most rows of a block. */
  BQR_INLINE int most(int at) const { return 4 * static_cast<int>((units() - 1 >> at) + 1); }
};

/* A block of `depth` and the halves that it is made of: rows first .. middle - 1 and middle .. end - 1. */
struct merge_block {
  int first, middle, end;

  BQR_INLINE merge_block(const merge_tree &t, int number)
      : first(t.first(number, t.depth)), middle(t.first(2 * number + 1, t.depth + 1)),
        end(t.first(number + 1, t.depth)) {}
};

/* What deflation leaves of a block. Of the columns that stay, those that are zero in the lower half come
 * first, then those that are zero in neither, then those that are zero in the upper half: `upper` of them
 * count for the upper half, those from `lower` on for the lower one. */
struct merge_counts {
  int roots, upper, lower, chains;
};

/* Arrays of n numbers, of which each block has its rows' part. */
template <class R> struct merge_arrays {
  uint32_t *largest; /* magnitude() of T */
  merge_counts *counts;
  R *d;               /* eigenvalues of the blocks, ascending */
  R *poles, *weights; /* of the secular equation: ascending, and z */
  R *cosine, *sine;   /* of rotations */
  R *near, *distance; /* of roots: from the pole that is near */
  R *value;           /* roots, then eigenvalues that deflation has found */
  R *vector, *listed; /* z such that the roots are exact, and poles, in the order of columns */
  int *source;        /* columns in the order of poles, also of those that were rotated away */
  int *kind;          /* of these: see deflate.cuh */
  int *close;         /* whether two neighbours' poles are next to equal */
  int *chains;        /* where rotations begin */
  int *rank;          /* of a pole's column in the order of columns */
  int *column;        /* in the order of columns, then those deflated, as `value` */
  int *place;         /* of an element of `value` among all of the block */

  /* Products and weights up to it are nothing beside T: xLAED2. */
  __device__ __forceinline__ R tolerance() const {
    return times_power(8 * limits<R>::eps, -exponent_to<R>(*largest, 0));
  }
};

} // namespace bqr

#endif
