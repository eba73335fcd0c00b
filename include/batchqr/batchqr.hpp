/* SPDX-License-Identifier: BSD-3-Clause */
/** @file batchqr.hpp
 * batchqr for C++17 and later: handles and plans that release themselves, exceptions, element types from
 * template arguments, operands from whatever has data() and strides.
 *
 *     batchqr::handle handle(BATCHQR_BACKEND_CPU);
 *     batchqr::matrices<double> a(data, 1000, 32, 16); // 1000 matrices of 32 x 16, by columns, close-packed
 *     handle.run(batchqr::geqrf(a, tau).info(info));
 *
 * A routine, such as geqrf(), makes a call: a batch with its operands. A handle runs calls; a plan is made
 * for one and executes those like it. batchqr.h says what routines do.
 *
 * **Matrices** are batchqr::matrices or views that become such: objects with `data()` or `data_handle()`,
 * sizes `extent(i)`, `shape(i)` or `shape()[i]`, and strides `stride(i)` or `strides()[i]` in elements, as
 * std::mdspan, Kokkos::View, xtensor and nanobind have them; or with `rows()`, `cols()`, `rowStride()`,
 * `colStride()`, as Eigen. The first of three dimensions counts members, unless members() names another; two
 * dimensions are one matrix. Const elements are only read: qr(), geqr_r() and gels() then keep A.
 *
 * **Vectors** (tau, s, jpvt, info, ...) are batchqr::vectors, views of which the first of two dimensions
 * counts members, or close-packed: an address, a range, a view. Operands that are too small are errors. */
#ifndef BATCHQR_HPP
#define BATCHQR_HPP

#include <batchqr/batchqr.h>
#include <algorithm>
#include <climits>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace batchqr {

/** What is thrown: the library's text, and its status. */
struct error : std::runtime_error {
  error(batchqr_status status_, const std::string &text) : std::runtime_error(text), status(status_) {}
  batchqr_status status;
};

/** Throws if a status is not a success; with the handle's last message, or that of batchqr_create(). */
inline void check(batchqr_status status, batchqr_handle_t handle = nullptr) {
  if (status == BATCHQR_SUCCESS) return;
  std::string text = batchqr_error_message(handle);
  throw error(status, text.empty() ? batchqr_status_string(status) : text);
}

/** An element type: real, or with `value_type` and `imag()`, as std::complex. Specialize it for others. */
template <class T, class = void> struct element {
  using real = T;
  static constexpr bool complex = false;
};
template <class T>
struct element<T, std::void_t<typename T::value_type, decltype(std::declval<const T &>().imag())>> {
  using real = typename T::value_type;
  static constexpr bool complex = true;
};

template <class T> using real = typename element<std::remove_const_t<T>>::real;

/** LAPACK's letter for an element type. */
template <class T> constexpr batchqr_type type_of() {
  using E = element<std::remove_const_t<T>>;
  constexpr bool single = std::is_same_v<typename E::real, float>;
  static_assert(single || std::is_same_v<typename E::real, double>, "elements are float, double or complex");
  static_assert(sizeof(T) == (E::complex ? 2 : 1) * sizeof(typename E::real), "a complex type has two parts");
  return E::complex ? (single ? BATCHQR_C : BATCHQR_Z) : (single ? BATCHQR_S : BATCHQR_D);
}

/** Members that are stored alike: `count` matrices of m x n, or vectors of m elements. */
template <class T> struct operand {
  using value_type = T;    /**< const if the members are only read */
  void *address;           /**< as #batchqr_operands wants it */
  batchqr_storage storage; /**< as #batchqr_batch wants it */
  std::int64_t count;      /**< members */
  int m, n;                /**< their sizes; of vectors m is the length, and n is 1 */

  /** From what the C interface wants. */
  operand(const void *data, const batchqr_storage &where, std::int64_t members, int rows, int columns)
      : address(const_cast<void *>(data)), storage(where), count(members), m(rows), n(columns) {}
};

/** Matrices by columns. An ld or a stride of 0 means close-packed; set `storage` for anything else. */
template <class T> struct matrices : operand<T> {
  matrices(T *data, std::int64_t count, int m, int n, int ld = 0, std::int64_t stride = 0)
      : operand<T>(data, {BATCHQR_STRIDED, ld ? ld : std::max(1, m), stride, nullptr, 0}, count, m, n) {
    if (!stride) this->storage.stride = std::int64_t{this->storage.ld} * n;
  }
  /** Each at an address of its own. */
  matrices(T *const *addresses, std::int64_t count, int m, int n, int ld = 0)
      : operand<T>(addresses, {BATCHQR_POINTERS, ld ? ld : std::max(1, m), 0, nullptr, 0}, count, m, n) {}
};
template <class T> matrices(T **, std::int64_t, int, int, int = 0) -> matrices<T>;

/** Vectors of adjacent elements; a stride of 0 means close-packed. */
template <class T> struct vectors : operand<T> {
  vectors(T *data, std::int64_t count, int length, std::int64_t stride = 0)
      : operand<T>(data, {BATCHQR_STRIDED, 0, stride ? stride : length, nullptr, 0}, count, length, 1) {}
  /** Each at an address of its own. */
  vectors(T *const *addresses, std::int64_t count, int length)
      : operand<T>(addresses, {BATCHQR_POINTERS, 0, 0, nullptr, 0}, count, length, 1) {}
};
template <class T> vectors(T **, std::int64_t, int) -> vectors<T>;

/** @cond */
template <class T> struct call;
namespace detail {
[[noreturn]] inline void invalid(const std::string &text) { throw error(BATCHQR_INVALID_ARGUMENT, text); }

inline std::string sizes(std::int64_t count, int m, int n) {
  return std::to_string(count) + " of " + std::to_string(m) + " x " + std::to_string(n);
}

inline int to_int(std::int64_t value, const std::string &name) {
  if (value < INT_MIN || value > INT_MAX) invalid(name + " = " + std::to_string(value) + " is not an int");
  return static_cast<int>(value);
}

/* What views have, by the names that libraries give it: the first of the overloads that compile is taken.
 * strides() that are no container, pybind11's, count bytes. */
template <int I> struct use : use<I + 1> {};
template <> struct use<4> {};
using any = use<1>;
template <class V> auto data_of(V &v, use<1>) -> decltype(v.data_handle()) { return v.data_handle(); }
template <class V> auto data_of(V &v, use<2>) -> decltype(v.data()) { return v.data(); }
template <class V> auto size_of(V &v, int i, use<1>) -> decltype(v.extent(i)) { return v.extent(i); }
template <class V> auto size_of(V &v, int i, use<2>) -> decltype(v.shape(i)) { return v.shape(i); }
template <class V> auto size_of(V &v, int i, use<3>) -> decltype(+v.shape()[i]) { return v.shape()[i]; }
template <class V> auto size_of(V &v, int i, use<4>) -> decltype(v.cols()) { return i ? v.cols() : v.rows(); }
template <class V> auto stride_of(V &v, int i, use<1>) -> decltype(v.stride(i)) { return v.stride(i); }
template <class V> auto stride_of(V &v, int i, use<2>) -> decltype(v.strides().size(), +v.strides()[i]) {
  return v.strides()[i];
}
template <class V> auto stride_of(V &v, int i, use<3>) -> decltype(v.rowStride()) {
  return i ? v.colStride() : v.rowStride();
}
template <class V> auto rank_of(V &, use<1>) -> decltype(V::rank()) { return V::rank(); }
template <class V> auto rank_of(V &, use<2>) -> decltype(+V::rank) { return V::rank; }
template <class V> auto rank_of(V &v, use<3>) -> decltype(v.ndim()) { return v.ndim(); }
template <class V> auto rank_of(V &v, use<4>) -> decltype(v.shape().size()) { return v.shape().size(); }
template <class V> auto rank_of(V &v, use<4>) -> decltype(v.rowStride(), 0) { return 2; }
template <class V> int rank_in(V &v, int least, int most) {
  const int rank = static_cast<int>(rank_of(v, any{}));
  if (rank < least || rank > most) invalid("a view of " + std::to_string(rank) + " dimensions");
  return rank;
}

template <class T> operand<T> as_matrices(const operand<T> &x) { return x; }
template <class V>
auto as_matrices(V &&v, int axis = 0) -> operand<std::remove_reference_t<decltype(*data_of(v, any{}))>> {
  const bool batch = rank_in(v, 2, 3) == 3;
  if (axis < 0 || axis > 2) invalid("axis = " + std::to_string(axis) + " is not 0, 1 or 2");
  const int row = batch && axis == 0 ? 1 : 0, column = batch && axis < 2 ? 2 : 1;
  const std::int64_t count = batch ? size_of(v, axis, any{}) : 1, row_stride = stride_of(v, row, any{});
  matrices x(data_of(v, any{}), count, to_int(size_of(v, row, any{}), "m"),
             to_int(size_of(v, column, any{}), "n"));
  /* Strides of dimensions with one element mean nothing; some libraries give 0. */
  if (x.m > 1 && x.n > 0 && row_stride != 1) x.storage.row_stride = row_stride, x.storage.ld = 1;
  if (x.n > 1) x.storage.ld = to_int(stride_of(v, column, any{}), "ld");
  x.storage.stride = count > 1 ? stride_of(v, axis, any{}) : 0;
  return x;
}

template <class V, class = void> constexpr bool is_view = false;
template <class V>
constexpr bool is_view<V, std::void_t<decltype(stride_of(std::declval<V &>(), 0, any{}))>> = true;

/* The vectors of `length` that x holds for `count` members; m is less if it holds fewer elements. */
template <class T> vectors<T> as_vectors(vectors<T> &x, std::int64_t, int) { return x; }
template <class T> vectors<T> as_vectors(const vectors<T> &x, std::int64_t, int) { return x; }
template <class X> auto as_vectors(X &x, std::int64_t count, int length) {
  const auto in = [&](std::int64_t size) { return size >= count * length ? length : int(size / count); };
  if constexpr (std::is_array_v<X> || std::is_pointer_v<X>) {
    return vectors(x, count, length);
  } else if constexpr (is_view<X>) {
    const int last = rank_in(x, 1, 2) - 1;
    const std::int64_t size = size_of(x, last, any{});
    if (size > 1 && stride_of(x, last, any{}) != 1) invalid("a vector's elements are not adjacent");
    if (last == 0) return vectors(data_of(x, any{}), count, in(size));
    return vectors(data_of(x, any{}), size_of(x, 0, any{}), to_int(size, "length"), stride_of(x, 0, any{}));
  } else {
    return vectors(x.data(), count, in(x.size()));
  }
}

/* A call on A, whose elements may be const where the operation can leave it as it is. */
template <bool may_be_const, class X> auto on(batchqr_op op, X &&x) {
  const auto a = as_matrices(x);
  using T = typename decltype(a)::value_type;
  static_assert(may_be_const || !std::is_const_v<T>, "const elements where they are written");
  return call<std::remove_const_t<T>>(op, a);
}

struct destroy {
  void operator()(batchqr_handle_t handle) const { batchqr_destroy(handle); }
  void operator()(batchqr_plan_t plan) const { batchqr_plan_destroy(plan); }
};
} // namespace detail
/** @endcond */

/** The matrices of a view of three dimensions, of which `axis` counts members and the others, in their order,
 * rows and columns; or the one matrix of a view of two. */
template <class View> auto members(View &&view, int axis = 0) { return detail::as_matrices(view, axis); }

/** The matrices of m x n, by columns and close-packed, in a contiguous range. */
template <class Range> auto packed(Range &&range, int m, int n) {
  const std::int64_t size = range.size(), each = std::int64_t{m} * n, count = each ? size / each : 0;
  if (m < 0 || n < 0 || count * each != size)
    detail::invalid(std::to_string(size) + " elements, not " + detail::sizes(count, m, n));
  return matrices(range.data(), count, m, n);
}

/** An operation on a batch of elements of type T, made by one of the routines below. Its functions add
 * operands that need not be there; what else an operation can be told is set in `batch`. */
template <class T> struct call {
  using value_type = T;
  batchqr_op op;
  batchqr_batch batch;
  batchqr_operands operands;

  /** On A, which is kept if its elements are const. */
  template <class A> call(batchqr_op o, const operand<A> &a) : op(o), batch{}, operands{} {
    batch.type = type_of<T>();
    batch.count = a.count;
    batch.m = a.m;
    batch.n = a.n;
    batch.keep_a = std::is_const_v<A>;
    batch.a = a.storage;
    operands.a = a.address;
  }
  template <class X> call &norms(X &&x) {
    return vec<real<T>>({batch.norms, operands.norms, "norms"}, x, batch.k);
  }
  template <class X> call &iterations(X &&x) {
    return vec<int>({batch.iterations, operands.iterations, "iterations"}, x, batch.k);
  }
  template <class X> call &relres(X &&x) {
    return vec<real<T>>({batch.relres, operands.relres, "relres"}, x, batch.k);
  }
  template <class X> call &range(X &&x) { return vec<real<T>>({batch.range, operands.range, "range"}, x, 2); }
  template <class X> call &s(X &&x) { return vec<real<T>>({batch.s, operands.s, "s"}, x, triplets()); }
  template <class X> call &jpvt(X &&x) { return vec<int>({batch.jpvt, operands.jpvt, "jpvt"}, x, batch.n); }
  template <class X> call &found(X &&x) { return vec<int>({batch.rank, operands.rank, "found"}, x, 1); }
  template <class X> call &rank(X &&x) { return vec<int>({batch.rank, operands.rank, "rank"}, x, 1); }
  template <class X> call &tau(X &&x) { return vec<T>({batch.tau, operands.tau, "tau"}, x, least()); }
  template <class X> call &tau(X &&x, int k) {
    return vec<const T>({batch.tau, operands.tau, "tau"}, x, batch.k = k);
  }
  template <class X> call &q(X &&x) { return mat<T>({batch.c, operands.c, "q"}, x, batch.m, least()); }
  template <class X> call &r(X &&x) { return mat<T>({batch.r, operands.r, "r"}, x, least(), batch.n); }
  template <class X> call &u(X &&x) { return mat<T>({batch.u, operands.u, "u"}, x, batch.m, triplets()); }
  template <class X> call &v(X &&x) { return mat<T>({batch.v, operands.v, "v"}, x, batch.n, triplets()); }
  template <class X> call &reflectors(X &&x, int p) {
    return mat<const T>({batch.a, operands.a, "a"}, x, p, batch.k);
  }
  template <class X> call &c(X &&x) {
    batch.k = detail::as_matrices(x).n;
    const bool solves = op == BATCHQR_GELS || op == BATCHQR_GELSY;
    return mat<T>({batch.c, operands.c, "c"}, x, solves ? std::max(batch.m, batch.n) : batch.m, batch.k);
  }
  /** Of pinv(): its result, n x m; weights. */
  template <class X> call &inverse(X &&x) { return mat<T>({batch.c, operands.c, "c"}, x, batch.n, batch.m); }
  template <class X> call &w(X &&x) { return vec<const real<T>>({batch.s, operands.s, "w"}, x, batch.m); }
  template <class X> call &info(X &&x) {
    batchqr_storage ints{};
    void *address = nullptr;
    vec<int>({ints, address, "info"}, x, 1);
    if (ints.layout || (batch.count > 1 && ints.stride != 1)) detail::invalid("info: has gaps");
    operands.info = static_cast<int *>(address);
    return *this;
  }

private:
  using place = std::tuple<batchqr_storage &, void *&, const char *>;
  int least() const { return std::min(batch.m, batch.n); }
  int triplets() const {
    if (batch.iu > 0) return batch.iu - batch.il + 1;
    return op == BATCHQR_GESVDR ? std::min(batch.k, least()) : least();
  }
  template <class E, class X> call &vec(place to, X &&x, int length) {
    return set<E>(to, detail::as_vectors(x, batch.count, length), length, 1);
  }
  template <class E, class X> call &mat(place to, X &&x, int m, int n) {
    return set<E>(to, detail::as_matrices(x), m, n);
  }
  /* Members of at least m x n elements E, const if they are only read. */
  template <class E, class G> call &set(place to, const operand<G> &x, int m, int n) {
    static_assert(std::is_same_v<std::remove_const_t<G>, std::remove_const_t<E>>, "elements of another type");
    static_assert(std::is_const_v<E> || !std::is_const_v<G>, "const elements where they are written");
    if (x.count != batch.count || x.m < m || x.n < n)
      detail::invalid(std::get<2>(to) + (": " + detail::sizes(x.count, x.m, x.n)) + ", not " +
                      detail::sizes(batch.count, m, n));
    std::get<0>(to) = x.storage;
    std::get<1>(to) = x.address;
    return *this;
  }
};

/** @name Routines of batchqr.h
 * orgqr() forms Q of as many reflectors as A has columns, ormqr() applies as many, or as it has rows. @{ */
template <class A, class T> auto geqrf(A &&a, T &&tau) {
  return detail::on<false>(BATCHQR_GEQRF, a).tau(tau);
}
template <class A, class Tau> auto orgqr(A &&a, Tau &&tau) {
  auto x = detail::on<false>(BATCHQR_ORGQR, a);
  return x.tau(tau, x.batch.n);
}
template <class A, class Tau, class C>
auto ormqr(batchqr_side side, batchqr_trans trans, A &&a, Tau &&tau, C &&c) {
  auto x = detail::on<false>(BATCHQR_ORMQR, c);
  std::swap(x.batch.a, x.batch.c);
  std::swap(x.operands.a, x.operands.c);
  x.batch.side = side;
  x.batch.trans = trans;
  const int p = side == BATCHQR_LEFT ? x.batch.m : x.batch.n, k = std::min(p, detail::as_matrices(a).n);
  return x.tau(tau, k).reflectors(a, p);
}
template <class A, class Q, class R> auto qr(A &&a, Q &&q, R &&r) {
  return detail::on<true>(BATCHQR_QR, a).q(q).r(r);
}
template <class A, class R> auto geqr_r(A &&a, R &&r) { return detail::on<true>(BATCHQR_GEQR_R, a).r(r); }
template <class A, class C> auto gels(batchqr_trans trans, A &&a, C &&c) {
  auto x = detail::on<true>(BATCHQR_GELS, a);
  x.batch.trans = trans;
  return x.c(c);
}
template <class A, class C> auto trsm(batchqr_trans trans, A &&a, C &&c) {
  auto x = detail::on<true>(BATCHQR_TRSM, a);
  x.batch.trans = trans;
  return x.c(c);
}
template <class A, class Range> auto r_range(A &&a, Range &&range) {
  return detail::on<true>(BATCHQR_R_RANGE, a).range(range);
}
template <class A, class T> auto geqp3(A &&a, T &&tau) {
  return detail::on<false>(BATCHQR_GEQP3, a).tau(tau);
}
template <class A, class C> auto gelsy(A &&a, C &&c) { return detail::on<false>(BATCHQR_GELSY, a).c(c); }
template <class A, class C> auto pinv(A &&a, C &&c) { return detail::on<false>(BATCHQR_PINV, a).inverse(c); }
template <class A, class S> auto gesvd(A &&a, S &&s) { return detail::on<false>(BATCHQR_GESVD, a).s(s); }
template <class A, class S, class U, class V> auto gesvdr(int k, A &&a, S &&s, U &&u, V &&v) {
  auto x = detail::on<true>(BATCHQR_GESVDR, a);
  x.batch.k = k;
  return x.s(s).u(u).v(v);
}
template <class A, class W> auto syevd(batchqr_uplo uplo, A &&a, W &&w) {
  auto x = detail::on<false>(BATCHQR_SYEVD, a);
  x.batch.uplo = uplo;
  return x.s(w);
}
/** The il-th to the iu-th smallest eigenvalue, counted from 1: see batch_syevr(). */
template <class A, class W> auto syevr(batchqr_uplo uplo, int il, int iu, A &&a, W &&w) {
  auto x = detail::on<false>(BATCHQR_SYEVD, a);
  x.batch.uplo = uplo;
  x.batch.il = il, x.batch.iu = iu;
  return x.s(w);
}
/** Those in (vl, vu]; w and v have room for all. */
template <class A, class W> auto syevr(batchqr_uplo uplo, double vl, double vu, A &&a, W &&w) {
  auto x = detail::on<false>(BATCHQR_SYEVD, a);
  x.batch.uplo = uplo;
  x.batch.vl = vl, x.batch.vu = vu;
  return x.s(w);
}
/** @} */

/** Owns a #batchqr_handle_t. */
class handle {
public:
  explicit handle(const batchqr_options &options = {}) {
    batchqr_handle_t created = nullptr;
    check(batchqr_create(&created, &options));
    owned.reset(created);
  }
  explicit handle(batchqr_backend backend) : handle(batchqr_options{backend, 0, 0, nullptr, 0, {}}) {}
  batchqr_handle_t get() const noexcept { return owned.get(); }
  batchqr_backend backend() const { return batchqr_get_backend(get()); }
  std::string describe() const { return batchqr_describe(get()); }
  void set_stream(batchqr_stream stream) { check(batchqr_set_stream(get(), stream), get()); }
  void set_workspace_limit(std::size_t bytes) { check(batchqr_set_workspace_limit(get(), bytes), get()); }
  void set_compute(batchqr_compute compute) { check(batchqr_set_compute(get(), compute), get()); }
  void set_workspace(void *p, std::size_t bytes) { check(batchqr_set_workspace(get(), p, bytes), get()); }
  /** What set_workspace() must be given for a call. */
  template <class T> std::size_t workspace_size(const call<T> &x) {
    std::size_t bytes = 0;
    check(batchqr_workspace_size(get(), x.op, &x.batch, &bytes), get());
    return bytes;
  }
  /** Enqueues a call on the stream; the CPU backend has done it on return. */
  template <class T> void run(const call<T> &x) { check(status(get(), x.op, x.batch, x.operands), get()); }

private:
  static batchqr_status status(batchqr_handle_t h, batchqr_op op, const batchqr_batch &b,
                               const batchqr_operands &o) {
    if (op == BATCHQR_GEQRF) return batch_geqrf(h, &b, o.a, o.tau, o.info);
    if (op == BATCHQR_ORGQR) return batch_orgqr(h, &b, o.a, o.tau, o.info);
    if (op == BATCHQR_ORMQR) return batch_ormqr(h, &b, b.side, b.trans, o.a, o.tau, o.c, o.info);
    if (op == BATCHQR_QR) return batch_qr(h, &b, o.a, o.c, o.r, o.info);
    if (op == BATCHQR_GEQR_R) return batch_geqr_r(h, &b, o.a, o.r, o.info);
    if (op == BATCHQR_GELS)
      return batch_gels_refined(h, &b, b.trans, o.a, o.c, o.norms, o.iterations, o.relres, o.info);
    if (op == BATCHQR_TRSM) return batch_trsm(h, &b, b.trans, o.a, o.c, o.info);
    if (op == BATCHQR_R_RANGE) return batch_r_range(h, &b, o.a, o.range, o.info);
    if (op == BATCHQR_GEQP3) return batch_geqp3(h, &b, o.a, o.tau, o.jpvt, o.rank, o.c, o.info);
    if (op == BATCHQR_GELSY) return batch_gelsy(h, &b, o.a, o.c, o.jpvt, o.rank, o.info);
    if (op == BATCHQR_PINV) return batch_pinv(h, &b, o.a, o.c, o.s, o.rank, o.info);
    if (op == BATCHQR_GESVD) return batch_gesvd(h, &b, o.a, o.s, o.u, o.v, o.rank, o.info);
    if (op == BATCHQR_GESVDR) return batch_gesvdr(h, &b, o.a, o.s, o.u, o.v, o.info);
    if (op == BATCHQR_SYEVD) return batch_syevr(h, &b, o.a, o.s, o.v, o.rank, o.info);
    detail::invalid("op = " + std::to_string(op) + " is none of batchqr_op");
  }
  std::unique_ptr<batchqr_handle, detail::destroy> owned;
};

/** Owns a #batchqr_plan_t, made for a call. */
class plan {
public:
  template <class T> plan(const handle &on, const call<T> &x) {
    batchqr_plan_t created = nullptr;
    batchqr_batch batch = x.batch;
    const auto places =
        reinterpret_cast<std::uintptr_t>(x.operands.a) | reinterpret_cast<std::uintptr_t>(x.operands.c);
    if (places % 16 != 0) batch.unaligned = 1;
    check(batchqr_plan_create(on.get(), x.op, &batch, &created), on.get());
    owned.reset(created);
  }
  batchqr_plan_t get() const noexcept { return owned.get(); }
  std::size_t workspace() const { return batchqr_plan_workspace(get()); }
  int launches() const { return batchqr_plan_launches(get()); }
  std::string describe() const { return batchqr_plan_describe(get()); }
  /** On operands that are stored as its call's: `plan.execute(handle, call.operands)`. */
  void execute(const handle &on, const batchqr_operands &x, void *workspace = nullptr,
               std::size_t bytes = 0) const {
    check(batchqr_plan_execute(on.get(), get(), &x, workspace, bytes), on.get());
  }

private:
  std::unique_ptr<batchqr_plan, detail::destroy> owned;
};

} // namespace batchqr

#endif
