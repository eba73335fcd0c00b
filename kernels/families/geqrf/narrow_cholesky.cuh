/* SPDX-License-Identifier: BSD-3-Clause */
/* The reflectors of a panel [H; A] of N columns, H its first N rows, by one warp and from H and the products
 * G = H^H H + A^H A alone, where nothing is unusual.
 *
 * R is the Cholesky factor of G but for its rows' signs S. H - S R = L W is an LU factorization, L having a
 * unit diagonal; with C = W^-1, V is L above A C. (G. Ballard, J. Demmel et al., Reconstructing Householder
 * vectors from tall-skinny QR, 2014.) Both are eliminations of N steps, in which all rows take a multiple of
 * row k. Half of the lanes make R, one of its columns each; the others L and C, two steps later, for row k
 * takes part in it with row k of R, which has been on its way for a step then. A step waits for little more
 * than a reciprocal, because the next pivot is made first of what the others are before the step.
 *
 * What this loses in accuracy is cancellation: in a column's squared norm, and in a column of A C. See
 * families/geqrf/narrow_gram.cuh. */
#ifndef BQR_KERNELS_FAMILIES_GEQRF_NARROW_CHOLESKY_CUH
#define BQR_KERNELS_FAMILIES_GEQRF_NARROW_CHOLESKY_CUH

#include "common/panel/columns.cuh"
#include "common/simt/fragment.cuh"
#include "common/simt/tile.cuh"
#include "common/ptx/approximate.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

template <class T, int N> class cholesky_panel {
  using real = real_t<T>;
  using piece = pack<T>;
  enum : int { R, LC, sides };
  static constexpr int late = 2, pieces = (N + 1 + piece::size - 1) / piece::size,
                       length = pieces * piece::size;

public:
  struct storage {
    struct {
      piece column[sides][pieces];  /* the pivot's, and its size */
      alignas(16) T next[sides][2]; /* of the next column: rows k and k + 1 */
      T row[sides][N];              /* zeros; row k - 1 of R without its sign */
    } step[2];                      /* used in turn */
  };

  __device__ __forceinline__ explicit cholesky_panel(storage &s)
      : s(s), side_(lane_id() / N % sides), id_(lane_id() < sides * N ? column() + late * side_ : -1) {}

  /* positive: S = I, and pivots may be next to nothing. x: H, columns `stride` elements apart; it becomes R
   * above V. small: G, with columns `small_stride` elements apart, of a complex matrix perhaps only its real
   * part and, in place of the imaginary part, what this is minus the transpose of (PARTS); it becomes C. All
   * there is from column `count` on is zero. False: the reflectors are not accurate. */
  template <bool PARTS>
  __device__ __forceinline__ bool make(T *x, int stride, T *small, int small_stride, int count,
                                       bool positive) {
    T *const x_column = x + column() * stride, *const small_column = small + column() * small_stride;
    const real own2 = real_part(small_column[column()]);
    start<PARTS>(x_column, small, small_stride, count);
    size_ = own2 * (1 / most_lost);
    static_for<N + late>([&](auto k) { step<decltype(k)::value>(x_column, positive); });

    const bool mine = side_ == LC && id_ >= 0, in = column() < count;
    const T scale = in ? fast_recip(own_pivot_) : zero<T>();
    if (side_ == R && id_ >= 0) {
#pragma unroll
      for (int i = 0; i < N; i++) small_column[i] = zero<T>();
    }
    warp_sync();
    const real beta = real_part(x_column[column()]), norm2 = beta * beta;
    tau_ = scaled(own_pivot_, -fast_recip(beta));
    if (mine) {
      small_column[column()] = scale;
#pragma unroll
      for (int i = 0; i < N; i++) {
        const T y = x_[(i + late) % N] * scale;
        if (i < column()) small_column[i] = y;
        if (i > column()) x_column[i] = y;
      }
    }
    const bool near_zero = positive && !(norm2 < least_pivot * abs2(own_pivot_));
    return !group_any(mine && in && (near_zero || !(size_ <= norm2 && own2 * (1 / most_cancelled) <= norm2)));
  }

  /* Of column(); in lanes of which has_tau() says so. */
  __device__ __forceinline__ T tau() const { return tau_; }
  __device__ __forceinline__ bool has_tau() const { return side_ == LC && id_ >= 0; }
  __device__ __forceinline__ static int column() { return lane_id() % N; }

private:
  /* How much larger than a column's squared norm may be: what it was, and that of what A C is a sum of. */
  static constexpr real most_cancelled = 4, most_lost = 32;
  /* And than that of a pivot, with S = I. */
  static constexpr real least_pivot = 16;

  template <bool PARTS>
  __device__ __forceinline__ void start(const T *x_column, const T *small, int small_stride, int count) {
    const int g = column();
#pragma unroll
    for (int i = 0; i < N; i++)
      x_[i] = side_ == LC ? x_column[(i + N - late) % N] : small[g * small_stride + i];
    if (side_ == R) {
#pragma unroll
      for (int i = 0; i < N; i++) {
        if constexpr (PARTS) x_[i].im -= small[i * small_stride + g].im;
        if (i == g && g >= count) x_[i] = one<T>(); /* no reflectors are wanted from there on */
      }
    }
    pivot_ = side_ == LC ? one<T>() : bqr::make<T>(real_part(small[0]));
    if (lane_id() < N) s.step[0].row[R][lane_id()] = s.step[1].row[R][lane_id()] = zero<T>();
    if (lane_id() < pieces) s.step[0].column[LC][lane_id()] = s.step[1].column[LC][lane_id()] = {};
    r_ = row_ = row_next_ = own_pivot_ = zero<T>();
    corner_ = 0;
  }

  /* Row K of R, row K - late of L and C. */
  template <int K> __device__ __forceinline__ void step(T *x_column, bool positive) {
    constexpr int at = K % N, below = (K + 1) % N; /* the registers of this row and the next one */
    auto &pivot = s.step[K & 1];
    T next[2] = {}, y[length] = {};
    if constexpr (K < N + late - 1) {
      if (id_ == K) write(pivot.column[side_]);
      if (id_ == K + 1) write_two(pivot.next[side_], {x_[at], x_[below]});
    }
    if constexpr (K > 0 && K <= N)
      if (side_ == R && id_ >= 0) pivot.row[LC][column()] = r_;
    warp_sync();
    const T row = row_, row_next = row_next_;
    const real corner = corner_;
    if constexpr (K < N + late - 1) {
      read_two(next, pivot.next[side_]);
      read(y, pivot.column[side_]);
    }
    if constexpr (K > 0 && K <= N) {
      corner_ = real_part(pivot.row[side_][K - 1]);
      row_ = pivot.row[side_][column()];
      if constexpr (K < N) row_next_ = pivot.row[side_][K];
    }

    /* 1 / the pivot is q guess (1 + e). */
    const real turned = positive ? real(-1) : copysign(real(1), real_part(pivot_));
    pivot_ = pivot_ + bqr::make<T>(turned * corner);
    if (id_ == K) own_pivot_ = pivot_;
    if constexpr (K >= late)
      if (side_ == LC && id_ >= K)
        x_column[K - late] = id_ == K ? bqr::make<T>(-turned * real_part(row)) : scaled(row, -turned);
    if constexpr (K < N + late - 1) {
      T q = one<T>();
      real divisor = real_part(pivot_);
      if constexpr (is_complex<T>)
        if (side_ == LC) {
          q = conj(pivot_);
          divisor = abs2(pivot_);
        }
      const real guess = estimated_recip(divisor), e = refined(fused(-divisor, guess, real(1)));
      if constexpr (K < N) r_ = scaled(x_[at], fast_rsqrt(real_part(pivot_)));
      const T above = scaled_add(row_next, turned, next[0]), w = scaled_add(row, turned, x_[at]);
      const T part = scaled(y[below] * q, guess), near = scaled(w * q, guess);
      const T share = part * above;
      pivot_ = scaled_add(share, -e, madd(-part, above, next[1]));
      if (K < late && side_ == LC) pivot_ = K + 1 == late ? next[1] : one<T>();
      const bool on = id_ > K && (K >= late || side_ == R);
      const T factor = on ? scaled_add(near, -e, -near) : zero<T>();
      size_ = fused(abs2(factor), real_part(y[N]), size_);
#pragma unroll
      for (int i = 0; i < N; i++)
        if (i != at) x_[i] = madd(factor, y[i], x_[i]);
      if (K >= late && on) x_[at] = factor;
    }
  }

  __device__ __forceinline__ void write(piece (&to)[pieces]) const {
#pragma unroll
    for (int p = 0; p < pieces; p++) {
      piece y;
#pragma unroll
      for (int e = 0; e < piece::size; e++)
        y.v[e] = p * piece::size + e < N ? x_[(p * piece::size + e) % N] : bqr::make<T>(size_);
      to[p] = y;
    }
  }
  __device__ __forceinline__ static void read(T (&y)[length], const piece (&from)[pieces]) {
#pragma unroll
    for (int p = 0; p < pieces; p++) {
      const piece z = from[p];
#pragma unroll
      for (int e = 0; e < piece::size; e++) y[p * piece::size + e] = z.v[e];
    }
  }

  /* Of x (1 + e + ...), which is x / (1 - e). */
  __device__ __forceinline__ static float refined(float e) { return e; }
  __device__ __forceinline__ static double refined(double e) { return fused(e, e, e); }

  storage &s;
  int side_, id_; /* id_: the step whose pivot this lane has */
  T x_[N];        /* its column, of R or of C above the rest of H; there row i is number i + late, modulo N */
  T pivot_, r_;   /* the next one; this column's element of the last row of R */
  T row_, row_next_; /* of the row of R that goes with the next row of L: this column's, the next pivot's */
  real corner_;      /* and the pivot's */
  T own_pivot_, tau_;
  real size_;
};

} // namespace bqr

#endif
