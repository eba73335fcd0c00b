/* SPDX-License-Identifier: BSD-3-Clause */
/* gesvd_block: a block for each member, which is held in registers, or lies in shared memory where it fits,
 * else in the workspace.
 *
 * Of A or, where that is wide, of A^H, p x q: A P = Q R with pivoting, and one-sided Jacobi on the columns of
 * L = P R^H, as many as R has rows: L W = V S, hence A = (Q W) S V^H. R's rows are shorter from one to the
 * next, which makes few sweeps of it (Drmac and Veselic 2008). Where
 * nothing is held, the vectors of Q are kept in A's memory while W takes theirs. */
#include "common/panel/held_qr.cuh"
#include "common/panel/pivoted_qr.cuh"
#include "common/panel/triplets.cuh"
#include "common/simt/slots.cuh"
#include "line_jacobi.cuh"

namespace bqr {
namespace {

constexpr int most_threads = 512;

/* How a member is worked on. EACH: the rows that a lane has of two columns that are rotated, 0 for any
 * number. Where all columns are held in registers, WIDTH: the most of them, else 0; ROWS: those that a lane
 * has of one column in QR, SHARE: lanes of a squad of line_jacobi. */
template <int EACH, int WIDTH = 0, int ROWS = 0, int SHARE = 4> struct way {
  static constexpr int each = EACH, width = WIDTH, rows = ROWS;
  static constexpr bool held = rows > 0, wide = SHARE == 16 && WIDTH == 64;
  template <class T, bool WITH_W> using jacobi = line_jacobi<T, WIDTH, SHARE, WITH_W>;
};

/* The places of a member of p x q, p >= q, in memory for members of up to that size. */
template <class T, class WAY> struct layout {
  int ld_left, ld_right; /* of p x q: A, then W and Q W; of q x q: L, then V, and W where members are held */
  size_t left, right, work, pivots, coefficients, values, places, bytes;

  BQR_INLINE layout(int p, int q) {
    constexpr int each = WAY::each > 0 ? WAY::each : 8;
    const size_t cols = static_cast<size_t>(q), n = cols + 1;
    ld_left = WAY::held ? p | 1 : squad_ld<T>(p, squad_lanes(q, each));
    ld_right = WAY::held ? q | 1 : squad_ld<T>(q, squad_lanes(q, each));
    left = 0;
    right = left + (sizeof(T) * static_cast<size_t>(ld_left) * cols + 15) / 16 * 16;
    work = right + (sizeof(T) * static_cast<size_t>(ld_right) * cols + 15) / 16 * 16;
    pivots = work;
    if constexpr (WAY::held) pivots += work_bytes(p, q);
    coefficients = pivots + pivoting<T>::bytes(q);
    values = coefficients + n * sizeof(T);
    places = values + n * sizeof(real_t<T>);
    bytes = places + n * sizeof(int);
  }

private:
  /* What the steps of members that are held tell one another, and W, in turn. */
  BQR_INLINE size_t work_bytes(int p, int q) const {
    const size_t square = static_cast<size_t>(ld_right) * static_cast<size_t>(q),
                 exchange = WAY::template jacobi<T, true>::space;
    const size_t elements = exchange > 2 * square ? exchange - square : square;
    const size_t w = (elements * sizeof(T) + 15) / 16 * 16, factor = held_space<T>::bytes(p, q, WAY::rows);
    return w > factor ? w : factor;
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
  static constexpr int each = WAY::held || WAY::each == 0 ? 8 : WAY::each;

public:
  __device__ gesvd(const bqr_args &args, const member &x, unsigned char *memory, const layout<T, WAY> &places,
                   uint32_t *word)
      : args_(args), x_(x), word_(word), turned_(x.m < x.n), p_(largest(x.m, x.n)), q_(least(x.m, x.n)),
        squad_(make_squad(squad_lanes(q_, each))), left_{reinterpret_cast<T *>(memory + places.left),
                                                         places.ld_left, p_, q_},
        right_{reinterpret_cast<T *>(memory + places.right), places.ld_right, q_, q_},
        pivots_(pivoting<T>::at(memory + places.pivots, q_)), work_(memory + places.work),
        coefficients_(reinterpret_cast<T *>(memory + places.coefficients)),
        out_(args, x, squad_, reinterpret_cast<R *>(memory + places.values),
             reinterpret_cast<int *>(memory + places.places)) {}

  __device__ int run() {
    if (q_ == 0) {
      out_.set_rank(0);
      return 0;
    }
    const matrix_view<T> whole{matrix_data<T>(args_, args_.a, x_.id), matrix_ld(args_.a, x_.id), x_.m, x_.n};
    a_ = {whole.data, whole.ld, turned_};
    uint32_t u = 0;
    for_each(whole, [&](const T &x, int, int) { u = greater(u, magnitude_or_one(x)); });
    u = block_max(word_, u);
    if (!magnitude_finite<T>(u)) {
      out_.set_nonfinite();
      return BATCHQR_INFO_NONFINITE;
    }
    const int exponent = u ? exponent_to<T>(u, span<R>::top) : 0;
    const bool converged = decompose(whole, exponent);
    out_.store_values(exponent);
    out_.store_vectors(turned_ ? right_ : left_, turned_ ? left_ : right_);
    return converged ? 0 : 1;
  }

private:
  __device__ bool wants_left() const { return turned_ ? args_.v.data : args_.u.data; }
  __device__ bool wants_right() const { return turned_ ? args_.u.data : args_.v.data; }

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
    const int rank = factor(exponent);
    take_factors(rank);
    block_sync();
    const bool converged = rotate(rank);
    block_sync();
    if (wants_right()) complete_columns(squad_, right_, out_.values, coefficients_, pivots_.norms[0]);
    if (wants_left()) apply_q(rank);
    block_sync();
    return converged;
  }

  __device__ int factor(int exponent) {
    if constexpr (WAY::held) {
      held_qr<T, WAY::rows, false> qr(left_, pivots_, held_space<T>::at(work_, p_, q_, WAY::rows), word_);
      return qr.factor(q_, 0, 0, exponent, false);
    } else {
      pivoted_qr<T> qr(left_, matrix_view<T>{nullptr, 0, 0, 0}, pivots_, squad_, word_);
      qr.sum_norms();
      block_sync();
      return qr.factor(q_, 0, 0, exponent, false);
    }
  }

  __device__ __forceinline__ matrix_view<T> w() const {
    if constexpr (WAY::held)
      return {reinterpret_cast<T *>(work_), right_.ld, q_, q_};
    else
      return left_;
  }

  __device__ bool rotate(int rank) {
    if constexpr (WAY::held) {
      const bool converged = wants_left() ? rotate_held<true>() : rotate_held<false>();
      block_sync();
      out_.order_values();
      return converged;
    } else {
      const int order = wants_left() ? rank : 0;
      const bool converged =
          orthogonalize<WAY::each>(squad_, right_.part(0, 0, q_, rank), left_.part(0, 0, order, order));
      out_.find_values(right_, rank);
      return converged;
    }
  }
  template <bool WITH_W> __device__ __forceinline__ bool rotate_held() {
    typename WAY::template jacobi<T, WITH_W> jacobi(right_, right_.data, true); /* and work_ behind that */
    const bool converged = jacobi.run();
    jacobi.store(right_, w(), out_.values);
    return converged;
  }

  /* Q's vectors to where they are read from, L, and where W will be an identity. */
  __device__ void take_factors(int rank) {
    for_columns(squad_, q_, [&](int j) {
      if (j < 0) return;
      T *column = left_.at(0, pivots_.order[j]);
      if (!WAY::held && wants_left())
        for (int i = squad_.lane; i < p_; i += squad_.lanes)
          if (j < rank && i > j) a_.put(i, j, column[i] * pivots_.scale[j]);
      for (int i = squad_.lane; i < q_; i += squad_.lanes) {
        const T r = i < j ? column[i] : i == j ? make<T>(pivots_.diagonal[j]) : zero<T>();
        *right_.at(pivots_.order[j], i) = i < rank && (i < j || j < rank) ? conj(r) : zero<T>();
      }
      if (WAY::held && wants_left())
        for (int i = squad_.lane; i < p_; i += squad_.lanes)
          column[i] = i > j ? column[i] * pivots_.scale[j] : i == j ? one<T>() : zero<T>();
    });
    if (WAY::held) return;
    block_sync();
    if (wants_left()) for_each(left_, [&](T &x, int i, int j) { x = i == j ? one<T>() : zero<T>(); });
  }

  /* left_ := Q W */
  __device__ void apply_q(int rank) {
    if constexpr (WAY::held)
      apply_held_q(rank);
    else
      apply_kept_q(rank);
  }

  /* W's columns are completed by those of an identity. */
  __device__ __forceinline__ void apply_held_q(int rank) {
    const matrix_view<T> from = w();
    held_column<T, WAY::rows> y(p_, q_);
    const int col = y.column(), warps = y.warps();
    y.fill([&](int i) {
      return i < rank && col < rank ? *from.at(i, col) : i == col ? one<T>() : zero<T>();
    });
    block_sync();
    T *dots = held_space<T>::at(work_, p_, q_, WAY::rows).dots;
    for (int j = rank - 1; j >= 0; j--) {
      const T *vector = left_.at(0, pivots_.order[j]);
      const auto v = [&](int i) { return i < y.rows() ? vector[y.row(i)] : zero<T>(); };
      T *mine = dots + (j & 1) * warps * q_;
      T dot = y.dot(v, j);
      if (warps > 1) {
        if (y.there()) mine[y.warp() * q_ + col] = dot;
        block_sync();
        dot = zero<T>();
        for (int i = 0; i < warps && y.there(); i++) dot = dot + mine[i * q_ + col];
      }
      y.subtract(v, pivots_.tau[j] * dot, j);
    }
    block_sync();
    y.drain([&](int i, const T &x) { *left_.at(i, col) = x; });
  }

  /* A squad for each column of W. */
  __device__ void apply_kept_q(int rank) {
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

  const bqr_args &args_;
  const member &x_;
  uint32_t *word_;
  bool turned_;
  int p_, q_;
  squad squad_;
  turned_view<T> a_{};
  matrix_view<T> left_, right_;
  pivoting<T> pivots_;
  unsigned char *work_;
  T *coefficients_;
  triplets<T> out_;
};

/* Threads of a block; fewer where a thread has more than 64 registers' worth of columns. */
constexpr int held_threads(int width, size_t size, bool wide = false) {
  if (size == 4 || wide) return most_threads;
  if (size == 8) return width == 64 ? most_threads / 2 : most_threads / 4 * 3;
  return most_threads / 2;
}
template <class T, class WAY>
constexpr int threads_of = WAY::held ? held_threads(WAY::width, sizeof(T), WAY::wide && !is_complex<T>)
                                     : most_threads;

template <class T, bool ON_CHIP, class WAY>
__global__ void __launch_bounds__((threads_of<T, WAY>))
    gesvd_block_kernel(const __grid_constant__ bqr_args args, size_t slot) {
  unsigned char *shared = shared_memory<unsigned char>();
  unsigned char *memory = ON_CHIP ? shared + 16 : slot_memory(args, slot);
  const layout<T, WAY> places(largest(args.m, args.n), least(args.m, args.n));
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GESVD>(args, i);
    int info = BATCHQR_INFO_SIZES;
    if (x.ok) info = gesvd<T, WAY>(args, x, memory, places, reinterpret_cast<uint32_t *>(shared)).run();
    if (thread_id() == 0) set_info(args, x.id, info);
    block_sync();
  }
}

/* width: the largest order of R of members that are held; rows: of a lane, where none is; most: the largest
 * order of R. */
const bqr_variant variants[] = {
    {.name = "width32", .width = 32, .types = BQR_ALL_TYPES, .most = 32},
    {.name = "width48", .width = 48, .types = BQR_ALL_TYPES, .most = 48},
    {.name = "width64", .width = 64, .types = BQR_ALL_TYPES, .most = 64},
    {.name = "width64.wide", .width = 64, .wide = true, .types = 1 << BATCHQR_S | 1 << BATCHQR_D, .most = 64},
    {.name = "width96", .width = 96, .types = BQR_ALL_TYPES & ~(1 << BATCHQR_Z), .most = 96},
    {.name = "width128", .width = 128, .types = 1 << BATCHQR_S, .most = 128},
    {.name = "rows4", .rows = 4, .types = BQR_ALL_TYPES, .most = 128},
    {.name = "rows8", .rows = 8, .types = BQR_ALL_TYPES, .most = 256},
    {.name = "rows8.global", .rows = 8, .global = true, .types = BQR_ALL_TYPES}};

/* Rows of a lane that holds a column: 64 registers, and not so few that there are more threads than Jacobi
 * needs. */
template <class T> constexpr int rows_of(int width) {
  return sizeof(T) == 16 ? 16 : sizeof(T) == 4 && width > 64 ? 64 : 32;
}
/* Lanes of a squad: each has 64 registers of four columns, or 128 where more squads have no room. */
template <class T> constexpr int share_of(int width) {
  return width > (sizeof(T) == 4 ? 96 : sizeof(T) == 8 ? 64 : 32) ? 16 : 8;
}
template <class T, int WIDTH> using held_way = way<8, WIDTH, rows_of<T>(WIDTH), share_of<T>(WIDTH)>;

struct family {
  static bool supports(const bqr_problem *p, const bqr_variant *v) {
    if (!(v->types >> p->type & 1) || (v->most > 0 && least(p->m, p->n) > v->most)) return false;
    return v->width == 0 || threads(p, v) <= most_threads_of(p, v);
  }
  static int most_threads_of(const bqr_problem *p, const bqr_variant *v) {
    return held_threads(v->width, type_bytes(p->type), v->wide);
  }
  static int threads(const bqr_problem *p, const bqr_variant *v) {
    const int q = least(p->m, p->n);
    if (v->width == 0) return slot_threads((q + 1) / 2, squad_lanes(q, v->rows), most_threads);
    return for_type(p->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return largest(held_warps(largest(p->m, p->n), q, rows_of<T>(v->width)) * warp_lanes,
                     v->width / 4 * (v->wide ? 16 : share_of<T>(v->width)));
    });
  }
  template <class T, bool ON_CHIP, class WAY, class F>
  static batchqr_status with(const bqr_problem *p, F &&f) {
    return f(gesvd_block_kernel<T, ON_CHIP, WAY>,
             slot_plan{16, layout<T, WAY>(largest(p->m, p->n), least(p->m, p->n)).bytes, ON_CHIP});
  }
  template <class F> static batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
    return for_type(p->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (v->global) return with<T, false, way<0>>(p, f);
      if (v->rows == 4) return with<T, true, way<4>>(p, f);
      if (v->rows == 8) return with<T, true, way<8>>(p, f);
      if constexpr (!is_complex<T>)
        if (v->wide) return with<T, true, way<8, 64, rows_of<T>(64), 16>>(p, f);
      const auto with_width = [&](auto width) {
        return with<T, true, held_way<T, decltype(width)::value>>(p, f);
      };
      if constexpr (sizeof(T) == 4) return for_value<32, 48, 64, 96, 128>(v->width, with_width);
      if constexpr (sizeof(T) == 8) return for_value<32, 48, 64, 96>(v->width, with_width);
      return for_value<32, 48, 64>(v->width, with_width);
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
    .nvariants = sizeof bqr::variants / sizeof bqr::variants[0],
    .launches = 1,
    .supports = bqr::slots<bqr::family>::supports,
    .workspace = bqr::slots<bqr::family>::workspace,
    .prepare = bqr::slots<bqr::family>::prepare,
    .launch = bqr::slots<bqr::family>::launch,
};
