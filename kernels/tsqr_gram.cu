/* SPDX-License-Identifier: BSD-3-Clause */
/* Tall members whose columns are far from dependent, at the speed of memory: Q from Cholesky factors instead
 * of a tree, twice, which leaves Q orthogonal to rounding where it can be done at all. (T. Fukaya, Y.
 * Nakatsukasa, Y. Yanagisawa, Y. Yamamoto, CholeskyQR2, 2014.) Three passes over A:
 *
 *   1. A^H A = R1^H R1
 *   2. X = A R1^-1, X^H X = R2^H R2
 *   3. Y = X (U R2)^-1, where X1 R2^-1 - S = Y1 U as in tsqr.cu, X1 being X's first rows; R = R2 R1
 *
 * The sums are formed in double precision in every type (I. Yamazaki, S. Tomov, J. Dongarra, Mixed-precision
 * Cholesky QR, 2015). A member is `hard` and left to a tree where a pivot is next to nothing, where X^H X is
 * not near I, and where a norm is too large or small to be squared; NaNs among them. Nothing of A is written
 * before that is known: X is made twice, with the same bits.
 *
 * Triangles divide by tiles of 8 columns, with inverses of the diagonal tiles; those of R1, which may be
 * ill-conditioned, are followed by a step of refinement.
 *
 * An entry's `factors`: R1 and the inverses of its diagonal tiles, U R2 and its inverses, X1. */
#include "tsqr.cuh"

namespace {
using namespace bqr;
using namespace bqr::tsqr;

constexpr int inverses = tiles * tile * tile, factor_elements = N * N + inverses;

/* R1 (0) or U R2 (1) of an entry; X1 (2). */
template <class T> BQR_INLINE T *factor_of(const batchqr_tsqr &tree, int64_t entry, int which) {
  return static_cast<T *>(tree.factors) + entry * BATCHQR_TSQR_FACTORS + which * factor_elements;
}
template <class T> BQR_INLINE wide<T> *gram_of(const batchqr_tsqr &tree, int64_t entry) {
  return static_cast<wide<T> *>(tree.grams) + entry * N * tree.columns;
}
template <class T> BQR_INLINE wide<T> *partial_of(const batchqr_tsqr &tree, int64_t entry, int64_t chunk) {
  return static_cast<wide<T> *>(tree.partials) + (entry * tree.chunks + chunk) * N * tree.columns;
}

/* Members that are tried here: those with several leaves, and after the first pass those not found hard. */
__device__ member gram_member(const batchqr_args &args, const batchqr_tsqr &tree, int64_t entry, bool first) {
  member x = valid_member(args, entry);
  if (x.m <= tree.rows || (!first && tree.hard[entry])) x.m = 0;
  return x;
}

/* A chunk of a member's rows. */
template <class T> struct chunk {
  T *a;
  int64_t ld, entry, number;
  int n, first, end; /* its columns; its first row, and the one behind it */
  bool packs;
};

/* f(chunk) for the block's share of all members' chunks. */
template <class T, class F>
__device__ __forceinline__ void for_chunks(const batchqr_args &args, const batchqr_tsqr &tree, bool first,
                                           F &&f) {
  for (int64_t i = blockIdx.x; i < args.count * tree.chunks; i += gridDim.x) {
    chunk<T> c;
    c.entry = i / tree.chunks;
    c.number = i % tree.chunks;
    member x = gram_member(args, tree, c.entry, first);
    if (x.m > 0 && c.number < chunks_of(x.m)) {
      c.a = matrix_data<T>(args, args.a, x.id);
      c.ld = matrix_ld(args.a, x.id);
      c.n = x.n;
      c.first = static_cast<int>(c.number) * chunk_rows(x.m);
      c.end = c.first + least(chunk_rows(x.m), x.m - c.first);
      c.packs = tile_packs(c.a, c.ld, 0);
      f(c);
    }
    block_sync();
  }
}

/* Each warp's share of a chunk: f(rows, their first). Other warps' loads are what a warp computes beside. */
template <class ROWS, class T, class F> __device__ __forceinline__ void for_rows(const chunk<T> &c, F &&f) {
  for (int first = c.first + warp_id() * ROWS::rows; first < c.end; first += warps * ROWS::rows) {
    ROWS x;
    x.load(c.a, c.ld, c.end, c.n, first, c.packs);
    f(x, first);
  }
}

template <class T>
__device__ void store_partial(const gram<wide<T>> &sum, square<wide<T>> &g, const batchqr_tsqr &tree,
                              const chunk<T> &c) {
  sum.sum(g);
  wide<T> *to = partial_of<T>(tree, c.entry, c.number);
  for (int j = warp_id(); j < c.n; j += warps)
    if (lane_id() <= j) to[lane_id() + j * N] = g(lane_id(), j);
}

template <class T>
__global__ void __launch_bounds__(threads, is_complex<T> ? 1 : 2)
    gram_kernel(const __grid_constant__ batchqr_args args, const __grid_constant__ batchqr_tsqr tree) {
  __shared__ square<wide<T>> g;
  for_chunks<T>(args, tree, true, [&](const chunk<T> &c) {
    const int used = (c.n - 1) / tile + 1;
    gram<wide<T>> sum;
    for_rows<gram_rows<T>>(c, [&](gram_rows<T> &x, int) { sum.add(x.x, used); });
    store_partial(sum, g, tree, c);
  });
}

/* Adds up the chunks' sums, a block for a column. */
template <class T>
__global__ void __launch_bounds__(threads) sum_kernel(const __grid_constant__ batchqr_args args,
                                                      const __grid_constant__ batchqr_tsqr tree, bool first) {
  __shared__ wide<T> part[warps][N];
  for (int64_t i = blockIdx.x; i < args.count * tree.columns; i += gridDim.x) {
    const int64_t entry = i / tree.columns, j = i % tree.columns;
    member x = gram_member(args, tree, entry, first);
    const int row = lane_id();
    if (x.m > 0 && j < x.n) {
      const int64_t chunks = chunks_of(x.m);
      const wide<T> *from = partial_of<T>(tree, entry, 0) + row + j * N;
      wide<T> sum = zero<wide<T>>();
      if (row <= j) {
#pragma unroll 8
        for (int64_t c = warp_id(); c < chunks; c += warps) sum += from[c * N * tree.columns];
      }
      part[warp_id()][row] = sum;
    }
    block_sync();
    if (x.m > 0 && j < x.n && warp_id() == 0) {
      wide<T> sum = part[0][row];
      for (int w = 1; w < warps; w++) sum += part[w][row];
      if (row <= j) gram_of<T>(tree, entry)[row + j * N] = sum;
    }
    block_sync();
  }
}

/* --- triangles, by one block */

/* 32 x 32 numbers in shared memory, of which rows are read as well as columns. */
template <class X> struct triangle {
  X x[N][N + 1];
  __device__ __forceinline__ X &operator()(int i, int j) { return x[j][i]; }
};

template <class T> __device__ void load_gram(triangle<wide<T>> &g, const wide<T> *from, int n) {
  for (int j = warp_id(); j < N; j += warps) {
    const int i = lane_id();
    g(i, j) = i <= j && j < n ? from[i + j * N] : i == j ? one<wide<T>>() : zero<wide<T>>();
  }
  block_sync();
}

/* g := R, g = R^H R. Row j stays as step j finds it until the end. Whether all pivots were above their lanes'
 * bounds. Others must be done with g before; ends with a barrier. */
template <class X> __device__ bool cholesky(triangle<X> &g, int n, double bound) {
  const int c = lane_id();
  for (int j = 0; j + 1 < n; j++) {
    const X factor = scaled(g(j, c), fast_recip(real_part(g(j, j))));
    for (int i = warp_id(); i <= c; i += warps)
      if (i > j) g(i, c) = madd(-conj(g(j, i)), factor, g(i, c));
    block_sync();
  }
  const bool good = !block_any(!(real_part(g(c, c)) > bound));
  for (int i = warp_id(); i < N; i += warps) {
    const double d = real_part(g(i, i)), r = fast_rsqrt(d);
    const X x = scaled(g(i, c), r);
    warp_sync();
    g(i, c) = i > c ? zero<X>() : i == c ? make<X>(d * r) : x;
  }
  block_sync();
  return good;
}

/* Rounds a triangle to T, in place and to a factor, and inverts its diagonal tiles. */
template <class T> __device__ void store_factor(triangle<wide<T>> &r, T *to) {
  using X = wide<T>;
  for (int j = warp_id(); j < N; j += warps) {
    const T x = converted<T>(r(lane_id(), j));
    to[lane_id() + j * N] = x;
    r(lane_id(), j) = converted<X>(x);
  }
  block_sync();
  if (thread_id() >= N) return;
  const int first = thread_id() / tile * tile, c = thread_id() % tile;
  X z[tile];
#pragma unroll
  for (int i = tile - 1; i >= 0; i--) {
    X sum = i == c ? one<X>() : zero<X>();
#pragma unroll
    for (int k = i + 1; k < tile; k++) sum = madd(-r(first + i, first + k), z[k], sum);
    z[i] = i <= c ? sum * reciprocal_of(r(first + i, first + i)) : zero<X>();
    to[N * N + first * tile + i + c * tile] = converted<T>(z[i]);
  }
}

/* Squares of norms between these bounds: what T holds with room to multiply. */
template <class R> constexpr double least_norm2 = sizeof(R) == 4 ? 0x1p-60 : 0x1p-600;
template <class R> constexpr double most_norm2 = sizeof(R) == 4 ? 0x1p60 : 0x1p600;

/* R1, and which members are hard so far. */
template <class T>
__global__ void __launch_bounds__(threads)
    first_kernel(const __grid_constant__ batchqr_args args, const __grid_constant__ batchqr_tsqr tree) {
  using R = real_t<T>;
  __shared__ triangle<wide<T>> g;
  for (int64_t entry = blockIdx.x; entry < args.count; entry += gridDim.x) {
    member x = gram_member(args, tree, entry, true);
    bool easy = false;
    if (x.m > 0) {
      load_gram<T>(g, gram_of<T>(tree, entry), x.n);
      const double norm2 = real_part(g(lane_id(), lane_id()));
      easy = !block_any(!(norm2 > least_norm2<R> && norm2 < most_norm2<R>));
      easy = cholesky(g, x.n, 0x1p-42 * norm2) && easy;
      if (easy) store_factor<T>(g, factor_of<T>(tree, entry, 0));
    }
    if (thread_id() == 0) tree.hard[entry] = easy ? 0 : 1;
    block_sync();
  }
}

/* X1 := X1 R2^-1, 8 threads to a row. */
template <class T>
__device__ void divide_first_rows(const T *from, triangle<wide<T>> &r, square<wide<T>> &q, int n) {
  using X = wide<T>;
  const int row = thread_id() / 8, sub = thread_id() % 8;
  X b[N / 8];
#pragma unroll
  for (int k = 0; k < N / 8; k++)
    b[k] = row < n && sub + 8 * k < n ? converted<X>(from[row + (sub + 8 * k) * N]) : zero<X>();
  static_for<N>([&](auto index) {
    constexpr int j = decltype(index)::value;
    const X x = scaled(broadcast<8>(b[j / 8], j % 8), 1 / real_part(r(j, j)));
    if (sub == j % 8) b[j / 8] = x;
#pragma unroll
    for (int k = j / 8; k < N / 8; k++)
      if (sub + 8 * k > j) b[k] = madd(-x, r(j, sub + 8 * k), b[k]);
  });
#pragma unroll
  for (int k = 0; k < N / 8; k++) q(row, sub + 8 * k) = b[k];
}

/* Element (i, j) of a product of upper triangles. */
template <class X, class F> __device__ X upper_product(F &&left, triangle<X> &right, int i, int j) {
  X sum = zero<X>();
  for (int k = i; k <= j; k++) sum = madd(left(i, k), right(k, j), sum);
  return sum;
}

template <class T> struct second_storage {
  triangle<wide<T>> r1, r2;
  square<wide<T>> q;
};

/* R2, R, U and the first rows of Y, and which members are hard after all. */
template <class T>
__global__ void __launch_bounds__(threads)
    second_kernel(const __grid_constant__ batchqr_args args, const __grid_constant__ batchqr_tsqr tree) {
  using X = wide<T>;
  auto &s = *shared_memory<second_storage<T>>();
  const int i = lane_id();
  for (int64_t entry = blockIdx.x; entry < args.count; entry += gridDim.x) {
    block_sync();
    member x = gram_member(args, tree, entry, false);
    if (x.m == 0) continue;
    load_gram<T>(s.r2, gram_of<T>(tree, entry), x.n);
    bool near = true; /* NaN is not */
    for (int j = warp_id(); j < N; j += warps)
      near &= abs2(s.r2(i, j) - (i == j ? one<X>() : zero<X>())) < 0x1p-12;
    if (block_any(!near)) {
      if (thread_id() == 0) tree.hard[entry] = 1;
      continue;
    }
    cholesky(s.r2, x.n, 0);
    const T *r1 = factor_of<T>(tree, entry, 0), *x1 = factor_of<T>(tree, entry, 2);
    for (int j = warp_id(); j < N; j += warps) s.r1(i, j) = converted<X>(r1[i + j * N]);
    block_sync();
    T *top = top_of<T>(tree, entry), *r = top + N * (N + 1);
    for (int j = warp_id(); j < x.n; j += warps) r[i + j * N] = converted<T>(upper_product(s.r2, s.r1, i, j));
    divide_first_rows(x1, s.r2, s.q, x.n);
    factor_top<T>(s.q, x.n, top);
    for (int j = warp_id(); j < N; j += warps)
      s.r1(i, j) = j < x.n ? upper_product(s.q, s.r2, i, j) : i == j ? one<X>() : zero<X>();
    block_sync();
    store_factor<T>(s.r1, factor_of<T>(tree, entry, 1));
  }
}

/* --- triangles as divisors */

/* An upper triangle R as operands, to divide rows by. */
template <class T> class divisor {
public:
  /* From a factor. A barrier must follow. */
  __device__ void load(const T *factor) {
    for (int e = thread_id(); e < (above + tiles) * warp_lanes; e += threads) {
      const int lane = e % warp_lanes, g = lane / 4, q = lane % 4;
      int K = e / warp_lanes - above, J = K; /* a tile on the diagonal, or one above it */
      if (K < 0)
        for (K += above, J = 1; K >= J; J++) K -= J;
      for (int s = 0; s < 2; s++) {
        const int i = 2 * q + s;
        r_[e][s] = split(-factor[tile * K + i + (tile * J + g) * N]);
        if (K == J)
          inverse_[K * warp_lanes + lane][s] = split(factor[N * N + J * tile * tile + i + g * tile]);
      }
    }
  }

  /* x := x R^-1, columns beyond the first `used` tiles being zero. */
  template <bool REFINED> __device__ __forceinline__ void divide(product_rows<T> &x, int used) const {
#pragma unroll
    for (int p = 0; p < product_rows<T>::height; p += 2) {
      operand<T> done[tiles][4];
#pragma unroll
      for (int J = 0; J < tiles; J++) {
        if (J >= used) break;
        T rest[4] = {x.x[J][0][p], x.x[J][1][p], x.x[J][0][p + 1], x.x[J][1][p + 1]};
#pragma unroll
        for (int K = 0; K < J; K++) add(rest, done[K], r_ + (J * (J - 1) / 2 + K) * warp_lanes);
        T y[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
        operand<T> a[4];
        split_all(a, rest);
        add(y, a, inverse_ + J * warp_lanes);
        if constexpr (REFINED) {
          split_all(a, y);
          add(rest, a, r_ + (above + J) * warp_lanes);
          split_all(a, rest);
          add(y, a, inverse_ + J * warp_lanes);
        }
        split_all(done[J], y);
        x.x[J][0][p] = y[0];
        x.x[J][1][p] = y[1];
        x.x[J][0][p + 1] = y[2];
        x.x[J][1][p + 1] = y[3];
      }
    }
  }

private:
  static constexpr int above = tiles * (tiles - 1) / 2;

  __device__ __forceinline__ static void split_all(operand<T> (&a)[4], const T (&x)[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) a[e] = split(x[e]);
  }
  /* c += a times the tile that starts at b. */
  __device__ __forceinline__ static void add(T (&c)[4], const operand<T> (&a)[4], const operand<T> (*b)[2]) {
    const operand<T>(&mine)[2] = b[lane_id()];
    multiply_add(c, a, mine);
  }

  operand<T> r_[(above + tiles) * warp_lanes][2]; /* -R: tiles above the diagonal, tiles on it */
  operand<T> inverse_[tiles * warp_lanes][2];
};

template <class T> struct second_pass {
  static constexpr int ld = product_rows<T>::rows + pack<T>::size;
  divisor<T> r1;
  square<wide<T>> g;
  alignas(16) T x[warps][N * ld]; /* to turn rows of X as made into rows as summed */
};

template <class T>
__global__ void __launch_bounds__(threads, is_complex<T> ? 1 : 2)
    second_gram_kernel(const __grid_constant__ batchqr_args args, const __grid_constant__ batchqr_tsqr tree) {
  using pass = second_pass<T>;
  auto &s = *shared_memory<pass>();
  for_chunks<T>(args, tree, false, [&](const chunk<T> &c) {
    s.r1.load(factor_of<T>(tree, c.entry, 0));
    block_sync();
    const int used = (c.n - 1) / tile + 1;
    T *mine = s.x[warp_id()], *x1 = factor_of<T>(tree, c.entry, 2);
    gram<wide<T>> sum;
    for_rows<product_rows<T>>(c, [&](product_rows<T> &x, int first) {
      s.r1.template divide<true>(x, used);
#pragma unroll
      for (int K = 0; K < tiles; K++)
#pragma unroll
        for (int e = 0; e < 2; e++) column_write<0>(mine + x.column(K, e) * pass::ld + x.row(0), x.x[K][e]);
      if (first < N) x.each([&](T &y, int i, int j) { x1[first + i + j * N] = y; });
      warp_sync();
#pragma unroll
      for (int part = 0; part < product_rows<T>::rows; part += gram_rows<T>::rows) {
        gram_rows<T> turned;
#pragma unroll
        for (int J = 0; J < tiles; J++) turned.read(J, mine + (tile * J + lane_id() / 4) * pass::ld + part);
        sum.add(turned.x, used);
      }
      warp_sync();
    });
    store_partial(sum, s.g, tree, c);
  });
}

template <class T> struct third_pass { divisor<T> r1, u; };

template <class T>
__global__ void __launch_bounds__(threads, is_complex<T> ? 1 : 2)
    vectors_kernel(const __grid_constant__ batchqr_args args, const __grid_constant__ batchqr_tsqr tree) {
  auto &s = *shared_memory<third_pass<T>>();
  for_chunks<T>(args, tree, false, [&](const chunk<T> &c) {
    s.r1.load(factor_of<T>(tree, c.entry, 0));
    s.u.load(factor_of<T>(tree, c.entry, 1));
    block_sync();
    const int used = (c.n - 1) / tile + 1;
    real_t<T> norms[tiles][2] = {};
    for_rows<product_rows<T>>(c, [&](product_rows<T> &x, int first) {
      s.r1.template divide<true>(x, used);
      s.u.template divide<false>(x, used);
      x.store(c.a, c.ld, c.end, c.n, first, c.packs, c.n, norms);
    });
    sum_norms<T>(norms, norms_of(tree, c.entry, c.number));
  });
}
} // namespace

extern "C" {

batchqr_status batchqr_tsqr_gram(const batchqr_problem *problem, const batchqr_args *args,
                                 const batchqr_tsqr *tree, batchqr_stream stream) {
  return with_type(problem, [&](auto x) {
    using T = decltype(x);
    const unsigned chunks = grid_for(args->count * tree->chunks), entries = grid_for(args->count),
                   columns = grid_for(args->count * tree->columns);
    batchqr_status status = launch_kernel(gram_kernel<T>, chunks, threads, 0, stream, *args, *tree);
    if (!status) status = launch_kernel(sum_kernel<T>, columns, threads, 0, stream, *args, *tree, true);
    if (!status) status = launch_kernel(first_kernel<T>, entries, threads, 0, stream, *args, *tree);
    if (!status)
      status =
          launch_kernel(second_gram_kernel<T>, chunks, threads, sizeof(second_pass<T>), stream, *args, *tree);
    if (!status) status = launch_kernel(sum_kernel<T>, columns, threads, 0, stream, *args, *tree, false);
    if (!status)
      status =
          launch_kernel(second_kernel<T>, entries, threads, sizeof(second_storage<T>), stream, *args, *tree);
    if (!status)
      status = launch_kernel(vectors_kernel<T>, chunks, threads, sizeof(third_pass<T>), stream, *args, *tree);
    return status;
  });
}

batchqr_status batchqr_tsqr_gram_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(gram_kernel<T>, 0);
    if (!status) status = prepare_kernel(sum_kernel<T>, 0);
    if (!status) status = prepare_kernel(first_kernel<T>, 0);
    if (!status) status = prepare_kernel(second_gram_kernel<T>, sizeof(second_pass<T>));
    if (!status) status = prepare_kernel(second_kernel<T>, sizeof(second_storage<T>));
    return status ? status : prepare_kernel(vectors_kernel<T>, sizeof(third_pass<T>));
  });
}
}
