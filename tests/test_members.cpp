/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernels take for a member's sizes, and which of those that come from the device they refuse: kernels
 * do not see the rows of src/operations.c, so that member_of(), which compiles for the host too, is compared
 * with them. */
#include <cmath>
#include <cstdio>
#include <random>
#define __host__
#define __device__
#define __forceinline__ inline
using std::copysign, std::fabs; /* as CUDA has them, for float too */
#include "common/matrix/member.cuh"
extern "C" {
#include "batch.h"
#include "registry.h"
}

namespace {

/* One member with arrays of its sizes and leading dimensions, all of them near what is right. */
struct device_sizes {
  int m, n, k, ld[BQR_NUM_OPERANDS];
  bool has_k;
  batchqr_side side;
  bqr_args args = {};

  explicit device_sizes(std::mt19937 &random) {
    auto any = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    args.m = any(0, 6), args.n = any(0, 6), args.k = any(0, 6);
    m = any(-1, 7), n = any(-1, 7), k = any(-1, 7);
    if (any(0, 2) == 0) n = m;
    has_k = any(0, 3) > 0;
    side = any(0, 1) ? BATCHQR_LEFT : BATCHQR_RIGHT;
    for (int &x : ld) x = any(0, 3) > 0 ? 7 : any(-1, 6);
    args.untrusted = true;
    args.m_array = &m, args.n_array = &n, args.k_array = has_k ? &k : nullptr;
    args.a.ld_array = &ld[BQR_A], args.c.ld_array = &ld[BQR_C], args.r.ld_array = &ld[BQR_R];
    args.u.ld_array = &ld[BQR_U], args.v.ld_array = &ld[BQR_V];
  }

  /* Leaves the arrays that a plan of the operation has. */
  void keep(const bqr_operation &row) {
    bqr_matrix *matrices[BQR_NUM_OPERANDS] = {};
    matrices[BQR_A] = &args.a, matrices[BQR_C] = &args.c, matrices[BQR_R] = &args.r;
    matrices[BQR_U] = &args.u, matrices[BQR_V] = &args.v;
    for (int place = BQR_A; place < BQR_NUM_OPERANDS; place++)
      if (matrices[place] && !bqr_use_at(&row, place)) matrices[place]->ld_array = nullptr;
    if (!row.k) args.k_array = nullptr;
  }
};

struct verdict {
  bool fits;
  int k;
};

/* What the row says. */
verdict by_row(const bqr_operation &row, const device_sizes &x) {
  const bool left = row.reads_side && x.side == BATCHQR_LEFT;
  const int reach = left ? x.m : x.n; /* most reflectors that fit */
  const int all = row.k == BQR_RIGHT_HAND_SIDES ? x.args.k : bqr_min(x.args.k, reach);
  const int k = x.args.k_array ? x.k : all;
  bool fits = x.m >= 0 && x.m <= x.args.m && x.n >= 0 && x.n <= x.args.n;
  if (row.k) fits = fits && k >= 0 && k <= x.args.k;
  if (row.k == BQR_REFLECTORS) fits = fits && k <= reach;
  if (row.tall) fits = fits && x.n <= x.m;
  if (row.square) fits = fits && x.m == x.n;
  batchqr_batch batch = {};
  batch.side = x.side;
  for (const bqr_use *use = row.uses; use->place; use++) {
    if (use->kind != BQR_MATRIX) continue;
    const bqr_shape shape = bqr_shape_of(use, &batch, {x.m, x.n, k});
    fits = fits && x.ld[use->place] >= (shape.cols > 0 ? shape.rows : 0);
  }
  return {fits, k};
}

/* Whether some sizes are not taken as the row says. */
bool differs(int op, const bqr_operation &row) {
  std::mt19937 random(static_cast<unsigned>(op));
  int fitting = 0;
  for (int i = 0; i < 20000; i++) {
    device_sizes x(random);
    x.keep(row);
    const bqr::member found = bqr::member_of(x.args, 0, op, x.side);
    const verdict expected = by_row(row, x);
    fitting += expected.fits;
    const bool same = found.m == x.m && found.n == x.n && (!row.k || found.k == expected.k);
    if (found.ok == expected.fits && (!found.ok || same)) continue;
    std::printf("%s, op %d: m %d of %d, n %d of %d, k %d of %d: fits %d, k %d; by its row %d, %d\n", row.name,
                op, x.m, x.args.m, x.n, x.args.n, x.k, x.args.k, found.ok, found.k, expected.fits,
                expected.k);
    return true;
  }
  if (fitting > 100) return false;
  std::printf("%s, op %d: only %d sizes fit\n", row.name, op, fitting);
  return true;
}

} // namespace

int main() {
  const bqr_registry *registry = bqr_registry_builtin();
  int wrong = 0;
  /* GELSY has families on the CPU alone; its steps, and those of GELS, have GELS's sizes. */
  for (int op = 0; op < BQR_NUM_ROUTINES; op++) {
    const bqr_operation &row = *bqr_registry_operation(registry, op);
    if (op != BATCHQR_GELSY && !row.host_sizes) wrong += differs(op, row);
  }
  for (int op : {int(BQR_TRANSPOSE), int(BQR_SOLVE)})
    wrong += differs(op, *bqr_registry_operation(registry, BATCHQR_GELS));
  return wrong > 0;
}
