/* SPDX-License-Identifier: BSD-3-Clause */
/* The factorization, level by level, and the solution.
 *
 * A level's fronts, thousands of matrices of many sizes, are one batch for batchqr, with sizes in host arrays
 * and an array of addresses. b is a column of every front: so the call that factors them also applies Q^T to
 * b, and neither Q nor the fronts need to be kept. What the call leaves below R is never read: the upper
 * trapezoid below the pivots' rows goes to the parents, which are all in the next level, so that two levels'
 * fronts are all that is in memory at any time beside R.
 *
 * On the GPU all of this stays in device memory. R comes back at the end, for the back-substitution. */
#include "fronts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fronts are filled in slices of about so many columns; on the CPU only where there are not many fronts. */
enum { slice_cols = 32, many_fronts = 256 };

typedef struct solver {
  const fr_core *core;
  const fr_matrix *a; /* the core's */
  const fr_tree *tree;
  ex_backend backend;
  fr_report *report;

  fr_arrays x;
  double *fronts[2]; /* level l is in fronts[l % 2] */
  double *tau;
  double **front_address, **tau_address; /* arrays in the backend's memory, of all fronts */
  int *info;
  batchqr_plan_t *plans; /* one for each level */
  void *workspace;
  size_t workspace_bytes;

  double *r, *dropped; /* on the host */
} solver;

/* --- plans */

/* Adds the families of a plan's description, lines of "... type: family variant ...", that are not yet there.
 */
static void list_families(const char *description, char *families, size_t size) {
  for (const char *line = description; line; line = strchr(line, '\n')) {
    const char *name = strstr(line, ": ");
    if (!name) break;
    char word[64] = "";
    sscanf(name + 2, "%63s", word);
    line = name;
    if (strstr(families, word)) continue;
    size_t length = strlen(families);
    snprintf(families + length, size - length, "%s%s", length ? ", " : "", word);
  }
}

/* What the level's batch is; the arrays' members are in the order of the fronts. */
static void plan_level(solver *s, int l, int *m, int *n) {
  const fr_level *level = &s->tree->levels[l];
  for (int i = level->begin; i < level->end; i++) {
    m[i - level->begin] = s->tree->fronts[i].m;
    n[i - level->begin] = s->tree->fronts[i].n + 1;
  }
  batchqr_batch batch = {.type = BATCHQR_D,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = level->end - level->begin,
                         .m_array = m,
                         .n_array = n,
                         .a = {.layout = BATCHQR_POINTERS, .ld_array = m},
                         .tau = {.layout = BATCHQR_POINTERS}};
  ex_check(&s->backend, batchqr_plan_create(s->backend.handle, BATCHQR_GEQRF, &batch, &s->plans[l]),
           "plan of a level");
  const size_t bytes = batchqr_plan_workspace(s->plans[l]);
  if (bytes > s->workspace_bytes) s->workspace_bytes = bytes;
  list_families(batchqr_plan_describe(s->plans[l]), s->report->levels[l].families,
                sizeof s->report->levels[l].families);
}

static void make_plans(solver *s) {
  const fr_tree *t = s->tree;
  int *m = ex_alloc((size_t)t->count, sizeof *m), *n = ex_alloc((size_t)t->count, sizeof *n), largest = 0;
  s->plans = ex_zeros((size_t)t->num_levels, sizeof *s->plans);
  for (int l = 0; l < t->num_levels; l++) {
    plan_level(s, l, m, n);
    if (t->levels[l].end - t->levels[l].begin > t->levels[largest].end - t->levels[largest].begin)
      largest = l;
  }
  snprintf(s->report->largest, sizeof s->report->largest, "%s", batchqr_plan_describe(s->plans[largest]));
  s->workspace = ex_new_memory(&s->backend, s->workspace_bytes);
  free(m);
  free(n);
}

/* --- memory */

/* A's values, b, and where they go. */
static void upload_problem(solver *s) {
  const fr_matrix *a = s->a;
  const fr_tree *t = s->tree;
  const ex_backend *to = &s->backend;
  const size_t entries = (size_t)a->start[a->rows], rows = (size_t)t->num_rows;
  double *value = ex_alloc(entries, sizeof *value), *b = ex_alloc(rows, sizeof *b);
#pragma omp parallel for
  for (int r = 0; r < t->num_rows; r++) {
    const int i = t->row[r];
    b[r] = a->b[i];
    memcpy(value + t->start[r], a->value + a->start[i],
           (size_t)(a->start[i + 1] - a->start[i]) * sizeof *value);
  }
  s->x.fronts = ex_copy_to_backend(to, t->fronts, (size_t)t->count * sizeof *t->fronts);
  s->x.start = ex_copy_to_backend(to, t->start, (rows + 1) * sizeof *t->start);
  s->x.col = ex_copy_to_backend(to, t->col, entries * sizeof *t->col);
  s->x.place = ex_copy_to_backend(to, t->place, (size_t)t->rest_size * sizeof *t->place);
  s->x.value = ex_copy_to_backend(to, value, entries * sizeof *value);
  s->x.b = ex_copy_to_backend(to, b, rows * sizeof *b);
  if (!to->on_device) return;
  free(value);
  free(b);
}

static void make_addresses(solver *s) {
  const fr_tree *t = s->tree;
  const size_t bytes = (size_t)t->count * sizeof(double *);
  double **front = ex_alloc((size_t)t->count, sizeof *front), **tau = ex_alloc((size_t)t->count, sizeof *tau);
  for (int l = 0; l < t->num_levels; l++)
    for (int i = t->levels[l].begin; i < t->levels[l].end; i++) {
      front[i] = s->fronts[l % 2] + t->fronts[i].front_at;
      tau[i] = s->tau + t->fronts[i].tau_at;
    }
  s->front_address = ex_copy_to_backend(&s->backend, front, bytes);
  s->tau_address = ex_copy_to_backend(&s->backend, tau, bytes);
  if (!s->backend.on_device) return;
  free(front);
  free(tau);
}

static void allocate(solver *s) {
  const fr_tree *t = s->tree;
  const ex_backend *b = &s->backend;
  for (int parity = 0; parity < 2; parity++) {
    int64_t size = 0;
    for (int l = parity; l < t->num_levels; l += 2)
      if (t->levels[l].size > size) size = t->levels[l].size;
    s->fronts[parity] = ex_new_memory(b, (size_t)size * sizeof(double));
  }
  s->tau = ex_new_memory(b, (size_t)t->tau_size * sizeof(double));
  s->info = ex_new_memory(b, (size_t)t->count * sizeof(int));
  s->x.r = ex_new_memory(b, (size_t)t->r_size * sizeof(double));
  s->x.dropped = ex_new_memory(b, (size_t)t->count * sizeof(double));
  s->r = b->on_device ? ex_new_host_memory(b, (size_t)t->r_size * sizeof(double)) : s->x.r;
  s->dropped = b->on_device ? ex_alloc((size_t)t->count, sizeof(double)) : s->x.dropped;
}

static void release(solver *s) {
  const ex_backend *b = &s->backend;
  if (b->on_device) {
    ex_free_host_memory(b, s->r);
    free(s->dropped);
  }
  void *owned[] = {s->x.fronts, s->x.start, s->x.col, s->x.place}; /* on the CPU the tree's */
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) ex_free_copy(b, owned[i]);
  void *memory[] = {s->x.value, s->x.b,           s->x.r,         s->x.dropped, s->fronts[0], s->fronts[1],
                    s->tau,     s->front_address, s->tau_address, s->info,      s->workspace};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) ex_free_memory(b, memory[i]);
  for (int l = 0; l < s->tree->num_levels; l++) batchqr_plan_destroy(s->plans[l]);
  free(s->plans);
}

/* --- a level */

static int num_slices(const solver *s, const fr_level *level) {
  if (!s->backend.on_device && level->end - level->begin >= many_fronts) return 1;
  return level->most_cols / slice_cols + 1;
}

static fr_share slice(int item, int slices) { return (fr_share){0, 1, item % slices, slices}; }

static void host_assemble(const solver *s, const fr_level *level, double *to, const fr_level *children,
                          const double *from) {
  enum { page = 1 << 15 };
  const int64_t pages = (level->size + page - 1) / page;
  const int fronts = level->end - level->begin, slices = children ? num_slices(s, children) : 0;
  const int parts = children ? (children->end - children->begin) * slices : 0;
#pragma omp parallel
  {
#pragma omp for
    for (int64_t p = 0; p < pages; p++)
      memset(to + p * page, 0, (size_t)(p + 1 < pages ? page : level->size - p * page) * sizeof *to);
#pragma omp for schedule(dynamic, 16)
    for (int i = 0; i < fronts; i++) {
      const fr_front *f = &s->x.fronts[level->begin + i];
      fr_put_rows(&s->x, f, to + f->front_at, slice(0, 1));
    }
#pragma omp for schedule(dynamic, 16)
    for (int i = 0; i < parts; i++) {
      const fr_front *f = &s->x.fronts[children->begin + i / slices];
      if (f->parent >= 0)
        fr_put_contribution(&s->x, f, from + f->front_at, to + s->x.fronts[f->parent].front_at,
                            slice(i, slices));
    }
  }
}

static void host_keep_r(const solver *s, const fr_level *level, const double *from) {
  const int slices = num_slices(s, level), parts = (level->end - level->begin) * slices;
#pragma omp parallel for schedule(dynamic, 16)
  for (int i = 0; i < parts; i++) {
    const int f = level->begin + i / slices;
    fr_keep_r(&s->x, f, from + s->x.fronts[f].front_at, slice(i, slices));
  }
}

#if HAVE_CUDA
static void device_assemble(const solver *s, const fr_level *level, double *to, const fr_level *children,
                            const double *from) {
  ex_check_cuda(fr_device_put_rows(&s->x, level->begin, level->end, num_slices(s, level), to, level->size));
  if (children)
    ex_check_cuda(fr_device_put_contributions(&s->x, children->begin, children->end, num_slices(s, children),
                                              from, to));
}

static void device_keep_r(const solver *s, const fr_level *level, const double *from) {
  ex_check_cuda(fr_device_keep_r(&s->x, level->begin, level->end, num_slices(s, level), from));
}
#else
/* Never called: without CUDA no backend is on a device. */
#define device_assemble host_assemble
#define device_keep_r   host_keep_r
#endif

/* Adds the time since *start, and starts again. */
static void lap(const solver *s, double *start, double *total) {
  ex_wait_for_backend(&s->backend);
  const double now = ex_seconds();
  *total = now - *start;
  *start = now;
}

static void factor_level(solver *s, int l) {
  const fr_level *level = &s->tree->levels[l], *children = l > 0 ? level - 1 : NULL;
  double *fronts = s->fronts[l % 2], *from = s->fronts[(l + 1) % 2], start = ex_seconds();
  fr_level_report *report = &s->report->levels[l];
  (s->backend.on_device ? device_assemble : host_assemble)(s, level, fronts, children, from);
  lap(s, &start, &report->t_assemble);

  batchqr_operands operands = {.a = s->front_address + level->begin,
                               .tau = s->tau_address + level->begin,
                               .info = s->info + level->begin};
  ex_check(&s->backend,
           batchqr_plan_execute(s->backend.handle, s->plans[l], &operands, s->workspace, s->workspace_bytes),
           "batched QR");
  lap(s, &start, &report->t_qr);
  (s->backend.on_device ? device_keep_r : host_keep_r)(s, level, fronts);
  lap(s, &start, &report->t_keep);
}

static void factor(solver *s) {
  const double start = ex_seconds();
  double done = 0;
  for (int l = 0; l < s->tree->num_levels; l++) {
    factor_level(s, l);
    done += s->tree->levels[l].flops;
    ex_progress(done / s->tree->flops);
  }
  s->report->t_factor = ex_seconds() - start;
}

/* --- the solution */

static void check_finite(const solver *s) {
  const size_t count = (size_t)s->tree->count;
  int *info = s->backend.on_device ? ex_alloc(count, sizeof *info) : s->info;
  ex_copy_from_backend(&s->backend, info, s->info, count * sizeof *info);
  for (size_t i = 0; i < count; i++)
    if (info[i] < 0)
      ex_die(EX_BAD_INPUT, "%s: the numbers are too large: a front is not finite", s->a->source);
  if (s->backend.on_device) free(info);
}

/* R's diagonal against A's columns, whose norms it keeps but for what other columns explain. Returns the
 * pivot of a column that others explain; -1 if there is none. */
static int dependent_pivot(const solver *s, double *diagonal) {
  for (int i = 0; i < s->tree->count; i++) {
    const fr_front *f = &s->tree->fronts[i];
    for (int j = 0; j < f->k; j++) {
      *diagonal = s->r[f->r_at + j + (int64_t)j * f->k];
      if (!(fabs(*diagonal) > FR_RANK_TOLERANCE * s->core->norm[s->tree->order[f->first + j]]))
        return f->first + j;
    }
  }
  return -1;
}

static void check_rank(const solver *s) {
  double diagonal = 0;
  char how[96];
  const int pivot = dependent_pivot(s, &diagonal);
  snprintf(how, sizeof how, " to working precision (R's diagonal is %.1e)", diagonal);
  if (pivot >= 0) fr_refuse_rank(s->a, s->tree->order[pivot], how);
}

/* y := R11^-1 (c - R12 y_rest), where y are unknowns in the order of elimination. */
static void solve_front(const solver *s, const fr_front *f, double *y) {
  const double *r = s->r + f->r_at;
  const int *rest = s->tree->rest + f->rest_at;
  double *own = y + f->first;
  memcpy(own, r + (int64_t)f->n * f->k, (size_t)f->k * sizeof *own);
  for (int j = f->k; j < f->n; j++)
    for (int i = 0; i < f->k; i++) own[i] -= r[i + (int64_t)j * f->k] * y[rest[j - f->k]];
  for (int j = f->k - 1; j >= 0; j--) {
    own[j] /= r[j + (int64_t)j * f->k];
    for (int i = 0; i < j; i++) own[i] -= r[i + (int64_t)j * f->k] * own[j];
  }
}

static void solve_back(const solver *s, double *x) {
  const fr_tree *t = s->tree;
  double *y = ex_alloc((size_t)s->a->cols, sizeof *y);
  for (int l = t->num_levels - 1; l >= 0; l--) {
#pragma omp parallel for schedule(dynamic, 16)
    for (int i = t->levels[l].begin; i < t->levels[l].end; i++) solve_front(s, &t->fronts[i], y);
  }
  for (int p = 0; p < s->a->cols; p++) x[t->order[p]] = y[p];
  free(y);
}

/* What is left of b where no column is: in the fronts, and in rows of A without an entry. */
static double dropped_norm(const solver *s) {
  double norm = fr_norm(s->tree->count, s->dropped);
  for (int i = 0; i < s->a->rows; i++)
    if (s->a->start[i] == s->a->start[i + 1]) norm = hypot(norm, s->a->b[i]);
  return norm;
}

void fr_solve(const fr_core *core, const fr_tree *tree, const ex_backend *backend, int repeat, bool quiet,
              double *x, fr_report *report) {
  solver s = {.core = core, .a = &core->matrix, .tree = tree, .backend = *backend, .report = report};
  *report = (fr_report){.levels = ex_zeros((size_t)tree->num_levels, sizeof *report->levels)};
  ex_progress_begin("memory, plans", quiet);
  snprintf(report->backend, sizeof report->backend, "%s", batchqr_describe(s.backend.handle));
  allocate(&s);
  upload_problem(&s);
  make_addresses(&s);
  make_plans(&s);
  report->t_plan = ex_progress_end();
  report->workspace = (double)s.workspace_bytes;

  for (int k = 0; k < repeat; k++) {
    ex_progress_begin("factorization", quiet);
    factor(&s);
    ex_progress_end();
  }
  check_finite(&s);
  double start = ex_seconds();
  ex_copy_from_backend(&s.backend, s.r, s.x.r, (size_t)tree->r_size * sizeof *s.r);
  ex_copy_from_backend(&s.backend, s.dropped, s.x.dropped, (size_t)tree->count * sizeof *s.dropped);
  report->t_fetch = ex_seconds() - start;
  check_rank(&s);
  start = ex_seconds();
  solve_back(&s, x);
  report->t_back = ex_seconds() - start;
  report->dropped = dropped_norm(&s);
  release(&s);
}
