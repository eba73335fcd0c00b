/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorts members by size: see families/sort/sort.h. One pass counts the members of each box, a second one
 * writes the lists. Within a box members come in any order, which no result depends on. */
#include "sort.h"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {
namespace {

constexpr int block_threads = 256, most_boxes = BQR_SORT_BOXES, most_lists = BQR_SORT_LISTS;

__device__ __forceinline__ int first_that_holds(const int *edges, int size) {
  int i = 0;
  while (edges[i] < size) i++;
  return i;
}

__device__ __forceinline__ int box_of(const bqr_sort &sort, const member &x) {
  return first_that_holds(sort.rows, x.m) * sort.num_cols + first_that_holds(sort.cols, x.n);
}

__device__ __forceinline__ void copy_ld(int *to, const bqr_matrix &x, int64_t i, bool empty) {
  if (to) to[i] = empty ? 1 : x.ld_array[i];
}

__global__ void __launch_bounds__(block_threads)
    sort_count_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_sort sort) {
  __shared__ int counts[most_boxes];
  if (threadIdx.x < most_boxes) counts[threadIdx.x] = 0;
  block_sync();
  const int64_t i = int64_t(blockIdx.x) * block_threads + threadIdx.x;
  if (i <= args.count) {
    const bool empty = i == args.count;
    member x = {i, 0, 0, 0, true};
    if (!empty) x = sort.rhs ? member_at<BATCHQR_GELS>(args, i) : member_at<BATCHQR_GEQRF>(args, i);
    sort.m[i] = x.m;
    sort.n[i] = x.n;
    if (sort.k) sort.k[i] = x.k;
    copy_ld(sort.lda, args.a, i, empty);
    copy_ld(sort.ldc, args.c, i, empty);
    copy_ld(sort.ldr, args.r, i, empty);
    if (!x.ok && sort.info) sort.info[i] = BATCHQR_INFO_SIZES;
    const int box = x.ok && !empty ? box_of(sort, x) : -1;
    sort.box[i] = box;
    if (box >= 0) atomicAdd(&counts[box], 1);
  }
  block_sync();
  if (threadIdx.x < most_boxes && counts[threadIdx.x] > 0)
    atomicAdd(&sort.counts[threadIdx.x], counts[threadIdx.x]);
}

/* Of one list: where its boxes begin, and where it ends. */
__device__ __forceinline__ void lay_out(const bqr_sort &sort, int list, int *begin, int *end) {
  int next = 0;
  for (int box = most_boxes - 1; box >= 0; box--) {
    begin[box] = next;
    if (sort.boxes[list] >> box & 1) next += sort.counts[box];
  }
  *end = next;
}

__global__ void __launch_bounds__(block_threads)
    sort_list_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_sort sort) {
  __shared__ int begin[most_lists][most_boxes], end[most_lists], counts[most_boxes], place[most_boxes];
  if (threadIdx.x < sort.num_lists) lay_out(sort, threadIdx.x, begin[threadIdx.x], &end[threadIdx.x]);
  if (threadIdx.x < most_boxes) counts[threadIdx.x] = 0;
  block_sync();
  const int64_t i = int64_t(blockIdx.x) * block_threads + threadIdx.x;
  const int box = i < args.count ? sort.box[i] : -1;
  const int rank = box >= 0 ? atomicAdd(&counts[box], 1) : 0;
  block_sync();
  if (threadIdx.x < most_boxes && counts[threadIdx.x] > 0)
    place[threadIdx.x] = atomicAdd(&sort.counts[most_boxes + threadIdx.x], counts[threadIdx.x]);
  block_sync();
  if (i > args.count) return;
  for (int list = 0; list < sort.num_lists; list++) {
    int *entries = sort.lists + list * (args.count + 1);
    if (box >= 0 && (sort.boxes[list] >> box & 1) != 0)
      entries[begin[list][box] + place[box] + rank] = static_cast<int>(i);
    if (i >= end[list]) entries[i] = static_cast<int>(args.count);
  }
}

const bqr_variant variants[] = {{.name = "boxes"}};

bool supports(const bqr_problem *, const bqr_variant *, const bqr_device *) { return true; }

batchqr_status prepare(const bqr_problem *, const bqr_variant *, const bqr_device *) {
  const batchqr_status status = prepare_kernel(sort_count_kernel, 0);
  return status ? status : prepare_kernel(sort_list_kernel, 0);
}

batchqr_status launch(const bqr_problem *, const bqr_variant *, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  const bqr_sort &sort = *static_cast<const bqr_sort *>(args->state);
  const unsigned blocks = static_cast<unsigned>(args->count / block_threads + 1);
  batchqr_status status = status_of(cudaMemsetAsync(sort.counts, 0, 2 * most_boxes * sizeof(int), stream));
  if (!status) status = launch_kernel(sort_count_kernel, blocks, block_threads, 0, stream, *args, sort);
  if (!status) status = launch_kernel(sort_list_kernel, blocks, block_threads, 0, stream, *args, sort);
  return status;
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_sort_members = {
    .name = "sort_members",
    .op = BQR_SORT,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 1,
    .launches = 2,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
