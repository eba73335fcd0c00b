/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of geqrf_tsqr: trees of blocks of rows, products of tall matrices of up to 32 columns on matrix
 * units, and Householder vectors from the first rows of Q. Blocks have tsqr::threads threads. */
#ifndef BATCHQR_KERNELS_COMMON_TSQR_CUH
#define BATCHQR_KERNELS_COMMON_TSQR_CUH

#include "tsqr.h"
#include "block.cuh"
#include "launch.cuh"
#include "member.cuh"
#include "product.cuh"
#include "tile.cuh"
#include "view.cuh"

namespace bqr {
namespace tsqr {

constexpr int N = BATCHQR_TSQR_COLUMNS, threads = 256, warps = threads / warp_lanes;
constexpr int tile = 8, tiles = N / tile; /* columns of a tile, tiles of a row */

/* --- the shape of a tree */

/* Nodes of a member of m rows in a level; none above its root. */
BQR_INLINE int64_t nodes_of(const batchqr_tsqr &tree, int m, int level) {
  const int fan = tree.rows / N;
  int64_t nodes = m > 0 ? (m - 1) / tree.rows + 1 : 0;
  for (int l = 0; l < level; l++) nodes = nodes > 1 ? (nodes - 1) / fan + 1 : 0;
  return nodes;
}

/* Node `node` of the level of entry `entry`, in the arrays. */
BQR_INLINE int64_t node_index(const batchqr_tsqr &tree, int level, int64_t entry, int64_t node) {
  return tree.first[level] + entry * tree.nodes[level] + node;
}

template <class T> BQR_INLINE T *stack_of(const batchqr_tsqr &tree, int64_t index) {
  return static_cast<T *>(tree.stacks) + (index - tree.first[1]) * tree.rows * tree.columns;
}

template <class T> BQR_INLINE T *top_of(const batchqr_tsqr &tree, int64_t entry) {
  return static_cast<T *>(tree.tops) + entry * BATCHQR_TSQR_TOP;
}

/* Partial norms of an entry's leaf or chunk. */
BQR_INLINE double *norms_of(const batchqr_tsqr &tree, int64_t entry, int64_t part) {
  return tree.norms + (entry * tree.parts + part) * N;
}

__device__ inline member valid_member(const batchqr_args &args, int64_t entry) {
  member x = member_at<BATCHQR_GEQRF>(args, entry);
  if (!x.ok || x.n == 0) x.m = 0;
  return x;
}

/* One that has a tree: see gram_kernel. */
__device__ inline member tree_member(const batchqr_args &args, const batchqr_tsqr &tree, int64_t entry) {
  member x = valid_member(args, entry);
  if (x.m > tree.rows && tree.hard && !tree.hard[entry]) x.m = 0;
  return x;
}

/* f(member, entry, node, nodes of the member) for the block's share of a level's nodes. */
template <class F>
__device__ __forceinline__ void for_nodes(const batchqr_args &args, const batchqr_tsqr &tree, int level,
                                          F &&f) {
  for (int64_t i = blockIdx.x; i < args.count * tree.nodes[level]; i += gridDim.x) {
    const int64_t entry = i / tree.nodes[level], node = i % tree.nodes[level];
    member x = tree_member(args, tree, entry);
    const int64_t nodes = nodes_of(tree, x.m, level);
    if (node < nodes) f(x, entry, node, nodes);
    block_sync();
  }
}

/* --- chunks of rows, which blocks sum over */

/* As many rows as make few partial sums of a member, but work for all multiprocessors. */
BQR_INLINE int chunk_rows(int m) {
  constexpr int step = 128;
  return largest(BATCHQR_TSQR_CHUNK, ((m - 1) / BATCHQR_TSQR_CHUNKS / step + 1) * step);
}
BQR_INLINE int64_t chunks_of(int m) { return (m - 1) / chunk_rows(m) + 1; }

/* --- numbers */

template <class T> using wide = std::conditional_t<is_complex<T>, complex<double>, double>;
/* x as a T, exactly or rounded. */
template <class T, class X> BQR_INLINE T converted(X x) {
  if constexpr (is_complex<T>)
    return {static_cast<real_t<T>>(x.re), static_cast<real_t<T>>(x.im)};
  else
    return static_cast<T>(x);
}
BQR_INLINE double reciprocal_of(double x) { return fast_recip(x); }
BQR_INLINE complex<double> reciprocal_of(complex<double> x) { return scaled(conj(x), fast_recip(abs2(x))); }

/* f of a T of the problem's type. */
template <class F> batchqr_status with_type(const batchqr_problem *problem, F &&f) {
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

/* Sums the squared norms of the lanes' columns over the block, into 32 numbers. A barrier must follow. */
template <class T> __device__ void sum_norms(const real_t<T> (&norms)[tiles][2], double *to) {
  __shared__ double partial[warps][N];
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

/* Q - S = Y U in the first n rows, in place, with one barrier for each column: column j stays as step j finds
 * it. Ends with a barrier. */
template <class T> __device__ void factor_top(square<wide<T>> &q, int n, T *top) {
  using X = wide<T>;
  const int i = lane_id();
  auto sign = [&](int j) { return real_part(q(j, j)) >= 0 ? -1.0 : 1.0; };
  auto pivot = [&](int j) { return q(j, j) - make<X>(sign(j)); };
  for (int j = 0; j < n; j++) {
    block_sync();
    if (i <= j) continue;
    const X l = q(i, j) * reciprocal_of(pivot(j));
    for (int c = warp_id(); c < n; c += warps)
      if (c > j) q(i, c) = madd(-l, q(j, c), q(i, c));
  }
  block_sync();
  for (int c = warp_id(); c < n; c += warps) {
    const double its_sign = sign(c);
    const X its_pivot = pivot(c), x = q(i, c);
    warp_sync();
    q(i, c) = i < c ? x : i == c ? its_pivot : x * reciprocal_of(its_pivot);
    top[i + c * N] = converted<T>(q(i, c));
    if (i == c) top[c + N * N] = make<T>(static_cast<real_t<T>>(its_sign));
  }
  block_sync();
}

} // namespace tsqr
} // namespace bqr

#endif
