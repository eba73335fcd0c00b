/* SPDX-License-Identifier: BSD-3-Clause */
/* Fragments on matrix units: sums of products of 8 x 8 operands, fragments in shared memory the other way
 * round, and block reflectors C := (I - V T^H V^H) C in the compact WY form, 8 reflectors, or twice 8 at a
 * time, to 8 or 16 columns.
 *
 * Products are formed transposed, as C^T with columns of C for rows: W^T = C^T conj(V), then Y^T = W^T
 * conj(T), then C^T -= Y^T V^T. See common/simt/product.cuh for why each is the next one's operand. */
#ifndef BQR_KERNELS_COMMON_SIMT_MMA_FRAGMENT_CUH
#define BQR_KERNELS_COMMON_SIMT_MMA_FRAGMENT_CUH

#include "fragment.cuh"
#include "product.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/mma.cuh"

namespace bqr {

/* A sum of products a b, all 8 x 8. The units' lower 8 rows of a take the small part of a split number, or
 * the imaginary part. */
template <class T> class square_sum;
template <> class square_sum<double> {
  double c_[2] = {0, 0};

public:
  __device__ __forceinline__ void add(const operand<double> (&a)[2], const operand<double> (&b)[2]) {
    multiply_add(c_[0], c_[1], a[0].x, b[0].x);
    multiply_add(c_[0], c_[1], a[1].x, b[1].x);
  }
  __device__ __forceinline__ void get(double (&c)[2]) const {
    c[0] = c_[0];
    c[1] = c_[1];
  }
};
template <> class square_sum<float> {
  float c_[4] = {0, 0, 0, 0};

public:
  __device__ __forceinline__ void add(const operand<float> (&a)[2], const operand<float> (&b)[2]) {
    multiply_add_tf32(c_[0], c_[1], c_[2], c_[3], 0, 0, a[0].hi, a[1].hi, b[0].lo, b[1].lo);
    multiply_add_tf32(c_[0], c_[1], c_[2], c_[3], a[0].hi, a[1].hi, a[0].lo, a[1].lo, b[0].hi, b[1].hi);
  }
  __device__ __forceinline__ void get(float (&c)[2]) const {
    c[0] = c_[0] + c_[2];
    c[1] = c_[1] + c_[3];
  }
};
template <class R> class square_sum<complex<R>> {
  R re_[4] = {0, 0, 0, 0}, im_[4] = {0, 0, 0, 0}; /* a times the parts of b */

public:
  __device__ __forceinline__ void add(const operand<complex<R>> (&a)[2], const operand<complex<R>> (&b)[2]) {
    const operand<R> parts[4] = {a[0].re, a[1].re, a[0].im, a[1].im};
    multiply_add(re_, parts, {b[0].re, b[1].re});
    multiply_add(im_, parts, {b[0].im, b[1].im});
  }
  __device__ __forceinline__ void get(complex<R> (&c)[2]) const {
    c[0] = {re_[0] - im_[2], re_[2] + im_[0]};
    c[1] = {re_[1] - im_[3], re_[3] + im_[1]};
  }
};

/* The rows of one warp in shared memory, in its own order: as x[u][e] they are B(row, column), from here
 * B(column, row). Free of bank conflicts. */
template <class T> class turned_rows {
public:
  static constexpr int unit = 64; /* elements */

  __device__ __forceinline__ explicit turned_rows(T *x) : x_(x) {}

  __device__ __forceinline__ void write(int u, const T (&x)[2]) const {
    const int row = 2 * (lane_id() % 4), column = lane_id() / 4;
#pragma unroll
    for (int e = 0; e < 2; e++) x_[unit * u + 8 * (row + e) + (column ^ row)] = x[e];
  }
  __device__ __forceinline__ void read(operand<T> (&b)[2], int u) const {
    const int row = lane_id() / 4, column = 2 * (lane_id() % 4);
    T x[2];
    read_two(x, &x_[unit * u + 8 * row + (column ^ (row & 6))]);
    b[0] = split(x[0]);
    b[1] = split(x[1]);
  }
  /* As it was. */
  __device__ __forceinline__ void read_back(T (&x)[2], int u) const {
    const int row = 2 * (lane_id() % 4), column = lane_id() / 4;
#pragma unroll
    for (int e = 0; e < 2; e++) x[e] = x_[unit * u + 8 * (row + e) + (column ^ row)];
  }

private:
  T *x_;
};

/* The same with real parts apart from imaginary ones: each is then an operand of FP64 units as it is read,
 * without copies. */
class turned_parts {
public:
  static constexpr int unit = 64;

  __device__ __forceinline__ explicit turned_parts(complex_double *x) : x_(&x->re) {}

  __device__ __forceinline__ void write(int u, const complex_double (&x)[2]) const {
#pragma unroll
    for (int e = 0; e < 2; e++) {
      double *to = at(u, 2 * (lane_id() % 4) + e, lane_id() / 4);
      to[0] = x[e].re;
      to[unit] = x[e].im;
    }
  }
  __device__ __forceinline__ void read(operand<complex_double> (&b)[2], int u) const {
    const double *from = at(u, lane_id() / 4, 2 * (lane_id() % 4));
    double re[2], im[2];
    read_two(re, from);
    read_two(im, from + unit);
#pragma unroll
    for (int e = 0; e < 2; e++) b[e] = {{re[e]}, {im[e]}};
  }
  __device__ __forceinline__ void read_back(complex_double (&x)[2], int u) const {
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const double *from = at(u, 2 * (lane_id() % 4) + e, lane_id() / 4);
      x[e] = {from[0], from[unit]};
    }
  }

private:
  __device__ __forceinline__ double *at(int u, int row, int column) const {
    return x_ + 2 * unit * u + 8 * (row ^ (row >> 1 & 1)) + (column ^ (row & 4));
  }

  double *x_;
};

/* One warp's part of products with V, where it lies from unit `first` on. Units come in twos: rows past the
 * last are zeros. TIGHT: in memory for U units, and not one more behind. */
template <class T, int U, int W, bool SPREAD = false, bool TIGHT = false> class unit_reflector {
  using columns = unit_fragment<T, U, W, SPREAD>;
  static constexpr int units = columns::units;

public:
  /* Whether multiply_turned() is to be used: where warps exchange sums anyway, which turns them back.
   * Clusters are slower with it. */
  static constexpr bool turns = W > 1 && W <= 8 && std::is_same<T, complex_double>::value;

private:
  using rows_type = std::conditional_t<turns, turned_parts, turned_rows<T>>;

public:
  struct alignas(16) storage {
    T x[(units + !TIGHT) * rows_type::unit]; /* one more: see set() */
  };

  /* Scales of columns are for fp16_reflector (common/panel/split_fp16.cuh). */
  static constexpr real_t<T> v_scale = 1, t_scale = 1;

  /* Two entries of y of one column, as subtract() takes them. */
  using split_type = two<T>;
  __device__ __forceinline__ static split_type split_y(const T (&y)[2]) { return {y[0], y[1]}; }

  __device__ __forceinline__ explicit unit_reflector(storage &s, int first = 0)
      : turned_(s.x + rows_type::unit * first), first_(first) {}

  /* w[s]: W^T(column g of x, reflector 2 q + s), from this warp's rows. */
  __device__ __forceinline__ void multiply(T (&w)[2], const columns &x, real_t<T>, int warp, int rows) const {
    /* not a long sum of the units: see common/simt/product.cuh */
    constexpr bool apart = std::is_same<T, complex_float>::value;
    w[0] = w[1] = zero<T>();
    square_sum<T> part[2]; /* independent ones: the units' latency is long */
    each_active(warp, rows, [&](int u) {
      T v[2];
      turned_.read_back(v, u);
      if (apart) part[u % 2] = {};
      part[u % 2].add({split(x.x[u][0]), split(x.x[u][1])}, {conj(split(v[0])), conj(split(v[1]))});
      if (apart) add_to(w, part[u % 2]);
    });
    if (!apart) {
      add_to(w, part[0]);
      add_to(w, part[1]);
    }
  }
  /* Likewise of 16 columns, w[2 h + s] of x[h], for this V, w[0 .. 3], and the next one, w[4 .. 7]. */
  __device__ __forceinline__ void multiply(T (&w)[8], const unit_reflector &next, const columns (&x)[2],
                                           const real_t<T> (&)[2], int warp, int rows) const {
    T part[2][4] = {};
    const uint32_t nothing = static_cast<uint32_t>(rows) >> 31;
    each_active(warp, rows, [&](int u) {
      four a;
#pragma unroll
      for (int i = 0; i < 4; i++) a.v[i] = apart(split(x[i / 2].x[u][i % 2]), nothing);
      multiply_unit(part[0], a, u);
      next.multiply_unit(part[1], a, u);
    });
#pragma unroll
    for (int i = 0; i < 8; i++) w[i] = part[i / 4][i % 4];
  }

  /* The same with x for the second operand, which it is without copies, and rows of both V^H for the first:
   * w[4 p + 2 h + s] = W(reflector g of V number p, column 2 q + s of x[h]). */
  __device__ __forceinline__ void multiply_turned(complex_double (&w)[8], const unit_reflector &next,
                                                  const columns (&x)[2], int warp, int rows) const {
    double re[2][4] = {}, im[2][4] = {};
    each_active(warp, rows, [&](int u) {
      T v[2], next_v[2];
      turned_.read_back(v, u);
      next.turned_.read_back(next_v, u);
      const operand<double> v_re[4] = {{v[0].re}, {v[1].re}, {next_v[0].re}, {next_v[1].re}},
                            v_im[4] = {{v[0].im}, {v[1].im}, {next_v[0].im}, {next_v[1].im}};
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const T(&y)[2] = x[h].x[u];
        multiply_add(re[h], v_re, {split(y[0].re), split(y[1].re)});
        multiply_add(im[h], v_re, {split(y[0].im), split(y[1].im)});
        multiply_add(re[h], v_im, {split(y[0].im), split(y[1].im)});
        multiply_add(im[h], v_im, {split(-y[0].re), split(-y[1].re)});
      }
    });
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const int h = i / 2 % 2, c = i / 4 * 2 + i % 2;
      w[i] = {re[h][c], im[h][c]};
    }
  }

  /* x -= V y, y as multiply()'s w. */
  __device__ __forceinline__ void subtract(columns &x, const T (&y)[2], real_t<T>, int warp, int rows) const {
    const operand<T> minus_y[2] = {negated(split(y[0])), negated(split(y[1]))};
    each_active(warp, rows, [&](int u) {
      operand<T> b[2];
      turned_.read(b, u);
      square_sum<T> product;
      product.add(minus_y, b);
      add_to(x.x[u], product);
    });
  }
  /* y[p][h]: of V number p and of x[h], as split_y() gives it. */
  __device__ __forceinline__ void subtract(columns (&x)[2], const split_type (&y)[2][2],
                                           const unit_reflector &next, const real_t<T> (&)[2], int warp,
                                           int rows) const {
    const uint32_t nothing = static_cast<uint32_t>(rows) >> 31;
    const four minus_y = negative(y[0], nothing), minus_next_y = negative(y[1], nothing);
    each_active(warp, rows, [&](int u) {
      T c[4] = {x[0].x[u][0], x[0].x[u][1], x[1].x[u][0], x[1].x[u][1]};
      subtract_unit(c, minus_y, u);
      next.subtract_unit(c, minus_next_y, u);
#pragma unroll
      for (int i = 0; i < 4; i++) x[i / 2].x[u][i % 2] = c[i];
    });
  }

  /* Zeros in the units before `first`. */
  __device__ __forceinline__ void clear_before(int first) const {
    const T zeros[2] = {zero<T>(), zero<T>()};
    for (int u = -first; u < 0; u++) turned_.write(u, zeros);
  }

  /* x^H x, of this warp's rows without the first 8 of all; in lane (g, q) the entries (2 q + s, g). */
  __device__ __forceinline__ static void gram(T (&y)[2], const columns &x, int warp, int rows) {
    square_sum<T> part[2];
    each_two(warp, rows, [&](int u) {
      const bool out = u == 0 && warp == 0;
      const operand<T> a[2] = {split(out ? zero<T>() : x.x[u][0]), split(out ? zero<T>() : x.x[u][1])};
      part[u % 2].add(a, {conj(a[0]), conj(a[1])});
    });
    T other[2];
    part[0].get(y);
    part[1].get(other);
#pragma unroll
    for (int i = 0; i < 2; i++) y[i] = y[i] + other[i];
  }

  /* x := x c, c[s] = C(2 q + s, g), x as it was when it was set. */
  __device__ __forceinline__ void recombine(columns &x, const T (&c)[2], int warp, int rows) const {
    const operand<T> a[2] = {split(c[0]), split(c[1])};
    each_active(warp, rows, [&](int u) {
      operand<T> b[2];
      turned_.read(b, u);
      square_sum<T> product;
      product.add(a, b);
      product.get(x.x[u]);
    });
  }

  /* Keeps x in shared memory, and a unit of zeros behind: units are read in twos. */
  __device__ __forceinline__ void set(const columns &x, int warp, int rows) const {
    warp_sync();
    const T zeros[2] = {zero<T>(), zero<T>()};
#pragma unroll
    for (int u = 0; u <= units; u++)
      if ((u == 0 || columns::has_rows(warp, u - 1, rows)) && fits(u))
        turned_.write(u, u < units ? x.x[u] : zeros);
    warp_sync();
  }

private:
  struct four {
    operand<T> v[4];
  };
  __device__ __forceinline__ static four negative(const split_type (&y)[2], uint32_t nothing) {
    four a;
#pragma unroll
    for (int i = 0; i < 4; i++) a.v[i] = apart(negated(split(y[i / 2].v[i % 2])), nothing);
    return a;
  }
  __device__ __forceinline__ static void add_to(T (&x)[2], const square_sum<T> &sum) {
    T other[2];
    sum.get(other);
#pragma unroll
    for (int i = 0; i < 2; i++) x[i] = x[i] + other[i];
  }
  __device__ __forceinline__ void multiply_unit(T (&w)[4], const four &a, int u) const {
    T v[2];
    turned_.read_back(v, u);
    multiply_add(w, a.v, {conj(split(v[0])), conj(split(v[1]))});
  }
  __device__ __forceinline__ void subtract_unit(T (&c)[4], const four &minus_y, int u) const {
    operand<T> b[2];
    turned_.read(b, u);
    multiply_add(c, minus_y.v, b);
  }
  /* Whether there is memory for the unit. */
  __device__ __forceinline__ bool fits(int u) const { return !TIGHT || first_ + u < units; }
  template <class F> __device__ __forceinline__ static void each_two(int warp, int rows, F &&f) {
#pragma unroll
    for (int u = 0; u < units; u += 2)
      if (columns::has_rows(warp, u, rows)) {
        f(u);
        f(u + 1);
      }
  }
  template <class F> __device__ __forceinline__ void each_active(int warp, int rows, F &&f) const {
    each_two(warp, rows, [&](int u) {
      if (u % 2 == 0 || fits(u)) f(u);
    });
  }

  rows_type turned_;
  int first_;
};

template <class T, int R, int W> using block_reflector = unit_reflector<T, 4 * R, W>;

} // namespace bqr

#endif
