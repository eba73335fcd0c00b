/* SPDX-License-Identifier: BSD-3-Clause */
/* gesvd_cluster: a member lies in the shared memory of a cluster or, where variants are global, of blocks of
 * one launch that run at once; these take one member after another.
 *
 * One-sided Jacobi as gesvd_grid's. Blocks stand in a line, with two groups of `cols` columns each. In a
 * round these two meet, column by column, and change places; then each block gets a group from its right
 * neighbour for one of its own and, in the next round, one from the left. After as many rounds as there are
 * groups, a sweep, all have met and their order is reversed; in the first round columns of one group meet,
 * too. Half of a block's threads rotate columns of X, the others do the same to those of W a step later: that
 * is not on the way from one rotation to the next. The line's ends are neighbours that exchange groups, but
 * these do not meet. */
#include "cluster_line.cuh"
#include "gesvd_core.h"

namespace bqr {
namespace {

/* Columns of a group, at most: a thread has 128 registers, or all that there are. */
constexpr int most_line_cols(size_t bytes) { return bytes <= 128 ? 8 : 4; }

/* EACH: rows of a lane. turned, failed: see gesvd_core.h, or NULL. */
template <class T, int EACH>
__global__ void __launch_bounds__(2 * warp_lanes * most_line_cols(EACH * sizeof(T)))
    gesvd_line_kernel(const __grid_constant__ bqr_args args, int64_t first, int cols, int blocks, bool global,
                      const T *turned, const int *failed) {
  const int number = global ? 0 : static_cast<int>(blockIdx.x) / blocks;
  const work<T> k(args, first, number);
  if (!k.state().active[0]) return;
  double2 *mail = global ? reinterpret_cast<double2 *>(k.memory + k.layout.bytes) : nullptr;
  line<T, EACH>(k, shared_memory<T>(), cols, k.wants_w(args), static_cast<int>(blockIdx.x) % blocks, blocks,
                mail, failed && *failed ? nullptr : turned)
      .run();
}

/* blocks: of a member. */
const bqr_variant variants[] = {{.name = "blocks8", .blocks = 8},
                                {.name = "blocks16", .blocks = 16},
                                {.name = "blocks64.global", .blocks = 64, .global = true},
                                {.name = "blocks128.global", .blocks = 128, .global = true}};

line_shape shape_of(const bqr_problem *p, const bqr_variant *v) {
  const int q = largest(least(p->m, p->n), 1), each = (largest(p->m, p->n) - 1) / warp_lanes + 1;
  return {(q - 1) / (2 * v->blocks) + 1, each <= 4 ? 4 : each <= 8 ? 8 : each <= 16 ? 16 : 32};
}

size_t shared_bytes(const bqr_problem *p, const bqr_variant *v) {
  return for_type(p->type,
                  [&](auto tag) { return line_bytes<typename decltype(tag)::type>(shape_of(p, v)); });
}

/* What one launch takes. */
int64_t members_of(const bqr_problem *p, const bqr_variant *v) { return v->global ? 1 : at_once(p); }

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  const line_shape by = shape_of(p, v);
  const size_t bytes = static_cast<size_t>(by.each) * type_bytes(p->type);
  return (v->global       ? v->blocks <= device->multiprocessors
          : v->blocks > 8 ? bqr_has_wide_clusters(device)
                          : bqr_has_clusters(device)) &&
         largest(p->m, p->n) <= by.each * warp_lanes && bytes <= 256 && by.cols <= most_line_cols(bytes) &&
         shared_bytes(p, v) <= static_cast<size_t>(device->smem_per_block);
}

size_t workspace(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  const size_t mail = for_type(p->type, [&](auto tag) {
    return 2 * 16 * group_units<typename decltype(tag)::type>(shape_of(p, v), true);
  });
  return static_cast<size_t>(members_of(p, v)) * member_bytes(p) +
         (v->global ? mail * static_cast<size_t>(v->blocks) : 0);
}

/* Few members: as many as run at once. */
bool prefers(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  const int q = least(p->m, p->n);
  if (q <= 64 || p->count * v->blocks > device->multiprocessors) return false;
  return v->blocks > 8 || (q <= 128 && !bqr_has_wide_clusters(device));
}

/* f(kernel, shape) */
template <class F> batchqr_status with_line(const bqr_problem *p, const bqr_variant *v, F &&f) {
  const line_shape by = shape_of(p, v);
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return for_value<4, 8, 16, 32>(by.each, [&](auto each) {
      constexpr int rows = decltype(each)::value;
      if constexpr (rows * sizeof(T) <= 256)
        return f(gesvd_line_kernel<T, rows>, by);
      else
        return BATCHQR_UNSUPPORTED;
    });
  });
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  const batchqr_status status = with_line(p, v, [&](auto kernel, const line_shape &) {
    return prepare_kernel(kernel, shared_bytes(p, v), v->global ? 1 : v->blocks);
  });
  return status ? status : prepare_ends(p);
}

template <class T>
batchqr_status launch_line(void (*kernel)(bqr_args, int64_t, int, int, bool, const T *, const int *),
                           const bqr_variant *v, unsigned count, int threads, size_t shared,
                           batchqr_stream stream, const bqr_args &args, int64_t first, int cols,
                           const void *turned, const int *failed) {
  const T *x = static_cast<const T *>(turned);
  return v->global ? launch_together(kernel, dim3(static_cast<unsigned>(v->blocks)), threads, shared, stream,
                                     args, first, cols, v->blocks, true, x, failed)
                   : launch_clusters(kernel, count, v->blocks, threads, shared, stream, args, first, cols,
                                     v->blocks, false, x, failed);
}

/* The rotations of so many members from `first` on. */
batchqr_status launch_lines(const bqr_problem *p, const bqr_variant *v, const bqr_args &args, int64_t first,
                            unsigned count, const void *turned, const int *failed, batchqr_stream stream) {
  const size_t shared = shared_bytes(p, v);
  return with_line(p, v, [&](auto kernel, const line_shape &by) {
    const int threads = 2 * warp_lanes * by.cols;
    return launch_line(kernel, v, count, threads, shared, stream, args, first, by.cols, turned, failed);
  });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                      const bqr_args *args, batchqr_stream stream) {
  const int64_t members = members_of(p, v);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t first = 0; first < args->count && !status; first += members) {
    const unsigned count =
        static_cast<unsigned>(args->count - first < members ? args->count - first : members);
    status = launch_begin(p, device, *args, first, count, stream);
    if (!status) status = launch_lines(p, v, *args, first, count, nullptr, nullptr, stream);
    if (!status) status = launch_end(p, device, *args, first, count, stream);
  }
  return status;
}

int count_launches(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return static_cast<int>(p->count > 0 ? (ENDS_LAUNCHES + 1) * ((p->count - 1) / members_of(p, v) + 1) : 0);
}

/* Of the one that gesvd_core.h is about. */
const bqr_variant &core = variants[1];

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_gesvd_cluster = {
    .name = "gesvd_cluster",
    .op = BATCHQR_GESVD,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = bqr::variants,
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .supports = bqr::supports,
    .workspace = bqr::workspace,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
    .count_launches = bqr::count_launches,
    .prefers = bqr::prefers,
    .only_where_good = true,
};

extern "C" bool bqr_gesvd_core_supports(const bqr_problem *p, const bqr_device *device) {
  return bqr::supports(p, &bqr::core, device);
}
extern "C" size_t bqr_gesvd_core_bytes(const bqr_problem *p) { return bqr::member_bytes(p); }
extern "C" void *bqr_gesvd_core_x(const bqr_problem *p, void *workspace) {
  return bqr::for_type(p->type, [&](auto tag) -> void * {
    return static_cast<char *>(workspace) + bqr::places<typename decltype(tag)::type>(p->m, p->n).x;
  });
}
extern "C" void *bqr_gesvd_core_v(const bqr_problem *p, void *workspace) {
  return bqr::for_type(p->type, [&](auto tag) -> void * {
    return static_cast<char *>(workspace) + bqr::places<typename decltype(tag)::type>(p->m, p->n).w;
  });
}
extern "C" batchqr_status bqr_gesvd_core_prepare(const bqr_problem *p) {
  return bqr::prepare(p, &bqr::core, nullptr);
}
extern "C" batchqr_status bqr_gesvd_core_begin(const bqr_problem *p, const bqr_device *device,
                                               const bqr_args *args, batchqr_stream stream) {
  return bqr::launch_begin(p, device, *args, 0, 1, stream);
}
extern "C" batchqr_status bqr_gesvd_core_rotate(const bqr_problem *p, const bqr_device *device,
                                                const bqr_args *args, const void *turned, const int *failed,
                                                batchqr_stream stream) {
  const batchqr_status status = bqr::launch_lines(p, &bqr::core, *args, 0, 1, turned, failed, stream);
  return status ? status : bqr::launch_end(p, device, *args, 0, 1, stream);
}
