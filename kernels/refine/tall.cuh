/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernels of tall.h share. */
#ifndef BQR_KERNELS_REFINE_TALL_CUH
#define BQR_KERNELS_REFINE_TALL_CUH

#include "refine.cuh"
#include "tall.h"

namespace bqr {

constexpr int gram_side = 128; /* columns of a panel */
constexpr int gram_job = 32;   /* of a warp's part of a product of panels, its rows too */
constexpr int gram_jobs = gram_side * gram_side / (gram_job * gram_job); /* of two different panels */
constexpr int job_elements = gram_job * gram_job;
constexpr int right_side = 8; /* right-hand sides that a tile has */

template <class T> struct tall_task {
  int m, n, k, blocks;
  const T *a, *b;
  int64_t lda, ldb;
  bqr_refine_state *state;
  bool alone;         /* see bqr_refine */
  int panels, chunks; /* of columns; of rows, 32 of them at a time in turn */
  double *parts;      /* of each chunk and pair of panels: gram_jobs jobs and A^H B of gram_side rows */
  double *gram, *r, *inverse; /* n x n, ld refine_block: A^H A, R, R^-1 */
  double *norms2;             /* A^H A's diagonal */
  double *right;              /* A^H B, n x BQR_TALL_RIGHT; later A^H r */
  int *exponents;             /* of D: it is not multiplied by, but lengths are those of A D and D^-1 x */
  double *x, *s;              /* n x BQR_TALL_RIGHT, n */
  double *sums, *w;           /* of blocks: REFINE_SUMS, and n */
};

BQR_INLINE int pairs_of(int panels) { return panels * (panels + 1) / 2; }
constexpr int64_t part_elements = static_cast<int64_t>(gram_jobs) * job_elements + gram_side * right_side;

inline int common_divisor(int a, int b) { return b == 0 ? a : common_divisor(b, a % b); }

/* As few as make whole waves of blocks both of the panels and of the pairs of different ones. */
inline int chunks_of(int m, int panels, int blocks) {
  const int most = (m - 1) / 512 + 1, own = blocks / common_divisor(blocks, panels),
            other = blocks / common_divisor(blocks, pairs_of(panels) - panels);
  const int chunks = own / common_divisor(own, other) * other;
  return most < chunks ? most : chunks;
}

template <class T> size_t tall_lay_out(const bqr_refine &r, tall_task<T> *s) {
  char *const start = static_cast<char *>(r.memory), *end = start;
  auto take = [&](auto *&to, int64_t count) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(end);
    end += (static_cast<size_t>(count) * sizeof *to + 255) / 256 * 256;
  };
  *s = {r.m,   r.n,   r.k,     r.blocks, static_cast<const T *>(r.a), static_cast<const T *>(r.b),
        r.lda, r.ldb, r.state, r.alone};
  s->panels = (r.n - 1) / gram_side + 1;
  s->chunks = chunks_of(r.m, s->panels, r.blocks);
  take(s->parts, s->chunks * pairs_of(s->panels) * part_elements);
  take(s->gram, static_cast<int64_t>(r.n) * refine_block);
  take(s->r, static_cast<int64_t>(r.n) * refine_block);
  take(s->inverse, static_cast<int64_t>(refine_block) * refine_block);
  take(s->right, r.n * BQR_TALL_RIGHT);
  take(s->norms2, r.n);
  take(s->exponents, r.n);
  take(s->x, r.n * BQR_TALL_RIGHT);
  take(s->s, r.n);
  take(s->sums, REFINE_SUMS * r.blocks);
  take(s->w, static_cast<int64_t>(r.blocks) * r.n);
  return static_cast<size_t>(end - start);
}

/* See refine_invert.cu: of R with ld refine_block, n up to that. What is below R is destroyed; inverse has
 * the inverses of its triangles of 64 columns. */
batchqr_status bqr_invert_pairs(double *r, int n, double *inverse, const bqr_refine_state *state,
                                batchqr_stream stream);

template <class T> tall_task<T> tall_task_of(const bqr_refine &r) {
  tall_task<T> s;
  tall_lay_out(r, &s);
  return s;
}

} // namespace bqr

#endif
