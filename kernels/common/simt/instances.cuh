/* SPDX-License-Identifier: BSD-3-Clause */
/* The host side of families that have a kernel for each variant and type, with a block for each member. */
#ifndef BQR_KERNELS_COMMON_SIMT_INSTANCES_CUH
#define BQR_KERNELS_COMMON_SIMT_INSTANCES_CUH

#include "launch.cuh"
#include "warp.cuh"

namespace bqr {

/* FAMILY::variants and num_variants; FAMILY::instance<T, I>(problem, f): f(kernel, bytes of shared memory,
 * threads) of variant I. */
template <class FAMILY> struct instances {
  template <class F>
  static batchqr_status with_instance(const bqr_problem *problem, const bqr_variant *variant, F &&f) {
    return for_type(problem->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return for_index<FAMILY::num_variants>(static_cast<int>(variant - FAMILY::variants), [&](auto index) {
        constexpr int i = decltype(index)::value;
        if constexpr ((FAMILY::variants[i].types & 1 << type_of<T>) != 0)
          return FAMILY::template instance<T, i>(problem, f);
        else
          return BATCHQR_UNSUPPORTED;
      });
    });
  }

  /* Whether there is such an instance, and shared memory for it: up to `most` bytes. */
  static bool fits(const bqr_problem *problem, const bqr_variant *variant, int most) {
    return with_instance(problem, variant, [&](auto, size_t smem, int) {
             return smem <= static_cast<size_t>(most) ? BATCHQR_SUCCESS : BATCHQR_UNSUPPORTED;
           }) == BATCHQR_SUCCESS;
  }

  /* Of variants for the same members, the one with more warps. */
  static bool warps_pay(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
    return with_instance(problem, variant, [&](auto, size_t smem, int threads) {
             return more_warps_pay(device, problem->count, threads / warp_lanes, smem) ? BATCHQR_SUCCESS
                                                                                       : BATCHQR_UNSUPPORTED;
           }) == BATCHQR_SUCCESS;
  }

  static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *) {
    return with_instance(problem, variant,
                         [](auto kernel, size_t smem, int) { return prepare_kernel(kernel, smem); });
  }

  static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *,
                               const bqr_args *args, batchqr_stream stream) {
    return launch_with(problem, variant, stream, *args);
  }
  /* Likewise of kernels with other arguments; args.count members. */
  template <class... A>
  static batchqr_status launch_with(const bqr_problem *problem, const bqr_variant *variant,
                                    batchqr_stream stream, const bqr_args &args, const A &...more) {
    return with_instance(problem, variant, [&](auto kernel, size_t smem, int threads) {
      return launch_kernel(kernel, dim3(grid_for(args.count)), threads, smem, stream, args, more...);
    });
  }
};

} // namespace bqr

#endif
