/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of 32 or 64 columns of large members, V, R and T, by one cluster of blocks in one launch; of many
 * members a cluster each, of half as many blocks where those hold the rows.
 *
 * A panel takes one sum over all rows for its columns, and none for each of them: see
 * common/panel/panel_factors.cuh. Blocks have their rows in shared memory; small factors are made by each
 * block for itself.
 *
 * A panel whose columns are nearly dependent, or whose norms cannot be squared, is done by mma_qr instead, by
 * the same cluster; nothing of A is written before that is known. It is decided by numbers of this panel
 * alone. */
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
constexpr int slab_rows = 16;                   /* of a warp at once */

template <int N, int B> struct storage {
  static constexpr int values = upper_tiles<N>::values, values_of_block = values / B;
  static constexpr int parts = N > warp_lanes ? 2 : 4; /* of the warps' sums, one after another */

  double norms[warps][N], inbox[B][N], norm2[N], trace[N / slab_rows];
  row_barriers<N> ready;
  union {
    matrix<N> lw;
    double share[values]; /* of the blocks' sums */
  };
  union {
    double part[parts][values];
    struct {
      matrix<N> r;
      divisors<N> by;
    };
  };
};
static_assert(sizeof(storage<32, most_blocks>) % 16 == 0 && sizeof(storage<64, most_blocks>) % 16 == 0 &&
                  sizeof(storage<64, few_blocks>) % 16 == 0,
              "rows follow");

/* A panel of up to 256 R rows for each block, one column after another. Compiled once for all widths. */
template <class T, int R, int B> using slow_type = mma_qr<T, 4 * R, warps, B, 0, false>;
template <class T, int R, int B>
__device__ __noinline__ void factor_slowly(T *a, int64_t lda, int rows, int columns, T *tau, bool positive) {
  slow_type<T, R, B>(shared_memory<unsigned char>(), a, lda, rows, columns).run(tau, positive);
}

/* N columns and up to 256 R rows for each of B blocks. */
template <class T, int N, int R, int B> class panel_qr {
  static constexpr int tiles = N / tile, ld = slab_rows + pack<T>::size;
  using upper_sums = upper_tiles<N>;
  using storage_type = storage<N, B>;

public:
  static constexpr int blocks = B, most_rows = R * warp_lanes * warps * B;
  /* Rows of a block; the first one has those of R. */
  static int share_of(int rows) { return largest(((rows - 1) / (blocks * slab_rows) + 1) * slab_rows, N); }
  static size_t smem(int rows) {
    const size_t slab = sizeof(T) * N * ld,
                 fast = sizeof(storage_type) + slab * static_cast<size_t>(share_of(rows) / slab_rows),
                 slow = slow_type<T, R, B>::smem(N);
    return fast > slow ? fast : slow;
  }

  __device__ panel_qr(const bqr_wy_panel &p, int share, unsigned member)
      : p_(p), a_(shifted(static_cast<T *>(p.a), member, p.many.a) + p.at * (p.lda + 1)),
        r_(shifted(static_cast<T *>(p.r), member, p.many.own) + p.at * (p.ldr + 1)),
        t_(shifted(static_cast<T *>(p.t), member, p.many.own) + p.at * (p.ldt + 1)),
        tau_(shifted(static_cast<T *>(p.tau), member, p.many.tau)), first_(cluster_rank() * share),
        end_(least(first_ + share, p.rows - p.at)) {}

  __device__ void run() {
    start_copies();
    s().ready.init();
    clear();
    copy_async_wait_groups<0>();
    cluster_sync(); /* all blocks have started, too */
    add_up_products();
    T top[N * N / threads];
#pragma unroll
    for (int k = 0; k < N * N / threads; k++)
      top[k] = a_[thread_id() % N + (thread_id() / N + k * (threads / N)) * p_.lda];
    sum_over_cluster();
#pragma unroll
    for (int k = 0; k < N * N / threads; k++)
      s().lw(thread_id() % N, thread_id() / N + k * (threads / N)) = top[k];
    if (thread_id() < N) s().norm2[thread_id()] = s().r(thread_id(), thread_id());
    block_sync();
    factor(s().r, s().lw, s().by, s().ready, p_.positive);
    if (cluster_rank() == 0) store_r();
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

private:
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
    double c[own][4] = {};
    each_slab(warp_id() / SHARES, storage_type::parts, [&](int number, int) {
#pragma unroll
      for (int t = 0; t < 2; t++) {
        double x[tiles][2]; /* the lane's columns are 8 J + g */
#pragma unroll
        for (int J = 0; J < tiles; J++) {
          T pair[2];
          read_two(pair, slab(number) + (tile * J + lane_id() / 4) * ld + 8 * t + 2 * (lane_id() % 4));
          x[J][0] = pair[0];
          x[J][1] = pair[1];
        }
        upper_sums::each([&](auto place, auto down, auto across) {
          constexpr int n = decltype(place)::value, I = decltype(down)::value, J = decltype(across)::value;
          if constexpr (n / own == SHARE)
            add_product(c[n % own], {x[2 * I][0], x[2 * I][1], x[2 * I + 1][0], x[2 * I + 1][1]}, x[J][0],
                        x[J][1]);
        });
      }
    });
    double *part = s().part[warp_id() / SHARES] + SHARE * own * 4 * warp_lanes + lane_id();
#pragma unroll
    for (int e = 0; e < own * 4; e++) part[e * warp_lanes] = c[e / 4][e % 4];
  }
  /* The upper triangle of r := the sum of all blocks' parts, each block having added up a share of them. */
  __device__ __forceinline__ static void sum_over_cluster() {
    constexpr int each = storage_type::values_of_block;
    block_sync();
#pragma unroll
    for (int e = thread_id(); e < storage_type::values; e += threads) {
      double total = s().part[0][e];
#pragma unroll
      for (int w = 1; w < storage_type::parts; w++) total += s().part[w][e];
      cluster_shared(s().share, e / each)[cluster_rank() * each + e % each] = total;
    }
    cluster_sync();
    for (int e = thread_id(); e < each; e += threads) {
      double total = s().share[e];
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
        r_[i + j * p_.ldr] = static_cast<T>(s().by.sign[i] * s().r(i, j));
  }
  /* 16 rows of T by a warp. */
  __device__ __forceinline__ void store_t() const {
    const int top = warp_id() * slab_rows;
    rows16<N> x;
    make_t(x, top, s().r, s().lw, s().by);
    each_element(x, [&](double &y, int i, int j) {
      t_[top + i + j * p_.ldt] = top + i <= j ? static_cast<T>(y) : zero<T>();
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
      rows16<N> x;
      if (top < N) {
        each_element(x, [&](double &y, int i, int j) {
          y = top + i > j ? s().lw(top + i, j) : top + i == j ? 1 : 0;
        });
      } else {
        read_rows(x, slab(number), ld);
        divide(x, upper(s().lw), s().by.by_w);
      }
      write_rows(x, slab(number), ld);
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
    double sum = 0;
#pragma unroll
    for (double part : s().trace) sum += part;
    if (!(sum < most_trace<T>) || (p_.positive && !are_far_from_zero(s().r, s().by))) return false;
    if (cluster_rank() > 0 || j >= N) return true;
    sum = 0;
#pragma unroll
    for (int b = 0; b < blocks; b++) sum += s().inbox[b][j];
    tau_[j] = static_cast<T>(2 / sum);
    return true;
  }

  /* One column after another, and T from the products of V's columns. */
  __device__ __noinline__ void run_slowly() {
    s().ready.end();
    cluster_sync();
    factor_slowly<T, R, B>(a_, p_.lda, p_.rows - p_.at, N, tau_, p_.positive);
    cluster_sync();
    start_copies();
    copy_async_wait_groups<0>();
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
      T &x = slab(i / slab_rows)[i % slab_rows + j * ld];
      r_[i + j * p_.ldr] = x;
      x = a_[i + j * p_.lda] = i == j ? one<T>() : zero<T>();
    }
  }
  /* As xLARFT: a warp has the sums of each eighth column, lanes are rows. */
  __device__ __forceinline__ void sum_up_t() const {
    constexpr int parts = N / warp_lanes;
    auto &tau = s().norm2;
    if (thread_id() < N) tau[thread_id()] = tau_[thread_id()];
    block_sync();
    double sum[N / warps][parts] = {};
    static_for<N / warps>([&](auto number) {
      constexpr int first = decltype(number)::value;
#pragma unroll 1
      for (int owner = 0; owner < warps; owner++) {
        const int k = first * warps + owner;
        if (warp_id() == owner)
#pragma unroll
          for (int h = 0; h < parts; h++) {
            const int i = lane_id() + warp_lanes * h;
            const double x = k < i || tau[k] == 0 ? 0 : k == i ? tau[k] : -tau[k] * sum[first][h];
            s().lw(k, i) = x;
            t_[i + k * p_.ldt] = static_cast<T>(x);
          }
        block_sync();
#pragma unroll
        for (int u = first; u < N / warps; u++)
#pragma unroll
          for (int h = 0; h < parts; h++)
            sum[u][h] =
                fused(s().lw(k, lane_id() + warp_lanes * h), s().r(k, warp_id() + warps * u), sum[u][h]);
      }
    });
  }

  const bqr_wy_panel &p_;
  T *a_, *r_, *t_; /* from the panel's first row and column on */
  T *tau_;
  int first_, end_; /* the block's rows */
};

template <class T, int N, int R, int B>
__global__ void __launch_bounds__(threads, 1)
    factor_kernel(const __grid_constant__ bqr_wy_panel panel, int share) {
  wait_for_previous();
  if (panel.done && *panel.done) return;
  if constexpr (has_clusters) panel_qr<T, N, R, B>(panel, share, blockIdx.x / B).run();
}

/* The most rows whose shared memory fits. */
template <class Q> int rows_for(int bytes) {
  int rows = Q::most_rows;
  while (rows > 0 && Q::smem(rows) > static_cast<size_t>(bytes)) rows -= Q::blocks * slab_rows;
  return rows;
}

/* f(a panel_qr's type, its kernel) of the instance for these panels, of a real type; of rows = 0 the one for
 * most rows. */
template <class F> auto with_kernel(batchqr_type type, int width, int rows, F &&f) {
  auto go = [&](auto tag, auto columns, auto units) {
    using T = typename decltype(tag)::type;
    constexpr int N = decltype(columns)::value, R = decltype(units)::value, B = most_blocks;
    return f(type_tag<panel_qr<T, N, R, B>>{}, factor_kernel<T, N, R, B>);
  };
  using two = std::integral_constant<int, 2>;
  using four = std::integral_constant<int, 4>;
  using narrow = std::integral_constant<int, 32>;
  using wide = std::integral_constant<int, 64>;
  if (type == BATCHQR_D)
    return width > 32 ? go(type_tag<double>{}, wide{}, two{}) : go(type_tag<double>{}, narrow{}, two{});
  if (width > 32) return go(type_tag<float>{}, wide{}, two{});
  const bool few = rows > 0 && rows <= panel_qr<float, 32, 2, most_blocks>::most_rows;
  return few ? go(type_tag<float>{}, narrow{}, two{}) : go(type_tag<float>{}, narrow{}, four{});
}

/* The same of the instances for panels of 64 columns of many members. */
template <class F> auto with_kernel_of_many(batchqr_type type, F &&f) {
  constexpr int N = 64, R = 2, B = few_blocks;
  if (type == BATCHQR_D) return f(type_tag<panel_qr<double, N, R, B>>{}, factor_kernel<double, N, R, B>);
  return f(type_tag<panel_qr<float, N, R, B>>{}, factor_kernel<float, N, R, B>);
}

/* The most rows of these. */
int rows_of_many(batchqr_type type, int bytes) {
  return with_kernel_of_many(type,
                             [&](auto tag, auto) { return rows_for<typename decltype(tag)::type>(bytes); });
}
} // namespace

extern "C" {

int bqr_wy_factor_rows(batchqr_type type, int width, const bqr_device *device) {
  const bool real = type == BATCHQR_S || type == BATCHQR_D;
  if (!real || (width != 32 && width != 64) || !bqr_has_wide_clusters(device)) return 0;
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
  const bool of_many = panel->many.count > 0 && panel->width == 64 &&
                       rows <= rows_of_many(type, device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  return of_many ? with_kernel_of_many(type, launch) : with_kernel(type, panel->width, rows, launch);
}

batchqr_status bqr_wy_factor_prepare(batchqr_type type, const bqr_device *device) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int width = 32; width <= 64; width += 32)
    for (int rows = 0; rows < 2 && !status; rows++)
      if (bqr_wy_factor_rows(type, width, device) > 0)
        status = with_kernel(type, width, rows, [&](auto, auto kernel) {
          return prepare_kernel(kernel, static_cast<size_t>(device->smem_per_block), most_blocks);
        });
  if (status || bqr_wy_factor_rows(type, 64, device) == 0) return status;
  return with_kernel_of_many(type, [&](auto, auto kernel) {
    return prepare_kernel(kernel, static_cast<size_t>(device->smem_per_block), few_blocks);
  });
}
}
