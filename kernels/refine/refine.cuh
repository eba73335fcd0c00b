/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernels of refine.h share: a task with typed addresses. */
#ifndef BQR_KERNELS_REFINE_REFINE_CUH
#define BQR_KERNELS_REFINE_REFINE_CUH

#include "refine.h"
#include "common/panel/columns.cuh"
#include "common/matrix/member.cuh"
#include "common/panel/exponents.cuh"
#include "common/ptx/barrier.cuh"
#include "common/simt/arrival.cuh"
#include "common/simt/launch.cuh"

namespace bqr {

/* As for_type(): the families are of real types. */
template <class F> auto for_real_type(batchqr_type type, F &&f) {
  return type == BATCHQR_S ? f(type_tag<float>{}) : f(type_tag<double>{});
}

/* Single precision. */
using low = float;

constexpr int refine_block = BQR_REFINE_BLOCK, refine_chunk = 4096; /* rows that a sum of A^H r has */
enum { REFINE_SUMS = 4 };                                           /* that are formed at a time */

template <class T> struct refine_task {
  int m, n, k, blocks;
  const T *a, *b;
  int64_t lda, ldb;
  const double *scales;
  low *copy, *inverse; /* inverse: of each block of refine_block columns, that much times that much */
  int64_t ldcopy;
  bqr_refine_state *state;
  int *exponents;       /* of D */
  double *norms2;       /* of A D's columns, squared */
  T *x, *p, *v, *r, *q; /* n or m x columns; x: n x (k + 1) */
  T *w;                 /* chunks of rows x n x columns */
  low *t, *u;           /* n x columns */
  double *sums;         /* REFINE_SUMS x columns x blocks */
};

inline int64_t refine_chunks(int m) { return (m - 1) / refine_chunk + 1; }
inline int64_t refine_blocks_of(int n) { return (n - 1) / refine_block + 1; }

/* The task, its memory laid out; bytes of that. */
template <class T> size_t refine_lay_out(const bqr_refine &r, refine_task<T> *s) {
  char *const start = static_cast<char *>(r.memory), *end = start;
  auto take = [&](auto *&to, int64_t count) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(end);
    end += (static_cast<size_t>(count) * sizeof *to + 255) / 256 * 256;
  };
  constexpr int64_t columns = BQR_REFINE_COLUMNS + 1;
  *s = {r.m,
        r.n,
        r.k,
        r.blocks,
        static_cast<const T *>(r.a),
        static_cast<const T *>(r.b),
        r.lda,
        r.ldb,
        r.scales,
        static_cast<low *>(r.copy),
        nullptr,
        r.ldcopy,
        r.state};
  take(s->inverse, refine_blocks_of(r.n) * refine_block * refine_block);
  take(s->exponents, r.n);
  take(s->norms2, r.n);
  take(s->x, static_cast<int64_t>(r.n) * (r.k + 1));
  take(s->p, r.n * columns);
  take(s->v, r.n * columns);
  take(s->r, r.m * columns);
  take(s->q, r.m * columns);
  take(s->w, refine_chunks(r.m) * r.n * columns);
  take(s->t, r.n * columns);
  take(s->u, r.n * columns);
  take(s->sums, REFINE_SUMS * columns * r.blocks);
  return static_cast<size_t>(end - start);
}

template <class T> refine_task<T> refine_task_of(const bqr_refine &r) {
  refine_task<T> s;
  refine_lay_out(r, &s);
  return s;
}

/* x 2^e for any e that leaves the result in range: half of it at a time. */
template <class T> __device__ __forceinline__ T by_power(T x, int e) {
  using R = real_t<T>;
  const int half = e / 2;
  return scaled(scaled(x, exponent_scale<R>(half)), exponent_scale<R>(e - half));
}

/* Nothing is left to do. */
__device__ __forceinline__ bool is_off(const bqr_refine_state *state) { return state->off.off != 0; }

/* Before the first rung; all threads of a block. */
__device__ __forceinline__ void begin_state(bqr_refine_state *state, const double *scales, int k) {
  for (int i = thread_id(); i < BQR_REFINE_MOST; i += num_threads()) state->arrivals[i] = 0;
  for (int j = thread_id(); j < k; j += num_threads()) state->steps[j] = 0;
  if (thread_id() > 0) return;
  state->off.off = 0;
  state->failed = !(scales[0] == scales[0]);
}

} // namespace bqr

#endif
