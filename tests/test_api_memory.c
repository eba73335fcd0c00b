/* SPDX-License-Identifier: BSD-3-Clause */
/* That calls allocate nothing, on the host or on the device, but for the first of a problem. */
#include "allocations.h"
#include "api.h"
#include "batch.h"
#include "inspect.h"
#include "registry.h"
#include "routines.h"

#include <stdlib.h>
#include <string.h>

/* Uniform members; members of several sizes, on the host and on the device, sorted there and not. */
enum { FORMS = 4 };

typedef struct problem {
  batchqr_op op;
  batchqr_batch batch;
  operand_set set;
  char *others[BQR_NUM_OPERANDS]; /* operands that the set has not */
  int *m, *n, *k;                 /* in the backend's memory */
  batchqr_operands operands;
} problem;

/* How many of the forms an operation has. */
static int forms_of(int op) {
  return bqr_registry_operation(bqr_registry_builtin(), op)->host_sizes ? 2 : FORMS;
}

/* All operands: vectors that may be left out are. */
static void make_operands(problem *p, const bqr_operation *operation) {
  p->operands = (batchqr_operands){.a = p->set.a, .c = p->set.q, .r = p->set.r, .tau = p->set.tau};
  for (const bqr_use *use = operation->uses; use->place; use++) {
    const bqr_place *place = &bqr_places[use->place];
    const bool matrix = use->kind == BQR_MATRIX;
    if (bqr_address_at(&p->operands, (int)use->place) || (!matrix && use->access & BQR_OPTIONAL)) continue;
    p->others[use->place] = memory_alloc(backend, p->set.bytes);
    memcpy((char *)&p->operands + place->address, &p->others[use->place], sizeof(void *));
    const batchqr_storage storage = matrix ? p->batch.a : (batchqr_storage){.stride = N};
    memcpy((char *)&p->batch + place->storage, &storage, sizeof storage);
  }
}

static problem make_problem(batchqr_op op, int form) {
  static const int k[COUNT] = {3, 3, 3};
  problem p = {.op = op, .batch = form == 0 ? batch_of(BATCHQR_D) : mixed_of(BATCHQR_D)};
  p.set = make_set(BATCHQR_D);
  make_operands(&p, bqr_registry_operation(bqr_registry_builtin(), (int)op));
  p.batch.k = 3;
  if (form > 0) p.batch.k_array = k;
  if (op == BATCHQR_ORMQR) p.batch.trans = BATCHQR_TRANS;
  if (op == BATCHQR_SYEVD || op == BATCHQR_PINV) { /* square: PINV's c is n x m */
    p.batch.m = p.batch.n;
    p.batch.m_array = p.batch.n_array;
  }
  if (form < 2) return p;
  p.m = memory_clone(backend, p.batch.m_array, COUNT * sizeof(int));
  p.n = memory_clone(backend, p.batch.n_array, COUNT * sizeof(int));
  p.k = memory_clone(backend, k, COUNT * sizeof(int));
  p.batch.sizes = BATCHQR_DEVICE_SIZES;
  p.batch.m = op == BATCHQR_SYEVD || op == BATCHQR_PINV ? N : M;
  p.batch.n = N;
  p.batch.m_array = p.m;
  p.batch.n_array = p.n;
  p.batch.k_array = p.k;
  bqr_sort_always(handle, form == 3);
  return p;
}

static void free_problem(problem *p) {
  bqr_sort_always(handle, false);
  int *const sizes[] = {p->m, p->n, p->k};
  for (int i = 0; i < 3 && p->m; i++) memory_free(backend, sizes[i]);
  for (int i = 0; i < BQR_NUM_OPERANDS; i++) memory_free(backend, p->others[i]);
  free_set(&p->set);
}

static batchqr_status call(const problem *p) {
  return lab_routine_of((int)p->op)->call(handle, &p->batch, &p->operands);
}

/* The allocations of a call of the one-call tier, and those of an execute. */
static int allocations_of_call(const problem *p) {
  const int before = allocations_count();
  const batchqr_status status = call(p);
  const int taken = allocations_count() - before;
  expect_success(status);
  return taken;
}

static int allocations_of_execute(const problem *p, batchqr_plan_t plan, void *space) {
  const int before = allocations_count();
  const batchqr_status status =
      batchqr_plan_execute(handle, plan, &p->operands, space, batchqr_plan_workspace(plan));
  const int taken = allocations_count() - before;
  expect_success(status);
  return taken;
}

START_TEST(calls_allocate_nothing) {
  for (int form = 0; form < forms_of(_i); form++) {
    problem p = make_problem((batchqr_op)_i, form);
    ck_assert_int_gt(allocations_of_call(&p), 0); /* else nothing is counted */
    ck_assert_msg(allocations_of_call(&p) == 0, "%s, form %d", bqr_op_name(_i), form);
    free_problem(&p);
  }
}
END_TEST

START_TEST(executes_allocate_nothing) {
  for (int form = 0; form < forms_of(_i); form++) {
    problem p = make_problem((batchqr_op)_i, form);
    batchqr_plan_t plan;
    expect_success(batchqr_plan_create(handle, p.op, &p.batch, &plan));
    void *space = memory_alloc(backend, batchqr_plan_workspace(plan));
    allocations_of_execute(&p, plan, space); /* CUDA loads kernels when they are first used */
    ck_assert_msg(allocations_of_execute(&p, plan, space) == 0, "%s, form %d", bqr_op_name(_i), form);
    memory_free(backend, space);
    batchqr_plan_destroy(plan);
    free_problem(&p);
  }
}
END_TEST

/* Nor while a stream is captured, in either tier. */
START_TEST(captured_calls_allocate_nothing) {
  batchqr_stream stream = memory_stream_new();
  for (int form = 0; form < forms_of(_i); form++) {
    problem p = make_problem((batchqr_op)_i, form);
    batchqr_plan_t plan;
    expect_success(batchqr_plan_create(handle, p.op, &p.batch, &plan));
    void *space = memory_alloc(backend, batchqr_plan_workspace(plan));
    expect_success(call(&p));
    allocations_of_execute(&p, plan, space);
    expect_success(batchqr_set_stream(handle, stream));
    int called = 0, executed = 0;
    for (int i = 0; i < 2; i++) {
      memory_capture_begin(stream);
      called = allocations_of_call(&p);
      executed = allocations_of_execute(&p, plan, space);
      memory_graph_free(memory_capture_end(stream));
    }
    ck_assert_msg(called == 0 && executed == 0, "%s, form %d: %d, %d", bqr_op_name(_i), form, called,
                  executed);
    expect_success(batchqr_set_stream(handle, NULL));
    memory_free(backend, space);
    batchqr_plan_destroy(plan);
    free_problem(&p);
  }
  memory_stream_free(stream);
}
END_TEST

int main(void) {
  const int routines = BATCHQR_PINV + 1;
  Suite *suite = api_suite("api_memory");
  TCase *memory = api_case(suite, "memory");
  tcase_add_loop_test(memory, calls_allocate_nothing, 0, routines);
  tcase_add_loop_test(memory, executes_allocate_nothing, 0, routines);
  if (suite_on_gpu()) tcase_add_loop_test(memory, captured_calls_allocate_nothing, 0, routines);
  return suite_run(suite);
}
