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
    work = (sizeof(T) * static_cast<size_t>(ld) * cols + 15) / 16 * 16;
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

/* A matrix in global memory, or its adjoint. */
template <class T> struct turned_view {
  T *data;
  int64_t ld;
  bool turned;

  __device__ __forceinline__ T get(int i, int j) const {
    return turned ? conj(data[j + i * ld]) : data[i + j * ld];
  }
  __device__ __forceinline__ void put(int i, int j, T x) const {
    if (turned)
      data[j + i * ld] = conj(x);
    else
      data[i + j * ld] = x;
  }
};

template <class T, class WAY> class gesvd {
  using R = real_t<T>;
  static constexpr int rows = WAY::rows;
  using column = held_column<T, rows>;

public:
  __device__ gesvd(const bqr_args &args, const member &x, unsigned char *memory, const layout<T, WAY> &places,
                   uint32_t *word)
      : args_(args), x_(x), word_(word), turned_(x.m < x.n), p_(largest(x.m, x.n)), q_(least(x.m, x.n)),
        squad_(make_squad(squad_lanes(q_, 8))), square_{reinterpret_cast<T *>(memory), places.ld, p_, q_},
        work_(memory + places.work), first_(pivoting<T>::at(memory + places.pivots[0], q_)),
        second_(pivoting<T>::at(memory + places.pivots[1], q_)),
        coefficients_(reinterpret_cast<T *>(memory + places.coefficients)),
        place_(reinterpret_cast<int *>(memory + places.places)),
        out_(args, x, squad_, reinterpret_cast<R *>(memory + places.values), place_) {}

  __device__ int run() {
    if (q_ == 0) {
      out_.set_rank(0);
      return 0;
    }
    const matrix_view<T> whole{matrix_data<T>(args_, args_.a, x_.id), matrix_ld(args_.a, x_.id), x_.m, x_.n};
    a_ = {whole.data, whole.ld, turned_};
    left_ = output(turned_ ? args_.v : args_.u, p_);
    right_ = output(turned_ ? args_.u : args_.v, q_);
    uint32_t u = 0;
    for_each(whole, [&](const T &x, int, int) { u = greater(u, magnitude_or_one(x)); });
    u = block_max(word_, u);
    if (!magnitude_finite<T>(u)) {
      out_.set_nonfinite();
      return BATCHQR_INFO_NONFINITE;
    }
    const int exponent = u ? exponent_to<T>(u, span<R>::top) : 0;
    for_each(whole, [&](const T &x, int i, int j) {
      const T y = times_power(x, exponent);
      *(turned_ ? square_.at(j, i) : square_.at(i, j)) = turned_ ? conj(y) : y;
    });
    block_sync();
    const int rank = factor_twice(exponent);
    const bool converged = rotate(rank);
    out_.store_values(exponent);
    if (left_.data || right_.data) {
      complete_columns(squad_, square(rank), out_.values, coefficients_, first_.norms[0]);
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
  /* Above A's diagonal, lying (and conjugated), for Q2's vectors. */
  __device__ __forceinline__ turned_view<T> turned_back() const { return {a_.data, a_.ld, !turned_}; }
  /* The leading part of the matrix in shared memory. */
  __device__ __forceinline__ matrix_view<T> square(int n) const { return square_.part(0, 0, n, n); }

  __device__ __noinline__ int factor(const matrix_view<T> &x, const pivoting<T> &pivots, int exponent) {
    held_qr<T, rows, false> qr(x, pivots, held_space<T>::at(work_, p_, q_, rows), word_);
    return qr.factor(x.cols, 0, 0, exponent, false);
  }

  /* square_(to(i, j)) := from(i, j) for all of m x n, read before any is written. */
  template <class FROM, class TO> __device__ __forceinline__ void move(int m, int n, FROM &&from, TO &&to) {
    column y(m, n);
    y.fill([&](int i) { return from(i, y.column()); });
    block_sync();
    y.drain([&](int i, const T &x) { *to(i, y.column()) = x; });
    block_sync();
  }

  /* R2 in square_, and also where J will be; vectors to A: below its diagonal those of Q1, above it, lying,
   * those of Q2. Returns the order of R2. */
  __device__ int factor_twice(int exponent) {
    const int rank = factor(square_, first_, exponent);
    if (left_.data) keep_vectors(first_, rank, p_, [&](int i, int j, const T &x) { a_.put(i, j, x); });
    move(
        q_, rank,
        [&](int i, int j) {
          return i > j ? conj(*square_.at(j, first_.order[i])) : make<T>(i == j ? first_.diagonal[j] : R(0));
        },
        [&](int i, int j) { return square_.at(i, j); });
    /* Where a row of R2 is too short to be worked with, that is 0, though none of R1 was. It gets a diagonal
     * element that is long enough. */
    const int same = factor(square_.part(0, 0, q_, rank), second_, exponent);
    constexpr R least = sizeof(R) == 4 ? R(0x1p-39) : R(0x1p-344); /* the root of span::least2, twice */
    if (right_.data)
      keep_vectors(second_, same, q_, [&](int i, int j, const T &x) { turned_back().put(i, j, x); });
    move(
        rank, rank,
        [&](int i, int j) {
          if (i >= same || i > j) return make<T>(i == j ? least : R(0));
          return i == j ? make<T>(second_.diagonal[j]) : *square_.at(i, second_.order[j]);
        },
        [&](int i, int j) { return square_.at(i, j); });
    for (int j = same + thread_id(); j < rank; j += num_threads()) second_.tau[j] = zero<T>();
    if (left_.data) copy_upper(square(rank), left_);
    return rank;
  }
  template <class F>
  __device__ __forceinline__ void keep_vectors(const pivoting<T> &pivots, int rank, int m, F &&put) {
    for_columns(squad_, rank, [&](int j) {
      if (j < 0) return;
      const T *x = square_.at(0, pivots.order[j]), scale = pivots.scale[j];
      for (int i = squad_row(squad_, j + 1); i < m; i += squad_.lanes) put(i, j, x[i] * scale);
    });
  }
  static __device__ __forceinline__ void copy_upper(const matrix_view<T> &from, const matrix_view<T> &to) {
    for_each(from, [&](const T &x, int i, int j) {
      if (i <= j) *to.at(i, j) = x;
    });
  }

  /* Values, their places, and W in square_. */
  __device__ __noinline__ bool rotate(int rank) {
    block_sync();
    typename WAY::jacobi jacobi(square(rank), square_.data, true);
    const bool converged = jacobi.run();
    jacobi.store(square(rank), square(rank), out_.values);
    for (int j = rank + thread_id(); j < q_; j += num_threads()) out_.values[j] = 0;
    block_sync();
    out_.order_values();
    block_sync();
    return converged;
  }

  /* left_ := Q1 P2 J, columns in the order of their values. W is in right_ meanwhile. */
  __device__ void make_left(int rank) {
    if (right_.data) copy_matrix(square(rank), right_);
    solve(rank);
    complete_columns(squad_, square(rank), out_.values, coefficients_, first_.norms[0]);
    apply_q(first_, p_, rank, a_, nullptr);
    store_columns(square_, left_);
    if (right_.data) copy_matrix(right_.part(0, 0, rank, rank), square_);
    block_sync();
  }
  /* right_ := P1 Q2 W, likewise. */
  __device__ void make_right(int rank) {
    apply_q(second_, q_, rank, turned_back(), first_.order);
    store_columns(square_.part(0, 0, q_, q_), right_);
  }
  __device__ __forceinline__ void store_columns(const matrix_view<T> &from, const matrix_view<T> &to) const {
    for_each(from, [&](const T &x, int i, int j) { *to.at(i, place_[j]) = x; });
    block_sync();
  }

  /* square_ := P2 J. W S is solved from its last row on: a warp has that of its rows in the last register
   * whose turn is next. Rows of J take the places of those columns of R2 that are done with. */
  __device__ __noinline__ void solve(int rank) {
    const int warps = held_row_warps(rank, rows), warp = warp_id() % warps,
              col = warp_id() / warps * warp_lanes + lane_id();
    const bool there = col < rank;
    int left = rank > warp ? (rank - warp - 1) / warps + 1 : 0; /* rows of this warp */
    T x[rows];
#pragma unroll
    for (int e = 0; e < rows; e++) {
      const int k = e - rows + left;
      x[e] = there && k >= 0 ? scaled(*square_.at(k * warps + warp, col), out_.values[col]) : zero<T>();
    }
    block_sync();
    copy_upper(left_.part(0, 0, rank, rank), square_);
    for (int i = thread_id(); i < rank; i += num_threads()) {
      coefficients_[i] = make<T>(R(1) / real_part(*left_.at(i, i)));
      second_.exponent[second_.order[i]] = i;
    }
    block_sync();
    T *const rows_of_j = reinterpret_cast<T *>(work_);
    T mine = zero<T>();
    bool was_mine = false;
    for (int i = rank - 1, turn = (rank - 1) % warps; i >= 0; i--, turn = turn == 0 ? warps - 1 : turn - 1) {
      T *const row = rows_of_j + (i & 1) * q_;
      const bool is_mine = there && warp == turn;
      const T before = mine;
      if (is_mine) row[col] = mine = scaled(x[rows - 1], real_part(coefficients_[i]));
      block_sync();
      if (was_mine) *square_.at(col, i + 1) = before;
      was_mine = is_mine;
      if (!there) continue;
      const T *const r = square_.at(0, i) + (left - rows) * warps + warp;
      if (warp == turn)
        subtract<true>(x, r, warps, rows - left, row[col]);
      else
        subtract<false>(x, r, warps, rows - left, row[col]);
      left -= warp == turn;
    }
    block_sync();
    if (was_mine) *square_.at(col, 0) = mine;
    block_sync();
    move(
        rank, rank, [&](int i, int j) { return *square_.at(j, second_.exponent[i]); },
        [&](int i, int j) { return square_.at(i, j); });
  }
  /* x -= r y for elements from `first` on. DROP: the last one is done, and the others take their next places.
   */
  template <bool DROP>
  static __device__ __forceinline__ void subtract(T (&x)[rows], const T *r, int stride, int first,
                                                  const T &y) {
#pragma unroll
    for (int g = rows - held_group; g >= 0; g -= held_group) {
      if (g + held_group <= first) continue;
#pragma unroll
      for (int e = g + held_group - 1; e >= g; e--) {
        if (DROP && e == rows - 1) continue;
        const T z = e >= first ? x[e] - r[e * stride] * y : x[e];
        x[DROP ? e + 1 : e] = z;
      }
    }
  }

  /* square_ := Q [what is in square_, 0; 0, I], m x q, of vectors in A, or in its transpose. order: where to
   * put rows, NULL: where they are. */
  __device__ __noinline__ void apply_q(const pivoting<T> &pivots, int m, int rank, const turned_view<T> &from,
                                       const int *order) {
    column y(m, q_);
    const int col = y.column(), warps = y.warps();
    y.fill([&](int i) {
      return i < rank && col < rank ? *square_.at(i, col) : i == col ? one<T>() : zero<T>();
    });
    block_sync();
    for_each(square_.part(0, 0, m, rank), [&](T &x, int i, int j) {
      x = i > j ? from.get(i, j) : i == j ? one<T>() : zero<T>();
    });
    block_sync();
    T *const dots = held_space<T>::at(work_, p_, q_, rows).dots;
    for (int j = rank - 1; j >= 0; j--) {
      const T *vector = square_.at(0, j);
      const auto v = [&](int i) { return i < y.rows() ? vector[y.row(i)] : zero<T>(); };
      T *mine = dots + (j & 1) * warps * q_;
      T dot = y.dot(v, j);
      if (warps > 1) {
        if (y.there()) mine[y.warp() * q_ + col] = dot;
        block_sync();
        dot = zero<T>();
        for (int i = 0; i < warps && y.there(); i++) dot = dot + mine[i * q_ + col];
      }
      y.subtract(v, pivots.tau[j] * dot, j);
    }
    block_sync();
    y.drain([&](int i, const T &x) { *square_.at(order ? order[i] : i, col) = x; });
    block_sync();
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
  uint32_t *word_;
  bool turned_;
  int p_, q_;
  squad squad_;
  turned_view<T> a_{};
  matrix_view<T> square_, left_{}, right_{};
  unsigned char *work_;
  pivoting<T> first_, second_;
  T *coefficients_;
  int *place_;
  triplets<T> out_;
};

template <class T, class WAY>
__global__ void __launch_bounds__(WAY::threads, WAY::blocks)
    gesvd_solved_kernel(const __grid_constant__ bqr_args args, size_t) {
  unsigned char *shared = shared_memory<unsigned char>();
  const layout<T, WAY> places(largest(args.m, args.n), least(args.m, args.n));
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GESVD>(args, i);
    int info = BATCHQR_INFO_SIZES;
    if (x.ok) info = gesvd<T, WAY>(args, x, shared + 16, places, reinterpret_cast<uint32_t *>(shared)).run();
    if (thread_id() == 0) set_info(args, x.id, info);
    block_sync();
  }
}

/* width: the most columns and rows. */
const bqr_variant variants[] = {
    {.name = "width48", .width = 48, .types = BQR_ALL_TYPES},
    {.name = "width64", .width = 64, .types = BQR_ALL_TYPES},
    {.name = "width96", .width = 96, .types = BQR_ALL_TYPES & ~(1 << BATCHQR_Z)},
    {.name = "width128", .width = 128, .types = BQR_ALL_TYPES & ~(1 << BATCHQR_Z)}};

/* Lanes have up to 128 registers' worth of a column or of four. */
template <class T, int WIDTH> struct way_of;
template <class T> struct way_of<T, 48> : way<T, 48, sizeof(T) == 16 ? 16 : 24, 8, sizeof(T) == 4 ? 6 : 4> {};
template <class T> struct way_of<T, 64> : way<T, 64, sizeof(T) == 16 ? 16 : 32, 8, sizeof(T) == 4 ? 5 : 4> {};
template <class T> struct way_of<T, 96> : way<T, 96, 48, 8, sizeof(T) == 4 ? 3 : 2> {};
template <class T> struct way_of<T, 128> : way<T, 128, 64, 8, sizeof(T) == 4 ? 2 : 1> {};

struct family {
  static bool supports(const bqr_problem *p, const bqr_variant *v) {
    return v->types >> p->type & 1 && largest(p->m, p->n) <= v->width;
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
               slot_plan{16, layout<T, WAY>(largest(p->m, p->n), least(p->m, p->n)).bytes, true});
    });
  }

private:
  template <class F> static batchqr_status with_way(const bqr_problem *p, const bqr_variant *v, F &&f) {
    return for_type(p->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (sizeof(T) == 16)
        return for_value<48, 64>(v->width, [&](auto w) { return f(tag, w); });
      else
        return for_value<48, 64, 96, 128>(v->width, [&](auto w) { return f(tag, w); });
    });
  }
};

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_gesvd_solved = {
    .name = "gesvd_solved",
    .op = BATCHQR_GESVD,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .launches = 1,
    .supports = bqr::slots<bqr::family>::supports,
    .workspace = bqr::slots<bqr::family>::workspace,
    .prepare = bqr::slots<bqr::family>::prepare,
    .launch = bqr::slots<bqr::family>::launch,
};
