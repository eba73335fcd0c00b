/* SPDX-License-Identifier: BSD-3-Clause */
/* QR of a tall member of up to 8 or 16 columns by one block or one cluster of blocks, on matrix units: what
 * geqrf_narrow does. The member lies in shared memory, which copies fill. Its warps form the products of all
 * its columns, one warp makes all reflectors from them and the first rows
 * (families/geqrf/narrow_cholesky.cuh), and V = A C goes to global memory as it is formed.
 *
 * While reflectors are made, the other warps look whether entries are out of range, or columns zero below the
 * first rows. If so, or where columns nearly depend on others, the member is loaded again, columns are
 * brought into range, and reflectors made in a way that cares for everything
 * (families/geqrf/narrow_gram.cuh). Where cancellation then ends a round early, A C takes the place of A, and
 * the next round starts with its products. Where R's diagonal is not to be negative, and columns may be next
 * to unit vectors, they are made one after another instead.
 *
 * Method: xGEQRF with one block of columns; columns in range as in common/panel/columns.cuh. */
#ifndef BQR_KERNELS_FAMILIES_GEQRF_NARROW_QR_CUH
#define BQR_KERNELS_FAMILIES_GEQRF_NARROW_QR_CUH

#include "narrow_cholesky.cuh"
#include "narrow_gram.cuh"
#include "common/simt/block.cuh"
#include "common/simt/mma_fragment.cuh"
#include "common/simt/tile.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/cp_async_bulk.cuh"
#include "common/ptx/opaque.cuh"

namespace bqr {

/* How a launch's members are dealt out: to so many blocks, each of so many rows and warps; what is between
 * columns in shared memory. */
struct narrow_shape {
  int rows, warps, blocks, stride;
};

/* The factorization of one member of up to N columns. One warp makes the reflectors, the others look over the
 * columns: there are at least two. */
template <class T, int N> class narrow_qr {
  using real = real_t<T>;
  using panel = gram_panel<T, N>; /* for any columns */
  using usual_panel = cholesky_panel<T, N>;
  static constexpr int tile = 8, sides = N / tile;
  /* Whether the imaginary part of the products is X_re^H X_im minus the transpose. */
  static constexpr bool parts = is_complex<T> && sides > 1;
  static constexpr int small_stride = panel::small_stride;
  using small_matrix = T[N][small_stride];

  struct storage {
    union {
      typename panel::storage pivots;
      typename usual_panel::storage steps;
      struct {
        T dots[2][N], tau[N];
      } singly; /* see one_by_one() */
    };
    phase_barrier loaded;
    uint32_t magnitude[N], filled; /* of columns; which ones have a tail that is not zero */
    int done, info;
    bool unusual, scaled;
    alignas(16) small_matrix small; /* of the second warp's sums, then of all, then C */
    alignas(16) T x[1];             /* columns; then the sums of the other warps but the first */
  };

public:
  /* Of columns in shared memory: neither way of reading them has bank conflicts. */
  static int stride_of(int rows) {
    constexpr int banks = 128 / sizeof(T), shift = sizeof(T) == 16 ? 1 : 4;
    return (rows + banks - 1) / banks * banks + shift;
  }
  static size_t smem(const narrow_shape &b) {
    return sizeof(storage) + sizeof(small_matrix) * static_cast<size_t>(b.warps - 2) +
           sizeof(T) * static_cast<size_t>(N * b.stride);
  }

  /* To be called once, before the first member. */
  __device__ __forceinline__ static void init(void *shared, const narrow_shape &b) {
    if (thread_id() == 0) static_cast<storage *>(shared)->loaded.init(1);
    sync(b);
  }
  /* For one member; parity: 0 for the first one, kept from one to the next. */
  __device__ __forceinline__ narrow_qr(void *shared, const narrow_shape &b, uint32_t &parity)
      : s(static_cast<storage *>(shared)), b(b), block_(b.blocks > 1 ? cluster_rank() : 0),
        warp_(broadcast(warp_id(), 0)), parity_(parity) {}

  /* Factors a member; returns its info, in thread 0 of block 0. tau: min(m, n) elements. All its blocks come
   * here together. */
  __device__ __forceinline__ int run(T *a, int64_t ld, int m, int n, T *tau, bool positive) {
    const int unit = tile * b.blocks,
              chunk = b.blocks == 1 ? b.rows : largest(N, (m + unit - 1) / unit * tile);
    rows_ = broadcast(largest(0, least(chunk, m - block_ * chunk)), 0);
    columns_ = broadcast(n, 0);
    a_ = a + block_ * chunk;
    ld_ = ld;
    if (b.blocks > 1 && thread_id() == 0) s->unusual = false;
    for (bool prepared = false; !factor(least(m, n), m > N, prepared, positive, tau);) prepared = true;
    return s->info;
  }

private:
  /* What follows finds out addresses for itself: what is kept for later takes too many registers, and what is
   * found out at every access too long. */
  __device__ __forceinline__ void forget_addresses() {
#ifdef __CUDA_ARCH__
    opaque_here(s);
    __builtin_assume(__isShared(s));
#endif
  }
  __device__ __forceinline__ static void sync(const narrow_shape &b) {
    if (b.blocks > 1)
      cluster_sync();
    else
      block_sync();
  }
  __device__ __forceinline__ void sync() const { sync(b); }
  /* Whether any thread says so. For clusters it stays so until the next member. */
  __device__ __forceinline__ bool any(bool v) {
    if (b.blocks == 1) return block_any(v);
    if (v)
      for (int i = 0; i < b.blocks; i++) *cluster_shared(&s->unusual, i) = true;
    cluster_sync();
    return s->unusual;
  }

  __device__ __forceinline__ T *column_of_x(int j) const { return s->x + j * b.stride; }

  /* Of an operand's element: where its lane's column and row are, and for which row or column element e
   * stands, so that there are no bank conflicts. */
  __device__ __forceinline__ static int column() { return lane_id() / 4; }
  __device__ __forceinline__ static int lane() { return lane_id() % 4; }
  __device__ __forceinline__ static int row_of(int e) {
    return sizeof(T) == 16 ? 2 * lane() + e : lane() + 4 * e;
  }
  __device__ __forceinline__ static int column_of(int e) {
    return sizeof(T) == 8 ? lane() + 4 * e : 2 * lane() + e;
  }
  __device__ __forceinline__ int padded_rows() const {
    return largest(block_ == 0 ? N : 0, (rows_ + 2 * tile - 1) / (2 * tile) * (2 * tile));
  }

  /* False: there are unusual columns, and it is not prepared for them. */
  __device__ __forceinline__ bool factor(int count, bool has_tail, bool prepared, bool positive, T *tau) {
    load();
    if (thread_id() == 0) {
      s->filled = has_tail ? ~0u : 0;
      s->scaled = false;
    }
    if (prepared) bring_into_range();
    if (prepared && positive) {
      one_by_one(s, b, rows_, block_, count);
      if (block_ == 0 && warp_ == 0) finish(made_singly{s->singly.tau}, tau);
      sync();
      recombine(true);
      sync();
      return true;
    }
    for (int done = 0; done < count; prepared = true) {
      gram(done);
      sync();
      forget_addresses();
      bool unusual = false;
      if (block_ == 0 && warp_ == 0) {
        add_blocks();
        if (!prepared) {
          unusual = head_is_unusual() || !has_tail;
          done = count;
          usual_panel usual(s->steps);
          unusual |= !usual.template make<parts>(s->x, b.stride, s->small[0], small_stride, count, positive);
          finish(usual, tau);
        } else {
          panel reflectors(s->pivots, s->x, b.stride, s->small[0]);
          done = reflectors.template make<parts>(done, count, s->filled);
          if (done == count) finish(reflectors, tau);
        }
        if (lane_id() == 0) s->done = done;
      } else if (!prepared)
        unusual = tail_is_unusual();
      if (prepared)
        sync();
      else if (any(unusual))
        return false;
      done = *cluster_shared(&s->done, 0);
      recombine(done == count);
      sync();
    }
    return true;
  }

  __device__ __forceinline__ void load() {
    forget_addresses();
    bulk_fence();
    block_sync();
    const int padded = padded_rows(), bytes = rows_ * static_cast<int>(sizeof(T));
    const bool bulk = (reinterpret_cast<uint64_t>(a_) | static_cast<uint64_t>(ld_) * sizeof(T) |
                       static_cast<uint64_t>(bytes)) %
                          16 ==
                      0;
    if (!bulk) {
      for (int j = warp_; j < columns_; j += b.warps)
#pragma unroll 4
        for (int i = lane_id(); i < rows_; i += warp_lanes)
          copy_async<sizeof(T)>(column_of_x(j) + i, a_ + i + j * ld_);
      copy_async_wait();
    } else if (warp_ == 0) {
      if (lane_id() == 0) s->loaded.arrive_before_bytes(columns_ * bytes);
      warp_sync();
      if (bytes > 0 && lane_id() < columns_)
        s->loaded.copy_bulk(column_of_x(lane_id()), a_ + lane_id() * ld_, bytes);
    }
    if (rows_ < padded || columns_ < N)
      for (int j = warp_; j < N; j += b.warps)
        for (int i = (j < columns_ ? rows_ : 0) + lane_id(); i < padded; i += warp_lanes)
          column_of_x(j)[i] = zero<T>();
    if (bulk) {
      s->loaded.wait(parity_);
      parity_ ^= 1;
    }
    block_sync();
  }

  /* A warp's part of X^H X, from units of 8 rows. */
  struct products_of_one_side {
    static constexpr int values = 2;
    square_sum<T> sum[2];
    __device__ __forceinline__ void add(const T (&x)[2], int which) {
      const operand<T> a[2] = {split(x[0]), split(x[1])};
      sum[which].add(a, {conj(a[0]), conj(a[1])});
    }
    __device__ __forceinline__ void get(T (&y)[values]) const {
      T other[values];
      sum[0].get(y);
      sum[1].get(other);
#pragma unroll
      for (int i = 0; i < values; i++) y[i] = y[i] + other[i];
    }
  };
  struct products_of_two_sides {
    static constexpr int values = 8;
    real sum[2][2][4] = {}; /* of X_re^H X_re + X_im^H X_im, of X_re^H X_im */
    __device__ __forceinline__ void add(const T (&x)[4], int) {
      operand<real> a[2][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        a[0][i] = split(real_part(x[i]));
        a[1][i] = split(imag_part(x[i]));
      }
#pragma unroll
      for (int n = 0; n < 2; n++) {
        multiply_add(sum[n][0], a[0], {a[0][2 * n], a[0][2 * n + 1]});
        if constexpr (is_complex<T>) {
          multiply_add(sum[n][0], a[1], {a[1][2 * n], a[1][2 * n + 1]});
          multiply_add(sum[n][1], a[0], {a[1][2 * n], a[1][2 * n + 1]});
        }
      }
    }
    __device__ __forceinline__ void get(T (&y)[values]) const {
#pragma unroll
      for (int i = 0; i < values; i++) {
        y[i] = make<T>(sum[i / 4][0][i % 4]);
        if constexpr (is_complex<T>) y[i].im = sum[i / 4][1][i % 4];
      }
    }
  };
  using products = std::conditional_t<sides == 1, products_of_one_side, products_of_two_sides>;
  /* Where value i of this lane's products is. */
  __device__ __forceinline__ T &place(int which, int i) const {
    const int g = column(), q = lane();
    T *const to = which == 0 ? s->small[0] : column_of_x(N) + (which - 1) * (N * small_stride);
    if constexpr (sides == 1) return to[g * small_stride + 2 * q + i];
    return to[(tile * (i / 4) + 2 * q + i % 2) * small_stride + g + tile * (i / 2 % 2)];
  }
  __device__ __forceinline__ void take(T (&x)[2 * sides], int u) const {
#pragma unroll
    for (int i = 0; i < 2 * sides; i++)
      x[i] = column_of_x(tile * (i / 2) + column())[tile * u + row_of(i % 2)];
  }

  /* X^H X of the block's rows from `first` on. */
  __device__ __forceinline__ void gram(int first) {
    forget_addresses();
    constexpr int at_once = sizeof(T) == 16 ? 2 : 4;
    const int padded = padded_rows();
    products sum;
    int u = warp_;
    for (; block_ == 0 && u < sides; u += b.warps) {
      T x[2 * sides];
      take(x, u);
#pragma unroll
      for (int i = 0; i < 2 * sides; i++)
        if (tile * u + row_of(i % 2) < first) x[i] = zero<T>();
      sum.add(x, 0);
    }
#pragma unroll 1
    for (; tile * (u + b.warps * (at_once - 1)) < padded; u += b.warps * at_once) {
      T x[at_once][2 * sides];
#pragma unroll
      for (int i = 0; i < at_once; i++) take(x[i], u + b.warps * i);
#pragma unroll
      for (int i = 0; i < at_once; i++) sum.add(x[i], i % 2);
    }
#pragma unroll 1
    for (; tile * u < padded; u += b.warps) {
      T x[2 * sides];
      take(x, u);
      sum.add(x, 0);
    }
    T part[products::values];
    sum.get(part);
    if (warp_ > 0) {
#pragma unroll
      for (int i = 0; i < products::values; i++) place(warp_ - 1, i) = part[i];
    }
    block_sync();
    if (warp_ > 0) return;
#pragma unroll 1
    for (int p = 0; p < b.warps - 1; p++)
#pragma unroll
      for (int i = 0; i < products::values; i++) part[i] = part[i] + place(p, i);
#pragma unroll
    for (int i = 0; i < products::values; i++) place(0, i) = part[i];
  }

  /* The sums over the blocks, by one warp of block 0. */
  __device__ __forceinline__ void add_blocks() {
    if (b.blocks == 1) return;
    constexpr int each = N * N / warp_lanes;
    T sum[each];
    auto place = [&](int e) { return &s->small[warp_lanes / N * e + lane_id() / N][lane_id() % N]; };
#pragma unroll
    for (int e = 0; e < each; e++) sum[e] = *place(e);
#pragma unroll 1
    for (int i = 1; i < b.blocks; i++)
#pragma unroll
      for (int e = 0; e < each; e++) sum[e] = sum[e] + *cluster_shared(place(e), i);
#pragma unroll
    for (int e = 0; e < each; e++) *place(e) = sum[e];
    warp_sync();
  }

  /* Whether an entry is out of range in the first N rows of block 0, which there are: by one warp. */
  __device__ __forceinline__ bool head_is_unusual() const {
    const T *const x = column_of_x(lane_id() % N);
    constexpr int each = N * N / warp_lanes;
    const int first = lane_id() / N * each;
    if (lane_id() % N >= columns_) return false;
    bool suspicious = false, outside = false;
#pragma unroll
    for (int i = 0; i < each; i++) suspicious |= !in_column_range(x[first + i]);
    if (suspicious) {
#pragma unroll 1
      for (int i = 0; i < each; i++) outside |= out_of_range(x[first + i]);
    }
    return outside;
  }
  /* Likewise in the block's other rows, or whether one of the columns is zero in all of them that a warp
   * looks at: by all its warps but that one, 16 bytes at a time, without bank conflicts. */
  __device__ __forceinline__ bool tail_is_unusual() const {
    using piece = pack<T>;
    constexpr int lanes = warp_lanes / N;
    constexpr bool shifted = sizeof(T) == 8; /* columns by 32 bytes, else 16 */
    const int from = block_ == 0 ? 1 : 0, j = shifted ? lane_id() / lanes : lane_id() % N,
              part = (warp_ - from) * lanes + (shifted ? lane_id() % lanes : lane_id() / N),
              first = N * from + piece::size * part, step = piece::size * lanes * (b.warps - from);
    if (N * from + piece::size * lanes * (warp_ - from) >= rows_) return false;
    const T *const x = column_of_x(j);
    const int rows = j < columns_ ? rows_ : 0;
    bool suspicious = first >= rows, unusual = false, filled = true;
    int i = first;
#pragma unroll 4
    for (; i + piece::size <= rows; i += step) {
      const piece y = *reinterpret_cast<const piece *>(x + i);
#pragma unroll
      for (int e = 0; e < piece::size; e++)
        suspicious |= !in_column_range(y.v[e]); /* cheaper, but single zeros are suspicious too */
    }
    for (; i < rows; i++) suspicious |= !in_column_range(x[i]);
    if (suspicious) {
      filled = false;
      for (i = first; i < rows; i += step)
        for (int e = 0; e < piece::size && i + e < rows; e++) {
          unusual |= out_of_range(x[i + e]);
          filled |= !is_zero(x[i + e]);
        }
    }
#pragma unroll
    for (int d = 1; d < lanes; d *= 2) filled |= exchange(static_cast<int>(filled), shifted ? d : N * d) != 0;
    return unusual || (j < columns_ && !filled);
  }

  /* Scales columns that are out of range, and finds those with a tail. */
  __device__ void bring_into_range() {
    const int head = block_ == 0 ? N : 0;
    if (thread_id() < N) s->magnitude[thread_id()] = 0;
    if (thread_id() == 0) s->filled = 0;
    sync();
    for (int j = warp_; j < columns_; j += b.warps) {
      uint32_t u = 0;
      bool filled = false;
      for (int i = lane_id(); i < rows_; i += warp_lanes) {
        u = greater(u, magnitude(column_of_x(j)[i]));
        filled |= i >= head && !is_zero(column_of_x(j)[i]);
      }
      u = group_max(u);
      filled = group_any(filled);
      if (lane_id() > 0) continue;
      for (int i = 0; i < b.blocks; i++) {
        shared_max(cluster_shared(&s->magnitude[j], i), u);
        if (filled) atomicOr(cluster_shared(&s->filled, i), 1u << j);
      }
    }
    sync();
    for (int j = warp_; j < columns_; j += b.warps) {
      const real scale = exponent_scale<real>(column_exponent<T>(s->magnitude[j]));
      for (int i = lane_id(); i < rows_; i += warp_lanes)
        column_of_x(j)[i] = scaled(column_of_x(j)[i], scale);
    }
    if (thread_id() == 0) s->scaled = true;
    block_sync();
  }

  /* Reflectors as in xGEQR2, with R's diagonal not negative; a warp has every so many-th column. X becomes
   * what is left of A, R and the head of V being in the first rows, and `small` a diagonal of the scales that
   * V's columns take. */
  __device__ __noinline__ static void one_by_one(storage *s, const narrow_shape &b, int rows, int block,
                                                 int count) {
    const int lane = lane_id(), warp = warp_id();
    const T *const top = cluster_shared(s->x, 0);
    T scale = zero<T>(); /* of column `lane` */
#pragma unroll 1
    for (int k = 0; k < count; k++) {
      const T *const pivot = s->x + k * b.stride;
      T *const dots = s->singly.dots[k % 2];
      const int first = block == 0 ? k + 1 : 0;
#pragma unroll 1
      for (int j = warp; j < N; j += b.warps) {
        if (j < k) continue;
        const T *const x = s->x + j * b.stride;
        T sum = zero<T>();
        for (int i = first + lane; i < rows; i += warp_lanes) sum = cmadd(pivot[i], x[i], sum);
        sum = group_sum(sum);
        if (lane == 0) dots[j] = sum;
      }
      sync(b);
      auto dot = [&](int j) {
        T sum = dots[j];
        if (b.blocks > 1) sum = *cluster_shared(dots + j, 0) + *cluster_shared(dots + j, 1);
        return sum;
      };
      const column_reflector<T> h = larfg_in_range(top[k + k * b.stride], real_part(dot(k)), true);
      if (lane == k) scale = h.scale;
#pragma unroll 1
      for (int j = warp; j < N; j += b.warps) {
        if (j <= k) continue;
        T *const x = s->x + j * b.stride;
        const T row = top[k + j * b.stride], w = conj(h.tau) * cmadd(h.scale, dot(j), row),
                factor = -(h.scale * w);
        for (int i = first + lane; i < rows; i += warp_lanes) x[i] = madd(factor, pivot[i], x[i]);
        if (lane == 0) s->small[j][k] = row - w; /* other blocks still read row k */
      }
      if (thread_id() == 0) {
        s->small[k][k] = make<T>(h.beta);
        s->singly.tau[k] = h.tau;
      }
      block_sync();
    }
#pragma unroll 1
    for (int j = warp; j < N; j += b.warps) {
      T *const x = s->x + j * b.stride;
      const T own = broadcast(scale, j), r = lane < N ? s->small[j][lane] : zero<T>();
      warp_sync();
      if (block == 0 && lane < least(N, rows))
        x[lane] = lane > j ? own * x[lane] : lane < count ? r : x[lane];
      if (lane < N) s->small[j][lane] = lane == j ? own : zero<T>();
    }
    block_sync();
  }
  /* What finish() asks. */
  struct made_singly {
    const T *tau_;
    __device__ __forceinline__ static int column() { return lane_id() % N; }
    __device__ __forceinline__ static bool has_tau() { return lane_id() < N; }
    __device__ __forceinline__ T tau() const { return tau_[column()]; }
  };

  /* When all reflectors are made: tau, info, and R without the columns' scales. By the warp that has them. */
  template <class PANEL> __device__ __forceinline__ void finish(const PANEL &reflectors, T *tau) {
    const int count = least(rows_, columns_), g = reflectors.column();
    if (reflectors.has_tau() && g < count) tau[g] = reflectors.tau();
    warp_sync();
    bool finite = true;
    if (s->scaled)
      for (int j = 0; j < columns_; j++) {
        finite &= magnitude_finite<T>(s->magnitude[j]);
        const real back = exponent_scale<real>(-column_exponent<T>(s->magnitude[j]));
        if (lane_id() <= j) column_of_x(j)[lane_id()] = scaled(column_of_x(j)[lane_id()], back);
      }
    warp_sync();
    const int zero_column =
        first_lane(lane_id() < count && is_zero(column_of_x(lane_id() % N)[lane_id() % N]));
    if (lane_id() == 0) s->info = finite ? zero_column + 1 : BATCHQR_INFO_NONFINITE;
  }

  /* X := X C below the first N rows. If it is the last time, into global memory, and these rows as well. */
  __device__ __forceinline__ void recombine(bool last) {
    forget_addresses();
    const int g = column(), q = lane(), padded = padded_rows(), head = block_ == 0 ? N : 0;
    const T *c = cluster_shared(&s->small[0][0], 0);
    operand<T> y[sides][sides][2];
#pragma unroll
    for (int n = 0; n < sides; n++)
#pragma unroll
      for (int k = 0; k <= n; k++)
#pragma unroll
        for (int e = 0; e < 2; e++)
          y[n][k][e] = split(c[(tile * n + g) * small_stride + tile * k + column_of(e)]);
    if (last && warp_ == 0) store(head);
    T *to = a_ + g + 2 * q * ld_;
#pragma unroll 1
    for (int row = 2 * tile * warp_; row < padded; row += 2 * tile * b.warps) {
      if (row + 2 * tile <= head) continue;
      T v[sides][4] = {};
      operand<T> a[sides][4];
#pragma unroll
      for (int k = 0; k < sides; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
          a[k][i] = split(column_of_x(tile * k + column_of(i % 2))[row + g + tile * (i / 2)]);
#pragma unroll
      for (int n = 0; n < sides; n++)
#pragma unroll
        for (int k = 0; k <= n; k++) multiply_add(v[n], a[k], y[n][k]);
      if (last) {
        each(row, head, [&](int n, int i, int i_row, int j) {
          if (i_row + g < rows_ && j + 2 * q < columns_) to[i_row + j * ld_] = v[n][i];
        });
      } else {
        warp_sync();
        each(row, head, [&](int n, int i, int i_row, int j) { column_of_x(j + 2 * q)[i_row + g] = v[n][i]; });
      }
    }
  }
  /* f(n, i, row, column) of this lane's elements v[n][i] of a unit, without the first `head` rows. */
  template <class F> __device__ __forceinline__ static void each(int row, int head, F &&f) {
#pragma unroll
    for (int n = 0; n < sides; n++)
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (sides > 1 || row + tile * (i / 2) >= head) f(n, i, row + tile * (i / 2), tile * n + i % 2);
  }
  /* The first `rows` rows, 0 or N, by one warp. */
  __device__ __forceinline__ void store(int rows) const {
    const int i = lane_id() % N;
#pragma unroll
    for (int j = lane_id() / N; j < N; j += warp_lanes / N)
      if (i < least(rows, rows_) && j < columns_) a_[i + j * ld_] = column_of_x(j)[i];
  }

  storage *s;
  const narrow_shape &b;
  T *a_;
  int64_t ld_;
  int rows_, columns_, block_, warp_;
  uint32_t &parity_;
};

} // namespace bqr

#endif
