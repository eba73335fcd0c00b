/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of reflectors applied from the left, of real types, to columns that stay in registers from the first
 * block to the last, while V streams past. A block of threads has 32 columns of a member, of taller members a
 * cluster shares their rows: warps that multiply each have some columns and every n-th 8 rows, and four more
 * warps bring V and T into a ring in shared memory, ahead of them and from one member to the next.
 *
 * The matrix units' order of k is free (common/product.cuh). W^T = V^T X takes X as the right operand, Y V^T
 * adds to it as the result: in both a lane has the rows of common/vectors.cuh's chunks, 16 bytes of them, and
 * the same lines. Where V's reflectors are among the units' rows and k follows from shared memory's banks.
 *
 * Sums over rows: over a warp's, then over a group's warps, then over blocks, of numbers and borders that
 * follow from the member's rows alone. */
#include "blocked.h"
#include "block.cuh"
#include "cluster.cuh"
#include "columns.cuh"
#include "product.cuh"
#include "ring.cuh"
#include "vectors.cuh"
#include "view.cuh"

namespace {
using namespace bqr;

constexpr int W = BATCHQR_BLOCK_WIDTH, strip_columns = 32;
constexpr int products_warps = 8, copies_warps = 4;
constexpr int threads = (products_warps + copies_warps) * warp_lanes;
constexpr int copies_arrivals = copies_warps * (warp_lanes + 1); /* when a place is full */
constexpr int products_registers = 232, copies_registers = 40;

constexpr int block_rows = 512, most_rows = most_cluster_blocks * block_rows;

/* How warps share a strip: groups of them its columns, 8 `lines` to a product, and a group's warps the rows.
 */
template <class T> struct shape {
  static constexpr int lines = sizeof(T) == 4 ? 4 : 2, groups = strip_columns / (8 * lines);
  static constexpr int warps = products_warps / groups, threads = warps * warp_lanes;
  static constexpr int tile_rows = 512 / static_cast<int>(sizeof(T)), most_tiles = block_rows / tile_rows;
  static constexpr int chunks = tile_rows / chunk<T>::rows / warps; /* of a warp in a tile */
  static constexpr int parts = 4, places = 10;
  static constexpr int lane_sums = 8 * lines, sums = lane_sums * warp_lanes; /* of V^T X */
  static constexpr int pad = 16 / static_cast<int>(sizeof(T)), ld = tile_rows + pad, ld_factor = W + pad;
  static constexpr int ld_y = 8 * lines + 32 / static_cast<int>(sizeof(T));
  static_assert(W * ld_y <= 2 * sums, "the first parts make room for y");
};

template <class T> struct storage {
  using S = shape<T>;
  alignas(16) T v[S::places][W * S::ld];
  alignas(16) T factor[W * S::ld_factor];
  T parts[S::groups][S::parts * S::sums], sums[S::groups][2 * S::sums];
  phase_barrier full[S::places], empty[S::places], factor_full, factor_empty;
  uint64_t cluster[S::groups];
  uint32_t magnitude[strip_columns];
};

/* Which of 8 reflectors is the units' row n, and which is number q + 4 s of k. */
__device__ __forceinline__ int reflector_of_row(int n) { return n / 2 + n % 2 * 4; }
__device__ __forceinline__ int reflector_of_k(int q, int s) { return 2 * q + s; }

/* Blocks of threads for a member's rows. */
BQR_INLINE int shares_of(int rows) { return rows > 0 ? (rows - 1) / block_rows + 1 : 1; }

/* `blocks` blocks of reflectors, the first of which is reflector `first`; columns from .. to. */
struct stream_task {
  int first, blocks, from, to, strips;
  int64_t stride_t, stride_block; /* from T to T, of the next member and of the next block */
  short *exponents;               /* see batchqr_columns, or NULL; of members of `cols` columns at the most */
  int *nonfinite;
  int cols;
};

/* What a block of threads has of a member: a strip of columns, and every `shares`th tile of its rows. */
template <class T> struct share {
  static constexpr int tile_rows = shape<T>::tile_rows;
  vectors<T> v; /* of all blocks */
  const T *t;
  T *c; /* with leading dimension v.ld */
  int64_t entry;
  int begin, columns, blocks, shares, tiles;

  __device__ __forceinline__ share(const batchqr_args &args, const stream_task &task, const T *all_t,
                                   int64_t i) {
    entry = i / task.strips;
    const block_step step = {BATCHQR_GEQRF, BATCHQR_LEFT, task.first, task.blocks * W};
    const member x = member_of_step(args, entry, step);
    begin = task.from + static_cast<int>(i % task.strips) * strip_columns;
    v = vectors_of<T>(args, x, step);
    columns = least(strip_columns, least(task.to, x.n) - begin);
    const bool any = columns > 0 && v.width > 0 && v.rows <= most_rows;
    blocks = any ? (v.width - 1) / W + 1 : 0;
    shares = shares_of(v.rows);
    const int units = (v.rows - 1) / tile_rows + 1, rank = cluster_rank();
    tiles = any && rank < least(shares, units) ? (units - rank - 1) / shares + 1 : 0;
    c = any ? matrix_data<T>(args, args.a, x.id) + task.first + begin * v.ld : nullptr;
    t = all_t + entry * task.stride_t;
  }
  __device__ __forceinline__ int top(int tile) const { return (cluster_rank() + shares * tile) * tile_rows; }
  /* The first tile that block b of reflectors reaches. */
  __device__ __forceinline__ int first(int b) const {
    const int unit = b * W / tile_rows, rank = cluster_rank();
    return unit > rank ? (unit - rank - 1) / shares + 1 : 0;
  }
};

/* The warps that bring V and T. */
template <class T> class copies {
  using S = shape<T>;
  static constexpr int tile_rows = S::tile_rows;
  static constexpr int columns = W / copies_warps; /* of a tile, of a warp */

public:
  __device__ __forceinline__ copies(storage<T> &shared, const stream_task &task)
      : s_(shared), task_(task), warp_(warp_id() - products_warps) {}

  /* next: what follows. */
  __device__ __forceinline__ void run(const share<T> &mine, const share<T> &next) {
    const bool aligned = tile_packs(mine.v.data, mine.v.ld, 0);
    for (int i = 0; i < mine.blocks; i++) {
      const int down = i * W;
      if (i == mine.blocks - 1) prefetch(next);
      const vectors<T> v = {mine.v.data + down * (mine.v.ld + 1), mine.v.ld, mine.v.rows - down,
                            least(W, mine.v.width - down)};
      for (int n = mine.first(i); n < mine.tiles; n++) {
        const int top = mine.top(n) - down;
        s_.empty[at_.place].wait(at_.parity ^ 1);
        if (aligned && top >= W && top + tile_rows <= v.rows && v.width == W)
          load_whole(v, top);
        else
          load(v, top);
        at_.next();
      }
      load_factor(mine.t + i * task_.stride_block);
    }
  }

private:
  /* Rows below the diagonal that are all there. */
  __device__ __forceinline__ void load_whole(const vectors<T> &v, int top) {
    copy_columns<tile_rows>(s_.full[at_.place], s_.v[at_.place], S::ld, v.data + top, v.ld);
  }
  /* This warp's columns, of ROWS entries. */
  template <int ROWS>
  __device__ __forceinline__ void copy_columns(phase_barrier &full, T *to, int ld_to, const T *from,
                                               int64_t ld_from) {
    constexpr int bytes = ROWS * static_cast<int>(sizeof(T));
    bulk_fence();
    if (lane_id() == 0) full.arrive_before_bytes(columns * bytes);
    warp_sync();
    if (lane_id() < columns) {
      const int j = warp_ * columns + lane_id();
      full.copy_bulk(to + j * ld_to, from + j * ld_from, bytes);
    }
    full.arrive();
  }
  __device__ __forceinline__ void load(const vectors<T> &v, int top) {
    T *to = s_.v[at_.place] + warp_ * columns * S::ld + lane_id();
    const T *from = v.data + top + lane_id() + warp_ * columns * v.ld;
    for (int j = warp_ * columns; j < (warp_ + 1) * columns; j++) {
#pragma unroll
      for (int i = 0; i < tile_rows; i += warp_lanes) {
        const int row = top + lane_id() + i;
        const bool inside = row < v.rows && j < v.width;
        if (row > j)
          copy_async_if<sizeof(T)>(inside, to + i, inside ? from + i : v.data);
        else
          to[i] = row == j && inside ? one<T>() : zero<T>();
      }
      to += S::ld;
      from += v.ld;
    }
    arrive_after_copies(s_.full[at_.place]);
  }
  __device__ __forceinline__ void load_factor(const T *t) {
    s_.factor_empty.wait(turn_ ^ 1);
    copy_columns<W>(s_.factor_full, s_.factor, S::ld_factor, t, W);
    turn_ ^= 1;
  }
  /* Each lane for its asynchronous copies, the warp for what it wrote itself. */
  __device__ __forceinline__ static void arrive_after_copies(phase_barrier &full) {
    full.arrive_after_copies();
    warp_sync();
    if (lane_id() == 0) full.arrive();
  }

  /* The columns, to the L2 cache. */
  __device__ __forceinline__ void prefetch(const share<T> &next) const {
    constexpr int line = 128 / static_cast<int>(sizeof(T));
    for (int j = warp_; j < (next.blocks > 0 ? next.columns : 0); j += copies_warps)
      for (int i = lane_id() * line; i < next.v.rows; i += warp_lanes * line)
        prefetch_l2(next.c + i + j * next.v.ld);
  }

  storage<T> &s_;
  const stream_task &task_;
  const int warp_;
  ring_position<S::places> at_;
  uint32_t turn_ = 0; /* of T */
};

/* A warp of those that multiply. Its lane (g, q) has lines g, g + 8, ... of its group's. */
template <class T> class products {
  using S = shape<T>;
  using part = chunk<T>;
  static constexpr int lines = S::lines, most_tiles = S::most_tiles;
  using entries = T[S::chunks][lines][part::each]; /* of a tile's chunks */
  using sums = T[2][lines][4];                     /* of 16 reflectors and 8 lines */
  using lefts = operand<T>[lines / 2][W / 8][4];

public:
  __device__ __forceinline__ products(storage<T> &shared, const stream_task &task)
      : s_(shared), task_(task), warp_(warp_id() % S::warps), group_(warp_id() / S::warps) {}

  __device__ __forceinline__ void run(const share<T> &mine) {
    if (mine.blocks == 0) return;
    const bool packs = tile_packs(mine.c, mine.v.ld, mine.v.rows);
    if (packs)
      each_unit<pack<T>::size>(mine, [](T *x, const T *at, bool inside) {
        pack<T> p = {};
        if (inside) p = *reinterpret_cast<const pack<T> *>(at);
#pragma unroll
        for (int i = 0; i < pack<T>::size; i++) x[i] = p.v[i];
      });
    else
      each_unit<1>(mine, [](T *x, const T *at, bool inside) { *x = inside ? *at : zero<T>(); });
    if (task_.exponents) bring_into_range(mine);
    for (int i = 0; i < mine.blocks; i++) {
      const int first = mine.first(i);
      sums w = {};
      project(w, mine.tiles, first);
      lefts y;
      exchange(y, w, mine.shares);
      update(y, mine.tiles, first);
    }
    if (packs)
      each_unit<pack<T>::size>(mine, [](const T *x, T *at, bool inside) {
        pack<T> p;
#pragma unroll
        for (int i = 0; i < pack<T>::size; i++) p.v[i] = x[i];
        if (inside) *reinterpret_cast<pack<T> *>(at) = p;
      });
    else
      each_unit<1>(mine, [](const T *x, T *at, bool inside) {
        if (inside) *at = *x;
      });
  }

private:
  __device__ __forceinline__ static int g() { return lane_id() / 4; }
  __device__ __forceinline__ static int q() { return lane_id() % 4; }
  __device__ __forceinline__ void sync() const { named_sync(1 + group_, S::threads); }

  /* f(UNIT entries, their address, whether they are there) */
  template <int UNIT, class F> __device__ __forceinline__ void each_unit(const share<T> &mine, F &&f) {
    const int row = mine.top(0) + part::rows * warp_ + part::row(q(), 0), line = 8 * lines * group_ + g();
    const int columns = mine.tiles > 0 ? mine.columns - line : 0;
    int rows = mine.v.rows - row;
    T *from = mine.c + row + line * mine.v.ld;
#pragma unroll
    for (int n = 0; n < most_tiles; n++) {
      asm("" : "+l"(from)); /* or all addresses would be kept */
#pragma unroll
      for (int l = 0; l < lines; l++) {
        T *at = from + 8 * l * mine.v.ld;
        __builtin_assume(__isGlobal(at));
#pragma unroll
        for (int p = 0; p < S::chunks; p++)
#pragma unroll
          for (int e = 0; e < part::each; e += UNIT) {
            const int i = part::rows * S::warps * p + e;
            f(&x_[n][p][l][e], at + i, i < rows && 8 * l < columns);
          }
      }
      from += S::tile_rows * mine.shares;
      rows -= S::tile_rows * mine.shares;
    }
  }

  /* f(entry, its line) */
  template <class F> __device__ __forceinline__ void each_entry(F &&f) {
#pragma unroll
    for (int n = 0; n < most_tiles; n++)
#pragma unroll
      for (int p = 0; p < S::chunks; p++)
#pragma unroll
        for (int l = 0; l < lines; l++)
#pragma unroll
          for (int e = 0; e < part::each; e++) f(x_[n][p][l][e], l);
  }

  /* Columns with entries out of range get their scale (common/columns.cuh). */
  __device__ __forceinline__ void bring_into_range(const share<T> &mine) {
    constexpr int number = 1 + S::groups, threads = products_warps * warp_lanes;
    const int thread = thread_id();
    short *exponents = task_.exponents + mine.entry * task_.cols + mine.begin;
    bool outside = false;
    each_entry([&](const T &x, int) { outside |= !in_column_range(x) & !is_zero(x); }); /* without branches */
    outside = named_any(number, threads, outside);
    if (outside) {
      uint32_t *magnitudes = s_.magnitude + 8 * lines * group_ + g(), u[lines] = {};
      if (thread < strip_columns) s_.magnitude[thread] = 0;
      named_sync(number, threads);
      each_entry([&](const T &x, int l) { u[l] = greater(u[l], magnitude(x)); });
#pragma unroll
      for (int l = 0; l < lines; l++) shared_max(magnitudes + 8 * l, u[l]);
      named_sync(number, threads);
#pragma unroll
      for (int l = 0; l < lines; l++) u[l] = magnitudes[8 * l];
      each_entry([&](T &x, int l) { x = scaled(x, exponent_scale<T>(column_exponent<T>(u[l]))); });
    }
    if (thread < mine.columns) {
      const uint32_t u = outside ? s_.magnitude[thread] : 0;
      exponents[thread] = static_cast<short>(outside ? column_exponent<T>(u) : 0);
      if (outside && !magnitude_finite<T>(u)) task_.nonfinite[mine.entry] = BATCHQR_INFO_NONFINITE;
    }
    if (outside) named_sync(number, threads); /* before magnitudes are written again */
  }

  /* w += V^T X over the warp's rows. */
  __device__ __forceinline__ void project(sums &w, int tiles, int first) {
    ring_position<S::places> at = at_;
    static_for<most_tiles>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if (n < first || n >= tiles) return;
      s_.full[at.place].wait(at.parity);
      const T *v = s_.v[at.place] + reflector_of_row(g()) * S::ld + part::rows * warp_ + part::row(q(), 0);
#pragma unroll
      for (int p = 0; p < S::chunks; p++) {
        pack<T> rows[W / 8];
#pragma unroll
        for (int j = 0; j < W / 8; j++)
          rows[j] = *reinterpret_cast<const pack<T> *>(v + 8 * j * S::ld + part::rows * S::warps * p);
#pragma unroll
        for (int t = 0; t < part::steps; t++) {
          operand<T> a[2][4], b[lines][2];
#pragma unroll
          for (int i = 0; i < 8; i++) a[i / 4][i % 4] = split(rows[i / 2].v[part::entry(t, i % 2)]);
#pragma unroll
          for (int l = 0; l < 2 * lines; l++) b[l / 2][l % 2] = split(x_[n][p][l / 2][part::entry(t, l % 2)]);
#pragma unroll
          for (int i = 0; i < 2; i++)
#pragma unroll
            for (int l = 0; l < lines; l++) multiply_add(w[i][l], a[i], b[l]);
        }
      }
      at.next();
    });
  }

  /* X += Y V^T. Leaves the tiles to be filled again. */
  __device__ __forceinline__ void update(const lefts &y, int tiles, int first) {
    static_for<most_tiles>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if (n < first || n >= tiles) return;
      struct alignas(part::steps * sizeof(T)) neighbours {
        T v[part::steps];
      }; /* of two products */
      const T *v = s_.v[at_.place] + part::rows * warp_ + part::steps * g();
      const T *vk[2] = {v + reflector_of_k(q(), 0) * S::ld, v + reflector_of_k(q(), 1) * S::ld};
      T sum[S::chunks][part::steps][lines / 2][4];
      auto each_sum = [&](auto &&f) {
#pragma unroll
        for (int p = 0; p < S::chunks; p++)
#pragma unroll
          for (int l = 0; l < lines; l++)
#pragma unroll
            for (int e = 0; e < 2 * part::steps; e++)
              f(sum[p][e % part::steps][l / 2][l % 2 * 2 + e / part::steps],
                x_[n][p][l][part::entry(e % part::steps, e / part::steps)]);
      };
      each_sum([](T &to, const T &from) { to = from; });
#pragma unroll
      for (int j = 0; j < W / 8; j++)
#pragma unroll
        for (int p = 0; p < S::chunks; p++) {
          const int at = 8 * j * S::ld + part::rows * S::warps * p;
          const neighbours b0 = *reinterpret_cast<const neighbours *>(vk[0] + at),
                           b1 = *reinterpret_cast<const neighbours *>(vk[1] + at);
#pragma unroll
          for (int t = 0; t < part::steps; t++) {
            const operand<T> b[2] = {split(b0.v[t]), split(b1.v[t])};
#pragma unroll
            for (int m = 0; m < lines / 2; m++) multiply_add(sum[p][t][m], y[m][j], b);
          }
        }
      each_sum([](const T &from, T &to) { to = from; });
      s_.empty[at_.place].arrive();
      at_.next();
    });
  }

  /* y := -M^T times the sum of w over the group's warps, of all blocks. */
  __device__ __forceinline__ void exchange(lefts &y, const sums &w, int shares) {
    T *const parts = s_.parts[group_], *const here = s_.sums[group_] + (turn_ & 1) * S::sums;
    const int thread = warp_ * warp_lanes + lane_id();
    auto entry = [&](int i) { return w[i / (4 * lines)][i / 4 % lines][i % 4]; };
    T *mine = parts + warp_ % S::parts * S::sums + lane_id();
    if (warp_ < S::parts)
#pragma unroll
      for (int i = 0; i < S::lane_sums; i++) mine[i * warp_lanes] = entry(i);
    sync();
    if (S::warps > S::parts) {
      if (warp_ >= S::parts)
#pragma unroll
        for (int i = 0; i < S::lane_sums; i++) mine[i * warp_lanes] += entry(i);
      sync();
    }
#pragma unroll
    for (int i = thread; i < S::sums; i += S::threads) {
      T sum = parts[i];
#pragma unroll
      for (int p = 1; p < S::parts; p++) sum += parts[p * S::sums + i];
      here[i] = sum;
    }
    sync();
    const T *sum = here;
    if (cluster_size() > 1) {
      add_blocks(parts + 2 * S::sums, here, shares);
      sum = parts + 2 * S::sums;
    }
    s_.factor_full.wait(turn_ & 1);
    multiply_factor(parts, sum);
    turn_++;
    s_.factor_empty.arrive();
    sync();
    const T *from = parts + q() * S::ld_y + g();
#pragma unroll
    for (int m = 0; m < lines / 2; m++)
#pragma unroll
      for (int j = 0; j < W / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
          y[m][j][i] = split(from[(8 * j + i % 2 * 4) * S::ld_y + 16 * m + i / 2 * 8]);
    sync();
  }
  __device__ __forceinline__ void add_blocks(T *to, T *here, int shares) {
    const int thread = warp_ * warp_lanes + lane_id();
    if (thread < cluster_size()) cluster_arrive(&s_.cluster[group_], thread);
    cluster_wait(&s_.cluster[group_], turn_ & 1);
#pragma unroll
    for (int i = thread; i < S::sums; i += S::threads) {
      T sum = *cluster_shared(here + i, 0);
      for (int rank = 1; rank < shares; rank++) sum += *cluster_shared(here + i, rank);
      to[i] = sum;
    }
    sync();
  }
  /* y := -M^T w, a row for each reflector in the order of k. A warp has 16 of them and 8 lines. */
  __device__ __forceinline__ void multiply_factor(T *y, const T *w) const {
    const int half = warp_ / lines, line = warp_ % lines;
    const T *m = s_.factor + (16 * half + reflector_of_k(g() % 4, g() / 4)) * S::ld_factor;
    T product[4] = {};
#pragma unroll
    for (int k = 0; k < W / 8; k++) {
      operand<T> a[4], b[2];
#pragma unroll
      for (int s = 0; s < 2; s++) {
        const int row = 8 * k + reflector_of_row(2 * q() + s);
        a[s] = split(m[row]);
        a[2 + s] = split(m[8 * S::ld_factor + row]);
        const int sum = (k / 2 * lines + line) * 4 + k % 2 * 2 + g() % 2;
        b[s] = split(w[sum * warp_lanes + 4 * (2 * q() + s) + g() / 2]);
      }
      multiply_add(product, a, b);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
      y[(16 * half + g() + i / 2 * 8) * S::ld_y + 8 * line + 2 * q() + i % 2] = zero<T>() - product[i];
  }

  storage<T> &s_;
  const stream_task &task_;
  const int warp_, group_;
  ring_position<S::places> at_;
  uint32_t turn_ = 0;
  entries x_[most_tiles];
};

template <class T>
__global__ void __launch_bounds__(threads, 1)
    larfb_stream_kernel(const __grid_constant__ batchqr_args args, const __grid_constant__ stream_task task,
                        const T *t) {
  using S = shape<T>;
  storage<T> &s = *shared_memory<storage<T>>();
  if (thread_id() == 0) {
    for (int i = 0; i < S::places; i++) {
      s.full[i].init(copies_arrivals);
      s.empty[i].init(products_warps * warp_lanes);
    }
    s.factor_full.init(copies_arrivals);
    s.factor_empty.init(products_warps * warp_lanes);
    for (int i = 0; i < S::groups; i++) cluster_barrier_init(&s.cluster[i], cluster_size());
  }
  block_sync();
  if (cluster_size() > 1) cluster_sync();
  const int64_t total = args.count * task.strips, clusters = gridDim.x / cluster_size();
  const int64_t first = blockIdx.x / cluster_size();
  auto share_of = [&](int64_t i) { return share<T>(args, task, t, i < total ? i : first); };
  if (warp_id() < products_warps) {
    more_registers<products_registers>();
    products<T> mine(s, task);
    for (int64_t i = first; i < total; i += clusters) mine.run(share_of(i));
  } else {
    fewer_registers<copies_registers>();
    copies<T> mine(s, task);
    for (int64_t i = first; i < total; i += clusters) mine.run(share_of(i), share_of(i + clusters));
  }
  if (cluster_size() > 1) cluster_sync(); /* others may still read what is here */
}

template <class T>
batchqr_status launch_stream(const batchqr_args *args, const stream_task &task, const T *t,
                             batchqr_stream stream) {
  const auto kernel = larfb_stream_kernel<T>;
  const int shares = shares_of(least(args->m - task.first, most_rows));
  const int64_t strips = args->count * task.strips;
  static kept_clusters<most_cluster_blocks + 1> kept;
  const int clusters = kept.at_once(shares, kernel, shares, threads, sizeof(storage<T>));
  return launch_clusters(kernel, static_cast<unsigned>(strips < clusters ? strips : clusters), shares,
                         threads, sizeof(storage<T>), stream, *args, task, t);
}

bool has_it(batchqr_type type, int sm, int smem) {
  return (type == BATCHQR_S || type == BATCHQR_D) && sm >= 90 &&
         smem >= static_cast<int>(sizeof(storage<double>)) &&
         smem >= static_cast<int>(sizeof(storage<float>));
}

} // namespace

batchqr_status batchqr_larfb_stream(const batchqr_problem *problem, const batchqr_args *args, int first,
                                    int blocks, const void *t, int64_t stride_t, int64_t stride_block,
                                    int from, int to, const batchqr_columns *columns, batchqr_stream stream) {
  if (from >= to) return BATCHQR_SUCCESS;
  const int strips = (to - from - 1) / strip_columns + 1;
  const stream_task task = {first,
                            blocks,
                            from,
                            to,
                            strips,
                            stride_t,
                            stride_block,
                            columns ? columns->exponents : nullptr,
                            columns ? columns->nonfinite : nullptr,
                            problem->n};
  auto launch = [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_stream<T>(args, task, static_cast<const T *>(t), stream);
  };
  return problem->type == BATCHQR_S ? launch(type_tag<float>{}) : launch(type_tag<double>{});
}

int batchqr_larfb_stream_rows(const batchqr_problem *problem, const batchqr_device *device) {
  return has_it(problem->type, device->sm, device->smem_per_block) ? most_rows : 0;
}

int batchqr_larfb_stream_shares(int rows) { return shares_of(rows); }

batchqr_status batchqr_larfb_stream_prepare(batchqr_type type) {
  if (!has_it(type, 10 * device_attribute(cudaDevAttrComputeCapabilityMajor),
              device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)))
    return BATCHQR_SUCCESS;
  return type == BATCHQR_S ? prepare_kernel(larfb_stream_kernel<float>, sizeof(storage<float>))
                           : prepare_kernel(larfb_stream_kernel<double>, sizeof(storage<double>));
}
