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

/* X := 2^exponent A or its adjoint, W := I. */
template <class T>
__global__ void __launch_bounds__(ends_threads)
    gesvd_begin_kernel(const __grid_constant__ bqr_args args, int64_t first) {
  __shared__ uint32_t word;
  const work<T> k(args, first, blockIdx.x);
  progress &state = k.state();
  if (thread_id() <= sweeps) state.active[thread_id()] = 0;
  if (thread_id() < 2 * most_blocks) state.letters[thread_id()] = 0;
  if (thread_id() == 0) state.arrived = 0;
  block_sync();
  if (k.empty) return;
  const matrix_view<T> a{matrix_data<T>(args, args.a, k.at.id), matrix_ld(args.a, k.at.id), k.at.m, k.at.n};
  uint32_t u = 0;
  for_each(a, [&](const T &x, int, int) { u = greater(u, magnitude_or_one(x)); });
  u = block_max(&word, u);
  const bool finite = magnitude_finite<T>(u);
  const int exponent = finite && u ? exponent_to<T>(u, span<real_t<T>>::top) : 0;
  if (thread_id() == 0) {
    state.exponent = exponent;
    state.active[0] = finite;
  }
  if (!finite) return;
  for (int j = thread_id(); j < k.q; j += num_threads()) k.peaks()[j] = 0;
  const matrix_view<T> x = k.x();
  for_each(a, [&](const T &y, int i, int j) {
    const T z = times_power(y, exponent);
    if (k.turned)
      *x.at(j, i) = conj(z);
    else
      *x.at(i, j) = z;
  });
  if (k.wants_w(args)) for_each(k.w(), [&](T &y, int i, int j) { y = i == j ? one<T>() : zero<T>(); });
}

/* The sums of products of two columns, over the squad. */
template <class T> struct sums {
  real_t<T> a, b; /* squared norms */
  T product;

  __device__ __forceinline__ void add(T x, T y) {
    a = abs2_add(x, a);
    b = abs2_add(y, b);
    product = cmadd(x, y, product);
  }
  __device__ __forceinline__ void total(const squad &s) {
    for (int d = s.lanes / 2; d > 0; d /= 2) {
      const real_t<T> more_a = exchange(a, d), more_b = exchange(b, d);
      product = product + exchange(product, d);
      a += more_a;
      b += more_b;
    }
  }
};

template <class T>
__global__ void __launch_bounds__(ends_threads)
    gesvd_end_kernel(const __grid_constant__ bqr_args args, int64_t first) {
  using R = real_t<T>;
  const work<T> k(args, first, blockIdx.x);
  const squad s = make_squad(warp_lanes);
  const triplets<T> out(args, k.at, s, reinterpret_cast<R *>(k.memory + k.layout.values),
                        reinterpret_cast<int *>(k.memory + k.layout.order));
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
  const matrix_view<T> x = k.x(), w = k.w();
  out.find_values(x, k.q);
  block_sync();
  if (k.turned ? args.v.data : args.u.data)
    complete_columns(s, x, out.values, reinterpret_cast<T *>(k.memory + k.layout.coefficients),
                     reinterpret_cast<R *>(k.memory + k.layout.lacking));
  block_sync();
  out.store_values(state.exponent);
  out.store_vectors(k.turned ? w : x, k.turned ? x : w);
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

/* Kernels for the ends of a launch, a block for each member. */
batchqr_status prepare_ends(const bqr_problem *p) {
  return for_type(p->type, [](auto tag) {
    using T = typename decltype(tag)::type;
    const batchqr_status begins = prepare_kernel(gesvd_begin_kernel<T>, 0);
    return begins ? begins : prepare_kernel(gesvd_end_kernel<T>, 0);
  });
}
batchqr_status launch_begin(const bqr_problem *p, const bqr_args &args, int64_t first, unsigned count,
                            batchqr_stream stream) {
  return for_type(p->type, [&](auto tag) {
    return launch_kernel(gesvd_begin_kernel<typename decltype(tag)::type>, dim3(count), ends_threads, 0,
                         stream, args, first);
  });
}
batchqr_status launch_end(const bqr_problem *p, const bqr_args &args, int64_t first, unsigned count,
                          batchqr_stream stream) {
  return for_type(p->type, [&](auto tag) {
    return launch_kernel(gesvd_end_kernel<typename decltype(tag)::type>, dim3(count), ends_threads, 0, stream,
                         args, first);
  });
}

} // namespace
} // namespace bqr

#endif
