/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA backend's memory and clock: plain device memory, one stream, events. */
#include "bench.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct staging {
  void *memory;
  size_t room;
  bench_columns columns;
  cudaEvent_t arrived;
} staging;

typedef struct machine {
  cudaEvent_t start, stop;
  staging places[2];
} machine;

static void check(cudaError_t status, const char *call) {
  if (status != cudaSuccess) bench_die("%s: %s", call, cudaGetErrorString(status));
}
#define CHECK(call) check((call), #call)

bool bench_cuda_present(char why[BENCH_TEXT]) {
  int devices = 0;
  cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices > 0) return true;
  cudaGetLastError(); /* the failure is reported here, not by a later call */
  snprintf(why, BENCH_TEXT, "no CUDA device can be used: %s",
           status == cudaSuccess ? "there is none" : cudaGetErrorString(status));
  return false;
}

bool bench_cuda_select(int device, char error[BENCH_TEXT]) {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (device < devices) {
    CHECK(cudaSetDevice(device));
    return true;
  }
  snprintf(error, BENCH_TEXT, "--device is %d, but there are devices 0 to %d", device, devices - 1);
  return false;
}

static void *allocate(bench_target *target, size_t bytes) {
  (void)target;
  void *memory = NULL;
  cudaError_t status = cudaMalloc(&memory, bytes ? bytes : 1);
  if (status == cudaSuccess) return memory;
  if (status != cudaErrorMemoryAllocation) check(status, "cudaMalloc");
  cudaGetLastError();
  return NULL;
}

static void release(bench_target *target, void *memory) {
  if (!memory) return;
  CHECK(cudaStreamSynchronize(target->stream));
  CHECK(cudaFree(memory));
}

static size_t available(bench_target *target) {
  (void)target;
  size_t unused, all;
  CHECK(cudaMemGetInfo(&unused, &all));
  return unused;
}

static void copy(bench_target *target, void *to, const void *from, size_t bytes) {
  if (bytes) CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, target->stream));
}

static void poison(bench_target *target, void *to, size_t bytes) {
  if (bytes) CHECK(cudaMemsetAsync(to, 0xff, bytes, target->stream));
}

static void upload(bench_target *target, void *to, const void *from, size_t bytes) {
  if (bytes) CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, target->stream));
  CHECK(cudaStreamSynchronize(target->stream));
}

static void download(bench_target *target, void *to, const void *from, size_t bytes) {
  if (bytes) CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, target->stream));
  CHECK(cudaStreamSynchronize(target->stream));
}

/* Pinned memory, which grows as needed: copies to it run beside the host, and several times as fast. */
static void fetch(bench_target *target, int place, const bench_columns *columns) {
  staging *to = &((machine *)target->own)->places[place];
  size_t bytes = columns->bytes * (size_t)columns->count;
  if (to->room < bytes) {
    CHECK(cudaFreeHost(to->memory));
    for (to->room = (size_t)1 << 20; to->room < bytes;) to->room *= 2;
    CHECK(cudaMallocHost(&to->memory, to->room));
  }
  to->columns = (bench_columns){to->memory, columns->bytes, columns->bytes, columns->count};
  if (columns->count == 1 || columns->pitch == columns->bytes)
    CHECK(cudaMemcpyAsync(to->memory, columns->data, bytes, cudaMemcpyDeviceToHost, target->stream));
  else
    CHECK(cudaMemcpy2DAsync(to->memory, columns->bytes, columns->data, columns->pitch, columns->bytes,
                            (size_t)columns->count, cudaMemcpyDeviceToHost, target->stream));
  CHECK(cudaEventRecord(to->arrived, target->stream));
}

static bench_columns fetched(bench_target *target, int place) {
  staging *from = &((machine *)target->own)->places[place];
  CHECK(cudaEventSynchronize(from->arrived));
  return from->columns;
}

static void empty_cache(bench_target *target) {
  if (target->cold) CHECK(cudaMemsetAsync(target->cache_filler, 0, target->cache_bytes, target->stream));
}

static double elapsed_ms(const machine *clock) {
  float ms = 0;
  CHECK(cudaEventSynchronize(clock->stop));
  CHECK(cudaEventElapsedTime(&ms, clock->start, clock->stop));
  return ms;
}

/* The stream is idle when the call comes, so that it never waits for room to enqueue. */
static double time_on_host(bench_target *target, const bench_work *work) {
  CHECK(cudaStreamSynchronize(target->stream));
  double start = bench_now_ms();
  bool ok = work->run(work->context);
  double ms = bench_now_ms() - start;
  CHECK(cudaStreamSynchronize(target->stream));
  return ok ? ms : -1;
}

static double time_run(bench_target *target, const bench_work *work) {
  machine *clock = target->own;
  if (!work->restore(work->context)) return -1;
  empty_cache(target);
  if (target->host_time) return time_on_host(target, work);
  CHECK(cudaEventRecord(clock->start, target->stream));
  bool ok = work->run(work->context);
  CHECK(cudaEventRecord(clock->stop, target->stream));
  double ms = elapsed_ms(clock);
  CHECK(cudaGetLastError());
  return ok ? ms : -1;
}

/* The restoring copy and both event records are nodes of the graph, so that the time between the events is
 * the work's own, without the launch of the graph. */
static void *record(bench_target *target, const bench_work *work) {
  machine *clock = target->own;
  cudaGraph_t graph = NULL;
  cudaGraphExec_t replayed = NULL;
  CHECK(cudaStreamBeginCapture(target->stream, cudaStreamCaptureModeThreadLocal));
  bool ok = work->restore(work->context);
  if (ok) {
    empty_cache(target);
    CHECK(cudaEventRecordWithFlags(clock->start, target->stream, cudaEventRecordExternal));
    ok = work->run(work->context);
    if (ok) CHECK(cudaEventRecordWithFlags(clock->stop, target->stream, cudaEventRecordExternal));
  }
  cudaError_t status = cudaStreamEndCapture(target->stream, &graph);
  if (ok && status == cudaSuccess) status = cudaGraphInstantiate(&replayed, graph, 0);
  if (graph) CHECK(cudaGraphDestroy(graph));
  cudaGetLastError(); /* a failed capture is told by the NULL */
  return ok && status == cudaSuccess ? replayed : NULL;
}

static double replay(bench_target *target, void *graph) {
  CHECK(cudaGraphLaunch(graph, target->stream));
  CHECK(cudaStreamSynchronize(target->stream));
  return elapsed_ms(target->own);
}

static void forget(bench_target *target, void *graph) {
  (void)target;
  CHECK(cudaGraphExecDestroy(graph));
}

static void close_cuda(bench_target *target) {
  machine *own = target->own;
  bench_baselines_cuda_close();
  for (int i = 0; i < 2; i++) {
    CHECK(cudaFreeHost(own->places[i].memory));
    CHECK(cudaEventDestroy(own->places[i].arrived));
  }
  CHECK(cudaEventDestroy(own->start));
  CHECK(cudaEventDestroy(own->stop));
  CHECK(cudaStreamDestroy(target->stream));
  free(own);
}

void bench_cuda_open(bench_target *target) {
  static const bench_target_ops ops = {allocate, release, available, copy,   poison, upload, download,
                                       fetch,    fetched, time_run,  record, replay, forget, close_cuda};
  target->ops = &ops;
  machine *own = target->own = calloc(1, sizeof *own);
  if (!own) bench_die("out of memory");
  CHECK(cudaStreamCreateWithFlags(&target->stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&own->start));
  CHECK(cudaEventCreate(&own->stop));
  for (int i = 0; i < 2; i++)
    CHECK(cudaEventCreateWithFlags(&own->places[i].arrived, cudaEventDisableTiming));
  int version = 0, cache = 0;
  CHECK(cudaRuntimeGetVersion(&version));
  CHECK(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, target->device->ordinal));
  target->cache_bytes = 2 * (size_t)cache;
  snprintf(target->cuda, sizeof target->cuda, "%d.%d", version / 1000, version % 1000 / 10);
}
