/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of an architecture that families decide by, from tuning/sm_<architecture>.costs. All are
 * greater than 0. What follows from a family's own sizes or from the number of multiprocessors is not among
 * them. */
#ifndef BQR_KERNELS_COSTS_H
#define BQR_KERNELS_COSTS_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A product in less than the working precision's arithmetic, see src/drivers/gemm.h. */
typedef struct bqr_product_cost {
  double launches_us;
  double element_ps, result_ps; /* an element to convert, an element of the result */
  double step_ns;               /* 128 x 256 elements of the result, for each of k */
} bqr_product_cost;

/* All are double, so that a test can look at each. */
typedef struct bqr_costs {
  struct {
    double launch_us, single_ps, double_ps; /* ps: a multiplication of real numbers */
  } native;
  bqr_product_cost half, split, modular;
  double narrow_rows; /* up to so many, small products are faster by the kernels of wy.h than by a library */

  /* Sorting is worth its time from so many multiplications of GEQRF on, were all members as large as they may
   * be; of GELS, from so many members on, since it is done in steps then. */
  double sort_multiplications, sort_systems;

  double blocked_cols;  /* geqrf_blocked takes longer with fewer, unless members are high */
  double blocked_right; /* or have so many more columns than rows, and are not many */
  double tsqr_rows;     /* so many rows in all are work for the device in chunks of 1024 */

  /* geqrf_large, for members of at least so many elements (`quick`: one alone, with panels that one launch
   * does), and one member more for each so many; for a few of four times as many rows as columns, with
   * columns of so many bytes, which other families do not keep on the chip. The widest number of reflectors
   * for blocks of that many columns; beyond the last, the next wider ones. */
  struct {
    double elements, quick_elements, member_elements, column_bytes;
    double lone_cols64, cols128, cols256, single_cols512, double_cols512, double_cols1024;
  } large;

  /* orgqr_large and ormqr_large, likewise by the elements of V; `panel`: forming Q of a single panel. */
  struct {
    double elements, panel_elements, member_bytes, applied_cols256, cols512;
  } reflectors;

  /* orgqr_blocked and ormqr_blocked take longer than one block of threads for each member with no more rows
   * of V (`single`: s), lines of C, and reflectors than these (ormqr of few members: as of complex types).
   * Variants that keep columns on the chip: with no more rows and stream_reflectors, or fewer columns of C.
   */
  struct {
    double rows, single_rows, lines, real_reflectors, complex_reflectors, stream_reflectors, stream_columns;
  } blocks;

  double gram_rows, gram_cols;  /* qr_mma tries Gram matrices of members with more than these, */
  double kept_cols, kept_bytes; /* and serves no more reflectors, and shared memory of a block, than these */
  double slim_ratio;            /* the slim families are good from so many rows for each column on */
  /* transpose_grid: members of at least so many elements, and fewer of them for each multiprocessor. */
  double transposed_elements, transposed_members;

  /* Applying a panel's reflectors takes ormqr_large so long for each member, and each row of V so long where
   * members are side by side, see block_reflectors.c. */
  struct {
    double member_us, row_ns;
  } panel;

  /* What a member of a large batch takes, to deal members to ranks: the longer of its bytes and its
   * operations, of real numbers, with min(m,n) columns (columns + `narrow`) / columns times as long each; of
   * pivoting and of Jacobi's rotations, longer by these factors; and a panel of 64 columns of members of at
   * least so many elements. */
  struct {
    double byte_ps, single_ps, double_ps, narrow, pivoting, rotations, panel_us, panel_elements;
  } members;

  /* gels_refine, from so many columns on and from and up to so many rows for each of them; from some columns
   * on with a third rung. A step takes so long beside reading A twice. */
  struct {
    double single_cols, double_cols, least_ratio, most_ratio, by3_cols, step_us, column_ns;
    double tall_cols, tall_rows, tall_elements; /* gels_tall: with at least so many */
  } refine;

  double high_members; /* geqrf_large: of columns of at least large.column_bytes, up to so many members */

  /* syevd_large: up to so many rows the rest of a matrix is updated by one product, of both triangles; of
   * more, the lower one by strips of so many columns. Members of no fewer rows than these, one more for each
   * `member_rows`; all of more than `block_rows`, where a block of threads for each takes far longer. Outer
   * blocks of so many columns up to so many rows; a band of 32 subdiagonals up to so many, without vectors
   * and with them. syevd_cluster: members of so many rows, of so many with four blocks for each; of so many
   * bytes, where there is one. Members that are alone, of `alone_rows` and more, are syevd_large's, but a few
   * of more than `cluster_rows` that the chip holds syevd_cluster's, by the whole device. */
  struct {
    double square, strip, rows, member_rows, block_rows, cols256, cols512, narrow_values, narrow_vectors;
    double cluster_rows, cluster4_rows, cluster_bytes, alone_rows;
  } syevd;

  /* geqp3_gram, for members of at least so many bytes (`narrow`: with no more columns than that), batches of
   * so many, and members of more rows only where A^H A is work for all multiprocessors. Panels of 32 and of
   * 64 columns for no more columns than these. */
  struct {
    double member_bytes, narrow_cols, narrow_bytes, batch_bytes, high_rows, cols32, cols64;
  } pivots;

  /* multiply_large, for members of at least so many multiplications: so many of these, or any number of
   * members of so many. */
  struct {
    double multiplications, members, large_multiplications;
  } products;

  /* geqrf_large's variants `many`, of members with no more rows than these: up to so many members for each
   * 2^20 elements of one. Members are square (less than twice as many rows as columns, and the other way
   * around) or of at least tall_elements, then single precision of at least single_cols reflectors or
   * single_rows. Those of at least single_elements want at least single_least members for each so many
   * elements, since one after another they have faster products. Complex ones are not slender, of at least
   * complex_elements; blocks are of 64 columns below tall_elements, else 128. Else 64 for square ones of
   * fewer elements together than single_few, double_few, else 64 and 128 up to so many reflectors of members
   * of fewer than elements256; tall ones' of 64 up to tall_cols64. From 8 members on see geqrf_large's
   * in_one_stream(). */
  struct {
    double tall_elements, rows, double_members, single_members, complex_members, complex_elements;
    double single_elements, single_least, single_cols, single_rows, single_few, double_few;
    double cols64, cols128, elements256, tall_cols64;
  } many;

  /* Products of large members. The library's workspace for its fastest kernels; from so many terms on, sums
   * of doubles under capture are made by strips of whole waves. Strips of converted operands take so many
   * bytes; without room for them, sums are cut, to so many terms at the least, for strips of so many columns.
   * A batch's products are judged as if there were so many of them. So many multiprocessors are left free by
   * products beside panels, of at least so many columns. */
  struct {
    double library_bytes, wave_terms, strip_bytes, least_terms, enough_cols, members;
    double spare, spare_cols;
  } gemm;

  /* Which part of its member's bytes a product that the library makes has as workspace, one in so many:
   * native ones of smaller members than these and of larger ones, those of panels and those beside them;
   * likewise those of other modes, which want twice as many of members that are not larger than these.
   * Products of converted operands have one in `converted`, for each share, but no less than the library's,
   * up to these bytes. */
  struct {
    double native_bytes, small_panels, small_rest, large_panels, large_rest;
    double other_bytes, other_panels, other_rest, converted, most_bytes;
  } room;

  /* geqp3_gram's variant `many`: members of at least so many elements, in single precision, and in double
   * with up to 32 columns and with more; at least so many for each multiprocessor. */
  struct {
    double single_elements, narrow_elements, double_elements, members;
  } order;
} bqr_costs;

/* Those of the device's architecture; of the nearest older one, or of the oldest, where there are none. */
const bqr_costs *bqr_costs_of(const bqr_device *device);

#ifdef __cplusplus
}
#endif

#endif
