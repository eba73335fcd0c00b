/* SPDX-License-Identifier: BSD-3-Clause */
/* qr_mma: thin Q and R of small members in one launch, one block for a member, on matrix units. A is read,
 * Q and R are written, 16 columns at a time and nothing twice: V and T stay in shared memory.
 *
 * Columns take the reflectors of all panels before them (left-looking), become R and two more panels
 * (common/panel/fragment_panel.cuh), 32 R rows to each of P warps. Then the panels make the columns of Q.
 *
 * Variants of 32 columns try the Gram matrix first (families/qr/gram_qr.cuh); members for which that will not
 * do take reflectors.
 *
 * Method: xGEQRF and xORGQR with blocks of 8. */
#include "costs.h"
#include "gram_qr.cuh"
#include "common/simt/instances.cuh"
#include "common/matrix/member.cuh"
#include "common/panel/fragment_panel.cuh"
#include "common/ptx/barrier.cuh"

namespace {
using namespace bqr;

/* Thin Q and R of one member by one block. */
template <class T, int R, int P> class mma_qr : panel_team<T, R, P> {
  using base = panel_team<T, R, P>;
  using base::N, base::m_, base::warp_, base::s, base::team_, base::finite_;
  using typename base::columns;
  using typename base::real;
  using typename base::storage;
  using tiles_type = panel_tiles<T, P>;

public:
  static constexpr size_t smem(int m, int n) { return sizeof(storage) + tiles_type::bytes(m, least(m, n)); }

  __device__ mma_qr(void *shared, int m, int n, bool positive)
      : base(*static_cast<storage *>(shared), m, positive), n_(broadcast(n, 0)), k_(least(m_, n_)),
        v_(reinterpret_cast<T *>(&s + 1), m_) {}

  /* a: m x n, rows rsa elements apart; r: min(m, n) x n. Returns info, in thread 0. */
  __device__ int reduce(const T *a, int64_t rsa, int64_t lda, T *r, int64_t ldr) {
    const bool a_packs = rsa == 1 && columns::packs(a, lda, m_), r_packs = columns::packs(r, ldr, k_);
    auto store_r = [&](const columns &x, int row, int col) {
      x.store(warp_, r + row + col * ldr, ldr, k_ - row, n_ - col, r_packs);
    };
    auto store_tile = [&](const columns &x, real back, int row, int col) {
      if (warp_ != 0) return;
      columns y;
#pragma unroll
      for (int e = 0; e < 2; e++) y.x[0][e] = scaled(x.x[0][e], back);
      y.template store<1>(0, r + row + col * ldr, ldr, k_ - row, n_ - col, r_packs);
    };
#pragma unroll 1
    for (int col = 0; col < n_; col += 2 * N) {
      columns x[2];
      real back[2] = {1, 1};
      warp_ = team_.warp();
#pragma unroll
      for (int i = 0; i < 2; i++)
        x[i].load(warp_, a + (col + N * i) * lda, lda, m_, n_ - col - N * i, a_packs, rsa);
      if (base::bring_into_range(x)) {
#pragma unroll
        for (int i = 0; i < 2; i++)
          back[i] = exponent_scale<real>(-column_exponent<T>(s.magnitude[i * N + columns::column()]));
        team_.sync();
      }
      int top = 0;
#pragma unroll 1
      for (; top < col && top < k_; top += N) {
        base::template apply<2, true>(x, v_.at(top / N, warp_), v_.at(top / N, 0), top);
#pragma unroll
        for (int i = 0; i < 2; i++) {
          store_tile(x[i], back[i], top, col + N * i);
          x[i].drop_tile(warp_);
        }
        warp_ = base::before(warp_);
      }
#pragma unroll 1
      for (int end = least(col + 2 * N, k_); top < end;) {
        T *mine = v_.at(top / N, warp_);
        base::factor_panel(x[0], mine, top, least(N, k_ - top), back[0]);
        const T head[2] = {x[0].x[0][0], x[0].x[0][1]};
        base::set_reflectors(x[0], mine, top);
        x[0].each([](T &y) { y = zero<T>(); });
        if (warp_ == 0) {
#pragma unroll
          for (int e = 0; e < 2; e++)
            if (2 * columns::lane() + e <= columns::column()) x[0].x[0][e] = scaled(head[e], back[0]);
        }
        store_r(x[0], top, top);
        if (top > col || top + N >= n_) break;
        x[0] = x[1];
        back[0] = back[1];
        base::template apply<1, true>(x, mine, v_.at(top / N, 0), top);
        store_tile(x[0], back[0], top, top + N);
        x[0].drop_tile(warp_);
        warp_ = base::before(warp_);
        top += N;
      }
    }
    team_.sync();
    if (!finite_) return BATCHQR_INFO_NONFINITE;
    return thread_id() == 0 ? s.zero_column : 0;
  }

  /* q: m x min(m, n) */
  __device__ void form_q(T *q, int64_t ldq) {
    const bool packs = columns::packs(q, ldq, m_);
#pragma unroll 1
    for (int col = 0; col < k_; col += 2 * N)
      form_columns<T, R, P, 2>(team_, v_, m_, k_, k_, col, q, ldq, packs);
  }

private:
  int n_, k_;
  tiles_type v_;
};

/* Of a thread: fewer, and there would be spills within loops. */
template <class T, int R> constexpr int registers = R * sizeof(T) > 16 ? 255 : R * sizeof(T) > 8 ? 168 : 128;

/* GRAM: whether it can; gram: whether it is to, for members of up to 32 columns, whose R
 * then has a positive diagonal. */
template <class T, int R, int P, bool GRAM>
__global__ void __launch_bounds__(P *warp_lanes, 65536 / (registers<T, R> * P * warp_lanes))
    qr_mma_kernel(const __grid_constant__ bqr_args args, bool gram, bool positive) {
  extern __shared__ __align__(16) unsigned char shared[];
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_QR>(args, i);
    int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
    if (x.ok && x.m > 0 && x.n > 0) {
      const T *a = matrix_data<T>(args, args.a, x.id);
      T *q = matrix_data<T>(args, args.c, x.id), *r = matrix_data<T>(args, args.r, x.id);
      const int64_t rsa = args.a.row_stride, lda = matrix_ld(args.a, x.id), ldq = matrix_ld(args.c, x.id),
                    ldr = matrix_ld(args.r, x.id);
      bool done = false;
      if constexpr (GRAM) {
        if (gram) {
          if (x.n <= x.m) done = gram_qr<T, R, P>(shared, x.m, x.n).run(a, rsa, lda, q, ldq, r, ldr);
          block_sync();
        }
      }
      if (!done) {
        mma_qr<T, R, P> qr(shared, x.m, x.n, positive);
        info = qr.reduce(a, rsa, lda, r, ldr);
        qr.form_q(q, ldq);
        block_sync();
      }
    }
    if (thread_id() == 0) set_info(args, x.id, info);
  }
}

template <class T, int R, int P, bool GRAM> size_t shared_bytes(int m, int n) {
  const size_t bytes = mma_qr<T, R, P>::smem(m, n);
  if constexpr (GRAM) return bytes > gram_qr<T, R, P>::smem(m) ? bytes : gram_qr<T, R, P>::smem(m);
  return bytes;
}

enum : int { S = 1 << BATCHQR_S, D = 1 << BATCHQR_D, C = 1 << BATCHQR_C, Z = 1 << BATCHQR_Z };
/* Those with cols go by the Gram matrix. */
constexpr bqr_variant qr_variants[] = {
    {.name = "rows64.warps2", .rows = 64, .warps = 2, .types = Z, .fewest_warps = Z},
    {.name = "rows128.warps4", .rows = 128, .warps = 4, .types = S | D | C | Z, .fewest_warps = Z},
    {.name = "rows64.warps1", .rows = 64, .warps = 1, .types = S | D | C, .fewest_warps = S | D | C},
    {.name = "rows128.warps2", .rows = 128, .warps = 2, .types = S | D | C, .fewest_warps = D | C},
    {.name = "rows128.warps1", .rows = 128, .warps = 1, .types = S, .fewest_warps = S},
    {.name = "rows256.cols32.warps4", .rows = 256, .cols = 32, .warps = 4, .types = S},
    {.name = "rows256.cols32.warps8", .rows = 256, .cols = 32, .warps = 8, .types = D | C | Z},
    {.name = "rows256.warps8", .rows = 256, .warps = 8, .types = S | D | C | Z, .fewest_warps = Z},
    {.name = "rows256.warps4", .rows = 256, .warps = 4, .types = S | D | C, .fewest_warps = S | D | C},
};

/* Whether the type's instance for these rows and warps knows the Gram matrix. */
constexpr bool has_gram(int rows, int warps, unsigned type) {
  for (const bqr_variant &v : qr_variants)
    if (v.rows == rows && v.warps == warps && v.cols > 0 && (v.types & type)) return true;
  return false;
}

/* For instances. */
struct qr {
  static constexpr auto &variants = qr_variants;
  static constexpr int num_variants = sizeof variants / sizeof variants[0];
  template <class T, int I, class F> static auto instance(const bqr_problem *problem, F &&f) {
    constexpr const bqr_variant &v = variants[I];
    constexpr int P = v.warps, R = v.rows / (warp_lanes * P);
    constexpr bool gram = has_gram(v.rows, v.warps, 1u << type_of<T>);
    return f(qr_mma_kernel<T, R, P, gram>, shared_bytes<T, R, P, (v.cols > 0)>(problem->m, problem->n),
             P * warp_lanes);
  }
};
using family = instances<qr>;

bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  if (problem->m > variant->rows) return false;
  if (least(problem->m, problem->n) > costs->kept_cols) return false; /* the steps are faster */
  if (variant->cols > 0 && problem->n > most_gram_columns) return false;
  return family::fits(problem, variant, least(device->smem_per_block, static_cast<int>(costs->kept_bytes)));
}

bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  if (variant->cols > 0) return problem->m > costs->gram_rows && problem->n > costs->gram_cols;
  if ((variant->fewest_warps & 1 << problem->type) != 0) return true;
  return family::warps_pay(problem, variant, device);
}

batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *,
                      const bqr_args *args, batchqr_stream stream) {
  return family::launch_with(problem, variant, stream, *args, variant->cols > 0, problem->positive);
}
} // namespace

extern "C" const bqr_family bqr_family_qr_mma = {
    .name = "qr_mma",
    .op = BATCHQR_QR,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = qr_variants,
    .nvariants = qr::num_variants,
    .launches = 1,
    .supports = supports,
    .prepare = family::prepare,
    .launch = launch,
    .prefers = prefers,
    .keeps_a = true,
};
