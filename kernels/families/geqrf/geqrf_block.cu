/* SPDX-License-Identifier: BSD-3-Clause */
/* QR factorization, one block of threads for a matrix, of any size. Right-looking, blocked as LAPACK's
 * xGEQRF: a panel of block_width columns is factored in shared memory (or in place, where it is too tall),
 * then the block reflector is applied to the columns to its right in global memory. */
#include "family.h"
#include "common/simt/launch.cuh"
#include "common/panel/larfg.cuh"
#include "common/matrix/member.cuh"
#include "common/matrix/range.cuh"
#include "common/panel/reflect.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {
namespace {

constexpr int most_warps = 8;

/* Shared memory, in elements of T, without the panel. */
template <class T> constexpr int fixed_elements(int warps) {
  return block_reducer<T, block_width>::elements_for(warps) + block_reflector<T>::elements +
         warps * block_width * apply_width<T>;
}

/* Factors the panel p, rows x h.width, in place, and forms h and tau. Each thread has rows of its own, so
 * that only sums and the pivot, which its owner changed last, are exchanged. Ends with a barrier. */
template <class T>
__device__ void factor_panel(T *p, const block_reflector<T> &h, T *tau, bool positive,
                             block_reducer<T, block_width> &reducer) {
  using R = real_t<T>;
  const int64_t ld = h.ld;
  for (int j = 0; j < h.width; j++) {
    T *pj = p + j * ld;
    block_sync();
    T alpha = pj[j];
    R ss = 0;
    for (int i = thread_id(); i < h.rows; i += num_threads())
      if (i > j) ss = abs2_add(pj[i], ss);
    ss = reducer.sum(ss);
    R pre = norm_prescale(abs2_add(alpha, ss), positive);
    if (pre != 1) {
      ss = 0;
      for (int i = thread_id(); i < h.rows; i += num_threads())
        if (i > j) ss = abs2_add(scaled(pj[i], pre), ss);
      ss = reducer.sum(ss);
    }
    reflector<T> f = larfg(alpha, ss, pre, positive);

    /* v_j, and its products with the columns to the right (l > j) and with the vectors to the left */
    T dot[block_width];
#pragma unroll
    for (int l = 0; l < block_width; l++) dot[l] = zero<T>();
    for (int i = thread_id(); i < h.rows; i += num_threads()) {
      if (i < j) continue;
      T v = i == j ? one<T>() : f.v(pj[i]);
      pj[i] = i == j ? make<T>(f.beta) : v;
#pragma unroll
      for (int l = 0; l < block_width; l++) {
        if (l < j) dot[l] = cmadd(p[i + l * ld], v, dot[l]);
        if (l > j && l < h.width) dot[l] = cmadd(v, p[i + l * ld], dot[l]);
      }
    }
    reducer.sum(dot);
    form_t_column(h.t, j, f.tau, dot);
    if (thread_id() == 0) tau[j] = f.tau;
    for (int i = thread_id(); i < h.rows; i += num_threads()) {
      if (i < j) continue;
      T v = i == j ? one<T>() : pj[i];
#pragma unroll
      for (int l = 0; l < block_width; l++)
        if (l > j && l < h.width) p[i + l * ld] -= v * (conj(f.tau) * dot[l]);
    }
  }
  block_sync();
}

template <class T>
__device__ void factor(const matrix_view<T> &a, T *tau, bool positive, T *panel, int panel_rows, T *head,
                       T *t, T *scratch, block_reducer<T, block_width> &reducer) {
  int k = least(a.rows, a.cols);
  for (int j = 0; j < k; j += block_width) {
    block_reflector<T> h;
    h.rows = a.rows - j;
    h.width = least(block_width, k - j);
    h.head = head;
    h.t = t;
    matrix_view<T> top = a.part(j, j, h.rows, h.width), work = top;
    bool on_chip = h.rows <= panel_rows;
    if (on_chip) {
      work.data = panel;
      work.ld = h.rows;
      copy_matrix(top, work);
    }
    h.v = work.data;
    h.ld = work.ld;
    factor_panel(work.data, h, tau + j, positive, reducer);
    form_head(h);
    if (on_chip) copy_matrix(work, top);
    block_sync();
    int right = j + h.width;
    apply_left(h, true, a.at(j, right), a.ld, a.cols - right, scratch);
    block_sync();
  }
}

template <class T>
__global__ void __launch_bounds__(most_warps *warp_lanes, 1)
    geqrf_block_kernel(const __grid_constant__ bqr_args args, bool positive, int panel_rows) {
  T *shared = shared_memory<T>();
  block_reducer<T, block_width> reducer(shared);
  T *t = shared + block_reducer<T, block_width>::elements_for(num_warps());
  T *head = t + block_width * block_width;
  T *scratch = head + block_width * block_width;
  T *panel = scratch + num_warps() * block_width * apply_width<T>;
  uint8_t *scales = reinterpret_cast<uint8_t *>(panel + panel_rows * block_width);

  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    member x = member_at<BATCHQR_GEQRF>(args, i);
    int info = BATCHQR_INFO_SIZES;
    if (x.ok) {
      info = 0;
      int k = least(x.m, x.n);
      if (k > 0) {
        matrix_view<T> a{matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n};
        uint32_t u = reducer.max(bring_into_range(a, positive, scales));
        factor(a, tau_data<T>(args, x.id), positive, panel, panel_rows, head, t, scratch, reducer);
        bring_back(a, positive, scales, [&](int j) { return least(j + 1, x.m); });
        block_sync();
        /* the first exact zero on the diagonal, as the largest distance from its end */
        uint32_t zero_from_end = 0;
        for (int j = thread_id(); j < k; j += num_threads())
          if (is_zero(*a.at(j, j))) zero_from_end = largest(zero_from_end, k - j);
        zero_from_end = reducer.max(zero_from_end);
        if (zero_from_end > 0) info = k - static_cast<int>(zero_from_end) + 1;
        if (!magnitude_finite<T>(u)) info = BATCHQR_INFO_NONFINITE;
      }
    }
    if (thread_id() == 0) set_info(args, x.id, info);
  }
}

template <class T> size_t smem_bytes(const bqr_problem *p, int warps, int panel_rows) {
  return sizeof(T) * (fixed_elements<T>(warps) + static_cast<size_t>(panel_rows) * block_width) +
         static_cast<size_t>(column_scales_bytes(p->n));
}

/* Panels with more rows than this stay in global memory. */
template <class T> int panel_rows_for(const bqr_problem *p, int warps, const bqr_device *device) {
  size_t fixed = smem_bytes<T>(p, warps, 0), row = sizeof(T) * block_width;
  size_t fit = (static_cast<size_t>(device->smem_per_block) - fixed) / row;
  return fit < static_cast<size_t>(p->m) ? static_cast<int>(fit) : p->m;
}

const bqr_variant variants[] = {{.name = "warps1", .warps = 1, .most = 32},
                                {.name = "warps2", .warps = 2, .most = 64},
                                {.name = "warps4", .warps = 4, .most = 256},
                                {.name = "warps8", .warps = 8}};

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return (v->most == 0 || (p->m <= v->most && p->n <= v->most)) &&
         smem_bytes<complex_double>(p, v->warps, 0) <= static_cast<size_t>(device->smem_per_block);
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int rows = panel_rows_for<T>(p, v->warps, device);
    return prepare_kernel(geqrf_block_kernel<T>, smem_bytes<T>(p, v->warps, rows));
  });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                      const bqr_args *args, batchqr_stream stream) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int rows = panel_rows_for<T>(p, v->warps, device);
    return launch_kernel(geqrf_block_kernel<T>, grid_for(args->count), v->warps * warp_lanes,
                         smem_bytes<T>(p, v->warps, rows), stream, *args, p->positive, rows);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_geqrf_block = {
    .name = "geqrf_block",
    .op = BATCHQR_GEQRF,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 4,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
