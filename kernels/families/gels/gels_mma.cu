/* SPDX-License-Identifier: BSD-3-Clause */
/* gels_mma: least squares of members of up to 4096 rows in one launch, one block or one cluster of blocks for
 * a member. A is factored as by geqrf_mma (common/panel/mma_qr.cuh), with B's columns among those that each
 * group of panels updates. Then R comes to shared memory, 32 columns at a time, and each warp of the first
 * block solves for one column of X after another.
 *
 * Columns of A and B stay in the range that they were factored in: with D the powers of two that A's columns
 * were multiplied by, X is D R^-1 (Q^H B). */
#include "common/panel/mma_qr.cuh"
#include "common/panel/solved_column.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/target.cuh"
#include "common/simt/launch_cluster.cuh"

namespace {
using namespace bqr;

/* Beyond these, and with many right-hand sides, the steps are as fast. */
constexpr int most_columns = 128, most_right_hand_sides = 32;
constexpr int pieces = most_columns / warp_lanes; /* of a column of X, each with an element for a lane */

/* x 2^e, e being the difference of two exponents of columns. */
template <class T> __device__ __forceinline__ T scaled_by_exponent(T x, int e) {
  using R = real_t<T>;
  return e == 0 ? x : scaled(scaled(x, exponent_scale<R>(e / 2)), exponent_scale<R>(e - e / 2));
}

/* One member: R in the upper triangle of a, Q^H B in b. */
template <class T> struct system_of {
  matrix_view<T> r, b;

  /* Of each column of B, what is below R: its norm 2^-exponent(j). norms: k numbers, or NULL. */
  template <class E>
  __device__ __forceinline__ void put_norms(real_t<T> *norms, int k, bool solved, E &&exponent) const {
    if (!norms) return;
    for (int j = warp_id(); j < k; j += num_warps()) {
      const real_t<T> norm = solved && b.data ? column_norm(b.at(0, j), r.cols, b.rows) : real_t<T>(0);
      if (lane_id() == 0)
        norms[j] = solved ? scaled_by_exponent(norm, -exponent(j)) : static_cast<real_t<T>>(nan(""));
    }
  }

  /* X. memory: 32 columns of R. of_r, of_b: the exponents of columns. */
  template <class A, class B> __device__ __forceinline__ void solve(T *memory, A &&of_r, B &&of_b) const {
    const int n = r.cols;
#pragma unroll 1
    for (int first = 0; first < b.cols; first += num_warps()) {
      const int column = first + warp_id();
      const bool mine = column < b.cols;
      T x[pieces];
      each_piece([&](int q, int row) { x[q] = mine && row < n ? *b.at(row, column) : zero<T>(); });
#pragma unroll
      for (int q = pieces - 1; q >= 0; q--) {
        const int start = q * warp_lanes;
        if (start >= n) continue;
        block_sync();
        const int count = least(warp_lanes, n - start), lane = least(lane_id(), count - 1);
        load_columns(memory, start, count);
        block_sync();
        if (!mine) continue;
        const divisor<T> by(memory[start + lane + lane * n]);
#pragma unroll 2
        for (int l = count - 1; l >= 0; l--) {
          const T *factors = memory + l * n;
          const T known = broadcast(by(x[q]), l);
          if (lane_id() == l) x[q] = known;
#pragma unroll
          for (int p = 0; p <= q; p++)
            if (p < q || lane_id() < l) x[p] -= factors[p * warp_lanes + lane_id()] * known;
        }
      }
      const int e = mine ? of_b(column) : 0;
      each_piece([&](int q, int row) {
        if (mine && row < n) *b.at(row, column) = scaled_by_exponent(x[q], of_r(row) - e);
      });
    }
  }

private:
  template <class F> __device__ __forceinline__ static void each_piece(F &&f) {
#pragma unroll
    for (int q = 0; q < pieces; q++) f(q, q * warp_lanes + lane_id());
  }

  /* The upper triangle's part of `count` columns of R from `start` on; n rows to a column. */
  __device__ __forceinline__ void load_columns(T *memory, int start, int count) const {
    for (int j = warp_id(); j < count; j += num_warps()) {
      const T *from = r.at(0, start + j);
#pragma unroll 4
      for (int i = lane_id(); i <= start + j; i += warp_lanes) memory[i + j * r.cols] = from[i];
    }
  }
};

/* Where shared memory holds R's columns, in bytes from its beginning, and how much of it a member takes. */
template <class T, int U, int P, int B> struct memory_plan {
  using factorization = mma_qr<T, U, P, B, 0, false, true>;
  size_t of_columns, bytes;

  BQR_INLINE memory_plan(int n, int k) {
    const size_t whole = factorization::smem(factorization::first_joined(n) + k);
    const size_t columns = sizeof(T) * warp_lanes * static_cast<size_t>(n);
    const bool fits = columns <= factorization::free_bytes();
    of_columns = fits ? 0 : (whole + 15) / 16 * 16;
    bytes = fits ? whole : of_columns + columns;
  }
};

/* Members without unknowns: info, and norms of B as it is. */
template <class T> __device__ int measure_only(const matrix_view<T> &b, real_t<T> *norms, int k) {
  const bool finite = !block_any(!magnitude_finite<T>(matrix_magnitude(b)));
  system_of<T>{{nullptr, 0, 0, 0}, b}.put_norms(norms, k, finite, [](int) { return 0; });
  return finite ? 0 : BATCHQR_INFO_NONFINITE;
}

/* One member; returns info, in the first block of the cluster. */
template <class T, int U, int P, int B>
__device__ __forceinline__ int solve_member(const bqr_args &args, const member &x, unsigned char *shared) {
  const bool first = B == 1 || cluster_rank() == 0;
  matrix_view<T> a{nullptr, 0, 0, 0}, b{nullptr, 0, x.m, 0};
  if (x.m > 0 && x.n > 0) a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n};
  if (x.m > 0 && x.k > 0) b = {matrix_data<T>(args, args.c, x.id), matrix_ld(args.c, x.id), x.m, x.k};
  real_t<T> *norms = args.norms.data && x.k > 0 ? vector_data<real_t<T>>(args.norms, x.id) : nullptr;
  if (a.cols == 0) return first ? measure_only(b, norms, x.k) : 0;
  const memory_plan<T, U, P, B> plan(a.cols, b.cols);
  typename memory_plan<T, U, P, B>::factorization qr(shared, a.data, a.ld, a.rows, a.cols,
                                                     {b.data, b.ld, b.cols});
  qr.run(nullptr);
  block_sync();
  const int info = qr.finite() ? qr.zero_column() : BATCHQR_INFO_NONFINITE;
  if (!first) return info;
  const system_of<T> system{{a.data, a.ld, a.cols, a.cols}, b};
  auto of_b = [&](int j) { return qr.exponent_of_joined(j); };
  system.put_norms(norms, x.k, info == 0, of_b);
  if (info == 0)
    system.solve(
        reinterpret_cast<T *>(shared + plan.of_columns), [&](int j) { return qr.exponent_of(j); }, of_b);
  return info;
}

template <class T, int U, int P, int B>
__global__ void __launch_bounds__(P *warp_lanes) gels_mma_kernel(const __grid_constant__ bqr_args args) {
  if constexpr (B == 1 || has_clusters) {
    extern __shared__ __align__(16) unsigned char shared[];
    if (B > 1) cluster_sync(); /* all blocks have started */
    for (int64_t i = blockIdx.x / B; i < args.count; i += gridDim.x / B) {
      const member x = member_at<BATCHQR_GELS>(args, i);
      const int info = x.ok ? solve_member<T, U, P, B>(args, x, shared) : BATCHQR_INFO_SIZES;
      if (B > 1)
        cluster_sync();
      else
        block_sync();
      if (thread_id() == 0 && blockIdx.x % B == 0) set_info(args, x.id, info);
    }
  }
}

enum : int { S = 1 << BATCHQR_S, D = 1 << BATCHQR_D, C = 1 << BATCHQR_C, Z = 1 << BATCHQR_Z };
constexpr bqr_variant gels_variants[] = {
    {.name = "rows32.warps1", .rows = 32, .warps = 1, .types = S | D | C},
    {.name = "rows64.warps1", .rows = 64, .warps = 1, .types = S | D | C},
    {.name = "rows64.warps2", .rows = 64, .warps = 2, .types = Z},
    {.name = "rows128.warps2", .rows = 128, .warps = 2, .types = S | D | C | Z},
    {.name = "rows128.warps4", .rows = 128, .warps = 4, .types = S | D | C | Z},
    {.name = "rows256.warps4", .rows = 256, .warps = 4, .types = S | D | C | Z},
    {.name = "rows512.warps8", .rows = 512, .warps = 8, .types = S | D | C | Z},
    {.name = "rows1024.warps8", .rows = 1024, .warps = 8, .types = D},
    {.name = "rows1024.warps8.blocks2", .rows = 1024, .warps = 8, .blocks = 2, .types = S | Z},
    {.name = "rows2048.warps8.blocks4", .rows = 2048, .warps = 8, .blocks = 4, .types = S | D | C | Z},
    {.name = "rows4096.warps8.blocks8", .rows = 4096, .warps = 8, .blocks = 8, .types = S | D | C | Z},
};
constexpr int num_variants = sizeof gels_variants / sizeof gels_variants[0];

/* f(kernel, bytes of shared memory, threads, blocks of a cluster) of the variant's instance. */
template <class T, class F> batchqr_status with_type(int variant, const bqr_problem *problem, F &&f) {
  return for_index<num_variants>(variant, [&](auto index) {
    constexpr const bqr_variant &v = gels_variants[decltype(index)::value];
    constexpr int tile = 8, P = v.warps, B = v.blocks > 1 ? v.blocks : 1, U = v.rows / (tile * P * B);
    if constexpr ((v.types & 1 << type_of<T>) != 0)
      return f(gels_mma_kernel<T, U, P, B>, memory_plan<T, U, P, B>(problem->n, problem->k).bytes,
               P * warp_lanes, B);
    else
      return BATCHQR_UNSUPPORTED;
  });
}
template <class F>
batchqr_status with_instance(const bqr_problem *problem, const bqr_variant *variant, F &&f) {
  return for_type(problem->type, [&](auto tag) {
    return with_type<typename decltype(tag)::type>(static_cast<int>(variant - gels_variants), problem, f);
  });
}

bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const int columns = variant->rows <= 512 ? most_columns : most_columns / 2;
  if (!problem->tall || problem->trans != BATCHQR_NO_TRANS || problem->m > variant->rows ||
      problem->n > columns || problem->k > most_right_hand_sides ||
      (variant->blocks > 1 && !bqr_has_wide_clusters(device)))
    return false;
  return with_instance(problem, variant, [&](auto, size_t smem, int, int) {
           return smem <= static_cast<size_t>(device->smem_per_block) ? BATCHQR_SUCCESS : BATCHQR_UNSUPPORTED;
         }) == BATCHQR_SUCCESS;
}

/* Of the two for members of up to 128 rows, the one with few warps where there are many members. */
bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  if (variant->rows != 128 || variant->warps == 4) return true;
  return with_instance(problem, variant + 1, [&](auto, size_t smem, int threads, int) {
           return more_warps_pay(device, problem->count, threads / warp_lanes, smem) ? BATCHQR_UNSUPPORTED
                                                                                     : BATCHQR_SUCCESS;
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

extern "C" const bqr_family bqr_family_gels_mma = {
    .name = "gels_mma",
    .op = BATCHQR_GELS,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = gels_variants,
    .nvariants = num_variants,
    .launches = 1,
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .prefers = prefers,
};
