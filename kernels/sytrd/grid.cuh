/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of one matrix to tridiagonal form by a block on each multiprocessor, which keeps some rows of it
 * on the chip: A is read once. Rows are dealt out to the blocks by fours; thread t has columns t, t + 256,
 * ... of its block's, and these entries of v, w and the next v.
 *
 * A step, as xSYTD2's: rows are updated by the last step's v and w, A - v w^H - w v^H, and multiplied by the
 * new v in the same pass. What other blocks need of that, each row's product and its entry of the next
 * column, goes to all of them by one message a row; then each knows w and the next v, which all work out for
 * themselves, in the same order and so with the same bits.
 *
 * A message is written at once, and says itself that it is there: the last bit of the product is the step's
 * phase. That is at most a unit in the last place of a number that has been rounded often. There are two
 * places for each, in turn: who sends step k + 1's has all messages of step k, whose senders had all those of
 * step k - 1. Four rows' lie side by side and are written together: sectors of the cache that a block writes
 * a part of take longer. */
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

/* Where the results go to. In shared memory: registers are short, and few threads need it. */
template <class T> struct grid_results {
  T *a; /* n x n */
  T *tau;
  real_t<T> *d, *e;
};

/* ROWS: of a block, a power of two; COLS: of a thread, up to 4. */
template <class T, int ROWS, int COLS> struct grid_shape {
  static constexpr int rows = ROWS, threads = 512, warps = threads / warp_lanes;
  /* Rows of a block that follow one another: their messages are a whole number of the cache's sectors. */
  static constexpr int of_messages = 64 / static_cast<int>(2 * sizeof(T));
  static constexpr int adjacent = of_messages < ROWS ? of_messages : ROWS;
  /* Rows that are kept in registers, the others in shared memory. */
  static constexpr int bytes = COLS * static_cast<int>(sizeof(T));
  static constexpr int most = (sizeof(T) > 4 ? 160 : 256) / bytes;
  static constexpr int kept = most < ROWS ? most : ROWS, rest = ROWS - kept;

  struct shared {
    T sums[block_reducer<T, 4>::elements_for(warps)];
    T part[warps][ROWS], column[ROWS], row_v[ROWS], row_w[ROWS];
    T pivot, alpha, alpha_v;
    grid_results<T> to;
    T a[rest > 0 ? rest : 1][COLS][rest > 0 ? threads : 1];
  };
};

template <class T, int ROWS, int COLS> class grid_tridiagonal {
  using R = real_t<T>;
  using shape = grid_shape<T, ROWS, COLS>;
  using shared = typename shape::shared;
  using mail = letter<T>;
  using unit = typename mail::unit;
  static constexpr int threads = shape::threads, kept = shape::kept, adjacent = shape::adjacent;
  static constexpr int none = 255;
  static constexpr int together =
      ROWS < 8 || sizeof(T) > 4 ? 4 : 8; /* rows whose products are summed up together */

public:
  __device__ __forceinline__ grid_tridiagonal(shared &s, unit *letters, int n)
      : s_(s), sums_(s.sums), letters_(letters), n_(n), blocks_(static_cast<int>(gridDim.x)),
        rank_(static_cast<int>(blockIdx.x)) {
    const int all = blocks_ * adjacent, rest = n % all - rank_ * adjacent;
    rows_ = n / all * adjacent + (rest < 0 ? 0 : least(rest, adjacent));
#pragma unroll
    for (int m = 0; m < COLS; m++) {
      const int c = column(m), group = c / adjacent;
      const bool mine = c < n && group % blocks_ == rank_;
      own_ |= uint32_t(mine ? group / blocks_ * adjacent + c % adjacent : none) << 8 * m;
    }
  }

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
  __device__ __forceinline__ void run(const grid_results<T> &to) {
    T v[COLS], tau = zero<T>();
#pragma unroll
    for (int m = 0; m < COLS; m++) v[m] = zero<T>();
    if (thread_id() == 0) s_.to = to;
    if (thread_id() < ROWS) s_.row_v[thread_id()] = s_.row_w[thread_id()] = zero<T>();
    keep_column(0);
    block_sync();
    send(0, -1);
    /* Blocks go as long as they have something to send, so that all that receive are waited for, and the one
     * with the last row to the end. */
    const int last = row(rows_ - 1);
    for (int k = 0; last > k || (last == k && k == n_ - 1); k++) {
      T w[COLS], z[COLS], x[COLS];
      receive(k, tau, v, w, z);
      if (row(done_) <= k) done_++;
      R rest;
      const T factor = complete(k, tau, v, w, z, rest);
      const bool mine = k == n_ - 1 || row(done_) == k + 1;
#pragma unroll
      for (int m = 0; m < COLS; m++)
        if (column(m) == k && mine) s_.to.d[k] = real_part(z[m]) * span<R>::unit;
      if (k == n_ - 1) break;
      const reflector<T> h = next_reflector(rest);
#pragma unroll
      for (int m = 0; m < COLS; m++) {
        const int c = column(m);
        x[m] = c == k + 1 ? one<T>() : c > k + 1 && c < n_ ? z[m] * h.scale : zero<T>();
        if (mine && c > k && c < n_) s_.to.a[c + static_cast<int64_t>(k) * n_] = x[m];
      }
      tau = h.tau;
      if (mine && thread_id() == 0) {
        s_.to.tau[k] = tau;
        s_.to.e[k] = h.beta * span<R>::unit;
      }
      pass(k, factor, v, w, x);
      block_sync();
      send(k + 1, k);
#pragma unroll
      for (int m = 0; m < COLS; m++) v[m] = x[m];
    }
  }

private:
  __device__ __forceinline__ static int column(int m) { return thread_id() + threads * m; }
  __device__ __forceinline__ int row(int r) const {
    return (r / adjacent * blocks_ + rank_) * adjacent + r % adjacent;
  }
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

  /* Waits for messages of rows k to n - 1, all of which are under way at once. */
  __device__ __forceinline__ void wait(int k, mail (&letters)[COLS]) const {
    bool waiting;
    do {
      waiting = false;
#pragma unroll
      for (int m = 0; m < COLS; m++)
        if (column(m) >= k && column(m) < n_) letters[m].look(place(k, column(m)));
#pragma unroll
      for (int m = 0; m < COLS; m++)
        if (column(m) >= k && column(m) < n_) waiting = waiting || !letters[m].has_come(phase(k));
    } while (group_any(waiting));
  }

  /* w = tau A v of the last step, and z, column k less that. */
  __device__ __forceinline__ void receive(int k, T tau, const T (&v)[COLS], T (&w)[COLS], T (&z)[COLS]) {
    mail letters[COLS];
    wait(k, letters);
#pragma unroll
    for (int m = 0; m < COLS; m++) {
      const int c = column(m);
      w[m] = z[m] = zero<T>();
      if (c < k || c >= n_) continue;
      T product, entry;
      letters[m].read(product, entry);
      w[m] = tau * product;
      z[m] = entry - w[m];
      if (c == k) s_.pivot = w[m];
      if (c == k + 1) {
        s_.alpha = z[m];
        s_.alpha_v = v[m];
      }
      const int own = static_cast<int>(own_ >> 8 * m & 255);
      if (own != none) {
        s_.row_v[own] = v[m];
        s_.row_w[own] = w[m];
      }
    }
  }

  /* w and z with what depends on w^H v: w + factor v, z - g v. Returns the factor; `rest` becomes the squared
   * norm of z below row k + 1, in which the part along v is known from the same sums, unless too much of it
   * cancels. */
  __device__ __forceinline__ T complete(int k, T tau, const T (&v)[COLS], T (&w)[COLS], T (&z)[COLS],
                                        R &rest) {
    T sums[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
    R zz = 0, vv = 0;
#pragma unroll
    for (int m = 0; m < COLS; m++) {
      sums[0] = cmadd(w[m], v[m], sums[0]);
      if (column(m) <= k + 1) continue;
      sums[1] = cmadd(v[m], z[m], sums[1]);
      zz = abs2_add(z[m], zz);
      vv = abs2_add(v[m], vv);
    }
    sums[2] = make<T>(zz);
    sums[3] = make<T>(vv);
    sums_.sum(sums);
    const T factor = scaled(tau, R(-0.5)) * sums[0];
    const T g = conj(s_.pivot) + make<T>(2 * real_part(factor));
#pragma unroll
    for (int m = 0; m < COLS; m++) {
      w[m] = madd(factor, v[m], w[m]);
      z[m] = madd(-v[m], g, z[m]);
    }
    alpha_ = madd(-s_.alpha_v, g, s_.alpha);
    const R whole = real_part(sums[2]) + abs2(g) * real_part(sums[3]);
    rest = whole - 2 * real_part(cmadd(g, sums[1], zero<T>()));
    if (rest > R(0.125) * whole || k == n_ - 1) return factor; /* in all blocks */
    R ss = 0;
#pragma unroll
    for (int m = 0; m < COLS; m++)
      if (column(m) > k + 1) ss = abs2_add(z[m], ss);
    rest = sums_.sum(ss);
    return factor;
  }

  __device__ __forceinline__ reflector<T> next_reflector(R rest) const {
    if (!(abs2_add(alpha_, rest) > span<R>::least2)) return {zero<T>(), R(0), R(1), zero<T>()};
    return larfg(alpha_, rest, R(1), false);
  }

  /* Rows below k, updated, times x. Pairs of rows, and those that are summed up together, end with their last
   * row; what comes out for the others is not sent. */
  __device__ __forceinline__ void pass(int k, T factor, const T (&v)[COLS], const T (&w)[COLS],
                                       const T (&x)[COLS]) {
    T minus_v[COLS], minus_w[COLS];
#pragma unroll
    for (int m = 0; m < COLS; m++) {
      minus_v[m] = -conj(v[m]);
      minus_w[m] = -conj(w[m]);
    }
#pragma unroll
    for (int first = 0; first < ROWS; first += together) {
      if (first + together <= done_ || first >= rows_) continue;
      T y[together];
#pragma unroll
      for (int q = 0; q < together; q += 2) {
        y[q] = y[q + 1] = zero<T>();
        if (first + q + 2 <= done_ || first + q >= rows_) continue;
        T vi[2], wi[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
          vi[r] = s_.row_v[first + q + r];
          wi[r] = madd(factor, vi[r], s_.row_w[first + q + r]);
        }
#pragma unroll
        for (int m = 0; m < COLS; m++) {
          if ((m + 1) * threads <= k || m * threads >= n_) continue;
#pragma unroll
          for (int r = 0; r < 2; r++) {
            T &z = entry(first + q + r, m);
            const T updated = madd(vi[r], minus_w[m], madd(wi[r], minus_v[m], z));
            z = updated;
            y[q + r] = madd(updated, x[m], y[q + r]);
          }
        }
      }
      const T sum = group_sum_scatter<together>(y);
      constexpr int lanes = warp_lanes / together;
      if (lane_id() % lanes == 0) s_.part[warp_id()][first + lane_id() / lanes] = sum;
    }
    keep_column(k + 1);
  }

  shared &s_;
  block_reducer<T, 4> sums_;
  unit *letters_;
  const int n_, blocks_, rank_;
  int rows_, done_ = 0; /* rows, and how many of them are above the next one */
  uint32_t own_ = 0;    /* of each column, the row of the same number, 255 if another block has it */
  T alpha_;             /* the next column's entry in row k + 1 */
  T a_[kept > 0 ? kept : 1][COLS];
};

} // namespace bqr

#endif
