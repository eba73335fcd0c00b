/* SPDX-License-Identifier: BSD-3-Clause */
/* syevd_tridiagonal: four launches, of as many members at once as a gigabyte of workspace has room for:
 * reduction to tridiagonal form, a block for each member, which lies in shared memory where it fits; of small
 * members eigenvalues, a thread for each, and vectors from them; of large ones, and where eigenvalues are too
 * close for that, divide and conquer, a block for each, or bisection where vectors are not wanted; the
 * reflectors, a warp for a few vectors. */
#include "common/eigen/bisect.cuh"
#include "common/eigen/conquer.cuh"
#include "common/eigen/tridiagonal.cuh"
#include "common/eigen/vectors.cuh"
#include "common/simt/launch.cuh"
#include "thread_pairs.cuh"

namespace bqr {
namespace {

/* The largest order of members whose vectors come from their values. */
constexpr int most_pairs = 256;

/* A member's part of the workspace: offsets in bytes. a: the matrix, then reflectors; q: two buffers of
 * vectors of T, or three, in double precision, for vectors from values; d, e; state. ld: of all matrices. */
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
  const size_t vectors = (n > most_pairs ? sizeof(real_t<T>) : sizeof(double)) * square;
  s.q0 = take(vectors);
  s.q1 = take(vectors);
  s.q2 = n > most_pairs ? 0 : take(vectors);
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
  /* The buffers of vectors, as they are used for vectors from values. */
  __device__ double *buffer(int which) const {
    return reinterpret_cast<double *>(base_ + (which == 0   ? layout_.q0
                                               : which == 1 ? layout_.q1
                                                            : layout_.q2));
  }
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
  int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
  bool sound = x.ok && x.n > 0;
  if (sound) {
    const matrix_view<T> a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.n, x.n};
    const uint32_t u = triangle_magnitude(scope, a, lower);
    sound = magnitude_finite<T>(u);
    if (sound) {
      const int exponent = u ? exponent_to<T>(u, 0) : 0;
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
      if (thread_id() == 0) mine.state().exponent = exponent;
    } else {
      info = BATCHQR_INFO_NONFINITE;
      R *w = vector_data<R>(args.s, x.id);
      for (int j = thread_id(); j < x.n; j += num_threads()) w[j] = static_cast<R>(nan(""));
    }
  }
  if (thread_id() == 0) {
    set_info(args, x.id, info);
    mine.state().sound = sound;
    mine.state().whole = false;
  }
}

/* --- T to its eigenvalues and vectors, where they are not too close */

int pairs_threads(int n) { return (n + warp_lanes - 1) / warp_lanes * warp_lanes; }

template <class R>
__global__ void __launch_bounds__(most_pairs)
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
  if (args.v.data &&
      !pairs.find_vectors(mine.buffer(0), mine.buffer(1), mine.buffer(2),
                          reinterpret_cast<R *>(mine.buffer(1)), sizeof(R) > 4 ? 2.0 / n : 0x1p-20))
    return;
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
  using R = real_t<T>;
  constexpr int columns = back_columns<T, EACH>();
  const int number = static_cast<int>(blockIdx.x) / parts, part = static_cast<int>(blockIdx.x) % parts;
  const slot mine(args, layout, number);
  if (!mine.state().sound) return;
  const member x = member_at<BATCHQR_SYEVD>(args, first + number);
  const int from = (part * back_warps + warp_id()) * columns;
  if (from >= x.n) return;
  const matrix_view<T> a = mine.template a<T>(x.n),
                       v = {matrix_data<T>(args, args.v, x.id), matrix_ld(args.v, x.id), x.n, x.n};
  const matrix_view<R> q = mine.template q<R>(merges_of(x.n) % 2, x.n);
  warp_columns<T, EACH, columns> z;
  const bool by_rows = mine.state().whole;
  const R *rows = reinterpret_cast<const R *>(mine.buffer(1));
  z.each([&](T &entry, int i, int c) {
    const bool there = i < x.n && from + c < x.n;
    entry = make<T>(!there ? R(0) : by_rows ? rows[i * x.n + from + c] : *q.at(i, from + c));
  });
  for (int k = x.n - 2; k >= 0; k--) z.apply(a.at(0, k), *a.at(k, k), k, x.n);
  z.turn();
  z.each([&](T &entry, int i, int c) {
    if (i < x.n && from + c < x.n) *v.at(i, from + c) = entry;
  });
}

/* --- the host's side */

/* rows: of a lane, 32 of which hold a column of vectors; global: the matrix lies in the workspace. */
const bqr_variant variants[] = {{.name = "rows4", .rows = 4},
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

/* f(kernel that reduces, its bytes, kernel that finds pairs, kernel that conquers, its bytes, kernel that
 * applies reflectors, columns of its blocks) */
template <class F> batchqr_status with_kernels(const bqr_problem *p, const bqr_variant *v, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = real_t<T>;
    const auto with_back = [&](auto each) {
      constexpr int rows = decltype(each)::value;
      const auto g = [&](auto reduce, size_t bytes) {
        return f(reduce, bytes, syevd_pairs_kernel<R>, syevd_conquer_kernel<R>, conquer_bytes<R>(p->n),
                 syevd_back_kernel<T, rows>, back_warps * back_columns<T, rows>());
      };
      return v->global ? g(syevd_reduce_kernel<T, false>, reduce_bytes<T, false>(p->n))
                       : g(syevd_reduce_kernel<T, true>, reduce_bytes<T, true>(p->n));
    };
    return for_value<4, 16, 32>(v->rows, with_back);
  });
}

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return p->n <= v->rows * warp_lanes &&
         with_kernels(p, v, [&](auto, size_t reduce, auto, auto, size_t conquer, auto, int) {
           const size_t most = static_cast<size_t>(device->smem_per_block);
           return reduce <= most && conquer <= most ? BATCHQR_SUCCESS : BATCHQR_UNSUPPORTED;
         }) == BATCHQR_SUCCESS;
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return with_kernels(p, v, [&](auto reduce, size_t rb, auto pairs, auto conquer, size_t cb, auto back, int) {
    batchqr_status status = prepare_kernel(reduce, rb);
    if (!status && p->n <= most_pairs) status = prepare_kernel(pairs, thread_pairs::bytes(p->n));
    if (!status) status = prepare_kernel(conquer, cb);
    return status ? status : prepare_kernel(back, 0);
  });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  const slot_layout layout = layout_for(p);
  const int64_t at_once = members_at_once(p);
  return with_kernels(
      p, v, [&](auto reduce, size_t rb, auto pairs, auto conquer, size_t cb, auto back, int columns) {
        batchqr_status status = BATCHQR_SUCCESS;
        for (int64_t first = 0; first < args->count && !status; first += at_once) {
          const unsigned count =
              static_cast<unsigned>(args->count - first < at_once ? args->count - first : at_once);
          const int parts = (args->n + columns - 1) / columns;
          status = launch_kernel(reduce, dim3(count), reduce_threads(p->n), rb, stream, *args, layout, first,
                                 p->uplo == BATCHQR_LOWER);
          if (!status && p->n <= most_pairs)
            status = launch_kernel(pairs, dim3(count), pairs_threads(p->n), thread_pairs::bytes(p->n), stream,
                                   *args, layout, first);
          if (!status)
            status =
                launch_kernel(conquer, dim3(count), conquer_threads(p->n), cb, stream, *args, layout, first);
          if (!status && args->v.data)
            status = launch_kernel(back, dim3(count * static_cast<unsigned>(parts)), back_warps * warp_lanes,
                                   0, stream, *args, layout, first, parts);
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
    .nvariants = 4,
    .supports = bqr::supports,
    .workspace = bqr::workspace,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
    .count_launches = bqr::count_launches,
};
