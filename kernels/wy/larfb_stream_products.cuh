/* SPDX-License-Identifier: BSD-3-Clause */
/* The warps of larfb_stream that multiply. The matrix units' order of k is free (common/simt/product.cuh): W
 * = V^H X takes X as the right operand, Y^T V^T adds to X^T as the result, and in both a lane has the same
 * rows and lines. Which these are, and where V's reflectors are among the units' rows and k, follows from
 * shared memory's banks.
 *
 * Numbers that all lanes of a warp have in common go through its uniform registers where the compiler can see
 * that the lanes have not diverged. Some warp_sync() and a vote only serve to show it that, and a strip
 * without columns goes through the same code as the others for the same reason. */
#ifndef BQR_KERNELS_WY_LARFB_STREAM_PRODUCTS_CUH
#define BQR_KERNELS_WY_LARFB_STREAM_PRODUCTS_CUH

#include "common/simt/product.cuh"
#include "larfb_stream.cuh"

namespace bqr {
namespace stream {

/* A warp of those that multiply. Its lane (g, q) has every eighth line of its group's. */
template <class T, int ROWS, int BLOCKS, class TASK> class products {
  using S = shape<T, ROWS>;
  using rows = typename S::rows;
  static constexpr int lines = S::lines, most_tiles = S::most_tiles;
  static constexpr int width = W / S::passes;          /* reflectors of a pass */
  using entries = T[lines][rows::each];                /* of a tile */
  using sums = direct_sum<T, true>[width / 16][lines]; /* of 16 reflectors and 8 lines */
  using lefts = operand<T>[lines / 2][W / 8][4];
  using factors = operand<T>[W / 8][4];

public:
  __device__ __forceinline__ products(storage<T, ROWS> &shared, const bqr_args &args, const TASK &task)
      : s_(shared), args_(args), task_(task), warp_(warp_id() % S::warps), group_(warp_id() / S::warps),
        top_(rows::run * (group_ % 2 ? S::warps - 1 - warp_ : warp_)) {
#pragma unroll
    for (int e = 0; e < 2; e++) project_[e] = in_tile(top_ + rows::row(q(), e), reflector_of_row<T>(g()));
    update_ = in_tile(top_ + rows::row(g() / 2, rows::entry(0, g() % 2)), reflector_of_k<T>(q(), 0));
    opaque(project_[0], project_[1], update_); /* or they are computed for each tile */
  }

  __device__ __forceinline__ void run(const share<T, ROWS, BLOCKS, TASK> &mine) {
    load(mine.tiles);
    const bool outside = BLOCKS == 1 && task_.range && bring_into_range(mine);
    for (int i = 0; i < mine.blocks; i++) {
      const int b = task_.backward ? mine.blocks - 1 - i : i, first = mine.first(b);
      /* All of the warp's rows of the first tile are above the diagonal, where that is worth asking. */
      const bool above = rows::single && first < mine.tiles && mine.top(first) + top_ + rows::count <= b * W;
#pragma unroll 1
      for (int pass = 0; pass < S::passes; pass++) {
        const int half = pass ^ first_half();
        sums w;
        project(w, half, mine.tiles, first, above);
        add_part(w, half, pass);
      }
      exchange(mine.shares);
      update(mine.tiles, first, above);
    }
    if (outside) bring_back(mine);
    wait_for_team();
    const destination place = place_of(mine);
    if (pack<T>::size == 1 || !group_any(!tile_packs(place.x, place.ld, place.below)))
      store_packs(place, mine.shares);
    else
      store_elements(place, mine.shares);
  }

private:
  __device__ __forceinline__ static int g() { return lane_id() / 4; }
  __device__ __forceinline__ static int q() { return lane_id() % 4; }
  /* The first of the lane's lines: in the order of V's reflectors, for the same banks. */
  __device__ __forceinline__ int first_line() const { return 8 * lines * group_ + reflector_of_row<T>(g()); }
  __device__ __forceinline__ void sync() const { named_sync(1 + group_, S::threads); }
  /* Which half of the reflectors the warp has in its first pass, if there are two. */
  __device__ __forceinline__ int first_half() const { return S::passes == 1 ? 0 : warp_ / S::parts; }
  /* Columns that the other blocks of a team still read as reflectors. */
  __device__ __forceinline__ void wait_for_team() {
    if (BLOCKS != 1 || task_.team == 1) return;
    s_.cluster[group_].arrive_everywhere();
    s_.cluster[group_].wait_cluster(round_);
    round_ ^= 1;
    warp_sync(); /* for the compiler */
  }

  __device__ __forceinline__ static int in_tile(int row, int column) {
    return column * S::ld + row + row_shift<T>(row, column);
  }

  /* Where the lane's entry e is in eight columns of a tile. */
  __device__ __forceinline__ int in_columns(int e) const { return project_[e % 2] + rows::row(0, e - e % 2); }

  /* The columns, from the pipeline. */
  __device__ __forceinline__ void load(int tiles) {
    static_for<most_tiles>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if (n < tiles) s_.full[at_.place].wait(at_.parity);
      const T *from = s_.v[at_.place] + 8 * lines * group_ * S::ld;
#pragma unroll
      for (int l = 0; l < lines; l++, from += 8 * S::ld)
        if constexpr (rows::single) {
          const pack<T> four =
              n < tiles ? *reinterpret_cast<const pack<T> *>(from + in_columns(0)) : pack<T>{};
#pragma unroll
          for (int e = 0; e < rows::each; e++) x_[n][l][e] = four.v[e];
        } else {
#pragma unroll
          for (int e = 0; e < rows::each; e++) x_[n][l][e] = n < tiles ? from[in_columns(e)] : zero<T>();
        }
      if (n >= tiles) return;
      s_.empty[at_.place].arrive();
      at_.next();
    });
  }
  __device__ __forceinline__ static void turn(pack<T> &p) {
    if constexpr (pack<T>::size > 1) {
      const T first = p.v[0];
      p.v[0] = p.v[1];
      p.v[1] = first;
    }
  }

  /* Where the warp's rows begin, and how many rows and columns follow from there. */
  struct destination {
    T *x;
    int64_t ld;
    int below, columns;
  };
  __device__ __forceinline__ destination place_of(const share<T, ROWS, BLOCKS, TASK> &mine) const {
    const int row = mine.top(0) + top_;
    return {mine.c + row, mine.ld_c, mine.v.rows - row, mine.tiles > 0 ? mine.columns : 0};
  }
  __device__ __forceinline__ void store_packs(const destination &place, int shares) {
    constexpr int unit = pack<T>::size;
    const int columns = place.columns - first_line();
    int below = place.below;
    T *to = place.x + first_line() * place.ld;
#pragma unroll
    for (int n = 0; n < most_tiles; n++) {
      opaque(to); /* or all addresses would be kept */
#pragma unroll
      for (int l = 0; l < lines; l++) {
        T *column = to + 8 * l * place.ld;
        __builtin_assume(__isGlobal(column));
#pragma unroll
        for (int e = 0; e < rows::each; e += unit) {
          const int i = unit == 1 ? rows::row(q(), e) : rows::pair(q(), e / 2);
          pack<T> p;
#pragma unroll
          for (int k = 0; k < unit; k++) p.v[k] = x_[n][l][e + k];
          if (rows::row(q(), 0) > rows::pair(q(), 0)) turn(p);
          if (i < below && 8 * l < columns) *reinterpret_cast<pack<T> *>(column + i) = p;
        }
      }
      to += S::tile_rows * shares;
      below -= S::tile_rows * shares;
    }
  }
  /* One element at a time. Stored as lanes have them, they would write each sector of memory in several
   * parts: they go through the warp's part of sums, every other tile through its other half, and half a warp
   * has the rows of a column. */
  __device__ __forceinline__ void store_elements(const destination &place, int shares) {
    constexpr int at_once = warp_lanes / rows::count, turns = 8 * lines / at_once; /* columns */
    int lane = lane_id();
    opaque_here(lane); /* or what follows from it would be kept from strip to strip */
    const int i = lane % rows::count, row = i % rows::run + i / rows::run * rows::pair(0, 1),
              first = lane / rows::count, columns = place.columns - 8 * lines * group_ - first;
    T *const mine = s_.parts[group_] + warp_ * S::part, *const from = mine + first * S::ld_sums + i;
    T *to = place.x + (8 * lines * group_ + first) * place.ld + row;
    int below = place.below - row;
#pragma unroll
    for (int n = 0; n < most_tiles; n++) {
      const int half = n % 2 * rows::count;
#pragma unroll
      for (int l = 0; l < lines; l++)
#pragma unroll
        for (int e = 0; e < rows::each; e++)
          mine[(8 * l + reflector_of_row<T>(g())) * S::ld_sums + half + rows::place(q(), e)] = x_[n][l][e];
      warp_sync();
      T x[turns];
#pragma unroll
      for (int k = 0; k < turns; k++) x[k] = from[k * at_once * S::ld_sums + half];
      const int left = below > 0 ? columns : 0;
      T *at = to;
#pragma unroll
      for (int k = 0; k < turns; k++) {
        opaque(at); /* or all addresses would be kept */
        __builtin_assume(__isGlobal(at));
        if (k * at_once < left) *at = x[k];
        at += at_once * place.ld;
      }
      to += S::tile_rows * shares;
      below -= S::tile_rows * shares;
    }
    warp_sync();
  }

  /* f(entry, its line) */
  template <class F> __device__ __forceinline__ void each_entry(F &&f) {
#pragma unroll
    for (int n = 0; n < most_tiles; n++)
#pragma unroll
      for (int l = 0; l < lines; l++)
#pragma unroll
        for (int e = 0; e < rows::each; e++) f(x_[n][l][e], l);
  }

  static constexpr bool scales_stay = std::is_same<TASK, factor_task>::value;
  static constexpr int all_number = 1 + S::groups, all_threads = S::products_warps * warp_lanes;

  /* Columns with entries out of range get their scale: in GEQRF that of common/panel/columns.cuh, which
   * stays, in ORMQR that of common/matrix/range.cuh. Whether it is to be taken out again. */
  __device__ __forceinline__ bool bring_into_range(const share<T, ROWS, BLOCKS, TASK> &mine) {
    using C = column_range<real_t<T>>;
    using L = limits<real_t<T>>;
    constexpr uint32_t lo = scales_stay ? C::lo : L::magnitude_lo,
                       hi = scales_stay ? C::hi : L::magnitude_hi_long;
    bool outside = false;
    each_entry([&](const T &x, int) { /* without branches */
                                      outside |= !(magnitude(x) - lo < hi - lo) & !is_zero(x);
    });
    outside = named_any(all_number, all_threads, outside);
    if (outside) {
      uint32_t u[lines] = {};
      if (thread_id() < strip_columns) s_.magnitude[thread_id()] = 0;
      named_sync(all_number, all_threads);
      each_entry([&](const T &x, int l) { u[l] = greater(u[l], magnitude(x)); });
#pragma unroll
      for (int l = 0; l < lines; l++) shared_max(s_.magnitude + first_line() + 8 * l, u[l]);
      named_sync(all_number, all_threads);
      scale_columns([&](uint32_t u) {
        return scales_stay       ? exponent_scale<real_t<T>>(column_exponent<T>(u))
               : mine.blocks > 0 ? range_scale<T>(u, true)
                                 : real_t<T>(1);
      });
    }
    if (thread_id() < mine.columns) note_range(mine, outside);
    warp_sync();                                                     /* for the compiler */
    if (scales_stay && outside) named_sync(all_number, all_threads); /* before magnitudes are written again */
    return !scales_stay && outside;
  }
  __device__ __forceinline__ void note_range(const share<T, ROWS, BLOCKS, TASK> &mine, bool outside) {
    const uint32_t u = outside ? s_.magnitude[thread_id()] : 0;
    if constexpr (scales_stay) {
      task_.exponents[mine.entry * task_.cols + mine.begin + thread_id()] =
          static_cast<short>(outside ? column_exponent<T>(u) : 0);
      if (outside && !magnitude_finite<T>(u)) task_.nonfinite[mine.entry] = BATCHQR_INFO_NONFINITE;
    } else if (outside && !magnitude_finite<T>(u))
      set_info(args_, args_.members ? args_.members[mine.entry] : mine.entry, BATCHQR_INFO_NONFINITE);
  }
  __device__ __forceinline__ void bring_back(const share<T, ROWS, BLOCKS, TASK> &mine) {
    if (mine.blocks > 0) scale_columns([](uint32_t u) { return range_unscale(range_scale<T>(u, true)); });
    named_sync(all_number, all_threads); /* before magnitudes are written again */
  }
  /* f(the largest magnitude of a column) */
  template <class F> __device__ __forceinline__ void scale_columns(F &&f) {
    real_t<T> scales[lines];
#pragma unroll
    for (int l = 0; l < lines; l++) scales[l] = f(s_.magnitude[first_line() + 8 * l]);
    each_entry([&](T &x, int l) { x = scaled(x, scales[l]); });
  }

  /* w := V^H X over the warp's rows. */
  __device__ __forceinline__ void project(sums &w, int half, int tiles, int first, bool above) const {
    pipeline_state<S::places> at = at_;
    if (above) at.next();
#pragma unroll
    for (int i = 0; i < width / 16; i++)
#pragma unroll
      for (int l = 0; l < lines; l++)
#pragma unroll
        for (int e = 0; e < 4; e++) w[i][l].begin(e, zero<T>());
    static_for<most_tiles>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if (n < first + above || n >= tiles) return;
      s_.full[at.place].wait(at.parity);
      const T *from = s_.v[at.place] + half * width * S::ld;
      T v[width / 8][rows::each];
#pragma unroll
      for (int j = 0; j < width / 8; j++, from += 8 * S::ld)
        if constexpr (rows::single) {
          const pack<T> four = *reinterpret_cast<const pack<T> *>(from + in_columns(0));
#pragma unroll
          for (int e = 0; e < rows::each; e++) v[j][e] = four.v[e];
        } else {
#pragma unroll
          for (int e = 0; e < rows::each; e++) v[j][e] = from[in_columns(e)];
        }
#pragma unroll
      for (int t = 0; t < rows::steps; t++) {
        operand<T> a[width / 16][4], b[lines][2];
#pragma unroll
        for (int i = 0; i < width / 4; i++) a[i / 4][i % 4] = split(v[i / 2][rows::entry(t, i % 2)]);
#pragma unroll
        for (int l = 0; l < 2 * lines; l++) b[l / 2][l % 2] = split(x_[n][l / 2][rows::entry(t, l % 2)]);
#pragma unroll
        for (int i = 0; i < width / 16; i++)
#pragma unroll
          for (int l = 0; l < lines; l++) w[i][l].add(a[i], b[l]);
      }
      at.next();
    });
  }

  /* X^T += Y^T V^T. Leaves the tiles to be filled again. */
  __device__ __forceinline__ void update(int tiles, int first, bool above) {
    lefts y;
    if (S::keeps_y) {
      read_y<W / 8>(y, 0);
      if (BLOCKS != 1) sync();
    }
    if (above) {
      s_.full[at_.place].wait(at_.parity); /* so that all have left what was there before */
      s_.empty[at_.place].arrive();
      at_.next();
    }
    static_for<most_tiles>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if (n < first + above || n >= tiles) return;
      const T *from = s_.v[at_.place];
      direct_sum<T, false> sum[rows::steps][lines / 2];
      auto each_sum = [&](auto &&f) {
#pragma unroll
        for (int l = 0; l < lines; l++)
#pragma unroll
          for (int i = 0; i < rows::each; i++) {
            const int t = i % rows::steps, s = i / rows::steps;
            f(sum[t][l / 2], l % 2 * 2 + s, x_[n][l][rows::entry(t, s)]);
          }
      };
      each_sum([](direct_sum<T, false> &sum, int e, const T &x) { sum.begin(e, x); });
#pragma unroll
      for (int j = 0; j < W / 8; j++, from += 8 * S::ld) {
        struct alignas(rows::steps * sizeof(T)) neighbours {
          T v[rows::steps];
        } v[2]; /* of two products */
        if (!S::keeps_y) read_y<1>(y, j);
#pragma unroll
        for (int s = 0; s < 2; s++) {
          const int reflector = reflector_of_k<T>(0, s), place = sizeof(T) == 16 ? update_ ^ 4 * s : update_;
          if constexpr (rows::single)
            v[s] = *reinterpret_cast<const neighbours *>(from + place + reflector * S::ld);
          else
#pragma unroll
            for (int t = 0; t < rows::steps; t++)
              v[s].v[t] = from[place + reflector * S::ld + rows::row(0, rows::entry(t, 0))];
        }
#pragma unroll
        for (int t = 0; t < rows::steps; t++) {
          const operand<T> b[2] = {split(v[0].v[t]), split(v[1].v[t])};
#pragma unroll
          for (int m = 0; m < lines / 2; m++) sum[t][m].add(y[m][j], b);
        }
      }
      each_sum([](const direct_sum<T, false> &sum, int e, T &x) { x = sum.end(e); });
      s_.empty[at_.place].arrive();
      at_.next();
    });
  }

  /* The warp's sums to where its part is; of two passes, the second one adds to what another warp's first has
   * left there. */
  __device__ __forceinline__ void add_part(const sums &w, int half, int pass) const {
    T *const mine = s_.parts[group_] + warp_ % S::parts * S::part + g() + half * width;
    if (pass > 0 || (BLOCKS != 1 && !S::keeps_y)) sync();
#pragma unroll
    for (int i = 0; i < width / 16; i++)
#pragma unroll
      for (int l = 0; l < lines; l++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          T &to = mine[(8 * l + place_of_line(2 * q() + e % 2)) * S::ld_sums + 16 * i + e / 2 * 8];
          to = pass > 0 ? to + w[i][l].end(e) : w[i][l].end(e);
        }
  }
  /* Where y is. */
  __device__ __forceinline__ T *place_of_y() const {
    return BLOCKS == 1 ? s_.sums[group_] : s_.parts[group_] + S::part;
  }
  /* y := -T^H times the sum of the group's parts, of all blocks. */
  __device__ __forceinline__ void exchange(int shares) {
    T *const parts = s_.parts[group_];
    factors m;
    s_.factor_full.wait(turn_ & 1);
    if constexpr (S::early) {
#pragma unroll
      for (int k = 0; k < W / 8; k++) load_factor(m[k], 0, k);
      s_.factor_empty.arrive();
    }
    sync();
    if constexpr (BLOCKS != 1) add_blocks(parts, shares);
    multiply_factor(m, [=](int i) { return BLOCKS == 1 ? sum_of(parts + i) : parts[i]; });
    if constexpr (!S::early) s_.factor_empty.arrive();
    turn_++;
    sync();
  }
  /* 8 COUNT reflectors, from 8 `first` on. */
  template <int COUNT> __device__ __forceinline__ void read_y(lefts &y, int first) const {
    const T *from = place_of_y() + row_of_y(q()) * S::ld_y + line_of_y(g());
#pragma unroll
    for (int m = 0; m < lines / 2; m++)
#pragma unroll
      for (int j = first; j < first + COUNT; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
          y[m][j][i] = split(from[(8 * j + row_of_y(i % 2 * 4)) * S::ld_y + 16 * m + i / 2 * 8]);
  }
  __device__ __forceinline__ static T sum_of(const T *parts) {
    T sum = parts[0];
#pragma unroll
    for (int p = 1; p < S::parts; p++) sum += parts[p * S::part];
    return sum;
  }
  /* The sum of all blocks' parts, where the first part was. Two blocks send theirs to each other; what more
   * of them have, each reads, two blocks' at a time. */
  __device__ __forceinline__ void add_blocks(T *parts, int shares) {
    const int thread = warp_ * warp_lanes + lane_id();
    T *const others = s_.sums[group_] + (turn_ & 1) * S::sums;
    constexpr int count = S::sums / S::threads; /* of a thread */
    auto each = [&](auto &&f) {
#pragma unroll
      for (int k = 0; k < count; k++) {
        const int i = thread + k * S::threads;
        f(parts[i / W * S::ld_sums + i % W], others + i, k);
      }
    };
    if constexpr (BLOCKS == 2) {
      phase_barrier &received = s_.received[group_][turn_ & 1];
      if (thread == 0) received.arrive_before_bytes(S::sums * static_cast<int>(sizeof(T)));
      each([&](T &sum, T *other, int) {
        sum = sum_of(&sum);
        received.send(other, sum, cluster_rank() ^ 1);
      });
      received.wait(turn_ / 2 & 1);
      each([](T &sum, const T *other, int) { sum += *other; });
    } else {
      each([](T &sum, T *here, int) { *here = sum_of(&sum); });
      s_.cluster[group_].arrive_everywhere();
      s_.cluster[group_].wait_cluster(turn_ & 1);
      T sums[count] = {};
      for (int rank = 0; rank < shares; rank += 2) {
        T x[2][count];
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
          for (int k = 0; k < count; k++)
            x[i][k] =
                rank + i < shares ? cluster_shared(others + thread, rank + i)[k * S::threads] : zero<T>();
#pragma unroll
        for (int k = 0; k < count; k++) sums[k] = sums[k] + x[0][k] + x[1][k];
      }
      each([&](T &sum, T *, int k) { sum = sums[k]; });
    }
    sync();
  }
  /* Where one of 8 lines is among sums, and with elements of 16 bytes, where lines and rows are in y, so that
   * neither those who write nor those who read meet conflicts. */
  __device__ __forceinline__ static int turned_line(int n) {
    return n / 4 * 4 + (n % 2 ^ n / 4) * 2 + n / 2 % 2;
  }
  __device__ __forceinline__ static int place_of_line(int n) { return sizeof(T) == 16 ? n : turned_line(n); }
  __device__ __forceinline__ static int line_of_y(int n) { return sizeof(T) == 16 ? turned_line(n) : n; }
  __device__ __forceinline__ static int row_of_y(int n) { return sizeof(T) == 16 ? n / 2 + n % 2 * 4 : n; }
  /* Which of the units' rows is number q + 4 s of k in the product with T^H. */
  __device__ __forceinline__ static int row_of_k(int q, int s) { return rows::pairs ? q + 4 * s : 2 * q + s; }
  /* What the warp has of y: 8 lines, and of the reflectors, in the order of k, one half or both. */
  __device__ __forceinline__ int line_of_part() const { return 8 * (warp_ % lines); }
  __device__ __forceinline__ int half_of_part(int h) const { return S::halves == 2 ? h : warp_ / lines; }
  __device__ __forceinline__ void load_factor(operand<T> (&m)[4], int h, int k) const {
    const T *from = s_.factor + (16 * half_of_part(h) + reflector_of_k<T>(g() % 4, g() / 4)) * S::ld_factor;
#pragma unroll
    for (int i = 0; i < 4; i++)
      m[i] = conj(split(from[i / 2 * 8 * S::ld_factor + 8 * k + reflector_of_row<T>(row_of_k(q(), i % 2))]));
  }
  /* y := -T^H w. The first 16 rows of T^H are zero from step 2 on, which is left out where it gains. */
  template <class F> __device__ __forceinline__ void multiply_factor(factors &m, F &&w) const {
    const int line = line_of_part(), at = (line + place_of_line(g())) * S::ld_sums;
    T sums[W / 8][2], product[S::halves][S::chains][4] = {};
#pragma unroll
    for (int k = 0; k < W / 8; k++)
#pragma unroll
      for (int s = 0; s < 2; s++) sums[k][s] = w(at + 8 * k + row_of_k(q(), s));
#pragma unroll
    for (int k = 0; k < W / 8; k++) {
      const operand<T> b[2] = {negated(split(sums[k][0])), negated(split(sums[k][1]))};
#pragma unroll
      for (int h = 0; h < S::halves; h++) {
        if ((rows::single || S::halves == 2) && k > 1 && half_of_part(h) == 0 && !task_.backward) continue;
        if (!S::early) load_factor(m[k], h, k);
        multiply_add(product[h][k % S::chains], m[k], b);
      }
    }
    T *const y = place_of_y() + line;
#pragma unroll
    for (int h = 0; h < S::halves; h++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        T sum = product[h][0][i];
#pragma unroll
        for (int c = 1; c < S::chains; c++) sum += product[h][c][i];
        y[(16 * half_of_part(h) + row_of_y(g()) + i / 2 * 8) * S::ld_y + line_of_y(2 * q() + i % 2)] = sum;
      }
  }

  storage<T, ROWS> &s_;
  const bqr_args &args_;
  const TASK &task_;
  const int warp_, group_, top_; /* where the warp's rows of a tile begin */
  pipeline_state<S::places> at_;
  int project_[2], update_; /* where the lane reads a tile */
  uint32_t turn_ = 0, round_ = 0;
  entries x_[most_tiles];
};

} // namespace stream
} // namespace bqr

#endif
