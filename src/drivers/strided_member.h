/* SPDX-License-Identifier: BSD-3-Clause */
/* Where an entry of a launch has its operands, of members that are strided and alike. */
#ifndef BQR_SRC_DRIVERS_STRIDED_MEMBER_H
#define BQR_SRC_DRIVERS_STRIDED_MEMBER_H

#include "batch.h"

/* A member's matrix or vector as if it were alone, with data NULL where there is none. */
static inline bqr_matrix bqr_member_matrix(const bqr_matrix *x, int64_t id, size_t size) {
  const int64_t at = x->host_offsets ? x->host_offsets[id] : id * x->stride;
  return (bqr_matrix){.data = x->data ? (char *)x->data + at * (int64_t)size : NULL,
                      .row_stride = 1,
                      .ld = x->host_ld_array ? x->host_ld_array[id] : x->ld};
}
static inline bqr_vector bqr_member_vector(const bqr_vector *x, int64_t id, size_t size) {
  const int64_t at = x->host_offsets ? x->host_offsets[id] : id * x->stride;
  return (bqr_vector){.data = x->data ? (char *)x->data + at * (int64_t)size : NULL};
}

typedef struct bqr_strided_member {
  char *a, *c, *tau;
  int64_t lda, ldc;
  int *info;
} bqr_strided_member;

static inline bqr_strided_member bqr_strided_member_at(const bqr_args *all, size_t size, int64_t entry) {
  const int64_t id = all->host_members ? all->host_members[entry] : entry;
  const int64_t a_at = all->a.host_offsets ? all->a.host_offsets[id] : id * all->a.stride;
  const int64_t tau_at = all->tau.host_offsets ? all->tau.host_offsets[id] : id * all->tau.stride;
  return (bqr_strided_member){.a = (char *)all->a.data + a_at * (int64_t)size,
                              .c = (char *)all->c.data + id * all->c.stride * (int64_t)size,
                              .tau = (char *)all->tau.data + tau_at * (int64_t)size,
                              .lda = all->a.host_ld_array ? all->a.host_ld_array[id] : all->a.ld,
                              .ldc = all->c.host_ld_array ? all->c.host_ld_array[id] : all->c.ld,
                              .info = all->info ? all->info + id : NULL};
}

static inline bool bqr_columns_aligned(const char *a, int64_t ld, size_t size) {
  return ((uintptr_t)a | (uintptr_t)ld * size) % BQR_COLUMN_ALIGNMENT == 0;
}

/* The leading dimension of a copy of so many rows. */
static inline int64_t bqr_aligned_ld(int rows) { return ((int64_t)rows + 15) / 16 * 16; }

#endif
