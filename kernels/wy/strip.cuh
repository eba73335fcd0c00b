/* SPDX-License-Identifier: BSD-3-Clause */
/* What is multiplied with blocks of reflectors, as operands of the matrix units: 16 lines to a warp, columns
 * or rows of a matrix in global memory; and in shared memory rows of V and the small factors. See
 * wy/vectors.cuh. */
#ifndef BQR_KERNELS_WY_STRIP_CUH
#define BQR_KERNELS_WY_STRIP_CUH

#include "common/simt/block.cuh"
#include "common/simt/product.cuh"
#include "vectors.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/prefetch.cuh"

namespace bqr {

constexpr int warp_lines = 16;

/* The lines of a warp: 16 columns (LEFT) or rows of C, each with one entry for a row of V. Lane (g, q) has
 * two of them, and of each chunk of their entries those that chunk<T> gives to q. */
template <class T, bool LEFT> class warp_strip {
  using part = chunk<T>;
  /* Neighbours: entries of a line on the left, a lane's two lines on the right. */
  static constexpr int unit = LEFT ? pack<T>::size : sizeof(T) == 16 ? 1 : 2;
  static constexpr int line_unit = LEFT || sizeof(T) == 16 ? 1 : 2; /* lines of a lane side by side */
  static constexpr int line_step = line_unit == 2 ? 1 : 8;
  template <int UNIT> struct alignas(UNIT * sizeof(T)) neighbours { T v[UNIT]; };

public:
  using entries = T[2][part::each];

  /* The number of the lane's line h. */
  __device__ __forceinline__ static int line(int h) { return lane_id() / 4 * line_unit + h * line_step; }

  /* c: the first entry of the first one; how many lines of which length there are from it on. packs:
   * neighbours in memory are accessed as one. */
  __device__ __forceinline__ warp_strip(T *c, int64_t ld, int lines, int length, bool packs)
      : first_(c), ld_(ld), lines_(lines), length_(lines > 0 ? length : 0), packs_(packs) {
    const int first = part::row(lane_id() % 4, 0);
    c_ = c + (LEFT ? first + line(0) * ld : line(0) + first * ld);
#pragma unroll
    for (int h = 0; h < 2; h++) ends_[h] = line(h) < lines ? length - first : 0;
  }

  /* Whether such accesses are possible. */
  __device__ __forceinline__ static bool packs(const T *c, int64_t ld, int lines, int length) {
    constexpr int bytes = static_cast<int>(sizeof(neighbours<unit>));
    return unit == 1 || (reinterpret_cast<uint64_t>(c) | static_cast<uint64_t>(ld) * sizeof(T) |
                         static_cast<uint64_t>(LEFT ? length : lines) * sizeof(T)) %
                                bytes ==
                            0;
  }

  /* Of the lines, if there are any. */
  __device__ __forceinline__ int length() const { return length_; }

  /* The chunk from entry `from` on, zeros beyond the ends. */
  __device__ __forceinline__ void load(entries &x, int from) const {
    if (unit == 1 || packs_)
      load_units<unit>(x, from);
    else
      load_units<1>(x, from);
  }
  __device__ __forceinline__ void store(const entries &x, int from) const {
    if (unit == 1 || packs_)
      store_units<unit>(x, from);
    else
      store_units<1>(x, from);
  }

  /* Entries from .. from + N of all lines of the warp, to the L2 cache. */
  template <int N> __device__ __forceinline__ void prefetch(int from) const {
    constexpr int bytes = 128, along = LEFT ? N : warp_lines, across = LEFT ? warp_lines : N;
    constexpr int sectors = (along * static_cast<int>(sizeof(T)) + bytes - 1) / bytes;
#pragma unroll
    for (int i = lane_id(); i < across * sectors; i += warp_lanes) {
      const int line = i / sectors, at = i % sectors * (bytes / static_cast<int>(sizeof(T)));
      const bool inside = LEFT ? line < lines_ && from + at < length_ : at < lines_ && from + line < length_;
      if (inside) prefetch_l2(first_ + (LEFT ? from + at + line * ld_ : at + (from + line) * ld_));
    }
  }

private:
  template <int UNIT> __device__ __forceinline__ void load_units(entries &x, int from) const {
    each_unit<UNIT>(from, [&](int h, int e, const T *at, bool inside) {
      neighbours<UNIT> p = {};
      if (inside) p = *reinterpret_cast<const neighbours<UNIT> *>(at);
#pragma unroll
      for (int i = 0; i < UNIT; i++) x[LEFT ? h : h + i][LEFT ? e + i : e] = p.v[i];
    });
  }
  template <int UNIT> __device__ __forceinline__ void store_units(const entries &x, int from) const {
    each_unit<UNIT>(from, [&](int h, int e, T *at, bool inside) {
      neighbours<UNIT> p;
#pragma unroll
      for (int i = 0; i < UNIT; i++) p.v[i] = x[LEFT ? h : h + i][LEFT ? e + i : e];
      if (inside) *reinterpret_cast<neighbours<UNIT> *>(at) = p;
    });
  }
  /* f(line h, entry e, address, whether it exists) */
  template <int UNIT, class F> __device__ __forceinline__ void each_unit(int from, F &&f) const {
#pragma unroll
    for (int h = 0; h < 2; h += LEFT ? 1 : UNIT)
#pragma unroll
      for (int e = 0; e < part::each; e += LEFT ? UNIT : 1) {
        const int number = from + part::row(0, e), down = h * line_step;
        f(h, e, c_ + (LEFT ? number + down * ld_ : down + number * ld_), number < ends_[h]);
      }
  }

  T *first_, *c_; /* the first entry, and the lane's */
  int64_t ld_;
  int lines_, length_, ends_[2]; /* of the lane's lines, counted from there */
  bool packs_;
};

/* Which of the 8 reflectors of a tile of X V the units' column n is. With columns of V 32 bytes apart, modulo
 * 128, both orders in which they are read from shared memory are then free of bank conflicts (z: one of
 * them). */
__device__ __forceinline__ int reflector_of(int n) { return n % 2 ? 4 + (n / 2 ^ 2) : n / 2; }

/* ROWS: whole 128 bytes of them. */
template <class T, int ROWS> class v_tile {
  using part = chunk<T>;
  static constexpr int W = BQR_BLOCK_WIDTH;

public:
  static constexpr int ld = ROWS + 32 / static_cast<int>(sizeof(T)), elements = ld * (W - 1) + ROWS;

  __device__ __forceinline__ explicit v_tile(T *data) : data_(data) {
    const int g = lane_id() / 4, q = lane_id() % 4;
    column_ = data + reflector_of(g) * ld + part::row(q, 0);
#pragma unroll
    for (int i = 0; i < 2; i++)
      row_[i] = data + reflector_of(2 * q + i) * ld + part::row(g / 2, part::entry(0, g % 2));
  }
  /* From a row on, a multiple of a chunk's. */
  __device__ __forceinline__ v_tile below(int row) const { return v_tile(data_ + row); }

  /* Starts copies of `rows` rows of V, from row `top` on, in units for which tile_packs() is asked. TILES:
   * more rows than one tile's go to those behind it. */
  template <int UNIT, bool TILES = false>
  __device__ __forceinline__ void load(const vectors<T> &v, int top, int rows) const {
    for (int j = warp_id(); j < W; j += num_warps())
#pragma unroll 4
      for (int i = lane_id() * UNIT; i < rows; i += warp_lanes * UNIT) {
        const int row = top + i;
        T *to = data_ + (TILES ? i % ROWS + i / ROWS * elements : i) + j * ld;
        const T *from = v.data + row + j * v.ld;
        if (row > j) {
          const bool inside = row < v.rows && j < v.width;
          copy_async_if<UNIT *static_cast<int>(sizeof(T))>(inside, to, inside ? from : v.data);
        } else
          load_head<UNIT>(to, from, v, row, j);
      }
  }

  /* The lane's column of 8 j .. in chunk c as the operand b of X V. */
  __device__ __forceinline__ void read_column(operand<T> (&b)[part::steps][2], int c, int j) const {
    constexpr int unit = pack<T>::size;
    T x[part::each];
#pragma unroll
    for (int e = 0; e < part::each; e += unit) {
      pack<T> p = *reinterpret_cast<const pack<T> *>(column_ + 8 * j * ld + c * part::rows + part::row(0, e));
#pragma unroll
      for (int i = 0; i < unit; i++) x[e + i] = p.v[i];
    }
#pragma unroll
    for (int t = 0; t < part::steps; t++)
#pragma unroll
      for (int i = 0; i < 2; i++) b[t][i] = split(x[part::entry(t, i)]);
  }

  /* The lane's row of chunk c, two of the columns 8 j .., as the operand b of the product with V^H. */
  __device__ __forceinline__ void read_rows(operand<T> (&b)[part::steps][2], int c, int j) const {
    struct alignas(part::steps * sizeof(T)) neighbours {
      T v[part::steps];
    }; /* of two products */
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const neighbours p = *reinterpret_cast<const neighbours *>(row_[i] + 8 * j * ld + c * part::rows);
#pragma unroll
      for (int t = 0; t < part::steps; t++) b[t][i] = conj(split(p.v[t]));
    }
  }

private:
  /* Where ones and zeros are among the entries. */
  template <int UNIT>
  __device__ __forceinline__ static void load_head(T *to, const T *from, const vectors<T> &v, int row,
                                                   int j) {
#pragma unroll
    for (int k = 0; k < UNIT; k++)
      if (row + k > j)
        copy_async_if<static_cast<int>(sizeof(T))>(row + k < v.rows && j < v.width, to + k, from + k);
      else
        to[k] = row + k == j && j < v.width ? one<T>() : zero<T>();
  }

  T *data_;
  const T *column_, *row_[2]; /* the lane's */
};

/* A matrix of up to 32 x 32 in shared memory, as an operand b. */
template <class T> class factor_tile {
  static constexpr int size = BQR_BLOCK_WIDTH, ld = size + 2;

public:
  static constexpr int elements = size * ld;

  __device__ __forceinline__ explicit factor_tile(T *shared) : m_(shared) {}

  /* t: width x width, column-major; of its adjoint where that is said. A barrier must follow. */
  __device__ __forceinline__ void load(const T *t, int width, bool adjoint) const {
    for (int e = thread_id(); e < size * size; e += num_threads()) {
      const int i = e % size, j = e / size;
      const T x = i < width && j < width ? t[i + j * width] : zero<T>();
      m_[adjoint ? i * ld + j : j * ld + i] = adjoint ? conj(x) : x;
    }
  }
  /* Rows i and k of column j. */
  __device__ __forceinline__ void read(operand<T> (&b)[2], int i, int k, int j) const {
    b[0] = split(m_[j * ld + i]);
    b[1] = split(m_[j * ld + k]);
  }

private:
  T *m_;
};

} // namespace bqr

#endif
