/* SPDX-License-Identifier: BSD-3-Clause */
/* syevd_warp: members of up to N x N, N lanes of a warp for each: reduction to tridiagonal form in registers
 * (lane_rows.cuh), eigenvalues and vectors of that (lane_pairs.cuh), the reflectors, with a lane for each
 * vector.
 *
 * A smaller member lies in the last of the N rows. */
#include "common/eigen/lane_vectors.cuh"
#include "common/eigen/tridiagonal.cuh"
#include "common/eigen/vectors.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

constexpr int warps_of_block = 2;

/* What a member has in shared memory. */
template <class T, int N> union storage {
  static constexpr int ld = N + 1;
  struct {
    reduced_rows<T, N> reduced;
    tridiagonal_pairs<N> pairs;
  } parts;
  T square[N * ld];
};

template <class T, int N> class syevd {
  using R = real_t<T>;

public:
  static constexpr int members = warp_lanes / N;

  /* x: not ok, where there is no member for these lanes. */
  __device__ syevd(const bqr_args &args, const member &x, bool lower, storage<T, N> &memory)
      : args_(args), x_(x), lower_(lower), memory_(memory), lane_(lane_id() & (N - 1)), n_(x.ok ? x.n : 0),
        first_(N - n_), row_(lane_ - first_) {}

  /* Returns info. */
  __device__ int run() {
    lane_rows<T, N> rows(memory_.parts.reduced);
    const uint32_t u = load(rows.a);
    const bool finite = magnitude_finite<T>(u);
    const int exponent = finite && u ? exponent_to<T>(u, 0) : 0;
    const int first = N - static_cast<int>(group_max(static_cast<uint32_t>(n_))); /* of the warp's members */
    spread(rows.a, finite, exponent, first);
    rows.run(first);
    const int shift = split_tridiagonal(memory_.parts.reduced, memory_.parts.pairs, first_);
    lane_pairs<N> pairs(memory_.parts.pairs, first_, sizeof(R) > 4 ? 2.0 / N : 0x1p-20);
    const bool converged = pairs.run(args_.v.data);
    if (has_row()) {
      const R value = static_cast<R>(times_power(pairs.value(), shift - exponent));
      vector_data<R>(args_.s, x_.id)[row_] = finite ? value : static_cast<R>(nan(""));
    }
    if (args_.v.data) find_vectors(pairs, finite);
    return !x_.ok ? BATCHQR_INFO_SIZES : !finite ? BATCHQR_INFO_NONFINITE : converged ? 0 : 1;
  }

private:
  __device__ bool has_row() const { return row_ >= 0; }
  /* A, and the vectors, on their way from columns to rows or back. */
  __device__ T *square() const { return memory_.square; }

  /* The lane's part of the triangle that is read, columns from the member's first on. Returns the largest
   * magnitude. */
  __device__ __forceinline__ uint32_t load(T (&a)[N]) {
    const T *from = n_ > 0 ? matrix_data<T>(args_, args_.a, x_.id) : nullptr;
    const int64_t ld = n_ > 0 ? matrix_ld(args_.a, x_.id) : 0;
    uint32_t u = 0;
#pragma unroll
    for (int j = 0; j < N; j++) {
      const bool there = has_row() && j < n_ && (lower_ ? row_ >= j : row_ <= j);
      a[j] = there ? from[row_ + j * ld] : zero<T>();
      if (row_ == j) a[j] = make<T>(real_part(a[j]));
      u = greater(u, magnitude_or_one(a[j]));
    }
    return group_max<N>(u);
  }

  /* The whole row, times 2^exponent, from column `first` of N on. */
  __device__ __forceinline__ void spread(T (&a)[N], bool finite, int exponent, int first) {
    constexpr int ld = storage<T, N>::ld;
    T *to = square();
    const R half = times_power(R(1), exponent / 2), rest = times_power(R(1), exponent - exponent / 2);
    for (int i = 0; i < N && !(finite && n_ == N); i++) to[i + lane_ * ld] = zero<T>();
    warp_sync();
#pragma unroll
    for (int j = 0; j < N; j++) {
      const bool there = has_row() && finite && j < n_ && (lower_ ? row_ >= j : row_ <= j);
      if (there) {
        const T x = scaled(scaled(a[j], half), rest);
        to[lane_ + (first_ + j) * ld] = x;
        if (row_ != j) to[first_ + j + lane_ * ld] = conj(x);
      }
    }
    warp_sync();
#pragma unroll
    for (int j = 0; j < N; j++) a[j] = first + j < N ? to[lane_ + (first + j) * ld] : zero<T>();
    warp_sync();
  }

  __device__ __forceinline__ void find_vectors(const lane_pairs<N> &pairs, bool finite) {
    T column[N];
#pragma unroll
    for (int i = 0; i < N; i++) column[i] = make<T>(static_cast<R>(pairs.vector()[i]));
    for (int k = N - 2; k >= 0; k--)
      if (group_any(k >= first_)) apply_reflector(memory_.parts.reduced, k, column);
    turn(column);
    warp_sync();
    constexpr int ld = storage<T, N>::ld;
    T *there = square();
#pragma unroll
    for (int i = 0; i < N; i++) there[i + lane_ * ld] = column[i];
    warp_sync();
    if (!has_row() || !finite) return;
    T *to = matrix_data<T>(args_, args_.v, x_.id) + row_;
    const int64_t out = matrix_ld(args_.v, x_.id);
    for (int j = 0; j < n_; j++) to[j * out] = there[lane_ + (first_ + j) * ld];
  }

  __device__ __forceinline__ void turn(T (&column)[N]) const {
    R most = 0;
    int at = 0;
    T entry = zero<T>();
#pragma unroll
    for (int i = 0; i < N; i++)
      if (abs2(column[i]) > most) {
        most = abs2(column[i]);
        at = i;
        entry = column[i];
      }
    const sign<T> s = sign_of(entry, most, at);
#pragma unroll
    for (int i = 0; i < N; i++) column[i] = s.of(column[i], i);
  }

  const bqr_args &args_;
  const member &x_;
  bool lower_;
  storage<T, N> &memory_;
  int lane_, n_, first_, row_;
};

template <class T, int N>
__global__ void __launch_bounds__(warps_of_block *warp_lanes)
    syevd_warp_kernel(const __grid_constant__ bqr_args args, bool lower) {
  constexpr int members = syevd<T, N>::members, at_once = warps_of_block * members;
  const int which = thread_id() / N;
  storage<T, N> &memory = shared_memory<storage<T, N>>()[which];
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * at_once + warp_id() * members; first < args.count;
       first += static_cast<int64_t>(gridDim.x) * at_once) {
    const int64_t i = first + which % members;
    const bool any = i < args.count;
    member x = member_at<BATCHQR_SYEVD>(args, any ? i : first);
    x.ok = x.ok && any;
    const int info = syevd<T, N>(args, x, lower, memory).run();
    if (any && lane_id() % N == 0) set_info(args, x.id, info);
    warp_sync();
  }
}

/* rows: the largest order. */
const bqr_variant variants[] = {
    {.name = "rows8", .rows = 8}, {.name = "rows16", .rows = 16}, {.name = "rows32", .rows = 32}};

/* f(kernel, members of a block, bytes of shared memory of a block) */
template <class F> batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return for_value<8, 16, 32>(v->rows, [&](auto rows) {
      constexpr int N = decltype(rows)::value, members = warps_of_block * syevd<T, N>::members;
      return f(syevd_warp_kernel<T, N>, members, members * sizeof(storage<T, N>));
    });
  });
}

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return p->n <= v->rows && with_kernel(p, v, [&](auto, int, size_t bytes) {
                              return bytes <= static_cast<size_t>(device->smem_per_block)
                                         ? BATCHQR_SUCCESS
                                         : BATCHQR_UNSUPPORTED;
                            }) == BATCHQR_SUCCESS;
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return with_kernel(p, v, [](auto kernel, int, size_t bytes) { return prepare_kernel(kernel, bytes); });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  return with_kernel(p, v, [&](auto kernel, int members, size_t bytes) {
    return launch_kernel(kernel, dim3(grid_for((args->count - 1) / members + 1)), warps_of_block * warp_lanes,
                         bytes, stream, *args, p->uplo == BATCHQR_LOWER);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_syevd_warp = {
    .name = "syevd_warp",
    .op = BATCHQR_SYEVD,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
