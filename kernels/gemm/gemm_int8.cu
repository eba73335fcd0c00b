/* SPDX-License-Identifier: BSD-3-Clause */
/* Double precision on INT8 units, by Ozaki scheme II (Ozaki, Uchino and Imamura, 2025): rows of op(a) and
 * columns of b become vectors of integers x and y, the integer product z = x y is formed modulo each of
 * coprime numbers p(i) of at most 8 bits, and z follows from its residues by the Chinese remainder theorem,
 * since |z| < P / 2, P being their product: by the inequality of Cauchy and Schwarz it is enough that |x|,
 * |y| < sqrt(P / 2).
 *
 * 14 moduli give vectors of at least 53.6 bits: rounded to integers they are in error by sqrt(k / 12) 2^-53.6
 * of their norm at most, their product by about 2^-54 |x| |y|. */
#include "convert.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/dp4a.cuh"
#include "common/ptx/wgmma.cuh"

namespace {
using namespace bqr;
using wide = unsigned __int128;

constexpr int moduli = 14;
/* Coprime, the largest ones but 255, whose residues would not keep to 8 bits below. */
BQR_INLINE constexpr int modulus(int i) {
  constexpr int p[moduli] = {256, 253, 251, 249, 247, 241, 239, 235, 233, 229, 227, 223, 217, 211};
  return p[i];
}
/* The norms' bound, a little below sqrt(P / 2) = 2^54.68: 2^norm_exponent * norm_fraction. */
constexpr int norm_exponent = 55;
constexpr double norm_fraction = 0.75;

constexpr wide product_of_moduli() {
  wide p = 1;
  for (int i = 0; i < moduli; i++) p *= static_cast<wide>(modulus(i));
  return p;
}
constexpr wide P = product_of_moduli();
static_assert((P >> 109) > 1 && (P >> 111) == 0, "2^110 < P < 2^111");

/* Numbers below P in two doubles, the first of 41 bits at most: what is added up of products of it with
 * residues, or with numbers of 12 bits, is exact. The second one's error is below all that was rounded
 * before. */
constexpr int low_bits = 70;
constexpr double high_part(wide x) {
  return static_cast<double>(static_cast<uint64_t>(x >> low_bits)) * 0x1p70;
}
constexpr double low_part(wide x) {
  const wide low = x & ((static_cast<wide>(1) << low_bits) - 1);
  return static_cast<double>(static_cast<uint64_t>(low >> 32)) * 0x1p32 +
         static_cast<double>(static_cast<uint32_t>(low));
}

/* 1 modulo p(i) and 0 modulo the others. */
constexpr wide unit_residue(int i) {
  const wide others = P / static_cast<wide>(modulus(i));
  wide x = others;
  while (x % static_cast<wide>(modulus(i)) != 1) x += others;
  return x;
}

/* 2^e modulo p, the nearest to zero. */
constexpr int power_residue(int e, int p) {
  int x = 1;
  for (int i = 0; i < e; i++) x = x * 2 % p;
  return 2 * x > p ? x - p : x;
}
/* The residues of 2^first, 2^(first + 8), ..., in bytes. */
constexpr int byte_places(int first, int p) {
  uint32_t bytes = 0;
  for (int i = 0; i < 4; i++)
    bytes |= (static_cast<uint32_t>(power_residue(first + 8 * i, p)) & 255u) << (8 * i);
  return static_cast<int>(bytes);
}

__device__ __forceinline__ uint32_t four_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

/* Residues of integers modulo p. Their bytes are multiplied with the residues of their places, which gives at
 * most 2^18; that sum starts with the bits of a float, a multiple of p and of 256 near 1.5 2^23, so that it
 * can be divided by p as one. */
struct divider {
  int start; /* for integers that are too large by 2^shift */
  float inverse, minus_p, quotient;

  static constexpr float round = 0x1.8p23f; /* what is added to it is rounded to an integer */
  static constexpr divider of(int p, int shift) {
    const int multiple = 0xc00000 / (256 * p) * (256 * p);
    return {0x4b000000 + multiple - 0x800000 - power_residue(shift, p), 1.0f / static_cast<float>(p),
            -static_cast<float>(p), round + static_cast<float>(multiple / p)};
  }
  /* In the lowest byte: the residue in [-128, 127] of the sum that began with `start`. */
  __device__ __forceinline__ uint32_t residue(int sum) const {
    const float x = __int_as_float(sum);
    return __float_as_uint(fused(fused(x, inverse, round) - quotient, minus_p, x));
  }
};

/* Integers of up to 56 bits as two words, shifted up by 2^56. */
struct long_integer {
  uint32_t low, high;

  /* |x| < 2^55, rounded to an integer. */
  __device__ __forceinline__ static long_integer of(double x) {
    constexpr double round = 0x1.8p52; /* what is added to it is rounded, and lies in its last bits */
    const double h = fused(x, 0x1p-28, round), l = fused(h - round, -0x1p28, x) + round;
    const int64_t v =
        (static_cast<int64_t>(__double2loint(h)) << 28) + __double2loint(l) + (int64_t(1) << 56);
    return {static_cast<uint32_t>(v), static_cast<uint32_t>(v >> 32)};
  }

  template <int I> __device__ __forceinline__ uint32_t residue() const {
    constexpr int p = modulus(I), low_places = byte_places(0, p), high_places = byte_places(32, p);
    constexpr divider by = divider::of(p, 56);
    if constexpr (p == 256)
      return low;
    else
      return by.residue(byte_products(high, high_places, byte_products(low, low_places, by.start)));
  }
};

struct residues {
  static constexpr int reals = chunk_bytes, tile_reals = tile_row_bytes;
  static constexpr int kept = 0; /* it would take the registers that keep enough threads at work */
  static constexpr bool need_norm = true;
  char *tiles;
  double *scales;
  int k_tiles;
  int64_t layer_bytes;

  __device__ __forceinline__ double scale(uint32_t, double norm2, int exponent) const {
    const double norm = sqrt(norm2);
    /* norm = fraction 2^x, 1/2 <= fraction < 1 */
    const int x = static_cast<int>(magnitude(norm) >> 20) - 1022;
    const double fraction = norm * exponent_scale<double>(-x);
    const int e = norm_exponent - (fraction > norm_fraction ? 1 : 0) - x + exponent;
    return norm > 0 ? exponent_scale<double>(e < 1020 ? e : 1020) : 1;
  }

  __device__ __forceinline__ void store(const double (&v)[reals], int64_t row, int unit) const {
    long_integer x[reals];
#pragma unroll
    for (int i = 0; i < reals; i++) x[i] = long_integer::of(v[i]);
    char *to = tiles + chunk_offset(row, unit, k_tiles);
    static_for<moduli>([&](auto m) {
      uint32_t words[reals / 4];
#pragma unroll
      for (int i = 0; i < reals / 4; i++)
        words[i] = four_bytes(x[4 * i].residue<m>(), x[4 * i + 1].residue<m>(), x[4 * i + 2].residue<m>(),
                              x[4 * i + 3].residue<m>());
      *reinterpret_cast<uint4 *>(to + m * layer_bytes) = make_uint4(words[0], words[1], words[2], words[3]);
    });
  }
};

/* Residues of c as the threads that made them hold them: 16 of a thread together, those of all threads of a
 * tile of c side by side. */
constexpr int c_threads = consumer_groups * group_threads, c_packets = wgmma_sums / 16;
constexpr int64_t c_bytes = static_cast<int64_t>(c_rows) * c_cols;

struct residue_sums {
  using sums = int;
  static constexpr int products = tile_row_bytes / wgmma_step;
  static constexpr int a_step(int i) { return i; }
  static constexpr int b_step(int i) { return i; }
  static constexpr int stretch = 1 << 30;
  static constexpr int shift = 29, start = 1 << shift; /* |sums| <= 2^29 become positive */
  char *c;
  int a_tiles, b_tiles;
  int places[moduli];
  divider by[moduli];

  __device__ __forceinline__ void begin(const tile_place &, int) const {}
  __device__ __forceinline__ void done(const int (&x)[wgmma_sums], const tile_place &at, int group,
                                       bool) const {
    const divider d = by[at.layer];
    const int place = places[at.layer];
    const int64_t tile = (static_cast<int64_t>(at.layer) * b_tiles + at.b) * a_tiles + at.a;
    uint4 *to =
        reinterpret_cast<uint4 *>(c + tile * c_bytes) + group * group_threads + thread_id() % group_threads;
#pragma unroll
    for (int q = 0; q < c_packets; q++) {
      uint32_t r[16];
#pragma unroll
      for (int i = 0; i < 16; i++)
        r[i] = d.residue(byte_products(static_cast<uint32_t>(x[16 * q + i]), place, d.start));
      to[q * c_threads] =
          make_uint4(four_bytes(r[0], r[1], r[2], r[3]), four_bytes(r[4], r[5], r[6], r[7]),
                     four_bytes(r[8], r[9], r[10], r[11]), four_bytes(r[12], r[13], r[14], r[15]));
    }
  }
};

__global__ void __launch_bounds__(tiled_threads, 1)
    multiply_residues_kernel(const __grid_constant__ tiled_product p,
                             const __grid_constant__ residue_sums sums) {
  if (has_wgmma) multiply_tiles(p, sums);
}

/* c in memory, as reals. */
struct destination {
  double *c;
  int64_t ldc;
  int m, n;
  double alpha, beta;
  const double *row_scales, *col_scales;
  const char *residues;
  int a_tiles, b_tiles;
  const int *done;
};

/* A residue number `i` of four. */
__device__ __forceinline__ double residue_of(uint32_t word, int i) {
  const uint32_t byte = __byte_perm(word ^ 0x80808080u, 0, 0x4440u | static_cast<unsigned>(i));
  return __hiloint2double(0x43300000, static_cast<int>(byte)) - (0x1p52 + 128);
}

/* A block for 64 rows and 32 columns of c: a packet of each thread of a group, two threads to a packet. They
 * go through shared memory, so that a warp reads and writes 32 rows of a column. */
constexpr int combine_threads = 256, combine_cols = 32, combined = 8; /* elements of a thread */
constexpr int staged_ld = wgmma_rows + 1;
__device__ __forceinline__ void combine(const destination &d, unsigned block, double *staged) {
  constexpr int blocks = c_packets * consumer_groups;
  const int group = static_cast<int>(block) % consumer_groups,
            packet = static_cast<int>(block) / consumer_groups % c_packets;
  const int64_t tile = block / blocks, tile_row = tile % d.a_tiles, tile_col = tile / d.a_tiles;
  const uint2 *from = reinterpret_cast<const uint2 *>(d.residues + tile * c_bytes) +
                      (packet * c_threads + group * group_threads) * 2 + thread_id();
  const int64_t layer =
      static_cast<int64_t>(d.a_tiles) * d.b_tiles * c_bytes / static_cast<int64_t>(sizeof(uint2));
  uint2 r[moduli];
#pragma unroll
  for (int m = 0; m < moduli; m++) r[m] = __ldcs(from + m * layer);

  const int row = static_cast<int>(tile_row) * c_rows + group * wgmma_rows + thread_id() % wgmma_rows;
  const int first = thread_id() / wgmma_rows, step = combine_threads / wgmma_rows;
  const int col = static_cast<int>(tile_col) * c_cols + packet * combine_cols + first;
  double *to = d.c + row + col * d.ldc;
  double old[combined];
#pragma unroll
  for (int i = 0; i < combined; i++)
    old[i] = d.beta != 0 && row < d.m && col + step * i < d.n ? to[step * i * d.ldc] : 0.0;

  double high[combined], low[combined];
#pragma unroll
  for (int i = 0; i < combined; i++) high[i] = low[i] = 0;
  static_for<moduli>([&](auto m) {
    constexpr double u = high_part(unit_residue(m)), v = low_part(unit_residue(m));
#pragma unroll
    for (int i = 0; i < combined; i++) {
      const double x = residue_of(i < 4 ? r[m].x : r[m].y, i % 4);
      high[i] = fused(x, u, high[i]);
      low[i] = fused(x, v, low[i]);
    }
  });
  /* the place of c[0] of a thread of the group, and half a packet */
  const int thread = thread_id() / 2, half = thread_id() % 2;
  double *put = staged + (thread % 4 * 2 + half * 16) * staged_ld + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
  for (int i = 0; i < combined; i++) {
    constexpr double p_high = high_part(P), p_low = low_part(P), p_inverse = 1 / (p_high + p_low);
    const double q = rint(high[i] * p_inverse);
    put[(i / 4 * 8 + i % 2) * staged_ld + i / 2 % 2 * 8] =
        fused(-q, p_high, high[i]) + fused(-q, p_low, low[i]);
  }
  block_sync();
  if (row >= d.m) return;
  const double row_scale = d.alpha * d.row_scales[row];
#pragma unroll
  for (int i = 0; i < combined; i++)
    if (col + step * i < d.n)
      to[step * i * d.ldc] = fused(staged[(first + step * i) * staged_ld + thread_id() % wgmma_rows],
                                   row_scale * d.col_scales[col + step * i], old[i]);
}

__global__ void __launch_bounds__(combine_threads, 2)
    combine_kernel(const __grid_constant__ destination d, unsigned blocks) {
  __shared__ double staged[combine_cols * staged_ld];
  if (d.done && *d.done) return;
  for (unsigned block = blockIdx.x; block < blocks; block += gridDim.x) {
    combine(d, block, staged);
    block_sync();
  }
}

tiling_shape shape_of(batchqr_type type, bqr_gemm_operand operand, int64_t rows, int64_t k) {
  return tiling_shape_of(type, operand, rows, k, residues::tile_reals, moduli);
}

size_t operand_bytes(batchqr_type type, bqr_gemm_operand operand, int64_t rows, int64_t k) {
  return static_cast<size_t>(shape_of(type, operand, rows, k).bytes);
}

size_t product_bytes(batchqr_type type, int64_t m, int64_t n) {
  return static_cast<size_t>(moduli * shape_of(type, BQR_GEMM_A, m, 0).rows *
                             shape_of(type, BQR_GEMM_B, n, 0).rows);
}

batchqr_status prepare() {
  batchqr_status status = prepare_kernel(multiply_residues_kernel, tiled_smem);
  if (!status) status = prepare_kernel(combine_kernel, 0);
  return status ? status : prepare_conversion<residues, complex_double>();
}

batchqr_status convert(batchqr_type type, bqr_gemm_operand operand, int64_t rows, int64_t k,
                       const bqr_tiled_source *from, void *tiles, batchqr_stream stream) {
  const tiling_shape shape = shape_of(type, operand, rows, k);
  char *to = static_cast<char *>(tiles);
  const residues format = {to, reinterpret_cast<double *>(to + shape.tiles_bytes),
                           static_cast<int>(shape.k_tiles), shape.tiles_bytes / moduli};
  return type == BATCHQR_D
             ? convert_operand<residues, double>(operand, rows, k, *from, shape, format, stream)
             : convert_operand<residues, complex_double>(operand, rows, k, *from, shape, format, stream);
}

batchqr_status multiply(const bqr_tiled_product *p, const bqr_device *device, batchqr_stream stream) {
  const tiling_shape a = shape_of(p->type, BQR_GEMM_A, p->m, p->k),
                     b = shape_of(p->type, BQR_GEMM_B, p->n, p->k);
  const int parts = p->type == BATCHQR_Z ? 2 : 1;
  const tiled_product tiles = {static_cast<const char *>(p->a),
                               static_cast<const char *>(p->b),
                               static_cast<int>(a.rows / c_rows),
                               static_cast<int>(b.rows / c_cols),
                               static_cast<int>(a.k_tiles),
                               moduli,
                               p->done};
  residue_sums sums = {static_cast<char *>(p->workspace), tiles.a_tiles, tiles.b_tiles, {}, {}};
  for (int i = 0; i < moduli; i++) {
    sums.places[i] = byte_places(0, modulus(i));
    sums.by[i] = divider::of(modulus(i), residue_sums::shift);
  }
  batchqr_status status = launch_tiled(multiply_residues_kernel, device, stream, tiles, p->many_blocks, sums);
  if (status) return status;
  const destination d = {static_cast<double *>(p->c),
                         p->ldc * parts,
                         static_cast<int>(p->m * parts),
                         static_cast<int>(p->n),
                         static_cast<double>(p->alpha),
                         static_cast<double>(p->beta),
                         reinterpret_cast<const double *>(tiles.a + a.tiles_bytes),
                         reinterpret_cast<const double *>(tiles.b + b.tiles_bytes),
                         sums.c,
                         tiles.a_tiles,
                         tiles.b_tiles,
                         p->done};
  const unsigned blocks = static_cast<unsigned>(tiles.a_tiles) * static_cast<unsigned>(tiles.b_tiles) *
                          c_packets * consumer_groups;
  /* blocks that find nothing to do take time, too */
  const unsigned most = 8 * static_cast<unsigned>(device->multiprocessors);
  return launch_kernel(combine_kernel, p->done && blocks > most ? most : blocks, combine_threads, 0, stream,
                       d, blocks);
}
} // namespace

extern "C" const bqr_tiling bqr_tiling_modular = {1 << BATCHQR_D | 1 << BATCHQR_Z,
                                                  32768,
                                                  false,
                                                  prepare,
                                                  operand_bytes,
                                                  product_bytes,
                                                  convert,
                                                  multiply,
                                                  nullptr};
