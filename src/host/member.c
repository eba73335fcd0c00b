/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/member.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

/* OpenBLAS's, where LAPACK is OpenBLAS; NULL with another one. */
extern int openblas_get_parallel(void) __attribute__((weak));
extern int openblas_get_num_threads(void) __attribute__((weak));
extern void openblas_set_num_threads(int threads) __attribute__((weak));

static bool ld_fits(const bqr_matrix *x, int64_t id, bqr_shape shape) {
  return x->ld_array == NULL || x->ld_array[id] >= (shape.cols > 0 ? shape.rows : 0);
}

/* The shape of a matrix: the row's, or, of one that the operation has not but a program around it, `other`.
 */
static bqr_shape shape_of(const host_launch *launch, int place, bqr_dims sizes, bqr_shape other) {
  const batchqr_batch batch = {.side = launch->problem->side};
  const bqr_use *use = bqr_use_at(launch->operation, place);
  return use ? bqr_shape_of(use, &batch, sizes) : other;
}

/* Whether every leading dimension that comes from the device is one for the member's matrices. */
static bool lds_fit(const host_launch *launch, const host_member *x) {
  const bqr_args *args = launch->args;
  const bqr_dims s = {x->m, x->n, x->k};
  const int rank = bqr_min(x->m, x->n);
  const struct {
    int place;
    const bqr_matrix *matrix;
    bqr_shape other;
  } matrices[] = {{BQR_A, &args->a, {x->m, x->n}},
                  {BQR_C, &args->c, {x->m, x->n}},
                  {BQR_R, &args->r, {rank, x->n}},
                  {BQR_U, &args->u, {x->m, rank}},
                  {BQR_V, &args->v, {x->n, rank}}};
  for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++)
    if (!ld_fits(matrices[i].matrix, x->id, shape_of(launch, matrices[i].place, s, matrices[i].other)))
      return false;
  return true;
}

/* Sets the sizes; false if they come from the caller unchecked and do not fit. */
static bool sizes_fit(const host_launch *launch, host_member *x) {
  const bqr_operation *operation = launch->operation;
  const bqr_args *args = launch->args;
  const int64_t id = x->id;
  x->m = args->m_array != NULL ? args->m_array[id] : args->m;
  x->n = args->n_array != NULL ? args->n_array[id] : args->n;
  const bool left = operation->reads_side && launch->problem->side == BATCHQR_LEFT;
  int reach = left ? x->m : x->n; /* most reflectors that fit */
  const int all = operation->k == BQR_RIGHT_HAND_SIDES ? args->k : bqr_min(args->k, reach);
  x->k = args->k_array != NULL ? args->k_array[id] : all;
  bool fits = !args->untrusted ||
              (x->m >= 0 && x->m <= args->m && x->n >= 0 && x->n <= args->n && lds_fit(launch, x));
  if (args->thin) reach = x->n = x->k = bqr_min(x->m, x->n);
  if (operation->k) fits = fits && x->k >= 0 && x->k <= args->k;
  if (operation->k == BQR_REFLECTORS) fits = fits && x->k <= reach;
  if (operation->tall) fits = fits && x->n <= x->m;
  if (operation->square) fits = fits && x->m == x->n;
  return fits || !args->untrusted;
}

/* Entry i of the launch. False: its sizes do not fit; it is to be left alone, and its info is set. */
static bool find_member(const host_launch *launch, int64_t i, host_member *x) {
  const bqr_problem *problem = launch->problem;
  const bqr_args *args = launch->args;
  x->id = args->members != NULL ? args->members[i] : i;
  if (!sizes_fit(launch, x)) {
    host_set_info(args, x->id, BATCHQR_INFO_SIZES);
    return false;
  }
  x->a = bqr_host_matrix(&args->a, problem->type, x->id);
  x->c = bqr_host_matrix(&args->c, problem->type, x->id);
  x->r = bqr_host_matrix(&args->r, problem->type, x->id);
  x->tau = bqr_host_vector(&args->tau, bqr_type_bytes(problem->type), x->id);
  x->lda = bqr_host_ld(&args->a, x->id);
  x->ldc = bqr_host_ld(&args->c, x->id);
  x->ldr = bqr_host_ld(&args->r, x->id);
  return true;
}

bool bqr_host_supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)problem, (void)variant, (void)device;
  return true;
}

host_scratch bqr_host_no_scratch(const bqr_problem *problem) {
  (void)problem;
  return (host_scratch){.pieces = 1};
}

static size_t thread_bytes(host_scratch scratch) {
  return host_aligned(scratch.member) + host_aligned(scratch.piece);
}

size_t bqr_host_workspace(const bqr_device *device, host_scratch scratch) {
  size_t threads = (size_t)bqr_max(1, device->threads), most = SIZE_MAX / 2 - 64;
  if (scratch.member > most || scratch.piece > most) return SIZE_MAX;
  size_t bytes = thread_bytes(scratch);
  return bytes > SIZE_MAX / threads ? SIZE_MAX : threads * bytes;
}

/* The thread's part of the workspace, in which a member's comes before a piece's. */
static void *thread_scratch(const host_launch *launch) {
  return (char *)launch->args->workspace + (size_t)omp_get_thread_num() * thread_bytes(launch->scratch);
}

void bqr_host_for_pieces(const host_launch *launch, int pieces, host_piece_work work, const void *context) {
  size_t before = host_aligned(launch->scratch.member);
  if (pieces == 1) {
    work(context, 0, (char *)thread_scratch(launch) + before);
    return;
  }
#pragma omp taskloop grainsize(1)
  for (int i = 0; i < pieces; i++) work(context, i, (char *)thread_scratch(launch) + before);
}

/* Members of very different sizes must spread over the threads; tiny ones must not queue for the loop's
 * counter. */
static int chunk(int64_t count, int threads) {
  int64_t size = count / (32 * (int64_t)threads);
  return size < 1 ? 1 : size > 64 ? 64 : (int)size;
}

/* An OpenBLAS with threads of its own (parallel mode 1) would start them for every member. An OpenBLAS on
 * OpenMP asks OpenMP, thread by thread. */
static bool blas_has_threads(void) {
  return openblas_get_parallel != NULL && openblas_get_num_threads != NULL &&
         openblas_set_num_threads != NULL && openblas_get_parallel() == 1;
}

/* The number of OpenBLAS's threads is the process's, and handles work side by side: it is 1 from the first of
 * their loops that begins to the last one that ends. */
static struct {
  pthread_mutex_t lock;
  int loops;   /* that run */
  int threads; /* before the first of them */
} blas = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void enter_loop(void) {
  pthread_mutex_lock(&blas.lock);
  if (blas.loops++ == 0) {
    blas.threads = openblas_get_num_threads();
    openblas_set_num_threads(1);
  }
  pthread_mutex_unlock(&blas.lock);
}

static void leave_loop(void) {
  pthread_mutex_lock(&blas.lock);
  if (--blas.loops == 0) openblas_set_num_threads(blas.threads);
  pthread_mutex_unlock(&blas.lock);
}

/* OpenMP's threads do not survive a fork, and OpenMP waits for them in the child for ever. So a child of the
 * process that first started some works on one thread. */
static int threads_of_process(int threads) {
  static _Atomic pid_t starter;
  pid_t self = getpid(), none = 0;
  if (threads == 1) return 1;
  return atomic_compare_exchange_strong(&starter, &none, self) || none == self ? threads : 1;
}

/* As many threads as there is work for, and no more than processors: those would do no good, and OpenMP ends
 * the process where it cannot start one. */
static int team_size(const bqr_device *device, int64_t count, int64_t pieces) {
  int threads = bqr_max(1, bqr_min(device->threads, omp_get_num_procs()));
  int64_t most = count >= threads || pieces >= threads ? threads : count * (pieces > 1 ? pieces : 1);
  return threads_of_process(most < threads ? (int)most : threads);
}

/* A member's result must not depend on where it lies. It does not as long as BLAS does not choose its code by
 * alignment: OpenBLAS's kernels for x86 since Nehalem do not, those for Prescott do. */
batchqr_status bqr_host_for_members(const bqr_problem *problem, const bqr_device *device,
                                    const bqr_args *args, host_scratch scratch, host_work work) {
  const host_launch launch = {problem, bqr_registry_operation(bqr_registry_builtin(), problem->op), args,
                              scratch};
  int threads = team_size(device, args->count, scratch.pieces);
  bool own_threads = blas_has_threads();
  if (own_threads) enter_loop();
#pragma omp parallel num_threads(threads)
  {
    omp_set_num_threads(1); /* of this thread's inner regions, and no longer than this region lasts */
#pragma omp for schedule(dynamic, chunk(args->count, threads))
    for (int64_t i = 0; i < args->count; i++) {
      host_member x;
      if (find_member(&launch, i, &x)) work(&launch, &x, thread_scratch(&launch));
    }
  }
  if (own_threads) leave_loop();
  return BATCHQR_SUCCESS;
}
