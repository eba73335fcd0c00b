/* SPDX-License-Identifier: BSD-3-Clause */
/* The pivots of a panel: a block to a member, or several, which share its columns and wait for one another
 * once for several pivots: those of a cluster, or as many as there are multiprocessors, which meet in global
 * memory. */
#include "pivots_candidates.cuh"
#include "pivots_parts.cuh"
#include "pivots_piece.cuh"
#include "common/matrix/member.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/prefetch.cuh"
#include "common/simt/launch_cluster.cuh"

namespace bqr {
namespace {

constexpr int threads = choosing_threads, warps = choosing_warps;
/* That each of several blocks makes, fewer where that gives enough of them. */
BQR_INLINE int offers_of_block(int blocks) { return blocks > 64 ? BQR_PIVOTS_OFFERS / 2 : BQR_PIVOTS_OFFERS; }

/* Who shares a member. */
enum class scope { block, cluster, device };

/* Columns that a block has at most, and the distance of rows of the panel in shared memory: with a multiple
 * of 16 and 4 more, the lanes of an operand of matrix units are in different banks. */
BQR_INLINE int columns_of_block(int n, int blocks) { return (n - 1) / blocks + 1; }
BQR_INLINE int distance_of_rows(int columns) { return (columns + 11) / 16 * 16 + 4; }

/* Shared memory. */
template <class W> struct small_memory {
  chosen_columns<W> chosen;
  selection_memory own;
  bqr_pivots_offer candidates[most_candidates];
  uint32_t longest[warps]; /* at the beginning, as in bqr_pivots_rest, by warps */
  double first2[warps];
};
/* Of one of several blocks; two turns of what others read. */
struct shared_memory_of_block {
  selection_memory all;
  bqr_pivots_offer offers[2][BQR_PIVOTS_OFFERS];
  bqr_pivots_rest rests[2];
};

template <class W> struct block_memory {
  W *panel;      /* width x columns */
  W *pivots;     /* the panel's entries of the candidates, of several blocks */
  W *products;   /* what is left of the products of candidates */
  double *left2; /* of each column; -1: taken */
  small_memory<W> *small;
  shared_memory_of_block *shared;
  int *taken; /* slots, by steps */
  uint16_t *places, *columns;

  BQR_INLINE static size_t bytes(int columns, int width, int blocks, int candidates) {
    const size_t c = static_cast<size_t>(columns), w = static_cast<size_t>(width),
                 some = static_cast<size_t>(candidates);
    const size_t several = blocks > 1 ? some * (w + 4) * sizeof(W) + sizeof(shared_memory_of_block) : 0;
    return (w * static_cast<size_t>(distance_of_rows(columns)) + num_products) * sizeof(W) + several +
           sizeof(small_memory<W>) + c * (sizeof(double) + 2 * sizeof(uint16_t)) + w * sizeof(int);
  }
  __device__ __forceinline__ static block_memory at(unsigned char *memory, int columns, int width, int blocks,
                                                    int candidates) {
    block_memory s;
    s.panel = reinterpret_cast<W *>(memory);
    s.pivots = s.panel + width * distance_of_rows(columns);
    s.products = s.pivots + (blocks > 1 ? candidates * (width + 4) : 0);
    s.small = reinterpret_cast<small_memory<W> *>(s.products + num_products);
    s.shared = reinterpret_cast<shared_memory_of_block *>(s.small + 1);
    s.left2 = reinterpret_cast<double *>(s.shared + (blocks > 1));
    s.taken = reinterpret_cast<int *>(s.left2 + columns);
    s.places = reinterpret_cast<uint16_t *>(s.taken + width);
    s.columns = s.places + columns;
    return s;
  }
};

/* Numbers with these leading bits are below it. */
__device__ __forceinline__ double above(uint32_t leading) {
  return __hiloint2double(static_cast<int>(leading), 0);
}

template <class W, scope SCOPE> class chooser {
  static constexpr bool alone = SCOPE == scope::block;

public:
  __device__ chooser(const bqr_pivots &p, int64_t entry, int group, int block, int panel,
                     unsigned char *memory, int &turn)
      : p_(p), state_(p.states[entry]), entry_(entry), block_(block), panel_(panel), taken_(panel * p.width),
        slots_(p.n - taken_), now_(least(p.width, p.steps - taken_)),
        columns_(columns_of_block(slots_, p.blocks)), first_(least(slots_, block * columns_)),
        mine_(least(columns_, slots_ - first_)), ld_(distance_of_rows(columns_)), turn_(turn),
        s_(block_memory<W>::at(memory, columns_, p.width, p.blocks, p.candidates)),
        gram_(static_cast<const W *>(p.grams[panel % 2]) + entry * p.n * p.n), group_(group) {}

  /* abstol and reltol are the caller's. */
  template <class T> __device__ void run(double abstol, double reltol) {
    if (state_.exact) return;
    if (panel_ == 0 && !(magnitude_finite<T>(state_.magnitude) &&
                         magnitude_finite<T>(state_.magnitude_of_c) && state_.magnitude > 0))
      return leave_it();
    if (SCOPE == scope::device) { /* all that has come since the launch is a part of one round */
      arrivals_ = *const_cast<const volatile unsigned *>(&state_of().arrivals);
      arrivals_ -= arrivals_ % static_cast<unsigned>(p_.blocks);
    }
    begin();
    for (int k = 0; k < now_;) {
      find_candidates(k);
      multiply_candidates(k);
      block_sync();
      if (warp_id() == 0) {
        if (k == 0) set_doubt<T>(abstol, reltol);
        choose(s_.small->candidates, num_candidates(), s_.products, rest_, taken_ + k, now_ - k, doubt2_,
               s_.small->chosen);
        warp_sync(); /* all lanes have read how many candidates there are */
        s_.small->own.clear();
        if (!alone) s_.shared->all.clear();
      }
      block_sync();
      const int chosen = s_.small->chosen.count;
      if (chosen == 0) return leave_it();
      take(k, chosen);
      k += chosen;
    }
    block_sync();
    if (taken_ + now_ < p_.steps)
      pass_on();
    else if (p_.steps < p_.n)
      for (int c = thread_id(); c < mine_; c += threads)
        if (s_.left2[c] >= 0) p_.order[entry_ * p_.n + s_.places[c]] = s_.columns[c];
  }

private:
  __device__ bqr_pivots_state &state_of() const { return p_.states[entry_]; }
  __device__ void leave_it() const {
    if (block_ > 0 || thread_id() > 0) return;
    state_of().exact = 1;
    p_.m_left[entry_] = p_.m;
    p_.n_left[entry_] = p_.n;
  }

  /* The panel's columns, and how many are how long. */
  __device__ void begin() {
    small_memory<W> &s = *s_.small;
    uint32_t longest = 0;
    double *first2 = p_.first2 + entry_ * p_.n;
    first2_ = 0;
    for (int c = thread_id(); c < mine_; c += threads) {
      const int slot = first_ + c;
      const double norm2 = fmax(real_part(gram_[slot + int64_t(slot) * slots_]), 0.0);
      const int column = panel_ == 0 ? slot : p_.columns[panel_ % 2][entry_ * p_.n + slot];
      s_.left2[c] = norm2;
      s_.columns[c] = static_cast<uint16_t>(column);
      s_.places[c] = static_cast<uint16_t>(panel_ == 0 ? slot : p_.places[panel_ % 2][entry_ * p_.n + slot]);
      if (panel_ == 0) first2[column] = norm2;
      longest = greater(longest, leading_bits(norm2));
      first2_ = fmax(first2_, panel_ == 0 ? norm2 : first2[column]);
    }
    longest = group_max(longest);
#pragma unroll
    for (int d = warp_lanes / 2; d > 0; d /= 2) first2_ = fmax(first2_, exchange(first2_, d));
    if (lane_id() == 0) {
      s.longest[warp_id()] = longest;
      s.first2[warp_id()] = first2_;
    }
    if (warp_id() == 0) {
      s.own.clear();
      if (!alone) s_.shared->all.clear();
    }
    block_sync();
    longest = s.longest[0];
    first2_ = s.first2[0];
    for (int w = 1; w < warps; w++) {
      longest = greater(longest, s.longest[w]);
      first2_ = fmax(first2_, s.first2[w]);
    }
    const double inverse = 1 / above(longest + 1);
    if (thread_id() == 0) s.chosen.inverse = inverse;
    for (int c = thread_id(); c < mine_; c += threads) s.own.add(s_.left2[c], inverse);
  }

  /* The candidates, and in warp 0 the longest of what else there is. k rows of the panel are there. */
  __device__ void find_candidates(int k) {
    small_memory<W> &s = *s_.small;
    const int limit = alone ? p_.candidates : offers_of_block(p_.blocks);
    bqr_pivots_offer *const list = alone ? s.candidates : s_.shared->offers[turn_];
    if (!alone && thread_id() < BQR_PIVOTS_OFFERS) list[thread_id()] = no_offer();
    block_sync();
    select(
        s.own, mine_, limit, s.chosen.inverse,
        [&](int c) {
          return bqr_pivots_offer{s_.left2[c], first_ + c, s_.places[c], 0};
        },
        no_offer(), list);
    block_sync();
    if (warp_id() == 0) rest_ = s.own.longest_rest();
    if (!alone) exchange_offers(k, list, limit);
  }

  /* Where this block's offers are, and the panel's entries of them. */
  __device__ int64_t turn_at(int turn) const { return (int64_t(group_) * 2 + turn) * p_.blocks; }
  __device__ W *offered(int turn) const {
    return static_cast<W *>(p_.offered) + turn_at(turn) * BQR_PIVOTS_OFFERS * p_.width;
  }
  __device__ bqr_pivots_offer *offers(int turn) const {
    return p_.offers + turn_at(turn) * BQR_PIVOTS_OFFERS;
  }
  __device__ const bqr_pivots_offer &offer_of(int turn, int block, int number) const {
    if (SCOPE == scope::cluster) return *cluster_shared(&s_.shared->offers[turn][number], block);
    return offers(turn)[block * BQR_PIVOTS_OFFERS + number];
  }
  __device__ const bqr_pivots_rest &rest_of(int turn, int block) const {
    if (SCOPE == scope::cluster) return *cluster_shared(&s_.shared->rests[turn], block);
    return p_.rests[turn_at(turn) + block];
  }

  /* From each block's list to one of all. */
  __device__ void exchange_offers(int k, const bqr_pivots_offer *list, int each) {
    const int turn = turn_, shift = each == BQR_PIVOTS_OFFERS ? 3 : 2;
    static_assert(BQR_PIVOTS_OFFERS == 8, "shift");
    turn_ ^= 1;
    if (warp_id() == 0) {
      const uint32_t longest = group_max(lane_id() < each ? leading_bits(list[lane_id()].norm2) : 0);
      const bqr_pivots_rest rest = {rest_.norm2, rest_.place, longest + 1, first2_};
      if (lane_id() == 0)
        (SCOPE == scope::cluster ? s_.shared->rests[turn] : p_.rests[turn_at(turn) + block_]) = rest;
    }
    if (SCOPE == scope::device) {
      if (thread_id() < each) offers(turn)[block_ * BQR_PIVOTS_OFFERS + thread_id()] = list[thread_id()];
      for (int o = warp_id(); o < each; o += warps)
        if (list[o].norm2 >= 0)
          for (int l = lane_id(); l < k; l += warp_lanes)
            offered(turn)[(block_ * BQR_PIVOTS_OFFERS + o) * int64_t(p_.width) + l] =
                s_.panel[l * ld_ + list[o].slot - first_];
    }
    if (SCOPE == scope::cluster)
      cluster_sync();
    else
      meet();
    constexpr int most = 3; /* offers that a thread looks at */
    bqr_pivots_offer mine[most];
#pragma unroll
    for (int n = 0; n < most; n++) {
      const int i = n * threads + thread_id(), block = i >> shift, number = i & (each - 1);
      mine[n] = no_offer();
      if (block >= p_.blocks) continue;
      mine[n] = offer_of(turn, block, number);
      mine[n].source = block * BQR_PIVOTS_OFFERS + number;
    }
    bqr_pivots_offer rest = no_offer();
    if (thread_id() < p_.blocks) { /* blocks are fewer than threads */
      const bqr_pivots_rest of_block = rest_of(turn, thread_id());
      rest = {of_block.norm2, 0, of_block.place, 0};
    }
    double inverse = s_.small->chosen.inverse;
    if (k == 0) {
      uint32_t longest = 0;
      for (int b = lane_id(); b < p_.blocks; b += warp_lanes) {
        longest = greater(longest, rest_of(turn, b).longest);
        first2_ = fmax(first2_, rest_of(turn, b).first2);
      }
      inverse = 1 / above(group_max(longest));
    }
    selection_memory &all = s_.shared->all;
#pragma unroll
    for (int n = 0; n < most; n++) all.add(mine[n].norm2, inverse);
    block_sync();
    select(
        all, p_.blocks * each, p_.candidates, inverse,
        [&](int i) { return i < threads       ? mine[0]
                            : i < 2 * threads ? mine[1]
                                              : mine[2]; }, rest,
        s_.small->candidates);
    block_sync();
    if (warp_id() == 0) rest_ = all.longest_rest();
  }

  /* Until all blocks have come. */
  __device__ void meet() {
    block_sync();
    if (warp_id() == 0) {
      arrivals_ += static_cast<unsigned>(p_.blocks);
      unsigned *const arrivals = &state_of().arrivals;
      if (lane_id() == 0) {
        device_fence();
        atomicAdd(arrivals, 1u);
      }
      while (group_any(static_cast<int>(*const_cast<const volatile unsigned *>(arrivals) - arrivals_) < 0))
        __nanosleep(20);
      device_fence();
    }
    block_sync();
  }

  __device__ int num_candidates() const { return alone ? s_.small->own.count : s_.shared->all.count; }
  /* Where the panel's entries of candidate i are, and how far apart. */
  __device__ __forceinline__ const W *of_candidate(int i) const {
    return alone ? s_.panel + s_.small->candidates[i].slot : s_.pivots + i * (p_.width + 4);
  }
  __device__ __forceinline__ int candidate_step() const { return alone ? ld_ : 1; }

  /* What is left of candidates' products after k rows. */
  __device__ void multiply_candidates(int k) {
    const bqr_pivots_offer *const list = s_.small->candidates;
    const int there = num_candidates(), g = lane_id() / 4, q = lane_id() % 4;
    const int down = warp_id() < 2 ? 0 : 16, across = 8 * (warp_id() < 2 ? warp_id() : warp_id() - 2);
    const bool has_piece = across < down + 16 && down < there && across < there;
    W left[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = down + 8 * (e / 2) + g, j = across + 2 * q + e % 2;
      left[e] =
          has_piece && i < there && j <= i ? gram_[list[i].slot + int64_t(list[j].slot) * slots_] : zero<W>();
    }
    if (!alone) {
      bring_candidates(k, there);
      block_sync();
    }
    if (!has_piece) return;
    const W *const rows[2] = {of_candidate(least(down + g, there - 1)),
                              of_candidate(least(down + 8 + g, there - 1))},
                   *const col = of_candidate(least(across + g, there - 1));
    piece_sums<W> sums;
#pragma unroll(alone ? 1 : 4)
    for (int l = q; l - q < k; l += 8) {
      W a[4], b[2];
#pragma unroll
      for (int s = 0; s < 2; s++) {
        const bool in = l + 4 * s < k;
        const int at = (l + 4 * s) * candidate_step();
        b[s] = in ? col[at] : zero<W>();
#pragma unroll
        for (int h = 0; h < 2; h++) a[2 * h + s] = in ? rows[h][at] : zero<W>();
      }
      sums.add(a, b);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = down + 8 * (e / 2) + g, j = across + 2 * q + e % 2;
      if (i < there && j <= i) s_.products[product_place(i, j)] = left[e] - sums.get(e);
    }
  }

  /* The panel's entries of the candidates, from others; A^H A's columns of them are soon to be read. */
  __device__ void bring_candidates(int k, int there) {
    const bqr_pivots_offer *const list = s_.small->candidates;
    for (int i = warp_id(); i < there; i += warps) {
      W *const to = s_.pivots + i * (p_.width + 4);
      if constexpr (SCOPE == scope::cluster) {
        const int owner = list[i].slot / columns_;
        const W *const from = cluster_shared(s_.panel, owner) + (list[i].slot - owner * columns_);
        for (int l = lane_id(); l < k; l += warp_lanes) to[l] = from[l * ld_];
      } else {
        const W *const from = offered(turn_ ^ 1) + list[i].source * int64_t(p_.width);
        for (int l = lane_id(); l < k; l += warp_lanes) copy_async<sizeof(W)>(to + l, from + l);
      }
      constexpr int line = 128 / sizeof(W);
      for (int c = lane_id() * line; c < mine_ + line - 1; c += warp_lanes * line)
        prefetch_l2(gram_ + first_ + least(c, mine_ - 1) + int64_t(list[i].slot) * slots_);
    }
    copy_async_wait();
  }

  /* The panel's first choice: below which squared norm errors of these, or the tolerance, may matter. */
  template <class T> __device__ void set_doubt(double abstol, double reltol) {
    double tolerance2 = state_.tolerance2;
#pragma unroll
    for (int d = warp_lanes / 2; d > 0; d /= 2) first2_ = fmax(first2_, exchange(first2_, d));
    if (panel_ == 0) {
      const int lane = lane_id();
      const double norm2 = lane < num_candidates() ? s_.small->candidates[lane].norm2 : -1;
      const double length = sqrt(broadcast(norm2, lane_of_longest(norm2, lane)));
      const double tolerance =
          fmax(times_power(abstol, exponent_of_scale<T>(state_.magnitude)), reltol * length);
      tolerance2 = tolerance * tolerance;
      if (block_ == 0 && lane == 0) state_of().tolerance2 = tolerance2;
    }
    doubt2_ = fmax(first2_ * (p_.m + p_.n) * 0x1p-46, fmax(1.002 * tolerance2, 0x1p-900));
  }

  /* Rows k .. k + chosen - 1 of the panel. */
  __device__ void take(int k, int chosen) {
    constexpr int tiles = alone ? 2 : 1, across = 16 * tiles;
    if (thread_id() < chosen) s_.taken[k + thread_id()] = s_.small->chosen.slots[thread_id()];
    for (int base = warp_id() * across; base < mine_; base += warps * across) {
      complete_products<tiles>(base, k, chosen);
      warp_sync();
      if (lane_id() < across && base + lane_id() < mine_) take_column(base + lane_id(), k, chosen);
      warp_sync();
    }
  }

  /* What is left, after k rows, of the products of those chosen with columns. */
  template <int TILES> __device__ __forceinline__ void complete_products(int base, int k, int chosen) {
    const chosen_columns<W> &c = s_.small->chosen;
    const int g = lane_id() / 4, q = lane_id() % 4;
    W left[TILES][4];
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int column = base + 16 * t + 8 * (e / 2) + g, i = 2 * q + e % 2;
        left[t][e] =
            column < mine_ && i < chosen ? gram_[first_ + column + int64_t(c.slots[i]) * slots_] : zero<W>();
      }
    const W *const of_pivot = of_candidate(c.candidates[least(g, chosen - 1)]);
    piece_sums<W> sums[TILES];
#pragma unroll(alone ? 1 : 4)
    for (int l = q; l - q < k; l += 8) {
      W b[2];
#pragma unroll
      for (int s = 0; s < 2; s++) b[s] = l + 4 * s < k ? of_pivot[(l + 4 * s) * candidate_step()] : zero<W>();
#pragma unroll
      for (int t = 0; t < TILES; t++) {
        W a[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int row = l + 4 * (e % 2), column = base + 16 * t + 8 * (e / 2) + g;
          a[e] = row < k && column < mine_ ? s_.panel[row * ld_ + column] : zero<W>();
        }
        sums[t].add(a, b);
      }
    }
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int column = base + 16 * t + 8 * (e / 2) + g, i = 2 * q + e % 2;
        if (column < mine_ && i < chosen)
          s_.panel[(k + i) * ld_ + column] = conj(left[t][e] - sums[t].get(e));
      }
  }

  /* A column's entries of the new rows, and what is left of it. */
  __device__ __forceinline__ void take_column(int column, int k, int chosen) {
    const chosen_columns<W> &c = s_.small->chosen;
    double left2 = s_.left2[column];
    int place = s_.places[column];
    W row[most_chosen];
#pragma unroll
    for (int i = 0; i < most_chosen; i++) row[i] = i < chosen ? s_.panel[(k + i) * ld_ + column] : zero<W>();
#pragma unroll
    for (int i = 0; i < most_chosen; i++) {
      if (i >= chosen) break;
      W sum = zero<W>();
#pragma unroll
      for (int l = 0; l < i; l++) sum = cmadd(c.factor[i][l], row[l], sum);
      row[i] = scaled(row[i] - sum, c.scales[i]);
      s_.panel[(k + i) * ld_ + column] = row[i];
      if (c.slots[i] == first_ + column) {
        left2 = -1;
        p_.order[entry_ * p_.n + taken_ + k + i] = s_.columns[column];
      }
      if (left2 < 0) continue;
      if (place == taken_ + k + i) place = c.places[i];
      left2 = fmax(left2 - abs2(row[i]), 0.0);
    }
    s_.left2[column] = left2;
    s_.places[column] = static_cast<uint16_t>(place);
    s_.small->own.add(left2, c.inverse);
  }

  /* What is left, close-packed: columns, places, and the panel's entries. */
  __device__ void pass_on() {
    const int64_t at = entry_ * p_.n;
    const int next = (panel_ + 1) % 2;
    W *panel = static_cast<W *>(p_.panel) + at * p_.width;
    for (int c = thread_id(); c < mine_; c += threads) {
      if (s_.left2[c] < 0) continue;
      int slot = first_ + c;
      for (int l = 0; l < now_; l++) slot -= s_.taken[l] < first_ + c;
      p_.slots[at + slot] = first_ + c;
      p_.columns[next][at + slot] = s_.columns[c];
      p_.places[next][at + slot] = s_.places[c];
      s_.places[c] = static_cast<uint16_t>(slot);
    }
    block_sync();
#pragma unroll 4
    for (int c = warp_id(); c < mine_; c += warps) {
      const int64_t slot = s_.places[c];
      if (s_.left2[c] < 0) continue;
      for (int l = lane_id(); l < now_; l += warp_lanes) panel[slot * p_.width + l] = s_.panel[l * ld_ + c];
    }
  }

  const bqr_pivots &p_;
  const bqr_pivots_state state_;
  int64_t entry_;
  int block_, panel_;
  int taken_, slots_, now_;         /* columns taken before, left then, and to be taken */
  int columns_, first_, mine_, ld_; /* of a block; this block's */
  int &turn_;                       /* which of two buffers is next: never one that a block may still read */
  unsigned arrivals_ = 0;
  block_memory<W> s_;
  const W *gram_;
  int group_;
  double first2_ = 0; /* the largest of the squared norms that columns had at the beginning, by lanes */
  double doubt2_ = 0; /* warp 0's */
  bqr_pivots_offer rest_ = {}; /* warp 0's: the longest column beside the candidates */
};

template <class T, scope SCOPE>
__global__ void __launch_bounds__(threads, is_complex<T>             ? 1
                                           : SCOPE == scope::block   ? 3
                                           : SCOPE == scope::cluster ? 2
                                                                     : 1)
    pivots_choose_kernel(const __grid_constant__ bqr_pivots p, int panel, double abstol, double reltol) {
  const int group = static_cast<int>(blockIdx.x) / p.blocks, block = static_cast<int>(blockIdx.x) % p.blocks;
  const int groups = static_cast<int>(gridDim.x) / p.blocks;
  int turn = 0;
  for (int64_t i = group; i < p.count; i += groups) {
    chooser<wide<T>, SCOPE> c(p, i, group, block, panel, shared_memory<unsigned char>(), turn);
    c.template run<T>(abstol, reltol);
    if (SCOPE == scope::cluster)
      cluster_sync(); /* others may still read this one's memory */
    else
      block_sync();
  }
}

size_t shared_bytes(batchqr_type type, int n, int width, int blocks, int candidates) {
  return for_type(type, [&](auto tag) {
    return block_memory<wide<typename decltype(tag)::type>>::bytes(columns_of_block(n, blocks), width, blocks,
                                                                   candidates);
  });
}
size_t shared_bytes(batchqr_type type, const bqr_pivots *p) {
  return shared_bytes(type, p->n, p->width, p->blocks, p->candidates);
}

} // namespace

batchqr_status prepare_choice(batchqr_type type, const bqr_pivots *p) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const size_t smem = shared_bytes(type, p);
    return p->cluster      ? prepare_kernel(pivots_choose_kernel<T, scope::cluster>, smem, p->blocks)
           : p->blocks > 1 ? prepare_kernel(pivots_choose_kernel<T, scope::device>, smem)
                           : prepare_kernel(pivots_choose_kernel<T, scope::block>, smem);
  });
}

} // namespace bqr

using namespace bqr;

int bqr_pivots_candidates(batchqr_type type, int n, int width, int blocks, size_t shared) {
  int candidates = most_candidates;
  while (candidates >= 8 && shared_bytes(type, n, width, blocks, candidates) > shared) candidates /= 2;
  return candidates >= 8 ? candidates : 0;
}

batchqr_status bqr_pivots_choose(batchqr_type type, const bqr_args *args, const bqr_pivots *p, int panel,
                                 const bqr_device *device, batchqr_stream stream) {
  /* of the columns that are left: more members share a multiprocessor */
  const size_t smem = shared_bytes(type, p->n - panel * p->width, p->width, p->blocks, p->candidates);
  const bool together = p->blocks > 1 && !p->cluster;
  const int64_t most = together ? device->multiprocessors / p->blocks : int64_t(1) << 24;
  const int64_t groups = p->count < most ? p->count : most;
  const batchqr_status status = for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const unsigned grid = grid_for(groups * p->blocks);
    if (p->cluster)
      return launch_clusters(pivots_choose_kernel<T, scope::cluster>, static_cast<unsigned>(groups),
                             p->blocks, threads, smem, stream, *p, panel, args->abstol, args->reltol);
    return together ? launch_together(pivots_choose_kernel<T, scope::device>, grid, threads, smem, stream, *p,
                                      panel, args->abstol, args->reltol)
                    : launch_kernel(pivots_choose_kernel<T, scope::block>, grid, threads, smem, stream, *p,
                                    panel, args->abstol, args->reltol);
  });
  return status || (panel + 1) * p->width >= p->steps ? status : form_complements(type, p, panel, stream);
}
