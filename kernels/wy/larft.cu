/* SPDX-License-Identifier: BSD-3-Clause */
/* larft: the triangular factors T of blocks of reflectors, I - V T V^H (xLARFT). A block of threads, of tall
 * members a cluster of blocks, of a large one a grid that copies V on the way, reads V once: G = V^H V on
 * matrix units, each warp with rows of its own, the sums added up in a fixed order. T is then T_8 of each 8
 * reflectors by xLARFT's recurrence and, twice, of two neighbours one of their union:
 *
 *     T = (T_1  -T_1 G_12 T_2)
 *         (          T_2     ) */
#include "shift.cuh"
#include "common/simt/arrival.cuh"
#include "common/simt/product.cuh"
#include "vectors.cuh"
#include "common/matrix/view.cuh"
#include "exchange_triangle.cuh"
#include "common/ptx/target.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/griddepcontrol.cuh"
#include "common/simt/launch_cluster.cuh"
#include "common/simt/launch_dependent.cuh"

namespace {
using namespace bqr;

constexpr int W = BQR_BLOCK_WIDTH, most_larft_warps = 8;

/* Chunks that a warp has under way: what registers hold of two blocks. */
template <class T> constexpr int chunks_at_once = sizeof(T) == 4 ? 4 : sizeof(T) == 8 ? 2 : 1;

/* Warps and blocks that share V's rows. They follow from the member's rows alone, and so does the order of
 * its sums; a launch has those that the largest member needs. */
struct larft_team {
  int warps, blocks;

  /* The rows that all of them take at once. */
  template <class T> BQR_INLINE int rows() const {
    return blocks * warps * chunks_at_once<T> * chunk<T>::rows;
  }
};
/* Of a grid: most blocks, and how many of them are added up at once. */
constexpr int most_grid_blocks = BQR_WY_BLOCKS, group = 16;
static_assert(most_grid_blocks <= group * group, "groups are added up at once, too");

/* Turns of a warp that take no longer than twice as many warps: what follows them is longer, and a
 * multiprocessor has more blocks of fewer warps. Four turns are as fast as two blocks. */
template <class T> constexpr int larft_turns = sizeof(T) == 4 ? 2 : 4;

template <class T> BQR_INLINE larft_team larft_team_for(int rows, bool clusters) {
  larft_team team = {1, 1};
  while (team.warps < most_larft_warps && larft_turns<T> * team.rows<T>() < rows) team.warps *= 2;
  while (clusters && team.blocks < most_cluster_blocks && 4 * team.rows<T>() < rows) team.blocks *= 2;
  return team;
}

template <class T> class triangular_factor {
  using rows = chunk<T>;
  static constexpr int tiles = 6; /* 16 x 8, on and above the diagonal of G */
  static constexpr int ld = W + 1;

  struct storage {
    T gram[W * ld], t[W * ld], y[W * W / 4]; /* row-major */
    T part[tiles * 4 * warp_lanes];          /* of each warp */
  };

public:
  static constexpr size_t smem(int warps) {
    return sizeof(storage) + sizeof(T) * tiles * 4 * warp_lanes * static_cast<size_t>(warps - 1);
  }

  __device__ __forceinline__ explicit triangular_factor(void *shared) : s(*static_cast<storage *>(shared)) {}

  /* All blocks of a cluster call it; the first one's threads make T and, if wanted, T V_1^H, of which they
   * write width^2 elements. Returns whether the thread's share of V and tau is finite, where CHECK says so.
   */
  template <bool CHECK> __device__ bool run(const vectors<T> &v, const T *tau, int width, T *t, T *head) {
    const T tau_of_lane = lane_id() < v.width ? tau[lane_id()] : zero<T>();
    const larft_team team = larft_team_for<T>(v.rows, has_clusters);
    uint32_t largest = magnitude(tau_of_lane);
    if (cluster_rank() < team.blocks)
      sum_rows(v, team, cluster_rank(), [&](const T(&x)[4][rows::each], int) {
        if (CHECK)
          for (auto &column : x)
            for (const T &y : column) largest = greater(largest, magnitude(y));
      });
    cluster_sync();
    if (cluster_rank() == 0) {
      sum_blocks(team.blocks);
      form(tau_of_lane);
      for (int e = thread_id(); e < width * width; e += num_threads()) t[e] = s.t[e % width * ld + e / width];
      if (head) multiply_head(v, width, head);
    }
    cluster_sync();
    return !CHECK || magnitude_finite<T>(largest);
  }

  /* All blocks of a grid call it: V, and by the block that comes last T, of a large member's panel. */
  __device__ void store(const bqr_wy_panel &p) {
    const T tau_of_lane = lane_id() < p.width ? static_cast<const T *>(p.tau)[lane_id()] : zero<T>();
    const vectors<T> v = {static_cast<const T *>(p.a) + p.at * (p.lda + 1), p.lda, p.rows - p.at, p.width};
    exchange_triangle<T>(p); /* what v does not read */
    const larft_team team = {most_larft_warps, static_cast<int>(gridDim.x)};
    sum_rows(v, team, static_cast<int>(blockIdx.x), [](const T(&)[4][rows::each], int) {});
    block_sync();
    if (!sum_grid(static_cast<T *>(p.sums), p.counters)) return;
    form(tau_of_lane);
    const int below = p.cols - p.at;
    for (int e = thread_id(); e < below * p.width; e += num_threads()) {
      const int i = e % below, j = e / below;
      static_cast<T *>(p.t)[p.at + i + (p.at + j) * p.ldt] = i < W ? s.t[i * ld + j] : zero<T>();
    }
  }

private:
  /* x[j]: entries of column g + 8 j. */
  __device__ __forceinline__ void load(T (&x)[4][rows::each], const vectors<T> &v, bool packs,
                                       int top) const {
    constexpr int unit = pack<T>::size;
    const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int column = g + 8 * j;
      if (packs && top >= W) {
#pragma unroll
        for (int e = 0; e < rows::each; e += unit) {
          const int row = top + rows::row(q, e);
          pack<T> p = {};
          if (row < v.rows && column < v.width)
            p = *reinterpret_cast<const pack<T> *>(v.data + row + column * v.ld);
#pragma unroll
          for (int i = 0; i < unit; i++) x[j][e + i] = p.v[i];
        }
      } else {
#pragma unroll
        for (int e = 0; e < rows::each; e++) x[j][e] = v.at(top + rows::row(q, e), column);
      }
    }
  }

  /* Tile i, j of G: its rows 16 i .., columns 8 j .. */
  template <class F> __device__ __forceinline__ static void each_tile(F &&f) {
    static_for<4>([&](auto j) { f(0, decltype(j)::value, decltype(j)::value); });
    f(1, 2, 4);
    f(1, 3, 5);
  }

  __device__ __forceinline__ static void add_products(T (&sum)[tiles][4], const T (&x)[4][rows::each]) {
#pragma unroll
    for (int t = 0; t < rows::steps; t++) {
      operand<T> b[4][2];
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) b[j][i] = split(x[j][rows::entry(t, i)]);
      each_tile([&](int i, int j, int tile) {
        operand<T> a[4] = {conj(b[2 * i][0]), conj(b[2 * i][1]), conj(b[2 * i + 1][0]),
                           conj(b[2 * i + 1][1])};
        multiply_add(sum[tile], a, b[j]);
      });
    }
  }

  /* The part of G of block `rank`; f(entries, the first of their rows). */
  template <class F>
  __device__ __forceinline__ void sum_rows(const vectors<T> &v, const larft_team &team, int rank, F &&f) {
    constexpr int n = chunks_at_once<T>;
    T sum[tiles][4];
#pragma unroll
    for (int tile = 0; tile < tiles; tile++)
#pragma unroll
      for (int c = 0; c < 4; c++) sum[tile][c] = zero<T>();
    const bool packs = tile_packs(v.data, v.ld, v.rows);
    constexpr int rows_at_once = n * rows::rows;
    const int first = (rank * team.warps + warp_id()) * rows_at_once;
    for (int top = warp_id() < team.warps ? first : v.rows; top < v.rows; top += team.rows<T>()) {
      T x[n][4][rows::each];
#pragma unroll
      for (int i = 0; i < n; i++) load(x[i], v, packs, top + i * rows::rows);
#pragma unroll
      for (int i = 0; i < n; i++) {
        add_products(sum, x[i]);
        f(x[i], top + i * rows::rows);
      }
    }
    T *mine = s.part + warp_id() * (tiles * 4 * warp_lanes) + lane_id();
#pragma unroll
    for (int tile = 0; tile < tiles; tile++)
#pragma unroll
      for (int c = 0; c < 4; c++) mine[(tile * 4 + c) * warp_lanes] = sum[tile][c];
    block_sync();
    for (int e = thread_id(); e < tiles * 4 * warp_lanes; e += num_threads()) {
      T total = s.part[e];
      for (int w = 1; w < team.warps; w++) total += s.part[w * (tiles * 4 * warp_lanes) + e];
      const int lane = e % warp_lanes, c = e / warp_lanes % 4, tile = e / (4 * warp_lanes);
      const int i = tile / 4, j = tile < 4 ? tile : tile - 2;
      s.gram[(16 * i + lane / 4 + 8 * (c / 2)) * ld + 8 * j + 2 * (lane % 4) + c % 2] = total;
    }
  }

  __device__ __forceinline__ void sum_blocks(int blocks) {
    if (blocks > 1)
      for (int e = thread_id(); e < W * W; e += num_threads()) {
        const int i = e / W, j = e % W;
        T *at = &s.gram[i * ld + j];
        if (i < j)
          for (int rank = 1; rank < blocks; rank++) *at += *cluster_shared(at, rank);
      }
    block_sync();
  }

  /* f(index, element) above G's diagonal. */
  template <class F> __device__ __forceinline__ void each_above(F &&f) {
    for (int e = thread_id(); e < W * W; e += num_threads())
      if (e / W < e % W) f(e, s.gram[e / W * ld + e % W]);
  }
  /* All its elements at once, by most_larft_warps warps. */
  __device__ __forceinline__ void add_up(const T *sums, int64_t stride, int count) {
    constexpr int threads = most_larft_warps * warp_lanes, each = W * W / threads;
    T total[each];
#pragma unroll
    for (int k = 0; k < each; k++) {
      const int e = thread_id() + threads * k;
      total[k] = sum_shared<group>(sums + e, stride, e / W < e % W ? count : 0);
    }
#pragma unroll
    for (int k = 0; k < each; k++) {
      const int e = thread_id() + threads * k;
      s.gram[e / W * ld + e % W] = total[k];
    }
  }
  /* G of a grid: of each group of blocks by the last of them, of all groups by the last of those. True in
   * that block; the counters are then 0 again. */
  __device__ bool sum_grid(T *sums, int *counters) {
    const int blocks = static_cast<int>(gridDim.x), mine = static_cast<int>(blockIdx.x) / group;
    const int groups = (blocks - 1) / group + 1, in_group = least(group, blocks - mine * group);
    T *first = sums + mine * group * (W * W), *own = sums + blockIdx.x * (W * W);
    each_above([&](int e, const T &x) { own[e] = x; });
    if (!last_to_arrive(counters + 1 + mine, in_group)) return false;
    add_up(first, W * W, in_group);
    if (groups > 1) {
      each_above([&](int e, const T &x) { first[e] = x; });
      if (!last_to_arrive(counters, groups)) return false;
      add_up(sums, group * W * W, groups);
    }
    block_sync();
    for (int e = thread_id(); e <= groups; e += num_threads()) counters[e] = 0;
    return true;
  }

  /* T from G. */
  __device__ __forceinline__ void form(T tau) {
    diagonal(tau);
    unite<8>();
    unite<16>();
  }

  /* T of each 8 reflectors, a row to a lane; zeros elsewhere. */
  __device__ __forceinline__ void diagonal(T tau) {
    for (int e = thread_id(); e < W * ld; e += num_threads()) s.t[e] = zero<T>();
    block_sync();
    if (warp_id() == 0) {
      const int i = lane_id() % 8, base = lane_id() - i;
      T t[8];
#pragma unroll
      for (int k = 0; k < 8; k++) t[k] = zero<T>();
#pragma unroll
      for (int k = 0; k < 8; k++) {
        const T scale = broadcast(tau, base + k);
        t[k] = k < i || is_zero(scale) ? zero<T>() : k == i ? scale : -(scale * t[k]);
        const T *row = &s.gram[(base + k) * ld + base];
#pragma unroll
        for (int l = k + 1; l < 8; l++) t[l] = madd(t[k], row[l], t[l]);
        s.t[lane_id() * ld + base + k] = t[k];
      }
    }
    block_sync();
  }

  /* Of each two neighbours of SIZE reflectors. */
  template <int SIZE> __device__ __forceinline__ void unite() {
    auto each = [&](auto &&f) {
      for (int e = thread_id(); e < SIZE * W / 2; e += num_threads()) {
        const int j = e % SIZE, i = e / SIZE % SIZE, first = e / (SIZE * SIZE) * 2 * SIZE;
        f(e, e - i * SIZE, first, first + SIZE, i, j);
      }
    };
    each([&](int e, int, int first, int second, int i, int j) {
      T sum = zero<T>();
#pragma unroll
      for (int l = 0; l < SIZE; l++)
        sum = madd(s.gram[(first + i) * ld + second + l], s.t[(second + l) * ld + second + j], sum);
      s.y[e] = sum;
    });
    block_sync();
    each([&](int, int column, int first, int second, int i, int j) {
      T sum = zero<T>();
#pragma unroll
      for (int l = 0; l < SIZE; l++)
        sum = madd(s.t[(first + i) * ld + first + l], s.y[column + l * SIZE], sum);
      s.t[(first + i) * ld + second + j] = -sum;
    });
    block_sync();
  }

  /* The head is the first rows of V. */
  __device__ __forceinline__ void multiply_head(const vectors<T> &v, int width, T *head) {
    for (int e = thread_id(); e < W * W; e += num_threads())
      s.gram[e % W * ld + e / W] = conj(v.at(e % W, e / W));
    block_sync();
    for (int e = thread_id(); e < width * width; e += num_threads()) {
      const int i = e % width, j = e / width;
      T sum = zero<T>();
#pragma unroll 8
      for (int l = 0; l < W; l++) sum = madd(s.t[i * ld + l], s.gram[j * ld + l], sum);
      head[e] = sum;
    }
  }

  storage &s;
};

/* head: NULL, or where T V_1^H goes. CHECK: info is to tell of numbers that are not finite. */
template <class T, bool CHECK>
__global__ void __launch_bounds__(most_larft_warps *warp_lanes, sizeof(T) == 16 ? 1 : 2)
    larft_kernel(const __grid_constant__ bqr_args args, block_step step, int blocks, T *t, T *head) {
  triangular_factor<T> factor(shared_memory<unsigned char>());
  const int64_t pieces = args.count * blocks, clusters = gridDim.x / cluster_size();
  for (int64_t i = blockIdx.x / cluster_size(); i < pieces; i += clusters) {
    block_step mine = step;
    mine.first += static_cast<int>(i % blocks) * step.width;
    const member x = member_of_step(args, i / blocks, step);
    const vectors<T> v = vectors_of<T>(args, x, mine);
    const T *tau = v.width > 0 ? tau_data<T>(args, x.id) + mine.first : nullptr;
    const int64_t at = i * (step.width * step.width);
    const bool finite = factor.template run<CHECK>(v, tau, step.width, t + at, head ? head + at : nullptr);
    if (!finite && x.m > 0 && x.n > 0) /* what they are applied to, or form, is there */
      set_info(args, x.id, BATCHQR_INFO_NONFINITE);
  }
}

template <class T>
__global__ void __launch_bounds__(most_larft_warps *warp_lanes, sizeof(T) == 16 ? 1 : 2)
    store_kernel(const __grid_constant__ bqr_wy_panel panel) {
  wait_for_previous();
  if (panel.done && *panel.done) return;
  bqr_wy_panel mine = panel;
  mine.a = shifted(static_cast<T *>(mine.a), blockIdx.y, panel.many.a);
  mine.tau = shifted(static_cast<T *>(mine.tau), blockIdx.y, panel.many.tau);
  mine.r = shifted(static_cast<T *>(mine.r), blockIdx.y, panel.many.own);
  mine.t = shifted(static_cast<T *>(mine.t), blockIdx.y, panel.many.own);
  mine.sums = shifted(static_cast<T *>(mine.sums), blockIdx.y, panel.many.own);
  mine.counters = shifted(mine.counters, blockIdx.y, panel.many.own);
  triangular_factor<T>(shared_memory<unsigned char>()).store(mine);
}

/* f(kernel<T>) */
template <class F> batchqr_status with_kernel(batchqr_type type, bool check, F &&f) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return check ? f(tag, larft_kernel<T, true>) : f(tag, larft_kernel<T, false>);
  });
}

} // namespace

batchqr_status bqr_larft_head(const bqr_problem *problem, const bqr_args *args, int first, int width,
                              int blocks, void *t, void *head, batchqr_stream stream) {
  const bool check = problem->op != BATCHQR_GEQRF && args->info;
  return with_kernel(problem->type, check, [&](auto tag, auto kernel) {
    using T = typename decltype(tag)::type;
    const bool right = problem->op == BATCHQR_ORMQR && problem->side == BATCHQR_RIGHT;
    const int rows = (right ? args->n : args->m) - first;
    const larft_team team = larft_team_for<T>(rows, device_attribute(cudaDevAttrClusterLaunch) != 0);
    const block_step step = {problem->op, problem->side, first, width};
    return launch_clusters(kernel, grid_for(args->count * blocks), team.blocks, team.warps * warp_lanes,
                           triangular_factor<T>::smem(team.warps), stream, *args, step, blocks,
                           static_cast<T *>(t), static_cast<T *>(head));
  });
}

batchqr_status bqr_larft(const bqr_problem *problem, const bqr_args *args, int first, int width, int blocks,
                         void *t, batchqr_stream stream) {
  return bqr_larft_head(problem, args, first, width, blocks, t, nullptr, stream);
}

batchqr_status bqr_wy_begin_many(int *counters, const bqr_wy_many *many, batchqr_stream stream) {
  constexpr size_t bytes = sizeof(int) * BQR_WY_COUNTERS;
  if (many->count <= 1) return status_of(cudaMemsetAsync(counters, 0, bytes, stream));
  return status_of(cudaMemset2DAsync(counters, static_cast<size_t>(many->own), 0, bytes,
                                     static_cast<size_t>(many->count), stream));
}

batchqr_status bqr_wy_begin(int *counters, batchqr_stream stream) {
  const bqr_wy_many one = {};
  return bqr_wy_begin_many(counters, &one, stream);
}

batchqr_status bqr_wy_store(batchqr_type type, const bqr_wy_panel *panel, batchqr_stream stream) {
  static_assert(1 + most_grid_blocks / group <= BQR_WY_COUNTERS, "a counter for each group");
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr larft_team block = {most_larft_warps, 1};
    const int turns = (panel->rows - panel->at - 1) / block.rows<T>() + 1;
    return launch_dependent(
        store_kernel<T>,
        dim3(static_cast<unsigned>(least((turns + 1) / 2, most_grid_blocks)), members_of(panel->many)),
        most_larft_warps * warp_lanes, triangular_factor<T>::smem(most_larft_warps), stream, *panel);
  });
}

batchqr_status bqr_larft_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr size_t smem = triangular_factor<T>::smem(most_larft_warps);
    batchqr_status status = prepare_kernel(larft_kernel<T, true>, smem);
    if (!status) status = prepare_kernel(larft_kernel<T, false>, smem);
    return status ? status : prepare_kernel(store_kernel<T>, smem);
  });
}
