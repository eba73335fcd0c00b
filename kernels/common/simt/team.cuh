/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: the P warps of each of B blocks of a cluster that work on one member, and sums over them. */
#ifndef BQR_KERNELS_COMMON_SIMT_TEAM_CUH
#define BQR_KERNELS_COMMON_SIMT_TEAM_CUH

#include "block.cuh"
#include "fragment.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"

namespace bqr {

/* Values of T for each lane are summed over all warps in a fixed order, up to AT_ONCE of them at once, more
 * in turns. */
template <class T, int P, int B, int AT_ONCE = 4> class team {
  static constexpr int most = AT_ONCE * warp_lanes;
  /* A thread for each value adds them up for all; few warps read everything themselves. */
  static constexpr bool relayed = B > 1 || P > 4;
  static_assert(!relayed || P >= 4, "a thread for each value");

public:
  static constexpr int warps = P * B;

  struct storage {
    alignas(16) T part[warps == 1 || relayed ? 1 : 2][P][warps == 1 ? 1 : most]; /* used in turn */
    alignas(16) T total[relayed ? most : 1];
    T inbox[B > 1 ? 2 : 1][B][B > 1 ? most : 1]; /* of every block, in turn */
    bool votes[2][B];
  };

  __device__ __forceinline__ explicit team(storage &s) : s_(s), block_(B > 1 ? cluster_rank() : 0) {}

  __device__ __forceinline__ int block() const { return block_; }
  /* The number of this warp in the team. */
  __device__ __forceinline__ int warp() const { return P * block_ + (P == 1 ? 0 : broadcast(warp_id(), 0)); }

  __device__ __forceinline__ void sync() const {
    if constexpr (warps == 1)
      warp_sync();
    else if constexpr (B == 1)
      block_sync();
    else
      cluster_sync_unaligned();
  }
  __device__ __forceinline__ void sync_block() const {
    if constexpr (P == 1)
      warp_sync();
    else
      block_sync();
  }

  /* Whether any thread of the team says so. */
  __device__ __forceinline__ bool any(bool v) {
    if constexpr (P == 1)
      v = group_any(v);
    else
      v = block_any(v);
    if constexpr (B > 1) {
      const int turn = next_turn();
      if (thread_id() < B) cluster_shared(s_.votes[turn], thread_id())[block_] = v;
      cluster_sync_unaligned();
      for (int b = 0; b < B; b++) v |= s_.votes[turn][b];
    }
    return v;
  }

  /* v[i] := the sum of v[i] over the warps, for each lane. TURNED: v[2 j + s] of lane (g, q) is entry (2 q +
   * s, g) of a matrix of 8 x 8, and was entry (g, 2 q + s). */
  template <bool TURNED = false, int K> __device__ __forceinline__ void sum(T (&v)[K]) {
    static_assert(!TURNED || warps > 1, "turned in shared memory");
    if constexpr (warps == 1) return;
    if constexpr (K * warp_lanes > most) {
      T half[2][K / 2];
#pragma unroll
      for (int i = 0; i < K; i++) half[2 * i / K][i % (K / 2)] = v[i];
      sum<TURNED>(half[0]);
      sum<TURNED>(half[1]);
#pragma unroll
      for (int i = 0; i < K; i++) v[i] = half[2 * i / K][i % (K / 2)];
    } else if constexpr (!relayed) {
      T(*part)[warps == 1 ? 1 : most] = s_.part[next_turn()];
      write<TURNED>(part[warp_id()], v);
      block_sync();
      read<TURNED>(v, part[0]);
#pragma unroll
      for (int p = 1; p < P; p++) {
        T other[K];
        read<TURNED>(other, part[p]);
#pragma unroll
        for (int i = 0; i < K; i++) v[i] = v[i] + other[i];
      }
    } else {
      const int i = thread_id();
      write<TURNED>(s_.part[0][warp_id()], v);
      block_sync();
      T total = zero<T>();
      if (i < K * warp_lanes) {
        total = s_.part[0][0][i];
#pragma unroll
        for (int p = 1; p < P; p++) total = total + s_.part[0][p][i];
      }
      if constexpr (B > 1) {
        T(*inbox)[most] = s_.inbox[next_turn()];
        if (i < K * warp_lanes) {
#pragma unroll
          for (int b = 0; b < B; b++) *cluster_shared(&inbox[block_][i], b) = total;
        }
        cluster_sync_unaligned();
        if (i < K * warp_lanes) {
          total = inbox[0][i];
#pragma unroll
          for (int b = 1; b < B; b++) total = total + inbox[b][i];
        }
      }
      if (i < K * warp_lanes) s_.total[i] = total;
      block_sync();
      read<TURNED>(v, s_.total);
    }
  }

  /* sum() in parts, of one block's warps: each offers its values, up to twice AT_ONCE; behind a barrier, any
   * may collect those from number i on; behind another one, others may be offered, or summed up. */
  template <bool TURNED = false, int K> __device__ __forceinline__ void offer(const T (&v)[K]) const {
    static_assert(B == 1 && warps > 1 && K * warp_lanes <= (relayed ? 1 : 2) * most, "there is room");
    write<TURNED>(&s_.part[0][0][0] + warp_id() * (K * warp_lanes), v);
  }
  template <bool TURNED = false, int K> __device__ __forceinline__ void collect(T (&v)[2], int i) const {
    const T *from = &s_.part[0][0][0] + i * warp_lanes;
    read<TURNED>(v, from);
#pragma unroll
    for (int p = 1; p < P; p++) {
      T other[2];
      read<TURNED>(other, from + p * (K * warp_lanes));
#pragma unroll
      for (int e = 0; e < 2; e++) v[e] = v[e] + other[e];
    }
  }

private:
  /* Value i of a lane, free of bank conflicts: units of two, so that accesses are wide, or entries of tiles.
   */
  template <bool TURNED, int K> __device__ __forceinline__ static void write(T *to, const T (&v)[K]) {
    const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
    for (int i = 0; i < K; i += 2)
      if constexpr (TURNED) {
#pragma unroll
        for (int s = 0; s < 2; s++) to[i * warp_lanes + tile_place(g, 2 * q + s)] = v[i + s];
      } else {
        write_two(to + i * warp_lanes + 2 * lane_id(), {v[i], v[i + 1]});
      }
  }
  template <bool TURNED, int K> __device__ __forceinline__ static void read(T (&v)[K], const T *from) {
    const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
    for (int i = 0; i < K; i += 2) {
      T pair[2];
      if constexpr (TURNED) {
#pragma unroll
        for (int s = 0; s < 2; s++) pair[s] = from[i * warp_lanes + tile_place(2 * q + s, g)];
      } else {
        read_two(pair, from + i * warp_lanes + 2 * lane_id());
      }
      v[i] = pair[0];
      v[i + 1] = pair[1];
    }
  }
  __device__ __forceinline__ int next_turn() { return turn_ ^= 1; }

  storage &s_;
  int block_, turn_ = 0;
};

} // namespace bqr

#endif
