/* SPDX-License-Identifier: BSD-3-Clause */
/* geqp3_block: a block for each member, which is held in registers (common/panel/held_qr.cuh), or lies in
 * shared memory where it fits, else in the workspace (common/panel/pivoted_qr.cuh). */
#include "common/matrix/range.cuh"
#include "common/panel/held_qr.cuh"
#include "common/panel/pivoted_qr.cuh"
#include "common/simt/slots.cuh"

namespace bqr {
namespace {

constexpr int most_threads = 512, rows_each = 4;
constexpr int most_narrow =
    64; /* columns or rows of members in shared memory that geqp3_grid is no faster for */

/* Columns of members whose lanes have columns lie in different banks. */
template <class T, int ROWS> BQR_INLINE int leading_dimension(int m) {
  return ROWS > 0 && sizeof(T) < 16 ? m | 1 : m;
}

/* A member of up to m x n: its elements, and what is beside them. */
template <class T, int ROWS> struct layout {
  size_t pivots, space, bytes;

  BQR_INLINE layout(int m, int n) {
    const size_t ld = static_cast<size_t>(leading_dimension<T, ROWS>(m));
    pivots = (sizeof(T) * ld * static_cast<size_t>(n) + 15) / 16 * 16;
    space = pivots + pivoting<T>::bytes(n);
    bytes = space + (ROWS > 0 ? held_space<T>::bytes(m, n, ROWS) : 0);
  }
};

/* ROWS: of a lane that holds a column's; 0: none does. NARROW: it has up to 32 columns. */
template <class T, int ROWS, bool NARROW> class geqp3 {
  using R = real_t<T>;

public:
  __device__ geqp3(const bqr_args &args, const member &x, unsigned char *memory, uint32_t *word,
                   uint8_t *scales)
      : args_(args), x_(x), word_(word), scales_(scales), places_(x.m, x.n), memory_(memory),
        squad_(make_squad(squad_lanes(x.m, rows_each))), inside_{reinterpret_cast<T *>(memory),
                                                                 leading_dimension<T, ROWS>(x.m), x.m, x.n},
        state_(pivoting<T>::at(memory + places_.pivots, x.n)) {
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
    const int most = least(least(x_.m, x_.n), args_.kmax);
    if constexpr (ROWS > 0) {
      const auto space = held_space<T>::at(memory_ + places_.space, x_.m, x_.n, ROWS);
      held_qr<T, ROWS, NARROW> qr(inside_, state_, space, word_);
      const int rank = qr.factor(most, args_.abstol, args_.reltol, exponent, true);
      apply_to_c(rank);
      return rank;
    } else {
      pivoted_qr<T> qr(inside_, c_, state_, squad_, word_);
      qr.sum_norms();
      block_sync();
      return qr.factor(most, args_.abstol, args_.reltol, exponent, true);
    }
  }

  /* A squad for each column. */
  __device__ void apply_to_c(int rank) const {
    for_columns(squad_, c_.cols, [&](int col) {
      T *y = col >= 0 ? c_.at(0, col) : nullptr;
      for (int j = 0; j < rank; j++) {
        reflect<true>(squad_, inside_.at(0, state_.order[j]), y, j, x_.m, state_.tau[j], state_.scale[j]);
        warp_sync();
      }
    });
    block_sync();
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
  layout<T, ROWS> places_;
  unsigned char *memory_;
  squad squad_;
  matrix_view<T> inside_, a_{}, c_{};
  pivoting<T> state_;
};

/* Shared memory begins with a word and the scales of C's columns. */
template <class T, bool ON_CHIP, int ROWS, bool NARROW>
__global__ void __launch_bounds__(most_threads)
    geqp3_block_kernel(const __grid_constant__ bqr_args args, size_t slot) {
  unsigned char *shared = shared_memory<unsigned char>();
  uint8_t *scales = shared + 16;
  unsigned char *memory = ON_CHIP ? scales + column_scales_bytes(args.k) : slot_memory(args, slot);
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GEQP3>(args, i);
    int info = BATCHQR_INFO_SIZES;
    if (x.ok)
      info = geqp3<T, ROWS, NARROW>(args, x, memory, reinterpret_cast<uint32_t *>(shared), scales).run();
    if (thread_id() == 0) set_info(args, x.id, info);
    block_sync();
  }
}

/* rows: of a lane that holds a column's; cols: for a squad to have in turn. */
const bqr_variant variants[] = {{.name = "rows16", .rows = 16, .types = BQR_ALL_TYPES},
                                {.name = "rows32", .rows = 32, .types = BQR_ALL_TYPES - (1 << BATCHQR_Z)},
                                {.name = "rows64", .rows = 64, .types = 1 << BATCHQR_S},
                                {.name = "cols1", .cols = 1, .types = BQR_ALL_TYPES},
                                {.name = "cols4", .cols = 4, .types = BQR_ALL_TYPES},
                                {.name = "cols4.global", .cols = 4, .global = true, .types = BQR_ALL_TYPES}};

/* The most rows of a lane that there are for the type. */
int most_rows(batchqr_type type) { return type == BATCHQR_S ? 64 : type == BATCHQR_Z ? 16 : 32; }

struct family {
  static int threads(const bqr_problem *p, const bqr_variant *v) {
    if (v->rows > 0) return held_warps(p->m, p->n, v->rows) * warp_lanes;
    return slot_threads((p->n + p->k - 1) / v->cols + 1, squad_lanes(p->m, rows_each), most_threads);
  }
  template <class T, int ROWS> static slot_plan plan(const bqr_problem *p, const bqr_variant *v) {
    return {16 + static_cast<size_t>(column_scales_bytes(p->k)), layout<T, ROWS>(p->m, p->n).bytes,
            !v->global};
  }
  template <class T, int ROWS, class F>
  static batchqr_status with_rows(const bqr_problem *p, const bqr_variant *v, F &&f) {
    return p->n <= warp_lanes ? f(geqp3_block_kernel<T, true, ROWS, true>, plan<T, ROWS>(p, v))
                              : f(geqp3_block_kernel<T, true, ROWS, false>, plan<T, ROWS>(p, v));
  }
  template <class F> static batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
    return for_type(p->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (v->global) return f(geqp3_block_kernel<T, false, 0, false>, plan<T, 0>(p, v));
      if (v->rows == 0) return f(geqp3_block_kernel<T, true, 0, false>, plan<T, 0>(p, v));
      if constexpr (sizeof(T) == 4)
        if (v->rows == 64) return with_rows<T, 64>(p, v, f);
      if constexpr (sizeof(T) < 16)
        if (v->rows == 32) return with_rows<T, 32>(p, v, f);
      return with_rows<T, 16>(p, v, f);
    });
  }
  static bool supports(const bqr_problem *p, const bqr_variant *v) {
    if (!(v->types >> p->type & 1)) return false;
    return v->rows == 0 || held_warps(p->m, p->n, v->rows) * warp_lanes <= most_threads;
  }
};

/* Columns that one lane holds, or as few lanes as can be; more squads for a member where there are few of
 * them. What is not on chip is geqp3_grid's. */
bool prefers(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  if (v->rows > 0) return p->m <= v->rows || v->rows == most_rows(p->type);
  const bool few = p->count * p->n * squad_lanes(p->m, rows_each) <= int64_t(2048) * device->multiprocessors;
  return !v->global && least(p->m, p->n) <= most_narrow && (v->cols == 1) == few;
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_geqp3_block = {
    .name = "geqp3_block",
    .op = BATCHQR_GEQP3,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .launches = 1,
    .supports = bqr::slots<bqr::family>::supports,
    .workspace = bqr::slots<bqr::family>::workspace,
    .prepare = bqr::slots<bqr::family>::prepare,
    .launch = bqr::slots<bqr::family>::launch,
    .prefers = bqr::prefers,
};
