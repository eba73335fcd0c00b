/* SPDX-License-Identifier: BSD-3-Clause */
/* Large members' Q, given as LAPACK's V and tau, in wide blocks of reflectors. Each block is brought into the
 * form I - V T V^H, V and T being matrices; then it is applied by products. T is made of those of 32 columns
 * and of V^H V. Blocks are formed on one stream while the one before is applied on the other; members come
 * one after another.
 *
 * A matrix to be overwritten whose columns are not aligned is worked on in an aligned copy, see
 * strided_member.h; where they may not be there is room for it. */
#ifndef BQR_SRC_DRIVERS_BLOCK_REFLECTORS_H
#define BQR_SRC_DRIVERS_BLOCK_REFLECTORS_H

#include "product_streams.h"

/* Columns of a wide block. */
enum { BQR_REFLECTORS_VARIANTS = 5 };
extern const bqr_variant bqr_reflectors_variants[BQR_REFLECTORS_VARIANTS];

/* A block in matrices: rows x k of V, from row and column `first` of all. */
typedef struct bqr_block_reflector {
  int first, rows, k;
  char *v, *t;
  char *adjoint_v, *gram; /* ORMQR from the right: V^H, and, instead of V^H V, T^H */
  int64_t ldv, ldt;
} bqr_block_reflector;

/* One member, while it is worked on. */
typedef struct bqr_reflectors_work {
  bqr_problem problem;                        /* of this member alone */
  bqr_args args;                              /* likewise */
  size_t size;                                /* of an element */
  int order, width;                           /* rows of Q; columns of a wide block */
  bqr_products products[BQR_PRODUCT_STREAMS]; /* for forming blocks, for applying them */
  bqr_block_reflector blocks[BQR_PRODUCT_STREAMS];
  char *copy; /* of what is overwritten */
  int64_t ldcopy;
  void *scales;
  size_t bytes;
} bqr_reflectors_work;

/* What ORGQR and ORMQR differ in. */
typedef struct bqr_reflectors_routine {
  bool forward; /* from the first block to the last */
  batchqr_status (*begin)(const bqr_reflectors_work *, batchqr_stream);
  batchqr_status (*apply)(const bqr_reflectors_work *, const bqr_block_reflector *, const bqr_products *);
  batchqr_status (*end)(const bqr_reflectors_work *, batchqr_stream);
  int launches; /* of begin and end */
} bqr_reflectors_routine;

/* The parts of their families. */
bool bqr_reflectors_supports(const bqr_problem *problem, const bqr_variant *variant,
                             const bqr_device *device);
bool bqr_reflectors_prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device);
size_t bqr_reflectors_workspace(const bqr_problem *problem, const bqr_variant *variant,
                                const bqr_device *device);
batchqr_status bqr_reflectors_prepare(batchqr_type type);
batchqr_status bqr_reflectors_open(const bqr_problem *problem, const bqr_variant *variant,
                                   const bqr_device *device, void **state);
void bqr_reflectors_close(void *state);
batchqr_status bqr_reflectors_launch(const bqr_problem *problem, const bqr_variant *variant,
                                     const bqr_device *device, const bqr_args *args,
                                     const bqr_reflectors_routine *routine, batchqr_stream stream);
int bqr_reflectors_count_launches(const bqr_problem *problem, const bqr_variant *variant,
                                  const bqr_device *device, const bqr_reflectors_routine *routine);

/* The family of that name and operation, in a file with prepare(), launch() and count_launches(). */
#define BQR_REFLECTORS_FAMILY(NAME, OP)                                                                      \
  const bqr_family bqr_family_##NAME = {.name = #NAME,                                                       \
                                        .op = OP,                                                            \
                                        .types = BQR_ALL_TYPES,                                              \
                                        .backend = BATCHQR_BACKEND_CUDA,                                     \
                                        .sm_min = 80,                                                        \
                                        .variants = bqr_reflectors_variants,                                 \
                                        .nvariants = BQR_REFLECTORS_VARIANTS,                                \
                                        .supports = bqr_reflectors_supports,                                 \
                                        .workspace = bqr_reflectors_workspace,                               \
                                        .prepare = prepare,                                                  \
                                        .launch = launch,                                                    \
                                        .open = bqr_reflectors_open,                                         \
                                        .close = bqr_reflectors_close,                                       \
                                        .one_state = true,                                                   \
                                        .count_launches = count_launches,                                    \
                                        .prefers = bqr_reflectors_prefers,                                   \
                                        .trusts_alignment = true,                                            \
                                        .follows_mode = true}

#endif
