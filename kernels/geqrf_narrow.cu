/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_narrow: tall members of up to 8 or 16 columns, one block or one cluster of blocks for a member, on
 * matrix units. The member lies in shared memory: copies fill it, as many members as fit on a multiprocessor
 * at a time. Its warps form the products of all its columns, one warp makes all reflectors from them and the
 * first rows (common/gram_panel.cuh), and V = A C goes to global memory as it is formed. Where cancellation
 * ends a round early, A C takes the place of A, and the next round starts with its products.
 *
 * While reflectors are made, the other warps look whether entries are out of range, or columns zero below the
 * first rows. If so, or where columns nearly depend on others, the member is loaded again, columns are
 * brought into range, and reflectors made in a way that cares for everything.
 *
 * Method: xGEQRF with one block of columns; columns in range as in common/columns.cuh. */
#include "cluster.cuh"
#include "gram_panel.cuh"
#include "launch.cuh"
#include "member.cuh"
#include "mma.cuh"
#include "ring.cuh"
#include "turn.cuh"

namespace {
using namespace bqr;

/* The factorization of one member of up to N columns by P warps of each of B blocks of up to ROWS rows. */
template <class T, int N, int ROWS, int P, int B> class narrow_qr {
  static_assert(P > 1, "one warp makes the reflectors, the others look over the columns");
  using real = real_t<T>;
  using panel = gram_panel<T, N>;
  static constexpr int tile = 8, sides = N / tile;
  /* Whether the imaginary part of the products is X_re^H X_im minus the transpose. */
  static constexpr bool parts = is_complex<T> && sides > 1;
  /* Of columns in shared memory: neither way of reading them has bank conflicts. */
  static constexpr int banks = 128 / sizeof(T), shift = sizeof(T) == 16 ? 1 : 4;
  static constexpr int stride = (ROWS + banks - 1) / banks * banks + shift;
  static constexpr int small_stride = panel::small_stride;

  struct storage {
    alignas(16) T x[N][stride];
    alignas(16) T small[P - 1][N][small_stride]; /* of sums; the first one: of all, then C */
    typename panel::storage pivots;
    phase_barrier loaded;
    uint32_t magnitude[N], filled; /* of columns; which ones have a tail that is not zero */
    int done, info;
    bool unusual, scaled;
  };

public:
  static constexpr size_t smem = sizeof(storage);

  __device__ __forceinline__ explicit narrow_qr(void *shared)
      : s(*fixed(static_cast<storage *>(shared))), block_(B > 1 ? cluster_rank() : 0),
        warp_(broadcast(warp_id(), 0)) {
    if (thread_id() == 0) s.loaded.init(1);
    sync();
  }

  /* Factors a member; returns its info, in thread 0 of block 0. tau: min(m, n) elements. All its blocks come
   * here together. */
  __device__ __forceinline__ int run(T *a, int64_t ld, int m, int n, T *tau) {
    const int chunk = B == 1 ? ROWS : largest(N, (m + tile * B - 1) / (tile * B) * tile);
    rows_ = broadcast(largest(0, least(chunk, m - block_ * chunk)), 0);
    columns_ = broadcast(n, 0);
    a_ = a + block_ * chunk;
    ld_ = ld;
    if (B > 1 && thread_id() == 0) s.unusual = false;
    for (bool prepared = false; !factor(least(m, n), m > N, prepared, tau);) prepared = true;
    return s.info;
  }

private:
  /* The compiler would find out the address again and again. */
  __device__ __forceinline__ static storage *fixed(storage *p) {
#ifdef __CUDA_ARCH__
    asm("" : "+l"(p));
    __builtin_assume(__isShared(p));
#endif
    return p;
  }
  __device__ __forceinline__ static void sync() {
    if constexpr (B > 1)
      cluster_sync();
    else
      block_sync();
  }
  /* Whether any thread says so. For clusters it stays so until the next member. */
  __device__ __forceinline__ bool any(bool v) {
    if constexpr (B == 1) return block_any(v);
    if (v)
      for (int b = 0; b < B; b++) *cluster_shared(&s.unusual, b) = true;
    cluster_sync();
    return s.unusual;
  }

  /* Of an operand's element: where its lane's column and row are, and for which row or column element e
   * stands, so that there are no bank conflicts. */
  __device__ __forceinline__ static int column() { return lane_id() / 4; }
  __device__ __forceinline__ static int lane() { return lane_id() % 4; }
  __device__ __forceinline__ static int row_of(int e) {
    return sizeof(T) == 16 ? 2 * lane() + e : lane() + 4 * e;
  }
  __device__ __forceinline__ static int column_of(int e) {
    return sizeof(T) == 8 ? lane() + 4 * e : 2 * lane() + e;
  }
  __device__ __forceinline__ int padded_rows() const {
    return largest(block_ == 0 ? N : 0, (rows_ + 2 * tile - 1) / (2 * tile) * (2 * tile));
  }

  /* False: there are unusual columns, and it is not prepared for them. */
  __device__ __forceinline__ bool factor(int count, bool has_tail, bool prepared, T *tau) {
    load();
    if (thread_id() == 0) {
      s.filled = has_tail ? ~0u : 0;
      s.scaled = false;
    }
    if (prepared) bring_into_range();
    panel reflectors(s.pivots, s.x[0], stride, s.small[0][0]);
    for (int done = 0; done < count; prepared = true) {
      gram(done);
      sync();
      bool unusual = false;
      if (block_ == 0 && warp_ == 0) {
        add_blocks();
        if (!prepared) {
          unusual = head_is_unusual() || !has_tail;
          done = count;
          unusual |= !reflectors.template make_all<parts>(count);
        } else
          done = reflectors.template make<parts>(done, count, s.filled);
        if (done == count) finish(reflectors, tau);
        if (lane_id() == 0) s.done = done;
      } else if (!prepared)
        unusual = tail_is_unusual();
      if (prepared)
        sync();
      else if (any(unusual))
        return false;
      done = *cluster_shared(&s.done, 0);
      recombine(done == count);
      sync();
    }
    return true;
  }

  __device__ __forceinline__ void load() {
    bulk_fence();
    block_sync();
    const int padded = padded_rows(), bytes = rows_ * static_cast<int>(sizeof(T));
    const bool bulk = (reinterpret_cast<uint64_t>(a_) | static_cast<uint64_t>(ld_) * sizeof(T) |
                       static_cast<uint64_t>(bytes)) %
                          16 ==
                      0;
    if (!bulk) {
      for (int j = warp_; j < columns_; j += P)
#pragma unroll 8
        for (int i = lane_id(); i < rows_; i += warp_lanes) s.x[j][i] = a_[i + j * ld_];
    } else if (warp_ == 0) {
      if (lane_id() == 0) s.loaded.arrive_before_bytes(columns_ * bytes);
      warp_sync();
      if (bytes > 0 && lane_id() < columns_) s.loaded.copy_bulk(s.x[lane_id()], a_ + lane_id() * ld_, bytes);
    }
    if (rows_ < padded || columns_ < N)
      for (int j = warp_; j < N; j += P)
        for (int i = (j < columns_ ? rows_ : 0) + lane_id(); i < padded; i += warp_lanes)
          s.x[j][i] = zero<T>();
    if (bulk) {
      s.loaded.wait(parity_);
      parity_ ^= 1;
    }
    block_sync();
  }

  /* A warp's part of X^H X, from units of 8 rows. */
  struct products_of_one_side {
    static constexpr int values = 2;
    square_sum<T> sum[2];
    __device__ __forceinline__ void add(const T (&x)[2], int which) {
      const operand<T> a[2] = {split(x[0]), split(x[1])};
      sum[which].add(a, {conj(a[0]), conj(a[1])});
    }
    __device__ __forceinline__ void get(T (&y)[values]) const {
      T other[values];
      sum[0].get(y);
      sum[1].get(other);
#pragma unroll
      for (int i = 0; i < values; i++) y[i] = y[i] + other[i];
    }
  };
  struct products_of_two_sides {
    static constexpr int values = 8;
    real sum[2][2][4] = {}; /* of X_re^H X_re + X_im^H X_im, of X_re^H X_im */
    __device__ __forceinline__ void add(const T (&x)[4], int) {
      operand<real> a[2][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        a[0][i] = split(real_part(x[i]));
        a[1][i] = split(imag_part(x[i]));
      }
#pragma unroll
      for (int n = 0; n < 2; n++) {
        multiply_add(sum[n][0], a[0], {a[0][2 * n], a[0][2 * n + 1]});
        if constexpr (is_complex<T>) {
          multiply_add(sum[n][0], a[1], {a[1][2 * n], a[1][2 * n + 1]});
          multiply_add(sum[n][1], a[0], {a[1][2 * n], a[1][2 * n + 1]});
        }
      }
    }
    __device__ __forceinline__ void get(T (&y)[values]) const {
#pragma unroll
      for (int i = 0; i < values; i++) {
        y[i] = make<T>(sum[i / 4][0][i % 4]);
        if constexpr (is_complex<T>) y[i].im = sum[i / 4][1][i % 4];
      }
    }
  };
  using products = std::conditional_t<sides == 1, products_of_one_side, products_of_two_sides>;
  /* Where value i of this lane's products is. */
  __device__ __forceinline__ T &place(int which, int i) const {
    const int g = column(), q = lane();
    if constexpr (sides == 1) return s.small[which][g][2 * q + i];
    return s.small[which][tile * (i / 4) + 2 * q + i % 2][g + tile * (i / 2 % 2)];
  }
  __device__ __forceinline__ void take(T (&x)[2 * sides], int u) const {
#pragma unroll
    for (int i = 0; i < 2 * sides; i++) x[i] = s.x[tile * (i / 2) + column()][tile * u + row_of(i % 2)];
  }

  /* X^H X of the block's rows from `first` on. */
  __device__ __forceinline__ void gram(int first) {
    constexpr int at_once = sizeof(T) == 16 ? 2 : 4;
    const int padded = padded_rows();
    products sum;
    int u = warp_;
    for (; block_ == 0 && u < sides; u += P) {
      T x[2 * sides];
      take(x, u);
#pragma unroll
      for (int i = 0; i < 2 * sides; i++)
        if (tile * u + row_of(i % 2) < first) x[i] = zero<T>();
      sum.add(x, 0);
    }
#pragma unroll 1
    for (; tile * (u + P * (at_once - 1)) < padded; u += P * at_once) {
      T x[at_once][2 * sides];
#pragma unroll
      for (int i = 0; i < at_once; i++) take(x[i], u + P * i);
#pragma unroll
      for (int i = 0; i < at_once; i++) sum.add(x[i], i % 2);
    }
#pragma unroll 1
    for (; tile * u < padded; u += P) {
      T x[2 * sides];
      take(x, u);
      sum.add(x, 0);
    }
    T part[products::values];
    sum.get(part);
    if (warp_ > 0) {
#pragma unroll
      for (int i = 0; i < products::values; i++) place(warp_ - 1, i) = part[i];
    }
    block_sync();
    if (warp_ > 0) return;
#pragma unroll
    for (int p = 0; p < P - 1; p++)
#pragma unroll
      for (int i = 0; i < products::values; i++) part[i] = part[i] + place(p, i);
#pragma unroll
    for (int i = 0; i < products::values; i++) place(0, i) = part[i];
  }

  /* The sums over the blocks, by one warp of block 0. */
  __device__ __forceinline__ void add_blocks() {
    if constexpr (B == 1) return;
    constexpr int each = N * N / warp_lanes;
    T sum[each];
    auto place = [&](int e) { return &s.small[0][warp_lanes / N * e + lane_id() / N][lane_id() % N]; };
#pragma unroll
    for (int e = 0; e < each; e++) sum[e] = *place(e);
#pragma unroll
    for (int b = 1; b < B; b++)
#pragma unroll
      for (int e = 0; e < each; e++) sum[e] = sum[e] + *cluster_shared(place(e), b);
#pragma unroll
    for (int e = 0; e < each; e++) *place(e) = sum[e];
    warp_sync();
  }

  /* Whether an entry is out of range in the first N rows of block 0: by one warp. */
  __device__ __forceinline__ bool head_is_unusual() const {
    bool outside = false;
#pragma unroll
    for (int e = 0; e < N * N / warp_lanes; e++) {
      const int i = lane_id() % N, j = warp_lanes / N * e + lane_id() / N;
      outside |= i < rows_ && j < columns_ && out_of_range(s.x[j][i]);
    }
    return outside;
  }
  /* Likewise in the block's other rows, or whether they are zeros in one of the columns: by all its warps but
   * that one. */
  __device__ __forceinline__ bool tail_is_unusual() const {
    const int from = block_ == 0 ? 1 : 0;
    bool unusual = false;
    for (int j = warp_ - from; j < columns_; j += P - from) {
      bool suspicious = false;
#pragma unroll 4
      for (int i = N * from + lane_id(); i < rows_; i += warp_lanes)
        suspicious |= !in_column_range(s.x[j][i]); /* cheaper, but single zeros are suspicious too */
      if (!group_any(suspicious)) continue;
      bool filled = false;
      for (int i = N * from + lane_id(); i < rows_; i += warp_lanes) {
        unusual |= out_of_range(s.x[j][i]);
        filled |= !is_zero(s.x[j][i]);
      }
      unusual |= !group_any(filled);
    }
    return unusual;
  }

  /* Scales columns that are out of range, and finds those with a tail. */
  __device__ void bring_into_range() {
    const int head = block_ == 0 ? N : 0;
    if (thread_id() < N) s.magnitude[thread_id()] = 0;
    if (thread_id() == 0) s.filled = 0;
    sync();
    for (int j = warp_; j < columns_; j += P) {
      uint32_t u = 0;
      bool filled = false;
      for (int i = lane_id(); i < rows_; i += warp_lanes) {
        u = greater(u, magnitude(s.x[j][i]));
        filled |= i >= head && !is_zero(s.x[j][i]);
      }
      u = group_max(u);
      filled = group_any(filled);
      if (lane_id() > 0) continue;
      for (int b = 0; b < B; b++) {
        shared_max(cluster_shared(&s.magnitude[j], b), u);
        if (filled) atomicOr(cluster_shared(&s.filled, b), 1u << j);
      }
    }
    sync();
    for (int j = warp_; j < columns_; j += P) {
      const real scale = exponent_scale<real>(column_exponent<T>(s.magnitude[j]));
      for (int i = lane_id(); i < rows_; i += warp_lanes) s.x[j][i] = scaled(s.x[j][i], scale);
    }
    if (thread_id() == 0) s.scaled = true;
    block_sync();
  }

  /* When all reflectors are made: tau, info, and R without the columns' scales. By the warp that has them. */
  __device__ __forceinline__ void finish(const panel &reflectors, T *tau) {
    const int count = least(rows_, columns_), g = panel::column();
    if (panel::first_of_column() && g < count) tau[g] = reflectors.tau();
    warp_sync();
    bool finite = true;
    if (s.scaled)
      for (int j = 0; j < columns_; j++) {
        finite &= magnitude_finite<T>(s.magnitude[j]);
        const real back = exponent_scale<real>(-column_exponent<T>(s.magnitude[j]));
        if (lane_id() <= j) s.x[j][lane_id()] = scaled(s.x[j][lane_id()], back);
      }
    warp_sync();
    const int zero_column = first_lane(lane_id() < count && is_zero(s.x[lane_id() % N][lane_id() % N]));
    if (lane_id() == 0) s.info = finite ? zero_column + 1 : BATCHQR_INFO_NONFINITE;
  }

  /* X := X C below the first N rows. If it is the last time, into global memory, and these rows as well. */
  __device__ __forceinline__ void recombine(bool last) {
    const int g = column(), q = lane(), padded = padded_rows();
    const T *c = cluster_shared(&s.small[0][0][0], 0);
    operand<T> b[sides][sides][2];
#pragma unroll
    for (int n = 0; n < sides; n++)
#pragma unroll
      for (int k = 0; k <= n; k++)
#pragma unroll
        for (int e = 0; e < 2; e++)
          b[n][k][e] = split(c[(tile * n + g) * small_stride + tile * k + column_of(e)]);
    T *to = a_ + g + 2 * q * ld_;
#pragma unroll 2
    for (int row = 2 * tile * warp_; row < padded; row += 2 * tile * P) {
      T v[sides][4] = {};
      const bool head = block_ == 0 && row == 0;
      if (sides == 1 || !head) {
        operand<T> a[sides][4];
#pragma unroll
        for (int k = 0; k < sides; k++)
#pragma unroll
          for (int i = 0; i < 4; i++)
            a[k][i] = split(s.x[tile * k + column_of(i % 2)][row + g + tile * (i / 2)]);
#pragma unroll
        for (int n = 0; n < sides; n++)
#pragma unroll
          for (int k = 0; k <= n; k++) multiply_add(v[n], a[k], b[n][k]);
      }
      if (head) {
#pragma unroll
        for (int n = 0; n < sides; n++)
#pragma unroll
          for (int i = 0; i < 2 * sides; i++) v[n][i] = s.x[tile * n + 2 * q + i % 2][g + tile * (i / 2)];
      }
      if (!last) warp_sync();
#pragma unroll
      for (int n = 0; n < sides; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const int i_row = row + tile * (i / 2), j = tile * n + i % 2;
          if (!last)
            s.x[j + 2 * q][i_row + g] = v[n][i];
          else if (i_row + g < rows_ && j + 2 * q < columns_)
            to[i_row + j * ld_] = v[n][i];
        }
    }
  }

  storage &s;
  T *a_;
  int64_t ld_;
  int rows_, columns_, block_, warp_;
  uint32_t parity_ = 0;
};

/* Registers of a thread without which its kernel is slower; short members rather come in large numbers. */
template <class T, int N, int ROWS>
constexpr int wanted_registers = sizeof(T) == 4           ? 6 * N + 32
                                 : sizeof(T) == 16        ? 11 * N + 79
                                 : N == 16 && ROWS <= 128 ? 128
                                                          : 5 * N + 88;
/* Blocks that shared memory and these leave room for on a multiprocessor. */
template <class T, int N, int ROWS, int P, int B> constexpr int resident_blocks() {
  constexpr int by_memory = 228 * 1024 / static_cast<int>(narrow_qr<T, N, ROWS, P, B>::smem + 1024),
                by_registers = 65536 / (wanted_registers<T, N, ROWS> * P * warp_lanes);
  return by_memory < 1 || by_registers < 1 ? 1 : by_memory < by_registers ? by_memory : by_registers;
}

/* multiprocessors: of the device. The first blocks of each take turns. */
template <class T, int N, int ROWS, int P, int B>
__global__ void __launch_bounds__(P *warp_lanes, resident_blocks<T, N, ROWS, P, B>())
    geqrf_narrow_kernel(const __grid_constant__ batchqr_args args, int multiprocessors) {
  if constexpr (has_clusters) {
    extern __shared__ __align__(128) unsigned char shared[];
    const int turn = static_cast<int>(blockIdx.x) / multiprocessors;
    if (turn < resident_blocks<T, N, ROWS, P, B>())
      wait_for_turn(turn, static_cast<int64_t>(sizeof(T)) * args.m * args.n / B);
    narrow_qr<T, N, ROWS, P, B> qr(shared);
    for (int64_t i = blockIdx.x / B; i < args.count; i += gridDim.x / B) {
      const member x = member_at<BATCHQR_GEQRF>(args, args.count - 1 - i); /* the newest first: still in L2 */
      int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
      if (x.ok && x.m > 0 && x.n > 0)
        info = qr.run(matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n,
                      tau_data<T>(args, x.id));
      if (thread_id() == 0 && blockIdx.x % B == 0) set_info(args, x.id, info);
    }
  }
}

enum : int { S = 1 << BATCHQR_S, D = 1 << BATCHQR_D, C = 1 << BATCHQR_C, Z = 1 << BATCHQR_Z };
/* N, ROWS, P, B, types */
constexpr batchqr_variant variants[] = {
    {"rows256.cols8.warps2", {8, 256, 2, 1, S | D | C | Z}},
    {"rows128.cols16.warps2", {16, 128, 2, 1, D | C}},
    {"rows256.cols16.warps2", {16, 256, 2, 1, S | D | C | Z}},
    {"rows512.cols16.warps4", {16, 512, 4, 1, S | D | C}},
    {"rows512.cols16.warps2.blocks2", {16, 256, 2, 2, Z}},
    {"rows1024.cols16.warps4", {16, 1024, 4, 1, S}},
    {"rows1024.cols16.warps8", {16, 1024, 8, 1, D | C}},
    {"rows2048.cols16.warps4.blocks2", {16, 1024, 4, 2, S}},
};
constexpr int num_variants = sizeof variants / sizeof variants[0];

/* f(kernel, bytes of shared memory) of the variant's instance. */
template <class T, class F> batchqr_status with_type(int variant, F &&f) {
  return for_index<num_variants>(variant, [&](auto index) {
    constexpr const int(&p)[6] = variants[decltype(index)::value].p;
    if constexpr ((p[4] & 1 << type_of<T>) != 0)
      return f(geqrf_narrow_kernel<T, p[0], p[1], p[2], p[3]>, narrow_qr<T, p[0], p[1], p[2], p[3]>::smem);
    else
      return BATCHQR_UNSUPPORTED;
  });
}
template <class F>
batchqr_status with_instance(const batchqr_problem *problem, const batchqr_variant *variant, F &&f) {
  return for_type(problem->type, [&](auto tag) {
    return with_type<typename decltype(tag)::type>(static_cast<int>(variant - variants), f);
  });
}

bool supports(const batchqr_problem *problem, const batchqr_variant *variant, const batchqr_device *device) {
  const int columns = variant->p[0], rows = variant->p[1] * variant->p[3], blocks = variant->p[3];
  if (problem->m > rows || problem->n > columns || problem->positive || (blocks > 1 && device->sm >= 120))
    return false;
  return with_instance(problem, variant, [&](auto, size_t smem) {
           return smem <= static_cast<size_t>(device->smem_per_block) ? BATCHQR_SUCCESS : BATCHQR_UNSUPPORTED;
         }) == BATCHQR_SUCCESS;
}

batchqr_status prepare(const batchqr_problem *problem, const batchqr_variant *variant,
                       const batchqr_device *) {
  return with_instance(problem, variant,
                       [&](auto kernel, size_t smem) { return prepare_kernel(kernel, smem, variant->p[3]); });
}

batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant,
                      const batchqr_device *device, const batchqr_args *args, batchqr_stream stream) {
  const int threads = variant->p[2] * warp_lanes, blocks = variant->p[3];
  return with_instance(problem, variant, [&](auto kernel, size_t smem) {
    return launch_clusters(kernel, grid_for(args->count), blocks, threads, smem, stream, *args,
                           device->multiprocessors);
  });
}
} // namespace

extern "C" const batchqr_family batchqr_family_geqrf_narrow = {
    "geqrf_narrow",
    BATCHQR_GEQRF,
    BATCHQR_ALL_TYPES,
    BATCHQR_BACKEND_CUDA,
    90,
    variants,
    num_variants,
    1,
    supports,
    nullptr,
    prepare,
    launch,
};
