/* SPDX-License-Identifier: BSD-3-Clause */
/* geqp3_warp: small members in the registers of a warp, which several share (common/panel/pivoting_warp.cuh).
 */
#include "common/matrix/view.cuh"
#include "common/panel/pivoting_warp.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

constexpr int warps_of_block = 2;

/* What a member has in shared memory. */
template <class T, int ROWS, int COLS> struct storage {
  static constexpr int ld = ROWS + pack<T>::size; /* lanes read their columns from different banks */
  warp_factors<T, ROWS, COLS> made;
  alignas(16) T tile[COLS * ld]; /* A, then R and what remains below it, columns where they were in A */

  __device__ __forceinline__ T *at(int i, int col) { return tile + col * ld + i; }
};

template <class T, int ROWS, int COLS> class geqp3 {
  using R = real_t<T>;
  using pivoting = pivoting_warp<T, ROWS, COLS>;
  static constexpr int group = pivoting::group;
  static constexpr int rows_of_lane = ROWS > COLS ? ROWS / COLS : 1;

public:
  static constexpr int members = warp_lanes / COLS;

  /* x: not ok, where there is no member for these lanes. */
  __device__ geqp3(const bqr_args &args, const member &x, storage<T, ROWS, COLS> &memory)
      : args_(args), x_(x), memory_(memory), lane_(lane_id() & (COLS - 1)) {
    if (x.ok && x.m > 0 && x.n > 0)
      a_ = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n};
    if (x.ok && x.m > 0 && x.k > 0 && args.c.data)
      c_ = {matrix_data<T>(args, args.c, x.id), matrix_ld(args.c, x.id), x.m, x.k};
  }

  /* Returns info. */
  __device__ int run() {
    load();
    T x[ROWS];
    column_read<0>(x, memory_.at(0, lane_));
    const uint32_t u = column_magnitude(x), of_c = args_.c.data ? magnitude_of_c() : 0;
    const bool finite = magnitude_finite<T>(u) && magnitude_finite<T>(of_c), live = x_.ok && finite;
    const int exponent = live && u ? exponent_to<T>(u, span<R>::top) : 0;
    const R half = exponent_scale<R>(exponent / 2), rest = exponent_scale<R>(exponent - exponent / 2);
    const int m = live ? a_.rows : 0, n = live ? x_.n : 0;
    pivoting qr(memory_.made);
    warp_sync(); /* R goes to the tile */
    qr.fill(m, lane_ < n, [&](int i) { return scaled(scaled(x[i], half), rest); });
    const int most = m > 0 ? least(least(m, n), args_.kmax) : 0;
    const int rank = qr.run({most, args_.abstol, args_.reltol}, exponent,
                            [&](int i, const T &r) { *memory_.at(i, lane_) = r; });
    warp_sync();
    if (live) store(rank);
    if (args_.c.data && group_any(live && c_.cols > 0)) apply_to_c(live, pivoting::most_of_members(m), rank);
    if (x_.ok && args_.rank.data && lane_ == 0) *vector_data<int>(args_.rank, x_.id) = rank;
    return !x_.ok ? BATCHQR_INFO_SIZES : finite ? 0 : BATCHQR_INFO_NONFINITE;
  }

private:
  /* f(which of the lane's rows, row, column, whether A has the place, its address) for the lane's share of
   * ROWS x COLS, adjacent rows in adjacent lanes; so many columns at a time. */
  template <int COLUMNS, class F> __device__ __forceinline__ void for_places(F &&f) const {
    constexpr int step = COLS > ROWS ? COLS / ROWS : 1;
    T *at = a_.data + lane_ % ROWS + lane_ / ROWS * a_.ld;
    __builtin_assume(__isGlobal(at));
    int col = lane_ / ROWS;
#pragma unroll COLUMNS
    for (int t = 0; t < ROWS; t += rows_of_lane) {
#pragma unroll
      for (int part = 0; part < rows_of_lane; part++) {
        const int row = lane_ % ROWS + part * COLS;
        f(part, row, col, row < a_.rows && col < a_.cols, at + part * COLS);
      }
      at += step * a_.ld;
      col += step;
    }
  }

  /* The tile := A, and zeros. */
  __device__ __forceinline__ void load() {
    for_places<4>([&](int, int i, int j, bool there, const T *from) {
      copy_async_if<sizeof(T)>(there, memory_.at(i, j), from);
    });
    copy_async_wait();
    warp_sync();
  }

  static __device__ __forceinline__ uint32_t column_magnitude(const T (&x)[ROWS]) {
    uint32_t u = 0;
#pragma unroll
    for (int i = 0; i < ROWS; i++) u = greater(u, magnitude(x[i]));
    u = member_max<COLS>(u);
    if (!group_any(u == 0)) return u;
    uint32_t least = 0; /* perhaps not 0, but too small for the leading bits to tell */
#pragma unroll
    for (int i = 0; i < ROWS; i++) least = greater(least, magnitude_or_one(x[i]));
    return greater(u, member_max<COLS>(least));
  }

  __device__ __forceinline__ uint32_t magnitude_of_c() const {
    uint32_t u = 0;
    for (int j = 0; j < c_.cols; j++)
      for (int i = lane_; i < c_.rows; i += COLS) u = greater(u, magnitude(*c_.at(i, j)));
    return member_max<COLS>(u);
  }

  __device__ __forceinline__ void store(int rank) {
    auto &made = memory_.made;
    R half[rows_of_lane], rest[rows_of_lane]; /* what undoes the rows' powers of two */
#pragma unroll
    for (int t = 0; t < rows_of_lane; t++) {
      /* what is multiplied by less is 0 in the end */
      const int e = largest(-made.exponent[least(t * COLS + lane_ % ROWS, rank)], 2 - 2 * span<R>::bias);
      half[t] = exponent_scale<R>(e / 2);
      rest[t] = exponent_scale<R>(e - e / 2);
    }
    /* without a branch, so that the loads do not wait for one another */
    for_places<ROWS>([&](int t, int i, int j, bool there, T *to) {
      const bool vector = j < rank && i > j;
      const int col = made.order[j] & (COLS - 1); /* any, where there is none */
      const T x = *(vector ? made.vector(j) + (i - j) : memory_.at(i, col));
      const T y = x * (vector ? made.scale[vector ? j : 0] : make<T>(half[t]));
      const T z = scaled(y, vector ? R(1) : rest[t]);
      if (there) *to = z;
    });
    const int k = least(x_.m, x_.n);
    if (lane_ < k) tau_data<T>(args_, x_.id)[lane_] = lane_ < rank ? made.tau[lane_] : zero<T>();
    if (lane_ < x_.n && args_.jpvt.data) vector_data<int>(args_.jpvt, x_.id)[lane_] = made.order[lane_];
  }

  /* A lane for each column of C, of which the rows that are left come first, as in pivoting_warp. rows: the
   * most of the members that were factored, whose vectors have as many elements. */
  __device__ void apply_to_c(bool live, int rows, int rank) {
    auto &made = memory_.made;
    for (int j = 0; j < rank; j++)
      for (int i = j + 1 + lane_; i < x_.m; i += COLS)
        made.vector(j)[i - j] = made.vector(j)[i - j] * made.scale[j];
    warp_sync();
    const int cols = pivoting::most_of_members(live ? c_.cols : 0);
    for (int first = 0; first < cols; first += COLS) {
      const int col = first + lane_;
      apply_to_column(live && col < c_.cols ? c_.at(0, col) : nullptr, rows, rank);
    }
  }

  __device__ __forceinline__ void apply_to_column(T *c, int rows, int rank) {
    T y[ROWS];
    uint32_t u = 0;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      y[i] = c && i < c_.rows ? c[i] : zero<T>();
      u = greater(u, magnitude(y[i]));
    }
    const R scale = range_scale<T>(u, false), unscale = range_unscale(scale);
#pragma unroll
    for (int i = 0; i < ROWS; i++) y[i] = scaled(y[i], scale);
    int j = 0;
    static_for<ROWS / group>([&](auto g) {
      constexpr int left = ROWS - decltype(g)::value * group;
#pragma unroll 1
      for (; rows - j > left - group && j < rows; j++) {
        const T top = reflect<left>(j, j < rank, y);
        if (c && j < c_.rows) c[j] = scaled(top, unscale);
      }
    });
  }

  /* Drops the first row of y, which is returned, behind reflector j, if it is there. */
  template <int LEFT> __device__ __forceinline__ T reflect(int j, bool there, T (&y)[ROWS]) {
    T v[LEFT], dots[2] = {};
    if (there)
      column_read<0>(v, memory_.made.vector(j));
    else {
#pragma unroll
      for (int i = 0; i < LEFT; i++) v[i] = zero<T>();
    }
#pragma unroll
    for (int i = 1; i < LEFT; i++) dots[i % 2] = cmadd(v[i], y[i], dots[i % 2]);
    const T w = there ? conj(memory_.made.tau[j]) * (y[0] + (dots[0] + dots[1])) : zero<T>(), top = y[0] - w;
#pragma unroll
    for (int i = 1; i < LEFT; i++) y[i - 1] = y[i] - v[i] * w;
    y[LEFT - 1] = zero<T>();
    return top;
  }

  const bqr_args &args_;
  const member &x_;
  storage<T, ROWS, COLS> &memory_;
  matrix_view<T> a_{}, c_{};
  int lane_; /* of the member */
};

template <class T, int ROWS, int COLS>
__global__ void __launch_bounds__(warps_of_block *warp_lanes)
    geqp3_warp_kernel(const __grid_constant__ bqr_args args) {
  constexpr int members = geqp3<T, ROWS, COLS>::members, at_once = warps_of_block * members;
  const int which = thread_id() / COLS;
  storage<T, ROWS, COLS> &memory = shared_memory<storage<T, ROWS, COLS>>()[which];
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * at_once + warp_id() * members; first < args.count;
       first += static_cast<int64_t>(gridDim.x) * at_once) {
    const int64_t i = first + which % members;
    const bool any = i < args.count;
    member x = member_at<BATCHQR_GEQP3>(args, any ? i : first);
    x.ok = x.ok && any;
    const int info = geqp3<T, ROWS, COLS>(args, x, memory).run();
    if (any && lane_id() % COLS == 0) set_info(args, x.id, info);
    warp_sync();
  }
}

/* rows, cols: the most; cols is also the lanes of a member. z of more than 16 rows has no room in registers.
 */
constexpr unsigned not_z = BQR_ALL_TYPES - (1 << BATCHQR_Z);
constexpr bqr_variant variants[] = {
    {.name = "rows8.cols8", .rows = 8, .cols = 8, .types = BQR_ALL_TYPES},
    {.name = "rows16.cols16", .rows = 16, .cols = 16, .types = BQR_ALL_TYPES},
    {.name = "rows32.cols8", .rows = 32, .cols = 8, .types = not_z},
    {.name = "rows32.cols16", .rows = 32, .cols = 16, .types = not_z},
    {.name = "rows16.cols32", .rows = 16, .cols = 32, .types = BQR_ALL_TYPES},
    {.name = "rows32.cols32", .rows = 32, .cols = 32, .types = not_z},
    {.name = "rows64.cols32", .rows = 64, .cols = 32, .types = 1 << BATCHQR_S}};
constexpr int num_variants = sizeof variants / sizeof variants[0];

/* f(kernel, members of a block, bytes of shared memory of a block) of variant I. */
template <class T, int I, class F> batchqr_status with_instance(F &&f) {
  constexpr int rows = variants[I].rows, cols = variants[I].cols,
                members = warps_of_block * warp_lanes / cols;
  if constexpr ((variants[I].types >> type_of<T> & 1) != 0)
    return f(geqp3_warp_kernel<T, rows, cols>, members, members * sizeof(storage<T, rows, cols>));
  else
    return BATCHQR_UNSUPPORTED;
}

template <class F> batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return for_index<num_variants>(static_cast<int>(v - variants),
                                   [&](auto index) { return with_instance<T, decltype(index)::value>(f); });
  });
}

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return p->m <= v->rows && p->n <= v->cols && with_kernel(p, v, [&](auto, int, size_t bytes) {
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
                         bytes, stream, *args);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_geqp3_warp = {
    .name = "geqp3_warp",
    .op = BATCHQR_GEQP3,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = bqr::variants,
    .nvariants = bqr::num_variants,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
