/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA backend's clock: events in one stream. */
#include "bench.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct machine {
  cudaEvent_t start, stop;
} machine;

static void check(cudaError_t status, const char *call) {
  if (status != cudaSuccess) lab_die("%s: %s", call, cudaGetErrorString(status));
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

static void empty_cache(bench_target *target) {
  if (target->cold)
    CHECK(cudaMemsetAsync(target->cache_filler, 0, target->cache_bytes, target->space.stream));
}

static double elapsed_ms(const machine *clock) {
  float ms = 0;
  CHECK(cudaEventSynchronize(clock->stop));
  CHECK(cudaEventElapsedTime(&ms, clock->start, clock->stop));
  return ms;
}

/* The stream is idle when the call comes, so that it never waits for room to enqueue. */
static double time_on_host(bench_target *target, const bench_work *work) {
  CHECK(cudaStreamSynchronize(target->space.stream));
  double start = bench_now_ms();
  bool ok = work->run(work->context);
  double ms = bench_now_ms() - start;
  CHECK(cudaStreamSynchronize(target->space.stream));
  return ok ? ms : -1;
}

static double time_run(bench_target *target, const bench_work *work) {
  machine *clock = target->own;
  if (!work->restore(work->context)) return -1;
  empty_cache(target);
  if (target->host_time) return time_on_host(target, work);
  CHECK(cudaEventRecord(clock->start, target->space.stream));
  bool ok = work->run(work->context);
  CHECK(cudaEventRecord(clock->stop, target->space.stream));
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
  CHECK(cudaStreamBeginCapture(target->space.stream, cudaStreamCaptureModeThreadLocal));
  bool ok = work->restore(work->context);
  if (ok) {
    empty_cache(target);
    CHECK(cudaEventRecordWithFlags(clock->start, target->space.stream, cudaEventRecordExternal));
    ok = work->run(work->context);
    if (ok) CHECK(cudaEventRecordWithFlags(clock->stop, target->space.stream, cudaEventRecordExternal));
  }
  cudaError_t status = cudaStreamEndCapture(target->space.stream, &graph);
  if (ok && status == cudaSuccess) status = cudaGraphInstantiate(&replayed, graph, 0);
  if (graph) CHECK(cudaGraphDestroy(graph));
  cudaGetLastError(); /* a failed capture is told by the NULL */
  return ok && status == cudaSuccess ? replayed : NULL;
}

static double replay(bench_target *target, void *graph) {
  CHECK(cudaGraphLaunch(graph, target->space.stream));
  CHECK(cudaStreamSynchronize(target->space.stream));
  return elapsed_ms(target->own);
}

static void forget(bench_target *target, void *graph) {
  (void)target;
  CHECK(cudaGraphExecDestroy(graph));
}

static void close_cuda(bench_target *target) {
  machine *own = target->own;
  bench_baselines_cuda_close();
  CHECK(cudaEventDestroy(own->start));
  CHECK(cudaEventDestroy(own->stop));
  free(own);
}

void bench_cuda_open(bench_target *target) {
  static const bench_clock clock = {time_run, record, replay, forget, close_cuda};
  target->clock = &clock;
  machine *own = target->own = memory_host(sizeof *own);
  CHECK(cudaEventCreate(&own->start));
  CHECK(cudaEventCreate(&own->stop));
  int version = 0, cache = 0;
  CHECK(cudaRuntimeGetVersion(&version));
  CHECK(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, target->device->ordinal));
  target->cache_bytes = 2 * (size_t)cache;
  snprintf(target->cuda, sizeof target->cuda, "%d.%d", version / 1000, version % 1000 / 10);
}
