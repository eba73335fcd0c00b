/* SPDX-License-Identifier: BSD-3-Clause */
#include "block_reflectors.h"
#include "batch.h"
#include "costs.h"
#include "strided_member.h"
#include "wy/wy_form.h"
#include <math.h>

enum { STEP = 32, MOST_MEMBERS = 1024 };

const bqr_variant bqr_reflectors_variants[BQR_REFLECTORS_VARIANTS] = {{.name = "cols256", .cols = 256},
                                                                      {.name = "cols64", .cols = 64},
                                                                      {.name = "cols128", .cols = 128},
                                                                      {.name = "cols512", .cols = 512},
                                                                      {.name = "cols1024", .cols = 1024}};

/* --- memory */

static bool is_right(const bqr_problem *problem) {
  return problem->op == BATCHQR_ORMQR && problem->side == BATCHQR_RIGHT;
}

/* Rows of Q. */
static int order_of(const bqr_problem *problem) { return is_right(problem) ? problem->n : problem->m; }

/* Sixteenths of a member that emulated products may take where blocks are formed and where they are applied.
 */
enum { FORMING_SHARE = 3, APPLYING_SHARE = 5, MOST_HALVINGS = 16 };
/* So many times as much where what may be switched off should be few launches. */
enum { SWITCHED_SHARES = 4 };

static void lay_out_some(bqr_reflectors_work *w, const bqr_device *device, int64_t cols,
                         const bqr_gemm largest[2], int share, int halvings, bqr_arena *arena,
                         bqr_products *on) {
  const bqr_problem *p = &w->problem;
  if (p->switched) share *= SWITCHED_SHARES;
  const size_t v = (size_t)w->order * (size_t)p->k, c = (size_t)p->m * (size_t)p->n,
               room =
                   bqr_products_room(device, largest, (v > c ? v : c) * w->size, cols == 0, share, halvings);
  const int width = cols > 0 ? w->width : 0, lines = is_right(p) ? p->m : p->n;
  bqr_products_lay_out_in(p, device, width, cols, largest, room, bqr_wy_sums(w->order, w->width, lines),
                          arena, arena, on);
}

/* What forms blocks needs V^H V; what applies them, V^H C and V W, or C V and W V^H. */
static void lay_out_products(bqr_reflectors_work *w, const bqr_device *device, int halvings,
                             bqr_arena *arena) {
  const bqr_problem *p = &w->problem;
  const int width = w->width, order = bqr_max(w->order, width);
  const bqr_gemm gram[2] = {bqr_product(p, true, width, width, order)};
  const bqr_gemm left[2] = {bqr_product(p, true, width, p->n, order),
                            bqr_product(p, false, order, p->n, width)};
  const bqr_gemm right[2] = {bqr_product(p, false, p->m, width, order),
                             bqr_product(p, false, p->m, order, width)};
  lay_out_some(w, device, 0, gram, FORMING_SHARE, halvings, arena, &w->products[0]);
  if (is_right(p))
    lay_out_some(w, device, bqr_aligned_ld(p->m), right, APPLYING_SHARE, halvings, arena, &w->products[1]);
  else
    lay_out_some(w, device, p->n, left, APPLYING_SHARE, halvings, arena, &w->products[1]);
}

static void lay_out_block(const bqr_reflectors_work *w, bqr_arena *arena, bqr_block_reflector *block) {
  const size_t column = (size_t)w->width * w->size;
  *block = (bqr_block_reflector){.ldv = bqr_aligned_ld(w->order), .ldt = w->width};
  block->v = bqr_arena_take(arena, block->ldv, column);
  block->t = bqr_arena_take(arena, w->width, column);
  block->gram = bqr_arena_take(arena, w->width, column);
  if (is_right(&w->problem)) block->adjoint_v = bqr_arena_take(arena, w->order, column);
}

static void lay_out_with(int halvings, const bqr_problem *problem, const bqr_variant *variant,
                         const bqr_device *device, void *base, bqr_reflectors_work *w) {
  bqr_arena arena = {base, 0};
  *w = (bqr_reflectors_work){.problem = *problem, .size = bqr_type_bytes(problem->type)};
  w->problem.count = 1;
  w->order = order_of(problem);
  w->width = bqr_min(variant->cols, (bqr_max(problem->k, 1) + STEP - 1) / STEP * STEP);
  lay_out_products(w, device, halvings, &arena);
  const int blocks = problem->k > w->width ? BQR_PRODUCT_STREAMS : 1;
  for (int i = 0; i < blocks; i++) lay_out_block(w, &arena, &w->blocks[i]);
  w->ldcopy = bqr_aligned_ld(problem->m);
  if (!problem->aligned) w->copy = bqr_arena_take(&arena, w->ldcopy, (size_t)problem->n * w->size);
  if (problem->op == BATCHQR_ORMQR)
    w->scales = bqr_arena_take(&arena, 1, (size_t)bqr_ormqr_scales(&w->problem));
  w->bytes = arena.bytes;
}

/* As much as the problem's limit permits. */
static void lay_out(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                    void *base, bqr_reflectors_work *w) {
  int halvings = 0;
  do lay_out_with(halvings, problem, variant, device, base, w);
  while (problem->workspace_limit && w->bytes > problem->workspace_limit && ++halvings < MOST_HALVINGS);
}

size_t bqr_reflectors_workspace(const bqr_problem *problem, const bqr_variant *variant,
                                const bqr_device *device) {
  bqr_reflectors_work w;
  lay_out(problem, variant, device, NULL, &w);
  return w.bytes;
}

/* --- blocks */

static int blocks_of(const bqr_reflectors_work *w) { return (w->problem.k + w->width - 1) / w->width; }

/* V and T of a block. ORGQR: its columns of A become those of the unit matrix. */
static batchqr_status form(const bqr_reflectors_work *w, int number, bqr_block_reflector *block,
                           const bqr_products *on) {
  const bqr_problem *p = &w->problem;
  const int first = number * w->width;
  block->first = first;
  block->rows = w->order - first;
  block->k = bqr_min(w->width, p->k - first);
  const bqr_wy_block from = {.rows = block->rows,
                             .cols = block->k,
                             .above = first,
                             .a = (char *)w->args.a.data + (size_t)(first * (int64_t)w->args.a.ld) * w->size,
                             .lda = w->args.a.ld,
                             .tau = (char *)w->args.tau.data + (size_t)first * w->size,
                             .v = block->v,
                             .t = block->t,
                             .ldv = block->ldv,
                             .ldt = block->ldt,
                             .gram = block->gram,
                             .info = w->args.info,
                             .unit = p->op == BATCHQR_ORGQR};
  batchqr_status status = bqr_products_enter(on);
  if (!status) status = bqr_wy_take_unless(p->type, &from, on->done, on->stream);
  if (!status)
    status = bqr_products_multiply(on, bqr_product(p, true, block->k, block->k, block->rows), block->v,
                                   block->ldv, block->v, block->ldv, block->gram, block->ldt);
  if (!status) status = bqr_wy_form(p->type, &from, on->stream);
  if (status || !is_right(p)) return status;
  status = bqr_wy_adjoint(p->type, block->rows, block->k, block->v, block->ldv, block->adjoint_v, block->ldt,
                          on->stream);
  if (status || p->trans == BATCHQR_NO_TRANS) return status;
  return bqr_wy_adjoint(p->type, block->k, block->k, block->t, block->ldt, block->gram, block->ldt,
                        on->stream);
}

static batchqr_status apply_blocks(bqr_reflectors_work *w, const bqr_reflectors_routine *routine) {
  const int count = blocks_of(w), start = routine->forward ? 0 : count - 1, step = routine->forward ? 1 : -1;
  const bqr_products *forming = &w->products[0], *applying = &w->products[1];
  batchqr_status status = bqr_products_meet(forming, applying);
  if (!status) status = form(w, start, &w->blocks[0], forming);
  for (int i = 0; i < count && !status; i++) {
    status = bqr_products_meet(forming, applying);
    if (!status) status = bqr_products_enter(applying);
    if (!status) status = routine->apply(w, &w->blocks[i % 2], applying);
    if (!status && i + 1 < count) status = form(w, start + (i + 1) * step, &w->blocks[(i + 1) % 2], forming);
  }
  return status;
}

/* --- members */

static batchqr_status work_on_member(bqr_reflectors_work *w, const bqr_args *all,
                                     const bqr_reflectors_routine *routine, int64_t number) {
  const bqr_problem *p = &w->problem;
  const bqr_strided_member e = bqr_strided_member_at(all, w->size, number);
  const bool orgqr = p->op == BATCHQR_ORGQR, empty = p->m == 0 || p->n == 0;
  char *x = orgqr ? e.a : e.c;
  const int64_t ldx = orgqr ? e.lda : e.ldc;
  const bool in_place = empty || p->aligned || bqr_columns_aligned(x, ldx, w->size);
  batchqr_stream stream = w->products[1].stream;
  const bqr_matrix own = {.data = in_place ? x : w->copy, .ld = (int)(in_place ? ldx : w->ldcopy)};
  w->args = (bqr_args){.a = orgqr ? own : (bqr_matrix){.data = e.a, .ld = (int)e.lda},
                       .c = orgqr ? (bqr_matrix){.data = NULL} : own,
                       .tau = {.data = e.tau},
                       .info = e.info,
                       .m = p->m,
                       .n = p->n,
                       .k = p->k,
                       .off = all->off,
                       .count = 1};
  batchqr_status status = bqr_products_enter(&w->products[1]);
  if (!status && !in_place) status = bqr_wy_copy(p->type, p->m, p->n, x, ldx, own.data, own.ld, stream);
  if (!status) status = routine->begin(w, stream);
  if (!status && p->k > 0) status = apply_blocks(w, routine);
  if (!status) status = bqr_products_enter(&w->products[1]);
  if (!status && routine->end) status = routine->end(w, stream);
  if (status || in_place) return status;
  return bqr_wy_copy(p->type, p->m, p->n, own.data, own.ld, x, ldx, stream);
}

batchqr_status bqr_reflectors_launch(const bqr_problem *problem, const bqr_variant *variant,
                                     const bqr_device *device, const bqr_args *args,
                                     const bqr_reflectors_routine *routine, batchqr_stream stream) {
  bqr_reflectors_work w;
  lay_out(problem, variant, device, args->workspace, &w);
  for (int i = 0; i < BQR_PRODUCT_STREAMS; i++) w.products[i].done = args->off ? &args->off->off : NULL;
  batchqr_status status = bqr_products_begin(args->state, stream, w.products);
  for (int64_t entry = 0; entry < args->count && !status; entry++)
    status = work_on_member(&w, args, routine, entry);
  const batchqr_status last = bqr_products_end(args->state);
  return status ? status : last;
}

/* --- the families */

/* Members must be alike, their addresses the host's, and few enough to be enqueued one by one. */
bool bqr_reflectors_supports(const bqr_problem *problem, const bqr_variant *variant,
                             const bqr_device *device) {
  (void)variant, (void)device;
  return problem->uniform && !problem->pointers && problem->count <= MOST_MEMBERS;
}

/* Wide blocks make products fast, those in less than the working precision above all; but V^H V takes time,
 * most of it where there is little else to do: next to many lines it is nothing. */
static int preferred_width(const bqr_problem *problem, const bqr_costs *costs) {
  const int order = order_of(problem), k = problem->k, lines = is_right(problem) ? problem->m : problem->n;
  const bool native = problem->compute == BATCHQR_COMPUTE_NATIVE || problem->compute == BATCHQR_COMPUTE_AUTO;
  if (!native && lines / 4 >= k) return k <= 256 ? 256 : k <= 512 ? 512 : 1024;
  if (order / 4 > k || lines < k / 4) return 256;
  if (problem->op == BATCHQR_ORMQR && k <= costs->reflectors.applied_cols256) return 256;
  return k <= costs->reflectors.cols512 || problem->compute == BATCHQR_COMPUTE_NATIVE ? 512 : 1024;
}

/* What ormqr_block takes for so many reflectors, and ormqr_blocked for more, as multiples of panel.row_ns for
 * each row: it does not fall to nothing with their number. */
static double panels_of(int k) { return k <= STEP / 2 ? (k + 4) / 16.0 : (k - 1) / STEP + 1; }

/* Whether members one after another, by products, take less than all side by side by those families. */
static bool takes_less(const bqr_problem *problem, const bqr_costs *costs) {
  const double member_us = costs->panel.member_us + (problem->k > STEP ? problem->k : 0);
  return 1e3 * member_us * (double)problem->count <=
         costs->panel.row_ns * panels_of(problem->k) * order_of(problem);
}

/* Of many small members side by side blocks of 32 columns take less. One that is alone takes longer that way,
 * if it is not very small, and far longer if it is tall: a single panel by its rows, however few its columns
 * are. */
bool bqr_reflectors_prefers(const bqr_problem *problem, const bqr_variant *variant,
                            const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const bool applied = problem->op == BATCHQR_ORMQR, one_panel = problem->k <= STEP;
  const double elements = (double)order_of(problem) * problem->k,
               bytes = elements * (double)bqr_type_bytes(problem->type);
  if (variant->cols != preferred_width(problem, costs)) return false;
  if (applied && takes_less(problem, costs)) return true;
  if (one_panel)
    return !applied && (double)order_of(problem) * STEP >=
                           costs->reflectors.panel_elements * (double)bqr_max(problem->count, 1);
  return elements >= costs->reflectors.elements &&
         (double)problem->count <= 1 + floor(bytes / costs->reflectors.member_bytes);
}

batchqr_status bqr_reflectors_prepare(batchqr_type type) {
  batchqr_status status = bqr_wy_prepare(type);
  if (!status) status = bqr_wy_form_prepare(type);
  return status ? status : bqr_wy_narrow_prepare(type);
}

batchqr_status bqr_reflectors_open(const bqr_problem *problem, const bqr_variant *variant,
                                   const bqr_device *device, void **state) {
  (void)problem, (void)variant;
  bqr_product_streams *streams;
  batchqr_status status = bqr_product_streams_new(device, BQR_PRODUCT_STREAMS, &streams);
  *state = streams;
  return status;
}

void bqr_reflectors_close(void *state) { bqr_product_streams_free(state); }

/* Products count as one. */
int bqr_reflectors_count_launches(const bqr_problem *problem, const bqr_variant *variant,
                                  const bqr_device *device, const bqr_reflectors_routine *routine) {
  bqr_reflectors_work w;
  lay_out(problem, variant, device, NULL, &w);
  const bool right = is_right(problem), adjoint = problem->trans != BATCHQR_NO_TRANS;
  int launches = routine->launches;
  for (int first = 0; first < problem->k; first += w.width) {
    const int k = bqr_min(w.width, problem->k - first);
    launches += 2 + bqr_wy_form_launches(k) + (right ? 1 + adjoint : 0) + 3;
  }
  return (int)problem->count * launches;
}
