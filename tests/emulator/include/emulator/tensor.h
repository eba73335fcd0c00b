/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of products as Hopper's matrix units are thought to form those of TF32 and FP16 numbers: products are
 * exact; they and c are aligned to the largest exponent among them and cut off two bits behind FP32's last
 * one; the exact sum of what is left is cut off to FP32. Models of this kind: Khattak and Mikaitis, Accurate
 * Models of NVIDIA Tensor Cores, 2025; Fasi, Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA
 * tensor cores, 2021. The number of bits was not compared with a GPU. */
#ifndef EMULATOR_TENSOR_H
#define EMULATOR_TENSOR_H

#include "numbers.h"

namespace emulator {

/* What the units read of an operand of TF32. */
inline float tf32(uint32_t x) { return bits<float>(x & ~0x1fffu); }

/* Of a number that is not 0 and an FP32 number or the product of two. */
inline int exponent(double x) { return static_cast<int>(bits<uint64_t>(x) >> 52 & 2047) - 1023; }
inline double power(int e) { return bits<double>(static_cast<uint64_t>(e + 1023) << 52); }

/* Towards zero. */
inline float cut_to_fp32(double x) {
  const int dropped =
      exponent(x) < -126 ? 29 + (-126 - exponent(x)) : 29; /* subnormal numbers have fewer bits */
  if (dropped >= 53) return static_cast<float>(0 * x);
  return static_cast<float>(bits<double>(bits<uint64_t>(x) & ~((uint64_t(1) << dropped) - 1)));
}

/* c + the sum of K products. */
template <int K> float cut_sum(float c, const float *a, const float *b) {
  constexpr int kept = 23 + 2; /* bits behind the largest exponent's */
  double terms[K + 1], plain = c;
  int largest = -1022;
  for (int k = 0; k <= K; k++) {
    terms[k] = k < K ? static_cast<double>(a[k]) * b[k] : static_cast<double>(c);
    if (k < K) plain += terms[k];
    const int e = exponent(terms[k]);
    if (e > largest) largest = e;
  }
  if (largest == 1024) return static_cast<float>(plain); /* NaN or infinite */
  if (largest < -300) return 0 * static_cast<float>(plain);
  const double up = power(kept - largest);
  int64_t sum = 0;
  for (int k = 0; k <= K; k++) sum += static_cast<int64_t>(terms[k] * up);
  return cut_to_fp32(static_cast<double>(sum) * power(largest - kept));
}

} // namespace emulator

#endif
