/* SPDX-License-Identifier: BSD-3-Clause */
/* batchqr._jax: what XLA calls for the functions of batchqr/jax.py, by its foreign function interface. XLA
 * owns all arrays. Their last two axes are a matrix's, stored by rows where a is only read, as XLA likes it,
 * and by columns what is written, which XLA turns faster than the library where it must be; that is for the
 * Python file to ask for. */
#include "call.hpp"
#include <algorithm>
#include <batchqr/batchqr.h>
#include <cfenv>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <string>
#include <tuple>
#include <utility>
#include <xla/ffi/api/ffi.h>

namespace nb = nanobind;
namespace ffi = xla::ffi;

namespace {

using Stream = CUstream_st *;

/* --- handles */

/* Threads take turns with a handle. */
struct Handle {
  std::mutex mutex;
  batchqr_handle_t handle = nullptr;
};

/* A device's, with R's diagonal as it falls or positive. They last as long as the process: when it ends, the
 * device may be gone before them. */
Handle &handle_of(batchqr_backend backend, int device, bool positive) {
  static std::mutex mutex;
  static auto *handles = new std::map<std::tuple<batchqr_backend, int, bool>, std::unique_ptr<Handle>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto &handle = (*handles)[{backend, device, positive}];
  if (!handle) handle = std::make_unique<Handle>();
  return *handle;
}

ffi::Error error(batchqr_status status, const char *text) {
  const ffi::ErrorCode code = status == BATCHQR_INVALID_ARGUMENT ? ffi::ErrorCode::kInvalidArgument
                              : status == BATCHQR_OUT_OF_MEMORY  ? ffi::ErrorCode::kResourceExhausted
                                                                 : ffi::ErrorCode::kInternal;
  return ffi::Error(code, text && *text ? text : batchqr_status_string(status));
}

/* Where XLA runs a function. */
struct Place {
  batchqr_backend backend;
  int device;
  Stream stream;
  ffi::ScratchAllocator *scratch; /* NULL: the library's own workspace */
};

/* What a function is to the library. */
struct Work {
  batchqr_op op;
  bool positive;
  batchqr_batch batch = {};
  batchqr_operands operands = {};
};

ffi::Error run(const Place &place, const Work &work) {
  Handle &shared = handle_of(place.backend, place.device, work.positive);
  std::lock_guard<std::mutex> lock(shared.mutex);
  if (!shared.handle) {
    batchqr_options options = {};
    options.backend = place.backend;
    options.positive_diagonal = work.positive;
    const batchqr_status status = batchqr_create(&shared.handle, &options);
    if (status) return error(status, batchqr_error_message(nullptr));
  }
  batchqr_handle_t handle = shared.handle;
  size_t bytes = 0;
  void *workspace = nullptr;
  batchqr_status status = BATCHQR_SUCCESS;
  if (place.scratch) status = batchqr_workspace_size(handle, work.op, &work.batch, &bytes);
  if (!status && bytes > 0) {
    /* XLA promises no more than 16 bytes of alignment. */
    constexpr uintptr_t alignment = 256, promised = 16;
    const auto memory = place.scratch->Allocate(bytes + alignment, promised);
    if (!memory) return error(BATCHQR_OUT_OF_MEMORY, "no memory for batchqr's workspace");
    workspace =
        reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(*memory) + alignment - 1) & ~(alignment - 1));
  }
  if (!status) status = batchqr_set_stream(handle, place.stream);
  if (!status) status = batchqr_set_workspace(handle, workspace, bytes);
  if (!status) status = batchqr_python::call(handle, work.op, work.batch, work.operands);
  return status ? error(status, batchqr_error_message(handle)) : ffi::Error::Success();
}

/* --- arrays */

struct Shape {
  int64_t members;
  int rows, cols;
};

Shape shape_of(const ffi::AnyBuffer &x) {
  const auto dims = x.dimensions();
  const size_t axes = dims.size();
  Shape s{1, static_cast<int>(dims[axes - 2]), static_cast<int>(dims[axes - 1])};
  for (size_t i = 0; i + 2 < axes; i++) s.members *= dims[i];
  return s;
}

int length_of(const ffi::AnyBuffer &x) { return static_cast<int>(x.dimensions()[x.dimensions().size() - 1]); }

batchqr_type type_of(const ffi::AnyBuffer &x) {
  switch (x.element_type()) {
  case ffi::DataType::F32:
    return BATCHQR_S;
  case ffi::DataType::F64:
    return BATCHQR_D;
  case ffi::DataType::C64:
    return BATCHQR_C;
  default:
    return BATCHQR_Z;
  }
}

batchqr_storage by_columns(const Shape &s) {
  batchqr_storage storage = {};
  storage.ld = std::max(s.rows, 1);
  storage.stride = int64_t(s.rows) * s.cols;
  return storage;
}

batchqr_storage by_rows(const Shape &s) {
  if (s.cols < 2) return by_columns(s);
  batchqr_storage storage = {};
  storage.ld = 1;
  storage.row_stride = s.cols;
  storage.stride = int64_t(s.rows) * s.cols;
  return storage;
}

/* to := from, where XLA has not put both in one place. */
ffi::Error copy(const Place &place, const ffi::AnyBuffer &from, ffi::AnyBuffer &to) {
  const void *source = from.untyped_data();
  void *target = to.untyped_data();
  if (source == target) return ffi::Error::Success();
  if (place.backend == BATCHQR_BACKEND_CPU) {
    std::memcpy(target, source, from.size_bytes());
    return ffi::Error::Success();
  }
  using Copy = int (*)(unsigned long long, unsigned long long, size_t, Stream);
  static void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  static Copy enqueue = driver ? reinterpret_cast<Copy>(dlsym(driver, "cuMemcpyDtoDAsync_v2")) : nullptr;
  if (!enqueue || enqueue(reinterpret_cast<uintptr_t>(target), reinterpret_cast<uintptr_t>(source),
                          from.size_bytes(), place.stream) != 0)
    return error(BATCHQR_CUDA_ERROR, "a copy failed");
  return ffi::Error::Success();
}

/* Of what works in a copy of an argument. */
ffi::Error run_in(const Place &place, const Work &work, const ffi::AnyBuffer &from, ffi::AnyBuffer &to) {
  ffi::Error copied = copy(place, from, to);
  return copied.success() ? run(place, work) : copied;
}

/* --- problems */

/* A problem of x's type and size. */
Work of_size(batchqr_op op, const ffi::AnyBuffer &x) {
  const Shape s = shape_of(x);
  Work work{op, false};
  work.batch.type = type_of(x);
  work.batch.count = s.members, work.batch.m = s.rows, work.batch.n = s.cols;
  return work;
}

/* One whose operand a, stored by columns, is work space or becomes a result, in out. */
Work on_columns(batchqr_op op, const ffi::AnyBuffer &a, ffi::AnyBuffer &out) {
  Work work = of_size(op, a);
  work.batch.a = by_columns(shape_of(a));
  work.operands.a = out.untyped_data();
  return work;
}

int *ints(ffi::Result<ffi::AnyBuffer> &x) { return static_cast<int *>(x->untyped_data()); }

/* --- the functions */

ffi::Error qr(const Place &place, ffi::AnyBuffer a, ffi::Result<ffi::AnyBuffer> q,
              ffi::Result<ffi::AnyBuffer> r, bool positive) {
  Work work = of_size(BATCHQR_QR, a);
  work.positive = positive;
  batchqr_batch &b = work.batch;
  b.keep_a = 1;
  b.a = by_rows(shape_of(a));
  b.c = by_columns(shape_of(*q));
  b.r = by_columns(shape_of(*r));
  work.operands.a = a.untyped_data();
  work.operands.c = q->untyped_data();
  work.operands.r = r->untyped_data();
  return run(place, work);
}

ffi::Error geqrf(const Place &place, ffi::AnyBuffer a, ffi::Result<ffi::AnyBuffer> out,
                 ffi::Result<ffi::AnyBuffer> tau, bool positive) {
  Work work = on_columns(BATCHQR_GEQRF, a, *out);
  work.positive = positive;
  work.batch.tau.stride = length_of(*tau);
  work.operands.tau = tau->untyped_data();
  return run_in(place, work, a, *out);
}

ffi::Error orgqr(const Place &place, ffi::AnyBuffer a, ffi::AnyBuffer tau, ffi::Result<ffi::AnyBuffer> q) {
  Work work = on_columns(BATCHQR_ORGQR, a, *q);
  batchqr_batch &b = work.batch;
  b.k = length_of(tau);
  b.tau.stride = b.k;
  work.operands.tau = b.k > 0 ? tau.untyped_data() : nullptr;
  return run_in(place, work, a, *q);
}

/* c: B in its first rows, X in the first rows of out. */
ffi::Error gels(const Place &place, ffi::AnyBuffer a, ffi::AnyBuffer c, ffi::Result<ffi::AnyBuffer> out,
                ffi::Result<ffi::AnyBuffer> norms, ffi::Result<ffi::AnyBuffer> info, bool adjoint) {
  Work work = of_size(BATCHQR_GELS, a);
  batchqr_batch &b = work.batch;
  b.k = shape_of(c).cols;
  b.trans = adjoint ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
  b.keep_a = 1;
  b.a = by_rows(shape_of(a));
  b.c = by_columns(shape_of(c));
  b.norms.stride = b.k;
  work.operands.a = a.untyped_data();
  work.operands.c = out->untyped_data();
  work.operands.norms = norms->untyped_data();
  work.operands.info = ints(info);
  return run_in(place, work, c, *out);
}

ffi::Error ormqr(const Place &place, ffi::AnyBuffer a, ffi::AnyBuffer tau, ffi::AnyBuffer c,
                 ffi::Result<ffi::AnyBuffer> out, bool left, bool transpose) {
  Work work = of_size(BATCHQR_ORMQR, c);
  batchqr_batch &b = work.batch;
  b.k = length_of(tau);
  b.side = left ? BATCHQR_LEFT : BATCHQR_RIGHT;
  b.trans = transpose ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
  b.a = by_columns(shape_of(a));
  b.c = by_columns(shape_of(c));
  b.tau.stride = b.k;
  work.operands.a = a.untyped_data();
  work.operands.tau = tau.untyped_data();
  work.operands.c = out->untyped_data();
  return run_in(place, work, c, *out);
}

ffi::Error geqp3(const Place &place, ffi::AnyBuffer a, ffi::Result<ffi::AnyBuffer> out,
                 ffi::Result<ffi::AnyBuffer> tau, ffi::Result<ffi::AnyBuffer> jpvt,
                 ffi::Result<ffi::AnyBuffer> rank, int64_t kmax, double atol, double rtol) {
  Work work = on_columns(BATCHQR_GEQP3, a, *out);
  batchqr_batch &b = work.batch;
  b.tau.stride = length_of(*tau);
  b.jpvt.stride = b.n;
  b.rank.stride = 1;
  b.kmax = static_cast<int>(kmax);
  b.abstol = atol, b.reltol = rtol;
  work.operands.tau = tau->untyped_data();
  work.operands.jpvt = jpvt->untyped_data();
  work.operands.rank = rank->untyped_data();
  return run_in(place, work, a, *out);
}

/* As gels, of any rank. */
ffi::Error gelsy(const Place &place, ffi::AnyBuffer a, ffi::AnyBuffer c, ffi::Result<ffi::AnyBuffer> out_a,
                 ffi::Result<ffi::AnyBuffer> out_c, ffi::Result<ffi::AnyBuffer> rank,
                 ffi::Result<ffi::AnyBuffer> info, double rcond) {
  Work work = on_columns(BATCHQR_GELSY, a, *out_a);
  batchqr_batch &b = work.batch;
  b.k = shape_of(c).cols;
  b.c = by_columns(shape_of(c));
  b.rank.stride = 1;
  b.reltol = rcond;
  work.operands.c = out_c->untyped_data();
  work.operands.rank = rank->untyped_data();
  work.operands.info = ints(info);
  ffi::Error copied = copy(place, a, *out_a);
  return copied.success() ? run_in(place, work, c, *out_c) : copied;
}

ffi::Error pinv(const Place &place, ffi::AnyBuffer a, ffi::Result<ffi::AnyBuffer> out,
                ffi::Result<ffi::AnyBuffer> inverse, double rcond) {
  Work work = on_columns(BATCHQR_PINV, a, *out);
  work.batch.c = by_columns(shape_of(*inverse));
  work.batch.reltol = rcond;
  work.operands.c = inverse->untyped_data();
  return run_in(place, work, a, *out);
}

ffi::Error gesvd_values(const Place &place, ffi::AnyBuffer a, ffi::Result<ffi::AnyBuffer> out,
                        ffi::Result<ffi::AnyBuffer> s, ffi::Result<ffi::AnyBuffer> rank,
                        ffi::Result<ffi::AnyBuffer> info, double atol, double rtol) {
  Work work = on_columns(BATCHQR_GESVD, a, *out);
  batchqr_batch &b = work.batch;
  b.s.stride = length_of(*s);
  b.rank.stride = 1;
  b.abstol = atol, b.reltol = rtol;
  work.operands.s = s->untyped_data();
  work.operands.rank = rank->untyped_data();
  work.operands.info = ints(info);
  return run_in(place, work, a, *out);
}

ffi::Error gesvd(const Place &place, ffi::AnyBuffer a, ffi::Result<ffi::AnyBuffer> out,
                 ffi::Result<ffi::AnyBuffer> s, ffi::Result<ffi::AnyBuffer> u, ffi::Result<ffi::AnyBuffer> v,
                 ffi::Result<ffi::AnyBuffer> info) {
  Work work = on_columns(BATCHQR_GESVD, a, *out);
  batchqr_batch &b = work.batch;
  b.s.stride = length_of(*s);
  b.u = by_columns(shape_of(*u));
  b.v = by_columns(shape_of(*v));
  work.operands.s = s->untyped_data();
  work.operands.u = u->untyped_data();
  work.operands.v = v->untyped_data();
  work.operands.info = ints(info);
  return run_in(place, work, a, *out);
}

ffi::Error gesvdr(const Place &place, ffi::AnyBuffer a, ffi::Result<ffi::AnyBuffer> s,
                  ffi::Result<ffi::AnyBuffer> u, ffi::Result<ffi::AnyBuffer> v, int64_t oversampling,
                  int64_t power_steps, int64_t seed) {
  Work work = on_columns(BATCHQR_GESVDR, a, a);
  batchqr_batch &b = work.batch;
  b.k = length_of(*s);
  b.s.stride = b.k;
  b.u = by_columns(shape_of(*u));
  b.v = by_columns(shape_of(*v));
  b.oversampling = static_cast<int>(oversampling);
  b.power_steps = static_cast<int>(power_steps);
  b.seed = static_cast<uint64_t>(seed);
  work.operands.s = s->untyped_data();
  work.operands.u = u->untyped_data();
  work.operands.v = v->untyped_data();
  return run(place, work);
}

/* Eigenvectors in out, where they are wanted. */
ffi::Error syevd(const Place &place, ffi::AnyBuffer a, ffi::Result<ffi::AnyBuffer> out,
                 ffi::Result<ffi::AnyBuffer> w, ffi::Result<ffi::AnyBuffer> info, bool lower, bool vectors) {
  Work work = on_columns(BATCHQR_SYEVD, a, *out);
  batchqr_batch &b = work.batch;
  b.uplo = lower ? BATCHQR_LOWER : BATCHQR_UPPER;
  b.s.stride = length_of(*w);
  if (vectors) {
    b.v = b.a;
    work.operands.v = out->untyped_data();
  }
  work.operands.s = w->untyped_data();
  work.operands.info = ints(info);
  return run_in(place, work, a, *out);
}

/* --- what XLA is given */

using In = ffi::AnyBuffer;
using Out = ffi::Result<ffi::AnyBuffer>;

/* A function's arguments and results, behind what says where it runs. */
template <int ARGUMENTS, int RESULTS, typename Bind> auto buffers(Bind &&bind) {
  if constexpr (ARGUMENTS > 0)
    return buffers<ARGUMENTS - 1, RESULTS>(std::move(bind).template Arg<ffi::AnyBuffer>());
  else if constexpr (RESULTS > 1)
    return buffers<0, RESULTS - 1>(std::move(bind).template Ret<ffi::AnyBuffer>());
  else
    return std::move(bind).template Ret<ffi::AnyBuffer>();
}

auto on_host() { return ffi::Ffi::Bind(); }
auto on_cuda() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::DeviceOrdinal>()
      .Ctx<ffi::PlatformStream<Stream>>()
      .Ctx<ffi::ScratchAllocator>();
}

/* XLA has its threads take subnormal numbers for zeros; the library's own threads would not. */
class AllNumbers {
public:
  AllNumbers() {
    std::fegetenv(&kept);
    std::fesetenv(FE_DFL_ENV);
  }
  AllNumbers(const AllNumbers &) = delete;
  ~AllNumbers() { std::fesetenv(&kept); }

private:
  std::fenv_t kept;
};

template <auto FUNCTION, typename... Args> ffi::Error call_on_host(Args... args) {
  const AllNumbers all;
  return FUNCTION(Place{BATCHQR_BACKEND_CPU, 0, nullptr, nullptr}, args...);
}
template <auto FUNCTION, typename... Args>
ffi::Error call_on_cuda(int device, Stream stream, ffi::ScratchAllocator scratch, Args... args) {
  return FUNCTION(Place{BATCHQR_BACKEND_CUDA, device, stream, &scratch}, args...);
}

/* The handlers of a function, of so many arguments and results and these attributes. */
#define HANDLERS(function, arguments, results, attributes, ...)                                              \
  XLA_FFI_DEFINE_HANDLER(function##_on_host, (call_on_host<function, __VA_ARGS__>),                          \
                         (buffers<arguments, results>(on_host()) attributes));                               \
  XLA_FFI_DEFINE_HANDLER(function##_on_cuda, (call_on_cuda<function, __VA_ARGS__>),                          \
                         (buffers<arguments, results>(on_cuda()) attributes))

HANDLERS(qr, 1, 2, .Attr<bool>("positive"), In, Out, Out, bool);
HANDLERS(geqrf, 1, 2, .Attr<bool>("positive"), In, Out, Out, bool);
HANDLERS(orgqr, 2, 1, , In, In, Out);
HANDLERS(ormqr, 3, 1, .Attr<bool>("left").Attr<bool>("transpose"), In, In, In, Out, bool, bool);
HANDLERS(gels, 2, 3, .Attr<bool>("adjoint"), In, In, Out, Out, Out, bool);
HANDLERS(gelsy, 2, 4, .Attr<double>("rcond"), In, In, Out, Out, Out, Out, double);
HANDLERS(pinv, 1, 2, .Attr<double>("rcond"), In, Out, Out, double);
HANDLERS(geqp3, 1, 4, .Attr<int64_t>("kmax").Attr<double>("atol").Attr<double>("rtol"), In, Out, Out, Out,
         Out, int64_t, double, double);
HANDLERS(gesvd, 1, 5, , In, Out, Out, Out, Out, Out);
HANDLERS(gesvd_values, 1, 4, .Attr<double>("atol").Attr<double>("rtol"), In, Out, Out, Out, Out, double,
         double);
HANDLERS(gesvdr, 1, 3, .Attr<int64_t>("oversampling").Attr<int64_t>("power_steps").Attr<int64_t>("seed"), In,
         Out, Out, Out, int64_t, int64_t, int64_t);
HANDLERS(syevd, 1, 3, .Attr<bool>("lower").Attr<bool>("vectors"), In, Out, Out, Out, bool, bool);

nb::object capsule(XLA_FFI_Handler *handler) {
  return nb::capsule(reinterpret_cast<void *>(handler), "xla._CUSTOM_CALL_TARGET");
}

} // namespace

NB_MODULE(_jax, m) {
  m.def("handlers", [] {
    nb::dict all;
#define ROW(function)                                                                                        \
  all["batchqr_" #function] = nb::make_tuple(capsule(function##_on_host), capsule(function##_on_cuda))
    ROW(qr);
    ROW(geqrf);
    ROW(orgqr);
    ROW(ormqr);
    ROW(gels);
    ROW(gelsy);
    ROW(pinv);
    ROW(geqp3);
    ROW(gesvd);
    ROW(gesvd_values);
    ROW(gesvdr);
    ROW(syevd);
#undef ROW
    return all;
  });
}
