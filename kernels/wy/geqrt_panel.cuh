/* SPDX-License-Identifier: BSD-3-Clause */
/* A panel of up to 32 columns by one block of threads or a cluster of them: what wy/geqrt.cu and
 * wy/geqrt_clusters.cu launch.
 *
 * A panel takes one sum over all rows for its columns, and none for each of them: see
 * common/panel/panel_factors.cuh. Products are in double precision. The square of the columns' condition
 * number is what that may lose: panels whose columns are nearly dependent, or whose norms cannot be squared,
 * and those of few columns are left to wy/geqrt_householder.cuh. Nothing of A is written before that is
 * known, and it is decided by numbers of this panel alone. Those of up to 32 rows are left to
 * wy/geqrt_short.cuh. */
#ifndef BQR_KERNELS_WY_GEQRT_PANEL_CUH
#define BQR_KERNELS_WY_GEQRT_PANEL_CUH

#include "wy.h"
#include "geqrt_householder.cuh"
#include "geqrt_short.cuh"
#include "common/simt/tile.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/target.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/cp_async_bulk.cuh"
#include "common/ptx/special_registers.cuh"
#include "common/simt/launch_cluster.cuh"

namespace bqr {
namespace geqrt {
using namespace bqr::panel_factors;

constexpr int N = 32, tiles = N / tile, slab_rows = panel_slabs<double, true>::slab_rows;
/* Of a launch. A block has one panel: with a loop over panels, what is the same for all of them would be
 * computed before the first one and kept on the stack. */
constexpr int64_t most_panels = 1 << 27;

/* Fewer rows leave little hope that columns are far from dependent. */
template <class T> constexpr int least_rows = sizeof(real_t<T>) == 4 ? N : N + 4;
/* Few columns take less time one after the other. */
constexpr int least_columns = 12;

/* How many warps a panel has, and blocks of them, the most rows of a block, and whether these lie in shared
 * memory. */
template <class T, int B, int WARPS, bool SHARED, int ROWS = 512> struct shape {
  static constexpr int blocks = B, warps = WARPS, threads = warps * warp_lanes, rows = ROWS;
  static constexpr int at_once = (is_complex<T> ? 8 : 16) / warps; /* blocks of a multiprocessor */
  static constexpr bool shared = SHARED;
};

/* One panel, of `columns` columns and `rows` rows, which B blocks share. */
template <class T, class S> class panel_qr {
  using X = wide<T>;
  using rows16 = panel_factors::rows16<N, X>;
  static constexpr int B = S::blocks, warps = S::warps, threads = S::threads, pad = pack<T>::size;
  static constexpr bool shared = S::shared;
  static constexpr int chunk = warps * slab_rows, chunks = S::rows / chunk;
  using slabs = panel_slabs<T, shared>;
  static constexpr int sum_tiles = 6, values = sum_tiles * 4 * warp_lanes, parts = warps / 2;
  using householder_type = householder_panel<T, B, S::rows, warps, shared>;

  struct storage {
    union {
      struct {
        matrix<N, X> r;
        union {
          X part[parts][values];
          struct {
            divisors<N, X> by;
            /* lw is read before sums are formed where rows are not in shared memory */
            X gap[shared ? 1 : parts * values - sizeof(divisors<N, X>) / sizeof(X)];
            matrix<N, X> lw;
          };
        };
      };
      typename householder_type::storage householder;
      typename short_panel<T>::storage few;
    };
    X share[B > 1 ? values : 1];
    double others[B][B > 1 ? N : 1]; /* for the first block, of each */
    double norm2[N], trace[2], norms[warps][N];
    phase_barrier full[chunks]; /* of the panel's rows */
    row_barriers<N, warps> ready;
  };
  static constexpr size_t storage_bytes = (sizeof(storage) + 15) / 16 * 16;

public:
  /* Rows of a block, of which the first one has those of R. */
  BQR_INLINE static int share_of(int rows) {
    const int share = ((rows - 1) / (B * slab_rows) + 1) * slab_rows;
    return B > 1 ? largest(share, N) : share;
  }
  static int ld_of(int rows) { return share_of(rows) + pad; }
  static size_t smem(int rows) {
    return storage_bytes + (shared ? sizeof(T) * N * static_cast<size_t>(ld_of(rows)) : 0);
  }

  __device__ panel_qr(T *a, int64_t lda, int rows, int columns, int ld)
      : s(*shared_memory<storage>()), packs_(tile_packs(a, lda, 0)), x_(part_of(a, lda, rows, columns, ld)),
        lda_(lda), m_(rows), n_(columns), a_(a + x_.first) {}

  BQR_INLINE static bool may_be_fast(int rows, int columns) {
    return columns >= least_columns && rows >= least_rows<T>;
  }
  /* V, R, tau and T, all columns at once. Whether that was done: else nothing of A is written, and the panel
   * is loaded. */
  __device__ __forceinline__ bool run_fast(T *tau, T *t, bool positive) const {
    begin();
    if constexpr (shared) load_in_bulk();
    sum_products();
    if constexpr (shared) copy_top();
    factor(s.r, s.lw, s.by, s.ready, positive, [&](int warp) {
      if (warp < 2) make_trace(warp);
    });
    if (!(s.trace[0] + s.trace[1] < most_trace<T>)) return false;
    if (positive && !are_far_from_zero(s.r, s.by)) return false;
    if (warp_id() < 2 && x_.first == 0 && t) store_t(t);
    make_v(tau);
    return true;
  }

  /* One after the other; returns info, in all threads. loaded: where rows go to shared memory, they are
   * there. */
  __device__ __forceinline__ int run_householder(T *tau, T *t, bool loaded, bool positive) const {
    if (shared && !loaded) load(0);
    sync();
    const householder_type panel(s.householder, x_, n_, least(m_, n_), positive);
    const int info = panel.run(tau);
    if (shared) bulk_fence();
    block_sync();
    if (t) panel.store_t(t);
    if (shared) store_in_bulk();
    return info;
  }

  __device__ __forceinline__ static void sync() { B > 1 ? cluster_sync() : block_sync(); }

private:
  __device__ __forceinline__ static slabs part_of(T *a, int64_t lda, int rows, int columns, int ld) {
    const int share = share_of(rows), first = B > 1 ? cluster_rank() * share : 0,
              mine = largest(0, least(share, rows - first));
    if constexpr (shared)
      return {reinterpret_cast<T *>(shared_memory<unsigned char>() + storage_bytes), ld, first, mine, N};
    else
      return {a + first, lda, first, mine, columns};
  }

  /* Barriers, before all else. */
  __device__ __forceinline__ void begin() const {
    if (shared && thread_id() < chunks) s.full[thread_id()].init(1);
    s.ready.init();
    if (!shared) return; /* barriers follow before they are used */
    bulk_fence();
    sync(); /* all blocks have started, too */
  }

  /* f(row, column) for the block's rows from row `from` on, and those that fill up the last slab. */
  template <class F> __device__ __forceinline__ void each(int from, F &&f) const {
    const int end = (x_.rows + slab_rows - 1) / slab_rows * slab_rows;
    for (int j = thread_id() / slab_rows; j < N; j += threads / slab_rows)
#pragma unroll 4
      for (int i = from + thread_id() % slab_rows; i < end; i += slab_rows) f(i, j);
  }

  /* Rows that copies in bulk take; each warp's first lanes have a column. */
  __device__ __forceinline__ int bulk_rows() const {
    return packs_ && n_ == N ? x_.rows / pack<T>::size * pack<T>::size : 0;
  }
  __device__ __forceinline__ int bulk_column() const { return warp_id() + warps * lane_id(); }

  /* Rows come in chunks, a slab of each for a warp, which waits for it. */
  __device__ __forceinline__ void load_in_bulk() const {
    const int rows = bulk_rows(), j = bulk_column();
#pragma unroll 1
    for (int top = 0; top < x_.rows; top += chunk) {
      const int bytes = largest(0, least(chunk, rows - top)) * static_cast<int>(sizeof(T));
      phase_barrier &full = s.full[top / chunk];
      if (thread_id() == 0) full.arrive_before_bytes(N * bytes);
      if (bytes > 0 && j < N) full.copy_bulk(x_.at(top, j), a_ + top + j * lda_, bytes);
    }
    load(rows);
    block_sync();
  }
  __device__ __forceinline__ void load(int from) const {
    each(from, [&](int i, int j) {
      const bool inside = i < x_.rows && j < n_;
      copy_async_if<sizeof(T)>(inside, x_.at(i, j), inside ? a_ + i + j * lda_ : a_);
    });
    copy_async_wait();
  }
  /* After a bulk_fence() and a barrier. */
  __device__ __forceinline__ void store_in_bulk() const {
    const int rows = bulk_rows(), j = bulk_column();
    if (rows > 0 && j < N) store_bulk(a_ + j * lda_, x_.at(0, j), rows * static_cast<int>(sizeof(T)));
    each(rows, [&](int i, int j) {
      if (i < x_.rows && j < n_) a_[i + j * lda_] = *x_.at(i, j);
    });
    wait_for_bulk_stores();
  }

  /* Whether the slab can be read 16 bytes at a time. */
  __device__ __forceinline__ bool is_whole(int top) const {
    return shared || (packs_ && top + slab_rows <= x_.rows && n_ == N);
  }
  /* The upper triangle of r := A^H A, in tiles of 16 x 8. */
  __device__ __forceinline__ void sum_products() const {
    X c[sum_tiles][4] = {};
    auto add = [&](const T(&x)[tiles][2]) {
#pragma unroll
      for (int n = 0; n < sum_tiles; n++) {
        const int I = n / tiles, J = n < tiles ? n : n - 2;
        auto at = [&](int j, int t) { return converted<X>(x[j][t]); };
        add_product(c[n],
                    {conj(at(2 * I, 0)), conj(at(2 * I, 1)), conj(at(2 * I + 1, 0)), conj(at(2 * I + 1, 1))},
                    at(J, 0), at(J, 1));
      }
    };
    if constexpr (shared)
      x_.each(0, warp_id(), warps, [&](int top) {
        s.full[top / chunk].wait(0);
#pragma unroll
        for (int t = 0; t < 2; t++) {
          T x[tiles][2];
          x_.read_half(x, top, t);
          add(x);
        }
      });
    else { /* eight rows ahead */
      T x[2][tiles][2];
      auto read = [&](T(&to)[tiles][2], int top, int t) {
        if (is_whole(top))
          x_.template read_half<true>(to, top, t);
        else
          x_.read_half(to, top, t);
      };
      read(x[0], slab_rows * warp_id(), 0);
      read_top();
      x_.each(0, warp_id(), warps, [&](int top) {
        read(x[1], top, 1);
        add(x[0]);
        read(x[0], top + warps * slab_rows, 0);
        add(x[1]);
      });
    }
    X *part = s.part[warp_id() % parts] + lane_id();
    auto each_sum = [&](auto &&f) {
#pragma unroll
      for (int e = 0; e < 4 * sum_tiles; e++) f(part[e * warp_lanes], c[e / 4][e % 4]);
    };
    if (warp_id() >= parts) each_sum([](X &to, const X &x) { to = x; });
    block_sync();
    if (warp_id() < parts) each_sum([](X &to, const X &x) { to += x; });
    block_sync();
    X total[values / threads];
#pragma unroll
    for (int k = 0; k < values / threads; k++) {
      const int e = thread_id() + k * threads;
      total[k] = s.part[0][e] + s.part[1][e];
      if constexpr (parts == 4) total[k] += s.part[2][e] + s.part[3][e];
      if (B > 1) s.share[e] = total[k];
    }
    if (B > 1) {
      cluster_sync();
#pragma unroll
      for (int k = 0; k < values / threads; k++) {
        total[k] = zero<X>();
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
      /* columns that are not there are those of a unit matrix, below all rows */
      if (j >= n_) total[k] = make<X>(i == j);
      s.r(i, j) = total[k];
      if (i == j) s.norm2[i] = real_part(total[k]);
    }
    block_sync();
  }
  /* lw := the panel's first rows, as they are in memory. */
  __device__ __forceinline__ void read_top() const {
#pragma unroll
    for (int k = 0; k < N * N / threads; k++) {
      const int e = thread_id() + k * threads;
      s.lw(e % N, e / N) = converted<X>(e / N < n_ ? a_[e % N - x_.first + e / N * lda_] : zero<T>());
    }
  }
  /* The same, from the first block. */
  __device__ __forceinline__ void copy_top() const {
    const T *top = cluster_shared(x_.x, 0);
#pragma unroll
    for (int k = 0; k < N * N / threads; k++) {
      const int e = thread_id() + k * threads;
      s.lw(e % N, e / N) = converted<X>(top[e % N + e / N * x_.ld]);
    }
    sync();
  }

  /* 16 rows by a warp. */
  __device__ __forceinline__ void make_trace(int half) const {
    const double sum = trace_of_rows<T>(half * slab_rows, s.r, s.by, s.norm2);
    if (lane_id() == 0) s.trace[half] = sum;
  }
  __device__ __forceinline__ void store_t(T *t) const {
    const int top = warp_id() * slab_rows;
    rows16 x;
    make_t(x, top, s.r, s.lw, s.by);
    each_element(x, [&](X &y, int i, int j) {
      t[top + i + j * N] = converted<T>(top + i <= j && j < n_ ? y : zero<X>());
    });
  }

  /* 16 rows to A, but for those that are not there. */
  __device__ __forceinline__ void store_rows(const rows16 &x, int top) const {
    const int row = top + 2 * (lane_id() / 4), left = x_.rows - row;
#pragma unroll
    for (int J = 0; J < tiles; J++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int j = tile * J + 2 * (lane_id() % 4) + e;
        T *to = a_ + row + j * lda_;
        const T y[2] = {converted<T>(x[J][e]), converted<T>(x[J][2 + e])};
        if (packs_ && left > 1 && j < n_)
          write_two(to, y);
        else
          for (int h = 0; h < 2; h++)
            if (h < left && j < n_) to[h] = y[h];
      }
  }
  /* The first row of slab `number` of one of four warps. Those that make T have the first ones, and the
   * others the next six meanwhile. */
  __device__ __forceinline__ static int top_of(int number) {
    const int w = warp_id(), turn = w < 2 ? number > 0 ? number + 1 : 0 : number > 2 ? number - 1 : 0;
    return slab_rows * (turn > 0 ? w + 4 * turn : w + 2 * number);
  }
  /* f(first row): the warp's slabs of V. */
  template <class F> __device__ __forceinline__ void each_own(F &&f) const {
    if constexpr (shared || warps > 4) {
      const bool first = x_.first == 0;
      const int stride = first ? warp_id() < 2 ? S::rows : (warps - 2) * slab_rows : warps * slab_rows;
#pragma unroll 1
      for (int top = slab_rows * warp_id(); top < x_.rows; top += stride) f(top);
    } else { /* from the last one on, which the cache still has */
      int number = 0;
      while (top_of(number) < x_.rows) number++;
#pragma unroll 1
      while (--number >= 0) f(top_of(number));
    }
  }
  /* V and R in place of the panel, and tau that fits its vector's norm. */
  __device__ __forceinline__ void make_v(T *tau) const {
    column_norms<T, N> norms;
    each_own([&](int top) {
      const bool has_r = x_.first == 0 && top < N;
      rows16 x;
      if (has_r) {
        each_element(x,
                     [&](X &y, int i, int j) { y = top + i > j ? s.lw(top + i, j) : make<X>(top + i == j); });
      } else {
        if (is_whole(top))
          x_.template read_rows<true>(x, top, 0);
        else
          x_.read_rows(x, top, 0);
        divide(x, upper(s.lw), s.by.by_w);
      }
      norms.add(x);
      if (has_r)
        each_element(x, [&](X &y, int i, int j) {
          if (top + i <= j) y = scaled(s.r(top + i, j), s.by.sign[top + i]);
        });
      store_rows(x, top);
    });
    norms.store(s.norms[warp_id()]);
    block_sync();
    const int j = thread_id();
    double sum = 0;
    if (j < N) {
#pragma unroll
      for (int w = 0; w < warps; w++) sum += s.norms[w][j];
    }
    if (B > 1) {
      if (j < N && x_.first > 0) *cluster_shared(&s.others[cluster_rank()][j], 0) = sum;
      cluster_sync();
#pragma unroll
      for (int b = 1; b < B; b++)
        if (j < N) sum += s.others[b][j];
    }
    if (j < n_ && x_.first == 0) tau[j] = tau_of(j, sum);
  }

  /* In the direction of -W(j, j) / (S R)(j, j); norm2: of the vector. */
  __device__ __forceinline__ T tau_of(int j, double norm2) const {
    if constexpr (is_complex<T>)
      return converted<T>(unitary_tau(scaled(s.lw(j, j), -s.by.sign[j]), norm2));
    else
      return static_cast<T>(2 / norm2);
  }

  storage &s;
  const bool packs_;
  const slabs x_;
  const int64_t lda_;
  const int m_, n_;
  T *const a_; /* from the block's first row on */
};

template <class T, class S>
__device__ __noinline__ int run_householder(T *a, int64_t lda, int rows, int columns, int ld, T *tau, T *t,
                                            bool loaded, bool positive) {
  return panel_qr<T, S>(a, lda, rows, columns, ld).run_householder(tau, t, loaded, positive);
}

/* By one warp. */
template <class T>
__device__ __noinline__ int run_short(T *a, int64_t lda, int rows, int columns, T *tau, T *t, bool positive) {
  return short_panel<T>(*shared_memory<typename short_panel<T>::storage>())
      .run(a, lda, rows, columns, tau, t, positive);
}

template <class T, class S>
/* Entry i's T is at t + i * stride_t. */
__global__ void __launch_bounds__(S::threads, S::at_once)
    geqrt_kernel(const __grid_constant__ bqr_args args, int64_t first, T *t, int64_t stride_t, int ld,
                 bool positive) {
  if constexpr (has_clusters) {
    using Q = panel_qr<T, S>;
    const int64_t i = first + blockIdx.x / S::blocks;
    const member x = member_at<BATCHQR_GEQRF>(args, i);
    T *a = matrix_data<T>(args, args.a, x.id), *tau = tau_data<T>(args, x.id); /* all loads at once */
    T *my_t = t ? t + i * stride_t : nullptr;
    const int64_t lda = matrix_ld(args.a, x.id);
    if (!x.ok || x.m == 0 || x.n == 0) return;
    if (x.m <= N) {
      if (cluster_rank() > 0 || warp_id() != i / multiprocessors() % S::warps) return;
      const int info = run_short(a, lda, x.m, x.n, tau, my_t, positive);
      if (lane_id() == 0) set_info(args, x.id, info);
      return;
    }
    const bool tried = Q::may_be_fast(x.m, x.n),
               done = tried && Q(a, lda, x.m, x.n, ld).run_fast(tau, my_t, positive);
    const int info = done ? 0 : run_householder<T, S>(a, lda, x.m, x.n, ld, tau, my_t, tried, positive);
    Q::sync();
    if (thread_id() == 0 && cluster_rank() == 0) set_info(args, x.id, info);
  }
}

} // namespace geqrt
} // namespace bqr

#endif
