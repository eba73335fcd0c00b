/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_mma: members of up to 16384 rows, one block or one cluster of blocks for a member, in one launch. See
 * common/panel/mma_qr.cuh. */
#include "common/simt/launch.cuh"
#include "common/panel/mma_qr.cuh"
#include "common/ptx/target.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/simt/launch_cluster.cuh"

namespace {
using namespace bqr;

/* WARPS: how many fit on a multiprocessor by the registers; 0: no matter how many. */
template <class T, int U, int P, int B, int G, int WARPS>
__global__ void __launch_bounds__(P *warp_lanes, WARPS / P)
    geqrf_mma_kernel(const __grid_constant__ bqr_args args, bool positive) {
  if constexpr (B == 1 || has_clusters) {
    extern __shared__ __align__(16) unsigned char shared[];
    if (B > 1) cluster_sync(); /* all blocks have started */
    for (int64_t i = blockIdx.x / B; i < args.count; i += gridDim.x / B) {
      member x = member_at<BATCHQR_GEQRF>(args, i);
      int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
      if (x.ok && x.m > 0 && x.n > 0) {
        mma_qr<T, U, P, B, G, (WARPS > 0)> qr(shared, matrix_data<T>(args, args.a, x.id),
                                              matrix_ld(args.a, x.id), x.m, x.n);
        info = qr.run(tau_data<T>(args, x.id), positive);
        block_sync();
      }
      if (thread_id() == 0 && blockIdx.x % B == 0) set_info(args, x.id, info);
    }
  }
}

enum : int { S = 1 << BATCHQR_S, D = 1 << BATCHQR_D, C = 1 << BATCHQR_C, Z = 1 << BATCHQR_Z };
/* rows: of a member, over all blocks of the cluster. */
constexpr bqr_variant variants[] = {
    {.name = "rows32.warps1", .rows = 32, .warps = 1, .blocks = 1, .types = S | D | C},
    {.name = "rows48.warps1", .rows = 48, .warps = 1, .blocks = 1, .types = C | Z},
    {.name = "rows64.warps1", .rows = 64, .warps = 1, .blocks = 1, .types = S | D | C | Z},
    {.name = "rows64.warps1.many",
     .rows = 64,
     .warps = 1,
     .blocks = 1,
     .many = true,
     .types = D,
     .panels = 2,
     .resident = 12},
    {.name = "rows64.warps2", .rows = 64, .warps = 2, .blocks = 1, .types = Z},
    {.name = "rows96.warps1", .rows = 96, .warps = 1, .blocks = 1, .types = S | D},
    {.name = "rows112.warps1", .rows = 112, .warps = 1, .blocks = 1, .types = S | D},
    {.name = "rows128.warps2", .rows = 128, .warps = 2, .blocks = 1, .types = S | D | C | Z},
    {.name = "rows128.warps4", .rows = 128, .warps = 4, .blocks = 1, .types = S | D | C | Z},
    {.name = "rows192.warps2", .rows = 192, .warps = 2, .blocks = 1, .types = D, .panels = 4},
    {.name = "rows192.warps3", .rows = 192, .warps = 3, .blocks = 1, .types = S},
    {.name = "rows192.warps4", .rows = 192, .warps = 4, .blocks = 1, .types = S},
    {.name = "rows256.warps4", .rows = 256, .warps = 4, .blocks = 1, .types = S | D | C | Z},
    {.name = "rows512.warps8", .rows = 512, .warps = 8, .blocks = 1, .types = S | D | C | Z},
    {.name = "rows1024.warps8", .rows = 1024, .warps = 8, .blocks = 1, .types = D},
    {.name = "rows1024.warps8.blocks2", .rows = 1024, .warps = 8, .blocks = 2, .types = S | Z},
    {.name = "rows2048.warps8.blocks2", .rows = 2048, .warps = 8, .blocks = 2, .types = D},
    {.name = "rows2048.warps8.blocks4", .rows = 2048, .warps = 8, .blocks = 4, .types = S | D | C | Z},
    {.name = "rows4096.warps8.blocks4", .rows = 4096, .warps = 8, .blocks = 4, .types = D},
    {.name = "rows4096.warps8.blocks8", .rows = 4096, .warps = 8, .blocks = 8, .types = S | D | C | Z},
    {.name = "rows8192.warps8.blocks16", .rows = 8192, .warps = 8, .blocks = 16, .types = S | D | Z},
    {.name = "rows16384.warps8.blocks16", .rows = 16384, .warps = 8, .blocks = 16, .types = S | D | C},
};
constexpr int num_variants = sizeof variants / sizeof variants[0];

/* f(kernel, bytes of shared memory, threads, blocks of a cluster) of the variant's instance. */
template <class T, class F> batchqr_status with_type(int variant, int n, F &&f) {
  return for_index<num_variants>(variant, [&](auto index) {
    constexpr const bqr_variant &v = variants[decltype(index)::value];
    constexpr int tile = 8, P = v.warps, B = v.blocks, U = v.rows / (tile * P * B);
    if constexpr ((v.types & 1 << type_of<T>) != 0)
      return f(geqrf_mma_kernel<T, U, P, B, v.panels, v.resident>,
               mma_qr<T, U, P, B, v.panels, (v.resident > 0)>::smem(n), P * warp_lanes, B);
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
  constexpr int most_columns = 4096; /* columns' scales lie in shared memory */
  if (problem->m > variant->rows || problem->n > most_columns ||
      (variant->blocks > 1 && !bqr_has_wide_clusters(device)))
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
    return launch_clusters(kernel, grid_for(args->count), blocks, threads, smem, stream, *args,
                           problem->positive);
  });
}
} // namespace

extern "C" const bqr_family bqr_family_geqrf_mma = {
    .name = "geqrf_mma",
    .op = BATCHQR_GEQRF,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = variants,
    .nvariants = num_variants,
    .launches = 1,
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
};
