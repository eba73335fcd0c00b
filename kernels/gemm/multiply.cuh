/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of large operands laid out in tiles, the form in which the matrix units of common/ptx/wgmma.cuh
 * take them: a tile is the 16 KB image, in shared memory, of 128 rows by 128 bytes of k, and all tiles of 128
 * rows follow each other along k. Rows are those of op(a), and the columns of b. A copy of a tile is then one
 * bulk copy, of consecutive bytes.
 *
 * A block works on 128 x 256 elements of c at a time, two warp groups on 64 rows each, while a third one
 * fetches; two blocks, a cluster, share the tiles of b. Blocks step over the tiles of c so that what runs at
 * the same time reads few tiles of a and b. They are as many as multiprocessors, or several times as many, so
 * that those on multiprocessors which other kernels have, too, do not keep the last tiles waiting. */
#ifndef BQR_KERNELS_GEMM_MULTIPLY_CUH
#define BQR_KERNELS_GEMM_MULTIPLY_CUH

#include "common/simt/launch.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/setmaxnreg.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/ptx/target.cuh"
#include "common/simt/block.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"

namespace bqr {

constexpr int tile_rows = 128, tile_row_bytes = 128, tile_bytes = tile_rows * tile_row_bytes;
constexpr int chunk_bytes = 16, row_chunks = tile_row_bytes / chunk_bytes; /* what stays together in a row */

/* Where chunk `chunk` of row `row` lies, both counted from the operand's start; `tiles`: along k. */
BQR_INLINE int64_t chunk_offset(int64_t row, int64_t chunk, int64_t tiles) {
  const int64_t tile = row / tile_rows * tiles + chunk / row_chunks;
  return tile * tile_bytes + row % tile_rows * tile_row_bytes + ((chunk ^ row) % row_chunks) * chunk_bytes;
}

constexpr int cluster_blocks = 2, consumer_groups = 2, group_threads = 128;
constexpr int tiled_threads = (1 + consumer_groups) * group_threads;
constexpr int c_rows = tile_rows, c_cols = wgmma_cols; /* of a block */
/* Operands have a multiple of this many rows. */
constexpr int row_multiple = cluster_blocks * tile_rows;

/* The pipeline: slots of a tile of a and two of b each. */
constexpr int slot_bytes = 3 * tile_bytes, slots = 4;
constexpr int tiled_smem = slots * slot_bytes + 1024 + 2 * slots * static_cast<int>(sizeof(phase_barrier));

/* What is multiplied: `layers` products of the same sizes, those of a and b following each other. */
struct tiled_product {
  const char *a, *b;
  int a_tiles, b_tiles; /* of 128 rows of op(a), 256 of b; a_tiles is even */
  int k_tiles;
  int layers;
  const int *done; /* NULL, or whether there is nothing to do */
};

/* Enqueues kernel(p, f), whose body is multiply_tiles(): for as many clusters as the device runs at once, or
 * for so `many` that each is at work for a third of a millisecond or so. */
template <class F>
batchqr_status launch_tiled(void (*kernel)(tiled_product, F), const bqr_device *device, batchqr_stream stream,
                            const tiled_product &p, bool many, const F &f) {
  constexpr int64_t steps = 256;
  const int64_t tiles = static_cast<int64_t>(p.a_tiles) * p.b_tiles * p.layers;
  const int64_t at_once = device->multiprocessors / cluster_blocks * cluster_blocks;
  const int64_t rounds = many ? tiles * p.k_tiles / (at_once * steps) : 1;
  const int64_t most = at_once * (rounds > 1 ? rounds : 1);
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {cluster_blocks, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(tiles < most ? tiles : most));
  config.blockDim = dim3(tiled_threads);
  config.dynamicSmemBytes = tiled_smem;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return status_of(cudaLaunchKernelEx(&config, kernel, p, f));
}

/* One tile of c. */
struct tile_place {
  int layer, a, b;
};

/* Number `i`: in bands of 16 tiles along a, along which it runs first, so that a cluster's blocks have the
 * same b. */
__device__ __forceinline__ tile_place place_of(const tiled_product &p, int64_t i) {
  constexpr int band = 16;
  const int64_t layer_tiles = static_cast<int64_t>(p.a_tiles) * p.b_tiles;
  tile_place at;
  at.layer = static_cast<int>(i / layer_tiles);
  const int u = static_cast<int>(i % layer_tiles);
  const int first = u / (band * p.b_tiles) * band;
  const int height = p.a_tiles - first < band ? p.a_tiles - first : band;
  const int v = u - first * p.b_tiles;
  at.a = first + v % height;
  at.b = v / height;
  return at;
}

class tile_pipeline {
public:
  __device__ __forceinline__ tile_pipeline(char *smem, const tiled_product &p) : p_(p) {
    tiles_ = smem + (-static_cast<int>(shared_address(smem)) & 1023);
    full_ = reinterpret_cast<phase_barrier *>(tiles_ + slots * slot_bytes);
    empty_ = full_ + slots;
    if (thread_id() == 0) {
      for (int s = 0; s < slots; s++) {
        full_[s].init(1);
        empty_[s].init(cluster_blocks * consumer_groups * group_threads / warp_lanes);
      }
      mbarrier_init_fence();
    }
    cluster_sync();
  }

  __device__ __forceinline__ int64_t num_tiles() const {
    return static_cast<int64_t>(p_.a_tiles) * p_.b_tiles * p_.layers;
  }

  /* By one thread: fetches all tiles of this block, and b's second half or first for both blocks. */
  __device__ __forceinline__ void fetch() {
    const int rank = cluster_rank();
    const int64_t a_layer = static_cast<int64_t>(p_.a_tiles) * p_.k_tiles * tile_bytes,
                  b_layer = static_cast<int64_t>(p_.b_tiles) * 2 * p_.k_tiles * tile_bytes;
    pipeline_state<slots> at;
    for (int64_t i = blockIdx.x; i < num_tiles(); i += gridDim.x) {
      const tile_place place = place_of(p_, i);
      const char *a = p_.a + place.layer * a_layer + static_cast<int64_t>(place.a) * p_.k_tiles * tile_bytes;
      const char *b =
          p_.b + place.layer * b_layer + (static_cast<int64_t>(place.b) * 2 + rank) * p_.k_tiles * tile_bytes;
      for (int k = 0; k < p_.k_tiles; k++) {
        char *to = tiles_ + at.place * slot_bytes;
        phase_barrier &full = full_[at.place];
        empty_[at.place].wait(at.parity ^ 1);
        full.arrive_before_bytes(slot_bytes);
        full.copy_bulk(to, a + static_cast<int64_t>(k) * tile_bytes, tile_bytes);
        full.copy_bulk_to(3, to + (1 + rank) * tile_bytes, b + static_cast<int64_t>(k) * tile_bytes,
                          tile_bytes);
        at.next();
      }
    }
  }

  /* By the warp group number `group`: c += the next `steps` tiles' products, those that F lists. */
  template <class F, class S>
  __device__ __forceinline__ void multiply(pipeline_state<slots> &at, int group, int steps,
                                           S (&c)[wgmma_sums]) {
    wgmma_hold(c);
    int done = at.place;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
      const char *a = tiles_ + at.place * slot_bytes;
      const uint64_t ta = wgmma_tile(a + group * wgmma_rows * tile_row_bytes),
                     tb = wgmma_tile(a + tile_bytes);
      full_[at.place].wait(at.parity);
      wgmma_begin();
#pragma unroll
      for (int i = 0; i < F::products; i++)
        wgmma(c, ta + wgmma_steps(F::a_step(i)), tb + wgmma_steps(F::b_step(i)));
      wgmma_end();
      if (k > 0) {
        wgmma_wait<1>();
        release(done);
      }
      done = at.place;
      at.next();
    }
    wgmma_wait<0>();
    wgmma_hold(c);
    release(done);
  }

private:
  /* A slot is free for both blocks' copies once all warps of both have read it. */
  __device__ __forceinline__ void release(int slot) {
    if (lane_id() < cluster_blocks) empty_[slot].arrive_at(lane_id());
  }

  const tiled_product &p_;
  char *tiles_;
  phase_barrier *full_, *empty_;
};

/* The body of a kernel of tiled_threads threads, clusters of cluster_blocks blocks and tiled_smem bytes.
 * F: products, a_step() and b_step(), the steps of two tiles that are multiplied; sums, the type of c, and
 * start, which they begin with; stretch, how many tiles of k are added up before done(c, place, group, first)
 * takes them; begin(place, group), called before the first ones of a tile. */
template <class F> __device__ __forceinline__ void multiply_tiles(const tiled_product &p, const F &f) {
  extern __shared__ char smem[];
  if (p.done && *p.done) return;
  tile_pipeline pipeline(smem, p);
  const int group = thread_id() / group_threads;
  if (group == 0) {
    fewer_registers<40>();
    if (thread_id() == 0) pipeline.fetch();
    warp_sync();
  } else {
    more_registers<232>();
    pipeline_state<slots> at;
    for (int64_t i = blockIdx.x; i < pipeline.num_tiles(); i += gridDim.x) {
      const tile_place place = place_of(p, i);
      f.begin(place, group - 1);
      for (int k = 0; k < p.k_tiles; k += F::stretch) {
        typename F::sums c[wgmma_sums];
#pragma unroll
        for (int j = 0; j < wgmma_sums; j++) c[j] = F::start;
        const int steps = p.k_tiles - k < F::stretch ? p.k_tiles - k : F::stretch;
        pipeline.multiply<F>(at, group - 1, steps, c);
        f.done(c, place, group - 1, k == 0);
      }
    }
  }
  cluster_sync();
}

/* Whether this thread's row and column of c, see wgmma(). */
__device__ __forceinline__ int sums_row(int group) {
  return group * wgmma_rows + warp_id() % 4 * 16 + lane_id() / 4;
}
__device__ __forceinline__ int sums_col() { return lane_id() % 4 * 2; }

} // namespace bqr

#endif
