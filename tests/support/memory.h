/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the backend under test: host memory, or plain (not managed) CUDA memory. A failure of the
 * machine ends the process with a message: no test can go on without memory.
 *
 * The environment's BATCHQR_TEST_BACKEND says which backend is tested: cpu (the default) or cuda. */
#ifndef BQR_TESTS_MEMORY_H
#define BQR_TESTS_MEMORY_H

#include <batchqr/batchqr.h>
#include <stdbool.h>

/* Exit status by which Meson knows a skipped test. */
enum { MEMORY_EXIT_SKIPPED = 77 };

/* The backend under test. Where it is CUDA and no device can be used, prints why and exits with 77. */
batchqr_backend memory_backend(void);

/* Whether a CUDA device can be used; if not, *why (may be NULL) says the reason. */
bool memory_cuda_usable(const char **why);

/* 256-byte aligned, contents undefined; of 0 bytes: not NULL, must not be dereferenced. */
void *memory_alloc(batchqr_backend backend, size_t bytes);
void memory_free(batchqr_backend backend, void *p);

/* These wait until all work on the device and the copy are done. */
void memory_upload(batchqr_backend backend, void *to, const void *from, size_t bytes);
void memory_download(batchqr_backend backend, void *to, const void *from, size_t bytes);
void memory_fill(batchqr_backend backend, void *p, int byte, size_t bytes);
void memory_sync(batchqr_backend backend);

/* A new array in the backend's memory with the contents of `from`. */
void *memory_clone(batchqr_backend backend, const void *from, size_t bytes);

/* A new array of `count` addresses base + offsets[k] * size, in the backend's memory. */
void *memory_pointers(batchqr_backend backend, void *base, size_t size, const int64_t *offsets,
                      int64_t count);

/* CUDA streams and graphs; not to be called for the CPU. What is enqueued between begin and end on that
 * stream is not done but recorded. */
typedef struct memory_graph memory_graph;
batchqr_stream memory_stream_new(void);
void memory_stream_free(batchqr_stream stream);
void memory_capture_begin(batchqr_stream stream);
memory_graph *memory_capture_end(batchqr_stream stream);
void memory_graph_launch(memory_graph *graph, batchqr_stream stream);
void memory_graph_free(memory_graph *graph);

/* A handle of that backend; options may be NULL, its backend field is ignored. */
batchqr_handle_t memory_handle(batchqr_backend backend, const batchqr_options *options);

#endif
