/* SPDX-License-Identifier: BSD-3-Clause */
/* What the merges of a level work on. */
#ifndef BQR_KERNELS_TRIDIAGONAL_MERGE_CUH
#define BQR_KERNELS_TRIDIAGONAL_MERGE_CUH

#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"

namespace bqr {

/* `count` matrices of order n, the rows of which are numbered on and on. At depth k each one has 2^k blocks
 * of next to equal orders, which begin at multiples of 4 of its rows. */
struct merge_tree {
  int n, count, depth;

  BQR_INLINE int rows() const { return n * count; }
  BQR_INLINE int blocks() const { return count << depth; }
  BQR_INLINE int64_t units() const { return (n + 3) / 4; }
  BQR_INLINE int first(int block, int at) const {
    const int member = block >> at;
    const int64_t row = 4 * ((block - (member << at)) * units() >> at);
    return member * n + (row < n ? static_cast<int>(row) : n);
  }
  BQR_INLINE int block_of(int row, int at) const {
    const int member = row / n;
    const int64_t unit = (row - member * n) / 4;
    return (member << at) + static_cast<int>((((unit + 1) << at) - 1) / units());
  }
  /* The most rows of a block. */
  BQR_INLINE int most(int at) const { return 4 * static_cast<int>((units() - 1 >> at) + 1); }
};

/* Vectors of these matrices: n x n numbers for each; or, of_rows, two rows for each column. */
template <class R> struct merge_matrix {
  R *data;
  int64_t ld, stride; /* from one matrix to the next */
  bool of_rows;

  /* Those of the matrix that a block of depth `at` is part of, by the numbers of rows and columns among all.
   */
  BQR_INLINE matrix_view<R> of(const merge_tree &t, int block, int at) const {
    const int64_t member = block >> at, first = member * t.n;
    return {data + member * stride - first * ld - (of_rows ? 0 : first), ld, 0, 0};
  }
  BQR_INLINE matrix_view<R> of(const merge_tree &t, int block) const { return of(t, block, t.depth); }
};

/* A block of `depth` and the halves that it is made of: rows first .. middle - 1 and middle .. end - 1. */
struct merge_block {
  int first, middle, end;

  BQR_INLINE merge_block(const merge_tree &t, int number)
      : first(t.first(number, t.depth)), middle(t.first(2 * number + 1, t.depth + 1)),
        end(t.first(number + 1, t.depth)) {}
};

/* The vectors that are wanted, by their places among those of a block. */
struct merge_range {
  int first, end;

  BQR_INLINE bool has(int place) const { return first <= place && place < end; }
};

/* What deflation leaves of a block. Of the columns that stay, those that are zero in the lower half come
 * first, then those that are zero in neither, then those that are zero in the upper half: `upper` of them
 * count for the upper half, those from `lower` on for the lower one. */
struct merge_counts {
  int roots, upper, lower, chains;
};

/* Arrays of n numbers, of which each block has its rows' part. */
template <class R> struct merge_arrays {
  uint32_t *largest; /* magnitude() of each matrix */
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
  __device__ __forceinline__ R tolerance(int member) const {
    return times_power(8 * limits<R>::eps, -exponent_to<R>(largest[member], 0));
  }
};

} // namespace bqr

#endif
