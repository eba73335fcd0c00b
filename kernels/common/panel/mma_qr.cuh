/* SPDX-License-Identifier: BSD-3-Clause */
/* QR of a member by one block or one cluster of blocks, on matrix units: what geqrf_mma does.
 * Panels of 8 columns are factored in registers as fragments (common/simt/fragment.cuh), 8 U rows to each of
 * P warps in each of B blocks, two after the other. Two or four make a group, after which the trailing
 * columns stream through the same warps, 16 at a time, and the first 16 of them stay as the next two panels:
 * the whole factorization is one launch. Variants for many members trade registers and shared memory of a
 * member for more of them on a multiprocessor, which hide each other's latency.
 *
 * A panel takes one sum over all rows, or some more, see gram_panel.cuh.
 *
 * In single precision the trailing columns are updated on matrix units for FP16: see
 * common/panel/split_fp16.cuh.
 *
 * Method: xGEQRF with blocks of 8; T of V^H V as in xLARFT; columns in range as in common/panel/columns.cuh.
 */
#ifndef BQR_KERNELS_COMMON_PANEL_MMA_QR_CUH
#define BQR_KERNELS_COMMON_PANEL_MMA_QR_CUH

#include "gram_panel.cuh"
#include "split_fp16.cuh"
#include "common/matrix/member.cuh"
#include "common/simt/mma_fragment.cuh"
#include "common/simt/team.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/prefetch.cuh"
#include <cstddef>

namespace bqr {

/* Columns elsewhere that take the reflectors of a member, too: as many rows, `cols` of them. */
template <class T> struct joined_columns {
  T *data;
  int64_t ld;
  int cols;
};

/* The factorization of one member by one block or cluster, with groups of G panels (0: see below). MANY: with
 * few registers, so that many members run at once. JOINED: other columns, in the place of trailing ones, take
 * Q^H; these and R are left in range, tau is not written. */
template <class T, int U, int P, int B, int G, bool MANY, bool JOINED = false> class mma_qr {
  static constexpr int N = 8; /* columns of a panel */
  using real = real_t<T>;
  static constexpr int W = P * B;
  /* Whether reflectors are kept for the matrix units for FP16. */
  static constexpr bool in_fp16 = sizeof(real) == 4 && B == 1;
  /* Whether the next 16 trailing columns come to shared memory while the ones before are updated, and four
   * warps make T^H W for all: where there is room beside as many members as registers allow, and where it
   * pays. */
  static constexpr bool ahead = B == 1 && U <= 8 && ((P == 4 && in_fp16) || (P == 8 && sizeof(T) == 8));
  /* Whether T of two panels is one, so that what follows from W does not take three products in a row. */
  static constexpr bool merges = ahead || in_fp16;
  /* Sums of up to 8 values a lane: as many at once as shared memory allows. */
  static constexpr int sums_at_once = sizeof(T) * B > 128                 ? 2
                                      : ahead                             ? P
                                      : B > 1 || P > 4 || sizeof(T) == 16 ? 4
                                                                          : 8;
  using team_type = team<T, P, B, sums_at_once>;
  static constexpr bool spread = sizeof(T) == 16 && W > 4; /* with fewer warps it takes registers */
  using columns = unit_fragment<T, U, W, spread>;
  using reflector_type = unit_reflector<T, U, W, spread, ahead>;
  using kept_type = std::conditional_t<in_fp16, fp16_reflector<T, U, W, ahead>, reflector_type>;
  /* Of a group: as many as leave shared memory for all the warps that registers do. */
  static constexpr int most_panels = G > 0 ? G : sizeof(typename reflector_type::storage) <= 5120 ? 4 : 2;
  /* Whether the first columns come in as trailing ones that no panels change, which is less to compile;
   * elements of other sizes lose up to 6 % by it. */
  static constexpr bool first_as_later = sizeof(T) == 8;
  /* Whether there are registers for a second panel while the first one is factored. */
  static constexpr bool holds_two = !MANY && sizeof(columns) <= 128;

  struct storage {
    typename reflector_type::storage v[most_panels][P]; /* of a group of panels */
    typename team_type::storage team;
    union {
      alignas(16) T c[2 * warp_lanes];
      typename kept_type::split_type y[2][2][ahead ? warp_lanes : 1]; /* T^H W, of panels and columns */
    };
    alignas(16) T t[most_panels][N][N]; /* t[.][i][k] = T(i, k) */
    alignas(16) T z[N][N];              /* z[i][k] = v_i^H v_k, i < k */
    /* of two panels: -T_1 V_1^H V_2 T_2 as T is, or -V_2^H V_1 as an operand */
    alignas(16) T cross[most_panels / 2][N][N];
    T tau[N];
    pivot_column<T> pivot[2];
    int done, zero_column;
    two<T> next[2][ahead ? U : 1][ahead ? P * warp_lanes : 1];
    uint32_t magnitude[2 * N], largest[in_fp16 ? P : 1][in_fp16 ? 2 * N : 1];
    short exponent[1]; /* of each column's scale, in FP16 as packed_exponents(): n of them */
  };

public:
  static constexpr size_t smem(int n) { return sizeof(storage) + sizeof(short) * static_cast<size_t>(n); }
  /* Bytes from the first on that are free after run(). */
  static constexpr size_t free_bytes() { return offsetof(storage, exponent); }

  __device__ mma_qr(void *shared, T *a, int64_t ld, int m, int n)
      : s(*static_cast<storage *>(shared)), team_(s.team), a_(a), ld_(ld), m_(broadcast(m, 0)),
        n_(broadcast(n, 0)), warp_(team_.warp()), packs_(columns::packs(a, ld, m)) {}

  /* With other columns, which are counted from the first one that a pair of panels would begin with behind
   * A's. */
  __device__ mma_qr(void *shared, T *a, int64_t ld, int m, int n, const joined_columns<T> &others)
      : s(*static_cast<storage *>(shared)), team_(s.team), a_(a), ld_(ld), m_(broadcast(m, 0)),
        n_(first_joined(broadcast(n, 0)) + broadcast(others.cols, 0)), warp_(team_.warp()),
        packs_(columns::packs(a, ld, m)), n_of_a_(broadcast(n, 0)), others_(others),
        others_pack_(columns::packs(others.data, others.ld, m)) {}
  BQR_INLINE static constexpr int first_joined(int n) { return (n + 2 * N - 1) / (2 * N) * (2 * N); }

  /* JOINED: whether all columns are finite, the first zero on R's diagonal, counted from 1, or 0, and the
   * exponents of the powers of two that columns were multiplied by. After run() and a barrier. */
  __device__ __forceinline__ bool finite() const { return finite_; }
  __device__ __forceinline__ int zero_column() const { return s.zero_column; }
  __device__ __forceinline__ int exponent_of(int j) const { return scaled_ ? range_exponent(j) : 0; }
  __device__ __forceinline__ int exponent_of_joined(int j) const {
    return exponent_of(first_joined(n_of_a_) + j);
  }

  /* Factors the member; returns its info, in thread 0 of block 0. tau: min(m, n) elements. positive: R's
   * diagonal is not negative. */
  __device__ int run(T *tau, bool positive = false) {
    const int k = reflectors();
    positive_ = positive;
    if (thread_id() == 0) s.zero_column = 0;
    columns x[2];
    begin_group(0);
    if constexpr (first_as_later) {
      start_ahead(0, 0);
    } else {
      load_two(x, warp_, 0, 0);
      bring_into_range(x, 0);
      if (!holds_two) store(x[1], warp_, 0, N);
      start_first(2 * N);
    }
    /* With first_as_later, a turn without panels comes before the others and brings the first columns in. */
    for (int top = first_as_later ? -2 * N : 0;
         (first_as_later && top < 0) || factor_panels(x, top, top + N < k ? 2 : 1, tau);) {
      top += 2 * N;
      const bool more = top < k, grows = more && panels_ < most_panels;
      update_trailing(x, top, grows ? least(top + 2 * N, n_) : n_, more);
      if (!more) break;
      if (!grows) begin_group(top);
      start_first(top + 2 * N);
    }
    team_.sync();
    if (!JOINED && scaled_ && team_.block() == 0) unscale(k);
    if (!finite_) return BATCHQR_INFO_NONFINITE;
    return thread_id() == 0 ? s.zero_column : 0;
  }

private:
  __device__ __forceinline__ static int before(int warp) { return warp > 0 ? warp - 1 : W - 1; }

  __device__ __forceinline__ void begin_group(int top) {
    panels_ = 0;
    group_top_ = top;
    group_warp_ = warp_;
  }

  __device__ __forceinline__ int reflectors() const { return least(m_, JOINED ? n_of_a_ : n_); }

  /* Columns from col + offset on, from a row on: A's, or those joined to it. */
  struct place {
    T *at;
    int64_t ld;
    int left; /* columns */
    bool packs;
  };
  __device__ __forceinline__ place place_of(int row, int col, int offset = 0) const {
    if constexpr (JOINED) {
      const int first = first_joined(n_of_a_), at = col + offset;
      if (at >= first)
        return {others_.data + row + (at - first) * others_.ld, others_.ld, n_ - at, others_pack_};
      return {a_ + row + at * ld_, ld_, n_of_a_ - at, packs_};
    }
    return {a_ + row + (col + offset) * ld_, ld_, n_ - col - offset, packs_};
  }

  __device__ __forceinline__ void load_two(columns (&x)[2], int warp, int top, int col) const {
    load(x[0], warp, top, col);
    load(x[1], warp, top, col + N);
  }
  __device__ __forceinline__ void load(columns &x, int warp, int top, int col) const {
    const place from = place_of(top, col);
    x.load(warp, from.at, from.ld, m_ - top, from.left, from.packs);
  }
  /* The last 16 columns of those from `first` up to `end`, counted from `first`. */
  __device__ __forceinline__ static int last_columns(int first, int end) {
    return first + (end - first - 1) / (2 * N) * (2 * N);
  }
  /* start_ahead() of what update_trailing() will begin with after the next two panels, `top` being their end.
   */
  __device__ __forceinline__ void start_first(int top) const {
    if constexpr (ahead) {
      const bool grows = top < reflectors() && panels_ + 2 < most_panels;
      start_ahead(last_columns(top, grows ? least(top + 2 * N, n_) : n_), top);
    }
  }
  /* load_two() with the group's rows, begun ahead; nothing if there are no such columns from `first` on. */
  __device__ __forceinline__ void start_ahead([[maybe_unused]] int col, [[maybe_unused]] int first) const {
    if constexpr (ahead) {
      if (col < first || col >= n_) return;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const place from = place_of(group_top_, col, N * i);
        columns::start_load(s.next[i], group_warp_, from.at, from.ld, m_ - group_top_, from.left, from.packs);
      }
      copy_async_group();
    }
  }
  __device__ __forceinline__ void finish_ahead(columns (&x)[2], int col) const {
    if constexpr (ahead) {
      copy_async_wait_groups<0>();
#pragma unroll
      for (int i = 0; i < 2; i++) x[i].finish_load(s.next[i]);
    } else {
      load_two(x, group_warp_, group_top_, col);
    }
  }
  /* A column's rows of the group. */
  __device__ __forceinline__ void prefetch(int col) const {
    const place from = place_of(group_top_, col);
    if (!JOINED || from.left > 0) prefetch_l2(from.at, static_cast<int>(sizeof(T)) * (m_ - group_top_));
  }
  template <int COUNT = columns::units>
  __device__ __forceinline__ void store(const columns &x, int warp, int top, int col) const {
    const place to = place_of(top, col);
    x.template store<COUNT>(warp, to.at, to.ld, m_ - top, to.left, to.packs);
  }
  /* The first 8 rows are done. */
  __device__ __forceinline__ void leave_tile(columns &x, int warp, int top, int col) const {
    if (warp == 0) store<1>(x, warp, top, col);
    x.drop_tile(warp);
  }

  /* Looks at 16 columns from `col` on when they are first touched; those out of range get their scale. */
  __device__ __forceinline__ void bring_into_range(columns (&x)[2], int col) {
    constexpr int K = 2;
    bool outside = false;
#pragma unroll
    for (int i = 0; i < K; i++) x[i].each([&](T &y) { outside |= !in_column_range(y) & !is_zero(y); });
    if (in_fp16) find_largest(x);
    outside = team_.any(outside);
    if (outside) scale_columns(x);
    const int number = thread_id();
    if (number < K * N && col + number < n_) {
      if (in_fp16)
        s.exponent[col + number] = packed_exponents(largest_of(number), outside);
      else
        s.exponent[col + number] = static_cast<short>(outside ? column_exponent<T>(s.magnitude[number]) : 0);
    }
    if (outside) team_.sync();
  }
  /* The largest magnitudes of columns, before a barrier. */
  __device__ __forceinline__ void find_largest(columns (&x)[2]) const {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t u = 0;
      x[i].each([&](T &y) { u = greater(u, magnitude(y)); });
#pragma unroll
      for (int d = 1; d < columns::lanes; d *= 2) u = greater(u, exchange(u, d));
      s.largest[warp_id()][N * i + columns::column()] = u;
    }
    if (P == 1) warp_sync();
  }
  /* And after it, of column `number` of the 16. */
  __device__ __forceinline__ uint32_t largest_of(int number) const {
    uint32_t u = 0;
    for (int p = 0; p < P; p++) u = greater(u, s.largest[p][number]);
    return u;
  }
  /* Of a column's largest magnitude() and of the scale that brings it into range. */
  __device__ __forceinline__ static short packed_exponents(uint32_t u, bool outside) {
    return static_cast<short>((outside ? column_exponent<T>(u) : 0) * 256 + static_cast<int>(u >> 23));
  }
  /* Of the scale of column j. */
  __device__ __forceinline__ int range_exponent(int j) const {
    return in_fp16 ? s.exponent[j] >> 8 : s.exponent[j];
  }
  /* Of the power of two that this lane's column, of the 8 from `col` on, is multiplied by for the reflectors.
   */
  __device__ __forceinline__ int kept_exponent_of(int col) const {
    const int j = col + columns::column();
    return in_fp16 && j < n_ ? kept_exponent(s.exponent[j] & 255, range_exponent(j)) : 0;
  }
  __device__ __forceinline__ void scale_columns(columns (&x)[2]) {
    constexpr int K = 2;
    if (thread_id() < K * N) s.magnitude[thread_id()] = 0;
    team_.sync();
    for (int i = 0; i < K; i++) {
      uint32_t u = 0;
      x[i].each([&](T &y) { u = greater(u, magnitude(y)); });
      for (int b = 0; b < B; b++) shared_max(cluster_shared(&s.magnitude[i * N + columns::column()], b), u);
    }
    team_.sync();
#pragma unroll
    for (int i = 0; i < K; i++) {
      real scale = exponent_scale<real>(column_exponent<T>(s.magnitude[i * N + columns::column()]));
      x[i].each([&](T &y) { y = scaled(y, scale); });
    }
    for (int c = 0; c < K * N; c++) {
      finite_ &= magnitude_finite<T>(s.magnitude[c]);
      scaled_ |= column_exponent<T>(s.magnitude[c]) != 0;
    }
  }

  /* The panels x, one or two, the first of which starts at `top`; whether there are columns right of them.
   * They join the group. */
  __device__ __forceinline__ bool factor_panels(columns (&x)[2], int top, int panels, T *tau) {
    const int k = reflectors();
#pragma unroll 1
    for (int p = 0;; p++, top += N) {
      const int number = panels_++;
      factor_panel(x[0], number, top, least(N, k - top), tau + top);
      if (top + N >= n_) return false;
      set_reflectors(x[0], number, top);
      if (p > 0) {
        set_cross(x[0], number, top);
        break;
      }
      if constexpr (holds_two)
        x[0] = x[1];
      else
        load(x[0], warp_, top, top + N);
      apply(x[0], number, top);
      if (panels == 1) {
        store(x[0], warp_, top, top + N);
        set_nothing(panels_++);
        break;
      }
      leave_tile(x[0], warp_, top, top + N);
      warp_ = before(warp_);
    }
    return top + (panels == 1 ? 2 : 1) * N < n_;
  }

  /* `reflectors` columns of the panel x whose first row and column is `top`; number `which` of its group. */
  __device__ __forceinline__ void factor_panel(columns &x, int which, int top, int reflectors, T *tau) {
    const int rows = m_ - top;
    const reflector_type reflector = reflectors_of(which, which);
    const bool leads = warp_ % P == 0; /* a warp of each block does the same */
    T head[2] = {x.x[0][0], x.x[0][1]};
    tau_ = v_scale_ = zero<T>();
    int done = 0;
#pragma unroll 1
    do {
      reflector.set(x, warp_, rows);
      T sums[B > 1 ? 4 : 2], y[2], c[2];
      reflector.gram(y, x, warp_, rows);
      sums[0] = y[0];
      sums[1] = y[1];
      if constexpr (B > 1) {
        sums[2] = warp_ == 0 ? head[0] : zero<T>();
        sums[3] = warp_ == 0 ? head[1] : zero<T>();
      }
      team_.sum(sums);
      if (leads) {
        y[0] = sums[0];
        y[1] = sums[1];
        if constexpr (B > 1) {
          head[0] = sums[2];
          head[1] = sums[3];
        }
        done = make_reflectors<columns>(s, head, y, c, done, reflectors, positive_, tau_, v_scale_);
        if (done == reflectors)
          finish_reflectors<columns>(s, head, c, top, reflectors, tau_, v_scale_,
                                     [](T diagonal) { return diagonal; });
        if (P > 1) {
          write_two(s.c + 2 * lane_id(), c);
          if (lane_id() == 0) s.done = done;
        }
      }
      if constexpr (P > 1) {
        team_.sync_block();
        read_two(c, s.c + 2 * lane_id());
        done = broadcast(s.done, 0);
      }
      reflector.recombine(x, c, warp_, rows);
      if (warp_ == 0) {
        x.x[0][0] = head[0];
        x.x[0][1] = head[1];
      }
    } while (done < reflectors);
    if (!JOINED && warp_ == 0 && columns::lane() == 0 && columns::column() < reflectors)
      tau[columns::column()] = tau_;
    store(x, warp_, top, top);
  }

  /* For V to be kept in FP16: the power of two that makes the vector of a reflector with beta >= 0, whose
   * squared norm is 2 Re(tau) / |tau|^2, about as long as that of one with alpha and beta of different signs.
   * T is multiplied by its reciprocals. */
  __device__ __forceinline__ static real shortening(T tau) {
    using range = column_range<real>;
    const real short2 = abs2(tau) / (2 * real_part(tau)); /* NaN without a reflector */
    const int exponent = static_cast<int>(magnitude(short2) >> range::mantissa) - range::bias;
    return short2 < real(0.25) ? exponent_scale<real>(exponent / 2) : real(1);
  }
  /* T, by the warp that made the reflectors. */
  __device__ __forceinline__ void make_triangular_factor(T (&factor)[N][N]) {
    const int i = columns::column();
    warp_sync();
    T t[N] = {};
    make_factor_row(t, i, s.z, s.tau);
    if constexpr (in_fp16)
      if (positive_) {
        const real longer = 1 / shortening(s.tau[i]);
#pragma unroll
        for (int k = 0; k < N; k++) t[k] = scaled(t[k], longer / shortening(s.tau[k]));
      }
#pragma unroll
    for (int k = 0; k < N; k += 2)
      write_two(&factor[i][k], {scaled(t[k], kept_type::t_scale), scaled(t[k + 1], kept_type::t_scale)});
  }

  /* Panel `which`, with rows from where panel `from` starts. */
  __device__ __forceinline__ reflector_type reflectors_of(int which, int from) const {
    return reflector_type(s.v[which][P == 1 ? 0 : warp_id()], first_unit(from));
  }
  /* Once it is kept; `first` of this warp's units are left out. */
  __device__ __forceinline__ kept_type kept(int which, int first) const {
    return kept_type(s.v[which][P == 1 ? 0 : warp_id()], first);
  }
  /* How many of this warp's units the panels before number `which` of the group have finished. */
  __device__ __forceinline__ int first_unit(int which) const { return (which + W - 1 - group_warp_) / W; }

  /* Makes V, in x and in shared memory, and T of the factored panel x. */
  __device__ __forceinline__ void set_reflectors(columns &x, int which, int top) {
    const int g = columns::column();
    if (warp_ == 0) {
#pragma unroll
      for (int e = 0; e < 2; e++)
        if (columns::row(e) <= g) x.x[0][e] = columns::row(e) == g ? one<T>() : zero<T>();
    }
    if constexpr (in_fp16)
      if (positive_) {
        if (P == 1) warp_sync();
        const real shorter = shortening(s.tau[g]);
        x.each([&](T &y) { y = scaled(y, shorter); });
      }
    if (warp_ % P == 0) make_triangular_factor(s.t[which]); /* a barrier of sum() stands before its use */
    keep(x, which, top);
  }
  __device__ __forceinline__ void keep(const columns &x, int which, int top) const {
    const kept_type reflector = kept(which, first_unit(which));
    reflector.clear_before(first_unit(which));
    reflector.set(x, warp_, m_ - top);
  }
  /* Makes `cross` of two panels, V_2, number `which`, being x. */
  __device__ __forceinline__ void set_cross(const columns &x, int which, int top) {
    T sums[2];
    kept(which - 1, first_unit(which)).multiply(sums, x, kept_type::v_scale, warp_, m_ - top);
    team_.sum(sums);
    if (warp_ % P > 0) return;
    T product[2] = {-conj(sums[0]), -conj(sums[1])};
    if constexpr (merges) {
      const int g = columns::column(), q = columns::lane();
      const T(&t)[N][N] = s.t[which - 1];
      square_sum<T> left, both;
      left.add({split(conj(t[g][2 * q])), split(conj(t[g][2 * q + 1]))},
               {split(product[0]), split(product[1])});
      left.get(product);
      both.add({split(product[0]), split(product[1])}, right_operand(s.t[which]).v);
      both.get(product);
      write_two(&s.cross[which / 2][g][2 * q], {conj(product[0]), conj(product[1])});
      if (P == 1) warp_sync(); /* of more warps, a barrier of sum() stands before its use */
    } else {
      write_two(&s.cross[which / 2][0][0] + 2 * lane_id(), product);
    }
  }
  /* A panel without reflectors, the second of two. */
  __device__ __forceinline__ void set_nothing(int which) const {
    if (warp_ % P == 0) {
      write_two(&s.t[which][0][0] + 2 * lane_id(), {zero<T>(), zero<T>()});
      write_two(&s.cross[which / 2][0][0] + 2 * lane_id(), {zero<T>(), zero<T>()});
    }
    kept(which, columns::units).clear_before(columns::units);
    warp_sync(); /* and what is above is settled for the warp */
  }

  /* T^H for products with W^T, of a T or what else has its form. */
  struct right {
    operand<T> v[2];
  };
  __device__ __forceinline__ static right right_operand(const T (&t)[N][N]) {
    const int g = columns::column(), q = columns::lane();
    return {{split(conj(t[2 * q][g])), split(conj(t[2 * q + 1][g]))}};
  }
  /* y := T^H w of 8 columns. */
  __device__ __forceinline__ static void transform(T (&y)[2], const T (&w)[2], const T (&t)[N][N]) {
    square_sum<T> product;
    product.add({split(w[0]), split(w[1])}, right_operand(t).v);
    product.get(y);
  }
  /* x := (I - V T^H V^H) x for 8 columns without the rows before panel `which`. */
  __device__ __forceinline__ void apply(columns &x, int which, int top) {
    const int rows = m_ - top;
    const kept_type reflector = kept(which, first_unit(which));
    T w[2], y[2];
    const int exponent = kept_exponent_of(top + N);
    reflector.multiply(w, x, exponent_scale<real>(exponent), warp_, rows);
    team_.sum(w);
    transform(y, w, s.t[which]);
    reflector.subtract(x, y, exponent_scale<real>(-exponent), warp_, rows);
  }
  /* This warp's part of T^H W of panels `which` and the next, of 16 columns: of 8 of them, and of one panel.
   */
  __device__ __forceinline__ void transform_share(int which) const {
    const int half = warp_id() % 2;
#pragma unroll
    for (int panel = 0; panel < 2; panel++) {
      if (warp_id() / 2 != panel) continue;
      T w[2], y[2];
      square_sum<T> product;
      team_.template collect<reflector_type::turns, 8>(w, 2 * half);
      product.add({split(w[0]), split(w[1])}, right_operand(panel ? s.cross[which / 2] : s.t[which]).v);
      if (panel) {
        team_.template collect<reflector_type::turns, 8>(w, 4 + 2 * half);
        product.add({split(w[0]), split(w[1])}, right_operand(s.t[which + 1]).v);
      }
      product.get(y);
      s.y[panel][half][lane_id()] = kept_type::split_y(y);
    }
  }
  /* Likewise with panels `which` and the next for 16 columns, from `col` on, with the group's rows: one sum
   * for both. */
  __device__ __forceinline__ void apply_two(columns (&x)[2], int which, int col) {
    const int rows = m_ - group_top_;
    const kept_type first = kept(which, 0), second = kept(which + 1, 0);
    T w[8];
    const int exponent[2] = {kept_exponent_of(col), kept_exponent_of(col + N)};
    if constexpr (reflector_type::turns)
      first.multiply_turned(w, second, x, group_warp_, rows);
    else
      first.multiply(w, second, x, {exponent_scale<real>(exponent[0]), exponent_scale<real>(exponent[1])},
                     group_warp_, rows);
    typename kept_type::split_type y[2][2];
    if constexpr (ahead) {
      team_.template offer<reflector_type::turns>(w);
      team_.sync_block();
      transform_share(which);
      team_.sync_block();
#pragma unroll
      for (int i = 0; i < 4; i++) y[i / 2][i % 2] = s.y[i / 2][i % 2][lane_id()];
    } else {
      team_.template sum<reflector_type::turns>(w);
      const operand<T> w1[4] = {split(w[0]), split(w[1]), split(w[2]), split(w[3])};
      T y1[4] = {}, y2[4] = {}, w2[4] = {w[4], w[5], w[6], w[7]};
      multiply_add(y1, w1, right_operand(s.t[which]).v);
      if constexpr (merges) {
        multiply_add(y2, w1, right_operand(s.cross[which / 2]).v);
      } else {
        T cross[2];
        read_two(cross, &s.cross[which / 2][0][0] + 2 * lane_id());
        multiply_add(w2, {split(y1[0]), split(y1[1]), split(y1[2]), split(y1[3])},
                     {split(cross[0]), split(cross[1])});
      }
      multiply_add(y2, {split(w2[0]), split(w2[1]), split(w2[2]), split(w2[3])},
                   right_operand(s.t[which + 1]).v);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        y[0][h] = kept_type::split_y({y1[2 * h], y1[2 * h + 1]});
        y[1][h] = kept_type::split_y({y2[2 * h], y2[2 * h + 1]});
      }
    }
    first.subtract(x, y, second, {exponent_scale<real>(-exponent[0]), exponent_scale<real>(-exponent[1])},
                   group_warp_, rows);
  }

  /* Updates the columns from `first` up to `end` with the group's panels, from the last ones back, so that
   * those that stay come last: if there are `more` panels, the first 16 of these columns come out in x,
   * without the rows that are done. */
  __device__ __forceinline__ void update_trailing(columns (&x)[2], int first, int end, bool more) {
    if (ahead && P <= 4) team_.sync_block(); /* the last sum has been read */
#pragma unroll 1
    for (int col = last_columns(first, end); col >= first; col -= 2 * N) {
      finish_ahead(x, col);
      start_ahead(col - 2 * N, first);
      if (!ahead && col > first && thread_id() < 2 * N) prefetch(col - 1 - thread_id());
      if (group_top_ == 0) {
        bring_into_range(x, col);
        if (in_fp16) team_.sync_block();
      }
#pragma unroll 1
      for (int p = 0; p < panels_; p += 2) apply_two(x, p, col);
      int row = group_top_, warp = group_warp_;
      if (more && col == first) {
#pragma unroll 1
        for (int p = 0; p < panels_; p++) {
#pragma unroll
          for (int i = 0; i < 2; i++) leave_tile(x[i], warp, row, col + N * i);
          row += N;
          warp = before(warp);
        }
        warp_ = warp;
        if (!holds_two) store(x[1], warp, row, col + N);
      } else {
#pragma unroll
        for (int i = 0; i < 2; i++) store(x[i], warp, row, col + N * i);
      }
    }
  }

  /* Takes the scales out of R; a small entry of its diagonal may become zero. */
  __device__ void unscale(int k) {
    for (int j = warp_id(); j < n_; j += P) {
      real back = exponent_scale<real>(-range_exponent(j));
      for (int i = lane_id(); i <= j && i < m_ && back != 1; i += warp_lanes)
        a_[i + j * ld_] = scaled(a_[i + j * ld_], back);
    }
    team_.sync_block();
    int found = -1, zero_column = 0;
    for (int j = 0; j < k && found < 0; j += warp_lanes) {
      int i = j + lane_id();
      found = first_lane(i < k && is_zero(a_[i + i * ld_]));
      zero_column = found < 0 ? 0 : j + found + 1;
    }
    if (thread_id() == 0) s.zero_column = zero_column;
  }

  storage &s;
  team_type team_;
  T *a_;
  int64_t ld_;
  int m_, n_;
  int warp_;                            /* counted from the one that has row `top` */
  int panels_, group_top_, group_warp_; /* of the group: how many, the first one's row and `warp_` */
  bool packs_, positive_;
  T tau_, v_scale_; /* of this lane's column in the panel */
  bool finite_ = true, scaled_ = false;
  int n_of_a_; /* JOINED: A's columns; n_ counts those behind them too */
  joined_columns<T> others_;
  bool others_pack_;
};

} // namespace bqr

#endif
