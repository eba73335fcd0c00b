/* SPDX-License-Identifier: BSD-3-Clause */
/* Block reflectors, H_1 ... H_nb = I - V T V^H (the compact WY form of R. Schreiber and C. Van Loan, "A
 * storage-efficient WY representation for products of Householder transformations", 1989; LAPACK's xLARFT and
 * xLARFB), applied by one block of threads. */
#ifndef BQR_KERNELS_COMMON_PANEL_REFLECT_CUH
#define BQR_KERNELS_COMMON_PANEL_REFLECT_CUH

#include "common/simt/block.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

/* Reflectors in a block reflector. */
constexpr int block_width = 8;

/* Columns (or rows) of C that a lane works on at once: with block_width sums each, what registers hold. */
template <class T> constexpr int apply_width = is_complex<T> ? 2 : 4;

/* V: `rows` x `width`, 1 <= width <= min(block_width, rows). Column j holds v_j below its diagonal; what is
 * on and above the diagonal of `v` is not looked at by the words that apply it: the top `width` rows, with
 * ones and zeros in place, are in `head` (column-major, width and length block_width, zeros beyond). T is
 * upper triangular in `t` (row-major, length block_width, zeros elsewhere). head and t: shared memory. */
template <class T> struct block_reflector {
  const T *v;
  int64_t ld;
  int rows, width;
  T *head, *t;

  /* Of shared memory, for head and t together. */
  static constexpr int elements = 2 * block_width * block_width;
};

/* Column j of T. gram[l] = v_l^H v_j for l < j. Thread i < block_width owns row i of T and clears it in
 * column 0, so that no barrier is needed from column to column. */
template <class T>
__device__ __forceinline__ void form_t_column(T *t, int j, T tau, const T (&gram)[block_width]) {
  int row = thread_id();
  if (row >= block_width) return;
  T *mine = t + row * block_width;
  if (j == 0)
    for (int l = 0; l < block_width; l++) mine[l] = zero<T>();
  if (row == j) mine[j] = tau;
  if (row >= j) return;
  T sum = zero<T>();
#pragma unroll
  for (int l = 0; l < block_width; l++)
    if (l < j) sum = madd(mine[l], gram[l], sum);
  mine[j] = -(tau * sum);
}

/* The head from v. A barrier must follow. */
template <class T> __device__ __forceinline__ void form_head(const block_reflector<T> &h) {
  for (int e = thread_id(); e < block_width * block_width; e += num_threads()) {
    int i = e % block_width, j = e / block_width;
    T x = zero<T>();
    if (i == j && j < h.width) x = one<T>();
    if (i > j && i < h.width) x = h.v[i + j * h.ld];
    h.head[e] = x;
  }
}

/* head and T from v and tau. Others must be done with head and t before; ends with a barrier. */
template <class T>
__device__ void form_block_reflector(const block_reflector<T> &h, const T *tau,
                                     block_reducer<T, block_width> &reducer) {
  form_head(h);
  for (int j = 0; j < h.width; j++) {
    const T *vj = h.v + j * h.ld;
    T gram[block_width];
#pragma unroll
    for (int l = 0; l < block_width; l++) gram[l] = zero<T>();
    if (j > 0) {
      for (int i = thread_id(); i < h.rows; i += num_threads()) {
        if (i < j) continue;
        T x = i == j ? one<T>() : vj[i];
#pragma unroll
        for (int l = 0; l < block_width; l++)
          if (l < j) gram[l] = cmadd(h.v[i + l * h.ld], x, gram[l]);
      }
      reducer.sum(gram);
    }
    form_t_column(h.t, j, tau[j], gram);
  }
  block_sync();
}

/* One row of V, columns beyond the width repeating the last: T's zeros take them out. */
template <class T>
__device__ __forceinline__ void load_row(const block_reflector<T> &h, int i, T (&v)[block_width]) {
#pragma unroll
  for (int j = 0; j < block_width; j++) v[j] = h.v[i + (j < h.width ? j : h.width - 1) * h.ld];
}
template <class T> __device__ __forceinline__ void load_head(const T *head, int i, T (&v)[block_width]) {
#pragma unroll
  for (int j = 0; j < block_width; j++) v[j] = head[i + j * block_width];
}

/* C := (I - V T V^H) C, or with T^H if `adjoint`; C is h.rows x cols. Warps share the columns and lanes the
 * rows. scratch: block_width * apply_width<T> elements for each warp. h and C must be settled (a barrier
 * before); C is settled for other threads after a barrier. */
template <class T>
__device__ void apply_left(const block_reflector<T> &h, bool adjoint, T *c, int64_t ldc, int cols,
                           T *scratch) {
  constexpr int NB = block_width, CB = apply_width<T>;
  T *mine = scratch + warp_id() * (NB * CB);
  for (int first = warp_id() * CB; first < cols; first += num_warps() * CB) {
    int valid = cols - first < CB ? cols - first : CB;
    T *col[CB];
#pragma unroll
    for (int b = 0; b < CB; b++) col[b] = c + (first + (b < valid ? b : 0)) * ldc;

    T w[NB * CB], v[NB];
#pragma unroll
    for (int e = 0; e < NB * CB; e++) w[e] = zero<T>();
    auto project = [&](int i) {
#pragma unroll
      for (int b = 0; b < CB; b++) {
        T x = col[b][i];
#pragma unroll
        for (int j = 0; j < NB; j++) w[j * CB + b] = cmadd(v[j], x, w[j * CB + b]);
      }
    };
    if (lane_id() < h.width) {
      load_head(h.head, lane_id(), v);
      project(lane_id());
    }
    for (int i = h.width + lane_id(); i < h.rows; i += warp_lanes) {
      load_row(h, i, v);
      project(i);
    }

    /* -T W or -T^H W, an element in each lane, then all of it in all lanes */
    constexpr int copies = warp_lanes / (NB * CB);
    int e = lane_id() / copies, j = e / CB, b = e % CB;
    bool owner = lane_id() % copies == 0;
    T sum = group_sum_scatter<NB * CB>(w);
    if (owner) mine[e] = sum;
    warp_sync();
    T y = zero<T>();
#pragma unroll
    for (int l = 0; l < NB; l++) {
      T factor = adjoint ? conj(h.t[l * NB + j]) : h.t[j * NB + l];
      y = madd(factor, mine[l * CB + b], y);
    }
    warp_sync();
    if (owner) mine[e] = -y;
    warp_sync();
#pragma unroll
    for (int l = 0; l < NB * CB; l++) w[l] = mine[l];
    warp_sync();

    auto update = [&](int i) {
#pragma unroll
      for (int b2 = 0; b2 < CB; b2++)
        if (b2 < valid) {
          T x = col[b2][i];
#pragma unroll
          for (int l = 0; l < NB; l++) x = madd(v[l], w[l * CB + b2], x);
          col[b2][i] = x;
        }
    };
    if (lane_id() < h.width) {
      load_head(h.head, lane_id(), v);
      update(lane_id());
    }
    for (int i = h.width + lane_id(); i < h.rows; i += warp_lanes) {
      load_row(h, i, v);
      update(i);
    }
  }
}

/* C := C (I - V T V^H), or with T^H if `adjoint`; C is rows x h.rows. Every thread has rows of its own, so
 * that there is nothing to exchange. h must be settled. */
template <class T>
__device__ void apply_right(const block_reflector<T> &h, bool adjoint, T *c, int64_t ldc, int rows) {
  constexpr int NB = block_width;
  for (int i = thread_id(); i < rows; i += num_threads()) {
    T *row = c + i;
    T w[NB], y[NB], v[NB];
#pragma unroll
    for (int j = 0; j < NB; j++) w[j] = y[j] = zero<T>();
    auto project = [&](int l) {
      T x = row[l * ldc];
#pragma unroll
      for (int j = 0; j < NB; j++) w[j] = madd(v[j], x, w[j]);
    };
    for (int l = 0; l < h.width; l++) {
      load_head(h.head, l, v);
      project(l);
    }
#pragma unroll 2
    for (int l = h.width; l < h.rows; l++) {
      load_row(h, l, v);
      project(l);
    }
#pragma unroll
    for (int j = 0; j < NB; j++) {
#pragma unroll
      for (int l = 0; l < NB; l++) {
        T factor = adjoint ? conj(h.t[j * NB + l]) : h.t[l * NB + j];
        y[j] = madd(w[l], factor, y[j]);
      }
      y[j] = -y[j];
    }
    auto update = [&](int l) {
      T x = row[l * ldc];
#pragma unroll
      for (int j = 0; j < NB; j++) x = cmadd(v[j], y[j], x);
      row[l * ldc] = x;
    };
    for (int l = 0; l < h.width; l++) {
      load_head(h.head, l, v);
      update(l);
    }
#pragma unroll 2
    for (int l = h.width; l < h.rows; l++) {
      load_row(h, l, v);
      update(l);
    }
  }
}

} // namespace bqr

#endif
