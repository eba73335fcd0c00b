/* SPDX-License-Identifier: BSD-3-Clause */
/* gesvd_block: a block for each member, which lies in shared memory where it fits, else in the workspace.
 *
 * Of A or, where that is wide, of A^H, p x q: A P = Q R with pivoting, and one-sided Jacobi on the columns of
 * L = P R^H, as many as R has rows: L W = V S, hence A = (Q W) S V^H. R's rows are shorter from one to the
 * next, which makes few sweeps of it (Drmac and Veselic 2008). The vectors of Q are kept in A's memory while
 * L takes theirs. */
#include "common/panel/complete.cuh"
#include "common/panel/jacobi.cuh"
#include "common/panel/pivoted_qr.cuh"
#include "common/simt/slots.cuh"

namespace bqr {
namespace {

constexpr int most_threads = 512;

/* The places of a member of p x q, p >= q, in memory for members of up to that size. */
template <class T> struct layout {
  int ld_left, ld_right; /* of p x q: A, then W and Q W; of q x q: L, then V */
  size_t left, right, pivots, coefficients, values, places, bytes;

  BQR_INLINE layout(int p, int q, int each) {
    const size_t cols = static_cast<size_t>(q), n = cols + 1;
    ld_left = squad_ld<T>(p, squad_lanes(q, each));
    ld_right = squad_ld<T>(q, squad_lanes(q, each));
    left = 0;
    right = left + (sizeof(T) * static_cast<size_t>(ld_left) * cols + 15) / 16 * 16;
    pivots = right + (sizeof(T) * static_cast<size_t>(ld_right) * cols + 15) / 16 * 16;
    coefficients = pivots + pivoting<T>::bytes(q);
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

template <class T, int EACH> class gesvd {
  using R = real_t<T>;
  static constexpr int each = EACH > 0 ? EACH : 8;

public:
  __device__ gesvd(const bqr_args &args, const member &x, unsigned char *memory, const layout<T> &places,
                   uint32_t *word)
      : args_(args), x_(x), word_(word), turned_(x.m < x.n), p_(largest(x.m, x.n)), q_(least(x.m, x.n)),
        squad_(make_squad(squad_lanes(q_, each))), left_{reinterpret_cast<T *>(memory + places.left),
                                                         places.ld_left, p_, q_},
        right_{reinterpret_cast<T *>(memory + places.right), places.ld_right, q_, q_},
        pivots_(pivoting<T>::at(memory + places.pivots, q_)),
        coefficients_(reinterpret_cast<T *>(memory + places.coefficients)),
        values_(reinterpret_cast<R *>(memory + places.values)),
        place_(reinterpret_cast<int *>(memory + places.places)) {}

  __device__ int run() {
    if (q_ == 0) {
      set_rank(0);
      return 0;
    }
    const matrix_view<T> whole{matrix_data<T>(args_, args_.a, x_.id), matrix_ld(args_.a, x_.id), x_.m, x_.n};
    a_ = {whole.data, whole.ld, turned_};
    R *s = vector_data<R>(args_.s, x_.id);
    uint32_t u = 0;
    for_each(whole, [&](const T &x, int, int) { u = greater(u, magnitude_or_one(x)); });
    u = block_max(word_, u);
    if (!magnitude_finite<T>(u)) {
      for (int j = thread_id(); j < q_; j += num_threads()) s[j] = static_cast<R>(nan(""));
      set_rank(0);
      return BATCHQR_INFO_NONFINITE;
    }
    const int exponent = u ? exponent_to<T>(u, span<R>::top) : 0;
    const bool converged = decompose(whole, exponent);
    for (int j = thread_id(); j < q_; j += num_threads()) s[place_[j]] = times_power(values_[j], -exponent);
    block_sync();
    if (args_.rank.data) set_rank(find_rank(s));
    store_vectors();
    return converged ? 0 : 1;
  }

private:
  __device__ bool wants_left() const { return turned_ ? args_.v.data : args_.u.data; }
  __device__ bool wants_right() const { return turned_ ? args_.u.data : args_.v.data; }

  __device__ void set_rank(int rank) const {
    if (args_.rank.data && thread_id() == 0) *vector_data<int>(args_.rank, x_.id) = rank;
  }

  __device__ int find_rank(const R *s) const {
    const double tolerance = fmax(args_.abstol, args_.reltol * static_cast<double>(s[0]));
    int above = 0;
    for (int j = lane_id(); j < q_; j += warp_lanes) above += static_cast<double>(s[j]) > tolerance;
    return least(group_sum(above), args_.kmax);
  }

  /* Singular values, their places, and Q W and V in left_ and right_, where these are wanted. */
  __device__ bool decompose(const matrix_view<T> &whole, int exponent) {
    for_each(whole, [&](const T &x, int i, int j) {
      const T y = times_power(x, exponent);
      if (turned_)
        *left_.at(j, i) = conj(y);
      else
        *left_.at(i, j) = y;
    });
    block_sync();
    pivoted_qr<T> qr(left_, matrix_view<T>{nullptr, 0, 0, 0}, pivots_, squad_, word_);
    qr.sum_norms();
    block_sync();
    const int rank = qr.factor(q_, 0, 0, exponent, false);
    take_factors(rank);
    block_sync();
    const int w = wants_left() ? rank : 0;
    const bool converged =
        orthogonalize<EACH>(squad_, right_.part(0, 0, q_, rank), matrix_view<T>{left_.data, left_.ld, w, w});
    find_values(rank);
    block_sync();
    if (wants_right()) complete_columns(squad_, right_, values_, coefficients_, pivots_.norms[0]);
    if (wants_left()) apply_q(rank);
    block_sync();
    return converged;
  }

  /* Q's vectors into A's memory, L, and where W will be an identity. */
  __device__ void take_factors(int rank) {
    for_columns(squad_, q_, [&](int j) {
      if (j < 0) return;
      const T *column = left_.at(0, pivots_.order[j]);
      for (int i = squad_.lane; i < p_; i += squad_.lanes)
        if (j < rank && i > j && wants_left()) a_.put(i, j, column[i] * pivots_.scale[j]);
      for (int i = squad_.lane; i < q_; i += squad_.lanes) {
        const T r = i < j ? column[i] : i == j ? make<T>(pivots_.diagonal[j]) : zero<T>();
        *right_.at(pivots_.order[j], i) = i < rank && (i < j || j < rank) ? conj(r) : zero<T>();
      }
    });
    block_sync();
    if (wants_left()) for_each(left_, [&](T &x, int i, int j) { x = i == j ? one<T>() : zero<T>(); });
  }

  /* The columns of L W: lengths, places, directions. */
  __device__ void find_values(int rank) {
    for_columns(squad_, q_, [&](int col) {
      T *x = col >= 0 ? right_.at(0, col) : nullptr;
      const R norm2 = column_norm2(squad_, x, 0, q_);
      const bool there = x && col < rank && norm2 > span<R>::least2;
      const R norm = there ? sqrt(norm2) : R(0);
      for (int i = squad_.lane; there && i < q_; i += squad_.lanes) x[i] = scaled(x[i], R(1) / norm);
      if (x && squad_.lane == 0) values_[col] = norm;
    });
    block_sync();
    find_places(values_, q_, false, place_);
  }

  /* left_ := Q left_, a squad for each column. */
  __device__ void apply_q(int rank) {
    for_columns(squad_, q_, [&](int col) {
      T *y = col >= 0 ? left_.at(0, col) : nullptr;
      for (int j = rank - 1; j >= 0; j--) {
        T dot = zero<T>();
        for (int i = squad_row(squad_, j); y && i < p_; i += squad_.lanes)
          dot = cmadd(i == j ? one<T>() : a_.get(i, j), y[i], dot);
        dot = pivots_.tau[j] * squad_sum(squad_, dot);
        for (int i = squad_row(squad_, j); y && i < p_; i += squad_.lanes)
          y[i] = y[i] - (i == j ? one<T>() : a_.get(i, j)) * dot;
      }
    });
  }

  __device__ void store_vectors() const {
    const matrix_view<T> &u = turned_ ? right_ : left_, &v = turned_ ? left_ : right_;
    const matrix_view<T> &rules = args_.v.data ? v : u;
    for_columns(squad_, q_, [&](int col) {
      const bool any = col >= 0 && (args_.u.data || args_.v.data);
      const sign<T> turn = find_sign(squad_, any ? rules.at(0, col) : nullptr, rules.rows);
      if (any) store_column(args_.u, u, col, {turn.phase, args_.v.data ? u.rows : turn.row});
      if (any) store_column(args_.v, v, col, turn);
    });
  }

  __device__ void store_column(const bqr_matrix &to, const matrix_view<T> &from, int col,
                               const sign<T> &turn) const {
    if (!to.data) return;
    T *column = matrix_data<T>(args_, to, x_.id) + place_[col] * matrix_ld(to, x_.id);
    for (int i = squad_.lane; i < from.rows; i += squad_.lanes) column[i] = turn.of(*from.at(i, col), i);
  }

  const bqr_args &args_;
  const member &x_;
  uint32_t *word_;
  bool turned_;
  int p_, q_;
  squad squad_;
  turned_view<T> a_{};
  matrix_view<T> left_, right_;
  pivoting<T> pivots_;
  T *coefficients_;
  R *values_;
  int *place_;
};

template <class T, bool ON_CHIP, int EACH>
__global__ void __launch_bounds__(most_threads)
    gesvd_block_kernel(const __grid_constant__ bqr_args args, size_t slot) {
  unsigned char *shared = shared_memory<unsigned char>();
  unsigned char *memory = ON_CHIP ? shared + 16 : slot_memory(args, slot);
  const layout<T> places(largest(args.m, args.n), least(args.m, args.n), EACH > 0 ? EACH : 8);
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GESVD>(args, i);
    int info = BATCHQR_INFO_SIZES;
    if (x.ok) info = gesvd<T, EACH>(args, x, memory, places, reinterpret_cast<uint32_t *>(shared)).run();
    if (thread_id() == 0) set_info(args, x.id, info);
    block_sync();
  }
}

/* rows: of a lane; most: the largest order of R. */
const bqr_variant variants[] = {{.name = "rows4", .rows = 4, .most = 128},
                                {.name = "rows8", .rows = 8, .most = 256},
                                {.name = "rows8.global", .rows = 8, .global = true}};

struct family {
  static bool supports(const bqr_problem *p, const bqr_variant *v) {
    return v->most == 0 || least(p->m, p->n) <= v->most;
  }
  static int threads(const bqr_problem *p, const bqr_variant *v) {
    const int q = least(p->m, p->n);
    return slot_threads((q + 1) / 2, squad_lanes(q, v->rows), most_threads);
  }
  template <class F> static batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
    return for_type(p->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const slot_plan plan = {16, layout<T>(largest(p->m, p->n), least(p->m, p->n), v->rows).bytes,
                              !v->global};
      return v->global      ? f(gesvd_block_kernel<T, false, 0>, plan)
             : v->rows == 4 ? f(gesvd_block_kernel<T, true, 4>, plan)
                            : f(gesvd_block_kernel<T, true, 8>, plan);
    });
  }
};

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_gesvd_block = {
    .name = "gesvd_block",
    .op = BATCHQR_GESVD,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 3,
    .launches = 1,
    .supports = bqr::slots<bqr::family>::supports,
    .workspace = bqr::slots<bqr::family>::workspace,
    .prepare = bqr::slots<bqr::family>::prepare,
    .launch = bqr::slots<bqr::family>::launch,
};
