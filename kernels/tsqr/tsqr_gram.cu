/* SPDX-License-Identifier: BSD-3-Clause */
/* Tall members whose columns are far from dependent, at the speed of memory: Q from Cholesky factors instead
 * of a tree, twice, which leaves Q orthogonal to rounding where it can be done at all. (T. Fukaya, Y.
 * Nakatsukasa, Y. Yanagisawa, Y. Yamamoto, CholeskyQR2, 2014.) Three passes over A:
 *
 *   1. A^H A = R1^H R1
 *   2. X = A R1^-1, X^H X = R2^H R2
 *   3. Y = X (U R2)^-1, where X1 R2^-1 - S = Y1 U as in tsqr/tsqr_tree.cu, X1 being X's first rows; R = R2 R1
 *
 * Where columns are nearly orthogonal to each other from the beginning, R2 is I to rounding, and there is
 * no second pass (cholesky_once).
 *
 * The sums are formed in double precision in every type (I. Yamazaki, S. Tomov, J. Dongarra, Mixed-precision
 * Cholesky QR, 2015). A member is left to a tree (by_tree) where it is ill-conditioned: where a pivot is next
 * to nothing, where X^H X is not near I, and where a norm is too large or small to be squared; NaNs among
 * them. Nothing of A is written before that is known: X is made twice, with the same bits.
 *
 * Triangles divide by tiles of 8 columns, with inverses of the diagonal tiles; where those of R1 are
 * ill-conditioned, a step of refinement follows (cholesky_refined).
 *
 * An entry's `factors`: R1 and the inverses of its diagonal tiles, U R2 and its inverses, X1. */
#include "tsqr_rows.cuh"
#include "tsqr_triangles.cuh"
#include "common/ptx/barrier.cuh"

namespace {
using namespace bqr;
using namespace bqr::tsqr;

/* R1 (0) or U R2 (1) of an entry; X1 (2). */
template <class T> BQR_INLINE T *factor_of(const bqr_tsqr &tree, int64_t entry, int which) {
  return static_cast<T *>(tree.factors) + entry * BQR_TSQR_FACTORS + which * factor_elements;
}
/* Chunks are added up in groups, see sum_chunks(). */
constexpr int group = 16;
/* Those of a pass: 0, 1 or 2. The trees use those of pass 2, no member both. */
BQR_INLINE int *counters_of(const bqr_tsqr &tree, int64_t entry, int pass) {
  return tree.counters + entry * counters + (2 - pass) * (1 + BQR_TSQR_CHUNKS / group);
}
template <class T> BQR_INLINE wide<T> *partial_of(const bqr_tsqr &tree, int64_t entry, int64_t chunk) {
  return static_cast<wide<T> *>(tree.partials) + (entry * tree.chunks + chunk) * N * tree.columns;
}

/* Members that a pass, 0, 1 or 2, works on: those with several leaves that need it and are not left to a
 * tree. */
__device__ member gram_member(const bqr_args &args, const bqr_tsqr &tree, int64_t entry, int pass) {
  member x = valid_member(args, entry);
  const int what = x.m > tree.rows && pass > 0 ? tree.method[entry] : cholesky_twice;
  if (x.m <= tree.rows || what == by_tree || (what == cholesky_once && pass == 1)) x.m = 0;
  return x;
}

/* f(chunk) for the block's share of all members' chunks. */
template <class T, class F>
__device__ __forceinline__ void for_chunks(const bqr_args &args, const bqr_tsqr &tree, int pass, F &&f) {
  for (int64_t i = blockIdx.x; i < args.count * tree.chunks; i += gridDim.x) {
    chunk<T> c;
    c.entry = i / tree.chunks;
    c.number = i % tree.chunks;
    member x = gram_member(args, tree, c.entry, pass);
    if (x.m > 0 && c.number < chunks_of(tree, x.m)) {
      c.a = matrix_data<T>(args, args.a, x.id);
      c.ld = matrix_ld(args.a, x.id);
      c.m = x.m;
      c.n = x.n;
      c.first = static_cast<int>(c.number) * chunk_rows(tree, x.m);
      c.end = c.first + least(chunk_rows(tree, x.m), x.m - c.first);
      c.packs = tile_packs(c.a, c.ld, 0);
      f(c);
    }
    block_sync();
  }
}

template <class T> struct factor_storage { triangle<wide<T>> r1, r2, q; };

/* R, U and the first rows of Y, from R1, R2 and X1 R2^-1 in q; or that the member is to be one leaf. */
template <class T>
__device__ void finish_factors(const bqr_tsqr &tree, int64_t entry, int n, factor_storage<T> &s) {
  using X = wide<T>;
  T *top = top_of<T>(tree, entry), *r = top + N * (N + 1);
  product<X>([&](int i, int k) { return s.r2(i, k); }, [&](int k, int j) { return s.r1(k, j); },
             [&](int i, int j, X x) { r[i + j * N] = i <= j ? converted<T>(x) : zero<T>(); });
  const bool good = factor_top<T>(s.q, n, tree.whole, top);
  if (tree.whole && !good && thread_id() == 0) tree.method[entry] = by_tree;
  product<X>([&](int i, int k) { return i <= k ? s.q(i, k) : zero<X>(); },
             [&](int k, int j) { return s.r2(k, j); },
             [&](int i, int j, X x) { s.r1(i, j) = i == j && j >= n ? one<X>()
                                                   : i <= j         ? x
                                                                    : zero<X>(); });
  X z[tile];
  store_factor<T>(s.r1, factor_of<T>(tree, entry, 1), z);
}

/* R1, and what is known of the member so far; of one with nearly orthogonal columns all the rest, a being its
 * first rows. */
template <class T>
__device__ __noinline__ void first_factor(const bqr_tsqr &tree, int64_t entry, int n, const T *a, int64_t lda,
                                          factor_storage<T> &s) {
  using R = real_t<T>;
  using X = wide<T>;
  const int i = lane_id();
  const double norm2 = real_part(s.r1(i, i));
  const bool in_range = !block_any(!(norm2 > least_norm2<R> && norm2 < most_norm2<R>));
  const bool orthogonal = in_range && is_nearly_orthogonal(s.r1, n);
  bool done = cholesky(s.r1, n, 0x1p-42 * norm2) && in_range, refined = false;
  if (done) {
    X z[tile];
    store_factor<T>(s.r1, factor_of<T>(tree, entry, 0), z);
    refined = block_any(warp_id() == 0 && needs_refinement(s.r1, z, sqrt(norm2)));
  }
  done = done && !refined;
  if (thread_id() == 0)
    tree.method[entry] = refined      ? cholesky_refined
                         : !done      ? by_tree
                         : orthogonal ? cholesky_once
                                      : cholesky_twice;
  if (!done || !orthogonal) return;
  for (int j = warp_id(); j < N; j += warps) {
    s.r2(i, j) = s.r1(i, j);
    s.q(i, j) = i < n && j < n ? converted<X>(a[i + j * lda]) : zero<X>();
  }
  block_sync();
  divide_rows(s.q, s.r2);
  for (int j = warp_id(); j < N; j += warps) s.r1(i, j) = i == j ? one<X>() : zero<X>();
  block_sync();
  finish_factors(tree, entry, n, s);
}

/* R2, and with it the rest, from X^H X in r2, or that the member is ill-conditioned after all. */
template <class T>
__device__ __noinline__ void second_factor(const bqr_tsqr &tree, int64_t entry, int n, factor_storage<T> &s) {
  using X = wide<T>;
  const int i = lane_id();
  const T *r1 = factor_of<T>(tree, entry, 0), *x1 = factor_of<T>(tree, entry, 2);
  bool near = true, nearly_one = true; /* NaN is neither */
  for (int j = warp_id(); j < N; j += warps) {
    const double distance = size_of(s.r2(i, j) - (i == j ? one<X>() : zero<X>()));
    near &= distance < 0x1p-6;
    nearly_one &= distance < 0x1p-29;
    s.r1(i, j) = converted<X>(r1[i + j * N]);
    s.q(i, j) = i < n && j < n ? converted<X>(load_shared(x1 + i + j * N)) : zero<X>();
  }
  nearly_one = !block_any(!nearly_one);
  if (block_any(!near)) {
    if (thread_id() == 0) tree.method[entry] = by_tree;
    return;
  }
  second_cholesky(s.r2, s.q, n, nearly_one);
  finish_factors(tree, entry, n, s);
}

/* --- sums over chunks */

template <class T>
__device__ void store_partial(const gram<wide<T>> &sum, square<wide<T>> &g, const bqr_tsqr &tree,
                              const chunk<T> &c) {
  sum.sum(g);
  wide<T> *to = partial_of<T>(tree, c.entry, c.number);
  for (int j = warp_id(); j < c.n; j += warps)
    if (lane_id() <= j) to[lane_id() + j * N] = g(lane_id(), j);
}

/* Adds up the sums of a member's chunks: the last block of each group of them the group's, the last of those
 * all. True in that block, with the sum in g and ones behind the last column. counters: one, and one for each
 * group. */
template <class T>
__device__ bool sum_chunks(const bqr_tsqr &tree, const chunk<T> &c, int *counter, triangle<wide<T>> &g) {
  using X = wide<T>;
  const int chunks = chunks_of(tree, c.m), groups = (chunks - 1) / group + 1, i = lane_id();
  const int64_t first = c.number / group * group;
  const int in_group = least(group, chunks - static_cast<int>(first));
  const int64_t stride = N * static_cast<int64_t>(tree.columns);
  if (!last_to_arrive(counter + 1 + first / group, in_group)) return false;
  auto add_up = [&](X(&sum)[N / warps], int64_t apart, int count, int64_t from) {
#pragma unroll
    for (int k = 0; k < N / warps; k++) {
      const int j = warp_id() + warps * k;
      sum[k] = sum_shared<group>(partial_of<T>(tree, c.entry, from) + i + j * N, apart,
                                 i <= j && j < c.n ? count : 0);
    }
  };
  X sum[N / warps];
  add_up(sum, stride, in_group, first);
  if (groups > 1) {
#pragma unroll
    for (int k = 0; k < N / warps; k++) {
      const int j = warp_id() + warps * k;
      if (i <= j && j < c.n) partial_of<T>(tree, c.entry, first)[i + j * N] = sum[k];
    }
    if (!last_to_arrive(counter, groups)) return false;
    add_up(sum, group * stride, groups, 0);
  }
#pragma unroll
  for (int k = 0; k < N / warps; k++) {
    const int j = warp_id() + warps * k;
    g(i, j) = i == j && j >= c.n ? one<X>() : sum[k];
  }
  block_sync();
  return true;
}

/* --- passes */

/* Adds the rows of a slab. */
template <class T> __device__ __forceinline__ void add_slab(gram<wide<T>> &sum, const T *slab, int used) {
  using stream = row_stream<T>;
#pragma unroll
  for (int part = 0; part < stream::rows; part += gram_rows<T>::rows) {
    gram_rows<T> x;
#pragma unroll
    for (int J = 0; J < tiles; J++) x.read(J, slab + (tile * J + lane_id() / 4) * stream::ld + part);
    sum.add(x.x, used);
  }
}

template <class T> union first_pass {
  typename row_stream<T>::storage rows;
  square<wide<T>> g;
  factor_storage<T> factors;
};

template <class T>
__global__ void __launch_bounds__(threads, is_complex<T> ? 1 : 2)
    first_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_tsqr tree) {
  auto &s = *shared_memory<first_pass<T>>();
  for_chunks<T>(args, tree, 0, [&](const chunk<T> &c) {
    const int used = (c.n - 1) / tile + 1;
    gram<wide<T>> sum;
    row_stream<T>(s.rows, c).run([&](T *slab, int) { add_slab(sum, slab, used); });
    block_sync();
    store_partial(sum, s.g, tree, c);
    if (sum_chunks(tree, c, counters_of(tree, c.entry, 0), s.factors.r1))
      first_factor<T>(tree, c.entry, c.n, c.a, c.ld, s.factors);
  });
}

template <class T> union second_pass {
  struct {
    typename row_stream<T>::storage rows;
    divisor<T> r1;
  };
  square<wide<T>> g;
  factor_storage<T> factors;
};

template <class T>
__global__ void __launch_bounds__(threads, is_complex<T> ? 1 : 2)
    second_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_tsqr tree) {
  using stream = row_stream<T>;
  auto &s = *shared_memory<second_pass<T>>();
  for_chunks<T>(args, tree, 1, [&](const chunk<T> &c) {
    stream rows(s.rows, c);
    s.r1.load(factor_of<T>(tree, c.entry, 0));
    block_sync();
    const int used = (c.n - 1) / tile + 1;
    const bool refined = tree.method[c.entry] == cholesky_refined;
    T *x1 = factor_of<T>(tree, c.entry, 2);
    gram<wide<T>> sum;
    rows.run([&](T *slab, int first) {
      product_rows<T> x;
      x.read(slab, stream::ld);
      s.r1.divide(x, used, refined); /* R is ill-conditioned where it takes refinement */
      if (first < N)
        x.each([&](T &y, int i, int j) {
          if (first + i < N) x1[first + i + j * N] = y;
        });
      warp_sync();
      x.write(slab, stream::ld);
      warp_sync();
      add_slab(sum, slab, used);
    });
    block_sync();
    store_partial(sum, s.g, tree, c);
    if (sum_chunks(tree, c, counters_of(tree, c.entry, 1), s.factors.r2))
      second_factor<T>(tree, c.entry, c.n, s.factors);
  });
}

template <class T> struct third_pass {
  typename row_stream<T>::storage rows;
  divisor<T> r1, u;
};

template <class T>
__global__ void __launch_bounds__(threads, is_complex<T> ? 1 : 2)
    third_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_tsqr tree) {
  using stream = row_stream<T>;
  auto &s = *shared_memory<third_pass<T>>();
  fill_nodes<T>(args, tree);
  for_chunks<T>(args, tree, 2, [&](const chunk<T> &c) {
    stream rows(s.rows, c);
    s.r1.load(factor_of<T>(tree, c.entry, 0));
    s.u.load(factor_of<T>(tree, c.entry, 1));
    block_sync();
    const int used = (c.n - 1) / tile + 1;
    const int what = tree.method[c.entry];
    real_t<T> norms[tiles][2] = {};
    rows.run([&](T *slab, int first) {
      product_rows<T> x;
      x.read(slab, stream::ld);
      if (what != cholesky_once) s.r1.divide(x, used, what == cholesky_refined);
      s.u.divide(x, used, false);
      x.store(c.a, c.ld, c.end, c.n, first, c.packs, c.n, norms);
    });
    sum_norms<T>(norms, norms_of(tree, c.entry, c.number));
    const int chunks = chunks_of(tree, c.m);
    if (!last_to_arrive(counters_of(tree, c.entry, 2), chunks)) return;
    member x = valid_member(args, c.entry);
    const int info = finish_member<T>(args, tree, x, c.entry, chunks);
    if (thread_id() == 0) set_info(args, x.id, info);
  });
}
} // namespace

extern "C" {

batchqr_status bqr_tsqr_gram(const bqr_problem *problem, const bqr_args *args, const bqr_tsqr *tree,
                             batchqr_stream stream) {
  return with_type(problem, [&](auto x) {
    using T = decltype(x);
    const unsigned chunks = grid_for(args->count * tree->chunks);
    batchqr_status status =
        status_of(cudaMemsetAsync(tree->counters, 0, sizeof(int) * counters * args->count, stream));
    if (!status)
      status = launch_kernel(first_kernel<T>, chunks, threads, sizeof(first_pass<T>), stream, *args, *tree);
    if (!status)
      status = launch_kernel(second_kernel<T>, chunks, threads, sizeof(second_pass<T>), stream, *args, *tree);
    if (!status)
      status = launch_kernel(third_kernel<T>, chunks, threads, sizeof(third_pass<T>), stream, *args, *tree);
    return status;
  });
}

batchqr_status bqr_tsqr_gram_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(first_kernel<T>, sizeof(first_pass<T>));
    if (!status) status = prepare_kernel(second_kernel<T>, sizeof(second_pass<T>));
    return status ? status : prepare_kernel(third_kernel<T>, sizeof(third_pass<T>));
  });
}
}
