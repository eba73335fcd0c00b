/* SPDX-License-Identifier: BSD-3-Clause */
/* TSQR with reconstruction of the Householder vectors. (J. Demmel, L. Grigori, M. Hoemmen, J. Langou,
 * Communication-optimal parallel and sequential QR and LU factorizations, 2012; G. Ballard, J. Demmel, L.
 * Grigori, M. Jacquelin, H. D. Nguyen, E. Solomonik, Reconstructing Householder vectors from tall-skinny QR,
 * 2014; LAPACK's xORHR_COL.)
 *
 * A = Q R by a tree. Q - S = Y U, an LU factorization without pivots, Y unit lower trapezoidal, where the
 * signs S are chosen on the way so that pivots are not below 1; A = (I - Y T Y^H) (S R) with T = -U S Y1^-H,
 * Y1 the first rows of Y, and the diagonal of T holds tau. Y is made without Q: its rows in a leaf are the
 * leaf's reflectors applied to [C U^-1; 0], where C are the rows of Q that belong to the leaf's triangle.
 *
 * An entry's part of `tops`, 32 x 65: U with the first rows of Y below its diagonal, a column of signs, R. */
#include "tsqr.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/griddepcontrol.cuh"
#include "common/simt/launch_dependent.cuh"

namespace {
using namespace bqr;
using namespace bqr::tsqr;

template <class T>
__global__ void __launch_bounds__(threads)
    fill_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_tsqr tree) {
  fill_nodes<T>(args, tree);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * threads;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(threads) + thread_id(); i < args.count * counters;
       i += stride)
    tree.counters[i] = 0;
}

template <class T>
__global__ void __launch_bounds__(threads)
    gather_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_tsqr tree, int level) {
  wait_for_previous();
  const int fan = tree.rows / N;
  for_nodes(args, tree, level, [&](const member &x, int64_t entry, int64_t node, int64_t nodes) {
    if (nodes == 1) return;
    const int64_t index = node_index(tree, level, entry, node), ld = tree.ld[index];
    const T *from = static_cast<const T *>(tree.a[index]);
    T *to = stack_of<T>(tree, node_index(tree, level + 1, entry, node / fan)) + node % fan * x.n;
    for (int e = thread_id(); e < x.n * N; e += threads) {
      const int i = e % N, j = e / N;
      if (i < x.n) to[i + j * tree.rows] = i <= j && i < tree.m[index] ? from[i + j * ld] : zero<T>();
    }
  });
}

/* --- a node's reflectors, applied */

/* One node and the top of what its reflectors are applied to. All threads of the block call its words
 * together. */
template <class T> class node_reflectors {
public:
  struct storage {
    square<T> c, g; /* g: V's first rows, then V^H V, then W */
    T tau[N];
  };

  __device__ node_reflectors(storage &s, const bqr_tsqr &tree, int64_t index)
      : s_(s), v_(static_cast<T *>(tree.a[index])), ld_(tree.ld[index]), m_(tree.m[index]),
        n_(tree.n[index]) {
    __builtin_assume(__isGlobal(v_));
    const int j = thread_id();
    if (j < N) s_.tau[j] = j < least(m_, n_) ? static_cast<const T *>(tree.tau[index])[j] : zero<T>();
  }

  /* The first rows of the operand: n x n of `c`, or I where that is NULL. Ends with a barrier. */
  __device__ void set_top(const T *c, int64_t ld) {
    for (int e = thread_id(); e < N * N; e += threads) {
      const int i = e % N, j = e / N;
      T x = i == j ? one<T>() : zero<T>();
      if (c != nullptr && i < n_ && j < n_) x = c[i + j * ld];
      s_.c(i, j) = i < n_ && j < n_ ? x : zero<T>();
    }
    block_sync();
  }

  /* C := C U^-1; u: n x n, ld 32. Ends with a barrier. */
  __device__ void divide_top(const T *u) {
    for (int e = thread_id(); e < N * N; e += threads) {
      const int i = e % N, j = e / N;
      s_.g(i, j) = i <= j && j < n_ ? u[e] : i == j ? one<T>() : zero<T>();
    }
    block_sync();
    const int row = thread_id() / 8, sub = thread_id() % 8;
    T b[4];
#pragma unroll
    for (int r = 0; r < 4; r++) b[r] = s_.c(row, sub + 8 * r);
#pragma unroll
    for (int first = 0; first < N / 8; first++)
#pragma unroll 1
      for (int o = 0; o < 8; o++) {
        const int j = 8 * first + o;
        const T x = broadcast<8>(b[first], o) * reciprocal(s_.g(j, j));
        if (sub == o) b[first] = x;
#pragma unroll
        for (int r = first; r < N / 8; r++)
          if (sub + 8 * r > j) b[r] = madd(-x, s_.g(j, sub + 8 * r), b[r]);
      }
#pragma unroll
    for (int r = 0; r < 4; r++) s_.c(row, sub + 8 * r) = b[r];
    block_sync();
  }

  /* W with (I - V T V^H) [C; 0] = [C; 0] - V W, into g: row j is tau_j v_j^H times what is left of the
   * operand after the reflectors behind it. Ends with a barrier. */
  __device__ void project() {
    for (int e = thread_id(); e < N * N; e += threads) s_.g(e % N, e / N) = first_rows(e % N, e / N);
    block_sync();
    const int column = thread_id() / 8, sub = thread_id() % 8;
    T b[4];
#pragma unroll
    for (int r = 0; r < 4; r++) {
      b[r] = zero<T>();
      for (int k = sub + 8 * r; k < n_; k++) b[r] = cmadd(s_.g(k, sub + 8 * r), s_.c(k, column), b[r]);
    }
    block_sync();
    form_gram();
#pragma unroll
    for (int last = N / 8 - 1; last >= 0; last--)
#pragma unroll 1
      for (int o = 7; o >= 0; o--) {
        const int j = 8 * last + o;
        const T w = s_.tau[j] * broadcast<8>(b[last], o);
        if (sub == o) b[last] = w;
#pragma unroll
        for (int r = 0; r <= last; r++)
          if (sub + 8 * r < j) b[r] = madd(-s_.g(sub + 8 * r, j), w, b[r]);
      }
    block_sync();
#pragma unroll
    for (int r = 0; r < 4; r++) s_.g(sub + 8 * r, column) = b[r];
    block_sync();
  }

  /* Replaces the node by [C; 0] - V W, rows from `from` on; norms: what to add the squares of the columns'
   * entries to, those of the lane. */
  __device__ void apply(int from, real_t<T> (&norms)[tiles][2]) const {
    using slab = product_rows<T>;
    const bool packs = tile_packs(v_, ld_, 0);
    const int used = (n_ - 1) / tile + 1;
    for (int first = warp_id() * slab::rows; first < m_; first += warps * slab::rows) {
      slab v, y;
      v.load(v_, ld_, m_, n_, first, packs);
      if (first < N)
        v.each([&](T &x, int i, int j) {
          if (first + i <= j) x = first + i == j && first + i < m_ && j < n_ ? one<T>() : zero<T>();
        });
      y.each([&](T &x, int i, int j) { x = first + i < N ? s_.c(first + i, j) : zero<T>(); });
#pragma unroll
      for (int J = 0; J < tiles; J++)
        if (J < used) subtract_product(y.x[J], v, J);
      y.store(v_, ld_, m_, n_, first, packs, from, norms);
    }
  }

  /* R, which the reflectors left, to `to` with leading dimension 32; a barrier must follow. */
  __device__ void store_triangle(T *to) const {
    for (int e = thread_id(); e < N * N; e += threads) {
      const int i = e % N, j = e / N;
      if (j < n_) to[e] = i <= j && i < m_ ? v_[i + j * ld_] : zero<T>();
    }
    block_sync();
  }

  /* Entry (i, j) of the first n rows of [C; 0] - V W. */
  __device__ T first_row_of_result(int i, int j) const {
    T x = s_.c(i, j);
    for (int k = 0; k <= i; k++) x = madd(-first_rows(i, k), s_.g(k, j), x);
    return x;
  }

private:
  __device__ static T reciprocal(T x) {
    if constexpr (is_complex<T>)
      return scaled(conj(x), 1 / abs2(x));
    else
      return 1 / x;
  }

  /* V(i, j), i < 32. */
  __device__ T first_rows(int i, int j) const {
    if (i < j || i >= m_ || j >= n_) return zero<T>();
    return i == j ? one<T>() : v_[i + j * ld_];
  }

  __device__ __forceinline__ void form_gram() const {
    const int used = (n_ - 1) / tile + 1;
    const bool packs = tile_packs(v_, ld_, 0);
    gram<T> g;
    for (int first = warp_id() * gram_rows<T>::rows; first < m_; first += warps * gram_rows<T>::rows) {
      gram_rows<T> v;
      v.load(v_, ld_, m_, n_, first, packs);
      v.make_unit_lower(m_, n_, first);
      g.add(v.x, used);
    }
    g.sum(s_.g);
  }

  /* y -= V W(:, tile J) */
  __device__ __forceinline__ void subtract_product(T (&y)[2][product_rows<T>::height],
                                                   const product_rows<T> &v, int J) const {
    const int g = lane_id() / 4, q = lane_id() % 4;
    operand<T> w[tiles][2];
#pragma unroll
    for (int K = 0; K < tiles; K++)
#pragma unroll
      for (int s = 0; s < 2; s++) w[K][s] = split(-s_.g(tile * K + 2 * q + s, tile * J + g));
#pragma unroll
    for (int p = 0; p < product_rows<T>::height; p += 2) {
      T c[4] = {y[0][p], y[1][p], y[0][p + 1], y[1][p + 1]};
#pragma unroll
      for (int K = 0; K < tiles; K++) {
        const operand<T> a[4] = {split(v.x[K][0][p]), split(v.x[K][1][p]), split(v.x[K][0][p + 1]),
                                 split(v.x[K][1][p + 1])};
        multiply_add(c, a, w[K]);
      }
      y[0][p] = c[0];
      y[1][p] = c[1];
      y[0][p + 1] = c[2];
      y[1][p + 1] = c[3];
    }
  }

  storage &s_;
  T *v_;
  int64_t ld_;
  int m_, n_;
};

/* The rows of Q that belong to a node's triangle, in the node above. */
template <class T>
__device__ const T *rows_above(const bqr_tsqr &tree, int level, int64_t entry, int64_t node, int n) {
  const int fan = tree.rows / N;
  return stack_of<T>(tree, node_index(tree, level + 1, entry, node / fan)) + node % fan * n;
}

template <class T> struct node_storage {
  typename node_reflectors<T>::storage node;
  square<wide<T>> q; /* above the leaves */
};

/* A node above the leaves becomes its rows of Q. Behind a member's first node above the leaves come the first
 * rows of Q itself. A leaf becomes its rows of Y. */
template <class T>
__device__ void take_down(node_storage<T> &s, const bqr_tsqr &tree, int level, const member &x, int64_t entry,
                          int64_t node, int64_t nodes) {
  const bool leaf = level == 0, first = level == 1 && node == 0;
  for (int l = level; l >= level - (first ? 1 : 0); l--) {
    node_reflectors<T> v(s.node, tree, node_index(tree, l, entry, node));
    v.set_top(l > 0 && nodes == 1 ? nullptr : rows_above<T>(tree, l, entry, node, x.n), tree.rows);
    if (leaf) v.divide_top(top_of<T>(tree, entry));
    v.project();
    if (l == level) {
      if (nodes == 1) v.store_triangle(top_of<T>(tree, entry) + N * (N + 1));
      real_t<T> norms[tiles][2] = {};
      v.apply(leaf && node == 0 ? x.n : 0, norms);
      if (leaf) sum_norms<T>(norms, norms_of(tree, entry, node));
    } else {
      for (int e = thread_id(); e < N * N; e += threads)
        s.q(e % N, e / N) = converted<wide<T>>(v.first_row_of_result(e % N, e / N));
      factor_top<T>(s.q, x.n, false, top_of<T>(tree, entry));
    }
    block_sync();
  }
}

/* Whether the families met no NaN or Inf in the leaves of an entry. */
__device__ bool leaves_finite(const int *info, int64_t leaves) {
  bool finite = true;
  for (int64_t leaf = thread_id(); leaf < leaves; leaf += threads)
    finite &= info[leaf] != BATCHQR_INFO_NONFINITE;
  return !block_any(!finite);
}

/* After a leaf: the last one of a member finishes it. */
template <class T>
__device__ void finish_leaf(const bqr_args &args, const bqr_tsqr &tree, const member &x, int64_t entry,
                            int64_t leaves) {
  if (!last_to_arrive(tree.counters + entry * counters, static_cast<int>(leaves))) return;
  int info = finish_member<T>(args, tree, x, entry, leaves);
  if (!leaves_finite(tree.info + node_index(tree, 0, entry, 0), leaves)) info = BATCHQR_INFO_NONFINITE;
  if (thread_id() == 0) set_info(args, x.id, info);
}

template <class T>
__global__ void __launch_bounds__(threads)
    down_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_tsqr tree, int level) {
  wait_for_previous();
  auto &s = *shared_memory<node_storage<T>>();
  for_nodes(args, tree, level, [&](const member &x, int64_t entry, int64_t node, int64_t nodes) {
    if (level == 0 && nodes == 1) return;
    take_down<T>(s, tree, level, x, entry, node, nodes);
    if (level == 0) finish_leaf<T>(args, tree, x, entry, nodes);
  });
  if (level > 0) return;
  /* members of one leaf are done */
  for (int64_t entry = blockIdx.x * static_cast<int64_t>(threads) + thread_id(); entry < args.count;
       entry += static_cast<int64_t>(gridDim.x) * threads) {
    const member x = valid_member(args, entry);
    const int64_t leaves = nodes_of(tree, x.m, 0);
    if (leaves > 1) continue;
    const int info = leaves == 0 ? 0 : tree.info[node_index(tree, 0, entry, 0)];
    set_info(args, x.id, x.ok ? info : BATCHQR_INFO_SIZES);
  }
}

unsigned blocks_of(const bqr_args *args, const bqr_tsqr *tree, int level) {
  return grid_for(args->count * tree->nodes[level]);
}
} // namespace

extern "C" {

batchqr_status bqr_tsqr_fill(const bqr_problem *problem, const bqr_args *args, const bqr_tsqr *tree,
                             batchqr_stream stream) {
  return with_type(problem, [&](auto x) {
    return launch_kernel(fill_kernel<decltype(x)>, grid_for((tree->total - 1) / threads + 1), threads, 0,
                         stream, *args, *tree);
  });
}

batchqr_status bqr_tsqr_gather(const bqr_problem *problem, const bqr_args *args, const bqr_tsqr *tree,
                               int level, batchqr_stream stream) {
  return with_type(problem, [&](auto x) {
    return launch_dependent(gather_kernel<decltype(x)>, blocks_of(args, tree, level), threads, 0, stream,
                            *args, *tree, level);
  });
}

batchqr_status bqr_tsqr_push(const bqr_problem *problem, const bqr_args *args, const bqr_tsqr *tree,
                             int level, batchqr_stream stream) {
  return with_type(problem, [&](auto x) {
    return launch_dependent(down_kernel<decltype(x)>, blocks_of(args, tree, level), threads,
                            sizeof(node_storage<decltype(x)>), stream, *args, *tree, level);
  });
}

batchqr_status bqr_tsqr_leaves(const bqr_problem *problem, const bqr_args *args, const bqr_tsqr *tree,
                               batchqr_stream stream) {
  return with_type(problem, [&](auto x) {
    return launch_dependent(down_kernel<decltype(x)>, blocks_of(args, tree, 0), threads,
                            sizeof(typename node_reflectors<decltype(x)>::storage), stream, *args, *tree, 0);
  });
}

batchqr_status bqr_tsqr_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(fill_kernel<T>, 0);
    if (!status) status = prepare_kernel(gather_kernel<T>, 0);
    return status ? status : prepare_kernel(down_kernel<T>, sizeof(node_storage<T>));
  });
}
}
