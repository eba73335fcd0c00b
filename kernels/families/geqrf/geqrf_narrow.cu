/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_narrow: tall members of up to 8 or 16 columns, one block or one cluster of blocks for a member, as
 * many members as fit on a multiprocessor at a time. See families/geqrf/narrow_qr.cuh. */
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "narrow_qr.cuh"
#include "turn.cuh"
#include "common/ptx/target.cuh"
#include "common/simt/launch_cluster.cuh"

namespace {
using namespace bqr;

/* Threads of a block at most, and blocks on a multiprocessor that registers are to suffice for. Short members
 * rather come in large numbers. */
struct room {
  int threads, blocks;
};
template <class T, int N, bool SHORT>
constexpr room room_for = N == 8            ? room{64, sizeof(T) == 4   ? 10
                                                       : sizeof(T) == 8 ? 8
                                                                        : 6}
                          : sizeof(T) == 4  ? room{256, 2}
                          : sizeof(T) == 16 ? room{64, 3}
                          : SHORT           ? room{64, 8}
                                            : room{192, 2};

/* at_once: blocks on a multiprocessor; the first ones of each take turns. */
template <class T, int N, bool SHORT>
__global__ void __launch_bounds__((room_for<T, N, SHORT>.threads), (room_for<T, N, SHORT>.blocks))
    geqrf_narrow_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ narrow_shape b,
                        int multiprocessors, int at_once, bool positive) {
  if constexpr (has_clusters) {
    extern __shared__ __align__(128) unsigned char shared[];
    const int turn = static_cast<int>(blockIdx.x) / multiprocessors;
    if (turn < at_once)
      wait_for_turn(turn, static_cast<int64_t>(sizeof(T)) * args.m * args.n >> (b.blocks - 1));
    narrow_qr<T, N>::init(shared, b);
    uint32_t parity = 0;
    const int pairs = b.blocks - 1; /* a member has one block or two */
    for (int64_t i = blockIdx.x >> pairs; i < args.count; i += gridDim.x >> pairs) {
      const member x = member_at<BATCHQR_GEQRF>(args, args.count - 1 - i); /* the newest first: still in L2 */
      int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
      if (x.ok && x.m > 0 && x.n > 0)
        info = narrow_qr<T, N>(shared, b, parity)
                   .run(matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n,
                        tau_data<T>(args, x.id), positive);
      if (thread_id() == 0 && (blockIdx.x & pairs) == 0) set_info(args, x.id, info);
    }
  }
}

enum : int { S = 1 << BATCHQR_S, D = 1 << BATCHQR_D, C = 1 << BATCHQR_C, Z = 1 << BATCHQR_Z };
/* rows, cols, warps of a block, blocks: of a member. */
constexpr bqr_variant variants[] = {
    {.name = "rows256.cols8.warps2", .rows = 256, .cols = 8, .warps = 2, .blocks = 1, .types = S | D | C | Z},
    {.name = "rows128.cols16.warps2", .rows = 128, .cols = 16, .warps = 2, .blocks = 1, .types = D},
    {.name = "rows256.cols16.warps2",
     .rows = 256,
     .cols = 16,
     .warps = 2,
     .blocks = 1,
     .types = S | D | C | Z},
    {.name = "rows512.cols16.warps4", .rows = 512, .cols = 16, .warps = 4, .blocks = 1, .types = S | D | C},
    {.name = "rows512.cols16.warps2.blocks2", .rows = 512, .cols = 16, .warps = 2, .blocks = 2, .types = Z},
    {.name = "rows1024.cols16.warps4", .rows = 1024, .cols = 16, .warps = 4, .blocks = 1, .types = S},
    {.name = "rows1024.cols16.warps6", .rows = 1024, .cols = 16, .warps = 6, .blocks = 1, .types = D | C},
    {.name = "rows2048.cols16.warps4.blocks2", .rows = 2048, .cols = 16, .warps = 4, .blocks = 2, .types = S},
};
constexpr int num_variants = sizeof variants / sizeof variants[0];

/* f(kernel, shape, bytes of shared memory, threads on a multiprocessor) of the variant's instance. */
template <class F>
batchqr_status with_instance(const bqr_problem *problem, const bqr_variant *variant, F &&f) {
  const int block_rows = variant->rows / variant->blocks;
  return for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto with_columns = [&](auto columns, auto few_rows) {
      constexpr int N = decltype(columns)::value;
      constexpr bool SHORT = decltype(few_rows)::value;
      using qr = narrow_qr<T, N>;
      const narrow_shape b = {block_rows, variant->warps, variant->blocks, qr::stride_of(block_rows)};
      constexpr room most = room_for<T, N, SHORT>;
      return f(geqrf_narrow_kernel<T, N, SHORT>, b, qr::smem(b), most.threads * most.blocks);
    };
    using eight = std::integral_constant<int, 8>;
    using sixteen = std::integral_constant<int, 16>;
    if (variant->cols == 8) return with_columns(eight{}, std::false_type{});
    if constexpr (std::is_same<T, double>::value)
      if (block_rows <= 128) return with_columns(sixteen{}, std::true_type{});
    return with_columns(sixteen{}, std::false_type{});
  });
}

bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  if (problem->m > variant->rows || problem->n > variant->cols ||
      (variant->blocks > 1 && !bqr_has_wide_clusters(device)) || !(variant->types >> problem->type & 1))
    return false;
  return with_instance(problem, variant, [&](auto, auto, size_t smem, int) {
           return smem <= static_cast<size_t>(device->smem_per_block) ? BATCHQR_SUCCESS : BATCHQR_UNSUPPORTED;
         }) == BATCHQR_SUCCESS;
}

batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *) {
  return with_instance(problem, variant, [&](auto kernel, auto, size_t smem, int) {
    return prepare_kernel(kernel, smem, variant->blocks);
  });
}

batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                      const bqr_args *args, batchqr_stream stream) {
  return with_instance(problem, variant, [&](auto kernel, const auto &b, size_t smem, int threads_at_once) {
    const int by_memory = static_cast<int>(static_cast<size_t>(device->smem_per_sm) / (smem + 1024)),
              at_once = least(by_memory, threads_at_once / (b.warps * warp_lanes));
    return launch_clusters(kernel, grid_for(args->count), b.blocks, b.warps * warp_lanes, smem, stream, *args,
                           b, device->multiprocessors, at_once, problem->positive);
  });
}
} // namespace

extern "C" const bqr_family bqr_family_geqrf_narrow = {
    .name = "geqrf_narrow",
    .op = BATCHQR_GEQRF,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = variants,
    .nvariants = num_variants,
    .launches = 1,
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
};
