/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction to tridiagonal form by a cluster of blocks, as LAPACK's xLATRD: A is updated by `width` steps at
 * once, A - V W^H - W V^H, in the pass that multiplies it by the next vector, and only read by the passes of
 * the other steps.
 *
 * Rows belong to blocks, 32 after 32 in turn: a block updates its rows and multiplies them by the vector of
 * the step, and sends its part of the product, and of the column that is next, to all blocks, each of which
 * then goes on alone until the next product: one barrier of the cluster for each step. Each has all of V and
 * W. */
#ifndef BQR_KERNELS_SYTRD_CLUSTER_CUH
#define BQR_KERNELS_SYTRD_CLUSTER_CUH

#include "common/eigen/step.cuh"
#include "common/eigen/tridiagonal.cuh"
#include "common/ptx/cluster.cuh"

namespace bqr {

/* Rows of a matrix of order n that are one block's, with all columns: at(i, j) for rows of its own alone. */
template <class T, bool PACKED> struct cluster_rows {
  T *data;
  int64_t ld;
  int blocks;

  __device__ __forceinline__ T *at(int i, int j) const {
    const int row = PACKED ? i / warp_lanes / blocks * warp_lanes + i % warp_lanes : i;
    return data + row + j * ld;
  }
};

/* What blocks of a cluster tell one another at each step: A v, and the next column. */
template <class T> struct alignas(16) step_mail { T product, column; };

template <class T, bool PACKED> class cluster_tridiagonal {
  using R = real_t<T>;
  static constexpr int at_once = sizeof(T) > 8 ? 8 : 16; /* loads in flight */
  static constexpr int width = 64 / static_cast<int>(sizeof(T));

public:
  static constexpr int warps = 16;

  BQR_INLINE static int chunks_of(int n) { return (n + warp_lanes - 1) / warp_lanes; }
  /* Rows of a block that has the most. */
  BQR_INLINE static int most_rows(int n, int blocks) {
    return (chunks_of(n) + blocks - 1) / blocks * warp_lanes;
  }
  /* Bytes of shared memory for members of order n, without the rows. */
  BQR_INLINE static size_t bytes(int n, int blocks) {
    const size_t rows = static_cast<size_t>(n), part = static_cast<size_t>(most_rows(n, blocks));
    return 2 * sizeof(step_mail<T>) * rows +
           sizeof(T) * ((2 * width + 1) * rows + 2 * width + part + warp_lanes * static_cast<size_t>(warps));
  }

  /* a: this block's rows of both triangles, the largest entry near 2^span::top. to, tau: where reflectors
   * go. */
  __device__ cluster_tridiagonal(block_scope &scope, const cluster_rows<T, PACKED> &a,
                                 const matrix_view<T> &to, T *tau, unsigned char *memory)
      : scope_(scope), a_(a), to_(to), tau_(tau), n_(to.rows),
        mail_(reinterpret_cast<step_mail<T> *>(memory)), x_(reinterpret_cast<T *>(mail_ + 2 * n_)),
        v_(x_ + n_), w_(v_ + width * n_), factors_(w_ + width * n_), part_(factors_ + 2 * width),
        rank_(cluster_rank()) {}

  /* As tridiagonal::run(), but A's largest entry is near 2^span::top, d and e are brought near 1; these are
   * written by the first block alone, columns of vectors by all. */
  __device__ void run(R *d, R *e) {
    send(1, 0, 0, 0);
    cluster_sync();
    for (int k = 0; k < n_; k++) {
      const int step = k % width; /* since A was updated */
      const reflector<T> h = next_reflector(k, k > 0 && step == 0 ? width : step, d);
      if (k == n_ - 1) break;
      write_vector(k, h);
      if (rank_ == 0 && scope_.thread() == 0) {
        e[k] = h.beta * span<R>::unit;
        tau_[k] = h.tau;
      }
      scope_.sync();
      find_factors(k + 1, step);
      const int slices = k > 0 && step == 0 ? pass<true>(k + 1) : pass<false>(k + 1);
      scope_.sync();
      send(k & 1, k + 1, k + 1, slices);
      cluster_sync();
      find_w(k, step, h.tau);
      scope_.sync();
    }
  }

private:
  /* The block's chunks of rows from `first` on: number c of them is first_chunk(first) + c * blocks. */
  __device__ __forceinline__ int first_chunk(int first) const {
    const int chunk = first / warp_lanes, turn = chunk % a_.blocks;
    return chunk + (rank_ >= turn ? rank_ - turn : rank_ - turn + a_.blocks);
  }
  __device__ __forceinline__ int count_chunks(int first) const {
    const int left = chunks_of(n_) - first_chunk(first);
    return left > 0 ? (left - 1) / a_.blocks + 1 : 0;
  }

  /* Sends sums of `slices` parts, and column j, of the block's rows from `first` on. */
  __device__ __forceinline__ void send(int turn, int first, int j, int slices) {
    const int begin = first_chunk(first), rows = count_chunks(first) * warp_lanes;
    step_mail<T> *const mine = mail_ + turn * n_;
    for (int r = scope_.thread(); r < rows; r += scope_.threads()) {
      const int i = (begin + r / warp_lanes * a_.blocks) * warp_lanes + r % warp_lanes;
      if (i < first || i >= n_) continue;
      step_mail<T> letter = {zero<T>(), *a_.at(i, j)};
      for (int s = 0; s < slices; s++) letter.product = letter.product + part_[s * rows + r];
      for (int to = 0; to < a_.blocks; to++) cluster_shared(mine + i, to)[0] = letter;
    }
  }

  /* Column k less what `steps` steps change. A norm that is nothing beside A's is taken for zero. */
  __device__ __forceinline__ reflector<T> next_reflector(int k, int steps, R *d) {
    const step_mail<T> *const mail = mail_ + ((k & 1) ^ 1) * n_;
    R ss = 0;
    for (int i = k + scope_.thread(); i < n_; i += scope_.threads()) {
      T z = mail[i].column;
      for (int s = 0; s < steps; s++) {
        const T *v = v_ + s * n_, *w = w_ + s * n_;
        z = updated(z, v[i], w[i], v[k], w[k]);
      }
      if (i > k)
        x_[i == k + 1 ? k : i] = z;
      else if (rank_ == 0)
        d[k] = real_part(z) * span<R>::unit;
      if (i > k + 1) ss = abs2_add(z, ss);
    }
    ss = scope_.sum(ss);
    scope_.sync();
    if (k == n_ - 1) return {};
    const T alpha = x_[k];
    if (!(abs2_add(alpha, ss) > span<R>::least2)) return {zero<T>(), R(0), R(1), zero<T>()};
    return larfg(alpha, ss, R(1), false);
  }

  __device__ __forceinline__ void write_vector(int k, const reflector<T> &h) {
    for (int i = k + 1 + scope_.thread(); i < n_; i += scope_.threads()) {
      const T v = i == k + 1 ? one<T>() : x_[i] * h.scale;
      x_[i] = v;
      if (i / warp_lanes % a_.blocks == rank_) *to_.at(i, k) = v;
    }
  }

  /* W^H v and V^H v of the steps since A was updated. */
  __device__ __forceinline__ void find_factors(int first, int steps) {
    for (int item = scope_.warp(); item < 2 * steps; item += scope_.warps()) {
      const T *const from = (item < steps ? w_ : v_ - steps * n_) + item * n_;
      T sum = zero<T>();
      for (int i = first + lane_id(); i < n_; i += warp_lanes) sum = cmadd(from[i], x_[i], sum);
      sum = group_sum(sum);
      if (lane_id() == 0) factors_[item] = sum;
    }
  }

  /* UPDATES: of A, by all steps. Returns into how many slices columns were cut, so that all warps have
   * something to do. */
  template <bool UPDATES> __device__ __forceinline__ int pass(int first) {
    const int chunks = count_chunks(first), begin = first_chunk(first), rest = n_ - first,
              slices = chunks > 0 ? largest(1, warps / chunks) : 0;
    if (chunks == 0) return 0;
    const int columns_of_slice = (rest + slices - 1) / slices;
    for (int item = scope_.warp(); item < chunks * slices; item += warps) {
      const int chunk = item % chunks, slice = item / chunks,
                i = (begin + chunk * a_.blocks) * warp_lanes + lane_id();
      if (i < first || i >= n_) continue;
      const int from = first + slice * columns_of_slice, end = least(n_, from + columns_of_slice);
      T v[width], w[width], y = zero<T>();
#pragma unroll
      for (int s = 0; s < width; s++) {
        v[s] = UPDATES ? v_[s * n_ + i] : zero<T>();
        w[s] = UPDATES ? w_[s * n_ + i] : zero<T>();
      }
      for (int j = from; j < end; j += at_once) columns<UPDATES>(i, j, end, v, w, y);
      part_[slice * (chunks * warp_lanes) + chunk * warp_lanes + lane_id()] = y;
    }
    return slices;
  }

  template <bool UPDATES>
  __device__ __forceinline__ void columns(int i, int j, int end, const T (&v)[width], const T (&w)[width],
                                          T &y) {
    T z[at_once];
#pragma unroll
    for (int c = 0; c < at_once; c++) z[c] = *a_.at(i, least(j + c, end - 1));
#pragma unroll
    for (int c = 0; c < at_once; c++) {
      const int column = least(j + c, end - 1);
      if (UPDATES) {
#pragma unroll
        for (int s = 0; s < width; s++)
          z[c] = updated(z[c], v[s], w[s], v_[s * n_ + column], w_[s * n_ + column]);
      }
      if (j + c < end) y = madd(z[c], x_[column], y);
    }
#pragma unroll
    for (int c = 0; c < at_once; c++)
      if (UPDATES && j + c < end) *a_.at(i, j + c) = z[c];
  }

  /* w := x - tau / 2 (x^H v) v with x = tau A v, A less what the steps since it was updated change. */
  __device__ __forceinline__ void find_w(int k, int step, T tau) {
    const step_mail<T> *const mail = mail_ + (k & 1) * n_;
    T *const v = v_ + step * n_, *const w = w_ + step * n_;
    T dot = zero<T>();
    for (int i = k + 1 + scope_.thread(); i < n_; i += scope_.threads()) {
      T y = mail[i].product;
      for (int s = 0; s < step; s++)
        y = madd(-v_[s * n_ + i], factors_[s], madd(-w_[s * n_ + i], factors_[step + s], y));
      y = tau * y;
      dot = cmadd(y, x_[i], dot);
      w[i] = y;
    }
    const T factor = scaled(tau, R(-0.5)) * scope_.sum(dot);
    for (int i = k + 1 + scope_.thread(); i < n_; i += scope_.threads()) {
      v[i] = x_[i];
      w[i] = madd(factor, v[i], w[i]);
    }
  }

  block_scope &scope_;
  cluster_rows<T, PACKED> a_;
  matrix_view<T> to_;
  T *tau_;
  int n_;
  step_mail<T> *mail_; /* in turn for even and odd steps */
  T *x_, *v_, *w_;     /* v of this step; V and W of those since A was updated, by columns */
  T *factors_, *part_;
  int rank_;
};

/* The block's rows of both triangles, times 2^exponent. */
template <class T, bool PACKED>
__device__ void copy_rows(const matrix_view<T> &from, bool lower, int exponent,
                          const cluster_rows<T, PACKED> &to) {
  const int chunks = (from.rows + warp_lanes - 1) / warp_lanes;
  for (int chunk = cluster_rank(); chunk < chunks; chunk += to.blocks) {
    const int i = chunk * warp_lanes + lane_id();
    for (int j = warp_id(); i < from.rows && j < from.cols; j += num_warps()) {
      const bool here = lower ? i >= j : i <= j;
      const T x = here ? *from.at(i, j) : conj(*from.at(j, i));
      *to.at(i, j) = times_power(i == j ? make<T>(real_part(x)) : x, exponent);
    }
  }
}

} // namespace bqr

#endif
