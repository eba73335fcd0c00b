/* SPDX-License-Identifier: BSD-3-Clause */
#include "sy2sb.h"
#include "batch.h"
#include "costs.h"
#include "sbr/sbr.h"
#include "strided_member.h"

enum { STEP = BQR_BLOCK_WIDTH };

/* --- the panels' QR factorization */

static bqr_problem problem_of_panels(const bqr_problem *problem, bqr_sy2sb_sizes sizes) {
  bqr_problem panels = *problem;
  panels.op = BATCHQR_GEQRF;
  panels.pointers = false;
  panels.uniform = panels.aligned = true;
  panels.workspace_limit = 0;
  panels.m = panels.n = sizes.n - sizes.width;
  panels.k = 0;
  panels.count = 1;
  if (problem->vectors && panels.num_children > 0) panels.num_children--; /* the last is another step */
  return panels;
}

/* Whether A V T is bqr_sbr_multiply()'s while the matrix is large: in single precision, where the units that
 * it needs are and the mode allows it. */
static bool splits(const bqr_problem *problem, bqr_sy2sb_sizes sizes, const bqr_device *device) {
  return problem->type == BATCHQR_S && problem->compute != BATCHQR_COMPUTE_NATIVE && device->sm == 90 &&
         sizes.n > bqr_costs_of(device)->syevd.square;
}

bool bqr_sy2sb_child(const bqr_problem *problem, bqr_sy2sb_sizes sizes, const bqr_device *device, int number,
                     bqr_problem *child) {
  const bqr_problem panels = problem_of_panels(problem, sizes);
  return bqr_panel_steps_child(&panels, device, bqr_wide_kind, number, child);
}

batchqr_status bqr_sy2sb_prepare(const bqr_problem *problem, bqr_sy2sb_sizes sizes,
                                 const bqr_device *device) {
  const bqr_problem panels = problem_of_panels(problem, sizes);
  batchqr_status status = bqr_wide_prepare(&panels, device);
  if (!status) status = bqr_sbr_prepare(problem->type);
  return status || !splits(problem, sizes, device) ? status : bqr_sbr_multiply_prepare();
}

/* --- memory */

static void lay_out_products(const bqr_sy2sb *s, const bqr_device *device, bqr_arena *arena,
                             bqr_products *on) {
  const bqr_problem *p = &s->block.problem;
  const int n = s->n, width = s->width, wide = 2 * s->outer;
  const int strip = (int)s->costs->syevd.strip;
  const bqr_gemm all[] = {
      bqr_product(p, false, n, width, n),
      bqr_product(p, false, wide, width, n),
      bqr_product(p, false, n, width, wide),
      bqr_product(p, false, n, bqr_min(n, strip), wide),
      bqr_product(p, true, width, width, n),
      bqr_product(p, false, n, width, width),
      bqr_product(p, false, bqr_min(n, (int)s->costs->syevd.square), bqr_min(n, (int)s->costs->syevd.square),
                  wide),
  };
  int largest = 0;
  size_t most = 0;
  for (int i = 0; i < (int)(sizeof all / sizeof all[0]); i++) {
    const size_t bytes = bqr_gemm_workspace(device, &all[i]);
    if (bytes > most) most = bytes, largest = i;
  }
  const bqr_gemm two[2] = {all[largest], all[largest]};
  bqr_products_lay_out(p, device, width, width, two, arena, on);
}

void bqr_sy2sb_lay_out(const bqr_problem *problem, bqr_sy2sb_sizes sizes, const bqr_device *device,
                       bqr_arena *arena, bqr_products *on, bqr_sy2sb *s) {
  const int width = sizes.width, wide = 2 * sizes.outer;
  const int64_t ld = bqr_aligned_ld(sizes.n);
  const size_t size = bqr_type_bytes(problem->type);
  *s = (bqr_sy2sb){.n = sizes.n, .width = width, .outer = sizes.outer, .costs = bqr_costs_of(device)};
  s->block = (bqr_wide_block){
      .problem = problem_of_panels(problem, sizes), .size = size, .width = width, .ldt = width, .all = true};
  s->x = bqr_arena_take(arena, ld, (size_t)wide * size);
  s->z = bqr_arena_take(arena, sizes.n, (size_t)wide * size);
  s->p = bqr_arena_take(arena, ld, (size_t)width * size);
  s->y = bqr_arena_take(arena, ld, (size_t)width * size);
  s->h = bqr_arena_take(arena, wide, (size_t)width * size);
  s->splits = splits(problem, sizes, device);
  if (s->splits) s->multiply = bqr_arena_take(arena, 1, bqr_sbr_multiply_bytes(sizes.n, width));
  s->block.r = bqr_arena_take(arena, sizes.n, (size_t)width * size);
  s->block.t = bqr_arena_take(arena, width, (size_t)width * size);
  s->block.counters = bqr_arena_take(arena, BQR_WY_COUNTERS, sizeof(int));
  s->block.tall = bqr_arena_take(arena, 1, bqr_wy_tall_bytes());
  s->block.steps = bqr_panel_steps_of(&s->block.problem, device, bqr_wide_kind, arena);
  lay_out_products(s, device, arena, on);
  s->block.on = on;
}

/* --- products */

static char *in_a(const bqr_sy2sb *s, int i, int j) {
  return s->a + (size_t)(i + j * s->lda) * s->block.size;
}
static char *in_x(const bqr_sy2sb *s, int i, int j) {
  return s->x + (size_t)(i + j * s->lda) * s->block.size;
}
static int64_t ld_of_z(const bqr_sy2sb *s) { return 2 * (int64_t)s->outer; }
static char *in_z(const bqr_sy2sb *s, int i, int j) {
  return s->z + (size_t)(i + j * ld_of_z(s)) * s->block.size;
}

/* c := c - a b; b: k x n. */
static batchqr_status subtract(const bqr_sy2sb *s, int m, int n, int k, const void *a, int64_t lda,
                               const void *b, int64_t ldb, void *c, int64_t ldc) {
  bqr_gemm product = bqr_product(&s->block.problem, false, m, n, k);
  product.alpha = -1;
  product.beta = 1;
  return bqr_products_multiply(s->block.on, product, a, lda, b, ldb, c, ldc);
}
/* c := a b */
static batchqr_status multiply(const bqr_sy2sb *s, int m, int n, int k, const void *a, int64_t lda,
                               const void *b, int64_t ldb, void *c, int64_t ldc) {
  return bqr_products_multiply(s->block.on, bqr_product(&s->block.problem, false, m, n, k), a, lda, b, ldb, c,
                               ldc);
}

/* --- panels */

/* A panel, of which `first` is the first column, and `row` the first row below the band. */
typedef struct panel {
  int first, row, rows, cols; /* cols: reflectors */
  int known;                  /* columns of X from the outer block's earlier panels */
} panel;

static panel panel_at(const bqr_sy2sb *s, int origin, int first) {
  const int row = first + s->width;
  return (panel){.first = first,
                 .row = row,
                 .rows = s->n - row,
                 .cols = bqr_min(s->width, s->n - row),
                 .known = 2 * (first - origin)};
}

/* The outer block's earlier panels change the panel's columns, from the diagonal on. */
static batchqr_status update_columns(const bqr_sy2sb *s, panel p) {
  if (p.known == 0) return BATCHQR_SUCCESS;
  return subtract(s, s->n - p.first, s->width, p.known, in_x(s, p.first, 0), s->lda, in_z(s, 0, p.first),
                  ld_of_z(s), in_a(s, p.first, p.first), s->lda);
}

static batchqr_status factor(bqr_sy2sb *s, panel p) {
  const int step = p.first / STEP, last = bqr_min(step + s->width / STEP, s->block.steps.count);
  s->block.origin = p.first;
  return bqr_wide_factor(&s->block, step, last, true);
}

static void *v_of(const bqr_sy2sb *s, panel p) { return in_a(s, p.row, p.first); }

static bool splits_at(const bqr_sy2sb *s, panel p) { return s->splits && p.rows > s->costs->syevd.square; }

/* y := A V T from the panel's row on. */
static batchqr_status multiply_by_panel(const bqr_sy2sb *s, panel p) {
  const int64_t ld = s->lda;
  batchqr_status status =
      multiply(s, p.rows, p.cols, p.cols, v_of(s, p), ld, s->block.t, s->block.ldt, s->p, ld);
  if (!status && splits_at(s, p))
    status = bqr_sbr_multiply(s->n, p.rows, p.cols, in_a(s, p.row, p.row), ld, s->p, ld, s->y, ld,
                              s->multiply, s->block.on->stream);
  else if (!status)
    status = multiply(s, p.rows, p.cols, p.rows, in_a(s, p.row, p.row), ld, s->p, ld, s->y, ld);
  if (status || p.known == 0) return status;
  status = multiply(s, p.known, p.cols, p.rows, in_z(s, 0, p.row), ld_of_z(s), s->p, ld, s->h, ld_of_z(s));
  return status ? status
                : subtract(s, p.rows, p.cols, p.known, in_x(s, p.row, 0), ld, s->h, ld_of_z(s), s->y, ld);
}

/* X and Z get the panel's columns and rows. */
static batchqr_status join(const bqr_sy2sb *s, panel p) {
  const bqr_products *on = s->block.on;
  const bqr_wy_product sum = {.rows = p.rows,
                              .k = p.cols,
                              .n = p.cols,
                              .v = v_of(s, p),
                              .c = s->y,
                              .t = s->block.t,
                              .ldv = s->lda,
                              .ldc = s->lda,
                              .ldt = s->block.ldt};
  batchqr_status status = bqr_products_project(on, &s->block.problem, true, sum);
  if (status) return status;
  const bqr_sbr_panel joined = {.rows = p.rows,
                                .width = p.cols,
                                .v = v_of(s, p),
                                .y = s->y,
                                .s = on->w2,
                                .x = in_x(s, p.row, p.known),
                                .z = in_z(s, p.known, p.row),
                                .ldv = s->lda,
                                .ldy = s->lda,
                                .lds = s->block.ldt,
                                .ldx = s->lda,
                                .ldz = ld_of_z(s)};
  return bqr_sbr_join(s->block.problem.type, &joined, on->stream);
}

/* Columns of the band right of the last panel's, where that has fewer than the band. */
static batchqr_status update_rest_of_panel(const bqr_sy2sb *s, panel p) {
  const bqr_wy_product rest = {.rows = p.rows,
                               .k = p.cols,
                               .n = s->width - p.cols,
                               .v = v_of(s, p),
                               .c = in_a(s, p.row, p.first + p.cols),
                               .t = s->block.t,
                               .ldv = s->lda,
                               .ldc = s->lda,
                               .ldt = s->block.ldt};
  return bqr_products_apply(s->block.on, &s->block.problem, true, &rest, in_a(s, p.row, p.first + p.cols));
}

static batchqr_status reduce_panel(bqr_sy2sb *s, panel p) {
  batchqr_status status = update_columns(s, p);
  if (!status) status = factor(s, p);
  if (!status) status = multiply_by_panel(s, p);
  if (!status) status = join(s, p);
  return status || p.cols == s->width ? status : update_rest_of_panel(s, p);
}

/* --- outer blocks */

/* A := A - X Z from row and column `first` on. Of a large one the lower triangle in strips, which is mirrored
 * then. */
static batchqr_status update_matrix(const bqr_sy2sb *s, int first, int known) {
  const int rows = s->n - first;
  const bool square = rows <= s->costs->syevd.square;
  const int strip = square ? rows : (int)s->costs->syevd.strip;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int at = first; at < s->n && !status; at += strip)
    status = subtract(s, s->n - at, bqr_min(strip, s->n - at), known, in_x(s, at, 0), s->lda, in_z(s, 0, at),
                      ld_of_z(s), in_a(s, at, at), s->lda);
  if (status || square) return status;
  return bqr_sbr_mirror(s->block.problem.type, rows, in_a(s, first, first), s->lda, s->block.on->stream);
}

/* Panels from column `origin` to `end`, and then the rest. */
static batchqr_status reduce_block(bqr_sy2sb *s, int origin, int end) {
  batchqr_status status = BATCHQR_SUCCESS;
  panel p = {.first = origin};
  for (int first = origin; first < end && !status; first += s->width) {
    p = panel_at(s, origin, first);
    status = reduce_panel(s, p);
  }
  return status ? status : update_matrix(s, p.row, p.known + 2 * p.cols);
}

batchqr_status bqr_sy2sb_reduce(bqr_sy2sb *s, void *a, int64_t lda, void *tau) {
  bqr_wide_block *block = &s->block;
  const bqr_problem *problem = &block->problem;
  const int order = problem->n; /* columns that are reduced */
  batchqr_stream stream = block->on->stream;
  s->a = a;
  s->lda = block->lda = lda;
  block->a = in_a(s, s->width, 0);
  block->args = (bqr_args){
      .a = {.data = block->a, .ld = (int)lda}, .tau = {.data = tau}, .m = order, .n = order, .count = 1};
  block->steps.later = true; /* all columns have been brought into range */
  batchqr_status status = bqr_wy_begin(block->counters, stream);
  if (!status) status = bqr_panel_steps_begin(&block->steps, &block->args, stream);
  block->steps.later = false;
  for (int origin = 0; origin < order && !status; origin += s->outer)
    status = reduce_block(s, origin, bqr_min(origin + s->outer, order));
  return status ? status
                : bqr_wy_restore(problem->type, s->width, order, block->r, block->ldt, block->a, lda, stream);
}

int bqr_sy2sb_launches(const bqr_sy2sb *s) {
  const int order = s->block.problem.n;
  int launches = 3;
  for (int origin = 0; origin < order; origin += s->outer) {
    panel p = {.first = origin};
    for (int first = origin; first < bqr_min(origin + s->outer, order); first += s->width) {
      p = panel_at(s, origin, first);
      const int step = first / STEP, last = bqr_min(step + s->width / STEP, s->block.steps.count);
      launches +=
          bqr_wide_launches(&s->block, step, last, true) + 5 + (p.known > 0 ? 3 : 0) + splits_at(s, p);
      launches += p.cols < s->width ? 3 : 0;
    }
    const bool square = s->n - p.row <= s->costs->syevd.square;
    launches += square ? 1 : 1 + (s->n - p.row - 1) / (int)s->costs->syevd.strip + 1;
  }
  return launches;
}
