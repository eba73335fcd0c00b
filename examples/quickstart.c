/* SPDX-License-Identifier: BSD-3-Clause */
#include <batchqr/batchqr.h>
#include <math.h>
#include <stdio.h>

enum { COUNT = 1000, M = 6, N = 4 };
static double a[COUNT][N][M], q[COUNT][N][M],
    r[COUNT][N][N]; /* by columns: A(i,j) of member k is a[k][j][i] */

int main(void) {
  double worst = 0;
  batchqr_handle_t handle;
  batchqr_batch batch = batchqr_batch_packed(BATCHQR_QR, BATCHQR_D, M, N, 0, COUNT);
  for (int k = 0; k < COUNT; k++)
    for (int j = 0; j < N; j++)
      for (int i = 0; i < M; i++) a[k][j][i] = q[k][j][i] = sin(i + M * (j + N * k));

  batchqr_options options = {.backend = BATCHQR_BACKEND_CPU};
  if (batchqr_create(&handle, &options)) return puts(batchqr_error_message(NULL)), 1;
  /* Q takes the place of the second copy of A. */
  if (batch_qr(handle, &batch, q, q, r, NULL)) return puts(batchqr_error_message(handle)), 1;

  for (int k = 0; k < COUNT; k++)
    for (int j = 0; j < N; j++)
      for (int i = 0; i < M; i++) {
        double error = a[k][j][i];
        for (int l = 0; l < N; l++) error -= q[k][l][i] * r[k][j][l];
        worst = fmax(worst, fabs(error));
      }
  printf("largest entry of |A - QR|: %.1e\n", worst);
  batchqr_destroy(handle);
  return worst < 1e-14 ? 0 : 1;
}
