/* SPDX-License-Identifier: BSD-3-Clause */
/* What the adapters share. An adapter is a shared library with functions of another library, the peer, that
 * batchqr computes. What batchqr does not do, the peer itself does. */
#ifndef BQR_ADAPTER_H
#define BQR_ADAPTER_H

#include <batchqr/batchqr.h>
#include <stdatomic.h>
#include <stdbool.h>

#if defined(__GNUC__)
#define BQR_ADAPTER_API __attribute__((visibility("default")))
#else
#define BQR_ADAPTER_API
#endif

/* Any function, to be cast to what it is. */
typedef void (*bqr_function)(void);

/* A function of the peer, found when it is first wanted. */
typedef struct bqr_peer {
  const char *name;
  _Atomic(bqr_function) address;
} bqr_peer;

/* Where the peer is, if the program did not link it but opened it: its names, up to NULL. */
extern const char *const bqr_peer_libraries[];

/* NULL if the peer is not there. */
bqr_function bqr_peer_find(bqr_peer *peer);

/* The calling thread's handle of batchqr for its current device, set to the stream; with `positive`, one
 * whose R have diagonals that are not negative. NULL where batchqr has no kernels for the device. */
batchqr_handle_t bqr_adapter_handle(batchqr_stream stream, bool positive);

/* An operand of members at a stride, and one of which there is an array of addresses. */
batchqr_storage bqr_adapter_strided(int ld, int64_t stride);
batchqr_storage bqr_adapter_pointers(int ld);

#endif
