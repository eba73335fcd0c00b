/* SPDX-License-Identifier: BSD-3-Clause */
/* Z := Q Z. Block reflectors are made for some groups of sweeps, and applied, until there are no more: in a
 * group by hops from the first on, groups from the last one on. Sweep j + 1 is to be applied before sweep j,
 * whose reflectors at hops h and h + 1 share rows with that of sweep j + 1 at hop h, and with no other later
 * one: so all of a group's at hop h may come before those at hop h + 1. */
#include "band.h"
#include "half_window.cuh"
#include "layout.cuh"
#include "tile_window.cuh"
#include "common/matrix/view.cuh"
#include "common/simt/launch_cluster.cuh"

namespace {
using namespace bqr;

template <class T> struct back_args {
  int n, group, groups; /* the groups group, ..., group + groups - 1 */
  const T *v, *tau;
  char *blocks;
};

template <class S> using form_memory = form_shared<typename S::type, S::width, S::sweeps>;

/* blockIdx: hop, group. */
template <class S>
__global__ void __launch_bounds__(form_threads)
    form_kernel(const __grid_constant__ back_args<typename S::type> p) {
  using T = typename S::type;
  constexpr int B = S::width, K = S::sweeps;
  form_memory<S> &s = *shared_memory<form_memory<S>>();
  const int h = static_cast<int>(blockIdx.x), first = (p.group + static_cast<int>(blockIdx.y)) * K;
  if (first + h * B >= p.n) return;
  const int64_t at = reflector_storage<B>::before(p.n, h) + first;
  const int last = p.n - h * B; /* of the sweeps' numbers at this hop */
  for (int e = thread_id(); e < K * B; e += form_threads) {
    const int l = e / B, number = first + l;
    s.v[l][e % B] = number > 0 && number < last ? p.v[at * B + e] : zero<T>();
  }
  if (thread_id() < K) {
    const int number = first + thread_id();
    s.tau[thread_id()] = number > 0 && number < last ? p.tau[at + thread_id()] : zero<T>();
  }
  block_sync();
  /* v_i^H v_j, i < j */
  for (int e = thread_id(); e < K * K; e += form_threads) {
    const int i = e % K, j = e / K;
    s.t[i][j] = s.gram[i][j] = zero<T>();
    if (i >= j) continue;
    T sum[2] = {zero<T>(), zero<T>()};
    const T *a = s.v[i] + (j - i), *b = s.v[j];
    const int length = B - (j - i);
    int r = 0;
    for (; r + 1 < length; r += 2) {
      sum[0] = cmadd(a[r], b[r], sum[0]);
      sum[1] = cmadd(a[r + 1], b[r + 1], sum[1]);
    }
    if (r < length) sum[0] = cmadd(a[r], b[r], sum[0]);
    s.gram[i][j] = sum[0] + sum[1];
  }
  block_sync();
  if (thread_id() < K) { /* a row of T, which no other one needs */
    constexpr int step = 8;
    T *row = s.t[thread_id()];
    for (int j = 0; j < K; j++) {
      T sum[step] = {};
      for (int l = 0; l < j; l += step)
#pragma unroll
        for (int k = 0; k < step; k++) sum[k] = madd(row[l + k], s.gram[l + k][j], sum[k]);
#pragma unroll
      for (int d = step / 2; d > 0; d /= 2)
#pragma unroll
        for (int k = 0; k < d; k++) sum[k] = sum[k] + sum[k + d];
      if (thread_id() <= j) row[j] = thread_id() < j ? -(s.tau[j] * sum[0]) : s.tau[j];
    }
  }
  block_sync();
  S::store(s,
           p.blocks + (static_cast<int64_t>(blockIdx.y) * static_cast<int64_t>(gridDim.x) + h) * S::bytes());
}

template <class S> size_t back_scratch_bytes(int n) {
  const int groups = S::groups(n) < S::at_once ? S::groups(n) : S::at_once;
  return static_cast<size_t>(groups) * static_cast<size_t>(S::hops(n)) * S::bytes();
}

/* A round: each stage has a group, the first one the highest, and takes the rows that change from the stage
 * before, a hop behind it. */
template <class S, int STAGES>
__global__ void __launch_bounds__(back_shared<S, STAGES>::most_warps *warp_lanes, 1)
    back_kernel(const __grid_constant__ back_args<typename S::type> p, typename S::type *z, int64_t ldz,
                int64_t cols) {
  using T = typename S::type;
  using shape = S;
  using shared = back_shared<S, STAGES>;
  constexpr int B = S::width;
  constexpr int stages = STAGES;
  shared &s = *shared_memory<shared>();
  const int teams = num_warps() / stages, stage = warp_id() / teams, team = warp_id() % teams;
  if (thread_id() == 0) {
    for (int i = 0; i < stages * shared::buffers; i++) {
      s.v_there[i / shared::buffers][i % shared::buffers].init(1);
      s.y_there[i / shared::buffers][i % shared::buffers].init(1);
    }
    for (int i = 0; i < shared::most_warps; i++) {
      s.full[i].init(warp_lanes);
      s.empty[i].init(warp_lanes);
    }
    mbarrier_init_fence();
  }
  block_sync();
  back_window<S, STAGES> window(s, p.n, z, ldz, (int64_t(blockIdx.x) * teams + team) * shape::columns, cols);
  const int stride = shape::hops(p.n), after = warp_id() + teams;
  const bool leader = team == 0 && lane_id() == 0;
  auto hops_of = [&](int g) { return static_cast<int>((p.n - int64_t(g) * shape::sweeps + B - 1) / B); };
  /* Places of the stage, one after another, and what comes to each. */
  struct place {
    int group, hop;
  };
  auto behind = [&](place at) {
    return at.hop + 1 < hops_of(at.group) ? place{at.group, at.hop + 1} : place{at.group - stages, 0};
  };
  auto copy = [&](bool y, int buffer, place at) {
    if (at.group < p.group) return;
    const char *from = p.blocks + (static_cast<int64_t>(at.group - p.group) * stride + at.hop) *
                                      static_cast<int64_t>(shape::bytes());
    phase_barrier &there = y ? s.y_there[stage][buffer] : s.v_there[stage][buffer];
    there.arrive_before_bytes(y ? shape::y_bytes() : shape::v_bytes());
    if (y)
      there.copy_bulk(s.y[stage][buffer], from + shape::v_bytes(), shape::y_bytes());
    else
      there.copy_bulk(s.v[stage][buffer], from, shape::v_bytes());
  };
  auto sync_stage = [&] { named_sync(1 + stage, teams * warp_lanes); };
  const int top = p.group + p.groups - 1;
  place coming = {top - stage, 0}; /* to the place that is free next */
  for (int i = 0; i < shared::buffers; i++) {
    if (leader) {
      copy(false, i, coming);
      copy(true, i, coming);
    }
    if (coming.group >= p.group) coming = behind(coming);
  }
  uint32_t taken = 0, given = 0;
  int position = 0;
  for (int g = top - stage; g + stage >= p.group; g -= stages) {
    if (g >= p.group) {
      const bool first = stage == 0, last = stage == stages - 1 || g == p.group;
      const int64_t row = int64_t(g) * shape::sweeps;
      const int hops = hops_of(g), come = first ? hops : hops_of(g + 1);
      if (first) window.prefetch(row + shape::sweeps);
      window.load(row);
      for (int h = 0; h < hops; h++, position++) {
        const bool more = h + 1 < hops;
        const int buffer = position % shared::buffers;
        const uint32_t parity = static_cast<uint32_t>(position / shared::buffers & 1);
        if (first) {
          copy_async_wait();
          window.move(false);
          if (more) window.prefetch(row + int64_t(h + 1) * B + shape::sweeps);
        } else {
          if (h < come) s.full[warp_id()].wait(taken);
          window.move(h >= come);
          if (h < come) {
            s.empty[warp_id()].arrive();
            taken ^= 1;
          }
        }
        typename back_window<S, STAGES>::projection w;
        s.v_there[stage][buffer].wait(parity);
        window.project(w, s.v[stage][buffer]);
        sync_stage();
        if (leader) copy(false, buffer, coming);
        s.y_there[stage][buffer].wait(parity);
        window.update(w, s.y[stage][buffer]);
        sync_stage();
        if (leader) copy(true, buffer, coming);
        if (coming.group >= p.group) coming = behind(coming);
        if (last) {
          window.store(row + int64_t(h) * B, g == 0);
        } else {
          s.empty[after].wait(given ^ 1);
          window.hand_over(s.next[after]);
          s.full[after].arrive();
          given ^= 1;
        }
      }
    }
    block_sync(); /* what the last stage has stored is the first one's */
  }
}

/* Columns of a block, in warps': a wave of blocks takes about as long as one warp more. */
template <class S> int teams_for(int64_t cols) {
  constexpr int step = S::together, most = back_shared<S, S::stages_of_many>::most_teams;
  const int64_t warps = (cols + S::columns - 1) / S::columns,
                sms = device_attribute(cudaDevAttrMultiProcessorCount);
  int best = step;
  int64_t least = 0;
  for (int teams = step; teams <= most; teams += step) {
    const int64_t blocks = (warps + teams - 1) / teams, time = (blocks + sms - 1) / sms * (teams + 1);
    if (teams == step || time < least) least = time, best = teams;
  }
  return best;
}

/* f(integral_constant of stages) */
template <class S, class F> batchqr_status with_stages(int teams, F &&f) {
  constexpr int few = S::stages_of_few, many = S::stages_of_many;
  return for_value<few, many>(teams <= back_shared<S, few>::most_teams ? few : many, static_cast<F &&>(f));
}

/* f(the shape of block reflectors) */
template <class F> batchqr_status for_shape(batchqr_type type, int width, F &&f) {
  const bool halves = 10 * device_attribute(cudaDevAttrComputeCapabilityMajor) +
                          device_attribute(cudaDevAttrComputeCapabilityMinor) ==
                      90;
  return for_band(type, width, [&](auto tag, auto b) {
    using T = typename decltype(tag)::type;
    constexpr int B = decltype(b)::value;
    if constexpr (std::is_same_v<T, float>) {
      if (halves) return f(half_shape<B>{});
    }
    return f(tile_shape<T, B>{});
  });
}
} // namespace

extern "C" {

batchqr_status bqr_band_back(batchqr_type type, int n, int width, void *memory, int64_t cols, void *z,
                             int64_t ldz, batchqr_stream stream) {
  if (n < 2 || cols == 0) return BATCHQR_SUCCESS;
  return for_shape(type, width, [&](auto kind) {
    using shape = decltype(kind);
    using T = typename shape::type;
    const band_memory<T, shape::width> m(memory, n, true, 0);
    const int teams = teams_for<shape>(cols);
    const int64_t of_block = shape::columns * teams;
    batchqr_status status = BATCHQR_SUCCESS;
    for (int end = shape::groups(n); end > 0 && !status; end -= shape::at_once) {
      const int group = end < shape::at_once ? 0 : end - shape::at_once, groups = end - group;
      const back_args<T> p = {n, group, groups, m.v, m.tau, static_cast<char *>(m.scratch)};
      status = launch_kernel(form_kernel<shape>,
                             dim3(static_cast<unsigned>(shape::hops(n)), static_cast<unsigned>(groups)),
                             form_threads, sizeof(form_memory<shape>), stream, p);
      if (!status)
        status = with_stages<shape>(teams, [&](auto stages) {
          constexpr int S = decltype(stages)::value;
          const int warps = teams * S;
          return launch_kernel(back_kernel<shape, S>, dim3(grid_for((cols + of_block - 1) / of_block)),
                               warps * warp_lanes, back_shared<shape, S>::bytes(warps), stream, p,
                               static_cast<T *>(z), ldz, cols);
        });
    }
    return status;
  });
}

batchqr_status bqr_band_prepare_back(batchqr_type type, int width) {
  return for_shape(type, width, [&](auto kind) {
    using shape = decltype(kind);
    batchqr_status status = prepare_kernel(form_kernel<shape>, sizeof(form_memory<shape>));
    for (const int teams : {1, 4})
      if (!status)
        status = with_stages<shape>(teams, [](auto stages) {
          using shared = back_shared<shape, decltype(stages)::value>;
          return prepare_kernel(back_kernel<shape, shared::stages>, shared::bytes(shared::most_warps));
        });
    return status;
  });
}

size_t bqr_band_back_bytes(batchqr_type type, int width, int n) {
  return for_band(type, width, [&](auto tag, auto b) {
    using T = typename decltype(tag)::type;
    constexpr int B = decltype(b)::value;
    const size_t bytes = back_scratch_bytes<tile_shape<T, B>>(n),
                 halves = back_scratch_bytes<half_shape<B>>(n);
    return std::is_same_v<T, float> && halves > bytes ? halves : bytes;
  });
}
}
