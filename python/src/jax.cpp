/* SPDX-License-Identifier: BSD-3-Clause */
/* batchqr._jax: what XLA calls for the functions of batchqr/jax.py, by its foreign function interface. XLA
 * owns all arrays. Their last two axes are a matrix's, stored by rows where a is only read, as XLA likes it,
 * and by columns what is written, which XLA turns faster than the library where it must be; that is for the
 * Python file to ask for. */
#include "call.hpp"
#include <algorithm>
#include <batchqr/batchqr.h>
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

/* --- the functions */

ffi::Error qr(const Place &place, ffi::AnyBuffer a, ffi::Result<ffi::AnyBuffer> q,
              ffi::Result<ffi::AnyBuffer> r, bool positive) {
  const Shape s = shape_of(a);
  Work work{BATCHQR_QR, positive};
  batchqr_batch &b = work.batch;
  b.type = type_of(a);
  b.count = s.members, b.m = s.rows, b.n = s.cols;
  b.keep_a = 1;
  b.a = by_rows(s);
  b.c = by_columns(shape_of(*q));
  b.r = by_columns(shape_of(*r));
  work.operands.a = a.untyped_data();
  work.operands.c = q->untyped_data();
  work.operands.r = r->untyped_data();
  return run(place, work);
}

ffi::Error geqrf(const Place &place, ffi::AnyBuffer a, ffi::Result<ffi::AnyBuffer> out,
                 ffi::Result<ffi::AnyBuffer> tau, bool positive) {
  const Shape s = shape_of(a);
  Work work{BATCHQR_GEQRF, positive};
  batchqr_batch &b = work.batch;
  b.type = type_of(a);
  b.count = s.members, b.m = s.rows, b.n = s.cols;
  b.a = by_columns(s);
  b.tau.stride = length_of(*tau);
  work.operands.a = out->untyped_data();
  work.operands.tau = tau->untyped_data();
  ffi::Error copied = copy(place, a, *out);
  return copied.success() ? run(place, work) : copied;
}

ffi::Error orgqr(const Place &place, ffi::AnyBuffer a, ffi::AnyBuffer tau, ffi::Result<ffi::AnyBuffer> q) {
  const Shape s = shape_of(a);
  Work work{BATCHQR_ORGQR, false};
  batchqr_batch &b = work.batch;
  b.type = type_of(a);
  b.count = s.members, b.m = s.rows, b.n = s.cols, b.k = length_of(tau);
  b.a = by_columns(s);
  b.tau.stride = b.k;
  work.operands.a = q->untyped_data();
  work.operands.tau = b.k > 0 ? tau.untyped_data() : nullptr;
  ffi::Error copied = copy(place, a, *q);
  return copied.success() ? run(place, work) : copied;
}

/* c: B in its first rows, X in the first rows of out. */
ffi::Error gels(const Place &place, ffi::AnyBuffer a, ffi::AnyBuffer c, ffi::Result<ffi::AnyBuffer> out,
                ffi::Result<ffi::AnyBuffer> norms, ffi::Result<ffi::AnyBuffer> info, bool adjoint) {
  const Shape s = shape_of(a);
  Work work{BATCHQR_GELS, false};
  batchqr_batch &b = work.batch;
  b.type = type_of(a);
  b.count = s.members, b.m = s.rows, b.n = s.cols, b.k = shape_of(c).cols;
  b.trans = adjoint ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
  b.keep_a = 1;
  b.a = by_rows(s);
  b.c = by_columns(shape_of(c));
  b.norms.stride = b.k;
  work.operands.a = a.untyped_data();
  work.operands.c = out->untyped_data();
  work.operands.norms = norms->untyped_data();
  work.operands.info = static_cast<int *>(info->untyped_data());
  ffi::Error copied = copy(place, c, *out);
  return copied.success() ? run(place, work) : copied;
}

/* --- what XLA is given */

/* A function's arguments, results and attributes, behind what says where it runs. */
template <typename Bind> auto arguments_of_qr(Bind bind) {
  return std::move(bind)
      .template Arg<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Attr<bool>("positive");
}
template <typename Bind> auto arguments_of_orgqr(Bind bind) {
  return std::move(bind)
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>();
}
template <typename Bind> auto arguments_of_gels(Bind bind) {
  return std::move(bind)
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Attr<bool>("adjoint");
}

auto on_cuda() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::DeviceOrdinal>()
      .Ctx<ffi::PlatformStream<Stream>>()
      .Ctx<ffi::ScratchAllocator>();
}

template <auto FUNCTION, typename... Args> ffi::Error call_on_host(Args... args) {
  return FUNCTION(Place{BATCHQR_BACKEND_CPU, 0, nullptr, nullptr}, args...);
}
template <auto FUNCTION, typename... Args>
ffi::Error call_on_cuda(int device, Stream stream, ffi::ScratchAllocator scratch, Args... args) {
  return FUNCTION(Place{BATCHQR_BACKEND_CUDA, device, stream, &scratch}, args...);
}

using In = ffi::AnyBuffer;
using Out = ffi::Result<ffi::AnyBuffer>;

XLA_FFI_DEFINE_HANDLER(qr_on_host, (call_on_host<qr, In, Out, Out, bool>), arguments_of_qr(ffi::Ffi::Bind()));
XLA_FFI_DEFINE_HANDLER(geqrf_on_host, (call_on_host<geqrf, In, Out, Out, bool>),
                       arguments_of_qr(ffi::Ffi::Bind()));
XLA_FFI_DEFINE_HANDLER(orgqr_on_host, (call_on_host<orgqr, In, In, Out>),
                       arguments_of_orgqr(ffi::Ffi::Bind()));
XLA_FFI_DEFINE_HANDLER(gels_on_host, (call_on_host<gels, In, In, Out, Out, Out, bool>),
                       arguments_of_gels(ffi::Ffi::Bind()));

XLA_FFI_DEFINE_HANDLER(qr_on_cuda, (call_on_cuda<qr, In, Out, Out, bool>), arguments_of_qr(on_cuda()));
XLA_FFI_DEFINE_HANDLER(geqrf_on_cuda, (call_on_cuda<geqrf, In, Out, Out, bool>), arguments_of_qr(on_cuda()));
XLA_FFI_DEFINE_HANDLER(orgqr_on_cuda, (call_on_cuda<orgqr, In, In, Out>), arguments_of_orgqr(on_cuda()));
XLA_FFI_DEFINE_HANDLER(gels_on_cuda, (call_on_cuda<gels, In, In, Out, Out, Out, bool>),
                       arguments_of_gels(on_cuda()));

nb::object capsule(XLA_FFI_Handler *handler) {
  return nb::capsule(reinterpret_cast<void *>(handler), "xla._CUSTOM_CALL_TARGET");
}

} // namespace

NB_MODULE(_jax, m) {
  m.def("handlers", [] {
    nb::dict all;
    const std::tuple<const char *, XLA_FFI_Handler *, XLA_FFI_Handler *> rows[] = {
        {"batchqr_qr", qr_on_host, qr_on_cuda},
        {"batchqr_geqrf", geqrf_on_host, geqrf_on_cuda},
        {"batchqr_orgqr", orgqr_on_host, orgqr_on_cuda},
        {"batchqr_gels", gels_on_host, gels_on_cuda}};
    for (const auto &[name, host, cuda] : rows) all[name] = nb::make_tuple(capsule(host), capsule(cuda));
    return all;
  });
}
