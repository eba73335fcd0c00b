/* SPDX-License-Identifier: BSD-3-Clause */
/* The pivots of a panel: a block to a member, or several, which share its columns and wait for one another
 * once for each step: those of a cluster, or as many as there are multiprocessors, which meet in global
 * memory. */
#include "pivots_parts.cuh"
#include "common/matrix/member.cuh"
#include "common/matrix/view.cuh"
#include "common/panel/exponents.cuh"
#include "common/simt/block.cuh"
#include "common/simt/launch_cluster.cuh"

namespace bqr {
namespace {

constexpr int threads = 256, warps = threads / warp_lanes;

/* Columns that a block has at most, and the distance of rows of the panel in shared memory: with a multiple
 * of 16 and 8 more, lanes that share a column, in neighbouring rows, are in different banks. */
BQR_INLINE int columns_of_block(int n, int blocks) { return (n - 1) / blocks + 1; }
BQR_INLINE int distance_of_rows(int columns) { return (columns + 15) / 16 * 16 + 8; }

/* Shared memory. */
template <class W> struct block_memory {
  W *panel;      /* width x columns */
  W *pivot;      /* the panel's entries of the column taken, from another block's */
  double *left2; /* of each column; -1: taken */
  int *places, *columns;
  int *taken;               /* slots, by steps */
  bqr_pivots_offer *offers; /* of warps, and of the block, in two turns each */

  BQR_INLINE static size_t bytes(int columns, int width) {
    const size_t c = static_cast<size_t>(columns), w = static_cast<size_t>(width);
    return (w * static_cast<size_t>(distance_of_rows(columns)) + w) * sizeof(W) + c * sizeof(double) +
           2 * (warps + 1) * sizeof(bqr_pivots_offer) + (2 * c + w) * sizeof(int);
  }
  __device__ __forceinline__ static block_memory at(unsigned char *memory, int columns, int width) {
    block_memory s;
    s.panel = reinterpret_cast<W *>(memory);
    s.pivot = s.panel + width * distance_of_rows(columns);
    s.left2 = reinterpret_cast<double *>(s.pivot + width);
    s.offers = reinterpret_cast<bqr_pivots_offer *>(s.left2 + columns);
    s.places = reinterpret_cast<int *>(s.offers + 2 * (warps + 1));
    s.columns = s.places + columns;
    s.taken = s.columns + columns;
    return s;
  }
};

/* The longer one; of those that are as long, the one that comes first. */
__device__ __forceinline__ void take_longer(bqr_pivots_offer &best, const bqr_pivots_offer &other) {
  const double first2 = fmax(best.first2, other.first2);
  if (other.norm2 > best.norm2 || (other.norm2 == best.norm2 && other.place < best.place)) best = other;
  best.first2 = first2;
}

__device__ __forceinline__ bqr_pivots_offer no_offer() { return {-1, 0, 0, 0}; }

/* Of the warp's lanes, by comparisons of words: those of a norm that is not negative are ordered as it is,
 * and of columns that are as long the first place, which is unique, decides. FIRST: first2, too. */
template <bool FIRST> __device__ __forceinline__ bqr_pivots_offer longest_of_lanes(bqr_pivots_offer x) {
  const bool there = x.norm2 >= 0;
  const uint32_t high = there ? static_cast<uint32_t>(__double2hiint(x.norm2)) : 0,
                 low = there ? static_cast<uint32_t>(__double2loint(x.norm2)) : 0;
  const uint32_t best_high = group_max(high), best_low = group_max(high == best_high ? low : 0);
  const bool best = there && high == best_high && low == best_low;
  const uint32_t key = static_cast<uint32_t>(x.place) << 16 | static_cast<uint32_t>(x.slot);
  const uint32_t best_key = ~group_max(best ? ~key : 0);
  if (FIRST) {
#pragma unroll
    for (int d = warp_lanes / 2; d > 0; d /= 2) x.first2 = fmax(x.first2, exchange(x.first2, d));
  }
  if (best_key == ~0u) return {-1, x.first2, 0, 0};
  return {__hiloint2double(static_cast<int>(best_high), static_cast<int>(best_low)), x.first2,
          static_cast<int>(best_key & 0xffffu), static_cast<int>(best_key >> 16)};
}

template <class W, bool CLUSTER> class chooser {
public:
  __device__ chooser(const bqr_pivots &p, int64_t entry, int group, int block, int panel,
                     unsigned char *memory, int &turn)
      : p_(p), state_(p.states[entry]), entry_(entry), block_(block), panel_(panel), taken_(panel * p.width),
        slots_(p.n - taken_), now_(least(p.width, p.steps - taken_)),
        columns_(columns_of_block(slots_, p.blocks)), first_(least(slots_, block * columns_)),
        mine_(least(columns_, slots_ - first_)), ld_(distance_of_rows(columns_)), turn_(turn),
        s_(block_memory<W>::at(memory, columns_, p.width)),
        gram_(static_cast<const W *>(p.grams[panel % 2]) + entry * p.n * p.n),
        offers_(p.offers + int64_t(group) * 2 * p.blocks),
        offered_(static_cast<W *>(p.offered) + int64_t(group) * 2 * p.blocks * p.width) {
    lanes_ = 1;
    while (lanes_ < 8 && 2 * lanes_ * columns_ <= threads) lanes_ *= 2;
  }

  /* tolerance: abstol and reltol are the caller's. */
  template <class T> __device__ void run(double abstol, double reltol) {
    if (state_.exact) return;
    if (panel_ == 0 && !(magnitude_finite<T>(state_.magnitude) &&
                         magnitude_finite<T>(state_.magnitude_of_c) && state_.magnitude > 0))
      return leave_it();
    if (!CLUSTER && p_.blocks > 1) { /* all that has come since the launch is a part of one round */
      arrivals_ = *const_cast<const volatile unsigned *>(&state_.arrivals);
      arrivals_ -= arrivals_ % static_cast<unsigned>(p_.blocks);
    }
    bqr_pivots_offer best = begin();
    double tolerance2 = state_.tolerance2;
    if (panel_ == 0) {
      const double length = sqrt(best.norm2);
      const double tolerance =
          fmax(times_power(abstol, exponent_to<T>(state_.magnitude, 0)), reltol * length);
      tolerance2 = tolerance * tolerance;
      if (block_ == 0 && thread_id() == 0) p_.states[entry_].tolerance2 = tolerance2;
    }
    /* Below this, errors of the squares of the lengths may matter; near the tolerance, too. */
    const double doubt2 = fmax(best.first2 * (p_.m + p_.n) * 0x1p-46, fmax(1.002 * tolerance2, 0x1p-900));
    for (int k = 0; k < now_; k++) {
      if (!(best.norm2 > doubt2)) return leave_it();
      best = take(k, best);
    }
    if (taken_ + now_ < p_.steps)
      pass_on();
    else if (p_.steps < p_.n)
      for (int c = thread_id(); c < mine_; c += threads)
        if (s_.left2[c] >= 0) p_.order[entry_ * p_.n + s_.places[c]] = s_.columns[c];
  }

private:
  __device__ void leave_it() const {
    if (block_ > 0 || thread_id() > 0) return;
    p_.states[entry_].exact = 1;
    p_.m_left[entry_] = p_.m;
    p_.n_left[entry_] = p_.n;
  }

  __device__ bqr_pivots_offer begin() {
    bqr_pivots_offer mine = no_offer();
    double *first2 = p_.first2 + entry_ * p_.n;
    for (int c = thread_id(); c < mine_; c += threads) {
      const int slot = first_ + c;
      const double norm2 = real_part(gram_[slot + int64_t(slot) * slots_]);
      const int column = panel_ == 0 ? slot : p_.columns[panel_ % 2][entry_ * p_.n + slot];
      s_.left2[c] = norm2 < 0 ? 0 : norm2;
      s_.columns[c] = column;
      s_.places[c] = panel_ == 0 ? slot : p_.places[panel_ % 2][entry_ * p_.n + slot];
      if (panel_ == 0) first2[column] = norm2;
      take_longer(mine, {s_.left2[c], first2[column], slot, s_.places[c]});
    }
    return longest<true>(mine, 0);
  }

  /* The longest of all threads', in all of them; before, `rows` rows of the panel are there. */
  template <bool FIRST> __device__ __forceinline__ bqr_pivots_offer longest(bqr_pivots_offer mine, int rows) {
    bqr_pivots_offer *const of_warps = s_.offers + turn_ * warps;
    mine = longest_of_lanes<FIRST>(mine);
    if (lane_id() == 0) of_warps[warp_id()] = mine;
    block_sync();
    bqr_pivots_offer best = lane_id() < warps ? of_warps[lane_id()] : no_offer();
    best = longest_of_lanes<FIRST>(best);
    const int turn = turn_;
    turn_ ^= 1;
    if (p_.blocks == 1) return best;
    if (CLUSTER) {
      bqr_pivots_offer *const of_block = s_.offers + 2 * warps + turn;
      if (thread_id() == 0) *of_block = best;
      cluster_sync();
      best = lane_id() < p_.blocks ? *cluster_shared(of_block, lane_id()) : no_offer();
      return longest_of_lanes<FIRST>(best);
    }
    bqr_pivots_offer *const offers = offers_ + turn * p_.blocks;
    if (best.norm2 >= 0)
      for (int l = thread_id(); l < rows; l += threads)
        offered_[(turn * p_.blocks + block_) * int64_t(p_.width) + l] =
            s_.panel[l * ld_ + best.slot - first_];
    if (thread_id() == 0) offers[block_] = best;
    meet();
    best = no_offer();
    for (int b = lane_id(); b < p_.blocks; b += warp_lanes) take_longer(best, offers[b]);
    return longest_of_lanes<FIRST>(best);
  }

  __device__ void meet() {
    block_sync();
    if (thread_id() == 0) {
      arrivals_ += static_cast<unsigned>(p_.blocks);
      unsigned *const arrivals = &p_.states[entry_].arrivals;
      device_fence();
      atomicAdd(arrivals, 1u);
      while (static_cast<int>(*const_cast<const volatile unsigned *>(arrivals) - arrivals_) < 0)
        __nanosleep(20);
      device_fence();
    }
    block_sync();
  }

  /* Step k of the panel: row k, and the longest column after it. */
  __device__ bqr_pivots_offer take(int k, const bqr_pivots_offer &pivot) {
    const W *of_pivot = s_.panel + (pivot.slot - first_);
    int distance = ld_;
    if (p_.blocks > 1) {
      const int owner = pivot.slot / columns_;
      const W *offered = CLUSTER ? cluster_shared(s_.panel, owner) + (pivot.slot - owner * columns_)
                                 : offered_ + ((turn_ ^ 1) * p_.blocks + owner) * int64_t(p_.width);
      for (int l = thread_id(); l < k; l += threads) s_.pivot[l] = offered[CLUSTER ? l * ld_ : l];
      of_pivot = s_.pivot;
      distance = 1;
      block_sync();
    }
    if (thread_id() == 0) s_.taken[k] = pivot.slot;
    const double scale = 1 / sqrt(pivot.norm2);
    const int place = taken_ + k, width = warp_lanes / lanes_; /* columns of a warp */
    const int part = lane_id() / width;
    bqr_pivots_offer mine = no_offer();
    for (int base = warp_id() * width; base < mine_; base += warps * width) {
      const int c = base + lane_id() % width, slot = first_ + c;
      const bool there = c < mine_ && s_.left2[c] >= 0;
      W entry = there && part == 0 ? conj(gram_[slot + int64_t(pivot.slot) * slots_]) : zero<W>();
      W sum = zero<W>();
      if (there)
#pragma unroll 8
        for (int l = part; l < k; l += lanes_)
          sum = cmadd(of_pivot[l * distance], s_.panel[l * ld_ + c], sum);
      for (int d = width; d < warp_lanes; d *= 2) sum = sum + exchange(sum, d);
      warp_sync(); /* the column's lanes have all read its length */
      if (!there || part > 0) continue;
      entry = scaled(entry - sum, scale);
      s_.panel[k * ld_ + c] = entry;
      if (slot == pivot.slot) {
        s_.left2[c] = -1;
        p_.order[entry_ * p_.n + place] = s_.columns[c];
        continue;
      }
      if (s_.places[c] == place) s_.places[c] = pivot.place;
      s_.left2[c] = fmax(s_.left2[c] - abs2(entry), 0.0);
      take_longer(mine, {s_.left2[c], 0, slot, s_.places[c]});
    }
    return longest<false>(mine, k + 1);
  }

  /* What is left, close-packed: columns, places, and the panel's entries. */
  __device__ void pass_on() const {
    const int64_t at = entry_ * p_.n;
    const int next = (panel_ + 1) % 2;
    W *panel = static_cast<W *>(p_.panel) + at * p_.width;
    for (int c = warp_id(); c < mine_; c += warps) {
      if (s_.left2[c] < 0) continue;
      int before = 0;
      for (int l = lane_id(); l < now_; l += warp_lanes) before += s_.taken[l] < first_ + c;
      const int slot = first_ + c - group_sum(before);
      for (int l = lane_id(); l < now_; l += warp_lanes)
        panel[int64_t(slot) * p_.width + l] = s_.panel[l * ld_ + c];
      if (lane_id() > 0) continue;
      p_.slots[at + slot] = first_ + c;
      p_.columns[next][at + slot] = s_.columns[c];
      p_.places[next][at + slot] = s_.places[c];
    }
  }

  const bqr_pivots &p_;
  const bqr_pivots_state state_;
  int64_t entry_;
  int block_, panel_;
  int taken_, slots_, now_;         /* columns taken before, left then, and to be taken */
  int columns_, first_, mine_, ld_; /* of a block; this block's */
  int lanes_;                       /* that share a column */
  int &turn_;                       /* which of two buffers is next: never one that a block may still read */
  unsigned arrivals_ = 0;
  block_memory<W> s_;
  const W *gram_;
  bqr_pivots_offer *offers_;
  W *offered_;
};

template <class T, bool CLUSTER>
__global__ void __launch_bounds__(threads)
    pivots_choose_kernel(const __grid_constant__ bqr_pivots p, int panel, double abstol, double reltol) {
  const int group = static_cast<int>(blockIdx.x) / p.blocks, block = static_cast<int>(blockIdx.x) % p.blocks;
  const int groups = static_cast<int>(gridDim.x) / p.blocks;
  int turn = 0;
  for (int64_t i = group; i < p.count; i += groups) {
    chooser<wide<T>, CLUSTER> c(p, i, group, block, panel, shared_memory<unsigned char>(), turn);
    c.template run<T>(abstol, reltol);
    if (CLUSTER)
      cluster_sync(); /* others may still read this one's memory */
    else
      block_sync();
  }
}

} // namespace

batchqr_status prepare_choice(batchqr_type type, const bqr_pivots *p) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const size_t smem = bqr_pivots_shared(type, p->n, p->width, p->blocks);
    return p->cluster ? prepare_kernel(pivots_choose_kernel<T, true>, smem, p->blocks)
                      : prepare_kernel(pivots_choose_kernel<T, false>, smem);
  });
}

} // namespace bqr

using namespace bqr;

size_t bqr_pivots_shared(batchqr_type type, int n, int width, int blocks) {
  return for_type(type, [&](auto tag) {
    return block_memory<wide<typename decltype(tag)::type>>::bytes(columns_of_block(n, blocks), width);
  });
}

batchqr_status bqr_pivots_choose(batchqr_type type, const bqr_args *args, const bqr_pivots *p, int panel,
                                 const bqr_device *device, batchqr_stream stream) {
  const size_t smem = bqr_pivots_shared(type, p->n, p->width, p->blocks);
  const bool together = p->blocks > 1 && !p->cluster;
  const int64_t most = together ? device->multiprocessors / p->blocks : int64_t(1) << 24;
  const int64_t groups = p->count < most ? p->count : most;
  const batchqr_status status = for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const unsigned grid = grid_for(groups * p->blocks);
    if (p->cluster)
      return launch_clusters(pivots_choose_kernel<T, true>, static_cast<unsigned>(groups), p->blocks, threads,
                             smem, stream, *p, panel, args->abstol, args->reltol);
    const auto kernel = pivots_choose_kernel<T, false>;
    return together
               ? launch_together(kernel, grid, threads, smem, stream, *p, panel, args->abstol, args->reltol)
               : launch_kernel(kernel, grid, threads, smem, stream, *p, panel, args->abstol, args->reltol);
  });
  return status || (panel + 1) * p->width >= p->steps ? status : form_complements(type, p, panel, stream);
}
