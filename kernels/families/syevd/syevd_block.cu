/* SPDX-License-Identifier: BSD-3-Clause */
/* syevd_block: a block for each member, which lies in shared memory where it fits, else in the workspace.
 *
 * A + shift I, with a shift that makes all its eigenvalues positive and of one size, is a matrix whose
 * singular vectors are A's eigenvectors: one-sided Jacobi makes its columns these, times the shifted
 * eigenvalues. Nothing but the columns is needed, and clusters of eigenvalues are like others. */
#include "common/panel/jacobi.cuh"
#include "common/simt/slots.cuh"

namespace bqr {
namespace {

constexpr int most_threads = 512;

/* Elements and, beside them, eigenvalues and their places. */
template <class T> BQR_INLINE size_t elements_bytes(int n, int each) {
  const size_t ld = static_cast<size_t>(squad_ld<T>(n, squad_lanes(n, each)));
  return (sizeof(T) * ld * static_cast<size_t>(n) + 15) / 16 * 16;
}
template <class T> BQR_INLINE size_t member_bytes(int n, int each) {
  return elements_bytes<T>(n, each) + (sizeof(real_t<T>) + sizeof(int)) * static_cast<size_t>(n + 1);
}

template <class T, int EACH> class syevd {
  using R = real_t<T>;
  static constexpr int each = EACH > 0 ? EACH : 8;

public:
  /* memory: of members of up to n x n */
  __device__ syevd(const bqr_args &args, const member &x, bool lower, unsigned char *memory, int n,
                   uint32_t *word)
      : args_(args), x_(x), lower_(lower), word_(word),
        squad_(make_squad(squad_lanes(x.n, each))), inside_{reinterpret_cast<T *>(memory),
                                                            squad_ld<T>(n, squad_lanes(n, each)), x.n, x.n},
        values_(reinterpret_cast<R *>(memory + elements_bytes<T>(n, each))),
        place_(reinterpret_cast<int *>(values_ + n + 1)) {}

  __device__ int run() {
    if (x_.n == 0) return 0;
    a_ = {matrix_data<T>(args_, args_.a, x_.id), matrix_ld(args_.a, x_.id), x_.n, x_.n};
    const uint32_t u = largest_entry();
    R *w = vector_data<R>(args_.s, x_.id);
    if (!magnitude_finite<T>(u)) {
      for (int j = thread_id(); j < x_.n; j += num_threads()) w[j] = static_cast<R>(nan(""));
      return BATCHQR_INFO_NONFINITE;
    }
    const int exponent = u ? exponent_to<T>(u, 0) : 0;
    load(exponent);
    const R shift = find_shift();
    for (int j = thread_id(); j < x_.n; j += num_threads())
      *inside_.at(j, j) = *inside_.at(j, j) + make<T>(shift);
    block_sync();
    const bool converged = orthogonalize<EACH>(squad_, inside_, matrix_view<T>{nullptr, 0, 0, 0});
    find_values(shift);
    for (int j = thread_id(); j < x_.n; j += num_threads()) w[place_[j]] = times_power(values_[j], -exponent);
    if (args_.v.data) store();
    return converged ? 0 : 1;
  }

private:
  __device__ __forceinline__ bool stored(int i, int j) const { return lower_ ? i >= j : i <= j; }

  __device__ uint32_t largest_entry() {
    uint32_t u = 0;
    for_each(a_, [&](const T &x, int i, int j) {
      if (stored(i, j)) u = greater(u, magnitude_or_one(i == j ? make<T>(real_part(x)) : x));
    });
    return block_max(word_, u);
  }

  /* Both triangles, times 2^exponent. */
  __device__ void load(int exponent) {
    for_each(a_, [&](const T &entry, int i, int j) {
      if (!stored(i, j)) return;
      const T x = times_power(i == j ? make<T>(real_part(entry)) : entry, exponent);
      *inside_.at(i, j) = x;
      if (i != j) *inside_.at(j, i) = conj(x);
    });
    block_sync();
  }

  /* Little more than ||A||_2: errors are relative to the shift. sqrt(||A^2||_1) is twice ||A||_2 for a random
   * matrix of order 200, ||A||_1 eight times. Of zeros, 1. */
  __device__ R find_shift() {
    uint32_t norm = 0;
    for_columns(squad_, x_.n, [&](int col) {
      R sum = 0;
      for (int k = 0; k < x_.n; k++) {
        T dot = zero<T>();
        for (int i = squad_.lane; col >= 0 && i < x_.n; i += squad_.lanes)
          dot = cmadd(*inside_.at(i, k), *inside_.at(i, col), dot);
        sum += sqrt(abs2(squad_sum(squad_, dot)));
      }
      norm = greater(norm, magnitude(sum));
    });
    norm = block_max(word_, norm);
    if (norm == 0) return 1;
    const R value =
        times_power(R(1) + R(norm & mantissa_mask) / R(mantissa_mask + 1), -exponent_to<T>(norm, 0));
    return R(1.1) * sqrt(value);
  }
  static constexpr uint32_t mantissa_mask = (1u << span<R>::mantissa) - 1;

  /* Makes the columns the eigenvectors, but for their signs. */
  __device__ void find_values(R shift) {
    for_columns(squad_, x_.n, [&](int col) {
      T *x = col >= 0 ? inside_.at(0, col) : nullptr;
      R norm2 = 0;
      for (int i = squad_.lane; x && i < x_.n; i += squad_.lanes) norm2 = abs2_add(x[i], norm2);
      const R norm = sqrt(squad_sum(squad_, norm2));
      for (int i = squad_.lane; x && i < x_.n; i += squad_.lanes) x[i] = scaled(x[i], R(1) / norm);
      if (x && squad_.lane == 0) values_[col] = norm - shift;
    });
    block_sync();
    find_places(values_, x_.n, true, place_);
    block_sync();
  }

  __device__ void store() const {
    const matrix_view<T> v{matrix_data<T>(args_, args_.v, x_.id), matrix_ld(args_.v, x_.id), x_.n, x_.n};
    for_columns(squad_, x_.n, [&](int col) {
      const T *x = col >= 0 ? inside_.at(0, col) : nullptr;
      const sign<T> turn = find_sign(squad_, x, x_.n);
      for (int i = squad_.lane; x && i < x_.n; i += squad_.lanes) *v.at(i, place_[col]) = turn.of(x[i], i);
    });
  }

  const bqr_args &args_;
  const member &x_;
  bool lower_;
  uint32_t *word_;
  squad squad_;
  matrix_view<T> inside_, a_{};
  R *values_;
  int *place_;
};

template <class T, bool ON_CHIP, int EACH>
__global__ void __launch_bounds__(most_threads)
    syevd_block_kernel(const __grid_constant__ bqr_args args, size_t slot, bool lower) {
  unsigned char *shared = shared_memory<unsigned char>();
  unsigned char *memory = ON_CHIP ? shared + 16 : slot_memory(args, slot);
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_SYEVD>(args, i);
    int info = BATCHQR_INFO_SIZES;
    if (x.ok)
      info = syevd<T, EACH>(args, x, lower, memory, args.n, reinterpret_cast<uint32_t *>(shared)).run();
    if (thread_id() == 0) set_info(args, x.id, info);
    block_sync();
  }
}

/* rows: of a lane; most: the largest order. */
const bqr_variant variants[] = {{.name = "rows4", .rows = 4, .most = 128},
                                {.name = "rows8", .rows = 8, .most = 256},
                                {.name = "rows8.global", .rows = 8, .global = true}};

struct family {
  static bool supports(const bqr_problem *p, const bqr_variant *v) { return v->most == 0 || p->n <= v->most; }
  static int threads(const bqr_problem *p, const bqr_variant *v) {
    return slot_threads((p->n + 1) / 2, squad_lanes(p->n, v->rows), most_threads);
  }
  template <class F> static batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
    return for_type(p->type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const slot_plan plan = {16, member_bytes<T>(p->n, v->rows), !v->global};
      const bool lower = p->uplo == BATCHQR_LOWER;
      return v->global      ? f(syevd_block_kernel<T, false, 0>, plan, lower)
             : v->rows == 4 ? f(syevd_block_kernel<T, true, 4>, plan, lower)
                            : f(syevd_block_kernel<T, true, 8>, plan, lower);
    });
  }
};

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_syevd_block = {
    .name = "syevd_block",
    .op = BATCHQR_SYEVD,
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
