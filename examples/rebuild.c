/* SPDX-License-Identifier: BSD-3-Clause */
#include <batchqr/batchqr.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 100, M = 6, N = 4 };
static double a[COUNT][N][M], v[COUNT][N][M], q[COUNT][N][M], c[COUNT][N][M]; /* by columns */
static double tau[COUNT][N];

int main(void) {
  double worst_q = 0, worst_a = 0;
  batchqr_handle_t handle;
  batchqr_batch batch = {.type = BATCHQR_D, .count = COUNT, .m = M, .n = N, .tau = {.stride = N}};
  batch.a = batch.c = (batchqr_storage){.ld = M, .stride = M * N};
  for (int k = 0; k < COUNT; k++)
    for (int j = 0; j < N; j++)
      for (int i = 0; i < M; i++) a[k][j][i] = v[k][j][i] = sin(i + M * (j + N * k));
  batchqr_options options = {.backend = BATCHQR_BACKEND_CPU};
  if (batchqr_create(&handle, &options)) return puts(batchqr_error_message(NULL)), 1;

  /* A = QR. On and above the diagonal of v is R; below it and in tau are the min(m,n) reflectors of Q. */
  if (batch_geqrf(handle, &batch, v, tau, NULL)) return puts(batchqr_error_message(handle)), 1;

  /* From here on k counts reflectors. Q itself: its first n columns. */
  batch.k = N;
  memcpy(q, v, sizeof v);
  if (batch_orgqr(handle, &batch, q, tau, NULL)) return puts(batchqr_error_message(handle)), 1;

  /* A again: Q applied to R, which has zeros below. Q need not be formed for that. */
  for (int k = 0; k < COUNT; k++)
    for (int j = 0; j < N; j++)
      for (int i = 0; i <= j; i++) c[k][j][i] = v[k][j][i];
  if (batch_ormqr(handle, &batch, BATCHQR_LEFT, BATCHQR_NO_TRANS, v, tau, c, NULL))
    return puts(batchqr_error_message(handle)), 1;

  for (int k = 0; k < COUNT; k++)
    for (int j = 0; j < N; j++)
      for (int i = 0; i < M; i++) {
        double qr = 0;
        for (int l = 0; l <= j; l++) qr += q[k][l][i] * v[k][j][l];
        worst_q = fmax(worst_q, fabs(a[k][j][i] - qr));
        worst_a = fmax(worst_a, fabs(a[k][j][i] - c[k][j][i]));
      }
  printf("largest entry of |A - QR|: %.1e with Q formed, %.1e with Q applied\n", worst_q, worst_a);
  batchqr_destroy(handle);
  return worst_q < 1e-14 && worst_a < 1e-14 ? 0 : 1;
}
