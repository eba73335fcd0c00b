/* SPDX-License-Identifier: BSD-3-Clause */
/* Divide and conquer of one tridiagonal matrix: leaves of up to 128 rows, a block of threads for each, then
 * the levels of merges. Vectors go from one n x n matrix to another at each level. Where they are not wanted,
 * of these matrices the first and the last row of each block, which the merges need, are all that is kept. */
#include "tridiagonal.h"
#include "common/eigen/conquer.cuh"
#include "common/simt/launch.cuh"
#include "deflate.cuh"
#include "multiply.cuh"
#include "roots.cuh"

namespace bqr {
namespace {

#ifndef LEAF
#define LEAF  128
#define LEAFT 256
#endif
constexpr int leaf_rows = LEAF, leaf_threads = LEAFT, panel_columns = 2048;

merge_tree tree_of(int n) {
  merge_tree t = {n, 0};
  while (t.most(t.depth) > leaf_rows) t.depth++;
  return t;
}

/* The workspace. q: where vectors come from and go to, in turn; leaves: of these, where rows are all that q
 * has. u: the vectors of the secular equations, of so many columns at a time. */
template <class R> struct merge_work {
  merge_arrays<R> arrays;
  matrix_view<R> other, leaves[2];
  R *factors;
  size_t bytes;
};

/* Without their place. */
template <class R> merge_factors<R> factors_of(const merge_tree &t) {
  using factors = merge_factors<R>;
  const int most = t.most(t.depth), columns = least(most, panel_columns);
  return {nullptr, factors::padded(most) / factors::chunk, (columns + factors::tile - 1) / factors::tile};
}

template <class R> merge_work<R> work_of(const merge_tree &t, bool vectors, void *memory) {
  merge_work<R> w = {};
  const int64_t rows = t.n, ld = 4 * t.units();
  const auto take = [&](auto *&p, int64_t count) {
    p = reinterpret_cast<std::remove_reference_t<decltype(p)>>(static_cast<char *>(memory) + w.bytes);
    w.bytes += (sizeof *p * static_cast<size_t>(count) + 255) / 256 * 256;
  };
  merge_arrays<R> &m = w.arrays;
  take(m.largest, 1);
  take(m.counts, int64_t(1) << t.depth);
  for (R **p :
       {&m.d, &m.poles, &m.weights, &m.cosine, &m.sine, &m.near, &m.distance, &m.value, &m.vector, &m.listed})
    take(*p, rows);
  for (int **p : {&m.source, &m.kind, &m.close, &m.chains, &m.rank, &m.column, &m.place}) take(*p, rows);
  if (vectors) {
    w.other = {nullptr, ld, t.n, t.n};
    take(w.other.data, ld * rows);
    int64_t most = 0;
    for (merge_tree at = {t.n, t.depth - 1}; at.depth >= 0; at.depth--) {
      const merge_factors<R> f = factors_of<R>(at);
      const int64_t elements = (static_cast<int64_t>(f.chunks) * f.tiles << at.depth) * f.elements;
      most = elements > most ? elements : most;
    }
    take(w.factors, most);
  } else {
    for (matrix_view<R> &leaf : w.leaves) {
      leaf = {nullptr, leaf_rows, leaf_rows, t.n};
      take(leaf.data, leaf_rows * rows);
    }
    w.other = {nullptr, 2, 2, t.n};
    take(w.other.data, 2 * 2 * rows);
  }
  return w;
}

template <class R> size_t leaf_bytes() {
  return block_scope::bytes + 2 * sizeof(R) * leaf_rows +
         conquer<R, block_scope>::bytes(leaf_rows, leaf_threads / warp_lanes);
}

/* By one block. */
template <class R>
__global__ void __launch_bounds__(1024)
    merge_magnitude_kernel(int n, const R *d, const R *e, uint32_t *largest) {
  __shared__ uint32_t most;
  uint32_t u = 0;
  if (thread_id() == 0) most = 0;
  block_sync();
  for (int i = thread_id(); i < n; i += num_threads())
    u = greater(u, greater(magnitude(d[i]), i < n - 1 ? magnitude(e[i]) : 0));
  shared_max(&most, group_max(u));
  block_sync();
  if (thread_id() == 0) *largest = most;
}

/* A block of threads for each leaf. found: its eigenvalues; to: where its vectors come out, and other, or
 * their first and last rows, if of_rows, from leaves in `leaf` and other. */
template <class R>
__global__ void __launch_bounds__(leaf_threads)
    merge_leaf_kernel(merge_tree t, const R *d, const R *e, const uint32_t *largest, R *found,
                      matrix_view<R> to, matrix_view<R> leaf, matrix_view<R> other, bool of_rows) {
  unsigned char *memory = shared_memory<unsigned char>();
  block_scope scope(memory);
  R *mine = reinterpret_cast<R *>(memory + block_scope::bytes), *beside = mine + leaf_rows;
  const int first = t.first(static_cast<int>(blockIdx.x), t.depth),
            end = t.first(static_cast<int>(blockIdx.x) + 1, t.depth), n = end - first;
  for (int i = thread_id(); i < n; i += num_threads()) {
    R x = d[first + i];
    if (i == 0 && first > 0) x -= fabs(e[first - 1]);
    if (first + i < t.n - 1) {
      const R y = e[first + i];
      if (i < n - 1)
        beside[i] = y;
      else
        x -= fabs(y);
    }
    mine[i] = x;
  }
  block_sync();
  /* In q, blocks lie on the diagonal; leaves lie one beside the other. */
  const matrix_view<R> a = of_rows ? leaf.part(0, first, n, n) : to.part(first, first, n, n),
                       b = other.part(of_rows ? 0 : first, first, n, n);
  conquer<R, block_scope> solve(scope, n, mine, beside, a, b,
                                reinterpret_cast<unsigned char *>(beside + leaf_rows), *largest);
  solve.run();
  const matrix_view<R> q = solve.vectors();
  for (int i = thread_id(); i < n; i += num_threads()) {
    found[first + i] = mine[i];
    if (of_rows) {
      *to.at(0, first + i) = *q.at(0, i);
      *to.at(1, first + i) = *q.at(n - 1, i);
    }
  }
  if (!of_rows && q.data != a.data) copy_matrix(q, a);
}

template <class R> class divide_and_conquer {
public:
  divide_and_conquer(int n, const void *d, const void *e, void *w, const matrix_view<R> &q, void *memory,
                     batchqr_stream stream)
      : t_(tree_of(n)), vectors_(q.data != nullptr), d_(static_cast<const R *>(d)),
        e_(static_cast<const R *>(e)), w_(static_cast<R *>(w)), work_(work_of<R>(t_, vectors_, memory)),
        stream_(stream), status_(BATCHQR_SUCCESS) {
    from_ = work_.other;
    to_ = q;
    if (!vectors_) to_ = {from_.data + 2 * int64_t(n), 2, 2, n};
    if (t_.depth % 2) swap();
  }

  batchqr_status run() {
    clear();
    leaves();
    while (t_.depth > 0) {
      t_.depth--;
      swap();
      merge();
    }
    return status_;
  }

private:
  void swap() { std::swap(from_, to_); }
  template <class... P, class... A>
  void enqueue(void (*kernel)(P...), dim3 grid, int threads, size_t smem, const A &...args) {
    if (!status_) status_ = launch_kernel(kernel, grid, threads, smem, stream_, args...);
  }
  void clear(matrix_view<R> &q) {
    if (!status_)
      status_ = status_of(cudaMemset2DAsync(q.data, sizeof(R) * static_cast<size_t>(q.ld), 0,
                                            sizeof(R) * static_cast<size_t>(q.rows),
                                            static_cast<size_t>(q.cols), stream_));
  }
  /* Vectors are zero beside their blocks. */
  void clear() {
    if (vectors_ && t_.depth > 0) {
      clear(from_);
      clear(to_);
    }
  }

  void leaves() {
    enqueue(merge_magnitude_kernel<R>, dim3(1), 1024, 0, t_.n, d_, e_, work_.arrays.largest);
    enqueue(merge_leaf_kernel<R>, dim3(1u << t_.depth), leaf_threads, leaf_bytes<R>(), t_, d_, e_,
            work_.arrays.largest, t_.depth ? work_.arrays.d : w_, to_, work_.leaves[0],
            vectors_ ? from_ : work_.leaves[1], !vectors_);
  }

  static unsigned parts(int all, int each) { return static_cast<unsigned>((all + each - 1) / each); }

  void merge() {
    const merge_arrays<R> &m = work_.arrays;
    const unsigned merges = 1u << t_.depth, warps = parts(t_.n, merge_warps);
    const int most = t_.most(t_.depth), warp_threads = merge_warps * warp_lanes;
    enqueue(merge_sort_kernel<R>, dim3(parts(t_.n, 256)), 256, 0, t_, m, e_, from_, !vectors_);
    enqueue(merge_deflate_kernel<R>, dim3(merges), most > 512 ? 1024 : 256, 0, t_, m, e_);
    const dim3 rotations(vectors_ ? parts(most, 256) : 1, most > 512 ? 32 : 8, merges);
    enqueue(merge_rotate_kernel<R>, rotations, vectors_ ? 256 : 32, 0, t_, m, from_, !vectors_);
    enqueue(merge_roots_kernel<R>, dim3(warps), warp_threads, 0, t_, m, e_);
    enqueue(merge_weights_kernel<R>, dim3(warps), warp_threads, 0, t_, m);
    enqueue(merge_places_kernel<R>, dim3(warps), warp_threads, 0, t_, m, t_.depth ? m.d : w_);
    if (vectors_)
      multiply(most);
    else
      enqueue(merge_rows_kernel<R>, dim3(warps), warp_threads, 0, t_, m, from_, to_);
    enqueue(merge_copy_kernel<R>, dim3(static_cast<unsigned>(t_.n)), vectors_ ? 256 : 32, 0, t_, m, from_,
            to_, !vectors_);
  }

  void multiply(int most) {
    const merge_arrays<R> &m = work_.arrays;
    constexpr int piece = 16 / static_cast<int>(sizeof(R));
    const bool packed = from_.data == work_.other.data || (reinterpret_cast<uint64_t>(from_.data) % 16 == 0 &&
                                                           from_.ld % piece == 0 && t_.n % piece == 0);
    const unsigned merges = 1u << t_.depth;
    merge_factors<R> factors = factors_of<R>(t_);
    factors.data = work_.factors;
    merge_panel panel = {0, least(most, panel_columns),
                         static_cast<int>(parts(t_.most(t_.depth + 1), merge_product<R>::tile))};
    for (; panel.column < most; panel.column += panel_columns) {
      enqueue(merge_vectors_kernel<R>, dim3(static_cast<unsigned>(panel.columns), merges),
              merge_warps * warp_lanes, 0, t_, m, panel, factors);
      enqueue(merge_multiply_kernel<R>,
              dim3(static_cast<unsigned>(2 * panel.row_tiles * factors.tiles), merges),
              merge_product<R>::threads, merge_product<R>::bytes, t_, m, panel, from_, factors, to_, packed);
    }
  }

  merge_tree t_;
  bool vectors_;
  const R *d_, *e_;
  R *w_;
  merge_work<R> work_;
  matrix_view<R> from_, to_;
  batchqr_stream stream_;
  batchqr_status status_;
};

template <class R> batchqr_status prepare() {
  batchqr_status status = prepare_kernel(merge_leaf_kernel<R>, leaf_bytes<R>());
  const auto next = [&](auto kernel, size_t bytes) {
    if (!status) status = prepare_kernel(kernel, bytes);
  };
  next(merge_magnitude_kernel<R>, 0);
  next(merge_sort_kernel<R>, 0);
  next(merge_deflate_kernel<R>, 0);
  next(merge_rotate_kernel<R>, 0);
  next(merge_roots_kernel<R>, 0);
  next(merge_weights_kernel<R>, 0);
  next(merge_places_kernel<R>, 0);
  next(merge_vectors_kernel<R>, 0);
  next(merge_rows_kernel<R>, 0);
  next(merge_copy_kernel<R>, 0);
  next(merge_multiply_kernel<R>, merge_product<R>::bytes);
  return status;
}

/* f(type_tag<R>{}) */
template <class F> auto for_real(batchqr_type type, F &&f) {
  return for_type(type, [&](auto tag) { return f(type_tag<real_t<typename decltype(tag)::type>>{}); });
}

} // namespace
} // namespace bqr

extern "C" size_t bqr_tridiagonal_bytes(batchqr_type type, int n, bool vectors) {
  return bqr::for_real(type, [&](auto tag) {
    return bqr::work_of<typename decltype(tag)::type>(bqr::tree_of(n), vectors, nullptr).bytes;
  });
}

extern "C" batchqr_status bqr_tridiagonal_prepare(batchqr_type type) {
  return bqr::for_real(type, [](auto tag) { return bqr::prepare<typename decltype(tag)::type>(); });
}

extern "C" batchqr_status bqr_tridiagonal_vectors(batchqr_type type, int n, const void *d, const void *e,
                                                  void *w, void *q, int64_t ldq, void *memory,
                                                  batchqr_stream stream) {
  return bqr::for_real(type, [&](auto tag) {
    using R = typename decltype(tag)::type;
    const bqr::matrix_view<R> view = {static_cast<R *>(q), ldq, n, n};
    return bqr::divide_and_conquer<R>(n, d, e, w, view, memory, stream).run();
  });
}

extern "C" batchqr_status bqr_tridiagonal_values(batchqr_type type, int n, const void *d, const void *e,
                                                 void *w, void *memory, batchqr_stream stream) {
  return bqr_tridiagonal_vectors(type, n, d, e, w, nullptr, 0, memory, stream);
}
