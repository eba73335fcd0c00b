/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct.h"
#include "children.h"
#include "handle.h"
#include "inspect.h"
#include "memory.h"

#include <limits.h>

static bqr_matrix matrix(void *data, const batchqr_storage *storage) {
  return (bqr_matrix){.data = data,
                      .ld = storage->ld,
                      .ld_array = storage->ld_array,
                      .stride = storage->stride,
                      .row_stride = 1,
                      .pointers = storage->layout == BATCHQR_POINTERS};
}

static bqr_vector vector(void *data, const batchqr_storage *storage) {
  return (bqr_vector){
      .data = data, .stride = storage->stride, .pointers = storage->layout == BATCHQR_POINTERS};
}

/* The arguments of a launch; its arrays of sizes are in the backend's memory already. */
static bqr_args direct_args(const direct *d, const batchqr_batch *b, const batchqr_operands *o) {
  return (bqr_args){.a = matrix(o->a, &b->a),
                    .c = matrix(o->c, &b->c),
                    .r = matrix(o->r, &b->r),
                    .tau = vector(o->tau, &b->tau),
                    .norms = vector(o->norms, &b->norms),
                    .iterations = vector(o->iterations, &b->iterations),
                    .relres = vector(o->relres, &b->relres),
                    .range = vector(o->range, &b->range),
                    .jpvt = vector(o->jpvt, &b->jpvt),
                    .rank = vector(o->rank, &b->rank),
                    .s = vector(o->s, &b->s),
                    .u = matrix(o->u, &b->u),
                    .v = matrix(o->v, &b->v),
                    .kmax = INT_MAX,
                    .info = d->s->family->op < BQR_NUM_ROUTINES ? o->info : NULL,
                    .m_array = b->m_array,
                    .n_array = b->n_array,
                    .k_array = b->k_array,
                    .m = d->t->bound_m,
                    .n = d->t->bound_n,
                    .k = d->t->bound_k,
                    .thin = d->s->family->op == BQR_COPY, /* as in QR: the columns that become Q */
                    .untrusted = d->members == NULL && b->sizes == BATCHQR_DEVICE_SIZES,
                    .count = d->count};
}

batchqr_status launch_directly(const batchqr_batch *b, const batchqr_operands *o, void *context) {
  const direct *d = context;
  const bqr_family *f = d->s->family;
  const bqr_variant *v = d->s->variant;
  const bqr_device *device = bqr_handle_device(d->s->handle);
  bqr_problem problem = {.op = f->op,
                         .type = b->type,
                         .compute = d->s->compute,
                         .pointers = b->a.layout == BATCHQR_POINTERS,
                         .side = b->side,
                         .trans = b->trans,
                         .uniform = b->sizes == BATCHQR_UNIFORM,
                         .m = d->t->bound_m,
                         .n = d->t->bound_n,
                         .k = d->t->bound_k,
                         .count = d->count};
  bqr_args args = direct_args(d, b, o);
  const bqr_planner planner = bqr_handle_planner(d->s->handle);
  bqr_error error;
  batchqr_status status = bqr_children_plan(&planner, f, v, &problem, &error);
  size_t bytes = status == BATCHQR_SUCCESS && f->workspace != NULL ? f->workspace(&problem, v, device) : 0;
  int *members = d->members != NULL
                     ? memory_clone(device->backend, d->members, (size_t)d->count * sizeof *members)
                     : NULL;
  args.members = members;
  args.workspace = memory_alloc(device->backend, bytes);
  if (status == BATCHQR_SUCCESS && f->prepare != NULL) status = f->prepare(&problem, v, device);
  if (status == BATCHQR_SUCCESS && f->open != NULL) status = f->open(&problem, v, device, &args.state);
  if (status == BATCHQR_SUCCESS) status = f->launch(&problem, v, device, &args, NULL);
  memory_sync(device->backend);
  if (args.state != NULL) f->close(args.state);
  bqr_children_free(&problem);
  memory_free(device->backend, args.workspace);
  if (members != NULL) memory_free(device->backend, members);
  return status;
}
