/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's vectors, as far as the project uses them: same sizes, same alignments. */
#ifndef EMULATOR_VECTOR_TYPES_H
#define EMULATOR_VECTOR_TYPES_H

#define EMULATOR_ALIGNED(n) __attribute__((aligned(n)))

typedef struct short2 {
  short x, y;
} EMULATOR_ALIGNED(4) short2;
typedef struct int2 {
  int x, y;
} EMULATOR_ALIGNED(8) int2;
typedef struct int4 {
  int x, y, z, w;
} EMULATOR_ALIGNED(16) int4;
typedef struct uint2 {
  unsigned x, y;
} EMULATOR_ALIGNED(8) uint2;
typedef struct uint3 {
  unsigned x, y, z;
} uint3;
typedef struct uint4 {
  unsigned x, y, z, w;
} EMULATOR_ALIGNED(16) uint4;
typedef struct float2 {
  float x, y;
} EMULATOR_ALIGNED(8) float2;
typedef struct float4 {
  float x, y, z, w;
} EMULATOR_ALIGNED(16) float4;
typedef struct double2 {
  double x, y;
} EMULATOR_ALIGNED(16) double2;

typedef struct dim3 {
#ifdef __cplusplus
  constexpr dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz) {}
#endif
  unsigned x, y, z;
} dim3;

#ifdef __cplusplus
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
#endif

#endif
