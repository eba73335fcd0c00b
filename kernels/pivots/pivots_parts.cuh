/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this folder call of one another. */
#ifndef BQR_KERNELS_PIVOTS_PARTS_CUH
#define BQR_KERNELS_PIVOTS_PARTS_CUH

#include "pivots.h"
#include "common/matrix/member.cuh"
#include "common/panel/exponents.cuh"

namespace bqr {

/* The member that entry `entry` of this part is. */
__device__ __forceinline__ int64_t id_of(const bqr_args &args, const bqr_pivots &p, int64_t entry) {
  return args.members ? args.members[p.first + entry] : p.first + entry;
}

/* What brings entries near 1 where their squares might overflow or underflow; else 0, which saves products.
 */
template <class T> BQR_INLINE int exponent_of_scale(uint32_t magnitude) {
  constexpr int harmless = 60;
  const int exponent = exponent_to<T>(magnitude, 0);
  return sizeof(real_t<T>) == sizeof(float) || (exponent >= -harmless && exponent <= harmless) ? 0 : exponent;
}

/* Number `tile` of the tiles on or below the diagonal, row by row of them. */
__device__ __forceinline__ void place_of_tile(int tile, int &i, int &j) {
  i = static_cast<int>((sqrtf(8.0f * static_cast<float>(tile) + 1.0f) - 1.0f) * 0.5f);
  while (i * (i + 1) / 2 > tile) i--;
  while ((i + 1) * (i + 2) / 2 <= tile) i++;
  j = tile - i * (i + 1) / 2;
}

inline int tiles_of(int n, int size) {
  const int across = (n - 1) / size + 1;
  return across * (across + 1) / 2;
}

batchqr_status prepare_complements(batchqr_type type);
batchqr_status prepare_products(batchqr_type type, int n);
/* Shared memory of a block of form_grams(). */
size_t shared_of_products(batchqr_type type, int n);
batchqr_status prepare_choice(batchqr_type type, const bqr_pivots *p);
/* A^H A of all members. */
batchqr_status form_grams(batchqr_type type, const bqr_pivots *p, batchqr_stream stream);
/* The Schur complement after a panel. */
batchqr_status form_complements(batchqr_type type, const bqr_pivots *p, int panel, batchqr_stream stream);

} // namespace bqr

#endif
