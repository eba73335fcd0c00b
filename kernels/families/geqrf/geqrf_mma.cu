/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_mma: members of up to 16384 rows, one block or one cluster of blocks for a member, in one launch. See
 * common/panel/mma_qr.cuh. */
#include "common/simt/launch.cuh"
#include "common/panel/mma_qr.cuh"

namespace {
using namespace bqr;

/* WARPS: how many fit on a multiprocessor by the registers; 0: no matter how many. */
template <class T, int U, int P, int B, int G, int WARPS>
__global__ void __launch_bounds__(P *warp_lanes, WARPS / P)
    geqrf_mma_kernel(const __grid_constant__ bqr_args args) {
  if constexpr (B == 1 || has_clusters) {
    extern __shared__ __align__(16) unsigned char shared[];
    if (B > 1) cluster_sync(); /* all blocks have started */
    for (int64_t i = blockIdx.x / B; i < args.count; i += gridDim.x / B) {
      member x = member_at<BATCHQR_GEQRF>(args, i);
      int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
      if (x.ok && x.m > 0 && x.n > 0) {
        mma_qr<T, U, P, B, G, (WARPS > 0)> qr(shared, matrix_data<T>(args, args.a, x.id),
                                              matrix_ld(args.a, x.id), x.m, x.n);
        info = qr.run(tau_data<T>(args, x.id));
        block_sync();
      }
      if (thread_id() == 0 && blockIdx.x % B == 0) set_info(args, x.id, info);
    }
  }
}

enum : int { S = 1 << BATCHQR_S, D = 1 << BATCHQR_D, C = 1 << BATCHQR_C, Z = 1 << BATCHQR_Z };
/* U, P, B, types, G, WARPS */
constexpr bqr_variant variants[] = {
    {"rows32.warps1", {4, 1, 1, S | D | C}},
    {"rows48.warps1", {6, 1, 1, C | Z}},
    {"rows64.warps1", {8, 1, 1, S | D | C | Z}},
    {"rows64.warps1.many", {8, 1, 1, D, 2, 12}},
    {"rows64.warps2", {4, 2, 1, Z}},
    {"rows96.warps1", {12, 1, 1, S | D}},
    {"rows112.warps1", {14, 1, 1, S | D}},
    {"rows128.warps2", {8, 2, 1, S | D | C | Z}},
    {"rows128.warps4", {4, 4, 1, S | D | C | Z}},
    {"rows192.warps2", {12, 2, 1, D, 4}},
    {"rows192.warps3", {8, 3, 1, S}},
    {"rows192.warps4", {6, 4, 1, S}},
    {"rows256.warps4", {8, 4, 1, S | D | C | Z}},
    {"rows512.warps8", {8, 8, 1, S | D | C | Z}},
    {"rows1024.warps8", {16, 8, 1, D}},
    {"rows1024.warps8.blocks2", {8, 8, 2, S | Z}},
    {"rows2048.warps8.blocks2", {16, 8, 2, D}},
    {"rows2048.warps8.blocks4", {8, 8, 4, S | D | C | Z}},
    {"rows4096.warps8.blocks4", {16, 8, 4, D}},
    {"rows4096.warps8.blocks8", {8, 8, 8, S | D | C | Z}},
    {"rows8192.warps8.blocks16", {8, 8, 16, S | D | Z}},
    {"rows16384.warps8.blocks16", {16, 8, 16, S | D | C}},
};
constexpr int num_variants = sizeof variants / sizeof variants[0];

/* f(kernel, bytes of shared memory, threads, blocks of a cluster) of the variant's instance. */
template <class T, class F> batchqr_status with_type(int variant, int n, F &&f) {
  return for_index<num_variants>(variant, [&](auto index) {
    constexpr const int(&p)[6] = variants[decltype(index)::value].p;
    if constexpr ((p[3] & 1 << type_of<T>) != 0)
      return f(geqrf_mma_kernel<T, p[0], p[1], p[2], p[4], p[5]>,
               mma_qr<T, p[0], p[1], p[2], p[4], (p[5] > 0)>::smem(n), p[1] * warp_lanes, p[2]);
    else
      return BATCHQR_UNSUPPORTED;
  });
}
template <class F>
batchqr_status with_instance(const bqr_problem *problem, const bqr_variant *variant, F &&f) {
  return for_type(problem->type, [&](auto tag) {
    return with_type<typename decltype(tag)::type>(static_cast<int>(variant - variants), problem->n, f);
  });
}

bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  constexpr int tile = 8, most_columns = 4096; /* columns' scales lie in shared memory */
  const int blocks = variant->p[2];
  if (problem->m > tile * variant->p[0] * variant->p[1] * blocks || problem->n > most_columns ||
      problem->positive || (blocks > 1 && (device->sm < 90 || device->sm >= 120)) /* up to 16 blocks */)
    return false;
  return with_instance(problem, variant, [&](auto, size_t smem, int, int) {
           return smem <= static_cast<size_t>(device->smem_per_block) ? BATCHQR_SUCCESS : BATCHQR_UNSUPPORTED;
         }) == BATCHQR_SUCCESS;
}

batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *) {
  return with_instance(problem, variant, [](auto kernel, size_t smem, int, int blocks) {
    return prepare_kernel(kernel, smem, blocks);
  });
}

batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *,
                      const bqr_args *args, batchqr_stream stream) {
  return with_instance(problem, variant, [&](auto kernel, size_t smem, int threads, int blocks) {
    return launch_clusters(kernel, grid_for(args->count), blocks, threads, smem, stream, *args);
  });
}
} // namespace

extern "C" const bqr_family bqr_family_geqrf_mma = {
    "geqrf_mma", BATCHQR_GEQRF, BQR_ALL_TYPES, BATCHQR_BACKEND_CUDA, 80, variants, num_variants, 1, supports,
    nullptr,     prepare,       launch,
};
