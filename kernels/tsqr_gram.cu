/* SPDX-License-Identifier: BSD-3-Clause */
/* Tall members whose columns are far from dependent, at the speed of memory: Q from Cholesky factors instead
 * of a tree, twice, which leaves Q orthogonal to rounding where it can be done at all. (T. Fukaya, Y.
 * Nakatsukasa, Y. Yanagisawa, Y. Yamamoto, CholeskyQR2, 2014.) Three passes over A:
 *
 *   1. A^H A = R1^H R1
 *   2. X = A R1^-1, X^H X = R2^H R2
 *   3. Y = X (U R2)^-1, where X1 R2^-1 - S = Y1 U as in tsqr.cu, X1 being X's first rows; R = R2 R1
 *
 * Where columns are nearly orthogonal to each other from the beginning, the member is `flat`: R2 is I to
 * rounding, and there is no second pass.
 *
 * The sums are formed in double precision in every type (I. Yamazaki, S. Tomov, J. Dongarra, Mixed-precision
 * Cholesky QR, 2015). A member is `hard` and left to a tree where a pivot is next to nothing, where X^H X is
 * not near I, and where a norm is too large or small to be squared; NaNs among them. Nothing of A is written
 * before that is known: X is made twice, with the same bits.
 *
 * Triangles divide by tiles of 8 columns, with inverses of the diagonal tiles; where those of R1 are
 * ill-conditioned, the member is `rough` and a step of refinement follows.
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
/* Chunks are added up in groups, see sum_chunks(). */
constexpr int group = 16;
/* Those of a pass: 0, 1 or 2. The trees use those of pass 2, no member both. */
BQR_INLINE int *counters_of(const batchqr_tsqr &tree, int64_t entry, int pass) {
  return tree.counters + entry * counters + (2 - pass) * (1 + BATCHQR_TSQR_CHUNKS / group);
}
template <class T> BQR_INLINE wide<T> *partial_of(const batchqr_tsqr &tree, int64_t entry, int64_t chunk) {
  return static_cast<wide<T> *>(tree.partials) + (entry * tree.chunks + chunk) * N * tree.columns;
}

/* Members that a pass, 0, 1 or 2, works on: those with several leaves that need it and were not found hard.
 */
__device__ member gram_member(const batchqr_args &args, const batchqr_tsqr &tree, int64_t entry, int pass) {
  member x = valid_member(args, entry);
  const int what = x.m > tree.rows && pass > 0 ? tree.hard[entry] : entry_easy;
  if (x.m <= tree.rows || what == entry_hard || (what == entry_flat && pass == 1)) x.m = 0;
  return x;
}

/* A chunk of a member's rows. */
template <class T> struct chunk {
  T *a;
  int64_t ld, entry, number;
  int m, n, first, end; /* the member's sizes; the chunk's first row, and the one behind it */
  bool packs;
};

/* f(chunk) for the block's share of all members' chunks. */
template <class T, class F>
__device__ __forceinline__ void for_chunks(const batchqr_args &args, const batchqr_tsqr &tree, int pass,
                                           F &&f) {
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

/* A chunk's rows, slab by slab through shared memory: while one is worked on, others are on their way. All of
 * a block copy a slab together, so that what is read of a column at a time is long; a warp has `rows` rows of
 * it. Slabs are stored by columns; the two ways of reading them are free of conflicts, or nearly so. */
template <class T> class row_stream {
  static constexpr int stages = 3, height = warps * product_rows<T>::rows;

public:
  static constexpr int rows = product_rows<T>::rows, ld = height + pack<T>::size;
  struct storage {
    alignas(16) T x[stages][N * ld];
  };

  /* Starts the first copies. All threads call it, and the others, together. */
  __device__ row_stream(storage &s, const chunk<T> &c) : slabs_(s.x), c_(c) {
    for (int stage = 0; stage < stages; stage++)
      for (int e = c.n * ld + thread_id(); e < N * ld; e += threads) slabs_[stage][e] = zero<T>();
    for (int stage = 0; stage + 1 < stages; stage++) start(c.first + stage * height, slabs_[stage]);
  }

  /* f(the warp's part of a slab, its first row); f may use it for what it likes. A barrier must follow before
   * the storage is used for something else. */
  template <class F> __device__ __forceinline__ void run(F &&f) {
    int turn = 0;
    for (int first = c_.first; first < c_.end; first += height) {
      copy_async_wait_for<stages - 2>();
      block_sync();
      start(first + (stages - 1) * height, slabs_[turn == 0 ? stages - 1 : turn - 1]);
      const int mine = warp_id() * rows;
      if (first + mine < c_.end) f(slabs_[turn] + mine, first + mine);
      turn = turn + 1 == stages ? 0 : turn + 1;
    }
  }

private:
  /* Starts copying the rows from `first` on, with zeros behind the last one. */
  __device__ __forceinline__ void start(int first, T *slab) const {
    if (first < c_.end) {
      if (c_.packs)
        copy<pack<T>::size>(first, slab);
      else
        copy<1>(first, slab);
    }
    copy_async_commit();
  }
  template <int UNIT> __device__ __forceinline__ void copy(int first, T *slab) const {
    constexpr int units = height / UNIT, columns = threads / units;
    const int row = thread_id() % units * UNIT, left = largest(0, least(UNIT, c_.end - first - row));
    const int column = thread_id() / units;
    const int64_t step = columns * c_.ld;
    const T *from = c_.a + (left > 0 ? first + row : first) + column * c_.ld;
    T *to = slab + row + column * ld;
#pragma unroll 4
    for (int j = column; j < c_.n; j += columns, from += step, to += columns * ld)
      copy_async_part<UNIT * sizeof(T)>(to, from, left * static_cast<int>(sizeof(T)));
  }

  T (*slabs_)[N * ld];
  const chunk<T> &c_;
};

/* --- triangles, by one block */

/* 32 x 32 numbers in shared memory, of which rows are read as well as columns. */
template <class X> struct triangle {
  X x[N][N + 1];
  __device__ __forceinline__ X &operator()(int i, int j) { return x[j][i]; }
};

/* g := R, g = R^H R. Lanes have a column each and warps every eighth row, in registers; row j comes to all
 * through g. Whether all pivots were above their lanes' bounds. Others must be done with g before; ends with
 * a barrier. */
template <class X> __device__ bool cholesky(triangle<X> &g, int n, double bound) {
  constexpr int shares = N / warps;
  const int c = lane_id();
  bool good = true;
  X a[shares];
#pragma unroll
  for (int k = 0; k < shares; k++) a[k] = g(warp_id() + warps * k, c);
  block_sync();
#pragma unroll
  for (int k = 0; k < shares; k++)
    for (int owner = 0; owner < warps; owner++) {
      const int j = owner + warps * k;
      if (warp_id() == owner) g(j, c) = a[k];
      block_sync();
      const double pivot = real_part(g(j, j)), r = fast_rsqrt(pivot);
      if (c == j) good = pivot > bound;
      const X x = scaled(g(j, c), r);
      const X factor = scaled(x, r);
#pragma unroll
      for (int q = k; q < shares; q++) {
        const int i = warp_id() + warps * q;
        if (i > j) a[q] = madd(-conj(g(j, i)), factor, a[q]);
      }
      if (warp_id() == owner) a[k] = c < j ? zero<X>() : c == j ? make<X>(pivot * r) : x;
      if (j + 1 >= n) break;
    }
  good = !block_any(!good);
#pragma unroll
  for (int k = 0; k < shares; k++)
    if (warp_id() + warps * k < n) g(warp_id() + warps * k, c) = a[k];
  block_sync();
  return good;
}

/* Rounds a triangle to T, in place and to a factor, and inverts its diagonal tiles. Lanes of warp 0 are left
 * with a column each of the inverses, in z. */
template <class T> __device__ void store_factor(triangle<wide<T>> &r, T *to, wide<T> (&z)[tile]) {
  using X = wide<T>;
  for (int j = warp_id(); j < N; j += warps) {
    const T x = converted<T>(r(lane_id(), j));
    to[lane_id() + j * N] = x;
    r(lane_id(), j) = converted<X>(x);
  }
  block_sync();
  if (warp_id() > 0) return;
  const int first = lane_id() / tile * tile, c = lane_id() % tile;
#pragma unroll
  for (int i = tile - 1; i >= 0; i--) {
    X sum = i == c ? one<X>() : zero<X>();
#pragma unroll
    for (int k = i + 1; k < tile; k++) sum = madd(-r(first + i, first + k), z[k], sum);
    z[i] = i <= c ? sum * reciprocal_of(r(first + i, first + i)) : zero<X>();
    to[N * N + first * tile + i + c * tile] = converted<T>(z[i]);
  }
}

/* |x|, or up to its square root of two fold. */
BQR_INLINE double size_of(double x) { return fabs(x); }
BQR_INLINE double size_of(complex<double> x) { return fabs(x.re) + fabs(x.im); }

/* Squares of norms between these bounds: what T holds with room to multiply. */
template <class R> constexpr double least_norm2 = sizeof(R) == 4 ? 0x1p-60 : 0x1p-600;
template <class R> constexpr double most_norm2 = sizeof(R) == 4 ? 0x1p60 : 0x1p600;

/* Whether rounding grows where diagonal tiles of R are divided by with their inverses z: |inverse| |R|, for
 * columns of the lanes' norms. By warp 0. */
template <class X> __device__ bool is_rough(triangle<X> &r, const X (&z)[tile], double norm) {
  const int c = lane_id(), first = c / tile * tile;
  double sum = 0, growth = 0;
#pragma unroll
  for (int i = 0; i < tile; i++) sum += size_of(z[i]) * broadcast<tile>(norm, i);
#pragma unroll
  for (int k = 0; k < tile; k++) growth += broadcast<tile>(sum, k) * size_of(r(first + k, c));
  return group_any(!(growth < 64 * norm));
}

/* f(i, j, element) of a product a b, elements being those of a(i, k) and b(k, j). f may write what a and b
 * read. Ends with a barrier. */
template <class X, class A, class B, class F> __device__ void product(A &&a, B &&b, F &&f) {
  const int g = lane_id() / 4, q = lane_id() % 4, I = 16 * (warp_id() / tiles),
            J = tile * (warp_id() % tiles);
  X c[4] = {zero<X>(), zero<X>(), zero<X>(), zero<X>()};
#pragma unroll
  for (int K = 2 * q; K < N; K += tile) {
    const operand<X> left[4] = {split(a(I + g, K)), split(a(I + g, K + 1)), split(a(I + g + 8, K)),
                                split(a(I + g + 8, K + 1))};
    const operand<X> right[2] = {split(b(K, J + g)), split(b(K + 1, J + g))};
    multiply_add(c, left, right);
  }
  block_sync();
#pragma unroll
  for (int e = 0; e < 4; e++) f(I + g + 8 * (e / 2), J + 2 * q + e % 2, c[e]);
  block_sync();
}

/* q := q r^-1, 8 threads to a row. A barrier must follow. */
template <class X> __device__ void divide_rows(triangle<X> &q, triangle<X> &r) {
  const int row = thread_id() / 8, sub = thread_id() % 8;
  X b[N / 8];
#pragma unroll
  for (int k = 0; k < N / 8; k++) b[k] = q(row, sub + 8 * k);
  static_for<N>([&](auto index) {
    constexpr int j = decltype(index)::value;
    const X x = scaled(broadcast<8>(b[j / 8], j % 8), fast_recip(real_part(r(j, j))));
    if (sub == j % 8) b[j / 8] = x;
#pragma unroll
    for (int k = j / 8; k < N / 8; k++)
      if (sub + 8 * k > j) b[k] = madd(-x, r(j, sub + 8 * k), b[k]);
  });
#pragma unroll
  for (int k = 0; k < N / 8; k++) q(row, sub + 8 * k) = b[k];
}

/* q := q R2^-1 and r2 := R2, from X^H X in r2. Where that differs from I by no more than the square root of
 * the rounding, R2 = I + D to rounding with D the upper triangle of X^H X - I, its diagonal halved, and R2^-1
 * = I - D. Ends with a barrier. */
template <class X> __device__ void second_cholesky(triangle<X> &r2, triangle<X> &q, int n, bool nearly_one) {
  if (!nearly_one) {
    cholesky(r2, n, 0);
    divide_rows(q, r2);
    block_sync();
    return;
  }
  if (thread_id() < N) {
    X &x = r2(thread_id(), thread_id());
    x = make<X>(0.5 + 0.5 * real_part(x));
  }
  block_sync();
  product<X>([&](int i, int k) { return q(i, k); }, [&](int k, int j) { return r2(k, j); },
             [&](int i, int j, X x) { q(i, j) = q(i, j) + q(i, j) - x; });
}

template <class T> struct factor_storage { triangle<wide<T>> r1, r2, q; };

/* R, U and the first rows of Y, from R1, R2 and X1 R2^-1 in q. */
template <class T>
__device__ void finish_factors(const batchqr_tsqr &tree, int64_t entry, int n, factor_storage<T> &s) {
  using X = wide<T>;
  T *top = top_of<T>(tree, entry), *r = top + N * (N + 1);
  product<X>([&](int i, int k) { return s.r2(i, k); }, [&](int k, int j) { return s.r1(k, j); },
             [&](int i, int j, X x) { r[i + j * N] = i <= j ? converted<T>(x) : zero<T>(); });
  factor_top<T>(s.q, n, top);
  product<X>([&](int i, int k) { return i <= k ? s.q(i, k) : zero<X>(); },
             [&](int k, int j) { return s.r2(k, j); },
             [&](int i, int j, X x) { s.r1(i, j) = i == j && j >= n ? one<X>()
                                                   : i <= j         ? x
                                                                    : zero<X>(); });
  X z[tile];
  store_factor<T>(s.r1, factor_of<T>(tree, entry, 1), z);
}

/* Whether columns with these products are nearly orthogonal to each other: all eigenvalues of the matrix of
 * their cosines are between 1/2 and 3/2. */
template <class X> __device__ bool is_flat(triangle<X> &g, int n) {
  __shared__ double sums[warps];
  const int i = lane_id();
  double sum = 0;
  for (int j = warp_id(); j < n; j += warps)
    if (i < j)
      sum += abs2(scaled(scaled(g(i, j), fast_rsqrt(real_part(g(i, i)))), fast_rsqrt(real_part(g(j, j)))));
  sum = group_sum(sum);
  if (i == 0) sums[warp_id()] = sum;
  block_sync();
  sum = 0;
  for (double part : sums) sum += part;
  return sum < 0.125;
}

/* R1, and what is known of the member so far; of a flat one all the rest, a being its first rows. */
template <class T>
__device__ __noinline__ void first_factor(const batchqr_tsqr &tree, int64_t entry, int n, const T *a,
                                          int64_t lda, factor_storage<T> &s) {
  using R = real_t<T>;
  using X = wide<T>;
  const int i = lane_id();
  const double norm2 = real_part(s.r1(i, i));
  const bool in_range = !block_any(!(norm2 > least_norm2<R> && norm2 < most_norm2<R>));
  const bool flat = in_range && is_flat(s.r1, n);
  bool easy = cholesky(s.r1, n, 0x1p-42 * norm2) && in_range, rough = false;
  if (easy) {
    X z[tile];
    store_factor<T>(s.r1, factor_of<T>(tree, entry, 0), z);
    rough = block_any(warp_id() == 0 && is_rough(s.r1, z, sqrt(norm2)));
  }
  easy = easy && !rough;
  if (thread_id() == 0)
    tree.hard[entry] = rough ? entry_rough : !easy ? entry_hard : flat ? entry_flat : entry_easy;
  if (!easy || !flat) return;
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

/* R2, and with it the rest, from X^H X in r2, or that the member is hard after all. */
template <class T>
__device__ __noinline__ void second_factor(const batchqr_tsqr &tree, int64_t entry, int n,
                                           factor_storage<T> &s) {
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
    if (thread_id() == 0) tree.hard[entry] = entry_hard;
    return;
  }
  second_cholesky(s.r2, s.q, n, nearly_one);
  finish_factors(tree, entry, n, s);
}

/* --- sums over chunks */

template <class T>
__device__ void store_partial(const gram<wide<T>> &sum, square<wide<T>> &g, const batchqr_tsqr &tree,
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
__device__ bool sum_chunks(const batchqr_tsqr &tree, const chunk<T> &c, int *counter, triangle<wide<T>> &g) {
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
    first_kernel(const __grid_constant__ batchqr_args args, const __grid_constant__ batchqr_tsqr tree) {
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

/* x := x R^-1; R of an entry that is rough is ill-conditioned. */
template <class T>
__device__ __forceinline__ void divide_first(product_rows<T> &x, const divisor<T> &r, int used, bool rough) {
  if (rough)
    r.template divide<true>(x, used);
  else
    r.template divide<false>(x, used);
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
    second_kernel(const __grid_constant__ batchqr_args args, const __grid_constant__ batchqr_tsqr tree) {
  using stream = row_stream<T>;
  auto &s = *shared_memory<second_pass<T>>();
  for_chunks<T>(args, tree, 1, [&](const chunk<T> &c) {
    stream rows(s.rows, c);
    s.r1.load(factor_of<T>(tree, c.entry, 0));
    block_sync();
    const int used = (c.n - 1) / tile + 1;
    const bool rough = tree.hard[c.entry] == entry_rough;
    T *x1 = factor_of<T>(tree, c.entry, 2);
    gram<wide<T>> sum;
    rows.run([&](T *slab, int first) {
      product_rows<T> x;
      x.read(slab, stream::ld);
      divide_first(x, s.r1, used, rough);
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
    third_kernel(const __grid_constant__ batchqr_args args, const __grid_constant__ batchqr_tsqr tree) {
  using stream = row_stream<T>;
  auto &s = *shared_memory<third_pass<T>>();
  fill_nodes<T>(args, tree);
  for_chunks<T>(args, tree, 2, [&](const chunk<T> &c) {
    stream rows(s.rows, c);
    s.r1.load(factor_of<T>(tree, c.entry, 0));
    s.u.load(factor_of<T>(tree, c.entry, 1));
    block_sync();
    const int used = (c.n - 1) / tile + 1;
    const int what = tree.hard[c.entry];
    real_t<T> norms[tiles][2] = {};
    rows.run([&](T *slab, int first) {
      product_rows<T> x;
      x.read(slab, stream::ld);
      if (what != entry_flat) divide_first(x, s.r1, used, what == entry_rough);
      s.u.template divide<false>(x, used);
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

batchqr_status batchqr_tsqr_gram(const batchqr_problem *problem, const batchqr_args *args,
                                 const batchqr_tsqr *tree, batchqr_stream stream) {
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

batchqr_status batchqr_tsqr_gram_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(first_kernel<T>, sizeof(first_pass<T>));
    if (!status) status = prepare_kernel(second_kernel<T>, sizeof(second_pass<T>));
    return status ? status : prepare_kernel(third_kernel<T>, sizeof(third_pass<T>));
  });
}
}
