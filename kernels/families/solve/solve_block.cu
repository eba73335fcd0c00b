/* SPDX-License-Identifier: BSD-3-Clause */
/* solve_block: the last step of GELSY and of PINV. A first kernel, a block of threads for a member, makes
 * [R11 R12] = [T 0] Z (LAPACK's xTZRZF), as far as the member's rank, which it finds in memory, says. In a
 * second one a warp solves for a column: x = P Z^H [T^-1 y; 0], where y is the first part of a column of Q^H
 * B, or of Q^H diag(w), of which Q's rows are. Full rank, rank 0 and a wide A are no cases of their own.
 *
 * Row i of [T 0] is made by a reflector of R(i,i) and row i of R12, whose vector takes the place of the
 * latter; its tau takes that of A's, which are no longer needed. */
#include "family.h"
#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"
#include "common/panel/larfg.cuh"
#include "common/panel/solved_column.cuh"
#include "common/ptx/barrier.cuh"
#include "common/simt/launch.cuh"
#include "common/simt/squad.cuh"

namespace bqr {
namespace {

constexpr int most_warps = 16, column_warps = 8;

template <class T> __device__ matrix_view<T> member_a(const bqr_args &args, const member &x) {
  if (x.m == 0 || x.n == 0) return {nullptr, 0, 0, 0};
  return {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n};
}

/* --- the first kernel */

/* Shared memory for sums: a number of each thread. Then comes a row. */
template <class T> constexpr size_t sums_bytes = 16 + sizeof(T) * most_warps *warp_lanes;

template <class T> class trapezoid {
  using R = real_t<T>;

public:
  __device__ trapezoid(const matrix_view<T> &a, int rank, T *tau, T *v, T *sums, uint32_t *word)
      : a_(a), rank_(rank), cols_(a.cols - rank), tau_(tau), v_(v), sums_(sums), word_(word) {}

  __device__ void reduce() {
    for (int i = rank_ - 1; i >= 0; i--) {
      const T tau = make_reflector(i);
      apply(i, tau);
    }
  }

private:
  __device__ R block_total(R x) {
    R *sums = reinterpret_cast<R *>(sums_);
    x = group_sum(x);
    if (lane_id() == 0) sums[warp_id()] = x;
    block_sync();
    R total = 0;
    for (int w = 0; w < num_warps(); w++) total += sums[w];
    block_sync();
    return total;
  }

  /* Of row i's adjoint, brought near 1: what is far below its largest entry is of no consequence. */
  __device__ T make_reflector(int i) {
    const T alpha = conj(*a_.at(i, i));
    uint32_t u = 0;
    for (int j = thread_id(); j < cols_; j += num_threads()) {
      v_[j] = conj(*a_.at(i, rank_ + j));
      u = greater(u, magnitude_or_one(v_[j]));
    }
    u = greater(block_max(word_, u), magnitude_or_one(alpha));
    const int exponent = u ? exponent_to<T>(u, 0) : 0;
    R ss = 0;
    for (int j = thread_id(); j < cols_; j += num_threads()) ss = abs2_add(times_power(v_[j], exponent), ss);
    const reflector<T> h = larfg(times_power(alpha, exponent), block_total(ss), R(1), false);
    for (int j = thread_id(); j < cols_; j += num_threads()) {
      v_[j] = times_power(v_[j], exponent) * h.scale;
      *a_.at(i, rank_ + j) = v_[j];
    }
    if (thread_id() == 0) {
      *a_.at(i, i) = make<T>(times_power(h.beta, -exponent));
      tau_[i] = h.tau;
    }
    block_sync();
    return h.tau;
  }

  /* Rows above row i, 32 of them to a warp, or to several, which share the columns. */
  __device__ void apply(int i, T tau) {
    const int chunks = (i + warp_lanes - 1) / warp_lanes, at_once = least(num_warps(), chunks);
    const int slices = at_once > 0 ? num_warps() / at_once : 0;
    for (int first = 0; first < chunks; first += at_once) {
      const int place = warp_id() % at_once, slice = warp_id() / at_once;
      const int row = (first + place) * warp_lanes + lane_id();
      const bool mine = slice < slices && row < i;
      T *x = mine ? a_.at(row, rank_) : nullptr;
      const T top = mine ? *a_.at(row, i) : zero<T>();
      T sum = zero<T>();
      if (mine)
#pragma unroll 4
        for (int j = slice; j < cols_; j += slices) sum = madd(x[j * a_.ld], v_[j], sum);
      sums_[thread_id()] = sum;
      block_sync();
      sum = top;
      for (int s = 0; s < slices; s++) sum += sums_[(s * at_once + place) * warp_lanes + lane_id()];
      const T w = tau * sum;
      if (mine)
#pragma unroll 4
        for (int j = slice; j < cols_; j += slices) x[j * a_.ld] = madd(-w, conj(v_[j]), x[j * a_.ld]);
      if (mine && slice == 0) *a_.at(row, i) = top - w;
      block_sync();
    }
  }

  matrix_view<T> a_;
  int rank_, cols_;
  T *tau_, *v_, *sums_;
  uint32_t *word_;
};

/* The rank, as far as R's diagonal, a's scale times what it would be, is above abstol and, without a relative
 * tolerance, above what roundings leave of columns that depend on others. */
template <class T>
__device__ int above(const bqr_args &args, const matrix_view<T> &a, int rank, double scale, uint32_t *word) {
  using R = real_t<T>;
  if (rank == 0 || (args.abstol == 0 && args.reltol > 0)) return rank;
  const double roundings = 2.0 * limits<R>::eps * largest(a.rows, a.cols) * fabs(real_part(*a.at(0, 0)));
  const R tolerance = static_cast<R>(fmax(args.abstol * scale, args.reltol > 0 ? 0 : roundings));
  int mine = rank;
  for (int j = thread_id(); j < mine; j += num_threads())
    if (!(fabs(real_part(*a.at(j, j))) > tolerance)) mine = j;
  return rank - static_cast<int>(block_max(word, static_cast<uint32_t>(rank - mine)));
}

/* Of PINV, whose scales are those of A alone. */
template <class T> __device__ bool weights_finite(const bqr_args &args, const member &x, uint32_t *word) {
  using R = real_t<T>;
  if (!args.r.data || !args.s.data) return true;
  uint32_t u = 0;
  const R *w = x.m > 0 ? vector_data<R>(args.s, x.id) : nullptr;
  for (int i = thread_id(); i < x.m; i += num_threads()) u = greater(u, magnitude(w[i]));
  return magnitude_finite<R>(block_max(word, u));
}

template <class T>
__global__ void __launch_bounds__(most_warps *warp_lanes)
    complete_kernel(const __grid_constant__ bqr_args args, size_t slot) {
  unsigned char *shared = shared_memory<unsigned char>();
  auto *word = reinterpret_cast<uint32_t *>(shared);
  T *sums = reinterpret_cast<T *>(shared + 16);
  T *v = slot > 0 ? reinterpret_cast<T *>(static_cast<unsigned char *>(args.workspace) + blockIdx.x * slot)
                  : reinterpret_cast<T *>(shared + sums_bytes<T>);
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BQR_SOLVE>(args, i);
    if (!x.ok) {
      if (thread_id() == 0) set_info(args, x.id, BATCHQR_INFO_SIZES);
      continue;
    }
    const double scale = args.scales[2 * x.id];
    const bool finite = scale == scale && weights_finite<T>(args, x, word);
    const matrix_view<T> a = member_a<T>(args, x);
    int *rank = vector_data<int>(args.rank, x.id);
    const int r = finite && a.cols > 0 ? above(args, a, *rank, scale, word) : 0;
    if (r > 0 && r < x.n) trapezoid<T>(a, r, tau_data<T>(args, x.id), v, sums, word).reduce();
    block_sync();
    if (thread_id() == 0) {
      *rank = r;
      if (!finite) args.scales[2 * x.id] = nan("");
      set_info(args, x.id, finite ? 0 : BATCHQR_INFO_NONFINITE);
    }
  }
}

/* --- the second kernel */

/* y := T^-1 y, by the lanes of a warp. */
template <class T> __device__ void substitute(const matrix_view<T> &a, int rank, T *y) {
  for (int j = rank - 1; j >= 0; j--) {
    const T x = divided(y[j], *a.at(j, j));
    warp_sync();
    if (lane_id() == 0) y[j] = x;
    for (int i = lane_id(); i < j; i += warp_lanes) y[i] = madd(-x, *a.at(i, j), y[i]);
    warp_sync();
  }
}

/* y := Z^H y. */
template <class T> __device__ void apply_z(const matrix_view<T> &a, int rank, const T *tau, T *y) {
  const int cols = a.cols - rank;
  for (int i = 0; i < rank; i++) {
    const T *v = a.at(i, rank);
    T sum = zero<T>();
    for (int j = lane_id(); j < cols; j += warp_lanes) sum = cmadd(v[j * a.ld], y[rank + j], sum);
    const T top = y[i], w = tau[i] * (top + group_sum(sum));
    for (int j = lane_id(); j < cols; j += warp_lanes) y[rank + j] = madd(-w, v[j * a.ld], y[rank + j]);
    warp_sync();
    if (lane_id() == 0) y[i] = top - w;
    warp_sync();
  }
}

template <class T> __device__ int exponent_of(uint32_t u) { return -exponent_to<T>(u, 0); }

/* Column `col` of C; OF_Q: y is that of Q^H diag(w). */
template <class T, bool OF_Q>
__device__ void solve_column(const bqr_args &args, const member &x, int col, T *y) {
  using R = real_t<T>;
  const matrix_view<T> a = member_a<T>(args, x);
  const double of_a = args.scales[2 * x.id], of_b = OF_Q ? 1 : args.scales[2 * x.id + 1];
  T *c = matrix_data<T>(args, args.c, x.id) + col * matrix_ld(args.c, x.id);
  const int rank = *vector_data<int>(args.rank, x.id);
  if (!(of_a == of_a) || rank == 0) {
    const T nothing = make<T>(of_a == of_a ? R(0) : static_cast<R>(nan("")));
    for (int i = lane_id(); i < x.n; i += warp_lanes) c[i] = nothing;
    return;
  }
  const T *q = OF_Q ? matrix_data<T>(args, args.r, x.id) + col : nullptr;
  const int64_t ldq = OF_Q ? matrix_ld(args.r, x.id) : 0;
  uint32_t u = 0;
  for (int i = lane_id(); i < rank; i += warp_lanes) {
    y[i] = OF_Q ? conj(q[i * ldq]) : c[i];
    u = greater(u, magnitude_or_one(y[i]));
  }
  u = group_max(u);
  /* To the size of R, so that no part of x underflows that counts: y may be far smaller than b. */
  const int shift = u ? exponent_of<T>(magnitude_or_one(*a.at(0, 0))) - exponent_of<T>(u) : 0;
  for (int i = lane_id(); i < x.n; i += warp_lanes) y[i] = i < rank ? times_power(y[i], shift) : zero<T>();
  warp_sync();
  substitute(a, rank, y);
  if (rank < x.n) apply_z(a, rank, tau_data<T>(args, x.id), y);
  const R w = OF_Q && args.s.data ? vector_data<R>(args.s, x.id)[col] : R(1);
  const int back = ::ilogb(of_a) - ::ilogb(of_b) - shift; /* they are powers of two */
  const int *jpvt = vector_data<int>(args.jpvt, x.id);
  for (int i = lane_id(); i < x.n; i += warp_lanes) c[jpvt[i]] = scaled(times_power(y[i], back), w);
  warp_sync();
}

template <class T, bool OF_Q>
__global__ void __launch_bounds__(column_warps *warp_lanes)
    columns_kernel(const __grid_constant__ bqr_args args, int pieces, int length, size_t slot) {
  T *memory = slot > 0
                  ? reinterpret_cast<T *>(static_cast<unsigned char *>(args.workspace) + blockIdx.x * slot)
                  : shared_memory<T>();
  for (int64_t i = blockIdx.x; i < args.count * pieces; i += gridDim.x) {
    const member x = member_at<BQR_SOLVE>(args, i / pieces);
    const int col = static_cast<int>(i % pieces) * num_warps() + warp_id();
    if (x.ok && x.n > 0 && col < (OF_Q ? x.m : x.k))
      solve_column<T, OF_Q>(args, x, col, memory + static_cast<int64_t>(warp_id()) * length);
  }
}

/* --- the host's side */

/* most: columns of A. */
const bqr_variant variants[] = {{.name = "warps4", .warps = 4, .most = 128},
                                {.name = "warps16", .warps = most_warps},
                                {.name = "warps16.global", .warps = most_warps, .global = true}};

constexpr size_t usual_shared = 64 << 10; /* of a block with several columns */

struct plan {
  int warps;   /* columns of a block */
  int columns; /* of a member */
  int pieces;
  size_t complete, solve; /* shared memory */
  size_t slot;            /* of each block in the workspace */
  int64_t blocks;         /* the most there may be, with slots */
};

template <class T> plan plan_of(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  plan r;
  const size_t row = sizeof(T) * static_cast<size_t>(p->n);
  r.columns = p->k > 0 ? p->k : 0;
  r.warps = r.columns < column_warps ? largest(1, r.columns) : column_warps;
  while (!v->global && r.warps > 1 && row * static_cast<size_t>(r.warps) > usual_shared) r.warps /= 2;
  r.pieces = largest(1, (r.columns + r.warps - 1) / r.warps);
  r.complete = sums_bytes<T> + (v->global ? 0 : row);
  r.solve = v->global ? 0 : row * static_cast<size_t>(r.warps);
  r.slot = v->global ? (row * static_cast<size_t>(r.warps) + 255) / 256 * 256 : 0;
  r.blocks = 2 * int64_t(device->multiprocessors);
  return r;
}

/* f(plan, kernels) */
template <class F>
batchqr_status with_plan(const bqr_problem *p, const bqr_variant *v, const bqr_device *device, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return f(plan_of<T>(p, v, device), complete_kernel<T>, columns_kernel<T, false>, columns_kernel<T, true>);
  });
}

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  if (v->most > 0 && p->n > v->most) return false;
  return with_plan(p, v, device, [&](const plan &s, auto...) {
           const size_t most = static_cast<size_t>(device->smem_per_block);
           return s.complete <= most && s.solve <= most ? BATCHQR_SUCCESS : BATCHQR_UNSUPPORTED;
         }) == BATCHQR_SUCCESS;
}

size_t workspace(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  size_t bytes = 0;
  with_plan(p, v, device, [&](const plan &s, auto...) {
    bytes = s.slot * static_cast<size_t>(s.blocks);
    return BATCHQR_SUCCESS;
  });
  return bytes;
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return with_plan(p, v, device, [&](const plan &s, auto complete, auto of_c, auto of_q) {
    const batchqr_status status = prepare_kernel(complete, s.complete);
    if (status) return status;
    const batchqr_status next = prepare_kernel(of_c, s.solve);
    return next ? next : prepare_kernel(of_q, s.solve);
  });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                      const bqr_args *args, batchqr_stream stream) {
  return with_plan(p, v, device, [&](const plan &s, auto complete, auto of_c, auto of_q) {
    const auto grid = [&](int64_t pieces) {
      return dim3(grid_for(s.slot > 0 && pieces > s.blocks ? s.blocks : pieces));
    };
    const batchqr_status status =
        launch_kernel(complete, grid(args->count), v->warps * warp_lanes, s.complete, stream, *args, s.slot);
    if (status || s.columns == 0) return status;
    return launch_kernel(args->r.data ? of_q : of_c, grid(args->count * s.pieces), s.warps * warp_lanes,
                         s.solve, stream, *args, s.pieces, p->n, s.slot);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_solve_block = {
    .name = "solve_block",
    .op = BQR_SOLVE,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .launches = 2,
    .supports = bqr::supports,
    .workspace = bqr::workspace,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
