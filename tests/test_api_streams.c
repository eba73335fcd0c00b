/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is on the GPU alone: streams and their capture, addresses that it cannot reach, CUDA's errors.
 */
#include "api.h"
#include "handle.h"
#include "inspect.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void cuda(cudaError_t code) { ck_assert_msg(code == cudaSuccess, "%s", cudaGetErrorString(code)); }

START_TEST(host_addresses_are_refused) {
  int pageable;
  cuda(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, handle->device.ordinal));
  if (pageable) return;
  char expected[256], *host = aligned_alloc(256, 4096);
  snprintf(expected, sizeof expected, "tau = %p is host memory that %s cannot reach", (void *)host,
           handle->device.name);
  expect(batch_geqrf(handle, &small, pool, host, NULL), BATCHQR_INVALID_ARGUMENT, expected);
  snprintf(expected, sizeof expected, "info = %p is host memory that %s cannot reach", (void *)host,
           handle->device.name);
  expect(batch_geqrf(handle, &small, pool, pool + 4096, (int *)host), BATCHQR_INVALID_ARGUMENT, expected);
  snprintf(expected, sizeof expected, "workspace = %p is host memory that %s cannot reach", (void *)host,
           handle->device.name);
  expect(batchqr_set_workspace(handle, host, 4096), BATCHQR_INVALID_ARGUMENT, expected);
  batchqr_batch batch = small;
  batch.sizes = BATCHQR_DEVICE_SIZES;
  batch.m_array = batch.n_array = (int *)host;
  snprintf(expected, sizeof expected,
           "batch.m_array = %p is host memory, but batch.sizes is BATCHQR_DEVICE_SIZES", (void *)host);
  expect(batch_geqrf(handle, &batch, pool, pool + 4096, NULL), BATCHQR_INVALID_ARGUMENT, expected);
  batch.sizes = BATCHQR_HOST_SIZES;
  batch.m_array = (int *)pool;
  snprintf(expected, sizeof expected,
           "batch.m_array = %p is device memory, but batch.sizes is BATCHQR_HOST_SIZES", (void *)pool);
  expect(batch_geqrf(handle, &batch, pool, pool + 4096, NULL), BATCHQR_INVALID_ARGUMENT, expected);
  expect_success(batch_geqrf(handle, &small, pool, pool + 4096, NULL));
  free(host);
}
END_TEST

/* Replays `graph` on fresh data and compares with what an uncaptured call gave. */
static void expect_same_when_replayed(memory_graph *graph, batchqr_stream stream, operand_set *s) {
  download(s);
  char *q = malloc(s->bytes), *r = malloc(s->bytes);
  memcpy(q, s->qh, s->bytes);
  memcpy(r, s->rh, s->bytes);
  for (int run = 0; run < 2; run++) {
    memory_upload(backend, s->a, s->a0, s->bytes);
    memory_upload(backend, s->q, s->a0, s->bytes);
    memory_upload(backend, s->r, s->a0, s->bytes);
    memory_graph_launch(graph, stream);
    memory_sync(backend);
    download(s);
    ck_assert_mem_eq(s->qh, q, s->bytes);
    ck_assert_mem_eq(s->rh, r, s->bytes);
  }
  free(q);
  free(r);
}

static batchqr_status captured_qr(const batchqr_batch *batch, const operand_set *s, batchqr_stream stream,
                                  memory_graph **graph) {
  memory_capture_begin(stream);
  batchqr_status status = batch_qr(handle, batch, s->a, s->q, s->r, NULL);
  *graph = memory_capture_end(stream);
  return status;
}

/* First calls, and calls for which the workspace would have to grow, are refused and leave the capture whole.
 */
START_TEST(one_call_tier_is_captured) {
  static const int m[] = {300, 290, 280}, n[] = {40, 40, 35};
  batchqr_stream stream = memory_stream_new();
  memory_graph *graph;
  operand_set s = make_set(BATCHQR_D);
  batchqr_batch batch = batch_of(BATCHQR_D);
  if (_i == 1) {
    batch.sizes = BATCHQR_HOST_SIZES;
    batch.m_array = m;
    batch.n_array = n;
  }
  expect_success(batchqr_set_stream(handle, stream));
  expect(captured_qr(&batch, &s, stream, &graph), BATCHQR_CAPTURE_ERROR,
         "the first call for a problem allocates, and the handle's stream is being captured");
  memory_graph_free(graph);

  expect_success(batchqr_set_stream(handle, NULL)); /* another stream than the captured one */
  expect_success(batch_qr(handle, &batch, s.a, s.q, s.r, NULL));
  expect_success(batchqr_set_stream(handle, stream));
  expect_success(captured_qr(&batch, &s, stream, &graph));

  /* Everything that the graph uses outlives its time in the handle. */
  size_t bytes = handle->buffer->bytes;
  enum { MANY = 20000, PLACE = MANY * 2700 * 8 };
  batchqr_batch large = tall;
  large.count = MANY;
  char *memory = memory_alloc(backend, 3 * PLACE);
  expect_success(batch_qr(handle, &large, memory, memory + PLACE, memory + 2 * PLACE, NULL));
  ck_assert_uint_gt(handle->buffer->bytes, bytes);
  ck_assert_ptr_nonnull(handle->retired_buffers);
  expect_success(bqr_force(handle, BATCHQR_GEQRF, NULL, NULL)); /* empties the cache */
  ck_assert_ptr_nonnull(handle->retired_plans);
  expect_same_when_replayed(graph, stream, &s);
  memory_graph_free(graph);
  memory_free(backend, memory);
  free_set(&s);
  expect_success(batchqr_set_stream(handle, NULL));
  memory_stream_free(stream);
}
END_TEST

START_TEST(workspace_does_not_grow_under_capture) {
  batchqr_stream stream = memory_stream_new();
  memory_graph *graph;
  operand_set s = make_set(BATCHQR_D);
  batchqr_batch batch = batch_of(BATCHQR_D);
  expect_success(batchqr_set_stream(handle, stream));
  expect_success(batchqr_set_workspace(handle, pool, POOL_BYTES));
  expect_success(batch_qr(handle, &batch, s.a, s.q, s.r, NULL));
  expect_success(batchqr_set_workspace(handle, NULL, 0));
  ck_assert_int_eq(captured_qr(&batch, &s, stream, &graph), BATCHQR_CAPTURE_ERROR);
  ck_assert_msg(strstr(batchqr_error_message(handle), "workspace would have to grow"), "%s",
                batchqr_error_message(handle));
  memory_graph_free(graph);
  free_set(&s);
  expect_success(batchqr_set_stream(handle, NULL));
  memory_stream_free(stream);
}
END_TEST

/* One group; several; and members that are under way at once, in branches of the graph. */
START_TEST(planned_tier_is_captured) {
  if (_i == 2 && bqr_family_find("geqrf_large")) {
    expect_success(bqr_force(handle, BATCHQR_GEQRF, "geqrf_large", "cols64"));
    expect_success(bqr_force(handle, BATCHQR_ORGQR, "orgqr_large", "cols64"));
  }
  batchqr_stream stream = memory_stream_new();
  memory_graph *graph;
  operand_set s = make_set(BATCHQR_Z);
  batchqr_batch batch = _i == 1 ? mixed_of(BATCHQR_Z) : batch_of(BATCHQR_Z);
  batchqr_plan_t plan, refused;
  expect_success(batchqr_plan_create(handle, BATCHQR_QR, &batch, &plan));
  size_t bytes = batchqr_plan_workspace(plan);
  void *space = memory_alloc(backend, bytes);
  batchqr_operands operands = {.a = s.a, .c = s.q, .r = s.r};
  expect_success(batchqr_plan_execute(handle, plan, &operands, space, bytes));
  expect_success(batchqr_set_stream(handle, stream));
  memory_capture_begin(stream);
  batchqr_status create = batchqr_plan_create(handle, BATCHQR_GEQRF, &batch, &refused);
  batchqr_status execute = batchqr_plan_execute(handle, plan, &operands, space, bytes);
  graph = memory_capture_end(stream);
  ck_assert_int_eq(create, BATCHQR_CAPTURE_ERROR);
  ck_assert_ptr_null(refused);
  expect_success(execute);
  expect_same_when_replayed(graph, stream, &s);
  memory_graph_free(graph);
  batchqr_plan_destroy(plan);
  memory_free(backend, space);
  free_set(&s);
  expect_success(batchqr_set_stream(handle, NULL));
  memory_stream_free(stream);
}
END_TEST

/* How many nodes of a graph nothing follows, and by how many the first one is followed. */
static void count_ends(cudaGraph_t graph, size_t *ends, size_t *branches) {
  enum { MOST = 200 };
  cudaGraphNode_t nodes[MOST], from[MOST], to[MOST], first;
  size_t count = MOST, edges = MOST, one = 1;
  cuda(cudaGraphGetNodes(graph, nodes, &count));
  cuda(cudaGraphGetEdges(graph, from, to, NULL, &edges));
  cuda(cudaGraphGetRootNodes(graph, &first, &one));
  *ends = *branches = 0;
  for (size_t i = 0; i < count; i++) {
    size_t followers = 0;
    for (size_t j = 0; j < edges; j++) followers += from[j] == nodes[i];
    *ends += followers == 0;
    if (nodes[i] == first) *branches = followers;
  }
}

/* Groups side by side are branches of the graph: all of them behind what was captured before, and all of them
 * before what follows. Meanwhile the plan serves another stream as well. */
START_TEST(branches_begin_and_end_together) {
  batchqr_stream stream = memory_stream_new(), another = memory_stream_new();
  operand_set s = make_set(BATCHQR_D), aside = make_set(BATCHQR_D);
  batchqr_batch batch = mixed_of(BATCHQR_D);
  batchqr_plan_t plan;
  cudaGraph_t graph;
  expect_success(batchqr_plan_create(handle, BATCHQR_GEQRF, &batch, &plan));
  ck_assert_int_gt(plan->num_streams, 1); /* else this test shows nothing */
  size_t bytes = batchqr_plan_workspace(plan), roots, ends, branches;
  void *space = memory_alloc(backend, bytes), *space_aside = memory_alloc(backend, bytes);
  batchqr_operands operands = {.a = s.a, .tau = s.tau}, others = {.a = aside.a, .tau = aside.tau};
  expect_success(batchqr_plan_execute(handle, plan, &operands, space, bytes));
  memory_sync(backend);
  expect_success(batchqr_set_stream(handle, stream));
  memory_capture_begin(stream);
  cuda(cudaMemsetAsync(pool, 0, 64, stream));
  expect_success(batchqr_plan_execute(handle, plan, &operands, space, bytes));
  expect_success(batchqr_set_stream(handle, another));
  expect_success(batchqr_plan_execute(handle, plan, &others, space_aside, bytes));
  expect_success(batchqr_set_stream(handle, stream));
  expect_success(batchqr_plan_execute(handle, plan, &operands, space, bytes));
  cuda(cudaMemsetAsync(pool, 0, 64, stream));
  cuda(cudaStreamEndCapture(stream, &graph));
  cuda(cudaGraphGetRootNodes(graph, NULL, &roots));
  ck_assert_uint_eq(roots, 1);
  count_ends(graph, &ends, &branches);
  ck_assert_uint_eq(ends, 1);
  ck_assert_uint_eq(branches, (size_t)plan->num_streams);
  download(&s);
  download(&aside);
  ck_assert_mem_eq(s.ah, aside.ah, s.bytes);
  ck_assert_mem_eq(s.tauh, aside.tauh, s.tau_bytes);
  cuda(cudaGraphDestroy(graph));
  expect_success(batchqr_set_stream(handle, NULL));
  batchqr_plan_destroy(plan);
  memory_free(backend, space);
  memory_free(backend, space_aside);
  free_set(&s);
  free_set(&aside);
  memory_stream_free(stream);
  memory_stream_free(another);
}
END_TEST

/* Calls on two streams by turns share the handle's workspace; none may see the other's tau. */
START_TEST(streams_take_turns) {
  enum { CALLS = 50 };
  batchqr_stream streams[] = {memory_stream_new(), memory_stream_new()};
  operand_set expected = make_set(BATCHQR_D), sets[CALLS];
  batchqr_batch batch = batch_of(BATCHQR_D);
  expect_success(batch_qr(handle, &batch, expected.a, expected.q, expected.r, NULL));
  download(&expected);
  for (int i = 0; i < CALLS; i++) sets[i] = make_set(BATCHQR_D);
  for (int i = 0; i < CALLS; i++) {
    expect_success(batchqr_set_stream(handle, streams[i % 2]));
    expect_success(batch_qr(handle, &batch, sets[i].a, sets[i].q, sets[i].r, NULL));
  }
  memory_sync(backend);
  for (int i = 0; i < CALLS; i++) {
    download(&sets[i]);
    ck_assert_mem_eq(sets[i].qh, expected.qh, expected.bytes);
    ck_assert_mem_eq(sets[i].rh, expected.rh, expected.bytes);
    free_set(&sets[i]);
  }
  free_set(&expected);
  for (int i = 0; i < 2; i++) memory_stream_free(streams[i]);
  expect_success(batchqr_set_stream(handle, NULL)); /* after work on a stream that is gone */
  expect_success(batch_qr(handle, &tall, pool, pool + POOL_PLACE, pool + 2 * POOL_PLACE, NULL));
}
END_TEST

START_TEST(no_error_is_left_behind) {
  expect(batch_geqrf(handle, &small, pool, NULL, NULL), BATCHQR_INVALID_ARGUMENT, "tau is NULL");
  batchqr_batch batch = tall;
  batch.count = (int64_t)1 << 45; /* more workspace than there is */
  ck_assert_int_eq(batch_qr(handle, &batch, pool, pool + POOL_PLACE, pool + 2 * POOL_PLACE, NULL),
                   BATCHQR_OUT_OF_MEMORY);
  cuda(cudaPeekAtLastError());
  expect_success(batch_qr(handle, &tall, pool, pool + POOL_PLACE, pool + 2 * POOL_PLACE, NULL));
}
END_TEST

int main(void) {
  Suite *suite = api_suite("api_streams");
  TCase *streams = api_case(suite, "streams");
  tcase_add_test(streams, host_addresses_are_refused);
  tcase_add_loop_test(streams, one_call_tier_is_captured, 0, 2);
  tcase_add_test(streams, workspace_does_not_grow_under_capture);
  tcase_add_loop_test(streams, planned_tier_is_captured, 0, 3);
  tcase_add_test(streams, branches_begin_and_end_together);
  tcase_add_test(streams, streams_take_turns);
  tcase_add_test(streams, no_error_is_left_behind);
  return suite_run(suite);
}
