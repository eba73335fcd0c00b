/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_rows: tall and small square members, one block for a member. A panel of N columns lies in the block's
 * registers, its rows dealt over the lanes of P warps, R to a lane; the panel is factored there, and the
 * trailing columns stream through the same threads a few at a time, while V stays where it is: the whole
 * factorization is one launch.
 *
 * A column of the panel costs one sum over the block: the products of the pivot column with all N columns
 * give the norm, the updates, and, with the vectors that are done, V^H V for the triangular factor T of the
 * compact WY form (xLARFT) at no further exchange. Lane l then owns number l of such a set; the scalar work
 * for all columns is done at once, in all warps alike.
 *
 * Method: xGEQRF, block size N; columns in range as in common/panel/columns.cuh. */
#include "common/simt/block.cuh"
#include "common/panel/columns.cuh"
#include "common/simt/instances.cuh"
#include "common/matrix/member.cuh"
#include "common/simt/tile.cuh"
#include "common/ptx/barrier.cuh"

namespace {
using namespace bqr;

constexpr int least_of(int a, int b) { return a < b ? a : b; }

/* N columns to a panel, R rows to a lane, P warps; the trailing columns come C at a time. */
template <class T, int N, int R, int P> struct shape {
  static constexpr int threads = P * warp_lanes;
  /* sums in the registers of a lane, and one for a lane at most */
  static constexpr int at_once = least_of(warp_lanes, 256 / static_cast<int>(sizeof(T)));
  static constexpr int C = least_of(least_of(4, 8 / R), at_once / N), sums = N * C;
};

template <class T, int N, int R, int P> struct shared_memory_of {
  static constexpr int sums = shape<T, N, R, P>::sums;
  T partial[2][P][sums]; /* sums over a warp, in two buffers used in turn */
  T pivot[2][N];         /* the pivot row of the panel */
  alignas(16) T exchange[P][sums];
  T t[N][N];
  uint32_t magnitude[N];
  short exponent[1]; /* of each column's scale: n of them */
};

/* The factorization of one member by one block. */
template <class T, int N, int R, int P> class rows_qr {
  using S = shape<T, N, R, P>;
  using real = real_t<T>;
  using shared_type = shared_memory_of<T, N, R, P>;
  static constexpr int sums = S::sums;

public:
  static constexpr size_t smem(int n) { return sizeof(shared_type) + sizeof(short) * static_cast<size_t>(n); }

  __device__ rows_qr(void *shared, T *a, int64_t ld, int m, int n, bool positive)
      : s(*static_cast<shared_type *>(shared)), a_(a), ld_(ld), m_(m), n_(n), positive_(positive),
        lane(lane_id()), warp(warp_id()) {}

  /* Factors the member; returns its info. tau: min(m, n) elements. */
  __device__ __forceinline__ int run(T *tau) {
    const int k = least(m_, n_);
    for (int j = 0; j < k; j += N) {
      T v[N][R], t[N];
      load(v, j, j);
      if (j == 0) bring_into_range(0, N, [&](auto &&f) { each(v, f); });
      factor_panel(v, t, j, least(N, k - j), tau);
      store(v, j, j);
      if (j + N < n_) {
        make_explicit(v);
        update_trailing(v, t, j);
      }
      sync();
    }
    if (scaled_) unscale(k);
    return finite_ ? zero_column_ : BATCHQR_INFO_NONFINITE;
  }

private:
  __device__ void sync() const {
    if (P == 1)
      warp_sync();
    else
      block_sync();
  }
  __device__ bool any(bool v) const { return P == 1 ? group_any(v) : block_any(v); }

  /* Row of the tile that starts at row `top`: lanes first, then warps, then q. */
  __device__ int row(int q) const { return lane + warp_lanes * (warp + P * q); }
  /* How many q hold rows. */
  __device__ int active(int top) const { return (m_ - top - 1) / S::threads + 1; }

  template <int W> __device__ __forceinline__ void load(T (&x)[W][R], int top, int col) const {
#pragma unroll
    for (int c = 0; c < W; c++)
#pragma unroll
      for (int q = 0; q < R; q++)
        x[c][q] = top + row(q) < m_ && col + c < n_ ? a_[top + row(q) + (col + c) * ld_] : zero<T>();
  }
  template <int W> __device__ __forceinline__ void store(const T (&x)[W][R], int top, int col) const {
#pragma unroll
    for (int c = 0; c < W; c++)
#pragma unroll
      for (int q = 0; q < R; q++)
        if (top + row(q) < m_ && col + c < n_) a_[top + row(q) + (col + c) * ld_] = x[c][q];
  }

  /* f(entry, its column counted from the first) */
  template <int W, class F> __device__ __forceinline__ static void each(T (&x)[W][R], F &&f) {
#pragma unroll
    for (int c = 0; c < W; c++)
#pragma unroll
      for (int q = 0; q < R; q++) f(x[c][q], c);
  }

  /* Looks at `width` columns from `col` on when they are first touched; those out of range get their scale.
   * entries(f): f(entry, column) as in each(). */
  template <class E> __device__ __forceinline__ void bring_into_range(int col, int width, E &&entries) {
    bool outside = false;
    entries([&](T &x, int) { outside |= out_of_range(x); });
    outside = any(outside);
    int number = thread_id();
    if (number < width) s.magnitude[number] = 0;
    if (outside) {
      sync();
      entries([&](T &x, int c) { shared_max(&s.magnitude[c], magnitude(x)); });
      sync();
      entries([&](T &x, int c) { x = scaled(x, exponent_scale<real>(column_exponent<T>(s.magnitude[c]))); });
      for (int c = 0; c < width; c++) {
        finite_ &= magnitude_finite<T>(s.magnitude[c]);
        scaled_ |= column_exponent<T>(s.magnitude[c]) != 0;
      }
    }
    if (number < width && col + number < n_)
      s.exponent[col + number] = static_cast<short>(outside ? column_exponent<T>(s.magnitude[number]) : 0);
    if (outside) sync();
  }

  /* Sums of v[i] over the block: number l / (32 / W) in lane l of each warp. */
  template <int W> __device__ __forceinline__ T block_sums(T (&v)[W]) {
    constexpr int copies = warp_lanes / W;
    T mine = group_sum_scatter<W>(v);
    if (P == 1) {
      warp_sync();
      return mine;
    }
    T(*partial)[sums] = s.partial[turn_];
    turn_ ^= 1;
    if (lane % copies == 0) partial[warp][lane / copies] = mine;
    block_sync();
    T total = partial[0][lane / copies];
#pragma unroll
    for (int p = 1; p < P; p++) total += partial[p][lane / copies];
    return total;
  }

  /* Makes number i, which lane group i of the warp holds, readable by the whole warp as s.exchange[warp][i].
   */
  template <int W> __device__ __forceinline__ const T *spread(T mine) const {
    constexpr int copies = warp_lanes / W;
    warp_sync();
    if (lane % copies == 0) s.exchange[warp][lane / copies] = mine;
    warp_sync();
    return s.exchange[warp];
  }

  __device__ __forceinline__ void factor_panel(T (&a)[N][R], T (&t)[N], int top, int reflectors, T *tau) {
    const int qs = active(top), mine = lane / (warp_lanes / N);
    int parity = 0;
    static_for<N>([&](auto index) {
      constexpr int k = decltype(index)::value;
      t[k] = zero<T>();
      if (k >= reflectors) return;
      if (warp == 0 && lane == k) {
#pragma unroll
        for (int j = 0; j < N; j++) s.pivot[parity][j] = a[j][0];
      }
      T products[N];
      T x0 = warp > 0 || lane > k ? a[k][0] : zero<T>();
#pragma unroll
      for (int j = 0; j < N; j++) products[j] = cmadd(x0, a[j][0], zero<T>());
#pragma unroll
      for (int q = 1; q < R; q++)
        if (q < qs) {
#pragma unroll
          for (int j = 0; j < N; j++) products[j] = cmadd(a[k][q], a[j][q], products[j]);
        }
      T product = block_sums(products);
      T alpha = s.pivot[parity][k];
      column_reflector<T> h =
          larfg_in_range(alpha, broadcast(real_part(product), k * (warp_lanes / N)), positive_);
      /* v_k^H a_j, of which the update of a_j, and for j < k V^H V */
      T dot = cmadd(h.scale, product, s.pivot[parity][mine]);
      T w[N];
      column_read<0>(w, spread<N>(mine > k ? conj(h.tau) * dot : conj(dot)));
#pragma unroll
      for (int q = 0; q < R; q++)
        if (q < qs) {
          bool below = q > 0 || warp > 0 || lane > k;
          T v = below ? a[k][q] * h.scale : lane == k ? one<T>() : zero<T>();
          a[k][q] = below ? v : lane == k ? make<T>(h.beta) : a[k][q];
#pragma unroll
          for (int j = k + 1; j < N; j++) a[j][q] = madd(-w[j], v, a[j][q]);
        }
      T sum = zero<T>();
#pragma unroll
      for (int l = 0; l < k; l++) sum = madd(t[l], w[l], sum);
      t[k] = mine < k ? -(h.tau * sum) : mine == k ? h.tau : zero<T>();
      if (warp == 0 && lane == 0) tau[top + k] = h.tau;
      if (h.beta == 0 && zero_column_ == 0) zero_column_ = top + k + 1;
      parity ^= 1;
    });
  }

  /* Replaces R by the ones and zeros of V. */
  __device__ __forceinline__ void make_explicit(T (&v)[N][R]) const {
    if (warp == 0) {
#pragma unroll
      for (int j = 0; j < N; j++)
        if (lane <= j) v[j][0] = lane == j ? one<T>() : zero<T>();
    }
  }

  /* A := (I - V T^H V^H) A for the columns right of the panel. */
  __device__ __forceinline__ void update_trailing(const T (&v)[N][R], const T (&t)[N], int top) {
    constexpr int C = S::C;
    const int qs = active(top), mine = lane / (warp_lanes / sums);
    if (warp == 0 && lane % (warp_lanes / N) == 0) {
#pragma unroll
      for (int l = 0; l < N; l++) s.t[lane / (warp_lanes / N)][l] = t[l];
    }
    sync();
    T th[N]; /* row mine % N of T^H */
#pragma unroll
    for (int l = 0; l < N; l++) th[l] = conj(s.t[l][mine % N]);
    T next[C][R];
    load(next, top, top + N);
    for (int col = top + N; col < n_; col += C) {
      T x[C][R];
#pragma unroll
      for (int c = 0; c < C; c++)
#pragma unroll
        for (int q = 0; q < R; q++) x[c][q] = next[c][q];
      if (col + C < n_) load(next, top, col + C);
      if (top == 0) bring_into_range(col, C, [&](auto &&f) { each(x, f); });
      T products[sums];
#pragma unroll
      for (int i = 0; i < sums; i++) products[i] = cmadd(v[i % N][0], x[i / N][0], zero<T>());
#pragma unroll
      for (int q = 1; q < R; q++)
        if (q < qs) {
#pragma unroll
          for (int i = 0; i < sums; i++) products[i] = cmadd(v[i % N][q], x[i / N][q], products[i]);
        }
      T column[N], w[sums], sum = zero<T>();
      column_read<0>(column, spread<sums>(block_sums(products)) + mine / N * N);
#pragma unroll
      for (int l = 0; l < N; l++) sum = madd(th[l], column[l], sum);
      column_read<0>(w, spread<sums>(-sum));
#pragma unroll
      for (int q = 0; q < R; q++)
        if (q < qs) {
#pragma unroll
          for (int i = 0; i < sums; i++) x[i / N][q] = madd(v[i % N][q], w[i], x[i / N][q]);
        }
      store(x, top, col);
    }
  }

  /* Takes the scales out of R; a small entry of its diagonal may become zero. */
  __device__ void unscale(int k) {
    for (int j = warp; j < n_; j += P) {
      real back = exponent_scale<real>(-s.exponent[j]);
      for (int i = lane; i <= j && i < m_ && back != 1; i += warp_lanes)
        a_[i + j * ld_] = scaled(a_[i + j * ld_], back);
    }
    sync();
    int found = -1;
    for (int j = 0; j < k && found < 0; j += warp_lanes) {
      found = first_lane(j + lane < k && is_zero(a_[(j + lane) * (ld_ + 1)]));
      zero_column_ = found < 0 ? 0 : j + found + 1;
    }
  }

  shared_type &s;
  T *a_;
  int64_t ld_;
  int m_, n_;
  bool positive_;
  int lane, warp;
  int turn_ = 0, zero_column_ = 0;
  bool finite_ = true, scaled_ = false;
};

template <class T, int N, int R, int P>
__global__ void __launch_bounds__(P *warp_lanes)
    geqrf_rows_kernel(const __grid_constant__ bqr_args args, bool positive) {
  extern __shared__ __align__(16) unsigned char shared[];
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    member x = member_at<BATCHQR_GEQRF>(args, i);
    int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
    if (x.ok && x.m > 0 && x.n > 0) {
      rows_qr<T, N, R, P> qr(shared, matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n,
                             positive);
      info = qr.run(tau_data<T>(args, x.id));
      block_sync();
    }
    if (thread_id() == 0) set_info(args, x.id, info);
  }
}

enum : int { S = 1 << BATCHQR_S, D = 1 << BATCHQR_D, C = 1 << BATCHQR_C, Z = 1 << BATCHQR_Z };
/* cols: of a panel; rows: of a lane. */
constexpr bqr_variant rows_variants[] = {
    {.name = "cols8.rows4.warps1", .rows = 4, .cols = 8, .warps = 1, .types = S | D | C},
    {.name = "cols8.rows2.warps2", .rows = 2, .cols = 8, .warps = 2, .types = Z},
    {.name = "cols8.rows4.warps2", .rows = 4, .cols = 8, .warps = 2, .types = S | D | C},
    {.name = "cols8.rows4.warps4", .rows = 4, .cols = 8, .warps = 4, .types = S | D | C},
    {.name = "cols4.rows4.warps4", .rows = 4, .cols = 4, .warps = 4, .types = Z},
    {.name = "cols8.rows4.warps8", .rows = 4, .cols = 8, .warps = 8, .types = S | D | C},
    {.name = "cols4.rows4.warps8", .rows = 4, .cols = 4, .warps = 8, .types = Z},
    {.name = "cols4.rows8.warps16", .rows = 8, .cols = 4, .warps = 16, .types = S | D | C},
};

/* For instances. */
struct rows {
  static constexpr auto &variants = rows_variants;
  static constexpr int num_variants = sizeof variants / sizeof variants[0];
  template <class T, int I, class F> static auto instance(const bqr_problem *problem, F &&f) {
    constexpr const bqr_variant &v = variants[I];
    return f(geqrf_rows_kernel<T, v.cols, v.rows, v.warps>,
             rows_qr<T, v.cols, v.rows, v.warps>::smem(problem->n), v.warps * warp_lanes);
  }
};
using family = instances<rows>;

bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  return problem->m <= warp_lanes * variant->rows * variant->warps && problem->n <= 4096 &&
         family::fits(problem, variant, device->smem_per_block);
}

batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *,
                      const bqr_args *args, batchqr_stream stream) {
  return family::launch_with(problem, variant, stream, *args, problem->positive);
}
} // namespace

extern "C" const bqr_family bqr_family_geqrf_rows = {
    .name = "geqrf_rows",
    .op = BATCHQR_GEQRF,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = rows_variants,
    .nvariants = rows::num_variants,
    .launches = 1,
    .supports = supports,
    .prepare = family::prepare,
    .launch = launch,
};
