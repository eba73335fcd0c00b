/* SPDX-License-Identifier: BSD-3-Clause */
/* gesvd_solved: a block for each member, which is held in registers throughout.
 *
 * Of A or, where that is wide, of A^H, p x q: A P1 = Q1 R1 and R1^H P2 = Q2 R2, both with pivoting, and
 * one-sided Jacobi on the columns of R2: R2 J = W S, hence A = (Q1 P2 J) S (P1 Q2 W)^H. J is not accumulated
 * while columns are rotated, which would be two thirds more work and twice the registers, but solved for
 * afterwards (Drmac and Veselic 2008). That is as accurate as R2 is well conditioned once its rows are
 * divided by their lengths: two factorizations with pivoting leave it so, Kahan's matrix included, of which
 * R1^H is not. Vectors of Q1 and Q2 are kept in A's memory, R2 and W meanwhile in that of the results. */
#include "common/panel/held_qr.cuh"
#include "common/panel/triplets.cuh"
#include "common/simt/slots.cuh"
#include "line_jacobi.cuh"
#include "strips.cuh"

namespace bqr {
namespace {

/* Members of up to WIDTH columns and rows. ROWS: those that a lane has of one column in QR, SHARE: lanes of a
 * squad of line_jacobi, BLOCKS: that a multiprocessor has registers for. */
template <class T, int WIDTH, int ROWS, int SHARE, int BLOCKS> struct way {
  static constexpr int rows = ROWS, blocks = BLOCKS;
  static constexpr int qr_threads = ((WIDTH - 1) / ROWS + 1) * ((WIDTH - 1) / warp_lanes + 1) * warp_lanes,
                       jacobi_threads = WIDTH / 4 * SHARE;
  static constexpr int threads = qr_threads > jacobi_threads ? qr_threads : jacobi_threads;
  using jacobi = line_jacobi<T, WIDTH, SHARE, false>;
};

/* The places of a member of up to p x q, p >= q, in shared memory. Jacobi's space is where the matrix and
 * what is behind it were. */
template <class T, class WAY> struct layout {
  int ld;
  size_t work, pivots[2], coefficients, values, places, bytes;

  BQR_INLINE layout(int p, int q) {
    const size_t cols = static_cast<size_t>(q), n = cols + 1;
    ld = p | 1;
    const int of_column = largest(ld, strips<T, WAY::rows>::ld(p));
    work = (sizeof(T) * static_cast<size_t>(of_column) * cols + 15) / 16 * 16;
    const size_t after = work + held_space<T>::bytes(p, q, WAY::rows),
                 space = (sizeof(T) * static_cast<size_t>(WAY::jacobi::space) + 15) / 16 * 16;
    pivots[0] = after > space ? after : space;
    pivots[1] = pivots[0] + pivoting<T>::bytes(q);
    coefficients = pivots[1] + pivoting<T>::bytes(q);
    values = coefficients + n * sizeof(T);
    places = values + n * sizeof(real_t<T>);
    bytes = places + n * sizeof(int);
  }
};

template <class T, class WAY> class gesvd {
  using R = real_t<T>;
  static constexpr int rows = WAY::rows;
  using column = held_column<T, rows>;

public:
  /* memory: of the block's own in the workspace. */
  __device__ gesvd(const bqr_args &args, const member &x, T *memory, const layout<T, WAY> &places)
      : args_(args), x_(x), turned_(x.m < x.n), p_(largest(x.m, x.n)), q_(least(x.m, x.n)), places_(places),
        squad_(make_squad(squad_lanes(q_, 8))), kept_{memory, p_, p_, q_}, r2_{memory + p_ * q_, q_, q_, q_},
        w_{r2_.data + q_ * q_, q_, q_, q_},
        out_(args, x, squad_, in_shared<R>(places.values), in_shared<int>(places.places)) {}

  __device__ int run() {
    if (q_ == 0) {
      out_.set_rank(0);
      return 0;
    }
    const matrix_view<T> whole{matrix_data<T>(args_, args_.a, x_.id), matrix_ld(args_.a, x_.id), x_.m, x_.n};
    left_ = output(turned_ ? args_.v : args_.u, p_);
    right_ = output(turned_ ? args_.u : args_.v, q_);
    uint32_t u = 0;
    for_each(whole, [&](const T &x, int, int) { u = greater(u, magnitude_or_one(x)); });
    u = block_max(word(), u);
    if (!magnitude_finite<T>(u)) {
      out_.set_nonfinite();
      return BATCHQR_INFO_NONFINITE;
    }
    const int exponent = u ? exponent_to<T>(u, span<R>::top) : 0;
    const R half = times_power(R(1), exponent / 2), rest = times_power(R(1), exponent - exponent / 2);
    const matrix_view<T> to = shared(p_, q_);
    for_each(whole, [&](const T &x, int i, int j) {
      const T y = scaled(scaled(x, half), rest);
      *(turned_ ? to.at(j, i) : to.at(i, j)) = turned_ ? conj(y) : y;
    });
    block_sync();
    const int rank = factor_twice(exponent);
    const bool converged = rotate(rank);
    out_.store_values(exponent);
    if (left_.data || right_.data) {
      complete(rank);
      if (left_.data) make_left(rank);
      if (right_.data) make_right(rank);
      sign_columns();
    }
    return converged ? 0 : 1;
  }

private:
  __device__ matrix_view<T> output(const bqr_matrix &x, int m) const {
    return {x.data ? matrix_data<T>(args_, x, x_.id) : nullptr, x.data ? matrix_ld(x, x_.id) : 0, m, q_};
  }
  /* Shared memory is asked for where it is used, in functions that are not inlined too: the compiler knows
   * then what memory it is. */
  template <class V> static __device__ __forceinline__ V *in_shared(size_t place) {
    return reinterpret_cast<V *>(shared_memory<unsigned char>() + 16 + place);
  }
  static __device__ __forceinline__ uint32_t *word() { return shared_memory<uint32_t>(); }
  __device__ __forceinline__ matrix_view<T> shared(int m, int n) const {
    return {in_shared<T>(0), places_.ld, m, n};
  }
  __device__ __forceinline__ held_space<T> space() const {
    return held_space<T>::at(in_shared<unsigned char>(places_.work), p_, q_, rows);
  }
  __device__ __forceinline__ pivoting<T> pivots(int which) const {
    return pivoting<T>::at(in_shared<unsigned char>(places_.pivots[which]), q_);
  }
  __device__ __forceinline__ T *coefficients() const { return in_shared<T>(places_.coefficients); }
  __device__ __forceinline__ R *values() const { return in_shared<R>(places_.values); }
  __device__ __forceinline__ void complete(int rank) const {
    complete_columns(squad_, shared(rank, rank), values(), coefficients(), pivots(0).norms[0]);
  }

  /* Of what is in shared memory, m x n. */
  __device__ __noinline__ int factor(int m, int n, int which, int exponent) const {
    held_qr<T, rows, false> qr(shared(m, n), pivots(which), space(), word());
    return qr.factor(n, 0, 0, exponent, false);
  }

  /* What is in shared memory becomes from(i, j), m x n; all is read before any is written. */
  template <class F> __device__ __forceinline__ void replace(int m, int n, F &&from) const {
    column y(m, n);
    y.fill([&](int i) { return from(i, y.column()); });
    block_sync();
    const matrix_view<T> to = shared(m, n);
    y.drain([&](int i, const T &x) { *to.at(i, y.column()) = x; });
    block_sync();
  }

  /* R2 in shared memory, and in r2_; in kept_ vectors: below its diagonal those of Q1, above it, lying, those
   * of Q2. Returns the order of R2. */
  __device__ int factor_twice(int exponent) const {
    const matrix_view<T> x = shared(p_, q_);
    const pivoting<T> first = pivots(0), second = pivots(1);
    const int rank = factor(p_, q_, 0, exponent);
    if (left_.data) keep_vectors(first, rank, p_, [&](int i, int j, const T &v) { *kept_.at(i, j) = v; });
    replace(q_, rank, [&](int i, int j) {
      return i > j ? conj(*x.at(j, first.order[i])) : make<T>(i == j ? first.diagonal[j] : R(0));
    });
    /* Where a row of R2 is too short to be worked with, that is 0, though none of R1 was. It gets a diagonal
     * element that is long enough. */
    const int same = factor(q_, rank, 1, exponent);
    constexpr R least = sizeof(R) == 4 ? R(0x1p-39) : R(0x1p-344); /* the root of span::least2, twice */
    if (right_.data) keep_vectors(second, same, q_, [&](int i, int j, const T &v) { *kept_.at(j, i) = v; });
    replace(rank, rank, [&](int i, int j) {
      if (i >= same || i > j) return make<T>(i == j ? least : R(0));
      return i == j ? make<T>(second.diagonal[j]) : *x.at(i, second.order[j]);
    });
    for (int j = same + thread_id(); j < rank; j += num_threads()) { /* H = I, of a vector that is finite */
      second.tau[j] = zero<T>();
      for (int i = j + 1; i < q_ && right_.data; i++) *kept_.at(j, i) = zero<T>();
    }
    if (left_.data) copy_upper(shared(rank, rank), r2_);
    return rank;
  }
  template <class F>
  __device__ __forceinline__ void keep_vectors(const pivoting<T> &pivots, int rank, int m, F &&put) const {
    const matrix_view<T> from = shared(m, q_);
    for_columns(squad_, rank, [&](int j) {
      if (j < 0) return;
      const T *x = from.at(0, pivots.order[j]), scale = pivots.scale[j];
      for (int i = squad_row(squad_, j + 1); i < m; i += squad_.lanes) put(i, j, x[i] * scale);
    });
  }
  static __device__ __forceinline__ void copy_upper(const matrix_view<T> &from, const matrix_view<T> &to) {
    for_each(from, [&](const T &x, int i, int j) {
      if (i <= j) *to.at(i, j) = x;
    });
  }

  /* Values, their places, and W in shared memory. */
  __device__ __noinline__ bool rotate(int rank) const {
    block_sync();
    typename WAY::jacobi jacobi(shared(rank, rank), in_shared<T>(0), true);
    const bool converged = jacobi.run();
    jacobi.store(shared(rank, rank), shared(rank, rank), values());
    for (int j = rank + thread_id(); j < q_; j += num_threads()) values()[j] = 0;
    block_sync();
    out_.order_values();
    block_sync();
    return converged;
  }

  /* left_ := Q1 P2 J, columns in the order of their values. W is in w_ meanwhile. */
  __device__ void make_left(int rank) const {
    if (right_.data) copy_matrix(shared(rank, rank), w_);
    solve(rank);
    complete(rank);
    apply_q(0, p_, rank);
    store_columns(shared(p_, q_), left_);
    if (right_.data) copy_matrix(w_.part(0, 0, rank, rank), shared(rank, rank));
    block_sync();
  }
  /* right_ := P1 Q2 W, likewise. */
  __device__ void make_right(int rank) const {
    apply_q(1, q_, rank);
    store_columns(shared(q_, q_), right_);
  }
  __device__ __forceinline__ void store_columns(const matrix_view<T> &from, const matrix_view<T> &to) const {
    const int *place = in_shared<int>(places_.places);
    for_each(from, [&](const T &x, int i, int j) { *to.at(i, place[j]) = x; });
    block_sync();
  }

  /* Shared memory := P2 J. W S is solved from its last row on, R2 being in strips. Rows of J take the places
   * of those columns of R2 that are done with. */
  __device__ __noinline__ void solve(int rank) const {
    const matrix_view<T> square = shared(rank, rank);
    const strips<T, rows> r2(in_shared<T>(0), rank);
    const pivoting<T> second = pivots(1);
    T *const recips = coefficients();
    const R *const lengths = values();
    const int warps = r2.warps, warp = warp_id() % warps, col = warp_id() / warps * warp_lanes + lane_id();
    const bool there = col < rank;
    T x[rows];
#pragma unroll
    for (int e = 0; e < rows; e++) {
      const int k = e * warps + warp;
      x[e] = there && k < rank ? scaled(*square.at(k, col), lengths[col]) : zero<T>();
    }
    block_sync();
    for (int j = warp_id(); j < rank; j += num_warps())
      for (int place = lane_id(); place < r2.places(); place += warp_lanes)
        r2.column(j)[place] = r2.row(place) < j ? *r2_.at(r2.row(place), j) : zero<T>();
    for (int i = thread_id(); i < rank; i += num_threads()) {
      recips[i] = make<T>(R(1) / real_part(*r2_.at(i, i)));
      second.exponent[second.order[i]] = i;
    }
    block_sync();
    T *const rows_of_j = in_shared<T>(places_.work);
    T mine = zero<T>();
    bool was_mine = false;
    static_for<rows / held_group>([&](auto g) {
      constexpr int base = rows - (decltype(g)::value + 1) * held_group, last = base + held_group - 1;
#pragma unroll 1
      for (int e = last; e >= base; e--) { /* whose row x[last] has */
#pragma unroll 1
        for (int turn = warps - 1; turn >= 0; turn--) {
          const int i = e * warps + turn;
          if (i >= rank) continue;
          T *const row = rows_of_j + (i & 1) * q_;
          const T before = mine;
          const bool is_mine = there && warp == turn;
          if (is_mine) row[col] = mine = scaled(x[last], real_part(recips[i]));
          block_sync();
          if (was_mine) r2.column(i + 1)[col] = before;
          was_mine = is_mine;
          if (there) r2.template subtract<base>(x, r2.part(i, warp), e - last, warp < turn, row[col]);
        }
#pragma unroll
        for (int k = last; k > base; k--) x[k] = x[k - 1];
      }
    });
    block_sync();
    if (was_mine) r2.column(0)[col] = mine;
    block_sync();
    replace(rank, rank, [&](int i, int j) { return r2.column(second.exponent[i])[j]; });
  }
  /* Shared memory := Q1 [what is there, 0; 0, I], or P1 Q2 [the same], m x q. */
  __device__ __noinline__ void apply_q(int which, int m, int rank) const {
    const matrix_view<T> x = shared(m, q_);
    const strips<T, rows> vectors(in_shared<T>(0), m);
    const T *const tau = pivots(which).tau;
    const int *const order = pivots(0).order;
    const int warps = vectors.warps, warp = warp_id() % warps,
              col = warp_id() / warps * warp_lanes + lane_id();
    const bool there = col < q_;
    T y[rows];
#pragma unroll
    for (int e = 0; e < rows; e++) {
      const int i = e * warps + warp;
      y[e] = there && i < rank && col < rank ? *x.at(i, col) : there && i == col ? one<T>() : zero<T>();
    }
    block_sync();
    load_vectors(which, vectors, m, rank);
    block_sync();
    T *const dots = space().dots;
#pragma unroll 1
    for (int j = rank - 1; j >= 0; j--) {
      const T *const v = vectors.part(j, warp);
      T *const mine = dots + (j & 1) * warps * q_;
      T dot = vectors.dot(y, v, warp, j);
      if (warps > 1) {
        if (there) mine[warp * q_ + col] = dot;
        block_sync();
        dot = zero<T>();
        for (int i = 0; i < warps && there; i++) dot = dot + mine[i * q_ + col];
      }
      vectors.add(y, v, -(tau[j] * dot), warp, j);
    }
    block_sync();
#pragma unroll
    for (int e = 0; e < rows; e++) {
      const int i = e * warps + warp;
      if (there && i < m) *x.at(which == 0 ? i : order[i], col) = y[e];
    }
    block_sync();
  }

  /* A lane for a row of Q1's vectors, or for one of Q2's, as they stand side by side in memory. */
  __device__ __forceinline__ void load_vectors(int which, const strips<T, rows> &to, int m, int rank) const {
    const auto element = [&](int i, int j) {
      return i > j && i < m ? (which == 0 ? *kept_.at(i, j) : *kept_.at(j, i))
             : i == j       ? one<T>()
                            : zero<T>();
    };
    const int columns = which == 0 ? rank : to.places(), lines = which == 0 ? to.places() : rank;
    for (int across = warp_id(); across < columns; across += num_warps())
      for (int line = lane_id(); line < lines; line += warp_lanes) {
        const int j = which == 0 ? across : line, place = which == 0 ? line : across;
        to.column(j)[place] = element(to.row(place), j);
      }
  }

  /* The first of the largest entries of V's columns, or of U's where there is no V, becomes positive. */
  __device__ __forceinline__ void sign_columns() const {
    const bool by_left = left_.data && (turned_ || !right_.data);
    const matrix_view<T> &rules = by_left ? left_ : right_, &other = by_left ? right_ : left_;
    for_columns(squad_, q_, [&](int col) {
      const sign<T> turn = find_sign(squad_, col >= 0 ? rules.at(0, col) : nullptr, rules.rows);
      warp_sync(); /* all have read */
      if (col < 0) return;
      for (int i = squad_.lane; i < rules.rows; i += squad_.lanes)
        *rules.at(i, col) = turn.of(*rules.at(i, col), i);
      for (int i = squad_.lane; other.data && i < other.rows; i += squad_.lanes)
        *other.at(i, col) = *other.at(i, col) * turn.phase;
    });
  }

  const bqr_args &args_;
  const member &x_;
  bool turned_;
  int p_, q_;
  layout<T, WAY> places_;
  squad squad_;
  matrix_view<T> kept_, r2_, w_, left_{}, right_{};
  triplets<T> out_;
};

template <class T, class WAY>
__global__ void __launch_bounds__(WAY::threads, WAY::blocks)
    gesvd_solved_kernel(const __grid_constant__ bqr_args args, size_t slot) {
  T *memory = reinterpret_cast<T *>(slot_memory(args, slot));
  const layout<T, WAY> places(largest(args.m, args.n), least(args.m, args.n));
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GESVD>(args, i);
    int info = BATCHQR_INFO_SIZES;
    if (x.ok) info = gesvd<T, WAY>(args, x, memory, places).run();
    if (thread_id() == 0) set_info(args, x.id, info);
    block_sync();
  }
}

/* width: the most columns and rows. z has no room: a lane would need more registers than there are. */
const bqr_variant variants[] = {
    {.name = "width48", .width = 48, .types = 1 << BATCHQR_D},
    {.name = "width64", .width = 64, .types = 1 << BATCHQR_D | 1 << BATCHQR_C},
    {.name = "width96", .width = 96, .types = BQR_ALL_TYPES & ~(1 << BATCHQR_Z)},
    {.name = "width128", .width = 128, .types = BQR_ALL_TYPES & ~(1 << BATCHQR_Z)}};

template <class T, int WIDTH> struct way_of;
template <class T> struct way_of<T, 48> : way<T, 48, 24, 8, 4> {};
template <class T> struct way_of<T, 64> : way<T, 64, 32, 8, 4> {};
template <class T> struct way_of<T, 96> : way<T, 96, 48, 8, sizeof(T) == 4 ? 3 : 2> {};
template <class T> struct way_of<T, 128> : way<T, 128, 64, 8, sizeof(T) == 4 ? 2 : 1> {};
/* Twice the warps, half the registers: 16.5 ms instead of 18.3 for 1000 members. */
template <> struct way_of<double, 128> : way<double, 128, 32, 16, 1> {};

/* Members of up to that size are faster with J accumulated, by gesvd_block or gesvd_warp. */
constexpr int least_size(batchqr_type type) { return type == BATCHQR_S ? 64 : type == BATCHQR_C ? 48 : 32; }

struct family {
  static bool supports(const bqr_problem *p, const bqr_variant *v) {
    return v->types >> p->type & 1 && least(p->m, p->n) > least_size(p->type) &&
           largest(p->m, p->n) <= v->width;
  }
  static int threads(const bqr_problem *p, const bqr_variant *v) {
    int threads = 0;
    with_way(p, v, [&](auto tag, auto w) {
      using T = typename decltype(tag)::type;
      threads = way_of<T, decltype(w)::value>::threads;
      return BATCHQR_SUCCESS;
    });
    return threads;
  }
  template <class F> static batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
    return with_way(p, v, [&](auto tag, auto w) {
      using T = typename decltype(tag)::type;
      using WAY = way_of<T, decltype(w)::value>;
      return f(gesvd_solved_kernel<T, WAY>,
               slot_plan{16, layout<T, WAY>(largest(p->m, p->n), least(p->m, p->n)).bytes, true},
               slot_bytes<T>(largest(p->m, p->n), least(p->m, p->n)), WAY::blocks);
    });
  }
  /* As many blocks as can run at once, with a slot of the workspace each. */
  static int64_t blocks(int each, int64_t count, const bqr_device *device) {
    const int64_t most = int64_t(each) * device->multiprocessors;
    return count < most ? count : most;
  }
  static size_t workspace(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
    size_t bytes = 0;
    with_kernel(p, v, [&](auto, const slot_plan &, size_t slot, int each) {
      bytes = static_cast<size_t>(blocks(each, p->count, device)) * slot;
      return BATCHQR_SUCCESS;
    });
    return bytes;
  }
  static batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *device,
                               const bqr_args *args, batchqr_stream stream) {
    return with_kernel(p, v, [&](auto kernel, const slot_plan &plan, size_t slot, int each) {
      return launch_kernel(kernel, dim3(grid_for(blocks(each, args->count, device))), threads(p, v),
                           plan.shared(), stream, *args, slot);
    });
  }

  /* Of fewer members than multiprocessors the time is that of one, where gesvd_block, if it has room, is no
   * slower. */
  static bool prefers(const bqr_problem *p, const bqr_variant *, const bqr_device *device) {
    return p->count >= device->multiprocessors || least(p->m, p->n) > 96;
  }

private:
  /* Vectors, R2 and W. */
  template <class T> static size_t slot_bytes(int p, int q) {
    const size_t elements = static_cast<size_t>(p + 2 * q) * static_cast<size_t>(q);
    return (elements * sizeof(T) + 255) / 256 * 256;
  }
  template <class F> static batchqr_status with_way(const bqr_problem *p, const bqr_variant *v, F &&f) {
    return for_type(p->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (sizeof(T) == 4) return for_value<96, 128>(v->width, [&](auto w) { return f(tag, w); });
      if constexpr (std::is_same_v<T, double>)
        return for_value<48, 64, 96, 128>(v->width, [&](auto w) { return f(tag, w); });
      if constexpr (sizeof(T) == 8 && is_complex<T>)
        return for_value<64, 96, 128>(v->width, [&](auto w) { return f(tag, w); });
      return BATCHQR_UNSUPPORTED;
    });
  }
};

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_gesvd_solved = {
    .name = "gesvd_solved",
    .op = BATCHQR_GESVD,
    .types = BQR_ALL_TYPES & ~(1 << BATCHQR_Z),
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .launches = 1,
    .supports = bqr::slots<bqr::family>::supports,
    .workspace = bqr::family::workspace,
    .prepare = bqr::slots<bqr::family>::prepare,
    .launch = bqr::family::launch,
    .prefers = bqr::family::prefers,
};
