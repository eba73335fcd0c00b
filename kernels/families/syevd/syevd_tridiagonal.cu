/* SPDX-License-Identifier: BSD-3-Clause */
/* syevd_tridiagonal: four launches, of as many members at once as a gigabyte of workspace has room for:
 * reduction to tridiagonal form, a block for each member, which lies in shared memory where it fits; of small
 * members eigenvalues, a thread for each, and vectors from them; of large ones, and where eigenvalues are too
 * close for that, divide and conquer, a block for each, or bisection where vectors are not wanted; the
 * reflectors, on matrix units where a member's fit in shared memory, or a warp for a few vectors. */
#include "common/eigen/bisect.cuh"
#include "common/eigen/conquer.cuh"
#include "common/eigen/tridiagonal.cuh"
#include "common/eigen/vectors.cuh"
#include "common/simt/launch.cuh"
#include "mma_reflectors.cuh"
#include "block_rows.cuh"
#include "thread_pairs.cuh"

namespace bqr {
namespace {

/* The largest orders of members whose vectors come from their values, and that do so in shared memory. */
constexpr int most_pairs = 256, most_pairs_on_chip = 96;

/* A member's part of the workspace: offsets in bytes. a: the matrix, then reflectors; q: two buffers of
 * vectors of T, or three, doubles, for vectors from values outside shared memory. ld: of all matrices. */
struct slot_layout {
  size_t q0, q1, q2, d, e, state, bytes;
  int ld;
};
struct slot_state {
  int exponent;
  bool sound; /* there is something to do */
  bool whole; /* T's vectors are known; by rows in the second buffer */
};

template <class T> slot_layout layout_of(int n) {
  const size_t rows = static_cast<size_t>(n), square = rows * rows;
  slot_layout s;
  size_t end = 0;
  const auto take = [&](size_t bytes) {
    const size_t at = end;
    end += (bytes + 15) / 16 * 16;
    return at;
  };
  take(sizeof(T) * square);
  const bool outside = n > most_pairs_on_chip && n <= most_pairs;
  const size_t vectors = (outside ? sizeof(double) : sizeof(real_t<T>)) * square;
  s.q0 = take(vectors);
  s.q1 = take(vectors);
  s.q2 = outside ? take(vectors) : 0;
  s.d = take(sizeof(real_t<T>) * rows);
  s.e = take(sizeof(real_t<T>) * rows);
  s.state = take(sizeof(slot_state));
  s.bytes = (end + 255) / 256 * 256;
  s.ld = n;
  return s;
}

class slot {
public:
  __device__ slot(const bqr_args &args, const slot_layout &s, int number)
      : layout_(s), base_(static_cast<unsigned char *>(args.workspace) + number * s.bytes) {}

  template <class T> __device__ matrix_view<T> a(int n) const {
    return {reinterpret_cast<T *>(base_), layout_.ld, n, n};
  }
  template <class R> __device__ matrix_view<R> q(int which, int n) const {
    return {reinterpret_cast<R *>(base_ + (which ? layout_.q1 : layout_.q0)), layout_.ld, n, n};
  }
  /* The buffers of vectors, as they are used for vectors from values, which come to be by rows in q1. */
  __device__ double *buffer(int which) const {
    return reinterpret_cast<double *>(base_ + (which == 0   ? layout_.q0
                                               : which == 1 ? layout_.q1
                                                            : layout_.q2));
  }
  template <class R> __device__ R *by_rows() const { return reinterpret_cast<R *>(base_ + layout_.q1); }
  template <class R> __device__ R *d() const { return reinterpret_cast<R *>(base_ + layout_.d); }
  template <class R> __device__ R *e() const { return reinterpret_cast<R *>(base_ + layout_.e); }
  __device__ slot_state &state() const { return *reinterpret_cast<slot_state *>(base_ + layout_.state); }

private:
  const slot_layout &layout_;
  unsigned char *base_;
};

int reduce_threads(int n) { return warp_lanes * tridiagonal_warps<block_scope>(n); }
/* A thread for each eigenvalue. */
int conquer_threads(int n) { return n <= 64 ? 64 : n <= 128 ? 128 : n <= 256 ? 256 : 512; }

/* --- A to T */

template <class T> BQR_INLINE size_t matrix_bytes(int n) {
  return (sizeof(T) * static_cast<size_t>(n) * static_cast<size_t>(n) + 15) / 16 * 16;
}
template <class T, bool ON_CHIP> size_t reduce_bytes(int n) {
  return block_scope::bytes + tridiagonal<T, block_scope>::bytes(n) + (ON_CHIP ? matrix_bytes<T>(n) : 0);
}

/* What the reduction says of its member. */
template <class R>
__device__ __forceinline__ void end_reduction(const bqr_args &args, const slot &mine, const member &x,
                                              bool finite, int exponent) {
  R *w = vector_data<R>(args.s, x.id);
  for (int j = thread_id(); j < x.n && x.ok && !finite; j += num_threads()) w[j] = static_cast<R>(nan(""));
  if (thread_id() > 0) return;
  set_info(args, x.id, !x.ok ? BATCHQR_INFO_SIZES : !finite ? BATCHQR_INFO_NONFINITE : 0);
  mine.state() = {exponent, x.ok && x.n > 0 && finite, false};
}

template <class T, bool ON_CHIP>
__global__ void __launch_bounds__(512, 1)
    syevd_reduce_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slot_layout layout,
                        int64_t first, bool lower) {
  using R = real_t<T>;
  const slot mine(args, layout, static_cast<int>(blockIdx.x));
  const member x = member_at<BATCHQR_SYEVD>(args, first + blockIdx.x);
  unsigned char *memory = shared_memory<unsigned char>();
  block_scope scope(memory);
  memory += block_scope::bytes;
  bool finite = true;
  int exponent = 0;
  if (x.ok && x.n > 0) {
    const matrix_view<T> a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.n, x.n};
    const uint32_t u = triangle_magnitude(scope, a, lower);
    finite = magnitude_finite<T>(u);
    if (finite) {
      exponent = u ? exponent_to<T>(u, 0) : 0;
      const matrix_view<T> kept = mine.template a<T>(x.n);
      matrix_view<T> work = kept;
      if (ON_CHIP) {
        work = {reinterpret_cast<T *>(memory), x.n, x.n, x.n};
        memory += matrix_bytes<T>(args.n);
      }
      copy_triangle(scope, a, lower, exponent, work);
      tridiagonal<T, block_scope>(scope, work, memory).run(mine.template d<R>(), mine.template e<R>());
      if (ON_CHIP && args.v.data) {
        scope.sync();
        for_each(kept, [&](T &to, int i, int j) {
          if (i >= j) to = *work.at(i, j);
        });
      }
    }
  }
  end_reduction<R>(args, mine, x, finite, exponent);
}

/* The same in registers: see block_rows.cuh. The warps of a member, or 0, where it does not fit. */
template <class T, int C> constexpr int hold_warps() {
  constexpr int bytes = static_cast<int>(sizeof(T));
  return C == 2               ? (bytes > 8 ? 8 : 4)
         : C == 3             ? (bytes > 8 ? 12 : 8)
         : C > 4 || bytes > 8 ? 0
         : bytes > 4          ? 12
                              : 8;
}
template <class T, int C> using hold = block_rows<T, C, hold_warps<T, C>()>;
/* Blocks of a multiprocessor. */
template <class T, int C> constexpr int hold_blocks() {
  constexpr int each = (hold<T, C>::registers + (sizeof(real_t<T>) > 4 ? 56 : 44) + 7) / 8 * 8,
                fit = 65536 / (hold_warps<T, C>() * warp_lanes * each);
  return fit > 0 ? fit : 1;
}

template <class T, int C>
__global__ void __launch_bounds__(hold_warps<T, C>() * warp_lanes, hold_blocks<T, C>())
    syevd_hold_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slot_layout layout,
                      int64_t first, bool lower) {
  using R = real_t<T>;
  __shared__ uint32_t most;
  const slot mine(args, layout, static_cast<int>(blockIdx.x));
  const member x = member_at<BATCHQR_SYEVD>(args, first + blockIdx.x);
  bool finite = true;
  int exponent = 0;
  if (x.ok && x.n > 0) {
    const matrix_view<T> a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.n, x.n};
    hold<T, C> held(*shared_memory<typename hold<T, C>::storage>(), x.n);
    if (thread_id() == 0) most = 0;
    block_sync();
    const uint32_t u = group_max(held.load(a, lower));
    if (lane_id() == 0) shared_max(&most, u);
    block_sync();
    finite = magnitude_finite<T>(most);
    if (finite) {
      exponent = most ? exponent_to<T>(most, 0) : 0;
      matrix_view<T> kept = mine.template a<T>(x.n);
      if (!args.v.data) kept.data = nullptr;
      held.run(lower, exponent, mine.template d<R>(), mine.template e<R>(), kept);
    }
  }
  end_reduction<R>(args, mine, x, finite, exponent);
}

/* --- T to its eigenvalues and vectors, where they are not too close */

int pairs_threads(int n) { return (n + warp_lanes - 1) / warp_lanes * warp_lanes; }

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
                                     sizeof(R) > 4 ? 2.0 / n : 0x1p-20))
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

/* The same on matrix units, see mma_reflectors.cuh, a block for all columns of a member. */
template <class T, int C> using reflectors = mma_reflectors<T, 4 * C>;
template <class T, int C> constexpr int reflect_blocks() {
  constexpr int each = reflectors<T, C>::registers + (sizeof(real_t<T>) > 4 ? 64 : 56),
                fit = 65536 / (reflectors<T, C>::warps * warp_lanes * each);
  return fit > 0 ? fit : 1;
}

template <class T, int C>
__global__ void __launch_bounds__(reflectors<T, C>::warps *warp_lanes, reflect_blocks<T, C>())
    syevd_reflect_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slot_layout layout,
                         int64_t first, int) {
  using blocked = reflectors<T, C>;
  const int number = static_cast<int>(blockIdx.x);
  const slot mine(args, layout, number);
  if (!mine.state().sound) return;
  const member x = member_at<BATCHQR_SYEVD>(args, first + number);
  blocked h(*shared_memory<typename blocked::storage>(), mine.template a<T>(x.n));
  block_sync();
  const int from = warp_id() * blocked::each;
  if (from < x.n)
    h.run(from, found_vectors<T>(mine, x.n),
          {matrix_data<T>(args, args.v, x.id), matrix_ld(args.v, x.id), x.n, x.n});
}

/* --- the host's side */

/* rows: of a lane, 32 of which hold a column of vectors; warps: that hold the matrix in registers; global: it
 * lies in the workspace. */
const bqr_variant variants[] = {{.name = "rows2.warps4", .rows = 2, .warps = 4},
                                {.name = "rows2.warps8", .rows = 2, .warps = 8},
                                {.name = "rows3.warps8", .rows = 3, .warps = 8},
                                {.name = "rows3.warps12", .rows = 3, .warps = 12},
                                {.name = "rows4.warps8", .rows = 4, .warps = 8},
                                {.name = "rows4.warps12", .rows = 4, .warps = 12},
                                {.name = "rows4", .rows = 4},
                                {.name = "rows4.global", .rows = 4, .global = true},
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

/* f(kernel that reduces, its threads, its bytes) */
template <class T, int ROWS, class F>
batchqr_status with_reduction(const bqr_problem *p, const bqr_variant *v, F &&f) {
  constexpr int warps = hold_warps<T, ROWS>();
  if (v->warps) {
    if constexpr (warps > 0)
      if (v->warps == warps)
        return f(syevd_hold_kernel<T, ROWS>, warps * warp_lanes, sizeof(typename hold<T, ROWS>::storage));
    return BATCHQR_UNSUPPORTED;
  }
  if (v->global) return f(syevd_reduce_kernel<T, false>, reduce_threads(p->n), reduce_bytes<T, false>(p->n));
  return f(syevd_reduce_kernel<T, true>, reduce_threads(p->n), reduce_bytes<T, true>(p->n));
}

/* f(kernel that applies reflectors, its threads, its bytes, columns of its blocks) */
template <class T, int ROWS, class F> batchqr_status with_back(const bqr_variant *v, F &&f) {
  if constexpr (hold_warps<T, ROWS>() > 0) {
    using blocked = reflectors<T, ROWS>;
    if (v->warps)
      return f(syevd_reflect_kernel<T, ROWS>, blocked::warps * warp_lanes, sizeof(typename blocked::storage),
               ROWS * warp_lanes);
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
    return for_value<2, 3, 4, 16, 32>(v->rows, [&](auto each) {
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
      const int parts = (args->n + columns - 1) / columns;
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
