/* SPDX-License-Identifier: BSD-3-Clause */
#include "geqrf_large_work.h"
#include "batch.h"
#include "strided_member.h"

enum { WIDTH = BQR_BLOCK_WIDTH };

/* Of members under way, unless two have more: each takes workspace of its own size. */
static const int64_t most_elements = (int64_t)1 << 26;

/* How much of the workspace a launch takes. */
typedef struct economy {
  int members;  /* under way */
  int halvings; /* of products' room */
} economy;
enum { MOST_HALVINGS = 16 };
/* What a stream is for: wide blocks, what is behind them, or, where each member has one stream or all have
 * the same, both. */
typedef enum purpose { PANELS, REST, BOTH } purpose;
enum { STRIP = 512 }; /* columns: strips are no narrower */

static void largest_products(const bqr_problem *problem, int width, int cols, int many, bqr_gemm largest[2]) {
  largest[0] = bqr_product(problem, true, width, cols, problem->m);
  largest[1] = bqr_product(problem, false, problem->m, cols, width);
  largest[0].count = largest[1].count = many;
}

static bool is_double(const bqr_problem *problem) {
  return problem->type == BATCHQR_D || problem->type == BATCHQR_Z;
}

/* A limit that nothing reaches asks for what makes it fast, at any price: of a block of columns that other
 * GPUs wait for (src/ranks). In single precision its products, of few results and long sums, then go in
 * slices, and in wide strips. */
static bool is_urgent(const bqr_problem *problem, int many) {
  return problem->workspace_limit == SIZE_MAX && problem->type == BATCHQR_S && !many;
}

/* Sixteenths of a member that emulated products may take; whole columns of many members, whose products are
 * not large enough to be cut, and of an urgent one. */
static int share_of(const bqr_problem *problem, purpose purpose, int many) {
  if (is_urgent(problem, many)) return 16;
  if (purpose == PANELS) return is_double(problem) ? 4 : 2;
  return many ? 18 : 8;
}

/* Columns that go at once: V^H C and T V^H C, in strips, take a 32nd of a member at most. Emulated
 * products have their own strips. */
static int strip_of(const bqr_problem *problem, int width, int cols, bool emulated, int halvings) {
  const int64_t part = (int64_t)problem->m * problem->n / (emulated ? 4 : 32);
  while (cols > 2 * STRIP && 2 * (int64_t)width * cols > part >> halvings)
    cols = (cols / 2 + STRIP - 1) / STRIP * STRIP;
  return bqr_max(cols, width);
}

/* For blocks of `width` columns that are applied to `most` columns at most. What is behind blocks that are
 * wider than the kernels for narrow products take has few columns only at a member's end. */
static void lay_out_products(const bqr_problem *problem, const bqr_device *device, int width, int most,
                             purpose purpose, int many, int halvings, bqr_arena *own, bqr_arena *shared,
                             bqr_products *on) {
  bqr_gemm largest[2];
  largest_products(problem, width, most, many, largest);
  const bool emulated = bqr_products_may_be_emulated(device, largest);
  const int cols = purpose == PANELS ? width : strip_of(problem, width, most, emulated, halvings);
  largest_products(problem, width, cols, many, largest);
  largest[0].sliced = largest[1].sliced = is_urgent(problem, many);
  const size_t member = (size_t)problem->m * (size_t)problem->n * bqr_type_bytes(problem->type),
               room = bqr_products_room(device, largest, member, purpose == PANELS,
                                        share_of(problem, purpose, many), halvings);
  const bool narrow = width <= BQR_WY_NARROW || purpose != REST;
  bqr_products_lay_out_in(problem, device, width, cols, largest, room,
                          narrow ? bqr_wy_sums(problem->m, width, cols) : 0, own, shared, on);
  on->sliced = largest[0].sliced;
}

bqr_problem bqr_large_problem_of_c(const bqr_problem *problem) {
  return (bqr_problem){.op = BATCHQR_ORMQR,
                       .type = problem->type,
                       .side = BATCHQR_LEFT,
                       .trans = BATCHQR_CONJ_TRANS,
                       .m = problem->m,
                       .n = problem->k,
                       .k = bqr_min(problem->m, problem->n),
                       .uniform = true,
                       .count = 1};
}

static void lay_out_c(const bqr_problem *problem, bqr_arena *arena, bqr_large_task *t) {
  const bqr_problem of_c = bqr_large_problem_of_c(problem);
  if (!problem->aligned) t->copy_of_c = bqr_arena_take(arena, t->ldcopy, (size_t)problem->k * t->block.size);
  t->scales_of_c = bqr_arena_take(arena, 1, (size_t)bqr_ormqr_scales(&of_c));
}

/* Whether some pair of panels is tried at once. */
static bool takes_tall(const bqr_wide_block *b) {
  bool tall = false;
  for (int s0 = 0; s0 + 2 <= b->steps.count && !tall; s0 += 2) tall = bqr_wide_tall(b, s0);
  return tall;
}

/* `many`: members that the task is of; 0: one. */
static void lay_out_task(const bqr_problem *problem, int width, bool two_streams, int many,
                         const bqr_device *device, bqr_arena *own, bqr_arena *shared, bqr_large_task *t) {
  const int count = bqr_max(many, 1);
  *t = (bqr_large_task){
      .block = {.problem = *problem, .size = bqr_type_bytes(problem->type), .width = width, .ldt = width}};
  t->block.problem.count = count;
  t->block.many.count = many;
  t->block.r = bqr_arena_take(own, width, (size_t)bqr_min(problem->m, problem->n) * t->block.size);
  t->ts[0] = t->ts[1] = bqr_arena_take(own, width, (size_t)width * t->block.size);
  if (two_streams) t->ts[1] = bqr_arena_take(own, width, (size_t)width * t->block.size);
  t->block.counters = bqr_arena_take(own, BQR_WY_COUNTERS, sizeof(int));
  t->ldcopy = bqr_aligned_ld(problem->m);
  if (!problem->aligned)
    t->copy = bqr_arena_take(shared, count * t->ldcopy, (size_t)problem->n * t->block.size);
  if (problem->k > 0) lay_out_c(problem, shared, t);
  t->block.steps = bqr_panel_steps_of(&t->block.problem, device,
                                      many ? bqr_wide_kind_of_many(problem) : bqr_wide_kind, shared);
  if (takes_tall(&t->block)) t->block.tall = bqr_arena_take(shared, 1, bqr_wy_tall_bytes());
}

static int members_under_way(const bqr_problem *problem) {
  const int64_t elements = (int64_t)problem->m * problem->n;
  int members = 2;
  while (members < BQR_MOST_STREAMS && (members + 1) * elements <= most_elements) members++;
  return problem->count < members ? bqr_max((int)problem->count, 1) : members;
}

static int streams_of(int members) { return 2 * members <= BQR_MOST_STREAMS ? 2 * members : members; }

int bqr_large_many(const bqr_problem *problem, const bqr_variant *variant) {
  return variant->many && problem->k == 0 && !problem->switched ? bqr_max((int)problem->count, 1) : 0;
}

bool bqr_large_in_one_stream(const bqr_problem *problem, const bqr_variant *variant) {
  return variant->stream == 1 && bqr_large_many(problem, variant) > 0;
}

static void lay_out_in(bqr_arena *own, bqr_arena *shared, const economy *e, const bqr_problem *problem,
                       const bqr_variant *variant, const bqr_device *device, bqr_large_work *w) {
  const int many = bqr_large_many(problem, variant);
  const int width = bqr_min(variant->cols, (bqr_min(problem->m, problem->n) + WIDTH - 1) / WIDTH * WIDTH);
  w->members = e->members;
  w->streams = bqr_large_in_one_stream(problem, variant) ? 1 : streams_of(w->members);
  for (int i = 0; i < w->streams; i++) {
    const int most = bqr_max(bqr_max(problem->n, problem->k), width);
    const purpose purpose = w->streams == w->members ? BOTH : i < w->streams - w->members ? PANELS : REST;
    lay_out_products(problem, device, width, most, purpose, many, e->halvings, own, shared, &w->products[i]);
  }
  for (int i = 0; i < w->members; i++) {
    lay_out_task(problem, width, w->streams > w->members, many, device, own, shared, &w->tasks[i]);
    /* where there are more streams than members, the last ones are for the rest */
    w->tasks[i].block.on = &w->products[i];
    w->products[i].alone = many > 0 && w->streams == 1;
    w->products[w->streams - w->members + i].yields = !many && w->streams > w->members;
    w->tasks[i].rest = &w->products[w->streams - w->members + i];
  }
}

static void lay_out_with(const economy *e, const bqr_problem *problem, const bqr_variant *variant,
                         const bqr_device *device, void *base, bqr_large_work *w) {
  const int many = bqr_large_many(problem, variant);
  bqr_problem native = *problem;
  if (!many) {
    bqr_arena arena = {base, 0};
    lay_out_in(&arena, &arena, e, problem, variant, device, w);
    w->bytes = arena.bytes;
    return;
  }
  if (is_double(problem)) native.compute = BATCHQR_COMPUTE_NATIVE; /* batches have no other products */
  bqr_arena own = {NULL, 0}, shared = {NULL, 0};
  lay_out_in(&own, &shared, e, &native, variant, device, w);
  const size_t each = own.bytes, all = shared.bytes;
  own = (bqr_arena){base ? (char *)base + all : NULL, 0};
  shared = (bqr_arena){base, 0};
  lay_out_in(&own, &shared, e, &native, variant, device, w);
  w->tasks[0].block.many.own = (int64_t)each;
  w->bytes = all + (size_t)many * each;
}

/* The next one to try, which takes less; false: there is none. */
static bool economize(economy *e) {
  if (e->members > 1) {
    e->members = e->members > 2 ? 2 : 1;
    return true;
  }
  return ++e->halvings < MOST_HALVINGS;
}

void bqr_large_lay_out(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                       void *base, bqr_large_work *w) {
  economy e = {.members = bqr_large_many(problem, variant) ? 1 : members_under_way(problem)};
  do lay_out_with(&e, problem, variant, device, base, w);
  while (problem->workspace_limit && w->bytes > problem->workspace_limit && economize(&e));
}
