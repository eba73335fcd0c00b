/* SPDX-License-Identifier: BSD-3-Clause */
/* What streams past in larfb_stream: a member's columns, blocks of reflectors and their T, which four warps
 * bring through a pipeline in shared memory to those that multiply, ahead of them and from one member to the
 * next. */
#ifndef BQR_KERNELS_WY_LARFB_STREAM_CUH
#define BQR_KERNELS_WY_LARFB_STREAM_CUH

#include "wy.h"
#include "common/panel/columns.cuh"
#include "vectors.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/opaque.cuh"

namespace bqr {
namespace stream {

constexpr int W = BQR_BLOCK_WIDTH, strip_columns = 32;
constexpr int copies_warps = 4;
constexpr int copies_arrivals = copies_warps * (warp_lanes + 1); /* when a place is full */

/* Of a block of threads: as many as its registers hold, and half of them, so that a multiprocessor has two.
 */
template <class T> constexpr int block_rows = is_complex<T> ? 256 : 512;
template <class T> constexpr int few_rows = is_complex<T> ? 0 : 256;
template <class T> constexpr int most_rows = most_cluster_blocks *block_rows<T>;
/* Of ORMQR and ORGQR, of real types. */
template <class T> constexpr int apply_rows = is_complex<T> ? 0 : 2 * block_rows<T>;

/* What one of WARPS warps has of a tile: 16 rows, those of two products' k, a lane 4 of them. Elements of 4
 * bytes are read 4 at once. Larger ones are read one at a time, into the registers that the units take. With
 * those of 8 bytes each product has 8 neighbouring rows, of the tile's first half and of the second one, and
 * half of the lanes have their two neighbours turned, so that there are no conflicts. */
template <class T, int WARPS> struct rows_of {
  static constexpr bool single = sizeof(T) == 4, pairs = sizeof(T) == 8;
  static constexpr int count = 16, each = 4, steps = 2;
  static constexpr int run = pairs ? count / steps : count; /* neighbours */

  /* The entry that is number 2 q + s in product t, and its row. */
  BQR_INLINE static constexpr int entry(int t, int s) { return single ? steps * s + t : 2 * t + s; }
  BQR_INLINE static constexpr int row(int q, int e) {
    return single ? 4 * q + e : pairs ? pair(q, e / 2) + (e % 2 ^ q / 2) : q + 4 * e;
  }
  BQR_INLINE static constexpr int pair(int q, int i) {
    return single ? 4 * q + 2 * i : 2 * q + i * WARPS * run;
  }
  /* An entry's place among the warp's rows. */
  BQR_INLINE static constexpr int place(int q, int e) {
    return pairs ? row(q, e) - e / 2 * (WARPS - 1) * run : row(q, e);
  }
};

/* How far from its place in a column a row of a tile lies, so that lanes that read columns side by side meet
 * no conflicts. With elements of 4 bytes columns are 16 bytes apart for that. Of larger ones they have no
 * gap: it would double what copies of 16 bytes read of every other column, in pieces of 32 bytes that begin
 * elsewhere than they do in memory. */
template <class T> __device__ __forceinline__ int row_shift(int row, int column) {
  return sizeof(T) == 4 ? 0 : (row ^ (sizeof(T) == 8 ? 4 * (column & 3) : column & 7)) - row;
}

/* How warps share a strip of up to ROWS rows: groups of them its columns, 8 `lines` to a product, and a
 * group's warps the rows. With elements of 16 bytes, warps have registers for half of the sums at a time, a
 * pass over their rows for each, and none to keep y. Half of the warps begin with the other half of the sums,
 * and each adds to what another one has left. */
template <class T, int ROWS> struct shape {
  static constexpr int blocks = block_rows<T> / ROWS, products_warps = blocks == 1 ? 8 : 4;
  static constexpr bool keeps_y = sizeof(T) != 16;
  static constexpr int passes = sizeof(T) == 16 ? 2 : 1;
  static constexpr int block_threads = (products_warps + copies_warps) * warp_lanes;
  static constexpr int products_registers = 232, copies_registers = blocks == 1 ? 40 : 24;
  static constexpr int lines = sizeof(T) == 4 ? 4 : 2, groups = strip_columns / (8 * lines);
  static constexpr int warps = products_warps / groups, threads = warps * warp_lanes;
  using rows = rows_of<T, warps>;
  static constexpr int tile_rows = warps * rows::count, most_tiles = ROWS / tile_rows;
  static constexpr int places = sizeof(T) == 16 ? 4 : blocks == 1 ? 10 : 8;
  /* Of y, a warp makes 8 lines, and one half of the reflectors or both. T of one half is read before sums are
   * there, for which there are registers. */
  static constexpr int halves = 2 * lines / warps;
  static constexpr bool early = keeps_y && halves == 1;
  /* Sums of a half that products go to in turn, so that they wait less for one another. */
  static constexpr int chains = (sizeof(T) == 16 || std::is_same<T, double>::value ? 2 : 4) / halves;
  static constexpr int sums = W * 8 * lines; /* of V^T X */
  static constexpr int ld_sums = sizeof(T) == 4 ? 40 : sizeof(T) == 8 ? 36 : 33;
  static constexpr int ld = tile_rows + (rows::single ? 4 : 0), ld_factor = W + 4;
  static constexpr int ld_y = 8 * lines + (sizeof(T) == 16 ? 1 : 32 / static_cast<int>(sizeof(T)));
  static constexpr int parts = warps / passes;
  static constexpr int part = sizeof(T) == 16 ? W * ld_y : 8 * lines * ld_sums;
  static_assert(W * ld_y <= 2 * sums && 8 * lines * ld_sums <= part, "there is room");
};

template <class T, int ROWS> struct storage {
  using S = shape<T, ROWS>;
  alignas(16) T v[S::places][W * S::ld];
  alignas(16) T factor[W * S::ld_factor];
  T parts[S::groups][S::parts * S::part], sums[S::groups][2 * S::sums];
  phase_barrier full[S::places], empty[S::places], factor_full, factor_empty, received[S::groups][2];
  phase_barrier cluster[S::groups];
  uint32_t magnitude[strip_columns];
};

/* Which of 8 reflectors is the units' row n, and which is number q + 4 s of k. */
template <class T> __device__ __forceinline__ int reflector_of_row(int n) {
  return sizeof(T) == 8 ? n : n / 2 + n % 2 * 4;
}
template <class T> __device__ __forceinline__ int reflector_of_k(int q, int s) {
  return sizeof(T) == 4 ? 2 * q + s : q + 4 * s;
}

/* Blocks of threads for a member's rows. */
template <class T> BQR_INLINE int shares_of(int rows) {
  return rows > 0 ? (rows - 1) / block_rows<T> + 1 : 1;
}

/* `blocks` blocks of reflectors, the first of which is reflector `first`; columns from .. to. */
struct stream_task {
  int first, blocks, from, to, strips;
  int64_t stride_t, stride_block; /* from T to T, of the next member and of the next block */
  bool range;                     /* columns are brought into range, where one block has them */

  /* Of a member's columns. */
  __device__ __forceinline__ int end(const member &x, int &, int &) const { return least(to, x.n); }
};

/* GEQRF: columns of A, right of the reflectors, from the first block to the last, each with T^T. */
struct factor_task : stream_task {
  short *exponents; /* see bqr_columns; of members of `cols` columns at the most */
  int *nonfinite;
  int cols;
  bqr_span span;

  static constexpr int op = BATCHQR_GEQRF, team = 1;
  static constexpr bool backward = false, unit = false;

  /* A strip in the tail begins behind what is before it, by which it is updated. */
  __device__ __forceinline__ int end(const member &x, int &begin, int &reflectors) const {
    if (span == BQR_WHOLE) return least(to, x.n);
    const int before = bqr_before_tail(x.m, x.n, W);
    if (span == BQR_BEFORE_TAIL) return least(to, before);
    begin += before;
    reflectors = least(reflectors, before);
    return x.n;
  }
};

/* ORMQR from the left: columns of C. ORGQR: the unit matrix's, which go through the blocks that reach them
 * and take the place of V. backward: from the last block to the first, each with T. */
struct apply_task : stream_task {
  int op;
  bool backward, unit; /* unit: ORGQR */
  int team; /* blocks of threads that share a member's strips, each taking the next one on the left */
};

/* Strips of all members in the order in which a cluster has them: mostly every n-th. ORGQR overwrites V, and
 * a cluster, or a team of blocks, has all of a member's, from the right to the left. */
template <class TASK> struct stream_order {
  int64_t total, first;

  __device__ __forceinline__ stream_order(const TASK &task, int64_t total, int64_t number, int64_t clusters,
                                          int rank)
      : total(total), first(task.unit ? number * task.strips + rank : number), task_(task),
        clusters_(clusters), rank_(rank) {}
  __device__ __forceinline__ int64_t after(int64_t i) const {
    if (!task_.unit) return i + clusters_;
    const int64_t next = i + task_.team;
    return (next - rank_) % task_.strips ? next : next + (clusters_ - 1) * task_.strips;
  }

private:
  const TASK &task_;
  int64_t clusters_;
  int rank_;
};

/* What a block of threads has of a member: a strip of columns, and every `shares`th tile of its rows. BLOCKS
 * blocks of threads share a member, 0: any number. */
template <class T, int ROWS, int BLOCKS, class TASK> struct share {
  static constexpr int tile_rows = shape<T, ROWS>::tile_rows;
  vectors<T> v; /* of all blocks */
  const T *t;
  T *c;
  int64_t entry, ld_c;
  int begin, columns, blocks, shares, tiles;

  __device__ __forceinline__ share(const bqr_args &args, const TASK &task, const T *all_t, int64_t i) {
    entry = task.strips == 1 ? i : i / task.strips; /* mostly without a division */
    const int of_member = static_cast<int>(i - entry * task.strips);
    begin = task.from + (task.unit ? task.strips - 1 - of_member : of_member) * strip_columns;
    const int reach = task.unit ? least(task.blocks, begin / W + 1) : task.blocks;
    const block_step step = {task.op, BATCHQR_LEFT, task.first, reach * W};
    const member x = member_of_step(args, entry, step);
    const bqr_matrix &operand = task.op == BATCHQR_ORMQR ? args.c : args.a;
    v = vectors_of<T>(args, x, step);
    if (task.op == BATCHQR_ORMQR && x.ok) v.rows = x.m - task.first; /* whether there are reflectors or not */
    const int end = task.end(x, begin, v.width);
    columns = least(strip_columns, end - begin);
    const bool any = columns > 0 && v.rows > 0 && v.rows <= most_rows<T>;
    if (!any) columns = 0;
    blocks = any ? (v.width + W - 1) / W : 0;
    shares = BLOCKS == 1 ? 1 : shares_of<T>(v.rows);
    const int units = (v.rows - 1) / tile_rows + 1;
    tiles = any && rank() < least(shares, units) ? (units - rank() - 1) / shares + 1 : 0;
    ld_c = any ? matrix_ld(operand, x.id) : 0;
    c = any ? matrix_data<T>(args, operand, x.id) + task.first + begin * ld_c : nullptr;
    t = all_t + entry * task.stride_t;
  }
  __device__ __forceinline__ static int rank() { return BLOCKS == 1 ? 0 : cluster_rank(); }
  __device__ __forceinline__ int top(int tile) const { return (rank() + shares * tile) * tile_rows; }
  /* The first tile that block b of reflectors reaches. */
  __device__ __forceinline__ int first(int b) const {
    const int unit = b * W / tile_rows;
    return unit > rank() ? (unit - rank() - 1) / shares + 1 : 0;
  }
};

/* The warps that bring columns, V and T. */
template <class T, int ROWS, int BLOCKS, class TASK> class copies {
  using S = shape<T, ROWS>;
  static constexpr int tile_rows = S::tile_rows;
  static constexpr int columns = W / copies_warps; /* of a tile, of a warp */

public:
  __device__ __forceinline__ copies(storage<T, ROWS> &shared, const TASK &task)
      : s_(shared), task_(task), warp_(warp_id() - S::products_warps) {}

  __device__ __forceinline__ void run(const share<T, ROWS, BLOCKS, TASK> &mine) {
    const bool aligned = tile_packs(mine.v.data, mine.v.ld, 0);
    load_columns(mine);
    for (int i = 0; i < mine.blocks; i++) {
      const int b = task_.backward ? mine.blocks - 1 - i : i, down = b * W;
      const vectors<T> v = {mine.v.data + down * (mine.v.ld + 1), mine.v.ld, mine.v.rows - down,
                            least(W, mine.v.width - down)};
      for (int n = mine.first(b); n < mine.tiles; n++) {
        const int top = mine.top(n) - down;
        load_tile(v, top, 0, top >= W, aligned);
      }
      load_factor(mine.t + b * task_.stride_block);
    }
  }

private:
  /* Of the unit matrix nothing is copied: its rows count from its own one in the first column. */
  __device__ __forceinline__ void load_columns(const share<T, ROWS, BLOCKS, TASK> &mine) {
    const int down = task_.unit ? mine.begin : 0, diagonal = task_.unit ? most_rows<T> / W : -1;
    const vectors<T> c = {mine.c, mine.ld_c, mine.v.rows - down, mine.columns};
    const bool aligned = tile_packs(c.data, c.ld, 0);
    for (int n = 0; n < mine.tiles; n++) load_tile(c, mine.top(n) - down, diagonal, !task_.unit, aligned);
  }
  /* The next place, with rows from `top` on; `below`: all of them are below the diagonal; `aligned`: 16 bytes
   * may go at a time. */
  __device__ __forceinline__ void load_tile(const vectors<T> &v, int top, int diagonal, bool below,
                                            bool aligned) {
    s_.empty[at_.place].wait(at_.parity ^ 1);
    auto copy = [&](auto unit) {
      copy_columns<tile_rows, decltype(unit)::value, true>(s_.full[at_.place], s_.v[at_.place], S::ld,
                                                           v.data + top, v.ld);
    };
    if (!below || top + tile_rows > v.rows || v.width < W)
      load(v, top, diagonal);
    else if (aligned)
      copy(std::integral_constant<int, pack<T>::size>());
    else
      copy(std::integral_constant<int, 1>());
    at_.next();
  }
  /* This warp's columns, of COUNT entries, UNIT at a time, to a tile or to T. */
  template <int COUNT, int UNIT, bool TILE>
  __device__ __forceinline__ void copy_columns(phase_barrier &full, T *to, int ld_to, const T *from,
                                               int64_t ld_from) {
    constexpr int lanes = COUNT / UNIT < warp_lanes ? COUNT / UNIT : warp_lanes, at_once = warp_lanes / lanes;
    /* Many small copies at once would hold up the warps that multiply. */
    constexpr int turns = columns / at_once, unrolled = UNIT < pack<T>::size ? 1 : turns;
    int lane = lane_id(), begin = warp_ * columns;
    BQR_OPAQUE_HERE(lane, begin); /* or what follows from them would be kept on the stack */
    const int row = lane % lanes * UNIT;
    begin += lane / lanes;
    to += row + begin * ld_to;
    from += row + begin * ld_from;
#pragma unroll unrolled
    for (int j = 0; j < turns; j++) {
      const int shift = TILE ? row_shift<T>(row, begin + j * at_once) : 0;
#pragma unroll
      for (int i = 0; i < COUNT; i += lanes * UNIT) copy_async<UNIT * sizeof(T)>(to + shift + i, from + i);
      to += at_once * ld_to;
      from += at_once * ld_from;
    }
    arrive_after_copies(full);
  }
  /* Column j has a one in row j + diagonal * W, and zeros above. */
  __device__ __forceinline__ void load(const vectors<T> &v, int top, int diagonal) {
    int lane = lane_id(), begin = warp_ * columns;
    BQR_OPAQUE_HERE(lane, begin); /* or what follows from them would be kept on the stack */
    T *to = s_.v[at_.place] + begin * S::ld + lane;
    const T *from = v.data + top + lane + begin * v.ld;
    for (int j = begin; j < begin + columns; j++) {
      const int shift = row_shift<T>(lane, j);
#pragma unroll
      for (int i = 0; i < tile_rows; i += warp_lanes) {
        const int row = top + lane + i;
        const bool inside = row < v.rows && j < v.width;
        if (row > j + diagonal * W)
          copy_async_if<sizeof(T)>(inside, to + shift + i, inside ? from + i : v.data);
        else
          to[shift + i] = row == j && inside ? one<T>() : zero<T>();
      }
      to += S::ld;
      from += v.ld;
    }
    arrive_after_copies(s_.full[at_.place]);
  }
  /* backward: T^T, of which the products take the transpose. */
  __device__ __forceinline__ void load_factor(const T *t) {
    s_.factor_empty.wait(turn_ ^ 1);
    if (task_.backward) {
      for (int j = warp_; j < W; j += copies_warps)
        copy_async<sizeof(T)>(s_.factor + lane_id() * S::ld_factor + j, t + lane_id() + j * W);
      arrive_after_copies(s_.factor_full);
    } else
      copy_columns<W, pack<T>::size, false>(s_.factor_full, s_.factor, S::ld_factor, t, W);
    turn_ ^= 1;
  }
  /* Each lane for its asynchronous copies, the warp for what it wrote itself. */
  __device__ __forceinline__ static void arrive_after_copies(phase_barrier &full) {
    full.arrive_after_copies();
    warp_sync();
    if (lane_id() == 0) full.arrive();
  }

  storage<T, ROWS> &s_;
  const TASK &task_;
  const int warp_;
  pipeline_state<S::places> at_;
  uint32_t turn_ = 0; /* of T */
};

} // namespace stream
} // namespace bqr

#endif
