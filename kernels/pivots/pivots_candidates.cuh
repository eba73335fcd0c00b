/* SPDX-License-Identifier: BSD-3-Clause */
/* Several pivots at a time. Columns only get shorter: of some columns, the candidates, the longest one is the
 * next pivot of all as long as it is not shorter than the longest of the others was when the candidates were
 * found. One warp goes on with them alone until then, by their products with one another. */
#ifndef BQR_KERNELS_PIVOTS_PIVOTS_CANDIDATES_CUH
#define BQR_KERNELS_PIVOTS_PIVOTS_CANDIDATES_CUH

#include "pivots.h"
#include "common/panel/longest.cuh"
#include "common/simt/block.cuh"

namespace bqr {

constexpr int choosing_threads = 256, choosing_warps = choosing_threads / warp_lanes;
constexpr int most_candidates = warp_lanes; /* a lane has one */

/* The longer one; of those that are as long, the one that comes first. */
__device__ __forceinline__ bool is_ahead(const bqr_pivots_offer &a, const bqr_pivots_offer &b) {
  return a.norm2 > b.norm2 || (a.norm2 == b.norm2 && a.place < b.place);
}
__device__ __forceinline__ void take_longer(bqr_pivots_offer &best, const bqr_pivots_offer &other) {
  if (is_ahead(other, best)) best = other;
}
__device__ __forceinline__ bqr_pivots_offer no_offer() { return {-1, 0, 0, 0}; }

/* Which lane has the longest column, of those that are as long the first one; any if norms are negative. */
__device__ __forceinline__ int lane_of_longest(double norm2, int place) {
  unsigned votes = longest_lanes<warp_lanes>(norm2);
  if (several(votes)) {
    const bool mine = votes >> lane_id() & 1;
    const uint32_t low = mine ? low_bits(norm2) : 0, most = group_max(low);
    votes = member_votes<warp_lanes>(mine && low == most);
  }
  if (several(votes)) {
    const bool mine = votes >> lane_id() & 1;
    const uint32_t key = mine ? ~static_cast<uint32_t>(place) : 0, most = group_max(key);
    votes = member_votes<warp_lanes>(mine && key == most);
  }
  return first_of(votes);
}
__device__ __forceinline__ bqr_pivots_offer longest_of_lanes(const bqr_pivots_offer &x) {
  const int lane = lane_of_longest(x.norm2, x.place);
  return {broadcast(x.norm2, lane), broadcast(x.slot, lane), broadcast(x.place, lane),
          broadcast(x.source, lane)};
}

/* How far a column is from the longest: four bins for each power of two of 1 - norm2 / longest2. */
constexpr int num_bins = 2 * warp_lanes;
__device__ __forceinline__ int bin_of(double norm2, double inverse) {
  constexpr int last = 127 << 2; /* of a difference of 1 */
  const float apart = 1.0f - static_cast<float>(norm2 * inverse);
  const int quarters = static_cast<int>(__float_as_uint(apart) >> 21);
  if (!(apart > 0)) return 0;
  const int bin = quarters - last + num_bins - 1;
  return bin < 0 ? 0 : bin < num_bins ? bin : num_bins - 1;
}

/* Shared memory. */
struct selection_memory {
  int bins[num_bins]; /* how many columns they have */
  int count;          /* of what has been selected */
  int counts[choosing_warps];
  bqr_pivots_offer rest[choosing_warps]; /* the longest of those that are not, by warps */

  /* By one warp. */
  __device__ __forceinline__ void clear() {
    for (int i = lane_id(); i < num_bins; i += warp_lanes) bins[i] = 0;
    if (lane_id() == 0) count = 0;
  }
  __device__ __forceinline__ void add(double norm2, double inverse) {
    if (norm2 >= 0) atomicAdd(&bins[bin_of(norm2, inverse)], 1);
  }
  /* By a whole warp, once all have selected. */
  __device__ __forceinline__ bqr_pivots_offer longest_rest() const {
    return longest_of_lanes(lane_id() < choosing_warps ? rest[lane_id()] : no_offer());
  }
};

/* Selects up to `limit` of `items` columns get(i), whose bins have been added up before a barrier: the
 * longest is one of them, and others are nearly as long. Their order in the list is any, but which they are
 * is always the same. rest: what else, of this thread's, is not selected. A barrier is to follow. */
template <class GET>
__device__ __forceinline__ void select(selection_memory &s, int items, int limit, double inverse, GET &&get,
                                       bqr_pivots_offer rest, bqr_pivots_offer *list) {
  const int even = s.bins[2 * lane_id()], odd = s.bins[2 * lane_id() + 1];
  int through_odd = even + odd;
#pragma unroll
  for (int d = 1; d < warp_lanes; d *= 2) {
    const int before = broadcast(through_odd, lane_id() < d ? lane_id() : lane_id() - d);
    if (lane_id() >= d) through_odd += before;
  }
  auto bins_with = [&](auto &&f) {
    return __popc(member_votes<warp_lanes>(f(through_odd - odd))) +
           __popc(member_votes<warp_lanes>(f(through_odd)));
  };
  const int fit = bins_with([&](int through) { return through <= limit; }),
            empty = bins_with([&](int through) { return through == 0; });
  const unsigned before_me = (1u << lane_id()) - 1u;
  auto for_items = [&](auto &&f) {
    for (int base = 0; base < items; base += choosing_threads) {
      const int i = base + thread_id();
      f(i < items ? get(i) : no_offer());
    }
  };
  if (empty < fit || empty == num_bins) {
    for_items([&](const bqr_pivots_offer &x) {
      const bool in = x.norm2 >= 0 && bin_of(x.norm2, inverse) < fit;
      const unsigned votes = member_votes<warp_lanes>(in);
      int at = 0;
      if (lane_id() == 0 && votes) at = atomicAdd(&s.count, __popc(votes));
      at = broadcast(at, 0) + __popc(votes & before_me);
      if (in)
        list[at] = x;
      else
        take_longer(rest, x);
    });
  } else { /* too many in the first bin that has any: the longest, and the first others there */
    bqr_pivots_offer best = no_offer();
    for_items([&](const bqr_pivots_offer &x) { take_longer(best, x); });
    best = longest_of_lanes(best);
    if (lane_id() == 0) s.rest[warp_id()] = best;
    block_sync();
    best = s.longest_rest();
    auto is_in = [&](const bqr_pivots_offer &x) {
      return x.norm2 >= 0 && x.slot != best.slot && bin_of(x.norm2, inverse) <= empty;
    };
    int count = 0;
    for_items([&](const bqr_pivots_offer &x) { count += __popc(member_votes<warp_lanes>(is_in(x))); });
    if (lane_id() == 0) s.counts[warp_id()] = count;
    block_sync();
    int at = 1;
    for (int w = 0; w < choosing_warps; w++) {
      if (w < warp_id()) at += s.counts[w];
      count = w > 0 ? count + s.counts[w] : s.counts[w];
    }
    if (thread_id() == 0) s.count = count + 1 < limit ? count + 1 : limit;
    for_items([&](const bqr_pivots_offer &x) {
      const bool in = is_in(x);
      const unsigned votes = member_votes<warp_lanes>(in);
      const int here = at + __popc(votes & before_me);
      if (x.norm2 >= 0 && x.slot == best.slot)
        list[0] = x;
      else if (in && here < limit)
        list[here] = x;
      else
        take_longer(rest, x);
      at += __popc(votes);
    });
  }
  rest = longest_of_lanes(rest);
  if (lane_id() == 0) s.rest[warp_id()] = rest;
}

/* Shared memory: what one warp has chosen. */
constexpr int most_chosen = 8;
template <class W> struct chosen_columns {
  alignas(16) W factor[most_chosen][most_chosen]; /* of each, its entries in the rows of those before it */
  double scales[most_chosen];                     /* 1 / their lengths */
  int slots[most_chosen], places[most_chosen];    /* before they were taken */
  int candidates[most_chosen];                    /* which they are of these */
  int count;
  double inverse; /* of at least the longest squared norm that is left */
};

/* Where the product of candidates i and j is, of which one triangle is kept. */
__device__ __forceinline__ int product_place(int i, int j) {
  const int high = i > j ? i : j, low = i > j ? j : i;
  return high * (high + 1) / 2 + low;
}
constexpr int num_products = most_candidates * (most_candidates + 1) / 2;

/* By one warp: goes on with the candidates as far as is sure, at most `most` steps, of which the first takes
 * a column to `place`. A lane has its candidate's entries in the new rows. */
template <class W>
__device__ __forceinline__ void choose(const bqr_pivots_offer *list, int there, const W *products,
                                       const bqr_pivots_offer &rest, int place, int most, double doubt2,
                                       chosen_columns<W> &chosen) {
  const int mine = lane_id();
  bqr_pivots_offer x = mine < there ? list[mine] : no_offer();
  W own[most_chosen];
  auto finish = [&](int count, double longest2) {
    if (mine > 0) return;
    chosen.count = count;
    chosen.inverse = 1 / fmax(longest2, rest.norm2);
  };
  bool sure = true;
  static_for<most_chosen>([&](auto number) {
    constexpr int step = decltype(number)::value;
    if (!sure) return;
    const int lane = lane_of_longest(x.norm2, x.place);
    const bqr_pivots_offer best = {broadcast(x.norm2, lane), broadcast(x.slot, lane),
                                   broadcast(x.place, lane), 0};
    sure = step < most && best.norm2 > doubt2 && is_ahead(best, rest);
    if (!sure) return finish(step, best.norm2);
    W entry = products[product_place(lane, mine)], sum = zero<W>();
    if (mine > lane) entry = conj(entry);
    const double scale = fast_rsqrt(best.norm2);
#pragma unroll
    for (int i = 0; i < step; i++) sum = cmadd(broadcast(own[i], lane), own[i], sum);
    own[step] = scaled(entry - sum, scale);
    if (mine == lane) {
#pragma unroll
      for (int i = 0; i < step; i++) chosen.factor[step][i] = own[i];
      chosen.scales[step] = scale;
      chosen.slots[step] = best.slot;
      chosen.places[step] = best.place;
      chosen.candidates[step] = lane;
      x.norm2 = -1;
    } else if (x.norm2 >= 0) {
      x.norm2 = fmax(x.norm2 - abs2(own[step]), 0.0);
      if (x.place == place + step) x.place = best.place;
    }
  });
  if (sure) finish(most_chosen, broadcast(x.norm2, lane_of_longest(x.norm2, x.place)));
}

} // namespace bqr

#endif
