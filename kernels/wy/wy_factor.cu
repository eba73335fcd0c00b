/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of 32 columns of large members, or in real types of 64, V, R and T, by one cluster of blocks in one
 * launch; of many members a cluster each, of half as many blocks where those hold the rows, or where none
 * holds them: then panels are read twice, for their products and for V.
 *
 * A panel takes one sum over all rows for its columns, and none for each of them: see
 * common/panel/panel_factors.cuh. Small factors are made by each block for itself.
 *
 * A panel whose columns are nearly dependent, or whose norms cannot be squared, is done by mma_qr instead, by
 * the same cluster; nothing of A is written before that is known. It is decided by numbers of this panel
 * alone. */
#include "wy_factor.h"
#include "shift.cuh"
#include "common/panel/mma_qr.cuh"
#include "common/panel/panel_factors.cuh"
#include "common/simt/tile.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/target.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/griddepcontrol.cuh"
#include "common/simt/launch_dependent.cuh"

namespace {
using namespace bqr;
using namespace bqr::panel_factors;

constexpr int most_blocks = 16, few_blocks = 8; /* of a cluster */
constexpr int most_tall_rows = 16384;
constexpr int slab_rows = 16; /* of a warp at once */

/* X: of factors and sums. HELD: rows are in shared memory, too. */
template <class X, int N, int B, bool HELD> struct storage {
  static constexpr int values = upper_tiles<N>::values, values_of_block = values / B;
  static constexpr int parts = N > warp_lanes &&HELD ? 2 : 4; /* of the warps' sums, one after another */

  double norms[warps][N], inbox[B][N], norm2[N], trace[N / slab_rows];
  row_barriers<N> ready;
  union {
    matrix<N, X> lw;
    X share[values]; /* of the blocks' sums */
  };
  union {
    X part[parts][values];
    struct {
      matrix<N, X> r;
      divisors<N, X> by;
    };
  };
};

/* A panel of up to 256 R rows for each block, one column after another. Compiled once for all widths. */
template <class T, int R, int B> using slow_type = mma_qr<T, 4 * R, warps, B, 0, false>;
template <class T, int R, int B>
__device__ __noinline__ void factor_slowly(T *a, int64_t lda, int rows, int columns, T *tau, bool positive) {
  slow_type<T, R, B>(shared_memory<unsigned char>(), a, lda, rows, columns).run(tau, positive);
}

/* N columns and up to 256 R rows for each of B blocks, which hold them in shared memory or read them twice.
 */
template <class T, int N, int R, int B, bool HELD = true> class panel_qr {
  using X = wide<T>;
  using rows16 = panel_factors::rows16<N, X>;
  static constexpr int tiles = N / tile, ld = slab_rows + pack<T>::size;
  using upper_sums = upper_tiles<N>;
  using storage_type = storage<X, N, B, HELD>;
  static_assert(sizeof(storage_type) % 16 == 0, "rows follow");

public:
  static constexpr int blocks = B, most_rows = R * warp_lanes * warps * B;
  /* Rows of a block; the first one has those of R. */
  static int share_of(int rows) { return largest(((rows - 1) / (blocks * slab_rows) + 1) * slab_rows, N); }
  static size_t smem(int rows) {
    const size_t slab = sizeof(T) * N * ld,
                 held = HELD ? slab * static_cast<size_t>(share_of(rows) / slab_rows) : 0,
                 fast = sizeof(storage_type) + held, slow = slow_type<T, R, B>::smem(N);
    return fast > slow ? fast : slow;
  }

  __device__ panel_qr(const bqr_wy_panel &p, int share, unsigned member)
      : p_(p), a_(shifted(static_cast<T *>(p.a), member, p.many.a) + p.at * (p.lda + 1)),
        r_(shifted(static_cast<T *>(p.r), member, p.many.own) + p.at * (p.ldr + 1)),
        t_(shifted(static_cast<T *>(p.t), member, p.many.own) + p.at * (p.ldt + 1)),
        tau_(shifted(static_cast<T *>(p.tau), member, p.many.tau)), first_(cluster_rank() * share),
        end_(least(first_ + share, p.rows - p.at)) {}

  __device__ void run() {
    if (HELD) start_copies();
    s().ready.init();
    clear();
    if (HELD) copy_async_wait_groups<0>();
    cluster_sync(); /* all blocks have started, too */
    add_up_products();
    T top[N * N / threads];
#pragma unroll
    for (int k = 0; k < N * N / threads; k++)
      top[k] = a_[thread_id() % N + (thread_id() / N + k * (threads / N)) * p_.lda];
    sum_over_cluster();
#pragma unroll
    for (int k = 0; k < N * N / threads; k++)
      s().lw(thread_id() % N, thread_id() / N + k * (threads / N)) = converted<X>(top[k]);
    if (thread_id() < N) s().norm2[thread_id()] = real_part(s().r(thread_id(), thread_id()));
    block_sync();
    factor(s().r, s().lw, s().by, s().ready, p_.positive, [](int) {});
    if (cluster_rank() == 0) store_r();
    HELD ? finish_held() : finish_passed();
  }

private:
  __device__ __forceinline__ void finish_held() {
    const int busy = cluster_rank() < blocks - 2 ? 0 : N / slab_rows; /* warps */
    if (warp_id() >= busy)
      make_v(warp_id() - busy, warps - busy);
    else if (cluster_rank() == blocks - 1)
      store_t();
    else
      make_trace();
    if (make_tau(busy))
      store_v();
    else
      run_slowly();
  }
  /* The test comes first, since V goes straight to A. */
  __device__ __forceinline__ void finish_passed() {
    if (warp_id() < N / slab_rows)
      s().trace[warp_id()] = trace_of_rows<T>(warp_id() * slab_rows, s().r, s().by, s().norm2);
    block_sync();
    if (!is_independent()) return run_slowly();
    if (warp_id() < N / slab_rows && cluster_rank() == blocks - 1) store_t();
    make_v(warp_id(), warps);
    make_tau(0);
  }
  /* Not kept, so that functions know that they are shared memory. */
  __device__ __forceinline__ static storage_type &s() { return *shared_memory<storage_type>(); }
  /* Slabs are 16 rows; number 0 has the block's first one. */
  __device__ __forceinline__ static T *slab(int number) {
    return reinterpret_cast<T *>(shared_memory<unsigned char>() + sizeof(storage_type)) + number * (N * ld);
  }
  /* f(number, its first row) for the slabs of one of `count` workers. */
  template <class F> __device__ __forceinline__ void each_slab(int worker, int count, F &&f) const {
    for (int number = worker; first_ + number * slab_rows < end_; number += count)
      f(number, first_ + number * slab_rows);
  }
  /* f(element of a column, column): 16 bytes of each to a lane. */
  template <class F> __device__ __forceinline__ static void each_unit(F &&f) {
    constexpr int unit = pack<T>::size, units = slab_rows / unit, columns = warp_lanes / units;
#pragma unroll 8
    for (int k = 0; k < N / columns; k++) f(lane_id() % units * unit, lane_id() / units + k * columns);
  }

  __device__ __forceinline__ void start_copies() const {
    each_slab(warp_id(), warps, [&](int number, int top) {
      each_unit([&](int i, int j) {
        const int left = largest(0, least(pack<T>::size, end_ - top - i));
        const T *from = a_ + (left > 0 ? top + i : 0) + j * p_.lda;
        copy_async_part<16, true>(slab(number) + i + j * ld, from, left * static_cast<int>(sizeof(T)));
      });
    });
    copy_async_group();
  }
  __device__ __forceinline__ void store_v() const {
    each_slab(warp_id(), warps, [&](int number, int top) {
      each_unit([&](int i, int j) {
        const T *from = slab(number) + i + j * ld;
        T *to = a_ + top + i + j * p_.lda;
        const int left = end_ - top - i;
        if (left >= pack<T>::size) {
          *reinterpret_cast<pack<T> *>(to) = *reinterpret_cast<const pack<T> *>(from);
        } else {
          for (int e = 0; e < left; e++) to[e] = from[e];
        }
      });
    });
  }

  /* What is above the panel goes to r, with zeros in its place, as below its square in t. */
  __device__ __forceinline__ void clear() const {
#pragma unroll 1
    for (int j = cluster_rank() * warps + warp_id(); j < N; j += blocks * warps) {
#pragma unroll 4
      for (int i = lane_id() - p_.at; i < 0; i += warp_lanes) {
        r_[i + j * p_.ldr] = a_[i + j * p_.lda];
        a_[i + j * p_.lda] = zero<T>();
      }
      for (int i = N + lane_id(); i < p_.cols - p_.at; i += warp_lanes) t_[i + j * p_.ldt] = zero<T>();
    }
  }

  /* A slab of A as rows16 and back: the lane's rows of its first column, of which `left` are there. */
  __device__ __forceinline__ T *first_of_slab(int top, int &left) const {
    const int i = top + 2 * (lane_id() / 4);
    left = end_ - i;
    return a_ + i + 2 * (lane_id() % 4) * p_.lda;
  }
  __device__ __forceinline__ void read_slab(rows16 &x, int top) const {
    int left;
    const T *const from = first_of_slab(top, left);
    const bool whole = top + slab_rows <= end_;
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        T pair[2] = {};
        const T *at = from + (tile * J + e) * p_.lda;
        if (whole)
          read_two(pair, at);
        else if (left > 0)
          pair[0] = at[0], pair[1] = left > 1 ? at[1] : zero<T>();
        x[J][e] = converted<X>(pair[0]);
        x[J][2 + e] = converted<X>(pair[1]);
      }
  }
  __device__ __forceinline__ void write_slab(const rows16 &x, int top) const {
    int left;
    T *const to = first_of_slab(top, left);
    const bool whole = top + slab_rows <= end_;
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const T pair[2] = {converted<T>(x[J][e]), converted<T>(x[J][2 + e])};
        T *at = to + (tile * J + e) * p_.lda;
        if (whole)
          write_two(at, pair);
        else
          for (int h = 0; h < 2; h++)
            if (h < left) at[h] = pair[h];
      }
  }

  /* The block's part of X^H X, in sums of groups of warps. A group has every so many-th slab, a warp of it
   * some of the tiles. */
  __device__ __noinline__ void add_up_products() const {
    constexpr int shares = warps / storage_type::parts;
    static_for<shares>([&](auto share) {
      if (warp_id() % shares == decltype(share)::value) add_up_tiles<decltype(share)::value, shares>();
    });
  }
  template <int SHARE, int SHARES> __device__ __forceinline__ void add_up_tiles() const {
    constexpr int own = upper_sums::count / SHARES;
    X c[own][4] = {};
    each_slab(warp_id() / SHARES, storage_type::parts, [&](int number, int top) {
      const T *const from = a_ + top + 2 * (lane_id() % 4) + lane_id() / 4 * p_.lda;
      T passed[HELD ? 1 : 2][HELD ? 1 : tiles][2];
      if constexpr (!HELD) {
        const int left = end_ - top - 2 * (lane_id() % 4);
        if (top + slab_rows <= end_) {
#pragma unroll
          for (int t = 0; t < 2; t++)
#pragma unroll
            for (int J = 0; J < tiles; J++) read_two(passed[t][J], from + 8 * t + tile * J * p_.lda);
        } else {
#pragma unroll
          for (int t = 0; t < 2; t++)
#pragma unroll
            for (int J = 0; J < tiles; J++)
#pragma unroll
              for (int e = 0; e < 2; e++)
                passed[t][J][e] = 8 * t + e < left ? from[8 * t + e + tile * J * p_.lda] : zero<T>();
        }
      }
#pragma unroll
      for (int t = 0; t < 2; t++) {
        X x[tiles][2]; /* the lane's columns are 8 J + g */
#pragma unroll
        for (int J = 0; J < tiles; J++) {
          T pair[2];
          if constexpr (HELD)
            read_two(pair, slab(number) + (tile * J + lane_id() / 4) * ld + 8 * t + 2 * (lane_id() % 4));
          else
            pair[0] = passed[t][J][0], pair[1] = passed[t][J][1];
          x[J][0] = converted<X>(pair[0]);
          x[J][1] = converted<X>(pair[1]);
        }
        upper_sums::each([&](auto place, auto down, auto across) {
          constexpr int n = decltype(place)::value, I = decltype(down)::value, J = decltype(across)::value;
          if constexpr (n / own == SHARE)
            add_product(c[n % own],
                        {conj(x[2 * I][0]), conj(x[2 * I][1]), conj(x[2 * I + 1][0]), conj(x[2 * I + 1][1])},
                        x[J][0], x[J][1]);
        });
      }
    });
    X *part = s().part[warp_id() / SHARES] + SHARE * own * 4 * warp_lanes + lane_id();
#pragma unroll
    for (int e = 0; e < own * 4; e++) part[e * warp_lanes] = c[e / 4][e % 4];
  }
  /* The upper triangle of r := the sum of all blocks' parts, each block having added up a share of them. */
  __device__ __forceinline__ static void sum_over_cluster() {
    constexpr int each = storage_type::values_of_block;
    block_sync();
#pragma unroll
    for (int e = thread_id(); e < storage_type::values; e += threads) {
      X total = s().part[0][e];
#pragma unroll
      for (int w = 1; w < storage_type::parts; w++) total += s().part[w][e];
      cluster_shared(s().share, e / each)[cluster_rank() * each + e % each] = total;
    }
    cluster_sync();
    for (int e = thread_id(); e < each; e += threads) {
      X total = s().share[e];
#pragma unroll
      for (int b = 1; b < blocks; b++) total += s().share[b * each + e];
      upper_sums::place(cluster_rank() * each + e, [&](int i, int j) {
#pragma unroll
        for (int b = 0; b < blocks; b++) *cluster_shared(&s().r(i, j), b) = total;
      });
    }
    cluster_sync();
  }

  __device__ __forceinline__ void store_r() const {
    for (int j = warp_id(); j < N; j += warps)
      for (int i = lane_id(); i <= j; i += warp_lanes)
        r_[i + j * p_.ldr] = converted<T>(scaled(s().r(i, j), s().by.sign[i]));
  }
  /* 16 rows of T by a warp. */
  __device__ __forceinline__ void store_t() const {
    const int top = warp_id() * slab_rows;
    rows16 x;
    make_t(x, top, s().r, s().lw, s().by);
    each_element(x, [&](X &y, int i, int j) {
      t_[top + i + j * p_.ldt] = top + i <= j ? converted<T>(y) : zero<T>();
    });
  }
  /* For all blocks, a part by a warp. */
  __device__ __forceinline__ static void make_trace() {
    const double sum = trace_of_rows<T>(warp_id() * slab_rows, s().r, s().by, s().norm2);
    if (lane_id() < blocks) *cluster_shared(&s().trace[warp_id()], lane_id()) = sum;
  }

  /* V in place of the panel, and the squared norms of its columns. */
  __device__ __forceinline__ void make_v(int worker, int count) const {
    column_norms<T, N> norms;
    each_slab(worker, count, [&](int number, int top) {
      rows16 x;
      if (top < N) {
        each_element(
            x, [&](X &y, int i, int j) { y = top + i > j ? s().lw(top + i, j) : make<X>(top + i == j); });
      } else {
        if constexpr (HELD)
          read_rows<T>(x, slab(number), ld);
        else
          read_slab(x, top);
        divide(x, upper(s().lw), s().by.by_w);
      }
      if constexpr (HELD)
        write_rows<T>(x, slab(number), ld);
      else
        write_slab(x, top);
      norms.add(x);
    });
    norms.store(s().norms[warp_id()]);
  }
  /* tau that fits its vector's norm to rounding; or that columns are too near to dependent. Of this block's
   * warps the first `busy` have none of the norms. */
  __device__ __forceinline__ bool make_tau(int busy) const {
    const int j = thread_id();
    block_sync();
    if (j < N) {
      double sum = 0;
      for (int w = busy; w < warps; w++) sum += s().norms[w][j];
      *cluster_shared(&s().inbox[cluster_rank()][j], 0) = sum;
    }
    cluster_sync();
    if (HELD && !is_independent()) return false;
    if (cluster_rank() > 0 || j >= N) return true;
    double sum = 0;
#pragma unroll
    for (int b = 0; b < blocks; b++) sum += s().inbox[b][j];
    tau_[j] = tau_of(j, sum);
    return true;
  }

  /* By all threads. */
  __device__ __forceinline__ bool is_independent() const {
    double sum = 0;
#pragma unroll
    for (double part : s().trace) sum += part;
    return sum < most_trace<T> && !(p_.positive && !are_far_from_zero(s().r, s().by));
  }

  /* In the direction of -W(j, j) / (S R)(j, j); norm2: of the vector. */
  __device__ __forceinline__ static T tau_of(int j, double norm2) {
    if constexpr (is_complex<T>)
      return converted<T>(unitary_tau(scaled(s().lw(j, j), -s().by.sign[j]), norm2));
    else
      return static_cast<T>(2 / norm2);
  }

  /* One column after another, and T from the products of V's columns. */
  __device__ __noinline__ void run_slowly() {
    s().ready.end();
    cluster_sync();
    factor_slowly<T, R, B>(a_, p_.lda, p_.rows - p_.at, N, tau_, p_.positive);
    cluster_sync();
    if (HELD) start_copies();
    if (HELD) copy_async_wait_groups<0>();
    block_sync();
    if (cluster_rank() == 0) exchange_top();
    block_sync();
    add_up_products();
    sum_over_cluster();
    if (cluster_rank() == blocks - 1) sum_up_t();
  }
  /* R goes to r, ones and zeros take its place. */
  __device__ __forceinline__ void exchange_top() const {
#pragma unroll 1
    for (int e = thread_id(); e < N * N; e += threads) {
      const int i = e % N, j = e / N;
      if (i > j) continue;
      T &x = a_[i + j * p_.lda];
      r_[i + j * p_.ldr] = x;
      x = i == j ? one<T>() : zero<T>();
      if (HELD) slab(i / slab_rows)[i % slab_rows + j * ld] = x;
    }
  }
  /* As xLARFT: a warp has the sums of each eighth column, lanes are rows. */
  __device__ __forceinline__ void sum_up_t() const {
    constexpr int parts = N / warp_lanes;
    auto &tau = s().by.back;
    if (thread_id() < N) tau[thread_id()] = converted<X>(tau_[thread_id()]);
    block_sync();
    X sum[N / warps][parts] = {};
    static_for<N / warps>([&](auto number) {
      constexpr int first = decltype(number)::value;
#pragma unroll 1
      for (int owner = 0; owner < warps; owner++) {
        const int k = first * warps + owner;
        if (warp_id() == owner)
#pragma unroll
          for (int h = 0; h < parts; h++) {
            const int i = lane_id() + warp_lanes * h;
            const X x = k < i || is_zero(tau[k]) ? zero<X>() : k == i ? tau[k] : -(tau[k] * sum[first][h]);
            s().lw(k, i) = x;
            t_[i + k * p_.ldt] = converted<T>(x);
          }
        block_sync();
#pragma unroll
        for (int u = first; u < N / warps; u++)
#pragma unroll
          for (int h = 0; h < parts; h++)
            sum[u][h] =
                madd(s().lw(k, lane_id() + warp_lanes * h), s().r(k, warp_id() + warps * u), sum[u][h]);
      }
    });
  }

  const bqr_wy_panel &p_;
  T *a_, *r_, *t_; /* from the panel's first row and column on */
  T *tau_;
  int first_, end_; /* the block's rows */
};

template <class T, int N, int R, int B, bool HELD>
__global__ void __launch_bounds__(threads, 1)
    factor_kernel(const __grid_constant__ bqr_wy_panel panel, int share) {
  wait_for_previous();
  if (panel.done && *panel.done) return;
  if constexpr (has_clusters) panel_qr<T, N, R, B, HELD>(panel, share, blockIdx.x / B).run();
}

/* The most rows whose shared memory fits. */
template <class Q> int rows_for(int bytes) {
  int rows = Q::most_rows;
  while (rows > 0 && Q::smem(rows) > static_cast<size_t>(bytes)) rows -= Q::blocks * slab_rows;
  return rows;
}

/* f(a panel_qr's type, its kernel) of the instance for these panels; of rows = 0 the one for most rows. */
template <class F> auto with_kernel(batchqr_type type, int width, int rows, F &&f) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int B = most_blocks;
    auto go = [&](auto columns, auto units) {
      constexpr int N = decltype(columns)::value, R = decltype(units)::value;
      return f(type_tag<panel_qr<T, N, R, B>>{}, factor_kernel<T, N, R, B, true>);
    };
    using two = std::integral_constant<int, 2>;
    using four = std::integral_constant<int, 4>;
    using narrow = std::integral_constant<int, 32>;
    if constexpr (!is_complex<T>)
      if (width > 32) return go(std::integral_constant<int, 64>{}, two{});
    if constexpr (sizeof(T) == sizeof(float))
      if (rows == 0 || rows > panel_qr<T, 32, 2, B>::most_rows) return go(narrow{}, four{});
    return go(narrow{}, two{});
  });
}

/* The widest panels. */
int most_columns(batchqr_type type) { return type == BATCHQR_C || type == BATCHQR_Z ? 32 : 64; }

/* The same of the instances for panels of many members. */
template <class F> auto with_kernel_of_many(batchqr_type type, int width, F &&f) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto go = [&](auto columns, auto units) {
      constexpr int N = decltype(columns)::value, R = decltype(units)::value, B = few_blocks;
      return f(type_tag<panel_qr<T, N, R, B>>{}, factor_kernel<T, N, R, B, true>);
    };
    using two = std::integral_constant<int, 2>;
    if constexpr (!is_complex<T>)
      if (width > 32) return go(std::integral_constant<int, 64>{}, two{});
    return go(std::integral_constant<int, 32>{}, std::integral_constant < int, sizeof(T) == 4 ? 4 : 2 > {});
  });
}

/* The most rows of these. */
int rows_of_many(batchqr_type type, int width, int bytes) {
  return with_kernel_of_many(type, width,
                             [&](auto tag, auto) { return rows_for<typename decltype(tag)::type>(bytes); });
}

/* The same of the instances for the widest panels whose rows no cluster holds, of real types. In double
 * precision the fallback has registers and shared memory for half as many rows of a block. */
template <class F> auto with_kernel_of_tall(batchqr_type type, int rows, F &&f) {
  auto go = [&](auto tag, auto units, auto of_cluster) {
    using T = typename decltype(tag)::type;
    constexpr int N = 64, R = decltype(units)::value, B = decltype(of_cluster)::value;
    return f(type_tag<panel_qr<T, N, R, B, false>>{}, factor_kernel<T, N, R, B, false>);
  };
  using four = std::integral_constant<int, 4>;
  using few = std::integral_constant<int, few_blocks>;
  if (type == BATCHQR_S) return go(type_tag<float>{}, std::integral_constant<int, 8>{}, few{});
  if (rows <= panel_qr<double, 64, 4, few_blocks, false>::most_rows)
    return go(type_tag<double>{}, four{}, few{});
  return go(type_tag<double>{}, four{}, std::integral_constant<int, most_blocks>{});
}
} // namespace

extern "C" {

int bqr_wy_factor_rows_of_many(batchqr_type type, int width, const bqr_device *device) {
  const int held = bqr_wy_factor_rows(type, width, device);
  if (held == 0 || width <= 32) return held;
  const int passed = with_kernel_of_tall(type, most_tall_rows, [&](auto tag, auto) {
    return rows_for<typename decltype(tag)::type>(device->smem_per_block);
  });
  return largest(held, passed);
}

int bqr_wy_factor_rows(batchqr_type type, int width, const bqr_device *device) {
  if ((width != 32 && width != most_columns(type)) || !bqr_has_wide_clusters(device)) return 0;
  return with_kernel(type, width, 0, [&](auto tag, auto) {
    return rows_for<typename decltype(tag)::type>(device->smem_per_block);
  });
}

batchqr_status bqr_wy_factor(batchqr_type type, const bqr_wy_panel *panel, batchqr_stream stream) {
  const int rows = panel->rows - panel->at;
  auto launch = [&](auto tag, auto kernel) {
    using Q = typename decltype(tag)::type;
    return launch_dependent_clusters(kernel, members_of(panel->many), Q::blocks, threads, Q::smem(rows),
                                     stream, *panel, Q::share_of(rows));
  };
  const bool of_many =
      panel->many.count > 0 &&
      rows <= rows_of_many(type, panel->width, device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  if (of_many) return with_kernel_of_many(type, panel->width, launch);
  return panel->many.count > 0 && panel->width > 32 ? with_kernel_of_tall(type, rows, launch)
                                                    : with_kernel(type, panel->width, rows, launch);
}

batchqr_status bqr_wy_factor_prepare(batchqr_type type, const bqr_device *device) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int width = 32; width <= most_columns(type); width += 32)
    for (int rows = 0; rows < 2 && !status; rows++)
      if (bqr_wy_factor_rows(type, width, device) > 0)
        status = with_kernel(type, width, rows, [&](auto, auto kernel) {
          return prepare_kernel(kernel, static_cast<size_t>(device->smem_per_block), most_blocks);
        });
  for (int width = 32; width <= most_columns(type) && !status; width += 32)
    if (bqr_wy_factor_rows(type, width, device) > 0)
      status = with_kernel_of_many(type, width, [&](auto, auto kernel) {
        return prepare_kernel(kernel, static_cast<size_t>(device->smem_per_block), few_blocks);
      });
  if (status || most_columns(type) <= 32 || bqr_wy_factor_rows(type, most_columns(type), device) == 0)
    return status;
  for (int rows : {1, most_tall_rows})
    if (!status)
      status = with_kernel_of_tall(type, rows, [&](auto tag, auto kernel) {
        using Q = typename decltype(tag)::type;
        return prepare_kernel(kernel, Q::smem(1), Q::blocks);
      });
  return status;
}
}
