/* SPDX-License-Identifier: BSD-3-Clause */
/* Bulge chasing, one sweep by a block of threads. Sweep j makes column j tridiagonal with a reflector at the
 * rows R_0 = j + 1, ..., j + B. Applied from both sides it fills the tile right below the diagonal one, whose
 * first column a reflector at the next B rows, R_1, clears again, and so on: hop h applies H_h to the
 * diagonal tile of R_h from both sides and to the tile O of rows R_(h+1) below it from the right, makes
 * H_(h+1) of O's first column, and applies it to O from the left. What is left of the bulge stays until the
 * following sweeps clear its columns.
 *
 * Hop h of a sweep looks at what the sweep before it has left of its hop h, but for the last column of each
 * tile, the border, which is the first one of hop h + 1: sweeps follow one another two hops apart. Blocks
 * take sweeps by a ticket, so that the one that a block waits for is at work or done. Borders are what blocks
 * wait for: they go from registers to registers by messages, and are not stored in the band. The other
 * columns may come a hop later, behind a flag.
 *
 * Each warp has some columns of O, or of both triangles of the diagonal tile. Lane 8 q + r has rows r + 8 i
 * of columns q + 4 k of them. All of them make the reflector for themselves, from sums over O's columns: that
 * is the only exchange between warps, one barrier for a hop. Of four warps more one receives borders, two
 * copy the other columns, and one tells the next sweep's block that these are stored. */
#ifndef BQR_KERNELS_BAND_CHASE_CUH
#define BQR_KERNELS_BAND_CHASE_CUH

#include "layout.cuh"
#include "common/panel/larfg.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/message.cuh"
#include "common/ptx/publish.cuh"
#include "common/simt/arrival.cuh"
#include "common/simt/block.cuh"

namespace bqr {

template <class T> struct chase_args {
  int n;
  int *ticket, *progress;
  message<real_t<T>> *borders; /* see border_storage */
  T *band, *tau, *v;           /* v: NULL if nobody wants them */
  real_t<T> *d, *e;
};

template <class T, int B> struct chase_shared {
  static constexpr int columns = 8; /* of a warp */
  static constexpr int warps = B / columns, workers = 2 * warps, threads = (workers + 4) * warp_lanes;
  static constexpr int ld = B + 8, diagonal_ld = B + 2; /* few bank conflicts */
  static constexpr int slots = 4;

  /* Tiles of the next hop come while a hop is under way, or begin to when it has read its own. Their last
   * columns, and O's last row, which is zero before, have no meaning. */
  static constexpr int buffers = 2 * (B + diagonal_ld) * B * sizeof(T) <= (size_t(160) << 10) ? 2 : 1;

  T tile[buffers][warps][columns * ld]; /* of O, each warp's own columns */
  T diagonal[buffers][B * diagonal_ld]; /* the lower triangle */
  T part[2][warps][B];                  /* O v, of each warp's columns */
  T first[2][B];                        /* O's first column */
  T product[2][B];                      /* the diagonal tile times v */
  T x[workers][B], y[workers][B], v[workers][B];
  T border[slots][B + 1]; /* the last columns, from the diagonal on */
  phase_barrier full[slots], empty[slots];
  phase_barrier stored[slots], told[slots]; /* the hop's tiles; and that these are free again */
  phase_barrier copied[buffers], taken[buffers];
  int sweep;
};

/* Sums over the four lanes that have the same rows: lane's `v[0 .. N / 4 - 1]` become those of rows begin +
 * 0, .... */
template <int N, class T> __device__ __forceinline__ int sum_over_columns(T (&v)[N]) {
  int begin = 0;
#pragma unroll
  for (int n = N / 2, d = 16; d >= 8; n /= 2, d /= 2) {
    const bool upper = (lane_id() & d) != 0;
    if (upper) begin += n;
#pragma unroll
    for (int i = 0; i < N / 2; i++)
      if (i < n) {
        const T keep = upper ? v[i + n] : v[i], give = upper ? v[i] : v[i + n];
        v[i] = keep + exchange(give, d);
      }
  }
  return begin;
}

template <class T, int B> class chase_worker {
  using R = real_t<T>;
  using shared = chase_shared<T, B>;
  using storage = band_storage<B>;
  static constexpr int columns = shared::columns, RI = B / 8, KC = columns / 4, EL = B / warp_lanes;

  const chase_args<T> &p_;
  shared &s_;
  const int warp_, w_, row_, quad_;
  const bool below_; /* whether the warp's columns are O's */
  T a_[KC][RI];
  T tau_;
  int tiles_; /* that were loaded */

  __device__ __forceinline__ int column(int k) const { return columns * w_ + quad_ + 4 * k; }

public:
  __device__ __forceinline__ chase_worker(const chase_args<T> &p, shared &s)
      : p_(p), s_(s), warp_(warp_id()), w_(warp_ % shared::warps), row_(lane_id() % 8), quad_(lane_id() / 8),
        below_(warp_ < shared::warps), tau_(zero<T>()), tiles_(0) {}

  /* position: of the sweep's first hop, counted from the block's first one. */
  __device__ __forceinline__ void sweep(int j, int position) {
    const int hops = reflector_storage<B>::hops(p_.n, j);
    for (int h = -1; h < hops; h++, position++) hop(j, h, hops, position);
  }

private:
  __device__ __forceinline__ void load_tile() {
    const int buffer = tiles_ % shared::buffers;
    const uint32_t parity = static_cast<uint32_t>(tiles_ / shared::buffers & 1);
    s_.copied[buffer].wait(parity);
    if (below_) {
      const T *from = s_.tile[buffer][w_] + quad_ * shared::ld + row_;
#pragma unroll
      for (int k = 0; k < KC; k++)
#pragma unroll
        for (int i = 0; i < RI; i++)
          a_[k][i] = i == RI - 1 && row_ == 7 ? zero<T>() : from[4 * k * shared::ld + 8 * i];
    } else {
      const T *from = s_.diagonal[buffer];
#pragma unroll
      for (int k = 0; k < KC; k++)
#pragma unroll
        for (int i = 0; i < RI; i++) {
          const int r = row_ + 8 * i, c = column(k);
          const T x = from[r < c ? r * shared::diagonal_ld + c : c * shared::diagonal_ld + r];
          a_[k][i] = r < c ? conj(x) : x;
        }
    }
    warp_sync();
    if (lane_id() == 0) s_.taken[buffer].arrive();
    tiles_++;
  }

  /* The last column, or before the first hop the one that the sweep is about. */
  __device__ __forceinline__ void take_border(int j, int h, int slot, int turn) {
    const T *from = s_.border[slot];
    if (h >= 0) {
      if (quad_ == 3) {
        if (below_) {
#pragma unroll
          for (int i = 0; i < RI; i++) a_[KC - 1][i] = from[1 + row_ + 8 * i];
        } else if (row_ == 7) {
          a_[KC - 1][RI - 1] = from[0];
        }
      }
    } else if (below_) {
#pragma unroll
      for (int e = 0; e < EL; e++) {
        const int r = lane_id() + e * warp_lanes;
        s_.first[turn][r] = from[1 + r];
      }
    } else if (lane_id() == 0) {
      p_.d[j] = real_part(from[0]);
    }
  }

  __device__ __forceinline__ void multiply(int turn) {
    const T *v = s_.v[warp_];
    if (below_) {
      T sum[RI], vc[KC];
#pragma unroll
      for (int k = 0; k < KC; k++) vc[k] = v[column(k)];
#pragma unroll
      for (int i = 0; i < RI; i++) {
        sum[i] = zero<T>();
#pragma unroll
        for (int k = 0; k < KC; k++) sum[i] = madd(a_[k][i], vc[k], sum[i]);
      }
      if (w_ == 0 && quad_ == 0)
#pragma unroll
        for (int i = 0; i < RI; i++) s_.first[turn][row_ + 8 * i] = a_[0][i];
      const int begin = sum_over_columns(sum);
#pragma unroll
      for (int i = 0; i < RI / 4; i++) s_.part[turn][w_][row_ + 8 * (begin + i)] = sum[i];
    } else {
      T sum[KC], vr[RI];
#pragma unroll
      for (int i = 0; i < RI; i++) vr[i] = v[row_ + 8 * i];
#pragma unroll
      for (int k = 0; k < KC; k++) {
        sum[k] = zero<T>();
#pragma unroll
        for (int i = 0; i < RI; i++) sum[k] = cmadd(a_[k][i], vr[i], sum[k]);
      }
      const T total = group_sum_scatter<KC, 8>(sum);
      if (row_ % (8 / KC) == 0) s_.product[turn][column(row_ / (8 / KC))] = total;
    }
  }

  /* O := O - y v^H, y = tau O v; z: x^H O, by the thread's own rows, x being O's first column without its
   * first element. */
  __device__ __forceinline__ void update_right(const T (&x)[EL], const T (&y)[EL], T (&z)[KC]) {
    T *xs = s_.x[warp_], *ys = s_.y[warp_];
    const T *v = s_.v[warp_];
#pragma unroll
    for (int e = 0; e < EL; e++) {
      const int r = lane_id() + e * warp_lanes;
      xs[r] = r == 0 ? zero<T>() : x[e];
      ys[r] = -y[e];
    }
    T vc[KC];
#pragma unroll
    for (int k = 0; k < KC; k++) vc[k] = conj(v[column(k)]);
    warp_sync();
#pragma unroll
    for (int i = 0; i < RI; i++) {
      const T minus_y = ys[row_ + 8 * i];
#pragma unroll
      for (int k = 0; k < KC; k++) a_[k][i] = madd(minus_y, vc[k], a_[k][i]);
    }
    multiply_left(xs, z);
  }
  __device__ __forceinline__ void multiply_left(const T *xs, T (&z)[KC]) {
#pragma unroll
    for (int k = 0; k < KC; k++) z[k] = zero<T>();
#pragma unroll
    for (int i = 0; i < RI; i++) {
      const T x = xs[row_ + 8 * i];
#pragma unroll
      for (int k = 0; k < KC; k++) z[k] = cmadd(x, a_[k][i], z[k]);
    }
  }

  /* O := H_(h+1)^H O, given the sums z over all rows. */
  __device__ __forceinline__ void update_left(const reflector<T> &next, const T (&x)[EL], T (&z)[KC]) {
    T *xs = s_.x[warp_], scale = next.scale;
    if (next.pre != 1) { /* squares that are out of range: v itself */
      scale = one<T>();
      warp_sync();
#pragma unroll
      for (int e = 0; e < EL; e++)
        if (lane_id() + e > 0) xs[lane_id() + e * warp_lanes] = next.v(x[e]);
      warp_sync();
      multiply_left(xs, z);
#pragma unroll
      for (int k = 0; k < KC; k++) z[k] = group_sum<8>(z[k]);
    }
    const T factor = -conj(next.tau);
#pragma unroll
    for (int k = 0; k < KC; k++) z[k] = factor * madd(conj(scale), z[k], broadcast<8>(a_[k][0], 0));
#pragma unroll
    for (int i = 0; i < RI; i++) {
      const T vr = i == 0 && row_ == 0 ? one<T>() : xs[row_ + 8 * i] * scale;
#pragma unroll
      for (int k = 0; k < KC; k++) a_[k][i] = madd(vr, z[k], a_[k][i]);
    }
    if (w_ == 0 && quad_ == 0 && row_ == 0) a_[0][0] = make<T>(next.beta);
  }

  /* The thread's part of v^H D v. */
  __device__ __forceinline__ R product_by_v(int turn) const {
    R dot = 0;
#pragma unroll
    for (int e = 0; e < EL; e++) {
      const int r = lane_id() + e * warp_lanes;
      const T v = s_.v[warp_][r], w = s_.product[turn][r];
      dot = fused(real_part(v), real_part(w), dot);
      if (is_complex<T>) dot = fused(imag_part(v), imag_part(w), dot);
    }
    return dot;
  }
  /* D := H^H D H = D - v q^H - q v^H, q = tau D v - |tau|^2 dot / 2 v, dot = v^H D v. */
  __device__ __forceinline__ void update_diagonal(int turn, R dot) {
    T *qs = s_.y[warp_];
    const T *v = s_.v[warp_];
    dot *= -R(0.5) * abs2(tau_);
#pragma unroll
    for (int e = 0; e < EL; e++) {
      const int r = lane_id() + e * warp_lanes;
      qs[r] = scaled_add(v[r], dot, tau_ * s_.product[turn][r]);
    }
    warp_sync();
    T vc[KC], qc[KC];
#pragma unroll
    for (int k = 0; k < KC; k++) {
      vc[k] = -conj(v[column(k)]);
      qc[k] = -conj(qs[column(k)]);
    }
#pragma unroll
    for (int i = 0; i < RI; i++) {
      const T vr = v[row_ + 8 * i], qr = qs[row_ + 8 * i];
#pragma unroll
      for (int k = 0; k < KC; k++) a_[k][i] = madd(qr, vc[k], madd(vr, qc[k], a_[k][i]));
    }
  }

  /* All but the first column, which is the next sweep's border, and is not read from the band again. */
  __device__ __forceinline__ void store_tile(int j, int h) {
    const int64_t at = j + 1 + int64_t(h) * B;
    T *to = p_.band + storage::at(at + (below_ ? B : 0) + row_, at + column(0));
    const bool first = column(0) == 0;
#pragma unroll
    for (int k = 0; k < KC; k++)
#pragma unroll
      for (int i = 0; i < RI; i++) {
        const int below = below_ ? 1 : row_ + 8 * i - column(k);
        const T x = below == 0 ? make<T>(real_part(a_[k][i])) : a_[k][i];
        if (below >= 0 && (k > 0 || !first)) to[4 * k * storage::ld + 8 * i] = x;
      }
  }
  /* By the warp with the diagonal tile's first columns: the next sweep's border. */
  __device__ __forceinline__ void send_border(int j, int h, R beta) {
    using border = border_storage<T, B>;
    message<R> *to = p_.borders + border::at(p_.n, j, h);
    const uint32_t tag = border::tag(j);
    if (quad_ == 0) {
#pragma unroll
      for (int i = 0; i < RI; i++) {
        const int r = row_ + 8 * i;
        const T x = r == 0 ? make<T>(real_part(a_[0][i])) : a_[0][i];
        send(to + border::parts * r, real_part(x), tag);
        if constexpr (is_complex<T>) send(to + border::parts * r + 1, imag_part(x), tag);
      }
    } else if (lane_id() == warp_lanes - 1) {
      send(to + border::parts * B, beta, tag);
      if constexpr (is_complex<T>) send(to + border::parts * B + 1, R(0), tag);
    }
  }

  __device__ __forceinline__ void keep(int j, int h, const T (&v)[EL], T tau) {
    const int64_t at = reflector_storage<B>::before(p_.n, h) + j + 1;
#pragma unroll
    for (int e = 0; e < EL; e++) p_.v[at * B + lane_id() + e * warp_lanes] = v[e];
    if (lane_id() == 0) p_.tau[at] = tau;
  }

  __device__ __forceinline__ void hop(int j, int h, int hops, int position) {
    const int turn = position & 1;
    const int slot = position % shared::slots;
    const bool last = w_ == shared::warps - 1, more = h + 1 < hops;
    if (h >= 0) load_tile();
    s_.full[slot].wait(static_cast<uint32_t>(position / shared::slots & 1));
    warp_sync(); /* before an arrival lets the phase go on that another lane still asks for */
    if (last) take_border(j, h, slot, turn);
    if (last || lane_id() == 0) s_.empty[slot].arrive();
    if (h >= 0) multiply(turn);
    named_sync(1, shared::workers * warp_lanes);

    /* H_(h+1), by each warp for itself */
    T x[EL], y[EL], z[KC];
    R ss = 0;
#pragma unroll
    for (int e = 0; e < EL; e++) {
      const int r = lane_id() + e * warp_lanes;
      T sum = zero<T>();
      if (h >= 0)
#pragma unroll
        for (int w = 0; w < shared::warps; w++) sum = sum + s_.part[turn][w][r];
      y[e] = tau_ * sum;
      x[e] = s_.first[turn][r] - y[e];
      if (r > 0) ss = abs2_add(x[e], ss);
    }
    const T alpha = broadcast(x[0], 0);
    const bool left = below_ && h >= 0;
    if (left) {
      update_right(x, y, z);
#pragma unroll
      for (int d = 1; d < 8; d *= 2) {
#pragma unroll
        for (int k = 0; k < KC; k++) z[k] = z[k] + exchange(z[k], d);
      }
    }
    R dot = 0;
    if (!below_ && h >= 0) dot = product_by_v(turn);
#pragma unroll
    for (int d = warp_lanes / 2; d > 0; d /= 2) {
      ss += exchange(ss, d);
      dot += exchange(dot, d);
    }
    const R pre = norm_prescale(abs2_add(alpha, ss), false);
    if (pre != 1) {
      ss = 0;
#pragma unroll
      for (int e = 0; e < EL; e++)
        if (lane_id() + e > 0) ss = abs2_add(scaled(x[e], pre), ss);
      ss = group_sum(ss);
    }
    const reflector<T> next = larfg(alpha, ss, pre, false);
    if (left) update_left(next, x, z);
    if (!below_ && h >= 0) update_diagonal(turn, dot);
    if (warp_ == shared::warps && h >= 0) send_border(j, h, next.beta);
    if (h >= 0) store_tile(j, h);
    T v[EL];
#pragma unroll
    for (int e = 0; e < EL; e++) v[e] = lane_id() + e == 0 ? one<T>() : next.v(x[e]);
    warp_sync();
    s_.told[slot].wait(static_cast<uint32_t>(position / shared::slots & 1) ^ 1);
    warp_sync();
    if (lane_id() == 0) s_.stored[slot].arrive();
#pragma unroll
    for (int e = 0; e < EL; e++) s_.v[warp_][lane_id() + e * warp_lanes] = v[e];
    tau_ = next.tau;
    warp_sync();
    if (warp_ == shared::workers - 1) {
      if (h < 0 && lane_id() == 0) p_.e[j] = next.beta;
      if (p_.v && more) keep(j, h + 1, v, next.tau);
    } else if (warp_ == shared::warps && j == p_.n - 2 && h == 0 && lane_id() == 0) {
      p_.d[j + 1] = real_part(a_[0][0]);
    }
  }
};

/* Receives the border of each hop as soon as the sweep before has made it. */
template <class T, int B>
__device__ void read_borders(const chase_args<T> &p, chase_shared<T, B> &s, int j, int position) {
  using R = real_t<T>;
  using shared = chase_shared<T, B>;
  using border = border_storage<T, B>;
  const int hops = reflector_storage<B>::hops(p.n, j),
            before = j > 0 ? reflector_storage<B>::hops(p.n, j - 1) : 0;
  for (int h = -1; h < hops; h++, position++) {
    const int slot = position % shared::slots;
    s.empty[slot].wait(static_cast<uint32_t>(position / shared::slots & 1) ^ 1);
    warp_sync();
    R *to = reinterpret_cast<R *>(s.border[slot]);
    if (h + 1 < before) {
      /* All lanes ask until the last number has come: where some stayed in the loop alone, the compiler (CUDA
       * 13.0) had the others change a uniform register that these still needed. */
      const message<R> *from = p.borders + border::at(p.n, j - 1, h + 1);
      bool missing;
      do {
        missing = false;
#pragma unroll
        for (int i = 0; i < border::numbers; i += warp_lanes)
          if (i + lane_id() < border::numbers)
            missing |= !received(from + i + lane_id(), to[i + lane_id()], border::tag(j - 1));
      } while (group_any(missing));
    } else { /* of the first sweep, or behind the matrix */
      const int64_t column = j + int64_t(h + 1) * B;
      const R *from = reinterpret_cast<const R *>(p.band + band_storage<B>::at(column, column));
      for (int i = lane_id(); i < border::numbers; i += warp_lanes) to[i] = j == 0 ? from[i] : R(0);
    }
    s.full[slot].arrive();
  }
}

/* Copies the other columns of each hop's tiles, of O or of the diagonal, when the sweep before has stored
 * them. tiles: that were copied; becomes that of all. */
template <class T, int B>
__device__ void copy_tiles(const chase_args<T> &p, chase_shared<T, B> &s, int j, bool below, int &tiles) {
  using shared = chase_shared<T, B>;
  using storage = band_storage<B>;
  const int hops = reflector_storage<B>::hops(p.n, j),
            before = j > 0 ? reflector_storage<B>::hops(p.n, j - 1) : 0;
  int seen = 0;
  for (int h = 0; h < hops; h++, tiles++) {
    const int buffer = tiles % shared::buffers, needed = h + 1 < before ? h + 1 : before;
    s.taken[buffer].wait(static_cast<uint32_t>(tiles / shared::buffers & 1) ^ 1);
    while (group_any(seen < needed)) seen = published(p.progress + j - 1);
    warp_sync();
    const int64_t at = j + 1 + int64_t(h) * B;
    const T *from = p.band + storage::at(at + (below ? B : 0) + lane_id(), at);
    T *to = (below ? s.tile[buffer][0] : s.diagonal[buffer]) + lane_id();
    constexpr int ld = shared::ld, diagonal_ld = shared::diagonal_ld;
#pragma unroll 8
    for (int c = 0; c < B - 1; c++)
#pragma unroll
      for (int e = 0; e < B; e += warp_lanes)
        if (below)
          copy_async<sizeof(T)>(to + c * ld + e, from + c * storage::ld + e);
        else if (lane_id() + e >= c)
          copy_async<sizeof(T)>(to + c * diagonal_ld + e, from + c * storage::ld + e);
    s.copied[buffer].arrive_after_copies();
  }
}

/* Tells the next sweep's block how many hops are done. */
template <class T, int B>
__device__ void tell_progress(const chase_args<T> &p, chase_shared<T, B> &s, int j, int position) {
  using shared = chase_shared<T, B>;
  const int hops = reflector_storage<B>::hops(p.n, j);
  /* All lanes go through the loop: where one of them did alone, the compiler (CUDA 13.0) had the others
   * change a uniform register that it still needs. */
  for (int h = -1; h < hops; h++, position++) {
    const int slot = position % shared::slots;
    s.stored[slot].wait(static_cast<uint32_t>(position / shared::slots & 1));
    if (lane_id() == 0) {
      s.told[slot].arrive();
      if (h >= 0) publish(p.progress + j, h + 1);
    }
    warp_sync();
  }
}

} // namespace bqr

#endif
