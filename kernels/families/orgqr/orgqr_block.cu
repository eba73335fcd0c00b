/* SPDX-License-Identifier: BSD-3-Clause */
/* Forms Q from its reflectors, in place, one block of threads for a matrix of any size. Blocked as LAPACK's
 * xORGQR: from the last block reflector to the first, each is applied to the columns to its right, which are
 * columns of Q by then, and its own columns become its product with the identity. */
#include "family.h"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/panel/reflect.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {
namespace {

constexpr int most_warps = 8;

template <class T> constexpr int shared_elements(int warps) {
  return block_reducer<T, block_width>::elements_for(warps) + block_reflector<T>::elements +
         largest(warps * block_width * apply_width<T>, block_width * block_width);
}

/* Overwrites the columns of V with those of I - V T V^H, rows before the panel with zeros. `panel` holds V
 * from its diagonal block on, `above` rows lie before it. scratch: block_width^2 elements. */
template <class T> __device__ void form_panel(const block_reflector<T> &h, T *panel, int above, T *scratch) {
  constexpr int NB = block_width;
  /* -T V_1^H; V_1 is the head */
  for (int e = thread_id(); e < NB * NB; e += num_threads()) {
    int i = e / NB, j = e % NB;
    T y = zero<T>();
    for (int l = 0; l < NB; l++) y = madd(h.t[i * NB + l], conj(h.head[j + l * NB]), y);
    scratch[e] = -y;
  }
  block_sync();
  for (int i = thread_id(); i < h.rows; i += num_threads()) {
    T v[NB];
    if (i < h.width)
      load_head(h.head, i, v);
    else
      load_row(h, i, v);
#pragma unroll
    for (int j = 0; j < NB; j++)
      if (j < h.width) {
        T q = i == j ? one<T>() : zero<T>();
#pragma unroll
        for (int l = 0; l < NB; l++) q = madd(v[l], scratch[l * NB + j], q);
        panel[i + j * h.ld] = q;
      }
  }
  for_each(matrix_view<T>{panel - above, h.ld, above, h.width}, [](T &x, int, int) { x = zero<T>(); });
}

template <class T>
__device__ void form_q(const matrix_view<T> &a, int k, const T *tau, T *head, T *t, T *scratch,
                       block_reducer<T, block_width> &reducer) {
  for_each(a.part(0, k, a.rows, a.cols - k),
           [&](T &x, int i, int j) { x = i == j + k ? one<T>() : zero<T>(); });
  for (int j = (k - 1) / block_width * block_width; k > 0 && j >= 0; j -= block_width) {
    int width = least(block_width, k - j), right = j + width;
    block_reflector<T> h{a.at(j, j), a.ld, a.rows - j, width, head, t};
    block_sync();
    form_block_reflector(h, tau + j, reducer);
    apply_left(h, false, a.at(j, right), a.ld, a.cols - right, scratch);
    block_sync();
    form_panel(h, a.at(j, j), j, scratch);
  }
}

template <class T>
__global__ void __launch_bounds__(most_warps *warp_lanes, 1)
    orgqr_block_kernel(const __grid_constant__ bqr_args args) {
  T *shared = shared_memory<T>();
  block_reducer<T, block_width> reducer(shared);
  T *t = shared + block_reducer<T, block_width>::elements_for(num_warps());
  T *head = t + block_width * block_width;
  T *scratch = head + block_width * block_width;

  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    member x = member_at<BATCHQR_ORGQR>(args, i);
    int info = BATCHQR_INFO_SIZES;
    if (x.ok) {
      info = 0;
      if (x.n > 0) {
        matrix_view<T> a{matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n};
        const T *tau = x.k > 0 ? tau_data<T>(args, x.id) : nullptr;
        if (args.info) {
          uint32_t u = vectors_magnitude(a.part(0, 0, x.m, x.k));
          for (int j = thread_id(); j < x.k; j += num_threads()) u = greater(u, magnitude(tau[j]));
          if (!magnitude_finite<T>(reducer.max(u))) info = BATCHQR_INFO_NONFINITE;
        }
        form_q(a, x.k, tau, head, t, scratch, reducer);
        block_sync();
      }
    }
    if (thread_id() == 0) set_info(args, x.id, info);
  }
}

template <class T> size_t smem_bytes(const bqr_variant *v) {
  return sizeof(T) * shared_elements<T>(v->warps);
}

const bqr_variant variants[] = {{.name = "warps1", .warps = 1, .most = 32},
                                {.name = "warps2", .warps = 2, .most = 64},
                                {.name = "warps4", .warps = 4, .most = 256},
                                {.name = "warps8", .warps = 8}};

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return (v->most == 0 || p->m <= v->most) &&
         smem_bytes<complex_double>(v) <= static_cast<size_t>(device->smem_per_block);
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return prepare_kernel(orgqr_block_kernel<T>, smem_bytes<T>(v));
  });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(orgqr_block_kernel<T>, grid_for(args->count), v->warps * warp_lanes,
                         smem_bytes<T>(v), stream, *args);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_orgqr_block = {
    .name = "orgqr_block",
    .op = BATCHQR_ORGQR,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 4,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
