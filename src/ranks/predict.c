/* SPDX-License-Identifier: BSD-3-Clause */
#include "predict.h"
#include "costs.h"
#include <math.h>

static double operations_of(const bqr_operation *operation, batchqr_type type, bqr_dims x) {
  const double complex_factor = type == BATCHQR_C || type == BATCHQR_Z ? 4 : 1;
  return complex_factor * fmax(0, operation->flops(x.m, x.n, x.k));
}

static double bytes_of(const bqr_operation *operation, batchqr_type type, bqr_dims sizes) {
  const batchqr_batch left = {.side = BATCHQR_LEFT};
  double bytes = 0;
  for (const bqr_use *use = operation->uses; use->place; use++) {
    const bqr_shape shape = bqr_shape_of(use, &left, sizes);
    const int ways = ((use->access & BQR_READ) != 0) + ((use->access & BQR_WRITTEN) != 0);
    bytes += (double)shape.rows * shape.cols * ways * (double)bqr_kind_bytes(use->kind, type);
  }
  return bytes;
}

/* A core does some ten operations in a nanosecond, in longer columns more. The factor alike for all members
 * does not matter. */
static double on_cpu(const bqr_device *device, double operations, double columns) {
  return 1e-10 * operations * (columns + 60) / (columns + 8) / device->threads;
}

static double on_gpu(const bqr_device *device, const bqr_operation *operation, batchqr_type type, bqr_dims x,
                     double operations, double columns) {
  const bqr_costs *costs = bqr_costs_of(device);
  const bool single = type == BATCHQR_S || type == BATCHQR_C;
  double factor = (columns + costs->members.narrow) / fmax(1, columns);
  if (operation->finds_rank && !operation->rotates) /* by column pivoting */
    factor *= costs->members.pivoting;
  if (operation->rotates) factor *= costs->members.rotations;
  const double arithmetic =
      1e-12 * (single ? costs->members.single_ps : costs->members.double_ps) * operations * factor;
  const double transfer = 1e-12 * costs->members.byte_ps * bytes_of(operation, type, x);
  const bool large = (double)x.m * x.n >= costs->members.panel_elements;
  return fmax(arithmetic, transfer) + (large ? 1e-6 * costs->members.panel_us * columns / 64 : 0);
}

double bqr_predict(const bqr_device *device, const bqr_operation *operation, batchqr_type type,
                   bqr_dims sizes) {
  const double columns = fmin(sizes.m, sizes.n), operations = operations_of(operation, type, sizes);
  if (device->backend == BATCHQR_BACKEND_CPU) return on_cpu(device, operations, columns);
  return on_gpu(device, operation, type, sizes, operations, columns);
}
