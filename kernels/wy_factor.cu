/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of 32 or 64 columns of large members, V, R and T, by one cluster of blocks in one launch.
 *
 * A panel of 32 columns takes one sum over all rows for its columns, and none for each of them: see
 * common/panel_factors.cuh. Of two, the second one's columns are first updated with the first one. Blocks
 * have their rows in shared memory; small factors are made by each block for itself, in double precision.
 *
 * The square of the columns' condition number is what that may lose. A panel whose columns are nearly
 * dependent, or whose norms cannot be squared, is done by mma_qr instead, by the same cluster; nothing of A
 * is written before that is known. It is decided by numbers of this panel alone. */
#include "wy.h"
#include "mma_qr.cuh"
#include "overlap.cuh"
#include "panel_factors.cuh"
#include "tsqr.cuh"

namespace {
using namespace bqr;
using panel_factors::add_product, panel_factors::each_element, panel_factors::matrix, panel_factors::multiply,
    panel_factors::rows16;

constexpr int N = panel_factors::N, tile = panel_factors::tile, tiles = panel_factors::tiles,
              warps = panel_factors::warps, threads = warps * warp_lanes;
constexpr int blocks = 16;    /* of a cluster */
constexpr int slab_rows = 16; /* of a warp at once */

/* The determinant is e^-1 for 512 rows of random numbers, e^-2 for 256. */
template <class R>
constexpr panel_factors::limits panel_limits = {sizeof(R) == 4 ? 0x1p-60 : 0x1p-600,
                                                sizeof(R) == 4 ? 0x1p60 : 0x1p600, 0x1p-10, 0x1p-4};

/* Sums over the cluster are of 16 x 8 tiles, as lanes have them. */
constexpr int values = 8 * 4 * warp_lanes, values_of_block = values / blocks;
constexpr int top_elements = N * N, top_elements_of_block = top_elements / blocks;

template <int K> struct storage {
  double share[values], top_share[top_elements_of_block];
  matrix top, t[K]; /* a panel's first rows; T */
  double norms[K][warps][N], inbox[blocks][K][N];
  panel_factors::row_steps steps;
  union {
    double part[warps / 2][values];
    struct {
      panel_factors::storage f;
      union {
        panel_factors::divisor by[3]; /* W, R, Y1^H */
        double total[values];
      };
    };
  };
};
static_assert(sizeof(storage<1>) % 16 == 0 && sizeof(storage<2>) % 16 == 0, "rows follow");

/* K panels of 32 columns and up to 256 R rows for each block. */
template <class T, int K, int R> class panel_qr {
  static constexpr int ld = slab_rows + pack<T>::size;
  using storage_type = storage<K>;
  using slow_type = mma_qr<T, 4 * R, warps, blocks, 0, false>;

public:
  static constexpr int most_rows = R * warp_lanes * warps * blocks;
  /* Rows of a block; the first one has those of R. */
  static int share_of(int rows) {
    return largest(((rows - 1) / (blocks * slab_rows) + 1) * slab_rows, K * N);
  }
  static size_t smem(int rows) {
    const size_t slab = sizeof(T) * K * N * ld,
                 fast = sizeof(storage_type) + slab * static_cast<size_t>(share_of(rows) / slab_rows),
                 slow = slow_type::smem(K * N);
    return fast > slow ? fast : slow;
  }

  __device__ panel_qr(const batchqr_wy_panel &p, int share)
      : p_(p), a_(static_cast<T *>(p.a) + p.at * (p.lda + 1)), rows_(p.rows - p.at),
        first_(cluster_rank() * share), end_(least(first_ + share, rows_)), slabs_of_set_(share / slab_rows) {
  }

  __device__ void run() {
    start_copies();
    s().steps.init();
#pragma unroll
    for (int k = 0; k < N / warps; k++) {
      const int j = warp_id() + warps * k;
      s().top(lane_id(), j) = a_[lane_id() + j * p_.lda];
    }
    clear();
    tsqr::copy_async_wait_for<0>();
    cluster_sync(); /* all blocks have started, too */
    if (!make_panels()) {
      run_slowly();
      return;
    }
    if constexpr (K > 1) {
      sum_products(0, 1, N);
      if (cluster_rank() == blocks - 1) merge();
    }
    finish_tau();
#pragma unroll 1
    for (int k = 0; k < K; k++) store(k);
  }

private:
  /* Not kept, so that functions know that they are shared memory. */
  __device__ __forceinline__ static storage_type &s() { return *shared_memory<storage_type>(); }
  __device__ __forceinline__ static T *slabs() {
    return reinterpret_cast<T *>(shared_memory<unsigned char>() + sizeof(storage_type));
  }
  /* Slabs are 16 rows of a set, the 32 columns of a panel; number 0 has the block's first row. */
  __device__ __forceinline__ T *slab(int set, int number) const {
    return slabs() + (set * slabs_of_set_ + number) * (N * ld);
  }
  /* f(number, its first row) for the warp's slabs from row `from` on. */
  template <class F> __device__ __forceinline__ void each_slab(int from, F &&f) const {
    for (int number = largest(0, from - first_) / slab_rows + warp_id(); first_ + number * slab_rows < end_;
         number += warps)
      f(number, first_ + number * slab_rows);
  }
  /* f(element of a column, column): 16 bytes of each to a lane. */
  template <class F> __device__ __forceinline__ static void each_unit(F &&f) {
    constexpr int unit = pack<T>::size, units = slab_rows / unit, columns = warp_lanes / units;
#pragma unroll
    for (int k = 0; k < N / columns; k++) f(lane_id() % units * unit, lane_id() / units + k * columns);
  }

  __device__ __forceinline__ void start_copies() const {
#pragma unroll 1
    for (int set = 0; set < K; set++)
      each_slab(0, [&](int number, int top) {
        each_unit([&](int i, int j) {
          const int left = largest(0, least(pack<T>::size, end_ - top - i));
          const T *from = a_ + (left > 0 ? top + i : 0) + (set * N + j) * p_.lda;
          tsqr::copy_async_part<16>(slab(set, number) + i + j * ld, from, left * static_cast<int>(sizeof(T)));
        });
      });
    tsqr::copy_async_commit();
  }
  __device__ __forceinline__ void store(int set) const {
    each_slab(0, [&](int number, int top) {
      each_unit([&](int i, int j) {
        const T *from = slab(set, number) + i + j * ld;
        T *to = a_ + top + i + (set * N + j) * p_.lda;
        const int left = end_ - top - i;
        if (left >= pack<T>::size) {
          *reinterpret_cast<pack<T> *>(to) = *reinterpret_cast<const pack<T> *>(from);
        } else {
          for (int e = 0; e < left; e++) to[e] = from[e];
        }
      });
    });
  }

  /* What is above the panels goes to r, with zeros in its place, as below their triangles in t. */
  __device__ __forceinline__ void clear() const {
    T *a = static_cast<T *>(p_.a) + p_.at * p_.lda, *r = static_cast<T *>(p_.r) + p_.at * p_.ldr,
      *t = static_cast<T *>(p_.t) + p_.at * p_.ldt;
#pragma unroll 1
    for (int j = cluster_rank() * warps + warp_id(); j < K * N; j += blocks * warps) {
#pragma unroll 4
      for (int i = lane_id(); i < p_.at; i += warp_lanes) {
        r[i + j * p_.ldr] = a[i + j * p_.lda];
        a[i + j * p_.lda] = zero<T>();
      }
      for (int i = p_.at + (j / N + 1) * N + lane_id(); i < p_.cols; i += warp_lanes)
        t[i + j * p_.ldt] = zero<T>();
    }
  }
  /* Where panel i, j of the block's R and T goes. */
  __device__ __forceinline__ T *in_r(int i, int j) const {
    return static_cast<T *>(p_.r) + p_.at + i * N + (p_.at + j * N) * p_.ldr;
  }
  __device__ __forceinline__ T *in_t(int i, int j) const {
    return static_cast<T *>(p_.t) + p_.at + i * N + (p_.at + j * N) * p_.ldt;
  }

  /* A slab as operands of a product from the left: the lane's columns are 8 J + g. */
  __device__ __forceinline__ static void read_columns(double (&x)[tiles][4], const T *slab) {
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int t = 0; t < 2; t++) {
        T pair[2];
        read_two(pair, slab + (tile * J + lane_id() / 4) * ld + 8 * t + 2 * (lane_id() % 4));
        x[J][2 * t] = pair[0];
        x[J][2 * t + 1] = pair[1];
      }
  }
  __device__ __forceinline__ static void read_rows(rows16 &x, const T *slab) {
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        T pair[2];
        read_two(pair, slab + (tile * J + 2 * (lane_id() % 4) + e) * ld + 2 * (lane_id() / 4));
        x[J][e] = pair[0];
        x[J][2 + e] = pair[1];
      }
  }
  __device__ __forceinline__ static void write_rows(const rows16 &x, T *slab) {
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        write_two(slab + (tile * J + 2 * (lane_id() % 4) + e) * ld + 2 * (lane_id() / 4),
                  {static_cast<T>(x[J][e]), static_cast<T>(x[J][2 + e])});
  }

  /* g := X^H Y over all rows from `from` on, X and Y being sets; the upper triangle where they are the same.
   * Block 0's `top` goes to all if `spread`. Ends with a barrier. */
  __device__ __noinline__ void sum_products(int left, int right, int from, bool spread = false) {
    double c[8][4] = {};
    each_slab(from, [&](int number, int) {
      double x[tiles][4], y[tiles][4];
      read_columns(x, slab(left, number));
      read_columns(y, slab(right, number));
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int n = 0; n < 8; n++) {
          const int I = n / tiles, J = n % tiles;
          if (left == right && J < 2 * I) continue;
          add_product(c[n],
                      {x[2 * I][2 * t], x[2 * I][2 * t + 1], x[2 * I + 1][2 * t], x[2 * I + 1][2 * t + 1]},
                      y[J][2 * t], y[J][2 * t + 1]);
        }
    });
    block_sync();
    double *part = s().part[warp_id() % (warps / 2)] + lane_id();
    if (warp_id() >= warps / 2) add_to(part, c, false);
    block_sync();
    if (warp_id() < warps / 2) add_to(part, c, true);
    sum_over_cluster(spread);
#pragma unroll
    for (int e = thread_id(); e < values; e += threads) {
      const int lane = e % warp_lanes, h = e / warp_lanes % 4, n = e / (4 * warp_lanes);
      s().f.g(16 * (n / tiles) + lane / 4 + 8 * (h / 2), tile * (n % tiles) + 2 * (lane % 4) + h % 2) =
          s().total[e];
    }
    block_sync();
  }
  __device__ __forceinline__ static void add_to(double *part, const double (&c)[8][4], bool some) {
#pragma unroll
    for (int e = 0; e < 32; e++) part[e * warp_lanes] = c[e / 4][e % 4] + (some ? part[e * warp_lanes] : 0);
  }
  /* total := the sum of all blocks' parts, each block having added up a share of them; top likewise. */
  __device__ __forceinline__ void sum_over_cluster(bool spread) {
    block_sync();
#pragma unroll
    for (int e = thread_id(); e < values; e += threads) {
      double total = s().part[0][e];
#pragma unroll
      for (int w = 1; w < warps / 2; w++) total += s().part[w][e];
      cluster_shared(s().share, e / values_of_block)[cluster_rank() * values_of_block + e % values_of_block] =
          total;
    }
    if (spread && cluster_rank() == 0)
#pragma unroll
      for (int e = thread_id(); e < top_elements; e += threads)
        cluster_shared(s().top_share, e / top_elements_of_block)[e % top_elements_of_block] =
            s().top(e / N, e % N);
    cluster_sync();
    const int e = thread_id();
    if (e < values_of_block) {
      double total = s().share[e];
#pragma unroll
      for (int b = 1; b < blocks; b++) total += s().share[b * values_of_block + e];
#pragma unroll
      for (int b = 0; b < blocks; b++)
        cluster_shared(s().total, b)[cluster_rank() * values_of_block + e] = total;
    } else if (spread && e >= threads - top_elements_of_block) {
      const int i = e - (threads - top_elements_of_block), at = cluster_rank() * top_elements_of_block + i;
      double *const to = &s().top(at / N, at % N);
      const double x = s().top_share[i];
#pragma unroll
      for (int b = 0; b < blocks; b++) *cluster_shared(to, b) = x;
    }
    cluster_sync();
  }

  /* All panels, in shared memory, with R and T; whether that can be done. */
  __device__ __forceinline__ bool make_panels() {
#pragma unroll 1
    for (int k = 0;; k++) {
      sum_products(k, k, k * N, k > 0);
      constexpr panel_factors::limits limits = panel_limits<T>;
      panel_factors::factorization(s().f, s().top, limits, s().steps, k);
      if (!s().f.good) return false;
      if (warp_id() < 3)
        s().by[warp_id()].set(warp_id() == 0   ? upper(s().f.lw)
                              : warp_id() == 1 ? upper(s().f.r)
                                               : lower_adjoint(s().f.lw));
      block_sync();
      if (warp_id() < N / slab_rows) make_t(k);
      if (cluster_rank() == 0) store_r(k);
      make_v(k);
      if (k + 1 == K) return true;
      update();
    }
  }

  /* T = -U S Y1^-H, U = W R^-1; 16 rows by a warp. */
  __device__ __forceinline__ void make_t(int k) {
    const int top = warp_id() * slab_rows;
    rows16 x;
    each_element(x, [&](double &y, int i, int j) { y = top + i <= j ? s().f.lw(top + i, j) : 0; });
#pragma unroll 1
    for (int step = 1; step < 3; step++) {
      s().by[step].divide(x);
      if (step == 1) each_element(x, [&](double &y, int, int j) { y *= -s().f.sign[j]; });
    }
    T *t = in_t(k, k);
    each_element(x, [&](double &y, int i, int j) {
      y = top + i <= j ? y : 0;
      s().t[k](top + i, j) = y;
      if (cluster_rank() == blocks - 1) t[top + i + j * p_.ldt] = static_cast<T>(y);
    });
  }

  __device__ __forceinline__ void store_r(int k) const {
    T *r = in_r(k, k);
    const int i = lane_id();
#pragma unroll
    for (int j = warp_id(); j < N; j += warps)
      if (i <= j) r[i + j * p_.ldr] = static_cast<T>(s().f.sign[i] * s().f.r(i, j));
  }

  /* V in place of the panel, and the squared norms of its columns. */
  __device__ __forceinline__ void make_v(int k) {
    double norms[tiles][2] = {};
    each_slab(k * N, [&](int number, int first) {
      const int top = first - k * N;
      T *here = slab(k, number);
      rows16 x;
      if (top < N) {
        each_element(x, [&](double &y, int i, int j) {
          y = top + i > j ? s().f.lw(top + i, j) : top + i == j ? 1 : 0;
        });
      } else {
        read_rows(x, here);
        s().by[0].divide(x);
      }
      write_rows(x, here);
#pragma unroll
      for (int J = 0; J < tiles; J++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          const double upper = static_cast<T>(x[J][e]), lower = static_cast<T>(x[J][2 + e]);
          norms[J][e] = fused(upper, upper, fused(lower, lower, norms[J][e]));
        }
    });
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        double sum = norms[J][e];
#pragma unroll
        for (int d = 4; d < warp_lanes; d *= 2) sum += exchange(sum, d);
        if (lane_id() < 4) s().norms[k][warp_id()][tile * J + 2 * lane_id() + e] = sum;
      }
    block_sync();
  }

  /* The second set := (I - V T^H V^H) of it. Its first rows are R's, and zeros in V; those that follow go to
   * top, in block 0. */
  __device__ __forceinline__ void update() {
    sum_products(0, 1, 0);
    matrix &w = s().f.lw;
    multiply([&](int i, int l) { return s().t[0](l, i); }, [&](int l, int j) { return s().f.g(l, j); },
             [&](int i, int j, double x) { w(i, j) = -x; });
    block_sync();
    T *r = in_r(0, 1);
    each_slab(0, [&](int number, int top) {
      const int g = lane_id() / 4, q = lane_id() % 4;
      rows16 v, c;
      read_rows(v, slab(0, number));
      read_rows(c, slab(1, number));
#pragma unroll
      for (int l = 0; l < tiles; l++)
#pragma unroll
        for (int J = 0; J < tiles; J++)
          add_product(c[J], v[l], w(tile * l + 2 * q, tile * J + g), w(tile * l + 2 * q + 1, tile * J + g));
      if (top < N)
        each_element(c, [&](double &x, int i, int j) {
          r[top + i + j * p_.ldr] = static_cast<T>(x);
          x = 0;
        });
      else if (top < 2 * N)
        each_element(c, [&](double &x, int i, int j) { s().top(top - N + i, j) = static_cast<T>(x); });
      write_rows(c, slab(1, number));
    });
    block_sync();
  }

  /* T's block above the diagonal, -T1 (V1^H V2) T2. */
  __device__ __forceinline__ void merge() {
    matrix &x = s().f.r;
    T *t = in_t(0, 1);
    multiply([&](int i, int l) { return s().t[0](i, l); }, [&](int l, int j) { return s().f.g(l, j); },
             [&](int i, int j, double y) { x(i, j) = -y; });
    block_sync();
    multiply([&](int i, int l) { return x(i, l); }, [&](int l, int j) { return s().t[1](l, j); },
             [&](int i, int j, double y) { t[i + j * p_.ldt] = static_cast<T>(y); });
  }

  /* tau that fits its vector's norm to rounding. */
  __device__ __forceinline__ void finish_tau() {
    const int j = thread_id() % N, k = thread_id() / N;
    if (k < K) {
      double sum = 0;
#pragma unroll
      for (int w = 0; w < warps; w++) sum += s().norms[k][w][j];
      *cluster_shared(&s().inbox[cluster_rank()][k][j], 0) = sum;
    }
    cluster_sync();
    if (cluster_rank() > 0 || k >= K) return;
    double sum = 0;
#pragma unroll
    for (int b = 0; b < blocks; b++) sum += s().inbox[b][k][j];
    static_cast<T *>(p_.tau)[k * N + j] = static_cast<T>(2 / sum);
  }

  /* One column after another, and T from the products of V's columns. */
  __device__ __noinline__ void run_slowly() {
    s().steps.end();
    cluster_sync();
    slow_type(shared_memory<unsigned char>(), a_, p_.lda, rows_, K * N).run(static_cast<T *>(p_.tau));
    cluster_sync();
    start_copies();
    tsqr::copy_async_wait_for<0>();
    block_sync();
    if (cluster_rank() == 0) exchange_top();
    block_sync();
#pragma unroll 1
    for (int k = 0; k < K; k++) {
      sum_products(k, k, k * N);
      if (cluster_rank() == blocks - 1) sum_up_t(k);
    }
    if constexpr (K > 1) {
      sum_products(0, 1, N);
      if (cluster_rank() == blocks - 1) merge();
    }
  }
  /* R goes to r, ones and zeros take its place. */
  __device__ __forceinline__ void exchange_top() {
    T *r = in_r(0, 0);
#pragma unroll 1
    for (int e = thread_id(); e < K * N * (K * N); e += threads) {
      const int i = e % (K * N), j = e / (K * N);
      if (i > j) continue;
      T &x = slab(j / N, i / slab_rows)[i % slab_rows + j % N * ld];
      r[i + j * p_.ldr] = x;
      x = a_[i + j * p_.lda] = i == j ? one<T>() : zero<T>();
    }
  }
  /* As xLARFT. */
  __device__ __forceinline__ void sum_up_t(int panel) {
    T *t = in_t(panel, panel);
    const T *tau = static_cast<const T *>(p_.tau) + panel * N;
    matrix &sum = s().f.r;
    const int i = lane_id();
    for (int j = warp_id(); j < N; j += warps) sum(j, i) = 0;
#pragma unroll 1
    for (int k = 0; k < N; k++) {
      block_sync();
      const double scale = tau[k], x = k < i || scale == 0 ? 0 : k == i ? scale : -scale * sum(k, i);
      for (int j = warp_id(); j < N; j += warps)
        if (j > k) sum(j, i) += x * s().f.g(k, j);
      if (warp_id() > 0) continue;
      s().t[panel](i, k) = x;
      t[i + k * p_.ldt] = static_cast<T>(x);
    }
    block_sync();
  }

  const batchqr_wy_panel &p_;
  T *a_;
  int rows_, first_, end_; /* first_ .. end_: the block's */
  int slabs_of_set_;
};

template <class T, int K, int R>
__global__ void __launch_bounds__(threads, 1)
    factor_kernel(const __grid_constant__ batchqr_wy_panel panel, int share) {
  wait_for_previous();
  if constexpr (has_clusters) panel_qr<T, K, R>(panel, share).run();
}

/* The most rows whose shared memory fits. */
template <class Q> int rows_for(int bytes) {
  int rows = Q::most_rows;
  while (rows > 0 && Q::smem(rows) > static_cast<size_t>(bytes)) rows -= blocks * slab_rows;
  return rows;
}

/* f(a panel_qr's type, its kernel) of the instance for these panels, of a real type; of rows = 0 the one for
 * most rows. */
template <class F> auto with_kernel(batchqr_type type, int width, int rows, F &&f) {
  auto go = [&](auto tag, auto panels, auto units) {
    using T = typename decltype(tag)::type;
    constexpr int K = decltype(panels)::value, R = decltype(units)::value;
    return f(type_tag<panel_qr<T, K, R>>{}, factor_kernel<T, K, R>);
  };
  using one = std::integral_constant<int, 1>;
  using two = std::integral_constant<int, 2>;
  using four = std::integral_constant<int, 4>;
  if (type == BATCHQR_D)
    return width > N ? go(type_tag<double>{}, two{}, two{}) : go(type_tag<double>{}, one{}, two{});
  if (width > N) return go(type_tag<float>{}, two{}, two{});
  const bool few = rows > 0 && rows <= panel_qr<float, 1, 2>::most_rows;
  return few ? go(type_tag<float>{}, one{}, two{}) : go(type_tag<float>{}, one{}, four{});
}
} // namespace

extern "C" {

int batchqr_wy_factor_rows(batchqr_type type, int width, const batchqr_device *device) {
  const bool real = type == BATCHQR_S || type == BATCHQR_D;
  if (!real || (width != N && width != 2 * N) || device->sm < 90 || device->sm >= 120) return 0;
  return with_kernel(type, width, 0, [&](auto tag, auto) {
    return rows_for<typename decltype(tag)::type>(device->smem_per_block);
  });
}

batchqr_status batchqr_wy_factor(batchqr_type type, const batchqr_wy_panel *panel, batchqr_stream stream) {
  const int rows = panel->rows - panel->at;
  return with_kernel(type, panel->width, rows, [&](auto tag, auto kernel) {
    using Q = typename decltype(tag)::type;
    return launch_cluster_overlapped(kernel, blocks, threads, Q::smem(rows), stream, *panel,
                                     Q::share_of(rows));
  });
}

batchqr_status batchqr_wy_factor_prepare(batchqr_type type, const batchqr_device *device) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int width = N; width <= 2 * N; width += N)
    for (int rows = 0; rows < 2 && !status; rows++)
      if (batchqr_wy_factor_rows(type, width, device) > 0)
        status = with_kernel(type, width, rows, [&](auto, auto kernel) {
          return prepare_kernel(kernel, static_cast<size_t>(device->smem_per_block), blocks);
        });
  return status;
}
}
