/* SPDX-License-Identifier: BSD-3-Clause */
/* The factorization, level by level.
 *
 * A level's fronts, thousands of matrices of many sizes, are one batch for batchqr, with sizes in host arrays
 * and an array of addresses. b is a column of every front: so the call that factors them also applies Q^T to
 * b, and neither Q nor the fronts need to be kept. What the call leaves below R is never read: the upper
 * trapezoid below the pivots' rows goes to the parents, which are all in the next level, so that two levels'
 * fronts are all that is in memory at any time beside R.
 *
 * Plans and memory are made once, for ranks that are full. Only where pivots turn out to depend on others
 * (fronts_rank.c) do fronts pass on more rows than that, and the next level is laid out anew.
 *
 * On the GPU all of this stays in device memory. A level's smallest entries of R's diagonal come back, which
 * tell whether ranks are full, and at the end R, for the back-substitution. */
#include "fronts_solver.h"

#include <stdlib.h>
#include <string.h>

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

/* Of geqrf for the level's fronts, and of the range of R's diagonal in their pivots' columns. Returns the
 * bytes of workspace that they need. */
static size_t plan_level(fr_solver *s, int l) {
  const fr_level *level = &s->tree->levels[l];
  const size_t count = (size_t)(level->end - level->begin);
  fr_level_report *report = &s->report->levels[l];
  int *m = ex_alloc(count, sizeof *m), *n = ex_alloc(count, sizeof *n);
  batchqr_batch batch = {.type = BATCHQR_D,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = (int64_t)count,
                         .m_array = m,
                         .n_array = n,
                         .a = {.layout = BATCHQR_POINTERS, .ld_array = m},
                         .tau = {.layout = BATCHQR_POINTERS},
                         .range = {.stride = 2}};
  batchqr_plan_destroy(s->factor_plans[l]);
  batchqr_plan_destroy(s->range_plans[l]);
  for (size_t i = 0; i < count; i++) {
    m[i] = s->tree->fronts[level->begin + (int)i].m;
    n[i] = s->tree->fronts[level->begin + (int)i].n + 1;
  }
  ex_check(&s->backend, batchqr_plan_create(s->backend.handle, BATCHQR_GEQRF, &batch, &s->factor_plans[l]),
           "plan of a level");
  for (size_t i = 0; i < count; i++) n[i] = s->tree->fronts[level->begin + (int)i].k;
  ex_check(&s->backend, batchqr_plan_create(s->backend.handle, BATCHQR_R_RANGE, &batch, &s->range_plans[l]),
           "plan of a level's ranks");
  free(m);
  free(n);
  report->families[0] = 0;
  list_families(batchqr_plan_describe(s->factor_plans[l]), report->families, sizeof report->families);
  const size_t factor = batchqr_plan_workspace(s->factor_plans[l]);
  const size_t range = batchqr_plan_workspace(s->range_plans[l]);
  return factor > range ? factor : range;
}

/* --- memory */

/* A's values, b, and where they go. */
static void upload_problem(fr_solver *s) {
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

/* For the fronts and the tau of level l; what was there is lost. */
static void make_room(fr_solver *s, int l) {
  const fr_level *level = &s->tree->levels[l];
  const int parity = l % 2;
  if (level->size > s->fronts_size[parity]) {
    ex_free_memory(&s->backend, s->fronts[parity]);
    s->fronts_size[parity] = level->size;
    s->fronts[parity] = ex_new_memory(&s->backend, (size_t)level->size * sizeof(double));
  }
  if (level->tau_size > s->tau_size) {
    ex_free_memory(&s->backend, s->tau);
    s->tau_size = level->tau_size;
    s->tau = ex_new_memory(&s->backend, (size_t)level->tau_size * sizeof(double));
  }
}

static void make_workspace(fr_solver *s, size_t bytes) {
  if (bytes <= s->workspace_bytes) return;
  ex_free_memory(&s->backend, s->workspace);
  s->workspace_bytes = bytes;
  s->workspace = ex_new_memory(&s->backend, bytes);
}

static void set_addresses(fr_solver *s) {
  const fr_tree *t = s->tree;
  const size_t bytes = (size_t)t->count * sizeof(double *);
  for (int l = 0; l < t->num_levels; l++)
    for (int i = t->levels[l].begin; i < t->levels[l].end; i++) {
      s->front_at[i] = s->fronts[l % 2] + t->fronts[i].front_at;
      s->tau_at[i] = s->tau + t->fronts[i].tau_at;
    }
  ex_update_copy(&s->backend, s->front_address, s->front_at, bytes);
  ex_update_copy(&s->backend, s->tau_address, s->tau_at, bytes);
}

static void update_fronts(const fr_solver *s) {
  ex_update_copy(&s->backend, s->x.fronts, s->tree->fronts, (size_t)s->tree->count * sizeof *s->x.fronts);
}

/* Results have places of their own on the host where the backend is not there. */
static void *place_on_host(const ex_backend *b, void *memory, size_t bytes) {
  return b->on_device ? ex_new_host_memory(b, bytes) : memory;
}

static void allocate(fr_solver *s) {
  const fr_tree *t = s->tree;
  const ex_backend *b = &s->backend;
  const size_t count = (size_t)t->count, cols = (size_t)s->a->cols,
               r_bytes = (size_t)t->r_size * sizeof(double);
  s->factor_plans = ex_zeros((size_t)t->num_levels, sizeof *s->factor_plans);
  s->range_plans = ex_zeros((size_t)t->num_levels, sizeof *s->range_plans);
  s->info = ex_new_memory(b, count * sizeof(int));
  s->x.r = ex_new_memory(b, r_bytes);
  s->x.dropped = ex_new_memory(b, count * sizeof(double));
  s->range = ex_new_memory(b, 2 * count * sizeof(double));
  s->rank = ex_new_memory(b, count * sizeof(int));
  s->jpvt = ex_new_memory(b, cols * sizeof(int));
  s->host_r = place_on_host(b, s->x.r, r_bytes);
  s->host_dropped = place_on_host(b, s->x.dropped, count * sizeof(double));
  s->host_range = place_on_host(b, s->range, 2 * count * sizeof(double));
  s->host_rank = place_on_host(b, s->rank, count * sizeof(int));
  s->host_jpvt = place_on_host(b, s->jpvt, cols * sizeof(int));
  s->front_at = ex_alloc(count, sizeof *s->front_at);
  s->tau_at = ex_alloc(count, sizeof *s->tau_at);
  s->front_address = ex_copy_to_backend(b, s->front_at, count * sizeof *s->front_at);
  s->tau_address = ex_copy_to_backend(b, s->tau_at, count * sizeof *s->tau_at);
}

static void release(fr_solver *s) {
  const ex_backend *b = &s->backend;
  void *on_host[] = {s->host_r, s->host_dropped, s->host_range, s->host_rank, s->host_jpvt};
  for (size_t i = 0; b->on_device && i < sizeof on_host / sizeof *on_host; i++)
    ex_free_host_memory(b, on_host[i]);
  void *copies[] = {s->x.fronts, s->x.start, s->x.col, s->x.place, s->front_address, s->tau_address};
  for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) ex_free_copy(b, copies[i]);
  void *memory[] = {s->x.value, s->x.b,  s->x.r,  s->x.dropped, s->fronts[0], s->fronts[1],
                    s->tau,     s->info, s->rank, s->jpvt,      s->range,     s->workspace};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) ex_free_memory(b, memory[i]);
  for (int l = 0; l < s->tree->num_levels; l++) {
    batchqr_plan_destroy(s->factor_plans[l]);
    batchqr_plan_destroy(s->range_plans[l]);
  }
  free(s->factor_plans);
  free(s->range_plans);
  free(s->front_at);
  free(s->tau_at);
}

/* --- what is made once */

static void prepare(fr_solver *s) {
  const fr_tree *t = s->tree;
  size_t workspace = 0;
  int largest = 0;
  allocate(s);
  upload_problem(s);
  for (int l = 0; l < t->num_levels; l++) {
    const size_t bytes = plan_level(s, l);
    make_room(s, l);
    if (bytes > workspace) workspace = bytes;
    if (t->levels[l].end - t->levels[l].begin > t->levels[largest].end - t->levels[largest].begin)
      largest = l;
  }
  make_workspace(s, workspace);
  set_addresses(s);
  snprintf(s->report->largest, sizeof s->report->largest, "%s",
           batchqr_plan_describe(s->factor_plans[largest]));
}

/* ... and again for level l, when the level before passes on other numbers of rows. */
static void lay_out_level(fr_solver *s, int l) {
  fr_size_level(s->tree, l);
  const double bytes = fr_bytes(s->a, s->tree);
  if (bytes > s->memory)
    ex_die(EX_FAILED,
           "columns that depend on others make fronts larger: the factorization needs %.1f MB, and may have "
           "%.1f: see --memory and --ordering",
           bytes / 1e6, s->memory / 1e6);
  make_room(s, l);
  set_addresses(s);
  make_workspace(s, plan_level(s, l));
}

/* --- a level */

/* Adds the time since *start, and starts again. */
static void lap(const fr_solver *s, double *start, double *total) {
  ex_wait_for_backend(&s->backend);
  const double now = ex_seconds();
  *total = now - *start;
  *start = now;
}

static void factor_level(fr_solver *s, int l) {
  const fr_level *level = &s->tree->levels[l];
  fr_level_report *report = &s->report->levels[l];
  double start = ex_seconds();
  fr_fill_level(s, l);
  lap(s, &start, &report->t_fill);

  batchqr_operands operands = {.a = s->front_address + level->begin,
                               .tau = s->tau_address + level->begin,
                               .info = s->info + level->begin};
  ex_check(&s->backend,
           batchqr_plan_execute(s->backend.handle, s->factor_plans[l], &operands, s->workspace,
                                s->workspace_bytes),
           "batched QR");
  lap(s, &start, &report->t_qr);
  const fr_change change = fr_settle_ranks(s, l);
  if (change == FR_ROWS) lay_out_level(s, l + 1);
  if (change != FR_SAME) update_fronts(s);
  lap(s, &start, &report->t_rank);
  fr_keep_level(s, l);
  lap(s, &start, &report->t_keep);
}

static void factor(fr_solver *s) {
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

static void check_finite(const fr_solver *s) {
  const size_t count = (size_t)s->tree->count;
  int *info = s->backend.on_device ? ex_alloc(count, sizeof *info) : s->info;
  ex_copy_from_backend(&s->backend, info, s->info, count * sizeof *info);
  for (size_t i = 0; i < count; i++)
    if (info[i] < 0)
      ex_die(EX_BAD_INPUT, "%s: the numbers are too large: a front is not finite", s->a->source);
  if (s->backend.on_device) free(info);
}

static void fetch(const fr_solver *s) {
  const fr_tree *t = s->tree;
  const ex_backend *b = &s->backend;
  ex_copy_from_backend(b, s->host_r, s->x.r, (size_t)t->r_size * sizeof *s->host_r);
  ex_copy_from_backend(b, s->host_dropped, s->x.dropped, (size_t)t->count * sizeof *s->host_dropped);
  ex_copy_from_backend(b, s->host_jpvt, s->jpvt, (size_t)s->a->cols * sizeof *s->host_jpvt);
}

void fr_solve(const fr_core *core, fr_tree *tree, const ex_backend *backend, const fr_request *request,
              double *x, fr_report *report) {
  fr_solver s = {.core = core,
                 .a = &core->matrix,
                 .tree = tree,
                 .backend = *backend,
                 .report = report,
                 .memory = request->memory};
  *report = (fr_report){.levels = ex_zeros((size_t)tree->num_levels, sizeof *report->levels)};
  ex_progress_begin("memory, plans", request->quiet);
  snprintf(report->backend, sizeof report->backend, "%s", batchqr_describe(s.backend.handle));
  prepare(&s);
  report->t_plan = ex_progress_end();

  for (int k = 0; k < request->repeat; k++) {
    ex_progress_begin("factorization", request->quiet);
    factor(&s);
    ex_progress_end();
  }
  report->workspace = (double)s.workspace_bytes;
  check_finite(&s);
  double start = ex_seconds();
  fetch(&s);
  report->t_fetch = ex_seconds() - start;
  start = ex_seconds();
  fr_solve_back(&s, x);
  report->t_back = ex_seconds() - start;
  release(&s);
}
