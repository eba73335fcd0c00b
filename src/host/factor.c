/* SPDX-License-Identifier: BSD-3-Clause */
/* Small members go to LAPACK's xGEQRF. Others are done as it does them, a panel of columns after another, but
 * the columns that a panel is applied to are cut into pieces, which threads share. The first piece is the
 * next panel, so that it is factored while the other pieces are at work.
 *
 * For a diagonal >= 0 there is xGEQRFP. But its xLARFGP is not safe: it divides by numbers that underflow
 * where a column has entries far apart, and its tau is far from unitary where a complex column has become
 * subnormal while the matrix around it has not (seen in LAPACK 3.9 to 3.11). Neither happens to a column
 * whose largest entry is near 1. So a panel is then a loop over its columns, which calls xGEQRFP for one
 * column at a time, scaled. */
#include "host/factor.h"
#include "host/lapack.h"
#include "host/range.h"
#include "host/reflectors.h"

#include <string.h>

/* --- small members */

/* Up to so many columns and elements xGEQRF does not work in blocks, or is as fast. */
enum { SMALL_COLUMNS = 128, SMALL_ELEMENTS = 1 << 15, LAPACK_BLOCK = 32 };

static bool is_small(int m, int n) {
  return bqr_min(m, n) <= SMALL_COLUMNS && (int64_t)m * n <= SMALL_ELEMENTS;
}

/* Elements of xGEQRF's work. A function of the member's own sizes, so that its neighbours cannot change how
 * it is blocked. */
static int64_t small_work(int m, int n) { return (int64_t)n * bqr_min(LAPACK_BLOCK, bqr_min(m, n)); }

/* --- panels */

/* A factorization at the block of reflectors that begins at `first`, whose factor T is t[now]. */
typedef struct progress {
  const host_matrix *x;
  bool positive;
  int block, first, now;
  void *t[2];
} progress;

/* The reflector of one column, which xLARFGP must see near 1: what it divides by is smaller than the column
 * by up to the number at which it gives up, close to the smallest one there is. */
static void reflector_positive(batchqr_type type, int m, void *a, void *tau, void *work) {
  int e = bqr_host_exponent(type, m, a);
  bool far = e != HOST_NONFINITE && (e < -8 || e > 8);
  if (far) bqr_host_scale(type, m, 1, a, m, -e);
  bqr_lapack_geqrfp(type, m, 1, a, m, tau, work, 1);
  if (far) bqr_host_scale(type, 1, 1, a, m, e);
}

static void panel_positive(const host_matrix *x, int first, int size, void *t, int ldt, void *work) {
  batchqr_type type = x->type;
  int end = first + size;
  for (int j = first; j < end; j++) {
    void *v = host_at(type, x->a, x->lda, j, j), *tau = host_offset(x->tau, bqr_type_bytes(type), j);
    reflector_positive(type, x->m - j, v, tau, work);
    if (j + 1 < end)
      bqr_lapack_larfb(type, BATCHQR_LEFT, true, x->m - j, end - j - 1, 1, v, x->lda, tau, 1,
                       host_at(type, x->a, x->lda, j, j + 1), x->lda, work);
  }
  if (end < x->n)
    bqr_lapack_larft(type, x->m - first, size, host_at(type, x->a, x->lda, first, first), x->lda,
                     host_offset(x->tau, bqr_type_bytes(type), first), t, ldt);
}

/* Factors the panel that begins at `first`, with its T. */
static void factor_panel(const progress *p, int first, void *t, void *work) {
  const host_matrix *x = p->x;
  size_t bytes = bqr_type_bytes(x->type);
  int size = bqr_min(p->block, bqr_min(x->m, x->n) - first);
  if (p->positive) {
    panel_positive(x, first, size, t, p->block, work);
    return;
  }
  bqr_lapack_geqrt3(x->type, x->m - first, size, host_at(x->type, x->a, x->lda, first, first), x->lda, t,
                    p->block);
  for (int j = 0; j < size; j++)
    memcpy(host_offset(x->tau, bytes, first + j), host_at(x->type, t, p->block, j, j), bytes);
}

/* --- the columns behind a panel */

static int panel_end(const progress *p) { return bqr_min(p->first + p->block, bqr_min(p->x->m, p->x->n)); }

/* Columns of the panel that comes next. */
static int next_panel(const progress *p) {
  return bqr_min(p->block, bqr_min(p->x->m, p->x->n) - panel_end(p));
}

/* Applies the panel to a piece of what is behind it; if that is the next panel, factors it. */
static void update_piece(const void *context, int piece, void *work) {
  const progress *p = context;
  const host_matrix *x = p->x;
  int end = panel_end(p), next = next_panel(p), column = end, columns = next;
  bool is_panel = next > 0 && piece == 0;
  if (!is_panel) {
    column += next + HOST_LINES * (piece - (next > 0));
    columns = bqr_min(HOST_LINES, x->n - column);
  }
  bqr_lapack_larfb(x->type, BATCHQR_LEFT, true, x->m - p->first, columns, end - p->first,
                   host_at(x->type, x->a, x->lda, p->first, p->first), x->lda, p->t[p->now], p->block,
                   host_at(x->type, x->a, x->lda, p->first, column), x->lda, work);
  if (is_panel) factor_panel(p, end, p->t[!p->now], work);
}

static int update_pieces(const progress *p) {
  int next = next_panel(p);
  return (next > 0) + host_pieces(p->x->n - panel_end(p) - next, HOST_LINES);
}

static void first_panel(const void *context, int piece, void *work) {
  const progress *p = context;
  (void)piece;
  factor_panel(p, 0, p->t[0], work);
}

/* --- the whole */

host_scratch bqr_host_factor_scratch(batchqr_type type, int m, int n) {
  int k = bqr_min(m, n), block = host_block(k);
  int64_t small = small_work(m, n), blocked = 2 * (int64_t)block * block;
  int64_t elements = small < SMALL_ELEMENTS ? small : SMALL_ELEMENTS;
  if (elements < blocked) elements = blocked;
  return (host_scratch){.member = (size_t)elements * bqr_type_bytes(type),
                        .piece = bqr_host_piece_bytes(type, k, n),
                        .pieces = is_small(m, n) ? 1 : host_pieces(n, HOST_LINES) + 1};
}

void bqr_host_factor(const host_launch *launch, const host_matrix *x, bool positive, void *scratch) {
  int k = bqr_min(x->m, x->n), block = host_block(k);
  if (!positive && is_small(x->m, x->n)) {
    bqr_lapack_geqrf(x->type, x->m, x->n, x->a, x->lda, x->tau, scratch, (int)small_work(x->m, x->n));
    return;
  }
  progress p = {.x = x, .positive = positive, .block = block, .t = {scratch}};
  p.t[1] = host_offset(scratch, bqr_type_bytes(x->type), (int64_t)block * block);
  bqr_host_for_pieces(launch, 1, first_panel, &p);
  for (; p.first < k; p.first += block, p.now = !p.now)
    bqr_host_for_pieces(launch, update_pieces(&p), update_piece, &p);
}

bool bqr_host_columns_in(const host_matrix *x) {
  bool any = false;
  for (int j = 0; j < x->n; j++) {
    x->exponents[j] = bqr_host_range(x->type, x->m, host_at(x->type, x->a, x->lda, 0, j));
    if (x->exponents[j] == HOST_NONFINITE) return false;
    any = any || x->exponents[j] != 0;
  }
  for (int j = 0; j < x->n && any; j++)
    bqr_host_scale(x->type, x->m, 1, host_at(x->type, x->a, x->lda, 0, j), x->lda, x->exponents[j]);
  return true;
}

void bqr_host_columns_out(const host_matrix *x) {
  for (int j = 0; j < x->n; j++)
    bqr_host_scale(x->type, bqr_min(j + 1, x->m), 1, host_at(x->type, x->a, x->lda, 0, j), x->lda,
                   -x->exponents[j]);
}

int bqr_host_first_zero(const host_matrix *x) {
  for (int j = 0; j < bqr_min(x->m, x->n); j++)
    if (bqr_host_is_zero(x->type, host_at(x->type, x->a, x->lda, j, j))) return j + 1;
  return 0;
}
