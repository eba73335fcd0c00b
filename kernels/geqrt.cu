/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrt: panels of up to 32 columns of many members, V, R and T, one block of threads for a panel or two that
 * share its rows, in one launch.
 *
 * A panel of 32 columns takes one sum over all rows for its columns, and none for each of them: see
 * common/panel_factors.cuh and common/step_factors.cuh. Its rows lie in shared memory, products are in double
 * precision. The square of the columns' condition number is what that may lose: panels whose columns are
 * nearly dependent, or whose norms cannot be squared, and those of fewer columns are done column after
 * column. Nothing of A is written before that is known, and it is decided by numbers of this panel alone. */
#include "blocked.h"
#include "cluster.cuh"
#include "columns.cuh"
#include "member.cuh"
#include "ring.cuh"
#include "step_factors.cuh"
#include "tile.cuh"
#include "view.cuh"

namespace {
using namespace bqr;
using namespace bqr::step_factors;

constexpr int threads = warps * warp_lanes, slab_rows = 16, one_block_rows = 512, most_rows = 1024;

/* Starts copying whole 16 bytes of what a bulk_fence() and a barrier are behind. */
__device__ __forceinline__ void store_bulk([[maybe_unused]] void *global, [[maybe_unused]] const void *shared,
                                           [[maybe_unused]] int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
               "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))), "r"(bytes)
               : "memory");
#endif
}
/* The thread waits until its copies have read what they copy. */
__device__ __forceinline__ void wait_for_bulk_stores() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

/* Of squared norms; the trace of the inverse of the matrix of cosines, which is at least what errors of the
 * products grow by; and rows that leave little hope of it. */
template <class T> struct limits_of;
template <> struct limits_of<float> {
  static constexpr double least_norm2 = 0x1p-60, most_norm2 = 0x1p60, most_trace = 0x1p24;
  static constexpr int least_rows = N;
};
template <> struct limits_of<double> {
  static constexpr double least_norm2 = 0x1p-600, most_norm2 = 0x1p600, most_trace = 512;
  static constexpr int least_rows = N + slab_rows;
};

/* One panel, of `columns` columns and `rows` rows, which B blocks share. */
template <class T, int B> class panel_qr {
  static constexpr int pad = pack<T>::size;
  static constexpr int sum_tiles = 6, values = sum_tiles * 4 * warp_lanes, parts = warps / 2;

  struct storage {
    matrix r;
    union {
      double part[parts][values];
      struct {
        matrix lw;
        inverses by_w, by_r, by_y; /* of W, R and Y1^H */
      };
      struct {
        T sums[2][B][N], heads[2][N], scales[N];
        uint32_t magnitudes[B][N];
      };
    };
    double share[B > 1 ? values : 1], others[B > 1 ? N : 1]; /* for the other block */
    double norm2[N], sign[N], inverse_w[N], inverse_r[N], trace[2], norms[warps][N];
    phase_barrier full;
    row_barriers rows;
    bool good;
  };
  static constexpr size_t storage_bytes = (sizeof(storage) + 15) / 16 * 16;

public:
  /* Rows of a block, of which the first one has those of R. */
  BQR_INLINE static int share_of(int rows) {
    const int share = ((rows - 1) / (B * slab_rows) + 1) * slab_rows;
    return B > 1 ? largest(share, N) : share;
  }
  static int ld_of(int rows) { return share_of(rows) + pad; }
  static size_t smem(int rows) { return storage_bytes + sizeof(T) * N * static_cast<size_t>(ld_of(rows)); }

  __device__ panel_qr(T *a, int64_t lda, int rows, int columns, int ld)
      : s(*shared_memory<storage>()),
        x_(reinterpret_cast<T *>(shared_memory<unsigned char>() + storage_bytes)), lda_(lda),
        first_(cluster_rank() * share_of(rows)), rows_(largest(0, least(share_of(rows), rows - first_))),
        columns_(columns), reflectors_(least(rows, columns)), ld_(ld), a_(a + first_),
        packs_(tile_packs(a, lda, 0)) {}

  /* Before the first panel, by all threads. */
  __device__ __forceinline__ static void begin() {
    storage &s = *shared_memory<storage>();
    if (thread_id() == 0) s.full.init(1);
    if (thread_id() < tile) s.rows[thread_id()].init(warp_lanes);
    sync(); /* all blocks have started, too */
  }

  BQR_INLINE static bool may_be_fast(int rows, int columns) {
    return columns == N && rows >= limits_of<T>::least_rows;
  }

  /* Whether that went well; if not, nothing of A is written. parity: of how many there were before. */
  __device__ __forceinline__ bool run_fast(T *tau, T *t, uint32_t parity) const {
    load_in_bulk(parity);
    sum_products();
    copy_top();
    make_factors();
    if (warp_id() < 2)
      make_t(t);
    else if (warp_id() < 4)
      make_trace();
    make_v(tau);
    const bool good = s.good && s.trace[0] + s.trace[1] < limits_of<T>::most_trace;
    if (good) store_in_bulk();
    return good;
  }

  /* Column after column; returns info, in thread 0. */
  __device__ __forceinline__ int run_slowly(T *tau, T *t) const {
    load(0);
    block_sync();
    const int info = bring_into_range();
#pragma unroll 1
    for (int k = 0; k < reflectors_; k++) {
      const column_reflector<T> h = next_reflector(k);
      if (thread_id() == 0) s.scales[k] = h.scale;
      if (thread_id() == 0 && first_ == 0) {
        x_[k + k * ld_] = h.beta;
        tau[k] = h.tau;
      }
      block_sync();
    }
    store();
    sync();
    if (t) {
      sum_products();
      if (first_ == 0) sum_up_t(tau, t);
    }
    return info;
  }

  __device__ __forceinline__ static void sync() { B > 1 ? cluster_sync() : block_sync(); }

private:
  /* f(first row): the slabs of 16 rows that are the warp's, which is number `warp` of `count`. */
  template <class F> __device__ __forceinline__ void each_slab(int from, int warp, int count, F &&f) const {
    for (int top = from + warp * slab_rows; top < rows_; top += count * slab_rows) f(top);
  }
  /* f(row, column) for the block's rows from row `from` on, and those that fill up the last slab. */
  template <class F> __device__ __forceinline__ void each(int from, F &&f) const {
    const int end = (rows_ + slab_rows - 1) / slab_rows * slab_rows;
    for (int j = thread_id() / slab_rows; j < N; j += threads / slab_rows)
#pragma unroll 4
      for (int i = from + thread_id() % slab_rows; i < end; i += slab_rows) f(i, j);
  }

  /* Rows that copies in bulk take; each warp's first lanes have a column. */
  __device__ __forceinline__ int bulk_rows() const {
    return packs_ ? rows_ / pack<T>::size * pack<T>::size : 0;
  }
  __device__ __forceinline__ int bulk_column() const { return warp_id() + warps * lane_id(); }

  __device__ __forceinline__ void load_in_bulk(uint32_t parity) const {
    const int rows = bulk_rows(), bytes = rows * static_cast<int>(sizeof(T)), j = bulk_column();
    bulk_fence();
    block_sync();
    if (thread_id() == 0) s.full.arrive_before_bytes(N * bytes);
    if (bytes > 0 && j < N) s.full.copy_bulk(x_ + j * ld_, a_ + j * lda_, bytes);
    load(rows);
    s.full.wait(parity);
    block_sync();
  }
  __device__ __forceinline__ void load(int from) const {
    each(from,
         [&](int i, int j) { x_[i + j * ld_] = i < rows_ && j < columns_ ? a_[i + j * lda_] : zero<T>(); });
  }
  /* After a bulk_fence() and a barrier. */
  __device__ __forceinline__ void store_in_bulk() const {
    const int rows = bulk_rows(), j = bulk_column();
    if (rows > 0 && j < N) store_bulk(a_ + j * lda_, x_ + j * ld_, rows * static_cast<int>(sizeof(T)));
    each(rows, [&](int i, int j) {
      if (i < rows_) a_[i + j * lda_] = x_[i + j * ld_];
    });
    wait_for_bulk_stores();
  }

  /* 16 rows as operands of a product from the left: the lane's columns are 8 J + g. */
  __device__ __forceinline__ void read_columns(double (&x)[tiles][4], int top) const {
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int t = 0; t < 2; t++) {
        T pair[2];
        read_two(pair, x_ + top + (tile * J + lane_id() / 4) * ld_ + 4 * (lane_id() % 4) + 2 * t);
        x[J][2 * t] = pair[0];
        x[J][2 * t + 1] = pair[1];
      }
  }
  __device__ __forceinline__ void read_rows(rows16 &x, int top) const {
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        T pair[2];
        read_two(pair, x_ + top + (tile * J + 2 * (lane_id() % 4) + e) * ld_ + 2 * (lane_id() / 4));
        x[J][e] = pair[0];
        x[J][2 + e] = pair[1];
      }
  }
  __device__ __forceinline__ void write_rows(const rows16 &x, int top) const {
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        write_two(x_ + top + (tile * J + 2 * (lane_id() % 4) + e) * ld_ + 2 * (lane_id() / 4),
                  {static_cast<T>(x[J][e]), static_cast<T>(x[J][2 + e])});
  }

  /* The upper triangle of r := X^H X, in tiles of 16 x 8. */
  __device__ __forceinline__ void sum_products() const {
    double c[sum_tiles][4] = {};
    each_slab(0, warp_id(), warps, [&](int top) {
      double x[tiles][4];
      read_columns(x, top);
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int n = 0; n < sum_tiles; n++) {
          const int I = n / tiles, J = n < tiles ? n : n - 2;
          add_product(c[n],
                      {x[2 * I][2 * t], x[2 * I][2 * t + 1], x[2 * I + 1][2 * t], x[2 * I + 1][2 * t + 1]},
                      x[J][2 * t], x[J][2 * t + 1]);
        }
    });
    double *part = s.part[warp_id() % parts] + lane_id();
    auto each_sum = [&](auto &&f) {
#pragma unroll
      for (int e = 0; e < 4 * sum_tiles; e++) f(part[e * warp_lanes], c[e / 4][e % 4]);
    };
    if (warp_id() >= parts) each_sum([](double &to, double x) { to = x; });
    block_sync();
    if (warp_id() < parts) each_sum([](double &to, double x) { to += x; });
    block_sync();
    double total[values / threads];
#pragma unroll
    for (int k = 0; k < values / threads; k++) {
      const int e = thread_id() + k * threads;
      total[k] = (s.part[0][e] + s.part[1][e]) + (s.part[2][e] + s.part[3][e]);
      if (B > 1) s.share[e] = total[k];
    }
    if (B > 1) {
      cluster_sync();
#pragma unroll
      for (int k = 0; k < values / threads; k++) {
        total[k] = 0;
#pragma unroll
        for (int b = 0; b < B; b++) total[k] += *cluster_shared(s.share + thread_id() + k * threads, b);
      }
    }
#pragma unroll
    for (int k = 0; k < values / threads; k++) {
      const int e = thread_id() + k * threads, lane = e % warp_lanes, h = e / warp_lanes % 4,
                n = e / (4 * warp_lanes);
      const int i = 16 * (n / tiles) + lane / 4 + 8 * (h / 2),
                j = tile * (n < tiles ? n : n - 2) + 2 * (lane % 4) + h % 2;
      s.r(i, j) = total[k];
      if (i == j) s.norm2[i] = total[k];
    }
    block_sync();
  }
  /* lw := the panel's first rows. */
  __device__ __forceinline__ void copy_top() const {
    const T *top = cluster_shared(x_, 0);
#pragma unroll
    for (int k = 0; k < N * N / threads; k++) {
      const int e = thread_id() + k * threads;
      s.lw(e % N, e / N) = top[e % N + e / N * ld_];
    }
    sync();
  }

  __device__ __forceinline__ void make_factors() const {
    constexpr double least = limits_of<T>::least_norm2, most = limits_of<T>::most_norm2;
    if (warp_id() == warps - 1) {
      const double norm2 = s.norm2[lane_id()];
      const bool bad = group_any(!(norm2 > least && norm2 < most));
      if (lane_id() == 0) s.good = !bad;
    }
    factor(s.r, s.lw, s.sign, s.inverse_r, s.inverse_w, s.rows, [&] { s.by_r.set(upper(s.r), s.inverse_r); });
    if (warp_id() == 0) s.by_y.set(lower_adjoint(s.lw), nullptr);
    if (warp_id() == 1) s.by_w.set(upper(s.lw), s.inverse_w);
    block_sync();
  }

  /* T = -U S Y1^-H, U = W R^-1; 16 rows by a warp. */
  __device__ __forceinline__ void make_t(T *t) const {
    const int top = warp_id() * slab_rows;
    rows16 x;
    each_element(x, [&](double &y, int i, int j) { y = top + i <= j ? s.lw(top + i, j) : 0; });
    s.by_r.divide(x, upper(s.r));
    each_element(x, [&](double &y, int, int j) { y *= -s.sign[j]; });
    s.by_y.divide(x, lower_adjoint(s.lw));
    if (t && first_ == 0)
      each_element(
          x, [&](double &y, int i, int j) { t[top + i + j * N] = static_cast<T>(top + i <= j ? y : 0); });
  }
  __device__ __forceinline__ void make_trace() const {
    const int half = warp_id() % 2, top = half * slab_rows;
    rows16 x;
    each_element(x, [&](double &y, int i, int j) { y = top + i == j ? 1 : 0; });
    s.by_r.divide(x, upper(s.r));
    double sum = 0;
    each_element(x, [&](double &y, int i, int j) {
      if (top + i <= j) sum = fused(y * y, s.norm2[top + i], sum);
    });
    sum = group_sum(sum);
    if (lane_id() == 0) s.trace[half] = sum;
  }

  /* V in place of the panel, R above it, and tau that fits its vector's norm. The warps that make T have the
   * first rows. */
  __device__ __forceinline__ void make_v(T *tau) const {
    double norms[tiles][2] = {};
    auto add_norms = [&](const rows16 &x) {
#pragma unroll
      for (int J = 0; J < tiles; J++)
#pragma unroll
        for (int e = 0; e < 2; e++)
          norms[J][e] = fused(x[J][e], x[J][e], fused(x[J][2 + e], x[J][2 + e], norms[J][e]));
    };
    if (warp_id() < 2) {
      const int top = warp_id() * slab_rows;
      rows16 x;
      each_element(x, [&](double &y, int i, int j) {
        y = top + i > j ? s.lw(top + i, j) : top + i == j ? 1 : 0;
      });
      if (first_ == 0) {
        add_norms(x);
        each_element(x, [&](double &y, int i, int j) {
          if (top + i <= j) y = s.sign[top + i] * s.r(top + i, j);
        });
        write_rows(x, top);
      }
    } else {
      each_slab(first_ == 0 ? N : 0, warp_id() - 2, warps - 2, [&](int top) {
        rows16 x;
        read_rows(x, top);
        s.by_w.divide(x, upper(s.lw));
        add_norms(x);
        write_rows(x, top);
      });
    }
    bulk_fence();
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        double sum = norms[J][e];
#pragma unroll
        for (int d = 4; d < warp_lanes; d *= 2) sum += exchange(sum, d);
        if (lane_id() < 4) s.norms[warp_id()][tile * J + 2 * lane_id() + e] = sum;
      }
    block_sync();
    const int j = thread_id();
    double sum = 0;
    if (j < N) {
#pragma unroll
      for (int w = 0; w < warps; w++) sum += s.norms[w][j];
    }
    if (B > 1) {
      if (j < N && first_ > 0) *cluster_shared(s.others + j, 0) = sum;
      cluster_sync();
      if (j < N) sum += s.others[j];
    }
    if (j < N && first_ == 0) tau[j] = static_cast<T>(2 / sum);
  }

  /* Returns info. */
  __device__ __forceinline__ int bring_into_range() const {
    for (int j = warp_id(); j < columns_; j += warps) {
      uint32_t u = 0;
      for (int i = lane_id(); i < rows_; i += warp_lanes) u = greater(u, magnitude(x_[i + j * ld_]));
      u = group_max(u);
      if (lane_id() < B) *cluster_shared(&s.magnitudes[cluster_rank()][j], lane_id()) = u;
    }
    sync();
    bool finite = true;
    for (int j = 0; j < columns_; j++) finite &= magnitude_finite<T>(magnitude_of(j));
    for (int j = warp_id(); j < columns_; j += warps) {
      const T scale = exponent_scale<T>(column_exponent<T>(magnitude_of(j)));
      for (int i = lane_id(); i < rows_ && scale != 1; i += warp_lanes)
        x_[i + j * ld_] = scaled(x_[i + j * ld_], scale);
    }
    block_sync();
    return finite ? 0 : BATCHQR_INFO_NONFINITE;
  }
  /* The largest of a column. */
  __device__ __forceinline__ uint32_t magnitude_of(int j) const {
    uint32_t u = 0;
    for (int b = 0; b < B; b++) u = greater(u, s.magnitudes[b][j]);
    return u;
  }

  /* Reflector k, applied to the columns right of it. What is below the diagonal waits for its scale. A warp
   * has every eighth column. */
  __device__ __forceinline__ column_reflector<T> next_reflector(int k) const {
    constexpr int own = N / warps, lanes = warp_lanes / own;
    const int below = largest(0, k + 1 - first_) + lane_id(), column = warp_id();
    const T *pivot = x_ + k * ld_;
    T *x = x_ + column * ld_;
    auto &sums = s.sums[k & 1];
    auto &heads = s.heads[k & 1];
    T sum[own] = {};
#pragma unroll 4
    for (int i = below; i < rows_; i += warp_lanes)
#pragma unroll
      for (int u = 0; u < own; u++) sum[u] = madd(pivot[i], x[i + warps * u * ld_], sum[u]);
    const T mine = group_sum_scatter<own>(sum);
    const int j = column + warps * (lane_id() / lanes), block = lane_id() % lanes;
    if (block < B) {
      *cluster_shared(&sums[cluster_rank()][j], block) = mine;
      if (first_ == 0) *cluster_shared(&heads[j], block) = x_[k + j * ld_];
    }
    sync();
    auto total = [&](int j) {
      T sum = sums[0][j];
#pragma unroll
      for (int b = 1; b < B; b++) sum += sums[b][j];
      return sum;
    };
    const column_reflector<T> h = larfg_in_range(heads[k], total(k));
    T factor[own];
#pragma unroll
    for (int u = 0; u < own; u++) {
      const int j = column + warps * u;
      const T w = h.tau * madd(h.scale, total(j), heads[j]);
      factor[u] = -(h.scale * w);
      if (j > k && lane_id() == 0 && first_ == 0) x_[k + j * ld_] -= w;
    }
#pragma unroll 4
    for (int i = below; i < rows_; i += warp_lanes)
#pragma unroll
      for (int u = 0; u < own; u++)
        if (column + warps * u > k)
          x[i + warps * u * ld_] = madd(factor[u], pivot[i], x[i + warps * u * ld_]);
    return h;
  }

  /* V and R, of which V alone stays, with its ones and zeros. */
  __device__ __forceinline__ void store() const {
    each(0, [&](int i, int j) {
      if (i >= rows_ || j >= columns_) return;
      T &x = x_[i + j * ld_];
      if (first_ + i > j) {
        x *= s.scales[j];
        a_[i + j * lda_] = x;
      } else {
        a_[i + j * lda_] = scaled(x, exponent_scale<T>(-column_exponent<T>(magnitude_of(j))));
        x = first_ + i == j ? one<T>() : zero<T>();
      }
    });
  }
  /* T of V's products, as xLARFT. */
  __device__ __forceinline__ void sum_up_t(const T *tau, T *t) const {
    matrix &sum = s.lw;
    const int i = lane_id();
    const double mine = i < reflectors_ ? tau[i] : 0;
    for (int j = warp_id(); j < N; j += warps) sum(j, i) = 0;
#pragma unroll 1
    for (int k = 0; k < N; k++) {
      block_sync();
      const double scale = broadcast(mine, k), x = k < i || scale == 0 ? 0
                                                   : k == i            ? scale
                                                                       : -scale * sum(k, i);
      for (int j = warp_id(); j < N; j += warps)
        if (j > k) sum(j, i) += x * s.r(k, j);
      if (warp_id() == 0) t[i + k * N] = static_cast<T>(x);
    }
  }

  storage &s;
  T *const x_; /* the block's rows */
  const int64_t lda_;
  const int first_, rows_, columns_, reflectors_, ld_;
  T *const a_; /* from row first_ on */
  const bool packs_;
};

template <class T, int B>
__device__ __noinline__ int run_slowly(T *a, int64_t lda, int rows, int columns, int ld, T *tau, T *t) {
  return panel_qr<T, B>(a, lda, rows, columns, ld).run_slowly(tau, t);
}

template <class T, int B>
__global__ void __launch_bounds__(threads, 2)
    geqrt_kernel(const __grid_constant__ batchqr_args args, T *t, int ld) {
  if constexpr (has_clusters) {
    using Q = panel_qr<T, B>;
    Q::begin();
    uint32_t parity = 0;
    for (int64_t i = blockIdx.x / B; i < args.count; i += gridDim.x / B) {
      const member x = member_at<BATCHQR_GEQRF>(args, i);
      if (!x.ok || x.m == 0 || x.n == 0) continue;
      T *a = matrix_data<T>(args, args.a, x.id), *tau = tau_data<T>(args, x.id);
      T *my_t = t ? t + i * (N * N) : nullptr;
      const int64_t lda = matrix_ld(args.a, x.id);
      int info = 0;
      bool done = false;
      if (Q::may_be_fast(x.m, x.n)) {
        done = Q(a, lda, x.m, x.n, ld).run_fast(tau, my_t, parity);
        parity ^= 1;
      }
      if (!done) {
        Q::sync();
        info = run_slowly<T, B>(a, lda, x.m, x.n, ld, tau, my_t);
      }
      Q::sync();
      if (thread_id() == 0 && cluster_rank() == 0) set_info(args, x.id, info);
    }
  }
}

/* f(a panel_qr's type, its kernel, its blocks) of the instance for panels of up to so many rows. */
template <class F> auto with_kernel(batchqr_type type, int rows, F &&f) {
  auto go = [&](auto tag, auto blocks) {
    using T = typename decltype(tag)::type;
    constexpr int B = decltype(blocks)::value;
    return f(type_tag<panel_qr<T, B>>{}, geqrt_kernel<T, B>, B);
  };
  using one = std::integral_constant<int, 1>;
  using two = std::integral_constant<int, 2>;
  auto of_type = [&](auto tag) { return rows > one_block_rows ? go(tag, two{}) : go(tag, one{}); };
  return type == BATCHQR_S ? of_type(type_tag<float>{}) : of_type(type_tag<double>{});
}
} // namespace

extern "C" {
batchqr_status batchqr_geqrt(batchqr_type type, const batchqr_args *panels, int rows, void *t,
                             batchqr_stream stream) {
  return with_kernel(type, rows, [&](auto tag, auto kernel, int blocks) {
    using Q = typename decltype(tag)::type;
    return launch_clusters(kernel, grid_for(panels->count), blocks, threads, Q::smem(panels->m), stream,
                           *panels, t, Q::ld_of(panels->m));
  });
}

int batchqr_geqrt_rows(batchqr_type type, const batchqr_device *device) {
  const bool real = type == BATCHQR_S || type == BATCHQR_D;
  return real && device->sm >= 90 && device->sm < 120 ? most_rows : 0;
}

batchqr_status batchqr_geqrt_prepare(batchqr_type type) {
  batchqr_status status = BATCHQR_SUCCESS;
  if (type != BATCHQR_S && type != BATCHQR_D) return status;
  for (int rows = N; rows <= most_rows && !status; rows += most_rows - N)
    status = with_kernel(type, rows, [&](auto tag, auto kernel, int blocks) {
      using Q = typename decltype(tag)::type;
      return prepare_kernel(kernel, Q::smem(blocks * one_block_rows), blocks);
    });
  return status;
}
}
