/* SPDX-License-Identifier: BSD-3-Clause */
/* A member's columns in the shared memory of a line of blocks: see gesvd_cluster.cu. */
#ifndef BQR_KERNELS_FAMILIES_GESVD_CLUSTER_LINE_CUH
#define BQR_KERNELS_FAMILIES_GESVD_CLUSTER_LINE_CUH

#include "common/ptx/publish.cuh"
#include "common/simt/arrival.cuh"
#include "common/simt/launch_cluster.cuh"
#include "rotated_work.cuh"

namespace bqr {
namespace {

/* What members up to a size have in common: columns of a group, each of them a warp's; rows of a lane, which
 * is as many as there are in memory: those behind a member's last one are zeros. */
struct line_shape {
  int cols, each;
};

/* A column in shared memory: 16 bytes with the largest squared norm that rotations have made its new one of,
 * or -1 where there is no such column; its rows of X; those of W, where it is wanted. */
template <class T> constexpr int line_head = 16 / static_cast<int>(sizeof(T));
template <class T> BQR_INLINE int line_ld(int each, bool with_w) {
  return line_head<T> + (with_w ? 2 : 1) * warp_lanes * each;
}
/* In units of 16 bytes. */
template <class T> BQR_INLINE size_t group_units(const line_shape &by, bool with_w) {
  return static_cast<size_t>(line_ld<T>(by.each, with_w)) * static_cast<size_t>(by.cols) * sizeof(T) / 16;
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

template <class T> BQR_INLINE size_t line_bytes(const line_shape &by) {
  return 3 * 16 * group_units<T>(by, true) + 2 * static_cast<size_t>(by.cols) * sizeof(noted_rotation<T>);
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

/* The sums of products of two columns, over the warp. */
template <class T> struct sums {
  real_t<T> a, b; /* squared norms */
  T product;

  __device__ __forceinline__ void add(T x, T y) {
    a = abs2_add(x, a);
    b = abs2_add(y, b);
    product = cmadd(x, y, product);
  }
  __device__ __forceinline__ void total() {
#pragma unroll
    for (int d = warp_lanes / 2; d > 0; d /= 2) {
      const real_t<T> more_a = exchange(a, d), more_b = exchange(b, d);
      product = product + exchange(product, d);
      a += more_a;
      b += more_b;
    }
  }
};

template <class T, int EACH> class line {
  using R = real_t<T>;

public:
  /* mail: of global memory, for two groups of each block; NULL: blocks are a cluster. turned: NULL, or X V in
   * place of X, V being where W is to come. */
  __device__ line(const work<T> &member, T *memory, int cols, bool with_w, int rank, int blocks,
                  double2 *mail, const T *turned)
      : member_(member), cols_(cols), columns_(memory), with_w_(with_w), ld_(line_ld<T>(EACH, with_w)),
        units_(static_cast<int>(group_units<T>({cols, EACH}, with_w))),
        notes_(reinterpret_cast<noted_rotation<T> *>(reinterpret_cast<double2 *>(memory) +
                                                     3 * group_units<T>({cols, EACH}, true))),
        rank_(rank), blocks_(blocks), mail_(mail), turned_(turned),
        tolerance_(limits<R>::eps * (2 * sqrt(static_cast<R>(member.p)) + 4)),
        small_(tolerance_ / static_cast<R>(member.p)) {}

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
    return columns_ + (place * cols_ + j) * ld_;
  }
  __device__ __forceinline__ T *column(int j) const {
    return j < cols_ ? in_group(mine().first, j) : in_group(mine().second, j - cols_);
  }
  static __device__ __forceinline__ R &peak(T *column) { return *reinterpret_cast<R *>(column); }
  static __device__ __forceinline__ T *x_of(T *column) { return column + line_head<T> + lane_id(); }
  static __device__ __forceinline__ T *w_of(T *column) { return x_of(column) + warp_lanes * EACH; }

  __device__ void load() {
    for (int j = warp_id(); j < 2 * cols_; j += num_warps()) {
      const int from = 2 * rank_ * cols_ + j;
      const bool there = from < member_.q;
      T *to = column(j);
      const T *x = turned_ ? turned_ + static_cast<int64_t>(from) * member_.p : member_.x().at(0, from);
      for (int e = 0; e < EACH; e++) {
        const int i = lane_id() + e * warp_lanes;
        x_of(to)[e * warp_lanes] = there && i < member_.p ? x[i] : zero<T>();
        if (with_w_ && turned_)
          w_of(to)[e * warp_lanes] = there && i < member_.q ? *member_.w().at(i, from) : zero<T>();
        else if (with_w_)
          w_of(to)[e * warp_lanes] = there && i == from ? one<T>() : zero<T>();
      }
      if (lane_id() < line_head<T>) to[lane_id()] = zero<T>();
      warp_sync();
      if (lane_id() == 0 && !there) peak(to) = R(-1);
    }
    block_sync();
  }

  __device__ void store(bool reversed) {
    for (int j = warp_id(); j < 2 * cols_; j += num_warps()) {
      const int place = 2 * rank_ + j / cols_, group = reversed ? 2 * blocks_ - 1 - place : place;
      const int to = group * cols_ + j % cols_;
      if (to >= member_.q) continue;
      T *from = column(j);
      for (int e = 0; e < EACH; e++) {
        const int i = lane_id() + e * warp_lanes;
        if (i < member_.p) *member_.x().at(i, to) = x_of(from)[e * warp_lanes];
        if (with_w_ && i < member_.q) *member_.w().at(i, to) = w_of(from)[e * warp_lanes];
      }
    }
  }

  /* Whether more was done than will have left these columns orthogonal. */
  __device__ bool meet_groups(bool within) {
    const int steps = within ? 2 * cols_ - 1 : cols_, turn = warp_id() % cols_;
    const bool turns_w = warp_id() >= cols_;
    bool rotated = false;
    T xs[EACH];
    for (int step = 0; step <= steps; step++) {
      noted_rotation<T> *note = notes_ + (step % 2 != static_cast<int>(turns_w) ? cols_ : 0) + turn;
      if (!turns_w && step < steps) {
        int i = turn, j = turn + step < cols_ ? cols_ + turn + step : turn + step;
        if (within) meet(turn, step, 2 * cols_, i, j);
        line_rotation<T> r;
        bool turned = false;
        if (rotate_columns(column(i), column(j), xs, within || step == 0, within || step == steps - 1, r,
                           turned))
          rotated = true;
        if (lane_id() == 0) *note = {r, turned ? i : -1, j};
      }
      if (turns_w && with_w_ && step > 0) rotate_w(*note);
      block_sync();
    }
    return rotated;
  }

  __device__ __forceinline__ void rotate_w(const noted_rotation<T> &note) const {
    if (note.i < 0) return;
    const line_rotation<T> r = note.turn;
    T *x = w_of(column(note.i)), *y = w_of(column(note.j)), xs[EACH], ys[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      xs[e] = x[e * warp_lanes];
      ys[e] = y[e * warp_lanes];
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      r.apply(xs[e], ys[e]);
      x[e * warp_lanes] = xs[e];
      y[e * warp_lanes] = ys[e];
    }
  }

  /* By a warp. Column x is in xs but when it `loads`, and goes back when it `stores`. */
  __device__ __forceinline__ bool rotate_columns(T *x, T *y, T (&xs)[EACH], bool loads, bool stores,
                                                 line_rotation<T> &r, bool &turned) const {
    constexpr R noise2 = 64 * limits<R>::eps * limits<R>::eps;
    T ys[EACH], *at_x = x_of(x), *at_y = x_of(y);
    if (loads) {
#pragma unroll
      for (int e = 0; e < EACH; e++) xs[e] = at_x[e * warp_lanes];
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) ys[e] = at_y[e * warp_lanes];
    R peak_x = peak(x), peak_y = peak(y);
    sums<T> sum{0, 0, zero<T>()};
#pragma unroll
    for (int e = 0; e < EACH; e++) sum.add(xs[e], ys[e]);
    sum.total();
    const bool there = peak_x >= 0 && peak_y >= 0;
    const bool no_x = there && sum.a > 0 && sum.a <= noise2 * peak_x,
               no_y = there && sum.b > 0 && sum.b <= noise2 * peak_y;
    R angle2 = 0;
    turned = there && !no_x && !no_y && find_line_rotation(sum.a, sum.b, sum.product, tolerance_, r, angle2);
    if (turned) {
      const R c2 = r.cosine * r.cosine, s2 = r.sine * r.sine, before = peak_x;
      peak_x = fmax(fmax(c2 * before, s2 * peak_y), c2 * sum.a + s2 * sum.b);
      peak_y = fmax(fmax(s2 * before, c2 * peak_y), s2 * sum.a + c2 * sum.b);
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        r.apply(xs[e], ys[e]);
        at_y[e * warp_lanes] = ys[e];
      }
    } else if (no_x || no_y) {
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        if (no_x) xs[e] = zero<T>();
        if (no_y) at_y[e * warp_lanes] = zero<T>();
      }
    }
    if (stores) {
#pragma unroll
      for (int e = 0; e < EACH; e++) at_x[e * warp_lanes] = xs[e];
    }
    warp_sync(); /* all lanes have read the peaks */
    if (turned && lane_id() == 0) {
      peak(x) = peak_x;
      peak(y) = peak_y;
    }
    /* What the small turns of a sweep do to the other products is below the tolerance. */
    return no_x || no_y || (turned && (angle2 > small_ || r.sine * r.sine > small_));
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

  /* to := what load(place) tells of the group's units, several at once under way. */
  template <class F> __device__ __forceinline__ void copy_group(double2 *to, F &&load) const {
    constexpr int at_once = 8;
    const int step = num_threads();
    for (int t = thread_id(); t < units_; t += at_once * step) {
      double2 x[at_once];
#pragma unroll
      for (int k = 0; k < at_once; k++)
        if (t + k * step < units_) x[k] = load(t + k * step);
#pragma unroll
      for (int k = 0; k < at_once; k++)
        if (t + k * step < units_) to[t + k * step] = x[k];
    }
  }

  /* Its place in the other block has been free since the exchange before. */
  __device__ __forceinline__ void send_group(const double2 *from, int to) {
    double2 *there = cluster_shared(
        reinterpret_cast<double2 *>(in_group(to == blocks_ - 1 ? last_.free : other_.free, 0)), to);
    copy_group(there, [&](int t) { return from[t]; });
    cluster_sync();
  }

  /* Who sends again in this direction has got what the receiver sent after it had read the letter before. */
  __device__ __forceinline__ void exchange_mail(const double2 *from, int to, bool odd, int letter) {
    double2 *there = mail_ + static_cast<size_t>(2 * to + odd) * units_,
            *here = reinterpret_cast<double2 *>(in_group(mine().free, 0));
    const double2 *came = mail_ + static_cast<size_t>(2 * rank_ + odd) * units_;
    int *letters = member_.state().letters;
    copy_group(there, [&](int t) { return from[t]; });
    block_sync();
    if (thread_id() == 0) {
      publish(letters + 2 * to + odd, letter);
      while (published(letters + 2 * rank_ + odd) < letter) {
      }
    }
    block_sync();
    copy_group(here, [&](int t) { return load_shared(came + t); });
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
  int cols_;
  T *columns_;
  bool with_w_;
  int ld_, units_;
  noted_rotation<T> *notes_; /* of this step and of the one before, in turn */
  int rank_, blocks_;
  double2 *mail_;
  const T *turned_;
  R tolerance_, small_;
  hand other_, last_;
};

} // namespace
} // namespace bqr

#endif
