/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of geqrf_tsqr: trees of blocks of rows, products of tall matrices of up to 32 columns on matrix
 * units, and Householder vectors from the first rows of Q. Blocks have tsqr::threads threads. */
#ifndef BQR_KERNELS_TSQR_TSQR_CUH
#define BQR_KERNELS_TSQR_TSQR_CUH

#include "tsqr.h"
#include "common/simt/arrival.cuh"
#include "common/panel/larfg.cuh"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/simt/product.cuh"
#include "common/simt/tile.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {
namespace tsqr {

constexpr int N = BQR_TSQR_COLUMNS, threads = 256, warps = threads / warp_lanes;
constexpr int tile = 8, tiles = N / tile; /* columns of a tile, tiles of a row */

/* --- the shape of a tree */

/* Nodes of a member of m rows in a level; none above its root. */
BQR_INLINE int64_t nodes_of(const bqr_tsqr &tree, int m, int level) {
  const int fan = tree.rows / N;
  int64_t nodes = m > 0 ? (tree.whole ? 0 : (m - 1) / tree.rows) + 1 : 0;
  for (int l = 0; l < level; l++) nodes = nodes > 1 ? (nodes - 1) / fan + 1 : 0;
  return nodes;
}

/* Node `node` of the level of entry `entry`, in the arrays. */
BQR_INLINE int64_t node_index(const bqr_tsqr &tree, int level, int64_t entry, int64_t node) {
  return tree.first[level] + entry * tree.nodes[level] + node;
}

template <class T> BQR_INLINE T *stack_of(const bqr_tsqr &tree, int64_t index) {
  return static_cast<T *>(tree.stacks) + (index - tree.first[1]) * tree.rows * tree.columns;
}

template <class T> BQR_INLINE T *top_of(const bqr_tsqr &tree, int64_t entry) {
  return static_cast<T *>(tree.tops) + entry * BQR_TSQR_TOP;
}

/* Partial norms of an entry's leaf or chunk. */
BQR_INLINE double *norms_of(const bqr_tsqr &tree, int64_t entry, int64_t part) {
  return tree.norms + (entry * tree.parts + part) * N;
}

__device__ inline member valid_member(const bqr_args &args, int64_t entry) {
  member x = member_at<BATCHQR_GEQRF>(args, entry);
  if (!x.ok || x.n == 0) x.m = 0;
  return x;
}

/* How an entry is factored, see tsqr/tsqr_gram.cu. */
enum { cholesky_twice, by_tree, cholesky_refined, cholesky_once };

/* One that has a tree. */
__device__ inline member tree_member(const bqr_args &args, const bqr_tsqr &tree, int64_t entry) {
  member x = valid_member(args, entry);
  if (x.m > tree.rows && tree.method && tree.method[entry] != by_tree) x.m = 0;
  return x;
}

/* f(member, entry, node, nodes of the member) for the block's share of a level's nodes. */
template <class F>
__device__ __forceinline__ void for_nodes(const bqr_args &args, const bqr_tsqr &tree, int level, F &&f) {
  for (int64_t i = blockIdx.x; i < args.count * tree.nodes[level]; i += gridDim.x) {
    const int64_t entry = i / tree.nodes[level], node = i % tree.nodes[level];
    member x = tree_member(args, tree, entry);
    const int64_t nodes = nodes_of(tree, x.m, level);
    if (node < nodes) f(x, entry, node, nodes);
    block_sync();
  }
}

/* --- chunks of rows, which blocks sum over */

/* As many rows as make few partial sums of a member. */
BQR_INLINE int chunk_rows(const bqr_tsqr &tree, int m) {
  constexpr int step = 128;
  return largest(tree.chunk, ((m - 1) / BQR_TSQR_CHUNKS / step + 1) * step);
}
BQR_INLINE int chunks_of(const bqr_tsqr &tree, int m) { return (m - 1) / chunk_rows(tree, m) + 1; }

/* Describes the nodes of all trees. */
template <class T> __device__ void fill_nodes(const bqr_args &args, const bqr_tsqr &tree) {
  const int fan = tree.rows / N;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * threads;
  int level = 0;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(threads) + thread_id(); i < tree.total; i += stride) {
    while (level + 1 < tree.levels && i >= tree.first[level + 1]) level++;
    const int64_t entry = (i - tree.first[level]) / tree.nodes[level],
                  node = (i - tree.first[level]) % tree.nodes[level];
    member x = tree_member(args, tree, entry);
    const int64_t nodes = nodes_of(tree, x.m, level);
    T *a = nullptr, *tau = static_cast<T *>(tree.taus) + i * tree.columns;
    int m = 0, ld = tree.rows;
    if (node >= nodes) {
      x.n = 0;
    } else if (level == 0) {
      const int64_t first = node * tree.rows;
      a = matrix_data<T>(args, args.a, x.id) + first;
      m = tree.whole || x.m - first < tree.rows ? static_cast<int>(x.m - first) : tree.rows;
      ld = static_cast<int>(matrix_ld(args.a, x.id));
      if (nodes == 1) tau = tau_data<T>(args, x.id);
    } else {
      const int64_t below = nodes_of(tree, x.m, level - 1) - node * fan;
      a = stack_of<T>(tree, i);
      m = static_cast<int>(below < fan ? below : fan) * x.n;
    }
    tree.a[i] = a;
    tree.tau[i] = tau;
    tree.m[i] = m;
    tree.n[i] = x.n;
    tree.ld[i] = ld;
  }
}

/* --- blocks that work on one member */

/* Of an entry, from 0 at the beginning of a launch. */
constexpr int counters = BQR_TSQR_COUNTERS;

/* f of a T of the problem's type. */
template <class F> batchqr_status with_type(const bqr_problem *problem, F &&f) {
  return for_type(problem->type, [&](auto tag) { return f(typename decltype(tag)::type{}); });
}

/* --- products */

/* 32 x 32 numbers in shared memory, by columns; two neighbours of a column are read free of conflicts. */
template <class T> struct square {
  static constexpr int ld = N + tile;
  alignas(16) T x[N * ld];

  __device__ __forceinline__ T &operator()(int i, int j) { return x[i + j * ld]; }
};

/* 16 rows and all columns of a matrix as operands of V^H V: the lane's columns are 8 J + g, its rows
 * row(e). */
template <class T> struct gram_rows {
  static constexpr int rows = 16, unit = pack<T>::size;
  T x[tiles][4];

  __device__ __forceinline__ static int row(int e) {
    return 4 * unit * (e / unit) + unit * (lane_id() % 4) + e % unit;
  }
  /* packs: columns start at multiples of 16 bytes. */
  __device__ __forceinline__ void load(const T *a, int64_t ld, int m, int n, int first, bool packs) {
    const bool whole = packs && first + rows <= m;
#pragma unroll
    for (int J = 0; J < tiles; J++) {
      const int column = tile * J + lane_id() / 4;
      const T *from = a + first + column * ld;
#pragma unroll
      for (int e = 0; e < 4; e++) x[J][e] = zero<T>();
      if (column >= n) continue;
      if (whole) {
        read(J, from);
      } else {
#pragma unroll
        for (int e = 0; e < 4; e++)
          if (first + row(e) < m) x[J][e] = from[row(e)];
      }
    }
  }
  /* The entries of one column, which starts at `from`. */
  __device__ __forceinline__ void read(int J, const T *from) {
#pragma unroll
    for (int e = 0; e < 4; e += unit) {
      T part[unit];
      column_read<0>(part, from + row(e));
#pragma unroll
      for (int i = 0; i < unit; i++) x[J][e + i] = part[i];
    }
  }
  /* Ones and zeros in place of what is on and above the diagonal. */
  __device__ __forceinline__ void make_unit_lower(int m, int n, int first) {
    if (first >= N) return;
#pragma unroll
    for (int J = 0; J < tiles; J++) {
      const int column = tile * J + lane_id() / 4;
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int i = first + row(e);
        if (i <= column) x[J][e] = i == column && i < m && column < n ? one<T>() : zero<T>();
      }
    }
  }
};

/* The upper triangle of V^H V, in tiles of 16 x 8 of a warp. */
template <class T> struct gram {
  static constexpr int count = 6; /* (I, J) with J >= 2 I */
  T c[count][4];

  __device__ __forceinline__ gram() {
#pragma unroll
    for (int t = 0; t < count; t++)
#pragma unroll
      for (int e = 0; e < 4; e++) c[t][e] = zero<T>();
  }
  /* Adds 16 rows; columns beyond the first `used` tiles are zero. */
  template <class X> __device__ __forceinline__ void add(const X (&x)[tiles][4], int used) {
#pragma unroll
    for (int t = 0; t < 2; t++) {
      operand<T> v[tiles][2];
#pragma unroll
      for (int J = 0; J < tiles; J++) {
        v[J][0] = split(converted<T>(x[J][2 * t]));
        v[J][1] = split(converted<T>(x[J][2 * t + 1]));
      }
      each([&](int index, int I, int J) {
        if (J >= used) return;
        const operand<T> a[4] = {conj<T>(v[2 * I][0]), conj<T>(v[2 * I][1]), conj<T>(v[2 * I + 1][0]),
                                 conj<T>(v[2 * I + 1][1])};
        multiply_add(c[index], a, v[J]);
      });
    }
  }
  /* Sums over the block's warps, in their order. Ends with a barrier. */
  __device__ __forceinline__ void sum(square<T> &g) const {
    for (int w = 0; w < warps; w++) {
      if (warp_id() == w)
        each([&](int index, int I, int J) {
#pragma unroll
          for (int e = 0; e < 4; e++) {
            T &to = g(16 * I + 8 * (e / 2) + lane_id() / 4, tile * J + 2 * (lane_id() % 4) + e % 2);
            to = w == 0 ? c[index][e] : to + c[index][e];
          }
        });
      block_sync();
    }
  }

private:
  template <class F> __device__ __forceinline__ static void each(F &&f) {
#pragma unroll
    for (int I = 0; I < 2; I++)
#pragma unroll
      for (int J = 2 * I; J < tiles; J++) f(I == 0 ? J : J + 2, I, J);
  }
};

/* Rows as operands of products from the right: the lane's columns are 8 K + 2 q + s, its rows row(e). */
template <class T> struct product_rows {
  static constexpr int height = pack<T>::size > 2 ? pack<T>::size : 2, rows = 8 * height;
  T x[tiles][2][height];

  __device__ __forceinline__ static int row(int e) { return height * (lane_id() / 4) + e; }
  __device__ __forceinline__ static int column(int K, int s) { return tile * K + 2 * (lane_id() % 4) + s; }

  /* f(entry, row, column) */
  template <class F> __device__ __forceinline__ void each(F &&f) {
#pragma unroll
    for (int K = 0; K < tiles; K++)
#pragma unroll
      for (int s = 0; s < 2; s++)
#pragma unroll
        for (int e = 0; e < height; e++) f(x[K][s][e], row(e), column(K, s));
  }

  /* From and to shared memory. */
  __device__ __forceinline__ void read(const T *slab, int ld) {
#pragma unroll
    for (int K = 0; K < tiles; K++)
#pragma unroll
      for (int s = 0; s < 2; s++) column_read<0>(x[K][s], slab + column(K, s) * ld + row(0));
  }
  __device__ __forceinline__ void write(T *slab, int ld) const {
#pragma unroll
    for (int K = 0; K < tiles; K++)
#pragma unroll
      for (int s = 0; s < 2; s++) column_write<0>(slab + column(K, s) * ld + row(0), x[K][s]);
  }

  /* From row `first` of a matrix of m rows and n columns; packs: columns start at multiples of 16 bytes. */
  __device__ __forceinline__ void load(const T *a, int64_t ld, int m, int n, int first, bool packs) {
    const bool whole = packs && first + rows <= m;
#pragma unroll
    for (int K = 0; K < tiles; K++)
#pragma unroll
      for (int s = 0; s < 2; s++) {
        const T *from = a + first + row(0) + column(K, s) * ld;
#pragma unroll
        for (int e = 0; e < height; e++) x[K][s][e] = zero<T>();
        if (column(K, s) >= n) continue;
        if (whole) {
          column_read<0>(x[K][s], from);
        } else {
#pragma unroll
          for (int e = 0; e < height; e++)
            if (first + row(e) < m) x[K][s][e] = from[e];
        }
      }
  }
  /* To there, but for the matrix's first rows, up to `from`; norms: their squares are added. */
  __device__ __forceinline__ void store(T *a, int64_t ld, int m, int n, int first, bool packs, int from,
                                        real_t<T> (&norms)[tiles][2]) const {
    const bool whole = packs && first >= from && first + rows <= m;
#pragma unroll
    for (int K = 0; K < tiles; K++)
#pragma unroll
      for (int s = 0; s < 2; s++) {
        T *to = a + first + row(0) + column(K, s) * ld;
        if (column(K, s) >= n) continue;
        if (whole) column_write<0>(to, x[K][s]);
#pragma unroll
        for (int e = 0; e < height; e++) {
          if (first + row(e) < from || first + row(e) >= m) continue;
          if (!whole) to[e] = x[K][s][e];
          norms[K][s] = abs2_add(x[K][s][e], norms[K][s]);
        }
      }
  }
};

/* What ends the work on a member has the block's dynamic shared memory for itself. */
struct norm_storage {
  double partial[warps][N], above[N]; /* above: of the vectors' first rows */
};

/* Sums the squared norms of the lanes' columns over the block, into 32 numbers. A barrier must follow. */
template <class T> __device__ void sum_norms(const real_t<T> (&norms)[tiles][2], double *to) {
  auto &partial = shared_memory<norm_storage>()->partial;
  block_sync();
#pragma unroll
  for (int J = 0; J < tiles; J++)
#pragma unroll
    for (int s = 0; s < 2; s++) {
      double sum = norms[J][s];
#pragma unroll
      for (int d = 4; d < warp_lanes; d *= 2) sum += exchange(sum, d);
      if (lane_id() < 4) partial[warp_id()][product_rows<T>::column(J, s)] = sum;
    }
  block_sync();
  if (thread_id() >= N) return;
  double sum = 0;
  for (int w = 0; w < warps; w++) sum += partial[w][thread_id()];
  to[thread_id()] = sum;
}

/* --- reconstruction */

/* Q - S = Y U in the first n rows, in place. Lanes have a row each and warps every eighth column, in
 * registers; column j comes to all through q. positive: S = I. Whether no pivot is so small that what cancels
 * in it costs more than a few bits; the same in all threads. Ends with a barrier. */
template <class T, class Q> __device__ bool factor_top(Q &q, int n, bool positive, T *top) {
  constexpr double least_pivot2 = 0x1p-6;
  bool good = true;
  using X = wide<T>;
  constexpr int shares = N / warps;
  const int i = lane_id();
  X a[shares];
  block_sync();
#pragma unroll
  for (int k = 0; k < shares; k++) a[k] = q(i, warp_id() + warps * k);
#pragma unroll
  for (int k = 0; k < shares; k++)
#pragma unroll 1
    for (int owner = 0; owner < warps; owner++) {
      const int j = owner + warps * k;
      if (j >= n) break;
      if (warp_id() == owner) q(i, j) = a[k];
      block_sync();
      const X diagonal = q(j, j);
      const double sign = !positive && real_part(diagonal) >= 0 ? -1 : 1;
      const X pivot = diagonal - make<X>(sign), l = q(i, j) * fast_recip(pivot);
      good &= abs2(pivot) > least_pivot2;
#pragma unroll
      for (int r = k; r < shares; r++) {
        const X above = broadcast(a[r], j);
        if (i > j && warp_id() + warps * r > j) a[r] = madd(-l, above, a[r]);
      }
      if (warp_id() == owner) {
        a[k] = i > j ? l : i == j ? pivot : a[k];
        if (i == j) top[j + N * N] = make<T>(static_cast<real_t<T>>(sign));
      }
    }
  block_sync();
#pragma unroll
  for (int k = 0; k < shares; k++) {
    const int j = warp_id() + warps * k;
    if (j >= n) break;
    q(i, j) = a[k];
    top[i + j * N] = converted<T>(a[k]);
  }
  block_sync();
  return good;
}

/* tau, each turned into the one that fits its vector's norm to rounding: |1 - tau |v|^2| = 1. */
template <class T>
__device__ void finish_tau(const double *norms, int64_t parts, int n, const T *top, T *tau) {
  auto &s = *shared_memory<norm_storage>();
  const int lane = lane_id();
#pragma unroll
  for (int k = 0; k < N / warps; k++) {
    const int j = warp_id() + warps * k;
    const double sum =
        group_sum(lane > j && lane < n && j < n ? abs2(converted<wide<T>>(top[lane + j * N])) : 0.0);
    if (lane == 0) s.above[j] = sum;
  }
  constexpr int at_once = 16;
  double norm2 = 0;
  for (int64_t part = warp_id(); part < parts; part += warps * at_once) {
    const int64_t left = (parts - part - 1) / warps + 1;
    norm2 += sum_shared<at_once>(norms + part * N + lane, warps * N,
                                 left < at_once ? static_cast<int>(left) : at_once);
  }
  s.partial[warp_id()][lane] = norm2;
  block_sync();
  const int j = thread_id();
  if (j >= n) return;
  norm2 = 1 + s.above[j];
  for (int w = 0; w < warps; w++) norm2 += s.partial[w][j];
  const wide<T> t =
      scaled(converted<wide<T>>(top[j + j * N]), -static_cast<double>(real_part(top[j + N * N])));
  tau[j] = converted<T>(unitary_tau(t, norm2));
}

/* The member's first rows and tau, by the last block that works on it; returns the first column in which R
 * has a zero on its diagonal. */
template <class T>
__device__ __noinline__ int finish_member(const bqr_args &args, const bqr_tsqr &tree, const member &x,
                                          int64_t entry, int64_t parts) {
  const T *top = top_of<T>(tree, entry), *r = top + N * (N + 1);
  const int64_t ld = matrix_ld(args.a, x.id);
  T *a = matrix_data<T>(args, args.a, x.id);
  const int i = lane_id();
  const real_t<T> sign = real_part(top[i + N * N]);
  for (int j = warp_id(); j < x.n; j += warps)
    if (i < x.n) a[i + j * ld] = i > j ? top[i + j * N] : scaled(r[i + j * N], sign);
  finish_tau(norms_of(tree, entry, 0), parts, x.n, top, tau_data<T>(args, x.id));
  return first_lane(i < x.n && is_zero(r[i * (N + 1)])) + 1;
}

} // namespace tsqr
} // namespace bqr

#endif
