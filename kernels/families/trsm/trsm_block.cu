/* SPDX-License-Identifier: BSD-3-Clause */
/* The triangle's step of GELS: X := R^-1 C or R^-H C, in tiles of 32 x 32 of R. A block of threads works on
 * some right-hand sides: warps share them, lanes the rows of a tile, and R's tiles go through shared memory.
 * Right-looking: what is solved is taken at once from the rows that are still to do. */
#include "family.h"
#include "common/panel/larfg.cuh"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {
namespace {

constexpr int most_warps = 4;

/* R's tiles in shared memory; the leading dimension lets rows and columns both be read without conflicts. */
constexpr int tile = warp_lanes, tile_ld = tile + 1, tile_elements = tile * tile_ld;

/* Right-hand sides that a warp works on at once. */
template <class T> constexpr int warp_cols = is_complex<T> ? 2 : 4;

/* The tile (i, j) of R, with ones beyond its diagonal's end. The others must be done with it before; ends
 * with a barrier. */
template <class T> __device__ void load_tile(T *to, const matrix_view<T> &r, int i, int j) {
  block_sync();
  for (int c = warp_id(); c < tile; c += num_warps()) {
    int row = i * tile + lane_id(), col = j * tile + c;
    to[lane_id() + c * tile_ld] = row < r.cols && col < r.cols ? *r.at(row, col)
                                  : row == col                 ? one<T>()
                                                               : zero<T>();
  }
  block_sync();
}

/* x / d, d a real number in a T: R's diagonal is real. */
template <class T> __device__ __forceinline__ T divided(T x, T d) {
  if constexpr (is_complex<T>)
    return T{x.re / d.re, x.im / d.re};
  else
    return x / d;
}

/* x := t^-1 x or t^-H x, t a tile of the diagonal with `size` rows in use; lane l has row l of each column.
 */
template <class T, bool ADJOINT>
__device__ __forceinline__ void solve_tile(const T *t, int size, T (&x)[warp_cols<T>]) {
  for (int step = 0; step < size; step++) {
    int j = ADJOINT ? step : size - 1 - step;
    bool left = ADJOINT ? lane_id() > j : lane_id() < j;
    T d = t[j + j * tile_ld],
      factor = ADJOINT ? conj(t[j + lane_id() * tile_ld]) : t[lane_id() + j * tile_ld];
#pragma unroll
    for (int b = 0; b < warp_cols<T>; b++) {
      if (lane_id() == j) x[b] = divided(x[b], d);
      T known = broadcast(x[b], j);
      if (left) x[b] -= factor * known;
    }
  }
}

/* c := c - t x, or c - t^H x. */
template <class T, bool ADJOINT>
__device__ __forceinline__ void subtract_tile(const T *t, const T (&x)[warp_cols<T>], T (&c)[warp_cols<T>]) {
#pragma unroll 4
  for (int j = 0; j < tile; j++) {
    T factor = -(ADJOINT ? conj(t[j + lane_id() * tile_ld]) : t[lane_id() + j * tile_ld]);
#pragma unroll
    for (int b = 0; b < warp_cols<T>; b++) c[b] = madd(factor, broadcast(x[b], j), c[b]);
  }
}

/* Row `row` of the warp's columns, zeros where there are none. */
template <class T>
__device__ __forceinline__ void load_rows(T (&x)[warp_cols<T>], const matrix_view<T> &c, int row, int rows) {
#pragma unroll
  for (int b = 0; b < warp_cols<T>; b++) x[b] = row < rows && b < c.cols ? *c.at(row, b) : zero<T>();
}
template <class T>
__device__ __forceinline__ void store_rows(const T (&x)[warp_cols<T>], const matrix_view<T> &c, int row,
                                           int rows, real_t<T> scale) {
#pragma unroll
  for (int b = 0; b < warp_cols<T>; b++)
    if (row < rows && b < c.cols) *c.at(row, b) = scaled(x[b], scale);
}

/* c: the warp's columns; r has as many columns as rows of c are solved for. All warps of the block. */
template <class T, bool ADJOINT>
__device__ void solve(const matrix_view<T> &r, const matrix_view<T> &c, T *t, real_t<T> scale) {
  const int n = r.cols, tiles = (n - 1) / tile + 1;
  for (int step = 0; step < tiles; step++) {
    int j = ADJOINT ? step : tiles - 1 - step, row = j * tile + lane_id();
    T x[warp_cols<T>], y[warp_cols<T>];
    load_tile(t, r, j, j);
    load_rows(x, c, row, n);
    solve_tile<T, ADJOINT>(t, least(tile, n - j * tile), x);
    store_rows(x, c, row, n, scale);
    for (int i = ADJOINT ? j + 1 : 0; i < (ADJOINT ? tiles : j); i++) {
      load_tile(t, r, ADJOINT ? j : i, ADJOINT ? i : j);
      load_rows(y, c, i * tile + lane_id(), n);
      subtract_tile<T, ADJOINT>(t, x, y);
      store_rows(y, c, i * tile + lane_id(), n, real_t<T>(1));
    }
  }
}

/* The norm of the rows from `first` on of a column, in all lanes. */
template <class T> __device__ real_t<T> column_norm(const T *column, int first, int rows) {
  using R = real_t<T>;
  R ss = 0;
  for (int i = first + lane_id(); i < rows; i += warp_lanes) ss = abs2_add(column[i], ss);
  ss = group_sum(ss);
  R pre = norm_prescale(ss, false);
  if (pre != 1) {
    ss = 0;
    for (int i = first + lane_id(); i < rows; i += warp_lanes) ss = abs2_add(scaled(column[i], pre), ss);
    ss = group_sum(ss);
  }
  return sqrt(ss) / pre;
}

/* Residual norms, and zeros below Y. c: the warp's columns, from column `first` of the member on. */
template <class T, bool ADJOINT>
__device__ void finish(const bqr_args &args, const member &x, const matrix_view<T> &c, int first, bool solved,
                       real_t<T> unscale) {
  using R = real_t<T>;
  R *norms = args.norms.data ? vector_data<R>(args.norms, x.id) + first : nullptr;
  for (int j = 0; j < c.cols; j++) {
    R norm = static_cast<R>(nan(""));
    if (solved && norms) norm = ADJOINT ? R(0) : column_norm(c.at(0, j), x.n, x.m) * unscale;
    if (norms && lane_id() == 0) norms[j] = norm;
    for (int i = x.n + lane_id(); i < x.m && ADJOINT && solved; i += warp_lanes) *c.at(i, j) = zero<T>();
  }
}

template <class T, bool ADJOINT>
__global__ void __launch_bounds__(most_warps *warp_lanes)
    trsm_block_kernel(const __grid_constant__ bqr_args args, int pieces) {
  T *t = shared_memory<T>();
  using R = real_t<T>;
  const int cols = num_warps() * warp_cols<T>; /* of a piece */
  for (int64_t i = blockIdx.x; i < args.count * pieces; i += gridDim.x) {
    member x = member_at<BQR_TRSM>(args, i / pieces);
    if (!x.ok) continue;
    double a = args.scales[2 * x.id], b = args.scales[2 * x.id + 1];
    bool finite = a == a, first_piece = i % pieces == 0;
    if (!finite && first_piece && thread_id() == 0) set_info(args, x.id, BATCHQR_INFO_NONFINITE);
    int first = static_cast<int>(i % pieces) * cols + warp_id() * warp_cols<T>;
    if (static_cast<int>(i % pieces) * cols >= x.k) continue;

    matrix_view<T> r{nullptr, 0, 0, 0}, whole{nullptr, 0, 0, x.k};
    if (x.n > 0) r = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.n, x.n};
    if (x.m > 0) whole = {matrix_data<T>(args, args.c, x.id), matrix_ld(args.c, x.id), x.m, x.k};
    matrix_view<T> c = whole.part(0, first, x.m, least(warp_cols<T>, largest(0, x.k - first)));
    bool singular = false;
    for (int j = thread_id(); j < x.n; j += num_threads()) singular = singular || is_zero(*r.at(j, j));
    bool solved = !block_any(singular) && finite;
    if (solved && x.n > 0) solve<T, ADJOINT>(r, c, t, static_cast<R>(a / b));
    finish<T, ADJOINT>(args, x, c, first, solved, static_cast<R>(1 / b));
  }
}

/* most: rows of R. */
const bqr_variant variants[] = {{.name = "warps1", .warps = 1, .most = tile},
                                {.name = "warps4", .warps = most_warps}};

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return v->most == 0 || p->n <= v->most;
}

/* The kernel of a problem, and the right-hand sides of a piece. */
template <class F> batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return f(p->trans == BATCHQR_NO_TRANS ? trsm_block_kernel<T, false> : trsm_block_kernel<T, true>,
             v->warps * warp_cols<T>, sizeof(T) * tile_elements);
  });
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return with_kernel(p, v, [](auto kernel, int, size_t smem) { return prepare_kernel(kernel, smem); });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  return with_kernel(p, v, [&](auto kernel, int cols, size_t smem) {
    int pieces = p->k > 0 ? (p->k - 1) / cols + 1 : 1;
    return launch_kernel(kernel, grid_for(args->count * pieces), v->warps * warp_lanes, smem, stream, *args,
                         pieces);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_trsm_block = {
    .name = "trsm_block",
    .op = BQR_TRSM,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 2,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
