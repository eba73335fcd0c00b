/* SPDX-License-Identifier: BSD-3-Clause */
#include "rows.h"
#include "memory.h"
#include "types.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int rows_of(const problem *p, int rank) {
  const int size = p->w->communicator->size;
  switch (p->manner) {
  case ALL_ON_LAST:
    return rank == size - 1 ? p->m : 0;
  case NONE_ON_FIRST:
    if (size > 1) return rank == 0 ? 0 : p->m / (size - 1) + (rank <= p->m % (size - 1));
    return p->m;
  case FEW_ON_FIRST:
    if (size > 1 && p->m > 2)
      return rank == 0 ? 2 : (p->m - 2) / (size - 1) + (rank <= (p->m - 2) % (size - 1));
    /* fall through */
  default:
    return p->m / size + (rank < p->m % size);
  }
}

void problem_new(problem *p) {
  p->size = bqr_type_bytes(p->type);
  p->eps = type_is_double(p->type) ? 0x1p-53 : 0x1p-24;
  for (int r = 0, at = 0; r < p->w->communicator->size; at += p->rows[r++]) {
    p->rows[r] = rows_of(p, r);
    p->at[r] = at;
  }
  p->own = p->rows[p->w->communicator->rank];
  p->first = p->at[p->w->communicator->rank];
  const size_t each = (size_t)p->m * (size_t)p->n * p->size;
  p->a = memory_host(COUNT * each);
  for (int i = 0; i < COUNT; i++)
    matgen_fill(p->type, p->kind, 100 + (uint64_t)i, p->m, p->n, (char *)p->a + (size_t)i * each,
                p->m ? p->m : 1);
}

piece piece_new(const problem *p, int rows, int cols, int ld) {
  piece x = {.rows = rows, .cols = cols, .ld = ld, .stride = (int64_t)ld * cols + 1};
  x.data = memory_alloc(p->w->backend, (size_t)x.stride * COUNT * p->size);
  memory_fill(p->w->backend, x.data, 0x5a, (size_t)x.stride * COUNT * p->size);
  return x;
}

void *piece_host(const problem *p, piece x) {
  void *host = memory_host((size_t)x.stride * COUNT * p->size);
  memory_download(p->w->backend, host, x.data, (size_t)x.stride * COUNT * p->size);
  return host;
}

void piece_put(const problem *p, piece x, const void *whole) {
  char *host = piece_host(p, x);
  for (int64_t i = 0; i < COUNT; i++)
    for (int64_t j = 0; j < x.cols && x.rows > 0; j++)
      memcpy(host + (size_t)(i * x.stride + j * x.ld) * p->size,
             (const char *)whole + (size_t)((i * x.cols + j) * p->m + p->first) * p->size,
             (size_t)x.rows * p->size);
  memory_upload(p->w->backend, x.data, host, (size_t)x.stride * COUNT * p->size);
  free(host);
}

piece piece_a(const problem *p) {
  const piece x = piece_new(p, p->own, p->n, p->own + 1);
  piece_put(p, x, p->a);
  return x;
}

void *collect(const problem *p, piece x) {
  const batchqr_communicator *c = p->w->communicator;
  const size_t most = (size_t)(p->m + 1) * (size_t)x.cols * COUNT * p->size;
  char *host = piece_host(p, x), *mine = memory_host(most), *all = memory_host(most * (size_t)c->size),
       *whole = memory_host(most);
  for (int64_t k = 0; k < (int64_t)COUNT * x.cols && x.rows > 0; k++)
    memcpy(mine + (size_t)(k * x.rows) * p->size,
           host + (size_t)(k / x.cols * x.stride + k % x.cols * x.ld) * p->size, (size_t)x.rows * p->size);
  expect_that(p->w, !c->agree(c->context, mine, all, most), "collecting: %s", c->message(c->context));
  for (int r = 0; r < c->size; r++)
    for (int64_t k = 0; k < (int64_t)COUNT * x.cols; k++)
      memcpy(whole + (size_t)(k * p->m + p->at[r]) * p->size,
             all + (size_t)r * most + (size_t)(k * p->rows[r]) * p->size, (size_t)p->rows[r] * p->size);
  free(host);
  free(mine);
  free(all);
  return whole;
}

void piece_free(const problem *p, piece x) { memory_free(p->w->backend, x.data); }

void judge(const problem *p, const char *what, double ratio, double bound) {
  expect_that(p->w, ratio < bound, "%s of type %c, %s, %d x %d, manner %d: ratio %g", what, "sdcz"[p->type],
              matgen_name(p->kind), p -> m, p -> n, (int)p -> manner, ratio);
}

void judge_status(const problem *p, const char *what, batchqr_status status) {
  expect_that(p->w, !status, "%s of type %c, %s, %d x %d, manner %d: %s: %s", what, "sdcz"[p->type],
              matgen_name(p->kind), p -> m, p -> n, (int)p -> manner, batchqr_status_string(status),
              batchqr_error_message(p->w->handle));
}

void judge_same(const problem *p, const char *what, piece x) {
  char *host = piece_host(p, x);
  const size_t bytes = (size_t)x.stride * COUNT * p->size;
  const bool same = all_have(p->w, host, bytes);
  for (size_t i = 0; i < bytes; i++) p->w->hash = rng_mix(p->w->hash ^ (unsigned char)host[i]);
  expect_that(p->w, same, "%s of type %c, %s, %d x %d, manner %d: the ranks' bits differ", what,
              "sdcz"[p->type], matgen_name(p->kind), p -> m, p -> n, (int)p -> manner);
  free(host);
}

dense whole_dense(const problem *p, const void *whole, int i, int cols, int exponent) {
  const char *at = (const char *)whole + (size_t)i * (size_t)p->m * (size_t)cols * p->size;
  return dense_read(p->type, at, p->m ? p->m : 1, p->m, cols, exponent);
}

int exponent_of(const problem *p, int i) {
  const char *at = (const char *)p->a + (size_t)i * (size_t)p->m * (size_t)p->n * p->size;
  return dense_exponent(p->type, at, p->m ? p->m : 1, p->m, p->n);
}

void judge_qr(const problem *p, const char *what, const void *q, const void *r, int ldr, int64_t stride_r) {
  const int k = p->m < p->n ? p->m : p->n;
  for (int i = 0; i < COUNT; i++) {
    const int e = exponent_of(p, i);
    dense a = whole_dense(p, p->a, i, p->n, e), dq = whole_dense(p, q, i, k, 0);
    dense dr = dense_read(p->type, (const char *)r + (size_t)(i * stride_r) * p->size, ldr, k, p->n, e);
    for (int j = 0; j < p->n; j++)
      for (int row = j + 1; row < k; row++)
        expect_that(p->w, *dense_at(&dr, row, j) == 0, "%s: R below", what);
    dense product = dense_product(&dq, false, &dr);
    const double norm = dense_norm(&a), high = fmax(1, fmax(p->m, p->n));
    dense_subtract(&a, &product);
    judge(p, what, dense_norm(&a) / (high * p->eps * norm + dense_spacing(p->type, e) + 1e-300), 30);
    judge(p, what, dense_orthogonality(&dq) / (fmax(1, p->m) * p->eps), 30);
    dense_free(&a);
    dense_free(&dq);
    dense_free(&dr);
    dense_free(&product);
  }
}

double difference(const problem *p, const void *x, const void *y, int cols, int i) {
  const char *at = (const char *)y + (size_t)i * (size_t)p->m * (size_t)cols * p->size;
  const int e = dense_exponent(p->type, at, p->m ? p->m : 1, p->m, cols);
  dense dx = whole_dense(p, x, i, cols, e), dy = whole_dense(p, y, i, cols, e);
  const double norm = dense_norm(&dy);
  dense_subtract(&dx, &dy);
  const double found = dense_norm(&dx) / (norm + 1e-300);
  dense_free(&dx);
  dense_free(&dy);
  return found / (p->eps * fmax(1, p->m));
}
