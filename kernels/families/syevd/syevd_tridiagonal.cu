/* SPDX-License-Identifier: BSD-3-Clause */
/* syevd_tridiagonal: four launches, of as many members at once as a gigabyte of workspace has room for:
 * reduction to tridiagonal form, a block for each member, which lies in shared memory where it fits; of small
 * members eigenvalues, a thread for each, and vectors from them; of large ones, and where eigenvalues are too
 * close for that, divide and conquer, a block for each, or bisection where vectors are not wanted; the
 * reflectors, on matrix units where a member's fit in shared memory, or a warp for a few vectors. */
#include "common/eigen/bisect.cuh"
#include "common/eigen/conquer.cuh"
#include "common/eigen/vectors.cuh"
#include "mma_reflectors.cuh"
#include "thread_pairs.cuh"
#include "tridiagonal_reductions.cuh"

namespace bqr {
namespace {

/* A thread for each eigenvalue. */
int conquer_threads(int n) { return n <= 64 ? 64 : n <= 128 ? 128 : n <= 256 ? 256 : 512; }

/* --- T to its eigenvalues and vectors, where they are not too close */

/* As lane_pairs.cuh's: products of vectors whose eigenvalues are that far apart are small enough. A driver
 * that makes up for larger ones says so in args.abstol, 0 else: many eigenvalues of gesvd_eigen's A^H A are
 * near 0, and few nearer than that to one another. */
template <class R> __device__ __forceinline__ double close_values(const bqr_args &args, int n) {
  return args.abstol > 0 ? 0x1p-52 / args.abstol : sizeof(R) > 4 ? 2.0 / n : 0x1p-20;
}

int pairs_threads(int n) { return largest(1, (n + warp_lanes - 1) / warp_lanes) * warp_lanes; }

size_t pairs_bytes(int n, bool on_chip) {
  return thread_pairs::bytes(n) +
         (on_chip ? sizeof(double) * static_cast<size_t>(n) * static_cast<size_t>(n) : 0);
}

template <class R, bool ON_CHIP>
__global__ void __launch_bounds__(ON_CHIP ? most_pairs_on_chip : most_pairs)
    syevd_pairs_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slot_layout layout,
                       int64_t first) {
  __shared__ uint32_t norm;
  const slot mine(args, layout, static_cast<int>(blockIdx.x));
  const slot_state state = mine.state();
  if (!state.sound) return;
  const member x = member_at<BATCHQR_SYEVD>(args, first + blockIdx.x);
  const int j = thread_id(), n = x.n;
  const R *d = mine.template d<R>(), *e = mine.template e<R>();
  const double here = j < n ? static_cast<double>(d[j]) : 0,
               before = j > 0 && j < n ? static_cast<double>(e[j - 1]) : 0,
               after = j < n - 1 ? static_cast<double>(e[j]) : 0;
  if (j == 0) norm = 0;
  block_sync();
  atomicMax(&norm, magnitude(fabs(here) + fabs(before) + fabs(after)));
  block_sync();
  if (norm == 0 || n < 2) return;
  const int exponent = exponent_to<double>(norm, -1);
  thread_pairs pairs(n, shared_memory<unsigned char>());
  if (j < n) {
    const double side = times_power(before, exponent);
    pairs.rows[j] = {times_power(here, exponent), side * side};
    pairs.e[j] = times_power(after, exponent);
  }
  block_sync();
  if (!pairs.find_values(args.v.data)) return;
  if (args.v.data) {
    double *z = mine.buffer(0);
    if (ON_CHIP) z = reinterpret_cast<double *>(shared_memory<unsigned char>() + thread_pairs::bytes(args.n));
    if (!pairs.find_vectors<ON_CHIP>(z, mine.buffer(1), mine.buffer(2), mine.template by_rows<R>(),
                                     close_values<R>(args, n)))
      return;
  }
  if (j < n)
    vector_data<R>(args.s, x.id)[j] = static_cast<R>(times_power(pairs.value(), -state.exponent - exponent));
  if (j == 0) mine.state().whole = true;
}

/* --- T to its eigenvalues and vectors */

template <class R> size_t conquer_bytes(int n) {
  const size_t vectors =
      sizeof(R) * 3 * static_cast<size_t>((n + 3) / 4 * 4); /* d, e, and values that bisection finds */
  return block_scope::bytes + vectors + conquer<R, block_scope>::bytes(n, conquer_threads(n) / warp_lanes);
}

template <class R>
__global__ void __launch_bounds__(512, 1)
    syevd_conquer_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slot_layout layout,
                         int64_t first) {
  const slot mine(args, layout, static_cast<int>(blockIdx.x));
  const slot_state state = mine.state();
  if (!state.sound || state.whole) return;
  const member x = member_at<BATCHQR_SYEVD>(args, first + blockIdx.x);
  const int space = (args.n + 3) / 4 * 4;
  unsigned char *memory = shared_memory<unsigned char>();
  block_scope scope(memory);
  R *d = reinterpret_cast<R *>(memory + block_scope::bytes), *e = d + space, *found = e + space;
  for (int i = thread_id(); i < x.n; i += num_threads()) {
    d[i] = mine.template d<R>()[i];
    if (i < x.n - 1) e[i] = mine.template e<R>()[i];
  }
  block_sync();
  if (args.v.data) {
    conquer<R, block_scope> merge(scope, x.n, d, e, mine.template q<R>(0, x.n), mine.template q<R>(1, x.n),
                                  reinterpret_cast<unsigned char *>(found + space));
    const bool failed = block_any(!merge.run());
    if (failed && thread_id() == 0) set_info(args, x.id, 1);
  } else {
    bisect(scope, x.n, d, e, found);
  }
  R *w = vector_data<R>(args.s, x.id);
  for (int j = thread_id(); j < x.n; j += num_threads()) w[j] = times_power(d[j], -state.exponent);
}

/* --- T's vectors to A's */

/* Entries of the vectors of T. */
template <class T> class found_vectors {
  using R = real_t<T>;

public:
  __device__ found_vectors(const slot &mine, int n)
      : n_(n), by_rows_(mine.state().whole), rows_(mine.template by_rows<R>()),
        columns_(mine.template q<R>(merges_of(n) % 2, n)) {}
  __device__ __forceinline__ T operator()(int i, int j) const {
    return make<T>(by_rows_ ? rows_[i * n_ + j] : *columns_.at(i, j));
  }

private:
  int n_;
  bool by_rows_;
  const R *rows_;
  matrix_view<R> columns_;
};

constexpr int back_warps = 4;
/* Columns of a warp. */
template <class T, int EACH> constexpr int back_columns() {
  constexpr int bytes = EACH * static_cast<int>(sizeof(T));
  return bytes <= 32 ? 8 : bytes <= 64 ? 4 : bytes <= 128 ? 2 : 1;
}

template <class T, int EACH>
__global__ void __launch_bounds__(back_warps *warp_lanes)
    syevd_back_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slot_layout layout,
                      int64_t first, int parts) {
  constexpr int columns = back_columns<T, EACH>();
  const int number = static_cast<int>(blockIdx.x) / parts, part = static_cast<int>(blockIdx.x) % parts;
  const slot mine(args, layout, number);
  if (!mine.state().sound) return;
  const member x = member_at<BATCHQR_SYEVD>(args, first + number);
  const int from = (part * back_warps + warp_id()) * columns;
  if (from >= x.n) return;
  const matrix_view<T> a = mine.template a<T>(x.n),
                       v = {matrix_data<T>(args, args.v, x.id), matrix_ld(args.v, x.id), x.n, x.n};
  const found_vectors<T> found(mine, x.n);
  warp_columns<T, EACH, columns> z;
  z.each([&](T &entry, int i, int c) { entry = i < x.n && from + c < x.n ? found(i, from + c) : zero<T>(); });
  for (int k = x.n - 2; k >= 0; k--) z.apply(a.at(0, k), *a.at(k, k), k, x.n);
  z.turn();
  z.each([&](T &entry, int i, int c) {
    if (i < x.n && from + c < x.n) *v.at(i, from + c) = entry;
  });
}

/* The same on matrix units, see mma_reflectors.cuh. */
template <class T, int C>
constexpr bool has_reflectors = hold_warps<T, C>() > 0 || tile_shape_of<T, C>().warps > 0;
template <class T, int C> using reflectors = mma_reflectors<T, 4 * C>;
template <class T, int C> constexpr int reflect_columns = C < 4 ? C *warp_lanes : 128; /* of a block */
template <class T, int C> constexpr int reflect_blocks() {
  constexpr int each = reflectors<T, C>::registers + (sizeof(real_t<T>) > 4 ? 64 : 56),
                fit = 65536 / (reflectors<T, C>::warps * warp_lanes * each);
  return fit > 0 ? fit : 1;
}

template <class T, int C>
__global__ void __launch_bounds__(reflectors<T, C>::warps *warp_lanes, reflect_blocks<T, C>())
    syevd_reflect_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slot_layout layout,
                         int64_t first, int parts) {
  using blocked = reflectors<T, C>;
  const int number = static_cast<int>(blockIdx.x) / parts, part = static_cast<int>(blockIdx.x) % parts;
  const slot mine(args, layout, number);
  if (!mine.state().sound) return;
  const member x = member_at<BATCHQR_SYEVD>(args, first + number);
  const int begin = part * reflect_columns<T, C>, end = least(x.n, begin + reflect_columns<T, C>);
  if (begin >= end) return;
  const found_vectors<T> found(mine, x.n);
  const matrix_view<T> v = {matrix_data<T>(args, args.v, x.id), matrix_ld(args.v, x.id), x.n, x.n};
  blocked h(*shared_memory<typename blocked::storage>(), x.n);
#pragma unroll
  for (int round = 0; round < blocked::rounds; round++) {
    if (round > 0) block_sync();
    h.prepare(mine.template a<T>(x.n), round);
    block_sync();
    for (int from = begin + warp_id() * blocked::each; from < end; from += blocked::warps * blocked::each)
      h.run(round, from, found, v);
  }
}

/* --- the host's side */

/* rows: of a lane, 32 of which hold a column of vectors; warps: that hold the matrix on the chip, in tiles,
 * of which a side has `rows`, or by rows; global: it lies in the workspace. */
const bqr_variant variants[] = {{.name = "rows2.warps1", .rows = 2, .warps = 1},
                                {.name = "rows2.warps2", .rows = 2, .warps = 2},
                                {.name = "rows2.warps4", .rows = 2, .warps = 4},
                                {.name = "rows2.warps8", .rows = 2, .warps = 8},
                                {.name = "rows3.warps3", .rows = 3, .warps = 3},
                                {.name = "rows3.warps4", .rows = 3, .warps = 4},
                                {.name = "rows3.warps8", .rows = 3, .warps = 8},
                                {.name = "rows3.warps12", .rows = 3, .warps = 12},
                                {.name = "rows4.warps4", .rows = 4, .warps = 4},
                                {.name = "rows4.warps8", .rows = 4, .warps = 8},
                                {.name = "rows4.warps12", .rows = 4, .warps = 12},
                                {.name = "rows4", .rows = 4},
                                {.name = "rows4.global", .rows = 4, .global = true},
                                {.name = "rows8.warps8", .rows = 8, .warps = 8},
                                {.name = "rows8.warps16", .rows = 8, .warps = 16},
                                {.name = "rows16.global", .rows = 16, .global = true},
                                {.name = "rows32.global", .rows = 32, .global = true}};

slot_layout layout_for(const bqr_problem *p) {
  return for_type(p->type, [&](auto tag) { return layout_of<typename decltype(tag)::type>(p->n); });
}

/* Members of one round of launches. */
int64_t members_at_once(const bqr_problem *p) {
  constexpr size_t most = size_t(1) << 30;
  const int64_t fit = static_cast<int64_t>(most / layout_for(p).bytes);
  return fit < 1 ? 1 : fit < p->count ? fit : p->count;
}
int count_launches(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return (p->n > most_pairs ? 3 : 4) * static_cast<int>((p->count - 1) / members_at_once(p) + 1);
}
size_t workspace(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return static_cast<size_t>(members_at_once(p)) * layout_for(p).bytes;
}

/* f(kernel that applies reflectors, its threads, its bytes, columns of its blocks) */
template <class T, int ROWS, class F> batchqr_status with_back(const bqr_variant *v, F &&f) {
  if constexpr (has_reflectors<T, ROWS>) {
    using blocked = reflectors<T, ROWS>;
    if (v->warps)
      return f(syevd_reflect_kernel<T, ROWS>, blocked::warps * warp_lanes, sizeof(typename blocked::storage),
               reflect_columns<T, ROWS>);
  }
  return f(syevd_back_kernel<T, ROWS>, back_warps * warp_lanes, size_t(0),
           back_warps * back_columns<T, ROWS>());
}

template <class KERNEL> struct sized_kernel {
  KERNEL kernel;
  int threads;
  size_t bytes;
};
template <class KERNEL> sized_kernel<KERNEL> sized(KERNEL kernel, int threads, size_t bytes) {
  return {kernel, threads, bytes};
}

/* f(kernel that reduces, one that finds pairs, one that conquers, one that applies reflectors, columns of its
 * blocks) */
template <class F> batchqr_status with_kernels(const bqr_problem *p, const bqr_variant *v, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return for_value<2, 3, 4, 8, 16, 32>(v->rows, [&](auto each) {
      constexpr int rows = decltype(each)::value;
      using R = real_t<T>;
      const bool on_chip = p->n <= most_pairs_on_chip;
      const auto pairs = sized(on_chip ? syevd_pairs_kernel<R, true> : syevd_pairs_kernel<R, false>,
                               pairs_threads(p->n), pairs_bytes(p->n, on_chip));
      const auto conquer = sized(syevd_conquer_kernel<R>, conquer_threads(p->n), conquer_bytes<R>(p->n));
      return with_reduction<T, rows>(p, v, [&](auto reduce, int threads, size_t bytes) {
        return with_back<T, rows>(v, [&](auto back, int back_threads, size_t back_bytes, int columns) {
          return f(sized(reduce, threads, bytes), pairs, conquer, sized(back, back_threads, back_bytes),
                   columns);
        });
      });
    });
  });
}

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return p->n <= v->rows * warp_lanes &&
         with_kernels(p, v, [&](auto reduce, auto, auto conquer, auto back, int) {
           const size_t most = static_cast<size_t>(device->smem_per_block);
           return reduce.bytes <= most && conquer.bytes <= most && back.bytes <= most ? BATCHQR_SUCCESS
                                                                                      : BATCHQR_UNSUPPORTED;
         }) == BATCHQR_SUCCESS;
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return with_kernels(p, v, [&](auto reduce, auto pairs, auto conquer, auto back, int) {
    batchqr_status status = prepare_kernel(reduce.kernel, reduce.bytes);
    if (!status && p->n <= most_pairs) status = prepare_kernel(pairs.kernel, pairs.bytes);
    if (!status) status = prepare_kernel(conquer.kernel, conquer.bytes);
    return status ? status : prepare_kernel(back.kernel, back.bytes);
  });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  const slot_layout layout = layout_for(p);
  const int64_t at_once = members_at_once(p);
  return with_kernels(p, v, [&](auto reduce, auto pairs, auto conquer, auto back, int columns) {
    batchqr_status status = BATCHQR_SUCCESS;
    for (int64_t first = 0; first < args->count && !status; first += at_once) {
      const unsigned count =
          static_cast<unsigned>(args->count - first < at_once ? args->count - first : at_once);
      const int parts = largest(1, (args->n + columns - 1) / columns);
      const auto enqueue = [&](const auto &sized, unsigned blocks, const auto &...rest) {
        if (!status)
          status = launch_kernel(sized.kernel, dim3(blocks), sized.threads, sized.bytes, stream, *args,
                                 layout, first, rest...);
      };
      enqueue(reduce, count, p->uplo == BATCHQR_LOWER);
      if (p->n <= most_pairs) enqueue(pairs, count);
      enqueue(conquer, count);
      if (args->v.data) enqueue(back, count * static_cast<unsigned>(parts), parts);
    }
    return status;
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_syevd_tridiagonal = {
    .name = "syevd_tridiagonal",
    .op = BATCHQR_SYEVD,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .supports = bqr::supports,
    .workspace = bqr::workspace,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
    .count_launches = bqr::count_launches,
};
