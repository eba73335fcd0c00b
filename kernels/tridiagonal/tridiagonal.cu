/* SPDX-License-Identifier: BSD-3-Clause */
/* Divide and conquer of tridiagonal matrices: leaves of up to 64 rows, a block of threads for each, then
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

constexpr int leaf_rows = 64, leaf_threads = 256, panel_columns = 2048;

merge_tree tree_of(int n, int count) {
  merge_tree t = {n, count, 0};
  while (t.most(t.depth) > leaf_rows) t.depth++;
  return t;
}

/* The workspace. q: where vectors come from and go to, in turn; leaves: of these, where rows are all that q
 * has. u: the vectors of the secular equations, of so many columns at a time. */
template <class R> struct merge_work {
  merge_arrays<R> arrays;
  merge_matrix<R> other, leaves[2];
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
  const int64_t rows = t.rows(), ld = 4 * t.units();
  const auto take = [&](auto *&p, int64_t count) {
    p = reinterpret_cast<std::remove_reference_t<decltype(p)>>(static_cast<char *>(memory) + w.bytes);
    w.bytes += (sizeof *p * static_cast<size_t>(count) + 255) / 256 * 256;
  };
  merge_arrays<R> &m = w.arrays;
  take(m.largest, t.count);
  take(m.counts, t.blocks());
  for (R **p :
       {&m.d, &m.poles, &m.weights, &m.cosine, &m.sine, &m.near, &m.distance, &m.value, &m.vector, &m.listed})
    take(*p, rows);
  for (int **p : {&m.source, &m.kind, &m.close, &m.chains, &m.rank, &m.column, &m.place}) take(*p, rows);
  if (vectors) {
    w.other = {nullptr, ld, ld * t.n, false};
    take(w.other.data, ld * rows);
    int64_t most = 0;
    for (merge_tree at = {t.n, t.count, t.depth - 1}; at.depth >= 0; at.depth--) {
      const merge_factors<R> f = factors_of<R>(at);
      const int64_t elements = static_cast<int64_t>(f.chunks) * f.tiles * at.blocks() * f.elements;
      most = elements > most ? elements : most;
    }
    take(w.factors, most);
  } else {
    for (merge_matrix<R> &leaf : w.leaves) {
      leaf = {nullptr, leaf_rows, leaf_rows * int64_t(t.n), true};
      take(leaf.data, leaf_rows * rows);
    }
    w.other = {nullptr, 2, 2 * int64_t(t.n), true};
    take(w.other.data, 2 * 2 * rows);
  }
  return w;
}

template <class R> size_t leaf_bytes() {
  return block_scope::bytes + 2 * sizeof(R) * leaf_rows +
         conquer<R, block_scope>::bytes(leaf_rows, leaf_threads / warp_lanes);
}

/* A block for each matrix. */
template <class R>
__global__ void __launch_bounds__(1024)
    merge_magnitude_kernel(int n, const R *d, const R *e, uint32_t *largest) {
  __shared__ uint32_t most;
  uint32_t u = 0;
  if (thread_id() == 0) most = 0;
  block_sync();
  d += blockIdx.x * static_cast<int64_t>(n);
  e += blockIdx.x * static_cast<int64_t>(n);
  for (int i = thread_id(); i < n; i += num_threads())
    u = greater(u, greater(magnitude(d[i]), i < n - 1 ? magnitude(e[i]) : 0));
  shared_max(&most, group_max(u));
  block_sync();
  if (thread_id() == 0) largest[blockIdx.x] = most;
}

/* Zeros; a block for each column. */
template <class R>
__global__ void __launch_bounds__(256) merge_clear_kernel(merge_tree t, merge_matrix<R> q) {
  const int64_t j = blockIdx.x;
  R *x = q.data + j / t.n * q.stride + j % t.n * q.ld;
  for (int i = thread_id(); i < t.n; i += num_threads()) x[i] = 0;
}

/* A block of threads for each leaf. found: its eigenvalues; to: where its vectors come out, and other, or
 * their first and last rows, if of_rows, from leaves in `leaf` and other. */
template <class R>
__global__ void __launch_bounds__(leaf_threads)
    merge_leaf_kernel(merge_tree t, const R *d, const R *e, const uint32_t *largest, R *found,
                      merge_matrix<R> to, merge_matrix<R> leaf, merge_matrix<R> other) {
  unsigned char *memory = shared_memory<unsigned char>();
  block_scope scope(memory);
  R *mine = reinterpret_cast<R *>(memory + block_scope::bytes), *beside = mine + leaf_rows;
  const int g = static_cast<int>(blockIdx.x), first = t.first(g, t.depth), end = t.first(g + 1, t.depth),
            n = end - first, member = g >> t.depth;
  for (int i = thread_id(); i < n; i += num_threads()) {
    const int row = first + i;
    R x = d[row];
    if (i == 0 && first > member * t.n) x -= fabs(e[first - 1]);
    if (i < n - 1)
      beside[i] = e[row];
    else if (end < (member + 1) * t.n)
      x -= fabs(e[row]);
    mine[i] = x;
  }
  block_sync();
  /* In vectors of whole matrices, blocks lie on the diagonal; else leaves lie one beside the other. */
  const matrix_view<R> q = to.of(t, g),
                       a = to.of_rows ? leaf.of(t, g).part(0, first, n, n) : q.part(first, first, n, n),
                       b = other.of(t, g).part(to.of_rows ? 0 : first, first, n, n);
  conquer<R, block_scope> solve(scope, n, mine, beside, a, b,
                                reinterpret_cast<unsigned char *>(beside + leaf_rows), largest[member]);
  solve.run();
  const matrix_view<R> vectors = solve.vectors();
  for (int i = thread_id(); i < n; i += num_threads()) {
    found[first + i] = mine[i];
    if (to.of_rows) {
      *q.at(0, first + i) = *vectors.at(0, i);
      *q.at(1, first + i) = *vectors.at(n - 1, i);
    }
  }
  if (!to.of_rows && vectors.data != a.data) copy_matrix(vectors, a);
}

template <class R> class divide_and_conquer {
public:
  /* q: NULL where vectors are not wanted; else these of them are. */
  divide_and_conquer(const merge_tree &t, const void *d, const void *e, void *w, const merge_matrix<R> &q,
                     merge_range wanted, void *memory, batchqr_stream stream)
      : t_(t), wanted_(wanted), vectors_(q.data != nullptr), d_(static_cast<const R *>(d)),
        e_(static_cast<const R *>(e)), w_(static_cast<R *>(w)), work_(work_of<R>(t_, vectors_, memory)),
        stream_(stream), status_(BATCHQR_SUCCESS) {
    from_ = work_.other;
    to_ = q;
    if (!vectors_) {
      to_ = from_;
      to_.data += 2 * int64_t(t.rows());
    }
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
  void clear(const merge_matrix<R> &q) {
    enqueue(merge_clear_kernel<R>, dim3(static_cast<unsigned>(t_.rows())), 256, 0, t_, q);
  }
  /* Vectors are zero beside their blocks. */
  void clear() {
    if (!vectors_ || t_.depth == 0) return;
    clear(from_);
    clear(to_);
  }

  void leaves() {
    enqueue(merge_magnitude_kernel<R>, dim3(static_cast<unsigned>(t_.count)), t_.n > 4096 ? 1024 : 256, 0,
            t_.n, d_, e_, work_.arrays.largest);
    enqueue(merge_leaf_kernel<R>, dim3(static_cast<unsigned>(t_.blocks())), leaf_threads, leaf_bytes<R>(), t_,
            d_, e_, work_.arrays.largest, t_.depth ? work_.arrays.d : w_, to_, work_.leaves[0],
            vectors_ ? from_ : work_.leaves[1]);
  }

  static unsigned parts(int all, int each) { return static_cast<unsigned>((all + each - 1) / each); }

  void merge() {
    const merge_arrays<R> &m = work_.arrays;
    const unsigned merges = static_cast<unsigned>(t_.blocks()), warps = parts(t_.rows(), merge_warps);
    const int most = t_.most(t_.depth), warp_threads = merge_warps * warp_lanes;
    const merge_range range = t_.depth ? merge_range{0, t_.n} : wanted_; /* the last merge makes the result */
    enqueue(merge_sort_kernel<R>, dim3(parts(t_.rows(), 256)), 256, 0, t_, m, e_, from_);
    enqueue(merge_deflate_kernel<R>, dim3(merges), most > 512 ? 1024 : 256, 0, t_, m, e_);
    const dim3 rotations(vectors_ ? parts(most, 256) : 1, most > 512 ? 32 : 8, merges);
    enqueue(merge_rotate_kernel<R>, rotations, vectors_ ? 256 : 32, 0, t_, m, from_);
    enqueue(merge_roots_kernel<R>, dim3(warps), warp_threads, 0, t_, m, e_);
    enqueue(merge_weights_kernel<R>, dim3(warps), warp_threads, 0, t_, m);
    enqueue(merge_places_kernel<R>, dim3(warps), warp_threads, 0, t_, m, t_.depth ? m.d : w_);
    if (vectors_)
      multiply(most, range);
    else
      enqueue(merge_rows_kernel<R>, dim3(warps), warp_threads, 0, t_, m, from_, to_);
    enqueue(merge_copy_kernel<R>, dim3(static_cast<unsigned>(t_.rows())), vectors_ ? 256 : 32, 0, t_, m,
            range, from_, to_);
  }

  void multiply(int most, merge_range range) {
    const merge_arrays<R> &m = work_.arrays;
    constexpr int piece = 16 / static_cast<int>(sizeof(R));
    const bool packed =
        from_.data == work_.other.data || (reinterpret_cast<uint64_t>(from_.data) % 16 == 0 &&
                                           (from_.ld | from_.stride) % piece == 0 && t_.n % piece == 0);
    const unsigned merges = static_cast<unsigned>(t_.blocks());
    merge_factors<R> factors = factors_of<R>(t_);
    factors.data = work_.factors;
    merge_panel panel = {0, least(most, panel_columns),
                         static_cast<int>(parts(t_.most(t_.depth + 1), merge_product<R>::tile)), range};
    for (; panel.column < most; panel.column += panel_columns) {
      enqueue(merge_vectors_kernel<R>, dim3(static_cast<unsigned>(panel.columns), merges),
              merge_warps * warp_lanes, 0, t_, m, panel, factors);
      enqueue(merge_multiply_kernel<R>,
              dim3(static_cast<unsigned>(2 * panel.row_tiles * factors.tiles), merges),
              merge_product<R>::threads, merge_product<R>::bytes, t_, m, panel, from_, factors, to_, packed);
    }
  }

  merge_tree t_;
  merge_range wanted_;
  bool vectors_;
  const R *d_, *e_;
  R *w_;
  merge_work<R> work_;
  merge_matrix<R> from_, to_;
  batchqr_stream stream_;
  batchqr_status status_;
};

template <class R> batchqr_status prepare() {
  batchqr_status status = prepare_kernel(merge_leaf_kernel<R>, leaf_bytes<R>());
  const auto next = [&](auto kernel, size_t bytes) {
    if (!status) status = prepare_kernel(kernel, bytes);
  };
  next(merge_magnitude_kernel<R>, 0);
  next(merge_clear_kernel<R>, 0);
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

extern "C" size_t bqr_tridiagonals_bytes(batchqr_type type, int n, int count, bool vectors) {
  return bqr::for_real(type, [&](auto tag) {
    return bqr::work_of<typename decltype(tag)::type>(bqr::tree_of(n, count), vectors, nullptr).bytes;
  });
}

extern "C" batchqr_status bqr_tridiagonal_prepare(batchqr_type type) {
  return bqr::for_real(type, [](auto tag) { return bqr::prepare<typename decltype(tag)::type>(); });
}

extern "C" batchqr_status bqr_tridiagonals(batchqr_type type, int n, int count, const void *d, const void *e,
                                           void *w, void *q, int64_t ldq, int64_t stride, void *memory,
                                           batchqr_stream stream) {
  return bqr::for_real(type, [&](auto tag) {
    using R = typename decltype(tag)::type;
    const bqr::merge_matrix<R> view = {static_cast<R *>(q), ldq, stride, false};
    return bqr::divide_and_conquer<R>(bqr::tree_of(n, count), d, e, w, view, {0, n}, memory, stream).run();
  });
}

extern "C" int bqr_tridiagonals_launches(int n, bool vectors) {
  bqr::merge_tree t = bqr::tree_of(n, 1);
  int launches = vectors && t.depth > 0 ? 4 : 2;
  while (t.depth-- > 0) {
    const int panels = (t.most(t.depth) + bqr::panel_columns - 1) / bqr::panel_columns;
    launches += 7 + (vectors ? 2 * panels : 1);
  }
  return launches;
}

extern "C" size_t bqr_tridiagonal_bytes(batchqr_type type, int n, bool vectors) {
  return bqr_tridiagonals_bytes(type, n, 1, vectors);
}

extern "C" batchqr_status bqr_tridiagonal_values(batchqr_type type, int n, const void *d, const void *e,
                                                 void *w, void *memory, batchqr_stream stream) {
  return bqr_tridiagonals(type, n, 1, d, e, w, nullptr, 0, 0, memory, stream);
}

extern "C" batchqr_status bqr_tridiagonal_vectors(batchqr_type type, int n, const void *d, const void *e,
                                                  void *w, void *q, int64_t ldq, int first, int end,
                                                  void *memory, batchqr_stream stream) {
  return bqr::for_real(type, [&](auto tag) {
    using R = typename decltype(tag)::type;
    const bqr::merge_matrix<R> view = {static_cast<R *>(q), ldq, ldq * n, false};
    return bqr::divide_and_conquer<R>(bqr::tree_of(n, 1), d, e, w, view, {first, end}, memory, stream).run();
  });
}
