/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvalue problems on a GPU that others keep busy: kernels of another stream, or of another process, fill
 * all multiprocessors all the time. Kernels whose blocks wait for one another must come to an end there, too,
 * and with the same bits as on an idle GPU. */
#include "batch.h"
#include "inspect.h"
#include "matgen.h"
#include "suite.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { LIMIT = 60 }; /* seconds for a call: on an idle GPU it takes milliseconds */

/* Also in the other process, where Check's words have no runner. */
static void cuda(cudaError_t code) {
  if (code) lab_die("%s", cudaGetErrorString(code));
}
static void well(batchqr_status status) {
  if (status) lab_die("%s", batchqr_status_string(status));
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- what keeps the GPU busy: QR factorizations, of which each launch has blocks for all multiprocessors
 * several times over */

enum { ROUNDS = 2, CALLS = 4 };

typedef struct load {
  batchqr_handle_t handle;
  batchqr_stream stream;
  batchqr_plan_t plan;
  batchqr_operands operands;
  void *space;
  size_t bytes;
  cudaEvent_t done[ROUNDS];
  int64_t rounds;
} load;

static load load_new(void) {
  enum { N = 128 };
  load l = {.handle = memory_handle(BATCHQR_BACKEND_CUDA, NULL), .stream = memory_stream_new()};
  const int64_t count = 16 * (int64_t)bqr_handle_device(l.handle)->multiprocessors;
  const size_t size = sizeof(float), elements = (size_t)count * N * N;
  float *a = memory_host(size * elements);
  for (int64_t i = 0; i < count; i++)
    matgen_fill(BATCHQR_S, MATGEN_RANDOM, (uint64_t)i, N, N, a + i * N * N, N);
  const batchqr_batch batch = batchqr_batch_packed(BATCHQR_GEQRF, BATCHQR_S, N, N, 0, count);
  well(batchqr_set_stream(l.handle, l.stream));
  well(batchqr_plan_create(l.handle, BATCHQR_GEQRF, &batch, &l.plan));
  l.bytes = batchqr_plan_workspace(l.plan);
  l.space = memory_alloc(BATCHQR_BACKEND_CUDA, l.bytes);
  l.operands.a = memory_clone(BATCHQR_BACKEND_CUDA, a, size * elements);
  l.operands.tau = memory_alloc(BATCHQR_BACKEND_CUDA, size * (size_t)count * N);
  for (int i = 0; i < ROUNDS; i++) cuda(cudaEventCreateWithFlags(&l.done[i], cudaEventDisableTiming));
  free(a);
  return l;
}

/* So many calls that the GPU has some before it when this is called again soon. Factors of factors stay
 * finite.
 */
static void load_feed(load *l) {
  for (; l->rounds < ROUNDS || cudaEventQuery(l->done[l->rounds % ROUNDS]) == cudaSuccess; l->rounds++) {
    for (int i = 0; i < CALLS; i++)
      well(batchqr_plan_execute(l->handle, l->plan, &l->operands, l->space, l->bytes));
    cuda(cudaEventRecord(l->done[l->rounds % ROUNDS], l->stream));
  }
}

static void load_free(load *l) {
  memory_sync(BATCHQR_BACKEND_CUDA);
  for (int i = 0; i < ROUNDS; i++) cuda(cudaEventDestroy(l->done[i]));
  void *all[] = {l->operands.a, l->operands.tau, l->space};
  for (int i = 0; i < 3; i++) memory_free(BATCHQR_BACKEND_CUDA, all[i]);
  batchqr_plan_destroy(l->plan);
  batchqr_destroy(l->handle);
  memory_stream_free(l->stream);
}

/* --- the same in another process, until its standard input ends */

static int keep_busy(void) {
  load l = load_new();
  char byte = 0;
  fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
  for (;;) {
    load_feed(&l);
    cuda(cudaEventSynchronize(l.done[l.rounds % ROUNDS]));
    if (l.rounds < 3 * ROUNDS && write(STDOUT_FILENO, &byte, 1) != 1) break; /* it has begun */
    const ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got == 0 || (got < 0 && errno != EAGAIN)) break;
  }
  load_free(&l);
  return EXIT_SUCCESS;
}

typedef struct neighbour {
  pid_t pid;
  int to, from;
} neighbour;

/* False if the GPU does not take a second process. */
static bool neighbour_start(neighbour *p) {
  int in[2], out[2];
  char name[] = "busy", word[] = "neighbour", *arguments[] = {name, word, NULL}, byte;
  posix_spawn_file_actions_t actions;
  ck_assert_int_eq(pipe(in), 0);
  ck_assert_int_eq(pipe(out), 0);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, in[1]);
  posix_spawn_file_actions_addclose(&actions, out[0]);
  ck_assert_int_eq(posix_spawn(&p->pid, "/proc/self/exe", &actions, NULL, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  p->to = in[1];
  p->from = out[0];
  return read(p->from, &byte, 1) == 1;
}

static bool neighbour_runs(const neighbour *p) { return waitpid(p->pid, NULL, WNOHANG) == 0; }

static void neighbour_end(neighbour *p) {
  close(p->to);
  close(p->from);
  kill(p->pid, SIGTERM);
  waitpid(p->pid, NULL, 0);
}

/* --- an eigenvalue problem */

typedef struct problem {
  batchqr_handle_t handle;
  batchqr_stream stream;
  batchqr_plan_t plan;
  batchqr_operands operands;
  void *space, *a, *results[2]; /* A, and w and V on the host: alone, and beside others */
  size_t bytes, a_bytes, w_bytes;
} problem;

static problem problem_new(batchqr_type type, int n, const char *family, const char *variant) {
  problem p = {.handle = memory_handle(BATCHQR_BACKEND_CUDA, NULL), .stream = memory_stream_new()};
  const batchqr_batch batch = batchqr_batch_packed(BATCHQR_SYEVD, type, n, n, 0, 1);
  const size_t rows = (size_t)n;
  p.a_bytes = rows * rows * bqr_type_bytes(type);
  p.w_bytes = rows * bqr_real_bytes(type);
  p.a = memory_host(p.a_bytes);
  matgen_fill(type, MATGEN_RANDOM, 5, n, n, p.a, n);
  for (int i = 0; i < 2; i++) p.results[i] = memory_host(p.w_bytes + p.a_bytes);
  ck_assert_int_eq(batchqr_set_stream(p.handle, p.stream), BATCHQR_SUCCESS);
  ck_assert_int_eq(bqr_force(p.handle, BATCHQR_SYEVD, family, variant), BATCHQR_SUCCESS);
  ck_assert_msg(!batchqr_plan_create(p.handle, BATCHQR_SYEVD, &batch, &p.plan), "%s",
                batchqr_error_message(p.handle));
  p.bytes = batchqr_plan_workspace(p.plan);
  p.space = memory_alloc(BATCHQR_BACKEND_CUDA, p.bytes);
  p.operands.a = memory_alloc(BATCHQR_BACKEND_CUDA, p.a_bytes);
  p.operands.s = memory_alloc(BATCHQR_BACKEND_CUDA, p.w_bytes);
  p.operands.v = memory_alloc(BATCHQR_BACKEND_CUDA, p.a_bytes);
  return p;
}

static void problem_free(problem *p) {
  void *all[] = {p->operands.a, p->operands.s, p->operands.v, p->space};
  for (int i = 0; i < 4; i++) memory_free(BATCHQR_BACKEND_CUDA, all[i]);
  for (int i = 0; i < 2; i++) free(p->results[i]);
  free(p->a);
  batchqr_plan_destroy(p->plan);
  batchqr_destroy(p->handle);
  memory_stream_free(p->stream);
}

/* Solves it within the limit, beside a load or none. */
static void problem_solve(problem *p, int result, load *beside, const char *what) {
  char *to = p->results[result];
  memory_upload(BATCHQR_BACKEND_CUDA, p->operands.a, p->a, p->a_bytes);
  memory_fill(BATCHQR_BACKEND_CUDA, p->operands.v, 0xff, p->a_bytes);
  if (beside) load_feed(beside);
  const double begin = seconds();
  ck_assert_int_eq(batchqr_plan_execute(p->handle, p->plan, &p->operands, p->space, p->bytes),
                   BATCHQR_SUCCESS);
  while (cudaStreamQuery((cudaStream_t)p->stream) == cudaErrorNotReady) {
    if (beside) load_feed(beside);
    if (seconds() - begin < LIMIT) continue;
    fprintf(stderr, "%s: not done after %d seconds\n", what, LIMIT);
    _exit(EXIT_FAILURE); /* the GPU would be waited for at any other end */
  }
  const double took = seconds() - begin;
  memory_download(BATCHQR_BACKEND_CUDA, to, p->operands.s, p->w_bytes);
  memory_download(BATCHQR_BACKEND_CUDA, to + p->w_bytes, p->operands.v, p->a_bytes);
  printf("%s: %.1f ms\n", what, 1e3 * took);
}

static const struct {
  const char *family, *variant;
  int n;
  bool whole; /* as many blocks as there are multiprocessors at once: real types alone */
} ways[] = {{"syevd_large", "cols256.width64", 520, false},
            {"syevd_large", "cols256.width32", 520, false},
            {"syevd_cluster", "wide", 600, true},
            {"syevd_cluster", "blocks8.global", 300, false}};

enum { WAYS = sizeof ways / sizeof ways[0] };

static bool possible(int way, const bqr_device *device, batchqr_type type) {
  const bqr_family *family = bqr_family_find(ways[way].family);
  if (!family || !bqr_family_runs_on(family, device, type)) return false;
  return !ways[way].whole || (!type_is_complex(type) && device->multiprocessors >= 128);
}

/* Whether it takes one process alone, or none. */
static bool device_is_exclusive(void) {
  int device, mode;
  cuda(cudaGetDevice(&device));
  cuda(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, device));
  return mode != cudaComputeModeDefault;
}

START_TEST(beside_others) {
  static const char *const names[] = {"alone", "another stream", "another process"};
  const batchqr_type type = (batchqr_type)_i;
  load l = load_new();
  problem problems[WAYS];
  neighbour other;
  for (int beside = 0; beside < 3; beside++) {
    const bool comes = beside < 2 || neighbour_start(&other);
    if (!comes) ck_assert_msg(device_is_exclusive(), "the other process has not come");
    for (int i = 0; i < WAYS; i++) {
      if (!possible(i, bqr_handle_device(l.handle), type)) continue;
      problem *p = &problems[i];
      if (beside == 0) *p = problem_new(type, ways[i].n, ways[i].family, ways[i].variant);
      char what[128];
      snprintf(what, sizeof what, "%c %d %s %s, %s", type_letter(type), ways[i].n, ways[i].family,
               ways[i].variant, names[beside]);
      if (comes) problem_solve(p, beside > 0, beside == 1 ? &l : NULL, what);
      if (comes && beside > 0)
        ck_assert_msg(!memcmp(p->results[0], p->results[1], p->w_bytes + p->a_bytes), "%s: other bits", what);
      if (beside == 2) problem_free(p);
    }
    if (beside < 2) continue;
    if (comes) ck_assert_msg(neighbour_runs(&other), "the other process has ended");
    neighbour_end(&other);
  }
  load_free(&l);
}
END_TEST

int main(int argc, char **argv) {
  (void)argv;
  if (argc > 1) return keep_busy();
  Suite *suite = suite_create("busy");
  suite_add(suite, beside_others);
  return suite_run(suite);
}
