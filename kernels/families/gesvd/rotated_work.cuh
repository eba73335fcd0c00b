/* SPDX-License-Identifier: BSD-3-Clause */
/* Members in the workspace whose columns several blocks of threads rotate: how they come there, and what
 * becomes of them. Of A or, where that is not tall, of A^H, X of p x q, p >= q: one-sided Jacobi, X W = Z S.
 */
#ifndef BQR_KERNELS_FAMILIES_GESVD_ROTATED_WORK_CUH
#define BQR_KERNELS_FAMILIES_GESVD_ROTATED_WORK_CUH

#include "common/panel/triplets.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

constexpr int ends_threads = 1024;
/* At most; without QR before, a spectrum that falls off geometrically to rounding takes 30. */
constexpr int sweeps = 48;
/* That share a member and wait for one another. */
constexpr int most_blocks = 128;
/* Workspace, unless a single member needs more. */
constexpr size_t most_bytes = size_t(1) << 29;

/* What is known of a member: what it was multiplied by, 2^exponent; before which sweeps something was left to
 * do. */
struct progress {
  uint32_t magnitude; /* of the largest entry */
  int exponent;
  int active[sweeps + 1];
  /* Of blocks that wait for one another: arrivals at the ends of sweeps; what each was sent, in two turns. */
  int arrived, letters[2 * most_blocks];
};

/* The places of a member of up to p x q in the workspace. */
template <class T> struct places {
  size_t x, w, peaks, coefficients, lacking, values, order, bytes;

  BQR_INLINE places(int p, int q) {
    const size_t rows = static_cast<size_t>(p), cols = static_cast<size_t>(q);
    x = (sizeof(progress) + 255) / 256 * 256;
    w = x + (rows * cols * sizeof(T) + 255) / 256 * 256;
    peaks = w + (cols * cols * sizeof(T) + 255) / 256 * 256;
    coefficients = peaks + (cols * sizeof(real_t<T>) + 255) / 256 * 256;
    lacking = coefficients + (cols + 1) * sizeof(T);
    values = lacking + (rows + 1) * sizeof(real_t<T>);
    order = values + (cols + 1) * sizeof(real_t<T>);
    bytes = (order + (cols + 1) * sizeof(int) + 255) / 256 * 256;
  }
};

/* A member and its part of the workspace. */
template <class T> struct work {
  member at;
  bool turned, empty;
  int p, q, most_p, most_q; /* of this one and of all */
  unsigned char *memory;
  places<T> layout;

  /* The one that is `number` places behind the first of those that are under way. */
  __device__ __forceinline__ work(const bqr_args &args, int64_t first, int number)
      : at(member_at<BATCHQR_GESVD>(args, first + number)), turned(at.m < at.n), p(largest(at.m, at.n)),
        q(least(at.m, at.n)), most_p(largest(args.m, args.n)), most_q(least(args.m, args.n)),
        layout(most_p, most_q) {
    empty = !at.ok || q <= 0;
    memory = static_cast<unsigned char *>(args.workspace) + number * layout.bytes;
  }
  __device__ __forceinline__ progress &state() const { return *reinterpret_cast<progress *>(memory); }
  __device__ __forceinline__ matrix_view<T> a(const bqr_args &args) const {
    return {matrix_data<T>(args, args.a, at.id), matrix_ld(args.a, at.id), at.m, at.n};
  }
  __device__ __forceinline__ matrix_view<T> x() const {
    return {reinterpret_cast<T *>(memory + layout.x), p, p, q};
  }
  __device__ __forceinline__ matrix_view<T> w() const {
    return {reinterpret_cast<T *>(memory + layout.w), q, q, q};
  }
  /* Of each column, the largest squared norm that rotations have made its new one of. */
  __device__ __forceinline__ real_t<T> *peaks() const {
    return reinterpret_cast<real_t<T> *>(memory + layout.peaks);
  }
  /* Whether W is asked for; X's columns become the other vectors. */
  __device__ __forceinline__ bool wants_w(const bqr_args &args) const {
    return turned ? args.u.data : args.v.data;
  }
};

/* A block's share of columns, which blocks of gridDim.x share: f(element, row, column). */
template <class T, class F> __device__ __forceinline__ void for_shared(const matrix_view<T> &a, F &&f) {
  for (int j = warp_id() + static_cast<int>(blockIdx.x) * num_warps(); j < a.cols;
       j += num_warps() * static_cast<int>(gridDim.x))
    for (int i = lane_id(); i < a.rows; i += warp_lanes) f(*a.at(i, j), i, j);
}

/* A block for each member. */
__global__ void __launch_bounds__(ends_threads) gesvd_clear_kernel(unsigned char *memory, size_t bytes) {
  progress &state = *reinterpret_cast<progress *>(memory + blockIdx.x * bytes);
  for (int i = thread_id(); i < static_cast<int>(sizeof state / sizeof(int)); i += num_threads())
    reinterpret_cast<int *>(&state)[i] = 0;
}

template <class T>
__global__ void __launch_bounds__(ends_threads)
    gesvd_measure_kernel(const __grid_constant__ bqr_args args, int64_t first) {
  __shared__ uint32_t word;
  const work<T> k(args, first, blockIdx.y);
  if (k.empty) return;
  uint32_t u = 0;
  for_shared(k.a(args), [&](const T &x, int, int) { u = greater(u, magnitude_or_one(x)); });
  u = block_max(&word, u);
  if (thread_id() == 0) atomicMax(&k.state().magnitude, u);
}

/* X := 2^exponent A or its adjoint, W := I. */
template <class T>
__global__ void __launch_bounds__(ends_threads)
    gesvd_begin_kernel(const __grid_constant__ bqr_args args, int64_t first) {
  const work<T> k(args, first, blockIdx.y);
  progress &state = k.state();
  if (k.empty) return;
  const uint32_t u = state.magnitude;
  const bool finite = magnitude_finite<T>(u);
  const int exponent = finite && u ? exponent_to<T>(u, span<real_t<T>>::top) : 0;
  if (blockIdx.x == 0 && thread_id() == 0) {
    state.exponent = exponent;
    state.active[0] = finite;
  }
  if (!finite) return;
  for (int j = thread_id(); blockIdx.x == 0 && j < k.q; j += num_threads()) k.peaks()[j] = 0;
  const matrix_view<T> x = k.x();
  for_shared(k.a(args), [&](const T &y, int i, int j) {
    const T z = times_power(y, exponent);
    if (k.turned)
      *x.at(j, i) = conj(z);
    else
      *x.at(i, j) = z;
  });
  if (k.wants_w(args)) for_shared(k.w(), [&](T &y, int i, int j) { y = i == j ? one<T>() : zero<T>(); });
}

/* What becomes of a member's X and W. The columns are shared by blocks of gridDim.x. */
template <class T>
__device__ __forceinline__ triplets<T> triplets_of(const bqr_args &args, const work<T> &k) {
  squad s = make_squad(warp_lanes);
  s.id += s.count * static_cast<int>(blockIdx.x);
  s.count *= static_cast<int>(gridDim.x);
  return {args, k.at, s, reinterpret_cast<real_t<T> *>(k.memory + k.layout.values),
          reinterpret_cast<int *>(k.memory + k.layout.order)};
}

template <class T>
__global__ void __launch_bounds__(ends_threads)
    gesvd_values_kernel(const __grid_constant__ bqr_args args, int64_t first) {
  const work<T> k(args, first, blockIdx.y);
  if (!k.empty && k.state().active[0]) triplets_of(args, k).normalize(k.x(), k.q);
}

/* A block for each member. */
template <class T>
__global__ void __launch_bounds__(ends_threads)
    gesvd_order_kernel(const __grid_constant__ bqr_args args, int64_t first) {
  using R = real_t<T>;
  const work<T> k(args, first, blockIdx.y);
  const triplets<T> out = triplets_of(args, k);
  const progress &state = k.state();
  const bool finite = k.empty || state.active[0];
  if (thread_id() == 0)
    set_info(args, k.at.id,
             !k.at.ok  ? BATCHQR_INFO_SIZES
             : !finite ? BATCHQR_INFO_NONFINITE
                       : !k.empty && k.q > 1 && state.active[sweeps]);
  if (k.empty) {
    if (k.at.ok) out.set_rank(0);
    return;
  }
  if (!finite) return out.set_nonfinite();
  out.order_values();
  block_sync();
  if (k.turned ? args.v.data : args.u.data)
    complete_columns(make_squad(warp_lanes), k.x(), out.values,
                     reinterpret_cast<T *>(k.memory + k.layout.coefficients),
                     reinterpret_cast<R *>(k.memory + k.layout.lacking));
  block_sync();
  out.store_values(state.exponent);
}

template <class T>
__global__ void __launch_bounds__(ends_threads)
    gesvd_vectors_kernel(const __grid_constant__ bqr_args args, int64_t first) {
  const work<T> k(args, first, blockIdx.y);
  if (!k.empty && k.state().active[0])
    triplets_of(args, k).store_vectors(k.turned ? k.w() : k.x(), k.turned ? k.x() : k.w());
}

size_t member_bytes(const bqr_problem *p) {
  return for_type(p->type, [&](auto tag) {
    return places<typename decltype(tag)::type>(largest(p->m, p->n), least(p->m, p->n)).bytes;
  });
}

/* Members that are under way at once. */
int64_t at_once(const bqr_problem *p) {
  const int64_t fit = static_cast<int64_t>(most_bytes / member_bytes(p)), most = 32768;
  const int64_t members = fit < 1 ? 1 : fit < most ? fit : most;
  return p->count < members ? (p->count < 1 ? 1 : p->count) : members;
}

/* Kernels before and after the rotations; blocks for a member, of a warp for each column, as many as there is
 * room for. */
enum { ENDS_LAUNCHES = 6 };
batchqr_status prepare_ends(const bqr_problem *p) {
  return for_type(p->type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(gesvd_clear_kernel, 0);
    if (!status) status = prepare_kernel(gesvd_measure_kernel<T>, 0);
    if (!status) status = prepare_kernel(gesvd_begin_kernel<T>, 0);
    if (!status) status = prepare_kernel(gesvd_values_kernel<T>, 0);
    if (!status) status = prepare_kernel(gesvd_order_kernel<T>, 0);
    return status ? status : prepare_kernel(gesvd_vectors_kernel<T>, 0);
  });
}
dim3 shares(const bqr_problem *p, const bqr_device *device, unsigned count) {
  const int columns = largest(p->m, p->n), blocks = (columns - 1) / (ends_threads / warp_lanes) + 1,
            room = device->multiprocessors / static_cast<int>(count);
  return dim3(static_cast<unsigned>(largest(1, least(blocks, room))), count);
}
batchqr_status launch_begin(const bqr_problem *p, const bqr_device *device, const bqr_args &args,
                            int64_t first, unsigned count, batchqr_stream stream) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto launch = [&](auto kernel, dim3 grid) {
      return launch_kernel(kernel, grid, ends_threads, 0, stream, args, first);
    };
    const dim3 grid = shares(p, device, count);
    batchqr_status status = launch_kernel(gesvd_clear_kernel, dim3(count), ends_threads, 0, stream,
                                          static_cast<unsigned char *>(args.workspace), member_bytes(p));
    if (!status) status = launch(gesvd_measure_kernel<T>, grid);
    return status ? status : launch(gesvd_begin_kernel<T>, grid);
  });
}
batchqr_status launch_end(const bqr_problem *p, const bqr_device *device, const bqr_args &args, int64_t first,
                          unsigned count, batchqr_stream stream) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto launch = [&](auto kernel, dim3 grid) {
      return launch_kernel(kernel, grid, ends_threads, 0, stream, args, first);
    };
    const dim3 grid = shares(p, device, count);
    batchqr_status status = launch(gesvd_values_kernel<T>, grid);
    if (!status) status = launch(gesvd_order_kernel<T>, dim3(1, count));
    return status ? status : launch(gesvd_vectors_kernel<T>, grid);
  });
}

} // namespace
} // namespace bqr

#endif
