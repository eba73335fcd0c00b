/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMULATOR_CUDA_FP16_H
#define EMULATOR_CUDA_FP16_H

typedef _Float16 __half;

inline __half __float2half_rn(float x) { return static_cast<__half>(x); }
inline float __half2float(__half x) { return static_cast<float>(x); }

#endif
