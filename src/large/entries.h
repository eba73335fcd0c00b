/* SPDX-License-Identifier: BSD-3-Clause */
/* Some of a launch's entries as a launch of their own. */
#ifndef BQR_SRC_LARGE_ENTRIES_H
#define BQR_SRC_LARGE_ENTRIES_H

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

static inline bqr_matrix bqr_moved_matrix(const bqr_matrix *x, bool addresses, int64_t size, int64_t count) {
  bqr_matrix moved = *x;
  if (x->offsets)
    moved.offsets = bqr_moved_offsets(x->offsets, count);
  else
    moved.data =
        bqr_moved(x->data, count * (addresses && !x->packed ? (int64_t)sizeof(void *) : x->stride * size));
  moved.ld_array = bqr_moved_ints(x->ld_array, count);
  return moved;
}

/* `count` entries from `first` on: of operations whose kernels know nothing of norms and scales. */
static inline bqr_args bqr_entries(const bqr_args *all, batchqr_type type, int64_t first, int64_t count) {
  const int64_t size = (int64_t)bqr_type_bytes(type);
  bqr_args part = *all;
  part.count = count;
  if (all->members) { /* all else is indexed by members, not by entries */
    part.members = bqr_moved_ints(all->members, first);
    part.host_members = bqr_moved_ints(all->host_members, first);
    return part;
  }
  part.a = bqr_moved_matrix(&all->a, all->pointers, size, first);
  part.c = bqr_moved_matrix(&all->c, all->pointers, size, first);
  part.r = bqr_moved_matrix(&all->r, all->pointers, size, first);
  if (all->tau_offsets)
    part.tau_offsets = bqr_moved_offsets(all->tau_offsets, first);
  else
    part.tau =
        bqr_moved(all->tau, first * (all->tau_pointers ? (int64_t)sizeof(void *) : all->stride_tau * size));
  part.info = bqr_moved_ints(all->info, first);
  part.m_array = bqr_moved_ints(all->m_array, first);
  part.n_array = bqr_moved_ints(all->n_array, first);
  part.k_array = bqr_moved_ints(all->k_array, first);
  part.host_lda = bqr_moved_ints(all->host_lda, first);
  part.host_ldc = bqr_moved_ints(all->host_ldc, first);
  part.host_offsets = bqr_moved_offsets(all->host_offsets, first);
  part.host_tau_offsets = bqr_moved_offsets(all->host_tau_offsets, first);
  return part;
}

#endif
