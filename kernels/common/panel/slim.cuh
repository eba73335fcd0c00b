/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of up to 8 columns in the registers of the threads that share one: some lanes of a warp, a block,
 * or a cluster of blocks, its team. A is read once and written once, and what bounds such members is memory.
 *
 * Thread t of a team of G has rows t, t + G, t + 2 G, .. of all N columns, so that adjacent threads access
 * adjacent elements whatever the alignment. G is at least N: R's rows are the first ones of the first
 * threads. A column costs one exchange: the products of the pivot column with itself and with those right of
 * it are summed over the team, and the pivot row goes to all.
 *
 * Method: xGEQR2; columns in range as in columns.cuh. */
#ifndef BQR_KERNELS_COMMON_PANEL_SLIM_CUH
#define BQR_KERNELS_COMMON_PANEL_SLIM_CUH

#include "columns.cuh"
#include "common/matrix/member.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/opaque.cuh"
#include "common/simt/block.cuh"

namespace bqr {

/* Who shares a member: lanes of a warp, a power of two, or warps of each of several blocks. */
struct slim_shape {
  int log2_lanes, warps, blocks;

  BQR_INLINE int threads() const { return warps > 0 ? warp_lanes * warps * blocks : 1 << log2_lanes; }
};

/* v[j] := the sum of v[j] over each subgroup of `lanes` lanes, j >= K, of v[K] the real part alone. A loop:
 * code that is fetched once for each member has to be short. */
template <int K, int N, class T> __device__ __forceinline__ void slim_sum(T (&v)[N], int lanes) {
#pragma unroll 1
  for (int d = lanes >> 1; d > 0; d >>= 1) {
    v[K] = make<T>(real_part(v[K]) + exchange(real_part(v[K]), d));
#pragma unroll
    for (int j = K + 1; j < N; j++) v[j] = v[j] + exchange(v[j], d);
  }
}

/* The team of some lanes, a power of two; others of the warp have members of their own, and all words are for
 * the whole warp. */
template <class T, int N> class slim_lanes {
public:
  static constexpr bool whole_blocks = false;
  static constexpr int block_threads = 128, fewest_lanes = 4;
  struct storage {
    short exponents[block_threads / fewest_lanes][N];
  };
  BQR_INLINE static constexpr size_t smem(const slim_shape &) { return sizeof(storage); }

  __device__ __forceinline__ slim_lanes(void *shared, const slim_shape &shape)
      : exponents_(static_cast<storage *>(shared)->exponents[thread_id() >> shape.log2_lanes]),
        lanes_(1 << shape.log2_lanes) {}

  /* Teams of the launch, and which one this is. */
  __device__ __forceinline__ static int64_t teams(const slim_shape &shape) {
    return static_cast<int64_t>(gridDim.x) * block_threads >> shape.log2_lanes;
  }
  __device__ __forceinline__ static int64_t number(const slim_shape &shape) {
    return (static_cast<int64_t>(blockIdx.x) * block_threads + thread_id()) >> shape.log2_lanes;
  }
  /* This thread's number in the team. */
  __device__ __forceinline__ int thread() const { return lane_id() & (lanes_ - 1); }
  /* Of each of the columns, for the team's first threads, the first of which write them. */
  __device__ __forceinline__ short *exponents() const { return exponents_; }

  /* v[j] := the sum of v[j] over the team, j >= K, of v[K] the real part alone; row[j] := that of thread K.
   */
  template <int K> __device__ __forceinline__ void sum(T (&v)[N], T (&row)[N]) const {
    slim_sum<K>(v, lanes_);
#pragma unroll
    for (int j = K; j < N; j++) row[j] = from(row[j], K);
  }
  template <int C> __device__ __forceinline__ void max(uint32_t (&u)[C]) const {
#pragma unroll 1
    for (int d = lanes_ >> 1; d > 0; d >>= 1) {
#pragma unroll
      for (int c = 0; c < C; c++) u[c] = greater(u[c], exchange(u[c], d));
    }
  }
  /* The value of thread j, for the team's first warp. */
  __device__ __forceinline__ T from(T v, int j) const {
    return broadcast(v, (lane_id() & ~(lanes_ - 1)) + j);
  }
  /* Whether a thread of the warp says so. */
  __device__ __forceinline__ bool any(bool v) const { return group_any(v); }
  /* The first of the team's first N threads that says so; -1 if none does. */
  __device__ __forceinline__ int first(bool v) const {
    const unsigned votes = __ballot_sync(full_mask, v && thread() < N) >> (lane_id() & ~(lanes_ - 1));
    return __ffs(static_cast<int>(votes & ((1u << N) - 1))) - 1;
  }

private:
  short *exponents_;
  int lanes_;
};

/* The team of all threads of a cluster's blocks. */
template <class T, int N> class slim_blocks {
public:
  static constexpr bool whole_blocks = true;
  static constexpr int block_threads = 512;
  /* Two sets of what warps offer, in turn: for each of N columns a T of each warp of the team, and a row. */
  BQR_INLINE static size_t smem(const slim_shape &shape) {
    return 2 * N * static_cast<size_t>(shape.warps * shape.blocks + 1) * sizeof(T) + N * sizeof(short);
  }

  __device__ __forceinline__ slim_blocks(void *shared, const slim_shape &shape)
      : shared_(static_cast<T *>(shared)), warps_(shape.warps * shape.blocks), blocks_(shape.blocks),
        block_(shape.blocks > 1 ? cluster_rank() : 0) {
    if (blocks_ > 1) sync(); /* all blocks are there */
  }

  __device__ __forceinline__ static int64_t teams(const slim_shape &shape) {
    return gridDim.x / shape.blocks;
  }
  __device__ __forceinline__ static int64_t number(const slim_shape &shape) {
    return blockIdx.x / shape.blocks;
  }
  __device__ __forceinline__ int thread() const { return block_ * num_threads() + thread_id(); }
  __device__ __forceinline__ short *exponents() const {
    return reinterpret_cast<short *>(shared_ + 2 * N * (warps_ + 1));
  }

  template <int K> __device__ __forceinline__ void sum(T (&v)[N], T (&row)[N]) {
    slim_sum<K>(v, warp_lanes);
    T *const offers = next_set(), *const pivots = offers + N * warps_;
#pragma unroll
    for (int j = K; j < N; j++)
      row[j] = broadcast(row[j], K); /* by all, as shuffles in branches take longer */
    if (warp() == 0 && lane_id() < blocks_) {
      T *const to = cluster_shared(pivots, lane_id());
#pragma unroll
      for (int j = K; j < N; j++) to[j] = row[j];
    }
    if (lane_id() < blocks_) {
      T *to = cluster_shared(offers + K * warps_ + warp(), lane_id());
#pragma unroll
      for (int j = K; j < N; j++, to += warps_) *to = v[j];
    }
    sync();
    const T *from = offers + K * warps_ + (lane_id() & (warps_ - 1));
#pragma unroll
    for (int j = K; j < N; j++, from += warps_) {
      row[j] = pivots[j];
      v[j] = *from;
      if (warps_ > warp_lanes) v[j] = v[j] + from[warp_lanes];
    }
    slim_sum<K>(v, least(warps_, warp_lanes));
  }
  template <int C> __device__ __forceinline__ void max(uint32_t (&u)[C]) {
    uint32_t *const offers = reinterpret_cast<uint32_t *>(next_set());
#pragma unroll
    for (int c = 0; c < C; c++) {
      u[c] = group_max(u[c]);
      if (lane_id() < blocks_) *cluster_shared(offers + c * warps_ + warp(), lane_id()) = u[c];
    }
    sync();
#pragma unroll
    for (int c = 0; c < C; c++) {
      u[c] = 0;
      for (int w = lane_id(); w < warps_; w += warp_lanes) u[c] = greater(u[c], offers[c * warps_ + w]);
      u[c] = group_max(u[c]);
    }
  }
  __device__ __forceinline__ bool any(bool v) {
    if (blocks_ == 1) return block_any(v);
    uint32_t u[1] = {v};
    max(u);
    return u[0] != 0;
  }
  /* from() and first(): of the team's first warp, and for it. */
  __device__ __forceinline__ T from(T v, int j) const { return broadcast(v, j); }
  __device__ __forceinline__ int first(bool v) const { return first_lane(v && thread() < N); }

private:
  __device__ __forceinline__ int warp() const { return block_ * num_warps() + warp_id(); }
  __device__ __forceinline__ void sync() const {
    if (blocks_ == 1)
      block_sync();
    else
      cluster_sync_unaligned();
  }
  __device__ __forceinline__ T *next_set() {
    turn_ ^= 1;
    return shared_ + turn_ * N * (warps_ + 1);
  }

  T *shared_;
  int warps_, blocks_, block_, turn_ = 0;
};

/* magnitude(), or less than one unit of the range's ends more; 0 for zeros alone. */
__device__ __forceinline__ uint32_t nonzero_magnitude(float x) { return magnitude(x); }
__device__ __forceinline__ uint32_t nonzero_magnitude(double x) {
  return magnitude(x) | (__double2loint(x) != 0 ? 1u : 0u);
}
template <class R> __device__ __forceinline__ uint32_t nonzero_magnitude(complex<R> x) {
  return greater(nonzero_magnitude(x.re), nonzero_magnitude(x.im));
}

/* A member's factorization by its team: R rows of each column in a thread. SYSTEM: behind A's columns lie
 * right-hand sides, which take its reflectors. */
template <class T, int N, int R, class TEAM, bool SYSTEM = false> class slim_qr {
  using real = real_t<T>;
  using range = column_range<real>;

public:
  /* m, n, k: of the member, k right-hand sides; most_m, most_n: of the launch. */
  __device__ __forceinline__ slim_qr(TEAM &team, int threads, int m, int n, int k, int most_m, int most_n)
      : team_(team), thread_(team.thread()), threads_(threads), m_(m), n_(n), columns_(n + k),
        reflectors_(least(m, n)), most_m_(most_m), steps_(least(most_m, most_n)) {}

  /* Where there are no elements, addresses are not read. */
  __device__ __forceinline__ void load(const T *a, int64_t row_stride, int64_t ld) {
#pragma unroll
    for (int c = 0; c < N; c++)
      load_column(x_[c], c < n_ ? m_ - thread_ : 0, a + c * ld + thread_ * row_stride, row_stride);
  }
  /* Right-hand sides, after load(). */
  __device__ __forceinline__ void load_right(const T *b, int64_t ld) {
#pragma unroll
    for (int c = 0; c < N; c++)
      if (c >= n_) load_column(x_[c], c < columns_ ? m_ - thread_ : 0, b + (c - n_) * ld + thread_, 1);
  }
  /* The first `cols` columns. */
  __device__ __forceinline__ void store(T *a, int64_t row_stride, int64_t ld, int cols) {
    opaque_here(a); /* or all addresses would be kept from the loads on */
    opaque_here(thread_);
#pragma unroll
    for (int c = 0; c < N; c++) {
      T *to = a + c * ld + thread_ * row_stride;
      opaque(to); /* or each element's address would be computed from the start */
      __builtin_assume(__isGlobal(to));
      const int rows = c < cols ? m_ - thread_ : 0;
#pragma unroll
      for (int q = 0; q < R; q++)
        if (threads_ * q < rows) to[further(q) * row_stride] = x_[c][q];
    }
  }
  __device__ __forceinline__ void store_r(T *r, int64_t row_stride, int64_t ld) const {
#pragma unroll
    for (int c = 0; c < N; c++)
      if (thread_ < reflectors_ && c < n_)
        r[thread_ * row_stride + c * ld] = thread_ > c ? zero<T>() : x_[c][0];
  }
  /* Zeros below, in all rows. */
  __device__ __forceinline__ void store_r_in_place(T *a, int64_t row_stride, int64_t ld) {
    clear(false);
    store(a, row_stride, ld, n_);
  }
  /* tau: min(m, n) elements. */
  __device__ __forceinline__ void store_tau(T *tau) const {
    if (thread_ < reflectors_) tau[thread_] = tau_;
  }

  /* Makes R and the vectors of the columns; returns info, in the team's first threads. */
  __device__ __forceinline__ int factor(bool positive) {
    bring_into_range();
    reflect_all(positive, std::make_integer_sequence<int, N>{});
    if (!SYSTEM && group_any(scaled_)) bring_back();
    int zero = 0; /* no branches, behind which the compiler would choose among addresses of x_ */
#pragma unroll
    for (int j = 0; j < N; j++) zero |= (thread_ == j) & is_zero(x_[j][0]);
    const int zero_column = team_.first(zero != 0 && thread_ < reflectors_) + 1;
    return finite_ ? zero_column : BATCHQR_INFO_NONFINITE;
  }

  /* After factor(), with right-hand sides: their first n rows become X, in range, and are stored. */
  __device__ __forceinline__ void solve(T *b, int64_t ld) {
    if (TEAM::whole_blocks && thread_ >= warp_lanes) return;
    solve_all(std::make_integer_sequence<int, N>{});
    if (group_any(scaled_)) bring_solution_back();
#pragma unroll
    for (int c = 0; c < N; c++)
      if (thread_ < n_ && c >= n_ && c < columns_) b[thread_ + (c - n_) * ld] = x_[c][0];
  }
  /* Likewise, before that: the norms of what is left of the right-hand sides; NaN where they are not `known`.
   */
  __device__ __forceinline__ void store_norms(real *norms, bool known) {
    T squares[N], unused[N] = {};
#pragma unroll
    for (int c = 0; c < N; c++) {
      real ss = thread_ >= n_ ? abs2(x_[c][0]) : real(0);
#pragma unroll
      for (int q = 1; q < R; q++) ss = abs2_add(x_[c][q], ss);
      squares[c] = make<T>(ss);
    }
    team_.template sum<0>(squares, unused);
    warp_sync();
#pragma unroll
    for (int c = 0; c < N; c++)
      if (thread_ == c && c >= n_ && c < columns_) {
        const int exponent = scaled_ ? team_.exponents()[c] : 0;
        norms[c - n_] = known ? sqrt(real_part(squares[c])) * exponent_scale<real>(-exponent)
                              : static_cast<real>(nan(""));
      }
  }

  /* After factor() the thin Q takes the place of R and the vectors, as in xORG2R. */
  __device__ __forceinline__ void form_q() {
    clear(true);
    expand_all(std::make_integer_sequence<int, N>{});
  }

private:
  /* How many rows after its first one a thread has row q; unsigned, or addresses would take its sign. */
  __device__ __forceinline__ int64_t further(int q) const { return static_cast<uint32_t>(threads_ * q); }

  /* This thread's rows of a column of which `rows` are left from the first of them on. */
  __device__ __forceinline__ void load_column(T (&x)[R], int rows, const T *from, int64_t row_stride) const {
    opaque(from);
    __builtin_assume(__isGlobal(from));
#pragma unroll
    for (int q = 0; q < R; q++) x[q] = threads_ * q < rows ? from[further(q) * row_stride] : zero<T>();
  }
  /* Zeros on and above the diagonal, or below it. */
  __device__ __forceinline__ void clear(bool upper) {
#pragma unroll
    for (int c = 0; c < N; c++) {
      if (upper == (thread_ <= c)) x_[c][0] = zero<T>();
#pragma unroll
      for (int q = 1; q < R; q++)
        if (!upper) x_[c][q] = zero<T>();
    }
  }
  /* Whether any member of the launch has such rows; asked four rows at a time. */
  __device__ __forceinline__ bool is_used(int q) const { return threads_ * (q & ~3) < most_m_; }

  /* Columns out of range get their scale. */
  __device__ __forceinline__ void bring_into_range() {
    uint32_t most = 0, fewest = ~0u; /* of entries that are not zero, the latter less 1 */
#pragma unroll
    for (int q = 0; q < R; q++)
      if (is_used(q)) {
#pragma unroll
        for (int c = 0; c < N; c++) {
          const uint32_t u = nonzero_magnitude(x_[c][q]);
          most = greater(most, u);
          fewest = u - 1 < fewest ? u - 1 : fewest;
        }
      }
    if (!team_.any(most >= range::hi || fewest < range::lo - 1)) return;
    uint32_t u[N];
#pragma unroll
    for (int c = 0; c < N; c++) {
      u[c] = 0;
#pragma unroll
      for (int q = 0; q < R; q++) u[c] = greater(u[c], magnitude(x_[c][q]));
    }
    team_.max(u);
#pragma unroll
    for (int c = 0; c < N; c++) {
      const int exponent = column_exponent<T>(u[c]);
      finite_ &= magnitude_finite<T>(u[c]);
      scaled_ |= exponent != 0;
      if (thread_ == c) team_.exponents()[c] = static_cast<short>(exponent);
#pragma unroll
      for (int q = 0; q < R; q++) x_[c][q] = scaled(x_[c][q], exponent_scale<real>(exponent));
    }
  }

  /* Takes the scales out of R. */
  __device__ __forceinline__ void bring_back() {
    warp_sync();
#pragma unroll
    for (int j = 0; j < N; j++)
      if (scaled_ && thread_ <= j) x_[j][0] = scaled(x_[j][0], exponent_scale<real>(-team_.exponents()[j]));
  }

  template <int... J> __device__ __forceinline__ void solve_all(std::integer_sequence<int, J...>) {
    ((N - 1 - J < steps_ ? substitute<N - 1 - J>() : void()), ...);
  }
  /* Unknown J of each right-hand side, and what the equations above it lose by it. */
  template <int J> __device__ __forceinline__ void substitute() {
#pragma unroll
    for (int c = J + 1; c < N; c++) {
      T quotient = x_[c][0];
      const real d = real_part(x_[J][0]);
      if constexpr (is_complex<T>)
        quotient = {quotient.re / d, quotient.im / d};
      else
        quotient = quotient / d;
      const T known = team_.from(quotient, J);
      if (J < n_ && c >= n_)
        x_[c][0] = thread_ == J ? known : thread_ < J ? madd(-known, x_[J][0], x_[c][0]) : x_[c][0];
    }
  }
  __device__ __forceinline__ void bring_solution_back() {
    warp_sync();
    if (!scaled_ || thread_ >= n_) return;
#pragma unroll
    for (int c = 0; c < N; c++)
      if (c >= n_) { /* 2^e may be out of range */
        const int e = team_.exponents()[thread_] - team_.exponents()[c], half = e / 2;
        x_[c][0] = scaled(scaled(x_[c][0], exponent_scale<real>(half)), exponent_scale<real>(e - half));
      }
  }

  /* This thread's part of the products of column K, below the diagonal, with itself and those to the right;
   * and its first row. */
  template <int K> __device__ __forceinline__ void multiply(T (&dot)[N], T (&pivot)[N]) const {
    const T first = thread_ > K ? x_[K][0] : zero<T>();
    real ss = abs2(first);
#pragma unroll
    for (int j = K; j < N; j++) {
      dot[j] = cmadd(first, x_[j][0], zero<T>());
      pivot[j] = x_[j][0];
    }
#pragma unroll
    for (int q = 1; q < R; q++)
      if (is_used(q)) {
        ss = abs2_add(x_[K][q], ss);
#pragma unroll
        for (int j = K + 1; j < N; j++) dot[j] = cmadd(x_[K][q], x_[j][q], dot[j]);
      }
    dot[K] = make<T>(ss);
  }

  template <int... K>
  __device__ __forceinline__ void reflect_all(bool positive, std::integer_sequence<int, K...>) {
    ((K < steps_ ? reflect<K>(positive) : void()), ...);
  }

  /* Step K of xGEQR2: column K becomes its vector, the ones to the right take its reflector. */
  template <int K> __device__ __forceinline__ void reflect(bool positive) {
    T dot[N], pivot[N];
    multiply<K>(dot, pivot);
    team_.template sum<K>(dot, pivot);
    column_reflector<T> h = larfg_in_range(pivot[K], real_part(dot[K]), positive);
    if (thread_ == K) tau_ = h.tau;
    const bool skipped = SYSTEM && K >= n_;
    if (skipped) h = {zero<T>(), zero<T>(), real(0)};
    T w[N];
#pragma unroll
    for (int j = K + 1; j < N; j++) w[j] = -(conj(h.tau) * cmadd(h.scale, dot[j], pivot[j]));
#pragma unroll
    for (int q = 0; q < R; q++)
      if (is_used(q)) {
        const bool below = q > 0 || thread_ > K;
        const T v = below ? x_[K][q] * h.scale : thread_ == K ? one<T>() : zero<T>();
        if (!skipped) x_[K][q] = below ? v : thread_ == K ? make<T>(h.beta) : x_[K][q];
#pragma unroll
        for (int j = K + 1; j < N; j++) x_[j][q] = madd(w[j], v, x_[j][q]);
      }
  }

  template <int... K> __device__ __forceinline__ void expand_all(std::integer_sequence<int, K...>) {
    ((N - 1 - K < steps_ ? expand<N - 1 - K>() : void()), ...);
  }

  /* Step K of xORG2R: the columns to the right take reflector K, and column K becomes that of Q. */
  template <int K> __device__ __forceinline__ void expand() {
    T dot[N], pivot[N];
    multiply<K>(dot, pivot);
    pivot[K] = tau_;
    team_.template sum<K>(dot, pivot);
    const T tau = pivot[K];
    T w[N];
#pragma unroll
    for (int j = K + 1; j < N; j++) w[j] = -(tau * (pivot[j] + dot[j]));
#pragma unroll
    for (int q = 0; q < R; q++)
      if (is_used(q)) {
        const bool below = q > 0 || thread_ > K;
        const T v = below ? x_[K][q] : thread_ == K ? one<T>() : zero<T>();
        x_[K][q] = (q == 0 && thread_ == K ? one<T>() : zero<T>()) - tau * v;
#pragma unroll
        for (int j = K + 1; j < N; j++) x_[j][q] = madd(w[j], v, x_[j][q]);
      }
  }

  TEAM &team_;
  int thread_, threads_, m_, n_, columns_, reflectors_;
  int most_m_, steps_;
  T x_[N][R];
  T tau_ = zero<T>(); /* number thread_ */
  bool finite_ = true, scaled_ = false;
};

} // namespace bqr

#endif
