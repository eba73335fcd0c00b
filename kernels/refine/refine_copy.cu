/* SPDX-License-Identifier: BSD-3-Clause */
/* Before and after the steps of refine.h: the columns' lengths, the copy that becomes R, what a rung comes
 * to, and the solution. */
#include "with_task.cuh"
#include "common/panel/larfg.cuh"

namespace {
using namespace bqr;

constexpr int copy_threads = 512, end_threads = 256;

/* e with x 2^e in [1, 2), for any x > 0 that is finite. */
__device__ __forceinline__ int exponent_near_one(double x) { return -ilogb(x); }

/* The length of a column of `count` entries; `pre`: what they were multiplied by first. */
template <class T, class F>
__device__ real_t<T> length_of(block_reducer<T, 1> &reducer, int count, real_t<T> *pre, F &&entry) {
  using R = real_t<T>;
  R ss = 0;
#pragma unroll 8
  for (int i = thread_id(); i < count; i += copy_threads) ss = abs2_add(entry(i), ss);
  ss = reducer.sum(ss);
  *pre = norm_prescale(ss, false);
  if (*pre == 1) return sqrt(ss);
  ss = 0;
  for (int i = thread_id(); i < count; i += copy_threads) ss = abs2_add(scaled(entry(i), *pre), ss);
  return sqrt(reducer.sum(ss));
}

template <class T> __global__ void __launch_bounds__(copy_threads) state_kernel(refine_task<T> s) {
  begin_state(s.state, !(s.scales[0] == s.scales[0]), s.k);
}

/* A block for a column at a time. A column of zeros, or of what is not finite, is left to the direct way. */
template <class T> __global__ void __launch_bounds__(copy_threads) copy_kernel(refine_task<T> s) {
  using R = real_t<T>;
  __shared__ T scratch[block_reducer<T, 1>::elements_for(copy_threads / warp_lanes)];
  block_reducer<T, 1> reducer(scratch);
  for (int j = static_cast<int>(blockIdx.x); j < s.n; j += static_cast<int>(gridDim.x)) {
    const T *a = s.a + j * s.lda;
    R pre;
    const R length = length_of(reducer, s.m, &pre, [&](int i) { return a[i]; });
    const bool usable = length > 0 && magnitude_finite<R>(magnitude(length));
    const int lifted = usable ? exponent_near_one(length) : 0;
    const double near = times_power(static_cast<double>(length), lifted);
    const int e = usable ? lifted + ilogb(pre) : 0;
    if (thread_id() == 0) {
      s.exponents[j] = e;
      s.norms2[j] = near * near;
      if (!usable) s.state->failed = s.state->stop = 1;
    }
    low *to = s.copy + j * s.ldcopy;
#pragma unroll 8
    for (int i = thread_id(); i < s.m; i += copy_threads) to[i] = converted<low>(by_power(a[i], e));
  }
}

/* One thread. */
__global__ void judge_kernel(bqr_refine_state *state, int m, int n, int k) {
  if (!is_off(state) && !state->failed) state->off.off = 1;
  const bool off = is_off(state);
  state->m = off ? 0 : m;
  state->n = off ? 0 : n;
  state->k = off ? 0 : k;
  state->failed = 0;
  state->stop = off;
  for (unsigned &arrivals : state->arrivals) arrivals = 0;
}

template <class T> struct outputs {
  T *c;
  real_t<T> *norms, *relres;
  int *info, *iterations;
};

template <class T>
__global__ void __launch_bounds__(end_threads) end_kernel(refine_task<T> s, outputs<T> to) {
  using R = real_t<T>;
  const bool off = is_off(s.state);
  const int first = static_cast<int>(blockIdx.x) * end_threads + thread_id(),
            step = static_cast<int>(gridDim.x) * end_threads;
  for (int j = 0; j < s.k && off; j++) {
    const R back = static_cast<R>(s.scales[0] / s.scales[1]);
    for (int i = first; i < s.n; i += step)
      to.c[i + j * s.ldb] = scaled(
          by_power(s.x[i + static_cast<int64_t>(j) * s.n], s.exponents[i] - s.state->exponents[j]), back);
  }
  for (int j = first; j < s.k; j += step) {
    const double norm = times_power(s.state->norm[j], -s.state->exponents[j]);
    if (off && to.norms) to.norms[j] = s.m > s.n ? static_cast<R>(norm / s.scales[1]) : R(0);
    if (to.iterations) to.iterations[j] = off ? s.state->steps[j] : -1 - s.state->steps[j];
    if (to.relres) to.relres[j] = off ? static_cast<R>(s.state->error[j]) : R(-1);
  }
  if (off && first == 0 && to.info) *to.info = 0;
}

/* So many that their columns are still in the cache when they are read again. */
unsigned copy_blocks(const bqr_refine *r, size_t size) {
  constexpr int64_t cached = 32 << 20;
  const int64_t fit = cached / (r->m * static_cast<int64_t>(size)), most = fit > r->blocks ? fit : r->blocks;
  return static_cast<unsigned>(r->n < most ? r->n : most);
}

} // namespace

extern "C" {

size_t bqr_refine_bytes(const bqr_refine *r) {
  return for_real_type(r->type, [&](auto tag) {
    refine_task<typename decltype(tag)::type> s;
    bqr_refine sizes = *r;
    sizes.memory = nullptr;
    return refine_lay_out(sizes, &s);
  });
}

batchqr_status bqr_refine_begin(const bqr_refine *r, batchqr_stream stream) {
  return with_task(r, [&](auto s) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(s.a)>>;
    const batchqr_status status = launch_kernel(state_kernel<T>, 1, copy_threads, 0, stream, s);
    return status ? status
                  : launch_kernel(copy_kernel<T>, copy_blocks(r, sizeof(T)), copy_threads, 0, stream, s);
  });
}

batchqr_status bqr_refine_judge(const bqr_refine *r, batchqr_stream stream) {
  return launch_kernel(judge_kernel, 1, 1, 0, stream, r->state, r->m, r->n, r->k);
}

batchqr_status bqr_refine_end(const bqr_refine *r, void *c, void *norms, int *info, int *iterations,
                              void *relres, batchqr_stream stream) {
  return with_task(r, [&](auto s) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(s.a)>>;
    const outputs<T> to = {static_cast<T *>(c), static_cast<real_t<T> *>(norms),
                           static_cast<real_t<T> *>(relres), info, iterations};
    return launch_kernel(end_kernel<T>, static_cast<unsigned>((r->n - 1) / end_threads + 1), end_threads, 0,
                         stream, s, to);
  });
}

batchqr_status bqr_refine_copy_prepare(batchqr_type type) {
  return for_real_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(state_kernel<T>, 0);
    if (!status) status = prepare_kernel(copy_kernel<T>, 0);
    if (!status) status = prepare_kernel(judge_kernel, 0);
    return status ? status : prepare_kernel(end_kernel<T>, 0);
  });
}
}
