/* SPDX-License-Identifier: BSD-3-Clause */
/* SVD of a batch's members of middle size by the eigenvectors of A^H A and steps of Jacobi's method for all
 * pairs at once, see kernels/refine/eigen_svd.h; those for which that will not do by another family, for
 * which the others have no rows and no columns. */
#include "arena.h"
#include "batch.h"
#include "refine/eigen_svd.h"

/* The most rows and columns. */
static const bqr_variant variants[] = {
    {.name = "width64", .width = 64},
    {.name = "width96", .width = 96},
    {.name = "width128", .width = 128},
};

/* The children: eigenvalues and vectors of A^H A, and the SVD of what is left. */
enum { EIGENVALUES, REST, NUM_CHILDREN };
/* What children are chosen for: a member's bits must not depend on the number of members. */
enum { CHOSEN_FOR = 1000 };

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  (void)variant, (void)device;
  if (number >= NUM_CHILDREN) return false;
  const bool rest = number == REST;
  const int q = bqr_min(problem->m, problem->n);
  *child = (bqr_problem){.op = rest ? BATCHQR_GESVD : BATCHQR_SYEVD,
                         .role = BQR_ROLE_PANEL,
                         .type = rest ? problem->type : BATCHQR_D,
                         .compute = problem->compute,
                         .uplo = BATCHQR_LOWER,
                         .pointers = rest,
                         .uniform = !rest,
                         .tall = rest ? problem->m >= problem->n : true,
                         .vectors = !rest,
                         .m = rest ? problem->m : q,
                         .n = rest ? problem->n : q,
                         .count = CHOSEN_FOR};
  return true;
}

typedef struct work {
  bqr_eigen_svd svd;
  void *of_child[NUM_CHILDREN];
  size_t bytes;
} work;

/* Of members of one pass. */
static bqr_problem part_of_child(const bqr_problem *problem, int number, int64_t members) {
  bqr_problem part = problem->children[number].problem;
  part.count = members;
  return part;
}

/* Without children where these are not known yet. */
static work lay_out(const bqr_problem *problem, const bqr_device *device, int64_t count, void *base) {
  bqr_arena arena = {base, 0};
  const int64_t q = bqr_min(problem->m, problem->n), p = bqr_max(problem->m, problem->n);
  work w;
  bqr_eigen_svd *svd = &w.svd;
  svd->count = count;
  svd->ld = (int)(q + q % 2);
  svd->ldb = (int)(p + p % 2);
  svd->square = bqr_arena_take(&arena, count * svd->ld * q, sizeof(double));
  svd->z = bqr_arena_take(&arena, count * svd->ld * q, sizeof(double));
  svd->b = bqr_arena_take(&arena, count * svd->ldb * q, sizeof(double));
  svd->values = bqr_arena_take(&arena, count * q, sizeof(double));
  int **const ints[] = {&svd->failed, &svd->m_left, &svd->n_left, &svd->lda,
                        &svd->ldu,    &svd->ldv,    &svd->rank,   &svd->info};
  for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
    *ints[i] = bqr_arena_take(&arena, count, sizeof(int));
  void ***const addresses[] = {&svd->a, &svd->u, &svd->v, &svd->s};
  for (int i = 0; i < 4; i++) *addresses[i] = bqr_arena_take(&arena, count, sizeof(void *));
  for (int i = 0; i < problem->num_children; i++) {
    const bqr_child *c = &problem->children[i];
    const bqr_problem part = part_of_child(problem, i, count);
    w.of_child[i] =
        bqr_arena_take(&arena, 1, c->family->workspace ? c->family->workspace(&part, c->variant, device) : 0);
  }
  w.bytes = arena.bytes;
  return w;
}

/* Members that are under way at once: of as many as half a gigabyte of matrices. */
static int64_t at_once(const bqr_problem *problem) {
  const int64_t q = bqr_min(problem->m, problem->n), p = bqr_max(problem->m, problem->n),
                fit = (INT64_C(1) << 29) / (8 * q * (2 * q + p));
  return fit < 1 ? 1 : fit < problem->count ? fit : problem->count;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  return lay_out(problem, device, at_once(problem), NULL).bytes;
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  return (device->types >> BATCHQR_D & 1) && problem->role == BQR_ROLE_STEP && problem->uniform &&
         bqr_min(problem->m, problem->n) > 0 && bqr_max(problem->m, problem->n) <= variant->width;
}

/* As many members as keep multiprocessors busy, and of as many columns that one-sided Jacobi takes longer. On
 * an NVIDIA H200, 1000 members of 33 / 40 / 48 / 64 / 96 / 128 columns d take .72 / .69 / .71 / .56 / .42 /
 * .31 of the time of gesvd_solved; s 48 / 64 / 96 / 128 .97 / .73 / .60 / .61 of that or of gesvd_block's. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant;
  return bqr_min(problem->m, problem->n) > 32 && problem->count >= device->multiprocessors;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  batchqr_status status = bqr_eigen_svd_prepare(problem->type, variant->width);
  for (int i = 0; i < problem->num_children && !status; i++) {
    const bqr_child *c = &problem->children[i];
    const bqr_problem part = part_of_child(problem, i, at_once(problem));
    if (c->family->prepare) status = c->family->prepare(&part, c->variant, device);
  }
  return status;
}

static batchqr_status launch_child(const bqr_problem *problem, int number, const bqr_device *device,
                                   const work *w, bqr_args *args, batchqr_stream stream) {
  const bqr_child *c = &problem->children[number];
  const bqr_problem part = part_of_child(problem, number, w->svd.count);
  args->count = w->svd.count;
  args->workspace = w->of_child[number];
  return c->family->launch(&part, c->variant, device, args, stream);
}

static batchqr_status find_eigenvalues(const bqr_problem *problem, const bqr_device *device, const work *w,
                                       batchqr_stream stream) {
  const bqr_eigen_svd *svd = &w->svd;
  const int q = bqr_min(problem->m, problem->n);
  const bqr_matrix square = {
      .data = svd->square, .ld = svd->ld, .stride = (int64_t)svd->ld * q, .row_stride = 1};
  bqr_args args = {.a = square,
                   .s = {.data = svd->values, .stride = q},
                   .v = square,
                   .info = svd->failed,
                   .abstol = bqr_eigen_svd_product(problem->type),
                   .m = q,
                   .n = q};
  args.v.data = svd->z;
  return launch_child(problem, EIGENVALUES, device, w, &args, stream);
}

static bqr_matrix addressed(void **data, const int *lds, const bqr_matrix *all) {
  return (bqr_matrix){
      .data = all->data ? data : NULL, .ld_array = lds, .ld = all->ld, .row_stride = 1, .pointers = true};
}

static batchqr_status solve_rest(const bqr_problem *problem, const bqr_device *device, const bqr_args *all,
                                 const work *w, batchqr_stream stream) {
  const bqr_eigen_svd *svd = &w->svd;
  bqr_args args = {.a = addressed(svd->a, svd->lda, &all->a),
                   .u = addressed(svd->u, svd->ldu, &all->u),
                   .v = addressed(svd->v, svd->ldv, &all->v),
                   .s = {.data = svd->s, .pointers = true},
                   .rank = {.data = all->rank.data ? svd->rank : NULL, .stride = 1},
                   .info = svd->info,
                   .m_array = svd->m_left,
                   .n_array = svd->n_left,
                   .m = problem->m,
                   .n = problem->n,
                   .kmax = all->kmax,
                   .abstol = all->abstol,
                   .reltol = all->reltol};
  return launch_child(problem, REST, device, w, &args, stream);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  const int64_t most = at_once(problem);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t first = 0; first < args->count && !status; first += most) {
    work w = lay_out(problem, device, most, args->workspace);
    w.svd.first = first;
    w.svd.count = args->count - first < most ? args->count - first : most;
    status = bqr_eigen_svd_gram(problem->type, variant->width, args, &w.svd, stream);
    if (!status) status = find_eigenvalues(problem, device, &w, stream);
    if (!status) status = bqr_eigen_svd_finish(problem->type, variant->width, args, &w.svd, stream);
    if (!status) status = solve_rest(problem, device, args, &w, stream);
    if (!status) status = bqr_eigen_svd_take(args, &w.svd, stream);
  }
  return status;
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const int64_t most = at_once(problem);
  (void)variant;
  int launches = 0;
  for (int64_t first = 0; first < problem->count; first += most) {
    launches += BQR_EIGEN_SVD_LAUNCHES;
    for (int i = 0; i < problem->num_children; i++) {
      const bqr_family *f = problem->children[i].family;
      const bqr_problem part =
          part_of_child(problem, i, problem->count - first < most ? problem->count - first : most);
      launches +=
          f->count_launches ? f->count_launches(&part, problem->children[i].variant, device) : f->launches;
    }
  }
  return launches;
}

const bqr_family bqr_family_gesvd_eigen = {
    .name = "gesvd_eigen",
    .op = BATCHQR_GESVD,
    .types = 1 << BATCHQR_S | 1 << BATCHQR_D,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .count_launches = count_launches,
    .prefers = prefers,
    .child = child,
    .only_where_good = true,
};
