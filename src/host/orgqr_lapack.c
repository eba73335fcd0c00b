/* SPDX-License-Identifier: BSD-3-Clause */
/* ORGQR on the CPU. Small members go to LAPACK's xORGQR, xUNGQR. Others are done as it does them, a block of
 * reflectors after another, the last one first, but the columns that a block is applied to are cut into
 * pieces, which threads share; one of them is the block before, which becomes columns of Q. */
#include "host/lapack.h"
#include "host/range.h"
#include "host/reflectors.h"

#include <string.h>

enum { SMALL_COLUMNS = 128, SMALL_ELEMENTS = 1 << 15 };

static bool is_small(int m, int n) { return n <= SMALL_COLUMNS && (int64_t)m * n <= SMALL_ELEMENTS; }

static host_scratch scratch_of(const bqr_problem *problem) {
  batchqr_type type = problem->type;
  int m = problem->m, n = problem->n;
  size_t small = (size_t)n * bqr_type_bytes(type), factors = bqr_host_factors_bytes(type, problem->k);
  return (host_scratch){.member = factors > small ? factors : small,
                        .piece = bqr_host_piece_bytes(type, problem->k, n),
                        .pieces = is_small(m, n) ? 1 : host_pieces(n, HOST_LINES) + 1};
}

/* Q while it is formed, at one block of reflectors. */
typedef struct progress {
  const host_reflectors *q;
  int n, block;
  void *a;
} progress;

/* Where a block begins, or behind the last one Q's first column that has no reflector. */
static int block_start(const progress *p, int block) { return bqr_min(p->q->k, block * host_block(p->q->k)); }

/* The columns of a block's reflectors become those of their Q, zeros above. */
static void form_block(const progress *p, int block, void *work) {
  const host_reflectors *q = p->q;
  int first = block_start(p, block), size = block_start(p, block + 1) - first;
  size_t bytes = bqr_type_bytes(q->type);
  bqr_lapack_orgqr(q->type, q->rows - first, size, size, host_at(q->type, p->a, q->ldv, first, first), q->ldv,
                   host_offset(q->tau, bytes, first), work, size);
  for (int j = first; j < first + size && first > 0; j++)
    memset(host_at(q->type, p->a, q->ldv, 0, j), 0, (size_t)first * bytes);
}

/* Columns of the block behind this one, which are Q's only once they are formed. */
static int next_block(const progress *p) {
  return block_start(p, p->block + 2) - block_start(p, p->block + 1);
}

/* Applies the block to a piece of the columns behind it. */
static void apply_piece(const void *context, int piece, void *work) {
  const progress *p = context;
  int column = block_start(p, p->block + 1), next = next_block(p), columns = next;
  if (next > 0 && piece == 0) {
    form_block(p, p->block + 1, work);
  } else {
    column += next + HOST_LINES * (piece - (next > 0));
    columns = bqr_min(HOST_LINES, p->n - column);
  }
  bqr_host_apply_block(p->q, p->block, BATCHQR_LEFT, false, columns,
                       host_at(p->q->type, p->a, p->q->ldv, 0, column), p->q->ldv, work);
}

static void first_block(const void *context, int piece, void *work) {
  (void)piece;
  form_block(context, 0, work);
}

static void form_large(const host_launch *launch, const host_member *x, void *factors) {
  const host_reflectors q = {launch->problem->type, x->m, x->k, x->lda, x->a, x->tau, factors};
  progress p = {.q = &q, .n = x->n, .a = x->a};
  bqr_lapack_laset(q.type, x->k, x->n - x->k, host_at(q.type, x->a, x->lda, 0, x->k), x->lda, 0);
  bqr_lapack_laset(q.type, x->m - x->k, x->n - x->k, host_at(q.type, x->a, x->lda, x->k, x->k), x->lda, 1);
  if (x->k == 0) return;
  bqr_host_form_factors(launch, &q);
  for (p.block = host_pieces(x->k, host_block(x->k)) - 1; p.block >= 0; p.block--) {
    int next = next_block(&p), behind = x->n - block_start(&p, p.block + 1) - next;
    bqr_host_for_pieces(launch, (next > 0) + host_pieces(behind, HOST_LINES), apply_piece, &p);
  }
  bqr_host_for_pieces(launch, 1, first_block, &p);
}

static void form_member(const host_launch *launch, const host_member *x, void *scratch) {
  batchqr_type type = launch->problem->type;
  host_set_info(launch->args, x->id, 0);
  if (x->n == 0) return;
  if (!bqr_host_finite_reflectors(type, x->m, x->k, x->a, x->lda, x->tau)) {
    bqr_host_fill_nan(type, x->m, x->n, x->a, x->lda);
    host_set_info(launch->args, x->id, BATCHQR_INFO_NONFINITE);
  } else if (is_small(x->m, x->n)) {
    bqr_lapack_orgqr(type, x->m, x->n, x->k, x->a, x->lda, x->tau, scratch, x->n);
  } else {
    form_large(launch, x, scratch);
  }
}

HOST_FAMILY(orgqr_lapack, BATCHQR_ORGQR, scratch_of, form_member);
