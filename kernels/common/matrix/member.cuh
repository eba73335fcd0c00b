/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of a batch as kernels see them: bqr_args read once, so that a kernel works on sizes and
 * typed addresses. */
#ifndef BQR_KERNELS_COMMON_MATRIX_MEMBER_CUH
#define BQR_KERNELS_COMMON_MATRIX_MEMBER_CUH

#include "family.h"
#include "common/simt/scalar.cuh"

namespace bqr {

/* One member: its number in the batch and its sizes. */
struct member {
  int64_t id;
  int m, n, k;
  bool ok; /* false: sizes from the device that do not fit; to be left alone, with BATCHQR_INFO_SIZES */
};

BQR_INLINE int least(int a, int b) { return a < b ? a : b; }
BQR_INLINE int largest(int a, int b) { return a > b ? a : b; }

/* Whether a leading dimension that comes from the device is one for so many rows and columns. */
BQR_INLINE bool ld_fits(const bqr_matrix &x, int64_t id, int rows, int cols) {
  return !x.ld_array || x.ld_array[id] >= (cols > 0 ? rows : 0);
}

/* Entry i of the launch, 0 <= i < args.count. op: the operation. side: ORMQR's. Sizes are those of the
 * operation (n and k thinned where the launch says so). */
BQR_INLINE member member_of(const bqr_args &args, int64_t i, int op, int side) {
  const bool whole = op == BATCHQR_GELS || op == BQR_TRANSPOSE || op == BQR_SOLVE || op == BQR_PRESET,
             solves = whole || op == BATCHQR_TRSM || op == BATCHQR_GEQP3;
  member x;
  x.id = args.members ? args.members[i] : i;
  x.m = args.m_array ? args.m_array[x.id] : args.m;
  x.n = args.n_array ? args.n_array[x.id] : args.n;
  int vectors = op == BATCHQR_ORMQR && side == BATCHQR_LEFT ? x.m : x.n; /* most reflectors that fit */
  int v_rows = op == BATCHQR_ORMQR ? vectors : x.m;
  x.k = args.k_array ? args.k_array[x.id] : solves ? args.k : least(args.k, vectors);
  x.ok = true;
  if (args.untrusted)
    x.ok = x.m >= 0 && x.m <= args.m && x.n >= 0 && x.n <= args.n &&
           ld_fits(args.a, x.id, v_rows, op == BATCHQR_ORMQR ? x.k : x.n) &&
           ld_fits(args.c, x.id, whole || args.tall_c ? largest(x.m, x.n) : x.m, solves ? x.k : x.n) &&
           ld_fits(args.r, x.id, least(x.m, x.n), x.n) && ld_fits(args.u, x.id, x.m, least(x.m, x.n)) &&
           ld_fits(args.v, x.id, x.n, least(x.m, x.n)) && (op != BATCHQR_SYEVD || x.m == x.n);
  if (args.untrusted && solves) x.ok = x.ok && x.k >= 0 && x.k <= args.k;
  if (args.untrusted && op == BATCHQR_TRSM) x.ok = x.ok && x.n <= x.m;
  if (args.thin) x.n = x.k = least(x.m, x.n);
  if (args.untrusted && (op == BATCHQR_ORGQR || op == BATCHQR_ORMQR)) {
    vectors = op == BATCHQR_ORMQR ? vectors : x.n;
    x.ok = x.ok && x.k >= 0 && x.k <= args.k && x.k <= vectors && (op == BATCHQR_ORMQR || x.n <= x.m);
  }
  return x;
}
template <int OP> BQR_INLINE member member_at(const bqr_args &args, int64_t i, int side = BATCHQR_LEFT) {
  return member_of(args, i, OP, side);
}

/* The address of a member's matrix. Not to be called for operands without elements. */
template <class T> BQR_INLINE T *matrix_data(const bqr_args &args, const bqr_matrix &x, int64_t id) {
  T *data = x.pointers ? static_cast<T *const *>(x.data)[id]
                       : static_cast<T *>(x.data) + (x.offsets ? x.offsets[id] : id * x.stride);
#ifdef __CUDA_ARCH__
  __builtin_assume(__isGlobal(data)); /* or it would be asked at every access */
#endif
  return data;
}

/* Its leading dimension, 64 bits wide: products with it are offsets. */
BQR_INLINE int64_t matrix_ld(const bqr_matrix &x, int64_t id) { return x.ld_array ? x.ld_array[id] : x.ld; }

/* The address of a member's vector. Not to be called for those without elements. */
template <class T> BQR_INLINE T *vector_data(const bqr_vector &x, int64_t id) {
  if (x.pointers) return static_cast<T *const *>(x.data)[id];
  return static_cast<T *>(x.data) + (x.offsets ? x.offsets[id] : id * x.stride);
}

/* The address of a member's tau. Not to be called where there are no reflectors. */
template <class T> BQR_INLINE T *tau_data(const bqr_args &args, int64_t id) {
  return vector_data<T>(args.tau, id);
}

/* To be called by one thread. */
BQR_INLINE void set_info(const bqr_args &args, int64_t id, int value) {
  if (args.info) args.info[id] = value;
}

} // namespace bqr

#endif
