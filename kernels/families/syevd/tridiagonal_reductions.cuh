/* SPDX-License-Identifier: BSD-3-Clause */
/* syevd_tridiagonal's kernels that reduce members to tridiagonal form, a block for each. */
#ifndef BQR_KERNELS_FAMILIES_SYEVD_TRIDIAGONAL_REDUCTIONS_CUH
#define BQR_KERNELS_FAMILIES_SYEVD_TRIDIAGONAL_REDUCTIONS_CUH

#include "common/eigen/block_tiles.cuh"
#include "common/eigen/tridiagonal.cuh"
#include "common/simt/launch.cuh"
#include "block_rows.cuh"
#include "tridiagonal_slots.cuh"
#include "warp_rows.cuh"

namespace bqr {
namespace {

int reduce_threads(int n) { return warp_lanes * tridiagonal_warps<block_scope>(n); }

/* What the reduction says of its member. */
template <class R>
__device__ __forceinline__ void end_reduction(const bqr_args &args, const slot &mine, const member &x,
                                              bool finite, int exponent) {
  R *w = vector_data<R>(args.s, x.id);
  for (int j = thread_id(); j < x.n && x.ok && !finite; j += num_threads()) w[j] = static_cast<R>(nan(""));
  if (thread_id() > 0) return;
  set_info(args, x.id, !x.ok ? BATCHQR_INFO_SIZES : !finite ? BATCHQR_INFO_NONFINITE : 0);
  mine.state() = {exponent, x.ok && x.n > 0 && finite, false};
}

template <class T> BQR_INLINE size_t matrix_bytes(int n) {
  return (sizeof(T) * static_cast<size_t>(n) * static_cast<size_t>(n) + 15) / 16 * 16;
}
template <class T, bool ON_CHIP> size_t reduce_bytes(int n) {
  return block_scope::bytes + tridiagonal<T, block_scope>::bytes(n) + (ON_CHIP ? matrix_bytes<T>(n) : 0);
}

template <class T, bool ON_CHIP>
__global__ void __launch_bounds__(512, 1)
    syevd_reduce_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slot_layout layout,
                        int64_t first, bool lower) {
  using R = real_t<T>;
  const slot mine(args, layout, static_cast<int>(blockIdx.x));
  const member x = member_at<BATCHQR_SYEVD>(args, first + blockIdx.x);
  unsigned char *memory = shared_memory<unsigned char>();
  block_scope scope(memory);
  memory += block_scope::bytes;
  bool finite = true;
  int exponent = 0;
  if (x.ok && x.n > 0) {
    const matrix_view<T> a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.n, x.n};
    const uint32_t u = triangle_magnitude(scope, a, lower);
    finite = magnitude_finite<T>(u);
    if (finite) {
      exponent = u ? exponent_to<T>(u, 0) : 0;
      const matrix_view<T> kept = mine.template a<T>(x.n);
      matrix_view<T> work = kept;
      if (ON_CHIP) {
        work = {reinterpret_cast<T *>(memory), x.n, x.n, x.n};
        memory += matrix_bytes<T>(args.n);
      }
      copy_triangle(scope, a, lower, exponent, work);
      tridiagonal<T, block_scope>(scope, work, memory).run(mine.template d<R>(), mine.template e<R>());
      if (ON_CHIP && args.v.data) {
        scope.sync();
        for_each(kept, [&](T &to, int i, int j) {
          if (i >= j) to = *work.at(i, j);
        });
      }
    }
  }
  end_reduction<R>(args, mine, x, finite, exponent);
}

/* The same in registers, of complex types: see block_rows.cuh. The warps of a member, or 0, where it does not
 * fit. */
template <class T, int C> constexpr int hold_warps() {
  constexpr bool wide = sizeof(T) > 8;
  if (!is_complex<T>) return 0;
  return C == 2 ? (wide ? 8 : 4) : C == 3 ? (wide ? 12 : 8) : C == 4 && !wide ? 12 : 0;
}
template <class T, int C> using hold = block_rows<T, C, hold_warps<T, C>()>;
/* Blocks of a multiprocessor. */
template <class T, int C> constexpr int hold_blocks() {
  constexpr int each = (hold<T, C>::registers + (sizeof(real_t<T>) > 4 ? 56 : 44) + 7) / 8 * 8,
                fit = 65536 / (hold_warps<T, C>() * warp_lanes * each);
  return fit > 0 ? fit : 1;
}

template <class T, int C>
__global__ void __launch_bounds__(hold_warps<T, C>() * warp_lanes, hold_blocks<T, C>())
    syevd_hold_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slot_layout layout,
                      int64_t first, bool lower) {
  using R = real_t<T>;
  __shared__ uint32_t most;
  const slot mine(args, layout, static_cast<int>(blockIdx.x));
  const member x = member_at<BATCHQR_SYEVD>(args, first + blockIdx.x);
  bool finite = true;
  int exponent = 0;
  if (x.ok && x.n > 0) {
    const matrix_view<T> a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.n, x.n};
    hold<T, C> held(*shared_memory<typename hold<T, C>::storage>(), x.n);
    if (thread_id() == 0) most = 0;
    block_sync();
    const uint32_t u = group_max(held.load(a, lower));
    if (lane_id() == 0) shared_max(&most, u);
    block_sync();
    finite = magnitude_finite<T>(most);
    if (finite) {
      exponent = most ? exponent_to<T>(most, 0) : 0;
      matrix_view<T> kept = mine.template a<T>(x.n);
      if (!args.v.data) kept.data = nullptr;
      held.run(lower, exponent, mine.template d<R>(), mine.template e<R>(), kept);
    }
  }
  end_reduction<R>(args, mine, x, finite, exponent);
}

/* The same in tiles, of real types: see block_tiles.cuh. Warps of a member, tiles of each in registers, and
 * members of a multiprocessor; no warps, where members do not fit. */
struct tile_shape {
  int warps, held, blocks;
};
template <class T, int C> constexpr tile_shape tile_shape_of() {
  constexpr bool wide = sizeof(T) > 4;
  if (is_complex<T>) return {0, 1, 1};
  switch (C) {
  case 2:
    return {2, 1, 8};
  case 3:
    return wide ? tile_shape{4, 1, 4} : tile_shape{3, 1, 8};
  case 4:
    return wide ? tile_shape{8, 1, 2} : tile_shape{4, 2, 4};
  case 8:
    return wide ? tile_shape{16, 1, 1} : tile_shape{8, 2, 2};
  default:
    return {0, 1, 1};
  }
}
template <class T, int C>
using tiles = block_tiles<T, C, tile_shape_of<T, C>().warps, tile_shape_of<T, C>().held>;

template <class T, int C>
__global__ void __launch_bounds__(tile_shape_of<T, C>().warps *warp_lanes, tile_shape_of<T, C>().blocks)
    syevd_tile_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slot_layout layout,
                      int64_t first, bool lower) {
  using R = real_t<T>;
  const slot mine(args, layout, static_cast<int>(blockIdx.x));
  const member x = member_at<BATCHQR_SYEVD>(args, first + blockIdx.x);
  bool finite = true;
  int exponent = 0;
  if (x.ok && x.n > 0) {
    tiles<T, C> held(*shared_memory<typename tiles<T, C>::storage>(), x.n);
    const uint32_t u =
        held.load({matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.n, x.n}, lower);
    finite = magnitude_finite<T>(u);
    if (finite) {
      exponent = u ? exponent_to<T>(u, 0) : 0;
      matrix_view<T> kept = mine.template a<T>(x.n);
      if (!args.v.data) kept.data = nullptr;
      held.run(exponent, mine.template d<R>(), mine.template e<R>(), kept, kept.data,
               static_cast<int>(kept.ld) + 1);
    }
  }
  end_reduction<R>(args, mine, x, finite, exponent);
}

/* The same by a warp for each member, of real types: see warp_rows.cuh. */
template <class T, int N>
__global__ void __launch_bounds__(warp_lanes, 8)
    syevd_rows_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ slot_layout layout,
                      int64_t first, bool lower) {
  using R = real_t<T>;
  const slot mine(args, layout, static_cast<int>(blockIdx.x));
  const member x = member_at<BATCHQR_SYEVD>(args, first + blockIdx.x);
  bool finite = true;
  int exponent = 0;
  if (x.ok && x.n > 0) {
    warp_rows<T, N> held(*shared_memory<typename warp_rows<T, N>::storage>(), x.n);
    const uint32_t u =
        held.load({matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.n, x.n}, lower);
    finite = magnitude_finite<T>(u);
    if (finite) {
      exponent = u ? exponent_to<T>(u, 0) : 0;
      matrix_view<T> kept = mine.template a<T>(x.n);
      if (!args.v.data) kept.data = nullptr;
      held.run(lower, exponent, mine.template d<R>(), mine.template e<R>(), kept);
    }
  }
  end_reduction<R>(args, mine, x, finite, exponent);
}

/* f(kernel that reduces, its threads, its bytes) */
template <class T, int ROWS, class F>
batchqr_status with_reduction(const bqr_problem *p, const bqr_variant *v, F &&f) {
  if (v->warps == 1) {
    if constexpr (!is_complex<T> && ROWS == 2) {
      const auto with = [&](auto order) {
        constexpr int N = decltype(order)::value;
        return f(syevd_rows_kernel<T, N>, warp_lanes, sizeof(typename warp_rows<T, N>::storage));
      };
      if (p->n <= 48) return with(std::integral_constant<int, 48>{});
      if constexpr (sizeof(T) == 4) return with(std::integral_constant<int, 64>{});
    }
    return BATCHQR_UNSUPPORTED;
  }
  if (v->warps) {
    if constexpr (hold_warps<T, ROWS>() > 0)
      if (v->warps == hold_warps<T, ROWS>())
        return f(syevd_hold_kernel<T, ROWS>, v->warps * warp_lanes, sizeof(typename hold<T, ROWS>::storage));
    if constexpr (tile_shape_of<T, ROWS>().warps > 0)
      if (v->warps == tile_shape_of<T, ROWS>().warps)
        return f(syevd_tile_kernel<T, ROWS>, v->warps * warp_lanes, sizeof(typename tiles<T, ROWS>::storage));
    return BATCHQR_UNSUPPORTED;
  }
  if (v->global) return f(syevd_reduce_kernel<T, false>, reduce_threads(p->n), reduce_bytes<T, false>(p->n));
  return f(syevd_reduce_kernel<T, true>, reduce_threads(p->n), reduce_bytes<T, true>(p->n));
}

} // namespace
} // namespace bqr

#endif
