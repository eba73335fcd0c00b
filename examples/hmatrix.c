/* SPDX-License-Identifier: BSD-3-Clause */
/* Compresses the matrix of the Laplace single-layer kernel, K(x, y) = 1 / (4 pi |x - y|), over the points of
 * a surface, as an H-matrix.
 *
 * Points are gathered in a tree of clusters. Where two clusters lie apart, their block of the matrix is close
 * to one of low rank: cross approximation finds such a factorization U V^T from few rows and columns, and
 * batched QR factorizations of all U's and V's bring the ranks down to what the tolerance needs. That last
 * step is what batchqr is for, and hmatrix_recompress.c is the file to read for it. */
#include "hmatrix.h"

#include <stdio.h>
#include <stdlib.h>

const char ex_program[] = "hmatrix";

/* --- options */

typedef struct options {
  hm_settings settings;
  int points;
  const char *file, *svg;
  double decay; /* of the kernel whose matrix is added; 0: none is */
  bool quiet;
} options;

static const char usage[] =
    "usage: hmatrix [options]\n"
    "\n"
    "Compresses the Laplace single-layer matrix 1/(4 pi |x - y|) over surface points as an H-matrix.\n"
    "\n"
    "  --points N       points on the NACA 0012 wing that the program makes (20000)\n"
    "  --file FILE      read the points from FILE instead: .xyz, or the vertices of an .off or .obj mesh\n"
    "  --tol T          relative error that a product with the matrix may have (1e-6)\n"
    "  --eta E          clusters are apart if the smaller diameter <= E * distance (1.5)\n"
    "  --leaf N         points in a cluster that is not split (48)\n"
    "  --backend B      auto, cpu or cuda: where the batched QR runs (auto)\n"
    "  --compare        recompress on the CPU as well, and print the times of both\n"
    "  --add D          add the H-matrix of exp(-D |x - y|)/(4 pi |x - y|) to it, and check the sum\n"
    "  --threads N      CPU threads (all)\n"
    "  --chunk MB       memory for the factors of one batch (512)\n"
    "  --svg FILE       picture of the blocks (hmatrix.svg); - for none\n"
    "  --quiet          print the result alone\n"
    "  --help           print this\n"
    "\n"
    "Exit status: 0 the error is at or below the tolerance, 1 it is above, 2 wrong usage or a bad file,\n"
    "3 a failure of the machine, such as no memory.\n";

static options parse_options(int argc, char **argv) {
  int megabytes = 512;
  options o = {.settings = {.tol = 1e-6, .eta = 1.5, .leaf = 48}, .svg = "hmatrix.svg"};
  const ex_option known[] = {{"points", EX_INT, .to = &o.points, .least = 2, .most = 100000000},
                             {"file", EX_TEXT, .to = &o.file},
                             {"tol", EX_DOUBLE, .to = &o.settings.tol, .least = 1e-12, .most = 0.1},
                             {"eta", EX_DOUBLE, .to = &o.settings.eta, .least = 0.1, .most = 10},
                             {"leaf", EX_INT, .to = &o.settings.leaf, .least = 1, .most = 4096},
                             {"backend", EX_BACKEND, .to = &o.settings.backend},
                             {"compare", EX_FLAG, .to = &o.settings.compare},
                             {"add", EX_DOUBLE, .to = &o.decay, .least = 1e-3, .most = 1e3},
                             {"threads", EX_INT, .to = &o.settings.threads, .least = 1, .most = 4096},
                             {"chunk", EX_INT, .to = &megabytes, .least = 1, .most = 1 << 20},
                             {"svg", EX_PICTURE, .to = &o.svg},
                             {"quiet", EX_FLAG, .to = &o.quiet},
                             {.name = NULL}};
  ex_parse_options(argc, argv, usage, known);
  o.settings.chunk = (size_t)megabytes << 20;
  if (o.file && o.points) ex_die(EX_BAD_INPUT, "--points and --file: only one of them makes sense");
  if (!o.points) o.points = 20000;
  return o;
}

/* --- the report */

static double rate(double members, double seconds) { return seconds > 0 ? members / seconds : 0; }

static void print_rate(const char *what, const hm_report *r, double seconds) {
  char note[64];
  snprintf(note, sizeof note, " %11.0f members/s", rate((double)r->members, seconds));
  ex_print_time(what, seconds, note);
}

typedef struct result {
  hm_report report;
  double t_tree, t_dense, t_check, t_total;
  double bytes_dense;  /* of the near field */
  double bytes_square; /* of the whole lower half, stored dense */
  double error;
} result;

static double bytes_total(const result *r) { return r->bytes_dense + r->report.bytes_low_rank; }
static double ratio(const result *r) { return r->bytes_square / bytes_total(r); }

static void print_memory(const result *r) {
  char note[64];
  snprintf(note, sizeof note, "   1 : %.2f before, 1 : %.2f after recompression",
           r->bytes_square / (r->bytes_dense + r->report.bytes_aca), ratio(r));
  printf("\nMemory (the lower half of the symmetric matrix, in MB)\n");
  ex_print_memory("uncompressed", r->bytes_square, "");
  ex_print_memory("dense blocks", r->bytes_dense, "");
  ex_print_memory("low rank, cross approximation", r->report.bytes_aca, "");
  ex_print_memory("low rank, recompressed", r->report.bytes_low_rank, "");
  ex_print_memory("H-matrix", bytes_total(r), note);
  ex_print_largest_use();
}

static void print_times(const result *r) {
  const hm_report *h = &r->report;
  const hm_stages *s = &h->stages;
  printf("\nTime\n");
  ex_print_time("cluster tree, blocks", r->t_tree, "");
  ex_print_time("cross approximation", h->t_aca, "");
  if (h->on_device) ex_print_time("factors to the GPU", s->upload, "");
  ex_print_time("plans", s->plan, "");
  print_rate("batched QR", h, s->qr);
  ex_print_time(h->on_device ? "SVD of the cores, truncation (GPU)" : "SVD of the cores, truncation (CPU)",
                s->svd, "");
  print_rate("batched apply of Q", h, s->apply);
  if (h->on_device) ex_print_time("compressed factors to the host", s->download, "");
  ex_print_time("dense blocks", r->t_dense, "");
  ex_print_time("check", r->t_check, "");
  ex_print_time("all", r->t_total, "");
}

static double all_stages(const hm_stages *s) {
  return s->upload + s->plan + s->qr + s->svd + s->apply + s->download;
}

static void print_pair(const char *what, double gpu, double cpu) {
  printf("  %-34s %9.2f %9.2f %9.1f\n", what, 1e3 * gpu, 1e3 * cpu, cpu / gpu);
}

static void print_comparison(const char *title, const hm_stages *gpu, const hm_stages *cpu) {
  printf("\n%-36s %9s %9s %9s\n", title, "GPU", "CPU", "CPU/GPU");
  print_pair("batched QR", gpu->qr, cpu->qr);
  print_pair("SVD of the cores, truncation", gpu->svd, cpu->svd);
  print_pair("batched apply of Q", gpu->apply, cpu->apply);
  print_pair("plans", gpu->plan, cpu->plan);
  printf("  %-34s %9.2f\n", "factors to the GPU", 1e3 * gpu->upload);
  printf("  %-34s %9.2f\n", "compressed factors to the host", 1e3 * gpu->download);
  print_pair("all of it", all_stages(gpu), all_stages(cpu));
  printf("  %-34s %9lld %9lld\n", "ranks kept, added up", (long long)gpu->ranks, (long long)cpu->ranks);
}

/* --- the sum of two H-matrices */

static void print_addition(const hm_addition *sum, const hm_report *report) {
  const hm_stages *s = &sum->stages;
  printf("\nAddition\n");
  ex_print_fact("ranks", "%lld, added up; %lld after rounding", (long long)sum->ranks, (long long)s->ranks);
  ex_print_plan("QR, chunk 1", s->kernels[0]);
  if (report->on_device) ex_print_plan("SVD, chunk 1", s->kernels[1]);
  ex_print_time("factors side by side", sum->t_stack, "");
  ex_print_time("batched QR", s->qr, "");
  ex_print_time("SVD of the cores, truncation", s->svd, "");
  ex_print_time("batched apply of Q", s->apply, "");
  if (sum->peer.ranks > 0) print_comparison("Addition (ms)", s, &sum->peer);
}

/* Both are truncated, and so is their sum: twice the tolerance is allowed. */
static bool add_another(const options *o, hm_points *points, const hm_blocks *admissible,
                        const hm_blocks *near, const hm_blocks *x, int samples) {
  hm_blocks y = {0}, others = {0}, sum = {0}, dense = {0};
  hm_report report;
  hm_addition addition = {0};
  for (int64_t b = 0; b < admissible->count; b++) hm_push_block(&y, admissible->blocks[b]);
  for (int64_t b = 0; b < near->count; b++) hm_push_block(&dense, near->blocks[b]);
  points->decay = o->decay;
  points->kernel = HM_YUKAWA;
  ex_progress_begin("the other H-matrix", o->quiet);
  hm_compress(points, &o->settings, &y, &others, &report);
  ex_progress_end();
  hm_add(&o->settings, admissible, x, &y, &sum, &dense, &addition);
  points->kernel = HM_SUM;
  hm_fill_dense(points, &dense);
  const double error = hm_product_error(points, &sum, &dense, samples), most = 2 * o->settings.tol;
  if (!o->quiet) print_addition(&addition, &report);
  printf("Relative error of the sum's product: %.2e, twice the tolerance %g: %s\n", error, most,
         error <= most ? "passed" : "FAILED");
  hm_free_blocks(&y);
  hm_free_blocks(&others);
  hm_free_blocks(&sum);
  hm_free_blocks(&dense);
  return error <= most;
}

static void print_report(const result *r) {
  const hm_report *h = &r->report;
  ex_print_histogram("Members of the batches", &h->histogram);
  printf("\nBatches\n");
  ex_print_fact("backend", "%s", h->backend);
  ex_print_fact("members", "%lld in %lld chunks; the largest batch has %lld", (long long)h->members,
                (long long)h->chunks, (long long)h->largest_batch);
  ex_print_plan("QR, chunk 1", h->stages.kernels[0]);
  if (h->on_device) ex_print_plan("SVD, chunk 1", h->stages.kernels[1]);
  ex_print_plan("apply Q, chunk 1", h->stages.kernels[2]);
  print_memory(r);
  print_times(r);
  if (h->peer.ranks > 0) print_comparison("Recompression (ms)", &h->stages, &h->peer);
  printf("\n");
}

static void draw(const options *o, const hm_points *points, const hm_blocks *low_rank, const hm_blocks *dense,
                 const result *r) {
  char title[128], subtitle[512];
  snprintf(title, sizeof title, "H-matrix of 1/(4\u03c0|x\u2212y|), %d points", points->n);
  snprintf(subtitle, sizeof subtitle, "%s; tolerance %g, error %.1e; %.1f MB, compressed 1 : %.1f",
           points->source, o->settings.tol, r->error, bytes_total(r) / 1e6, ratio(r));
  hm_write_svg(o->svg, points->n, low_rank, dense, title, subtitle);
  if (!o->quiet) printf("Picture of the blocks: %s\n", o->svg);
}

static void get_points(const options *o, hm_points *points) {
  if (o->file)
    hm_read_points(points, o->file);
  else
    hm_wing_points(points, o->points);
  hm_merge_duplicates(points);
  if (o->quiet) return;
  printf("Laplace single layer 1/(4 pi |x - y|) as an H-matrix, tolerance %g\n", o->settings.tol);
  ex_print_fact("points", "%d: %s", points->n, points->source);
  if (points->merged)
    ex_print_fact("", "%d points that coincide with another one were dropped", points->merged);
}

static void print_structure(const options *o, const hm_tree *tree, const hm_blocks *admissible,
                            const hm_blocks *near) {
  if (o->quiet) return;
  ex_print_fact("clusters", "%d, %d levels, at most %d points in a leaf", tree->count, tree->depth + 1,
                o->settings.leaf);
  ex_print_fact("blocks", "%lld admissible (eta %g), %lld near", (long long)admissible->count,
                o->settings.eta, (long long)near->count);
  printf("\nProgress\n");
}

int main(int argc, char **argv) {
  options o = parse_options(argc, argv);
  ex_require_backend(o.settings.backend);
  o.settings.threads = ex_use_threads(o.settings.threads);
  double start = ex_seconds();
  hm_points points;
  hm_tree tree;
  hm_blocks low_rank = {0}, dense = {0}, admissible = {0}, near = {0};
  result r = {0};
  get_points(&o, &points);

  double tree_start = ex_seconds();
  hm_build_tree(&tree, &points, o.settings.leaf);
  hm_set_self_terms(&tree, &points);
  hm_build_blocks(&tree, o.settings.eta, &low_rank, &dense);
  r.t_tree = ex_seconds() - tree_start;
  print_structure(&o, &tree, &low_rank, &dense);

  for (int64_t b = 0; o.decay > 0 && b < low_rank.count; b++) hm_push_block(&admissible, low_rank.blocks[b]);
  for (int64_t b = 0; o.decay > 0 && b < dense.count; b++) hm_push_block(&near, dense.blocks[b]);

  ex_progress_begin("low-rank blocks", o.quiet);
  hm_compress(&points, &o.settings, &low_rank, &dense, &r.report);
  ex_progress_end();

  ex_progress_begin("dense blocks", o.quiet);
  hm_fill_dense(&points, &dense);
  r.t_dense = ex_progress_end();

  const int samples = points.n < 1000 ? points.n : 1000;
  ex_progress_begin("check", o.quiet);
  r.error = hm_product_error(&points, &low_rank, &dense, samples);
  r.t_check = ex_progress_end();

  for (int64_t b = 0; b < dense.count; b++) r.bytes_dense += 8.0 * dense.blocks[b].m * dense.blocks[b].n;
  r.bytes_square = 4.0 * points.n * (points.n + 1.0);
  r.t_total = ex_seconds() - start;
  if (!o.quiet) print_report(&r);
  if (o.svg) draw(&o, &points, &low_rank, &dense, &r);
  bool good = r.error <= o.settings.tol;
  if (o.decay > 0) good = add_another(&o, &points, &admissible, &near, &low_rank, samples) && good;
  hm_free_blocks(&admissible);
  hm_free_blocks(&near);
  hm_free_blocks(&low_rank);
  hm_free_blocks(&dense);
  free(tree.clusters);
  hm_free_points(&points);
  printf("Relative error of a product at %d sampled rows: %.2e, tolerance %g: %s\n", samples, r.error,
         o.settings.tol, r.error <= o.settings.tol ? "passed" : "FAILED");
  ex_finish(stdout, "standard output");
  return good ? EX_GOOD : EX_INACCURATE;
}
