/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the example program reconstruct. Read reconstruct.c first. */
#ifndef RECONSTRUCT_H
#define RECONSTRUCT_H

#include "program.h"
#include "reconstruct_point.h"

/* --- reconstruct_cloud.c: points and their neighbours */

enum { RC_LEAST_NEIGHBOURS = 20, RC_MOST_NEIGHBOURS = 60 };

/* Lists of neighbours are filled up with the point itself, whose equations are 0 = 0, so that columns are a
 * multiple of 32 bytes, which is what a GPU writes at once: only whole ones are written fast. */
enum { RC_EVEN = 4 };

/* n scattered points, denser in some places than in others, their neighbours and their fields, on the host;
 * a, b and dt are left for rc_run(). */
rc_cloud rc_new_cloud(int n, int fields);
void rc_free_cloud(rc_cloud *cloud);

/* The exact field f at a place and time, and its gradient at time 0. */
double rc_exact(const double x[3], double t, int f);
void rc_exact_gradient(const double x[3], int f, double g[3]);

/* --- reconstruct_run.c: the time steps */

typedef struct rc_settings {
  int fields;
  double time, cfl;
  batchqr_backend backend;
  int threads;
} rc_settings;

typedef struct rc_result {
  int n, steps;
  int least, most; /* neighbours */
  int64_t equations;
  double spacing;              /* n^(-1/3) */
  double gradient, convection; /* relative errors in the Euclidean norm: of the gradient at time 0, of the
                                  fields in the end */
  double t_step, t_assemble, t_gels, t_advance; /* seconds */
  double t_empty;                               /* of the graph with empty kernels */
  double allocated;                             /* bytes of device memory taken after the first step */
  int launches;
  bool graph;         /* a step is a CUDA graph */
  char backend[256];  /* batchqr_describe() */
  char kernels[4096]; /* batchqr_plan_describe() */
} rc_result;

/* Convects the fields of n points through space; exits when something fails. */
rc_result rc_run(const rc_settings *settings, int n, bool quiet);

/* --- reconstruct_picture.c */

/* Draws errors over spacings. */
void rc_write_svg(const char *file, const rc_result *results, int count, const char *subtitle);

#endif
