/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine: its properties, its memory, and the little of the CUDA runtime that the host side needs. With
 * streams.c, the only part of src/ that knows CUDA's headers; without CUDA the same functions serve the CPU.
 */
#ifndef BQR_SRC_DEVICE_H
#define BQR_SRC_DEVICE_H

#include "error.h"
#include "family.h"

/* Workspaces and their parts are aligned to this many bytes. */
enum { BQR_ALIGNMENT = 256 };

/* Fills in the CPU; threads 0: as many as OpenMP gives. */
void bqr_device_cpu(bqr_device *device, int threads);
/* Fills in the current CUDA device. BATCHQR_UNSUPPORTED, with the reason, where there is none that this
 * build's kernels run on. */
batchqr_status bqr_device_cuda(bqr_device *device, bqr_error *reason);
/* Whether code compiled for `archs`, as "80,90a,100", runs on a device: "90" on 9.x from 9.0 on, "90a" on 9.0
 * alone, "100f" on its family; and the last one without a letter, as PTX, on all newer ones. */
bool bqr_archs_run_on(const char *archs, int sm);

/* Makes the device current for this thread; returns what bqr_device_leave() needs to undo it. */
int bqr_device_enter(const bqr_device *device);
void bqr_device_leave(int previous);

/* Memory of the backend, aligned to BQR_ALIGNMENT. */
batchqr_status bqr_memory_new(const bqr_device *device, size_t bytes, void **memory, bqr_error *error);
void bqr_memory_free(const bqr_device *device, void *memory);
/* Copies from the host and waits until the copy is there. `memory` is of the CUDA backend. */
batchqr_status bqr_memory_fill(const bqr_device *device, void *memory, const void *from, size_t bytes,
                               bqr_error *error);

/* Enqueues a copy within that memory. */
batchqr_status bqr_memory_copy(const bqr_device *device, void *to, const void *from, size_t bytes,
                               batchqr_stream stream, bqr_error *error);

/* Whether kernels can use the address, respectively the host. Where that cannot be known: true. */
bool bqr_address_serves_device(const bqr_device *device, const void *address);
bool bqr_address_serves_host(const bqr_device *device, const void *address);

/* Whether the stream is being captured into a graph. */
bool bqr_stream_captured(const bqr_device *device, batchqr_stream stream);

/* Waits until all is done that the stream has been given. */
void bqr_stream_finish(const bqr_device *device, batchqr_stream stream);

/* A point in the device's work; NULL stands for one that is passed already. */
typedef struct bqr_fence bqr_fence;
/* Puts *fence behind what `stream` has been given so far, and makes it if it is NULL. */
batchqr_status bqr_fence_record(const bqr_device *device, bqr_fence **fence, batchqr_stream stream,
                                bqr_error *error);
/* The stream goes on when the fence is passed. */
batchqr_status bqr_fence_order(const bqr_device *device, bqr_fence *fence, batchqr_stream stream,
                               bqr_error *error);
/* The calling thread goes on when the fence is passed; allowed while some stream is captured. */
void bqr_fence_wait(const bqr_device *device, bqr_fence *fence);
void bqr_fence_free(const bqr_device *device, bqr_fence *fence);

/* The CUDA runtime's last error, which is cleared. */
const char *bqr_device_error(const bqr_device *device);

/* A named range for NVIDIA's profilers. */
void bqr_profile_begin(const bqr_device *device, const char *name);
void bqr_profile_end(const bqr_device *device);

#endif
