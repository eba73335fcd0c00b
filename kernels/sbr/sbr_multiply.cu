/* SPDX-License-Identifier: BSD-3-Clause */
/* Y := A P in single precision, A symmetric and P narrow, on FP16 units: A is read once, and split in
 * registers on its way to the units, x = hi + lo / 2^11, both FP16; P is split before. The product is hi hi +
 * (hi lo + lo hi) / 2^11; what is left out is below 2^-22 |a p|.
 *
 * Four warps have 64 columns of A as rows of an operand: a thread's 16 bytes are four neighbours of a column.
 * The order of k is theirs: of 16 rows of A, number 2 q + s of the first 8 and of the last 8 are 4 q + s and
 * 4 q + 2 + s, s in {0, 1}. Units cut off what they add up: sums take what they have every 1024 rows. */
#include "sbr.h"
#include "common/matrix/view.cuh"
#include "common/ptx/cvt.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/wgmma_rows.cuh"
#include "common/simt/arrival.cuh"
#include "common/simt/launch_cluster.cuh"

namespace {
using namespace bqr;

constexpr int threads = 256, block_rows = 128; /* two groups of four warps */
constexpr int step = 16, stage_steps = 8, stage_rows = step * stage_steps;
constexpr int stretch = 1024 / stage_rows; /* stages */
constexpr int slots = 3, most_parts = 8;
constexpr int unit = 2 * wgmma_narrow_bytes; /* 16 rows of 32 columns of P, hi and lo */
constexpr float up = 0x1p11f, scale_of_p = 0x1p6f;

template <int H> constexpr int stage_bytes = stage_steps *H *unit;

struct multiply_args {
  const float *a, *p;
  float *y, *parts;
  char *halves;
  int *counters;
  int64_t lda, ldp, ldy;
  int rows, cols, stages, num_parts; /* stages of each part */
  float scale;                       /* of A */
};

/* A block has a stage of P. */
template <int H>
__global__ void __launch_bounds__(threads) split_kernel(const __grid_constant__ multiply_args p) {
  static_assert(threads == 8 * warp_lanes);
  const int core = warp_id(), column = core / 2 * 8 + lane_id() / 4,
            number = 4 * (lane_id() % 4) + core % 2 * 2;
  uint32_t *to = reinterpret_cast<uint32_t *>(p.halves + int64_t(blockIdx.x) * stage_bytes<H>) + thread_id();
  const int first = static_cast<int>(blockIdx.x) * stage_rows;
  if (first < p.rows && blockIdx.x * block_rows < p.rows && thread_id() == 0) p.counters[blockIdx.x] = 0;
#pragma unroll
  for (int s = 0; s < stage_steps; s++)
#pragma unroll
    for (int h = 0; h < H; h++) {
      const int row = first + step * s + number, c = wgmma_narrow * h + column;
      float x[2], hi[2];
#pragma unroll
      for (int e = 0; e < 2; e++)
        x[e] = row + e < p.rows && c < p.cols ? p.p[row + e + c * p.ldp] * scale_of_p : 0;
      const uint32_t both = rounded_to_fp16(x[0], x[1]);
      unpack_fp16(both, hi[0], hi[1]);
      uint32_t *at = to + (s * H + h) * (unit / int(sizeof *to));
      at[0] = both;
      at[wgmma_narrow_bytes / sizeof *to] =
          rounded_to_fp16(fmaf(hi[0], -up, x[0] * up), fmaf(hi[1], -up, x[1] * up));
    }
}

template <int H> struct multiply_shared {
  char stage[slots][stage_bytes<H>];
  phase_barrier full[slots], empty[slots];
};

/* 16 rows of A in two columns. */
struct two_columns {
  float4 x[2];
};
__device__ __forceinline__ float4 four_of(const float *a, int left) {
  if (left >= 4) return *reinterpret_cast<const float4 *>(a);
  return {left > 0 ? a[0] : 0, left > 1 ? a[1] : 0, left > 2 ? a[2] : 0, 0};
}

struct halves_of_a {
  uint32_t hi[4], lo[4];

  __device__ __forceinline__ void put(int i, float x, float y, float scale) {
    float hx, hy;
    hi[i] = rounded_to_fp16(x * scale, y * scale);
    unpack_fp16(hi[i], hx, hy);
    lo[i] = rounded_to_fp16(fmaf(hx, -up, x * (scale * up)), fmaf(hy, -up, y * (scale * up)));
  }
  __device__ __forceinline__ void set(const two_columns &c, float scale) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      put(i, c.x[i].x, c.x[i].y, scale);
      put(2 + i, c.x[i].z, c.x[i].w, scale);
    }
  }
  __device__ __forceinline__ void over() const {
    wgmma_over(hi);
    wgmma_over(lo);
  }
};

/* blockIdx: rows of Y, part of k. */
template <int H>
__global__ void __launch_bounds__(threads, 1) multiply_kernel(const __grid_constant__ multiply_args p) {
  multiply_shared<H> &s = *shared_memory<multiply_shared<H>>();
  if (thread_id() == 0) {
    for (int i = 0; i < slots; i++) {
      s.full[i].init(1);
      s.empty[i].init(threads);
    }
    mbarrier_init_fence();
  }
  block_sync();
  const int first_stage = static_cast<int>(blockIdx.y) * p.stages,
            all = (p.rows + stage_rows - 1) / stage_rows,
            stages = all - first_stage < p.stages ? all - first_stage : p.stages;
  auto fetch = [&](int number) {
    phase_barrier &full = s.full[number % slots];
    full.arrive_before_bytes(stage_bytes<H>);
    full.copy_bulk(s.stage[number % slots], p.halves + int64_t(first_stage + number) * stage_bytes<H>,
                   stage_bytes<H>);
  };
  if (thread_id() == 0)
    for (int i = 0; i < slots - 1 && i < stages; i++) fetch(i);

  const int first_row = static_cast<int>(blockIdx.x) * block_rows + warp_id() * 16,
            row = first_row + lane_id() / 4;
  const float *from = p.a + row * p.lda + 4 * (lane_id() % 4);
  auto load = [&](int number, int i) {
    const int k = (first_stage + number) * stage_rows + step * i, left = p.rows - k - 4 * (lane_id() % 4);
    two_columns c;
#pragma unroll
    for (int e = 0; e < 2; e++)
      c.x[e] = four_of(from + k + 8 * e * p.lda, row + 8 * e < p.rows && number < stages ? left : 0);
    return c;
  };
  two_columns coming[stage_steps];
#pragma unroll
  for (int i = 0; i < stage_steps; i++) coming[i] = load(0, i);

  float sum[H][4][4], large[H][4][4], small[H][4][4];
  auto each = [&](auto &&f) {
#pragma unroll
    for (int h = 0; h < H; h++)
#pragma unroll
      for (int t = 0; t < 4; t++)
#pragma unroll
        for (int e = 0; e < 4; e++) f(h, t, e);
  };
  each([&](int h, int t, int e) { sum[h][t][e] = large[h][t][e] = small[h][t][e] = 0; });
  halves_of_a a[2];
#pragma unroll 1
  for (int number = 0; number < stages; number++) {
    const int slot = number % slots;
    const uint32_t parity = static_cast<uint32_t>(number / slots & 1);
    if (thread_id() == 0 && number + slots - 1 < stages) {
      if (number > 0) s.empty[(number - 1) % slots].wait(static_cast<uint32_t>((number - 1) / slots & 1));
      fetch(number + slots - 1);
    }
    warp_sync();
    s.full[slot].wait(parity);
#pragma unroll
    for (int i = 0; i < stage_steps; i++) {
      halves_of_a &mine = a[i % 2];
      if (i >= 2) {
        wgmma_wait<1>();
        mine.over();
      }
      mine.set(coming[i], p.scale);
      coming[i] = load(number + 1, i);
      wgmma_begin();
#pragma unroll
      for (int h = 0; h < H; h++) {
        const char *block = s.stage[slot] + (i * H + h) * unit;
        const uint64_t hi = wgmma_columns(block), lo = wgmma_columns(block + wgmma_narrow_bytes);
        wgmma_rows_by<true>(small[h], mine.lo, hi);
        wgmma_rows_by<true>(small[h], mine.hi, lo);
        wgmma_rows_by<true>(large[h], mine.hi, hi);
      }
      wgmma_end();
    }
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < 2; i++) a[i].over();
#pragma unroll
    for (int h = 0; h < H; h++) {
      wgmma_over(large[h]);
      wgmma_over(small[h]);
    }
    s.empty[slot].arrive();
    if (number % stretch == stretch - 1 || number == stages - 1)
      each([&](int h, int t, int e) {
        sum[h][t][e] += fmaf(small[h][t][e], 1 / up, large[h][t][e]);
        large[h][t][e] = small[h][t][e] = 0;
      });
  }

  const float down = 1 / (p.scale * scale_of_p);
  const int64_t rows = int64_t(gridDim.x) * block_rows, ld = p.num_parts > 1 ? rows : p.ldy;
  float *to = p.num_parts > 1 ? p.parts + blockIdx.y * rows * (H * wgmma_narrow) : p.y;
  each([&](int h, int t, int e) {
    const int r = row + 8 * (e / 2), c = wgmma_narrow * h + 8 * t + 2 * (lane_id() % 4) + e % 2;
    if (r < p.rows && c < p.cols) to[r + c * ld] = sum[h][t][e] * down;
  });
  if (p.num_parts == 1 || !last_to_arrive(&p.counters[blockIdx.x], p.num_parts)) return;
  const int r = static_cast<int>(blockIdx.x) * block_rows + thread_id() % block_rows;
  for (int c = thread_id() / block_rows; c < p.cols && r < p.rows; c += threads / block_rows)
    p.y[r + c * p.ldy] =
        sum_shared<most_parts>(p.parts + r + c * rows, rows * (H * wgmma_narrow), p.num_parts);
}

int blocks_for(int rows) { return (rows + block_rows - 1) / block_rows; }
int stages_for(int rows) { return (rows + stage_rows - 1) / stage_rows; }

/* So many that the multiprocessors are busy to the end; each has some stages. */
int parts_for(int rows, int multiprocessors) {
  int best = 1;
  double least = 0;
  for (int parts = 1; parts <= most_parts && (parts == 1 || stages_for(rows) / parts >= 4); parts++) {
    const int waves = (blocks_for(rows) * parts + multiprocessors - 1) / multiprocessors;
    const double time = (static_cast<double>(stages_for(rows)) / parts + 2) * waves;
    if (parts == 1 || time < least) least = time, best = parts;
  }
  return best;
}

size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }
size_t bytes_of_halves(int rows, int halves) {
  return aligned(static_cast<size_t>(stages_for(rows)) * static_cast<size_t>(stage_steps * halves * unit));
}
} // namespace

extern "C" {

size_t bqr_sbr_multiply_bytes(int rows, int cols) {
  const int halves = cols > wgmma_narrow ? 2 : 1;
  const size_t counters = aligned(static_cast<size_t>(blocks_for(rows)) * sizeof(int)),
               part = static_cast<size_t>(blocks_for(rows)) * block_rows * wgmma_narrow * sizeof(float);
  return bytes_of_halves(rows, halves) + counters + most_parts * static_cast<size_t>(halves) * part;
}

batchqr_status bqr_sbr_multiply(int order, int rows, int cols, const void *a, int64_t lda, const void *p,
                                int64_t ldp, void *y, int64_t ldy, void *memory, batchqr_stream stream) {
  const int halves = cols > wgmma_narrow ? 2 : 1;
  multiply_args m = {};
  m.a = static_cast<const float *>(a);
  m.p = static_cast<const float *>(p);
  m.y = static_cast<float *>(y);
  m.halves = static_cast<char *>(memory);
  m.counters = reinterpret_cast<int *>(m.halves + bytes_of_halves(rows, halves));
  m.parts = reinterpret_cast<float *>(reinterpret_cast<char *>(m.counters) +
                                      aligned(static_cast<size_t>(blocks_for(rows)) * sizeof(int)));
  m.lda = lda;
  m.ldp = ldp;
  m.ldy = ldy;
  m.rows = rows;
  m.cols = cols;
  m.num_parts = parts_for(rows, device_attribute(cudaDevAttrMultiProcessorCount));
  m.stages = (stages_for(rows) + m.num_parts - 1) / m.num_parts;
  m.num_parts = (stages_for(rows) + m.stages - 1) / m.stages;
  m.scale = 8; /* 2^15 over 2^12, the largest element of a matrix of order 1, and by the order */
  for (int n = 1; n < order; n *= 2) m.scale /= 2;
  return for_value<1, 2>(halves, [&](auto number) {
    constexpr int H = decltype(number)::value;
    batchqr_status status =
        launch_kernel(split_kernel<H>, dim3(static_cast<unsigned>(stages_for(rows))), threads, 0, stream, m);
    if (!status)
      status =
          launch_kernel(multiply_kernel<H>,
                        dim3(static_cast<unsigned>(blocks_for(rows)), static_cast<unsigned>(m.num_parts)),
                        threads, sizeof(multiply_shared<H>), stream, m);
    return status;
  });
}

batchqr_status bqr_sbr_multiply_prepare(void) {
  batchqr_status status = BATCHQR_SUCCESS;
  static_for<2>([&](auto number) {
    constexpr int H = decltype(number)::value + 1;
    if (!status) status = prepare_kernel(split_kernel<H>, 0);
    if (!status) status = prepare_kernel(multiply_kernel<H>, sizeof(multiply_shared<H>));
  });
  return status;
}
}
