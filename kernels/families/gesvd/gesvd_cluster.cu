/* SPDX-License-Identifier: BSD-3-Clause */
/* gesvd_cluster: a member lies in the shared memory of a cluster or, where variants are global, of blocks of
 * one launch that run at once; these take one member after another.
 *
 * One-sided Jacobi as gesvd_grid's. Blocks stand in a line, with two groups of `cols` columns each. In a
 * round these two meet, column by column, and change places; then each block gets a group from its right
 * neighbour for one of its own and, in the next round, one from the left. After as many rounds as there are
 * groups, a sweep, all have met and their order is reversed; in the first round columns of one group meet,
 * too. Half of a block's threads rotate columns of X, the others do the same to those of W a step later: that
 * is not on the way from one rotation to the next. The line's ends are neighbours that exchange groups, but
 * these do not meet. */
#include "common/ptx/publish.cuh"
#include "common/simt/arrival.cuh"
#include "common/simt/launch_cluster.cuh"
#include "rotated_work.cuh"

namespace bqr {
namespace {

/* What members up to a size have in common: columns of a group, lanes that share a column, rows of a lane,
 * threads that rotate columns of X. */
struct line_shape {
  int cols, lanes, each, threads;
};

/* Shared memory for a column: its rows of X, of W, the largest squared norm that rotations have made its new
 * one of, or -1 where there is no such column. Whole 16 bytes. */
template <class T> BQR_INLINE int line_ld(int rows, int lanes) {
  constexpr int whole = 16 / static_cast<int>(sizeof(T));
  return squad_ld<T>(rows / whole * whole + whole, lanes);
}
/* In units of 16 bytes. */
template <class T> BQR_INLINE size_t group_units(int rows, const line_shape &by) {
  return static_cast<size_t>(line_ld<T>(rows, by.lanes)) * static_cast<size_t>(by.cols) * sizeof(T) / 16;
}

/* (x, y) := (cosine x - sine y, sine x + cosine y), in complex types with y := y conj(phase) before. */
template <class T> struct line_rotation {
  real_t<T> cosine, sine;
  T phase;

  __device__ __forceinline__ void apply(T &x, T &y) const {
    const T p = x, q = is_complex<T> ? y * phase : y;
    x = scaled_add(q, -sine, scaled(p, cosine));
    y = scaled_add(p, sine, scaled(q, cosine));
  }
};

/* As find_rotation(), but nothing is accurate except that the rotation is unitary: a wrong angle leaves a
 * product of the columns that is as much smaller than the one before as the estimates are exact. */
template <class T>
__device__ __forceinline__ bool find_line_rotation(real_t<T> a, real_t<T> b, T product, real_t<T> tolerance,
                                                   line_rotation<T> &r, real_t<T> &angle2) {
  using R = real_t<T>;
  if (!(a > span<R>::least2 && b > span<R>::least2)) return false;
  const R ra = estimated_rsqrt(a), rb = estimated_rsqrt(b);
  const T cosine = scaled(scaled(product, ra), rb); /* of the angle between them */
  angle2 = abs2(cosine);
  if (!(angle2 > tolerance * tolerance)) return false;
  const R apart = b > a ? (b - a) * rb * ra : (b - a) * ra * rb; /* in an order that does not overflow */
  R over;
  bool turned_back = apart < 0;
  if constexpr (is_complex<T>) {
    over = fast_rsqrt(angle2);
    r.phase = conj(scaled(cosine, over));
  } else {
    over = estimated_recip(fabs(cosine));
    turned_back = turned_back != (cosine < 0);
    r.phase = one<T>();
  }
  const R z = fabs(R(0.5) * apart * over), root2 = fused(z, z, R(1));
  const R t = estimated_recip(z > span<R>::far ? 2 * z : fused(root2, estimated_rsqrt(root2), z));
  r.cosine = fast_rsqrt(fused(t, t, R(1)));
  r.sine = r.cosine * (turned_back ? -t : t);
  return true;
}

/* A rotation of columns i and j of the block; i < 0: none. */
template <class T> struct noted_rotation {
  line_rotation<T> turn;
  int i, j;
};

template <class T> BQR_INLINE size_t line_bytes(int p, int q, const line_shape &by) {
  return 3 * 16 * group_units<T>(p + q, by) + 2 * static_cast<size_t>(by.cols) * sizeof(noted_rotation<T>);
}

/* Where a block has its groups: the two that meet and the place for the next one. All blocks but the last one
 * of the line do alike, so that a block knows of its neighbours' places, too. */
struct hand {
  int first = 0, second = 1, free = 2;

  BQR_INLINE void exchange(bool odd, bool last) {
    const int given = odd && !last ? first : second;
    if (odd) {
      second = last ? first : second;
      first = free;
    } else {
      second = free;
    }
    free = given;
  }
};

template <class T, int EACH> class line {
  using R = real_t<T>;

public:
  /* mail: of global memory, for two groups of each block; NULL: blocks are a cluster. */
  __device__ line(const work<T> &member, T *memory, const line_shape &by, bool with_w, int rank, int blocks,
                  double2 *mail)
      : member_(member), by_(by), columns_(memory), with_w_(with_w),
        ld_(line_ld<T>(member.most_p + (with_w ? member.most_q : 0), by.lanes)),
        units_(static_cast<int>(group_units<T>(member.most_p + (with_w ? member.most_q : 0), by))),
        notes_(reinterpret_cast<noted_rotation<T> *>(reinterpret_cast<double2 *>(memory) +
                                                     3 * group_units<T>(member.most_p + member.most_q, by))),
        rank_(rank), blocks_(blocks), mail_(mail),
        turns_w_(thread_id() >= by.threads), squad_{by.lanes, thread_id() & (by.lanes - 1),
                                                    thread_id() % by.threads / by.lanes,
                                                    by.threads / by.lanes},
        tolerance_(limits<R>::eps * (2 * sqrt(static_cast<R>(member.p)) + 4)) {}

  __device__ void run() {
    load();
    bool more = true;
    int sweep = 0;
    for (; sweep < sweeps && more; sweep++) {
      bool rotated = false;
      for (int round = 0; round < 2 * blocks_; round++) {
        const bool ends = round % 2 == 1 && rank_ == blocks_ - 1;
        if (!ends && meet_groups(round == 0)) rotated = true;
        exchange_groups(round % 2 == 1, sweep * blocks_ + round / 2 + 1);
      }
      more = any_rotated(sweep, rotated);
    }
    store(sweep % 2 == 1);
  }

private:
  __device__ __forceinline__ bool is_last() const { return rank_ == blocks_ - 1; }
  __device__ __forceinline__ const hand &mine() const { return is_last() ? last_ : other_; }
  __device__ __forceinline__ T *in_group(int place, int j) const {
    return columns_ + (place * by_.cols + j) * ld_;
  }
  __device__ __forceinline__ T *column(int j) const {
    return j < by_.cols ? in_group(mine().first, j) : in_group(mine().second, j - by_.cols);
  }
  __device__ __forceinline__ R &peak(T *column) const {
    return *reinterpret_cast<R *>(column + member_.most_p + (with_w_ ? member_.most_q : 0));
  }
  __device__ __forceinline__ T *w_of(T *column) const { return column + member_.most_p; }

  __device__ void load() {
    const int each = by_.cols;
    for (int j = warp_id(); j < 2 * each; j += num_warps()) {
      const int from = 2 * rank_ * each + j;
      const bool there = from < member_.q;
      T *to = column(j);
      for (int i = lane_id(); i < ld_; i += warp_lanes) {
        T x = zero<T>();
        if (there && i < member_.p) x = *member_.x().at(i, from);
        if (there && with_w_ && i == member_.most_p + from) x = one<T>();
        to[i] = x;
      }
      warp_sync();
      if (lane_id() == 0) peak(to) = there ? R(0) : R(-1);
    }
    block_sync();
  }

  __device__ void store(bool reversed) {
    const int each = by_.cols;
    for (int j = warp_id(); j < 2 * each; j += num_warps()) {
      const int place = 2 * rank_ + j / each, group = reversed ? 2 * blocks_ - 1 - place : place;
      const int to = group * each + j % each;
      if (to >= member_.q) continue;
      T *from = column(j);
      for (int i = lane_id(); i < member_.p; i += warp_lanes) *member_.x().at(i, to) = from[i];
      for (int i = lane_id(); with_w_ && i < member_.q; i += warp_lanes)
        *member_.w().at(i, to) = w_of(from)[i];
    }
  }

  /* Whether more was done than will have left these columns orthogonal. */
  __device__ bool meet_groups(bool within) {
    const int cols = by_.cols, steps = within ? 2 * cols - 1 : cols;
    bool rotated = false;
    T xs[EACH];
    for (int step = 0; step <= steps; step++) {
      noted_rotation<T> *notes = notes_ + step % 2 * cols, *before = notes_ + (step + 1) % 2 * cols;
      if (!turns_w_ && step < steps) {
        const int turn = squad_.id;
        int i = turn, j = turn + step < cols ? cols + turn + step : turn + step;
        if (within && turn < cols) meet(turn, step, 2 * cols, i, j);
        const bool here = turn < cols;
        line_rotation<T> r;
        bool turned = false;
        if (rotate_columns(here ? column(i) : nullptr, here ? column(j) : nullptr, xs, within || step == 0,
                           within || step == steps - 1, r, turned))
          rotated = true;
        if (here && squad_.lane == 0) notes[turn] = {r, turned ? i : -1, j};
      }
      if (turns_w_ && with_w_ && step > 0 && squad_.id < cols) rotate_w(before[squad_.id]);
      block_sync();
    }
    return rotated;
  }

  __device__ __forceinline__ void rotate_w(const noted_rotation<T> &note) const {
    if (note.i < 0) return;
    const line_rotation<T> r = note.turn;
    T *x = w_of(column(note.i)), *y = w_of(column(note.j)), xs[EACH], ys[EACH];
    const int rows = member_.q;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int row = squad_.lane + e * squad_.lanes;
      xs[e] = row < rows ? x[row] : zero<T>();
      ys[e] = row < rows ? y[row] : zero<T>();
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int row = squad_.lane + e * squad_.lanes;
      r.apply(xs[e], ys[e]);
      if (row < rows) {
        x[row] = xs[e];
        y[row] = ys[e];
      }
    }
  }

  /* By a squad; x null: it has none. x is in xs but when it `loads`, and goes back when it `stores`. */
  __device__ __forceinline__ bool rotate_columns(T *x, T *y, T (&xs)[EACH], bool loads, bool stores,
                                                 line_rotation<T> &r, bool &turned) const {
    constexpr R noise2 = 64 * limits<R>::eps * limits<R>::eps;
    const int rows = member_.p;
    R peak_x = x ? peak(x) : R(-1), peak_y = x ? peak(y) : R(-1);
    const bool there = peak_x >= 0 && peak_y >= 0;
    T ys[EACH];
    sums<T> sum{0, 0, zero<T>()};
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int row = squad_.lane + e * squad_.lanes;
      if (loads) xs[e] = x && row < rows ? x[row] : zero<T>();
      ys[e] = x && row < rows ? y[row] : zero<T>();
      sum.add(xs[e], ys[e]);
    }
    sum.total(squad_);
    const bool no_x = there && sum.a > 0 && sum.a <= noise2 * peak_x,
               no_y = there && sum.b > 0 && sum.b <= noise2 * peak_y;
    R angle2 = 0;
    turned = there && !no_x && !no_y && find_line_rotation(sum.a, sum.b, sum.product, tolerance_, r, angle2);
    if (turned) {
      const R c2 = r.cosine * r.cosine, s2 = r.sine * r.sine, before = peak_x;
      peak_x = fmax(fmax(c2 * before, s2 * peak_y), c2 * sum.a + s2 * sum.b);
      peak_y = fmax(fmax(s2 * before, c2 * peak_y), s2 * sum.a + c2 * sum.b);
#pragma unroll
      for (int e = 0; e < EACH; e++) r.apply(xs[e], ys[e]);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int row = squad_.lane + e * squad_.lanes;
      if (no_x) xs[e] = zero<T>();
      if (no_y) ys[e] = zero<T>();
      if ((turned || no_y) && row < rows) y[row] = ys[e];
      if (stores && x && row < rows) x[row] = xs[e];
    }
    warp_sync(); /* all lanes have read the peaks */
    if (turned && squad_.lane == 0) {
      peak(x) = peak_x;
      peak(y) = peak_y;
    }
    /* What the small turns of a sweep do to the other products is below the tolerance. */
    const R small = tolerance_ / static_cast<R>(rows);
    return no_x || no_y || (turned && (angle2 > small || r.sine * r.sine > small));
  }

  /* The blocks' groups move on. letter: more than at the last exchange in that direction. */
  __device__ void exchange_groups(bool odd, int letter) {
    const int to = odd ? (is_last() ? 0 : rank_ + 1) : (rank_ == 0 ? blocks_ - 1 : rank_ - 1);
    const double2 *from =
        reinterpret_cast<const double2 *>(in_group(odd && !is_last() ? mine().first : mine().second, 0));
    if (mail_)
      exchange_mail(from, to, odd, letter);
    else
      send_group(from, to);
    other_.exchange(odd, false);
    last_.exchange(odd, true);
  }

  /* Its place in the other block has been free since the exchange before. */
  __device__ __forceinline__ void send_group(const double2 *from, int to) {
    double2 *there = cluster_shared(
        reinterpret_cast<double2 *>(in_group(to == blocks_ - 1 ? last_.free : other_.free, 0)), to);
    for (int t = thread_id(); t < units_; t += num_threads()) there[t] = from[t];
    cluster_sync();
  }

  /* Who sends again in this direction has got what the receiver sent after it had read the letter before. */
  __device__ __forceinline__ void exchange_mail(const double2 *from, int to, bool odd, int letter) {
    double2 *there = mail_ + static_cast<size_t>(2 * to + odd) * units_,
            *here = reinterpret_cast<double2 *>(in_group(mine().free, 0));
    const double2 *came = mail_ + static_cast<size_t>(2 * rank_ + odd) * units_;
    int *letters = member_.state().letters;
    for (int t = thread_id(); t < units_; t += num_threads()) there[t] = from[t];
    block_sync();
    if (thread_id() == 0) {
      publish(letters + 2 * to + odd, letter);
      while (published(letters + 2 * rank_ + odd) < letter) {
      }
    }
    block_sync();
    for (int t = thread_id(); t < units_; t += num_threads()) here[t] = load_shared(came + t);
    block_sync();
  }

  /* Whether any block has; waits for all of them. */
  __device__ bool any_rotated(int sweep, bool rotated) {
    progress &state = member_.state();
    rotated = block_any(rotated);
    if (thread_id() == 0) {
      if (rotated) publish(&state.active[sweep + 1], 1);
      device_fence();
      atomicAdd(&state.arrived, 1);
      while (published(&state.arrived) < blocks_ * (sweep + 1)) {
      }
    }
    block_sync();
    return published(&state.active[sweep + 1]);
  }

  const work<T> &member_;
  line_shape by_;
  T *columns_;
  bool with_w_;
  int ld_, units_;
  noted_rotation<T> *notes_; /* of this step and of the one before, in turn */
  int rank_, blocks_;
  double2 *mail_;
  bool turns_w_;
  squad squad_;
  R tolerance_;
  hand other_, last_;
};

/* Threads that rotate columns of X, at most: a thread has 128 registers, or all that there are. */
constexpr int most_line_threads(size_t bytes) { return bytes <= 128 ? 256 : 128; }

/* EACH: the most rows that a lane has of a column. */
template <class T, int EACH>
__global__ void __launch_bounds__(2 * most_line_threads(EACH * sizeof(T)))
    gesvd_line_kernel(const __grid_constant__ bqr_args args, int64_t first, line_shape by, int blocks,
                      bool global) {
  const int number = global ? 0 : static_cast<int>(blockIdx.x) / blocks;
  const work<T> k(args, first, number);
  if (!k.state().active[0]) return;
  double2 *mail = global ? reinterpret_cast<double2 *>(k.memory + k.layout.bytes) : nullptr;
  line<T, EACH>(k, shared_memory<T>(), by, k.wants_w(args), static_cast<int>(blockIdx.x) % blocks, blocks,
                mail)
      .run();
}

/* lanes: that share a column, of which a lane has up to 32 rows; blocks: of a member. */
const bqr_variant variants[] = {
    {.name = "lanes16.blocks8", .lanes = 16, .blocks = 8},
    {.name = "lanes32.blocks8", .lanes = 32, .blocks = 8},
    {.name = "lanes16.blocks16", .lanes = 16, .blocks = 16},
    {.name = "lanes32.blocks16", .lanes = 32, .blocks = 16},
    {.name = "lanes32.blocks64.global", .lanes = 32, .blocks = 64, .global = true},
    {.name = "lanes32.blocks128.global", .lanes = 32, .blocks = 128, .global = true}};

line_shape shape_of(const bqr_problem *p, const bqr_variant *v) {
  const int q = largest(least(p->m, p->n), 1), rows = largest(p->m, p->n);
  line_shape by;
  by.cols = (q - 1) / (2 * v->blocks) + 1;
  by.lanes = v->lanes;
  const int each = (rows - 1) / by.lanes + 1;
  by.each = each <= 8 ? 8 : each <= 16 ? 16 : 32;
  by.threads = (by.cols * by.lanes + warp_lanes - 1) / warp_lanes * warp_lanes;
  return by;
}

size_t shared_bytes(const bqr_problem *p, const bqr_variant *v) {
  return for_type(p->type, [&](auto tag) {
    return line_bytes<typename decltype(tag)::type>(largest(p->m, p->n), least(p->m, p->n), shape_of(p, v));
  });
}

/* What one launch takes. */
int64_t members_of(const bqr_problem *p, const bqr_variant *v) { return v->global ? 1 : at_once(p); }

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  const line_shape by = shape_of(p, v);
  const size_t bytes = static_cast<size_t>(by.each) * type_bytes(p->type);
  return (v->global       ? v->blocks <= device->multiprocessors
          : v->blocks > 8 ? bqr_has_wide_clusters(device)
                          : bqr_has_clusters(device)) &&
         largest(p->m, p->n) <= by.each * by.lanes && bytes <= 256 &&
         by.threads <= most_line_threads(bytes) &&
         shared_bytes(p, v) <= static_cast<size_t>(device->smem_per_block);
}

size_t workspace(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  const size_t mail = for_type(p->type, [&](auto tag) {
    return 2 * 16 * group_units<typename decltype(tag)::type>(p->m + p->n, shape_of(p, v));
  });
  return static_cast<size_t>(members_of(p, v)) * member_bytes(p) +
         (v->global ? mail * static_cast<size_t>(v->blocks) : 0);
}

/* Few members: as many as run at once. Half a warp for a column where a lane then has 64 bytes of it, or
 * where groups are large. */
bool prefers(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  const int q = least(p->m, p->n);
  const size_t bytes = static_cast<size_t>(largest(p->m, p->n)) * type_bytes(p->type);
  if (q <= 64 || p->count * v->blocks > device->multiprocessors) return false;
  if (v->global) return v->blocks > 64 || q <= 512;
  return (v->blocks > 8 || q <= 128) && (v->lanes > 16 || bytes <= 16 * 64 || q > 256);
}

/* f(kernel, shape) */
template <class F> batchqr_status with_line(const bqr_problem *p, const bqr_variant *v, F &&f) {
  const line_shape by = shape_of(p, v);
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return for_value<8, 16, 32>(by.each, [&](auto each) {
      constexpr int rows = decltype(each)::value;
      if constexpr (rows * sizeof(T) <= 256)
        return f(gesvd_line_kernel<T, rows>, by);
      else
        return BATCHQR_UNSUPPORTED;
    });
  });
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  const batchqr_status status = with_line(p, v, [&](auto kernel, const line_shape &) {
    return prepare_kernel(kernel, shared_bytes(p, v), v->global ? 1 : v->blocks);
  });
  return status ? status : prepare_ends(p);
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                      const bqr_args *args, batchqr_stream stream) {
  const size_t shared = shared_bytes(p, v);
  const int64_t members = members_of(p, v);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t first = 0; first < args->count && !status; first += members) {
    const unsigned count =
        static_cast<unsigned>(args->count - first < members ? args->count - first : members);
    status = launch_begin(p, device, *args, first, count, stream);
    if (!status)
      status = with_line(p, v, [&](auto kernel, const line_shape &by) {
        return v->global ? launch_together(kernel, dim3(static_cast<unsigned>(v->blocks)), 2 * by.threads,
                                           shared, stream, *args, first, by, v->blocks, true)
                         : launch_clusters(kernel, count, v->blocks, 2 * by.threads, shared, stream, *args,
                                           first, by, v->blocks, false);
      });
    if (!status) status = launch_end(p, device, *args, first, count, stream);
  }
  return status;
}

int count_launches(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return static_cast<int>(p->count > 0 ? (ENDS_LAUNCHES + 1) * ((p->count - 1) / members_of(p, v) + 1) : 0);
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_gesvd_cluster = {
    .name = "gesvd_cluster",
    .op = BATCHQR_GESVD,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = bqr::variants,
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .supports = bqr::supports,
    .workspace = bqr::workspace,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
    .count_launches = bqr::count_launches,
    .prefers = bqr::prefers,
    .only_where_good = true,
};
