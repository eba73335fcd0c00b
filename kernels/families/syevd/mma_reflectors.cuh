/* SPDX-License-Identifier: BSD-3-Clause */
/* Z := H(0) H(1) ... H(n-2) Z on matrix units, n <= 8 U + 1, by a block: of the reflectors that
 * tridiagonal.cuh leaves, 8 at a time, as I - V T V^H, V and T being in shared memory, all of them or in two
 * rounds, and a warp for 8 H columns of Z at a time, which it holds in registers.
 *
 * v(k) begins with 1 in row k + 1. Rows are counted from row 1 here, so that a V begins with a unit lower
 * triangle in a tile of 8 x 8. Row 0 of Z stays as it is. Products are those of common/simt/mma_fragment.cuh.
 */
#ifndef BQR_KERNELS_FAMILIES_SYEVD_MMA_REFLECTORS_CUH
#define BQR_KERNELS_FAMILIES_SYEVD_MMA_REFLECTORS_CUH

#include "common/eigen/vectors.cuh"
#include "common/matrix/view.cuh"
#include "common/simt/mma_fragment.cuh"

namespace bqr {

template <class T, int U> class mma_reflectors {
  using R = real_t<T>;
  using columns = unit_fragment<T, U, 1>;
  using turned = turned_rows<T>;
  static constexpr int N = 8; /* reflectors of a V */

public:
  static constexpr int H = 2 * sizeof(columns) <= 512 ? 2 : 1;
  static constexpr int each = N * H; /* columns of a warp */
  static constexpr int registers = H * static_cast<int>(sizeof(columns)) / 4;
  /* Warps of a block, which have registers for as many columns at a time. */
  static constexpr int warps = [] {
    int number = U / H;
    while (number * warp_lanes * (registers + 64) > 65536) number /= 2;
    return number;
  }();

private:
  static constexpr int units_of(int begin, int end) { return (end - begin) * (2 * U - begin - end + 1) / 2; }
  /* The V from this number on are in shared memory first, then those before it. */
  static constexpr int second = [] {
    constexpr int most = 196608 / (turned::unit * static_cast<int>(sizeof(T)));
    int p = 0;
    if (units_of(0, U) > most)
      while (units_of(0, p + 1) <= units_of(p + 1, U)) p++;
    return p;
  }();
  static constexpr int kept = units_of(second, U) > units_of(0, second) ? units_of(second, U)
                                                                        : units_of(0, second);

public:
  static constexpr int rounds = second > 0 ? 2 : 1;

  struct storage {
    alignas(16) T v[kept * turned::unit];
    alignas(16) T t[U][N * N]; /* T by rows, V^H V before */
  };

  __device__ mma_reflectors(storage &shared, int n) : s(shared), rows_(n - 1), panels_((rows_ + N - 1) / N) {}

  /* Before a round, by all warps. a: n x n, v(k) in column k, rows k + 1 on, tau(k) above. Barriers must
   * precede and follow. */
  __device__ void prepare(const matrix_view<T> &a, int round) {
    begin_ = round == 0 ? second : 0;
    const int end = round == 0 ? panels_ : least(panels_, second);
    for (int p = begin_ + warp_id(); p < end; p += num_warps()) prepare_one(a, p);
  }

  /* A round on the columns from `from` on. z(i, j): an entry of Z. They go to `to`, where they are read from
   * in the second round. */
  template <class F>
  __device__ __forceinline__ void run(int round, int from, F &&z, const matrix_view<T> &to) {
    T first[H]; /* row 0 */
    const auto load = [&](int i, int j) { return round == 0 ? z(i, j) : *to.at(i, j); };
#pragma unroll
    for (int h = 0; h < H; h++) {
      const int j = from + N * h + columns::column();
      const bool there = j < to.cols;
      first[h] = there ? load(0, j) : zero<T>();
      each_entry(h, [&](T &x, int row) { x = there && row < rows_ ? load(row + 1, j) : zero<T>(); });
    }
    for (int p = (round == 0 ? panels_ : least(panels_, second)) - 1; p >= begin_; p--) apply(p);
#pragma unroll
    for (int h = 0; h < H; h++) {
      const int j = from + N * h + columns::column();
      sign<T> turn = {one<T>(), -1};
      if (round == rounds - 1) {
        largest_entry<T> found;
        found.add(first[h], 0);
        each_entry(h, [&](T &x, int row) { found.add(x, row + 1); });
        turn = found.template find_sign<columns::lanes>();
      }
      if (j >= to.cols) continue;
      if (columns::lane() == 0) *to.at(0, j) = turn.of(first[h], 0);
      each_entry(h, [&](T &x, int row) {
        if (row < rows_) *to.at(row + 1, j) = turn.of(x, row + 1);
      });
    }
  }

private:
  template <class F> __device__ __forceinline__ void each_entry(int h, F &&f) {
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int e = 0; e < 2; e++) f(x_[h].x[u][e], N * u + columns::row(e));
  }

  /* V number p, from its unit p on: u becomes the number of a unit. */
  __device__ __forceinline__ turned v_of(int p) const {
    return turned(s.v + (units_of(begin_, p) - p) * turned::unit);
  }
  /* f(unit) for those of V number p. */
  template <class F> __device__ __forceinline__ void each_unit(int p, F &&f) const {
#pragma unroll
    for (int u = 0; u < U; u++)
      if (u >= p && u < panels_) f(u);
  }

  __device__ __forceinline__ void prepare_one(const matrix_view<T> &a, int p) {
    const int k = N * p + columns::column();
    columns x;
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int row = N * u + columns::row(e);
        x.x[u][e] = k < rows_ && row > k && row < rows_ ? *a.at(row + 1, k)
                    : k < rows_ && row == k             ? one<T>()
                                                        : zero<T>();
      }
    square_sum<T> part[2];
    each_unit(p, [&](int u) {
      v_of(p).write(u, x.x[u]);
      const operand<T> y[2] = {split(x.x[u][0]), split(x.x[u][1])};
      part[u % 2].add(y, {conj(y[0]), conj(y[1])});
    });
    T *t = s.t[p], even[2], odd[2];
    part[0].get(even);
    part[1].get(odd);
#pragma unroll
    for (int e = 0; e < 2; e++) t[N * columns::row(e) + columns::column()] = even[e] + odd[e];
    warp_sync();
    T row[N];
    const int i = lane_id() % N;
#pragma unroll
    for (int j = 0; j < N; j++) {
      const T tau = N * p + j < rows_ ? *a.at(N * p + j, N * p + j) : zero<T>();
      T sum = zero<T>();
#pragma unroll
      for (int l = 0; l < j; l++) sum = madd(row[l], t[N * l + j], sum);
      row[j] = i == j ? tau : i < j ? -(tau * sum) : zero<T>();
    }
    warp_sync();
    if (lane_id() < N) {
#pragma unroll
      for (int j = 0; j < N; j++) t[N * i + j] = row[j];
    }
  }

  /* The columns' unit u as an operand. */
  __device__ __forceinline__ void take(operand<T> (&a)[4], int u) const {
#pragma unroll
    for (int i = 0; i < 4; i++)
      a[i] = i / 2 < H ? split(x_[i / 2 < H ? i / 2 : 0].x[u][i % 2]) : split(zero<T>());
  }

  __device__ __forceinline__ void apply(int p) {
    const turned v = v_of(p);
    T part[2][4] = {}; /* W^T, W = V^H Z */
    each_unit(p, [&](int u) {
      operand<T> a[4];
      take(a, u);
      T b[2];
      v.read_back(b, u);
      add_apart(part[u % 2], a, {conj(split(b[0])), conj(split(b[1]))});
    });
    operand<T> a[4], b[2];
    T t[2], y[4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = negated(split(part[0][i] + part[1][i]));
    read_two(t, &s.t[p][N * columns::column() + columns::row(0)]);
    b[0] = split(t[0]);
    b[1] = split(t[1]);
    add_apart(y, a, b);
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = split(y[i]);
    each_unit(p, [&](int u) {
      v.read(b, u);
      T c[4];
#pragma unroll
      for (int i = 0; i < 4; i++) c[i] = i / 2 < H ? x_[i / 2 < H ? i / 2 : 0].x[u][i % 2] : zero<T>();
      add_apart(c, a, b);
#pragma unroll
      for (int i = 0; i < 2 * H; i++) x_[i / 2].x[u][i % 2] = c[i];
    });
  }

  storage &s;
  int rows_, panels_, begin_ = 0;
  columns x_[H];
};

} // namespace bqr

#endif
