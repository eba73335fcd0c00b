/* SPDX-License-Identifier: BSD-3-Clause */
/* The random numbers of GESVDR. Entry (i, j) of Omega is made of the seed, i and j alone, in integers: it is
 * the same on all backends. C and CUDA C++ both read this. */
#ifndef BQR_KERNELS_FAMILIES_SKETCH_SKETCH_H
#define BQR_KERNELS_FAMILIES_SKETCH_SKETCH_H

#include <stdint.h>

#ifdef __CUDACC__
#define BQR_SKETCH_INLINE __host__ __device__ __forceinline__
#else
#define BQR_SKETCH_INLINE static inline
#endif

/* Random bits for four rows of a column. */
typedef struct bqr_sketch_bits {
  uint32_t word[4];
} bqr_sketch_bits;

/* Philox4x32-10: J. K. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011. */
BQR_SKETCH_INLINE bqr_sketch_bits bqr_philox(uint64_t seed, uint32_t c0, uint32_t c1, uint32_t c2) {
  enum { ROUNDS = 10 };
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32), c3 = 0;
  for (int i = 0; i < ROUNDS; i++) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c0 = n0;
    c1 = (uint32_t)p1;
    c2 = n2;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  bqr_sketch_bits bits;
  bits.word[0] = c0;
  bits.word[1] = c1;
  bits.word[2] = c2;
  bits.word[3] = c3;
  return bits;
}

/* The sum of a word's four bytes less its mean: nearly normal, of variance 4/3 with the factor 2^-7, and an
 * integer below 2^10 in magnitude, which FP16 holds. */
BQR_SKETCH_INLINE float bqr_sketch_number(uint32_t word) {
  const int sum = (int)(word & 255) + (int)(word >> 8 & 255) + (int)(word >> 16 & 255) + (int)(word >> 24);
  return (float)(sum - 510) * 0x1p-7f;
}

/* Entry (row, column): with part 0 its real part, with 1 the imaginary one. */
BQR_SKETCH_INLINE float bqr_sketch_entry(uint64_t seed, int row, int column, int part) {
  const bqr_sketch_bits bits = bqr_philox(seed, (uint32_t)row / 4, (uint32_t)column, (uint32_t)part);
  const uint32_t even = row & 2 ? bits.word[2] : bits.word[0], odd = row & 2 ? bits.word[3] : bits.word[1];
  return bqr_sketch_number(row & 1 ? odd : even);
}

#undef BQR_SKETCH_INLINE
#endif
