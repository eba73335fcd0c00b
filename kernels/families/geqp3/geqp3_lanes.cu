/* SPDX-License-Identifier: BSD-3-Clause */
/* geqp3_lanes: a block for each member, which it holds in registers (lanes_qr.cuh). */
#include "common/matrix/range.cuh"
#include "common/simt/slots.cuh"
#include "lanes_qr.cuh"

namespace bqr {
namespace {

template <class T, int ROWS, int COLS, int LANES, int WARPS> class geqp3 {
  using steps = lanes_qr<T, ROWS, COLS, LANES, WARPS>;

public:
  static __device__ int run(const bqr_args &args, const member &x, const typename steps::space &space) {
    matrix_view<T> a{};
    if (x.m > 0 && x.n > 0) a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n};
    steps qr(x.m, x.n, space);
    const uint32_t u = qr.load(a);
    const bool finite = magnitude_finite<T>(u);
    const int k = least(x.m, x.n);
    int rank = 0;
    if (finite) {
      rank = qr.factor({least(k, args.kmax), args.abstol, args.reltol}, u);
      qr.store(a, rank);
      T *tau = k > 0 ? tau_data<T>(args, x.id) : nullptr;
      for (int j = thread_id(); j < k; j += num_threads()) tau[j] = j < rank ? space.tau[j] : zero<T>();
      if (args.jpvt.data && qr.tells()) vector_data<int>(args.jpvt, x.id)[qr.place()] = qr.column();
    }
    if (args.rank.data && thread_id() == 0) *vector_data<int>(args.rank, x.id) = rank;
    return finite ? 0 : BATCHQR_INFO_NONFINITE;
  }
};

/* WARPS: the most of a block; RESIDENT: at the least, of a multiprocessor. */
template <class T, int ROWS, int COLS, int LANES, int WARPS, int RESIDENT>
__global__ void __launch_bounds__(WARPS *warp_lanes, RESIDENT / WARPS)
    geqp3_lanes_kernel(const __grid_constant__ bqr_args args, size_t) {
  using space = lanes_space<T, lanes_shape<ROWS, COLS, LANES>>;
  const space s = space::at(shared_memory<unsigned char>(), args.n);
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GEQP3>(args, i);
    const int info = x.ok ? geqp3<T, ROWS, COLS, LANES, WARPS>::run(args, x, s) : BATCHQR_INFO_SIZES;
    if (thread_id() == 0) set_info(args, x.id, info);
    block_sync();
  }
}

/* Warps of a multiprocessor for which there are registers. */
template <class T> constexpr int resident_warps = sizeof(T) > 4 ? 8 : 16;

/* rows, cols: of a lane; lanes: that share columns; warps: of a block at most. */
constexpr unsigned real = 1 << BATCHQR_S | 1 << BATCHQR_D;
constexpr bqr_variant variants[] = {
    {.name = "rows8.cols8.lanes8.warps4", .rows = 8, .cols = 8, .lanes = 8, .warps = 4, .types = real},
    {.name = "rows8.cols8.lanes16.warps8", .rows = 8, .cols = 8, .lanes = 16, .warps = 8, .types = real},
    {.name = "rows8.cols8.lanes32.warps4", .rows = 8, .cols = 8, .lanes = 32, .warps = 4, .types = real}};
constexpr int num_variants = sizeof variants / sizeof variants[0];

template <int I> struct shape_of : lanes_shape<variants[I].rows, variants[I].cols, variants[I].lanes> {};

struct family {
  template <class F> static auto with_shape(const bqr_variant *v, F &&f) {
    return for_index<num_variants>(static_cast<int>(v - variants), static_cast<F &&>(f));
  }
  static int warps(const bqr_problem *p, const bqr_variant *v) {
    return with_shape(v, [&](auto index) { return shape_of<decltype(index)::value>::warps(p->n); });
  }
  static int threads(const bqr_problem *p, const bqr_variant *v) { return warps(p, v) * warp_lanes; }
  static bool supports(const bqr_problem *p, const bqr_variant *v) {
    return v->types >> p->type & 1 && p->m <= v->rows * v->lanes && warps(p, v) <= v->warps && p->k == 0;
  }
  template <class T, int I, class F> static batchqr_status with_instance(const bqr_problem *p, F &&f) {
    constexpr int rows = variants[I].rows, cols = variants[I].cols, lanes = variants[I].lanes;
    if constexpr ((variants[I].types >> type_of<T> & 1) == 0) {
      return BATCHQR_UNSUPPORTED;
    } else {
      using shape = lanes_shape<rows, cols, lanes>;
      const slot_plan plan = {0, lanes_space<T, shape>::bytes(p->n), true};
      constexpr int warps = variants[I].warps, resident = resident_warps<T>;
      if constexpr (warps > 1)
        if (shape::warps(p->n) > 1) return f(geqp3_lanes_kernel<T, rows, cols, lanes, warps, resident>, plan);
      return f(geqp3_lanes_kernel<T, rows, cols, lanes, 1, resident>, plan);
    }
  }
  template <class F> static batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
    return for_type(p->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return with_shape(v, [&](auto index) { return with_instance<T, decltype(index)::value>(p, f); });
    });
  }
};

/* Where it was measured faster than geqp3_block, which has a lane for each column. */
bool prefers(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return p->n <= 64 || (p->m > 64 && p->type == BATCHQR_S);
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_geqp3_lanes = {
    .name = "geqp3_lanes",
    .op = BATCHQR_GEQP3,
    .types = bqr::real,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = bqr::num_variants,
    .launches = 1,
    .supports = bqr::slots<bqr::family>::supports,
    .workspace = bqr::slots<bqr::family>::workspace,
    .prepare = bqr::slots<bqr::family>::prepare,
    .launch = bqr::slots<bqr::family>::launch,
    .prefers = bqr::prefers,
};
