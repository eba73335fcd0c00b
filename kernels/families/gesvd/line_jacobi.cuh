/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided Jacobi, as in common/panel/jacobi.cuh, of N columns of up to N rows that lie in the registers of
 * a warp, a part of one, or a block. SHARE lanes side by side, a squad, have four columns and divide their
 * rows among them.
 *
 * The columns stand in a line. In a round each meets its right neighbour, in the next one its left one, and
 * two that have met change places: after N rounds, a sweep, all have met, and the line is turned round (the
 * odd-even order of Luk and Park, 1989). Rounds are two of a loop, so that changing places costs nothing, and
 * between them one column of four goes to the squad next door.
 *
 * Columns are kept divided by lengths of their own, so that a rotation is two products for two elements
 * (Gentleman's fast rotations): (x, y) := (x - alpha y, y + beta x), and the squared lengths become shorter
 * by 1 + |alpha beta|. The angle is found without its norms' roots from estimates, and made good by one
 * Newton step: what makes the rotation orthogonal is how alpha, beta and the lengths belong together. */
#ifndef BQR_KERNELS_FAMILIES_GESVD_LINE_JACOBI_CUH
#define BQR_KERNELS_FAMILIES_GESVD_LINE_JACOBI_CUH

#include "common/panel/jacobi.cuh"

namespace bqr {

/* WITH_W: an identity is rotated likewise. A member of more than a warp is a block's only one. */
template <class T, int N, int SHARE, bool WITH_W> class line_jacobi {
  using R = real_t<T>;
  static constexpr int share = SHARE, half = SHARE / 2, rows = N / share, columns = 4;

public:
  /* Lanes that have columns. */
  static constexpr int busy = N / columns * share;

private:
  static constexpr bool alone = busy <= warp_lanes; /* in a warp, or a part of it */
  static_assert(N % columns == 0 && N % share == 0 && share >= 4, "squads have as much");
  static_assert(alone || busy % warp_lanes == 0, "lanes beyond are whole warps");
  /* Lanes of a member. */
  static constexpr int lanes = !alone || busy <= warp_lanes / 2 ? busy : warp_lanes;
  /* What goes from lane to lane at once. */
  static constexpr int each = sizeof(T) > 8 ? 1 : 2;
  struct alignas(each * sizeof(T)) couple {
    T v[each];
  };
  static_assert(rows % each == 0, "couples are whole");
  static constexpr int couples = (WITH_W ? 2 : 1) * rows / each, places = lanes + share;
  /* What goes along of a pair. */
  struct lengths {
    R norm, scale;
  };
  static constexpr int pairs = N / 2;
  /* Each may make a column longer by the root of 2, until it is multiplied by its length. */
  static constexpr int most_rounds = sizeof(R) == sizeof(float) ? 16 : 32;

public:
  /* Elements of shared memory for N columns, aligned to 16 bytes. */
  static constexpr int space =
      2 * 2 * rows * places + (alone ? 0 : 2 * pairs * static_cast<int>(sizeof(lengths) / sizeof(T) + 1));

  /* x: up to N columns of as many rows, zero from some column on, in the space. live: whether there is a
   * member. */
  __device__ __forceinline__ line_jacobi(const matrix_view<T> &x, T *space, bool live)
      : lane_(alone ? lane_id() & (lanes - 1) : thread_id()), space_(reinterpret_cast<couple *>(space)),
        done_(!live) {
#pragma unroll
    for (int k = 0; k < columns; k++)
#pragma unroll
      for (int e = 0; e < rows; e++) {
        const bool there = here() && row(e) < x.rows && column(k) < x.cols;
        x_[k][e] = there ? *x.at(row(e), column(k)) : zero<T>();
        if constexpr (WITH_W) w_[k][e] = row(e) == column(k) ? one<T>() : zero<T>();
      }
    sync();
  }

  /* False: still not orthogonal after most_sweeps. */
  __device__ __forceinline__ bool run() {
    bool converged = done_;
    for (int sweep = 0; sweep < most_sweeps; sweep++) {
      turned_round_ = !turned_round_;
      const bool turned = make_sweep();
      if constexpr (alone) {
        const unsigned votes = __ballot_sync(full_mask, turned) >> (lane_id() - lane_);
        converged = converged || (votes & (full_mask >> (warp_lanes - lanes))) == 0;
      } else {
        converged = converged || !block_any(turned);
      }
      done_ = done_ || converged;
      if (alone ? !group_any(!done_) : done_) break;
    }
    return converged;
  }

  /* x := columns of length 1, or 0, values := their lengths, w := what has become of the identity. Columns go
   * to the places that they came from. */
  __device__ __forceinline__ void store(const matrix_view<T> &x, const matrix_view<T> &w, R *values) const {
    R norms[columns];
    sum_norms(norms);
    if (!here()) return;
#pragma unroll
    for (int k = 0; k < columns; k++) {
      if (place(k) >= x.cols) continue;
      const bool any = norms[k] > span<R>::least2;
      const R factor = any ? fast_rsqrt(norms[k]) : R(0);
      values[place(k)] = any ? norms[k] * factor : R(0);
#pragma unroll
      for (int e = 0; e < rows; e++) {
        if (row(e) >= x.rows) continue;
        *x.at(row(e), place(k)) = scaled(x_[k][e], factor);
        if (WITH_W) *w.at(row(e), place(k)) = w_[k][e];
      }
    }
  }

private:
  static __device__ __forceinline__ void sync() {
    if (alone)
      warp_sync();
    else
      block_sync();
  }
  __device__ __forceinline__ bool here() const { return (alone && lanes == busy) || lane_ < busy; }
  __device__ __forceinline__ int row(int e) const { return e * share + lane_ % share; }
  __device__ __forceinline__ int column(int k) const { return lane_ / share * columns + k; }
  __device__ __forceinline__ int place(int k) const { return turned_round_ ? N - 1 - column(k) : column(k); }
  /* The last pair of every other round is the line's ends. */
  __device__ __forceinline__ bool has_ends() const { return lane_ / share == N / columns - 1; }

  __device__ __forceinline__ void sum_norms(R (&norms)[columns]) const {
#pragma unroll
    for (int k = 0; k < columns; k++) {
      norms[k] = 0;
#pragma unroll
      for (int e = 0; e < rows; e++) norms[k] = abs2_add(x_[k][e], norms[k]);
      norms[k] = group_sum<share>(norms[k]);
    }
  }

  /* The first half of a squad knows of its first pair, the others of the second one. */
  __device__ __forceinline__ bool has_second() const { return (lane_ & half) != 0; }

  __device__ __forceinline__ bool make_sweep() {
    R norms[columns];
    sum_norms(norms);
    norm_x_ = has_second() ? norms[2] : norms[0];
    norm_y_ = has_second() ? norms[3] : norms[1];
    scale_x_ = scale_y_ = 1;
    bool turned = false;
#pragma unroll 1
    for (int round = 0; round < N; round += 2) {
      if (busy_warp()) turned = meet_pairs<0, 1, 2, 3>(false) || turned;
      pull_from_right();
      if (busy_warp()) turned = meet_pairs<1, 2, 3, 0>(has_ends() && has_second()) || turned;
      pull_from_left();
      if (round + 2 == N || (round + 2) % most_rounds == 0) rescale();
    }
    return turned;
  }

  __device__ __forceinline__ bool busy_warp() const { return alone || here(); }

  /* f(a lane's couple of elements of column 0, of column 3, place in the space) */
  template <class F> __device__ __forceinline__ void for_couples(couple *space, F &&f) {
#pragma unroll
    for (int e = 0; e < rows; e += each) {
      f(x_[0] + e, x_[3] + e, space);
      space += places;
      if constexpr (WITH_W) {
        f(w_[0] + e, w_[3] + e, space);
        space += places;
      }
    }
  }
  static __device__ __forceinline__ void write(couple *to, const T *x) {
    couple c;
#pragma unroll
    for (int i = 0; i < each; i++) c.v[i] = x[i];
    *to = c;
  }
  static __device__ __forceinline__ void read(T *x, const couple *from) {
    const couple c = *from;
#pragma unroll
    for (int i = 0; i < each; i++) x[i] = c.v[i];
  }

  /* Column 0 becomes the right neighbour's: the fourth of a line that begins one further. */
  __device__ __forceinline__ void pull_from_right() {
    const lengths mine = {norm_x_, scale_x_}, next = lengths_of(mine, lane_ + half, 0);
    if (busy_warp()) for_couples(space_, [&](T *first, T *, couple *at) { write(at + lane_, first); });
    sync();
    const lengths comes = alone ? next : of_pair(lane_ + half, 0);
    move_on(comes.norm, norm_x_, norm_y_);
    move_on(comes.scale, scale_x_, scale_y_);
    const int from = here() ? (lane_ + share) % busy : lane_;
    if (busy_warp()) for_couples(space_, [&](T *first, T *, couple *at) { read(first, at + from); });
  }
  /* Back. The line's ends have not met, but have changed places: they change them again. */
  __device__ __forceinline__ void pull_from_left() {
    couple *space = space_ + couples * places;
    const lengths mine = {norm_y_, scale_y_}, next = lengths_of(mine, lane_ + busy - half, 1);
    if (busy_warp())
      for_couples(space, [&](T *first, T *last, couple *at) {
        write(at + lane_, first);
        if (has_ends()) write(at + lanes + lane_ % share, last);
      });
    sync();
    const lengths comes = alone ? next : of_pair(lane_ + busy - half, 1);
    move_on(comes.norm, norm_y_, norm_x_);
    move_on(comes.scale, scale_y_, scale_x_);
    const int from = lane_ < share ? lanes + lane_ : here() ? lane_ - share : lane_;
    if (busy_warp())
      for_couples(space, [&](T *first, T *last, couple *at) {
        read(first, at + from);
        if (has_ends()) read(last, at + lane_);
      });
  }

  /* A warp's lanes tell one another; those of a block leave it in shared memory, until the barrier. */
  __device__ __forceinline__ lengths lengths_of(const lengths &mine, int lane, int way) {
    if constexpr (alone) {
      const int from = here() ? lane % busy : lane_;
      return {broadcast<lanes>(mine.norm, from), broadcast<lanes>(mine.scale, from)};
    } else {
      if (here() && lane_ % half == 0) left_lengths(way)[lane_ / half] = mine;
      return mine;
    }
  }
  __device__ __forceinline__ lengths of_pair(int lane, int way) const {
    return left_lengths(way)[lane % busy / half];
  }
  __device__ __forceinline__ lengths *left_lengths(int way) const {
    return reinterpret_cast<lengths *>(space_ + 2 * couples * places) + way * pairs;
  }

  /* One of a pair leaves, the other one takes its place, and one comes. */
  static __device__ __forceinline__ void move_on(R comes, R &leaves, R &stays) {
    leaves = stays;
    stays = comes;
  }

  /* Columns A and B, and C and D, meet and change places. idle: this lane's pair does neither, but for its
   * elements, which change places. Whether one was turned by more than will have left all orthogonal. */
  template <int A, int B, int C, int D> __device__ __forceinline__ bool meet_pairs(bool idle) {
    const T first = dot(x_[A], x_[B]), second = dot(x_[C], x_[D]);
    T product = (has_second() ? second : first) + exchange(has_second() ? first : second, half);
    product = group_sum<half>(product);
    T alpha, beta;
    const bool turned = find(product, !idle && !done_, alpha, beta);
    if (!idle) {
      swap(norm_x_, norm_y_);
      swap(scale_x_, scale_y_);
    }
    const T alpha0 = broadcast<share>(alpha, 0), beta0 = broadcast<share>(beta, 0),
            alpha1 = broadcast<share>(alpha, half), beta1 = broadcast<share>(beta, half);
    rotate(x_[A], x_[B], alpha0, beta0);
    rotate(x_[C], x_[D], alpha1, beta1);
    if constexpr (WITH_W) {
      rotate(w_[A], w_[B], alpha0, beta0);
      rotate(w_[C], w_[D], alpha1, beta1);
    }
    return turned;
  }
  static __device__ __forceinline__ void swap(R &a, R &b) {
    const R t = a;
    a = b;
    b = t;
  }
  static __device__ __forceinline__ T dot(const T (&x)[rows], const T (&y)[rows]) {
    T sums[2] = {zero<T>(), zero<T>()};
#pragma unroll
    for (int e = 0; e < rows; e++) sums[e % 2] = cmadd(x[e], y[e], sums[e % 2]);
    return sums[0] + sums[1];
  }
  static __device__ __forceinline__ void rotate(T (&x)[rows], T (&y)[rows], const T &alpha, const T &beta) {
#pragma unroll
    for (int e = 0; e < rows; e++) {
      const T t = x[e];
      x[e] = madd(beta, t, y[e]);
      y[e] = madd(-alpha, y[e], t);
    }
  }

  /* x^H y is sqrt(scale_x scale_y) product. With s near the reciprocal of the longer norm squared, p = |s x^H
   * y|^2 and h = s (|y|^2 - |x|^2) / 2, kappa is the root of p kappa^2 + 2 |h| kappa - 1 nearer 0. */
  __device__ __forceinline__ bool find(T product, bool may_turn, T &alpha, T &beta) {
    const bool x_longer = norm_x_ > norm_y_, both = norm_x_ > span<R>::least2 && norm_y_ > span<R>::least2;
    const R rx = estimated_recip(norm_x_), ry = estimated_recip(norm_y_);
    const R s = both ? (x_longer ? rx : ry) : R(0), other = x_longer ? ry : rx;
    const R scales = scale_x_ * scale_y_, half = (norm_y_ - norm_x_) * R(0.5) * s, h = fabs(half);
    const T u = scaled(product, s);
    const R u2 = abs2(u), cosine2 = scales * real_part(conj(u) * scaled(product, other));
    const bool turns = may_turn && both && cosine2 > tolerance() * tolerance();
    const R p = scales * u2, q = fused(scales, u2, h * h), root = estimated_rsqrt(q);
    const R start = turns ? estimated_recip(fused(q, root, h)) : R(0), step = turns ? R(0.5) * root : R(0);
    const R kappa = fused(-fused(start, fused(p, start, h + h), R(-1)), step, start);
    const T way = scaled(u, copysign(R(1), half));
    alpha = scaled(scaled(conj(way), scale_y_), kappa);
    beta = scaled(scaled(way, scale_x_), kappa);
    const R tangent2 = real_part(alpha * beta), shorter = fast_recip(R(1) + tangent2);
    const R moved = kappa * (scales * real_part(conj(way) * product));
    norm_x_ -= moved;
    norm_y_ += moved;
    scale_x_ *= shorter;
    scale_y_ *= shorter;
    /* What the small turns of a sweep do to the other products is below the tolerance. */
    constexpr R small = tolerance() / N;
    return turns && (cosine2 > small || tangent2 > small);
  }
  static constexpr R tolerance() { return limits<R>::eps * tolerances(); }

  /* 2 sqrt(N) + 4 */
  static constexpr int tolerances() {
    return N > 96 ? 26 : N > 64 ? 23 : N > 48 ? 20 : N > 32 ? 17 : N > 24 ? 15 : N > 16 ? 13 : N > 8 ? 12 : 9;
  }

  __device__ __forceinline__ void rescale() {
    const R x = done_ ? R(1) : scale_x_ * fast_rsqrt(scale_x_),
            y = done_ ? R(1) : scale_y_ * fast_rsqrt(scale_y_);
    scale_x_ = scale_y_ = 1;
#pragma unroll
    for (int k = 0; k < columns; k++) {
      const R factor = broadcast<share>(k % 2 ? y : x, k / 2 * half);
#pragma unroll
      for (int e = 0; e < rows; e++) x_[k][e] = scaled(x_[k][e], factor);
      if constexpr (WITH_W) {
#pragma unroll
        for (int e = 0; e < rows; e++) w_[k][e] = scaled(w_[k][e], factor);
      }
    }
  }

  int lane_; /* of the member */
  couple *space_;
  bool done_, turned_round_ = false;
  R norm_x_, norm_y_, scale_x_, scale_y_; /* squared, of this lane's pair */
  T x_[columns][rows], w_[WITH_W ? columns : 1][WITH_W ? rows : 1];
};

} // namespace bqr

#endif
