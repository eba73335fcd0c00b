/* SPDX-License-Identifier: BSD-3-Clause */
/* The words in which a CPU family reads bqr_args, and the loop over its members. */
#ifndef BQR_SRC_HOST_MEMBER_H
#define BQR_SRC_HOST_MEMBER_H

#include "family.h"

#include <stddef.h>

/* One member: its number in the batch, sizes and operands. Those that the launch has not are NULL. */
typedef struct host_member {
  int64_t id;
  int m, n, k;
  void *a, *c, *r, *tau;
  int lda, ldc, ldr;
} host_member;

static inline int host_least(int a, int b) { return a < b ? a : b; }
static inline int host_largest(int a, int b) { return a > b ? a : b; }

static inline bool host_is_complex(batchqr_type type) { return type == BATCHQR_C || type == BATCHQR_Z; }

/* Bytes of an element, and of the real numbers that it is made of. */
static inline size_t host_real_size(batchqr_type type) {
  return type == BATCHQR_D || type == BATCHQR_Z ? sizeof(double) : sizeof(float);
}
static inline size_t host_size(batchqr_type type) {
  return host_real_size(type) * (host_is_complex(type) ? 2 : 1);
}

static inline void *host_offset(const void *base, size_t size, int64_t elements) {
  return (char *)base + elements * (int64_t)size;
}

/* Entry (i, j) of a matrix. */
static inline void *host_at(batchqr_type type, const void *a, int ld, int i, int j) {
  return host_offset(a, host_size(type), (int64_t)j * ld + i);
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
  return bqr_host_vector(&first, host_size(type), id);
}
static inline int bqr_host_ld(const bqr_matrix *x, int64_t id) {
  return x->ld_array != NULL ? x->ld_array[id] : x->ld;
}

/* The thread's part of the workspace, `bytes` each (a multiple of 64). */
static inline void *host_scratch(const bqr_args *args, int thread, size_t bytes) {
  return (char *)args->workspace + (size_t)thread * bytes;
}

/* What is done to one member; `scratch` belongs to the thread. */
typedef void (*host_work)(const bqr_problem *, const bqr_args *, const host_member *, void *scratch);

/* Does it to all members of a launch, in parallel, with BLAS on one thread each. */
batchqr_status bqr_host_for_members(const bqr_problem *problem, const bqr_device *device,
                                    const bqr_args *args, size_t scratch_bytes, host_work work);

/* The CPU families have no limits: always true. */
bool bqr_host_supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device);

/* The family of that name, with one variant. Behind the operation stands what is its own. */
#define HOST_FAMILY(NAME, OP, ...)                                                                           \
  static const bqr_variant variants[] = {{.name = "omp"}};                                                   \
  extern const bqr_family bqr_family_##NAME;                                                                 \
  const bqr_family bqr_family_##NAME = {.name = #NAME,                                                       \
                                        .op = OP,                                                            \
                                        .types = BQR_ALL_TYPES,                                              \
                                        .backend = BATCHQR_BACKEND_CPU,                                      \
                                        .variants = variants,                                                \
                                        .nvariants = 1,                                                      \
                                        .launches = 1,                                                       \
                                        .supports = bqr_host_supports,                                       \
                                        __VA_ARGS__}

/* Workspace for so many bytes of scratch a thread: every thread starts on its own cache line. */
size_t bqr_host_workspace(const bqr_device *device, size_t scratch_bytes);

#endif
