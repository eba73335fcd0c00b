/* SPDX-License-Identifier: BSD-3-Clause */
/* Several handles at once. */
#include "api.h"

#include <pthread.h>

enum { WORKERS = 4, TURNS = 20 };

/* A thread with a handle and a stream of its own, its own type and data. The plan is everyone's. */
typedef struct worker {
  pthread_t thread;
  batchqr_type type;
  batchqr_plan_t plan;
  batchqr_stream stream; /* NULL on the CPU */
  batchqr_handle_t handle;
  void *workspace;
  operand_set called[TURNS + 1], planned[TURNS + 1]; /* the last ones before the others began */
  batchqr_status status;                             /* of the first call that failed */
} worker;

static void take_turn(worker *w, int i) {
  const operand_set *s = &w->planned[i];
  batchqr_batch batch = batch_of(w->type);
  batchqr_operands operands = {.a = s->a, .c = s->q, .r = s->r};
  if (!w->status)
    w->status = batch_qr(w->handle, &batch, w->called[i].a, w->called[i].q, w->called[i].r, NULL);
  if (!w->status)
    w->status =
        batchqr_plan_execute(w->handle, w->plan, &operands, w->workspace, batchqr_plan_workspace(w->plan));
}

/* Without assertions: Check's way out of a test is not for threads. */
static void *work(void *context) {
  for (int i = 0; i < TURNS; i++) take_turn(context, i);
  return NULL;
}

static void hire(worker *w, int number, batchqr_plan_t plan) {
  *w = (worker){.type = (batchqr_type)number, .plan = plan, .handle = memory_handle(backend, NULL)};
  if (backend == BATCHQR_BACKEND_CUDA) w->stream = memory_stream_new();
  expect_success(batchqr_set_stream(w->handle, w->stream));
  w->workspace = memory_alloc(backend, batchqr_plan_workspace(plan));
  for (int i = 0; i <= TURNS; i++) {
    w->called[i] = make_set_of(w->type, 10 * (uint64_t)number);
    w->planned[i] = make_set_of(BATCHQR_D, 10 * (uint64_t)number);
  }
  take_turn(w, TURNS);
}

static void expect_alike(operand_set *s, const operand_set *alone) {
  download(s);
  ck_assert_mem_eq(s->qh, alone->qh, s->bytes);
  ck_assert_mem_eq(s->rh, alone->rh, s->bytes);
}

static void dismiss(worker *w) {
  expect_success(w->status);
  download(&w->called[TURNS]);
  download(&w->planned[TURNS]);
  for (int i = 0; i < TURNS; i++) {
    expect_alike(&w->called[i], &w->called[TURNS]);
    expect_alike(&w->planned[i], &w->planned[TURNS]);
  }
  for (int i = 0; i <= TURNS; i++) {
    free_set(&w->called[i]);
    free_set(&w->planned[i]);
  }
  batchqr_destroy(w->handle);
  memory_free(backend, w->workspace);
  if (w->stream) memory_stream_free(w->stream);
}

/* Handles in threads of their own, on streams of their own, give bitwise what each gives alone. */
START_TEST(handles_work_side_by_side) {
  static worker workers[WORKERS];
  batchqr_plan_t plan;
  batchqr_batch batch = _i ? mixed_of(BATCHQR_D) : batch_of(BATCHQR_D);
  expect_success(batchqr_plan_create(handle, BATCHQR_QR, &batch, &plan));
  for (int i = 0; i < WORKERS; i++) hire(&workers[i], i, plan);
  memory_sync(backend);
  for (int i = 0; i < WORKERS; i++)
    ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  for (int i = 0; i < WORKERS; i++) ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
  memory_sync(backend);
  for (int i = 0; i < WORKERS; i++) dismiss(&workers[i]);
  batchqr_plan_destroy(plan);
}
END_TEST

int main(void) {
  Suite *suite = api_suite("api_threads");
  TCase *threads = api_case(suite, "threads");
  tcase_add_loop_test(threads, handles_work_side_by_side, 0, 2);
  return suite_run(suite);
}
