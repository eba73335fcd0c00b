/* SPDX-License-Identifier: BSD-3-Clause */
/* batchqr.hpp: views of all kinds, every routine, plans, and what is thrown. On the CPU backend. */
#include <batchqr/batchqr.hpp>
#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#include <version>
#endif
#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif

static int failures;

static void expect(bool holds, const char *what, int line) {
  if (holds) return;
  std::printf("line %d: %s\n", line, what);
  failures++;
}
#define EXPECT(holds) expect(holds, #holds, __LINE__)

/* The text that is thrown, or "" if nothing is. */
template <class F> static std::string thrown(F f, batchqr_status status = BATCHQR_INVALID_ARGUMENT) {
  try {
    f();
  } catch (const batchqr::error &error) {
    EXPECT(error.status == status);
    return error.what();
  }
  return "";
}

/* --- views as other libraries have them */

template <class T, int Rank> struct Mdspan { /* std::mdspan, std::layout_stride */
  T *start;
  std::array<std::size_t, Rank> sizes, steps;
  static constexpr std::size_t rank() noexcept { return Rank; }
  T *data_handle() const { return start; }
  std::size_t extent(std::size_t i) const { return sizes[i]; }
  std::size_t stride(std::size_t i) const { return steps[i]; }
};

template <class T, int Rank> struct KokkosView { /* Kokkos::View */
  T *start;
  std::array<std::size_t, Rank> sizes, steps;
  static constexpr unsigned rank = Rank;
  T *data() const { return start; }
  std::size_t size() const { return 0; }
  template <class I> std::size_t extent(const I &i) const { return sizes[i]; }
  template <class I> std::size_t stride(const I &i) const { return steps[i]; }
};

template <class T> struct Xarray { /* xtensor: containers of sizes and strides */
  T *start;
  std::vector<std::size_t> sizes;
  std::vector<std::ptrdiff_t> steps;
  T *data() { return start; }
  const std::vector<std::size_t> &shape() const { return sizes; }
  const std::vector<std::ptrdiff_t> &strides() const { return steps; }
};

template <class T> struct Ndarray { /* nanobind */
  T *start;
  std::vector<std::size_t> sizes;
  std::vector<std::int64_t> steps;
  T *data() const { return start; }
  std::size_t ndim() const { return sizes.size(); }
  std::size_t shape(std::size_t i) const { return sizes[i]; }
  std::int64_t stride(std::size_t i) const { return steps[i]; }
};

struct PybindArray { /* pybind11: strides in bytes */
  double *data() const { return nullptr; }
  const std::ptrdiff_t *shape() const { return nullptr; }
  const std::ptrdiff_t *strides() const { return nullptr; }
};
static_assert(!batchqr::detail::is_view<PybindArray>);
static_assert(!batchqr::detail::is_view<std::vector<double>>);

template <class T> struct EigenMatrix { /* Eigen::Map */
  T *start;
  long height, width, row_step, column_step;
  T *data() { return start; }
  long rows() const { return height; }
  long cols() const { return width; }
  long rowStride() const { return row_step; }
  long colStride() const { return column_step; }
};

/* --- element types */

template <class R> struct Complex { /* Kokkos::complex */
  using value_type = R;
  R re, im;
  R imag() const { return im; }
};
struct DoublePair { /* cuDoubleComplex */
  double x, y;
};
template <> struct batchqr::element<DoublePair> {
  using real = double;
  static constexpr bool complex = true;
};
static_assert(batchqr::type_of<const float>() == BATCHQR_S && batchqr::type_of<double>() == BATCHQR_D);
static_assert(batchqr::type_of<std::complex<float>>() == BATCHQR_C);
static_assert(batchqr::type_of<const Complex<double>>() == BATCHQR_Z);
static_assert(batchqr::type_of<DoublePair>() == BATCHQR_Z);
static_assert(std::is_same_v<batchqr::real<const std::complex<float>>, float>);

/* --- members of COUNT x M x N by columns, and what they must come to */

constexpr int COUNT = 3, M = 4, N = 2;
using Data = std::vector<double>;

static Data numbers(int size) {
  Data x(size);
  for (int e = 0; e < size; e++) x[e] = std::sin(1 + 7 * e);
  return x;
}

/* R of the same members by LAPACK's signs, from the C interface. */
static Data expected_r(batchqr::handle &handle) {
  Data a = numbers(COUNT * M * N), r(COUNT * N * N);
  batchqr::check(batch_dgeqr_r_strided(handle.get(), M, N, a.data(), M, M * N, r.data(), N, N * N, COUNT));
  return r;
}

static bool close(const Data &x, const Data &y) {
  double worst = x.size() == y.size() ? 0 : 1;
  for (std::size_t e = 0; e < x.size() && e < y.size(); e++) worst = std::fmax(worst, std::fabs(x[e] - y[e]));
  return worst < 1e-13;
}

/* R of a view of `data`, which is only read. */
template <class View> static bool has_r(batchqr::handle &handle, View view, const Data &data) {
  const Data before = data;
  Data r(COUNT * N * N);
  handle.run(batchqr::geqr_r(view, batchqr::packed(r, N, N)));
  return data == before && close(r, expected_r(handle));
}

static void test_views(batchqr::handle &handle) {
  using T = const double;
  const Data a = numbers(COUNT * M * N);
  EXPECT(has_r(handle, batchqr::packed(a, M, N), a));
  EXPECT(has_r(handle, Mdspan<T, 3>{a.data(), {COUNT, M, N}, {M * N, 1, M}}, a));
  EXPECT(has_r(handle, KokkosView<T, 3>{a.data(), {COUNT, M, N}, {M * N, 1, M}}, a));
  EXPECT(has_r(handle, Xarray<T>{a.data(), {COUNT, M, N}, {M * N, 1, M}}, a));
  EXPECT(has_r(handle, Ndarray<T>{a.data(), {COUNT, M, N}, {M * N, 1, M}}, a));
  EXPECT(has_r(handle, batchqr::members(Mdspan<T, 3>{a.data(), {M, N, COUNT}, {1, M, M * N}}, 2), a));
  EXPECT(has_r(handle, batchqr::members(Mdspan<T, 3>{a.data(), {M, COUNT, N}, {1, M * N, M}}, 1), a));
#ifdef __cpp_lib_mdspan
  std::layout_stride::mapping map(std::extents<int, COUNT, M, N>{}, std::array<int, 3>{M * N, 1, M});
  EXPECT(has_r(handle, std::mdspan(a.data(), map), a));
#endif
#if __cplusplus >= 202002L
  EXPECT(has_r(handle, batchqr::packed(std::span(a), M, N), a));
#endif

  Data rows(a.size()),
      interleaved(a.size()); /* by rows; and members side by side, as by Kokkos::LayoutLeft */
  for (int k = 0; k < COUNT; k++)
    for (int j = 0; j < N; j++)
      for (int i = 0; i < M; i++) {
        rows[(k * M + i) * N + j] = a[(k * N + j) * M + i];
        interleaved[(j * M + i) * COUNT + k] = a[(k * N + j) * M + i];
      }
  EXPECT(has_r(handle, Mdspan<T, 3>{rows.data(), {COUNT, M, N}, {M * N, N, 1}}, rows));
  EXPECT(
      has_r(handle, KokkosView<T, 3>{interleaved.data(), {COUNT, M, N}, {1, COUNT, COUNT * M}}, interleaved));

  std::array<const double *, COUNT> addresses;
  Data r(COUNT * N * N);
  for (int k = 0; k < COUNT; k++) addresses[k] = a.data() + k * M * N;
  handle.run(batchqr::geqr_r(batchqr::matrices(addresses.data(), COUNT, M, N), batchqr::packed(r, N, N)));
  EXPECT(close(r, expected_r(handle)));
}

/* Two dimensions are one matrix; strides of a dimension of one element are not looked at. */
static void test_one_matrix(batchqr::handle &handle) {
  Data a = numbers(M * N), one(N * N), r = expected_r(handle);
  r.resize(N * N);
  handle.run(batchqr::geqr_r(EigenMatrix<const double>{a.data(), M, N, 1, M},
                             EigenMatrix<double>{one.data(), N, N, 1, N}));
  EXPECT(close(one, r));
  double first = 0;
  handle.run(batchqr::geqr_r(Xarray<const double>{a.data(), {1, M, 1}, {0, 1, 0}},
                             Xarray<double>{&first, {1, 1}, {0, 0}}));
  EXPECT(std::fabs(first - r[0]) < 1e-14);
  const auto none = batchqr::members(Mdspan<double, 3>{nullptr, {COUNT, M, 0}, {0, 0, 1}});
  EXPECT(none.count == COUNT && none.m == M && none.n == 0 && none.storage.row_stride == 0 &&
         none.storage.ld == M);
}

/* A = QR by geqrf, orgqr and ormqr, with vectors of each kind, and again by plans. */
static void test_factors(batchqr::handle &handle) {
  const Data a = numbers(COUNT * M * N);
  Data v = a, c = a, r(COUNT * N * N), q(COUNT * M * N), tau(COUNT * N);
  std::vector<int> info(COUNT, 7);
  const auto factor = batchqr::geqrf(batchqr::packed(v, M, N), tau).info(info);
  handle.run(factor);
  EXPECT(info == std::vector<int>(COUNT, 0));
  const Data factored = v;

  const auto reflectors = batchqr::packed(factored, M, N);
  handle.run(
      batchqr::ormqr(BATCHQR_LEFT, BATCHQR_TRANS, reflectors, std::as_const(tau), batchqr::packed(c, M, N)));
  for (int k = 0; k < COUNT; k++)
    for (int j = 0; j < N; j++)
      for (int i = 0; i < M; i++)
        EXPECT(std::fabs(c[(k * N + j) * M + i] - (i <= j ? factored[(k * N + j) * M + i] : 0)) < 1e-14);

  v = a;
  batchqr::plan plan(handle, factor);
  EXPECT(plan.launches() > 0 && plan.describe().find("geqrf") != std::string::npos);
  std::vector<char> bytes(plan.workspace() + 256);
  plan.execute(handle, factor.operands,
               bytes.data() + (256 - reinterpret_cast<std::uintptr_t>(bytes.data()) % 256) % 256,
               plan.workspace());
  EXPECT(v == factored);
  EXPECT(handle.workspace_size(factor) == plan.workspace());

  handle.run(batchqr::qr(batchqr::packed(a, M, N), batchqr::packed(q, M, N), batchqr::packed(r, N, N)));
  handle.run(
      batchqr::orgqr(batchqr::packed(v, M, N), Mdspan<const double, 2>{tau.data(), {COUNT, N}, {N, 1}}));
  EXPECT(close(v, q));
  EXPECT(close(r, expected_r(handle)));
}

/* The others, each by what must be true of one matrix. */
static void test_others(batchqr::handle &handle) {
  double a[4] = {3, 0, 0, -4}, b[2] = {6, 8}, norm = 1, range[2], s[2], u[4], v[4], w[2], tau[2],
         c[2] = {1, 2};
  int jpvt[2], rank = 0, info = 7;
  using M2 = batchqr::matrices<double>;
  const auto diagonal = [&] { return a[0] = 3, a[1] = a[2] = 0, a[3] = -4, M2(a, 1, 2, 2); };

  handle.run(batchqr::gels(BATCHQR_NO_TRANS, batchqr::matrices<const double>(a, 1, 2, 2), M2(b, 1, 2, 1))
                 .norms(&norm));
  EXPECT(std::fabs(b[0] - 2) < 1e-15 && std::fabs(b[1] + 2) < 1e-15 && norm == 0 && a[0] == 3 && a[3] == -4);
  handle.run(batchqr::r_range(diagonal(), range).info(&info));
  EXPECT(range[0] == 3 && range[1] == 4 && info == 0);
  handle.run(batchqr::gesvd(diagonal(), s).u(M2(u, 1, 2, 2)).v(M2(v, 1, 2, 2)).rank(&rank));
  EXPECT(std::fabs(s[0] - 4) < 1e-14 && std::fabs(s[1] - 3) < 1e-14 && rank == 2);
  EXPECT(std::fabs(u[1] * s[0] * v[1] + 4) < 1e-13);
  diagonal();
  handle.run(
      batchqr::gesvdr(1, batchqr::matrices<const double>(a, 1, 2, 2), s, M2(u, 1, 2, 1), M2(v, 1, 2, 1)));
  EXPECT(s[0] > 2.9 && s[0] < 4.1 && std::fabs(u[0] * u[0] + u[1] * u[1] - 1) < 1e-14);
  handle.run(batchqr::syevd(BATCHQR_LOWER, diagonal(), w).v(M2(v, 1, 2, 2)));
  EXPECT(std::fabs(w[0] + 4) < 1e-14 && std::fabs(w[1] - 3) < 1e-14 && std::fabs(v[1] - 1) < 1e-14);
  handle.run(batchqr::syevr(BATCHQR_LOWER, 2, 2, diagonal(), w).v(M2(v, 1, 2, 1)).found(&rank));
  EXPECT(std::fabs(w[0] - 3) < 1e-14 && std::fabs(v[0] - 1) < 1e-14 && rank == 1);
  handle.run(batchqr::syevr(BATCHQR_LOWER, -5.0, 0.0, diagonal(), w).found(&rank));
  EXPECT(std::fabs(w[0] + 4) < 1e-14 && w[1] != w[1] && rank == 1);
  auto pivoted = batchqr::geqp3(diagonal(), tau).jpvt(jpvt).rank(&rank).c(M2(c, 1, 2, 1));
  pivoted.batch.kmax = 1;
  handle.run(pivoted);
  EXPECT(jpvt[0] == 1 && rank == 1 && std::fabs(std::fabs(a[0]) - 4) < 1e-14 &&
         std::fabs(std::fabs(c[0]) - 2) < 1e-14);
  c[0] = 6, c[1] = 8;
  handle.run(batchqr::gelsy(diagonal(), M2(c, 1, 2, 1)).jpvt(jpvt).rank(&rank));
  EXPECT(rank == 2 && std::fabs(c[0] - 2) < 1e-14 && std::fabs(c[1] + 2) < 1e-14);
  const double weights[2] = {3, 8};
  handle.run(batchqr::pinv(diagonal(), M2(u, 1, 2, 2)).w(weights).rank(&rank));
  EXPECT(rank == 2 && std::fabs(u[0] - 1) < 1e-14 && std::fabs(u[3] + 2) < 1e-14 && u[1] == 0);

  std::complex<float> z[3] = {{1, 2}, {0, 2}, {4, 0}};
  std::vector<std::complex<float>> one(1);
  handle.run(batchqr::geqrf(batchqr::matrices(z, 1, 3, 1), one));
  EXPECT(std::fabs(std::abs(z[0]) - 5) < 1e-5);
}

static void test_errors(batchqr::handle &handle) {
  Data a = numbers(COUNT * M * N), r(COUNT * N * N), tau(COUNT * N - 1);
  const auto all = batchqr::packed(a, M, N);
  EXPECT(thrown([&] { handle.run(batchqr::geqrf(all, tau)); }) == "tau: 3 of 1 x 1, not 3 of 2 x 1");
  EXPECT(thrown([&] { batchqr::qr(all, all, batchqr::packed(r, N, 1)); }) == "r: 6 of 2 x 1, not 3 of 2 x 2");
  EXPECT(thrown([&] { batchqr::packed(a, 5, 2); }) == "24 elements, not 2 of 5 x 2");
  EXPECT(thrown([&] { batchqr::members(Ndarray<double>{a.data(), {4}, {1}}); }) == "a view of 1 dimensions");
  EXPECT(thrown([&] {
           batchqr::members(Mdspan<double, 2>{nullptr, {1u << 31, 1}, {1, 1}});
         }) == "m = 2147483648 is not an int");
  EXPECT(thrown([&] {
           batchqr::geqrf(all, Mdspan<double, 2>{a.data(), {COUNT, N}, {1, COUNT}});
         }) == "a vector's elements are not adjacent");
  EXPECT(thrown([&] {
           batchqr::geqr_r(all, batchqr::packed(r, N, N)).info(batchqr::vectors<int>(nullptr, COUNT, 1, 2));
         }) == "info: has gaps");

  /* The library's own text and status, of a call, of a plan, and of a handle that is not made. */
  const auto by_rows = Mdspan<double, 3>{a.data(), {COUNT, M, N}, {M * N, N, 1}};
  tau.resize(COUNT * N);
  std::string text = thrown([&] { handle.run(batchqr::geqrf(by_rows, tau)); });
  EXPECT(!text.empty() && text == batchqr_error_message(handle.get()));
  EXPECT(thrown([&] { batchqr::plan(handle, batchqr::geqrf(by_rows, tau)); }) == text);
  text = thrown([] { batchqr::handle(static_cast<batchqr_backend>(9)); });
  EXPECT(!text.empty() && text == batchqr_error_message(nullptr));
}

int main() {
  batchqr::handle first(BATCHQR_BACKEND_CPU), handle(std::move(first));
  EXPECT(first.get() == nullptr && handle.backend() == BATCHQR_BACKEND_CPU && !handle.describe().empty());
  test_views(handle);
  test_one_matrix(handle);
  test_factors(handle);
  test_others(handle);
  test_errors(handle);
  std::printf("%d failures\n", failures);
  return failures != 0;
}
