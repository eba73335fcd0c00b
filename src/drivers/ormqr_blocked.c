/* SPDX-License-Identifier: BSD-3-Clause */
/* op(Q) C and C op(Q) of all members side by side: T of all blocks of 32 reflectors in one launch; in
 * another, strips of C are taken through all of them on matrix units. As LAPACK's xORMQR. Real columns stay
 * on the chip meanwhile, of members that are not too tall for it. */
#include "arena.h"
#include "batch.h"
#include "blocked_q.h"
#include "costs.h"

enum { WIDTH = BQR_BLOCK_WIDTH, T_ELEMENTS = BQR_T_ELEMENTS };

typedef struct workspace {
  void *t, *scales;
} workspace;

static size_t lay_out(const bqr_problem *problem, void *base, workspace *w) {
  bqr_arena arena = {base, 0};
  w->t = bqr_arena_take(&arena, problem->count,
                        (size_t)bqr_reflector_blocks(problem) * T_ELEMENTS * bqr_type_bytes(problem->type));
  w->scales = bqr_arena_take(&arena, problem->count, (size_t)bqr_ormqr_scales(problem));
  return arena.bytes;
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const int rows = bqr_larfb_stream_rows(problem, device);
  if (bqr_keeps_columns(variant))
    return problem->side == BATCHQR_LEFT && rows > 0 && problem->m <= bqr_min(variant->stream, rows);
  return bqr_larfb_fits(device);
}

/* What one block of threads does in one launch is left to it: few rows and lines of C, or few reflectors,
 * fewer real ones where there are members enough that it is not launches that take the time. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  if (bqr_keeps_columns(variant))
    return problem->m > costs->blocks.rows && problem->k > costs->blocks.stream_reflectors &&
           problem->n >= costs->blocks.stream_columns;
  bool is_real = problem->type == BATCHQR_S || problem->type == BATCHQR_D;
  bool left = problem->side == BATCHQR_LEFT, many = problem->count > device->multiprocessors;
  int rows = left ? problem->m : problem->n, lines = left ? problem->n : problem->m;
  return (rows > costs->blocks.rows || lines > costs->blocks.lines) &&
         problem->k > (is_real && many ? costs->blocks.real_reflectors : costs->blocks.complex_reflectors);
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant, (void)device;
  workspace w;
  return lay_out(problem, NULL, &w);
}

/* Whether the columns are brought into range where they are applied to: each by one block of threads. */
static bool ranges(const bqr_problem *problem, const bqr_variant *variant) {
  return bqr_keeps_columns(variant) && bqr_larfb_stream_shares(problem->type, problem->m) == 1;
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)device;
  if (ranges(problem, variant)) return 2 + (problem->k > 0);
  return bqr_ormqr_launches(problem) + (problem->k > 0 ? 2 : 0);
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant, (void)device;
  batchqr_status status = bqr_blocked_prepare(problem->type);
  if (!status) status = bqr_larfb_stream_prepare(problem->type);
  return status ? status : bqr_ormqr_prepare(problem);
}

/* Of launches that keep columns on the chip; others have no clusters. */
static batchqr_status open_clusters(const bqr_problem *problem, const bqr_variant *variant,
                                    const bqr_device *device, void **state) {
  return bqr_keeps_columns(variant) ? bqr_blocked_q_open(problem, variant, device, state) : BATCHQR_SUCCESS;
}

static batchqr_status apply_blocks(const bqr_problem *problem, const bqr_variant *variant,
                                   const bqr_args *args, void *t, batchqr_stream stream) {
  const bool adjoint = problem->trans != BATCHQR_NO_TRANS;
  const int blocks = bqr_reflector_blocks(problem),
            lines = problem->side == BATCHQR_LEFT ? problem->n : problem->m;
  const int64_t stride = (int64_t)blocks * T_ELEMENTS;
  batchqr_status status = BATCHQR_SUCCESS;
  if (blocks > 0) status = bqr_larft(problem, args, 0, WIDTH, blocks, t, stream);
  if (status) return status;
  if (bqr_keeps_columns(variant))
    return bqr_larfb_stream(problem, args, 0, blocks, t, stride, T_ELEMENTS, BQR_WHOLE, 0, lines, NULL,
                            variant->stream, args->state, stream);
  return bqr_larfb_blocks(problem, args, 0, WIDTH, blocks, t, stride, T_ELEMENTS, adjoint, 0, lines, stream);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)device;
  workspace w;
  lay_out(problem, args->workspace, &w);
  const bool ranged = ranges(problem, variant);
  batchqr_status status = bqr_ormqr_begin(problem, args, ranged ? NULL : w.scales, stream);
  if (!status && (ranged || problem->k > 0)) status = apply_blocks(problem, variant, args, w.t, stream);
  return status || ranged ? status : bqr_ormqr_end(problem, args, w.scales, stream);
}

const bqr_family bqr_family_ormqr_blocked = {
    .name = "ormqr_blocked",
    .op = BATCHQR_ORMQR,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = bqr_blocked_q_variants,
    .nvariants = BQR_BLOCKED_Q_VARIANTS,
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open_clusters,
    .close = bqr_blocked_q_close,
    .count_launches = count_launches,
    .prefers = prefers,
};
