/* SPDX-License-Identifier: BSD-3-Clause */
/* gesvd_warp: members of up to N x N in registers, N lanes of a warp for each.
 *
 * As gesvd_block does it: of A or, where that is wide, of A^H, p x q, A P = Q R with pivoting, one-sided
 * Jacobi on the columns of L = P R^H, L W = V S, and A = (Q W) S V^H. Q has a lane for a column, Jacobi four
 * lanes for four of them: L and W go from the ones to the others through shared memory.
 *
 * Real members of more than 8 columns (s: 24) are tried by the eigenvectors of A^H A before
 * (warp_squares.cuh), which takes half of the time; those for which that will not do are the others. */
#include "common/panel/triplets.cuh"
#include "common/simt/launch.cuh"
#include "line_jacobi.cuh"
#include "warp_qr.cuh"
#include "warp_squares.cuh"

namespace bqr {
namespace {

constexpr int warps_of_block = 2;

/* What a member has in shared memory. */
template <class T, int N> struct rotated_memory {
  static constexpr int ld = N + 1;
  alignas(16) T vectors[N * N];      /* of reflectors */
  alignas(16) T columns[2 * N * ld]; /* A, then L, then V; W, then Q W; all of it: line_jacobi's space */
  real_t<T> gamma[N];
};
struct nothing {};
template <class T, int N> struct storage {
  union {
    rotated_memory<T, N> rotated;
    std::conditional_t<squares_pay<T, N>, squared_memory<N>, nothing> squares;
  };
  real_t<T> values[N];
  int order[N]; /* of columns, by descending values */
};

template <class T, int N> class gesvd {
  using R = real_t<T>;
  static constexpr int ld = rotated_memory<T, N>::ld;

public:
  static constexpr int lanes = N > warp_lanes / 2 ? warp_lanes : N, members = warp_lanes / lanes;

  /* x: not ok, where there is no member for these lanes. */
  __device__ gesvd(const bqr_args &args, const member &x, storage<T, N> &memory)
      : args_(args), at_(x),
        memory_(memory), right_{memory.rotated.columns, ld, N, N}, left_{memory.rotated.columns + N * ld, ld,
                                                                         N, N},
        lane_(lane_id() & (lanes - 1)), turned_(x.m < x.n), p_(x.ok ? largest(x.m, x.n) : 0),
        q_(x.ok ? least(x.m, x.n) : 0) {}

  /* Returns info. */
  __device__ int run() {
    bool done = at_.ok && q_ == 0;
    if (done && args_.rank.data && lane_ == 0) *vector_data<int>(args_.rank, at_.id) = 0;
    if constexpr (takes_squares<T, N>) done = take_squares() || done;
    if (done) p_ = q_ = 0;
    if (!group_any(q_ > 0)) return at_.ok ? 0 : BATCHQR_INFO_SIZES;
    const int info = rotate_columns(done);
    return !at_.ok ? BATCHQR_INFO_SIZES : done ? 0 : info;
  }

private:
  /* By A's columns. done: there is nothing to be stored. Returns info. */
  __device__ __forceinline__ int rotate_columns(bool done) {
    const uint32_t u = load();
    const bool finite = magnitude_finite<T>(u), live = q_ > 0 && finite;
    const int exponent = live && u ? exponent_to<T>(u, span<R>::top) : 0;
    warp_qr<T, N> qr({memory_.rotated.vectors, memory_.rotated.gamma});
    qr.run(right_, live, times_power(R(1), exponent / 2), times_power(R(1), exponent - exponent / 2));
    const bool converged = group_any(to_left().data) ? rotate<true>(live) : rotate<false>(live);
    warp_sync();
    find_order();
    warp_sync();
    if (at_.ok && !done) store_values(finite, exponent);
    if (group_any(to_right().data)) complete(live && to_right().data);
    turn(qr);
    warp_sync();
    if (live) store_vectors();
    return !finite ? BATCHQR_INFO_NONFINITE : converged ? 0 : 1;
  }

  /* Whether A^H A's eigenvectors will do. */
  __device__ __forceinline__ bool take_squares() {
    storage<T, N> *const all = &memory_ - lane_id() / lanes;
    const T *const a = q_ > 0 ? matrix_data<T>(args_, args_.a, at_.id) : nullptr;
    squared_svd<T, N, storage<T, N>> way(a, q_ > 0 ? matrix_ld(args_.a, at_.id) : 0, q_ > 0 ? at_.m : 0,
                                         q_ > 0 ? at_.n : 0, all);
    const bool done = way.run();
    if (!group_any(done)) return false;
    squared_memory<N> &squares = memory_.squares;
    if (lane_ < N)
      memory_.values[lane_] = done && lane_ < q_ ? static_cast<R>(sqrt(squares.lengths2[lane_])) : 0;
    warp_sync();
    find_order();
    warp_sync();
    if (done) store_values(true, way.exponent());
    way.find_factors(memory_.order, done && lane_ < q_, turned_ == (args_.v.data != nullptr));
    warp_sync();
    if (done) {
      store_columns(to_left(), p_, squares.of[0].x, squares.left);
      store_columns(to_right(), q_, squares.of[1].x, squares.right);
    }
    warp_sync();
    return done;
  }
  __device__ __forceinline__ void store_columns(const bqr_matrix &to, int rows, const double *from,
                                                const double *factors) const {
    if (!to.data) return;
    T *const x = matrix_data<T>(args_, to, at_.id);
    const int64_t ldx = matrix_ld(to, at_.id);
    constexpr int at_once = 8; /* are read before any is written */
#pragma unroll 1
    for (int first = 0; first < q_; first += at_once) {
      T y[at_once];
#pragma unroll
      for (int j = 0; j < at_once; j++) {
        const int place = least(first + j, q_ - 1);
        y[j] = static_cast<T>(from[column(place) * squared_memory<N>::ld + lane_] * factors[place]);
      }
#pragma unroll
      for (int j = 0; j < at_once; j++)
        if (first + j < q_ && lane_ < rows) x[lane_ + (first + j) * ldx] = y[j];
    }
  }

  /* Where Q W and V go. */
  __device__ __forceinline__ const bqr_matrix &to_left() const { return turned_ ? args_.v : args_.u; }
  __device__ __forceinline__ const bqr_matrix &to_right() const { return turned_ ? args_.u : args_.v; }

  /* right_ := A or A^H, and zeros. Returns the largest magnitude. */
  __device__ __forceinline__ uint32_t load() {
    const T *a = q_ > 0 ? matrix_data<T>(args_, args_.a, at_.id) : nullptr;
    const int64_t ld = q_ > 0 ? matrix_ld(args_.a, at_.id) : 0;
    const int m = q_ > 0 ? at_.m : 0, n = q_ > 0 ? at_.n : 0;
    uint32_t u = 0;
    T columns[N];
#pragma unroll
    for (int j = 0; j < N; j++) {
      columns[j] = lane_ < m && j < n ? a[lane_ + j * ld] : zero<T>();
      u = greater(u, magnitude_or_one(columns[j]));
    }
#pragma unroll
    for (int j = 0; j < N; j++) {
      if (lane_ < N)
        *(turned_ ? right_.at(j, lane_) : right_.at(lane_, j)) = turned_ ? conj(columns[j]) : columns[j];
    }
    warp_sync();
    return group_max<lanes>(u);
  }

  template <bool WITH_W> __device__ __forceinline__ bool rotate(bool live) {
    line_jacobi<T, N, 4, WITH_W> jacobi(right_, memory_.rotated.columns, live);
    static_assert(line_jacobi<T, N, 4, WITH_W>::space <= 2 * N * ld, "there is room");
    const bool converged = jacobi.run();
    warp_sync();
    jacobi.store(right_, left_, memory_.values);
    return converged;
  }

  /* Equal values in the order of columns. */
  __device__ __forceinline__ void find_order() {
    if (lane_ >= N) return;
    const R mine = memory_.values[lane_];
    int before = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
      const R other = memory_.values[i];
      before += other > mine || (other == mine && i < lane_);
    }
    memory_.order[before] = lane_;
  }
  /* The column with the value that has so many larger ones. */
  __device__ __forceinline__ int column(int place) const { return memory_.order[place]; }

  __device__ void store_values(bool finite, int exponent) {
    const R value = lane_ < N ? memory_.values[column(lane_)] : R(0);
    const R s = finite ? times_power(value, -exponent) : static_cast<R>(nan(""));
    if (lane_ < q_) vector_data<R>(args_.s, at_.id)[lane_] = s;
    if (!args_.rank.data) return;
    const R first = times_power(memory_.values[column(0)], -exponent);
    const double tolerance = fmax(args_.abstol, args_.reltol * static_cast<double>(first));
    int rank = 0; /* by each lane: members of a warp are not all here */
    for (int i = 0; finite && i < q_; i++)
      rank += static_cast<double>(times_power(memory_.values[column(i)], -exponent)) > tolerance;
    if (lane_ == 0) *vector_data<int>(args_.rank, at_.id) = least(rank, args_.kmax);
  }

  /* V's columns whose value is 0: each begins as the unit vector of which the columns before have least, and
   * is made orthogonal to these twice. */
  __device__ void complete(bool wanted) {
    for (int place = 0; place < N; place++) {
      const int to = column(place);
      const bool lacks = wanted && place < q_ && memory_.values[to] == 0;
      if (!group_any(lacks)) continue;
      R has = 0;
      for (int k = 0; k < place && lane_ < N; k++) has = abs2_add(*right_.at(lane_, column(k)), has);
      const uint32_t first = static_cast<uint32_t>(warp_lanes - 1 - lane_),
                     lacking = magnitude(fmax(R(1) - has, R(0)));
      const uint32_t most = group_max<lanes>(lane_ < q_ ? (lacking & ~31u) | first : 0);
      const int unit = least(warp_lanes - 1 - static_cast<int>(most & 31u), N - 1);
      T y = lane_ == unit ? one<T>() : zero<T>();
      for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < place; k++) {
          const T z = lane_ < N ? *right_.at(lane_, column(k)) : zero<T>();
          y = y - z * group_sum<lanes>(cmadd(z, y, zero<T>()));
        }
      const R norm2 = group_sum<lanes>(abs2(y));
      if (lacks && lane_ < N) *right_.at(lane_, to) = scaled(y, fast_rsqrt(norm2));
      warp_sync();
    }
  }

  /* left_ := Q W, with its columns in order, and signs to both. */
  __device__ __forceinline__ void turn(const warp_qr<T, N> &qr) {
    const bool has_left = group_any(to_left().data), by_left = turned_ == (args_.v.data != nullptr);
    const int from = column(least(lane_, N - 1));
    T y[N];
    if (has_left) qr.apply(left_.at(0, from), y);
    warp_sync(); /* W has been read */
    if (lane_ >= N) return;
    T *z = right_.at(0, from);
    const sign<T> s = by_left ? find_sign([&](int i) { return has_left ? y[i] : zero<T>(); })
                              : find_sign([&](int i) { return z[i]; });
    const sign<T> other = {s.phase, N};
#pragma unroll
    for (int i = 0; i < N; i++) {
      if (has_left) *left_.at(i, lane_) = (by_left ? s : other).of(y[i], i);
      z[i] = (by_left ? other : s).of(z[i], i);
    }
  }
  template <class F> __device__ __forceinline__ sign<T> find_sign(F &&f) const {
    R most = 0;
    int row = N;
    T entry = one<T>();
#pragma unroll
    for (int i = 0; i < N; i++) {
      const T x = f(i);
      const R size = abs2(x);
      if (size > most) {
        most = size;
        row = i;
        entry = x;
      }
    }
    return sign_of(entry, row);
  }

  __device__ __forceinline__ void store_vectors() const {
    if (to_left().data) {
      T *to = matrix_data<T>(args_, to_left(), at_.id);
      const int64_t ld = matrix_ld(to_left(), at_.id);
      for (int j = 0; j < q_ && lane_ < p_; j++) to[lane_ + j * ld] = *left_.at(lane_, j);
    }
    if (to_right().data) {
      T *to = matrix_data<T>(args_, to_right(), at_.id);
      const int64_t ld = matrix_ld(to_right(), at_.id);
      for (int j = 0; j < q_ && lane_ < q_; j++) to[lane_ + j * ld] = *right_.at(lane_, column(j));
    }
  }

  const bqr_args &args_;
  const member &at_;
  storage<T, N> &memory_;
  matrix_view<T> right_, left_;
  int lane_; /* of the member */
  bool turned_;
  int p_, q_;
};

template <class T, int N>
__global__ void __launch_bounds__(warps_of_block *warp_lanes)
    gesvd_warp_kernel(const __grid_constant__ bqr_args args) {
  constexpr int members = gesvd<T, N>::members, lanes = gesvd<T, N>::lanes,
                at_once = warps_of_block * members;
  const int which = thread_id() / lanes;
  storage<T, N> &memory = shared_memory<storage<T, N>>()[which];
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * at_once + warp_id() * members; first < args.count;
       first += static_cast<int64_t>(gridDim.x) * at_once) {
    const int64_t i = first + which % members;
    const bool any = i < args.count;
    member x = member_at<BATCHQR_GESVD>(args, any ? i : first);
    x.ok = x.ok && any;
    const int info = gesvd<T, N>(args, x, memory).run();
    if (any && lane_id() % lanes == 0) set_info(args, x.id, info);
    warp_sync();
  }
}

/* rows: the most rows and columns. z of more than 16 has no room in registers. */
const bqr_variant variants[] = {{.name = "rows8", .rows = 8, .types = BQR_ALL_TYPES},
                                {.name = "rows16", .rows = 16, .types = BQR_ALL_TYPES},
                                {.name = "rows24", .rows = 24, .types = BQR_ALL_TYPES & ~(1 << BATCHQR_Z)},
                                {.name = "rows32", .rows = 32, .types = BQR_ALL_TYPES & ~(1 << BATCHQR_Z)}};

/* f(kernel, members of a block, bytes of shared memory of a block) */
template <class F> batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto with = [&](auto rows) {
      constexpr int N = decltype(rows)::value, members = warps_of_block * gesvd<T, N>::members;
      return f(gesvd_warp_kernel<T, N>, members, members * sizeof(storage<T, N>));
    };
    if constexpr (sizeof(T) > 8)
      return for_value<8, 16>(v->rows, with);
    else
      return for_value<8, 16, 24, 32>(v->rows, with);
  });
}

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return (v->types >> p->type & 1) && largest(p->m, p->n) <= v->rows &&
         with_kernel(p, v, [&](auto, int, size_t bytes) {
           return bytes <= static_cast<size_t>(device->smem_per_block) ? BATCHQR_SUCCESS
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
                         bytes, stream, *args);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_gesvd_warp = {
    .name = "gesvd_warp",
    .op = BATCHQR_GESVD,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
