/* SPDX-License-Identifier: BSD-3-Clause */
/* Tiny members: what the *_warp families share. A member lies in the registers of LANES lanes of a warp; lane
 * l has columns l, l + LANES, ... whole, so that no sum crosses lanes. To factor, the pivot's lane publishes
 * its column in shared memory; each lane multiplies it with its own columns, and the product of the pivot
 * with itself is the squared norm. To form Q, the factored member lies in shared memory and each lane has
 * columns of Q. With one lane for a member nothing is exchanged at all. Shared memory also turns whole memory
 * sectors into columns and back.
 *
 * Methods: xGEQR2 with columns in range as in columns.cuh; xORG2R. */
#ifndef BATCHQR_KERNELS_COMMON_TINY_CUH
#define BATCHQR_KERNELS_COMMON_TINY_CUH

#include "columns.cuh"
#include "launch.cuh"
#include "member.cuh"
#include "tile.cuh"

namespace bqr {

/* Shared memory of a member, in units of 16 bytes; a multiprocessor serves 8 of them at once. Lanes read
 * their columns, then all lanes the pivot's: both without bank conflicts. */
template <class T, int ROWS, int COLS, int LANES> struct tiny_tile {
  static constexpr int unit = pack<T>::size, slots = COLS / LANES, members = warp_lanes / LANES;
  static constexpr int ld_rule = LANES >= 8 ? 1 : 8 / LANES, ld_modulus = 2 * ld_rule;
  static constexpr int ld_units(int u) {
    return LANES == 1 || u % ld_modulus == ld_rule ? u : ld_units(u + 1);
  }
  static constexpr int ld = unit * ld_units(ROWS / unit);
  static constexpr int size = unit * (COLS * ld / unit | 1);
  static constexpr size_t smem = sizeof(T) * members * size;
  /* Lanes that move one member: as many as it has units, at most a warp. */
  static constexpr int movers(int lanes) {
    return lanes < warp_lanes && lanes < ROWS * COLS / unit ? movers(2 * lanes) : lanes;
  }
};

/* The most of the warp's members. */
__device__ __forceinline__ int tiny_steps(int k) {
  return static_cast<int>(group_max(static_cast<uint32_t>(k)));
}

/* Column `lane` + LANES * s of the member is a[s]. */
template <class T, int ROWS, int COLS, int LANES> struct tiny_qr {
  using R = real_t<T>;
  using tile = tiny_tile<T, ROWS, COLS, LANES>;
  static constexpr int slots = tile::slots, most = ROWS < COLS ? ROWS : COLS;

  T a[slots][ROWS], tau[slots];
  R diagonal[slots]; /* of R */
  T *shared;
  int lane;

  __device__ __forceinline__ int column(int s) const { return lane + LANES * s; }

  /* The first m x n entries; zeros around them. */
  __device__ __forceinline__ void read(int m, int n) {
#pragma unroll
    for (int s = 0; s < slots; s++) column_read<0>(a[s], shared + column(s) * tile::ld);
    if (group_any(m < ROWS || n < COLS)) {
#pragma unroll
      for (int s = 0; s < slots; s++)
#pragma unroll
        for (int i = 0; i < ROWS; i++)
          if (i >= m || column(s) >= n) a[s][i] = zero<T>();
    }
  }

  __device__ __forceinline__ void write() const {
#pragma unroll
    for (int s = 0; s < slots; s++) column_write<0>(shared + column(s) * tile::ld, a[s]);
  }

  /* Factors n columns, k of them by reflectors. Without `vectors`, what is below R is of no use after it.
   * Returns the largest magnitude that was in the lane's columns. */
  template <bool vectors> __device__ __forceinline__ uint32_t factor(int n, int k) {
    uint32_t top = 0;
    int exponent[slots];
    bool out_of_range = false;
#pragma unroll
    for (int s = 0; s < slots; s++) {
      uint32_t u = magnitude_of(s);
      top = greater(top, u);
      exponent[s] = column_exponent<T>(u);
      out_of_range |= exponent[s] != 0 && column(s) < n;
    }
    out_of_range = group_any(out_of_range);
    if (out_of_range) {
#pragma unroll
      for (int s = 0; s < slots; s++) scale_column(s, exponent[s], false);
    }
    const int steps = tiny_steps(k);
    reduce(steps);
    if constexpr (vectors) scale_vectors(steps);
    if (out_of_range) {
#pragma unroll
      for (int s = 0; s < slots; s++) scale_column(s, -exponent[s], true);
    }
    return top;
  }

  /* Q = H_0 ... H_(steps-1) I, from the vectors in shared memory and tau; vectors with tau = 0 must be
   * finite. Before H_k is applied, columns beyond k have zeros down to row k, and column k and those before
   * are still the identity's. */
  __device__ __forceinline__ void form_q(int steps) {
#pragma unroll
    for (int s = 0; s < slots; s++)
#pragma unroll
      for (int i = 0; i < ROWS; i++) a[s][i] = i == column(s) ? one<T>() : zero<T>();
    static_for<most>([&](auto index) {
      constexpr int k = most - 1 - decltype(index)::value, slot = k / LANES;
      if (k >= steps) return;
      T x[ROWS], w[slots], h_tau = tau[slot];
      column_read<k + 1>(x, shared + k * tile::ld);
      if constexpr (LANES > 1) h_tau = broadcast<LANES>(h_tau, k % LANES);
#pragma unroll
      for (int s = slot; s < slots; s++)
        w[s] = -(h_tau * (a[s][k] + product_below<k, slots - slot>(x, a[s])));
      read_again<k, k + 1>(x);
#pragma unroll
      for (int s = slot; s < slots; s++) {
        a[s][k] += w[s];
#pragma unroll
        for (int i = k + 1; i < ROWS; i++) a[s][i] = madd(w[s], x[i], a[s][i]);
      }
    });
  }

  /* The entry of info for a member of k reflectors whose largest magnitude over its lanes' `top` says whether
   * it was finite. */
  __device__ __forceinline__ int info(uint32_t top, int k) const {
    bool finite = magnitude_finite<T>(group_max<LANES>(top));
    int zero_column = COLS;
#pragma unroll
    for (int s = slots - 1; s >= 0; s--)
      if (diagonal[s] == 0) zero_column = column(s);
    zero_column = COLS - static_cast<int>(group_max<LANES>(static_cast<uint32_t>(COLS - zero_column)));
    return !finite ? BATCHQR_INFO_NONFINITE : zero_column < k ? zero_column + 1 : 0;
  }

  /* Whether tau and the vectors in a are finite, for all the member's lanes. */
  __device__ __forceinline__ bool vectors_finite() const {
    uint32_t u = 0;
#pragma unroll
    for (int s = 0; s < slots; s++) {
      u = greater(u, magnitude(tau[s]));
#pragma unroll
      for (int i = 1; i < ROWS; i++)
        if (i > column(s)) u = greater(u, magnitude(a[s][i]));
    }
    return magnitude_finite<T>(group_max<LANES>(u));
  }

private:
  T v_scale_[slots];

  /* The largest magnitude of a slot's column. */
  __device__ __forceinline__ uint32_t magnitude_of(int s) const {
    uint32_t u = 0;
#pragma unroll
    for (int i = 0; i < ROWS; i++) u = greater(u, magnitude(a[s][i]));
    return u;
  }

  /* Columns 0 .. steps, in range. */
  __device__ __forceinline__ void reduce(int steps) {
#pragma unroll
    for (int s = 0; s < slots; s++) {
      v_scale_[s] = tau[s] = zero<T>();
      diagonal[s] = 1;
    }
    static_for<most>([&](auto index) {
      constexpr int k = decltype(index)::value, owner = k % LANES, slot = k / LANES;
      if (k >= steps) return;
      T x[ROWS];
      if constexpr (LANES == 1) {
#pragma unroll
        for (int i = k; i < ROWS; i++) x[i] = a[slot][i];
      } else {
        if (lane == owner) column_write<k>(shared + k * tile::ld, a[slot]);
        warp_sync();
        column_read<k>(x, shared + k * tile::ld);
      }
      T product[slots];
#pragma unroll
      for (int s = slot; s < slots; s++) product[s] = product_below<k, slots - slot>(x, a[s]);
      R norm2 = real_part(product[slot]);
      if constexpr (LANES > 1) norm2 = broadcast<LANES>(norm2, owner);
      column_reflector<T> h = larfg_in_range(x[k], norm2);
      T v = -h.scale;
      read_again<k, k>(x);
#pragma unroll
      for (int s = slot; s < slots; s++) {
        /* H^H a = a - conj(tau) v (v^H a), v = (1; scale x) */
        T w = conj(h.tau) * cmadd(h.scale, product[s], a[s][k]);
        if (s == slot && (LANES == 1 || lane <= owner)) w = zero<T>();
        if (LANES == 1 && s == slot) continue;
        a[s][k] -= w;
        w = w * v;
#pragma unroll
        for (int i = k + 1; i < ROWS; i++) a[s][i] = madd(w, x[i], a[s][i]);
      }
      if (lane == owner) {
        tau[slot] = h.tau;
        v_scale_[slot] = h.scale;
        a[slot][k] = make<T>(h.beta);
        diagonal[slot] = h.beta;
      }
    });
  }

  /* From what reduce() left below the diagonal, the vectors. */
  __device__ __forceinline__ void scale_vectors(int steps) {
#pragma unroll
    for (int s = 0; s < slots; s++)
#pragma unroll
      for (int i = 1; i < ROWS; i++)
        if (i > column(s) && column(s) < steps) a[s][i] = a[s][i] * v_scale_[s];
  }

  /* Column s times 2^exponent; only what belongs to R, where r_only. */
  __device__ __forceinline__ void scale_column(int s, int exponent, bool r_only) {
    R scale = exponent_scale<R>(exponent);
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      if (!r_only || i <= column(s)) a[s][i] = scaled(a[s][i], scale);
    if (r_only) diagonal[s] *= scale;
  }

  /* Entries FIRST .. of column K in shared memory, again, where they do not stay in registers beside a. */
  template <int K, int FIRST> __device__ __forceinline__ void read_again(T (&x)[ROWS]) const {
    if constexpr (LANES > 1 && sizeof(a) / slots >= 256) {
      warp_sync();
      column_read<FIRST>(x, shared + K * tile::ld);
    }
  }

  /* x^H y over rows K + 1 .. ROWS, one of `columns` such products at a time. */
  template <int K, int columns> static __device__ __forceinline__ T product_below(const T *x, const T *y) {
    constexpr int chains = columns > 2 ? 1 : 4 / columns;
    T part[chains] = {};
#pragma unroll
    for (int i = K + 1; i < ROWS; i++) part[i % chains] = cmadd(x[i], y[i], part[i % chains]);
#pragma unroll
    for (int c = 1; c < chains; c++) part[0] += part[c];
    return part[0];
  }
};

/* Entry i of a launch of operation OP; past the last one and with sizes that do not fit, a member without
 * elements. */
template <int OP> __device__ __forceinline__ member tiny_member(const batchqr_args &args, int64_t i) {
  if (i >= args.count) return {i, 0, 0, 0, true};
  member x = member_at<OP>(args, i);
  if (!x.ok) x.m = x.n = x.k = 0;
  return x;
}

/* How many reflectors a member has. */
template <int OP> __device__ __forceinline__ int tiny_reflectors(const member &x) {
  return OP == BATCHQR_ORGQR ? x.k : least(x.m, x.n);
}

/* The part of a member that an operand holds. */
enum tiny_part {
  tiny_all,     /* m x n */
  tiny_columns, /* m x k: V, thin Q */
  tiny_r        /* k x n; in A's place m x n */
};

/* Moves an operand's members of a warp between global memory and their tiles, as many lanes to a member as
 * there is work for. */
template <int OP, tiny_part PART, class T, int ROWS, int COLS, int LANES> class tiny_mover {
  using tile = tiny_tile<T, ROWS, COLS, LANES>;
  static constexpr int movers = tile::movers(LANES), step = warp_lanes / movers;
  using walk = tile_walk<T, movers, tile::ld>;

public:
  __device__ __forceinline__ tiny_mover(const batchqr_args &args, const batchqr_matrix &x, T *shared)
      : args_(args), x_(x), shared_(shared),
        alike_(!args.members && !args.m_array && !args.n_array && !args.pointers && !x.ld_array),
        walk_(largest(1, alike_rows()),
              tile_packs(static_cast<const T *>(x.data) + x.stride, x.ld, alike_rows()) &&
                  tile_packs(static_cast<const T *>(x.data), x.ld, alike_rows()),
              lane_id() % movers) {
    if constexpr (OP == BATCHQR_ORGQR) alike_ = alike_ && !args.k_array;
  }

  /* f(walk, member's matrix, its leading dimension, its columns, its tile) for the members from `first` on.
   */
  template <class F> __device__ __forceinline__ void each(int64_t first, F &&f) const {
    int g = lane_id() / movers;
    if (alike_) {
      const int rows = alike_rows(), cols = columns(alike_member());
      if (rows == 0 || cols == 0) return;
      int64_t left = args_.count - first;
      T *a = static_cast<T *>(x_.data) + (first + g) * x_.stride;
      for (; g < tile::members && g < left; g += step, a += step * x_.stride)
        f(walk_, a, int64_t(x_.ld), cols, shared_ + g * tile::size);
    } else {
      for (; g < tile::members; g += step) {
        member x = tiny_member<OP>(args_, first + g);
        if (x.m == 0 || columns(x) == 0) continue;
        T *a = matrix_data<T>(args_, x_, x.id);
        int64_t ld = matrix_ld(x_, x.id);
        int rows = rows_of(x, PART == tiny_r && a == matrix_data<T>(args_, args_.a, x.id));
        if (rows == 0) continue;
        f(walk(rows, tile_packs(a, ld, rows), lane_id() % movers), a, ld, columns(x),
          shared_ + g * tile::size);
      }
    }
  }

private:
  static __device__ __forceinline__ int rows_of(const member &x, bool in_place) {
    return PART == tiny_r && !in_place ? tiny_reflectors<OP>(x) : x.m;
  }
  static __device__ __forceinline__ int columns(const member &x) {
    return PART == tiny_columns ? tiny_reflectors<OP>(x) : x.n;
  }

  /* Any member, where all have the sizes of the launch. */
  __device__ __forceinline__ member alike_member() const {
    member x{0, args_.m, args_.n, args_.k, true};
    if constexpr (OP == BATCHQR_ORGQR) {
      if (args_.thin) x.n = least(x.m, x.n);
      x.k = args_.thin ? x.n : least(x.k, x.n);
    }
    return x;
  }
  __device__ __forceinline__ int alike_rows() const {
    return rows_of(alike_member(), PART == tiny_r && x_.data == args_.a.data);
  }

  const batchqr_args &args_;
  const batchqr_matrix &x_;
  T *shared_;
  bool alike_;
  walk walk_;
};

/* The instances of the families that write Q or R: rows, columns, lanes, types. Fewer than of geqrf_warp, for
 * they take longer to compile. */
enum : int {
  tiny_s = 1 << BATCHQR_S,
  tiny_d = 1 << BATCHQR_D,
  tiny_c = 1 << BATCHQR_C,
  tiny_z = 1 << BATCHQR_Z
};
constexpr batchqr_variant tiny_variants[] = {
    {"rows4.cols4.lanes1", {4, 4, 1, tiny_s | tiny_d | tiny_c | tiny_z}},
    {"rows8.cols4.lanes1", {8, 4, 1, tiny_s | tiny_d}},
    {"rows8.cols8.lanes1", {8, 8, 1, tiny_s | tiny_d | tiny_c}},
    {"rows8.cols8.lanes2", {8, 8, 2, tiny_z}},
    {"rows16.cols16.lanes2", {16, 16, 2, tiny_s}},
    {"rows16.cols16.lanes4", {16, 16, 4, tiny_d | tiny_c}},
    {"rows16.cols16.lanes8", {16, 16, 8, tiny_z}},
    {"rows32.cols8.lanes2", {32, 8, 2, tiny_s}},
    {"rows32.cols8.lanes4", {32, 8, 4, tiny_d | tiny_c}},
    {"rows24.cols24.lanes4", {24, 24, 4, tiny_s}},
    {"rows24.cols24.lanes8", {24, 24, 8, tiny_d}},
    {"rows32.cols16.lanes4", {32, 16, 4, tiny_s}},
    {"rows32.cols16.lanes8", {32, 16, 8, tiny_d}},
    {"rows32.cols32.lanes8", {32, 32, 8, tiny_s}},
    {"rows32.cols32.lanes16", {32, 32, 16, tiny_d | tiny_c}},
    {"rows32.cols32.lanes32", {32, 32, 32, tiny_s | tiny_d | tiny_z}},
    {"rows64.cols16.lanes8", {64, 16, 8, tiny_s}},
    {"rows64.cols16.lanes16", {64, 16, 16, tiny_d}},
};
constexpr int tiny_num_variants = sizeof tiny_variants / sizeof tiny_variants[0];

/* The host side of a family: KERNELS::variants are its instances, KERNELS::kernel<T, ROWS, COLS, LANES>() the
 * kernel of one. */
template <class KERNELS> struct tiny_family {
  static bool supports(const batchqr_problem *problem, const batchqr_variant *variant,
                       const batchqr_device *) {
    return problem->m <= variant->p[0] && problem->n <= variant->p[1] &&
           (variant->p[3] & 1 << problem->type) != 0 && !problem->positive;
  }

  static batchqr_status prepare(const batchqr_problem *problem, const batchqr_variant *variant,
                                const batchqr_device *) {
    return with_instance(problem, variant,
                         [](auto kernel, auto tile) { return prepare_kernel(kernel, tile.smem); });
  }

  static batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant,
                               const batchqr_device *, const batchqr_args *args, batchqr_stream stream) {
    return with_instance(problem, variant, [&](auto kernel, auto tile) {
      return launch_kernel(kernel, dim3(grid_for((args->count - 1) / tile.members + 1)), warp_lanes,
                           tile.smem, stream, *args);
    });
  }

private:
  static constexpr int num_variants = sizeof KERNELS::variants / sizeof KERNELS::variants[0];

  /* f(kernel, tile) of the instance of type T. */
  template <class T, class F> static batchqr_status with_type(type_tag<T>, int variant, F &&f) {
    return for_index<num_variants>(variant, [&](auto index) {
      constexpr const int(&p)[6] = KERNELS::variants[decltype(index)::value].p;
      if constexpr ((p[3] & 1 << type_of<T>) != 0)
        return f(KERNELS::template kernel<T, p[0], p[1], p[2]>(), tiny_tile<T, p[0], p[1], p[2]>{});
      else
        return BATCHQR_UNSUPPORTED;
    });
  }
  template <class F>
  static batchqr_status with_instance(const batchqr_problem *problem, const batchqr_variant *variant, F &&f) {
    return for_type(problem->type, [&](auto tag) {
      return with_type(tag, static_cast<int>(variant - KERNELS::variants), f);
    });
  }
};

} // namespace bqr

#endif
