/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_warp: tiny members. A member lies in the registers of LANES lanes of a warp; lane l has columns l,
 * l + LANES, ... whole, so that no sum crosses lanes. The pivot's lane publishes its column in shared memory;
 * each lane multiplies it with its own columns, and the product of the pivot with itself is the squared norm.
 * With one lane for a member nothing is exchanged at all. Shared memory also turns whole memory sectors into
 * columns and back.
 *
 * Method: xGEQR2; columns in range as in common/columns.cuh. */
#include "columns.cuh"
#include "launch.cuh"
#include "member.cuh"
#include "tile.cuh"

namespace {
using namespace bqr;

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

/* Column `lane` + LANES * s of the member is a[s]. */
template <class T, int ROWS, int COLS, int LANES> struct tiny_qr {
  using R = real_t<T>;
  using tile = tiny_tile<T, ROWS, COLS, LANES>;
  static constexpr int slots = tile::slots;

  T a[slots][ROWS], tau[slots];
  R diagonal[slots]; /* of R */
  T *shared;
  int lane;

  __device__ __forceinline__ void read(int m, int n) {
#pragma unroll
    for (int s = 0; s < slots; s++) column_read<0>(a[s], shared + (lane + LANES * s) * tile::ld);
    if (group_any(m < ROWS || n < COLS)) {
#pragma unroll
      for (int s = 0; s < slots; s++)
#pragma unroll
        for (int i = 0; i < ROWS; i++)
          if (i >= m || lane + LANES * s >= n) a[s][i] = zero<T>();
    }
  }

  __device__ __forceinline__ void write() const {
#pragma unroll
    for (int s = 0; s < slots; s++) column_write<0>(shared + (lane + LANES * s) * tile::ld, a[s]);
  }

  /* Returns the largest magnitude of a slot's column. */
  __device__ __forceinline__ uint32_t magnitude_of(int s) const {
    uint32_t u = 0;
#pragma unroll
    for (int i = 0; i < ROWS; i++) u = greater(u, magnitude(a[s][i]));
    return u;
  }

  /* Columns 0 .. steps. */
  __device__ __forceinline__ void factor(int steps) {
    constexpr int most = ROWS < COLS ? ROWS : COLS;
    T v_scale[slots];
#pragma unroll
    for (int s = 0; s < slots; s++) {
      v_scale[s] = tau[s] = zero<T>();
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
      for (int s = slot; s < slots; s++) {
        constexpr int chains = slots - slot > 2 ? 1 : 4 / (slots - slot);
        T part[chains] = {};
#pragma unroll
        for (int i = k + 1; i < ROWS; i++) part[i % chains] = cmadd(x[i], a[s][i], part[i % chains]);
        product[s] = part[0];
#pragma unroll
        for (int c = 1; c < chains; c++) product[s] += part[c];
      }
      R norm2 = real_part(product[slot]);
      if constexpr (LANES > 1) norm2 = broadcast<LANES>(norm2, owner);
      column_reflector<T> h = larfg_in_range(x[k], norm2);
      T v = -h.scale;
      if constexpr (LANES > 1 && sizeof(a) / slots >= 256) {
        warp_sync(); /* x again: it does not stay in registers beside a */
        column_read<k>(x, shared + k * tile::ld);
      }
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
        v_scale[slot] = h.scale;
        a[slot][k] = make<T>(h.beta);
        diagonal[slot] = h.beta;
      }
    });
#pragma unroll
    for (int s = 0; s < slots; s++)
#pragma unroll
      for (int i = 1; i < ROWS; i++)
        if (i > lane + LANES * s && lane + LANES * s < steps) a[s][i] = a[s][i] * v_scale[s];
  }

  /* Column s times 2^exponent; only what belongs to R, where r_only. */
  __device__ __forceinline__ void scale_column(int s, int exponent, bool r_only) {
    R scale = exponent_scale<R>(exponent);
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      if (!r_only || i <= lane + LANES * s) a[s][i] = scaled(a[s][i], scale);
    if (r_only) diagonal[s] *= scale;
  }
};

__device__ member tiny_member(const batchqr_args &args, int64_t i) {
  if (i >= args.count) return {i, 0, 0, 0, true};
  member x = member_at<BATCHQR_GEQRF>(args, i);
  if (!x.ok) x.m = x.n = 0;
  return x;
}

/* Moves the members of a warp between global memory and their tiles, `movers` lanes to a member. */
template <class T, int ROWS, int COLS, int LANES> class tiny_mover {
  using tile = tiny_tile<T, ROWS, COLS, LANES>;
  static constexpr int movers = tile::movers(LANES), step = warp_lanes / movers;
  using walk = tile_walk<T, movers, tile::ld>;

public:
  __device__ __forceinline__ tiny_mover(const batchqr_args &args, T *shared)
      : args_(args), shared_(shared),
        alike_(!args.members && !args.m_array && !args.n_array && !args.pointers && !args.a.ld_array),
        walk_(largest(1, args.m),
              tile_packs(static_cast<const T *>(args.a.data) + args.a.stride, args.a.ld, args.m) &&
                  tile_packs(static_cast<const T *>(args.a.data), args.a.ld, args.m),
              lane_id() % movers) {}

  /* f(walk, member's matrix, its leading dimension, its columns, its tile) for the members from `first` on.
   */
  template <class F> __device__ __forceinline__ void each(int64_t first, F &&f) const {
    int g = lane_id() / movers;
    if (alike_) {
      if (args_.m == 0 || args_.n == 0) return;
      int64_t left = args_.count - first;
      T *a = static_cast<T *>(args_.a.data) + (first + g) * args_.a.stride;
      for (; g < tile::members && g < left; g += step, a += step * args_.a.stride)
        f(walk_, a, int64_t(args_.a.ld), args_.n, shared_ + g * tile::size);
    } else {
      for (; g < tile::members; g += step) {
        member x = tiny_member(args_, first + g);
        if (x.m == 0 || x.n == 0) continue;
        T *a = matrix_data<T>(args_, args_.a, x.id);
        int64_t ld = matrix_ld(args_.a, x.id);
        f(walk(x.m, tile_packs(a, ld, x.m), lane_id() % movers), a, ld, x.n, shared_ + g * tile::size);
      }
    }
  }

private:
  const batchqr_args &args_;
  T *shared_;
  bool alike_;
  walk walk_;
};

template <class T, int ROWS, int COLS, int LANES>
__global__ void __launch_bounds__(warp_lanes) geqrf_warp_kernel(const __grid_constant__ batchqr_args args) {
  using tile = tiny_tile<T, ROWS, COLS, LANES>;
  constexpr int slots = tile::slots;
  extern __shared__ __align__(16) unsigned char dynamic[];
  T *shared = reinterpret_cast<T *>(dynamic);
  const int lane = lane_id() % LANES, group = lane_id() / LANES;
  const tiny_mover<T, ROWS, COLS, LANES> mover(args, shared);

  for (int64_t first = int64_t(blockIdx.x) * tile::members; first < args.count;
       first += int64_t(gridDim.x) * tile::members) {
    mover.each(first,
               [](const auto &walk, const T *a, int64_t ld, int n, T *to) { walk.load_async(to, a, ld, n); });
    const member x = tiny_member(args, first + group);
    const int k = least(x.m, x.n);
    copy_async_wait();
    warp_sync();

    tiny_qr<T, ROWS, COLS, LANES> qr;
    qr.shared = shared + group * tile::size;
    qr.lane = lane;
    qr.read(x.m, x.n);
    uint32_t top = 0;
    int exponent[slots];
    bool out_of_range = false;
#pragma unroll
    for (int s = 0; s < slots; s++) {
      uint32_t u = qr.magnitude_of(s);
      top = greater(top, u);
      exponent[s] = column_exponent<T>(u);
      out_of_range |= exponent[s] != 0 && lane + LANES * s < x.n;
    }
    out_of_range = group_any(out_of_range);
    if (out_of_range) {
#pragma unroll
      for (int s = 0; s < slots; s++) qr.scale_column(s, exponent[s], false);
    }
    qr.factor(static_cast<int>(group_max(static_cast<uint32_t>(k))));
    if (out_of_range) {
#pragma unroll
      for (int s = 0; s < slots; s++) qr.scale_column(s, -exponent[s], true);
    }

    warp_sync();
    qr.write();
    warp_sync();
#pragma unroll
    for (int s = 0; s < slots; s++)
      if (lane + LANES * s < k) tau_data<T>(args, x.id)[lane + LANES * s] = qr.tau[s];
    mover.each(first,
               [](const auto &walk, T *a, int64_t ld, int n, const T *from) { walk.store(a, ld, from, n); });
    if (args.info) {
      bool finite = magnitude_finite<T>(group_max<LANES>(top));
      int zero_column = COLS;
#pragma unroll
      for (int s = slots - 1; s >= 0; s--)
        if (qr.diagonal[s] == 0) zero_column = lane + LANES * s;
      zero_column = COLS - static_cast<int>(group_max<LANES>(static_cast<uint32_t>(COLS - zero_column)));
      if (lane == 0 && first + group < args.count)
        set_info(args, x.id,
                 !x.ok             ? BATCHQR_INFO_SIZES
                 : !finite         ? BATCHQR_INFO_NONFINITE
                 : zero_column < k ? zero_column + 1
                                   : 0);
    }
    warp_sync();
  }
}

/* rows, columns, lanes, types: about 128 registers of matrix to a lane. */
enum : int { S = 1 << BATCHQR_S, D = 1 << BATCHQR_D, C = 1 << BATCHQR_C, Z = 1 << BATCHQR_Z };
constexpr batchqr_variant variants[] = {
    {"rows4.cols4.lanes1", {4, 4, 1, S | D | C | Z}}, {"rows8.cols4.lanes1", {8, 4, 1, S | D | C | Z}},
    {"rows8.cols8.lanes1", {8, 8, 1, S | D | C}},     {"rows8.cols8.lanes2", {8, 8, 2, Z}},
    {"rows16.cols16.lanes2", {16, 16, 2, S}},         {"rows16.cols16.lanes4", {16, 16, 4, D | C}},
    {"rows16.cols16.lanes8", {16, 16, 8, Z}},         {"rows32.cols8.lanes2", {32, 8, 2, S}},
    {"rows32.cols8.lanes4", {32, 8, 4, D | C}},       {"rows32.cols8.lanes8", {32, 8, 8, Z}},
    {"rows24.cols24.lanes4", {24, 24, 4, S}},         {"rows24.cols24.lanes8", {24, 24, 8, D | C}},
    {"rows32.cols16.lanes4", {32, 16, 4, S}},         {"rows32.cols16.lanes8", {32, 16, 8, D | C}},
    {"rows32.cols16.lanes16", {32, 16, 16, Z}},       {"rows64.cols8.lanes4", {64, 8, 4, S}},
    {"rows64.cols8.lanes8", {64, 8, 8, D | C}},       {"rows32.cols32.lanes8", {32, 32, 8, S}},
    {"rows32.cols32.lanes16", {32, 32, 16, D | C}},   {"rows32.cols32.lanes32", {32, 32, 32, S | D | C | Z}},
    {"rows64.cols16.lanes8", {64, 16, 8, S}},         {"rows64.cols16.lanes16", {64, 16, 16, D | C}},
    {"rows128.cols8.lanes8", {128, 8, 8, S}},         {"rows128.cols16.lanes16", {128, 16, 16, S}},
};
constexpr int num_variants = sizeof variants / sizeof variants[0];

/* f(kernel, tile) of the instance of type T. */
template <class T, class F> batchqr_status with_type(int variant, F &&f) {
  return for_index<num_variants>(variant, [&](auto index) {
    constexpr const int(&p)[6] = variants[decltype(index)::value].p;
    if constexpr ((p[3] & 1 << type_of<T>) != 0)
      return f(geqrf_warp_kernel<T, p[0], p[1], p[2]>, tiny_tile<T, p[0], p[1], p[2]>{});
    else
      return BATCHQR_UNSUPPORTED;
  });
}
template <class F>
batchqr_status with_instance(const batchqr_problem *problem, const batchqr_variant *variant, F &&f) {
  return for_type(problem->type, [&](auto tag) {
    return with_type<typename decltype(tag)::type>(static_cast<int>(variant - variants), f);
  });
}

bool supports(const batchqr_problem *problem, const batchqr_variant *variant, const batchqr_device *) {
  return problem->m <= variant->p[0] && problem->n <= variant->p[1] &&
         (variant->p[3] & 1 << problem->type) != 0 && !problem->positive;
}

batchqr_status prepare(const batchqr_problem *problem, const batchqr_variant *variant,
                       const batchqr_device *) {
  return with_instance(problem, variant,
                       [](auto kernel, auto tile) { return prepare_kernel(kernel, tile.smem); });
}

batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant, const batchqr_device *,
                      const batchqr_args *args, batchqr_stream stream) {
  return with_instance(problem, variant, [&](auto kernel, auto tile) {
    return launch_kernel(kernel, dim3(grid_for((args->count - 1) / tile.members + 1)), warp_lanes, tile.smem,
                         stream, *args);
  });
}
} // namespace

extern "C" const batchqr_family batchqr_family_geqrf_warp = {
    "geqrf_warp", BATCHQR_GEQRF, BATCHQR_ALL_TYPES, BATCHQR_BACKEND_CUDA,
    80,           variants,      num_variants,      1,
    supports,     nullptr,       prepare,           launch,
};
