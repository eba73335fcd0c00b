/* SPDX-License-Identifier: BSD-3-Clause */
/* The time steps. Each fits a quadratic polynomial to every point's neighbourhood, by one batch of
 * least-squares problems of many sizes, and takes the fields along with it. The points move, so that no
 * step's matrices serve the next.
 *
 * Everything is planned and allocated before the first step. On the GPU a step is then captured into a CUDA
 * graph, and all that the CPU does is to launch it again and again. */
#include "reconstruct.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#if HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

typedef struct runner {
  ex_backend backend;
  rc_cloud host;                   /* positions and fields as they were at time 0 */
  rc_cloud cloud;                  /* what the steps work on, in the backend's memory */
  double **a_address, **b_address; /* likewise */
  batchqr_plan_t plan;
  void *workspace;
  size_t workspace_bytes;
  rc_result *result;
#if HAVE_CUDA
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t step; /* the graph, ready */
#endif
} runner;

/* --- the parts of a step: enqueued on the GPU, done on the CPU */

static void assemble(const runner *r) {
#if HAVE_CUDA
  if (r->backend.on_device) {
    ex_check_cuda(rc_launch_assemble(&r->cloud, r->result->equations, r->stream));
    return;
  }
#endif
#pragma omp parallel for schedule(static)
  for (int64_t e = 0; e < r->result->equations; e++) rc_assemble(&r->cloud, e);
}

/* The coefficients of all polynomials. */
static void solve(const runner *r) {
  batchqr_operands operands = {.a = r->a_address, .c = r->b_address};
  ex_check(&r->backend,
           batchqr_plan_execute(r->backend.handle, r->plan, &operands, r->workspace, r->workspace_bytes),
           "least squares");
}

static void advance(const runner *r) {
#if HAVE_CUDA
  if (r->backend.on_device) {
    ex_check_cuda(rc_launch_advance(&r->cloud, r->stream));
    return;
  }
#endif
#pragma omp parallel for schedule(static)
  for (int i = 0; i < r->cloud.n; i++) rc_advance(&r->cloud, i);
  *r->cloud.time += r->cloud.dt;
}

static void wait(const runner *r) {
#if HAVE_CUDA
  if (r->backend.on_device) ex_check_cuda(cudaStreamSynchronize(r->stream));
#endif
  (void)r;
}

/* --- memory and plan */

static double **addresses(const runner *r, double *base, int64_t cols) {
  double **all = ex_alloc((size_t)r->host.n, sizeof *all);
  for (int i = 0; i < r->host.n; i++) all[i] = base + cols * r->host.first[i];
  double **copy = ex_copy_to_backend(&r->backend, all, (size_t)r->host.n * sizeof *all);
  if (r->backend.on_device) free(all);
  return copy;
}

/* On the CPU positions and fields are copied too: the originals are for the errors in the end. */
static double *moving_copy(const runner *r, double *from, size_t bytes) {
  if (r->backend.on_device) return ex_copy_to_backend(&r->backend, from, bytes);
  return memcpy(ex_alloc(bytes, 1), from, bytes);
}

static void make_cloud(runner *r) {
  const rc_cloud *h = &r->host;
  size_t n = (size_t)h->n, equations = (size_t)h->first[n];
  double zero = 0;
  r->cloud = *h;
  r->cloud.position = moving_copy(r, h->position, 3 * n * sizeof(double));
  r->cloud.value = moving_copy(r, h->value, n * (size_t)h->fields * sizeof(double));
  r->cloud.time = moving_copy(r, &zero, sizeof zero);
  r->cloud.scale = ex_copy_to_backend(&r->backend, (void *)h->scale, n * sizeof *h->scale);
  r->cloud.first = ex_copy_to_backend(&r->backend, (void *)h->first, (n + 1) * sizeof *h->first);
  r->cloud.point = ex_copy_to_backend(&r->backend, (void *)h->point, equations * sizeof *h->point);
  r->cloud.neighbour =
      ex_copy_to_backend(&r->backend, (void *)h->neighbour, equations * sizeof *h->neighbour);
  r->cloud.a = ex_new_memory(&r->backend, equations * RC_BASIS * sizeof(double));
  r->cloud.b = ex_new_memory(&r->backend, equations * (size_t)h->fields * sizeof(double));
  r->a_address = addresses(r, r->cloud.a, RC_BASIS);
  r->b_address = addresses(r, r->cloud.b, h->fields);
}

static void make_plan(runner *r) {
  int n = r->host.n, *m = ex_alloc((size_t)n, sizeof *m), *cols = ex_alloc((size_t)n, sizeof *cols);
  for (int i = 0; i < n; i++) {
    m[i] = r->host.first[i + 1] - r->host.first[i];
    cols[i] = RC_BASIS;
    if (i == 0 || m[i] < r->result->least) r->result->least = m[i];
    if (m[i] > r->result->most) r->result->most = m[i];
  }
  batchqr_batch batch = {.type = BATCHQR_D,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = n,
                         .m_array = m,
                         .n_array = cols,
                         .k = r->host.fields,
                         .trans = BATCHQR_NO_TRANS,
                         .a = {.layout = BATCHQR_POINTERS, .ld_array = m},
                         .c = {.layout = BATCHQR_POINTERS, .ld_array = m}};
  ex_check(&r->backend, batchqr_plan_create(r->backend.handle, BATCHQR_GELS, &batch, &r->plan), "the plan");
  r->workspace_bytes = batchqr_plan_workspace(r->plan);
  r->workspace = ex_new_memory(&r->backend, r->workspace_bytes);
  r->result->launches = batchqr_plan_launches(r->plan);
  snprintf(r->result->kernels, sizeof r->result->kernels, "%s", batchqr_plan_describe(r->plan));
  free(cols);
  free(m);
}

static void free_runner(runner *r) {
  batchqr_plan_destroy(r->plan);
#if HAVE_CUDA
  if (r->backend.on_device) {
    ex_check_cuda(cudaGraphExecDestroy(r->step));
    ex_check_cuda(cudaGraphDestroy(r->graph));
    ex_check_cuda(cudaStreamDestroy(r->stream));
  }
#endif
  void *own[] = {r->cloud.position, r->cloud.value, r->cloud.time, r->a_address, r->b_address};
  for (int i = 0; i < 5; i++) {
    if (r->backend.on_device)
      ex_free_memory(&r->backend, own[i]);
    else
      free(own[i]);
  }
  ex_free_copy(&r->backend, (void *)r->cloud.scale);
  ex_free_copy(&r->backend, (void *)r->cloud.first);
  ex_free_copy(&r->backend, (void *)r->cloud.point);
  ex_free_copy(&r->backend, (void *)r->cloud.neighbour);
  ex_free_memory(&r->backend, r->cloud.a);
  ex_free_memory(&r->backend, r->cloud.b);
  ex_free_memory(&r->backend, r->workspace);
  batchqr_destroy(r->backend.handle);
  rc_free_cloud(&r->host);
}

/* --- the loop */

#if HAVE_CUDA
/* Captures a step. */
static void make_graph(runner *r) {
  ex_check_cuda(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal));
  assemble(r);
  solve(r);
  advance(r);
  ex_check_cuda(cudaStreamEndCapture(r->stream, &r->graph));
  ex_check_cuda(cudaGraphInstantiate(&r->step, r->graph, 0));
  r->result->graph = true;
}
#endif

static void take_step(const runner *r) {
#if HAVE_CUDA
  if (r->backend.on_device) {
    ex_check_cuda(cudaGraphLaunch(r->step, r->stream));
    return;
  }
#endif
  assemble(r);
  solve(r);
  advance(r);
}

/* Free device memory; 0 on the CPU. */
static double free_memory(const runner *r) {
  size_t unused = 0, all;
#if HAVE_CUDA
  if (r->backend.on_device) ex_check_cuda(cudaMemGetInfo(&unused, &all));
#endif
  (void)r, (void)all;
  return (double)unused;
}

static void take_steps(runner *r, bool quiet) {
  int steps = r->result->steps;
  char name[64];
  snprintf(name, sizeof name, "%d points", r->host.n);
  ex_progress_begin(name, quiet);
  take_step(r);
  wait(r);
  double start = ex_seconds(), before = free_memory(r);
  for (int s = 1; s < steps; s++) {
    take_step(r);
    if (!r->backend.on_device) ex_progress((double)s / steps);
  }
  wait(r);
  r->result->t_step = (ex_seconds() - start) / (steps > 1 ? steps - 1 : 1);
  r->result->allocated = before - free_memory(r);
  ex_progress_end();
}

static void assemble_and_solve(const runner *r) {
  assemble(r);
  solve(r);
}

static double time_of(const runner *r, void (*part)(const runner *)) {
  const int times = r->backend.on_device ? 20 : 2;
  part(r);
  wait(r);
  double start = ex_seconds();
  for (int i = 0; i < times; i++) part(r);
  wait(r);
  return (ex_seconds() - start) / times;
}

#if HAVE_CUDA
/* Has the kernels of a step do nothing: launches are left, and what kernels wait for each other. A kernel of
 * clusters cannot be replaced, and its work counts as if it were such. */
static void empty_graph(runner *r) {
  const struct cudaKernelNodeParams nothing = {
      .func = rc_empty_kernel(), .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}};
  size_t count;
  ex_check_cuda(cudaGraphGetNodes(r->graph, NULL, &count));
  cudaGraphNode_t *nodes = ex_alloc(count, sizeof(cudaGraphNode_t));
  ex_check_cuda(cudaGraphGetNodes(r->graph, nodes, &count));
  for (size_t i = 0; i < count; i++) {
    enum cudaGraphNodeType type;
    ex_check_cuda(cudaGraphNodeGetType(nodes[i], &type));
    if (type == cudaGraphNodeTypeKernel && cudaGraphKernelNodeSetParams(nodes[i], &nothing) != cudaSuccess)
      cudaGetLastError();
  }
  free(nodes);
  ex_check_cuda(cudaGraphExecDestroy(r->step));
  ex_check_cuda(cudaGraphInstantiate(&r->step, r->graph, 0));
}
#endif

/* What the parts of a step take, one after the other. The solver needs fresh matrices each time. At last the
 * step itself, without its kernels' work. */
static void time_parts(runner *r) {
  rc_result *t = r->result;
  t->t_assemble = time_of(r, assemble);
  t->t_gels = time_of(r, assemble_and_solve) - t->t_assemble;
  t->t_advance = time_of(r, advance);
#if HAVE_CUDA
  if (!r->backend.on_device) return;
  empty_graph(r);
  t->t_empty = time_of(r, take_step);
#endif
}

/* --- errors */

/* Relative, of the gradients that are now in B. */
static double gradient_error(const runner *r) {
  const rc_cloud *h = &r->host;
  size_t bytes = (size_t)h->first[h->n] * (size_t)h->fields * sizeof(double);
  double error = 0, norm = 0, *b = r->backend.on_device ? ex_alloc(bytes, 1) : r->cloud.b;
  ex_copy_from_backend(&r->backend, b, r->cloud.b, bytes);
  for (int i = 0; i < h->n; i++)
    for (int f = 0; f < h->fields; f++) {
      int64_t m = h->first[i + 1] - h->first[i];
      double exact[3];
      rc_exact_gradient(h->position + 3 * (int64_t)i, f, exact);
      for (int d = 0; d < 3; d++) {
        double x = b[h->fields * (int64_t)h->first[i] + m * f + d] * h->scale[i] - exact[d];
        error += x * x;
        norm += exact[d] * exact[d];
      }
    }
  if (b != r->cloud.b) free(b);
  return sqrt(error / norm);
}

/* Relative, of the fields where the points are now. */
static double convection_error(const runner *r, double time) {
  const rc_cloud *h = &r->host;
  double error = 0, norm = 0, *position = r->cloud.position, *value = r->cloud.value;
  if (r->backend.on_device) {
    position = h->position;
    value = h->value;
    ex_copy_from_backend(&r->backend, position, r->cloud.position, (size_t)h->n * 3 * sizeof *position);
    ex_copy_from_backend(&r->backend, value, r->cloud.value,
                         (size_t)h->n * (size_t)h->fields * sizeof *value);
  }
  for (int i = 0; i < h->n; i++)
    for (int f = 0; f < h->fields; f++) {
      double exact = rc_exact(position + 3 * (int64_t)i, time, f);
      double x = value[(int64_t)i * h->fields + f] - exact;
      error += x * x;
      norm += exact * exact;
    }
  return sqrt(error / norm);
}

/* --- all of it */

static void open_runner(runner *r, const rc_settings *settings) {
  ex_open_backend(&r->backend, settings->backend, settings->threads);
  snprintf(r->result->backend, sizeof r->result->backend, "%s", batchqr_describe(r->backend.handle));
#if HAVE_CUDA
  if (!r->backend.on_device) return;
  ex_check_cuda(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
  ex_check(&r->backend, batchqr_set_stream(r->backend.handle, r->stream), "the stream");
#endif
}

rc_result rc_run(const rc_settings *settings, int n, bool quiet) {
  rc_result result = {.n = n, .spacing = 1 / cbrt(n)};
  runner r = {.result = &result};
  open_runner(&r, settings);
  r.host = rc_new_cloud(n, settings->fields);
  result.equations = r.host.first[n];
  result.steps = (int)ceil(settings->time / (settings->cfl * result.spacing));
  r.host.dt = settings->time / result.steps;
  make_cloud(&r);
  make_plan(&r);

  assemble(&r);
  solve(&r);
  wait(&r);
  result.gradient = gradient_error(&r);
#if HAVE_CUDA
  if (r.backend.on_device) make_graph(&r);
#endif
  take_steps(&r, quiet);
  result.convection = convection_error(&r, settings->time);
  time_parts(&r);
  free_runner(&r);
  return result;
}
