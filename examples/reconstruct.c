/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving least squares on scattered points: the inner loop of a mesh-free simulation.
 *
 * Around each of many points a quadratic polynomial is fitted to the values at its 20 to 60 neighbours. Its
 * coefficients hold the gradient of the fields, and it says what the fields are between the points. The wind
 * carries the fields while the points drift, so that every time step has other matrices: a batch of thousands
 * of small least-squares problems, solved by one call of batchqr. reconstruct_run.c is the file to read.
 *
 * The fields are known at all times, and so are the errors. With quadratic polynomials those of the gradient
 * and of the convection fall with the square of the distance of the points, and the program checks that they
 * do. */
#include "reconstruct.h"

#include <math.h>

const char ex_program[] = "reconstruct";

enum { MOST_LEVELS = 6, LEAST_POINTS = 500 };

/* What the errors must fall by, at least, where 2 is what theory says. */
static const double least_order = 1.7;

/* --- options */

typedef struct options {
  rc_settings settings;
  int points, levels;
  const char *svg;
  bool quiet;
} options;

static const char usage[] =
    "usage: reconstruct [options]\n"
    "\n"
    "Convects fields over drifting scattered points by moving least squares, and checks the order of the "
    "errors.\n"
    "\n"
    "  --points N       points of the finest cloud (200000)\n"
    "  --levels N       clouds, each with an eighth of the points of the next (3)\n"
    "  --fields N       fields, the right-hand sides of a point (1)\n"
    "  --time T         how long the wind blows (0.2)\n"
    "  --cfl C          time step over distance of points, at wind speed about 1 (0.3)\n"
    "  --backend B      auto, cpu or cuda (auto)\n"
    "  --threads N      CPU threads (all)\n"
    "  --svg FILE       picture of the errors (reconstruct.svg); - for none\n"
    "  --quiet          print the result alone\n"
    "  --help           print this\n"
    "\n"
    "Exit status: 0 the errors fall as they should, 1 they do not, 2 wrong usage, 3 a failure of the "
    "machine,\n"
    "such as no memory.\n";

static options parse_options(int argc, char **argv) {
  options o = {.settings = {.fields = 1, .time = 0.2, .cfl = 0.3},
               .points = 200000,
               .levels = 3,
               .svg = "reconstruct.svg"};
  const ex_option known[] = {{"points", EX_INT, .to = &o.points, .least = LEAST_POINTS, .most = 30000000},
                             {"levels", EX_INT, .to = &o.levels, .least = 1, .most = MOST_LEVELS},
                             {"fields", EX_INT, .to = &o.settings.fields, .least = 1, .most = 64},
                             {"time", EX_DOUBLE, .to = &o.settings.time, .least = 0.001, .most = 10},
                             {"cfl", EX_DOUBLE, .to = &o.settings.cfl, .least = 0.01, .most = 1},
                             {"backend", EX_BACKEND, .to = &o.settings.backend},
                             {"threads", EX_INT, .to = &o.settings.threads, .least = 1, .most = 4096},
                             {"svg", EX_PICTURE, .to = &o.svg},
                             {"quiet", EX_FLAG, .to = &o.quiet},
                             {.name = NULL}};
  ex_parse_options(argc, argv, usage, known);
  if (o.points >> 3 * (o.levels - 1) < LEAST_POINTS)
    ex_die(EX_BAD_INPUT, "--points %d --levels %d: the coarsest cloud would have %d points, fewer than %d",
           o.points, o.levels, o.points >> 3 * (o.levels - 1), LEAST_POINTS);
  return o;
}

/* --- the report */

static double order(double coarse, double fine, const rc_result *results, int level) {
  return log(coarse / fine) / log(results[level - 1].spacing / results[level].spacing);
}

static double gradient_order(const rc_result *r, int level) {
  return order(r[level - 1].gradient, r[level].gradient, r, level);
}

static double convection_order(const rc_result *r, int level) {
  return order(r[level - 1].convection, r[level].convection, r, level);
}

static void print_errors(const rc_result *r, int levels) {
  printf("\nErrors, relative, and their orders\n  %10s %10s %6s %12s %6s %12s %6s\n", "points", "neighbours",
         "steps", "gradient", "", "convection", "");
  for (int l = 0; l < levels; l++) {
    printf("  %10d %6d-%-3d %6d %12.3e ", r[l].n, r[l].least, r[l].most, r[l].steps, r[l].gradient);
    if (l > 0)
      printf("%6.2f %12.3e %6.2f\n", gradient_order(r, l), r[l].convection, convection_order(r, l));
    else
      printf("%6s %12.3e\n", "", r[l].convection);
  }
}

static void print_times(const rc_result *r) {
  double parts = r->t_assemble + r->t_gels + r->t_advance;
  printf("\nA time step of %d points, %lld equations%s\n", r->n, (long long)r->equations,
         r->graph ? ", a CUDA graph" : "");
  printf("  %-34s %12.1f us\n", "step", 1e6 * r->t_step);
  printf("  %-34s %12.1f us %5.1f %%\n", "matrices and right-hand sides", 1e6 * r->t_assemble,
         100 * r->t_assemble / parts);
  printf("  %-34s %12.1f us %5.1f %%  in %d launches\n", "batch_gels", 1e6 * r->t_gels,
         100 * r->t_gels / parts, r->launches);
  printf("  %-34s %12.1f us %5.1f %%\n", "fields and points", 1e6 * r->t_advance, 100 * r->t_advance / parts);
  if (!r->graph) return;
  printf("  %-34s %15s %5.1f %%  of the step; the graph takes %.1f us when its kernels are empty\n",
         "inside kernels", "", 100 * (1 - r->t_empty / r->t_step), 1e6 * r->t_empty);
  printf("  %-34s %12.0f B\n", "allocated after the first step", r->allocated);
}

/* Whether the errors of the two finest clouds are as far apart as they should be. */
static bool judge(const rc_result *r, int levels) {
  const rc_result *last = &r[levels - 1];
  if (levels == 1) {
    printf("Errors: %.2e of the gradient, %.2e of the convection; more --levels tell the order\n",
           last->gradient, last->convection);
    return isfinite(last->gradient) && isfinite(last->convection);
  }
  double gradient = gradient_order(r, levels - 1), convection = convection_order(r, levels - 1);
  bool good = gradient >= least_order && convection >= least_order;
  printf("Order of the errors: %.2f of the gradient, %.2f of the convection, 2 expected: %s\n", gradient,
         convection, good ? "passed" : "FAILED");
  return good;
}

static void draw(const options *o, const rc_result *results) {
  const rc_result *r = &results[o->levels - 1];
  char subtitle[512];
  snprintf(subtitle, sizeof subtitle,
           "up to %d scattered points with %d to %d neighbours, quadratic polynomials", r->n, r->least,
           r->most);
  rc_write_svg(o->svg, results, o->levels, subtitle);
  if (!o->quiet) printf("Picture of the errors: %s\n", o->svg);
}

int main(int argc, char **argv) {
  options o = parse_options(argc, argv);
  o.settings.threads = ex_use_threads(o.settings.threads);
  rc_result results[MOST_LEVELS];
  if (!o.quiet)
    printf("Moving least squares over drifting points, %d field%s\n\nProgress\n", o.settings.fields,
           o.settings.fields > 1 ? "s" : "");
  for (int l = 0; l < o.levels; l++)
    results[l] = rc_run(&o.settings, o.points >> 3 * (o.levels - 1 - l), o.quiet);
  const rc_result *finest = &results[o.levels - 1];
  if (!o.quiet) {
    printf("\nBatch\n");
    ex_print_fact("backend", "%s", finest->backend);
    ex_print_plan("kernels", finest->kernels);
    print_errors(results, o.levels);
    print_times(finest);
    printf("\n");
  }
  if (o.svg) draw(&o, results);
  bool good = judge(results, o.levels);
  ex_finish(stdout, "standard output");
  return good ? EX_GOOD : EX_INACCURATE;
}
