/* SPDX-License-Identifier: BSD-3-Clause */
/* See thin_gemm.h. A block makes 128 x 256 of the sums of a part of k, at most `most_part` long, as the units
 * cut off what they add up; a second kernel adds the parts. Of its three groups of four warps one fetches, 32
 * of k at a time: of a single precision numbers, of r tiles of multiply.cuh, for the two blocks of a cluster
 * together. The others have 64 rows each: they split a's numbers while the units multiply those before. */
#include "convert.cuh"
#include "gemm.h"
#include "thin_gemm.h"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/cvt.cuh"
#include "common/matrix/view.cuh"
#include "common/simt/launch_cluster.cuh"

namespace bqr {
namespace {

constexpr int step_k = 32, most_part = 4096, a_bytes = tile_rows * step_k * 4,
              thin_slot = a_bytes + 2 * tile_bytes, thin_slots = 4,
              thin_smem = thin_slots * thin_slot + 1024 + 2 * thin_slots * 8;
constexpr int add_threads = 256;

struct thin_task {
  const float *a;
  int64_t lda;
  int m, k;             /* of op(a) */
  int pairs, col_tiles; /* of 2 x 128 rows of op(a), of 256 columns of r */
  int steps;            /* of k */
  int parts, part_steps;
  const char *r; /* tiles */
  float *sums;   /* of each part `col_tiles` times 256 columns of `pairs` times 256 rows */
  const double *scales;

  BQR_INLINE int units() const { return pairs * col_tiles * parts; }
  BQR_INLINE int64_t rows() const { return static_cast<int64_t>(pairs) * 2 * tile_rows; }
};

/* Number i, of a cluster: those that run at the same time have the same part of r. */
struct thin_unit {
  int pair, col_tile, part, first, steps;
  __device__ __forceinline__ thin_unit(const thin_task &s, int i)
      : pair(i % s.pairs), col_tile(i / s.pairs % s.col_tiles), part(i / (s.pairs * s.col_tiles)),
        first(part * s.part_steps), steps(least(s.steps - first, s.part_steps)) {}
};

/* What brings a's largest entry to [2^14, 2^15): the member's scale, then another one. */
struct thin_scale {
  float first, second, inverse;
  __device__ __forceinline__ explicit thin_scale(const double *scales) {
    const auto largest = *reinterpret_cast<const uint32_t *>(scales + 1);
    const bool finite = magnitude_finite<float>(largest);
    first = static_cast<float>(scales[0]);
    const uint32_t u = magnitude(__uint_as_float(finite ? largest : 0) * first);
    const int e = least(14 + 127 - static_cast<int>(u >> 23), 126);
    second = exponent_scale<float>(e);
    inverse = finite ? exponent_scale<float>(-e) : NAN;
  }
};

/* Where 4 numbers of a lie in a slot. Of a^T a row has 8 chunks of 4 numbers of k, else each k has 32 of
 * rows; their order is such that a warp reads its numbers from different banks. */
template <bool ADJOINT> BQR_INLINE int chunk_place(int outer, int chunk) {
  const int bytes = ADJOINT ? step_k * 4 : tile_rows * 4;
  return outer * bytes + (chunk ^ 2 * (ADJOINT ? outer % 4 : outer / 2 % 4)) * chunk_bytes;
}

/* By all threads of a group: starts copying what there is of step k of a. */
template <bool ADJOINT>
__device__ __forceinline__ void fetch_a(const thin_task &s, char *to, int row, int k) {
  constexpr int chunks = ADJOINT ? step_k / 4 : tile_rows / 4; /* of consecutive numbers */
  const int contiguous = ADJOINT ? s.k - k : s.m - row, others = ADJOINT ? s.m - row : s.k - k;
  const float *from = s.a + (ADJOINT ? k + row * s.lda : row + k * s.lda);
#pragma unroll
  for (int i = 0; i < a_bytes / chunk_bytes / group_threads; i++) {
    const int id = i * group_threads + thread_id(), outer = id / chunks, chunk = id % chunks;
    const int count = outer < others ? least(largest(contiguous - 4 * chunk, 0), 4) : 0;
    const float *x = count > 0 ? from + outer * s.lda + 4 * chunk : s.a;
    copy_async_part<16, ADJOINT>(to + chunk_place<ADJOINT>(outer, chunk), x, 4 * count);
  }
}

/* A thread's numbers of a step, see wgmma(). */
struct thin_split {
  uint32_t hi[2][4], lo[2][4];

  template <bool ADJOINT>
  __device__ __forceinline__ void load(const char *slot, int row, const thin_scale &scale) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const int half = i / 4, at = i % 4, k = 16 * half + at / 2 * 8 + lane_id() % 4 * 2,
                y = row + at % 2 * 8;
      float v[2];
      if (ADJOINT) {
        const float2 both = *reinterpret_cast<const float2 *>(slot + chunk_place<true>(y, k / 4) + k % 4 * 4);
        v[0] = both.x;
        v[1] = both.y;
      } else {
        v[0] = *reinterpret_cast<const float *>(slot + chunk_place<false>(k, y / 4) + y % 4 * 4);
        v[1] = *reinterpret_cast<const float *>(slot + chunk_place<false>(k + 1, y / 4) + y % 4 * 4);
      }
      v[0] = v[0] * scale.first * scale.second;
      v[1] = v[1] * scale.first * scale.second;
      float back[2];
      hi[half][at] = rounded_to_fp16(v[0], v[1]);
      unpack_fp16(hi[half][at], back[0], back[1]);
      lo[half][at] = rounded_to_fp16(v[0] - back[0], v[1] - back[1]);
    }
  }

  __device__ __forceinline__ void multiply(float (&c)[wgmma_sums], uint64_t r) const {
#pragma unroll
    for (int i = 0; i < 2; i++) wgmma(c, hi[i], r + wgmma_steps(i));
#pragma unroll
    for (int i = 0; i < 2; i++) wgmma(c, hi[i], r + wgmma_steps(2 + i));
#pragma unroll
    for (int i = 0; i < 2; i++) wgmma(c, lo[i], r + wgmma_steps(i));
  }
};

template <bool ADJOINT> class thin_pipeline {
public:
  __device__ __forceinline__ thin_pipeline(char *smem, const thin_task &s) : s_(s) {
    slots_ = smem + (-static_cast<int>(shared_address(smem)) & 1023);
    full_ = reinterpret_cast<phase_barrier *>(slots_ + thin_slots * thin_slot);
    empty_ = full_ + thin_slots;
    if (thread_id() == 0) {
      for (int i = 0; i < thin_slots; i++) {
        full_[i].init(1 + group_threads);
        empty_[i].init(cluster_blocks * consumer_groups * group_threads / warp_lanes);
      }
      mbarrier_init_fence();
    }
    cluster_sync();
  }

  __device__ __forceinline__ int first_unit() const { return static_cast<int>(blockIdx.x) / cluster_blocks; }
  __device__ __forceinline__ int unit_step() const { return static_cast<int>(gridDim.x) / cluster_blocks; }
  __device__ __forceinline__ int row_of(const thin_unit &unit) const {
    return (unit.pair * cluster_blocks + cluster_rank()) * tile_rows;
  }

  /* By a group: all that this block multiplies, and r's first half or second for both blocks. */
  __device__ __forceinline__ void fetch() {
    const int rank = cluster_rank();
    pipeline_state<thin_slots> at;
    for (int i = first_unit(); i < s_.units(); i += unit_step()) {
      const thin_unit unit(s_, i);
      const char *r =
          s_.r + ((static_cast<int64_t>(unit.col_tile) * 2 + rank) * s_.steps + unit.first) * tile_bytes;
      for (int k = 0; k < unit.steps; k++) {
        char *to = slots_ + at.place * thin_slot;
        phase_barrier &full = full_[at.place];
        empty_[at.place].wait(at.parity ^ 1);
        if (thread_id() == 0) {
          full.arrive_before_bytes(2 * tile_bytes);
          full.copy_bulk_to(3, to + rank * tile_bytes, r + static_cast<int64_t>(k) * tile_bytes, tile_bytes);
        }
        warp_sync();
        fetch_a<ADJOINT>(s_, to + 2 * tile_bytes, row_of(unit), (unit.first + k) * step_k);
        full.arrive_after_copies();
        at.next();
      }
    }
  }

  /* By a group of four warps: c, zeros, += the next `steps` steps. */
  __device__ __forceinline__ void multiply(pipeline_state<thin_slots> &at, int group, int steps,
                                           const thin_scale &scale, float (&c)[wgmma_sums]) {
    thin_split split[2];
    wgmma_hold(c);
    int done = at.place;
    load(at, group, scale, split[0]);
#pragma unroll 1
    for (int k = 0; k < steps; k += 2) {
      advance(at, group, k, steps, scale, split[0], split[1], done, c);
      if (k + 1 < steps) advance(at, group, k + 1, steps, scale, split[1], split[0], done, c);
    }
    wgmma_wait<0>();
    wgmma_hold(c);
    release(done);
  }

private:
  __device__ __forceinline__ void load(const pipeline_state<thin_slots> &at, int group,
                                       const thin_scale &scale, thin_split &split) {
    full_[at.place].wait(at.parity);
    split.load<ADJOINT>(slots_ + at.place * thin_slot + 2 * tile_bytes, sums_row(group), scale);
  }

  /* Multiplies step k, and meanwhile splits the next one. */
  __device__ __forceinline__ void advance(pipeline_state<thin_slots> &at, int group, int k, int steps,
                                          const thin_scale &scale, const thin_split &now, thin_split &next,
                                          int &done, float (&c)[wgmma_sums]) {
    wgmma_begin();
    now.multiply(c, wgmma_tile(slots_ + at.place * thin_slot));
    wgmma_end();
    if (k > 0) {
      wgmma_wait<1>();
      release(done);
    }
    done = at.place;
    at.next();
    if (k + 1 < steps) load(at, group, scale, next);
  }

  /* A slot is free for both blocks' copies once all warps of both have read it. */
  __device__ __forceinline__ void release(int slot) {
    warp_sync();
    if (lane_id() < cluster_blocks) empty_[slot].arrive_at(lane_id());
  }

  const thin_task &s_;
  char *slots_;
  phase_barrier *full_, *empty_;
};

template <bool ADJOINT>
__global__ void __launch_bounds__(tiled_threads, 1) thin_kernel(const __grid_constant__ thin_task s) {
  if (!has_wgmma) return;
  thin_pipeline<ADJOINT> pipeline(shared_memory<char>(), s);
  const int group = thread_id() / group_threads - 1;
  if (group < 0) {
    fewer_registers<40>();
    pipeline.fetch();
  } else {
    more_registers<232>();
    const thin_scale scale(s.scales);
    pipeline_state<thin_slots> at;
    for (int i = pipeline.first_unit(); i < s.units(); i += pipeline.unit_step()) {
      const thin_unit unit(s, i);
      float c[wgmma_sums];
#pragma unroll
      for (int j = 0; j < wgmma_sums; j++) c[j] = 0;
      pipeline.multiply(at, group, unit.steps, scale, c);
      const int64_t col =
          (static_cast<int64_t>(unit.part) * s.col_tiles + unit.col_tile) * c_cols + sums_col();
      float *to = s.sums + col * s.rows() + pipeline.row_of(unit) + sums_row(group);
#pragma unroll
      for (int j = 0; j < wgmma_sums; j++) to[(j / 4 * 8 + j % 2) * s.rows() + j / 2 % 2 * 8] = c[j];
    }
  }
  cluster_sync();
}

/* c := the sums of all parts, scaled back. A block has rows of a column. */
__global__ void __launch_bounds__(add_threads)
    thin_add_kernel(const __grid_constant__ thin_task s, const float *r_scales, float *c, int64_t ldc) {
  const int row = static_cast<int>(blockIdx.x) * add_threads + thread_id(),
            col = static_cast<int>(blockIdx.y);
  if (row >= s.m) return;
  const int64_t part = s.rows() * s.col_tiles * c_cols;
  const float *x = s.sums + col * s.rows() + row;
  float sum = x[0];
  for (int p = 1; p < s.parts; p++) sum += x[p * part];
  c[row + col * ldc] = sum * thin_scale(s.scales).inverse * r_scales[col];
}

/* --- sizes */

int ceil_div(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

/* The steps of all units that a multiprocessor goes over, in parts of so many. */
int64_t steps_of_device(const thin_task &s, int part_steps, int multiprocessors) {
  const int64_t units = static_cast<int64_t>(s.pairs) * s.col_tiles * ceil_div(s.steps, part_steps);
  return ceil_div(units, multiprocessors / cluster_blocks) * static_cast<int64_t>(part_steps);
}

/* Parts of k such that all multiprocessors have about as much to do, and not shorter than it takes. */
thin_task task_of(const bqr_thin_gemm *g, const bqr_device *device) {
  constexpr int least_steps = 4, unit_steps = 2; /* what a unit takes beside its steps */
  thin_task s = {};
  s.a = static_cast<const float *>(g->a);
  s.lda = g->lda;
  s.m = static_cast<int>(g->m);
  s.k = static_cast<int>(g->k);
  s.pairs = ceil_div(g->m, 2 * tile_rows);
  s.col_tiles = ceil_div(g->n, c_cols);
  s.steps = ceil_div(g->k, step_k);
  s.scales = g->scales;
  int64_t best = INT64_MAX;
  for (int parts = ceil_div(s.steps, most_part / step_k); parts == 1 || s.steps / parts >= least_steps;
       parts++) {
    const int part_steps = ceil_div(s.steps, parts);
    const int64_t all = steps_of_device(s, part_steps, device->multiprocessors),
                  time = all + all / part_steps * unit_steps;
    if (time >= best) continue;
    best = time;
    s.part_steps = part_steps;
    s.parts = ceil_div(s.steps, part_steps);
  }
  return s;
}

struct thin_memory {
  size_t tiles, sums; /* bytes */
};
thin_memory memory_of(const thin_task &s, const bqr_thin_gemm *g) {
  return {bqr_tiling_split.operand_bytes(BATCHQR_S, BQR_GEMM_B, g->n, g->k),
          static_cast<size_t>(s.rows() * s.col_tiles * c_cols * s.parts) * sizeof(float)};
}

} // namespace
} // namespace bqr

size_t bqr_thin_gemm_workspace(const bqr_thin_gemm *g, const bqr_device *device) {
  const bqr::thin_memory memory = bqr::memory_of(bqr::task_of(g, device), g);
  return memory.tiles + memory.sums;
}

int64_t bqr_thin_gemm_steps(const bqr_thin_gemm *g, const bqr_device *device) {
  const bqr::thin_task s = bqr::task_of(g, device);
  return bqr::steps_of_device(s, s.part_steps, device->multiprocessors);
}

batchqr_status bqr_thin_gemm_prepare(void) {
  batchqr_status status = bqr_tiling_split.prepare();
  if (!status) status = bqr::prepare_kernel(bqr::thin_kernel<false>, bqr::thin_smem);
  if (!status) status = bqr::prepare_kernel(bqr::thin_kernel<true>, bqr::thin_smem);
  return status ? status : bqr::prepare_kernel(bqr::thin_add_kernel, 0);
}

batchqr_status bqr_thin_gemm_enqueue(const bqr_thin_gemm *g, const bqr_device *device,
                                     batchqr_stream stream) {
  using namespace bqr;
  thin_task s = task_of(g, device);
  const thin_memory memory = memory_of(s, g);
  char *const tiles = static_cast<char *>(g->workspace);
  const bqr_tiled_source from = {g->r, g->ldr, 0, 1, nullptr};
  const int64_t rows = round_up(g->n, row_multiple);
  s.r = tiles;
  s.sums = reinterpret_cast<float *>(tiles + memory.tiles);
  const auto *r_scales = reinterpret_cast<const float *>(tiles + rows * s.steps * tile_row_bytes);
  const unsigned clusters = static_cast<unsigned>(least(s.units(), device->multiprocessors / cluster_blocks));
  batchqr_status status = bqr_tiling_split.convert(BATCHQR_S, BQR_GEMM_B, g->n, g->k, &from, tiles, stream);
  if (!status)
    status = launch_clusters(g->adjoint ? thin_kernel<true> : thin_kernel<false>, clusters, cluster_blocks,
                             tiled_threads, thin_smem, stream, s);
  const dim3 grid(static_cast<unsigned>(ceil_div(g->m, add_threads)), static_cast<unsigned>(g->n));
  return status ? status
                : launch_kernel(thin_add_kernel, grid, add_threads, 0, stream, s, r_scales,
                                static_cast<float *>(g->c), g->ldc);
}
