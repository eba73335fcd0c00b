/* SPDX-License-Identifier: BSD-3-Clause */
/* The first step of GELS: A and B are brought into range, and a wide A gets a transposed copy. */
#include "host/member.h"
#include "host/range.h"

#include <math.h>
#include <string.h>

/* As xGELS does, but by powers of two: matrices whose largest entry is at an end of the range are moved away
 * from it, and no further, since A's columns may lie far apart. The exponents are those of range_scale() in
 * kernels/common/simt/scalar.cuh. */
static int scale_exponent(batchqr_type type, int largest) {
  bool single = type == BATCHQR_S || type == BATCHQR_C;
  if (largest > (single ? 103 : 999)) return -24;
  return largest > (single ? -62 : -894) ? 0 : single ? 64 : 128;
}

static void set_sizes(const bqr_args *args, int64_t id, int p, int q, int k, bool least_squares) {
  int *to = args->tall_sizes;
  if (to == NULL) return;
  to[id] = p;
  to[args->count + id] = q;
  to[2 * args->count + id] = least_squares ? k : 0;
  to[3 * args->count + id] = least_squares ? 0 : k;
}

/* r := 2^e a, or its adjoint. */
static void copy_tall(batchqr_type type, const host_member *x, bool wide, int e) {
  int parts = host_is_complex(type) ? 2 : 1, p = host_largest(x->m, x->n), q = host_least(x->m, x->n);
  bool single = type == BATCHQR_S || type == BATCHQR_C;
  for (int j = 0; j < q; j++)
    for (int i = 0; i < p; i++) {
      void *to = host_at(type, x->r, x->ldr, i, j);
      memcpy(to, host_at(type, x->a, x->lda, wide ? j : i, wide ? i : j), host_size(type));
      if (!wide || parts == 1) continue;
      if (single)
        ((float *)to)[1] = -((float *)to)[1];
      else
        ((double *)to)[1] = -((double *)to)[1];
    }
  if (e != 0) bqr_host_scale(type, p, q, x->r, x->ldr, e);
}

static void transpose_member(const bqr_problem *problem, const bqr_args *args, const host_member *x,
                             void *scratch) {
  batchqr_type type = problem->type;
  bool wide = x->m < x->n, transposed = problem->trans != BATCHQR_NO_TRANS, empty = x->m == 0 || x->n == 0;
  int b_rows = transposed ? x->n : x->m;
  double *scales = args->scales + 2 * x->id;
  (void)scratch;
  set_sizes(args, x->id, host_largest(x->m, x->n), host_least(x->m, x->n), x->k, wide == transposed);
  int a = empty ? 0 : bqr_host_exponent(type, x->m, x->n, x->a, x->lda);
  int b = b_rows == 0 || x->k == 0 ? 0 : bqr_host_exponent(type, b_rows, x->k, x->c, x->ldc);
  if (a == HOST_NONFINITE || b == HOST_NONFINITE) {
    scales[0] = scales[1] = NAN;
    a = b = 0;
  } else {
    a = scale_exponent(type, a);
    b = scale_exponent(type, b);
    scales[0] = ldexp(1.0, a);
    scales[1] = ldexp(1.0, b);
  }
  if (x->r != NULL)
    copy_tall(type, x, wide, a);
  else if (a != 0)
    bqr_host_scale(type, x->m, x->n, x->a, x->lda, a);
  if (b != 0) bqr_host_scale(type, b_rows, x->k, x->c, x->ldc, b);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant, (void)stream;
  for (int64_t i = 0; i < args->count; i++) set_sizes(args, i, -1, 0, 0, false); /* members that do not fit */
  return bqr_host_for_members(problem, device, args, 0, transpose_member);
}

HOST_FAMILY(transpose_host, BQR_TRANSPOSE, .launch = launch);
