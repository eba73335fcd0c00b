/* SPDX-License-Identifier: BSD-3-Clause */
#include <batchqr/batchqr.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double a[100][4][6], v[100][4][6], q[100][4][6], c[100][4][6]; /* 100 matrices of 6 x 4, by columns */
static double tau[100][4];

int main(void) {
  double worst_q = 0, worst_a = 0;
  batchqr_handle_t handle;
  batchqr_batch batch = {.type = BATCHQR_D, .count = 100, .m = 6, .n = 4, .tau = {.stride = 4}};
  batch.a = batch.c = (batchqr_storage){.ld = 6, .stride = 24};
  for (int e = 0; e < 2400; e++) a[e / 24][e / 6 % 4][e % 6] = v[e / 24][e / 6 % 4][e % 6] = sin(e);
  batchqr_status status = batchqr_create(&handle, &(batchqr_options){.backend = BATCHQR_BACKEND_CPU});
  if (status) return puts(batchqr_status_string(status)), 1;

  /* A = QR. On and above the diagonal of v is R; below it and in tau are the min(m,n) reflectors of Q. */
  if (batch_geqrf(handle, &batch, v, tau, NULL)) return puts(batchqr_error_message(handle)), 1;

  /* From here on k counts reflectors. Q itself: its first n columns. */
  batch.k = 4;
  memcpy(q, v, sizeof v);
  if (batch_orgqr(handle, &batch, q, tau, NULL)) return puts(batchqr_error_message(handle)), 1;

  /* A again: Q applied to R, which has zeros below. Q need not be formed for that. */
  for (int e = 0; e < 400; e++) memcpy(c[e / 4][e % 4], v[e / 4][e % 4], (e % 4 + 1) * sizeof(double));
  if (batch_ormqr(handle, &batch, BATCHQR_LEFT, BATCHQR_NO_TRANS, v, tau, c, NULL))
    return puts(batchqr_error_message(handle)), 1;

  for (int e = 0; e < 2400; e++) {
    const int k = e / 24, j = e / 6 % 4, i = e % 6;
    double qr = 0;
    for (int l = 0; l <= j; l++) qr += q[k][l][i] * v[k][j][l];
    worst_q = fmax(worst_q, fabs(a[k][j][i] - qr));
    worst_a = fmax(worst_a, fabs(a[k][j][i] - c[k][j][i]));
  }
  printf("largest entry of |A - QR|: %.1e with Q formed, %.1e with Q applied\n", worst_q, worst_a);
  batchqr_destroy(handle);
  return worst_q < 1e-14 && worst_a < 1e-14 ? 0 : 1;
}
