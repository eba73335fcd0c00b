/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of 8 columns as fragments (common/simt/fragment.cuh) on matrix units: how they are factored, and
 * their reflectors kept in shared memory, applied to 8 or 16 other columns and made columns of Q. Their
 * reflectors come from Gram matrices, see gram_panel.cuh; T of V^H V as in xLARFT; columns in range as in
 * common/panel/columns.cuh. */
#ifndef BQR_KERNELS_COMMON_PANEL_FRAGMENT_PANEL_CUH
#define BQR_KERNELS_COMMON_PANEL_FRAGMENT_PANEL_CUH

#include "gram_panel.cuh"
#include "common/matrix/member.cuh"
#include "common/simt/mma_fragment.cuh"
#include "common/simt/team.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

/* Where the tiles of all panels' reflectors lie in shared memory: those of panel p from its first row on, in
 * twos for each of W warps, panel by panel. */
template <class T, int W> class panel_tiles {
  static constexpr int step = 2 * W, elements = panel_width * panel_width; /* of a tile */

public:
  /* Of k reflectors with m rows. */
  BQR_INLINE static size_t bytes(int m, int k) {
    return k > 0 ? elements * sizeof(T) * static_cast<size_t>(before(tiles(m), panels(k))) : 0;
  }
  BQR_INLINE static int panels(int k) { return (k + panel_width - 1) / panel_width; }

  __device__ __forceinline__ panel_tiles(T *data, int m) : data_(data), tiles_(tiles(m)) {}

  /* What a warp, counted from the one that has the panel's first row, has of panel p. */
  __device__ __forceinline__ T *at(int p, int warp) const {
    const int each = 2 * ((tiles_ - p - 1) / step + 1);
    return data_ + elements * (before(tiles_, p) + (W == 1 ? 0 : warp * each));
  }

private:
  BQR_INLINE static int tiles(int m) { return (m - 1) / panel_width + 1; }
  BQR_INLINE static int before(int tiles, int p) { return rounded_sum(tiles) - rounded_sum(tiles - p); }
  /* Sum of i = 1 .. n, each rounded up to a multiple of `step`. */
  BQR_INLINE static int rounded_sum(int n) {
    const int whole = n / step, rest = n % step;
    return step * (whole * (whole + 1) / 2 * step + rest * (whole + 1));
  }

  T *data_;
  int tiles_; /* of a column */
};

/* One warp's part of a panel's reflectors, in tiles in shared memory: V, and on and above the diagonal of its
 * first tile, which is warp 0's, T. Units come in twos: rows past the last are zeros. Columns may start with
 * units before the panel's first row. */
template <class T, int R, int W> class panel_reflectors {
  using columns = fragment<T, R, W>;

public:
  /* first: the unit that has the panel's first row, where there is one warp; else 0. */
  __device__ __forceinline__ explicit panel_reflectors(T *tiles, int first = 0)
      : tiles_(tiles - 64 * first), first_(first) {}

  /* w[2 h + s]: W^T(column g of x[h], reflector 2 q + s), W = V^H x, from this warp's rows; h < K. */
  template <int K>
  __device__ __forceinline__ void multiply(T (&w)[4], const columns *x, int warp, int rows) const {
    const int g = columns::column(), q = columns::lane();
    T part[2][4] = {}; /* independent sums: the units' latency is long */
    each_active(warp, rows, [&](int u) {
      T v[2];
#pragma unroll
      for (int e = 0; e < 2; e++) {
        v[e] = tile(u)[tile_place(2 * q + e, g)];
        if (u < first_ || (u == first_ && warp == 0 && 2 * q + e <= g))
          v[e] = make<T>(u == first_ && 2 * q + e == g);
      }
      operand<T> a[4] = {};
#pragma unroll
      for (int i = 0; i < 2 * K; i++) a[i] = split(x[i / 2].x[u][i % 2]);
      multiply_add(part[u % 2], a, {conj(split(v[0])), conj(split(v[1]))});
    });
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = part[0][i] + part[1][i];
  }

  /* x -= V y, y as multiply()'s w. */
  template <int K>
  __device__ __forceinline__ void subtract(columns *x, const T (&y)[4], int warp, int rows) const {
    const int g = columns::column(), q = columns::lane();
    const operand<T> minus_y[4] = {negated(split(y[0])), negated(split(y[1])), negated(split(y[2])),
                                   negated(split(y[3]))};
    each_active(warp, rows, [&](int u) {
      T v[2], c[4] = {};
      read_two(v, tile(u) + tile_place(g, 2 * q));
#pragma unroll
      for (int e = 0; e < 2; e++)
        if (u < first_ || (u == first_ && warp == 0 && 2 * q + e >= g))
          v[e] = make<T>(u == first_ && 2 * q + e == g);

#pragma unroll
      for (int i = 0; i < 2 * K; i++) c[i] = x[i / 2].x[u][i % 2];
      multiply_add(c, minus_y, {split(v[0]), split(v[1])});
#pragma unroll
      for (int i = 0; i < 2 * K; i++) x[i / 2].x[u][i % 2] = c[i];
    });
  }

  /* x := x c, c[s] = C(2 q + s, g), x as it was when it was set. */
  __device__ __forceinline__ void recombine(columns &x, const T (&c)[2], int warp, int rows) const {
    const operand<T> a[2] = {split(c[0]), split(c[1])};
    each_active(warp, rows, [&](int u) {
      T v[2];
      read_two(v, tile(u) + tile_place(columns::column(), 2 * columns::lane()));
      square_sum<T> product;
      product.add(a, {split(v[0]), split(v[1])});
      product.get(x.x[u]);
    });
  }

  /* Keeps x. */
  __device__ __forceinline__ void set(const columns &x, int warp, int rows) const {
    warp_sync();
    each_active(warp, rows, [&](int u) {
#pragma unroll
      for (int e = 0; e < 2; e++) tile(u)[tile_place(2 * columns::lane() + e, columns::column())] = x.x[u][e];
    });
    warp_sync();
  }

private:
  template <class F> __device__ __forceinline__ void each_active(int warp, int rows, F &&f) const {
#pragma unroll
    for (int u = 0; u < columns::units; u += 2)
      if (u + 1 >= first_ && columns::has_rows(warp, u, rows)) {
        f(u);
        if (first_ == 0 || columns::has_rows(warp, u + 1, rows)) f(u + 1);
      }
  }

  __device__ __forceinline__ T *tile(int u) const { return tiles_ + 64 * u; }

  T *tiles_;
  int first_;
};

/* T of V^H V, by one warp. z, all_tau: see make_factor_row(). */
template <class T>
__device__ __forceinline__ void make_triangular_factor(T *factor, const T (&z)[panel_width][panel_width],
                                                       const T (&all_tau)[panel_width]) {
  const int i = lane_id() / 4;
  warp_sync();
  T t[panel_width] = {};
  make_factor_row(t, i, z, all_tau);
#pragma unroll
  for (int k = 0; k < panel_width; k++)
    if (k >= i) factor[tile_place(i, k)] = t[k];
}

/* x := (I - V T V^H) x, or with T^H, for 8 K columns with `rows` rows from the panel's first on, by a team of
 * W warps. tiles: this warp's; factor: the first tile. */
template <int K, bool ADJOINT, int R, int W, class T, class TEAM>
__device__ __forceinline__ void apply_reflectors(TEAM &&team, fragment<T, R, W> *x, T *tiles, const T *factor,
                                                 int warp, int rows, int first = 0) {
  const int g = lane_id() / 4, q = lane_id() % 4;
  const panel_reflectors<T, R, W> reflectors(tiles, first);
  T w[4], y[4] = {}, t[2];
  reflectors.template multiply<K>(w, x, warp, rows);
  team.sum(w);
#pragma unroll
  for (int e = 0; e < 2; e++) {
    const int row = ADJOINT ? 2 * q + e : g, column = ADJOINT ? g : 2 * q + e;
    t[e] = row > column ? zero<T>() : factor[tile_place(row, column)];
    if (ADJOINT) t[e] = conj(t[e]);
  }
  multiply_add(y, {split(w[0]), split(w[1]), split(w[2]), split(w[3])}, {split(t[0]), split(t[1])});
  reflectors.template subtract<K>(x, y, warp, rows);
}

/* Columns from `col` on, 8 K of them, of the m x n matrix Q of k reflectors, by a team of W warps; to q,
 * packs: fragment::packs() of it. They start as the identity's and take the reflectors from the last one that
 * changes them back to the first (xORG2R), which grows them upwards by a tile of 8 rows for each panel. */
template <class T, int R, int W, int K, class TEAM>
__device__ __forceinline__ void form_columns(TEAM &&team, const panel_tiles<T, W> &v, int m, int n, int k,
                                             int col, T *q, int64_t ldq, bool packs) {
  constexpr int N = panel_width;
  using columns = fragment<T, R, W>;
  columns x[K];
  int top = least(col + N * (K - 1), (n - 1) / N * N),
      warp = W == 1 ? 0 : (team.warp() + W - top / N % W) % W;
#pragma unroll
  for (int i = 0; i < K; i++) x[i].each([](T &y) { y = zero<T>(); });
#pragma unroll 1
  for (;;) {
#pragma unroll
    for (int i = 0; i < K; i++)
      if (warp == 0 && top == col + N * i) {
#pragma unroll
        for (int e = 0; e < 2; e++) x[i].x[0][e] = make<T>(2 * columns::lane() + e == columns::column());
      }
    if (top < k)
      apply_reflectors<K, false, R, W>(team, x, v.at(top / N, warp), v.at(top / N, 0), warp, m - top);
    if (top == 0) break;
    top -= N;
    if (W > 1) warp = warp + 1 < W ? warp + 1 : 0;
#pragma unroll
    for (int i = 0; i < K; i++) x[i].add_tile(warp);
  }
#pragma unroll
  for (int i = 0; i < K; i++) x[i].store(warp, q + (col + N * i) * ldq, ldq, m, n - col - N * i, packs);
}

/* The work of a block of W warps on the panels of a member of m rows. */
template <class T, int R, int W> class panel_team {
protected:
  static constexpr int N = panel_width;
  using real = real_t<T>;
  using team_type = team<T, W, 1>;
  using columns = fragment<T, R, W>;
  using reflectors_type = panel_reflectors<T, R, W>;

  struct storage {
    typename team_type::storage team;
    alignas(16) T c[2 * warp_lanes];
    alignas(16) T z[N][N]; /* z[i][k] = v_i^H v_k, i < k */
    T tau[N];
    pivot_column<T> pivot[2];
    int done, zero_column;
    uint32_t magnitude[2 * N];
  };

  /* positive: R's diagonal is not negative. */
  __device__ __forceinline__ panel_team(storage &storage, int m, bool positive)
      : s(storage), team_(s.team), m_(broadcast(m, 0)), positive_(positive), warp_(team_.warp()) {
    if (thread_id() == 0) s.zero_column = 0;
  }

  __device__ __forceinline__ static int before(int warp) { return warp > 0 ? warp - 1 : W - 1; }
  __device__ __forceinline__ static int after(int warp) { return warp + 1 < W ? warp + 1 : 0; }

  /* Looks at 16 columns when they are first touched; those out of range get their scale, whose exponent is
   * column_exponent<T>(s.magnitude[.]), and the answer is yes: a barrier must then come before the next 16.
   */
  __device__ __forceinline__ bool bring_into_range(columns (&x)[2]) {
    bool outside = false;
#pragma unroll
    for (int i = 0; i < 2; i++)
      x[i].each([&](T &y) { outside |= !in_column_range(y); }); /* cheaper, but zeros too are outside */
    if (group_any(outside)) {
      outside = false;
#pragma unroll
      for (int i = 0; i < 2; i++) x[i].each([&](T &y) { outside |= out_of_range(y); });
    }
    outside = team_.any(outside);
    if (outside) scale_columns(x);
    return outside;
  }

  /* The panel x whose first row is `top`, by `count` reflectors, V below R in x. tiles: what this warp has of
   * them. back: what R's column of this lane will be multiplied by. STRAIGHT: no loop over columns, which
   * pays where a multiprocessor has few members: others' instructions are then not driven from its caches. */
  template <bool STRAIGHT = false>
  __device__ __forceinline__ void factor_panel(columns &x, T *tiles, int top, int count, real back) {
    const int rows = m_ - top;
    const reflectors_type reflectors(tiles);
    T head[2] = {x.x[0][0], x.x[0][1]};
    tau_ = v_scale_ = zero<T>();
    int done = 0;
#pragma unroll 1
    do {
      reflectors.set(x, warp_, rows);
      T y[2], c[2];
      block_reflector<T, R, W>::gram(y, x, warp_, rows);
      team_.sum(y);
      if (warp_ == 0) {
        done = make_reflectors<columns, STRAIGHT>(s, head, y, c, done, count, positive_, tau_, v_scale_);
        if (done == count)
          finish_reflectors<columns>(s, head, c, top, count, tau_, v_scale_,
                                     [=](T diagonal) { return scaled(diagonal, back); });
        if (W > 1) {
          write_two(s.c + 2 * lane_id(), c);
          if (lane_id() == 0) s.done = done;
        }
      }
      if constexpr (W > 1) {
        team_.sync_block();
        read_two(c, s.c + 2 * lane_id());
        done = broadcast(s.done, 0);
      }
      reflectors.recombine(x, c, warp_, rows);
      if (warp_ == 0) {
        x.x[0][0] = head[0];
        x.x[0][1] = head[1];
      }
    } while (done < count);
  }

  /* Keeps V and T of the factored panel x. */
  __device__ __forceinline__ void set_reflectors(const columns &x, T *tiles, int top) {
    reflectors_type(tiles).set(x, warp_, m_ - top);
    if (warp_ == 0) {
      make_triangular_factor(tiles, s.z, s.tau);
      warp_sync(); /* the other warps have a barrier of sum() before they look at it */
    }
  }

  /* apply_reflectors() by this team. factor: the first tile. */
  template <int K, bool ADJOINT>
  __device__ __forceinline__ void apply(columns *x, T *tiles, const T *factor, int top) {
    apply_reflectors<K, ADJOINT, R, W>(team_, x, tiles, factor, warp_, m_ - top);
  }

  storage &s;
  team_type team_;
  int m_;
  bool positive_;
  int warp_;        /* counted from the one that has row `top` */
  T tau_, v_scale_; /* of this lane's column in the panel */
  bool finite_ = true;

private:
  __device__ __forceinline__ void scale_columns(columns (&x)[2]) {
    if (thread_id() < 2 * N) s.magnitude[thread_id()] = 0;
    team_.sync();
    for (int i = 0; i < 2; i++) {
      uint32_t u = 0;
      x[i].each([&](T &y) { u = greater(u, magnitude(y)); });
      shared_max(&s.magnitude[i * N + columns::column()], u);
    }
    team_.sync();
#pragma unroll
    for (int i = 0; i < 2; i++) {
      real scale = exponent_scale<real>(column_exponent<T>(s.magnitude[i * N + columns::column()]));
      x[i].each([&](T &y) { y = scaled(y, scale); });
    }
    for (int c = 0; c < 2 * N; c++) finite_ &= magnitude_finite<T>(s.magnitude[c]);
  }
};

} // namespace bqr

#endif
