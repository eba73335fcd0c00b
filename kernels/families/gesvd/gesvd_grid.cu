/* SPDX-License-Identifier: BSD-3-Clause */
/* gesvd_grid: members in global memory, each worked on by several blocks of threads.
 *
 * Of A or, where that is not tall, of A^H, X of p x q, p >= q: one-sided Jacobi, X W = Z S. The columns are
 * in groups of `cols`. In a launch each group meets another, a block of threads for two of them: it rotates
 * the columns of one with those of the other, in shared memory, and collects what was done in a square
 * matrix, by which it then multiplies W's columns. After as many launches as there are groups less one all
 * have met, a sweep; in the first one columns of one group meet, too. Members that a sweep has left as they
 * were are left alone by later ones. */
#include "common/panel/triplets.cuh"
#include "common/simt/launch.cuh"
#include "common/simt/slots.cuh"

namespace bqr {
namespace {

constexpr int most_threads = 512, ends_threads = 1024;
/* At most; without QR before, a spectrum that falls off geometrically to rounding takes 30. */
constexpr int sweeps = 48;
/* Workspace, unless a single member needs more. */
constexpr size_t most_bytes = size_t(1) << 29;

/* What is known of a member: what it was multiplied by, 2^exponent; before which sweeps something was left to
 * do. */
struct progress {
  int exponent;
  int active[sweeps + 1];
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
  int p, q;
  unsigned char *memory;
  places<T> layout;

  /* The one that is `number` places behind the first of those that are under way. */
  __device__ __forceinline__ work(const bqr_args &args, int64_t first, int number)
      : at(member_at<BATCHQR_GESVD>(args, first + number)), turned(at.m < at.n), p(largest(at.m, at.n)),
        q(least(at.m, at.n)), layout(largest(args.m, args.n), least(args.m, args.n)) {
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
  if (thread_id() == 0)
    for (int i = 0; i <= sweeps; i++) state.active[i] = 0;
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

/* Columns of a block of threads, and their peaks, in shared memory, and the product of their rotations. */
template <class T> struct pair_of_groups {
  matrix_view<T> x, product;
  real_t<T> *peaks;
  int first, second, cols; /* columns of the whole matrix; of a group */

  __device__ __forceinline__ int column(int j) const { return j < cols ? first + j : second + j - cols; }
  /* Columns of this matrix that there are, to shared memory or back. */
  template <bool BACK> __device__ __forceinline__ void move(const matrix_view<T> &whole) const {
    for (int j = warp_id(); j < 2 * cols; j += num_warps()) {
      const int col = column(j);
      if (col >= whole.cols) continue;
      T *here = x.at(0, j), *there = whole.at(0, col);
      for (int i = lane_id(); i < whole.rows; i += warp_lanes)
        if (BACK)
          there[i] = here[i];
        else
          here[i] = there[i];
    }
  }
};

/* Columns of w := those in shared memory times the product of the rotations. A thread makes some rows of
 * `by` columns. */
template <class T>
__device__ __forceinline__ void multiply_groups(const pair_of_groups<T> &pair, const matrix_view<T> &w) {
  constexpr int by = 4, each = sizeof(T) == 16 ? 2 : 4;
  const int size = 2 * pair.cols, groups = size / by;
  const int tiles = (w.rows - 1) / (warp_lanes * each) + 1;
  for (int tile = warp_id(); tile < tiles * groups; tile += num_warps()) {
    const int row = tile / groups * warp_lanes * each + lane_id(), col = tile % groups * by;
    T sums[each][by];
#pragma unroll
    for (int e = 0; e < each; e++)
#pragma unroll
      for (int c = 0; c < by; c++) sums[e][c] = zero<T>();
    for (int l = 0; l < size; l++) {
      if (pair.column(l) >= w.cols) continue;
      T factor[by];
#pragma unroll
      for (int c = 0; c < by; c++) factor[c] = *pair.product.at(l, col + c);
#pragma unroll
      for (int e = 0; e < each; e++) {
        const int i = row + e * warp_lanes;
        const T y = i < w.rows ? *pair.x.at(i, l) : zero<T>();
#pragma unroll
        for (int c = 0; c < by; c++) sums[e][c] = madd(y, factor[c], sums[e][c]);
      }
    }
#pragma unroll
    for (int c = 0; c < by; c++) {
      const int to = pair.column(col + c);
#pragma unroll
      for (int e = 0; e < each; e++)
        if (to < w.cols && row + e * warp_lanes < w.rows) *w.at(row + e * warp_lanes, to) = sums[e][c];
    }
  }
}

/* What members up to a size have in common: columns of a group, lanes that share a column, rows of a lane, 0
 * for any number. */
struct sharing {
  int cols, lanes, each;
};

/* Elements of shared memory: of columns of so many rows. */
template <class T> BQR_INLINE size_t columns_size(int rows, const sharing &by) {
  return static_cast<size_t>(squad_ld<T>(rows, by.lanes)) * 2 * static_cast<size_t>(by.cols);
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

/* Rotates columns i and j, by a squad; i < 0: none. Whether that was more than will have left them
 * orthogonal. EACH: rows that a lane has of each, 0: any number. */
template <class T, int EACH>
__device__ __forceinline__ bool rotate_columns(const squad &s, const pair_of_groups<T> &pair, int i, int j,
                                               bool keeps_product, real_t<T> tolerance) {
  using R = real_t<T>;
  constexpr int held = EACH > 0 ? EACH : 1;
  constexpr R noise2 = 64 * limits<R>::eps * limits<R>::eps;
  const int rows = pair.x.rows;
  const bool there = i >= 0;
  T *x = pair.x.at(0, there ? i : 0), *y = pair.x.at(0, there ? j : 0), xs[held], ys[held];
  sums<T> sum{0, 0, zero<T>()};
  if constexpr (EACH > 0) {
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int row = s.lane + e * s.lanes;
      xs[e] = there && row < rows ? x[row] : zero<T>();
      ys[e] = there && row < rows ? y[row] : zero<T>();
      sum.add(xs[e], ys[e]);
    }
  } else {
    for (int row = s.lane; there && row < rows; row += s.lanes) sum.add(x[row], y[row]);
  }
  sum.total(s);
  R peak_x = there ? pair.peaks[i] : R(0), peak_y = there ? pair.peaks[j] : R(0);
  const bool no_x = there && sum.a > 0 && sum.a <= noise2 * peak_x,
             no_y = there && sum.b > 0 && sum.b <= noise2 * peak_y;
  rotation<T> r;
  R angle = 0, moved;
  const bool turns =
      there && !no_x && !no_y && find_rotation(sum.a, sum.b, sum.product, tolerance, r, angle, moved);
  if (no_x || no_y) {
    for (int row = s.lane; row < rows; row += s.lanes) {
      if (no_x) x[row] = zero<T>();
      if (no_y) y[row] = zero<T>();
    }
  }
  if (turns) {
    const R c2 = r.cosine * r.cosine, s2 = r.sine * r.sine, before = peak_x;
    peak_x = fmax(fmax(c2 * before, s2 * peak_y), c2 * sum.a + s2 * sum.b);
    peak_y = fmax(fmax(s2 * before, c2 * peak_y), s2 * sum.a + c2 * sum.b);
    if constexpr (EACH > 0) {
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        const int row = s.lane + e * s.lanes;
        if (row >= rows) break;
        r.apply(xs[e], ys[e]);
        x[row] = xs[e];
        y[row] = ys[e];
      }
    } else {
      for (int row = s.lane; row < rows; row += s.lanes) r.apply(x[row], y[row]);
    }
    for (int l = s.lane; keeps_product && l < pair.product.rows; l += s.lanes)
      r.apply(*pair.product.at(l, i), *pair.product.at(l, j));
  }
  warp_sync(); /* all lanes have read the peaks */
  if (turns && s.lane == 0) {
    pair.peaks[i] = peak_x;
    pair.peaks[j] = peak_y;
  }
  /* What the small turns of a sweep do to the other products is below the tolerance. */
  const R small = tolerance / static_cast<R>(rows);
  return no_x || no_y || (turns && (angle * angle > small || r.sine * r.sine > small));
}

/* All pairs of a round, of those columns that there are. */
template <class T, int EACH>
__device__ __forceinline__ bool rotate_groups(const squad &s, const pair_of_groups<T> &pair, int cols_of_x,
                                              bool within, bool keeps_product) {
  using R = real_t<T>;
  const R tolerance = limits<R>::eps * (2 * sqrt(static_cast<R>(pair.x.rows)) + 4);
  const int cols = pair.cols;
  bool rotated = false;
  for (int step = 0; step < (within ? 2 * cols - 1 : cols); step++) {
    for_columns(s, cols, [&](int turn) {
      int i = turn, j = cols + (turn + step) % cols;
      if (within && turn >= 0) meet(turn, step, 2 * cols, i, j);
      const bool both = turn >= 0 && pair.column(i) < cols_of_x && pair.column(j) < cols_of_x;
      if (rotate_columns<T, EACH>(s, pair, both ? i : -1, j, keeps_product, tolerance)) rotated = true;
    });
    block_sync();
  }
  return rotated;
}

/* EACH: the rows that a lane has of a column, 0 for any number. */
template <class T, int EACH>
__global__ void __launch_bounds__(most_threads)
    gesvd_meet_kernel(const __grid_constant__ bqr_args args, int64_t first, int sweep, int round,
                      sharing by) {
  const work<T> k(args, first, blockIdx.y);
  progress &state = k.state();
  const int cols = by.cols, groups = largest((k.q - 1) / (2 * cols) + 1, 1) * 2;
  if (!state.active[sweep] || round >= groups - 1 || static_cast<int>(blockIdx.x) >= groups / 2) return;
  int one_group, other;
  meet(blockIdx.x, round, groups, one_group, other);
  const matrix_view<T> x = k.x();
  const squad s = make_squad(by.lanes);
  T *shared = shared_memory<T>(), *square = shared + columns_size<T>(k.p, by);
  const pair_of_groups<T> pair{{shared, squad_ld<T>(k.p, s.lanes), k.p, 2 * cols},
                               {square, squad_ld<T>(2 * cols, s.lanes), 2 * cols, 2 * cols},
                               reinterpret_cast<real_t<T> *>(square + columns_size<T>(2 * cols, by)),
                               least(one_group, other) * cols,
                               largest(one_group, other) * cols,
                               cols};
  const bool keeps_product = k.wants_w(args);
  pair.template move<false>(x);
  for (int j = thread_id(); j < 2 * cols; j += num_threads())
    if (pair.column(j) < k.q) pair.peaks[j] = k.peaks()[pair.column(j)];
  if (keeps_product) for_each(pair.product, [](T &y, int i, int j) { y = i == j ? one<T>() : zero<T>(); });
  block_sync();
  const bool rotated = block_any(rotate_groups<T, EACH>(s, pair, k.q, round == 0, keeps_product));
  if (thread_id() == 0 && rotated) state.active[sweep + 1] = 1;
  pair.template move<true>(x);
  for (int j = thread_id(); j < 2 * cols; j += num_threads())
    if (pair.column(j) < k.q) k.peaks()[pair.column(j)] = pair.peaks[j];
  if (!keeps_product) return;
  block_sync();
  pair.template move<false>(k.w());
  block_sync();
  multiply_groups(pair, k.w());
}

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

/* cols: the most columns of a group. */
const bqr_variant variants[] = {{.name = "cols32", .cols = 32},
                                {.name = "cols16", .cols = 16},
                                {.name = "cols8", .cols = 8},
                                {.name = "cols4", .cols = 4}};

/* Groups of a member, an even number. */
int groups_of(const bqr_problem *p, const bqr_variant *v) {
  const int q = least(p->m, p->n);
  return q > 0 ? ((q - 1) / (2 * v->cols) + 1) * 2 : 2;
}

/* Rows of a lane: many where there is work for all multiprocessors. */
template <class T> constexpr int most_rows = 128 / static_cast<int>(sizeof(T));
constexpr int fewer_rows = 8;

/* A multiple of 2 columns. */
template <class T> sharing sharing_of(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  const int q = least(p->m, p->n), rows = largest(p->m, p->n), groups = groups_of(p, v);
  const bool few = p->count * groups / 2 <= device->multiprocessors;
  sharing by;
  by.cols = largest(((q - 1) / groups + 2) / 2 * 2, 2);
  by.lanes = squad_lanes(rows, few ? fewer_rows : most_rows<T>);
  by.each = rows <= by.lanes * fewer_rows ? fewer_rows : rows <= by.lanes * most_rows<T> ? most_rows<T> : 0;
  return by;
}

size_t shared_bytes(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  const int rows = largest(largest(p->m, p->n), 1);
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const sharing by = sharing_of<T>(p, v, device);
    return (columns_size<T>(rows, by) + columns_size<T>(2 * by.cols, by)) * sizeof(T) +
           2 * static_cast<size_t>(by.cols) * sizeof(real_t<T>);
  });
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

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  return shared_bytes(p, v, device) <= static_cast<size_t>(device->smem_per_block);
}

size_t workspace(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return static_cast<size_t>(at_once(p)) * member_bytes(p);
}

/* The largest groups of which two blocks share a multiprocessor, if that leaves none without a block; else
 * the smallest but one that leaves one for half of the groups of a lone member. Members that gesvd_block
 * holds in registers are its. */
bool prefers(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  const int q = least(p->m, p->n), rows = largest(p->m, p->n);
  const int most = p->type == BATCHQR_S ? 128 : p->type == BATCHQR_Z || rows > 96 ? 64 : 96;
  if (q <= most && rows <= (p->type == BATCHQR_Z ? 64 : 128)) return false;
  const size_t half = static_cast<size_t>(device->smem_per_sm) / 2 - 2048;
  const int64_t blocks = p->count * groups_of(p, v) / 2;
  return v->cols <= 8 || (v->cols == 16 && shared_bytes(p, v, device) <= 2 * half) ||
         (shared_bytes(p, v, device) <= half && blocks >= 2 * device->multiprocessors);
}

/* f(kernel, sharing) */
template <class F>
auto with_meet(const bqr_problem *p, const bqr_variant *v, const bqr_device *device, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const sharing by = sharing_of<T>(p, v, device);
    if (by.each == fewer_rows) return f(gesvd_meet_kernel<T, fewer_rows>, by);
    return by.each > 0 ? f(gesvd_meet_kernel<T, most_rows<T>>, by) : f(gesvd_meet_kernel<T, 0>, by);
  });
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  batchqr_status status = with_meet(p, v, device, [&](auto kernel, const sharing &) {
    return prepare_kernel(kernel, shared_bytes(p, v, device));
  });
  return status ? status : for_type(p->type, [](auto tag) {
    using T = typename decltype(tag)::type;
    const batchqr_status begins = prepare_kernel(gesvd_begin_kernel<T>, 0);
    return begins ? begins : prepare_kernel(gesvd_end_kernel<T>, 0);
  });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                      const bqr_args *args, batchqr_stream stream) {
  const int groups = groups_of(p, v);
  const size_t shared = shared_bytes(p, v, device);
  const int64_t members = at_once(p);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t first = 0; first < args->count && !status; first += members) {
    const unsigned count =
        static_cast<unsigned>(args->count - first < members ? args->count - first : members);
    const auto ends = [&](auto kernel) {
      return launch_kernel(kernel, dim3(count), ends_threads, 0, stream, *args, first);
    };
    const auto for_t = [&](auto &&f) { return for_type(p->type, f); };
    status = for_t([&](auto tag) { return ends(gesvd_begin_kernel<typename decltype(tag)::type>); });
    for (int sweep = 0; sweep < sweeps; sweep++)
      for (int round = 0; round < groups - 1 && !status; round++)
        status = with_meet(p, v, device, [&](auto kernel, const sharing &by) {
          return launch_kernel(kernel, dim3(static_cast<unsigned>(groups) / 2, count),
                               slot_threads(by.cols, by.lanes, most_threads), shared, stream, *args, first,
                               sweep, round, by);
        });
    if (!status)
      status = for_t([&](auto tag) { return ends(gesvd_end_kernel<typename decltype(tag)::type>); });
  }
  return status;
}

int count_launches(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  const int64_t turns = p->count > 0 ? (p->count - 1) / at_once(p) + 1 : 0;
  return static_cast<int>(turns * (2 + sweeps * (groups_of(p, v) - 1)));
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_gesvd_grid = {
    .name = "gesvd_grid",
    .op = BATCHQR_GESVD,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .supports = bqr::supports,
    .workspace = bqr::workspace,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
    .count_launches = bqr::count_launches,
    .prefers = bqr::prefers,
};
