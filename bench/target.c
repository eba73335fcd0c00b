/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing the machine part to measure on. */
#include "bench.h"
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

double bench_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

#if !BQR_HAVE_CUDA
bool bench_cuda_present(char why[BENCH_TEXT]) {
  snprintf(why, BENCH_TEXT, "this build has no CUDA");
  return false;
}
bool bench_cuda_select(int device, char error[BENCH_TEXT]) {
  snprintf(error, BENCH_TEXT, "--device is %d, but this build has no CUDA", device);
  return false;
}
void bench_cuda_open(bench_target *target) {
  (void)target;
  lab_die("this build has no CUDA");
}
#endif

static bool create_handle(bench_target *target, const bench_target_options *options, batchqr_backend backend,
                          char error[BENCH_TEXT]) {
  batchqr_options ask = {.backend = backend,
                         .positive_diagonal = options->positive,
                         .threads = options->threads,
                         .tuning_file = options->tuning_file};
  batchqr_status status = batchqr_create(&target->handle, &ask);
  if (status == BATCHQR_SUCCESS) return true;
  char message[BENCH_TEXT - 64] = "";
  if (status == BATCHQR_TUNING_ERROR && options->tuning_file)
    batchqr_check_tuning_file(options->tuning_file, message, sizeof message);
  snprintf(error, BENCH_TEXT, "cannot create a handle: %s%s%s", batchqr_status_string(status),
           *message ? ": " : "", message);
  return false;
}

bool bench_target_open(bench_target *target, const bench_target_options *options, char error[BENCH_TEXT]) {
  *target = (bench_target){.cold = options->cold, .host_time = options->host_time};
  batchqr_backend backend = options->backend;
  char why[BENCH_TEXT];
  if (backend == BATCHQR_BACKEND_AUTO)
    backend = bench_cuda_present(why) ? BATCHQR_BACKEND_CUDA : BATCHQR_BACKEND_CPU;
  if (backend == BATCHQR_BACKEND_CUDA) {
    if (!bench_cuda_present(why)) {
      snprintf(error, BENCH_TEXT, "--backend is cuda, but %.400s", why);
      return false;
    }
    if (!bench_cuda_select(options->device, error)) return false;
  }
  if (!create_handle(target, options, backend, error)) return false;
  target->device = bqr_handle_device(target->handle);
  snprintf(target->name, sizeof target->name, "%s", target->device->name);
  target->space = space_new(backend);
  if (backend == BATCHQR_BACKEND_CUDA)
    bench_cuda_open(target);
  else
    bench_host_open(target);
  batchqr_set_stream(target->handle, target->space.stream);
  if (target->cold) {
    target->cache_filler = space_alloc(&target->space, target->cache_bytes);
    if (!target->cache_filler) lab_die("no memory to empty the cache with");
  }
  return true;
}

void bench_target_close(bench_target *target) {
  batchqr_destroy(target->handle);
  space_release(&target->space, target->cache_filler);
  target->clock->close(target);
  space_free(&target->space);
}
