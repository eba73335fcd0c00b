/* SPDX-License-Identifier: BSD-3-Clause */
/* The families of members of few columns, see slim.cuh: their kernel, variants and host side. */
#ifndef BQR_KERNELS_COMMON_PANEL_SLIM_FAMILY_CUH
#define BQR_KERNELS_COMMON_PANEL_SLIM_FAMILY_CUH

#include "costs.h"
#include "slim.cuh"
#include "common/simt/launch_cluster.cuh"

namespace bqr {

/* Rows of a thread, as a rule: 128 bytes of matrix or more, and enough for what is done once for each column.
 */
BQR_INLINE constexpr int slim_rows(size_t element, int cols) {
  const int fewest = 64 / static_cast<int>(element), rows = 128 / (static_cast<int>(element) * cols);
  return rows < fewest ? fewest : rows > 16 ? 16 : rows;
}

/* Threads of a block at most, and how many of a multiprocessor registers are to suffice for. */
template <class TEAM> constexpr int slim_threads(int cols) {
  return TEAM::whole_blocks && cols == 8 ? TEAM::block_threads / 2 : TEAM::block_threads;
}
constexpr int slim_resident(size_t bytes) { /* of matrix, of a thread */
  return bytes > 256 ? 256 : bytes > 128 ? 512 : 768;
}

/* WORK::run(qr, args, x, positive) for all members x, which returns info; those without elements have sizes 0
 * and are not to be read. WORK::solves: there are k right-hand sides. From the last member to the first: what
 * was written last before the launch is still in the L2 cache. */
template <class WORK, class T, int N, int R, class TEAM>
__global__ void __launch_bounds__(slim_threads<TEAM>(N),
                                  slim_resident(sizeof(T) * N * R) / slim_threads<TEAM>(N))
    slim_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slim_shape shape,
                bool positive) {
  extern __shared__ __align__(16) unsigned char shared[];
  TEAM team(shared, shape);
  const int64_t teams = TEAM::teams(shape), number = TEAM::number(shape);
  for (int64_t base = 0; base < args.count; base += teams) {
    const int64_t i = args.count - 1 - base - number;
    const bool mine = i >= 0;
    if (TEAM::whole_blocks && !mine) break;
    member x = member_at<WORK::op>(args, mine ? i : 0);
    const bool ok = x.ok;
    if (!mine || !ok) x.m = x.n = x.k = 0;
    if (!WORK::solves) {
      if (x.m <= 0 || x.n <= 0) x.m = x.n = 0;
      x.k = 0;
    }
    slim_qr<T, N, R, TEAM, WORK::solves> qr(team, shape.threads(), x.m, x.n, x.k, args.m, args.n);
    const int info = WORK::template run<T>(qr, args, x, positive);
    if (mine && team.thread() == 0) set_info(args, x.id, ok ? info : BATCHQR_INFO_SIZES);
  }
}

/* cols; lanes, or warps of a block and blocks: of a member; rows: of a thread, 0: slim_rows(). Short members
 * of s are faster with 8 of them (349 525 of 64 x 3: 0.256 ms -> 0.156), longer ones with 16 (65 536 of 256 x
 * 4: 0.172 -> 0.154). */
constexpr bqr_variant of_lanes(const char *name, int cols, int lanes, int rows = 0) {
  return {.name = name, .rows = rows, .cols = cols, .lanes = lanes, .blocks = 1};
}
constexpr bqr_variant of_warps(const char *name, int cols, int warps, int blocks = 1) {
  return {.name = name, .cols = cols, .warps = warps, .blocks = blocks};
}
constexpr bqr_variant slim_variants[] = {
    of_lanes("cols1.lanes4", 1, 4),
    of_lanes("cols1.lanes8", 1, 8),
    of_lanes("cols1.lanes16", 1, 16),
    of_lanes("cols1.lanes32", 1, 32),
    of_warps("cols1.warps2", 1, 2),
    of_warps("cols1.warps4", 1, 4),
    of_warps("cols1.warps8", 1, 8),
    of_warps("cols1.warps16", 1, 16),
    of_warps("cols1.warps8.blocks2", 1, 8, 2),
    of_warps("cols1.warps8.blocks4", 1, 8, 4),
    of_warps("cols1.warps8.blocks8", 1, 8, 8),
    of_lanes("cols2.lanes4", 2, 4),
    of_lanes("cols2.lanes8", 2, 8),
    of_lanes("cols2.lanes16", 2, 16),
    of_lanes("cols2.lanes32", 2, 32),
    of_warps("cols2.warps2", 2, 2),
    of_warps("cols2.warps4", 2, 4),
    of_warps("cols2.warps8", 2, 8),
    of_warps("cols2.warps16", 2, 16),
    of_warps("cols2.warps8.blocks2", 2, 8, 2),
    of_warps("cols2.warps8.blocks4", 2, 8, 4),
    of_warps("cols2.warps8.blocks8", 2, 8, 8),
    of_lanes("cols4.rows8.lanes4", 4, 4, 8),
    of_lanes("cols4.rows8.lanes8", 4, 8, 8),
    of_lanes("cols4.lanes4", 4, 4),
    of_lanes("cols4.lanes8", 4, 8),
    of_lanes("cols4.lanes16", 4, 16),
    of_lanes("cols4.lanes32", 4, 32),
    of_warps("cols4.warps2", 4, 2),
    of_warps("cols4.warps4", 4, 4),
    of_warps("cols4.warps8", 4, 8),
    of_warps("cols4.warps16", 4, 16),
    of_warps("cols4.warps8.blocks2", 4, 8, 2),
    of_warps("cols4.warps8.blocks4", 4, 8, 4),
    of_warps("cols4.warps8.blocks8", 4, 8, 8),
    of_lanes("cols4.rows8.lanes16", 4, 16, 8), /* for few members */
    of_lanes("cols4.rows8.lanes32", 4, 32, 8),
    of_lanes("cols8.lanes8", 8, 8),
    of_lanes("cols8.lanes16", 8, 16),
    of_lanes("cols8.lanes32", 8, 32),
    of_warps("cols8.warps2", 8, 2),
    of_warps("cols8.warps4", 8, 4),
    of_warps("cols8.warps8", 8, 8),
    of_warps("cols8.warps8.blocks2", 8, 8, 2),
    of_warps("cols8.warps8.blocks4", 8, 8, 4),
    of_warps("cols8.warps8.blocks8", 8, 8, 8),
};
constexpr int slim_num_variants = sizeof slim_variants / sizeof slim_variants[0];

/* The host side of a family. */
template <class WORK> struct slim_family {
  static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
    if (variant->rows > 0 && problem->type != BATCHQR_S) return false;
    const int rows = variant->rows > 0 ? variant->rows : slim_rows(type_bytes(problem->type), variant->cols);
    return problem->m <= rows * shape_of(variant).threads() && problem->n <= variant->cols &&
           (variant->blocks == 1 || bqr_has_clusters(device));
  }

  /* Of tall members, those that have most of the columns. */
  static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
    return 2 * problem->n > variant->cols && problem->m >= bqr_costs_of(device)->slim_ratio * problem->n;
  }

  static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *) {
    return with_instance(problem->type, variant,
                         [](auto kernel, int, size_t smem) { return prepare_kernel(kernel, smem); });
  }

  static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *,
                               const bqr_args *args, batchqr_stream stream) {
    const slim_shape shape = shape_of(variant);
    return with_instance(problem->type, variant, [&](auto kernel, int threads, size_t smem) {
      const int64_t together = shape.warps == 0 ? threads >> shape.log2_lanes : 1;
      return launch_clusters(kernel, grid_for((args->count - 1) / together + 1), shape.blocks, threads, smem,
                             stream, *args, shape, problem->positive);
    });
  }

private:
  static slim_shape shape_of(const bqr_variant *variant) {
    int log2_lanes = 0;
    while (1 << log2_lanes < variant->lanes) log2_lanes++;
    return {log2_lanes, variant->warps, variant->blocks};
  }

  /* f(kernel, threads of a block, bytes of shared memory) of the variant's instance. */
  template <class F>
  static batchqr_status with_instance(batchqr_type type, const bqr_variant *variant, F &&f) {
    const slim_shape shape = shape_of(variant);
    return for_type(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      constexpr bool is_s = std::is_same<T, float>::value;
      return for_value<1, 2, 4, 8>(variant->cols, [&](auto columns) {
        constexpr int N = decltype(columns)::value, R = slim_rows(sizeof(T), N), fewer = 8;
        using lanes = slim_lanes<T, N>;
        using blocks = slim_blocks<T, N>;
        if constexpr (is_s && N == 4)
          if (variant->rows == fewer)
            return f(slim_kernel<WORK, T, N, fewer, lanes>, lanes::block_threads, lanes::smem(shape));
        if (shape.warps == 0)
          return f(slim_kernel<WORK, T, N, R, lanes>, lanes::block_threads, lanes::smem(shape));
        return f(slim_kernel<WORK, T, N, R, blocks>, shape.warps * warp_lanes, blocks::smem(shape));
      });
    });
  }
};

} // namespace bqr

#endif
