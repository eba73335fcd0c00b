/* SPDX-License-Identifier: BSD-3-Clause */
/* Test ratios of members that are too large for an exact check: every product with random vectors costs one
 * pass over the data, in a wider precision (wide.h).
 *
 * For a normally distributed x, ||E x|| / ||x|| is on average ||E||_F / sqrt(n). So
 * ||A x - Q R x|| / (||A x|| max(m,n) eps) estimates the ratio of the Frobenius norms, and
 * sqrt(k) ||Q^H Q y - y|| / (||y|| m eps) that of I - Q^H Q: for errors without structure these agree with
 * LAPACK's ratios of 1-norms within a small factor. An error anywhere in the member shows.
 */
#include "bench.h"
#include "types.h"
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
  panel p = {.rows = rows, .count = VECTORS, .memory = calloc(4 * VECTORS * length + 1, sizeof(double))};
  if (!p.memory) bench_die("out of memory for checking results");
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
  double *numbers = malloc(2 * (size_t)rows * sizeof *numbers + 1);
  if (!numbers) bench_die("out of memory for checking results");
  for (int v = 0; v < VECTORS; v++) {
    bench_data_get(BATCHQR_D, numbers, 7654321 * (int64_t)(v + 1), 2 * (int64_t)rows);
    for (int i = 0; i < rows; i++) {
      x.at[v].re[i] = numbers[2 * i];
      if (bench_is_complex(type)) x.at[v].im[i] = numbers[2 * i + 1];
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

/* Dense, in the target's memory, the host's, or a stretch of the input sequence. */
typedef struct matrix {
  batchqr_type type;
  part part;
  int rows, columns;
  size_t pitch;     /* bytes */
  const void *data; /* the target's memory, or NULL */
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
  bench_target *target;
  const matrix *a;
  bool backwards;
  int width, blocks, next;
} reader;

static reader read_matrix(bench_target *target, const matrix *a, bool backwards) {
  reader r = {.target = target, .a = a, .backwards = backwards};
  size_t fit = BLOCK_BYTES / (a->pitch + 1);
  r.width = fit > (size_t)a->columns ? a->columns : fit ? (int)fit : 1;
  r.blocks = (a->columns + r.width - 1) / r.width;
  return r;
}

static block describe(const reader *r, int index) {
  const matrix *a = r->a;
  int first = (r->backwards ? r->blocks - 1 - index : index) * r->width;
  int last = bench_min(first + r->width, a->columns);
  int row = a->part == LOWER ? first : 0, end = a->part == UPPER ? bench_min(last, a->rows) : a->rows;
  return (block){.of = a, .first = first, .columns = last - first, .row = row, .rows = end - row};
}

static void start(const reader *r, int index) {
  if (!r->a->data || index >= r->blocks) return;
  block b = describe(r, index);
  size_t size = bench_type_size(r->a->type);
  bench_columns columns = {.data = (const char *)r->a->data + (size_t)b.first * r->a->pitch +
                                   (size_t)b.row * size,
                           .pitch = r->a->pitch,
                           .bytes = (size_t)b.rows * size,
                           .count = b.columns};
  r->target->ops->fetch(r->target, index % 2, &columns);
}

static bool next_block(reader *r, block *b) {
  if (r->next == r->blocks) return false;
  if (r->next == 0) start(r, 0);
  *b = describe(r, r->next);
  if (r->a->data) {
    bench_columns columns = r->target->ops->fetched(r->target, r->next % 2);
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
  int end = bench_min(row + CHUNK, a->part == UPPER ? bench_min(column + 1, a->rows) : a->rows);
  to->row = row, to->count = end > row ? end - row : 0;
  size_t size = bench_type_size(a->type);
  const void *from = to->sequence;
  if (b->data) {
    from = b->data + (size_t)(column - b->first) * b->pitch + (size_t)(row - b->row) * size;
  } else if (a->host) {
    from = (const char *)a->host + (size_t)column * a->pitch + (size_t)row * size;
  } else {
    int64_t reals = bench_is_complex(a->type) ? 2 : 1;
    bench_data_get(a->type, to->sequence, a->first + reals * (column * (int64_t)a->rows + row),
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
static panel product(bench_target *target, const matrix *a, panel x, int rows) {
  panel y = new_panel(rows);
  bool complex = bench_is_complex(a->type);
  reader r = read_matrix(target, a, false);
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
static panel adjoint_product(bench_target *target, const matrix *a, panel x) {
  panel y = new_panel(a->columns);
  bool complex = bench_is_complex(a->type);
  reader r = read_matrix(target, a, false);
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
  bool complex = bench_is_complex(b->of->type);
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

typedef struct member {
  const bench_job *job;
  batchqr_type type;
  int64_t index;
  int m, n, k;
  panel tau;
} member;

/* An operand in the target's memory, of which each member has so many elements. */
static matrix operand(const member *s, const void *all, int64_t elements, part part, int rows, int columns,
                      int ld) {
  size_t size = bench_type_size(s->type), offset = (size_t)(s->index * elements) * size;
  return (matrix){s->type, part, rows, columns, (size_t)ld * size, (const char *)all + offset, NULL, 0};
}

/* A as it was given (first = 0), or C. */
static matrix input(const member *s, int64_t first) {
  int64_t reals = s->job->size_a * (bench_is_complex(s->type) ? 2 : 1);
  size_t pitch = (size_t)s->m * bench_type_size(s->type);
  const void *host = first == 0 ? s->job->member : NULL;
  return (matrix){s->type, ALL, s->m, s->n, pitch, NULL, host, first + s->index * reals};
}

static void take_tau(member *s) {
  matrix tau = operand(s, s->job->tau, s->k, ALL, s->k, 1, s->k);
  number one = {{1, 0}, {0, 0}};
  panel x = new_panel(1);
  for (int v = 0; v < VECTORS; v++) put(x.at[v], 0, one);
  s->tau = product(s->job->target, &tau, x, s->k);
  free(x.memory);
}

/* y := H_1 ... H_k y, or its adjoint. */
static void reflect(const member *s, const void *factored, bool adjoint, panel y) {
  matrix v = operand(s, factored, s->job->size_a, LOWER, s->m, s->k, s->m);
  reader r = read_matrix(s->job->target, &v, !adjoint);
  for (block b; next_block(&r, &b);) reflect_block(&b, adjoint, s->tau.at[0], y);
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
static double relative(const member *s, panel x, panel y, int rows, int dimension) {
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
static panel after(bench_target *target, const matrix *c, panel x, bool adjoint) {
  panel y = adjoint ? adjoint_product(target, c, x) : product(target, c, x, c->rows);
  free(x.memory);
  return y;
}

static double residual(const member *s, bool strict_r) {
  const bench_job *job = s->job;
  bench_target *target = job->target;
  int m = s->m, n = s->n, k = s->k, dimension = m > n ? m : n;
  matrix a = input(s, 0), q = operand(s, job->a, job->size_a, ALL, m, k, m), r = {0}, c;
  if (job->r) r = operand(s, job->r, job->size_r, strict_r ? ALL : UPPER, k, n, k);
  panel x = random_panel(s->type, n), expected, y;
  double ratio;
  switch (job->what.routine) {
  case BATCHQR_QR:
    y = after(target, &q, product(target, &r, x, k), false);
    ratio = relative(s, product(target, &a, x, m), y, m, dimension);
    break;
  case BATCHQR_GEQR_R:
    y = after(target, &r, product(target, &r, x, k), true);
    ratio = relative(s, after(target, &a, product(target, &a, x, m), true), y, n, dimension);
    break;
  case BATCHQR_ORGQR: /* both sides are about as long as x: no norm of a matrix to divide by */
    expected = extended(x, k, m);
    reflect(s, job->a0, false, expected);
    ratio = relative(s, expected, product(target, &q, x, m), m, m) * sqrt(k);
    break;
  case BATCHQR_ORMQR:
    a = input(s, BENCH_C_FIRST);
    c = operand(s, job->c, job->size_a, ALL, m, n, m);
    expected = product(target, &a, x, m);
    reflect(s, job->a0, true, expected);
    ratio = relative(s, expected, product(target, &c, x, m), m, dimension);
    break;
  default:
    bench_die("no such routine is probed");
  }
  free(x.memory);
  return ratio;
}

static double orthogonality(const member *s) {
  const bench_job *job = s->job;
  matrix q = operand(s, job->a, job->size_a, ALL, s->m, s->k, s->m);
  panel y = random_panel(s->type, s->k);
  panel z = after(job->target, &q, product(job->target, &q, y, s->m), true);
  return relative(s, y, z, s->k, s->m) * sqrt(s->k);
}

/* Both ratios of geqrf: V is read once for A x = Q R x and Q y, once for Q^H Q y. */
static bench_errors factorization(const member *s) {
  const bench_job *job = s->job;
  int m = s->m, n = s->n, k = s->k, dimension = m > n ? m : n;
  matrix a = input(s, 0), r = operand(s, job->a, job->size_a, UPPER, k, n, m);
  panel x = random_panel(s->type, n), y = random_panel(s->type, k);
  panel rx = product(job->target, &r, x, m), qy = extended(y, k, m);
  reflect(s, job->a, false, joined(rx, qy));
  bench_errors errors = {.residual = relative(s, product(job->target, &a, x, m), rx, m, dimension)};
  reflect(s, job->a, true, qy);
  errors.orthogonality = relative(s, y, qy, k, m) * sqrt(k);
  free(x.memory);
  return errors;
}

bench_errors bench_probe(const bench_job *job, int64_t index, bool strict_r) {
  batchqr_op routine = job->what.routine;
  bool has_q = routine == BATCHQR_QR || routine == BATCHQR_ORGQR;
  member s = {job, job->what.type, index, job->what.m, job->what.n, job->k, {0}};
  take_tau(&s);
  bench_errors errors = {-1, -1};
  if (routine == BATCHQR_GEQRF) errors = factorization(&s);
  if (routine != BATCHQR_GEQRF) errors.residual = residual(&s, strict_r);
  if (has_q) errors.orthogonality = orthogonality(&s);
  free(s.tau.memory);
  return errors;
}
