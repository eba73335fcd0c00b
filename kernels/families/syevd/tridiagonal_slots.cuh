/* SPDX-License-Identifier: BSD-3-Clause */
/* syevd_tridiagonal's workspace: what its kernels leave one another of each member. */
#ifndef BQR_KERNELS_FAMILIES_SYEVD_TRIDIAGONAL_SLOTS_CUH
#define BQR_KERNELS_FAMILIES_SYEVD_TRIDIAGONAL_SLOTS_CUH

#include "common/matrix/view.cuh"
#include "common/simt/block.cuh"

namespace bqr {
namespace {

/* The largest orders of members whose vectors come from their values, and that do so in shared memory. */
constexpr int most_pairs = 256, most_pairs_on_chip = 96;

/* A member's part of the workspace: offsets in bytes. a: the matrix, then reflectors; q: two buffers of
 * vectors of T, or three, doubles, for vectors from values outside shared memory. ld: of all matrices. */
struct slot_layout {
  size_t q0, q1, q2, d, e, state, bytes;
  int ld;
};
struct slot_state {
  int exponent;
  bool sound; /* there is something to do */
  bool whole; /* T's vectors are known; by rows in the second buffer */
};

template <class T> slot_layout layout_of(int n) {
  const size_t rows = static_cast<size_t>(n), square = rows * rows;
  slot_layout s;
  size_t end = 0;
  const auto take = [&](size_t bytes) {
    const size_t at = end;
    end += (bytes + 15) / 16 * 16;
    return at;
  };
  take(sizeof(T) * square);
  const bool outside = n > most_pairs_on_chip && n <= most_pairs;
  const size_t vectors = (outside ? sizeof(double) : sizeof(real_t<T>)) * square;
  s.q0 = take(vectors);
  s.q1 = take(vectors);
  s.q2 = outside ? take(vectors) : 0;
  s.d = take(sizeof(real_t<T>) * rows);
  s.e = take(sizeof(real_t<T>) * rows);
  s.state = take(sizeof(slot_state));
  s.bytes = (end + 255) / 256 * 256;
  s.ld = n;
  return s;
}

class slot {
public:
  __device__ slot(const bqr_args &args, const slot_layout &s, int number)
      : layout_(s), base_(static_cast<unsigned char *>(args.workspace) + number * s.bytes) {}

  template <class T> __device__ matrix_view<T> a(int n) const {
    return {reinterpret_cast<T *>(base_), layout_.ld, n, n};
  }
  template <class R> __device__ matrix_view<R> q(int which, int n) const {
    return {reinterpret_cast<R *>(base_ + (which ? layout_.q1 : layout_.q0)), layout_.ld, n, n};
  }
  /* The buffers of vectors, as they are used for vectors from values, which come to be by rows in q1. */
  __device__ double *buffer(int which) const {
    return reinterpret_cast<double *>(base_ + (which == 0   ? layout_.q0
                                               : which == 1 ? layout_.q1
                                                            : layout_.q2));
  }
  template <class R> __device__ R *by_rows() const { return reinterpret_cast<R *>(base_ + layout_.q1); }
  template <class R> __device__ R *d() const { return reinterpret_cast<R *>(base_ + layout_.d); }
  template <class R> __device__ R *e() const { return reinterpret_cast<R *>(base_ + layout_.e); }
  __device__ slot_state &state() const { return *reinterpret_cast<slot_state *>(base_ + layout_.state); }

private:
  const slot_layout &layout_;
  unsigned char *base_;
};

} // namespace
} // namespace bqr

#endif
