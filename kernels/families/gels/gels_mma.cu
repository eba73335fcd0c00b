/* SPDX-License-Identifier: BSD-3-Clause */
/* gels_mma: least squares of members of up to 512 rows in one launch, one block for a member. A is factored
 * as by geqrf_mma (common/panel/mma_qr.cuh), with B's columns among those that each group of panels updates.
 * Then R comes to shared memory, 32 columns at a time, and each warp solves for one column of X after
 * another.
 *
 * Columns of A and B stay in the range that they were factored in: with D the powers of two that A's columns
 * were multiplied by, X is D R^-1 (Q^H B). */
#include "common/panel/mma_qr.cuh"
#include "common/panel/solved_column.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"
#include "common/simt/instances.cuh"

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
  __device__ __forceinline__ void put_norms(real_t<T> *norms, bool solved, E &&exponent) const {
    if (!norms) return;
    for (int j = warp_id(); j < b.cols; j += num_warps()) {
      const real_t<T> norm = solved ? column_norm(b.at(0, j), r.cols, b.rows) : real_t<T>(0);
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
template <class T, int U, int P> struct memory_plan {
  using factorization = mma_qr<T, U, P, 1, 0, false, true>;
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
template <class T> __device__ int measure_only(const matrix_view<T> &b, real_t<T> *norms) {
  const bool finite = !block_any(!magnitude_finite<T>(matrix_magnitude(b)));
  system_of<T>{{nullptr, 0, 0, 0}, b}.put_norms(norms, finite, [](int) { return 0; });
  return finite ? 0 : BATCHQR_INFO_NONFINITE;
}

template <class T, int U, int P>
__global__ void __launch_bounds__(P *warp_lanes) gels_mma_kernel(const __grid_constant__ bqr_args args) {
  extern __shared__ __align__(16) unsigned char shared[];
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GELS>(args, i);
    int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
    if (x.ok) {
      /* Without rows B's columns have norms, too. */
      matrix_view<T> a{nullptr, 0, 0, 0}, b{nullptr, 0, x.m, x.k};
      if (x.m > 0 && x.n > 0) a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n};
      if (x.m > 0 && x.k > 0) b = {matrix_data<T>(args, args.c, x.id), matrix_ld(args.c, x.id), x.m, x.k};
      real_t<T> *norms = args.norms.data && x.k > 0 ? vector_data<real_t<T>>(args.norms, x.id) : nullptr;
      if (a.cols == 0) {
        info = measure_only(b, norms);
      } else {
        typename memory_plan<T, U, P>::factorization qr(shared, a.data, a.ld, a.rows, a.cols,
                                                        {b.data, b.ld, b.cols});
        qr.run(nullptr);
        block_sync();
        info = qr.finite() ? qr.zero_column() : BATCHQR_INFO_NONFINITE;
        const system_of<T> system{{a.data, a.ld, a.cols, a.cols}, b};
        auto of_b = [&](int j) { return qr.exponent_of_joined(j); };
        system.put_norms(norms, info == 0, of_b);
        if (info == 0)
          system.solve(
              reinterpret_cast<T *>(shared + memory_plan<T, U, P>(a.cols, b.cols).of_columns),
              [&](int j) { return qr.exponent_of(j); }, of_b);
      }
      block_sync();
    }
    if (thread_id() == 0) set_info(args, x.id, info);
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
};

/* For instances. */
struct gels {
  static constexpr auto &variants = gels_variants;
  static constexpr int num_variants = sizeof variants / sizeof variants[0];
  template <class T, int I, class F> static auto instance(const bqr_problem *problem, F &&f) {
    constexpr const bqr_variant &v = variants[I];
    constexpr int tile = 8, P = v.warps, U = v.rows / (tile * P);
    return f(gels_mma_kernel<T, U, P>, memory_plan<T, U, P>(problem->n, problem->k).bytes, P * warp_lanes);
  }
};
using family = instances<gels>;

bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  return problem->tall && problem->trans == BATCHQR_NO_TRANS && problem->m <= variant->rows &&
         problem->n <= most_columns && problem->k <= most_right_hand_sides &&
         family::fits(problem, variant, device->smem_per_block);
}

bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  return variant->rows != 128 || variant->warps == 4 || !family::warps_pay(problem, variant + 1, device);
}
} // namespace

extern "C" const bqr_family bqr_family_gels_mma = {
    .name = "gels_mma",
    .op = BATCHQR_GELS,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = gels_variants,
    .nvariants = gels::num_variants,
    .launches = 1,
    .supports = supports,
    .prepare = family::prepare,
    .launch = family::launch,
    .prefers = prefers,
};
