/* SPDX-License-Identifier: BSD-3-Clause */
/* Large Hermitian members in two stages, one after another: to a band (sy2sb.h) by large products, from there
 * to a tridiagonal matrix by bulge chasing (band/band.h), whose eigenvalues are found by bisection, or, with
 * vectors, by divide and conquer (tridiagonal/tridiagonal.h); vectors go back through both stages, of a range
 * of indices those of that range.
 *
 * All is done on an aligned copy that has been brought into range, so that addresses may be the device's.
 * What one stage needs and later ones do not shares its memory with theirs. */
#include "batch.h"
#include "band/band.h"
#include "block_reflectors.h"
#include "costs.h"
#include "sbr/sbr.h"
#include "strided_member.h"
#include "sy2sb.h"
#include "syevd_wide.h"
#include "tridiagonal/tridiagonal.h"

#include <stdlib.h>

/* Members come one after another; each takes far longer than a launch. */
enum { MOST_MEMBERS = 1024, LEAST_ROWS = 128 };

/* cols: of an outer block; width: of the band. */
static const bqr_variant variants[] = {
    {.name = "cols256.width64", .cols = 256, .width = 64},
    {.name = "cols512.width64", .cols = 512, .width = 64},
    {.name = "cols1024.width64", .cols = 1024, .width = 64},
    {.name = "cols256.width32", .cols = 256, .width = 32},
    {.name = "cols512.width32", .cols = 512, .width = 32},
    {.name = "cols1024.width32", .cols = 1024, .width = 32},
};

static bqr_sy2sb_sizes sizes_of(const bqr_problem *problem, const bqr_variant *variant) {
  const int most = (problem->n - 1) / variant->width * variant->width;
  return (bqr_sy2sb_sizes){problem->n, variant->width, bqr_min(variant->cols, most)};
}

/* The eigenvalues that are wanted, of all members. */
typedef struct wanted {
  int first, count;
} wanted;

static wanted wanted_of(const bqr_problem *p) {
  if (p->range != BQR_BY_INDEX) return (wanted){0, p->n};
  const int first = bqr_min(p->il - 1, p->n), end = bqr_min(p->iu, p->n);
  return (wanted){first, end - first};
}

/* One member, while it is worked on. */
typedef struct task {
  const bqr_problem *problem;
  const bqr_device *device;
  bqr_products products[BQR_PRODUCT_STREAMS]; /* the last one's stream is the caller's */
  bqr_sy2sb_sizes sizes;
  bqr_sy2sb reduction;
  size_t size;
  bqr_sbr_state *state;
  char *a, *tau;
  char *d, *e, *w;
  void *band;
  char *q; /* of complex types: the tridiagonal matrix's vectors, real */
  char *z; /* vectors, where V cannot be worked on itself */
  int64_t ld;
  void *tridiagonal, *back; /* memory of these stages */
  size_t bytes;
} task;

/* --- vectors through the first stage */

/* The last of the children. */
static bqr_problem back_problem(const bqr_problem *problem, bqr_sy2sb_sizes sizes) {
  const int order = sizes.n - sizes.width;
  return (bqr_problem){.op = BATCHQR_ORMQR,
                       .type = problem->type,
                       .compute = problem->compute,
                       .side = BATCHQR_LEFT,
                       .trans = BATCHQR_NO_TRANS,
                       .uniform = true,
                       .m = order,
                       .n = wanted_of(problem).count,
                       .k = order,
                       .count = 1};
}

/* The choice for it, and what is launched: all columns are aligned. */
typedef struct back_step {
  const bqr_family *family;
  const bqr_variant *variant;
  bqr_problem problem;
} back_step;

static back_step back_of(const bqr_problem *problem) {
  const bqr_child *c = &problem->children[problem->num_children - 1];
  back_step back = {c->family, c->variant, c->problem};
  back.problem.aligned = true;
  return back;
}

static size_t back_workspace(const bqr_problem *problem, const bqr_device *device) {
  const back_step back = back_of(problem);
  return back.family->workspace ? back.family->workspace(&back.problem, back.variant, device) : 0;
}

/* --- state */

typedef struct opened {
  void *products;
  void *back; /* of the child's family */
  void (*close_back)(void *);
} opened;

static void close(void *memory) {
  opened *s = memory;
  if (s && s->back) s->close_back(s->back);
  if (s && s->products) bqr_reflectors_close(s->products);
  free(s);
}

static batchqr_status open(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                           void **memory) {
  opened *s = calloc(1, sizeof *s);
  *memory = s;
  if (!s) return BATCHQR_OUT_OF_MEMORY;
  const batchqr_status status = bqr_reflectors_open(problem, variant, device, &s->products);
  if (status || !problem->vectors) return status;
  const back_step back = back_of(problem);
  s->close_back = back.family->close;
  return back.family->open ? back.family->open(&back.problem, back.variant, device, &s->back) : status;
}

/* --- memory */

static bool is_complex(const bqr_problem *problem) {
  return problem->type == BATCHQR_C || problem->type == BATCHQR_Z;
}
static batchqr_type real_type(const bqr_problem *problem) {
  return problem->type == BATCHQR_S || problem->type == BATCHQR_C ? BATCHQR_S : BATCHQR_D;
}

static void lay_out_vectors(task *t, bqr_arena *arena) {
  const size_t rows = (size_t)t->problem->n;
  t->z = bqr_arena_take(arena, t->ld, rows * t->size);
  if (is_complex(t->problem)) t->q = bqr_arena_take(arena, t->ld, rows * bqr_real_bytes(t->problem->type));
}

/* The three stages whose memory is the same. */
static void lay_out_stages(task *t, bqr_arena *arena) {
  const bqr_problem *p = t->problem;
  bqr_arena reduction = *arena, tridiagonal = *arena, back = *arena;
  bqr_sy2sb_lay_out(p, t->sizes, t->device, &reduction, &t->products[BQR_PRODUCT_STREAMS - 1], &t->reduction);
  t->tridiagonal = bqr_arena_take(&tridiagonal, 1, bqr_tridiagonal_bytes(real_type(p), p->n, p->vectors));
  if (p->vectors) t->back = bqr_arena_take(&back, 1, back_workspace(p, t->device));
  if (tridiagonal.bytes > reduction.bytes) reduction.bytes = tridiagonal.bytes;
  arena->bytes = back.bytes > reduction.bytes ? back.bytes : reduction.bytes;
}

static void lay_out(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                    void *base, task *t) {
  bqr_arena arena = {base, 0};
  const int n = problem->n;
  const size_t rows = (size_t)n, real = bqr_real_bytes(problem->type);
  *t = (task){.problem = problem,
              .device = device,
              .sizes = sizes_of(problem, variant),
              .size = bqr_type_bytes(problem->type),
              .ld = bqr_aligned_ld(n)};
  t->state = bqr_arena_take(&arena, 1, sizeof *t->state);
  t->a = bqr_arena_take(&arena, t->ld, rows * t->size);
  t->tau = bqr_arena_take(&arena, n, t->size);
  t->d = bqr_arena_take(&arena, n, real);
  t->e = bqr_arena_take(&arena, n, real);
  t->w = bqr_arena_take(&arena, n, real);
  t->band = bqr_arena_take(&arena, 1, bqr_band_bytes(problem->type, n, variant->width, problem->vectors));
  if (problem->vectors) lay_out_vectors(t, &arena);
  lay_out_stages(t, &arena);
  t->bytes = arena.bytes;
}

/* --- stages */

/* A to a band, in the streams of products. */
static batchqr_status reduce(task *t, const bqr_args *args, int64_t entry, batchqr_stream stream) {
  const bqr_problem *p = t->problem;
  const bqr_products *on = &t->products[BQR_PRODUCT_STREAMS - 1];
  batchqr_status status = bqr_products_begin(((const opened *)args->state)->products, stream, t->products);
  if (!status) status = bqr_products_enter(on);
  if (!status)
    status = bqr_sbr_load(p->type, args, entry, p->uplo == BATCHQR_LOWER, t->a, t->ld, t->state, on->stream);
  if (!status) status = bqr_sy2sb_reduce(&t->reduction, t->a, t->ld, t->tau);
  const batchqr_status last = bqr_products_end(((const opened *)args->state)->products);
  return status ? status : last;
}

/* Where the member's vectors are worked on, all of them: in V, if that has room for them, its address is the
 * host's and its columns are aligned. */
typedef struct place {
  char *z;
  int64_t ld;
} place;

static place place_of(const task *t, const bqr_args *args, int64_t entry) {
  const bqr_matrix *v = &args->v;
  const int64_t id = args->host_members ? args->host_members[entry] : entry;
  const bool fit = wanted_of(t->problem).count == t->problem->n;
  if (fit && !v->pointers && (!v->offsets || v->host_offsets) && (!v->ld_array || v->host_ld_array)) {
    const int64_t at = v->host_offsets ? v->host_offsets[id] : id * v->stride;
    const place own = {(char *)v->data + at * (int64_t)t->size,
                       v->host_ld_array ? v->host_ld_array[id] : v->ld};
    if (bqr_columns_aligned(own.z, own.ld, t->size)) return own;
  }
  return (place){t->z, t->ld};
}

/* Z := Q Z, of the vectors that are wanted and of the band's reduction to tridiagonal form and of A's to a
 * band. */
static batchqr_status go_back(const task *t, place to, const bqr_args *args, batchqr_stream stream) {
  const bqr_problem *p = t->problem;
  const int width = t->sizes.width;
  batchqr_status status =
      bqr_band_back(p->type, p->n, width, t->band, wanted_of(p).count, to.z, to.ld, stream);
  if (status) return status;
  const back_step back = back_of(p);
  const bqr_args own = {.a = {.data = t->a + (size_t)width * t->size, .ld = (int)t->ld, .row_stride = 1},
                        .c = {.data = to.z + (size_t)width * t->size, .ld = (int)to.ld, .row_stride = 1},
                        .tau = {.data = t->tau},
                        .m = back.problem.m,
                        .n = back.problem.n,
                        .k = back.problem.k,
                        .count = 1,
                        .workspace = t->back,
                        .state = ((const opened *)args->state)->back};
  return back.family->launch(&back.problem, back.variant, t->device, &own, stream);
}

static batchqr_status find_vectors(const task *t, const bqr_args *args, int64_t entry,
                                   batchqr_stream stream) {
  const bqr_problem *p = t->problem;
  const bool widened = is_complex(p);
  const wanted part = wanted_of(p);
  const place all = place_of(t, args, entry), q = widened ? (place){t->q, t->ld} : all;
  const place to = {all.z + (size_t)part.first * (size_t)all.ld * t->size, all.ld};
  batchqr_status status = bqr_tridiagonal_vectors(real_type(p), p->n, t->d, t->e, t->w, q.z, q.ld, part.first,
                                                  part.first + part.count, t->tridiagonal, stream);
  if (!status && widened)
    status = bqr_sbr_widen(p->type, p->n, part.count,
                           q.z + (size_t)part.first * (size_t)q.ld * bqr_real_bytes(p->type), q.ld, to.z,
                           to.ld, stream);
  if (!status) status = go_back(t, to, args, stream);
  return status ? status : bqr_sbr_vectors(p->type, args, entry, part.count, to.z, to.ld, stream);
}

static batchqr_status solve_member(task *t, const bqr_args *args, int64_t entry, batchqr_stream stream) {
  const bqr_problem *p = t->problem;
  const bool vectors = args->v.data;
  const wanted part = wanted_of(p);
  const char *w = t->w + (size_t)part.first * bqr_real_bytes(p->type);
  batchqr_status status = reduce(t, args, entry, stream);
  if (!status)
    status =
        bqr_band_reduce(p->type, p->n, t->sizes.width, t->a, t->ld, t->band, t->d, t->e, vectors, stream);
  if (!status && !vectors)
    status = bqr_tridiagonal_values(real_type(p), p->n, t->d, t->e, t->w, t->tridiagonal, stream);
  if (!status && vectors) status = find_vectors(t, args, entry, stream);
  return status ? status : bqr_sbr_values(p->type, args, entry, part.count, w, t->state, stream);
}

/* --- the family */

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  task t;
  lay_out(problem, variant, device, args->workspace, &t);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t entry = 0; entry < args->count && !status; entry++)
    status = solve_member(&t, args, entry, stream);
  return status;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  task t;
  lay_out(problem, variant, device, NULL, &t);
  return t.bytes;
}

/* Members must be alike, of sizes that the host knows, and few enough to be enqueued one by one. */
static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant;
  return bqr_has_wide_clusters(device) && problem->uniform && problem->count <= MOST_MEMBERS &&
         wanted_of(problem).count > 0 && problem->n >= LEAST_ROWS &&
         problem->n <= BQR_MOST_PANELS * BQR_BLOCK_WIDTH;
}

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  const bqr_sy2sb_sizes sizes = sizes_of(problem, variant);
  if (bqr_sy2sb_child(problem, sizes, device, number, child)) return true;
  const bool last = number == 0 || bqr_sy2sb_child(problem, sizes, device, number - 1, child);
  if (!problem->vectors || !last) return false;
  *child = back_problem(problem, sizes);
  return true;
}

/* Up to so many rows a band of 32 is better: the more vectors go back through it, the fewer. */
static double narrow_rows(const bqr_problem *problem, const bqr_costs *costs) {
  const double all = costs->syevd.narrow_vectors, none = costs->syevd.narrow_values;
  return problem->vectors ? none + (all - none) * wanted_of(problem).count / problem->n : none;
}

static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const int n = problem->n;
  const int cols = n <= costs->syevd.cols256 ? 256 : n <= costs->syevd.cols512 ? 512 : 1024;
  const double narrow = narrow_rows(problem, costs);
  const bool spills = problem->type == BATCHQR_Z; /* when bulges of 64 are chased */
  const int width = spills || n <= narrow ? 32 : 64;
  const bool clusters = problem->uniform && bqr_has_clusters(device); /* syevd_cluster's */
  const bool few = clusters
                       ? problem->count == 1 && n >= costs->syevd.alone_rows
                       : n >= costs->syevd.rows && (double)problem->count * costs->syevd.member_rows <= n;
  return (few || n > costs->syevd.block_rows) && !bqr_syevd_prefers_wide(problem, device) &&
         variant->cols == cols && variant->width == width;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  const bqr_sy2sb_sizes sizes = sizes_of(problem, variant);
  batchqr_status status = bqr_sy2sb_prepare(problem, sizes, device);
  if (!status) status = bqr_band_prepare(problem->type, sizes.width);
  if (!status) status = bqr_tridiagonal_prepare(real_type(problem));
  if (status || !problem->vectors) return status;
  const back_step back = back_of(problem);
  return back.family->prepare ? back.family->prepare(&back.problem, back.variant, device) : status;
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  enum { OTHERS = 8 }; /* of the stages behind the first, about */
  task t;
  lay_out(problem, variant, device, NULL, &t);
  int launches = BQR_SBR_LOAD_LAUNCHES + bqr_sy2sb_launches(&t.reduction) + OTHERS;
  if (problem->vectors) {
    const back_step back = back_of(problem);
    launches += back.family->count_launches ? back.family->count_launches(&back.problem, back.variant, device)
                                            : back.family->launches;
  }
  return (int)problem->count * launches;
}

const bqr_family bqr_family_syevd_large = {
    .name = "syevd_large",
    .op = BATCHQR_SYEVD,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open,
    .close = close,
    .count_launches = count_launches,
    .prefers = prefers,
    .follows_mode = true,
    .child = child,
    .ranges = BQR_BY_INDEX,
};
