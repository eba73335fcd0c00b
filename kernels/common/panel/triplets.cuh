/* SPDX-License-Identifier: BSD-3-Clause */
/* What a singular value decomposition writes: values in descending order, the rank, and vectors whose signs
 * follow one rule, by a block of threads for each member. */
#ifndef BQR_KERNELS_COMMON_PANEL_TRIPLETS_CUH
#define BQR_KERNELS_COMMON_PANEL_TRIPLETS_CUH

#include "complete.cuh"
#include "jacobi.cuh"

namespace bqr {

template <class T> class triplets {
  using R = real_t<T>;

public:
  /* values: q + 1 real numbers, place: q integers, of the block's own; q = min(m,n). */
  __device__ triplets(const bqr_args &args, const member &x, const squad &s, R *values, int *place)
      : values(values), args_(args), x_(x), squad_(s), q_(least(x.m, x.n)), place_(place) {}

  R *const values; /* of columns, in the order in which these are */

  __device__ void set_rank(int rank) const {
    if (args_.rank.data && thread_id() == 0) *vector_data<int>(args_.rank, x_.id) = rank;
  }

  /* Of a member with a NaN or an Inf. */
  __device__ void set_nonfinite() const {
    R *s = vector_data<R>(args_.s, x_.id);
    for (int j = thread_id(); j < q_; j += num_threads()) s[j] = static_cast<R>(nan(""));
    set_rank(0);
  }

  /* Orthogonal columns, the first `rank` of them not 0, become vectors of length 1; their lengths are the
   * values. */
  __device__ void find_values(const matrix_view<T> &columns, int rank) const {
    for_columns(squad_, q_, [&](int col) {
      T *x = col >= 0 ? columns.at(0, col) : nullptr;
      const R norm2 = column_norm2(squad_, x, 0, columns.rows);
      const bool there = x && col < rank && norm2 > span<R>::least2;
      const R norm = there ? sqrt(norm2) : R(0);
      for (int i = squad_.lane; there && i < columns.rows; i += squad_.lanes)
        x[i] = scaled(x[i], R(1) / norm);
      if (x && squad_.lane == 0) values[col] = norm;
    });
    block_sync();
    order_values();
  }

  /* Where `values` are known: the block does not see this order before a barrier. */
  __device__ void order_values() const { find_places(values, q_, false, place_); }

  /* Of a matrix that had been multiplied by 2^exponent. */
  __device__ void store_values(int exponent) const {
    R *s = vector_data<R>(args_.s, x_.id);
    for (int j = thread_id(); j < q_; j += num_threads()) s[place_[j]] = times_power(values[j], -exponent);
    block_sync();
    if (args_.rank.data) set_rank(find_rank(s));
  }

  __device__ void store_vectors(const matrix_view<T> &u, const matrix_view<T> &v) const {
    const matrix_view<T> &rules = args_.v.data ? v : u;
    for_columns(squad_, q_, [&](int col) {
      const bool any = col >= 0 && (args_.u.data || args_.v.data);
      const sign<T> turn = find_sign(squad_, any ? rules.at(0, col) : nullptr, rules.rows);
      if (any) store_column(args_.u, u, col, {turn.phase, args_.v.data ? u.rows : turn.row});
      if (any) store_column(args_.v, v, col, turn);
    });
  }

private:
  __device__ int find_rank(const R *s) const {
    const double tolerance = fmax(args_.abstol, args_.reltol * static_cast<double>(s[0]));
    int above = 0;
    for (int j = lane_id(); j < q_; j += warp_lanes) above += static_cast<double>(s[j]) > tolerance;
    return least(group_sum(above), args_.kmax);
  }

  __device__ void store_column(const bqr_matrix &to, const matrix_view<T> &from, int col,
                               const sign<T> &turn) const {
    if (!to.data) return;
    T *column = matrix_data<T>(args_, to, x_.id) + place_[col] * matrix_ld(to, x_.id);
    for (int i = squad_.lane; i < from.rows; i += squad_.lanes) column[i] = turn.of(*from.at(i, col), i);
  }

  const bqr_args &args_;
  const member &x_;
  squad squad_;
  int q_;
  int *place_;
};

} // namespace bqr

#endif
