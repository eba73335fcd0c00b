/* SPDX-License-Identifier: BSD-3-Clause */
/* (A D)^H A D and (A D)^H B in double precision, by matrix units. A block takes a chunk of rows of two panels
 * of columns, 32 rows at a time, and leaves its part of the sums, which a second kernel adds up. Of a panel
 * with itself the jobs are 10 times 32 x 32 on and above the diagonal, and A^H B. */
#include "common/matrix/view.cuh"
#include "gram_job.cuh"
#include "tall.cuh"

namespace {
using namespace bqr;

constexpr int reduce_threads = 256, own_jobs = 10, quarters = job_elements / reduce_threads;

/* Warps have a job each. OWN: of a panel with itself. */
template <bool OWN> struct gram_form {
  static constexpr int warps = OWN ? 12 : 16, threads = warps * warp_lanes;
};

/* Two slabs, which take turns. OWN: right is B's. */
template <bool OWN> struct gram_memory {
  double left[2][gram_side * slab_ld], right[2][(OWN ? right_side : gram_side) * slab_ld];
};

/* The place of a panel's job in it: below, jobs are counted along the rows of what is on and above the
 * diagonal. */
__device__ __forceinline__ void own_place(int job, int &row, int &col) {
  for (row = 0; job >= 4 - row; row++) job -= 4 - row;
  col = row + job;
}

/* The job of a warp, of 12 of them, of a panel with itself; own_jobs is A^H B, half of which the last two
 * have each. They are dealt such that a multiprocessor's four parts have as much to do: jobs on the diagonal
 * take three quarters of the time of others. */
__device__ __forceinline__ int own_job(int warp) {
  return warp < 3    ? warp + 1
         : warp == 3 ? 6
         : warp == 4 ? 0
         : warp == 5 ? 7
         : warp == 6 ? 5
         : warp == 7 ? 8
         : warp == 8 ? 4
         : warp == 9 ? 9
                     : own_jobs;
}
constexpr int right_rows = gram_side / 2; /* of A^H B, of a warp */

/* Elements of `cols` columns and 32 rows on their way from memory: of each thread, of all WARPS' threads. */
template <class T, int WARPS> struct held_slab {
  static constexpr int threads = WARPS * warp_lanes, each = (gram_side * slab - 1) / threads + 1;
  T x[each];
  __device__ __forceinline__ void read(const T *a, int64_t ld, int cols, int first, int end) {
#pragma unroll
    for (int e = 0; e < each; e++) {
      const int i = e * threads + thread_id(), row = first + i % slab, col = i / slab;
      x[e] = row < end && col < cols ? a[row + col * ld] : T(0);
    }
  }
  __device__ __forceinline__ void write(double *to) const {
#pragma unroll
    for (int e = 0; e < each; e++) {
      const int i = e * threads + thread_id();
      if (i < gram_side * slab) to[i / slab * slab_ld + i % slab] = static_cast<double>(x[e]);
    }
  }
};

template <class T, bool OWN>
__global__ void __launch_bounds__(gram_form<OWN>::threads, 1)
    gram_kernel(const __grid_constant__ tall_task<T> s) {
  constexpr int warps = gram_form<OWN>::warps;
  const int job = OWN ? own_job(warp_id()) : warp_id(), half = warp_id() % 2;
  const bool of_b = OWN && job == own_jobs;
  auto &memory = *shared_memory<gram_memory<OWN>>();
  const int others = s.panels * (s.panels - 1) / 2;
  const int pair = static_cast<int>(blockIdx.x) % (OWN ? s.panels : others),
            number = static_cast<int>(blockIdx.x) / (OWN ? s.panels : others);
  int left = pair, right = pair;
  if (!OWN) { /* pairs left < right, in the order of `right` */
    for (right = 1, left = pair; left >= right; right++) left -= right;
  }
  const T *a = s.a + left * static_cast<int64_t>(gram_side) * s.lda,
          *b = s.a + right * static_cast<int64_t>(gram_side) * s.lda;
  const int a_cols = least(gram_side, s.n - left * gram_side),
            b_cols = least(gram_side, s.n - right * gram_side);
  const int first = number * slab,
            step = s.chunks * slab; /* blocks side by side read what lies side by side */
  held_slab<T, warps> of_a, of_b_panel;
  T of_right = 0; /* OWN: of B, a thread has a row and column */
  auto read = [&](int row) {
    of_a.read(a, s.lda, a_cols, row, s.m);
    if constexpr (OWN) {
      const int i = row + thread_id() % slab, c = thread_id() / slab;
      of_right = i < s.m && c < s.k ? s.b[i + c * s.ldb] : T(0);
    } else {
      of_b_panel.read(b, s.lda, b_cols, row, s.m);
    }
  };
  int row = job / 4, col = job % 4;
  if (OWN) own_place(least(job, own_jobs - 1), row, col);
  auto write = [&](int slab_number) {
    of_a.write(memory.left[slab_number]);
    if constexpr (!OWN)
      of_b_panel.write(memory.right[slab_number]);
    else if (thread_id() < right_side * slab)
      memory.right[slab_number][thread_id() / slab * slab_ld + thread_id() % slab] =
          static_cast<double>(of_right);
  };
  double c[8][4] = {}; /* of tiles of 16 x 8: 2 x 4 of them, or 4 x 1 of A^H B */
  read(first);
  write(0);
  read(first + step); /* zeros behind the last row */
  for (int at = first, turn = 0; at < s.m; at += step, turn ^= 1) {
    block_sync(); /* all have written this slab, and are done with the other one */
    if (s.m - at > step) write(turn ^ 1);
    if (s.m - at > 2 * step) read(at + 2 * step);
    if (of_b)
      add_right<right_rows, 1>(c, memory.left[turn] + half * right_rows * slab_ld, memory.right[turn]);
    else if (row * gram_job < a_cols && col * gram_job < b_cols)
      add_job(c, memory.left[turn] + row * gram_job * slab_ld,
              (OWN ? &memory.left[turn][0] : &memory.right[turn][0]) + col * gram_job * slab_ld,
              OWN && row == col);
  }
  const int64_t place = static_cast<int64_t>(number) * pairs_of(s.panels) + (OWN ? pair : s.panels + pair);
  double *const to = s.parts + place * part_elements +
                     (of_b ? gram_jobs * job_elements + half * right_rows * right_side : job * job_elements);
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      if (!of_b || i < right_rows / 16) to[(i * 4 + e) * warp_lanes + lane_id()] = c[i][e];
}

/* Row and column of element e of a lane in a tile of 16 x 8. */
__device__ __forceinline__ int tile_row(int lane, int e) { return lane / 4 + e / 2 * 8; }
__device__ __forceinline__ int tile_col(int lane, int e) { return lane % 4 * 2 + e % 2; }

/* A block for 256 elements of a job or of A^H B of a pair of panels. */
template <class T>
__global__ void __launch_bounds__(reduce_threads) reduce_kernel(const __grid_constant__ tall_task<T> s) {
  const int quarter = static_cast<int>(blockIdx.x) % quarters,
            job = static_cast<int>(blockIdx.x) / quarters % (gram_jobs + 1),
            pair = static_cast<int>(blockIdx.x) / quarters / (gram_jobs + 1);
  const bool own = pair < s.panels, of_b = job == gram_jobs;
  if ((own && job >= own_jobs && !of_b) || (!own && of_b)) return;
  int left = pair, right = pair, row = job / 4, col = job % 4;
  if (own)
    own_place(least(job, own_jobs - 1), row, col);
  else
    for (right = 1, left = pair - s.panels; left >= right; right++) left -= right;
  const double *from = s.parts + pair * part_elements + job * job_elements;
  const int64_t step = pairs_of(s.panels) * part_elements;
  const int i = quarter * reduce_threads + thread_id();
  double sum = 0;
#pragma unroll 8
  for (int chunk = 0; chunk < s.chunks; chunk++) sum += from[chunk * step + i];
  const int lane = i % warp_lanes, e = i / warp_lanes % 4, tile = i / (4 * warp_lanes);
  if (of_b) {
    const int r = left * gram_side + 16 * tile + tile_row(lane, e), c = tile_col(lane, e);
    if (r < s.n && c < s.k) s.right[r + c * s.n] = sum;
  } else {
    const int r = left * gram_side + row * gram_job + tile / 4 * 16 + tile_row(lane, e),
              c = right * gram_side + col * gram_job + tile % 4 * 8 + tile_col(lane, e);
    if (c < s.n && r <= c) s.gram[r + static_cast<int64_t>(c) * refine_block] = sum;
  }
}
} // namespace

extern "C" {

batchqr_status bqr_tall_gram(const bqr_refine *r, batchqr_stream stream) {
  return for_real_type(r->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto s = tall_task_of<T>(*r);
    const unsigned panels = static_cast<unsigned>(s.panels), others = panels * (panels - 1) / 2,
                   chunks = static_cast<unsigned>(s.chunks);
    batchqr_status status = launch_kernel(gram_kernel<T, true>, chunks * panels, gram_form<true>::threads,
                                          sizeof(gram_memory<true>), stream, s);
    if (!status && others > 0)
      status = launch_kernel(gram_kernel<T, false>, chunks * others, gram_form<false>::threads,
                             sizeof(gram_memory<false>), stream, s);
    return status ? status
                  : launch_kernel(reduce_kernel<T>, (panels + others) * (gram_jobs + 1) * quarters,
                                  reduce_threads, 0, stream, s);
  });
}

double *bqr_tall_gram_of(const bqr_refine *r) {
  return for_real_type(r->type,
                       [&](auto tag) { return tall_task_of<typename decltype(tag)::type>(*r).gram; });
}

batchqr_status bqr_tall_gram_prepare(batchqr_type type) {
  return for_real_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(gram_kernel<T, true>, sizeof(gram_memory<true>));
    if (!status) status = prepare_kernel(gram_kernel<T, false>, sizeof(gram_memory<false>));
    return status ? status : prepare_kernel(reduce_kernel<T>, 0);
  });
}
}
