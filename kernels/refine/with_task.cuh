/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of refine.h's steps by type. */
#ifndef BQR_KERNELS_REFINE_WITH_TASK_CUH
#define BQR_KERNELS_REFINE_WITH_TASK_CUH

#include "refine.cuh"

namespace bqr {

/* f(refine_task<T>). All of A's types have a copy in single precision. */
template <class F> batchqr_status with_task(const bqr_refine *r, F &&f) {
  return for_real_type(r->type,
                       [&](auto tag) { return f(refine_task_of<typename decltype(tag)::type>(*r)); });
}

} // namespace bqr

#endif
