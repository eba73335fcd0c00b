/* SPDX-License-Identifier: BSD-3-Clause */
/* The triangle's step of GELS for members that one block of threads would be busy with for long: X := R^-1 C
 * or R^-H C, in blocks of 64 rows. Each block of threads makes 64 rows of X, for up to 8 right-hand sides: it
 * subtracts what the rows that are solved contribute, in the order in which they become known, and then
 * solves with its triangle on the diagonal. Blocks take the rows in that order, too, by tickets, so that none
 * waits for one that has not begun. R is read once for each 8 right-hand sides, ahead of what it is
 * multiplied by.
 */
#include "family.h"
#include "common/panel/solved_column.cuh"
#include "common/simt/arrival.cuh"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {
namespace {

constexpr int tile = 64,
              tile_ld = tile + 1; /* the leading dimension keeps rows and columns free of conflicts */
constexpr int warps = 8, threads = warps * warp_lanes;
constexpr int groups = threads / tile,
              depth = tile / groups; /* a thread multiplies so many columns of a row */
constexpr int most_cols = warps;     /* right-hand sides of a block: a warp solves for one */
constexpr int norm_rows = 16384;     /* of which a block sums the squares */

/* The workspace: what blocks tell each other. A part is an entry's right-hand sides of one block. */
struct shared_state {
  unsigned long long *ticket;
  int *solved;   /* of each part: blocks of rows of X that are there */
  int *solvable; /* of each entry */
  int *arrived;  /* of each entry and right-hand side: blocks that have summed */
  void *x;       /* of each entry, n x k: X before it is brought back from the scales */
  void *norms;   /* of each entry and right-hand side: norms of its pieces of rows */
};

struct sizes {
  int n, k, parts, norm_pieces; /* the largest of all members */
};

inline sizes sizes_of(const bqr_problem *p, int cols) {
  return {p->n, p->k, p->k > 0 ? (p->k - 1) / cols + 1 : 1, (p->m - 1) / norm_rows + 1};
}

/* --- before */

template <class T>
__global__ void __launch_bounds__(threads)
    trsm_begin_kernel(const __grid_constant__ bqr_args args, shared_state state, sizes s) {
  if (blockIdx.x == 0 && thread_id() == 0) *state.ticket = 0;
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    for (int part = thread_id(); part < s.parts; part += threads) state.solved[i * s.parts + part] = 0;
    for (int j = thread_id(); j < s.k; j += threads) state.arrived[i * s.k + j] = 0;
    const member x = member_at<BATCHQR_TRSM>(args, i);
    bool singular = false;
    const bool finite = x.ok && args.scales[2 * x.id] == args.scales[2 * x.id];
    if (x.ok && x.n > 0) {
      const T *r = matrix_data<T>(args, args.a, x.id);
      const int64_t step = matrix_ld(args.a, x.id) + 1;
#pragma unroll 4
      for (int j = thread_id(); j < x.n; j += threads) singular = singular || is_zero(r[j * step]);
    }
    singular = block_any(singular);
    if (thread_id() > 0) continue;
    state.solvable[i] = finite && !singular;
    if (x.ok && !finite) set_info(args, x.id, BATCHQR_INFO_NONFINITE);
  }
}

/* --- X */

/* What a block keeps in shared memory. */
template <class T, int COLS> struct block_memory {
  T triangle[tile * tile_ld]; /* of the diagonal; before, what is transposed */
  T sums[groups * COLS * tile];
  T x[COLS * tile]; /* rows that are solved */
};

/* A tile of R as a thread multiplies it: row `mine` of op(R), the columns from `first` on. */
template <class T> struct held_tile { T t[depth]; };

/* Reads the tile whose first element is (row, col) of R, `rows` x `cols` of it in R, column by column. */
template <class T>
__device__ __forceinline__ void read_tile(held_tile<T> &to, const matrix_view<T> &r, int row, int col) {
  const int i = row + thread_id() % tile, first = col + thread_id() / tile * depth;
  const T *from = r.at(i, first);
#pragma unroll
  for (int j = 0; j < depth; j++) to.t[j] = i < r.cols && first + j < r.cols ? from[j * r.ld] : zero<T>();
}

/* Exchanges rows and columns of a tile. Ends with a barrier, and takes one before. */
template <class T> __device__ __forceinline__ void transpose_tile(held_tile<T> &x, T *memory) {
  const int i = thread_id() % tile, first = thread_id() / tile * depth;
  block_sync();
#pragma unroll
  for (int j = 0; j < depth; j++) memory[i + (first + j) * tile_ld] = x.t[j];
  block_sync();
#pragma unroll
  for (int j = 0; j < depth; j++) x.t[j] = conj(memory[first + j + i * tile_ld]);
}

/* The triangle, with ones on the diagonal beyond R's end. */
template <class T> __device__ __forceinline__ void read_triangle(T *to, const matrix_view<T> &r, int first) {
  const int i = thread_id() % tile;
#pragma unroll 4
  for (int j = thread_id() / tile; j < tile; j += groups) {
    const bool in = i <= j && first + j < r.cols;
    to[i + j * tile_ld] = in ? *r.at(first + i, first + j) : i == j ? one<T>() : zero<T>();
  }
}

/* x := t^-1 x or t^-H x; a warp has rows l and l + 32 of one column in lane l. */
template <class T, bool ADJOINT> __device__ __forceinline__ void solve_triangle(const T *t, T (&x)[2]) {
  const int lane = lane_id();
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int half = ADJOINT ? h : 1 - h, mine = half * warp_lanes + lane;
    const divisor<T> by(t[mine + mine * tile_ld]);
#pragma unroll 4
    for (int step = 0; step < warp_lanes; step++) {
      const int l = ADJOINT ? step : warp_lanes - 1 - step, j = half * warp_lanes + l;
      const T known = broadcast(by(x[half]), l);
      if (lane == l) x[half] = known;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int row = i * warp_lanes + lane;
        const T factor = ADJOINT ? conj(t[j + row * tile_ld]) : t[row + j * tile_ld];
        if (ADJOINT ? row > j : row < j) x[i] -= factor * known;
      }
    }
  }
}

/* Until so many blocks of rows are there; returns how many are. */
__device__ __forceinline__ int wait_for(const int *solved, int wanted) {
  __shared__ int found;
  if (thread_id() == 0) {
    int now = *static_cast<const volatile int *>(solved);
    while (now < wanted) now = *static_cast<const volatile int *>(solved);
    device_fence();
    found = now;
  }
  block_sync();
  const int now = found;
  block_sync();
  return now;
}

/* One block of rows of one part. x: the part's columns of X, n of each. */
template <class T, bool ADJOINT, int COLS>
__device__ void solve_rows(block_memory<T, COLS> &memory, const matrix_view<T> &r, const matrix_view<T> &c,
                           T *x, int *solved, int step, real_t<T> scale) {
  const int n = r.cols, blocks = (n - 1) / tile + 1, block = ADJOINT ? step : blocks - 1 - step;
  const int mine = thread_id() % tile, first = thread_id() / tile * depth;
  T sum[COLS] = {};
  held_tile<T> held, next;
  auto read = [&](held_tile<T> &to, int number) { /* that of the block of rows solved as that number */
                                                  const int other = ADJOINT ? number : blocks - 1 - number;
                                                  read_tile(to, r, (ADJOINT ? other : block) * tile,
                                                            (ADJOINT ? block : other) * tile);
  };
  if (step > 0) read(next, 0);
  int known = 0;
  for (int number = 0; number < step; number++) {
    held = next;
    if (number + 1 < step) read(next, number + 1);
    if (ADJOINT) transpose_tile(held, memory.triangle);
    if (known <= number) known = wait_for(solved, number + 1);
    const int other = (ADJOINT ? number : blocks - 1 - number) * tile;
    for (int e = thread_id(); e < COLS * tile; e += threads) {
      const int row = other + e % tile, col = e / tile;
      memory.x[e] =
          row < n && col < c.cols ? load_shared(x + row + static_cast<int64_t>(col) * n) : zero<T>();
    }
    block_sync();
#pragma unroll
    for (int j = 0; j < depth; j++)
#pragma unroll
      for (int b = 0; b < COLS; b++) sum[b] = madd(held.t[j], memory.x[first + j + b * tile], sum[b]);
    block_sync();
  }
#pragma unroll
  for (int b = 0; b < COLS; b++) memory.sums[mine + (b + thread_id() / tile * COLS) * tile] = sum[b];
  read_triangle(memory.triangle, r, block * tile);
  block_sync();
  const int b = warp_id();
  if (b < COLS && b < c.cols) {
    T y[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int in = h * warp_lanes + lane_id(), row = block * tile + in;
      y[h] = row < n ? *c.at(row, b) : zero<T>();
#pragma unroll
      for (int g = 0; g < groups; g++) y[h] -= memory.sums[in + (b + g * COLS) * tile];
    }
    solve_triangle<T, ADJOINT>(memory.triangle, y);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = block * tile + h * warp_lanes + lane_id();
      if (row >= n) continue;
      x[row + static_cast<int64_t>(b) * n] = y[h];
      *c.at(row, b) = scaled(y[h], scale);
    }
    device_fence();
  }
  block_sync();
  if (thread_id() == 0) atomicExch(solved, step + 1);
}

template <class T, bool ADJOINT, int COLS>
__global__ void __launch_bounds__(threads)
    trsm_grid_kernel(const __grid_constant__ bqr_args args, shared_state state, sizes s) {
  auto &memory = *shared_memory<block_memory<T, COLS>>();
  __shared__ long long drawn;
  const int64_t parts = args.count * s.parts, blocks = (s.n - 1) / tile + 1;
  for (;;) {
    block_sync();
    if (thread_id() == 0) drawn = static_cast<long long>(atomicAdd(state.ticket, 1ull));
    block_sync();
    const int64_t ticket = drawn, part = ticket % parts, entry = part / s.parts;
    const int step = static_cast<int>(ticket / parts), first = static_cast<int>(part % s.parts) * COLS;
    if (ticket >= parts * blocks) return;
    const member x = member_at<BATCHQR_TRSM>(args, entry);
    if (!x.ok || step * tile >= x.n || first >= x.k || !state.solvable[entry]) continue;
    const matrix_view<T> r{matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.n, x.n};
    const matrix_view<T> whole{matrix_data<T>(args, args.c, x.id), matrix_ld(args.c, x.id), x.m, x.k};
    T *rows = static_cast<T *>(state.x) + (entry * s.k + first) * static_cast<int64_t>(s.n);
    solve_rows<T, ADJOINT, COLS>(memory, r, whole.part(0, first, x.m, least(COLS, x.k - first)), rows,
                                 state.solved + part, step,
                                 static_cast<real_t<T>>(args.scales[2 * x.id] / args.scales[2 * x.id + 1]));
  }
}

/* --- after */

/* The norm of `count` numbers x(0), x(1), ..., all threads of the block; in all threads. */
template <class T, class F>
__device__ __forceinline__ real_t<T> norm_of(block_reducer<T, 1> &reducer, int count, F &&x) {
  using R = real_t<T>;
  R ss = 0;
#pragma unroll 8
  for (int i = thread_id(); i < count; i += threads) ss = abs2_add(x(i), ss);
  ss = reducer.sum(ss);
  const R pre = norm_prescale(ss, false);
  if (pre != 1) {
    ss = 0;
    for (int i = thread_id(); i < count; i += threads) ss = abs2_add(scaled(x(i), pre), ss);
    ss = reducer.sum(ss);
  }
  return sqrt(ss) / pre;
}

/* Residual norms, or zeros below Y: a piece of rows of one column. */
template <class T, bool ADJOINT>
__global__ void __launch_bounds__(threads)
    trsm_end_kernel(const __grid_constant__ bqr_args args, shared_state state, sizes s) {
  using R = real_t<T>;
  __shared__ T scratch[block_reducer<T, 1>::elements_for(warps)];
  block_reducer<T, 1> reducer(scratch);
  const int64_t of_entry = static_cast<int64_t>(s.k) * s.norm_pieces;
  for (int64_t i = blockIdx.x; i < args.count * of_entry; i += gridDim.x) {
    const int64_t entry = i / of_entry, line = i / s.norm_pieces; /* line: of entries and columns */
    const int piece = static_cast<int>(i % s.norm_pieces), j = static_cast<int>(line % s.k);
    const member x = member_at<BATCHQR_TRSM>(args, entry);
    if (!x.ok || j >= x.k) continue;
    const bool solved = state.solvable[entry];
    const int below = x.m - x.n, pieces = largest(1, (below - 1) / norm_rows + 1);
    if (piece >= pieces) continue;
    const int start = x.n + piece * norm_rows, count = least(norm_rows, x.m - start);
    T *c = count > 0 ? matrix_data<T>(args, args.c, x.id) + start + j * matrix_ld(args.c, x.id) : nullptr;
    if (ADJOINT && solved)
      for (int row = thread_id(); row < count; row += threads) c[row] = zero<T>();
    if (!args.norms.data) continue;
    R *norms = vector_data<R>(args.norms, x.id), norm = 0;
    const R unscale = static_cast<R>(1 / args.scales[2 * x.id + 1]);
    if (!solved || ADJOINT) {
      if (piece == 0 && thread_id() == 0) norms[j] = solved ? R(0) : static_cast<R>(nan(""));
      continue;
    }
    norm = norm_of<T>(reducer, count, [&](int row) { return c[row]; });
    if (pieces > 1) {
      R *of_pieces = static_cast<R *>(state.norms) + line * s.norm_pieces;
      if (thread_id() == 0) of_pieces[piece] = norm;
      if (!last_to_arrive(state.arrived + line, pieces)) continue;
      norm = norm_of<T>(reducer, pieces, [&](int p) { return make<T>(load_shared(of_pieces + p)); });
    }
    if (thread_id() == 0) norms[j] = norm * unscale;
  }
}

/* --- the family */

/* cols: right-hand sides of a block. */
const bqr_variant variants[] = {{.name = "cols1", .cols = 1}, {.name = "cols8", .cols = most_cols}};

bool supports(const bqr_problem *p, const bqr_variant *, const bqr_device *) { return !p->whole; }

/* Where trsm_block needs more than one tile of R. */
bool prefers(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return p->n > warp_lanes && (v->cols == 1) == (p->k <= 1);
}

/* Takes `count` elements, aligned to 256 bytes. */
char *take(char *&end, int64_t count, size_t size) {
  char *start = end;
  end += (static_cast<size_t>(count) * size + 255) / 256 * 256;
  return start;
}

/* Sets the addresses; returns the bytes. */
size_t lay_out(const bqr_problem *p, int cols, void *base, shared_state *state) {
  const sizes s = sizes_of(p, cols);
  char *const start = static_cast<char *>(base), *end = start;
  const size_t size = type_bytes(p->type);
  state->ticket = reinterpret_cast<unsigned long long *>(take(end, 1, sizeof(unsigned long long)));
  state->solved = reinterpret_cast<int *>(take(end, p->count * s.parts, sizeof(int)));
  state->solvable = reinterpret_cast<int *>(take(end, p->count, sizeof(int)));
  state->arrived = reinterpret_cast<int *>(take(end, p->count * s.k, sizeof(int)));
  state->x = take(end, p->count * s.k * s.n, size);
  state->norms = take(end, p->count * s.k * s.norm_pieces, size);
  return static_cast<size_t>(end - start);
}

size_t workspace_bytes(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  shared_state state;
  return lay_out(p, v->cols, nullptr, &state);
}

/* f(begin, solve, end, bytes of shared memory) of a problem. */
template <class F> batchqr_status with_kernels(const bqr_problem *p, const bqr_variant *v, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return for_value<1, most_cols>(v->cols, [&](auto cols) {
      constexpr int COLS = decltype(cols)::value;
      constexpr size_t smem = sizeof(block_memory<T, COLS>);
      return p->trans == BATCHQR_NO_TRANS
                 ? f(trsm_begin_kernel<T>, trsm_grid_kernel<T, false, COLS>, trsm_end_kernel<T, false>, smem)
                 : f(trsm_begin_kernel<T>, trsm_grid_kernel<T, true, COLS>, trsm_end_kernel<T, true>, smem);
    });
  });
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return with_kernels(p, v, [](auto begin, auto solve, auto end, size_t smem) {
    batchqr_status status = prepare_kernel(begin, 0);
    if (!status) status = prepare_kernel(solve, smem);
    return status ? status : prepare_kernel(end, 0);
  });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  const sizes s = sizes_of(p, v->cols);
  shared_state state;
  lay_out(p, v->cols, args->workspace, &state);
  return with_kernels(p, v, [&](auto begin, auto solve, auto end, size_t smem) {
    const int64_t blocks = s.n > 0 && s.k > 0 ? (s.n - 1) / tile + 1 : 0;
    batchqr_status status = launch_kernel(begin, grid_for(args->count), threads, 0, stream, *args, state, s);
    if (!status && blocks > 0)
      status = launch_kernel(solve, grid_for(args->count * s.parts * blocks), threads, smem, stream, *args,
                             state, s);
    if (status || s.k == 0) return status;
    return launch_kernel(end, grid_for(args->count * s.k * s.norm_pieces), threads, 0, stream, *args, state,
                         s);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_trsm_grid = {
    .name = "trsm_grid",
    .op = BATCHQR_TRSM,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 2,
    .launches = 3,
    .supports = bqr::supports,
    .workspace = bqr::workspace_bytes,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
    .prefers = bqr::prefers,
};
