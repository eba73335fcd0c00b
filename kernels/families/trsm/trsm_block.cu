/* SPDX-License-Identifier: BSD-3-Clause */
/* TRSM, and the triangle's step of GELS: X := R^-1 C or R^-H C, in tiles of 32 x 32 of R. A block of threads
 * works on some right-hand sides: warps share them, lanes the rows of a tile, and R's tiles go through shared
 * memory. Right-looking: what is solved is taken at once from the rows that are still to do. */
#include "family.h"
#include "common/panel/solved_column.cuh"
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

/* x := t^-1 x or t^-H x, t a tile of the diagonal with `size` rows in use; lane l has row l of each column.
 */
template <class T, bool ADJOINT>
__device__ __forceinline__ void solve_tile(const T *t, int size, T (&x)[warp_cols<T>]) {
  for (int step = 0; step < size; step++) {
    int j = ADJOINT ? step : size - 1 - step;
    bool left = ADJOINT ? lane_id() > j : lane_id() < j;
    T d = ADJOINT ? conj(t[j + j * tile_ld]) : t[j + j * tile_ld],
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
/* Returns the largest magnitude of what is stored. */
template <class T>
__device__ __forceinline__ uint32_t store_rows(const T (&x)[warp_cols<T>], const matrix_view<T> &c, int row,
                                               int rows, real_t<T> scale) {
  uint32_t u = 0;
#pragma unroll
  for (int b = 0; b < warp_cols<T>; b++)
    if (row < rows && b < c.cols) {
      const T stored = scaled(x[b], scale);
      *c.at(row, b) = stored;
      u = greater(u, magnitude(stored));
    }
  return u;
}

/* c: the warp's columns; r has as many columns as rows of c are solved for. All warps of the block. Returns
 * the largest magnitude of the thread's part of X. */
template <class T, bool ADJOINT>
__device__ uint32_t solve(const matrix_view<T> &r, const matrix_view<T> &c, T *t, real_t<T> scale) {
  const int n = r.cols, tiles = (n - 1) / tile + 1;
  uint32_t u = 0;
  for (int step = 0; step < tiles; step++) {
    int j = ADJOINT ? step : tiles - 1 - step, row = j * tile + lane_id();
    T x[warp_cols<T>], y[warp_cols<T>];
    load_tile(t, r, j, j);
    load_rows(x, c, row, n);
    solve_tile<T, ADJOINT>(t, least(tile, n - j * tile), x);
    u = greater(u, store_rows(x, c, row, n, scale));
    for (int i = ADJOINT ? j + 1 : 0; i < (ADJOINT ? tiles : j); i++) {
      load_tile(t, r, ADJOINT ? j : i, ADJOINT ? i : j);
      load_rows(y, c, i * tile + lane_id(), n);
      subtract_tile<T, ADJOINT>(t, x, y);
      store_rows(y, c, i * tile + lane_id(), n, real_t<T>(1));
    }
  }
  return u;
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

/* The warp's part of a block's piece of a member. */
template <class T> struct piece {
  member x;
  int number;          /* of the piece */
  int first;           /* its first column in the member */
  matrix_view<T> r, c; /* R, n x n; the warp's columns of C, all rows */
};

template <class T> __device__ piece<T> piece_of(const bqr_args &args, const member &x, int number) {
  const int first = (number * num_warps() + warp_id()) * warp_cols<T>;
  piece<T> p{x, number, first, {nullptr, 0, 0, 0}, {nullptr, 0, 0, 0}};
  if (x.n > 0) p.r = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.n, x.n};
  if (x.k <= first) return p;
  p.c.cols = least(warp_cols<T>, x.k - first); /* without rows they have norms, too */
  if (x.m > 0)
    p.c = matrix_view<T>{matrix_data<T>(args, args.c, x.id), matrix_ld(args.c, x.id), x.m, x.k}.part(
        0, first, x.m, p.c.cols);
  return p;
}

template <class T> __device__ bool is_singular(const matrix_view<T> &r) {
  bool singular = false;
  for (int j = thread_id(); j < r.cols; j += num_threads()) singular = singular || is_zero(*r.at(j, j));
  return block_any(singular);
}

template <class T, bool ADJOINT> __device__ void solve_step(const bqr_args &args, const piece<T> &p, T *t) {
  using R = real_t<T>;
  const double a = args.scales[2 * p.x.id], b = args.scales[2 * p.x.id + 1];
  const bool finite = a == a;
  if (!finite && p.number == 0 && thread_id() == 0) set_info(args, p.x.id, BATCHQR_INFO_NONFINITE);
  if (p.first - warp_id() * warp_cols<T> >= p.x.k) return; /* the whole block */
  const bool solved = !is_singular(p.r) && finite;
  if (solved && p.x.n > 0) solve<T, ADJOINT>(p.r, p.c, t, static_cast<R>(a / b));
  finish<T, ADJOINT>(args, p.x, p.c, p.first, solved, static_cast<R>(1 / b));
}

/* --- TRSM as a routine */

/* Where several blocks have a say in a member's info, which a launch before has made 0, a NaN or an Inf goes
 * before a zero on the diagonal. */
__device__ __forceinline__ void tell(const bqr_args &args, int64_t id, int value, bool alone) {
  if (!args.info) return;
  if (alone)
    args.info[id] = value;
  else if (value < 0)
    atomicExch(args.info + id, value);
  else if (value > 0)
    atomicCAS(args.info + id, 0, value);
}

template <class T> __device__ int first_zero(const matrix_view<T> &r) {
  int j = 0;
  while (j < r.cols && !is_zero(*r.at(j, j))) j++;
  return j < r.cols ? j + 1 : 0;
}

template <class T> __device__ uint32_t diagonal_magnitude(const matrix_view<T> &r) {
  uint32_t u = 0;
  for (int j = thread_id(); j < r.cols; j += num_threads()) u = greater(u, magnitude(*r.at(j, j)));
  return u;
}

/* Of the thread's part of R's triangle, which the warps of a block share. */
template <class T> __device__ uint32_t triangle_magnitude(const matrix_view<T> &r) {
  uint32_t u = 0;
  for_each(r, [&](const T &x, int i, int j) {
    if (i <= j) u = greater(u, magnitude(x));
  });
  return u;
}

/* Of the warp's columns of B. */
template <class T> __device__ uint32_t columns_magnitude(const matrix_view<T> &c, int rows) {
  uint32_t u = 0;
  for (int j = 0; j < c.cols; j++)
    for (int i = lane_id(); i < rows; i += warp_lanes) u = greater(u, magnitude(*c.at(i, j)));
  return u;
}

/* An Inf on the diagonal would leave X finite: x / Inf = 0. */
template <class T> __device__ void fill_nan(const matrix_view<T> &c, int rows) {
  const T nothing = make<T>(static_cast<real_t<T>>(nan("")));
  for (int j = 0; j < c.cols; j++)
    for (int i = lane_id(); i < rows; i += warp_lanes) *c.at(i, j) = nothing;
}

template <class T, bool ADJOINT>
__device__ void solve_whole(const bqr_args &args, const piece<T> &p, T *t, bool alone) {
  const int n = p.x.n;
  if (p.number > 0 && p.first - warp_id() * warp_cols<T> >= p.x.k) return; /* the whole block */
  const bool singular = is_singular(p.r);
  bool finite = !block_any(!magnitude_finite<T>(diagonal_magnitude(p.r)));
  if (!finite) {
    fill_nan(p.c, n);
  } else {
    const bool solved = !singular && p.x.k > 0 && n > 0;
    if (!solved) finite = !block_any(!magnitude_finite<T>(triangle_magnitude(p.r)));
    if (!finite) fill_nan(p.c, n);
    const uint32_t u = solved ? solve<T, ADJOINT>(p.r, p.c, t, real_t<T>(1)) : columns_magnitude(p.c, n);
    const bool right = !block_any(!magnitude_finite<T>(u));
    finite = finite && right;
  }
  if (thread_id() == 0)
    tell(args, p.x.id, !finite ? BATCHQR_INFO_NONFINITE : singular ? first_zero(p.r) : 0, alone);
}

/* WHOLE: as a routine. */
template <class T, bool ADJOINT, bool WHOLE>
__global__ void __launch_bounds__(most_warps *warp_lanes)
    trsm_block_kernel(const __grid_constant__ bqr_args args, int pieces) {
  T *t = shared_memory<T>();
  for (int64_t i = blockIdx.x; i < args.count * pieces; i += gridDim.x) {
    const member x = member_at<BATCHQR_TRSM>(args, i / pieces);
    const int number = static_cast<int>(i % pieces);
    if (!x.ok) {
      if (WHOLE && number == 0 && thread_id() == 0) set_info(args, x.id, BATCHQR_INFO_SIZES);
      continue;
    }
    const piece<T> p = piece_of<T>(args, x, number);
    if constexpr (WHOLE)
      solve_whole<T, ADJOINT>(args, p, t, pieces == 1);
    else
      solve_step<T, ADJOINT>(args, p, t);
  }
}

__global__ void clear_info_kernel(const __grid_constant__ bqr_args args) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count; i += stride)
    set_info(args, args.members ? args.members[i] : i, 0);
}

/* most: rows of R. */
const bqr_variant variants[] = {{.name = "warps1", .warps = 1, .most = tile},
                                {.name = "warps4", .warps = most_warps}};

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return v->most == 0 || p->n <= v->most;
}

/* Pieces of a member's right-hand sides, of which a block has one at a time. */
int pieces_for(const bqr_problem *p, const bqr_variant *v) {
  const int cols = v->warps * (p->type == BATCHQR_C || p->type == BATCHQR_Z ? warp_cols<complex<float>>
                                                                            : warp_cols<float>);
  return p->k > 0 ? (p->k - 1) / cols + 1 : 1;
}

bool clears_info(const bqr_problem *p, const bqr_variant *v) { return p->whole && pieces_for(p, v) > 1; }

int count_launches(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return clears_info(p, v) ? 2 : 1;
}

template <class F> batchqr_status with_kernel(const bqr_problem *p, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool plain = p->trans == BATCHQR_NO_TRANS;
    return f(p->whole ? plain ? trsm_block_kernel<T, false, true> : trsm_block_kernel<T, true, true>
             : plain ? trsm_block_kernel<T, false, false>
                      : trsm_block_kernel<T, true, false>,
             sizeof(T) * tile_elements);
  });
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  const batchqr_status status = prepare_kernel(clear_info_kernel, 0);
  return status ? status
                : with_kernel(p, [](auto kernel, size_t smem) { return prepare_kernel(kernel, smem); });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  constexpr int info_threads = 256;
  const int pieces = pieces_for(p, v);
  batchqr_status status = BATCHQR_SUCCESS;
  if (args->info && clears_info(p, v))
    status = launch_kernel(clear_info_kernel, grid_for((args->count - 1) / info_threads + 1), info_threads, 0,
                           stream, *args);
  if (status) return status;
  return with_kernel(p, [&](auto kernel, size_t smem) {
    return launch_kernel(kernel, grid_for(args->count * pieces), v->warps * warp_lanes, smem, stream, *args,
                         pieces);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_trsm_block = {
    .name = "trsm_block",
    .op = BATCHQR_TRSM,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 2,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
    .count_launches = bqr::count_launches,
};
