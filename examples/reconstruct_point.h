/* SPDX-License-Identifier: BSD-3-Clause */
/* What is done at one point of the cloud: the same lines for the CPU and for the GPU.
 *
 * Points and fields live in the unit cube, which repeats itself in all directions. */
#ifndef RECONSTRUCT_POINT_H
#define RECONSTRUCT_POINT_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define RC_BOTH __host__ __device__
#else
#define RC_BOTH
#endif

/* Coefficients: of x, y, z, x^2, y^2, z^2, xy, yz, zx. The constant is the value at the point itself. */
enum { RC_BASIS = 9 };

/* Addresses in the backend's memory. Point i has the equations first[i] .. first[i+1]-1, one for each of its
 * neighbours: m of them, so that A_i is m x RC_BASIS, from a + RC_BASIS * first[i] on, and B_i m x fields. */
typedef struct rc_cloud {
  int n, fields;
  double dt;
  double *position;    /* 3 for each point */
  double *value;       /* `fields` for each point */
  const double *scale; /* what distances are multiplied by: one over the radius of the neighbourhood when it
                          was chosen */
  const int *first;    /* n + 1 */
  const int *point, *neighbour; /* of each equation */
  double *a, *b;
  double *time; /* one number */
} rc_cloud;

/* What convects the fields, and what moves the points. */
static inline RC_BOTH void rc_wind(double v[3]) { v[0] = 1.0, v[1] = 0.6, v[2] = -0.4; }
static inline RC_BOTH void rc_drift(const double x[3], double t, double w[3]) {
  const double turn = 6.283185307179586;
  double strength = 0.25 * cos(turn * t);
  for (int d = 0; d < 3; d++) w[d] = strength * sin(turn * x[(d + 1) % 3]);
}

static inline RC_BOTH void rc_basis(const double d[3], double phi[RC_BASIS]) {
  for (int c = 0; c < 3; c++) {
    phi[c] = d[c];
    phi[3 + c] = d[c] * d[c];
    phi[6 + c] = d[c] * d[(c + 1) % 3];
  }
}

/* How far y is from x, by the shortest way. */
static inline RC_BOTH double rc_apart(double y, double x) {
  double apart = y - x;
  return apart > 0.5 ? apart - 1 : apart < -0.5 ? apart + 1 : apart;
}

/* Equation e: the neighbour's difference, weighted down with the distance. All that is read is read before
 * anything is written, so that the reads need not wait for each other. */
static inline RC_BOTH void rc_assemble(const rc_cloud *c, int64_t e) {
  const int i = c->point[e], j = c->neighbour[e];
  const int64_t at = c->first[i], m = c->first[i + 1] - at;
  double d[3], phi[RC_BASIS], far = 0;
  for (int k = 0; k < 3; k++) {
    d[k] = rc_apart(c->position[3 * (int64_t)j + k], c->position[3 * (int64_t)i + k]) * c->scale[i];
    far += d[k] * d[k];
  }
  const double weight = exp(-2.0 * far);
  rc_basis(d, phi);
  double *a = c->a + RC_BASIS * at + (e - at), *b = c->b + c->fields * at + (e - at);
  for (int f = 0; f < c->fields; f++)
    b[m * f] = weight * (c->value[(int64_t)j * c->fields + f] - c->value[(int64_t)i * c->fields + f]);
  for (int k = 0; k < RC_BASIS; k++) a[m * k] = weight * phi[k];
}

/* Moves point i, and sets its fields to what the wind has brought to its new place: the value where it came
 * from, by the polynomial around the old place, whose coefficients are now in B. */
static inline RC_BOTH void rc_advance(const rc_cloud *c, int i) {
  int64_t m = c->first[i + 1] - c->first[i], at = c->first[i];
  double *x = c->position + 3 * (int64_t)i, v[3], w[3], d[3], phi[RC_BASIS];
  rc_wind(v);
  rc_drift(x, *c->time, w);
  for (int k = 0; k < 3; k++) {
    d[k] = (w[k] - v[k]) * c->dt * c->scale[i];
    x[k] += w[k] * c->dt;
    x[k] -= floor(x[k]);
  }
  rc_basis(d, phi);
  for (int f = 0; f < c->fields; f++) {
    double change = 0;
    for (int k = 0; k < RC_BASIS; k++) change += phi[k] * c->b[c->fields * at + k + m * f];
    c->value[(int64_t)i * c->fields + f] += change;
  }
}

/* --- reconstruct_kernels.cu: launches on a cudaStream_t; they return a cudaError_t. */

#ifdef __cplusplus
extern "C" {
#endif
int rc_launch_assemble(const rc_cloud *cloud, int64_t equations, void *stream);
/* Moves the time, too. */
int rc_launch_advance(const rc_cloud *cloud, void *stream);
/* A kernel that does nothing, for a graph's nodes. */
void *rc_empty_kernel(void);
#ifdef __cplusplus
}
#endif

#endif
