/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_mma: tall and small square members in double precision, one block for a member, on matrix units.
 * Panels of 8 columns are factored in the block's registers as fragments (common/fragment.cuh), 4 lanes to a
 * column, 32 R rows to each of P warps; the trailing columns then stream through the same registers, 8 at a
 * time, past V in shared memory: the whole factorization is one launch.
 *
 * A column of the panel costs its owners' publishing it, one product of each lane's column with it, and a sum
 * over 4 lanes (and the warps). The product gives the norm, the updates of the columns to the right and, with
 * the vectors to the left, V^T V, of which T is made (xLARFT).
 *
 * Method: xGEQRF with blocks of 8; columns in range as in common/columns.cuh. */
#include "columns.cuh"
#include "launch.cuh"
#include "member.cuh"
#include "mma.cuh"

namespace {
using namespace bqr;

constexpr int N = 8; /* columns of a panel */

/* The factorization of one member by one block. */
template <int R, int P> class mma_qr {
  using T = double;
  using columns = fragment<T, R, P>;
  using reflector_type = mma_reflector<R, P>;
  static constexpr int units = columns::units, unit = columns::unit, lanes = columns::lanes;

  /* Arrays of two are used in turn, so that a barrier stands between their uses. */
  struct storage {
    typename reflector_type::storage reflector;
    alignas(16) T pivot[2][P][32 * R]; /* the pivot column, each warp's rows */
    alignas(16) T z[N][N];             /* z[i][k] = v_i^T v_k, i < k */
    T row[2][N];                       /* the pivot row */
    T partial[2][P][N];
    T tau[N];
    uint32_t magnitude[N];
    short exponent[1]; /* of each column's scale: n of them */
  };

public:
  static constexpr size_t smem(int n) { return sizeof(storage) + sizeof(short) * static_cast<size_t>(n); }

  __device__ mma_qr(void *shared, T *a, int64_t ld, int m, int n)
      : s(*static_cast<storage *>(shared)), a_(a), ld_(ld), m_(m), n_(n), packs_(tile_packs(a, ld, m)) {}

  /* Factors the member; returns its info. tau: min(m, n) elements. */
  __device__ int run(T *tau) {
    const int k = least(m_, n_);
    for (int top = 0; top < k; top += N) {
      columns x;
      load(x, top, top);
      if (top == 0) bring_into_range(x, 0);
      factor_panel(x, top, least(N, k - top));
      store(x, top, top);
      if (warp_id() == 0 && columns::lane() == 0 && top + columns::column() < k)
        tau[top + columns::column()] = tau_;
      if (top + N < n_) update_trailing(x, top);
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

  __device__ void load(columns &x, int top, int col) const {
    x.load(a_ + top + col * ld_, ld_, m_ - top, n_ - col, packs_);
  }
  __device__ void store(const columns &x, int top, int col) const {
    x.store(a_ + top + col * ld_, ld_, m_ - top, n_ - col, packs_);
  }

  /* Looks at 8 columns from `col` on when they are first touched; those out of range get their scale. */
  __device__ __forceinline__ void bring_into_range(columns &x, int col) {
    bool outside = false;
    x.each([&](T &y, int) { outside |= !in_column_range(y); }); /* cheaper, but zeros too are outside */
    outside = any(outside);
    if (outside) {
      outside = false;
      x.each([&](T &y, int) { outside |= out_of_range(y); });
      outside = any(outside);
    }
    const int number = thread_id();
    if (outside) {
      uint32_t *largest = &s.magnitude[columns::column()];
      if (number < N) s.magnitude[number] = 0;
      sync();
      x.each([&](T &y, int) { shared_max(largest, magnitude(y)); });
      sync();
      T scale = exponent_scale<T>(column_exponent<T>(*largest));
      x.each([&](T &y, int) { y = y * scale; });
      for (int c = 0; c < N; c++) {
        finite_ &= magnitude_finite<T>(s.magnitude[c]);
        scaled_ |= column_exponent<T>(s.magnitude[c]) != 0;
      }
    }
    if (number < N && col + number < n_)
      s.exponent[col + number] = static_cast<short>(outside ? column_exponent<T>(s.magnitude[number]) : 0);
    if (outside) sync();
  }

  /* `reflectors` columns of the panel whose first row and column is `top`. */
  __device__ __forceinline__ void factor_panel(columns &a, int top, int reflectors) {
    const int c = columns::column(), rows = m_ - top;
    T v_scale = 0;
    tau_ = 0;
    static_for<N>([&](auto index) {
      constexpr int k = decltype(index)::value, turn = k % 2;
      if (k >= reflectors) return;
      /* where the pivot row is */
      constexpr int row_tile = k / columns::tile, row_unit = row_tile / P, row_entry = k % unit;
      const bool has_row = warp_id() == row_tile % P && columns::lane() == k % columns::tile / unit;

      T *pivot = s.pivot[turn][warp_id()] + columns::lane() * unit;
      if (c == k) {
#pragma unroll
        for (int u = 0; u < units; u++) column_write<0>(pivot + u * columns::tile, a.x[u]);
      }
      if (has_row) s.row[turn][c] = a.x[row_unit][row_entry];
      warp_sync();
      T x[units][unit], part[4] = {0, 0, 0, 0};
#pragma unroll
      for (int u = 0; u < units; u++)
        if (columns::has_rows(u, rows)) {
          read_pivot<k>(x[u], pivot, u);
#pragma unroll
          for (int e = 0; e < unit; e++)
            part[(u * unit + e) % 4] = madd(x[u][e], a.x[u][e], part[(u * unit + e) % 4]);
        }
      T product = group_sum<lanes>((part[0] + part[1]) + (part[2] + part[3]));
      T norm2;
      if (P == 1) {
        norm2 = broadcast(product, k * lanes);
      } else {
        if (columns::lane() == 0) s.partial[turn][warp_id()][c] = product;
        block_sync();
        product = 0;
        norm2 = 0;
#pragma unroll
        for (int p = 0; p < P; p++) {
          product += s.partial[turn][p][c];
          norm2 += s.partial[turn][p][k];
        }
      }
      column_reflector<T> h = larfg_in_range(s.row[turn][k], norm2);
      T dot = madd(h.scale, product, s.row[turn][c]); /* v_k^T a_c */
      if (c < k && warp_id() == 0 && columns::lane() == 0) s.z[c][k] = dot * v_scale;
      T w = c > k ? h.tau * dot : 0;
      T factor = -(w * h.scale);
      if constexpr (!keep_pivot) warp_sync(); /* x again: it does not stay in registers beside a */
#pragma unroll
      for (int u = 0; u < units; u++)
        if (columns::has_rows(u, rows)) {
          if constexpr (!keep_pivot) read_pivot<k>(x[u], pivot, u);
#pragma unroll
          for (int e = 0; e < unit; e++) a.x[u][e] = madd(factor, x[u][e], a.x[u][e]);
        }
      if (has_row) a.x[row_unit][row_entry] = c == k ? h.beta : a.x[row_unit][row_entry] - w;
      if (c == k) {
        tau_ = h.tau;
        v_scale = h.scale;
      }
      if (h.beta == 0 && zero_column_ == 0) zero_column_ = top + k + 1;
    });
#pragma unroll
    for (int u = 0; u < units; u++)
#pragma unroll
      for (int e = 0; e < unit; e++)
        if (!columns::in_head(u) || (columns::row(u, e) > c && c < reflectors))
          a.x[u][e] = a.x[u][e] * v_scale;
  }

  static constexpr bool keep_pivot = sizeof(columns) <= 256;

  /* Unit u of the pivot column below row K. */
  template <int K> __device__ __forceinline__ static void read_pivot(T (&x)[unit], const T *pivot, int u) {
    column_read<0>(x, pivot + u * columns::tile);
    if (columns::in_head(u)) {
#pragma unroll
      for (int e = 0; e < unit; e++)
        if (columns::row(u, e) <= K) x[e] = 0;
    }
  }

  /* A := (I - V T^T V^T) A for the columns right of the panel. */
  __device__ __forceinline__ void update_trailing(columns &v, int top) {
    const int c = columns::column();
#pragma unroll
    for (int u = 0; u < units; u++)
#pragma unroll
      for (int e = 0; e < unit; e++)
        if (columns::in_head(u) && columns::row(u, e) <= c) v.x[u][e] = columns::row(u, e) == c ? 1 : 0;
    reflector_type reflector(s.reflector);
    reflector.set_v(v);
    if (warp_id() == 0) {
      if (columns::lane() == 0) s.tau[c] = tau_;
      warp_sync();
      T t[N];
      triangular_factor(t, c);
      if (columns::lane() == 0) reflector.set_t_row(c, t);
    }
    sync();
    columns next;
    load(next, top, top + N);
    for (int col = top + N; col < n_; col += N) {
      columns x = next;
      if (col + N < n_) load(next, top, col + N);
      if (top == 0) bring_into_range(x, col);
      reflector.apply(x, m_ - top);
      store(x, top, col);
    }
  }

  /* Row i of T: T(i, k) = -tau_k sum_l T(i, l) z_lk. Past the last reflector tau is 0 and z undefined. */
  __device__ __forceinline__ void triangular_factor(T (&t)[N], int i) const {
#pragma unroll
    for (int k = 0; k < N; k++) t[k] = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
      const T tau = s.tau[k];
      t[k] = k < i || tau == 0 ? 0 : k == i ? tau : -(tau * t[k]);
#pragma unroll
      for (int l = k + 1; l < N; l++) t[l] = madd(t[k], s.z[k][l], t[l]);
    }
  }

  /* Takes the scales out of R; a small entry of its diagonal may become zero. */
  __device__ void unscale(int k) {
    for (int j = warp_id(); j < n_; j += P) {
      T back = exponent_scale<T>(-s.exponent[j]);
      for (int i = lane_id(); i <= j && i < m_ && back != 1; i += warp_lanes)
        a_[i + j * ld_] = a_[i + j * ld_] * back;
    }
    sync();
    int found = -1;
    for (int j = 0; j < k && found < 0; j += warp_lanes) {
      int i = j + lane_id();
      found = first_lane(i < k && a_[i + i * ld_] == 0);
      zero_column_ = found < 0 ? 0 : j + found + 1;
    }
  }

  storage &s;
  T *a_;
  int64_t ld_;
  int m_, n_;
  bool packs_;
  T tau_; /* of this lane's column in the panel */
  int zero_column_ = 0;
  bool finite_ = true, scaled_ = false;
};

template <int R, int P>
__global__ void __launch_bounds__(P *warp_lanes) geqrf_mma_kernel(const __grid_constant__ batchqr_args args) {
  extern __shared__ __align__(16) unsigned char shared[];
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    member x = member_at<BATCHQR_GEQRF>(args, i);
    int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
    if (x.ok && x.m > 0 && x.n > 0) {
      mma_qr<R, P> qr(shared, matrix_data<double>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n);
      info = qr.run(tau_data<double>(args, x.id));
      block_sync();
    }
    if (thread_id() == 0) set_info(args, x.id, info);
  }
}

/* R, P */
constexpr batchqr_variant variants[] = {
    {"rows32.warps1", {1, 1}},  {"rows64.warps1", {2, 1}},   {"rows64.warps2", {1, 2}},
    {"rows128.warps1", {4, 1}}, {"rows128.warps2", {2, 2}},  {"rows128.warps4", {1, 4}},
    {"rows256.warps2", {4, 2}}, {"rows256.warps4", {2, 4}},  {"rows512.warps4", {4, 4}},
    {"rows512.warps8", {2, 8}}, {"rows1024.warps8", {4, 8}},
};
constexpr int num_variants = sizeof variants / sizeof variants[0];

/* f(kernel, bytes of shared memory, threads) of the variant's instance. */
template <class F>
batchqr_status with_instance(const batchqr_problem *problem, const batchqr_variant *variant, F &&f) {
  return for_index<num_variants>(static_cast<int>(variant - variants), [&](auto index) {
    constexpr const int(&p)[6] = variants[decltype(index)::value].p;
    return f(geqrf_mma_kernel<p[0], p[1]>, mma_qr<p[0], p[1]>::smem(problem->n), p[1] * warp_lanes);
  });
}

bool supports(const batchqr_problem *problem, const batchqr_variant *variant, const batchqr_device *device) {
  constexpr int most_columns = 4096; /* their scales lie in shared memory */
  if (problem->m > warp_lanes * variant->p[0] * variant->p[1] || problem->n > most_columns ||
      problem->positive)
    return false;
  return with_instance(problem, variant, [&](auto, size_t smem, int) {
           return smem <= static_cast<size_t>(device->smem_per_block) ? BATCHQR_SUCCESS : BATCHQR_UNSUPPORTED;
         }) == BATCHQR_SUCCESS;
}

batchqr_status prepare(const batchqr_problem *problem, const batchqr_variant *variant,
                       const batchqr_device *) {
  return with_instance(problem, variant,
                       [](auto kernel, size_t smem, int) { return prepare_kernel(kernel, smem); });
}

batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant, const batchqr_device *,
                      const batchqr_args *args, batchqr_stream stream) {
  return with_instance(problem, variant, [&](auto kernel, size_t smem, int threads) {
    return launch_kernel(kernel, dim3(grid_for(args->count)), threads, smem, stream, *args);
  });
}
} // namespace

extern "C" const batchqr_family batchqr_family_geqrf_mma = {
    "geqrf_mma", BATCHQR_GEQRF, 1u << BATCHQR_D, BATCHQR_BACKEND_CUDA,
    80,          variants,      num_variants,    1,
    supports,    nullptr,       prepare,         launch,
};
