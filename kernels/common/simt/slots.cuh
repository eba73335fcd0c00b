/* SPDX-License-Identifier: BSD-3-Clause */
/* The host side of families with a block for each member, which lies in shared memory or in a slot of the
 * workspace: as many slots as there are blocks. */
#ifndef BQR_KERNELS_COMMON_SIMT_SLOTS_CUH
#define BQR_KERNELS_COMMON_SIMT_SLOTS_CUH

#include "launch.cuh"
#include "warp.cuh"

namespace bqr {

/* Bytes of shared memory besides a member, bytes of a member, and whether that is in shared memory. */
struct slot_plan {
  size_t fixed, member;
  bool on_chip;

  size_t shared() const { return fixed + (on_chip ? member : 0); }
  size_t slot() const { return on_chip ? 0 : (member + 255) / 256 * 256; }
};

/* Two blocks for each multiprocessor, but less than a gigabyte. */
inline int64_t slot_blocks(const slot_plan &plan, int64_t count, const bqr_device *device) {
  constexpr size_t most = size_t(1) << 30;
  if (plan.on_chip) return count;
  int64_t blocks = 2 * int64_t(device->multiprocessors);
  if (plan.slot() > 0 && static_cast<int64_t>(most / plan.slot()) < blocks)
    blocks = static_cast<int64_t>(most / plan.slot());
  blocks = blocks < 1 ? 1 : blocks;
  return blocks < count ? blocks : count;
}

/* Threads for that many pieces of work at once, `lanes` threads each. */
inline int slot_threads(int pieces, int lanes, int most) {
  const int64_t wanted = (int64_t(pieces) * lanes + warp_lanes - 1) / warp_lanes * warp_lanes;
  return static_cast<int>(wanted < warp_lanes ? warp_lanes : wanted > most ? most : wanted);
}

__device__ __forceinline__ unsigned char *slot_memory(const bqr_args &args, size_t slot) {
  return static_cast<unsigned char *>(args.workspace) + blockIdx.x * slot;
}

/* FAMILY::with_kernel(problem, variant, f): f(kernel(args, bytes of a slot, more...), slot_plan, more...);
 * FAMILY::threads(problem, variant); FAMILY::supports(problem, variant), besides that shared memory suffices.
 */
template <class FAMILY> struct slots {
  static bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
    return FAMILY::supports(p, v) &&
           FAMILY::with_kernel(p, v, [&](auto, const slot_plan &plan, const auto &...) {
             return plan.shared() <= static_cast<size_t>(device->smem_per_block) ? BATCHQR_SUCCESS
                                                                                 : BATCHQR_UNSUPPORTED;
           }) == BATCHQR_SUCCESS;
  }

  static size_t workspace(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
    size_t bytes = 0;
    FAMILY::with_kernel(p, v, [&](auto, const slot_plan &plan, const auto &...) {
      bytes = static_cast<size_t>(slot_blocks(plan, p->count, device)) * plan.slot();
      return BATCHQR_SUCCESS;
    });
    return bytes;
  }

  static batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
    return FAMILY::with_kernel(p, v, [](auto kernel, const slot_plan &plan, const auto &...) {
      return prepare_kernel(kernel, plan.shared());
    });
  }

  static batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                               const bqr_args *args, batchqr_stream stream) {
    return FAMILY::with_kernel(p, v, [&](auto kernel, const slot_plan &plan, const auto &...more) {
      return launch_kernel(kernel, dim3(grid_for(slot_blocks(plan, args->count, device))),
                           FAMILY::threads(p, v), plan.shared(), stream, *args, plan.slot(), more...);
    });
  }
};

} // namespace bqr

#endif
