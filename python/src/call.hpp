/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BATCHQR_PYTHON_CALL_HPP
#define BATCHQR_PYTHON_CALL_HPP

#include <batchqr/batchqr.h>

namespace batchqr_python {

/* An operation by its number. */
inline batchqr_status call(batchqr_handle_t handle, batchqr_op op, const batchqr_batch &b,
                           const batchqr_operands &o) {
  switch (op) {
  case BATCHQR_GEQRF:
    return batch_geqrf(handle, &b, o.a, o.tau, o.info);
  case BATCHQR_ORGQR:
    return batch_orgqr(handle, &b, o.a, o.tau, o.info);
  case BATCHQR_ORMQR:
    return batch_ormqr(handle, &b, b.side, b.trans, o.a, o.tau, o.c, o.info);
  case BATCHQR_QR:
    return batch_qr(handle, &b, o.a, o.c, o.r, o.info);
  case BATCHQR_GEQR_R:
    return batch_geqr_r(handle, &b, o.a, o.r, o.info);
  case BATCHQR_GELS:
    return batch_gels_refined(handle, &b, b.trans, o.a, o.c, o.norms, o.iterations, o.relres, o.info);
  case BATCHQR_GEQP3:
    return batch_geqp3(handle, &b, o.a, o.tau, o.jpvt, o.rank, o.c, o.info);
  case BATCHQR_GELSY:
    return batch_gelsy(handle, &b, o.a, o.c, o.jpvt, o.rank, o.info);
  case BATCHQR_PINV:
    return batch_pinv(handle, &b, o.a, o.c, o.s, o.rank, o.info);
  case BATCHQR_GESVD:
    return batch_gesvd(handle, &b, o.a, o.s, o.u, o.v, o.rank, o.info);
  case BATCHQR_GESVDR:
    return batch_gesvdr(handle, &b, o.a, o.s, o.u, o.v, o.info);
  case BATCHQR_SYEVD:
    return batch_syevd(handle, &b, o.a, o.s, o.v, o.info);
  default:
    return BATCHQR_INVALID_ARGUMENT;
  }
}

} // namespace batchqr_python

#endif
