/* SPDX-License-Identifier: BSD-3-Clause */
/* Q and R of large members by Gram-Schmidt, for those who take Q of low precision: recursively, the left half
 * of the columns becomes Q1, R12 = Q1^H A2, and A2 - Q1 R12 is what the right half is made of, in FP16
 * products, whose rows and columns are brought into FP16's range each by a power of two of its own. Panels
 * are factored by reflectors in single precision. (Zhang, Baharlouei and Wu, High Accuracy Matrix
 * Computations on Neural Engines, 2020.)
 *
 * The rounding of R12 leaves in A2 what is then divided by A2's length: ||I - Q^H Q|| grows like cond(A)
 * 2^-11. Where it is asked for, Q is orthogonalised once more, Q = Q' R', and R becomes R' R. */
#include "arena.h"
#include "batch.h"
#include "drivers/gemm.h"
#include "step_children.h"
#include "strided_member.h"
#include <stdlib.h>

/* The width of a panel, of which the columns are a multiple. */
static const bqr_variant variants[] = {
    {.name = "cols256", .cols = 256}, {.name = "cols128", .cols = 128}, {.name = "cols64", .cols = 64}};

enum { MOST_MEMBERS = 64, TWICE = 2 };

/* Of panels: their QR, R's part of that, and Q. Of the whole: Q's place filled with A, zeros below R, info,
 * and R after the second time. */
enum { FACTOR, FORM, TOP, FILL, ZEROS, TELL, REPLACE, NUM_PARTS };

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  static const int ops[NUM_PARTS] = {BATCHQR_GEQRF, BATCHQR_ORGQR,   BQR_COPY_R, BQR_COPY,
                                     BQR_COPY_R,    BATCHQR_R_RANGE, BQR_COPY};
  (void)device;
  if (number >= NUM_PARTS) return false;
  *child = *problem;
  child->op = ops[number];
  child->compute = BATCHQR_COMPUTE_AUTO;
  child->whole = child->keeps_a = false;
  child->gram_schmidt = 0;
  child->positive = problem->positive && number == FACTOR;
  child->count = 1;
  child->children = NULL;
  child->num_children = 0;
  child->k = 0;
  if (number <= TOP) child->n = variant->cols;
  if (number == FORM) child->k = variant->cols;
  if (number >= ZEROS) child->m = problem->n;
  return true;
}

typedef struct states {
  bqr_gemm_engine *engine;
  void *children;
} states;

/* A member at work. */
typedef struct work {
  const bqr_problem *problem;
  const bqr_device *device;
  const states *states;
  int panel;
  char *q, *r; /* the member's; q holds what is to become Q */
  int64_t ldq, ldr;
  void *tau, *range, *children, *gemm;
  char *again, *product; /* R of the second time, and its product with the first */
  size_t gemm_bytes, bytes;
  batchqr_stream stream;
} work;

/* All of them are `switched`, which no switch makes use of: no library then takes part, whose sums depend on
 * where operands lie. */
static bqr_gemm project(const bqr_problem *p, int left, int right) {
  return (bqr_gemm){.type = p->type,
                    .mode = BATCHQR_COMPUTE_HALF,
                    .switched = true,
                    .adjoint_a = true,
                    .m = left,
                    .n = right,
                    .k = p->m,
                    .alpha = 1};
}

static bqr_gemm subtract(const bqr_problem *p, int left, int right) {
  return (bqr_gemm){.type = p->type,
                    .mode = BATCHQR_COMPUTE_HALF,
                    .switched = true,
                    .m = p->m,
                    .n = right,
                    .k = left,
                    .alpha = -1,
                    .beta = 1};
}

/* Of R' R: R' is near the unit matrix, and rounding it would be all that is lost. */
static bqr_gemm join(const bqr_problem *p) {
  return (bqr_gemm){.type = p->type,
                    .mode = BATCHQR_COMPUTE_AUTO,
                    .switched = true,
                    .m = p->n,
                    .n = p->n,
                    .k = p->n,
                    .alpha = 1};
}

static size_t larger(size_t x, size_t y) { return x > y ? x : y; }

static size_t gemm_bytes(const bqr_problem *p, const bqr_device *device) {
  const int half = p->n / 2 + p->n % 2;
  const bqr_gemm first = project(p, p->n, p->n), second = subtract(p, p->n, half), third = join(p);
  const size_t one = bqr_gemm_workspace(device, &first), two = bqr_gemm_workspace(device, &second);
  return larger(larger(one, two), p->gram_schmidt == TWICE ? bqr_gemm_workspace(device, &third) : 0);
}

static void lay_out(const bqr_problem *p, const bqr_variant *variant, const bqr_device *device, void *base,
                    work *w) {
  const size_t size = bqr_type_bytes(p->type), square = p->gram_schmidt == TWICE ? (size_t)p->n : 0;
  bqr_arena arena = {base, 0};
  *w = (work){.problem = p, .device = device, .panel = variant->cols, .gemm_bytes = gemm_bytes(p, device)};
  w->tau = bqr_arena_take(&arena, (size_t)variant->cols, size);
  w->range = bqr_arena_take(&arena, 2, size);
  w->again = bqr_arena_take(&arena, square * square, size);
  w->product = bqr_arena_take(&arena, square * square, size);
  w->children = bqr_arena_take(&arena, 1, bqr_step_children_most(p, 1, device));
  w->gemm = bqr_arena_take(&arena, 1, w->gemm_bytes);
  w->bytes = arena.bytes;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  work w;
  lay_out(problem, variant, device, NULL, &w);
  return w.bytes;
}

static batchqr_status launch_child(const work *w, int number, bqr_args args) {
  const bqr_problem *p = &w->problem->children[number].problem;
  args.m = p->m;
  args.n = p->n;
  args.k = p->k;
  args.workspace = w->children;
  return bqr_step_child_launch(w->problem, number, 1, w->device, args, w->states->children, w->stream);
}

static bqr_matrix by_columns(void *data, int64_t ld) {
  return (bqr_matrix){.data = data, .ld = (int)ld, .row_stride = 1};
}

static char *column(const work *w, int j) {
  return w->q + (int64_t)j * w->ldq * (int64_t)bqr_type_bytes(w->problem->type);
}
static char *entry_of(const work *w, char *r, int64_t ldr, int i, int j) {
  return r + (i + (int64_t)j * ldr) * (int64_t)bqr_type_bytes(w->problem->type);
}

static batchqr_status multiply(const work *w, bqr_gemm product, const void *a, int64_t lda, const void *b,
                               int64_t ldb, void *c, int64_t ldc) {
  product.a = a, product.lda = lda;
  product.b = b, product.ldb = ldb;
  product.c = c, product.ldc = ldc;
  return bqr_gemm_enqueue(w->states->engine, &product, w->gemm, w->gemm_bytes, w->stream);
}

static batchqr_status factor_panel(const work *w, char *r, int64_t ldr, int first) {
  const bqr_args panel = {.a = by_columns(column(w, first), w->ldq),
                          .r = by_columns(entry_of(w, r, ldr, first, first), ldr),
                          .tau = {.data = w->tau}};
  bqr_args of_q = panel;
  of_q.r = (bqr_matrix){.ld = 0};
  batchqr_status status = launch_child(w, FACTOR, of_q);
  if (!status) status = launch_child(w, TOP, panel);
  return status ? status : launch_child(w, FORM, of_q);
}

/* The columns first .. first + cols - 1 become Q's, which they are orthogonal to on the left. */
static batchqr_status factor(const work *w, char *r, int64_t ldr, int first, int cols) {
  if (cols == w->panel) return factor_panel(w, r, ldr, first);
  const int left = (cols / w->panel + 1) / 2 * w->panel, right = cols - left, second = first + left;
  char *q1 = column(w, first), *q2 = column(w, second), *r12 = entry_of(w, r, ldr, first, second);
  batchqr_status status = factor(w, r, ldr, first, left);
  if (!status) status = multiply(w, project(w->problem, left, right), q1, w->ldq, q2, w->ldq, r12, ldr);
  if (!status) status = multiply(w, subtract(w->problem, left, right), q1, w->ldq, r12, ldr, q2, w->ldq);
  return status ? status : factor(w, r, ldr, second, right);
}

static batchqr_status factor_all(const work *w, char *r, int64_t ldr) {
  batchqr_status status = factor(w, r, ldr, 0, w->problem->n);
  return status ? status
                : launch_child(w, ZEROS, (bqr_args){.a = by_columns(r, ldr), .r = by_columns(r, ldr)});
}

static batchqr_status factor_again(const work *w) {
  const int n = w->problem->n;
  batchqr_status status = factor_all(w, w->again, n);
  if (!status) status = multiply(w, join(w->problem), w->again, n, w->r, w->ldr, w->product, n);
  return status ? status
                : launch_child(w, REPLACE,
                               (bqr_args){.a = by_columns(w->product, n), .c = by_columns(w->r, w->ldr)});
}

static batchqr_status factor_member(work *w, const bqr_args *all, int64_t entry) {
  const size_t size = bqr_type_bytes(w->problem->type);
  const bqr_strided_member e = bqr_strided_member_at(all, size, entry);
  const int64_t id = all->host_members ? all->host_members[entry] : entry;
  w->q = e.c, w->ldq = e.ldc;
  w->r = (char *)all->r.data + id * all->r.stride * (int64_t)size;
  w->ldr = all->r.host_ld_array ? all->r.host_ld_array[id] : all->r.ld;
  batchqr_status status = BATCHQR_SUCCESS;
  if (e.a != e.c)
    status = launch_child(w, FILL, (bqr_args){.a = by_columns(e.a, e.lda), .c = by_columns(e.c, e.ldc)});
  if (!status) status = factor_all(w, w->r, w->ldr);
  if (!status && w->problem->gram_schmidt == TWICE) status = factor_again(w);
  if (status || !e.info) return status;
  return launch_child(w, TELL,
                      (bqr_args){.a = by_columns(w->r, w->ldr), .range = {.data = w->range}, .info = e.info});
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  work w;
  lay_out(problem, variant, device, args->workspace, &w);
  w.states = args->state;
  w.stream = stream;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t entry = 0; entry < args->count && !status; entry++) status = factor_member(&w, args, entry);
  return status;
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)device;
  return problem->gram_schmidt > 0 && problem->compute == BATCHQR_COMPUTE_HALF && problem->uniform &&
         !problem->pointers && problem->m >= problem->n && problem->n > variant->cols &&
         problem->n % variant->cols == 0 && problem->count <= MOST_MEMBERS;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  return bqr_step_children_prepare(problem, 1, device);
}

static void close_states(void *opened) {
  states *s = opened;
  bqr_step_children_close(s->children);
  bqr_gemm_engine_free(s->engine);
  free(s);
}

static batchqr_status open_states(const bqr_problem *problem, const bqr_variant *variant,
                                  const bqr_device *device, void **state) {
  states *s = calloc(1, sizeof *s);
  (void)variant;
  *state = s;
  if (!s) return BATCHQR_OUT_OF_MEMORY;
  const batchqr_status status = bqr_gemm_engine_new(device, &s->engine);
  if (!status) return bqr_step_children_open(problem, 1, device, &s->children);
  s->engine = NULL;
  return status;
}

/* A product counts as one, of a time 2 (panels - 1). */
static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const int panels = problem->n / variant->cols, times = problem->gram_schmidt;
  int of_panel = 0, others = 0;
  for (int i = 0; i < problem->num_children; i++) {
    const int launches = bqr_step_child_launches(problem, i, 1, device);
    if (i <= TOP) of_panel += launches;
    if (i == ZEROS) others += times * launches;
    if (i == FILL || i == TELL) others += launches;
    if (i == REPLACE && times == TWICE) others += 1 + launches;
  }
  return (int)problem->count * (times * (panels * of_panel + 2 * (panels - 1)) + others);
}

const bqr_family bqr_family_qr_recursive = {
    .name = "qr_recursive",
    .op = BATCHQR_QR,
    .types = 1 << BATCHQR_S | 1 << BATCHQR_C,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .compute = BATCHQR_COMPUTE_HALF,
    .open = open_states,
    .close = close_states,
    .count_launches = count_launches,
    .child = child,
};
