/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of one matrix to tridiagonal form by a block on each multiprocessor, which keeps some rows of it
 * on the chip: A is read once. Block b of `blocks` has rows b, b + blocks, ...; thread t has columns t, t +
 * 512, ... of them, and these entries of v, w and the next v.
 *
 * A step, as xSYTD2's: rows are updated by the last step's v and w, A - v w^H - w v^H, and multiplied by the
 * new v in the same pass. What other blocks need of that, each row's product and its entry of the next
 * column, goes to all of them by one message a row; then each knows w and the next v, which all work out for
 * themselves, in the same order and so with the same bits.
 *
 * A message is written at once, and says itself that it is there: the last bit of the product is the step's
 * phase. That is at most a unit in the last place of a number that has been rounded often. There are two
 * places for each, in turn: who sends step k + 1's has all messages of step k, whose senders had all those of
 * step k - 1. */
#ifndef BQR_KERNELS_SYTRD_GRID_CUH
#define BQR_KERNELS_SYTRD_GRID_CUH

#include "common/eigen/tridiagonal.cuh"
#include "common/ptx/message.cuh"
#include "common/simt/block.cuh"

#include <cstring>

namespace bqr {

/* What blocks tell one another of a row at each step: of A v, and of the next column. */
template <class T> class letter {
  static constexpr int size = static_cast<int>(2 * sizeof(T));

public:
  using unit = std::conditional_t<size == 8, uint64_t, two_words>;
  static constexpr int units = size / static_cast<int>(sizeof(unit));

  __device__ __forceinline__ void write(T product, T column) {
    const T both[2] = {product, column};
    memcpy(u_, both, size);
  }
  __device__ __forceinline__ void read(T &product, T &column) const {
    T both[2];
    memcpy(both, u_, size);
    product = both[0];
    column = both[1];
  }
  __device__ __forceinline__ void send(unit *to, bool phase) {
#pragma unroll
    for (int i = 0; i < units; i++) {
      word(u_[i]) = (word(u_[i]) & ~uint64_t(1)) | uint64_t(phase);
      write_at_once(to + i, u_[i]);
    }
  }
  __device__ __forceinline__ void look(const unit *from) {
#pragma unroll
    for (int i = 0; i < units; i++) u_[i] = read_at_once(from + i);
  }
  __device__ __forceinline__ bool has_come(bool phase) {
    bool all = true;
#pragma unroll
    for (int i = 0; i < units; i++) all = all && (word(u_[i]) & 1) == uint64_t(phase);
    return all;
  }

private:
  __device__ __forceinline__ static uint64_t &word(uint64_t &x) { return x; }
  __device__ __forceinline__ static uint64_t &word(two_words &x) { return x.first; }
  unit u_[units];
};

/* ROWS: of a block; COLS: of a thread. */
template <class T, int ROWS, int COLS> struct grid_shape {
  static constexpr int threads = 512, warps = threads / warp_lanes;
  /* Rows that are kept in registers, the others in shared memory. */
  static constexpr int bytes = COLS * static_cast<int>(sizeof(T)), most = 128 / bytes;
  static constexpr int kept = most < ROWS ? most : ROWS, rest = ROWS - kept;

  struct shared {
    T sums[block_reducer<T, 1>::elements];
    T part[warps][ROWS], column[ROWS], row_v[ROWS], row_w[ROWS];
    T pivot, alpha;
    T a[rest > 0 ? rest : 1][COLS][rest > 0 ? threads : 1];
  };
};

template <class T, int ROWS, int COLS> class grid_tridiagonal {
  using R = real_t<T>;
  using shape = grid_shape<T, ROWS, COLS>;
  using shared = typename shape::shared;
  using mail = letter<T>;
  using unit = typename mail::unit;
  static constexpr int threads = shape::threads, kept = shape::kept;

public:
  __device__ __forceinline__ grid_tridiagonal(shared &s, unit *letters, int n)
      : s_(s), sums_(s.sums), letters_(letters), n_(n), blocks_(static_cast<int>(gridDim.x)),
        rank_(static_cast<int>(blockIdx.x)) {}

  /* This block's rows of both triangles. Returns the largest magnitude of the thread's. */
  __device__ __forceinline__ uint32_t load(const matrix_view<T> &a, bool lower) {
    uint32_t u = 0;
    each([&](T &entry, int i, int j) {
      entry = zero<T>();
      if (i >= n_ || j >= n_) return;
      const T x = (lower ? i >= j : i <= j) ? *a.at(i, j) : conj(*a.at(j, i));
      entry = i == j ? make<T>(real_part(x)) : x;
      u = greater(u, magnitude_or_one(entry));
    });
    return u;
  }
  __device__ __forceinline__ void scale(int exponent) {
    each([&](T &entry, int, int) { entry = times_power(entry, exponent); });
  }

  /* As cluster_tridiagonal::run(); the block of row k + 1 writes what step k finds. */
  __device__ __forceinline__ void run(const matrix_view<T> &to, T *taus, R *d, R *e) {
    T v[COLS], w[COLS], x[COLS], tau = zero<T>();
#pragma unroll
    for (int m = 0; m < COLS; m++) v[m] = w[m] = x[m] = zero<T>();
    keep_column(0);
    block_sync();
    send(0, -1);
    /* Blocks go as long as they have something to send, so that all that receive are waited for, and the one
     * with the last row to the end. */
    const int last = (n_ - 1 - rank_) / blocks_ * blocks_ + rank_;
    for (int k = 0; last > k || (last == k && k == n_ - 1); k++) {
      T z[COLS];
      receive(k, tau, v, w, z);
      const bool mine = k == n_ - 1 || (k + 1) % blocks_ == rank_;
      const reflector<T> h = next_reflector(k, z, mine ? d : nullptr);
      if (k == n_ - 1) break;
#pragma unroll
      for (int m = 0; m < COLS; m++) {
        const int c = column(m);
        x[m] = c == k + 1 ? one<T>() : c > k + 1 && c < n_ ? z[m] * h.scale : zero<T>();
        if (mine && c > k && c < n_) *to.at(c, k) = x[m];
      }
      tau = h.tau;
      if (mine && thread_id() == 0) {
        taus[k] = tau;
        e[k] = h.beta * span<R>::unit;
      }
      pass(k, v, w, x);
      block_sync();
      send(k + 1, k);
#pragma unroll
      for (int m = 0; m < COLS; m++) v[m] = x[m];
    }
  }

private:
  __device__ __forceinline__ static int column(int m) { return thread_id() + threads * m; }
  __device__ __forceinline__ int row(int r) const { return r * blocks_ + rank_; }
  __device__ __forceinline__ T &entry(int r, int m) {
    if (r < kept) return a_[r < kept ? r : 0][m];
    return s_.a[r < kept ? 0 : r - kept][m][thread_id()];
  }
  /* f(entry, row, column) of all. */
  template <class F> __device__ __forceinline__ void each(F &&f) {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int m = 0; m < COLS; m++) f(entry(r, m), row(r), column(m));
  }

  /* Rows' entries of column c, by the thread that has it. */
  __device__ __forceinline__ void keep_column(int c) {
#pragma unroll
    for (int m = 0; m < COLS; m++)
      if (column(m) == c) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) s_.column[r] = entry(r, m);
      }
  }

  /* Message number k, of rows below `above`, by the first warp: products, zeros for the first one. */
  __device__ __forceinline__ void send(int k, int above) {
    if (warp_id() > 0) return;
    constexpr int parts = warp_lanes / ROWS;
    const int r = lane_id() % ROWS, i = row(r);
    T sum = zero<T>();
    if (k > 0)
#pragma unroll
      for (int w = 0; w < shape::warps; w += parts) sum = sum + s_.part[w + lane_id() / ROWS][r];
#pragma unroll
    for (int d = ROWS; d < warp_lanes; d *= 2) sum = sum + exchange(sum, d);
    if (lane_id() < ROWS && i > above && i < n_) {
      mail own;
      own.write(sum, s_.column[r]);
      own.send(place(k, i), phase(k));
    }
  }
  __device__ __forceinline__ unit *place(int k, int i) const {
    return letters_ + (static_cast<int64_t>(k & 1) * n_ + i) * mail::units;
  }
  __device__ __forceinline__ static bool phase(int k) { return (k >> 1 & 1) != 0; }

  /* w of the last step, and z, column k with that. */
  __device__ __forceinline__ void receive(int k, T tau, const T (&v)[COLS], T (&w)[COLS], T (&z)[COLS]) {
    mail letters[COLS];
    bool waiting;
    do { /* all of them are under way at once */
      waiting = false;
#pragma unroll
      for (int m = 0; m < COLS; m++)
        if (column(m) >= k && column(m) < n_) letters[m].look(place(k, column(m)));
#pragma unroll
      for (int m = 0; m < COLS; m++)
        if (column(m) >= k && column(m) < n_) waiting = waiting || !letters[m].has_come(phase(k));
    } while (group_any(waiting));
    T dot[1] = {zero<T>()};
#pragma unroll
    for (int m = 0; m < COLS; m++) {
      const int c = column(m);
      w[m] = z[m] = zero<T>();
      if (c < k || c >= n_) continue;
      T product;
      letters[m].read(product, z[m]);
      w[m] = tau * product;
      dot[0] = cmadd(w[m], v[m], dot[0]);
      if (c == k) s_.pivot = w[m];
    }
    if (k == 0) return;
    sums_.sum(dot);
    const T factor = scaled(tau, R(-0.5)) * dot[0], wk = conj(s_.pivot + factor);
#pragma unroll
    for (int m = 0; m < COLS; m++) {
      const int c = column(m);
      if (c < k || c >= n_) continue;
      w[m] = madd(factor, v[m], w[m]);
      z[m] = madd(-v[m], wk, z[m] - w[m]);
      if (c % blocks_ == rank_) {
        s_.row_v[c / blocks_] = v[m];
        s_.row_w[c / blocks_] = w[m];
      }
    }
  }

  __device__ __forceinline__ reflector<T> next_reflector(int k, const T (&z)[COLS], R *d) {
    R ss = 0;
#pragma unroll
    for (int m = 0; m < COLS; m++) {
      const int c = column(m);
      if (c == k && d) d[k] = real_part(z[m]) * span<R>::unit;
      if (c == k + 1) s_.alpha = z[m];
      if (c > k + 1) ss = abs2_add(z[m], ss);
    }
    ss = sums_.sum(ss);
    if (k == n_ - 1) return {};
    const T alpha = s_.alpha;
    if (!(abs2_add(alpha, ss) > span<R>::least2)) return {zero<T>(), R(0), R(1), zero<T>()};
    return larfg(alpha, ss, R(1), false);
  }

  /* Rows below k, updated, times x. */
  __device__ __forceinline__ void pass(int k, const T (&v)[COLS], const T (&w)[COLS], const T (&x)[COLS]) {
    T y[ROWS], minus_v[COLS], minus_w[COLS];
#pragma unroll
    for (int m = 0; m < COLS; m++) {
      minus_v[m] = -conj(v[m]);
      minus_w[m] = -conj(w[m]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      y[r] = zero<T>();
      if (row(r) <= k) continue;
      const T vi = k > 0 ? s_.row_v[r] : zero<T>(), wi = k > 0 ? s_.row_w[r] : zero<T>();
#pragma unroll
      for (int m = 0; m < COLS; m++) {
        if ((m + 1) * threads <= k) continue;
        T &z = entry(r, m);
        const T updated = madd(vi, minus_w[m], madd(wi, minus_v[m], z));
        z = updated;
        y[r] = madd(updated, x[m], y[r]);
      }
    }
    keep_column(k + 1);
    const T sum = group_sum_scatter<ROWS>(y);
    constexpr int lanes = warp_lanes / ROWS;
    if (lane_id() % lanes == 0) s_.part[warp_id()][lane_id() / lanes] = sum;
  }

  shared &s_;
  block_reducer<T, 1> sums_;
  unit *letters_;
  const int n_, blocks_, rank_;
  T a_[kept > 0 ? kept : 1][COLS];
};

} // namespace bqr

#endif
