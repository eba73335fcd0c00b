/* SPDX-License-Identifier: BSD-3-Clause */
/* Orthonormal columns for those that a square matrix of orthonormal columns lacks. */
#ifndef BQR_KERNELS_COMMON_PANEL_COMPLETE_CUH
#define BQR_KERNELS_COMMON_PANEL_COMPLETE_CUH

#include "pivoted_qr.cuh"

namespace bqr {

/* x := x - (the sum of columns with a value, times their coefficients), a row for each thread. */
template <class T>
__device__ __forceinline__ void subtract_columns(const matrix_view<T> &x, const real_t<T> *values,
                                                 const T *coefficients, int col) {
  for (int i = thread_id(); i < x.rows; i += num_threads()) {
    T y = *x.at(i, col);
    for (int k = 0; k < x.cols; k++)
      if (values[k] != 0) y = y - *x.at(i, k) * coefficients[k];
    *x.at(i, col) = y;
  }
  block_sync();
}

/* Columns whose value is not 0 are orthonormal; the others are made so, and their values stay 0 for the
 * caller. Each begins as the unit vector of which the columns before have least, the first of them, and is
 * made orthogonal to these twice. coefficients: x.cols, lacking: x.rows real numbers, both for this alone. */
template <class T>
__device__ void complete_columns(const squad &s, const matrix_view<T> &x, real_t<T> *values, T *coefficients,
                                 real_t<T> *lacking) {
  using R = real_t<T>;
  for (int col = 0; col < x.cols; col++) {
    if (values[col] != 0) continue; /* the same in all threads */
    for (int i = thread_id(); i < x.rows; i += num_threads()) {
      R has = 0;
      for (int k = 0; k < x.cols; k++)
        if (values[k] != 0) has = abs2_add(*x.at(i, k), has);
      lacking[i] = fmax(R(1) - has, R(0));
    }
    block_sync();
    const int unit = longest_column(lacking, x.rows).column;
    for (int k = thread_id(); k < x.cols; k += num_threads()) coefficients[k] = conj(*x.at(unit, k));
    block_sync();
    for (int i = thread_id(); i < x.rows; i += num_threads())
      *x.at(i, col) = i == unit ? one<T>() : zero<T>();
    block_sync();
    subtract_columns(x, values, coefficients, col);
    for_columns(s, x.cols, [&](int k) {
      T dot = zero<T>();
      for (int i = s.lane; k >= 0 && i < x.rows; i += s.lanes) dot = cmadd(*x.at(i, k), *x.at(i, col), dot);
      dot = squad_sum(s, dot);
      if (k >= 0 && s.lane == 0) coefficients[k] = dot;
    });
    block_sync();
    subtract_columns(x, values, coefficients, col);
    R norm2 = 0;
    for (int i = lane_id(); i < x.rows; i += warp_lanes) norm2 = abs2_add(*x.at(i, col), norm2);
    const R factor = R(1) / sqrt(group_sum(norm2));
    block_sync();
    for (int i = thread_id(); i < x.rows; i += num_threads()) *x.at(i, col) = scaled(*x.at(i, col), factor);
    if (thread_id() == 0) values[col] = R(-1); /* has one now */
    block_sync();
  }
  for (int col = thread_id(); col < x.cols; col += num_threads())
    if (values[col] < 0) values[col] = 0;
  block_sync();
}

} // namespace bqr

#endif
