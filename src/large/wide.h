/* SPDX-License-Identifier: BSD-3-Clause */
/* Large members' Q, given as LAPACK's V and tau, in wide blocks of reflectors. Each block is brought into the
 * form I - V T V^H, V and T being matrices; then it is applied by products. T is made of those of 32 columns
 * and of V^H V. Blocks are formed in one lane while the one before is applied in the other; members come one
 * after another.
 *
 * A matrix to be overwritten whose columns are not aligned is worked on in an aligned copy, see entry.h. */
#ifndef BQR_SRC_LARGE_WIDE_H
#define BQR_SRC_LARGE_WIDE_H

#include "products.h"

/* Columns of a wide block. */
enum { BQR_WIDE_VARIANTS = 5 };
extern const bqr_variant bqr_wide_variants[BQR_WIDE_VARIANTS];

/* A block in matrices: rows x k of V, from row and column `first` of all. */
typedef struct bqr_wide {
  int first, rows, k;
  char *v, *t;
  char *adjoint_v, *gram; /* ORMQR from the right: V^H, and, instead of V^H V, T^H */
  int64_t ldv, ldt;
} bqr_wide;

/* One member, while it is worked on. */
typedef struct bqr_wide_work {
  bqr_problem problem; /* of this member alone */
  bqr_args args;       /* likewise */
  size_t size;         /* of an element */
  int order, width;    /* rows of Q; columns of a wide block */
  bqr_lane lanes[BQR_PAIR];
  bqr_wide blocks[BQR_PAIR];
  char *copy; /* of what is overwritten */
  int64_t ldcopy;
  void *scales;
  size_t bytes;
} bqr_wide_work;

/* What ORGQR and ORMQR differ in. */
typedef struct bqr_wide_steps {
  bool forward; /* from the first block to the last */
  batchqr_status (*begin)(const bqr_wide_work *, batchqr_stream);
  batchqr_status (*apply)(const bqr_wide_work *, const bqr_wide *, const bqr_lane *);
  batchqr_status (*end)(const bqr_wide_work *, batchqr_stream);
  int launches; /* of begin and end */
} bqr_wide_steps;

/* The parts of their families. */
bool bqr_wide_supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device);
bool bqr_wide_prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device);
size_t bqr_wide_workspace(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device);
batchqr_status bqr_wide_prepare(batchqr_type type);
batchqr_status bqr_wide_open(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             void **state);
void bqr_wide_close(void *state);
batchqr_status bqr_wide_launch(const bqr_problem *problem, const bqr_variant *variant,
                               const bqr_device *device, const bqr_args *args, const bqr_wide_steps *steps,
                               batchqr_stream stream);
int bqr_wide_count_launches(const bqr_problem *problem, const bqr_variant *variant,
                            const bqr_wide_steps *steps);

/* The family of that name and operation, in a file with prepare(), launch() and count_launches(). */
#define BQR_WIDE_FAMILY(NAME, OP)                                                                            \
  const bqr_family bqr_family_##NAME = {.name = #NAME,                                                       \
                                        .op = OP,                                                            \
                                        .types = BQR_ALL_TYPES,                                              \
                                        .backend = BATCHQR_BACKEND_CUDA,                                     \
                                        .sm_min = 80,                                                        \
                                        .variants = bqr_wide_variants,                                       \
                                        .nvariants = BQR_WIDE_VARIANTS,                                      \
                                        .supports = bqr_wide_supports,                                       \
                                        .workspace = bqr_wide_workspace,                                     \
                                        .prepare = prepare,                                                  \
                                        .launch = launch,                                                    \
                                        .open = bqr_wide_open,                                               \
                                        .close = bqr_wide_close,                                             \
                                        .count_launches = count_launches,                                    \
                                        .prefers = bqr_wide_prefers,                                         \
                                        .follows_mode = true}

#endif
