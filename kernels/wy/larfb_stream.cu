/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of reflectors applied from the left to columns that stay in registers from the first block to the
 * last, while V streams past. A block of threads has 32 columns of a member, of taller members a cluster
 * shares their rows: warps that multiply each have some columns and every n-th 16 rows, and four more warps
 * bring columns, V and T through a pipeline in shared memory, ahead of them and from one member to the next.
 * For GEQRF, and in real types for what applies reflectors: ORMQR from the left, ORGQR to the unit matrix.
 *
 * Sums over rows: over a warp's, then over a group's warps, then over blocks, of numbers and borders that
 * follow from the member's rows alone. */
#include "common/simt/block.cuh"
#include "larfb_stream_products.cuh"
#include "known_clusters.cuh"
#include "clusters.h"
#include "common/ptx/target.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/opaque.cuh"
#include "common/ptx/setmaxnreg.cuh"

namespace {
using namespace bqr;
using namespace bqr::stream;

template <class T, int ROWS, int BLOCKS, class TASK>
__global__ void __launch_bounds__(shape<T, ROWS>::block_threads, shape<T, ROWS>::blocks)
    larfb_stream_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ TASK task,
                        const T *t) {
  using S = shape<T, ROWS>;
  uint32_t base = shared_address(shared_memory<storage<T, ROWS>>());
  opaque_here(base); /* or it is computed again and again */
  storage<T, ROWS> &s = *static_cast<storage<T, ROWS> *>(shared_pointer(base));
  if (thread_id() == 0) {
    for (int i = 0; i < S::places; i++) {
      s.full[i].init(copies_arrivals);
      s.empty[i].init(S::products_warps * warp_lanes);
    }
    s.factor_full.init(copies_arrivals);
    s.factor_empty.init(S::products_warps * warp_lanes);
    for (int i = 0; i < S::groups; i++) {
      for (phase_barrier &received : s.received[i]) received.init(1);
      s.cluster[i].init(cluster_size() * S::threads);
    }
    mbarrier_init_fence();
  }
  block_sync();
  if (BLOCKS != 1 || task.team > 1) cluster_sync();
  const int size = cluster_size();
  const stream_order order(task, args.count * task.strips, blockIdx.x / size, gridDim.x / size,
                           BLOCKS == 1 ? cluster_rank() : 0);
  auto share_of = [&](int64_t i) { return share<T, ROWS, BLOCKS, TASK>(args, task, t, i); };
  if (warp_id() < S::products_warps) {
    more_registers<S::products_registers>();
    products<T, ROWS, BLOCKS, TASK> mine(s, args, task);
    for (int64_t i = order.first; i < order.total; i = order.after(i)) mine.run(share_of(i));
  } else {
    fewer_registers<S::copies_registers>();
    copies<T, ROWS, BLOCKS, TASK> mine(s, task);
    for (int64_t i = order.first; i < order.total; i = order.after(i)) mine.run(share_of(i));
  }
  if (BLOCKS != 1 || task.team > 1) cluster_sync(); /* others may still read what is here */
}

/* f(a kernel, its blocks' threads and shared memory) of the instance for members of up to so many rows that
 * `shares` blocks share. */
template <class T, class TASK, class F> auto with_kernel(int rows, int shares, F &&f) {
  auto go = [&](auto tag, auto kernel) {
    constexpr int ROWS = decltype(tag)::value;
    return f(kernel, shape<T, ROWS>::block_threads, sizeof(storage<T, ROWS>));
  };
  constexpr int most = block_rows<T>, two = is_complex<T> ? 0 : 2; /* complex sums take less of the time */
  const std::integral_constant<int, most> all;
  if constexpr (few_rows<T> != 0) {
    const std::integral_constant<int, few_rows<T>> few;
    if (rows <= few_rows<T>) return go(few, larfb_stream_kernel<T, few_rows<T>, 1, TASK>);
  }
  if (shares == 1) return go(all, larfb_stream_kernel<T, most, 1, TASK>);
  if constexpr (std::is_same<TASK, factor_task>::value)
    if (shares > 2) return go(all, larfb_stream_kernel<T, most, 0, TASK>);
  return go(all, larfb_stream_kernel<T, most, two, TASK>);
}

/* What so many members take that teams of so many blocks have one after another, `at_once` of them at the
 * same time: in each round of a team the strip on the right goes through most blocks of reflectors. */
int64_t turns_of_teams(int64_t count, int strips, int team, int at_once) {
  int64_t turns = 0;
  for (int right = strips; right > 0; right -= team) turns += right;
  return turns * ((count - 1) / at_once + 1);
}

/* The best team of blocks; rounds of it are whole. */
template <class F> void choose_team(apply_task &task, int64_t count, int shares, F &&at_once) {
  task.team = 1;
  auto turns = [&](int team) { return turns_of_teams(count, task.strips, team, at_once(team)); };
  if (task.unit && shares == 1)
    for (int team = 2; team <= most_cluster_blocks; team *= 2)
      if (turns(team) < turns(task.team)) task.team = team;
  task.strips = (task.strips - 1) / task.team * task.team + task.team;
}
template <class F> void choose_team(factor_task &, int64_t, int, F &&) {}

template <class T> int shape_of(int rows, int shares, int team) {
  return stream_shape(rows <= few_rows<T> ? 0 : shares, team);
}

/* For members of up to m rows; teams: whether there are any. */
template <class T, class TASK> void ask_stream(int m, int rows, bool teams, bqr_clusters *clusters) {
  for (int shares = 1; shares <= shares_of<T>(least(m, most_rows<T>)); shares++)
    with_kernel<T, TASK>(rows, shares, [&](auto kernel, int threads, size_t smem) {
      for (int team = 1; team <= (teams && shares == 1 ? most_cluster_blocks : 1); team *= 2)
        clusters->stream.ask(shape_of<T>(rows, shares, team), kernel, shares * team, threads, smem);
    });
}

template <class T, class TASK>
batchqr_status launch_stream(const bqr_args *args, TASK task, const T *t, int rows, const bqr_clusters *known,
                             batchqr_stream stream) {
  const int shares = shares_of<T>(least(args->m - task.first, most_rows<T>));
  return with_kernel<T, TASK>(rows, shares, [&](auto kernel, int threads, size_t smem) {
    auto at_once = [&](int team) {
      return known->stream.at_once(shape_of<T>(rows, shares, team), kernel, shares * team, threads, smem);
    };
    choose_team(task, args->count, shares, at_once);
    const int64_t pieces = args->count * (task.unit ? 1 : task.strips);
    const int clusters = largest(at_once(task.team) - known->spared, 1);
    return launch_clusters(kernel, static_cast<unsigned>(pieces < clusters ? pieces : clusters),
                           shares * task.team, threads, smem, stream, *args, task, t);
  });
}

template <class T, class TASK> batchqr_status prepare_task() {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int blocks = 0; blocks <= 3 && !status; blocks++)
    status = with_kernel<T, TASK>(blocks * block_rows<T>, largest(blocks, 1),
                                  [](auto kernel, int, size_t smem) { return prepare_kernel(kernel, smem); });
  return status;
}
template <class T> batchqr_status prepare_all() {
  batchqr_status status = prepare_task<T, factor_task>();
  if constexpr (apply_rows < T >> 0)
    if (!status) status = prepare_task<T, apply_task>();
  return status;
}

template <class T> constexpr size_t most_smem = sizeof(storage<T, block_rows<T>>);

bool has_it(batchqr_type type, int sm, int smem) {
  return sm >= 90 && for_type(type, [&](auto tag) {
           return smem >= static_cast<int>(most_smem<typename decltype(tag)::type>);
         });
}

} // namespace

batchqr_status bqr_larfb_stream(const bqr_problem *problem, const bqr_args *args, int first, int blocks,
                                const void *t, int64_t stride_t, int64_t stride_block, bqr_span span,
                                int from, int to, const bqr_columns *columns, int rows,
                                const bqr_clusters *clusters, batchqr_stream stream) {
  if (from >= to) return BATCHQR_SUCCESS;
  const bool factors = problem->op == BATCHQR_GEQRF, unit = problem->op == BATCHQR_ORGQR;
  stream_task task = {};
  task.first = first;
  task.blocks = blocks;
  task.from = from;
  task.to = to;
  task.strips = (to - from - 1) / strip_columns + 1;
  task.stride_t = stride_t;
  task.stride_block = stride_block;
  task.range = columns || problem->op == BATCHQR_ORMQR;
  return for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *of_type = static_cast<const T *>(t);
    if (factors) {
      const factor_task mine = {task, columns ? columns->exponents : nullptr,
                                columns ? columns->nonfinite : nullptr, problem->n, span};
      return launch_stream<T>(args, mine, of_type, rows, clusters, stream);
    }
    if constexpr (apply_rows<T> == 0)
      return BATCHQR_UNSUPPORTED;
    else {
      const apply_task mine = {task, problem->op, unit || problem->trans == BATCHQR_NO_TRANS, unit, 1};
      return launch_stream<T>(args, mine, of_type, rows, clusters, stream);
    }
  });
}

void bqr_larfb_stream_ask(const bqr_problem *problem, int rows, bqr_clusters *clusters) {
  for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (problem->op == BATCHQR_GEQRF)
      ask_stream<T, factor_task>(problem->m, rows, false, clusters);
    else if constexpr (apply_rows < T >> 0)
      ask_stream<T, apply_task>(problem->m, rows, problem->op == BATCHQR_ORGQR, clusters);
    return BATCHQR_SUCCESS;
  });
}

void bqr_clusters_spare(bqr_clusters *clusters, int spared) { clusters->spared = spared; }

int bqr_larfb_stream_rows(const bqr_problem *problem, const bqr_device *device) {
  if (!has_it(problem->type, device->sm, device->smem_per_block)) return 0;
  return for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return problem->op == BATCHQR_GEQRF ? most_rows<T> : apply_rows<T>;
  });
}

int bqr_larfb_stream_shares(batchqr_type type, int rows) {
  return for_type(type, [=](auto tag) { return shares_of<typename decltype(tag)::type>(rows); });
}

batchqr_status bqr_larfb_stream_prepare(batchqr_type type) {
  if (!has_it(type, 10 * device_attribute(cudaDevAttrComputeCapabilityMajor),
              device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)))
    return BATCHQR_SUCCESS;
  return for_type(type, [](auto tag) { return prepare_all<typename decltype(tag)::type>(); });
}
