/* SPDX-License-Identifier: BSD-3-Clause */
#include "gram_factor.h"
#include "gemm/gemm.h"

/* The columns of a product's operands: 16 x 8 tiles of the result, about one for each multiprocessor. */
enum { STRIP = 2048 };

static int least(int a, int b) { return a < b ? a : b; }
static int strips_of(int cols) { return (cols - 1) / STRIP + 1; }

/* Operands follow each other. The longest ones are those that are multiplied first: split ones have as many
 * rows as an outer block has columns, and n at most. */
static size_t strip_bytes(const bqr_tiling *tiling, int64_t k) {
  return (tiling->operand_bytes(BATCHQR_S, BQR_GEMM_B, STRIP, k) + 255) / 256 * 256;
}

size_t bqr_gram_factor_bytes(int m, int n) {
  const size_t whole = strip_bytes(&bqr_tiling_half, m),
               part = strip_bytes(&bqr_tiling_split, least(n, BQR_REFINE_BLOCK));
  return (size_t)strips_of(n) * (whole > part ? whole : part);
}

batchqr_status bqr_gram_factor_prepare(void) {
  batchqr_status status = bqr_tiling_half.prepare();
  return status ? status : bqr_tiling_split.prepare();
}

/* X^H X, of which the part on and above the diagonal is wanted, for X of `cols` columns and k rows: to c, or
 * subtracted from it. c may be X's memory: products begin when all of X is converted. */
typedef struct square {
  const bqr_tiling *tiling;
  const float *x;
  float *c;
  int64_t ld, k;
  int cols, subtract;
} square;

static batchqr_status form_square(const square *s, const bqr_refine *r, const bqr_device *device, void *tiles,
                                  batchqr_stream stream) {
  const int strips = strips_of(s->cols), *const done = &r->state->stop;
  const size_t bytes = strip_bytes(s->tiling, s->k);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < strips && !status; i++) {
    const bqr_tiled_source from = {s->x + (int64_t)i * STRIP * s->ld, s->ld, 0, 1, done};
    status = s->tiling->convert(BATCHQR_S, BQR_GEMM_B, least(STRIP, s->cols - i * STRIP), s->k, &from,
                                (char *)tiles + (size_t)i * bytes, stream);
  }
  for (int j = 0; j < strips && !status; j++)
    for (int i = 0; i <= j && !status; i++) {
      const bqr_tiled_product product = {.type = BATCHQR_S,
                                         .m = least(STRIP, s->cols - i * STRIP),
                                         .n = least(STRIP, s->cols - j * STRIP),
                                         .k = s->k,
                                         .alpha = s->subtract ? -1 : 1,
                                         .beta = s->subtract,
                                         .a = (char *)tiles + (size_t)i * bytes,
                                         .b = (char *)tiles + (size_t)j * bytes,
                                         .c = s->c + (int64_t)i * STRIP + (int64_t)j * STRIP * s->ld,
                                         .ldc = s->ld,
                                         .count = 1,
                                         .done = done};
      status = s->tiling->multiply(&product, device, stream);
    }
  return status;
}

static int launches_of_square(int cols) {
  const int strips = strips_of(cols);
  return strips + strips * (strips + 1) / 2;
}

batchqr_status bqr_gram_factor(const bqr_refine *r, int width, const bqr_device *device, void *tiles,
                               batchqr_stream stream) {
  float *const a = r->copy;
  const square gram = {&bqr_tiling_half, a, a, r->ldcopy, r->m, r->n, 0};
  batchqr_status status = bqr_refine_clear(r, stream);
  if (!status) status = form_square(&gram, r, device, tiles, stream);
  for (int at = 0; at < r->n && !status; at += width) {
    for (int row = at; row < least(at + width, r->n) && !status; row += BQR_REFINE_TRIANGLE)
      status = bqr_refine_rows(r, row, at + width, stream);
    const int right = at + width;
    if (status || right >= r->n) continue;
    const square rest = {&bqr_tiling_split,
                         a + at + right * r->ldcopy,
                         a + right * (r->ldcopy + 1),
                         r->ldcopy,
                         width,
                         r->n - right,
                         1};
    status = form_square(&rest, r, device, tiles, stream);
  }
  return status ? status : bqr_refine_invert(r, stream);
}

int bqr_gram_factor_launches(int n, int width) {
  int launches = 1 + launches_of_square(n); /* zeros, and the first square */
  for (int at = 0; at < n; at += width) {
    for (int row = at; row < least(at + width, n); row += BQR_REFINE_TRIANGLE) {
      const int end = row + BQR_REFINE_TRIANGLE;
      launches += 1 + (end < n) + (end < least(at + width, n));
    }
    if (at + width < n) launches += launches_of_square(n - at - width);
  }
  for (int half = BQR_REFINE_TRIANGLE; half < BQR_REFINE_BLOCK && half < n; half *= 2) launches += 2;
  return launches;
}
