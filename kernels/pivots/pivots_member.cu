/* SPDX-License-Identifier: BSD-3-Clause */
/* A P, or its QR factorization, in the place of A, the columns' order chosen by one block for each member:
 * see pivots_member.cuh. Members that A^H A does not tell enough of stay as they are and are copied, for what
 * follows works on all.
 */
#include "pivots_member_qr.cuh"
#include "pivots_parts.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

/* On a multiprocessor, that registers are to suffice for. */
template <class T, int N, bool FACTORS>
constexpr int blocks_at_once = is_complex<T> ? (N > 64 ? 1 : 3)
                               : N > 64      ? 2
                               : N > 32      ? (FACTORS ? 2 : 4)
                               : N > 16      ? 4
                                             : 6;

/* Of a warp, that share a row of A: so that each holds 256 bytes of it at most. */
template <class T, int N>
constexpr int parts_of_row = N * sizeof(T) > 256 ? N *static_cast<int>(sizeof(T)) / 256 : 1;

/* Columns go to their places. A warp has so many rows at a time, and holds all columns' entries in them. */
template <class T, int N> __device__ __forceinline__ void permute(const matrix_view<T> &a, const int *place) {
  using S = member_shape<wide<T>, N>;
  constexpr int parts = parts_of_row<T, N>, rows = warp_lanes / parts, each = N / parts;
  const int part = lane_id() / rows;
#pragma unroll 1
  for (int row = warp_id() * rows; row < a.rows; row += S::warps * rows) {
    const int i = row + lane_id() % rows;
    T x[each];
#pragma unroll
    for (int e = 0; e < each; e++) {
      const int c = part + parts * e;
      x[e] = i < a.rows && c < a.cols ? *a.at(i, c) : zero<T>();
    }
    warp_sync();
#pragma unroll
    for (int e = 0; e < each; e++) {
      const int c = part + parts * e;
      if (i < a.rows && c < a.cols) *a.at(i, place[c]) = x[e];
    }
  }
}

/* For what follows: whether A P is still to be factored, and whether the member is left to the other family.
 */
__device__ __forceinline__ void leave(const bqr_pivots &p, int64_t entry, bool factor, bool exact) {
  p.states[entry].exact = exact;
  p.m_left[entry] = exact ? p.m : 0;
  p.n_left[entry] = exact ? p.n : 0;
  p.m_whole[entry] = factor ? p.m : 0;
  p.n_whole[entry] = factor ? p.n : 0;
}

template <class T, int N, bool FACTORS> struct order_memory {
  member_memory<wide<T>, N> choice;
  std::conditional_t<FACTORS, member_qr_memory<N>, int> qr;
};

template <class T, int N, bool FACTORS>
__device__ __forceinline__ void order_member(const bqr_args &args, const bqr_pivots &p, int64_t entry,
                                             order_memory<T, N, FACTORS> &memory) {
  using S = member_shape<wide<T>, N>;
  auto &s = memory.choice;
  const int64_t id = id_of(args, p, entry);
  const matrix_view<T> a = {matrix_data<T>(args, args.a, id), matrix_ld(args.a, id), p.m, p.n};
  member_gram<T, N>(a, s).run();
  wide<T> *earlier = nullptr;
  if constexpr (FACTORS) earlier = memory.qr.earlier;
  const bool sure = member_chooser<wide<T>, N>(s, p.m, p.n, p.steps, args.reltol).run(earlier);
  bool factored = false;
  if constexpr (FACTORS)
    if (sure) factored = member_qr<T, N>(a, s, memory.qr).run(tau_data<T>(args, id));
  if (thread_id() == 0) {
    leave(p, entry, sure && !factored, !sure);
    p.whole[entry] = a.data;
    p.ld_whole[entry] = static_cast<int>(a.ld);
    p.a[entry] = static_cast<T *>(p.work) + entry * p.ld * p.n;
    p.lda[entry] = static_cast<int>(p.ld);
    p.tau_at[entry] = tau_data<T>(args, id);
    if (args.jpvt.data) p.jpvt_at[entry] = vector_data<int>(args.jpvt, id);
    if (sure) set_info(args, id, 0);
    if (sure && args.rank.data) *vector_data<int>(args.rank, id) = p.steps;
  }
  if (!sure) {
    copy_matrix(a, {static_cast<T *>(p.work) + entry * p.ld * p.n, p.ld, p.m, p.n});
    return;
  }
  if (!factored) permute<T, N>(a, s.place);
  if (!args.jpvt.data) return;
  int *jpvt = vector_data<int>(args.jpvt, id);
  for (int c = thread_id(); c < p.n; c += S::threads) jpvt[s.place[c]] = c;
}

template <class T, int N, bool FACTORS>
__global__ void __launch_bounds__(member_shape<wide<T>, N>::threads, (blocks_at_once<T, N, FACTORS>))
    pivots_member_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_pivots p) {
  auto &s = *shared_memory<order_memory<T, N, FACTORS>>();
  for (int64_t i = blockIdx.x; i < p.most; i += gridDim.x) {
    if (i < p.count)
      order_member<T, N, FACTORS>(args, p, i, s);
    else if (thread_id() == 0)
      leave(p, i, false, false);
    block_sync();
  }
}

/* f(type's tag, constant N, constant FACTORS). Single precision complex members are faster in geqp3_block. */
template <class R, class F> R with_shape(batchqr_type type, int m, int n, F &&f) {
  return for_type(type, [&](auto tag) -> R {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same<T, complex_float>::value) {
      return static_cast<R>(BATCHQR_UNSUPPORTED);
    } else {
      const bool factors = bqr_pivots_member_factors(type, m, n);
      auto with_columns = [&](auto columns) -> R {
        if constexpr (!is_complex<T> && decltype(columns)::value <= BQR_PIVOTS_FACTOR_COLUMNS)
          if (factors) return f(tag, columns, std::true_type{});
        return f(tag, columns, std::false_type{});
      };
      return n <= 16   ? with_columns(std::integral_constant<int, 16>{})
             : n <= 32 ? with_columns(std::integral_constant<int, 32>{})
             : n <= 64 ? with_columns(std::integral_constant<int, 64>{})
                       : with_columns(std::integral_constant<int, 128>{});
    }
  });
}

template <class T, int N, bool FACTORS> constexpr size_t shared_bytes = sizeof(order_memory<T, N, FACTORS>);

} // namespace
} // namespace bqr

using namespace bqr;

bool bqr_pivots_member_factors(batchqr_type type, int m, int n) {
  return (type == BATCHQR_S || type == BATCHQR_D) && n <= BQR_PIVOTS_FACTOR_COLUMNS && m > n;
}

size_t bqr_pivots_member_shared(batchqr_type type, int m, int n) {
  return with_shape<size_t>(type, m, n, [](auto tag, auto columns, auto factors) {
    return shared_bytes<typename decltype(tag)::type, decltype(columns)::value, decltype(factors)::value>;
  });
}

batchqr_status bqr_pivots_member_prepare(batchqr_type type, const bqr_pivots *p) {
  return with_shape<batchqr_status>(type, p->m, p->n, [&](auto tag, auto columns, auto factors) {
    using T = typename decltype(tag)::type;
    constexpr int N = decltype(columns)::value;
    constexpr bool FACTORS = decltype(factors)::value;
    return prepare_kernel(pivots_member_kernel<T, N, FACTORS>, shared_bytes<T, N, FACTORS>);
  });
}

batchqr_status bqr_pivots_member_order(batchqr_type type, const bqr_args *args, const bqr_pivots *p,
                                       batchqr_stream stream) {
  return with_shape<batchqr_status>(type, p->m, p->n, [&](auto tag, auto columns, auto factors) {
    using T = typename decltype(tag)::type;
    constexpr int N = decltype(columns)::value;
    constexpr bool FACTORS = decltype(factors)::value;
    return launch_kernel(pivots_member_kernel<T, N, FACTORS>, grid_for(p->most),
                         member_shape<wide<T>, N>::threads, shared_bytes<T, N, FACTORS>, stream, *args, *p);
  });
}
