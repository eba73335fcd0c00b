/* SPDX-License-Identifier: BSD-3-Clause */
/* Q from its reflectors, in place, one block of 32 of them after another, of all members side by side: from
 * the last to the first, each is applied to the columns of Q right of it, and its own columns become its
 * product with the unit matrix. As LAPACK's xORGQR. Or, of members of real types, columns of the unit matrix
 * stay on the chip from the first block that reaches them to the last, and each is written once. */
#include "arena.h"
#include "batch.h"
#include "blocked_q.h"
#include "costs.h"

enum { WIDTH = BQR_BLOCK_WIDTH, T_ELEMENTS = BQR_T_ELEMENTS };

/* T of all blocks, and T V_1^H. */
typedef struct workspace {
  char *t, *head;
} workspace;

static size_t lay_out(const bqr_problem *problem, const bqr_variant *variant, void *base, workspace *w) {
  bqr_arena arena = {base, 0};
  const size_t bytes = (size_t)bqr_reflector_blocks(problem) * T_ELEMENTS * bqr_type_bytes(problem->type);
  w->t = bqr_arena_take(&arena, problem->count, bytes);
  w->head = bqr_keeps_columns(variant) ? NULL : bqr_arena_take(&arena, problem->count, bytes);
  return arena.bytes;
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const int rows = bqr_larfb_stream_rows(problem, device);
  if (bqr_keeps_columns(variant)) return rows > 0 && problem->m <= bqr_min(variant->stream, rows);
  return bqr_larfb_fits(device);
}

/* What one block of threads does in one launch is left to it: few rows, or few reflectors, but for a few tall
 * members. Where two blocks share a member there are no teams of them for few members. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  if (bqr_keeps_columns(variant)) {
    const int shares = bqr_larfb_stream_shares(problem->type, problem->m);
    const bool fills = 3 * shares * problem->count > 2 * device->multiprocessors;
    return problem->m > costs->blocks.rows && problem->k > costs->blocks.stream_reflectors &&
           (shares == 1 || fills);
  }
  const bool is_real = problem->type == BATCHQR_S || problem->type == BATCHQR_D,
             tall = problem->m >= 16 * costs->blocks.rows && problem->count <= device->multiprocessors;
  if (tall && problem->k > 1) return true;
  return problem->m > (problem->type == BATCHQR_S ? costs->blocks.single_rows : costs->blocks.rows) &&
         problem->k > (is_real ? costs->blocks.real_reflectors : costs->blocks.complex_reflectors);
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)device;
  workspace w;
  return lay_out(problem, variant, NULL, &w);
}

/* Where the columns right of a block start, at the least. */
static int right_of(const bqr_problem *problem, int first) {
  return problem->uniform ? bqr_min(first + WIDTH, problem->k) : first + 1;
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  int launches = 1 + (problem->k > 0);
  if (bqr_keeps_columns(variant)) return launches + (problem->k > 0);
  for (int first = 0; first < problem->k; first += WIDTH) {
    launches++;
    if (right_of(problem, first) < problem->n) launches += bqr_larfb_launches(problem, device, first);
  }
  return launches;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant, (void)device;
  batchqr_status status = bqr_blocked_prepare(problem->type);
  if (!status) status = bqr_larfb_stream_prepare(problem->type);
  return status ? status : bqr_orgqr_prepare(problem->type);
}

static batchqr_status stream_columns(const bqr_problem *problem, const bqr_variant *variant,
                                     const bqr_args *args, const workspace *w, batchqr_stream stream) {
  const int blocks = bqr_reflector_blocks(problem);
  batchqr_status status = bqr_larft(problem, args, 0, WIDTH, blocks, w->t, stream);
  if (status) return status;
  return bqr_larfb_stream(problem, args, 0, blocks, w->t, (int64_t)blocks * T_ELEMENTS, T_ELEMENTS, BQR_WHOLE,
                          0, problem->n, NULL, variant->stream, args->state, stream);
}

static batchqr_status form_blocks(const bqr_problem *problem, const bqr_args *args, const workspace *w,
                                  batchqr_stream stream) {
  const int blocks = bqr_reflector_blocks(problem);
  const int64_t stride = (int64_t)blocks * T_ELEMENTS;
  batchqr_status status = bqr_larft_head(problem, args, 0, WIDTH, blocks, w->t, w->head, stream);
  for (int block = blocks - 1; block >= 0 && !status; block--) {
    const int first = block * WIDTH;
    const size_t at = (size_t)block * T_ELEMENTS * bqr_type_bytes(problem->type);
    status = bqr_larfb(problem, args, first, WIDTH, w->t + at, stride, false, right_of(problem, first),
                       problem->n, args->state, stream);
    if (!status) status = bqr_orgqr_panel(problem, args, first, WIDTH, w->head + at, stride, stream);
  }
  return status;
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)device;
  workspace w;
  lay_out(problem, variant, args->workspace, &w);
  const bool all_reflected = args->thin || (problem->uniform && problem->k == problem->n);
  batchqr_status status = BATCHQR_SUCCESS;
  if (args->info || !all_reflected) status = bqr_orgqr_begin(problem, args, stream);
  if (status || problem->k == 0) return status;
  return bqr_keeps_columns(variant) ? stream_columns(problem, variant, args, &w, stream)
                                    : form_blocks(problem, args, &w, stream);
}

const bqr_family bqr_family_orgqr_blocked = {
    .name = "orgqr_blocked",
    .op = BATCHQR_ORGQR,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = bqr_blocked_q_variants,
    .nvariants = BQR_BLOCKED_Q_VARIANTS,
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = bqr_blocked_q_open,
    .close = bqr_blocked_q_close,
    .count_launches = count_launches,
    .prefers = prefers,
};
