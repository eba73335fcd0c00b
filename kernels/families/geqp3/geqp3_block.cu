/* SPDX-License-Identifier: BSD-3-Clause */
/* geqp3_block: a block for each member, which lies in shared memory where it fits, else in the workspace. See
 * common/panel/pivoted_qr.cuh. */
#include "common/matrix/range.cuh"
#include "common/panel/pivoted_qr.cuh"
#include "common/simt/slots.cuh"

namespace bqr {
namespace {

constexpr int most_threads = 512, rows_each = 4;

/* A member of up to m x n: its elements, and what is beside them. */
template <class T> BQR_INLINE size_t member_bytes(int m, int n) {
  return (sizeof(T) * static_cast<size_t>(m) * static_cast<size_t>(n) + 15) / 16 * 16 + pivoting<T>::bytes(n);
}

template <class T> class geqp3 {
  using R = real_t<T>;

public:
  __device__ geqp3(const bqr_args &args, const member &x, unsigned char *memory, uint32_t *word,
                   uint8_t *scales)
      : args_(args), x_(x), word_(word), scales_(scales),
        squad_(make_squad(squad_lanes(x.m, rows_each))), inside_{reinterpret_cast<T *>(memory), x.m, x.m,
                                                                 x.n},
        state_(pivoting<T>::at(memory + member_bytes<T>(x.m, x.n) - pivoting<T>::bytes(x.n), x.n)) {
    if (x.m > 0 && x.n > 0) a_ = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n};
    if (x.m > 0 && x.k > 0 && args.c.data)
      c_ = {matrix_data<T>(args, args.c, x.id), matrix_ld(args.c, x.id), x.m, x.k};
  }

  __device__ int run() {
    uint32_t u = 0;
    for_each(a_, [&](const T &x, int, int) { u = greater(u, magnitude_or_one(x)); });
    uint32_t of_c = c_.cols > 0 ? bring_into_range(c_, false, scales_) : 0;
    u = block_max(word_, u);
    of_c = block_max(word_, of_c);
    int rank = 0;
    const bool finite = magnitude_finite<T>(u) && magnitude_finite<T>(of_c);
    if (finite) {
      rank = factor(u);
      store(rank);
      if (c_.cols > 0) bring_back(c_, false, scales_, [&](int) { return c_.rows; });
    }
    if (args_.rank.data && thread_id() == 0) *vector_data<int>(args_.rank, x_.id) = rank;
    return finite ? 0 : BATCHQR_INFO_NONFINITE;
  }

private:
  __device__ int factor(uint32_t u) {
    const int exponent = u ? exponent_to<T>(u, span<R>::top) : 0;
    for_each(a_, [&](const T &x, int i, int j) { *inside_.at(i, j) = times_power(x, exponent); });
    block_sync();
    pivoted_qr<T> qr(inside_, c_, state_, squad_, word_);
    qr.sum_norms();
    block_sync();
    return qr.factor(least(least(x_.m, x_.n), args_.kmax), args_.abstol, args_.reltol, exponent, true);
  }

  /* Entry i of the column at position j of A P. */
  __device__ __forceinline__ T entry(const T *column, int i, int j, int rank) const {
    if (j < rank && i > j) return column[i] * state_.scale[j];
    const T x = j < rank && i == j ? make<T>(state_.diagonal[j]) : column[i];
    return times_power(x, -state_.exponent[least(i, rank)]);
  }

  __device__ void store(int rank) const {
    for_columns(squad_, a_.cols, [&](int j) {
      const T *from = j >= 0 ? inside_.at(0, state_.order[j]) : nullptr;
      for (int i = squad_.lane; from && i < a_.rows; i += squad_.lanes)
        *a_.at(i, j) = entry(from, i, j, rank);
    });
    const int k = least(x_.m, x_.n);
    T *tau = k > 0 ? tau_data<T>(args_, x_.id) : nullptr;
    for (int j = thread_id(); j < k; j += num_threads()) tau[j] = j < rank ? state_.tau[j] : zero<T>();
    if (!args_.jpvt.data || x_.n == 0) return;
    int *jpvt = vector_data<int>(args_.jpvt, x_.id);
    for (int j = thread_id(); j < x_.n; j += num_threads()) jpvt[j] = state_.order[j];
  }

  const bqr_args &args_;
  const member &x_;
  uint32_t *word_;
  uint8_t *scales_;
  squad squad_;
  matrix_view<T> inside_, a_{}, c_{};
  pivoting<T> state_;
};

/* Shared memory begins with a word and the scales of C's columns. */
template <class T, bool ON_CHIP>
__global__ void __launch_bounds__(most_threads)
    geqp3_block_kernel(const __grid_constant__ bqr_args args, size_t slot) {
  unsigned char *shared = shared_memory<unsigned char>();
  uint8_t *scales = shared + 16;
  unsigned char *memory = ON_CHIP ? scales + column_scales_bytes(args.k) : slot_memory(args, slot);
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GEQP3>(args, i);
    int info = BATCHQR_INFO_SIZES;
    if (x.ok) info = geqp3<T>(args, x, memory, reinterpret_cast<uint32_t *>(shared), scales).run();
    if (thread_id() == 0) set_info(args, x.id, info);
    block_sync();
  }
}

/* cols: for a squad to have in turn. */
const bqr_variant variants[] = {{.name = "cols1", .cols = 1},
                                {.name = "cols4", .cols = 4},
                                {.name = "cols4.global", .cols = 4, .global = true}};

struct family {
  static int threads(const bqr_problem *p, const bqr_variant *v) {
    return slot_threads((p->n + p->k - 1) / v->cols + 1, squad_lanes(p->m, rows_each), most_threads);
  }
  template <class T> static slot_plan plan(const bqr_problem *p, const bqr_variant *v) {
    return {16 + static_cast<size_t>(column_scales_bytes(p->k)), member_bytes<T>(p->m, p->n), !v->global};
  }
  template <class F> static batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
    return for_type(p->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return f(v->global ? geqp3_block_kernel<T, false> : geqp3_block_kernel<T, true>, plan<T>(p, v));
    });
  }
  static bool supports(const bqr_problem *, const bqr_variant *) { return true; }
};

/* More squads for a member where there are few of them. */
bool prefers(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  const bool few = p->count * p->n * squad_lanes(p->m, rows_each) <= int64_t(2048) * device->multiprocessors;
  return v->global || (v->cols == 1) == few;
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_geqp3_block = {
    .name = "geqp3_block",
    .op = BATCHQR_GEQP3,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 3,
    .launches = 1,
    .supports = bqr::slots<bqr::family>::supports,
    .workspace = bqr::slots<bqr::family>::workspace,
    .prepare = bqr::slots<bqr::family>::prepare,
    .launch = bqr::slots<bqr::family>::launch,
    .prefers = bqr::prefers,
};
