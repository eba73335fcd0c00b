/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of large members' blocks of reflectors that are too narrow for a library: what they take there is
 * latency. Launches are dependent ones, and all that a block reads is under way at once.
 *
 * V^H C, V and C having many rows: blocks share the rows; each keeps a tile of the product in registers, in
 * 32 x 32 parts by warps, and reads its rows straight into the operands of the matrix units, the next ones
 * while it multiplies. A second kernel adds up the blocks' sums, in their order, and multiplies by T, for 8
 * columns of C to a block. C - V W: V and C likewise, W in shared memory. */
#include "wy_narrow_sums.cuh"
#include "common/simt/product.cuh"
#include "common/simt/tile.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/griddepcontrol.cuh"
#include "common/simt/launch_dependent.cuh"

namespace {
using namespace bqr;
using namespace bqr::narrow_products;

constexpr int threads = 256, warps = threads / warp_lanes;
constexpr int slab = 16; /* rows of a warp at once */

/* 16 rows of 32 columns: the lane's columns are 8 J + g, its rows row(e). */
template <class T> struct operand_rows {
  static constexpr int unit = pack<T>::size;
  T x[4][4];

  __device__ __forceinline__ static int row(int e) {
    return 4 * unit * (e / unit) + unit * (lane_id() % 4) + e % unit;
  }
  /* a: the first column, whose columns are aligned; columns: how many there are. */
  __device__ __forceinline__ void load(const T *a, int64_t ld, int rows, int columns, int first) {
    const bool whole = first + slab <= rows;
#pragma unroll
    for (int J = 0; J < 4; J++) {
      const int column = 8 * J + lane_id() / 4;
      const T *from = a + column * ld + first;
#pragma unroll
      for (int e = 0; e < 4; e += unit) {
        pack<T> p = {};
        if (column < columns && whole) p = *reinterpret_cast<const pack<T> *>(from + row(e));
#pragma unroll
        for (int i = 0; i < unit; i++) {
          x[J][e + i] = p.v[i];
          if (column < columns && !whole && first + row(e + i) < rows) x[J][e + i] = from[row(e + i)];
        }
      }
    }
  }
};

template <class T> struct tile_sum {
  T c[2][4][4];

  __device__ __forceinline__ tile_sum() {
#pragma unroll
    for (int I = 0; I < 2; I++)
#pragma unroll
      for (int J = 0; J < 4; J++)
#pragma unroll
        for (int e = 0; e < 4; e++) c[I][J][e] = zero<T>();
  }
  __device__ __forceinline__ void add(const operand_rows<T> &v, const operand_rows<T> &x) {
#pragma unroll
    for (int t = 0; t < 2; t++) {
      operand<T> b[4][2];
#pragma unroll
      for (int J = 0; J < 4; J++)
#pragma unroll
        for (int s = 0; s < 2; s++) b[J][s] = split(x.x[J][2 * t + s]);
#pragma unroll
      for (int I = 0; I < 2; I++) {
        operand<T> a[4];
#pragma unroll
        for (int e = 0; e < 4; e++) a[e] = conj<T>(split(v.x[2 * I + e / 2][2 * t + e % 2]));
#pragma unroll
        for (int J = 0; J < 4; J++) add_apart(c[I][J], a, b[J]);
      }
    }
  }
  /* f(element, row, column) */
  template <class F> __device__ __forceinline__ void each(F &&f) const {
#pragma unroll
    for (int I = 0; I < 2; I++)
#pragma unroll
      for (int J = 0; J < 4; J++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          f(c[I][J][e], 16 * I + 8 * (e / 2) + lane_id() / 4, 8 * J + 2 * (lane_id() % 4) + e % 2);
  }
};

/* A block's tile: SIDE x SIDE parts; warps that have the same part share the block's rows. */
template <class T, int SIDE> struct team {
  static constexpr int side = SIDE * part, groups = warps / (SIDE * SIDE), step = groups * slab;
  static constexpr int kept = sizeof(T) == 16 ? groups / 2 : groups; /* sums in shared memory at once */
  static constexpr size_t smem = sizeof(T) * kept * side * side;
};

template <class T, int SIDE>
__global__ void __launch_bounds__(threads, 1) sums_kernel(shape p, const T *v, const T *c, T *sums) {
  using t = team<T, SIDE>;
  wait_for_previous();
  if (is_done(p.done)) return;
  T *tile = shared_memory<T>();
  const unsigned tiles_across = static_cast<unsigned>((p.n - 1) / t::side + 1),
                 member = blockIdx.z / tiles_across, across = blockIdx.z % tiles_across;
  v = shifted(v, member, p.many.a);
  c = shifted(c, member, p.many.a);
  sums = shifted(sums, member, p.many.own);
  const int position = warp_id() % (SIDE * SIDE), group = warp_id() / (SIDE * SIDE);
  const int row = static_cast<int>(blockIdx.y) * t::side + position % SIDE * part,
            column = static_cast<int>(across) * t::side + position / SIDE * part;
  const int end = least(p.rows, (static_cast<int>(blockIdx.x) + 1) * p.share);
  int first = static_cast<int>(blockIdx.x) * p.share + group * slab;
  v += row * p.ldv;
  c += column * p.ldc;
  tile_sum<T> sum;
  operand_rows<T> left, right;
  if (first < end) {
    left.load(v, p.ldv, end, p.k - row, first);
    right.load(c, p.ldc, end, p.n - column, first);
  }
  for (; first < end; first += t::step) {
    if constexpr (sizeof(T) <= 8) {
      operand_rows<T> next_left, next_right;
      const int next = first + t::step;
      if (next < end) {
        next_left.load(v, p.ldv, end, p.k - row, next);
        next_right.load(c, p.ldc, end, p.n - column, next);
      }
      sum.add(left, right);
      left = next_left;
      right = next_right;
    } else {
      sum.add(left, right);
      if (first + t::step < end) {
        left.load(v, p.ldv, end, p.k - row, first + t::step);
        right.load(c, p.ldc, end, p.n - column, first + t::step);
      }
    }
  }
  T *mine = tile + group % t::kept * (t::side * t::side) + position % SIDE * part +
            position / SIDE * part * t::side;
  if (group < t::kept) sum.each([&](const T &x, int i, int j) { mine[i + j * t::side] = x; });
  block_sync();
  if constexpr (t::kept < t::groups) {
    if (group >= t::kept) sum.each([&](const T &x, int i, int j) { mine[i + j * t::side] += x; });
    block_sync();
  }
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * tiles_across + across) * gridDim.y + blockIdx.y;
#pragma unroll 4
  for (int e = thread_id(); e < t::side * t::side; e += threads) {
    T total = tile[e];
#pragma unroll
    for (int g = 1; g < t::kept; g++) total += tile[e + g * (t::side * t::side)];
    sums[at * (t::side * t::side) + e] = total;
  }
}

/* to := X T, X m x n, T upper triangular; a warp has 16 x 8 of it. */
template <class T>
__global__ void __launch_bounds__(threads)
    unite_kernel(int m, int n, const T *x, int64_t ldx, const T *t, int64_t ldt, T *to, int64_t ldto,
                 const int *done, int64_t own) {
  wait_for_previous();
  if (is_done(done)) return;
  x = shifted(x, blockIdx.z, own);
  t = shifted(t, blockIdx.z, own);
  to = shifted(to, blockIdx.z, own);
  const int g = lane_id() / 4, q = lane_id() % 4;
  const int top = static_cast<int>(blockIdx.x) * 16,
            left = (static_cast<int>(blockIdx.y) * warps + warp_id()) * 8;
  if (left >= n) return;
  constexpr int at_once = 32;
  T c[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
  for (int first = 0; first < least(n, left + 8); first += at_once)
#pragma unroll
    for (int l = 0; l < at_once; l += 8) {
      operand<T> a[4], b[2];
#pragma unroll
      for (int h = 0; h < 4; h++) {
        const int i = top + g + 8 * (h / 2), k = first + l + 2 * q + h % 2;
        a[h] = split(i < m && k < n ? x[i + k * ldx] : zero<T>());
      }
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int k = first + l + 2 * q + h, j = left + g;
        b[h] = split(k <= j && j < n ? t[k + j * ldt] : zero<T>());
      }
      multiply_add(c, a, b);
    }
#pragma unroll
  for (int h = 0; h < 4; h++) {
    const int i = top + g + 8 * (h / 2), j = left + 2 * q + h % 2;
    if (i < m && j < n) to[i + j * ldto] = c[h];
  }
}

/* 16 rows of a warp: the lane's are 2 g and 2 g + 1, or g and g + 8 where two are more than 16 bytes. */
template <class T> struct row_pair {
  static constexpr int unit = pack<T>::size < 2 ? 1 : 2, step = unit == 2 ? 1 : 8;
  struct alignas(unit * sizeof(T)) neighbours {
    T v[unit];
  };

  __device__ __forceinline__ static int first() { return lane_id() / 4 * unit; }
  /* from: row first() of a column, of which `rows` are left from there on. */
  __device__ __forceinline__ static void load(T &x, T &y, const T *from, int rows) {
    if (unit == 2 && rows > 1) {
      const neighbours n = *reinterpret_cast<const neighbours *>(from);
      x = n.v[0];
      y = n.v[unit - 1];
    } else {
      x = rows > 0 ? from[0] : zero<T>();
      y = rows > step ? from[step] : zero<T>();
    }
  }
  __device__ __forceinline__ static void store(T *to, T x, T y, int rows) {
    if (unit == 2 && rows > 1) {
      neighbours n;
      n.v[0] = x;
      n.v[unit - 1] = y;
      *reinterpret_cast<neighbours *>(to) = n;
    } else {
      if (rows > 0) to[0] = x;
      if (rows > step) to[step] = y;
    }
  }
};

/* Blocks in y are strips of STRIP columns, blocks in x share the rows; W of the strip is in shared memory as
 * the matrix units take it. */
template <class T, int STRIP>
__global__ void __launch_bounds__(threads, sizeof(T) == 16 ? 1 : 2)
    subtract_kernel(shape p, const T *v, const T *w, int64_t ldw, T *c) {
  using rows = row_pair<T>;
  wait_for_previous();
  if (is_done(p.done)) return;
  auto *b = shared_memory<operand<T>[2]>();
  v = shifted(v, blockIdx.z, p.many.a);
  c = shifted(c, blockIdx.z, p.many.a);
  w = shifted(w, blockIdx.z, p.many.own);
  const int left = static_cast<int>(blockIdx.y) * STRIP, columns = least(STRIP, p.n - left);
  const int tiles = (columns - 1) / 8 + 1, depth = (p.k - 1) / 8 + 1;
  const int q = lane_id() % 4;
#pragma unroll 8
  for (int e = warp_id(); e < tiles * depth; e += warps) {
    const int K = 8 * (e / tiles) + 2 * q, j = 8 * (e % tiles) + lane_id() / 4;
#pragma unroll
    for (int s = 0; s < 2; s++)
      b[e * warp_lanes + lane_id()][s] =
          split(K + s < p.k && j < columns ? -w[K + s + (left + j) * ldw] : zero<T>());
  }
  block_sync();
  const int step = static_cast<int>(gridDim.x) * warps * 16;
  for (int top = (static_cast<int>(blockIdx.x) * warps + warp_id()) * 16; top < p.rows; top += step) {
    const int row = top + rows::first(), rest = p.rows - row;
    T x[STRIP / 8][4];
    T *to = c + row + (left + 2 * q) * p.ldc;
#pragma unroll
    for (int J = 0; J < STRIP / 8; J++)
#pragma unroll
      for (int s = 0; s < 2; s++) {
        x[J][s] = x[J][2 + s] = zero<T>();
        if (8 * J + 2 * q + s < columns) rows::load(x[J][s], x[J][2 + s], to + (8 * J + s) * p.ldc, rest);
      }
    for (int K = 0; K < depth; K += 4) {
      T a[4][4];
#pragma unroll
      for (int k = 0; k < 4; k++)
#pragma unroll
        for (int s = 0; s < 2; s++) {
          const int column = 8 * (K + k) + 2 * q + s;
          a[k][s] = a[k][2 + s] = zero<T>();
          if (column < p.k) rows::load(a[k][s], a[k][2 + s], v + row + column * p.ldv, rest);
        }
#pragma unroll
      for (int k = 0; k < 4; k++) {
        if (K + k >= depth) break;
        operand<T> left_operand[4];
#pragma unroll
        for (int e = 0; e < 4; e++) left_operand[e] = split(a[k][e]);
#pragma unroll
        for (int J = 0; J < STRIP / 8; J++) {
          if (J >= tiles) break;
          const operand<T>(&mine)[2] = b[((K + k) * tiles + J) * warp_lanes + lane_id()];
          multiply_add(x[J], left_operand, mine);
        }
      }
    }
#pragma unroll
    for (int J = 0; J < STRIP / 8; J++)
#pragma unroll
      for (int s = 0; s < 2; s++)
        if (8 * J + 2 * q + s < columns) rows::store(to + (8 * J + s) * p.ldc, x[J][s], x[J][2 + s], rest);
  }
}
template <class T, int STRIP> constexpr size_t strip_smem(int k) {
  return sizeof(operand<T>[2]) * warp_lanes * (STRIP / 8) * static_cast<size_t>((k - 1) / 8 + 1);
}

/* Blocks follow from the sizes alone, and so does the order of sums. */
constexpr int most_tiles = BQR_WY_SUMS / (4 * part * part), most_strips = 264;
/* Of many members, which have blocks enough together: of one of them, but rows are shared by so many. */
constexpr int tiles_of_many = 32, shares_of_many = 16;

template <class T, int SIDE>
batchqr_status enqueue(const bqr_wy_product *p, void *sums, batchqr_stream stream) {
  using t = team<T, SIDE>;
  const int down = (p->k - 1) / t::side + 1, across = (p->n - 1) / t::side + 1;
  const int turns = (p->rows - 1) / t::step + 1;
  const int tiles = down * across;
  const int most = p->many.count > 0 ? largest(tiles_of_many / tiles, shares_of_many) : most_tiles / tiles;
  const int blocks = least(most, (turns - 1) / 2 + 1);
  const int share = ((turns - 1) / blocks + 1) * t::step, used = (p->rows - 1) / share + 1;
  const shape s = {p->rows, p->k, p->n, p->ldv, p->ldc, share, p->done, p->many};
  const unsigned members = members_of(p->many);
  const dim3 grid(static_cast<unsigned>(used), static_cast<unsigned>(down),
                  static_cast<unsigned>(across) * members);
  batchqr_status status =
      launch_dependent(sums_kernel<T, SIDE>, grid, threads, t::smem, stream, s, static_cast<const T *>(p->v),
                       static_cast<const T *>(p->c), static_cast<T *>(sums));
  if (status) return status;
  return launch_dependent(p->negative ? multiply_kernel<T, true> : multiply_kernel<T, false>,
                          dim3(static_cast<unsigned>((p->n - 1) / narrow + 1), members), many_threads,
                          sizeof(multiply_storage<T>), stream, s, static_cast<const T *>(sums), used,
                          SIDE == 2 ? 6 : 5, static_cast<const T *>(p->t), p->ldt, static_cast<T *>(p->to),
                          p->ldto);
}

/* The widest strip. */
template <class T> constexpr int wide_strip = is_complex<T> ? 32 : 64;
/* Strips are narrower where there would be fewer blocks. */
constexpr int few_blocks = 64;

template <class T, int STRIP> batchqr_status enqueue(const bqr_wy_update *u, batchqr_stream stream) {
  const shape s = {u->rows, u->k, u->n, u->ldv, u->ldc, 0, u->done, u->many};
  const int strips = (u->n - 1) / STRIP + 1, turns = (u->rows - 1) / (16 * warps) + 1;
  const dim3 grid(static_cast<unsigned>(least(turns, most_strips / strips)), static_cast<unsigned>(strips),
                  members_of(u->many));
  return launch_dependent(subtract_kernel<T, STRIP>, grid, threads, strip_smem<T, STRIP>(u->k), stream, s,
                          static_cast<const T *>(u->v), static_cast<const T *>(u->w), u->ldw,
                          static_cast<T *>(u->c));
}
} // namespace

extern "C" {

batchqr_status bqr_wy_multiply(batchqr_type type, const bqr_wy_product *product, void *sums,
                               batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return product->k > part && product->n > part ? enqueue<T, 2>(product, sums, stream)
                                                  : enqueue<T, 1>(product, sums, stream);
  });
}

batchqr_status bqr_wy_unite(batchqr_type type, int m, int n, const void *x, const void *t, void *to,
                            int64_t ld, const int *done, const bqr_wy_many *many, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const dim3 grid(static_cast<unsigned>((m - 1) / 16 + 1), static_cast<unsigned>((n - 1) / (8 * warps) + 1),
                    members_of(*many));
    return launch_dependent(unite_kernel<T>, grid, threads, 0, stream, m, n, static_cast<const T *>(x), ld,
                            static_cast<const T *>(t), ld, static_cast<T *>(to), ld, done, many->own);
  });
}

batchqr_status bqr_wy_subtract(batchqr_type type, const bqr_wy_update *update, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int wide = wide_strip<T>;
    const int turns = (update->rows - 1) / (16 * warps) + 1;
    const int members = static_cast<int>(members_of(update->many));
    int strip = update->n > 32 ? wide : 32;
    while (strip > 16 && turns * ((update->n - 1) / strip + 1) * members <= few_blocks) strip /= 2;
    return for_value<16, 32, wide>(
        strip, [&](auto width) { return enqueue<T, decltype(width)::value>(update, stream); });
  });
}

batchqr_status bqr_wy_narrow_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int wide = wide_strip<T>;
    batchqr_status status = prepare_kernel(sums_kernel<T, 1>, team<T, 1>::smem);
    if (!status) status = prepare_kernel(sums_kernel<T, 2>, team<T, 2>::smem);
    if (!status) status = prepare_kernel(multiply_kernel<T, true>, sizeof(multiply_storage<T>));
    if (!status) status = prepare_kernel(multiply_kernel<T, false>, sizeof(multiply_storage<T>));
    if (!status) status = prepare_kernel(unite_kernel<T>, 0);
    if (!status) status = prepare_kernel(subtract_kernel<T, 16>, strip_smem<T, 16>(most_k));
    if (!status) status = prepare_kernel(subtract_kernel<T, 32>, strip_smem<T, 32>(most_k));
    return status ? status : prepare_kernel(subtract_kernel<T, wide>, strip_smem<T, wide>(most_k));
  });
}
}
