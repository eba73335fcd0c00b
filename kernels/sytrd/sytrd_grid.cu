/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole GPU for each member's reduction to tridiagonal form. */
#include "sytrd.h"
#include "grid.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

/* In the memory: a place for each block's largest magnitude, then letters. */
template <class T> struct grid_memory {
  using unit = typename letter<T>::unit;
  static constexpr int most_blocks = 1024;
  message<float> *seen;
  unit *letters;
  int64_t words; /* of 4 bytes, of letters */

  __host__ __device__ grid_memory(void *memory, int n)
      : seen(static_cast<message<float> *>(memory)), letters(reinterpret_cast<unit *>(seen + most_blocks)),
        words(4 * int64_t(n) * static_cast<int64_t>(sizeof(T) / 4)) {}
  size_t bytes() const { return sizeof(message<float>) * most_blocks + 4 * static_cast<size_t>(words); }
};

/* No message has come. */
template <class T> __global__ void __launch_bounds__(256) sytrd_forget_kernel(void *memory, int n) {
  const grid_memory<T> m(memory, n);
  const int64_t begin = blockIdx.x * int64_t(256) + thread_id(), stride = int64_t(gridDim.x) * 256;
  for (int64_t i = begin; i < m.most_blocks; i += stride) m.seen[i].tag = 0;
  for (int64_t i = begin; i < m.words; i += stride) reinterpret_cast<uint32_t *>(m.letters)[i] = ~uint32_t(0);
}

/* The largest of what all blocks have found. */
__device__ inline uint32_t largest_of_all(message<float> *seen, uint32_t u, uint32_t *shared) {
  if (thread_id() == 0) *shared = 0;
  block_sync();
  u = group_max(u);
  if (lane_id() == 0) shared_max(shared, u);
  block_sync();
  if (thread_id() == 0) send(seen + blockIdx.x, __uint_as_float(*shared), 1);
  block_sync();
  for (int begin = 0; begin < static_cast<int>(gridDim.x); begin += num_threads()) {
    const int i = begin + thread_id();
    bool missing = i < static_cast<int>(gridDim.x);
    float there = 0;
    while (group_any(missing)) missing = missing && !received(seen + i, there, 1);
    shared_max(shared, __float_as_uint(there));
  }
  block_sync();
  return *shared;
}

template <class T, int ROWS, int COLS>
__global__ void __launch_bounds__(grid_shape<T, ROWS, COLS>::threads, 1)
    sytrd_grid_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_sytrd_work work,
                      int64_t first, int number, bool lower) {
  using R = real_t<T>;
  using shared = typename grid_shape<T, ROWS, COLS>::shared;
  __shared__ uint32_t largest;
  shared &s = *shared_memory<shared>();
  const int n = args.n;
  const member x = member_at<BATCHQR_SYEVD>(args, first + number);
  const grid_memory<T> memory(work.letters, n);
  grid_tridiagonal<T, ROWS, COLS> reduction(s, memory.letters, n);
  bool sound = x.ok && x.n == n;
  uint32_t u = 0;
  if (sound) {
    const matrix_view<T> a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), n, n};
    u = largest_of_all(memory.seen, reduction.load(a, lower), &largest);
    sound = magnitude_finite<T>(u);
  }
  /* Nothing is needed behind the reduction, which needs all registers. */
  const int64_t row = static_cast<int64_t>(number) * n;
  const grid_results<T> to = {static_cast<T *>(work.a) + row * n, static_cast<T *>(work.tau) + row,
                              static_cast<R *>(work.d) + row, static_cast<R *>(work.e) + row};
  const int exponent = u && sound ? exponent_to<T>(u, span<R>::top) : 0;
  if (blockIdx.x == 0) {
    const bool fits = x.ok && x.n == n;
    if (thread_id() == 0) {
      set_info(args, x.id, sound ? 0 : fits ? BATCHQR_INFO_NONFINITE : BATCHQR_INFO_SIZES);
      work.states[number].sound = sound;
      work.states[number].exponent = exponent;
    }
    R *w = vector_data<R>(args.s, x.id);
    for (int j = thread_id(); fits && !sound && j < n; j += num_threads()) w[j] = static_cast<R>(nan(""));
    for (int j = thread_id(); !sound && j < n; j += num_threads()) {
      to.d[j] = to.e[j] = 0;
      to.tau[j] = zero<T>();
    }
  }
  if (!sound) return;
  reduction.scale(exponent);
  reduction.run(to);
}

/* The largest order. */
template <class T> constexpr int most_columns = sizeof(T) > 8 ? 2 : 4; /* of a thread */
inline int most_rows(batchqr_type type) {
  return for_type(type, [](auto tag) { return 512 * most_columns<typename decltype(tag)::type>; });
}

/* f(kernel, kernel that forgets, its shape's tag) */
template <class F> auto with_grid(const bqr_problem *p, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int columns = p->n <= 512 ? 1 : p->n <= 1024 ? 2 : 4;
    return for_value<1, 2, most_columns<T>>(columns, [&](auto cols) {
      constexpr int C = decltype(cols)::value, rows = 4 * C;
      return f(sytrd_grid_kernel<T, rows, C>, sytrd_forget_kernel<T>, type_tag<grid_shape<T, rows, C>>{});
    });
  });
}
/* Rows are dealt out to all multiprocessors, `adjacent` to each in turn. */
int blocks_of(int n, int adjacent, int multiprocessors) {
  const int groups = (n + adjacent - 1) / adjacent;
  return groups < multiprocessors ? groups : multiprocessors;
}

} // namespace
} // namespace bqr

extern "C" size_t bqr_sytrd_grid_bytes(const bqr_problem *p) {
  return bqr::for_type(p->type, [&](auto tag) {
    return bqr::grid_memory<typename decltype(tag)::type>(nullptr, p->n).bytes();
  });
}

extern "C" bool bqr_sytrd_grid_supports(const bqr_problem *p, const bqr_device *device) {
  using namespace bqr;
  return bqr_has_clusters(device) && p->uniform && p->n >= 1 && p->n <= most_rows(p->type) &&
         with_grid(p, [&](auto, auto, auto tag) {
           using shape = typename decltype(tag)::type;
           return sizeof(typename shape::shared) <= static_cast<size_t>(device->smem_per_block) &&
                  p->n <= shape::rows * device->multiprocessors;
         });
}

extern "C" batchqr_status bqr_sytrd_grid_prepare(const bqr_problem *p) {
  using namespace bqr;
  return with_grid(p, [&](auto kernel, auto forget, auto tag) {
    const batchqr_status status = prepare_kernel(forget, 0);
    return status ? status : prepare_kernel(kernel, sizeof(typename decltype(tag)::type::shared));
  });
}

extern "C" batchqr_status bqr_sytrd_grid_reduce(const bqr_problem *p, const bqr_device *device,
                                                const bqr_args *args, int64_t first, int count,
                                                const bqr_sytrd_work *work, batchqr_stream stream) {
  using namespace bqr;
  return with_grid(p, [&](auto kernel, auto forget, auto tag) {
    using shape = typename decltype(tag)::type;
    const int blocks = blocks_of(p->n, shape::adjacent, device->multiprocessors);
    batchqr_status status = BATCHQR_SUCCESS;
    for (int i = 0; i < count && !status; i++) {
      status = launch_kernel(forget, dim3(16), 256, 0, stream, work->letters, p->n);
      if (!status)
        status = launch_together(kernel, dim3(static_cast<unsigned>(blocks)), shape::threads,
                                 sizeof(typename shape::shared), stream, *args, *work, first, i,
                                 p->uplo == BATCHQR_LOWER);
    }
    return status;
  });
}
