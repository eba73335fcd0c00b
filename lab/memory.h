/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory: the host's, and that of the backend under test or measurement, which is host memory or plain (not
 * managed) CUDA memory. Unless something else is said, a failure of the machine ends the process with a
 * message and status 3. */
#ifndef BQR_LAB_MEMORY_H
#define BQR_LAB_MEMORY_H

#include <batchqr/batchqr.h>
#include <stdbool.h>

/* Ends the process so. */
_Noreturn void lab_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Host memory, of zeros; of 0 bytes: not NULL. To be given to free(). */
void *memory_host(size_t bytes);

/* Exit status by which Meson knows a skipped test. */
enum { MEMORY_EXIT_SKIPPED = 77 };

/* The backend under test, which the environment's BATCHQR_TEST_BACKEND names: cpu (the default) or cuda.
 * Where it is CUDA and no device can be used, prints why and exits with 77. */
batchqr_backend memory_backend(void);

/* Whether a CUDA device can be used; if not, *why (may be NULL) says the reason. */
bool memory_cuda_usable(const char **why);

/* A handle of that backend; options may be NULL, its backend field is ignored. */
batchqr_handle_t memory_handle(batchqr_backend backend, const batchqr_options *options);

/* --- for tests: many small pieces of memory, every call complete on return */

/* From here on a CUDA backend's pieces are in pinned host memory, which both sides can address. */
void memory_pin(void);

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

/* --- for benchmarks: a few large pieces, in the order of one stream */

/* Some columns of a matrix. */
typedef struct memory_columns {
  const void *data;
  size_t pitch, bytes; /* from one column to the next, and of one */
  int count;
} memory_columns;

/* Where columns are brought to, see space_fetch(). */
typedef struct memory_staging {
  void *memory;
  size_t room;
  memory_columns columns;
  void *arrived;
} memory_staging;

typedef struct memory_space {
  batchqr_backend backend;
  batchqr_stream stream; /* NULL on the CPU */
  memory_staging places[2];
} memory_space;

/* A space with a stream of its own, on the current device. */
memory_space space_new(batchqr_backend backend);
void space_free(memory_space *space);

void *space_alloc(memory_space *space, size_t bytes); /* NULL: there is not so much */
void space_release(memory_space *space, void *p);     /* waits for the stream; p may be NULL */
size_t space_available(memory_space *space);          /* bytes that can still be allocated */
void space_sync(memory_space *space);

/* Within the space, in the stream's order. */
void space_copy(memory_space *space, void *to, const void *from, size_t bytes);
void space_fill(memory_space *space, void *to, int byte, size_t bytes);
/* From and to the host; complete on return. */
void space_upload(memory_space *space, void *to, const void *from, size_t bytes);
void space_download(memory_space *space, void *to, const void *from, size_t bytes);

/* Starts bringing columns to the host, into one of the two places; what was there is given up. */
void space_fetch(memory_space *space, int place, const memory_columns *columns);
/* Waits for them; the result's data are in host memory. */
memory_columns space_fetched(memory_space *space, int place);

#endif
