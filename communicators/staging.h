/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinned host memory by way of which a GPU's data go over MPI. In builds without CUDA there is none. */
#ifndef BATCHQR_COMMUNICATORS_STAGING_H
#define BATCHQR_COMMUNICATORS_STAGING_H

#include <batchqr/batchqr.h>
#include <stdbool.h>

typedef struct staging {
  bool device;  /* data are a GPU's */
  int ordinal;  /* which */
  char *memory; /* NULL: MPI takes their addresses */
  size_t bytes;
} staging;

/* For the calling thread's device; `staged`: with memory. */
batchqr_status staging_new(staging *s, bool staged);
void staging_free(staging *s);

/* Whether MPI says that it takes addresses of GPUs. */
bool staging_not_needed(void);

/* In the order of the stream; false after an error. */
bool staging_copy(void *to, const void *from, size_t bytes, batchqr_stream stream);
bool staging_wait(batchqr_stream stream);
const char *staging_error(void);

#endif
