/* SPDX-License-Identifier: BSD-3-Clause */
/* syevd_warp: a warp for each member, all in shared memory: reduction to tridiagonal form, then divide and
 * conquer, or bisection where vectors are not wanted, then the reflectors, with a lane for each vector. */
#include "common/eigen/bisect.cuh"
#include "common/eigen/conquer.cuh"
#include "common/eigen/tridiagonal.cuh"
#include "common/eigen/vectors.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

constexpr int members_of_block = 4;

template <class T> BQR_INLINE size_t matrix_bytes(int rows, int ld) {
  return sizeof(T) * static_cast<size_t>(rows) * static_cast<size_t>(ld);
}

template <class T, int MOST> class syevd {
  using R = real_t<T>;

public:
  /* Bytes of shared memory for members of order n; those before what steps need for themselves. */
  BQR_INLINE static size_t bytes(int n) {
    const size_t work = conquer<R, warp_scope>::bytes(n, 1), pass = tridiagonal<T, warp_scope>::bytes(n);
    return (kept_bytes(n) + (work > pass ? work : pass) + 15) / 16 * 16;
  }
  BQR_INLINE static size_t kept_bytes(int n) {
    const size_t vectors = 2 * sizeof(R) * static_cast<size_t>(n);
    return (matrix_bytes<T>(n, n) + 2 * matrix_bytes<R>(n, n | 1) + vectors + 15) / 16 * 16;
  }

  /* memory: for members of up to `most` rows. */
  __device__ syevd(const bqr_args &args, const member &x, bool lower, unsigned char *memory, int most)
      : args_(args), x_(x), lower_(lower), scope_(nullptr), a_{reinterpret_cast<T *>(memory), x.n, x.n, x.n},
        q_(reinterpret_cast<R *>(memory + matrix_bytes<T>(most, most))), d_(q_ + 2 * most * (most | 1)),
        e_(d_ + most), work_(memory + kept_bytes(most)) {}

  __device__ int run() {
    if (x_.n == 0) return 0;
    const matrix_view<T> a = {matrix_data<T>(args_, args_.a, x_.id), matrix_ld(args_.a, x_.id), x_.n, x_.n};
    R *w = vector_data<R>(args_.s, x_.id);
    const uint32_t u = triangle_magnitude(scope_, a, lower_);
    if (!magnitude_finite<T>(u)) {
      if (lane_id() < x_.n) w[lane_id()] = static_cast<R>(nan(""));
      return BATCHQR_INFO_NONFINITE;
    }
    const int exponent = u ? exponent_to<T>(u, span<R>::top) : 0;
    copy_triangle(scope_, a, lower_, exponent, a_);
    tridiagonal<T, warp_scope>(scope_, a_, work_).run(d_, e_);
    warp_sync();
    const bool converged = args_.v.data ? find_vectors() : find_values();
    if (lane_id() < x_.n) w[lane_id()] = times_power(d_[lane_id()], span<R>::top - exponent);
    return converged ? 0 : 1;
  }

private:
  __device__ bool find_values() {
    bisect(scope_, x_.n, d_, e_, q_);
    return true;
  }

  __device__ bool find_vectors() {
    const int ld = x_.n | 1;
    conquer<R, warp_scope> merge(scope_, x_.n, d_, e_, {q_, ld, x_.n, x_.n}, {q_ + x_.n * ld, ld, x_.n, x_.n},
                                 work_);
    const bool converged = group_any(!merge.run()) == 0;
    T column[MOST];
    const R *from = merge.vectors().at(0, least(lane_id(), x_.n - 1));
#pragma unroll
    for (int i = 0; i < MOST; i++) column[i] = make<T>(i < x_.n ? from[i] : R(0));
    for (int k = x_.n - 2; k >= 0; k--) apply_to_column(column, a_.at(0, k), *a_.at(k, k), k, x_.n);
    turn(column);
    warp_sync();
    store(column);
    return converged;
  }

  __device__ __forceinline__ void turn(T (&column)[MOST]) const {
    R most = 0;
    int at = 0;
    T entry = zero<T>();
#pragma unroll
    for (int i = 0; i < MOST; i++)
      if (abs2(column[i]) > most) {
        most = abs2(column[i]);
        at = i;
        entry = column[i];
      }
    const sign<T> s = sign_of(entry, most, at);
#pragma unroll
    for (int i = 0; i < MOST; i++) column[i] = s.of(column[i], i);
  }

  /* By way of shared memory, so that lanes write rows of a column. */
  __device__ __forceinline__ void store(const T (&column)[MOST]) {
    const matrix_view<T> v = {matrix_data<T>(args_, args_.v, x_.id), matrix_ld(args_.v, x_.id), x_.n, x_.n};
    const int ld = x_.n | 1;
    T *there = reinterpret_cast<T *>(q_);
#pragma unroll
    for (int i = 0; i < MOST; i++)
      if (i < x_.n && lane_id() < x_.n) there[i + lane_id() * ld] = column[i];
    warp_sync();
    for (int j = 0; j < x_.n; j++)
      if (lane_id() < x_.n) *v.at(lane_id(), j) = there[lane_id() + j * ld];
  }

  const bqr_args &args_;
  const member &x_;
  bool lower_;
  warp_scope scope_;
  matrix_view<T> a_;
  R *q_, *d_, *e_;
  unsigned char *work_;
};

template <class T, int MOST>
__global__ void __launch_bounds__(members_of_block *warp_lanes, sizeof(T) < 16 ? 4 : 2)
    syevd_warp_kernel(const __grid_constant__ bqr_args args, size_t bytes, bool lower) {
  unsigned char *memory = shared_memory<unsigned char>() + bytes * warp_id();
  const int64_t step = static_cast<int64_t>(gridDim.x) * members_of_block;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * members_of_block + warp_id(); i < args.count;
       i += step) {
    const member x = member_at<BATCHQR_SYEVD>(args, i);
    int info = BATCHQR_INFO_SIZES;
    if (x.ok) info = syevd<T, MOST>(args, x, lower, memory, args.n).run();
    if (lane_id() == 0) set_info(args, x.id, info);
    warp_sync();
  }
}

/* rows: the largest order. */
const bqr_variant variants[] = {{.name = "rows16", .rows = 16}, {.name = "rows32", .rows = 32}};

/* f(kernel, bytes of shared memory for a member) */
template <class F> batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return v->rows == 16 ? f(syevd_warp_kernel<T, 16>, syevd<T, 16>::bytes(p->n))
                         : f(syevd_warp_kernel<T, 32>, syevd<T, 32>::bytes(p->n));
  });
}

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return p->n <= v->rows && with_kernel(p, v, [&](auto, size_t bytes) {
                              return members_of_block * bytes <= static_cast<size_t>(device->smem_per_block)
                                         ? BATCHQR_SUCCESS
                                         : BATCHQR_UNSUPPORTED;
                            }) == BATCHQR_SUCCESS;
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return with_kernel(
      p, v, [](auto kernel, size_t bytes) { return prepare_kernel(kernel, members_of_block * bytes); });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  return with_kernel(p, v, [&](auto kernel, size_t bytes) {
    return launch_kernel(kernel, dim3(grid_for((args->count - 1) / members_of_block + 1)),
                         members_of_block * warp_lanes, members_of_block * bytes, stream, *args, bytes,
                         p->uplo == BATCHQR_LOWER);
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
    .nvariants = 2,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
