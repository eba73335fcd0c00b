/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of a symmetric matrix to tridiagonal form by a cluster of blocks that holds the lower triangle on
 * the chip, in tiles of 32 x 32, as block_tiles.cuh does in one block: HELD tiles of each warp in registers,
 * others in shared memory, and those of the first columns, if there is no room for them, in global memory. A
 * matrix whose order is no multiple of 32 lies in the last of the N rows.
 *
 * Tile (I, J) belongs to block (I + J) mod B of the cluster, so that a block has one tile in B of what row
 * I's product is summed of: of tiles (I, P) and (P, I), P = (rank - I) mod B and every B-th further, number P
 * / B.
 *
 * A step: tiles are updated by the step before and multiplied by the column x; blocks sum up what their own
 * tiles have for each row, and send that to all blocks, with the column k + 1 and what is summed for x^H A x.
 * Each block then makes v, w and the next x for itself, from the same numbers in the same order. Messages are
 * counted by a barrier in shared memory. There are two places for them, in turn: who sends step k + 1's has
 * had all of step k, whose senders had read all of step k - 1. */
#ifndef BQR_KERNELS_SYTRD_CLUSTER_TILES_CUH
#define BQR_KERNELS_SYTRD_CLUSTER_TILES_CUH

#include "common/eigen/step.cuh"
#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/simt/block.cuh"

namespace bqr {

template <class T, int HELD> class cluster_tiles {
  using R = real_t<T>;
  static_assert(!is_complex<T>, "letters are of 4 or 8 bytes");

public:
  static constexpr int warps = 8;

private:
  static constexpr int side = warp_lanes, kept = warps * HELD, maker = warps - 1;
  static constexpr int lane_rows = 4, lane_columns = 8, at_once = 4;
  static constexpr int chunks = warp_lanes / warps; /* of rows, of a warp, at most */
  struct alignas(2 * sizeof(T)) pair_of {
    T x[2];
  };
  struct alignas(2 * sizeof(T)) step_entry {
    T v, w;
  };
  struct place {
    int row, column;           /* of tiles */
    int row_slot, column_slot; /* where sums for its rows and for its columns go */
  };
  using tile_entries = T[lane_columns][lane_rows];
  using shared_tile_entries = pair_of[side * side / 2];

  /* Of the block's shared memory, behind which parts of other sizes follow. */
  struct alignas(16) head {
    phase_barrier come[2];
    reflector<T> h;
    R rest[warps]; /* |x|^2 without its first entry, of each warp's rows */
    uint32_t seen[most_cluster_blocks], most;
    int active[warp_lanes + 1]; /* the block's tiles in column c and further */
  };

public:
  /* What depends on the order and the cluster alone. */
  struct shape {
    int sides, blocks, tiles, slots;
    BQR_INLINE shape(int n, int blocks_) : sides((n + side - 1) / side), blocks(blocks_), tiles(0) {
      slots = (sides - 1) / blocks + 1;
      tiles = sides * (sides + 1) / 2 / blocks + sides; /* at most */
    }
    BQR_INLINE int rows() const { return side * sides; }
    /* Bytes of shared memory without tiles. */
    BQR_INLINE int fixed_bytes() const {
      const int numbers = rows() * (2 + 1 + 1 + 2 + 2 * blocks + slots),
                bytes = static_cast<int>(sizeof(head)) + 4 * tiles + numbers * static_cast<int>(sizeof(T)) +
                        2 * blocks * warps * static_cast<int>(sizeof(R));
      return (bytes + 127) / 128 * 128;
    }
    /* Tiles in shared memory, if there are `bytes` bytes of that; below 0 if even the rest has no room. */
    BQR_INLINE int shared_tiles(int bytes) const {
      if (bytes < fixed_bytes()) return -1;
      const int room = (bytes - fixed_bytes()) / static_cast<int>(sizeof(shared_tile_entries)),
                most = largest(tiles - kept, 0);
      return least(room, most);
    }
    BQR_INLINE int bytes(int in_shared) const {
      return fixed_bytes() + in_shared * static_cast<int>(sizeof(shared_tile_entries));
    }
  };

  /* far: n x n, where tiles are that have no room on the chip; v of H(k) replaces its column k, too. */
  __device__ __forceinline__ cluster_tiles(unsigned char *memory, int in_shared, const matrix_view<T> &far)
      : far_(far), sides_((far.rows + side - 1) / side), rows_(side * sides_), blocks_(cluster_size()),
        rank_(cluster_rank()), before_(rows_ - far.rows), near_(kept + in_shared), warp_(warp_id()),
        row_(lane_id() / 4), column_(lane_id() % 4) {
    const shape all(far.rows, blocks_);
    slots_ = all.slots;
    warp_rest_ = residue(warp_);
    turn_rest_ = residue(warps);
    tiles_ = reinterpret_cast<shared_tile_entries *>(memory + all.fixed_bytes());
    h_ = reinterpret_cast<head *>(memory);
    entries_ = reinterpret_cast<step_entry *>(h_ + 1);
    x_ = reinterpret_cast<T *>(entries_ + rows_);
    next_ = x_ + rows_;
    columns_ = next_ + rows_;
    mail_ = columns_ + 2 * rows_;
    part_ = mail_ + 2 * blocks_ * rows_;
    energies_ = part_ + all.slots * rows_;
    places_ = reinterpret_cast<uint32_t *>(energies_ + 2 * blocks_ * warps);
  }

  /* Reads a triangle. Returns the largest magnitude of it, see magnitude_or_one(). */
  __device__ __forceinline__ uint32_t load(const matrix_view<T> &a, bool lower) {
    if (warp_ == 0) list_tiles();
    if (thread_id() == 0) {
      h_->most = 0;
      h_->come[0].init(1);
      h_->come[1].init(1);
      mbarrier_init_fence();
    }
    block_sync();
#pragma unroll
    for (int h = 0; h < HELD; h++)
      held_places_[h] = places_[least(h * warps + warp_, largest(h_->active[0] - 1, 0))];
    uint32_t u = 0;
    each_tile([&](auto &tile, const place &at) {
#pragma unroll
      for (int c = 0; c < lane_columns; c++) {
        T z[lane_rows];
#pragma unroll
        for (int r = 0; r < lane_rows; r++) {
          const int i = row_of(at, r), j = column_of(at, c);
          const bool stored = lower ? i >= j : i <= j; /* off the diagonal tiles i > j */
          z[r] = zero<T>();
          if (least(i, j) >= before_)
            z[r] = stored ? *a.at(i - before_, j - before_) : conj(*a.at(j - before_, i - before_));
          if (i == j) z[r] = make<T>(real_part(z[r]));
          u = greater(u, magnitude_or_one(z[r]));
        }
        tile.write(c, z);
      }
    });
    u = group_max(u);
    if (lane_id() == 0) shared_max(&h_->most, u);
    cluster_sync(); /* all blocks are there, too */
    if (thread_id() < blocks_) *cluster_shared(h_->seen + rank_, thread_id()) = h_->most;
    cluster_sync();
    u = 0;
    for (int b = 0; b < blocks_; b++) u = greater(u, h_->seen[b]);
    return u;
  }

  /* After load(): the matrix times 2^exponent to tridiagonal form, as block_tiles::run(). All output but v is
   * the first block's. */
  __device__ __forceinline__ void run(int exponent, R *d, R *e, T *tau) {
    const R half = times_power(R(1), exponent / 2), rest = times_power(R(1), exponent - exponent / 2);
    T *const begun = columns_ + rows_;
    each_tile([&](auto &tile, const place &at) {
#pragma unroll
      for (int c = 0; c < lane_columns; c++) {
        T z[lane_rows];
        tile.read(c, z);
#pragma unroll
        for (int r = 0; r < lane_rows; r++) z[r] = scaled(scaled(z[r], half), rest);
        tile.write(c, z);
        if (column_of(at, c) != before_) continue;
#pragma unroll
        for (int r = 0; r < lane_rows; r++)
          for (int b = 0; b < blocks_; b++) *cluster_shared(begun + row_of(at, r), b) = z[r];
      }
    });
    cluster_sync();
    R square = 0;
    for (int chunk = warp_; chunk < sides_; chunk += warps) {
      const int i = side * chunk + lane_id();
      const T entry = begun[i], x = i > before_ ? entry : zero<T>();
      if (i == before_ && rank_ == 0) d[0] = real_part(entry);
      entries_[i] = {zero<T>(), zero<T>()};
      x_[i] = x;
      if (i > before_ + 1) square = abs2_add(x, square);
    }
    end_column(square);
    block_sync();
    for (int k = before_; k < rows_ - 1; k++) {
      const int step = k - before_, turn = step & 1, begin = (k + 1) / side;
      if (begin * side == k + 1 || step == 0) {
        begin_slot_ = begin / blocks_;
        begin_rest_ = begin - begin_slot_ * blocks_;
      }
      if (thread_id() == 0) h_->come[turn].arrive_before_bytes(letter_bytes(begin));
      if (warp_ == maker) make_reflector(x_[k + 1]);
      R energy = 0;
      each_of(h_->active[begin], k, [&](auto &tile, const place &at) { pass(k, tile, at, energy); });
      energy = group_sum(energy);
      block_sync();
      send(turn, begin, energy);
      h_->come[turn].wait(static_cast<uint32_t>(step / 2 & 1));
      finish(k, turn, begin, d, e, tau);
      block_sync();
    }
    cluster_sync(); /* nobody leaves whom others still write to */
  }

private:
  /* A lane's part of a tile. */
  struct held_tile {
    tile_entries &a;
    __device__ __forceinline__ void read(int c, T (&z)[lane_rows]) const {
#pragma unroll
      for (int r = 0; r < lane_rows; r++) z[r] = a[c][r];
    }
    __device__ __forceinline__ void write(int c, const T (&z)[lane_rows]) const {
#pragma unroll
      for (int r = 0; r < lane_rows; r++) a[c][r] = z[r];
    }
  };
  struct shared_tile {
    pair_of *a;
    __device__ __forceinline__ pair_of &at(int c, int half) const {
      return a[(2 * c + half) * warp_lanes + lane_id()];
    }
    __device__ __forceinline__ void read(int c, T (&z)[lane_rows]) const {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const pair_of p = at(c, half);
        z[2 * half] = p.x[0];
        z[2 * half + 1] = p.x[1];
      }
    }
    __device__ __forceinline__ void write(int c, const T (&z)[lane_rows]) const {
#pragma unroll
      for (int half = 0; half < 2; half++) at(c, half) = {{z[2 * half], z[2 * half + 1]}};
    }
  };
  /* Its columns before `first` hold v of earlier steps, or are none. */
  struct far_tile {
    const matrix_view<T> &a;
    int row, column, before, first;
    __device__ __forceinline__ bool has(int c, int r) const {
      return column + 4 * c >= first && row + 8 * r >= before;
    }
    __device__ __forceinline__ T *at(int c, int r) const {
      return a.at(row + 8 * r - before, column + 4 * c - before);
    }
    __device__ __forceinline__ void read(int c, T (&z)[lane_rows]) const {
#pragma unroll
      for (int r = 0; r < lane_rows; r++) z[r] = has(c, r) ? *at(c, r) : zero<T>();
    }
    __device__ __forceinline__ void write(int c, const T (&z)[lane_rows]) const {
#pragma unroll
      for (int r = 0; r < lane_rows; r++)
        if (has(c, r)) *at(c, r) = z[r];
    }
  };

  /* By the first warp: the block's tiles, those of the last column first, since a step's are then the first
   * ones of the list. A lane has a column. */
  __device__ __forceinline__ void list_tiles() {
    const int column = lane_id(), first = column + residue(rank_ - 2 * column),
              count = first < sides_ ? (sides_ - 1 - first) / blocks_ + 1 : 0;
    int behind = 0;
    for (int c = 1; c < warp_lanes; c++) {
      const int there = broadcast(count, c);
      if (c > column) behind += there;
    }
    for (int i = 0; i < count; i++) {
      const uint32_t row = static_cast<uint32_t>(first + i * blocks_), b = static_cast<uint32_t>(blocks_),
                     col = static_cast<uint32_t>(column);
      places_[behind + i] = row | col << 8 | col / b << 16 | row / b << 24;
    }
    h_->active[column] = behind + count;
    if (column == 0) h_->active[warp_lanes] = 0;
  }
  /* x mod B, x >= -2 * 32 */
  __device__ __forceinline__ int residue(int x) const {
    return static_cast<int>(static_cast<unsigned>(x + 64 * blocks_) % static_cast<unsigned>(blocks_));
  }

  __device__ __forceinline__ static place place_of(uint32_t word) {
    return {static_cast<int>(word & 255), static_cast<int>(word >> 8 & 255),
            static_cast<int>(word >> 16 & 255), static_cast<int>(word >> 24)};
  }
  __device__ __forceinline__ int row_of(const place &at, int r) const {
    return side * at.row + row_ + side / lane_rows * r;
  }
  __device__ __forceinline__ int column_of(const place &at, int c) const {
    return side * at.column + column_ + side / lane_columns * c;
  }

  /* The first `count` tiles, of which columns behind k are left. */
  template <class F> __device__ __forceinline__ void each_of(int count, int k, F &&f) {
#pragma unroll
    for (int h = 0; h < HELD; h++) {
      if (h * warps + warp_ >= count) continue;
      held_tile held{a_[h]};
      f(held, place_of(held_places_[h]));
    }
    for (int tile = kept + warp_; tile < least(count, near_); tile += warps) {
      shared_tile shared{tiles_[tile - kept]};
      f(shared, place_of(places_[tile]));
    }
    /* Those of the last turn begin where the ones before end. */
    const int skipped = near_ / warps * warps + warp_;
    for (int tile = skipped + (skipped < near_ ? warps : 0); tile < count; tile += warps) {
      const place at = place_of(places_[tile]);
      far_tile far{far_, row_of(at, 0), column_of(at, 0), before_, k + 1};
      f(far, at);
    }
  }
  template <class F> __device__ __forceinline__ void each_tile(F &&f) {
    each_of(h_->active[0], before_ - 1, f);
  }

  /* Column k's reflector. */
  __device__ __forceinline__ void make_reflector(T alpha) {
    const R rest = group_sum(lane_id() < warps ? h_->rest[lane_id()] : R(0));
    reflector<T> h = {zero<T>(), R(0), R(1), zero<T>()};
    if (abs2_add(alpha, rest) > least2_of_step<R>) h = larfg(alpha, rest, R(1), false);
    if (lane_id() == 0) h_->h = h;
  }

  /* Two sums over lanes that differ in `lanes`: the first one comes out in the lower of them, the second in
   * the upper. */
  __device__ __forceinline__ static T halved(T lower, T upper, int lanes) {
    const bool is_upper = (lane_id() & lanes) != 0;
    return (is_upper ? upper : lower) + exchange(is_upper ? lower : upper, lanes);
  }

  /* Column c of the lane's; c is the same in all lanes. */
  template <class TILE> __device__ __forceinline__ void store_next(const TILE &tile, int c, const place &at) {
    T z[lane_rows] = {};
#pragma unroll
    for (int each = 0; each < lane_columns; each++)
      if (each == c) tile.read(each, z);
#pragma unroll
    for (int r = 0; r < lane_rows; r++) next_[row_of(at, r)] = z[r];
  }

  /* Columns up to k are left alone, but for some that have zeros for x, v and w. Four columns at a time
   * without a branch, so that many operations are under way. */
  template <class TILE> __device__ __forceinline__ void pass(int k, TILE &tile, const place &at, R &energy) {
    const int from = k + 1 - side * at.column, begin = largest(from, 0) / 4;
    step_entry mine[lane_rows];
    T x[lane_rows], y[lane_rows], down[lane_columns / at_once];
#pragma unroll
    for (int r = 0; r < lane_rows; r++) {
      mine[r] = entries_[row_of(at, r)];
      x[r] = x_[row_of(at, r)];
      y[r] = zero<T>();
    }
#pragma unroll
    for (int group = 0; group < lane_columns / at_once; group++) {
      down[group] = zero<T>();
      if (at_once * (group + 1) <= begin) continue;
      T z[at_once][lane_rows], sum[at_once];
#pragma unroll
      for (int c = 0; c < at_once; c++) tile.read(at_once * group + c, z[c]);
#pragma unroll
      for (int c = 0; c < at_once; c++) {
        const step_entry other = entries_[column_of(at, at_once * group + c)];
        const T factor = x_[column_of(at, at_once * group + c)];
        sum[c] = zero<T>();
#pragma unroll
        for (int r = 0; r < lane_rows; r++) {
          z[c][r] = updated(z[c][r], mine[r].v, mine[r].w, other.v, other.w);
          y[r] = madd(z[c][r], factor, y[r]);
          sum[c] = cmadd(z[c][r], x[r], sum[c]);
        }
      }
#pragma unroll
      for (int c = 0; c < at_once; c++) tile.write(at_once * group + c, z[c]);
      down[group] = halved(halved(sum[0], sum[2], 16), halved(sum[1], sum[3], 16), 8);
    }
    if (from >= 0 && column_ == from % 4) store_next(tile, begin, at);
    R along = 0;
#pragma unroll
    for (int r = 0; r < lane_rows; r++) along += real_part(cmadd(x[r], y[r], zero<T>()));
    energy += at.row == at.column ? along : 2 * along;
    part_[at.row_slot * rows_ + row_of(at, column_)] =
        halved(halved(y[0], y[2], 2), halved(y[1], y[3], 2), 1);
    if (at.row == at.column) return;
    const int c = 4 * (row_ & 1) + (row_ >> 1); /* whose sum the exchanges leave here */
    part_[at.column_slot * rows_ + column_of(at, c)] = halved(down[0], down[1], 4);
  }

  /* What comes to a block at each step. */
  __device__ __forceinline__ int letter_bytes(int begin) const {
    return ((blocks_ + 1) * side * (sides_ - begin) + blocks_ * warps) * static_cast<int>(sizeof(T));
  }

  /* Numbers below B, mod B. */
  __device__ __forceinline__ int plus(int a, int b) const {
    return a + b < blocks_ ? a + b : a + b - blocks_;
  }
  __device__ __forceinline__ int minus(int a, int b) const { return a < b ? a - b + blocks_ : a - b; }

  /* What the block's tiles have of (A x)(i), i being in a chunk, of which `rest` is the number mod B. */
  __device__ __forceinline__ T own_product(int rest, int i) const {
    const int partner = minus(rank_, rest), before = minus(partner, begin_rest_),
              from = begin_slot_ + (begin_rest_ + before >= blocks_ ? 1 : 0),
              end = slots_ - (partner + (slots_ - 1) * blocks_ >= sides_ ? 1 : 0);
    const T *part = part_ + i;
    T sum = zero<T>();
#pragma unroll 4
    for (int p = from; p < end; p++) sum = sum + part[p * rows_];
    return sum;
  }

  __device__ __forceinline__ void send(int turn, int begin, R energy) {
    phase_barrier &come = h_->come[turn];
    if (lane_id() < blocks_)
      come.send(energies_ + (turn * blocks_ + rank_) * warps + warp_, energy, lane_id());
    int rest = warp_rest_;
    for (int chunk = warp_; chunk < sides_; chunk += warps, rest = plus(rest, turn_rest_)) {
      if (chunk < begin) continue;
      const int i = side * chunk + lane_id();
      const T sum = own_product(rest, i);
      for (int b = 0; b < blocks_; b++) come.send(mail_ + (turn * blocks_ + rank_) * rows_ + i, sum, b);
      if (plus(rest, begin_rest_) != rank_) continue;
      const T entry = next_[i];
      for (int b = 0; b < blocks_; b++) come.send(columns_ + turn * rows_ + i, entry, b);
    }
  }

  /* square: of the thread's entries of the next column without its first one. */
  __device__ __forceinline__ void end_column(R square) {
    square = group_sum(square);
    if (lane_id() == 0) h_->rest[warp_] = square;
  }

  __device__ __forceinline__ T product(int turn, int i) const {
    const T *mail = mail_ + turn * blocks_ * rows_ + i;
    T q = mail[0];
    for (int b = 1; b < blocks_; b++) q = q + mail[b * rows_];
    return q;
  }

  /* How w follows from A x. */
  struct step_factors {
    reflector<T> h;
    R half;
    T w_first;
    __device__ __forceinline__ step_factors(const reflector<T> &h_, R energy, T q_first, T a_first) : h(h_) {
      const R most = fused(h.beta, fused(h.beta, real_part(a_first), -2 * real_part(q_first)), energy) *
                     abs2(h.scale); /* v^H A v */
      half = R(-0.5) * abs2(h.tau) * most;
      w_first = find_w(q_first, a_first, one<T>());
    }
    __device__ __forceinline__ T find_w(T product, T entry, T v) const {
      return madd(h.tau, h.scale * madd(make<T>(-h.beta), entry, product), scaled(v, half));
    }
  };
  __device__ __forceinline__ R all_energy(int turn) const {
    R energy = 0;
    for (int j = lane_id(); j < blocks_ * warps; j += warp_lanes)
      energy += energies_[turn * blocks_ * warps + j];
    return group_sum(energy);
  }

  /* v and w of step k, and the next column: of two chunks of rows at a time, since there are many steps that
   * wait for one another in each. */
  __device__ __forceinline__ void finish(int k, int turn, int begin, R *d, R *e, T *tau) {
    constexpr int at_once = 2;
    const int first = k + 1, column = k - before_;
    const T *const next_column = columns_ + turn * rows_, *const mail = mail_ + turn * blocks_ * rows_;
    const step_factors by(h_->h, all_energy(turn), product(turn, first), next_column[first]);
    R square = 0;
#pragma unroll
    for (int c = 0; c < chunks; c += at_once) {
      int i[at_once];
      T q[at_once], a[at_once], x[at_once];
      const int last = warp_ + (c + at_once - 1) * warps;
      if (last < begin || warp_ + c * warps >= sides_) continue;
#pragma unroll
      for (int t = 0; t < at_once; t++) {
        const int chunk = warp_ + (c + t) * warps;
        i[t] = side * (chunk < sides_ ? chunk : warp_ + c * warps) + lane_id();
        q[t] = mail[i[t]];
        a[t] = next_column[i[t]];
        x[t] = x_[i[t]];
      }
      for (int b = 1; b < blocks_; b++)
#pragma unroll
        for (int t = 0; t < at_once; t++) q[t] = q[t] + mail[b * rows_ + i[t]];
#pragma unroll
      for (int t = 0; t < at_once; t++) {
        const int chunk = warp_ + (c + t) * warps;
        const bool active = i[t] > k && chunk < sides_;
        const T v = i[t] == first ? one<T>() : x[t] * by.h.scale,
                w = i[t] == first ? by.w_first : by.find_w(q[t], a[t], v),
                next = updated(a[t], v, w, one<T>(), by.w_first);
        if (i[t] > first + 1 && active) square = abs2_add(next, square);
        if (chunk < begin || chunk >= sides_) continue;
        entries_[i[t]] = {active ? v : zero<T>(), active ? w : zero<T>()};
        x_[i[t]] = active && i[t] > first ? next : zero<T>();
        /* In order with what the block's tile wrote there before. */
        if (active && residue(chunk + k / side) == rank_) *far_.at(i[t] - before_, column) = v;
        if (i[t] == first && rank_ == 0) {
          d[column + 1] = real_part(next);
          e[column] = by.h.beta;
          tau[column] = by.h.tau;
        }
      }
    }
    end_column(square);
  }

  matrix_view<T> far_;
  int sides_, rows_, blocks_, rank_, slots_;
  int begin_slot_ = 0, begin_rest_ = 0; /* first tile column of the step, over and mod B */
  int warp_rest_, turn_rest_;           /* the warp's number, and warps, mod B */
  int before_, near_;                   /* rows before the matrix's; tiles on the chip */
  int warp_, row_, column_;             /* of the lane in a tile */
  head *h_;
  step_entry *entries_; /* of the last step */
  T *x_, *next_;        /* the column of this step, column k + 1 where it is this block's */
  T *columns_, *mail_;  /* column k + 1, and A x, as blocks have sent them, in turn */
  T *part_, *energies_;
  uint32_t *places_;
  shared_tile_entries *tiles_;
  uint32_t held_places_[HELD];
  tile_entries a_[HELD];
};

} // namespace bqr

#endif
