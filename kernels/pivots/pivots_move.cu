/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes over the elements of A and C: their largest entries, A P and back. */
#include "pivots_parts.cuh"
#include "common/matrix/member.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/panel/exponents.cuh"
#include "common/simt/block.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

constexpr int threads = 256, piece_elements = 8192;

/* A block to a member; those that are not there this time are empty for the other family. */
template <class T>
__global__ void __launch_bounds__(threads)
    pivots_begin_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_pivots p,
                        bool all_exact) {
  for (int64_t i = blockIdx.x; i < p.most; i += gridDim.x) {
    const bool there = i < p.count;
    for (int j = thread_id(); j < p.n; j += threads) p.order[i * p.n + j] = j;
    if (thread_id() > 0) continue;
    p.states[i] = {0, 0, all_exact, 0, 0, 0};
    p.m_left[i] = there && all_exact ? p.m : 0;
    p.n_left[i] = there && all_exact ? p.n : 0;
    if (!there) continue;
    const int64_t id = id_of(args, p, i);
    p.lda[i] = static_cast<int>(matrix_ld(args.a, id));
    p.a[i] = matrix_data<T>(args, args.a, id);
    p.tau_at[i] = tau_data<T>(args, id);
    if (args.jpvt.data) p.jpvt_at[i] = vector_data<int>(args.jpvt, id);
    p.ldc[i] = 0;
    if (!p.work_c) continue;
    p.ldc[i] = static_cast<int>(matrix_ld(args.c, id));
    p.c[i] = matrix_data<T>(args, args.c, id);
  }
}

/* f(entry, first column, behind the last one) for a block's pieces of `cols` columns, of matrices of up to n.
 */
template <class F> __device__ __forceinline__ void for_columns_of(const bqr_pivots &p, int n, F &&f) {
  const int cols = largest(1, piece_elements / p.m), pieces = (n - 1) / cols + 1;
  for (int64_t i = blockIdx.x; i < p.count * pieces; i += gridDim.x) {
    const int first = static_cast<int>(i % pieces) * cols;
    f(i / pieces, first, least(n, first + cols));
  }
}

/* f(row, column), a warp to a column. */
template <class F> __device__ __forceinline__ void for_entries(int m, int first, int end, F &&f) {
  for (int j = first + warp_id(); j < end; j += threads / warp_lanes)
    for (int i = lane_id(); i < m; i += warp_lanes) f(i, j);
}

/* of_c: of C, not of A. */
template <class T>
__global__ void __launch_bounds__(threads)
    pivots_measure_kernel(const __grid_constant__ bqr_pivots p, int cols, bool of_c) {
  for_columns_of(p, cols, [&](int64_t entry, int first, int end) {
    const T *x = static_cast<const T *>(of_c ? p.c[entry] : p.a[entry]);
    const int64_t ld = of_c ? p.ldc[entry] : p.lda[entry];
    uint32_t u = 0;
    for_entries(p.m, first, end, [&](int i, int j) { u = greater(u, magnitude_or_one(x[i + j * ld])); });
    u = group_max(u);
    bqr_pivots_state *s = &p.states[entry];
    if (lane_id() == 0 && u > 0) atomicMax(of_c ? &s->magnitude_of_c : &s->magnitude, u);
  });
}

template <class T>
__global__ void __launch_bounds__(threads)
    pivots_gather_kernel(const __grid_constant__ bqr_pivots p, int cols, bool of_c) {
  for_columns_of(p, cols, [&](int64_t entry, int first, int end) {
    const T *x = static_cast<const T *>(of_c ? p.c[entry] : p.a[entry]);
    const int64_t ld = of_c ? p.ldc[entry] : p.lda[entry];
    T *to = static_cast<T *>(of_c ? p.work_c : p.work) + entry * p.ld * cols;
    const int *order = of_c ? nullptr : p.order + entry * p.n;
    for_entries(p.m, first, end,
                [&](int i, int j) { to[i + j * p.ld] = x[i + (order ? order[j] : j) * ld]; });
  });
}

/* tau, jpvt, rank and info, too, by the block that has A's first columns. */
template <class T>
__device__ void end_member(const bqr_args &args, const bqr_pivots &p, int64_t entry, bool exact) {
  const int64_t id = id_of(args, p, entry);
  if (thread_id() == 0) {
    set_info(args, id, exact ? p.info[entry] : 0);
    if (args.rank.data) *vector_data<int>(args.rank, id) = exact ? p.rank[entry] : p.steps;
  }
  if (exact) return;
  const T *from = static_cast<const T *>(p.tau) + entry * p.steps;
  T *to = static_cast<T *>(p.tau_at[entry]);
  for (int j = thread_id(); j < p.steps; j += threads) to[j] = from[j];
  if (!args.jpvt.data) return;
  int *jpvt = static_cast<int *>(p.jpvt_at[entry]);
  for (int j = thread_id(); j < p.n; j += threads) jpvt[j] = p.order[entry * p.n + j];
}

template <class T>
__global__ void __launch_bounds__(threads)
    pivots_end_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_pivots p, int cols,
                      bool of_c) {
  for_columns_of(p, cols, [&](int64_t entry, int first, int end) {
    const bool exact = p.states[entry].exact != 0;
    if (!of_c && first == 0) end_member<T>(args, p, entry, exact);
    if (exact) return;
    T *x = static_cast<T *>(of_c ? p.c[entry] : p.a[entry]);
    const int64_t ld = of_c ? p.ldc[entry] : p.lda[entry];
    const T *from = static_cast<const T *>(of_c ? p.work_c : p.work) + entry * p.ld * cols;
    for_entries(p.m, first, end, [&](int i, int j) { x[i + j * ld] = from[i + j * p.ld]; });
  });
}

/* So many bytes of each column of a member are one block's at a time, which has them of all columns. */
constexpr int slab_bytes = 128;
template <class T> constexpr int slab_rows = slab_bytes / static_cast<int>(sizeof(T));

/* For what follows, where members are factored in place. */
template <class T>
__device__ void note_member(const bqr_args &args, const bqr_pivots &p, int64_t entry, const matrix_view<T> &a,
                            bool exact) {
  const int64_t id = id_of(args, p, entry);
  if (thread_id() == 0) {
    p.whole[entry] = a.data;
    p.ld_whole[entry] = static_cast<int>(a.ld);
    p.a[entry] = static_cast<T *>(p.work) + entry * p.ld * p.n;
    p.lda[entry] = static_cast<int>(p.ld);
    if (!exact) set_info(args, id, 0);
    if (!exact && args.rank.data) *vector_data<int>(args.rank, id) = p.steps;
  }
  if (exact || !args.jpvt.data) return;
  int *jpvt = vector_data<int>(args.jpvt, id);
  for (int j = thread_id(); j < p.n; j += threads) jpvt[j] = p.order[entry * p.n + j];
}

/* A P takes the place of A; members that are left to the other family are copied. */
template <class T>
__global__ void __launch_bounds__(threads)
    pivots_arrange_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_pivots p,
                          int slabs) {
  constexpr int high = slab_rows<T>;
  T *const x = shared_memory<T>();
  for (int64_t s = blockIdx.x; s < p.count * slabs; s += gridDim.x) {
    const int64_t entry = s / slabs, id = id_of(args, p, entry);
    const matrix_view<T> a = {matrix_data<T>(args, args.a, id), matrix_ld(args.a, id), p.m, p.n};
    const bool exact = p.states[entry].exact != 0;
    const int first = static_cast<int>(s % slabs) * high, i = first + thread_id() % high;
    const int *const order = p.order + entry * p.n;
    if (first == 0) note_member(args, p, entry, a, exact);
#pragma unroll 8
    for (int j = thread_id() / high; j < p.n; j += threads / high)
      if (i < p.m) copy_async<sizeof(T)>(x + j * high + thread_id() % high, a.at(i, j));
    copy_async_wait();
    block_sync();
    T *const to = exact ? static_cast<T *>(p.work) + entry * p.ld * p.n : a.data;
    const int64_t ld = exact ? p.ld : a.ld;
#pragma unroll 8
    for (int j = thread_id() / high; j < p.n; j += threads / high)
      if (i < p.m) to[i + j * ld] = x[(exact ? j : order[j]) * high + thread_id() % high];
    block_sync();
  }
}

constexpr int return_threads = 128;
/* What the other family has made of its members. */
template <class T>
__global__ void __launch_bounds__(return_threads)
    pivots_return_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_pivots p) {
  for (int64_t i = blockIdx.x; i < p.count; i += gridDim.x) {
    if (!p.states[i].exact) continue;
    const int64_t id = id_of(args, p, i);
    copy_matrix<T>({static_cast<T *>(p.a[i]), p.ld, p.m, p.n},
                   {static_cast<T *>(p.whole[i]), p.ld_whole[i], p.m, p.n});
    if (thread_id() > 0) continue;
    set_info(args, id, p.info[i]);
    if (args.rank.data) *vector_data<int>(args.rank, id) = p.rank[i];
  }
}

unsigned grid_of(const bqr_pivots *p, int cols) {
  const int each = largest(1, piece_elements / p->m);
  return grid_for(p->count * ((cols - 1) / each + 1));
}

/* launch(kernel's last arguments) for A, and for C where there is one. */
template <class F> batchqr_status for_both(const bqr_args *args, const bqr_pivots *p, F &&launch) {
  const batchqr_status status = launch(grid_of(p, p->n), p->n, false);
  return status || !p->work_c ? status : launch(grid_of(p, args->k), args->k, true);
}

} // namespace
} // namespace bqr

using namespace bqr;

size_t bqr_pivots_shared(batchqr_type type, int n, bool in_place) {
  const size_t products = shared_of_products(type, n),
               slab = in_place ? static_cast<size_t>(n) * slab_bytes : 0;
  return products > slab ? products : slab;
}

batchqr_status bqr_pivots_prepare(batchqr_type type, const bqr_pivots *p, bool chooses) {
  batchqr_status status = for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status s = prepare_kernel(pivots_begin_kernel<T>, 0);
    if (!s) s = prepare_kernel(pivots_measure_kernel<T>, 0);
    if (!s) s = prepare_kernel(pivots_gather_kernel<T>, 0);
    if (!s && p->in_place) s = prepare_kernel(pivots_return_kernel<T>, 0);
    if (!s && p->in_place && chooses)
      s = prepare_kernel(pivots_arrange_kernel<T>, static_cast<size_t>(p->n) * slab_bytes);
    return s ? s : prepare_kernel(pivots_end_kernel<T>, 0);
  });
  if (!status && chooses) status = prepare_products(type, p->n);
  if (!status && chooses) status = prepare_complements(type);
  return status || !chooses ? status : prepare_choice(type, p);
}

batchqr_status bqr_pivots_begin(batchqr_type type, const bqr_args *args, const bqr_pivots *p, bool all_exact,
                                batchqr_stream stream) {
  const batchqr_status status = for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status s =
        launch_kernel(pivots_begin_kernel<T>, grid_for(p->most), threads, 0, stream, *args, *p, all_exact);
    if (s || all_exact) return s;
    return for_both(args, p, [&](unsigned grid, int cols, bool of_c) {
      return launch_kernel(pivots_measure_kernel<T>, grid, threads, 0, stream, *p, cols, of_c);
    });
  });
  return status || all_exact ? status : form_grams(type, p, stream);
}

batchqr_status bqr_pivots_gather(batchqr_type type, const bqr_args *args, const bqr_pivots *p,
                                 batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return for_both(args, p, [&](unsigned grid, int cols, bool of_c) {
      return launch_kernel(pivots_gather_kernel<T>, grid, threads, 0, stream, *p, cols, of_c);
    });
  });
}

batchqr_status bqr_pivots_end(batchqr_type type, const bqr_args *args, const bqr_pivots *p,
                              batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return for_both(args, p, [&](unsigned grid, int cols, bool of_c) {
      return launch_kernel(pivots_end_kernel<T>, grid, threads, 0, stream, *args, *p, cols, of_c);
    });
  });
}

batchqr_status bqr_pivots_arrange(batchqr_type type, const bqr_args *args, const bqr_pivots *p,
                                  batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int slabs = (p->m - 1) / slab_rows<T> + 1;
    return launch_kernel(pivots_arrange_kernel<T>, grid_for(p->count * slabs), threads,
                         static_cast<size_t>(p->n) * slab_bytes, stream, *args, *p, slabs);
  });
}

batchqr_status bqr_pivots_return(batchqr_type type, const bqr_args *args, const bqr_pivots *p,
                                 batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(pivots_return_kernel<T>, grid_for(p->count), return_threads, 0, stream, *args, *p);
  });
}
