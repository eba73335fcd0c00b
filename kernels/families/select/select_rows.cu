/* SPDX-License-Identifier: BSD-3-Clause */
/* select_rows: a thread for each row of a member, which moves its entries of the eigenvectors that are
 * wanted, in their order, so that V may be A; where it is not, blocks share the columns, too. */
#include "common/matrix/member.cuh"
#include "common/simt/block.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

constexpr int threads = 256, at_once = 4;

/* The eigenvalues that a member's range has: first, ... */
struct chosen {
  int first, count;
};

/* How many of n ascending numbers are at most `bound`. */
template <class R> __device__ __forceinline__ int count_up_to(const R *w, int n, double bound) {
  int low = 0, high = n;
  while (low < high) {
    const int at = (low + high) / 2;
    if (static_cast<double>(w[at]) <= bound)
      low = at + 1;
    else
      high = at;
  }
  return low;
}

template <class R> __device__ __forceinline__ chosen choose(const bqr_args &args, const R *w, int n) {
  if (args.iu > 0) return {args.il - 1, largest(0, least(args.iu, n) - args.il + 1)};
  const int first = count_up_to(w, n, args.vl);
  return {first, count_up_to(w, n, args.vu) - first};
}

/* Columns begin ... end - 1 of a row. */
template <class T>
__device__ __forceinline__ void move_row(const T *from, int64_t ld, T *to, int64_t ldv, int begin, int end) {
  for (int j = begin; j < end; j += at_once) {
    T x[at_once];
#pragma unroll
    for (int k = 0; k < at_once; k++) x[k] = j + k < end ? from[(j + k) * ld] : zero<T>();
#pragma unroll
    for (int k = 0; k < at_once; k++)
      if (j + k < end) to[(j + k) * ldv] = x[k];
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    select_rows_kernel(const __grid_constant__ bqr_args args, int rows) {
  using R = real_t<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * threads;
  const int part = static_cast<int>(blockIdx.y), parts = static_cast<int>(gridDim.y);
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * threads + thread_id(); i < args.count * rows;
       i += step) {
    const member x = member_at<BATCHQR_SYEVD>(args, i / rows);
    const int row = static_cast<int>(i % rows);
    if (!x.ok || row >= largest(x.n, 1)) continue;
    const bool first = row == 0 && part == 0 && args.rank.data;
    if (first && x.n == 0) *vector_data<int>(args.rank, x.id) = 0;
    if (x.n == 0) continue;
    const R *w = vector_data<R>(args.tau, x.id);
    const bool finite = w[0] == w[0];
    const chosen range = choose(args, w, x.n);
    const int room = args.iu > 0 ? range.count : x.n;
    if (first) *vector_data<int>(args.rank, x.id) = finite ? range.count : 0;
    if (part == 0 && row < room)
      vector_data<R>(args.s, x.id)[row] =
          finite && row < range.count ? w[range.first + row] : static_cast<R>(nan(""));
    if (!args.v.data || !finite || range.count == 0) continue;
    const int64_t ld = matrix_ld(args.a, x.id), ldv = matrix_ld(args.v, x.id);
    T *a = matrix_data<T>(args, args.a, x.id), *v = matrix_data<T>(args, args.v, x.id);
    if (v != a) {
      const int each = (range.count - 1) / parts + 1, begin = least(part * each, range.count);
      move_row(a + row + range.first * ld, ld, v + row, ldv, begin, least(begin + each, range.count));
    } else if (part == 0 && range.first > 0) {
      move_row(a + row + range.first * ld, ld, v + row, ldv, 0, range.count);
    }
  }
}

const bqr_variant variants[] = {{.name = "columns"}};

bool supports(const bqr_problem *, const bqr_variant *, const bqr_device *) { return true; }

/* f(kernel) */
template <class F> batchqr_status with_kernel(const bqr_problem *p, F &&f) {
  return for_type(p->type, [&](auto tag) { return f(select_rows_kernel<typename decltype(tag)::type>); });
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return with_kernel(p, [](auto kernel) { return prepare_kernel(kernel, 0); });
}

/* As many blocks as fill the device a few times over; more of them share columns than rows alone would. */
batchqr_status launch(const bqr_problem *p, const bqr_variant *, const bqr_device *device,
                      const bqr_args *args, batchqr_stream stream) {
  const int rows = largest(p->n, 1);
  const int64_t blocks = (args->count * rows - 1) / threads + 1,
                wanted = 16 * int64_t(device->multiprocessors);
  const int64_t parts = args->v.data ? wanted / blocks : 1, most = (p->n - 1) / at_once + 1;
  const dim3 grid(grid_for(blocks), static_cast<unsigned>(parts < 1 ? 1 : parts < most ? parts : most));
  return with_kernel(
      p, [&](auto kernel) { return launch_kernel(kernel, grid, threads, 0, stream, *args, rows); });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_select_rows = {
    .name = "select_rows",
    .op = BQR_SELECT,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 1,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
