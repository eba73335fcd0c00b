/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/lapack.h"
#include "host/member.h"

#include <lapacke.h>

#define LARFT(letter)                                                                                        \
  LAPACKE_##letter##larft_work(LAPACK_COL_MAJOR, 'F', 'C', rows, k, v, ldv, tau, t, HOST_BLOCK)

void bqr_lapack_larft(batchqr_type type, int rows, int k, const void *v, int ldv, const void *tau, void *t) {
  switch (type) {
  case BATCHQR_S:
    LARFT(s);
    break;
  case BATCHQR_D:
    LARFT(d);
    break;
  case BATCHQR_C:
    LARFT(c);
    break;
  default:
    LARFT(z);
    break;
  }
}

#define LARFB(letter)                                                                                        \
  LAPACKE_##letter##larfb_work(LAPACK_COL_MAJOR, left ? 'L' : 'R', trans, 'F', 'C', m, n, k, v, ldv, t,      \
                               HOST_BLOCK, c, ldc, work, left ? n : m)

void bqr_lapack_larfb(batchqr_type type, batchqr_side side, bool adjoint, int m, int n, int k, const void *v,
                      int ldv, const void *t, void *c, int ldc, void *work) {
  bool left = side == BATCHQR_LEFT;
  char trans = !adjoint ? 'N' : host_is_complex(type) ? 'C' : 'T';
  switch (type) {
  case BATCHQR_S:
    LARFB(s);
    break;
  case BATCHQR_D:
    LARFB(d);
    break;
  case BATCHQR_C:
    LARFB(c);
    break;
  default:
    LARFB(z);
    break;
  }
}
