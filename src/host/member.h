/* SPDX-License-Identifier: BSD-3-Clause */
/* The words in which a CPU family reads bqr_args, and the loops over its members and over their parts. */
#ifndef BQR_SRC_HOST_MEMBER_H
#define BQR_SRC_HOST_MEMBER_H

#include "arena.h"
#include "batch.h"
#include "registry.h"

#include <stddef.h>

/* One member: its number in the batch, sizes and operands. Those that the launch has not are NULL. */
typedef struct host_member {
  int64_t id;
  int m, n, k;
  void *a, *c, *r, *tau;
  int lda, ldc, ldr;
} host_member;

static inline bool host_is_complex(batchqr_type type) { return type == BATCHQR_C || type == BATCHQR_Z; }
static inline bool host_is_single(batchqr_type type) { return type == BATCHQR_S || type == BATCHQR_C; }

static inline void *host_offset(const void *base, size_t size, int64_t elements) {
  return (char *)base + elements * (int64_t)size;
}

/* Entry (i, j) of a matrix. */
static inline void *host_at(batchqr_type type, const void *a, int ld, int i, int j) {
  return host_offset(a, bqr_type_bytes(type), (int64_t)j * ld + i);
}

static inline void host_set_info(const bqr_args *args, int64_t id, int value) {
  if (args->info != NULL) args->info[id] = value;
}

/* A member's vector of elements of `size` bytes; NULL where the launch has none. */
static inline void *bqr_host_vector(const bqr_vector *x, size_t size, int64_t id) {
  if (x->data == NULL) return NULL;
  if (x->pointers) return ((void *const *)x->data)[id];
  return host_offset(x->data, size, x->offsets != NULL ? x->offsets[id] : id * x->stride);
}

/* A member's part of a matrix that host_member has not; NULL likewise. */
static inline void *bqr_host_matrix(const bqr_matrix *x, batchqr_type type, int64_t id) {
  const bqr_vector first = {x->data, x->stride, x->pointers, x->offsets, x->host_offsets};
  return bqr_host_vector(&first, bqr_type_bytes(type), id);
}
/* Its leading dimension as LAPACK wants it: arrays may hold 0 for members without elements. */
static inline int bqr_host_ld(const bqr_matrix *x, int64_t id) {
  return x->ld_array != NULL ? bqr_max(1, x->ld_array[id]) : x->ld;
}

/* Memory that each thread has: for a member that it works on, and for a piece of some member. A thread that
 * waits for the pieces of its member may work on other ones. */
typedef struct host_scratch {
  size_t member, piece; /* bytes */
  int64_t pieces;       /* of the largest member that are worked on at once */
} host_scratch;

/* What the members of one launch have in common. */
typedef struct host_launch {
  const bqr_problem *problem;
  const bqr_operation *operation; /* its row */
  const bqr_args *args;
  host_scratch scratch;
} host_launch;

/* What is done to one member. */
typedef void (*host_work)(const host_launch *, const host_member *, void *scratch);

/* Does it to all members of a launch, in parallel, with BLAS on one thread each. */
batchqr_status bqr_host_for_members(const bqr_problem *problem, const bqr_device *device,
                                    const bqr_args *args, host_scratch scratch, host_work work);

/* Within that, from a member's work: does something to pieces 0 .. pieces-1 of the member, in parallel where
 * other threads have nothing to do. What a piece is must depend on the member's sizes alone, so that its
 * results do not depend on threads. */
typedef void (*host_piece_work)(const void *context, int piece, void *scratch);
void bqr_host_for_pieces(const host_launch *launch, int pieces, host_piece_work work, const void *context);

/* Pieces of so many lines, the last of which may have fewer. */
static inline int host_pieces(int lines, int of_each) { return lines > 0 ? (lines - 1) / of_each + 1 : 0; }

/* Of families without limits: always true. */
bool bqr_host_supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device);

/* So many bytes, and what is left of their last cache line. */
static inline size_t host_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Bytes for all threads; every one starts on its own cache line. SIZE_MAX: more than can be counted. */
size_t bqr_host_workspace(const bqr_device *device, host_scratch scratch);

/* For families that need none. */
host_scratch bqr_host_no_scratch(const bqr_problem *problem);

/* The family of that name, with one variant: what a thread needs, as a function of the problem, and what is
 * done to a member. A is kept where that is asked for: of GELS alone, among those of the CPU; ranges are
 * SYEVD's. */
#define HOST_FAMILY(NAME, OP, SCRATCH, WORK) HOST_FAMILY_WITHIN(NAME, OP, SCRATCH, WORK, bqr_host_supports)
/* The same for problems within some limit, see bqr_family.supports. */
#define HOST_FAMILY_WITHIN(NAME, OP, SCRATCH, WORK, SUPPORTS)                                                \
  static size_t workspace(const bqr_problem *problem, const bqr_variant *variant,                            \
                          const bqr_device *device) {                                                        \
    (void)variant;                                                                                           \
    return bqr_host_workspace(device, SCRATCH(problem));                                                     \
  }                                                                                                          \
  static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant,                       \
                               const bqr_device *device, const bqr_args *args, batchqr_stream stream) {      \
    (void)variant, (void)stream;                                                                             \
    return bqr_host_for_members(problem, device, args, SCRATCH(problem), WORK);                              \
  }                                                                                                          \
  static const bqr_variant variants[] = {{.name = "omp"}};                                                   \
  extern const bqr_family bqr_family_##NAME;                                                                 \
  const bqr_family bqr_family_##NAME = {.name = #NAME,                                                       \
                                        .op = OP,                                                            \
                                        .types = BQR_ALL_TYPES,                                              \
                                        .backend = BATCHQR_BACKEND_CPU,                                      \
                                        .variants = variants,                                                \
                                        .nvariants = 1,                                                      \
                                        .launches = 1,                                                       \
                                        .keeps_a = true,                                                     \
                                        .ranges = BQR_BY_INDEX | BQR_BY_VALUE,                               \
                                        .supports = SUPPORTS,                                                \
                                        .workspace = workspace,                                              \
                                        .launch = launch}

#endif
