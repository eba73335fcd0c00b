/* SPDX-License-Identifier: BSD-3-Clause */
/* The first half of a merge, xLAED2: the eigenvalues of both halves are sorted, columns with next to no
 * weight stay as they are, and of two with next to equal eigenvalues a rotation makes one such.
 *
 * Rotations run along the sorted eigenvalues. Here two neighbours are first compared as they are, which all
 * threads do at once, and each run of those that are close is left to one thread. Behind a run no other
 * comparison is made than that: a pole that rotations have changed has not come nearer to the next one. */
#ifndef BQR_KERNELS_TRIDIAGONAL_DEFLATE_CUH
#define BQR_KERNELS_TRIDIAGONAL_DEFLATE_CUH

#include "merge.cuh"

namespace bqr {

/* Of columns, what of them is not zero; ROTATED: a rotation with the next one has deflated it. */
enum { MERGE_UPPER = 1, MERGE_LOWER = 2, MERGE_BOTH = 3, MERGE_ROTATED = 4 };

/* Merges the halves' eigenvalues, a thread for each. z: the last row of the upper half's vectors and the
 * first of the lower half's. of_rows: q has these alone, in rows 1 and 0. */
template <class R>
__global__ void __launch_bounds__(256)
    merge_sort_kernel(merge_tree t, merge_arrays<R> m, const R *e, merge_matrix<R> vectors) {
  constexpr R half_root = R(0.70710678118654752440);
  const int i = static_cast<int>(blockIdx.x) * num_threads() + thread_id();
  if (i >= t.rows()) return;
  const int g = t.block_of(i, t.depth);
  const merge_block b(t, g);
  const matrix_view<R> q = vectors.of(t, g);
  const bool upper = i < b.middle;
  const R x = m.d[i];
  /* Those of the other half that come before: of equal ones the upper half's. */
  int low = upper ? b.middle : b.first, high = upper ? b.end : b.middle;
  const int begin = low;
  while (low < high) {
    const int at = (low + high) / 2;
    if (upper ? m.d[at] < x : m.d[at] <= x)
      low = at + 1;
    else
      high = at;
  }
  const int place = (upper ? i : b.first + i - b.middle) + low - begin;
  R *entry = q.at(vectors.of_rows ? upper : upper ? b.middle - 1 : b.middle, i), z = half_root * *entry;
  if (vectors.of_rows) *entry = 0;
  if (!upper && e[b.middle - 1] < 0) z = -z;
  m.poles[place] = x;
  m.weights[place] = z;
  m.source[place] = i;
  m.kind[place] = upper ? MERGE_UPPER : MERGE_LOWER;
}

/* Four sets of a block's threads: how many of each come before this one, and all of them. */
struct set_ranks {
  int before[4], all[4];

  __device__ __forceinline__ set_ranks(const bool (&in)[4], uint64_t *warps) {
    const unsigned earlier = (1u << lane_id()) - 1;
    uint64_t mine = 0, sum = 0, total = 0;
#pragma unroll
    for (int s = 0; s < 4; s++) {
      const unsigned votes = __ballot_sync(full_mask, in[s]);
      before[s] = __popc(votes & earlier);
      mine |= static_cast<uint64_t>(__popc(votes)) << 16 * s;
    }
    if (lane_id() == 0) warps[warp_id()] = mine;
    block_sync();
    for (int w = 0; w < num_warps(); w++) {
      const uint64_t x = warps[w];
      if (w < warp_id()) sum += x;
      total += x;
    }
    block_sync();
#pragma unroll
    for (int s = 0; s < 4; s++) {
      before[s] += static_cast<int>(sum >> 16 * s & 0xffff);
      all[s] = static_cast<int>(total >> 16 * s & 0xffff);
    }
  }
};

template <class R> class merge_deflation {
public:
  __device__ __forceinline__ merge_deflation(const merge_block &b, const merge_arrays<R> &m, R tolerance,
                                             R rho, uint64_t *warps, int *totals)
      : b_(b), m_(m), tolerance_(tolerance), rho_(rho), warps_(warps), totals_(totals) {}

  __device__ __forceinline__ merge_counts run() {
    drop_light();
    compare();
    rotate();
    count();
    return collect();
  }

private:
  /* Columns with next to no weight; what remains, the candidates, is moved together. */
  __device__ __forceinline__ void drop_light() {
    for (int base = b_.first; base < b_.end; base += num_threads()) {
      const int j = base + thread_id();
      const bool there = j < b_.end;
      const R pole = there ? m_.poles[j] : R(0), z = there ? m_.weights[j] : R(0);
      const int source = there ? m_.source[j] : 0, kind = there ? m_.kind[j] : 0;
      const bool stays = there && rho_ * fabs(z) > tolerance_;
      const set_ranks ranks({stays, false, false, false}, warps_);
      const int at = candidates_ + ranks.before[0];
      if (stays) {
        m_.poles[b_.first + at] = pole;
        m_.weights[b_.first + at] = z;
        m_.source[b_.first + at] = source;
        m_.kind[b_.first + at] = kind;
      } else if (there) {
        drop(j - b_.first - at, pole, source);
      }
      candidates_ += ranks.all[0];
    }
    block_sync();
  }
  __device__ __forceinline__ void drop(int number, R pole, int source) const {
    const int at = b_.end - 1 - number;
    m_.value[at] = pole;
    m_.column[at] = source;
  }

  __device__ __forceinline__ bool is_close(R gap, R z, R next_z, R norm2) const {
    return gap * fabs(z * next_z) <= tolerance_ * norm2;
  }
  template <class F> __device__ __forceinline__ void for_candidates(F &&f) const {
    for (int c = b_.first + thread_id(); c < b_.first + candidates_; c += num_threads()) f(c);
  }
  __device__ __forceinline__ bool is_close(int c) const {
    if (c + 1 == b_.first + candidates_) return false;
    const R z = m_.weights[c], next_z = m_.weights[c + 1];
    return is_close(m_.poles[c + 1] - m_.poles[c], z, next_z, fused(z, z, next_z * next_z));
  }
  __device__ __forceinline__ void compare() const {
    for_candidates([&](int c) { m_.close[c] = is_close(c); });
    block_sync();
  }

  __device__ __forceinline__ void rotate() const {
    for_candidates([&](int c) {
      if (m_.close[c] && !(c > b_.first && m_.close[c - 1])) rotate_run(c);
    });
    if (thread_id() < 2) totals_[thread_id()] = 0;
    block_sync();
  }
  __device__ __forceinline__ void rotate_run(int c) const {
    R pole = m_.poles[c], z = m_.weights[c];
    int kind = m_.kind[c];
    for (; m_.close[c]; c++) {
      const R next_pole = m_.poles[c + 1], next_z = m_.weights[c + 1];
      const int next_kind = m_.kind[c + 1];
      const R norm2 = fused(z, z, next_z * next_z);
      if (is_close(next_pole - pole, z, next_z, norm2)) {
        const R inverse = R(1) / sqrt(norm2), cosine = next_z * inverse, sine = -z * inverse;
        m_.cosine[c] = cosine;
        m_.sine[c] = sine;
        m_.poles[c] = fused(pole, cosine * cosine, next_pole * (sine * sine));
        m_.kind[c] = kind | MERGE_ROTATED;
        pole = fused(pole, sine * sine, next_pole * (cosine * cosine));
        z = sqrt(norm2);
        kind |= next_kind;
      } else {
        keep(c, pole, z, kind);
        pole = next_pole;
        z = next_z;
        kind = next_kind;
      }
    }
    keep(c, pole, z, kind);
  }
  __device__ __forceinline__ void keep(int c, R pole, R z, int kind) const {
    m_.poles[c] = pole;
    m_.weights[c] = z;
    m_.kind[c] = kind;
  }

  /* Columns of the first two kinds. */
  __device__ __forceinline__ void count() const {
    int upper = 0, both = 0;
    for_candidates([&](int c) {
      upper += m_.kind[c] == MERGE_UPPER;
      both += m_.kind[c] == MERGE_BOTH;
    });
    atomicAdd(&totals_[0], upper);
    atomicAdd(&totals_[1], both);
    block_sync();
  }

  /* What stays is moved together, and ranked by kinds; chains of rotations are listed. */
  __device__ __forceinline__ merge_counts collect() const {
    const int upper = totals_[0], both = totals_[1], light = b_.end - b_.first - candidates_;
    int found[4] = {0, 0, 0, 0}; /* of the kinds 1 to 3, and chains */
    for (int base = 0; base < candidates_; base += num_threads()) {
      const int number = base + thread_id(), c = b_.first + number;
      const bool there = number < candidates_;
      const R pole = there ? m_.poles[c] : R(0), z = there ? m_.weights[c] : R(0);
      const int kind = there ? m_.kind[c] : 0, source = there ? m_.source[c] : 0;
      const bool away = (kind & MERGE_ROTATED) != 0,
                 begins = away && !(number > 0 && m_.kind[c - 1] & MERGE_ROTATED);
      const set_ranks ranks({kind == MERGE_UPPER, kind == MERGE_BOTH, kind == MERGE_LOWER, begins}, warps_);
      int before[4];
#pragma unroll
      for (int s = 0; s < 4; s++) {
        before[s] = found[s] + ranks.before[s];
        found[s] += ranks.all[s];
      }
      const int kept = before[0] + before[1] + before[2];
      if (away) {
        drop(light + number - kept, pole, source);
      } else if (there) {
        const int rank = kind == MERGE_UPPER  ? before[0]
                         : kind == MERGE_BOTH ? upper + before[1]
                                              : upper + both + before[2];
        m_.poles[b_.first + kept] = pole;
        m_.weights[b_.first + kept] = z;
        m_.rank[b_.first + kept] = rank;
        m_.column[b_.first + rank] = source;
      }
      if (begins) m_.chains[b_.first + before[3]] = c;
    }
    return {found[0] + found[1] + found[2], upper + both, upper, found[3]};
  }

  const merge_block &b_;
  const merge_arrays<R> &m_;
  R tolerance_, rho_;
  uint64_t *warps_;
  int *totals_, candidates_ = 0;
};

/* A block of threads for each merge. */
template <class R>
__global__ void __launch_bounds__(1024, 1)
    merge_deflate_kernel(merge_tree t, const __grid_constant__ merge_arrays<R> m, const R *e) {
  __shared__ uint64_t warps[max_warps];
  __shared__ int totals[2];
  const int g = static_cast<int>(blockIdx.x);
  const merge_block b(t, g);
  const merge_counts c =
      merge_deflation<R>(b, m, m.tolerance(g >> t.depth), 2 * fabs(e[b.middle - 1]), warps, totals).run();
  if (thread_id() == 0) m.counts[g] = c;
}

/* The rotations' columns. Blocks share rows and chains of the merge blockIdx.z. */
template <class R>
__global__ void __launch_bounds__(256)
    merge_rotate_kernel(merge_tree t, const __grid_constant__ merge_arrays<R> m, merge_matrix<R> vectors) {
  const int g = static_cast<int>(blockIdx.z);
  const merge_block b(t, g);
  const matrix_view<R> q = vectors.of(t, g);
  const int row =
      (vectors.of_rows ? 0 : b.first) + static_cast<int>(blockIdx.x) * num_threads() + thread_id();
  if (row >= (vectors.of_rows ? 2 : b.end)) return;
  const int chains = m.counts[g].chains;
  for (int h = static_cast<int>(blockIdx.y); h < chains; h += static_cast<int>(gridDim.y)) {
    int c = m.chains[b.first + h];
    R *x = q.at(row, m.source[c]), moving = *x;
    for (; m.kind[c] & MERGE_ROTATED; c++) {
      R *y = q.at(row, m.source[c + 1]);
      const R other = *y, cosine = m.cosine[c], sine = m.sine[c];
      *x = fused(cosine, moving, sine * other);
      moving = fused(cosine, other, -sine * moving);
      x = y;
    }
    *x = moving;
  }
}

} // namespace bqr

#endif
