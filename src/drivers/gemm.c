/* SPDX-License-Identifier: BSD-3-Clause */
#include "gemm.h"
#include "arena.h"
#include "batch.h"
#include "costs.h"
#include <cublas_v2.h>
#include <cuComplex.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

struct bqr_gemm_engine {
  bqr_device device;
  cublasHandle_t cublas;
  pthread_mutex_t lock; /* stream and workspace are the handle's, not a call's: */
  batchqr_stream stream;
  void *workspace;
  size_t bytes;
};

static batchqr_status status_of(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return BATCHQR_SUCCESS;
  case CUBLAS_STATUS_ALLOC_FAILED:
    return BATCHQR_OUT_OF_MEMORY;
  default:
    return BATCHQR_CUDA_ERROR;
  }
}

/* --- native */

static cublasStatus_t call_cublas(cublasHandle_t cublas, const bqr_gemm *g) {
  const cublasOperation_t op = g->adjoint_a ? CUBLAS_OP_C : CUBLAS_OP_N;
  const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
  const int lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
  const float sa = (float)g->alpha, sb = (float)g->beta;
  const double da = g->alpha, db = g->beta;
  const cuComplex ca = {sa, 0}, cb = {sb, 0};
  const cuDoubleComplex za = {da, 0}, zb = {db, 0};
  switch (g->type) {
  case BATCHQR_S:
    return cublasSgemm(cublas, op, CUBLAS_OP_N, m, n, k, &sa, g->a, lda, g->b, ldb, &sb, g->c, ldc);
  case BATCHQR_D:
    return cublasDgemm(cublas, op, CUBLAS_OP_N, m, n, k, &da, g->a, lda, g->b, ldb, &db, g->c, ldc);
  case BATCHQR_C:
    return cublasCgemm(cublas, op, CUBLAS_OP_N, m, n, k, &ca, g->a, lda, g->b, ldb, &cb, g->c, ldc);
  default:
    return cublasZgemm(cublas, op, CUBLAS_OP_N, m, n, k, &za, g->a, lda, g->b, ldb, &zb, g->c, ldc);
  }
}

static cublasStatus_t call_batched(cublasHandle_t cublas, const bqr_gemm *g) {
  const cublasOperation_t op = g->adjoint_a ? CUBLAS_OP_C : CUBLAS_OP_N, no = CUBLAS_OP_N;
  const int m = (int)g->m, n = (int)g->n, k = (int)g->k, count = g->count;
  const int lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
  const int64_t sa = g->stride_a, sb = g->stride_b, sc = g->stride_c;
  const float sx = (float)g->alpha, sy = (float)g->beta;
  const double dx = g->alpha, dy = g->beta;
  const cuComplex cx = {sx, 0}, cy = {sy, 0};
  const cuDoubleComplex zx = {dx, 0}, zy = {dy, 0};
  switch (g->type) {
  case BATCHQR_S:
    return cublasSgemmStridedBatched(cublas, op, no, m, n, k, &sx, g->a, lda, sa, g->b, ldb, sb, &sy, g->c,
                                     ldc, sc, count);
  case BATCHQR_D:
    return cublasDgemmStridedBatched(cublas, op, no, m, n, k, &dx, g->a, lda, sa, g->b, ldb, sb, &dy, g->c,
                                     ldc, sc, count);
  case BATCHQR_C:
    return cublasCgemmStridedBatched(cublas, op, no, m, n, k, &cx, g->a, lda, sa, g->b, ldb, sb, &cy, g->c,
                                     ldc, sc, count);
  default:
    return cublasZgemmStridedBatched(cublas, op, no, m, n, k, &zx, g->a, lda, sa, g->b, ldb, sb, &zy, g->c,
                                     ldc, sc, count);
  }
}

/* Of its workspace; without it, it would allocate its own. */
static size_t bytes_for_cublas(const bqr_device *device, const bqr_gemm *g) {
  const size_t wanted = (size_t)bqr_costs_of(device)->gemm.library_bytes;
  return g->room && g->room < wanted ? g->room : wanted;
}

/* Calls take no time for what the last one has set. */
static cublasStatus_t use(bqr_gemm_engine *engine, void *workspace, size_t bytes, batchqr_stream stream) {
  if (engine->workspace == workspace && engine->bytes == bytes && engine->stream == stream)
    return CUBLAS_STATUS_SUCCESS;
  engine->workspace = NULL;
  cublasStatus_t status = cublasSetStream(engine->cublas, stream); /* takes the workspace away */
  if (!status) status = cublasSetWorkspace(engine->cublas, workspace, bytes);
  if (status) return status;
  engine->workspace = workspace;
  engine->bytes = bytes;
  engine->stream = stream;
  return status;
}

static batchqr_status native(bqr_gemm_engine *engine, const bqr_gemm *gemm, void *workspace,
                             batchqr_stream stream) {
  pthread_mutex_lock(&engine->lock);
  cublasStatus_t status = use(engine, workspace, bytes_for_cublas(&engine->device, gemm), stream);
  if (!status)
    status = gemm->count > 0 ? call_batched(engine->cublas, gemm) : call_cublas(engine->cublas, gemm);
  pthread_mutex_unlock(&engine->lock);
  return status_of(status);
}

/* --- converted operands */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static bool is_double(const bqr_gemm *g) { return g->type == BATCHQR_D || g->type == BATCHQR_Z; }

/* An arithmetic, with the integer or FP16 products that one of its products is made of. */
typedef struct arithmetic {
  const bqr_tiling *tiling; /* NULL: there is none */
  bqr_product_cost cost;
  int products;
} arithmetic;

static const double tile_rows = 128, tile_cols = 256;
enum { TILE_ROWS = 256, TILE_COLS = 256 }; /* whole numbers of which operands have: a cluster's */

/* A product of few tiles of c, and long sums, may be several of equal parts of k side by side, whose results
 * are then added up. Parts are that long at least, and a multiple of whole tiles along k; all of their
 * results are so many times as many as the multiprocessors have at once, at most. */
enum { MOST_SLICES = 8, SLICE_TERMS = 1024, SLICE_UNIT = 64, SLICED_WAVES = 2, SUM_NS = 4000 };

static bool may_be_sliced(const bqr_tiling *tiling, const bqr_gemm *g) {
  return g->sliced && g->type == BATCHQR_S && tiling->batches && g->count == 0 && g->k >= 2 * SLICE_TERMS;
}

/* Tiles of c: of a multiprocessor each, two of which share what they read. */
static double tiles_of(double m, double n) { return 2 * ceil(m / TILE_ROWS) * ceil(n / TILE_COLS); }

static double ns_of_slices(const bqr_product_cost *cost, int multiprocessors, double m, double n, double k,
                           int slices) {
  const double waves = ceil(tiles_of(m, n) * slices / multiprocessors);
  return waves * k / slices * cost->step_ns +
         (slices > 1 ? (slices + 0.5) * m * n * cost->result_ps * 1e-3 + SUM_NS : 0);
}

/* How many are fastest: of m x n numbers, of which there is room for so many. */
static int best_slices(const bqr_product_cost *cost, int multiprocessors, double m, double n, double k,
                       double most) {
  int best = 1;
  for (int i = 2; i <= MOST_SLICES; i++)
    if (k / i >= SLICE_TERMS && tiles_of(m, n) * i <= SLICED_WAVES * multiprocessors && m * n * i <= most &&
        ns_of_slices(cost, multiprocessors, m, n, k, i) < ns_of_slices(cost, multiprocessors, m, n, k, best))
      best = i;
  return best;
}

/* What the mode permits beside native. */
static arithmetic permitted(const bqr_device *device, const bqr_gemm *g) {
  const bqr_costs *costs = bqr_costs_of(device);
  if (g->mode == BATCHQR_COMPUTE_NATIVE) return (arithmetic){.tiling = NULL};
  if (is_double(g)) return (arithmetic){g->count > 0 ? NULL : &bqr_tiling_modular, costs->modular, 14};
  return g->mode == BATCHQR_COMPUTE_HALF ? (arithmetic){&bqr_tiling_half, costs->half, 1}
                                         : (arithmetic){&bqr_tiling_split, costs->split, 1};
}

/* The sizes in real numbers, and what the native product takes. */
typedef struct reals {
  double m, n, k, members, native_us, native_ps;
} reals;
static reals reals_of(const bqr_device *device, const bqr_gemm *g) {
  const bqr_costs *costs = bqr_costs_of(device);
  const int parts = g->type == BATCHQR_C || g->type == BATCHQR_Z ? 2 : 1;
  return (reals){(double)g->m * parts,    (double)g->n,
                 (double)g->k * parts,    g->count > 0 ? costs->gemm.members : 1,
                 costs->native.launch_us, is_double(g) ? costs->native.double_ps : costs->native.single_ps};
}

/* Whether it may be faster for these sizes or smaller ones: each size must outweigh what does not grow with
 * it. */
static bool promising(const bqr_device *device, const arithmetic *x, reals r) {
  const bqr_product_cost *t = &x->cost;
  const double gain_ps =
      r.native_ps - x->products * t->step_ns * 1e3 / (tile_rows * tile_cols * device->multiprocessors);
  return r.k * gain_ps > t->result_ps && fmin(r.m, r.n) * gain_ps > t->element_ps;
}

/* The products' own time. Whatever the number of products in a batch, on which a member's result must not
 * depend, some number of them is assumed. `most`: results of slices that there is room for. */
static double multiplying_ns(const bqr_device *device, const arithmetic *x, reals r, double most) {
  const double tiles = ceil(r.m / tile_rows) * ceil(r.n / tile_cols) * x->products * r.members;
  if (most == 0) return ceil(tiles / device->multiprocessors) * r.k * x->cost.step_ns;
  const int slices = best_slices(&x->cost, device->multiprocessors, r.m, r.n, r.k, most);
  return ns_of_slices(&x->cost, device->multiprocessors, r.m, r.n, r.k, slices);
}

static bool faster(const bqr_device *device, const arithmetic *x, reals r, double most) {
  const bqr_product_cost *t = &x->cost;
  const double each_ps = (r.m + r.n) * r.k * t->element_ps + r.m * r.n * t->result_ps;
  const double us = t->launches_us + r.members * each_ps * 1e-6 + multiplying_ns(device, x, r, most) * 1e-3;
  return us < r.native_us + r.members * r.m * r.n * r.k * r.native_ps * 1e-6;
}

static bqr_gemm_operand operand_a(const bqr_gemm *g) {
  return g->adjoint_a ? BQR_GEMM_A_ADJOINT : BQR_GEMM_A;
}

/* b and c go in strips of whole tiles' columns. */
enum { ARENA_UNITS = 4 * 256 };
enum { SHARED_TERMS = 8192 }; /* of k at once, where others' kernels have multiprocessors, too */

static int64_t most_of_k(const bqr_tiling *tiling, const bqr_gemm *g) {
  const bool complex = g->type == BATCHQR_C || g->type == BATCHQR_Z;
  const int64_t most = g->shares && g->k > SHARED_TERMS ? SHARED_TERMS : g->k;
  return least(most, complex ? tiling->most_k / 2 : tiling->most_k);
}

/* Each slice has scales of its own. */
static size_t bytes_of_operand(const bqr_tiling *tiling, const bqr_gemm *g, bqr_gemm_operand operand,
                               int64_t rows, int64_t k) {
  const size_t bytes = tiling->operand_bytes(g->type, operand, rows, k);
  if (!may_be_sliced(tiling, g)) return bytes;
  return bytes + (MOST_SLICES - 1) * tiling->operand_bytes(g->type, operand, rows, 0);
}

static size_t bytes_of_columns(const bqr_tiling *tiling, const bqr_gemm *g, int64_t n, int64_t k) {
  return bytes_of_operand(tiling, g, BQR_GEMM_B, n, k) + tiling->product_bytes(g->type, g->m, n);
}

/* What slices' results may take. */
static size_t bytes_of_slices(const bqr_tiling *tiling, const bqr_device *device, const bqr_gemm *g) {
  if (!may_be_sliced(tiling, g)) return 0;
  const double all = MOST_SLICES * (double)g->m * (double)g->n,
               most = SLICED_WAVES * device->multiprocessors * tile_rows * tile_cols;
  return (size_t)(all < most ? all : most) * sizeof(float);
}

/* About half of it, in whole parts of what is added up outside the matrix units. */
static int64_t half_of_k(int64_t k) { return k > 1024 ? (k / 2 + 1023) / 1024 * 1024 : k / 2; }

typedef struct strips {
  int64_t columns, k; /* of each but the last, and of op(a); no columns: there is no room */
  void *a, *b, *product, *slices;
  size_t bytes, slices_bytes; /* as much as any product of up to these sizes takes */
} strips;

static int64_t members_of(const bqr_gemm *g) { return g->count > 1 ? g->count : 1; }

/* The strips and k of a product that has room for all it wants; here and below, of one of a batch. */
static strips roomy(const bqr_tiling *tiling, const bqr_device *device, const bqr_gemm *g) {
  const size_t strip_bytes = (size_t)bqr_costs_of(device)->gemm.strip_bytes;
  const int64_t k = most_of_k(tiling, g);
  const size_t unit = bytes_of_columns(tiling, g, TILE_COLS, k);
  const int64_t most = unit < strip_bytes ? (int64_t)(strip_bytes / unit) : 1;
  const size_t whole = bytes_of_columns(tiling, g, g->n, k), strip = unit > strip_bytes ? unit : strip_bytes;
  const size_t slices = bytes_of_slices(tiling, device, g);
  return (strips){.columns = least(g->n, most * TILE_COLS),
                  .k = k,
                  .bytes = bytes_of_operand(tiling, g, operand_a(g), g->m, k) +
                           (whole < strip ? whole : strip) + slices,
                  .slices_bytes = slices};
}

/* Of the room, slices' results may take so much of it. */
enum { SLICES_SHARE = 8 };

/* Strips are as wide as the room permits, and k is cut where they would be narrow otherwise. */
static strips in_room(const bqr_tiling *tiling, const bqr_device *device, const bqr_gemm *g) {
  const bqr_costs *costs = bqr_costs_of(device);
  const int64_t least_k = (int64_t)costs->gemm.least_terms,
                enough = g->shares ? g->n : (int64_t)costs->gemm.enough_cols;
  const strips all = roomy(tiling, device, g);
  if (!g->room || all.bytes <= g->room) return all;
  const size_t part = g->room / SLICES_SHARE, slices = all.slices_bytes < part ? all.slices_bytes : part;
  strips best = {.bytes = g->room, .slices_bytes = slices};
  for (int64_t k = all.k; k >= least(all.k, least_k); k = half_of_k(k)) {
    const size_t a = bytes_of_operand(tiling, g, operand_a(g), g->m, k) + slices + ARENA_UNITS,
                 unit = bytes_of_columns(tiling, g, TILE_COLS, k);
    const int64_t columns = a + unit > g->room ? 0 : (int64_t)((g->room - a) / unit) * TILE_COLS;
    if (columns > 0 && best.columns < least(g->n, enough)) best.columns = columns, best.k = k;
    if (k == 1) break;
  }
  best.columns = least(best.columns, g->n);
  return best;
}

static strips lay_out(const bqr_tiling *tiling, const bqr_device *device, const bqr_gemm *g,
                      void *workspace) {
  strips s = in_room(tiling, device, g);
  bqr_arena arena = {workspace, 0};
  s.a = bqr_arena_take(&arena, members_of(g), bytes_of_operand(tiling, g, operand_a(g), g->m, s.k));
  s.b = bqr_arena_take(&arena, members_of(g), bytes_of_operand(tiling, g, BQR_GEMM_B, s.columns, s.k));
  s.bytes *= (size_t)members_of(g);
  s.product = bqr_arena_take(&arena, 1, tiling->product_bytes(g->type, g->m, s.columns));
  s.slices = bqr_arena_take(&arena, 1, s.slices_bytes);
  return s;
}

/* Terms k .. k+depth-1 of the sums, in so many equal slices. */
typedef struct terms {
  int64_t k, depth;
  int slices;
} terms;

/* A product under way. */
typedef struct multiplication {
  const bqr_tiling *tiling;
  const bqr_device *device;
  const bqr_gemm *g;
  strips s;
  terms in_a; /* what op(a) is converted of */
  batchqr_stream stream;
} multiplication;

static batchqr_status convert_a(multiplication *x, terms t) {
  const bqr_gemm *g = x->g;
  const terms old = x->in_a;
  if (old.k == t.k && old.depth == t.depth && old.slices == t.slices) return BATCHQR_SUCCESS;
  x->in_a = t;
  const int64_t each = t.depth / t.slices, along = g->adjoint_a ? 1 : g->lda;
  const char *a = (const char *)g->a + (size_t)(t.k * along) * bqr_type_bytes(g->type);
  const bqr_tiled_source from = {.x = a,
                                 .ld = g->lda,
                                 .stride = t.slices > 1 ? each * along : g->stride_a,
                                 .count = t.slices > 1 ? t.slices : (int)members_of(g),
                                 .done = g->done};
  return x->tiling->convert(g->type, operand_a(g), g->m, each, &from, x->s.a, x->stream);
}

/* Of columns j .. j+n-1 of c. */
static batchqr_status multiply_terms(multiplication *x, terms t, int64_t j, int64_t n) {
  const bqr_gemm *g = x->g;
  const size_t size = bqr_type_bytes(g->type);
  const bool sliced = t.slices > 1;
  const int count = sliced ? t.slices : (int)members_of(g), beta = t.k > 0 ? 1 : g->beta;
  const int64_t each = t.depth / t.slices;
  char *c = (char *)g->c + (size_t)(j * g->ldc) * size;
  const bqr_tiled_source from = {.x = (const char *)g->b + (size_t)(t.k + j * g->ldb) * size,
                                 .ld = g->ldb,
                                 .stride = sliced ? each : g->stride_b,
                                 .count = count,
                                 .done = g->done};
  const bqr_tiled_product product = {.type = g->type,
                                     .m = g->m,
                                     .n = n,
                                     .k = each,
                                     .alpha = g->alpha,
                                     .beta = sliced ? 0 : beta,
                                     .a = x->s.a,
                                     .b = x->s.b,
                                     .c = sliced ? x->s.slices : c,
                                     .ldc = sliced ? g->m : g->ldc,
                                     .stride_c = sliced ? g->m * n : g->stride_c,
                                     .count = count,
                                     .workspace = x->s.product,
                                     .done = g->done,
                                     .many_blocks = g->shares};
  batchqr_status status = convert_a(x, t);
  if (!status) status = x->tiling->convert(g->type, BQR_GEMM_B, n, each, &from, x->s.b, x->stream);
  if (!status) status = x->tiling->multiply(&product, x->device, x->stream);
  return status || !sliced ? status : x->tiling->add(&product, beta, c, g->ldc, x->stream);
}

/* In slices, and what is left then of k. */
static batchqr_status multiply_columns(multiplication *x, int64_t k, int64_t depth, int64_t j, int64_t n) {
  const bqr_gemm *g = x->g;
  const bqr_costs *costs = bqr_costs_of(x->device);
  const bqr_product_cost *cost = x->tiling == &bqr_tiling_half ? &costs->half : &costs->split;
  terms t = {k, depth, 1};
  if (may_be_sliced(x->tiling, g))
    t.slices = best_slices(cost, x->device->multiprocessors, (double)g->m, (double)n, (double)depth,
                           (double)(x->s.slices_bytes / sizeof(float)));
  if (t.slices > 1) t.depth = depth / (t.slices * SLICE_UNIT) * (t.slices * SLICE_UNIT);
  batchqr_status status = multiply_terms(x, t, j, n);
  if (status || t.depth == depth) return status;
  return multiply_terms(x, (terms){k + t.depth, depth - t.depth, 1}, j, n);
}

batchqr_status bqr_gemm_tiled(const bqr_tiling *tiling, const bqr_device *device, const bqr_gemm *g,
                              void *workspace, batchqr_stream stream) {
  multiplication x = {tiling, device, g, lay_out(tiling, device, g, workspace), {0}, stream};
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t k = 0; k < g->k && !status; k += x.s.k)
    for (int64_t j = 0; j < g->n && !status; j += x.s.columns)
      status = multiply_columns(&x, k, least(x.s.k, g->k - k), j, least(x.s.columns, g->n - j));
  return status;
}

size_t bqr_gemm_tiled_workspace(const bqr_tiling *tiling, const bqr_device *device, const bqr_gemm *g) {
  return lay_out(tiling, device, g, NULL).bytes;
}

bool bqr_gemm_may_be_tiled(const bqr_device *device, const bqr_gemm *sizes) {
  const arithmetic x = permitted(device, sizes);
  return x.tiling && (sizes->switched || promising(device, &x, reals_of(device, sizes)));
}

const bqr_tiling *bqr_gemm_tiling(const bqr_device *device, const bqr_gemm *g) {
  const arithmetic x = permitted(device, g);
  const reals r = reals_of(device, g);
  if (!x.tiling || g->k == 0 || (!g->switched && !promising(device, &x, r))) return NULL;
  const strips s = in_room(x.tiling, device, g);
  if (s.columns == 0) return NULL;
  return g->switched || faster(device, &x, r, (double)(s.slices_bytes / sizeof(float))) ? x.tiling : NULL;
}

/* --- the engine */

batchqr_status bqr_gemm_engine_new(const bqr_device *device, bqr_gemm_engine **engine) {
  const bqr_tiling *tilings[] = {&bqr_tiling_half, &bqr_tiling_split, &bqr_tiling_modular};
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < 3 && device->sm == 90 && !status; i++) status = tilings[i]->prepare();
  if (status) return status;
  *engine = calloc(1, sizeof **engine);
  if (!*engine) return BATCHQR_OUT_OF_MEMORY;
  (*engine)->device = *device;
  status = status_of(cublasCreate(&(*engine)->cublas));
  if (!status && pthread_mutex_init(&(*engine)->lock, NULL) == 0) return BATCHQR_SUCCESS;
  if (!status) cublasDestroy((*engine)->cublas);
  free(*engine);
  *engine = NULL;
  return status ? status : BATCHQR_OUT_OF_MEMORY;
}

void bqr_gemm_engine_free(bqr_gemm_engine *engine) {
  if (!engine) return;
  cublasDestroy(engine->cublas);
  pthread_mutex_destroy(&engine->lock);
  free(engine);
}

/* Not only where it is faster: of two products the smaller one may be the one that is. */
size_t bqr_gemm_workspace(const bqr_device *device, const bqr_gemm *sizes) {
  const bool tiled = bqr_gemm_may_be_tiled(device, sizes);
  const size_t bytes = tiled ? bqr_gemm_tiled_workspace(permitted(device, sizes).tiling, device, sizes) : 0,
               native = bytes_for_cublas(device, sizes);
  return bytes > native ? bytes : native;
}

batchqr_status bqr_gemm_enqueue(bqr_gemm_engine *engine, const bqr_gemm *gemm, void *workspace, size_t bytes,
                                batchqr_stream stream) {
  if (gemm->m == 0 || gemm->n == 0) return BATCHQR_SUCCESS;
  if (bytes < bqr_gemm_workspace(&engine->device, gemm)) return BATCHQR_WORKSPACE_TOO_SMALL;
  const bqr_tiling *tiling = engine->device.sm == 90 ? bqr_gemm_tiling(&engine->device, gemm) : NULL;
  if (!tiling) return native(engine, gemm, workspace, stream);
  const bqr_costs *costs = bqr_costs_of(&engine->device);
  bqr_device device = engine->device;
  if (gemm->yields && (double)gemm->n >= costs->gemm.spare_cols && device.multiprocessors > costs->gemm.spare)
    device.multiprocessors -= (int)costs->gemm.spare;
  return bqr_gemm_tiled(tiling, &device, gemm, workspace, stream);
}
