/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvalues of members that are too large to be judged by their vectors: their sum is the trace, the sum of
 * their squares the squared Frobenius norm. The matrices are a vector's windows (Hankel's, h(i + j)), which
 * the device copies itself. BATCHQR_TEST_ORDERS names others, such as "32768 65536". */
#include "batch.h"
#include "matgen.h"
#include "suite.h"

#include <cuda_runtime_api.h>
#include <math.h>

static void cuda(cudaError_t code) { ck_assert_msg(code == cudaSuccess, "%s", cudaGetErrorString(code)); }

static double get(batchqr_type type, const void *x, int64_t i) {
  return type == BATCHQR_S ? ((const float *)x)[i] : ((const double *)x)[i];
}

/* Sums over eigenvalues that are found, and what they must be; all in double precision. */
typedef struct sums {
  double trace, squares;
} sums;

static sums sums_of_matrix(batchqr_type type, const void *h, int n) {
  sums s = {0, 0};
  for (int i = 0; i < 2 * n - 1; i++) {
    const double x = get(type, h, i), times = i < n ? i + 1 : 2 * n - 1 - i;
    if (i % 2 == 0) s.trace += x;
    s.squares += times * x * x;
  }
  return s;
}

static sums sums_of_values(batchqr_type type, const void *w, int n) {
  sums s = {0, 0};
  for (int i = 0; i < n; i++) {
    const double x = get(type, w, i);
    ck_assert(i == 0 || x >= get(type, w, i - 1));
    s.trace += x;
    s.squares += x * x;
  }
  return s;
}

enum { MOST = 3 }; /* in units of n eps |A| and of sqrt(n) eps |A|: 0.3 and 0.9 were seen up to 65536 */

static void solve(batchqr_type type, int n) {
  const size_t size = bqr_type_bytes(type), rows = (size_t)n;
  batchqr_handle_t handle = memory_handle(BATCHQR_BACKEND_CUDA, NULL);
  batchqr_batch batch = batchqr_batch_packed(BATCHQR_SYEVD, type, n, n, 0, 1);
  batchqr_plan_t plan;
  batch.v = (batchqr_storage){.layout = BATCHQR_STRIDED};
  ck_assert_msg(!batchqr_plan_create(handle, BATCHQR_SYEVD, &batch, &plan), "%s",
                batchqr_error_message(handle));
  const size_t bytes = batchqr_plan_workspace(plan);
  void *h = memory_host(2 * rows * size), *w = memory_host(rows * size);
  matgen_fill(type, MATGEN_RANDOM, 7, 2 * n - 1, 1, h, 2 * n - 1);
  void *device = memory_clone(BATCHQR_BACKEND_CUDA, h, 2 * rows * size),
       *space = memory_alloc(BATCHQR_BACKEND_CUDA, bytes);
  const batchqr_operands operands = {.a = memory_alloc(BATCHQR_BACKEND_CUDA, rows * rows * size),
                                     .s = memory_alloc(BATCHQR_BACKEND_CUDA, rows * size)};
  for (size_t j = 0; j < rows; j++)
    cuda(cudaMemcpyAsync((char *)operands.a + j * rows * size, (char *)device + j * size, rows * size,
                         cudaMemcpyDeviceToDevice, NULL));
  cudaEvent_t begin, end;
  float ms = 0;
  cuda(cudaEventCreate(&begin));
  cuda(cudaEventCreate(&end));
  cuda(cudaEventRecord(begin, NULL));
  ck_assert_int_eq(batchqr_plan_execute(handle, plan, &operands, space, bytes), BATCHQR_SUCCESS);
  cuda(cudaEventRecord(end, NULL));
  cuda(cudaEventSynchronize(end));
  cuda(cudaEventElapsedTime(&ms, begin, end));
  memory_download(BATCHQR_BACKEND_CUDA, w, operands.s, rows * size);
  const sums is = sums_of_matrix(type, h, n), found = sums_of_values(type, w, n);
  const double norm = sqrt(is.squares), eps = type_eps(type),
               trace = fabs(found.trace - is.trace) / (n * norm * eps),
               frobenius = fabs(sqrt(found.squares) - norm) / (sqrt((double)n) * norm * eps);
  printf("%c %d: %.1f ms, off by %.3f of the trace, %.3f of the norm\n", type_letter(type), n, (double)ms,
         trace, frobenius);
  ck_assert_double_le(trace, MOST);
  ck_assert_double_le(frobenius, MOST);
  void *all[] = {operands.a, operands.s, device, space};
  for (int i = 0; i < 4; i++) memory_free(BATCHQR_BACKEND_CUDA, all[i]);
  cuda(cudaEventDestroy(begin));
  cuda(cudaEventDestroy(end));
  free(h);
  free(w);
  batchqr_plan_destroy(plan);
  batchqr_destroy(handle);
}

START_TEST(sums_of_values_are_the_matrix_s) {
  const batchqr_type type = (batchqr_type)_i;
  if (type_is_complex(type)) return;
  const char *orders = getenv("BATCHQR_TEST_ORDERS");
  if (!orders) orders = "1025 1536 2048 4100 8192";
  for (char *end; *orders; orders = end) {
    const long n = strtol(orders, &end, 10);
    if (end == orders) break;
    solve(type, (int)n);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("syevd_large");
  suite_add(suite, sums_of_values_are_the_matrix_s);
  return suite_run(suite);
}
