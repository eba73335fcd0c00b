/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_mma: members of up to 16384 rows, one block or one cluster of blocks for a member, in one launch. See
 * common/mma_qr.cuh. */
#include "launch.cuh"
#include "mma_qr.cuh"

namespace {
using namespace bqr;

/* WARPS: as many as fit on a multiprocessor by the registers; 0: no matter how many. */
template <class T, int R, int P, int B, bool NARROW, int WARPS>
__global__ void __launch_bounds__(P *warp_lanes, WARPS > 0 ? WARPS / P : 0)
    geqrf_mma_kernel(const __grid_constant__ batchqr_args args) {
  if constexpr (B == 1 || has_clusters) {
    extern __shared__ __align__(16) unsigned char shared[];
    if (B > 1) cluster_sync(); /* all blocks have started */
    for (int64_t i = blockIdx.x / B; i < args.count; i += gridDim.x / B) {
      member x = member_at<BATCHQR_GEQRF>(args, i);
      int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
      if (x.ok && x.m > 0 && x.n > 0) {
        mma_qr<T, R, P, B, NARROW> qr(shared, matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id),
                                      x.m, x.n);
        info = qr.run(tau_data<T>(args, x.id));
        block_sync();
      }
      if (thread_id() == 0 && blockIdx.x % B == 0) set_info(args, x.id, info);
    }
  }
}

enum : int { S = 1 << BATCHQR_S, D = 1 << BATCHQR_D, C = 1 << BATCHQR_C, Z = 1 << BATCHQR_Z };
/* R, P, B, types, most columns (0: any number), WARPS */
constexpr batchqr_variant variants[] = {
    {"rows32.warps1", {1, 1, 1, S | D | C | Z}},
    {"rows64.warps1", {2, 1, 1, S | D | C | Z}},
    {"rows64.warps2", {1, 2, 1, S | D | C | Z}},
    {"rows128.warps2", {2, 2, 1, S | D | C | Z}},
    {"rows128.warps4", {1, 4, 1, S | D | C | Z}},
    {"rows256.warps4", {2, 4, 1, S | D | C | Z}},
    {"rows512.warps8", {2, 8, 1, S | D | C | Z}},
    {"rows1024.warps8", {4, 8, 1, S | D}},
    {"rows1024.warps8.blocks2", {2, 8, 2, S | D | Z}},
    {"rows2048.warps8.blocks2", {4, 8, 2, S | D}},
    {"rows2048.warps8.blocks4", {2, 8, 4, S | D | Z}},
    {"rows4096.warps8.blocks4", {4, 8, 4, S | D}},
    {"rows4096.warps8.blocks8", {2, 8, 8, S | D | Z}},
    {"rows8192.warps8.blocks16", {2, 8, 16, S | D | Z}},
    {"rows16384.warps8.blocks16", {4, 8, 16, S | D | C}},
    {"rows128.cols16.warps1", {4, 1, 1, S | D | C, 16, 12}},
    {"rows256.cols16.warps4", {2, 4, 1, S | D | C, 16, 16}},
    {"rows256.cols16.warps8", {1, 8, 1, Z, 16, 16}},
    {"rows512.cols16.warps4", {4, 4, 1, S | D | C, 16, 12}},
    {"rows512.cols16.warps16", {1, 16, 1, Z, 16, 16}},
    {"rows1024.cols16.warps16", {2, 16, 1, S | D | C, 16, 16}},
};
constexpr int num_variants = sizeof variants / sizeof variants[0];

/* f(kernel, bytes of shared memory, threads, blocks of a cluster) of the variant's instance. */
template <class T, class F> batchqr_status with_type(int variant, int n, F &&f) {
  return for_index<num_variants>(variant, [&](auto index) {
    constexpr const int(&p)[6] = variants[decltype(index)::value].p;
    constexpr bool narrow = p[4] > 0;
    if constexpr ((p[3] & 1 << type_of<T>) != 0)
      return f(geqrf_mma_kernel<T, p[0], p[1], p[2], narrow, p[5]>,
               mma_qr<T, p[0], p[1], p[2], narrow>::smem(n), p[1] * warp_lanes, p[2]);
    else
      return BATCHQR_UNSUPPORTED;
  });
}
template <class F>
batchqr_status with_instance(const batchqr_problem *problem, const batchqr_variant *variant, F &&f) {
  return for_type(problem->type, [&](auto tag) {
    return with_type<typename decltype(tag)::type>(static_cast<int>(variant - variants), problem->n, f);
  });
}

bool supports(const batchqr_problem *problem, const batchqr_variant *variant, const batchqr_device *device) {
  constexpr int most_columns = 4096; /* their scales lie in shared memory */
  const int blocks = variant->p[2], columns = variant->p[4] > 0 ? variant->p[4] : most_columns;
  if (problem->m > warp_lanes * variant->p[0] * variant->p[1] * blocks || problem->n > columns ||
      problem->positive || (blocks > 1 && (device->sm < 90 || device->sm >= 120)) /* up to 16 blocks */)
    return false;
  return with_instance(problem, variant, [&](auto, size_t smem, int, int) {
           return smem <= static_cast<size_t>(device->smem_per_block) ? BATCHQR_SUCCESS : BATCHQR_UNSUPPORTED;
         }) == BATCHQR_SUCCESS;
}

batchqr_status prepare(const batchqr_problem *problem, const batchqr_variant *variant,
                       const batchqr_device *) {
  return with_instance(problem, variant, [](auto kernel, size_t smem, int, int blocks) {
    return prepare_kernel(kernel, smem, blocks);
  });
}

batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant, const batchqr_device *,
                      const batchqr_args *args, batchqr_stream stream) {
  return with_instance(problem, variant, [&](auto kernel, size_t smem, int threads, int blocks) {
    return launch_clusters(kernel, grid_for(args->count), blocks, threads, smem, stream, *args);
  });
}
} // namespace

extern "C" const batchqr_family batchqr_family_geqrf_mma = {
    "geqrf_mma", BATCHQR_GEQRF, BATCHQR_ALL_TYPES, BATCHQR_BACKEND_CUDA,
    80,          variants,      num_variants,      1,
    supports,    nullptr,       prepare,           launch,
};
