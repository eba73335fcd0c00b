/* SPDX-License-Identifier: BSD-3-Clause */
#include <batchqr/batchqr.h>
#include <math.h>
#include <stdio.h>

static double a[1000][4][6], q[1000][4][6], r[1000][4][4]; /* 1000 matrices of 6 x 4, by columns */

int main(void) {
  double worst = 0;
  batchqr_handle_t handle;
  batchqr_batch batch = {.type = BATCHQR_D, .count = 1000, .m = 6, .n = 4};
  batch.a = batch.c = (batchqr_storage){.ld = 6, .stride = 24};
  batch.r = (batchqr_storage){.ld = 4, .stride = 16};
  for (int e = 0; e < 24000; e++) a[e / 24][e / 6 % 4][e % 6] = q[e / 24][e / 6 % 4][e % 6] = sin(e);

  if (batchqr_create(&handle, &(batchqr_options){.backend = BATCHQR_BACKEND_CPU})) return 1;
  if (batch_qr(handle, &batch, q, q, r, NULL)) return puts(batchqr_error_message(handle)), 1;
  for (int e = 0; e < 24000; e++) {
    double x = a[e / 24][e / 6 % 4][e % 6];
    for (int l = 0; l < 4; l++) x -= q[e / 24][l][e % 6] * r[e / 24][e / 6 % 4][l];
    worst = fmax(worst, fabs(x));
  }
  printf("largest entry of |A - QR|: %.1e\n", worst);
  batchqr_destroy(handle);
  return worst < 1e-14 ? 0 : 1;
}
