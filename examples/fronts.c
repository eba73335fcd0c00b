/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves sparse least-squares problems, min ||A x - b||, by multifrontal QR factorization.
 *
 * The columns are put into an order that keeps R sparse. Rows of R with the same columns are computed
 * together, from a dense matrix of few rows and columns: a front. Fronts form a tree, and all fronts of a
 * level of the tree are independent of each other: they are one batch of QR factorizations. That step is what
 * batchqr is for, and fronts_solve.c is the file to read for it. Columns that depend on others are found on
 * the way, as fronts_rank.c says. The method is that of Matstoms (Sparse QR factorization in MATLAB, ACM TOMS
 * 20, 1994) and of SuiteSparseQR (Davis: Algorithm 915, ACM TOMS 38, 2011), which it is compared to on
 * request. */
#include "fronts.h"

#include <math.h>
#include <stdlib.h>

const char ex_program[] = "fronts";

/* --- options */

typedef struct options {
  int dimensions, size;
  const char *file, *rhs, *solution, *svg;
  double noise, overhead, memory, tolerance; /* tolerance < 0: the usual one */
  fr_ordering ordering;
  batchqr_backend backend;
  int threads, repeat;
  bool check, compare, quiet;
} options;

static const char usage[] =
    "usage: fronts [options]\n"
    "\n"
    "Solves sparse least-squares problems, min ||A x - b||, by multifrontal QR factorization.\n"
    "\n"
    "  --grid 2d|3d     measurements of a field on a grid (3d)\n"
    "  --size N         points along each axis of the grid (24; 2d: 200)\n"
    "  --file FILE      read A from a Matrix Market file instead: coordinate, real, integer or pattern, "
    "general\n"
    "                   or symmetric; entries at the same place are added up\n"
    "  --rhs FILE       read b from a Matrix Market array; without it b is A times a known x and an error\n"
    "  --noise E        size of that error (0.01)\n"
    "  --ordering O     of the columns: natural, nd (nested dissection, grids alone), or SuiteSparse's "
    "colamd,\n"
    "                   amd, metis; auto is nd for grids, metis for files\n"
    "  --overhead N     what a front costs beside its factorization, in floating-point operations (1000): "
    "two\n"
    "                   fronts are made one where that costs less\n"
    "  --tolerance T    columns whose distance from those before them is not larger depend on them, and get "
    "a\n"
    "                   zero in x (20 (rows + columns) eps times the norm of A's longest column)\n"
    "  --backend B      auto, cpu or cuda: where the fronts are (auto)\n"
    "  --threads N      CPU threads (all)\n"
    "  --memory MB      give up when the fronts and R need more (three quarters of what is available)\n"
    "  --repeat N       factor N times, as for new numbers in the same places, and time the last one (1)\n"
    "  --solution FILE  write x as a Matrix Market array\n"
    "  --svg FILE       picture of the fronts (fronts.svg); - for none\n"
    "  --check          also solve the dense problem with LAPACK\n"
    "  --compare        also solve it with SuiteSparseQR\n"
    "  --quiet          print the result alone\n"
    "  --help           print this\n"
    "\n"
    "Exit status: 0 the solution is accurate, 1 it is not, 2 wrong usage or a bad file, 3 a failure of the\n"
    "machine, such as no memory.\n";

static options parse_options(int argc, char **argv) {
  static const char *const grids[] = {"2d", "3d", NULL};
  int grid = -1, ordering = FR_AUTO;
  options o = {.noise = 0.01, .overhead = 1e3, .tolerance = -1, .repeat = 1, .svg = "fronts.svg"};
  const ex_option known[] = {{"grid", EX_NAME, .to = &grid, .names = grids},
                             {"size", EX_INT, .to = &o.size, .least = 1, .most = 20000},
                             {"file", EX_TEXT, .to = &o.file},
                             {"rhs", EX_TEXT, .to = &o.rhs},
                             {"noise", EX_DOUBLE, .to = &o.noise, .least = 0, .most = 1e6},
                             {"ordering", EX_NAME, .to = &ordering, .names = fr_ordering_names},
                             {"overhead", EX_DOUBLE, .to = &o.overhead, .least = 0, .most = 1e12},
                             {"tolerance", EX_DOUBLE, .to = &o.tolerance, .least = 0, .most = DBL_MAX},
                             {"backend", EX_BACKEND, .to = &o.backend},
                             {"threads", EX_INT, .to = &o.threads, .least = 1, .most = 4096},
                             {"memory", EX_DOUBLE, .to = &o.memory, .least = 0.001, .most = 1e9},
                             {"repeat", EX_INT, .to = &o.repeat, .least = 1, .most = 1000},
                             {"solution", EX_TEXT, .to = &o.solution},
                             {"svg", EX_PICTURE, .to = &o.svg},
                             {"check", EX_FLAG, .to = &o.check},
                             {"compare", EX_FLAG, .to = &o.compare},
                             {"quiet", EX_FLAG, .to = &o.quiet},
                             {.name = NULL}};
  ex_parse_options(argc, argv, usage, known);
  o.ordering = (fr_ordering)ordering;
  o.memory *= 1e6;
  if (o.file && (grid >= 0 || o.size)) ex_die(EX_BAD_INPUT, "--file makes no sense with --grid and --size");
  if (o.rhs && !o.file) ex_die(EX_BAD_INPUT, "--rhs needs --file");
  if (o.compare && !HAVE_SUITESPARSE)
    ex_die(EX_BAD_INPUT, "--compare needs SuiteSparse, which was not there when this program was built");
  o.dimensions = grid == 0 ? 2 : 3;
  if (!o.size) o.size = o.dimensions == 3 ? 24 : 200;
  if (pow(o.size, o.dimensions) > 4e8)
    ex_die(EX_BAD_INPUT, "--size %d: a grid of more than 4e8 points", o.size);
  return o;
}

/* --- the report */

typedef struct result {
  fr_core core;
  fr_tree tree;
  fr_report report;
  fr_ordering ordering;
  double memory; /* that the factorization may have */
  double t_problem, t_order, t_tree;
  double tolerance;
  int rank;
  double norm_a, norm_x, norm_r, norm_g; /* of A, x, r = A x - b, A^T r */
  double error;                          /* of x, where the true one is known */
} result;

static double megabytes(double bytes) { return bytes / 1e6; }

static double rate(double flops, double seconds) { return seconds > 0 ? flops / seconds * 1e-9 : 0; }

static void print_levels(const result *r) {
  printf("\nLevels, from the leaves to the root\n  %5s %8s %13s %9s %10s %10s %10s %10s  %s\n", "level",
         "fronts", "largest", "GFLOP", "filling/ms", "QR/ms", "GFLOP/s", "ranks/ms", "families");
  for (int l = 0; l < r->tree.num_levels; l++) {
    const fr_level *level = &r->tree.levels[l];
    const fr_level_report *times = &r->report.levels[l];
    int m = 0, n = 0;
    for (int i = level->begin; i < level->end; i++) {
      if (r->tree.fronts[i].m > m) m = r->tree.fronts[i].m;
      if (r->tree.fronts[i].n + 1 > n) n = r->tree.fronts[i].n + 1;
    }
    char size[32];
    snprintf(size, sizeof size, "%d x %d", m, n);
    printf("  %5d %8d %13s %9.3f %10.2f %10.2f %10.1f %10.2f  %s\n", l + 1, level->end - level->begin, size,
           level->flops * 1e-9, 1e3 * (times->t_fill + times->t_keep), 1e3 * times->t_qr,
           rate(level->flops, times->t_qr), 1e3 * times->t_rank, times->families);
  }
}

static void print_times(const result *r) {
  double qr = 0, ranks = 0, filling = 0;
  for (int l = 0; l < r->tree.num_levels; l++) {
    qr += r->report.levels[l].t_qr;
    ranks += r->report.levels[l].t_rank;
    filling += r->report.levels[l].t_fill + r->report.levels[l].t_keep;
  }
  char note[64];
  printf("\nTime\n");
  ex_print_time("problem", r->t_problem, "");
  ex_print_time("order of the columns", r->t_order, "");
  ex_print_time("tree of fronts", r->t_tree, "");
  ex_print_time("memory, plans", r->report.t_plan, "");
  ex_print_time("fronts: filled, rows of R kept", filling, "");
  snprintf(note, sizeof note, " %9.1f GFLOP/s", rate(r->tree.flops, qr));
  ex_print_time("batched QR", qr, note);
  ex_print_time("ranks", ranks, "");
  snprintf(note, sizeof note, " %9.1f GFLOP/s", rate(r->tree.flops, r->report.t_factor));
  ex_print_time("factorization (all three)", r->report.t_factor, note);
  if (r->report.t_fetch > 0.0005) ex_print_time("copy of R from the GPU", r->report.t_fetch, "");
  ex_print_time("back-substitution", r->report.t_back, "");
}

static void print_memory(const result *r) {
  const fr_tree *t = &r->tree;
  int64_t level = 0;
  for (int l = 0; l < t->num_levels; l++)
    if (t->levels[l].size > level) level = t->levels[l].size;
  char zeros[64], limit[32];
  snprintf(zeros, sizeof zeros, "   %.1f %% of it zeros for the sake of larger fronts",
           100.0 * t->zeros / t->r_size);
  snprintf(limit, sizeof limit, "   limit %.0f", megabytes(r->memory));
  printf("\nMemory, MB\n");
  ex_print_memory("R", 8.0 * t->r_size, zeros);
  ex_print_memory("fronts of the largest level", 8.0 * level, "");
  ex_print_memory("all that the factorization holds", fr_bytes(&r->core.matrix, t), limit);
  ex_print_memory("workspace of the kernels", r->report.workspace, "");
  ex_print_largest_use();
}

static void print_report(const result *r) {
  ex_histogram histogram = {0};
  for (int i = 0; i < r->tree.count; i++)
    if (r->tree.fronts[i].m > 0) ex_count_member(&histogram, r->tree.fronts[i].m, r->tree.fronts[i].n + 1);
  ex_print_histogram("Fronts", &histogram);
  print_levels(r);
  printf("\nBatches\n");
  ex_print_fact("backend", "%s", r->report.backend);
  ex_print_plan("largest batch", r->report.largest);
  if (r->report.again)
    ex_print_fact("ranks", "%d fronts have pivots that depend on others, and were factored again",
                  r->report.again);
  print_memory(r);
  print_times(r);
}

/* --- main */

/* Bytes that may be used of what is available now. */
static double may_have(const options *o, double available) {
  return o->memory > 0 ? o->memory : 0.75 * available;
}

static void check_room(double bytes, double limit) {
  if (bytes > limit)
    ex_die(EX_FAILED, "the factorization needs %.1f MB, and may have %.1f: see --memory and --ordering",
           megabytes(bytes), megabytes(limit));
}

static void get_problem(const options *o, fr_matrix *a, result *r) {
  const double start = ex_seconds();
  const double memory = may_have(o, ex_available_memory());
  if (o->file) {
    fr_read_problem(a, o->file, o->rhs, o->noise, memory);
  } else {
    check_room(pow(o->size, o->dimensions) * (16 + 40 * (o->dimensions + 1)), memory);
    fr_grid_problem(a, o->dimensions, o->size, o->noise);
  }
  r->t_problem = ex_seconds() - start;
  if (o->check && (double)a->rows * a->cols > 1e8)
    ex_die(EX_BAD_INPUT, "--check: %d x %d is too large for a dense matrix", a->rows, a->cols);
  if (o->quiet) return;
  printf("Sparse least squares by multifrontal QR\n");
  ex_print_fact("problem", "%s: %s", a->source, a->meaning);
  ex_print_fact("matrix", "%d x %d, %lld entries", a->rows, a->cols, (long long)a->start[a->rows]);
  if (a->added)
    ex_print_fact("", "%lld entries of the file were added to one at the same place", (long long)a->added);
}

static void print_tree(const options *o, const fr_tree *t, fr_ordering ordering) {
  int largest = 0;
  if (o->quiet) return;
  for (int l = 0; l < t->num_levels; l++)
    if (t->levels[l].end - t->levels[l].begin > largest) largest = t->levels[l].end - t->levels[l].begin;
  ex_print_fact("column order", "%s%s", fr_ordering_names[ordering],
                HAVE_SUITESPARSE ? "" : " (built without SuiteSparse, which has others)");
  ex_print_fact("fronts", "%d on %d levels; the largest batch has %d", t->count, t->num_levels, largest);
  ex_print_fact("work", "%.3g GFLOP, %.3g entries of R", t->flops * 1e-9, (double)(t->r_size - t->zeros));
  printf("\nNumbers\n");
}

/* A's columns are scaled, and so is the tolerance. */
static void reduce(const options *o, const fr_matrix *a, result *r) {
  fr_core *core = &r->core;
  r->tolerance = o->tolerance < 0 ? fr_usual_tolerance(a) : scalbn(o->tolerance, -a->exponent_a);
  fr_reduce(a, r->tolerance, core);
  if (o->quiet) return;
  if (a->exponent_a || a->exponent_b)
    ex_print_fact("scaled", "A by 2^%d and b by 2^%d, which norms below are of", -a->exponent_a,
                  -a->exponent_b);
  if (core->singletons) ex_print_fact("singletons", "%d columns, which need no front", core->singletons);
  if (core->dense_rows)
    ex_print_fact("dense rows", "%d, cut into pieces by %d new columns", core->dense_rows, core->links);
}

/* With a GPU R comes back to the host. */
static void analyze(const options *o, const ex_backend *backend, result *r) {
  const fr_matrix *a = &r->core.matrix;
  const double host = may_have(o, ex_available_memory());
  int *order = ex_alloc((size_t)a->cols, sizeof *order);
  if (!o->quiet) printf("\nAnalysis\n");
  ex_progress_begin("order of the columns", o->quiet);
  r->ordering = fr_order_columns(a, o->ordering, host, order);
  r->t_order = ex_progress_end();
  ex_progress_begin("tree of fronts", o->quiet);
  fr_build_tree(a, order, o->overhead, host, &r->tree);
  r->t_tree = ex_progress_end();
  free(order);
  print_tree(o, &r->tree, r->ordering);
  r->memory = may_have(o, ex_available_to_backend(backend));
  check_room(fr_bytes(a, &r->tree), r->memory);
  check_room(8.0 * (double)r->tree.r_size, may_have(o, ex_available_memory()));
}

static void solve(const options *o, const fr_matrix *a, const ex_backend *backend, double *x, result *r) {
  double *y = ex_alloc((size_t)r->core.matrix.cols, sizeof *y);
  const fr_request request = {.repeat = o->repeat, .quiet = o->quiet, .memory = r->memory};
  fr_solve(&r->core, &r->tree, backend, &request, y, &r->report);
  r->rank = r->core.singletons + r->report.rank - r->core.links;
  fr_expand(a, &r->core, y, x);
  free(y);
}

static void write_solution(const options *o, const fr_matrix *a, double *x) {
  if (!o->solution) return;
  fr_undo_scaling(a, x);
  fr_write_vector(o->solution, a->cols, x);
}

static void measure(const fr_matrix *a, const double *x, result *r) {
  double *residual = ex_alloc((size_t)a->rows, sizeof *residual), *g = ex_alloc((size_t)a->cols, sizeof *g);
  fr_residual(a, x, residual);
  fr_multiply_transposed(a, residual, g);
  r->norm_a = fr_norm_bound(a);
  r->norm_x = fr_norm(a->cols, x);
  r->norm_r = fr_norm(a->rows, residual);
  r->norm_g = fr_norm(a->cols, g);
  if (a->truth) {
    for (int j = 0; j < a->cols; j++) g[j] = x[j] - a->truth[j];
    r->error = fr_norm(a->cols, g) / fr_norm(a->cols, a->truth);
  }
  free(residual);
  free(g);
}

static void print_solution(const fr_matrix *a, const result *r) {
  printf("\nSolution\n");
  printf("  %-36s %.6e, from the factorization alone %.6e\n", "||Ax - b||", r->norm_r, r->report.dropped);
  if (r->norm_r > 0)
    printf("  %-36s %.2e\n", "||A'(Ax - b)|| / (||A|| ||Ax - b||)", r->norm_g / (r->norm_a * r->norm_r));
  if (a->truth && r->rank == a->cols)
    printf("  %-36s %.2e, relative\n", "distance to the x that made b", r->error);
}

static void print_rank(const fr_matrix *a, const result *r) {
  if (r->rank == a->cols) return;
  printf("Rank: %d of %d columns (tolerance %.2e); x is zero in the others, of which %.2e (Frobenius norm) "
         "counts "
         "as zero\n",
         r->rank, a->cols, r->tolerance, r->report.neglected);
}

/* A backward stable solution solves (A + E) x = b with ||E|| <= c eps ||A|| in the sense of least squares;
 * then
 * ||A^T r|| <= c eps ||A|| (||r|| + ||A|| ||x||). What was taken for zero, F, is in columns with a zero in x:
 * there A^T r is F^T r. And the factorization's own ||r|| is to be the same. */
static bool judge(const options *o, const fr_matrix *a, const result *r) {
  const double size = r->norm_a * r->norm_x, scale = r->norm_a * (r->norm_r + size);
  const double ratio = scale > 0 ? r->norm_g / scale : 0;
  const double limit = 1e-13 + (scale > 0 ? r->report.neglected * r->norm_r / scale : 0);
  const double gap = fabs(r->norm_r - r->report.dropped);
  const bool good = ratio <= limit && gap <= 1e-11 * (size + fr_norm(a->rows, a->b));
  if (!o->quiet) print_solution(a, r);
  print_rank(a, r);
  printf("Normal equations: ||A'(Ax - b)|| / (||A|| (||Ax - b|| + ||A|| ||x||)) = %.2e, limit %.3g: %s\n",
         ratio, limit, good ? "passed" : "FAILED");
  return good;
}

/* Without full rank there are many solutions, and one residual. */
static bool check_dense(const options *o, const fr_matrix *a, const double *x, const result *r) {
  if (!o->check) return true;
  const bool full = r->rank == a->cols;
  double limit;
  const double difference =
      full ? fr_compare_dense(a, x, &limit) : fr_compare_dense_residual(a, r->norm_r, r->tolerance, &limit);
  const bool good = difference <= limit;
  printf("%s: %.2e, limit %.2e: %s\n",
         full ? "Relative difference to LAPACK's dgels"
              : "Difference of ||Ax - b|| to that of LAPACK's dgelsy",
         difference, limit, good ? "passed" : "FAILED");
  return good;
}

static void compare(const options *o, const fr_matrix *a, const double *x, const result *r) {
  fr_suitesparse s;
  if (!o->compare) return;
  fr_compare_suitesparse(a, x, r->tolerance, &s);
  printf("SuiteSparseQR: %.3f s for the analysis, %.3f s for the factorization (%.3g GFLOP, %.1f GFLOP/s), "
         "%.3f s in all; rank %d, ||Ax - b|| = %.6e, relative difference of x: %.2e\n",
         s.t_analyze, s.t_factor, s.flops * 1e-9, rate(s.flops, s.t_factor), s.t_all, s.rank, s.norm_r,
         s.difference);
  printf("fronts:        %.3f s for the analysis, %.3f s for the factorization; rank %d, ||Ax - b|| = %.6e\n",
         r->t_order + r->t_tree + r->report.t_plan, r->report.t_factor, r->rank, r->norm_r);
}

static void draw(const options *o, const fr_matrix *a, const result *r) {
  char title[320], subtitle[512];
  if (!o->svg) return;
  snprintf(title, sizeof title, "Fronts of the %s", a->source);
  snprintf(subtitle, sizeof subtitle, "%d rows, %d columns, order %s; %d fronts on %d levels, %.3g GFLOP",
           a->rows, a->cols, fr_ordering_names[r->ordering], r->tree.count, r->tree.num_levels,
           r->tree.flops * 1e-9);
  fr_write_svg(o->svg, &r->tree, &r->report, title, subtitle);
  if (!o->quiet) printf("\nPicture of the fronts: %s\n", o->svg);
}

int main(int argc, char **argv) {
  options o = parse_options(argc, argv);
  o.threads = ex_use_threads(o.threads);
  fr_matrix a;
  ex_backend backend;
  result r = {0};
  ex_open_backend(&backend, o.backend, o.threads);
  get_problem(&o, &a, &r);
  reduce(&o, &a, &r);
  analyze(&o, &backend, &r);
  double *x = ex_alloc((size_t)a.cols, sizeof *x);
  solve(&o, &a, &backend, x, &r);
  measure(&a, x, &r);
  if (!o.quiet) print_report(&r);
  draw(&o, &a, &r);
  bool good = judge(&o, &a, &r);
  good = check_dense(&o, &a, x, &r) && good;
  compare(&o, &a, x, &r);
  write_solution(&o, &a, x);
  free(r.report.levels);
  fr_free_tree(&r.tree);
  fr_free_core(&r.core);
  fr_free_matrix(&a);
  ex_close_backend(&backend);
  free(x);
  ex_finish(stdout, "standard output");
  return good ? EX_GOOD : EX_INACCURATE;
}
