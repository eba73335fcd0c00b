/* SPDX-License-Identifier: BSD-3-Clause */
/* Applies Q from its reflectors, op(Q) C or C op(Q), to matrices of any size. A block of threads works on
 * some columns of C (Q on the left) or some rows (Q on the right), which it takes through all block
 * reflectors: pieces of one member are independent, so that a few large members keep the device busy as well
 * as many small ones. Blocked as LAPACK's xORMQR. */
#include "family.h"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/matrix/range.cuh"
#include "common/panel/reflect.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {
namespace {

constexpr int most_warps = 8;

/* Columns of C in a piece, Q on the left. On the right it is a row for each thread. */
constexpr int piece_cols = 32;

template <class T> constexpr int fixed_elements(int warps) {
  return block_reducer<T, block_width>::elements_for(warps) + block_reflector<T>::elements +
         warps * block_width * apply_width<T>;
}

/* Shared memory of a block, and how many rows of V it has room for at a time. */
template <class T> struct workbench {
  T *t, *head, *scratch, *panel;
  int panel_rows;
  uint8_t *scales;
};

/* Brings the rows of C into range: bring_into_range() for the other side. The thread's row is its own from
 * here to the end. */
template <class T> __device__ uint32_t bring_row_into_range(const matrix_view<T> &c, real_t<T> &scale) {
  uint32_t u = 0;
  scale = 1;
  if (thread_id() >= c.rows) return u;
  T *row = c.at(thread_id(), 0);
  for (int j = 0; j < c.cols; j++) u = greater(u, magnitude(row[j * c.ld]));
  scale = range_scale<T>(u, true);
  if (scale != 1)
    for (int j = 0; j < c.cols; j++) row[j * c.ld] = scaled(row[j * c.ld], scale);
  return u;
}

template <class T> __device__ void bring_row_back(const matrix_view<T> &c, real_t<T> scale) {
  if (scale == 1) return;
  T *row = c.at(thread_id(), 0);
  for (int j = 0; j < c.cols; j++) row[j * c.ld] = scaled(row[j * c.ld], range_unscale(scale));
}

/* Takes the piece c of C through all block reflectors. Returns the largest magnitude of the thread's share
 * of V and tau. */
template <class T, bool LEFT>
__device__ uint32_t apply_all(const matrix_view<T> &v, const T *tau, bool adjoint, const matrix_view<T> &c,
                              const workbench<T> &w, block_reducer<T, block_width> &reducer) {
  uint32_t u = 0;
  const int k = v.cols, panels = (k + block_width - 1) / block_width;
  for (int step = 0; step < panels; step++) {
    int j = (LEFT == adjoint ? step : panels - 1 - step) * block_width;
    matrix_view<T> from = v.part(j, j, v.rows - j, least(block_width, k - j));
    block_reflector<T> h{from.data, from.ld, from.rows, from.cols, w.head, w.t};
    u = greater(u, vectors_magnitude(from));
    if (thread_id() < from.cols) u = greater(u, magnitude(tau[j + thread_id()]));
    block_sync();
    if (from.rows <= w.panel_rows) {
      copy_vectors(from, matrix_view<T>{w.panel, from.rows, from.rows, from.cols});
      h.v = w.panel;
      h.ld = from.rows;
      block_sync();
    }
    form_block_reflector(h, tau + j, reducer);
    if constexpr (LEFT)
      apply_left(h, adjoint, c.at(j, 0), c.ld, c.cols, w.scratch);
    else
      apply_right(h, adjoint, c.at(0, j), c.ld, c.rows);
  }
  block_sync();
  return u;
}

/* A launch before the one that applies: blocks of one member only ever add to its info. */
__global__ void clear_info_kernel(const __grid_constant__ bqr_args args, int side) {
  int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count; i += stride) {
    member x = member_at<BATCHQR_ORMQR>(args, i, side);
    set_info(args, x.id, x.ok ? 0 : BATCHQR_INFO_SIZES);
  }
}

template <class T, bool LEFT>
__global__ void __launch_bounds__(most_warps *warp_lanes, 1)
    ormqr_block_kernel(const __grid_constant__ bqr_args args, bool adjoint, int pieces, int panel_rows) {
  T *shared = shared_memory<T>();
  block_reducer<T, block_width> reducer(shared);
  workbench<T> w;
  w.t = shared + block_reducer<T, block_width>::elements_for(num_warps());
  w.head = w.t + block_width * block_width;
  w.scratch = w.head + block_width * block_width;
  w.panel = w.scratch + num_warps() * block_width * apply_width<T>;
  w.panel_rows = panel_rows;
  w.scales = reinterpret_cast<uint8_t *>(w.panel + panel_rows * block_width);

  for (int64_t i = blockIdx.x; i < args.count * pieces; i += gridDim.x) {
    member x = member_at<BATCHQR_ORMQR>(args, i / pieces, LEFT ? BATCHQR_LEFT : BATCHQR_RIGHT);
    int piece = LEFT ? piece_cols : num_threads(), first = static_cast<int>(i % pieces) * piece;
    int m = LEFT ? x.m : least(piece, x.m - first), n = LEFT ? least(piece, x.n - first) : x.n;
    if (!x.ok || m <= 0 || n <= 0) continue;

    matrix_view<T> whole{matrix_data<T>(args, args.c, x.id), matrix_ld(args.c, x.id), x.m, x.n};
    matrix_view<T> c = whole.part(LEFT ? 0 : first, LEFT ? first : 0, m, n);
    uint32_t u;
    if (x.k == 0) {
      u = matrix_magnitude(c);
    } else {
      matrix_view<T> v{matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), LEFT ? x.m : x.n, x.k};
      real_t<T> row_scale;
      u = LEFT ? bring_into_range(c, true, w.scales) : bring_row_into_range(c, row_scale);
      u = greater(u, apply_all<T, LEFT>(v, tau_data<T>(args, x.id), adjoint, c, w, reducer));
      if (LEFT)
        bring_back(c, true, w.scales, [&](int) { return c.rows; });
      else
        bring_row_back(c, row_scale);
    }
    u = reducer.max(u);
    if (thread_id() == 0 && !magnitude_finite<T>(u)) set_info(args, x.id, BATCHQR_INFO_NONFINITE);
  }
}

/* The kernel of a problem. */
template <class F> batchqr_status with_kernel(const bqr_problem *p, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return p->side == BATCHQR_LEFT ? f(ormqr_block_kernel<T, true>) : f(ormqr_block_kernel<T, false>);
  });
}

size_t smem_bytes(batchqr_type type, int warps, int panel_rows) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return sizeof(T) * (fixed_elements<T>(warps) + static_cast<size_t>(panel_rows) * block_width) +
           static_cast<size_t>(column_scales_bytes(piece_cols));
  });
}

/* V's panels with more rows than this are read from global memory. Half of the shared memory, so that a
 * second block hides the first one's waits. */
int panel_rows_for(const bqr_problem *p, int warps, const bqr_device *device) {
  size_t fixed = smem_bytes(p->type, warps, 0), row = type_bytes(p->type) * block_width;
  size_t half = static_cast<size_t>(device->smem_per_block) / 2,
         fit = half > fixed ? (half - fixed) / row : 0;
  int rows = p->side == BATCHQR_LEFT ? p->m : p->n;
  return fit < static_cast<size_t>(rows) ? static_cast<int>(fit) : rows;
}

const bqr_variant variants[] = {{.name = "warps1", .warps = 1, .most = 32},
                                {.name = "warps2", .warps = 2, .most = 64},
                                {.name = "warps4", .warps = 4, .most = 256},
                                {.name = "warps8", .warps = 8}};

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return (v->most == 0 || (p->m <= v->most && p->n <= v->most)) &&
         smem_bytes(p->type, v->warps, 0) <= static_cast<size_t>(device->smem_per_block);
}

/* Few members are done sooner by many warps, of which each has some rows of C. */
bool prefers(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  bool few = p->side == BATCHQR_LEFT && p->count <= device->multiprocessors;
  return !few || v->warps == most_warps;
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  size_t smem = smem_bytes(p->type, v->warps, panel_rows_for(p, v->warps, device));
  batchqr_status status = prepare_kernel(clear_info_kernel, 0);
  return status ? status : with_kernel(p, [&](auto kernel) { return prepare_kernel(kernel, smem); });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                      const bqr_args *args, batchqr_stream stream) {
  constexpr int info_threads = 256;
  batchqr_status status = BATCHQR_SUCCESS;
  if (args->info)
    status = launch_kernel(clear_info_kernel, grid_for((args->count - 1) / info_threads + 1), info_threads, 0,
                           stream, *args, static_cast<int>(p->side));
  if (status) return status;
  int threads = v->warps * warp_lanes, rows = panel_rows_for(p, v->warps, device);
  int pieces =
      p->side == BATCHQR_LEFT ? (p->n - 1) / piece_cols + 1 : (p->m - 1) / threads + 1; /* at least 1 */
  bool adjoint = p->trans != BATCHQR_NO_TRANS;
  return with_kernel(p, [&](auto kernel) {
    return launch_kernel(kernel, grid_for(args->count * pieces), threads, smem_bytes(p->type, v->warps, rows),
                         stream, *args, adjoint, pieces, rows);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_ormqr_block = {
    .name = "ormqr_block",
    .op = BATCHQR_ORMQR,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 4,
    .launches = 2,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
    .prefers = bqr::prefers,
};
