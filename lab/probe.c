/* SPDX-License-Identifier: BSD-3-Clause */
/* Products with random vectors, in a wider precision (wide.h).
 *
 * For a normally distributed x, ||E x|| / ||x|| is on average ||E||_F / sqrt(n). So
 * ||A x - Q R x|| / (||A x|| max(m,n) eps) estimates the ratio of the Frobenius norms, and
 * sqrt(k) ||Q^H Q y - y|| / (||y|| m eps) that of I - Q^H Q: for errors without structure these agree with
 * LAPACK's ratios of 1-norms within a small factor. An error anywhere in the member shows.
 */
#include "probe.h"
#include "sequence.h"
#include "wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  VECTORS = 2,
  CHUNK = 256,           /* rows at a time, which stay in the first-level cache */
  BLOCK_BYTES = 1 << 26, /* columns that are fetched at a time */
  SERIAL = 1 << 14,      /* elements that are not worth waking threads for */
};

typedef struct number {
  wide re, im; /* im is 0 in real types */
} number;

/* ---- vectors ---- */

typedef struct vector {
  double *re, *re_lo, *im, *im_lo;
} vector;

/* Some of them: what is read once serves all. */
typedef struct panel {
  int rows, count;
  double *memory;
  vector at[2 * VECTORS];
} panel;

static panel new_panel(int rows) {
  size_t length = (size_t)rows;
  panel p = {.rows = rows, .count = VECTORS, .memory = memory_host(4 * VECTORS * length * sizeof(double))};
  for (size_t v = 0; v < VECTORS; v++) {
    double *at = p.memory + 4 * v * length;
    p.at[v] = (vector){at, at + length, at + 2 * length, at + 3 * length};
  }
  return p;
}

/* Both, for as long as they are there. */
static panel joined(panel x, panel y) {
  for (int v = 0; v < y.count; v++) x.at[x.count + v] = y.at[v];
  x.count += y.count;
  return x;
}

static number get(vector x, int i) { return (number){{x.re[i], x.re_lo[i]}, {x.im[i], x.im_lo[i]}}; }

static void put(vector x, int i, number value) {
  x.re[i] = value.re.hi, x.re_lo[i] = value.re.lo;
  x.im[i] = value.im.hi, x.im_lo[i] = value.im.lo;
}

static panel random_panel(batchqr_type type, int rows) {
  panel x = new_panel(rows);
  double *numbers = memory_host(2 * (size_t)rows * sizeof *numbers);
  for (int v = 0; v < VECTORS; v++) {
    sequence_get(BATCHQR_D, numbers, 7654321 * (int64_t)(v + 1), 2 * (int64_t)rows);
    for (int i = 0; i < rows; i++) {
      x.at[v].re[i] = numbers[2 * i];
      if (type_is_complex(type)) x.at[v].im[i] = numbers[2 * i + 1];
    }
  }
  free(numbers);
  return x;
}

/* The first `count` rows of x over zeros. */
static panel extended(panel x, int count, int rows) {
  panel y = new_panel(rows);
  for (int v = 0; v < VECTORS; v++)
    for (int i = 0; i < count; i++) put(y.at[v], i, get(x.at[v], i));
  return y;
}

/* ---- matrices ---- */

typedef enum part { ALL, UPPER, LOWER } part; /* LOWER: V, with ones on the diagonal */

/* An operand, or a part of it. */
typedef struct matrix {
  batchqr_type type;
  part part;
  int rows, columns;
  size_t pitch;     /* bytes */
  const void *data; /* in the space's memory, or NULL */
  const void *host; /* the host's, or NULL: the sequence */
  int64_t first;
} matrix;

/* Columns first ... of a matrix, rows row ... of them, in host memory. */
typedef struct block {
  const matrix *of;
  int first, columns, row, rows;
  const char *data; /* NULL: the sequence */
  size_t pitch;
} block;

/* Goes over a matrix: one block is fetched while another one is worked on. */
typedef struct reader {
  memory_space *space;
  const matrix *a;
  bool backwards;
  int width, blocks, next;
} reader;

static reader read_matrix(memory_space *space, const matrix *a, bool backwards) {
  reader r = {.space = space, .a = a, .backwards = backwards};
  size_t fit = BLOCK_BYTES / (a->pitch + 1);
  r.width = fit > (size_t)a->columns ? a->columns : fit ? (int)fit : 1;
  r.blocks = (a->columns + r.width - 1) / r.width;
  return r;
}

static block describe(const reader *r, int index) {
  const matrix *a = r->a;
  int first = (r->backwards ? r->blocks - 1 - index : index) * r->width;
  int last = bqr_min(first + r->width, a->columns);
  int row = a->part == LOWER ? first : 0, end = a->part == UPPER ? bqr_min(last, a->rows) : a->rows;
  return (block){.of = a, .first = first, .columns = last - first, .row = row, .rows = end - row};
}

static void start(const reader *r, int index) {
  if (!r->a->data || index >= r->blocks) return;
  block b = describe(r, index);
  size_t size = bqr_type_bytes(r->a->type);
  memory_columns columns = {.data = (const char *)r->a->data + (size_t)b.first * r->a->pitch +
                                    (size_t)b.row * size,
                            .pitch = r->a->pitch,
                            .bytes = (size_t)b.rows * size,
                            .count = b.columns};
  space_fetch(r->space, index % 2, &columns);
}

static bool next_block(reader *r, block *b) {
  if (r->next == r->blocks) return false;
  if (r->next == 0) start(r, 0);
  *b = describe(r, r->next);
  if (r->a->data) {
    memory_columns columns = space_fetched(r->space, r->next % 2);
    b->data = columns.data;
    b->pitch = columns.pitch;
  }
  start(r, ++r->next);
  return true;
}

/* Up to CHUNK rows of a column as doubles, where they lie or in a copy. */
typedef struct chunk {
  int row, count;
  const double *re, *im;
  double copy[2][CHUNK], sequence[2 * CHUNK];
} chunk;

static void split(batchqr_type type, const void *from, int count, chunk *to) {
  const float *s = from;
  const double *d = from;
  to->re = to->copy[0], to->im = to->copy[1];
  switch (type) {
  case BATCHQR_S:
    for (int i = 0; i < count; i++) to->copy[0][i] = s[i];
    break;
  case BATCHQR_C:
    for (int i = 0; i < count; i++) to->copy[0][i] = s[2 * i], to->copy[1][i] = s[2 * i + 1];
    break;
  case BATCHQR_Z:
    for (int i = 0; i < count; i++) to->copy[0][i] = d[2 * i], to->copy[1][i] = d[2 * i + 1];
    break;
  default:
    to->re = d;
  }
}

/* A column's rows from `row` on that belong to the matrix's part. */
static void load(const block *b, int column, int row, chunk *to) {
  const matrix *a = b->of;
  int end = bqr_min(row + CHUNK, a->part == UPPER ? bqr_min(column + 1, a->rows) : a->rows);
  to->row = row, to->count = end > row ? end - row : 0;
  size_t size = bqr_type_bytes(a->type);
  const void *from = to->sequence;
  if (b->data) {
    from = b->data + (size_t)(column - b->first) * b->pitch + (size_t)(row - b->row) * size;
  } else if (a->host) {
    from = (const char *)a->host + (size_t)column * a->pitch + (size_t)row * size;
  } else {
    int64_t reals = type_is_complex(a->type) ? 2 : 1;
    sequence_get(a->type, to->sequence, a->first + reals * (column * (int64_t)a->rows + row),
                 reals * to->count);
  }
  split(a->type, from, to->count, to);
  if (a->part != LOWER || row != column) return;
  if (to->re == from) to->re = memcpy(to->copy[0], from, (size_t)to->count * sizeof(double));
  to->copy[0][0] = 1, to->copy[1][0] = 0;
}

/* y += alpha x */
static void add_column(bool complex, number alpha, const chunk *x, vector y) {
  int i = x->row, count = x->count;
  wide_add_multiple(alpha.re, x->re, y.re + i, y.re_lo + i, count);
  if (!complex) return;
  wide_add_multiple(wide_negative(alpha.im), x->im, y.re + i, y.re_lo + i, count);
  wide_add_multiple(alpha.im, x->re, y.im + i, y.im_lo + i, count);
  wide_add_multiple(alpha.re, x->im, y.im + i, y.im_lo + i, count);
}

/* sum += x^H y */
static void add_dot(bool complex, const chunk *x, vector y, number *sum) {
  int i = x->row, count = x->count;
  sum->re = wide_add(sum->re, wide_dot(x->re, y.re + i, y.re_lo + i, count));
  if (!complex) return;
  sum->re = wide_add(sum->re, wide_dot(x->im, y.im + i, y.im_lo + i, count));
  sum->im = wide_add(sum->im, wide_dot(x->re, y.im + i, y.im_lo + i, count));
  sum->im = wide_add(sum->im, wide_negative(wide_dot(x->im, y.re + i, y.re_lo + i, count)));
}

/* A x, as vectors of `rows` >= a.rows. */
static panel product(memory_space *space, const matrix *a, panel x, int rows) {
  panel y = new_panel(rows);
  bool complex = type_is_complex(a->type);
  reader r = read_matrix(space, a, false);
  for (block b; next_block(&r, &b);) {
#pragma omp parallel for schedule(dynamic) if (b.rows > CHUNK)
    for (int row = 0; row < b.rows; row += CHUNK)
      for (int j = b.first; j < b.first + b.columns; j++) {
        chunk c;
        load(&b, j, row, &c);
        for (int v = 0; v < x.count; v++) add_column(complex, get(x.at[v], j), &c, y.at[v]);
      }
  }
  return y;
}

/* A^H x. */
static panel adjoint_product(memory_space *space, const matrix *a, panel x) {
  panel y = new_panel(a->columns);
  bool complex = type_is_complex(a->type);
  reader r = read_matrix(space, a, false);
  for (block b; next_block(&r, &b);) {
#pragma omp parallel for schedule(dynamic) if ((double)b.rows * b.columns > SERIAL)
    for (int j = b.first; j < b.first + b.columns; j++) {
      number sums[VECTORS] = {0};
      for (int row = 0; row < b.rows; row += CHUNK) {
        chunk c;
        load(&b, j, row, &c);
        for (int v = 0; v < VECTORS; v++) add_dot(complex, &c, x.at[v], &sums[v]);
      }
      for (int v = 0; v < VECTORS; v++) put(y.at[v], j, sums[v]);
    }
  }
  return y;
}

/* -tau x, or with the conjugate of tau. */
static number minus_tau(number tau, bool adjoint, number x) {
  wide im = adjoint ? wide_negative(tau.im) : tau.im;
  return (number){wide_add(wide_multiply(im, x.im), wide_negative(wide_multiply(tau.re, x.re))),
                  wide_negative(wide_add(wide_multiply(tau.re, x.im), wide_multiply(im, x.re)))};
}

/* y := H y for the block's reflectors, one after another. */
static void reflect_vector(const block *b, bool adjoint, vector tau, vector y) {
  bool complex = type_is_complex(b->of->type);
  chunk c;
  for (int i = 0; i < b->columns; i++) {
    int j = b->first + (adjoint ? i : b->columns - 1 - i);
    number sum = {{0, 0}, {0, 0}};
    for (int row = j; row < b->of->rows; row += CHUNK) {
      load(b, j, row, &c);
      add_dot(complex, &c, y, &sum);
    }
    number factor = minus_tau(get(tau, j), adjoint, sum);
    for (int row = j; row < b->of->rows; row += CHUNK) {
      load(b, j, row, &c);
      add_column(complex, factor, &c, y);
    }
  }
}

/* A thread for each vector: the reflectors follow one another, and sharing the rows of each took longer to
 * wait for the other threads than it saved. */
static void reflect_block(const block *b, bool adjoint, vector tau, panel y) {
#pragma omp parallel for schedule(static, 1) if ((double)b->rows * b->columns > SERIAL)
  for (int v = 0; v < y.count; v++) reflect_vector(b, adjoint, tau, y.at[v]);
}

/* ---- a member ---- */

static matrix part_of(const lab_probed *x, const lab_source *from, part part, int rows, int cols) {
  return (matrix){.type = x->type,
                  .part = part,
                  .rows = rows,
                  .columns = cols,
                  .pitch = (size_t)from->rows * bqr_type_bytes(x->type),
                  .data = from->data,
                  .host = from->host,
                  .first = from->first};
}

static matrix all_of(const lab_probed *x, const lab_source *from) {
  return part_of(x, from, ALL, from->rows, from->cols);
}

static int order(const lab_probed *x) { return bqr_min(x->m, x->n); }

/* tau, in every vector of the panel. */
static panel load_tau(const lab_probed *x, const lab_source *from) {
  matrix tau = part_of(x, from, ALL, order(x), 1);
  number one = {{1, 0}, {0, 0}};
  panel scalar = new_panel(1);
  for (int v = 0; v < VECTORS; v++) put(scalar.at[v], 0, one);
  panel y = product(x->space, &tau, scalar, order(x));
  free(scalar.memory);
  return y;
}

/* y := H_1 ... H_k y, or its adjoint. */
static void reflect(const lab_probed *x, const lab_source *factored, const lab_source *tau, bool adjoint,
                    panel y) {
  matrix v = part_of(x, factored, LOWER, x->m, order(x));
  panel factors = load_tau(x, tau);
  reader r = read_matrix(x->space, &v, !adjoint);
  for (block b; next_block(&r, &b);) reflect_block(&b, adjoint, factors.at[0], y);
  free(factors.memory);
}

static double norm(vector x, int rows) {
  double sum = 0;
  for (int i = 0; i < rows; i++) {
    double re = x.re[i] + x.re_lo[i], im = x.im[i] + x.im_lo[i];
    sum += re * re + im * im;
  }
  return sqrt(sum);
}

/* The largest of ||x - y|| / (||x|| dimension eps), a NaN above all; gives both up. */
static double relative(const lab_probed *s, panel x, panel y, int rows, int dimension) {
  double largest = 0;
  for (int v = 0; v < VECTORS; v++) {
    vector a = x.at[v], b = y.at[v];
    double length = norm(a, rows);
    for (int i = 0; i < rows; i++) {
      b.re[i] -= a.re[i], b.re_lo[i] -= a.re_lo[i];
      b.im[i] -= a.im[i], b.im_lo[i] -= a.im_lo[i];
    }
    double error = norm(b, rows) / (length * dimension * type_eps(s->type));
    if (isnan(error) || error > largest) largest = error;
  }
  free(x.memory);
  free(y.memory);
  return largest;
}

/* C B x, and B x is given up. */
static panel after(memory_space *space, const matrix *c, panel x, bool adjoint) {
  panel y = adjoint ? adjoint_product(space, c, x) : product(space, c, x, c->rows);
  free(x.memory);
  return y;
}

/* ||I - Q^H Q||, k columns of m rows. */
static double orthogonality(const lab_probed *x, const lab_source *from) {
  const int k = order(x);
  matrix q = part_of(x, from, ALL, x->m, k);
  panel y = random_panel(x->type, k);
  panel z = after(x->space, &q, product(x->space, &q, y, x->m), true);
  return relative(x, y, z, k, x->m) * sqrt(k);
}

static matrix r_of(const lab_probed *x) {
  return part_of(x, &x->now[BQR_R], x->strict_r ? ALL : UPPER, order(x), x->n);
}

/* ---- operations ---- */

/* V is read once for A x = Q R x and Q y, once for Q^H Q y. */
lab_ratios probe_geqrf(const lab_probed *s) {
  const lab_source *factored = &s->now[BQR_A], *tau = &s->now[BQR_TAU];
  const int m = s->m, n = s->n, k = order(s);
  matrix a = all_of(s, &s->before[BQR_A]), r = part_of(s, factored, UPPER, k, n);
  panel x = random_panel(s->type, n), y = random_panel(s->type, k);
  panel rx = product(s->space, &r, x, m), qy = extended(y, k, m);
  reflect(s, factored, tau, false, joined(rx, qy));
  lab_ratios ratios = {.residual = relative(s, product(s->space, &a, x, m), rx, m, bqr_max(m, n))};
  reflect(s, factored, tau, true, qy);
  ratios.orthogonality = relative(s, y, qy, k, m) * sqrt(k);
  free(x.memory);
  return ratios;
}

/* Both sides are about as long as x: no norm of a matrix to divide by. */
lab_ratios probe_orgqr(const lab_probed *s) {
  const int m = s->m, k = order(s);
  matrix q = part_of(s, &s->now[BQR_A], ALL, m, k);
  panel x = random_panel(s->type, k), expected = extended(x, k, m);
  reflect(s, &s->before[BQR_A], &s->before[BQR_TAU], false, expected);
  double residual = relative(s, expected, product(s->space, &q, x, m), m, m) * sqrt(k);
  free(x.memory);
  return (lab_ratios){residual, orthogonality(s, &s->now[BQR_A])};
}

lab_ratios probe_ormqr(const lab_probed *s) {
  const int m = s->m, n = s->n;
  matrix b = all_of(s, &s->before[BQR_C]), c = all_of(s, &s->now[BQR_C]);
  panel x = random_panel(s->type, n), expected = product(s->space, &b, x, m);
  reflect(s, &s->before[BQR_A], &s->before[BQR_TAU], true, expected);
  double residual = relative(s, expected, product(s->space, &c, x, m), m, bqr_max(m, n));
  free(x.memory);
  return (lab_ratios){residual, -1};
}

lab_ratios probe_qr(const lab_probed *s) {
  const int m = s->m, n = s->n, k = order(s);
  matrix a = all_of(s, &s->before[BQR_A]), q = part_of(s, &s->now[BQR_C], ALL, m, k), r = r_of(s);
  panel x = random_panel(s->type, n), y = after(s->space, &q, product(s->space, &r, x, k), false);
  double residual = relative(s, product(s->space, &a, x, m), y, m, bqr_max(m, n));
  free(x.memory);
  return (lab_ratios){residual, orthogonality(s, &s->now[BQR_C])};
}

lab_ratios probe_geqr_r(const lab_probed *s) {
  const int m = s->m, n = s->n;
  matrix a = all_of(s, &s->before[BQR_A]), r = r_of(s);
  panel x = random_panel(s->type, n), y = after(s->space, &r, product(s->space, &r, x, order(s)), true);
  double residual = relative(s, after(s->space, &a, product(s->space, &a, x, m), true), y, n, bqr_max(m, n));
  free(x.memory);
  return (lab_ratios){residual, -1};
}
