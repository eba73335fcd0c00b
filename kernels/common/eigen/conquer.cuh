/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvalues and eigenvectors of a real symmetric tridiagonal matrix by Cuppen's divide and conquer, as
 * LAPACK's xSTEDC: blocks of order 1 are merged to blocks of order 2, 4, 8 ..., all merges of a level at
 * once. A merge deflates, finds the roots of the secular equation, a thread for each, and computes the
 * vectors of a nearby problem of which the roots are exact (Gu and Eisenstat), so that clusters need no
 * special care. */
#ifndef BQR_KERNELS_COMMON_EIGEN_CONQUER_CUH
#define BQR_KERNELS_COMMON_EIGEN_CONQUER_CUH

#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"
#include "common/simt/scope.cuh"
#include "secular.cuh"

namespace bqr {

/* Of columns x and y. */
template <class R> struct merge_rotation {
  int16_t x, y;
  R cosine, sine;
};

/* How often blocks of order n are merged; the vectors come out in q0 if that is even, else in q1. */
BQR_INLINE int merges_of(int n) {
  int merges = 0;
  while ((1 << merges) < n) merges++;
  return merges;
}

template <class R, class SCOPE> class conquer {
  static constexpr int tile = 8;      /* columns of a product */
  static constexpr int row_tile = 64; /* and its rows, two to a lane */
  static constexpr int at_once = 4;   /* independent quotients */
  enum { UPPER = 1, LOWER = 2 };      /* what of a column is not zero */

  /* Of the block that begins at row i * size: counts after deflation. */
  struct block_counts {
    int16_t roots, rotations, upper, lower;
  };

  /* Blocks of more than 32 rows are multiplied in tiles. */
  static constexpr bool tiled = SCOPE::most_warps > 1;
  BQR_INLINE static size_t tiles(int warps) {
    return tiled ? static_cast<size_t>(warps) * warp_lanes * tile : 0;
  }

public:
  /* Bytes of shared memory for order n and so many warps. */
  BQR_INLINE static size_t bytes(int n, int warps) {
    const size_t each = sizeof(merge_rotation<R>) + 5 * sizeof(R) + 5 * sizeof(int16_t);
    return sizeof(R) * tiles(warps) + each * static_cast<size_t>(n) +
           sizeof(block_counts) * static_cast<size_t>((n + 1) / 2);
  }

  /* d and e, of magnitudes up to 1 or so: n and n - 1 numbers in shared memory; d will be the eigenvalues.
   * q0, q1: n x n. What is not needed at the same time shares its place. largest: magnitude() of a matrix
   * that this one is a part of. */
  __device__ conquer(SCOPE &scope, int n, R *d, const R *e, const matrix_view<R> &q0,
                     const matrix_view<R> &q1, unsigned char *memory, uint32_t largest = 0)
      : scope_(scope), n_(n), largest_(largest), d_(d), e_(e), from_(q0), to_(q1) {
    u_ = reinterpret_cast<R *>(memory) + size_t(scope.warp()) * warp_lanes * tile;
    rotations_ = reinterpret_cast<merge_rotation<R> *>(reinterpret_cast<R *>(memory) + tiles(scope.warps()));
    vector_ = reinterpret_cast<R *>(rotations_);
    poles_ = factor_ = reinterpret_cast<R *>(rotations_ + n);
    z_ = distance_ = poles_ + n;
    kept_ = z_ + n;
    weights_ = kept_ + n;
    value_ = weights_ + n;
    counts_ = reinterpret_cast<block_counts *>(value_ + n);
    source_ = origin_ = reinterpret_cast<int16_t *>(counts_ + (n + 1) / 2);
    column_ = source_ + n;
    place_ = column_ + n;
    upper_ = place_ + n;
    lower_ = upper_ + n;
  }

  /* d: the eigenvalues, ascending. False: a root was not found. */
  __device__ bool run() {
    begin();
    bool converged = true;
    for (size_ = 2; size_ < 2 * n_; size_ *= 2) {
      sort_poles();
      deflate();
      rotate();
      converged = find_roots() && converged;
      find_weights();
      find_places();
      find_factors();
      if (!tiled || size_ <= warp_lanes)
        multiply_small();
      else
        multiply();
      copy_deflated();
      scope_.sync();
      for (int i = scope_.thread(); i < n_; i += scope_.threads()) d_[place_[i]] = value_[i];
      const matrix_view<R> swap = from_;
      from_ = to_;
      to_ = swap;
      scope_.sync();
    }
    return converged;
  }

  __device__ const matrix_view<R> &vectors() const { return from_; }

private:
  /* The block of row or column i: rows first .. end - 1, of which those from middle on are the lower half. */
  struct block {
    int first, middle, end;
  };
  __device__ __forceinline__ block block_of(int i) const {
    const int first = i & ~(size_ - 1);
    return {first, least(n_, first + size_ / 2), least(n_, first + size_)};
  }
  __device__ __forceinline__ R rho(const block &b) const {
    return b.middle < b.end ? 2 * fabs(e_[b.middle - 1]) : R(0);
  }

  /* Tears T apart at all places; vectors of order 1. */
  __device__ void begin() {
    uint32_t u = largest_;
    for (int i = scope_.thread(); i < n_; i += scope_.threads()) {
      R x = d_[i];
      u = greater(u, magnitude(x));
      if (i > 0) x -= fabs(e_[i - 1]);
      if (i < n_ - 1) {
        x -= fabs(e_[i]);
        u = greater(u, magnitude(e_[i]));
      }
      value_[i] = x;
    }
    u = scope_.max(u);
    tolerance_ = times_power(8 * limits<R>::eps, -exponent_to<R>(u, 0));
    scope_.sync();
    for (int i = scope_.thread(); i < n_; i += scope_.threads()) d_[i] = value_[i];
    for (int j = scope_.warp(); j < n_; j += scope_.warps())
      for (int i = lane_id(); i < n_; i += warp_lanes) {
        *from_.at(i, j) = i == j ? R(1) : R(0);
        *to_.at(i, j) = 0;
      }
    scope_.sync();
  }
  /* Merges the halves' poles; z: the last row of the upper half's vectors and the first of the lower's. */
  __device__ void sort_poles() {
    constexpr R half_root = R(0.70710678118654752440);
    for (int i = scope_.thread(); i < n_; i += scope_.threads()) {
      const block b = block_of(i);
      const R x = d_[i];
      int place = i;
      if (i < b.middle) {
#pragma unroll 4
        for (int j = b.middle; j < b.end; j++) place += d_[j] < x;
      } else {
#pragma unroll 4
        for (int j = b.first; j < b.middle; j++) place -= d_[j] > x;
      }
      R z = 0;
      if (b.middle < b.end) {
        z = half_root * (i < b.middle ? *from_.at(b.middle - 1, i) : *from_.at(b.middle, i));
        if (i >= b.middle && e_[b.middle - 1] < 0) z = -z;
      }
      poles_[place] = x;
      z_[place] = z;
      source_[place] = i;
    }
    scope_.sync();
  }

  /* xLAED2: roots with next to no weight stay; of two that are next to equal, a rotation makes one such. A
   * thread for each block. What is kept comes first, what is not, last. */
  __device__ void deflate() {
    for (int g = scope_.thread(); g * size_ < n_; g += scope_.threads()) {
      const block b = block_of(g * size_);
      const R r = rho(b);
      block_counts c = {0, 0, 0, 0};
      int end = b.end, pending = -1, kind = 0;
      R pole = 0, z = 0;
      for (int j = b.first; j < b.end; j++) {
        const R next_pole = poles_[j], next_z = z_[j];
        const int next_kind = source_[j] < b.middle ? UPPER : LOWER;
        if (r * fabs(next_z) <= tolerance_) {
          drop(--end, next_pole, source_[j]);
          continue;
        }
        R kept_pole = next_pole, kept_z = next_z;
        int kept_kind = next_kind;
        if (pending >= 0) {
          const R norm2 = fused(z, z, next_z * next_z), gap = next_pole - pole;
          if (gap * fabs(z * next_z) <= tolerance_ * norm2) {
            const R inverse = R(1) / sqrt(norm2), cosine = next_z * inverse, sine = -z * inverse;
            rotations_[b.first + c.rotations++] = {source_[pending], source_[j], cosine, sine};
            drop(--end, fused(pole, cosine * cosine, next_pole * (sine * sine)), source_[pending]);
            kept_pole = fused(pole, sine * sine, next_pole * (cosine * cosine));
            kept_z = sqrt(norm2);
            kept_kind |= kind;
          } else {
            keep(b, c, pole, z, source_[pending], kind);
          }
        }
        pending = j;
        pole = kept_pole;
        z = kept_z;
        kind = kept_kind;
      }
      if (pending >= 0) keep(b, c, pole, z, source_[pending], kind);
      counts_[g] = c;
    }
    scope_.sync();
  }
  __device__ __forceinline__ void keep(const block &b, block_counts &c, R pole, R z, int16_t source,
                                       int kind) {
    if (kind & UPPER) upper_[b.first + c.upper++] = c.roots;
    if (kind & LOWER) lower_[b.first + c.lower++] = c.roots;
    const int at = b.first + c.roots++;
    kept_[at] = pole;
    weights_[at] = z;
    column_[at] = source;
  }
  __device__ __forceinline__ void drop(int at, R pole, int16_t source) {
    value_[at] = pole;
    column_[at] = source;
  }

  __device__ __forceinline__ const block_counts &counts(const block &b) const {
    return counts_[b.first / size_];
  }

  __device__ void rotate() {
    for (int i = scope_.thread(); i < n_; i += scope_.threads()) {
      const block b = block_of(i);
      const int number = counts(b).rotations;
      for (int k = 0; k < number; k++) {
        const merge_rotation<R> r = rotations_[b.first + k];
        R *x = from_.at(i, r.x), *y = from_.at(i, r.y);
        const R p = *x, q = *y;
        *x = fused(r.cosine, p, r.sine * q);
        *y = fused(r.cosine, q, -r.sine * p);
      }
    }
  }

  __device__ bool find_roots() {
    bool converged = true;
    for (int j = scope_.thread(); j < n_; j += scope_.threads()) {
      const block b = block_of(j);
      const int number = counts(b).roots;
      if (j - b.first >= number) continue;
      const secular_root<R> root =
          secular<R>(kept_ + b.first, weights_ + b.first, number, rho(b)).find(j - b.first);
      origin_[j] = static_cast<int16_t>(b.first + root.origin);
      distance_[j] = root.distance;
      value_[j] = kept_[origin_[j]] + root.distance;
      converged = converged && root.converged;
    }
    scope_.sync();
    return converged;
  }

  /* d(i) - lambda(j) */
  __device__ __forceinline__ R from_root(int i, int j) const {
    return (kept_[i] - kept_[origin_[j]]) - distance_[j];
  }

  /* xLAED3: the z of which the roots found are exact, but for a factor. */
  __device__ void find_weights() {
    for (int i = scope_.thread(); i < n_; i += scope_.threads()) {
      const block b = block_of(i);
      const int end = b.first + counts(b).roots;
      if (i >= end) continue;
      R product = -from_root(i, i);
#pragma unroll 4
      for (int j = b.first; j < end; j++)
        if (j != i) product *= from_root(i, j) * fast_recip(kept_[i] - kept_[j]);
      vector_[i] = copysign(sqrt(fabs(product)), weights_[i]);
    }
    scope_.sync();
  }

  /* What makes vectors' lengths 1. Those of blocks of up to 32 rows wait where the column will be. */
  __device__ void find_factors() {
    const bool kept = !tiled || size_ <= warp_lanes;
    for (int j = scope_.thread(); j < n_; j += scope_.threads()) {
      const block b = block_of(j);
      const int end = b.first + counts(b).roots;
      if (j >= end) continue;
      R *to = to_.at(0, place_[j]), norm2 = 0;
      for (int first = b.first; first < end; first += at_once) {
        R x[at_once];
#pragma unroll
        for (int c = 0; c < at_once; c++) {
          const int i = least(first + c, end - 1);
          x[c] = vector_[i] * fast_recip(from_root(i, j));
          if (first + c < end) norm2 = fused(x[c], x[c], norm2);
        }
        if (kept) {
#pragma unroll
          for (int c = 0; c < at_once; c++)
            if (first + c < end) to[first + c] = x[c];
        }
      }
      factor_[j] = R(1) / sqrt(norm2);
    }
    scope_.sync();
  }

  __device__ void find_places() {
    for (int i = scope_.thread(); i < n_; i += scope_.threads()) {
      const block b = block_of(i);
      const R mine = value_[i];
      int place = b.first;
#pragma unroll 4
      for (int j = b.first; j < b.end; j++) place += value_[j] < mine || (value_[j] == mine && j < i);
      place_[i] = static_cast<int16_t>(place);
    }
    scope_.sync();
  }

  /* Entry i of the vector of root j. */
  __device__ __forceinline__ R entry(int i, int j) const {
    return vector_[i] * fast_recip(from_root(i, j)) * factor_[j];
  }

  /* Blocks of up to 32 rows, a lane for each row, which makes 8 columns at once. */
  __device__ void multiply_small() {
    for (int first = scope_.warp() * warp_lanes; first < n_; first += scope_.warps() * warp_lanes) {
      const int row = first + lane_id();
      const block b = block_of(least(row, n_ - 1));
      const bool is_upper = row < b.middle;
      const int16_t *list = (is_upper ? upper_ : lower_) + b.first;
      const int terms = row < n_ ? is_upper ? counts(b).upper : counts(b).lower : 0;
      for (int column = 0; column < size_; column += tile) {
        R sum[tile];
        R *to[tile];
#pragma unroll
        for (int c = 0; c < tile; c++) {
          sum[c] = 0;
          to[c] = to_.at(b.first, place_[b.first + least(column + c, b.end - b.first - 1)]);
        }
#pragma unroll 2
        for (int k = 0; k < terms; k++) {
          const int pole = list[k];
          const R x = *from_.at(row, column_[b.first + pole]);
#pragma unroll
          for (int c = 0; c < tile; c++) sum[c] = fused(x, to[c][pole], sum[c]);
        }
        warp_sync();
#pragma unroll
        for (int c = 0; c < tile; c++)
          if (row < n_ && column + c < counts(b).roots)
            to[c][row - b.first] = sum[c] * factor_[b.first + column + c];
        warp_sync();
      }
    }
  }

  /* Tiles of 64 rows of a half and 8 columns, one for a warp at a time. */
  __device__ void multiply() {
    const int tiles = (size_ / 2 + row_tile - 1) / row_tile, across = (size_ + tile - 1) / tile,
              blocks = (n_ + size_ - 1) / size_;
    for (int item = scope_.warp(); item < 2 * tiles * across * blocks; item += scope_.warps()) {
      const int half = item % 2, row = item / 2 % tiles * row_tile,
                column = item / (2 * tiles) % across * tile;
      const block b = block_of(item / (2 * tiles * across) * size_);
      const int first = (half ? b.middle : b.first) + row, end = half ? b.end : b.middle;
      if (first < end && column < counts(b).roots) multiply_tile(b, half, first, end, column);
    }
  }
  __device__ __forceinline__ void multiply_tile(const block &b, int half, int first, int end, int column) {
    const block_counts &c = counts(b);
    const int terms = half ? c.lower : c.upper;
    const int16_t *list = (half ? lower_ : upper_) + b.first;
    const int row = first + lane_id(), most = b.first + c.roots;
    R sum[2][tile];
#pragma unroll
    for (int j = 0; j < tile; j++) sum[0][j] = sum[1][j] = 0;
    for (int begin = 0; begin < terms; begin += warp_lanes) {
      const int pole = b.first + list[least(begin + lane_id(), terms - 1)];
      warp_sync();
#pragma unroll
      for (int j = 0; j < tile; j++)
        u_[lane_id() * tile + j] = entry(pole, least(b.first + column + j, most - 1));
      const int mine = column_[pole];
      warp_sync();
      for (int k = 0; k < least(warp_lanes, terms - begin); k++) {
        const R *x = from_.at(0, broadcast(mine, k));
        const R x0 = row < end ? x[row] : R(0), x1 = row + warp_lanes < end ? x[row + warp_lanes] : R(0);
#pragma unroll
        for (int j = 0; j < tile; j++) {
          const R u = u_[k * tile + j];
          sum[0][j] = fused(x0, u, sum[0][j]);
          sum[1][j] = fused(x1, u, sum[1][j]);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < tile; j++) {
      if (column + j >= c.roots) break;
      R *to = to_.at(0, place_[b.first + column + j]);
      if (row < end) to[row] = sum[0][j];
      if (row + warp_lanes < end) to[row + warp_lanes] = sum[1][j];
    }
  }

  __device__ void copy_deflated() {
    for (int j = scope_.warp(); j < n_; j += scope_.warps()) {
      const block b = block_of(j);
      if (j < b.first + counts(b).roots) continue;
      for (int i = b.first + lane_id(); i < b.end; i += warp_lanes)
        *to_.at(i, place_[j]) = *from_.at(i, column_[j]);
    }
  }

  SCOPE &scope_;
  int n_, size_ = 0;
  uint32_t largest_;
  R *d_, tolerance_ = 0;
  const R *e_;
  matrix_view<R> from_, to_;
  R *u_, *poles_, *z_, *kept_, *weights_, *distance_, *factor_, *value_, *vector_;
  merge_rotation<R> *rotations_;
  block_counts *counts_;
  int16_t *source_, *column_, *origin_, *place_, *upper_, *lower_;
};

} // namespace bqr

#endif
