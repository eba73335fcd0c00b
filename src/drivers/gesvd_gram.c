/* SPDX-License-Identifier: BSD-3-Clause */
/* SVD of a batch's tall members of few columns by the eigenvalues and vectors of A^H A, see
 * kernels/refine/small_svd.h; those with nearly dependent columns take QR and the SVD of R, for which the
 * others have no rows and no columns. */
#include "arena.h"
#include "batch.h"
#include "refine/small_svd.h"
#include "step_children.h"
#include <limits.h>

/* The most columns. */
static const bqr_variant variants[] = {
    {.name = "cols16", .cols = 16},
    {.name = "cols32", .cols = 32},
    {.name = "cols64", .cols = BQR_SMALL_SVD_COLUMNS},
};

/* The children: QR of what is left and its Q; R's SVD; eigenvalues and vectors of A^H A; and signs, where V
 * is not wanted. */
enum { FACTOR, FORM, DECOMPOSE, EIGENVALUES, TURN, NUM_CHILDREN };
/* What children are chosen for: a member's bits must not depend on the number of members. */
enum { CHOSEN_FOR = 1000 };

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  static const int ops[] = {BATCHQR_GEQRF, BATCHQR_ORGQR, BATCHQR_GESVD, BATCHQR_SYEVD, BQR_TURN};
  (void)variant, (void)device;
  if (number >= NUM_CHILDREN) return false;
  const bool of_qr = number == FACTOR || number == FORM, of_square = number == EIGENVALUES;
  *child = (bqr_problem){.op = ops[number],
                         .role = of_qr ? BQR_ROLE_STEP : BQR_ROLE_PANEL,
                         .type = of_square ? BATCHQR_D : problem->type,
                         .compute = problem->compute,
                         .uplo = BATCHQR_LOWER,
                         .pointers = of_qr,
                         .uniform = of_square || number == TURN,
                         .tall = true,
                         .vectors = of_square,
                         .m = number == DECOMPOSE || of_square ? problem->n : problem->m,
                         .n = problem->n,
                         .k = number == FORM ? problem->n : 0,
                         .count = CHOSEN_FOR};
  return true;
}

typedef struct work {
  bqr_small_svd svd;
  void *tau, *of_child[NUM_CHILDREN];
  size_t bytes;
} work;

/* Without children where these are not known yet. */
static work lay_out(const bqr_problem *problem, const bqr_device *device, void *base) {
  bqr_arena arena = {base, 0};
  const size_t size = bqr_type_bytes(problem->type);
  const int64_t count = problem->count, n = problem->n;
  work w;
  bqr_small_svd *svd = &w.svd;
  svd->r = svd->square = bqr_arena_take(&arena, count * n, (size_t)n * sizeof(double));
  svd->u = svd->z = bqr_arena_take(&arena, count * n, (size_t)n * sizeof(double));
  svd->v = bqr_arena_take(&arena, count * n, (size_t)n * size);
  svd->values = bqr_arena_take(&arena, count * n, sizeof(double));
  void **const vectors[] = {&svd->s, &w.tau};
  for (int i = 0; i < 2; i++) *vectors[i] = bqr_arena_take(&arena, count * n, size);
  int **const ints[] = {&svd->failed, &svd->rank, &svd->info, &svd->m_left, &svd->n_left, &svd->lda};
  for (int i = 0; i < 6; i++) *ints[i] = bqr_arena_take(&arena, count, sizeof(int));
  svd->a = bqr_arena_take(&arena, count, sizeof(void *));
  for (int i = 0; i < problem->num_children; i++)
    w.of_child[i] = bqr_arena_take(&arena, 1, bqr_step_child_workspace(problem, i, count, device));
  w.bytes = arena.bytes;
  return w;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  return lay_out(problem, device, NULL).bytes;
}

/* Loops over rows go on beyond the last. */
enum { MOST_ROWS = INT_MAX - 1024 };
static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  return (device->types >> BATCHQR_D & 1) && problem->role == BQR_ROLE_STEP && problem->uniform &&
         problem->m >= problem->n && problem->n > 0 && problem->n <= variant->cols && problem->m <= MOST_ROWS;
}

/* Members that a warp or a block does not do at once, and enough of them: a block reads one, and where these
 * are high, several blocks of a multiprocessor are to be at it. */
enum { LEAST_COLUMNS = 9, LEAST_ROWS = 65, LEAST_RATIO = 4, HIGH = 2048, BLOCKS = 8 };
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant;
  return problem->n >= LEAST_COLUMNS && problem->m >= LEAST_ROWS &&
         problem->m >= LEAST_RATIO * (int64_t)problem->n &&
         problem->count >= device->multiprocessors * (int64_t)(problem->m > HIGH ? BLOCKS : 1);
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  const batchqr_status status = bqr_small_svd_prepare(problem->type, variant->cols);
  return status ? status : bqr_step_children_prepare(problem, problem->count, device);
}

static batchqr_status open(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                           void **state) {
  (void)variant;
  return bqr_step_children_open(problem, problem->count, device, state);
}

/* Of two eigenvectors, see syevd_tridiagonal: nothing beside the rounding of single precision. */
#define MOST_PRODUCT 0x1p-32

static batchqr_status find_eigenvalues(const bqr_problem *problem, const bqr_device *device,
                                       const bqr_args *args, const work *w, batchqr_stream stream) {
  const int n = problem->n;
  const bqr_matrix square = {.data = w->svd.square, .ld = n, .stride = (int64_t)n * n, .row_stride = 1};
  bqr_args of_square = {.a = square,
                        .v = square,
                        .s = {.data = w->svd.values, .stride = n},
                        .info = w->svd.failed,
                        .abstol = problem->type == BATCHQR_S ? MOST_PRODUCT : 0,
                        .m = n,
                        .n = n,
                        .workspace = w->of_child[EIGENVALUES]};
  of_square.v.data = w->svd.z;
  return bqr_step_child_launch(problem, EIGENVALUES, args->count, device, of_square, args->state, stream);
}

/* QR of what is left, R of it, and Q in place of A. */
static batchqr_status take_qr(const bqr_problem *problem, const bqr_device *device, const bqr_args *args,
                              const work *w, batchqr_stream stream) {
  const bqr_small_svd *svd = &w->svd;
  bqr_args left = {
      .a = {.data = svd->a, .ld_array = svd->lda, .ld = args->a.ld, .row_stride = 1, .pointers = true},
      .tau = {.data = w->tau, .stride = problem->n},
      .m_array = svd->m_left,
      .n_array = svd->n_left,
      .m = problem->m,
      .n = problem->n,
      .k = problem->n,
      .workspace = w->of_child[FACTOR]};
  batchqr_status status =
      bqr_step_child_launch(problem, FACTOR, args->count, device, left, args->state, stream);
  if (!status) status = bqr_small_svd_take(problem->type, args, svd, stream);
  if (status || !args->u.data) return status;
  left.workspace = w->of_child[FORM];
  left.k_array = svd->n_left;
  return bqr_step_child_launch(problem, FORM, args->count, device, left, args->state, stream);
}

static batchqr_status decompose(const bqr_problem *problem, const bqr_device *device, const bqr_args *args,
                                const work *w, batchqr_stream stream) {
  const bqr_small_svd *svd = &w->svd;
  const int n = problem->n;
  const bqr_matrix square = {.ld = n, .stride = (int64_t)n * n, .row_stride = 1};
  bqr_args of_r = {.a = square,
                   .u = square,
                   .v = square,
                   .s = {.data = svd->s, .stride = n},
                   .rank = {.data = svd->rank, .stride = 1},
                   .info = svd->info,
                   .m_array = svd->n_left,
                   .n_array = svd->n_left,
                   .m = n,
                   .n = n,
                   .k = n,
                   .workspace = w->of_child[DECOMPOSE],
                   .kmax = args->kmax,
                   .abstol = args->abstol,
                   .reltol = args->reltol};
  of_r.a.data = svd->r;
  of_r.u.data = args->u.data ? svd->u : NULL;
  of_r.v.data = args->v.data ? svd->v : NULL;
  return bqr_step_child_launch(problem, DECOMPOSE, args->count, device, of_r, args->state, stream);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  const work w = lay_out(problem, device, args->workspace);
  batchqr_status status = bqr_small_svd_gram(problem->type, variant->cols, args, &w.svd, stream);
  if (!status) status = find_eigenvalues(problem, device, args, &w, stream);
  if (!status) status = bqr_small_svd_finish(problem->type, variant->cols, args, &w.svd, stream);
  if (!status) status = take_qr(problem, device, args, &w, stream);
  if (!status) status = decompose(problem, device, args, &w, stream);
  if (!status) status = bqr_small_svd_back(problem->type, variant->cols, args, &w.svd, stream);
  if (status || !args->u.data || args->v.data) return status;
  const bqr_args signs = {.c = args->u,
                          .members = args->members,
                          .host_members = args->host_members,
                          .m = problem->m,
                          .n = problem->n,
                          .k = problem->n,
                          .workspace = w.of_child[TURN]};
  return bqr_step_child_launch(problem, TURN, args->count, device, signs, args->state, stream);
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant;
  int launches = BQR_SMALL_SVD_LAUNCHES;
  for (int i = 0; i < problem->num_children; i++)
    launches += bqr_step_child_launches(problem, i, problem->count, device);
  return launches;
}

const bqr_family bqr_family_gesvd_gram = {
    .name = "gesvd_gram",
    .op = BATCHQR_GESVD,
    .types = 1 << BATCHQR_S | 1 << BATCHQR_D,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open,
    .close = bqr_step_children_close,
    .count_launches = count_launches,
    .prefers = prefers,
    .child = child,
    .only_where_good = true,
};
