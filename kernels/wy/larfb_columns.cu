/* SPDX-License-Identifier: BSD-3-Clause */
/* larfb from the left, of real types, by blocks of threads that read and write each column once. A block
 * keeps its rows of V in shared memory and takes strips of 32 columns through it, which it holds in registers
 * from X V to X += Y V^H, each warp a slab of the rows; the next strip is loaded as the last one is stored. A
 * cluster shares the rows of taller members. See wy/larfb.cu for the products.
 *
 * Sums over rows: over a warp's, then over a block's warps, then over blocks, of numbers and borders that
 * follow from the member's rows alone. */
#include "larfb_columns.h"
#include "known_clusters.cuh"
#include "common/simt/block.cuh"
#include "strip.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/prefetch.cuh"

namespace {
using namespace bqr;

constexpr int W = BQR_BLOCK_WIDTH, most_warps = most_shape_warps, most_blocks = most_shape_blocks;
constexpr int halves = 2, strip_columns = halves * warp_lines;
constexpr int lane_sums = halves * W / 2; /* of the X V of a strip, of a lane */
constexpr int strip_sums = lane_sums * warp_lanes;

/* The rows of a warp. */
template <class T> constexpr int slab = 512 / static_cast<int>(sizeof(T));
template <class T> constexpr int most_rows = most_blocks *most_warps *slab<T>;

/* How rows are shared: `blocks` times `slabs` slabs; from the rows alone. */
struct row_shares {
  int blocks, slabs;
};
template <class T> BQR_INLINE row_shares share_rows(int rows) {
  const int slabs = largest((rows - 1) / slab<T> + 1, 1), blocks = (slabs - 1) / most_warps + 1;
  return {blocks, (slabs - 1) / blocks + 1};
}

/* Places in shared memory, in elements, behind the warps' tiles of V. */
template <class T> struct layout {
  int factor, parts, sums, barrier;

  BQR_INLINE constexpr layout(int warps, int blocks)
      : factor(warps * v_tile<T, slab<T>>::elements), parts(factor + factor_tile<T>::elements),
        sums(parts + (warps > 2 ? warps : 2) * strip_sums),
        barrier(sums + (blocks > 1 ? 2 * strip_sums : 0)) {}
  BQR_INLINE constexpr size_t bytes() const {
    return sizeof(T) * static_cast<size_t>(barrier) + sizeof(phase_barrier);
  }
};

struct columns_task {
  bool adjoint;
  int from, to, strips;
  int64_t stride_t; /* from member to member */
};

/* The strips of one member. A lane has two columns of each 16, 8 apart, and rows as chunk<T> deals them. */
template <class T> class strip_update {
  using part = chunk<T>;
  static constexpr int chunks = slab<T> / part::rows;
  using tile = v_tile<T, slab<T>>;
  using entries = T[halves][2][part::each];
  using sums = T[halves][W / 8][4];
  template <int UNIT> struct alignas(UNIT * sizeof(T)) neighbours { T v[UNIT]; };

public:
  struct exchange_places {
    T *parts, *sums;
    phase_barrier *arrived;
    int groups, slabs; /* blocks of the member's rows; slabs of this one's */
    uint32_t &turn;
  };

  /* c: the warp's rows of the first column of strip `first`; there are `rows` of them. packs: neighbours in
   * memory are accessed as one. */
  __device__ __forceinline__ strip_update(const exchange_places &places, T *c, int64_t ld, int columns,
                                          int rows, int first, int end, bool packs)
      : places_(places), c_(c + part::row(lane_id() % 4, 0) + (lane_id() / 4 + first * strip_columns) * ld),
        ld_(ld), columns_(columns - lane_id() / 4 - first * strip_columns), rows_(rows),
        depth_(rows - part::row(lane_id() % 4, 0)), strips_(end - first), packs_(packs) {
    if (packs)
      static_for<chunks>([&](auto c) { load<decltype(c)::value, pack<T>::size>(0, columns_); });
    else
      static_for<chunks>([&](auto c) { load<decltype(c)::value, 1>(0, columns_); });
  }

  /* v: the warp's rows of V. */
  __device__ __forceinline__ void run(const tile &v, const factor_tile<T> &factor) {
    const int64_t step = strip_columns * ld_;
    for (; strips_ > 0; strips_--) {
      const int next = strips_ > 1 ? columns_ - strip_columns : 0;
      prefetch(step, next);
      sums y;
      project(y, v);
      exchange(y, factor);
      operand<T> a[halves][W / 8][4];
#pragma unroll
      for (int l = 0; l < halves; l++)
#pragma unroll
        for (int i = 0; i < W / 2; i++) a[l][i / 4][i % 4] = split(y[l][i / 4][i % 4]);
      static_for<chunks / 2>([&](auto c) {
        constexpr int c0 = 2 * decltype(c)::value, c1 = c0 + 1;
        add_products(x_[c0], x_[c1], a, v, c0);
        if (packs_)
          pass<c0, c1, pack<T>::size>(step, next);
        else
          pass<c0, c1, 1>(step, next);
      });
      c_ += step;
      columns_ = next;
    }
  }

private:
  /* f(half l, line h, entry e, row of the slab, whether there is that row), for one chunk */
  template <int C, int UNIT, class F> __device__ __forceinline__ void each_unit(F &&f) const {
#pragma unroll
    for (int l = 0; l < halves; l++)
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int e = 0; e < part::each; e += UNIT) {
          const int row = C * part::rows + part::row(0, e);
          f(l, h, e, row, row < depth_);
        }
  }
  template <int C, int UNIT> __device__ __forceinline__ void load(int64_t step, int columns) {
    each_unit<C, UNIT>([&](int l, int h, int e, int row, bool inside) {
      const int column = warp_lines * l + 8 * h;
      const T *at = c_ + step + column * ld_ + row;
      __builtin_assume(__isGlobal(at));
      neighbours<UNIT> p = {};
      if (inside && column < columns) p = *reinterpret_cast<const neighbours<UNIT> *>(at);
#pragma unroll
      for (int i = 0; i < UNIT; i++) x_[C][l][h][e + i] = p.v[i];
    });
  }
  template <int C, int UNIT> __device__ __forceinline__ void store() const {
    each_unit<C, UNIT>([&](int l, int h, int e, int row, bool inside) {
      const int column = warp_lines * l + 8 * h;
      neighbours<UNIT> p;
#pragma unroll
      for (int i = 0; i < UNIT; i++) p.v[i] = x_[C][l][h][e + i];
      T *at = c_ + column * ld_ + row;
      __builtin_assume(__isGlobal(at));
      if (inside && column < columns_) *reinterpret_cast<neighbours<UNIT> *>(at) = p;
    });
  }
  /* Stores two chunks, and loads those of the next strip. */
  template <int C0, int C1, int UNIT> __device__ __forceinline__ void pass(int64_t step, int next) {
    store<C0, UNIT>();
    store<C1, UNIT>();
    load<C0, UNIT>(step, next);
    load<C1, UNIT>(step, next);
  }
  /* The next strip, to the L2 cache. */
  __device__ __forceinline__ void prefetch(int64_t step, int columns) const {
    constexpr int line = 128 / static_cast<int>(sizeof(T));
    const int q = lane_id() % 4;
    const T *at = c_ + step + q * line - part::row(q, 0);
    if (q * line < least(rows_, slab<T>))
#pragma unroll
      for (int h = 0; h < 2 * halves; h++)
        if (8 * h < columns) prefetch_l2(at + 8 * h * ld_);
  }

  __device__ __forceinline__ void project(sums &w, const tile &v) const {
#pragma unroll
    for (int l = 0; l < halves; l++)
#pragma unroll
      for (int i = 0; i < W / 2; i++) w[l][i / 4][i % 4] = zero<T>();
#pragma unroll
    for (int c = 0; c < chunks; c++) {
      operand<T> a[halves][part::steps][4];
#pragma unroll
      for (int l = 0; l < halves; l++)
#pragma unroll
        for (int i = 0; i < 4 * part::steps; i++)
          a[l][i / 4][i % 4] = split(x_[c][l][i / 2 % 2][part::entry(i / 4, i % 2)]);
#pragma unroll
      for (int j = 0; j < W / 8; j++) {
        operand<T> b[part::steps][2];
        v.read_column(b, c, j);
#pragma unroll
        for (int t = 0; t < part::steps; t++)
#pragma unroll
          for (int l = 0; l < halves; l++) multiply_add(w[l][j], a[l][t], b[t]);
      }
    }
  }

  /* w := -(the sum of w over all warps) M. */
  __device__ __forceinline__ void exchange(sums &w, const factor_tile<T> &m) {
    T *mine = places_.parts + lane_id();
    auto entry = [&](int i) -> T & { return w[i / (W / 2)][i / 4 % (W / 8)][i % 4]; };
    block_sync();
#pragma unroll
    for (int i = 0; i < lane_sums; i++) mine[warp_id() * strip_sums + i * warp_lanes] = entry(i);
    block_sync();
    T *total = places_.sums ? places_.sums + (places_.turn & 1) * strip_sums + lane_id() : mine;
    for (int i = warp_id() * warp_lanes; i < strip_sums; i += num_threads()) {
      T sum = mine[i];
      for (int s = 1; s < places_.slabs; s++) sum += mine[s * strip_sums + i];
      total[i] = sum;
    }
    if (places_.sums) add_blocks(mine, total);
    block_sync();
    T *y = mine + strip_sums;
    for (int j = warp_id(); j < halves * W / 8; j += num_warps()) {
      T product[4];
      multiply_factor(product, mine + j / (W / 8) * (strip_sums / halves), m, j % (W / 8));
#pragma unroll
      for (int i = 0; i < 4; i++) y[(4 * j + i) * warp_lanes] = zero<T>() - product[i];
    }
    block_sync();
#pragma unroll
    for (int i = 0; i < lane_sums; i++) entry(i) = y[i * warp_lanes];
  }

  __device__ __forceinline__ void add_blocks(T *to, T *total) {
    places_.arrived->arrive_everywhere();
    places_.arrived->wait_cluster(places_.turn & 1);
    for (int i = warp_id() * warp_lanes; i < strip_sums; i += num_threads()) {
      T sum = *cluster_shared(total + i, 0);
      for (int rank = 1; rank < places_.groups; rank++) sum += *cluster_shared(total + i, rank);
      to[i] = sum;
    }
    places_.turn++;
  }

  /* Columns 8 j .. of the product. */
  __device__ __forceinline__ static void multiply_factor(T (&product)[4], const T *w, const factor_tile<T> &m,
                                                         int j) {
    const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
    for (int i = 0; i < 4; i++) product[i] = zero<T>();
#pragma unroll
    for (int i = 0; i < W / 8; i++) {
      operand<T> a[4], b[2];
#pragma unroll
      for (int c = 0; c < 4; c++) a[c] = split(w[(4 * i + c) * warp_lanes]);
      m.read(b, 8 * i + reflector_of(2 * q), 8 * i + reflector_of(2 * q + 1), 8 * j + reflector_of(g));
      multiply_add(product, a, b);
    }
  }

  /* x += y V^H in two chunks: independent sums, as the units' latency is long. */
  __device__ __forceinline__ static void
  add_products(entries &x0, entries &x1, const operand<T> (&y)[halves][W / 8][4], const tile &v, int chunk) {
    T sum[2][halves][part::steps][4];
    each_sum([&](int l, int t, int i) {
      sum[0][l][t][i] = x0[l][i / 2][part::entry(t, i % 2)];
      sum[1][l][t][i] = x1[l][i / 2][part::entry(t, i % 2)];
    });
#pragma unroll
    for (int j = 0; j < W / 8; j++) {
      operand<T> b[2][part::steps][2];
#pragma unroll
      for (int p = 0; p < 2; p++) v.read_rows(b[p], chunk + p, j);
#pragma unroll
      for (int t = 0; t < part::steps; t++)
#pragma unroll
        for (int p = 0; p < 2; p++)
#pragma unroll
          for (int l = 0; l < halves; l++) multiply_add(sum[p][l][t], y[l][j], b[p][t]);
    }
    each_sum([&](int l, int t, int i) {
      x0[l][i / 2][part::entry(t, i % 2)] = sum[0][l][t][i];
      x1[l][i / 2][part::entry(t, i % 2)] = sum[1][l][t][i];
    });
  }
  template <class F> __device__ __forceinline__ static void each_sum(F &&f) {
#pragma unroll
    for (int l = 0; l < halves; l++)
#pragma unroll
      for (int t = 0; t < part::steps; t++)
#pragma unroll
        for (int i = 0; i < 4; i++) f(l, t, i);
  }

  const exchange_places &places_;
  T *c_;
  const int64_t ld_;
  int columns_; /* from the lane's first one on */
  const int rows_, depth_;
  int strips_;
  const bool packs_;
  entries x_[chunks];
};

template <class T> class column_block {
  using tile = v_tile<T, slab<T>>;

public:
  __device__ __forceinline__ column_block(const columns_task &task)
      : task_(task), at_(num_warps(), cluster_size()), shared_(shared_memory<T>()) {
    if (cluster_size() == 1) return;
    if (thread_id() == 0) {
      arrived()->init(cluster_size() * num_threads());
      mbarrier_init_fence();
    }
    cluster_sync();
  }
  __device__ __forceinline__ ~column_block() {
    if (cluster_size() > 1) cluster_sync(); /* others may still read what is here */
  }

  /* The strips first .. end of a member. */
  __device__ __forceinline__ void run(const bqr_args &args, const member &x, const block_step &step,
                                      const T *t, int first, int end) {
    const vectors<T> v = vectors_of<T>(args, x, step);
    const bqr_matrix &operand = step.op == BATCHQR_ORMQR ? args.c : args.a;
    const int begin = step.op == BATCHQR_ORGQR ? step.first + v.width : task_.from;
    const int columns = least(task_.to, x.n) - begin;
    if (v.width <= 0 || v.rows > most_rows<T> || columns <= first * strip_columns) return;
    end = least(end, (columns - 1) / strip_columns + 1);
    const int64_t ld = matrix_ld(operand, x.id);
    T *c = matrix_data<T>(args, operand, x.id) + step.first + begin * ld;
    const bool packs = warp_strip<T, true>::packs(c, ld, columns, v.rows) && tile_packs(v.data, v.ld, v.rows);
    update(v, t, step.width, c, ld, columns, first, end, packs);
  }

private:
  __device__ __forceinline__ phase_barrier *arrived() const {
    return reinterpret_cast<phase_barrier *>(shared_ + at_.barrier);
  }

  __device__ __forceinline__ void update(const vectors<T> &v, const T *t, int width, T *c, int64_t ld,
                                         int columns, int first, int end, bool packs) {
    using strips = strip_update<T>;
    const row_shares shares = share_rows<T>(v.rows);
    const int rows = shares.slabs * slab<T>, top = rows * cluster_rank(), mine = warp_id() * slab<T>;
    const int slabs = largest(1, least(shares.slabs, (v.rows - top - 1) / slab<T> + 1));
    const typename strips::exchange_places places = {shared_ + at_.parts,
                                                     cluster_size() > 1 ? shared_ + at_.sums : nullptr,
                                                     arrived(),
                                                     shares.blocks,
                                                     slabs,
                                                     turn_};
    strips update(places, c + top + mine, ld, columns, least(v.rows - top - mine, mine < rows ? slab<T> : 0),
                  first, end, packs);
    const factor_tile<T> factor(shared_ + at_.factor);
    if (packs)
      tile(shared_).template load<pack<T>::size, true>(v, top, rows);
    else
      tile(shared_).template load<1, true>(v, top, rows);
    factor.load(t, width, !task_.adjoint);
    copy_async_group();
    copy_async_wait_groups<0>();
    block_sync();
    update.run(tile(shared_ + warp_id() * tile::elements), factor);
    block_sync();
  }

  const columns_task &task_;
  const layout<T> at_;
  T *shared_;
  uint32_t turn_ = 0;
};

template <class T>
__global__ void __launch_bounds__(most_warps *warp_lanes, 1)
    larfb_columns_kernel(const __grid_constant__ bqr_args args, block_step step,
                         const __grid_constant__ columns_task task, const T *t) {
  column_block<T> block(task);
  const int64_t total = args.count * task.strips, clusters = gridDim.x / cluster_size();
  const int64_t number = blockIdx.x / cluster_size();
  const int64_t end = total * (number + 1) / clusters;
  for (int64_t i = total * number / clusters; i < end;) {
    const int64_t entry = i / task.strips;
    const int first = static_cast<int>(i % task.strips);
    const int last =
        static_cast<int>(end - entry * task.strips < task.strips ? end - entry * task.strips : task.strips);
    block.run(args, member_of_step(args, entry, step), step, t + entry * task.stride_t, first, last);
    i += last - first;
  }
}

/* f(number of the shape, kernel, blocks of a cluster, threads and shared memory of a block) of a launch for
 * so many rows. */
template <class T, class F> auto with_shape(int rows, bool uniform, F &&f) {
  const row_shares shares = share_rows<T>(least(rows, most_rows<T>));
  const bool evenly = shares.blocks == 1 || uniform; /* no member's block has more slabs */
  const int warps = evenly ? shares.slabs : most_warps;
  return f(columns_shape(shares.blocks, warps), larfb_columns_kernel<T>, shares.blocks, warps * warp_lanes,
           layout<T>(warps, shares.blocks).bytes());
}

template <class T>
batchqr_status launch_columns(const bqr_args *args, bool uniform, const block_step &step,
                              const columns_task &task, const T *t, const bqr_clusters *known,
                              batchqr_stream stream) {
  return with_shape<T>(
      args->m - step.first, uniform, [&](int shape, auto kernel, int blocks, int threads, size_t smem) {
        const int64_t strips = args->count * task.strips;
        const int clusters = known->columns.at_once(shape, kernel, blocks, threads, smem);
        return launch_clusters(kernel, static_cast<unsigned>(strips < clusters ? strips : clusters), blocks,
                               threads, smem, stream, *args, step, task, t);
      });
}

/* Of all numbers of slabs up to those of the problem. */
template <class T> void ask_columns(const bqr_problem *problem, bqr_clusters *clusters) {
  const int most = least(problem->m, most_rows<T>);
  for (int rows = slab<T>; rows < most + slab<T>; rows += slab<T>)
    with_shape<T>(rows, problem->uniform, [&](auto... shape) { clusters->columns.ask(shape...); });
}

/* What a block of any launch may need. */
constexpr size_t most_smem = layout<double>(most_warps, 2).bytes();

int rows_served(const bqr_problem *problem, int sm, int smem) {
  const bool right = problem->op == BATCHQR_ORMQR && problem->side == BATCHQR_RIGHT;
  if (right || sm < 90 || smem < static_cast<int>(most_smem)) return 0;
  return problem->type == BATCHQR_S ? most_rows<float> : problem->type == BATCHQR_D ? most_rows<double> : 0;
}

} // namespace

int bqr_larfb_columns_rows(const bqr_problem *problem) {
  return rows_served(problem, 10 * device_attribute(cudaDevAttrComputeCapabilityMajor),
                     device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}

int bqr_larfb_launches(const bqr_problem *problem, const bqr_device *device, int first) {
  const int rows = rows_served(problem, device->sm, device->smem_per_block);
  return rows > 0 && !problem->uniform && problem->m - first > rows ? 2 : 1;
}

batchqr_status bqr_larfb_columns(const bqr_problem *problem, const bqr_args *args, int first, int width,
                                 const void *t, int64_t stride_t, bool adjoint, int from, int to,
                                 const bqr_clusters *clusters, batchqr_stream stream) {
  const block_step step = {problem->op, problem->side, first, width};
  const columns_task task = {adjoint, from, to, (to - from - 1) / strip_columns + 1, stride_t};
  auto launch = [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_columns<T>(args, problem->uniform, step, task, static_cast<const T *>(t), clusters, stream);
  };
  return problem->type == BATCHQR_S ? launch(type_tag<float>{}) : launch(type_tag<double>{});
}

void bqr_larfb_columns_ask(const bqr_problem *problem, bqr_clusters *clusters) {
  if (bqr_larfb_columns_rows(problem) == 0) return;
  problem->type == BATCHQR_S ? ask_columns<float>(problem, clusters) : ask_columns<double>(problem, clusters);
}

batchqr_status bqr_larfb_columns_prepare(batchqr_type type) {
  bqr_problem problem = {};
  problem.op = BATCHQR_GEQRF;
  problem.type = type;
  if (bqr_larfb_columns_rows(&problem) == 0) return BATCHQR_SUCCESS;
  return type == BATCHQR_S ? prepare_kernel(larfb_columns_kernel<float>, most_smem, most_blocks)
                           : prepare_kernel(larfb_columns_kernel<double>, most_smem, most_blocks);
}
