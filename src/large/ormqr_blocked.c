/* SPDX-License-Identifier: BSD-3-Clause */
/* op(Q) C and C op(Q) of all members side by side: T of all blocks of 32 reflectors in one launch; in
 * another, strips of C are taken through all of them on matrix units. As LAPACK's xORMQR. */
#include "arena.h"
#include "batch.h"
#include "blocked.h"

enum { WIDTH = BATCHQR_BLOCK_WIDTH, T_ELEMENTS = WIDTH * WIDTH };

static const batchqr_variant variants[] = {{.name = "width32"}};

static int blocks_of(const batchqr_problem *problem) { return (problem->k + WIDTH - 1) / WIDTH; }

typedef struct workspace {
  void *t, *scales;
} workspace;

static size_t lay_out(const batchqr_problem *problem, void *base, workspace *w) {
  bqr_arena arena = {base, 0};
  w->t = bqr_arena_take(&arena, problem->count,
                        (size_t)blocks_of(problem) * T_ELEMENTS * bqr_type_bytes(problem->type));
  w->scales = bqr_arena_take(&arena, problem->count, (size_t)batchqr_ormqr_scales(problem));
  return arena.bytes;
}

static bool supports(const batchqr_problem *problem, const batchqr_variant *variant,
                     const batchqr_device *device) {
  (void)problem, (void)variant;
  return batchqr_larfb_fits(device);
}

/* What one block of threads does in one launch is left to it: up to 128 rows and 256 lines of C, and few
 * reflectors, up to 16, or 8 real ones where there are members enough that it is not launches that take the
 * time. */
static bool prefers(const batchqr_problem *problem, const batchqr_variant *variant,
                    const batchqr_device *device) {
  (void)variant;
  bool is_real = problem->type == BATCHQR_S || problem->type == BATCHQR_D;
  bool left = problem->side == BATCHQR_LEFT, many = problem->count > device->multiprocessors;
  int rows = left ? problem->m : problem->n, lines = left ? problem->n : problem->m;
  return (rows > 4 * WIDTH || lines > 8 * WIDTH) && problem->k > (is_real && many ? WIDTH / 4 : WIDTH / 2);
}

static size_t workspace_bytes(const batchqr_problem *problem, const batchqr_variant *variant,
                              const batchqr_device *device) {
  (void)variant, (void)device;
  workspace w;
  return lay_out(problem, NULL, &w);
}

static int count_launches(const batchqr_problem *problem, const batchqr_variant *variant,
                          const batchqr_device *device) {
  (void)variant, (void)device;
  return batchqr_ormqr_launches(problem) + (problem->k > 0 ? 2 : 0);
}

static batchqr_status prepare(const batchqr_problem *problem, const batchqr_variant *variant,
                              const batchqr_device *device) {
  (void)variant, (void)device;
  batchqr_status status = batchqr_blocked_prepare(problem->type);
  return status ? status : batchqr_ormqr_prepare(problem);
}

static batchqr_status apply_blocks(const batchqr_problem *problem, const batchqr_args *args, void *t,
                                   batchqr_stream stream) {
  const bool adjoint = problem->trans != BATCHQR_NO_TRANS;
  const int blocks = blocks_of(problem), lines = problem->side == BATCHQR_LEFT ? problem->n : problem->m;
  batchqr_status status = batchqr_larft(problem, args, 0, WIDTH, blocks, t, stream);
  if (status) return status;
  return batchqr_larfb_blocks(problem, args, 0, WIDTH, blocks, t, (int64_t)blocks * T_ELEMENTS, T_ELEMENTS,
                              adjoint, 0, lines, stream);
}

static batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant,
                             const batchqr_device *device, const batchqr_args *args, batchqr_stream stream) {
  (void)variant, (void)device;
  workspace w;
  lay_out(problem, args->workspace, &w);
  batchqr_status status = batchqr_ormqr_begin(problem, args, w.scales, stream);
  if (!status && problem->k > 0) status = apply_blocks(problem, args, w.t, stream);
  return status ? status : batchqr_ormqr_end(problem, args, w.scales, stream);
}

const batchqr_family batchqr_family_ormqr_blocked = {
    .name = "ormqr_blocked",
    .op = BATCHQR_ORMQR,
    .types = BATCHQR_ALL_TYPES,
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
};
