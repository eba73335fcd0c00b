/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "memory.h"
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if BQR_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

_Noreturn void lab_die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fflush(stdout);
  fprintf(stderr, "%s: ", program_invocation_short_name);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(3);
}

void *memory_host(size_t bytes) {
  void *p = calloc(bytes + 1, 1);
  if (p == NULL) lab_die("no memory for %zu bytes", bytes);
  return p;
}

#if BQR_HAVE_CUDA
static void check(cudaError_t error, const char *what) {
  if (error != cudaSuccess) lab_die("%s: %s", what, cudaGetErrorString(error));
}
#endif

bool memory_cuda_usable(const char **why) {
  const char *reason = NULL;
#if BQR_HAVE_CUDA
  int devices = 0;
  cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess)
    reason = cudaGetErrorString(error);
  else if (devices == 0)
    reason = "no CUDA device";
#else
  reason = "built without CUDA";
#endif
  if (why != NULL) *why = reason;
  return reason == NULL;
}

batchqr_backend memory_backend(void) {
  const char *name = getenv("BATCHQR_TEST_BACKEND"), *why;
  if (name == NULL || strcmp(name, "cpu") == 0) return BATCHQR_BACKEND_CPU;
  if (strcmp(name, "cuda") != 0) lab_die("BATCHQR_TEST_BACKEND is %s, neither cpu nor cuda", name);
  if (!memory_cuda_usable(&why)) {
    printf("skipped: %s\n", why);
    exit(MEMORY_EXIT_SKIPPED);
  }
  return BATCHQR_BACKEND_CUDA;
}

#if BQR_HAVE_CUDA
/* A pool, since the tests allocate for every call and cudaMalloc() would be most of their time. Its blocks
 * have the sizes asked for as far as compute-sanitizer is concerned. */
static bool use_pool(void) {
  static int pooled = -1;
  if (pooled >= 0) return pooled;
  int device;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&pooled, cudaDevAttrMemoryPoolsSupported, device), "cudaDeviceGetAttribute");
  if (pooled) {
    cudaMemPool_t pool;
    uint64_t keep = UINT64_MAX;
    check(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool");
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
  }
  return pooled;
}

/* Pinned memory takes long to come by: what is given back is kept, by powers of two. In front of each piece
 * is its power, or the next free one. */
typedef union header {
  union header *next;
  int power;
  char room[256];
} header;
static header *unused[64];

static void *pinned_alloc(size_t bytes) {
  int power = 12;
  while ((size_t)1 << power < bytes) power++;
  header *h = unused[power];
  if (h != NULL)
    unused[power] = h->next;
  else
    check(cudaMallocHost((void **)&h, sizeof *h + ((size_t)1 << power)), "cudaMallocHost");
  h->power = power;
  return h + 1;
}

static void pinned_free(void *p) {
  header *h = (header *)p - 1;
  const int power = h->power;
  h->next = unused[power];
  unused[power] = h;
}

static bool pinned;

static void *cuda_alloc(size_t bytes) {
  void *p = NULL;
  if (pinned) return pinned_alloc(bytes);
  if (use_pool())
    check(cudaMallocAsync(&p, bytes, NULL), "cudaMallocAsync");
  else
    check(cudaMalloc(&p, bytes), "cudaMalloc");
  check(cudaStreamSynchronize(NULL), "cudaStreamSynchronize"); /* any stream may use it */
  return p;
}

static void cuda_free(void *p) {
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (pinned) {
    pinned_free(p);
    return;
  }
  if (use_pool())
    check(cudaFreeAsync(p, NULL), "cudaFreeAsync");
  else
    check(cudaFree(p), "cudaFree");
}
#endif

void memory_pin(void) {
#if BQR_HAVE_CUDA
  pinned = true;
#endif
}

void *memory_alloc(batchqr_backend backend, size_t bytes) {
  void *p = NULL;
  if (bytes == 0) bytes = 1;
#if BQR_HAVE_CUDA
  if (backend == BATCHQR_BACKEND_CUDA) return cuda_alloc(bytes);
#else
  (void)backend;
#endif
  if (posix_memalign(&p, 256, bytes) != 0) lab_die("no memory for %zu bytes", bytes);
  return p;
}

void memory_free(batchqr_backend backend, void *p) {
#if BQR_HAVE_CUDA
  if (backend == BATCHQR_BACKEND_CUDA) {
    cuda_free(p);
    return;
  }
#else
  (void)backend;
#endif
  free(p);
}

/* From pageable memory cudaMemcpy() returns before the device has everything, which streams that do not wait
 * for the default one would overtake. */
static void copy(batchqr_backend backend, void *to, const void *from, size_t bytes) {
  if (bytes == 0) return;
  if (backend == BATCHQR_BACKEND_CPU)
    memcpy(to, from, bytes);
  else
    memory_sync(backend);
#if BQR_HAVE_CUDA
  if (backend == BATCHQR_BACKEND_CUDA) {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
    memory_sync(backend);
  }
#endif
}

void memory_upload(batchqr_backend backend, void *to, const void *from, size_t bytes) {
  copy(backend, to, from, bytes);
}

void memory_download(batchqr_backend backend, void *to, const void *from, size_t bytes) {
  copy(backend, to, from, bytes);
}

void memory_fill(batchqr_backend backend, void *p, int byte, size_t bytes) {
  if (backend == BATCHQR_BACKEND_CPU) memset(p, byte, bytes);
#if BQR_HAVE_CUDA
  else
    check(cudaMemset(p, byte, bytes), "cudaMemset");
#endif
  memory_sync(backend);
}

void memory_sync(batchqr_backend backend) {
#if BQR_HAVE_CUDA
  if (backend == BATCHQR_BACKEND_CUDA) check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
#else
  (void)backend;
#endif
}

void *memory_clone(batchqr_backend backend, const void *from, size_t bytes) {
  void *p = memory_alloc(backend, bytes);
  memory_upload(backend, p, from, bytes);
  return p;
}

void *memory_pointers(batchqr_backend backend, void *base, size_t size, const int64_t *offsets,
                      int64_t count) {
  size_t bytes = (size_t)count * sizeof(void *);
  void **pointers = memory_host(bytes);
  for (int64_t k = 0; k < count; k++)
    pointers[k] = offsets[k] >= 0 ? (char *)base + offsets[k] * (int64_t)size : NULL;
  void *p = memory_clone(backend, pointers, bytes);
  free(pointers);
  return p;
}

#if BQR_HAVE_CUDA
struct memory_graph {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
};

batchqr_stream memory_stream_new(void) {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}

void memory_stream_free(batchqr_stream stream) { check(cudaStreamDestroy(stream), "cudaStreamDestroy"); }

void memory_capture_begin(batchqr_stream stream) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
}

memory_graph *memory_capture_end(batchqr_stream stream) {
  memory_graph *g = memory_host(sizeof *g);
  check(cudaStreamEndCapture(stream, &g->graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiateWithFlags(&g->executable, g->graph, 0), "cudaGraphInstantiateWithFlags");
  return g;
}

void memory_graph_launch(memory_graph *graph, batchqr_stream stream) {
  check(cudaGraphLaunch(graph->executable, stream), "cudaGraphLaunch");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void memory_graph_free(memory_graph *graph) {
  check(cudaGraphExecDestroy(graph->executable), "cudaGraphExecDestroy");
  check(cudaGraphDestroy(graph->graph), "cudaGraphDestroy");
  free(graph);
}
#else
static void fail_no_cuda(void) { lab_die("CUDA graphs need a build with CUDA"); }
batchqr_stream memory_stream_new(void) {
  fail_no_cuda();
  return NULL;
}
void memory_stream_free(batchqr_stream stream) { (void)stream, fail_no_cuda(); }
void memory_capture_begin(batchqr_stream stream) { (void)stream, fail_no_cuda(); }
memory_graph *memory_capture_end(batchqr_stream stream) {
  (void)stream, fail_no_cuda();
  return NULL;
}
void memory_graph_launch(memory_graph *graph, batchqr_stream stream) {
  (void)graph, (void)stream, fail_no_cuda();
}
void memory_graph_free(memory_graph *graph) { (void)graph, fail_no_cuda(); }
#endif

batchqr_handle_t memory_handle(batchqr_backend backend, const batchqr_options *options) {
  batchqr_options o = options != NULL ? *options : (batchqr_options){0};
  batchqr_handle_t handle;
  o.backend = backend;
  batchqr_status status = batchqr_create(&handle, &o);
  if (status != BATCHQR_SUCCESS) lab_die("batchqr_create: %s", batchqr_status_string(status));
  return handle;
}
