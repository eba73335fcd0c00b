/* SPDX-License-Identifier: BSD-3-Clause */
/* Warps of tiny members: what the kernels of the *_warp families are made of, and their host side. */
#ifndef BQR_KERNELS_COMMON_PANEL_TINY_WARP_CUH
#define BQR_KERNELS_COMMON_PANEL_TINY_WARP_CUH

#include "common/simt/launch.cuh"
#include "tiny.cuh"
#include "tiny_variants.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cp_async.cuh"

namespace bqr {

/* Entry i of a launch of operation OP; past the last one and with sizes that do not fit, a member without
 * elements. */
template <int OP> __device__ __forceinline__ member tiny_member(const bqr_args &args, int64_t i) {
  if (i >= args.count) return {i, 0, 0, 0, true};
  member x = member_at<OP>(args, i);
  if (!x.ok) x.m = x.n = x.k = 0;
  return x;
}

/* How many reflectors a member has. */
template <int OP> __device__ __forceinline__ int tiny_reflectors(const member &x) {
  return OP == BATCHQR_ORGQR ? x.k : least(x.m, x.n);
}

/* The part of a member that an operand holds. */
enum tiny_part {
  tiny_all,     /* m x n */
  tiny_columns, /* m x k: V, thin Q */
  tiny_r,       /* k x n; in A's place m x n */
  tiny_b,       /* of GELS: B, m x k, behind A's columns */
  tiny_x        /* of GELS: X, n x k, there */
};

/* Moves an operand's members of a warp between global memory and their tiles. */
template <int OP, tiny_part PART, class T, class tile> class tiny_mover {
  static constexpr int rows = PART == tiny_r ? tile::cols : tile::rows; /* of a member that fills its tile */
  static constexpr int unit = pack<T>::size;
  using walk = tile_walk<T, tile::movers(tile::lanes), tile::ld>;
  using dense = dense_walk<T, rows, tile::cols, tile::members, tile::ld, tile::size>;

public:
  __device__ __forceinline__ tiny_mover(const bqr_args &args, const bqr_matrix &x, T *shared)
      : args_(args), x_(x), shared_(shared),
        alike_(!args.members && !args.m_array && !args.n_array && !x.pointers && !x.ld_array &&
               !((OP == BATCHQR_ORGQR || OP == BATCHQR_GELS) && args.k_array)) {
    const bool aligned = reinterpret_cast<uint64_t>(x.data) % 16 == 0;
    by_strides_ = (OP == BATCHQR_QR || OP == BATCHQR_GELS) && PART == tiny_all && x.row_stride != 1;
    dense_ = alike_ && aligned && !by_strides_ && alike_rows() == rows &&
             columns(alike_member()) == tile::cols && x.ld == rows && x.stride == rows * tile::cols;
    flat_ = OP == BATCHQR_GEQRF && alike_ && aligned && !dense_ && x.ld == args.m &&
            x.stride == args.m * args.n && lies_flat(args.m);
  }

  /* Whether the members from `first` on fill their tiles and lie one behind the other. */
  __device__ __forceinline__ bool fills(int64_t first) const {
    return dense_ && first + tile::members <= args_.count;
  }

  /* Whether smaller ones do, and lie so in shared memory too, without regard to tiles: 23 x 17, say, is moved
   * 16 bytes at a time that way. */
  __device__ __forceinline__ bool flat(int64_t first) const {
    return flat_ && first + tile::members <= args_.count;
  }

  /* Where the lane's member lies flat, from its tile on: the first one as far behind 16 bytes as in global
   * memory. */
  __device__ __forceinline__ int flat_shift(int64_t first) const {
    return skew(at(first)) + lane_id() / tile::lanes * (elements() + gap() - tile::size);
  }

  /* For the members from `first` on: */
  __device__ __forceinline__ void load_async(int64_t first) const { each(first, copy()); }
  __device__ __forceinline__ void store(int64_t first) const { each(first, put()); }
  __device__ __forceinline__ void store_upper(int64_t first) const {
    each(first, [](const auto *from, auto *to, int row, int col) { *to = upper(*from, row, col); });
  }

  /* Likewise, one by one. */
  __device__ __forceinline__ void load_each_async(int64_t first) const { one_by_one(first, copy()); }
  __device__ __forceinline__ void store_each(int64_t first) const { one_by_one(first, put()); }

private:
  struct copy {
    template <class U> __device__ __forceinline__ void operator()(U *to, const U *from, int, int) const {
      copy_async<sizeof(U)>(to, from);
    }
  };
  struct put {
    template <class U> __device__ __forceinline__ void operator()(const U *from, U *to, int, int) const {
      *to = *from;
    }
  };

  /* f(in shared memory, in global memory, row, column) for each pack or element from member `first` on. */
  template <class F> __device__ __forceinline__ void each(int64_t first, F &&f) const {
    if (fills(first))
      dense::each(shared_, at(first), f);
    else if (flat(first))
      each_flat(at(first), f);
    else
      one_by_one(first, f);
  }

  __device__ __forceinline__ T *at(int64_t i) const { return static_cast<T *>(x_.data) + i * x_.stride; }

  /* Columns of whole packs are moved by packs anyway, and in tiles the lanes' accesses to them are in
   * different banks (10 000 of 32 x 7, s: 0.0316 ms -> 0.0168). Where columns are an odd number of packs, or
   * lanes take them in turns, they are in either case, and many members are moved faster at once (26 x 4, d:
   * 0.0216 -> 0.0156). */
  static __device__ __forceinline__ bool lies_flat(int m) {
    return rows <= 8 || m % unit != 0 || (spreads && (tile::early || m / unit % 2 != 0));
  }

  __device__ __forceinline__ int elements() const { return args_.m * args_.n; }

  /* Between members that are whole packs there are so many elements that the lanes of different ones read
   * from different banks, where many share a warp (100 000 of 14 x 16, s: 0.142 ms -> 0.076). */
  static constexpr bool spreads = tile::members >= 8;
  static constexpr int spread = tile::lanes < unit ? 1 : tile::lanes / unit;
  static_assert(OP != BATCHQR_GEQRF || !spreads ||
                    (2 * spread - 1) * unit <= tile::cols * (tile::ld - tile::rows + 1),
                "tiles have room for it");
  __device__ __forceinline__ int gap() const {
    const int packs = elements() / unit;
    return spreads && packs * unit == elements() ? ((spread - packs) & (2 * spread - 1)) * unit : 0;
  }

  static constexpr bool whole = tile::members % unit == 0; /* a warp's members are whole packs */
  static __device__ __forceinline__ int skew(const T *global) {
    return whole ? 0 : static_cast<int>(reinterpret_cast<uint64_t>(global) / sizeof(T)) % unit;
  }

  /* Of members that lie flat: packs, and before and behind them single elements. */
  template <class F> __device__ __forceinline__ void each_flat(T *global, F &&f) const {
    __builtin_assume(__isGlobal(global));
    const int lane = lane_id(), begin = skew(global), head = -begin & (unit - 1);
    const int end = elements() * tile::members, tail = head + (end - head) / unit * unit;
    const int apart = gap();
    const uint32_t inverse = apart ? 0xffffffffu / static_cast<uint32_t>(elements()) : 0; /* i / elements() */
    T *shared = shared_ + begin;
#pragma unroll 4
    for (int i = head + lane * unit; i < tail; i += warp_lanes * unit) {
      const int gaps = static_cast<int>(__umulhi(i + 1, inverse)) * apart;
      f(reinterpret_cast<pack<T> *>(shared + i + gaps), reinterpret_cast<pack<T> *>(global + i), 0, 0);
    }
    if constexpr (!whole) {
      const int i = lane < head ? lane : tail + lane - head;
      if (i < end) f(shared + i, global + i, 0, 0);
    }
  }

  /* As many lanes to a member as there is work for. */
  template <class F> __device__ __forceinline__ void one_by_one(int64_t first, F &&f) const {
    constexpr int movers = tile::movers(tile::lanes), step = warp_lanes / movers;
    int g = lane_id() / movers;
    if (by_strides_) {
      for (; g < tile::members; g += step) element_by_element(first + g, shared_ + g * tile::size, f);
    } else if (alike_) {
      const int m = alike_rows(), n = columns(alike_member());
      if (m == 0 || n == 0) return;
      const walk w(m, tile_packs(at(0), x_.ld, m) && tile_packs(at(1), x_.ld, m), lane_id() % movers);
      const int64_t left = (args_.count - first - g + step - 1) / step;
      w.template each<tile::members / step, step * tile::size>(
          shared_ + g * tile::size + behind(alike_member()), at(first + g), x_.ld, n,
          static_cast<int>(left < tile::members ? left : tile::members), step * x_.stride, f);
    } else {
      for (; g < tile::members; g += step) {
        member x = tiny_member<OP>(args_, first + g);
        if (x.m == 0 || columns(x) == 0) continue;
        T *a = matrix_data<T>(args_, x_, x.id);
        int64_t ld = matrix_ld(x_, x.id);
        int m = rows_of(x, PART == tiny_r && a == matrix_data<T>(args_, args_.a, x.id));
        if (m == 0) continue;
        walk(m, tile_packs(a, ld, m), lane_id() % movers)
            .template each<1, 0>(shared_ + g * tile::size + behind(x), a, ld, columns(x), 1, 0, f);
      }
    }
  }

  /* A of any strides: adjacent lanes take what is closest in memory. */
  template <class F> __device__ __forceinline__ void element_by_element(int64_t i, T *shared, F &&f) const {
    const member x = tiny_member<OP>(args_, i);
    if (x.m == 0 || x.n == 0) return;
    T *a = matrix_data<T>(args_, x_, x.id);
    const int64_t ld = matrix_ld(x_, x.id), row_stride = x_.row_stride;
    const bool by_rows = llabs(ld) < llabs(row_stride);
    walk(by_rows ? x.n : x.m, false, lane_id() % tile::movers(tile::lanes))
        .each_place(by_rows ? x.m : x.n, [&](int near, int far) {
          const int row = by_rows ? far : near, col = by_rows ? near : far;
          f(shared + row + col * tile::ld, a + row * row_stride + col * ld, row, col);
        });
  }

  static __device__ __forceinline__ int rows_of(const member &x, bool in_place) {
    return PART == tiny_x ? x.n : PART == tiny_r && !in_place ? tiny_reflectors<OP>(x) : x.m;
  }
  static __device__ __forceinline__ int columns(const member &x) {
    if (PART == tiny_b || PART == tiny_x) return x.k;
    return PART == tiny_columns ? tiny_reflectors<OP>(x) : x.n;
  }

  /* Where in the tile the part begins. */
  static __device__ __forceinline__ int behind(const member &x) {
    return PART == tiny_b || PART == tiny_x ? x.n * tile::ld : 0;
  }

  /* Any member, where all have the sizes of the launch. */
  __device__ __forceinline__ member alike_member() const {
    member x{0, args_.m, args_.n, args_.k, true};
    if constexpr (OP == BATCHQR_ORGQR) {
      if (args_.thin) x.n = least(x.m, x.n);
      x.k = args_.thin ? x.n : least(x.k, x.n);
    }
    return x;
  }
  __device__ __forceinline__ int alike_rows() const {
    return rows_of(alike_member(), PART == tiny_r && x_.data == args_.a.data);
  }

  const bqr_args &args_;
  const bqr_matrix &x_;
  T *shared_;
  bool alike_, dense_, flat_, by_strides_;
};

/* Whether R's diagonal is not to be negative, where instances differ by it; else a bool says so. */
template <bool POSITIVE> struct known_sign {
  BQR_INLINE constexpr explicit known_sign(bool) {}
  BQR_INLINE constexpr operator bool() const { return POSITIVE; }
};

/* The members of a warp from entry `first` of a launch on. Words are for all of its lanes together. */
template <int OP, class T, int ROWS, int COLS, int LANES, int SPLIT, class SIGN> class tiny_warp {
  using tile = tiny_tile<T, ROWS, COLS, LANES, SPLIT>;
  template <tiny_part PART> using mover = tiny_mover<OP, PART, T, tile>;

public:
  const bqr_args &args;

  /* positive: R's diagonal is not negative. */
  __device__ __forceinline__ tiny_warp(const bqr_args &launch, SIGN positive, T *shared, int64_t first)
      : args(launch), shared_(shared), first_(first), qr_(shared), flat_(false), positive_(positive) {}

  /* Loads an operand; all else comes after it. */
  template <tiny_part PART> __device__ __forceinline__ void load(const bqr_matrix &from) {
    const mover<PART> move(args, from, shared_);
    move.load_async(first_);
    const int64_t i = first_ + lane_id() / LANES;
    full_ = OP != BATCHQR_ORGQR && move.fills(first_);
    flat_ = OP == BATCHQR_GEQRF && move.flat(first_);
    member_ = full_ ? member{i, ROWS, COLS, COLS, true} : tiny_member<OP>(args, i);
    k_ = full_ ? COLS : tiny_reflectors<OP>(member_);
    if constexpr (OP == BATCHQR_ORGQR) qr_.set_tau(k_ > 0 ? tau_data<T>(args, member_.id) : nullptr, k_);
    copy_async_wait();
    warp_sync();
  }

  /* Loads A and, behind it, B. */
  __device__ __forceinline__ void load_system() {
    mover<tiny_all>(args, args.a, shared_).load_each_async(first_);
    mover<tiny_b>(args, args.c, shared_).load_each_async(first_);
    member_ = tiny_member<OP>(args, first_ + lane_id() / LANES);
    copy_async_wait();
    warp_sync();
  }

  /* Writes what the tiles hold. */
  template <tiny_part PART> __device__ __forceinline__ void store(const bqr_matrix &to) const {
    mover<PART>(args, to, shared_).store(first_);
  }
  template <tiny_part PART> __device__ __forceinline__ void store_upper(const bqr_matrix &to) const {
    mover<PART>(args, to, shared_).store_upper(first_);
  }

  /* Tiles of A become R and the vectors; info is written. */
  __device__ __forceinline__ void factor() {
    qr_.read(member_.m, member_.n, flat_, shift());
    uint32_t top;
    if constexpr (OP == BATCHQR_GEQRF)
      top = qr_.factor(member_.n, k_, positive_);
    else
      top = qr_.factor(member_.n, k_, std::false_type{});
    if (args.info) put_info(qr_.info(top, k_));
    if (OP != BATCHQR_GEQRF && positive_) qr_.turn_rows();
    write();
  }

  __device__ __forceinline__ void store_solution() const {
    mover<tiny_x>(args, args.c, shared_).store_each(first_);
  }

  /* Tiles of A and B become R and X; info and the norms of residuals are written. */
  __device__ __forceinline__ void solve() {
    const int n = member_.n, k = member_.k;
    bool scaled;
    qr_.read(member_.m, n + k);
    const uint32_t top = qr_.factor_system(n + k, n, scaled);
    const int info = qr_.info(top, n);
    write();
    put_info(info);
    if (args.norms.data) put_norms(info == 0);
    qr_.solve(n, k, scaled);
    warp_sync();
  }

  __device__ __forceinline__ void store_tau() const {
    T *to = static_cast<T *>(args.tau.data);
    if (full_ && !args.tau.pointers && !args.tau.offsets && args.tau.stride == COLS &&
        reinterpret_cast<uint64_t>(to) % 16 == 0)
      qr_.store_taus(to + first_ * COLS);
    else if (k_ > 0)
      qr_.store_tau(tau_data<T>(args, member_.id), k_);
  }

  /* The vectors of tiles that were loaded, for form_q(); info is written. */
  __device__ __forceinline__ void take_vectors() {
    qr_.read(member_.m, k_);
    if (args.info) put_info(qr_.vectors_finite() ? 0 : BATCHQR_INFO_NONFINITE);
  }

  /* Tiles become Q. */
  __device__ __forceinline__ void form_q() {
    warp_sync();
    qr_.write_vectors();
    warp_sync();
    qr_.form_q(tiny_steps(k_));
    if (OP == BATCHQR_QR && positive_) qr_.turn_columns();
    write();
  }

private:
  __device__ __forceinline__ int shift() const {
    return flat_ ? mover<tiny_all>(args, args.a, shared_).flat_shift(first_) : 0;
  }

  __device__ __forceinline__ void write() {
    warp_sync();
    qr_.write(member_.m, member_.n, flat_, shift());
    warp_sync();
  }

  __device__ __forceinline__ void put_info(int info) const {
    if (lane_id() % LANES == 0 && first_ + lane_id() / LANES < args.count)
      set_info(args, member_.id, member_.ok ? info : BATCHQR_INFO_SIZES);
  }

  __device__ __forceinline__ void put_norms(bool solved) const {
    using R = real_t<T>;
    R *norms = member_.k > 0 ? vector_data<R>(args.norms, member_.id) : nullptr;
    qr_.each_norm(member_.n, [&](int column, R norm) {
      const int j = column - member_.n;
      if (j >= 0 && j < member_.k) norms[j] = solved ? norm : static_cast<R>(nan(""));
    });
  }

  T *shared_;
  int64_t first_;
  tiny_qr<T, ROWS, COLS, LANES, SPLIT> qr_;
  member member_; /* of this lane */
  int k_;
  bool full_; /* members fill their tiles and lie one behind the other */
  bool flat_; /* smaller ones do, in shared memory too */
  SIGN positive_;
};

/* WORK::run(warp) for all members; WORK::op is the operation. From the last member to the first: what was
 * written last before the launch is still in the L2 cache (10^6 of 4 x 4, s: 0.0409 ms -> 0.0382; 8 x 8, z:
 * 0.126 -> 0.114). */
template <class WORK, class T, int ROWS, int COLS, int LANES, int SPLIT, class SIGN = bool>
__global__ void __launch_bounds__(warp_lanes, tiny_tile<T, ROWS, COLS, LANES, SPLIT>::blocks)
    tiny_kernel(const __grid_constant__ bqr_args args, SIGN positive) {
  constexpr int members = tiny_tile<T, ROWS, COLS, LANES, SPLIT>::members;
  extern __shared__ __align__(16) unsigned char dynamic[];
  for (int64_t first = int64_t(gridDim.x - 1 - blockIdx.x) * members; first < args.count;
       first += int64_t(gridDim.x) * members) {
    tiny_warp<WORK::op, T, ROWS, COLS, LANES, SPLIT, SIGN> warp(args, positive,
                                                                reinterpret_cast<T *>(dynamic), first);
    WORK::run(warp);
    warp_sync();
  }
}

/* The host side of a family: WORK::variants are its instances. VARIANTS: the first so many. */
template <class WORK, int VARIANTS = sizeof WORK::variants / sizeof WORK::variants[0]> struct tiny_family {
  static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *) {
    return problem->m <= variant->rows && problem->n <= variant->cols &&
           (variant->types & 1 << problem->type) != 0;
  }

  static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *) {
    return !variant->full || (3 * problem->m > 2 * variant->rows && 3 * problem->n > 2 * variant->cols);
  }

  static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *) {
    return with_instance(problem, variant,
                         [](auto kernel, auto tile) { return prepare_kernel(kernel, tile.smem); });
  }

  static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *,
                               const bqr_args *args, batchqr_stream stream) {
    return with_instance(problem, variant, [&](auto kernel, auto tile) {
      return launch_kernel(kernel, dim3(grid_for((args->count - 1) / tile.members + 1)), warp_lanes,
                           tile.smem, stream, *args, problem->positive);
    });
  }

private:
  /* f(kernel, tile) of the instance of type T. Where a kernel hardly fits into the cache of instructions,
   * signs have one of their own. */
  template <class T, class F>
  static batchqr_status with_type(type_tag<T>, int variant, [[maybe_unused]] bool positive, F &&f) {
    return for_index<VARIANTS>(variant, [&](auto index) {
      constexpr const bqr_variant &v = WORK::variants[decltype(index)::value];
      constexpr bool large = WORK::op == BATCHQR_QR && v.rows * v.cols >= 64 * 64;
      using tile = tiny_tile<T, v.rows, v.cols, v.lanes, v.split>;
      if constexpr ((v.types & 1 << type_of<T>) == 0)
        return BATCHQR_UNSUPPORTED;
      else if constexpr (large)
        return positive
                   ? f(tiny_kernel<WORK, T, v.rows, v.cols, v.lanes, v.split, known_sign<true>>, tile{})
                   : f(tiny_kernel<WORK, T, v.rows, v.cols, v.lanes, v.split, known_sign<false>>, tile{});
      else
        return f(tiny_kernel<WORK, T, v.rows, v.cols, v.lanes, v.split>, tile{});
    });
  }
  template <class F>
  static batchqr_status with_instance(const bqr_problem *problem, const bqr_variant *variant, F &&f) {
    return for_type(problem->type, [&](auto tag) {
      return with_type(tag, static_cast<int>(variant - WORK::variants), problem->positive, f);
    });
  }
};

} // namespace bqr

#endif
