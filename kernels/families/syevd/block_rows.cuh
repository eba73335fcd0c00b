/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of a Hermitian matrix of up to N = 32 C rows to tridiagonal form, as tridiagonal.cuh does it, by
 * a block that holds both triangles in registers: warp w of W has rows w, w + W ..., a lane of it columns
 * lane, lane + 32 ...; a smaller matrix lies in the last of the N rows and columns.
 *
 * A step has two barriers. Before the first, all warps update their rows by the step before and multiply them
 * by the column x, as sums over rows, for which no lanes have to exchange anything. Before the second, one
 * warp adds the warps' sums up and makes v, w and the next x of them. In blocks of 12 warps, of which a
 * multiprocessor has one, this is a warp without rows, which makes the reflector while the others multiply.
 */
#ifndef BQR_KERNELS_FAMILIES_SYEVD_BLOCK_ROWS_CUH
#define BQR_KERNELS_FAMILIES_SYEVD_BLOCK_ROWS_CUH

#include "common/eigen/step.cuh"
#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"
#include "common/simt/block.cuh"

namespace bqr {

template <class T, int C, int WARPS> class block_rows {
  using R = real_t<T>;
  static constexpr int W = WARPS == 12 ? 11 : WARPS, maker = WARPS - 1;
  static constexpr int N = warp_lanes * C, rows = (N + W - 1) / W, ld = N + 1;
  /* Rows whose entries of a step are read together, as far as there are registers. */
  static constexpr int at_once = sizeof(T) > 8 ? 1 : rows *C * sizeof(T) > 256 ? 2 : 4;
  struct alignas(2 * sizeof(T)) step_entry {
    T v, w;
  };

public:
  static constexpr int registers =
      rows * C * static_cast<int>(sizeof(T)) / 4; /* that a lane's entries take */
  union storage {
    T square[N * ld]; /* the matrix, on its way to registers */
    struct {
      step_entry entries[N]; /* of the last step */
      T x[N];                /* the column of this step */
      T row[N];              /* row k + 1 */
      T part[W][N];          /* A x, of each warp's rows */
    } step;
  };

  __device__ block_rows(storage &shared, int n)
      : shared_(shared), n_(n), before_(N - n), warp_(warp_id()), lane_(lane_id()) {}

  /* The triangle that is read. Returns the largest magnitude of this thread's, see magnitude_or_one(). */
  __device__ __forceinline__ uint32_t load(const matrix_view<T> &a, bool lower) {
    uint32_t u = 0;
    each([&](T &z, int i, int j) {
      z = zero<T>();
      if (there(i, j, lower)) z = *a.at(j - before_, i - before_);
      if (i == j) z = make<T>(real_part(z));
    });
    each([&](T &z, int, int) { u = greater(u, magnitude_or_one(z)); });
    return u;
  }

  /* After load(): both triangles, times 2^exponent, to tridiagonal form. d: n numbers, e: n - 1. v of H(k)
   * goes to column k of `to`, rows k + 1 on, and tau above it, unless there is nothing to write to. */
  __device__ void run(bool lower, int exponent, R *d, R *e, const matrix_view<T> &to) {
    const R half = times_power(R(1), exponent / 2), rest = times_power(R(1), exponent - exponent / 2);
    each([&](T &z, int i, int j) {
      if (!there(i, j, lower)) return;
      const T x = scaled(scaled(z, half), rest);
      shared_.square[j + i * ld] = x;
      if (i != j) shared_.square[i + j * ld] = conj(x);
    });
    block_sync();
    each([&](T &z, int i, int j) {
      z = i >= before_ && i < N && j >= before_ ? shared_.square[i + j * ld] : zero<T>();
    });
    if (warp_ == maker) {
#pragma unroll
      for (int c = 0; c < C; c++)
        x_[c] = column(c) > before_ ? shared_.square[column(c) + before_ * ld] : zero<T>();
      if (lane_ == 0) d[0] = real_part(shared_.square[before_ * (ld + 1)]);
    }
    block_sync();
    if (warp_ == maker) {
#pragma unroll
      for (int c = 0; c < C; c++) {
        shared_.step.entries[column(c)] = {zero<T>(), zero<T>()};
        shared_.step.x[column(c)] = x_[c];
      }
    }
    block_sync();
    d_ = d;
    e_ = e;
    static_for<C>([&](auto part) {
      constexpr int P = decltype(part)::value, begin = P * warp_lanes - 1;
      for (int k = largest(before_, begin); k < least(begin + warp_lanes, N - 1); k++) {
        if (warp_ == maker) make_reflector<P>(k);
        if (warp_ < W) pass<P>(k);
        block_sync();
        if (warp_ == maker) finish<P>(k, to);
        block_sync();
      }
    });
  }

private:
  __device__ __forceinline__ int column(int c) const { return lane_ + c * warp_lanes; }
  template <class F> __device__ __forceinline__ void each(F &&f) {
    if (warp_ >= W) return;
#pragma unroll
    for (int r = 0; r < rows; r++)
#pragma unroll
      for (int c = 0; c < C; c++) f(a_[r][c], W * r + warp_, column(c));
  }
  /* Whether this is where (j, i) of the matrix is read from. */
  __device__ __forceinline__ bool there(int i, int j, bool lower) const {
    return i >= before_ && i < N && j >= before_ && (lower ? j >= i : j <= i);
  }

  /* Column k's reflector. P: registers c from P on have columns after k. */
  template <int P> __device__ __forceinline__ void make_reflector(int k) {
    const int first = k + 1;
    R rest = 0;
#pragma unroll
    for (int c = P; c < C; c++)
      if (column(c) != first) rest = abs2_add(x_[c], rest);
    rest = group_sum(rest);
    const T alpha = broadcast(x_[P], first % warp_lanes);
    h_ = {zero<T>(), R(0), R(1), zero<T>()};
    if (abs2_add(alpha, rest) > least2_of_step<R>) h_ = larfg(alpha, rest, R(1), false);
#pragma unroll
    for (int c = P; c < C; c++) v_[c] = column(c) == first ? one<T>() : x_[c] * h_.scale; /* x is 0 before */
  }

  template <int P> __device__ __forceinline__ void pass(int k) {
    auto &s = shared_.step;
    step_entry other[C];
    T y[C];
#pragma unroll
    for (int c = P; c < C; c++) {
      other[c] = s.entries[column(c)];
      y[c] = zero<T>();
    }
#pragma unroll
    for (int begin = P * warp_lanes / W; begin < rows; begin += at_once) {
      step_entry mine[at_once];
      T x[at_once];
#pragma unroll
      for (int q = 0; q < at_once; q++)
        if (begin + q < rows) {
          const int i = least(W * (begin + q) + warp_, N - 1);
          mine[q] = s.entries[i];
          x[q] = s.x[i];
        }
#pragma unroll
      for (int q = 0; q < at_once; q++) {
        const int i = W * (begin + q) + warp_;
        if (begin + q >= rows || i <= k || i >= N) continue;
        T(&row)[C] = a_[least(begin + q, rows - 1)];
#pragma unroll
        for (int c = P; c < C; c++) {
          row[c] = updated(row[c], mine[q].v, mine[q].w, other[c].v, other[c].w);
          y[c] = cmadd(row[c], x[q], y[c]);
        }
        if (i == k + 1) {
#pragma unroll
          for (int c = P; c < C; c++) s.row[column(c)] = row[c];
        }
      }
    }
#pragma unroll
    for (int c = P; c < C; c++) s.part[warp_][column(c)] = y[c];
  }

  /* v and w of step k, and the next column. */
  template <int P> __device__ __forceinline__ void finish(int k, const matrix_view<T> &to) {
    auto &s = shared_.step;
    const int first = k + 1, source = first % warp_lanes, place = k - before_;
    T q[C], a[C], w[C];
    R energy = 0; /* x^H A x */
#pragma unroll
    for (int c = P; c < C; c++) {
      a[c] = conj(s.row[column(c)]);
      T sum[2] = {zero<T>(), zero<T>()};
#pragma unroll
      for (int i = 0; i < W; i++) sum[i % 2] = sum[i % 2] + s.part[i][column(c)];
      q[c] = sum[0] + sum[1];
      energy += real_part(cmadd(x_[c], q[c], zero<T>()));
    }
    energy = group_sum(energy);
    const R q_first = broadcast(real_part(q[P]), source), a_first = broadcast(real_part(a[P]), source);
    const R most =
                fused(h_.beta, fused(h_.beta, a_first, -2 * q_first), energy) * abs2(h_.scale), /* v^H A v */
        half = R(-0.5) * abs2(h_.tau) * most;
#pragma unroll
    for (int c = P; c < C; c++) {
      const T av = h_.scale * madd(make<T>(-h_.beta), a[c], q[c]);
      w[c] = column(c) > k ? madd(h_.tau, av, scaled(v_[c], half)) : zero<T>();
    }
    const T w_first = broadcast(w[P], source);
#pragma unroll
    for (int c = P; c < C; c++) {
      const int j = column(c);
      const T next = updated(a[c], v_[c], w[c], one<T>(), w_first);
      x_[c] = j > first ? next : zero<T>();
      s.entries[j] = {v_[c], w[c]};
      s.x[j] = x_[c];
      if (to.data && j > k) *to.at(j - before_, place) = v_[c];
      if (j == first) {
        d_[place + 1] = real_part(next);
        e_[place] = h_.beta;
        if (to.data) *to.at(place, place) = h_.tau;
      }
    }
  }

  storage &shared_;
  int n_, before_, warp_, lane_;
  T a_[rows][C];
  T x_[C], v_[C]; /* of the warp that makes the reflectors */
  reflector<T> h_;
  R *d_, *e_;
};

} // namespace bqr

#endif
