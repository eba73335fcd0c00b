/* SPDX-License-Identifier: BSD-3-Clause */
/* Some of a launch's entries as a launch of their own. */
#ifndef BQR_SRC_DRIVERS_LAUNCH_PART_H
#define BQR_SRC_DRIVERS_LAUNCH_PART_H

#include "batch.h"

static inline void *bqr_moved(const void *array, int64_t bytes) {
  return array ? (char *)array + bytes : NULL;
}
static inline void *bqr_moved_ints(const int *array, int64_t count) {
  return bqr_moved(array, count * (int64_t)sizeof(int));
}
static inline void *bqr_moved_offsets(const int64_t *array, int64_t count) {
  return bqr_moved(array, count * (int64_t)sizeof(int64_t));
}

/* How far the data of `count` members reaches. */
static inline int64_t bqr_moved_bytes(bool pointers, int64_t stride, int64_t size, int64_t count) {
  return count * (pointers ? (int64_t)sizeof(void *) : stride * size);
}

static inline bqr_matrix bqr_moved_matrix(const bqr_matrix *x, int64_t size, int64_t count) {
  bqr_matrix moved = *x;
  if (!x->offsets) moved.data = bqr_moved(x->data, bqr_moved_bytes(x->pointers, x->stride, size, count));
  moved.offsets = bqr_moved_offsets(x->offsets, count);
  moved.ld_array = bqr_moved_ints(x->ld_array, count);
  moved.host_offsets = bqr_moved_offsets(x->host_offsets, count);
  moved.host_ld_array = bqr_moved_ints(x->host_ld_array, count);
  return moved;
}

static inline bqr_vector bqr_moved_vector(const bqr_vector *x, int64_t size, int64_t count) {
  bqr_vector moved = *x;
  if (!x->offsets) moved.data = bqr_moved(x->data, bqr_moved_bytes(x->pointers, x->stride, size, count));
  moved.offsets = bqr_moved_offsets(x->offsets, count);
  moved.host_offsets = bqr_moved_offsets(x->host_offsets, count);
  return moved;
}

/* `count` entries from `first` on: of operations whose kernels know nothing of norms and scales. */
static inline bqr_args bqr_launch_part(const bqr_args *all, batchqr_type type, int64_t first, int64_t count) {
  const int64_t size = (int64_t)bqr_type_bytes(type);
  bqr_args part = *all;
  part.count = count;
  if (all->members) { /* all else is indexed by members, not by entries */
    part.members = bqr_moved_ints(all->members, first);
    part.host_members = bqr_moved_ints(all->host_members, first);
    return part;
  }
  part.a = bqr_moved_matrix(&all->a, size, first);
  part.c = bqr_moved_matrix(&all->c, size, first);
  part.r = bqr_moved_matrix(&all->r, size, first);
  part.tau = bqr_moved_vector(&all->tau, size, first);
  part.info = bqr_moved_ints(all->info, first);
  part.m_array = bqr_moved_ints(all->m_array, first);
  part.n_array = bqr_moved_ints(all->n_array, first);
  part.k_array = bqr_moved_ints(all->k_array, first);
  return part;
}

#endif
