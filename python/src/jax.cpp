/* SPDX-License-Identifier: BSD-3-Clause */
/* batchqr._jax: what XLA calls for the functions of batchqr/jax.py, by its foreign function interface. XLA
 * owns all arrays, workspace among them: it asks for its size when it compiles a program. So nothing is
 * allocated in a call, and XLA may record it in a CUDA graph (a command buffer, as it says). */
#include "call.hpp"
#include "problems.hpp"
#include <atomic>
#include <batchqr/batchqr.h>
#include <cfenv>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace nb = nanobind;
namespace ffi = xla::ffi;

namespace {

using namespace batchqr_python;
using Stream = CUstream_st *;

/* --- CUDA's driver, where there is one: a program without a GPU has none, so nothing is linked */

struct Driver {
  using Context = struct CUctx_st *;
  int (*copy)(unsigned long long to, unsigned long long from, size_t bytes, Stream) = nullptr;
  int (*exchange_capture_mode)(int *mode) = nullptr;
  int (*is_capturing)(Stream, int *status) = nullptr;
  int (*retain)(Context *, int device) = nullptr;
  int (*release)(int device) = nullptr;
  int (*push)(Context) = nullptr;
  int (*pop)(Context *) = nullptr;
  bool complete = false;

  Driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    complete = library && find(library, copy, "cuMemcpyDtoDAsync_v2") &&
               find(library, exchange_capture_mode, "cuThreadExchangeStreamCaptureMode") &&
               find(library, is_capturing, "cuStreamIsCapturing") &&
               find(library, retain, "cuDevicePrimaryCtxRetain") &&
               find(library, release, "cuDevicePrimaryCtxRelease_v2") &&
               find(library, push, "cuCtxPushCurrent_v2") && find(library, pop, "cuCtxPopCurrent_v2");
  }

private:
  template <typename F> static bool find(void *library, F &function, const char *name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
  }
};

const Driver &driver() {
  static const Driver found;
  return found;
}

/* While it lives, this thread may do what allocates, although it records a stream: no part of what is
 * recorded. */
class MayAllocate {
public:
  explicit MayAllocate(batchqr_backend backend)
      : active(backend == BATCHQR_BACKEND_CUDA && driver().complete) {
    exchange();
  }
  MayAllocate(const MayAllocate &) = delete;
  ~MayAllocate() { exchange(); }

private:
  void exchange() {
    if (active) driver().exchange_capture_mode(&mode);
  }
  bool active;
  int mode = 2; /* CU_STREAM_CAPTURE_MODE_RELAXED */
};

/* Makes a device this thread's current one. XLA does so before it calls, but not before it compiles. */
class OnDevice {
public:
  explicit OnDevice(int ordinal) : device(ordinal) {
    if (!driver().complete || driver().retain(&context, device) != 0)
      throw std::runtime_error("CUDA device " + std::to_string(device) + " cannot be used");
    driver().push(context);
  }
  OnDevice(const OnDevice &) = delete;
  ~OnDevice() {
    driver().pop(&context);
    driver().release(device);
  }

private:
  int device;
  Driver::Context context = nullptr;
};

/* --- handles */

/* A device's, with R's diagonal as it falls or positive; threads take turns with it. It lasts as long as the
 * process: when that ends, the device may be gone before it. */
struct Handle {
  std::mutex mutex;
  batchqr_handle_t handle = nullptr;
};

Handle &handle_of(batchqr_backend backend, int device, bool positive) {
  static std::mutex mutex;
  static auto *handles = new std::map<std::tuple<batchqr_backend, int, bool>, std::unique_ptr<Handle>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto &handle = (*handles)[{backend, device, positive}];
  if (!handle) handle = std::make_unique<Handle>();
  return *handle;
}

/* A turn with a handle, for one piece of work. */
class Turn {
public:
  Turn(batchqr_backend backend, int device, const Work &of)
      : work(of), shared(handle_of(backend, device, of.positive)), lock(shared.mutex) {
    const MayAllocate may(backend);
    if (!shared.handle) {
      batchqr_options options = {};
      options.backend = backend;
      options.positive_diagonal = work.positive;
      status = batchqr_create(&shared.handle, &options);
    }
    /* The plan is made here, if it is not there: not on a stream that is being recorded. */
    if (!status) status = batchqr_set_stream(shared.handle, nullptr);
    if (!status) status = batchqr_workspace_size(shared.handle, work.op, &work.batch, &bytes);
  }

  void run(Stream stream, void *workspace, size_t size) {
    if (!status) status = batchqr_set_stream(shared.handle, stream);
    if (!status) status = batchqr_set_workspace(shared.handle, workspace, size);
    if (!status) status = call(shared.handle, work.op, work.batch, work.operands);
  }

  const char *text() const {
    const char *message = batchqr_error_message(shared.handle);
    return message && *message ? message : batchqr_status_string(status);
  }

  size_t bytes = 0; /* of workspace */
  batchqr_status status = BATCHQR_SUCCESS;

private:
  const Work &work;
  Handle &shared;
  std::lock_guard<std::mutex> lock;
};

/* --- calls */

ffi::Error error(batchqr_status status, const char *text) {
  const ffi::ErrorCode code = status == BATCHQR_INVALID_ARGUMENT ? ffi::ErrorCode::kInvalidArgument
                              : status == BATCHQR_OUT_OF_MEMORY  ? ffi::ErrorCode::kResourceExhausted
                                                                 : ffi::ErrorCode::kInternal;
  return ffi::Error(code, text);
}

Arguments arguments_of(const Function &function, ffi::RemainingArgs in, ffi::RemainingRets out,
                       ffi::Dictionary attributes) {
  Arguments x;
  for (size_t i = 0; i < in.size(); i++) x.in.push_back(in.get<ffi::AnyBuffer>(i).value());
  for (size_t i = 0; i < function.results; i++) x.out.push_back(*out.get<ffi::AnyBuffer>(i).value());
  x.attributes = Attributes::from([&](const char *name, auto &value) {
    if (attributes.contains(name)) value = attributes.get<std::decay_t<decltype(value)>>(name).value();
  });
  return x;
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

ffi::Error run_on_host(const Function &function, ffi::RemainingArgs in, ffi::RemainingRets out,
                       ffi::Dictionary attributes) {
  const AllNumbers all;
  const Work work = function.work(arguments_of(function, in, out, attributes));
  for (const Copy &copy : work.copies)
    if (copy.to.untyped_data() != copy.from.untyped_data())
      std::memcpy(copy.to.untyped_data(), copy.from.untyped_data(), copy.from.size_bytes());
  Turn turn(BATCHQR_BACKEND_CPU, 0, work);
  turn.run(nullptr, nullptr, 0);
  return turn.status ? error(turn.status, turn.text()) : ffi::Error::Success();
}

/* How often XLA has called on CUDA devices: not where it replays a graph. */
std::atomic<int64_t> calls_on_cuda{0};

constexpr uintptr_t ALIGNMENT = 256;

uintptr_t aligned(const void *address) {
  return (reinterpret_cast<uintptr_t>(address) + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

ffi::Error run_on_cuda(const Function &function, int device, Stream stream, ffi::ScratchAllocator &scratch,
                       ffi::RemainingArgs in, ffi::RemainingRets out, ffi::Dictionary attributes) {
  calls_on_cuda++;
  const Work work = function.work(arguments_of(function, in, out, attributes));
  for (const Copy &copy : work.copies)
    if (copy.to.untyped_data() != copy.from.untyped_data() &&
        driver().copy(reinterpret_cast<uintptr_t>(copy.to.untyped_data()),
                      reinterpret_cast<uintptr_t>(copy.from.untyped_data()), copy.from.size_bytes(),
                      stream) != 0)
      return error(BATCHQR_CUDA_ERROR, "a copy failed");
  Turn turn(BATCHQR_BACKEND_CUDA, device, work);
  if (turn.status) return error(turn.status, turn.text());
  const ffi::AnyBuffer given = *out.get<ffi::AnyBuffer>(function.results).value();
  const uintptr_t start = aligned(given.untyped_data());
  const uintptr_t end = reinterpret_cast<uintptr_t>(given.untyped_data()) + given.size_bytes();
  void *workspace = reinterpret_cast<void *>(start);
  if (turn.bytes == 0) {
    workspace = nullptr;
  } else if (end < start + turn.bytes) {
    /* The program was compiled for another device. A graph would go on to use what is given back here. */
    int capturing = 0;
    if (driver().is_capturing(stream, &capturing) != 0 || capturing != 0)
      return error(BATCHQR_CAPTURE_ERROR, "a program that was compiled for another GPU, in a command buffer");
    const auto memory = scratch.Allocate(turn.bytes + ALIGNMENT, 16);
    if (!memory) return error(BATCHQR_OUT_OF_MEMORY, "no memory for batchqr's workspace");
    workspace = reinterpret_cast<void *>(aligned(*memory));
  }
  turn.run(stream, workspace, turn.bytes);
  return turn.status ? error(turn.status, turn.text()) : ffi::Error::Success();
}

/* --- what Python sees */

template <int INDEX>
ffi::Error on_host(ffi::RemainingArgs in, ffi::RemainingRets out, ffi::Dictionary attributes) {
  return run_on_host(functions[INDEX], in, out, attributes);
}

template <int INDEX>
ffi::Error on_cuda(int device, Stream stream, ffi::ScratchAllocator scratch, ffi::RemainingArgs in,
                   ffi::RemainingRets out, ffi::Dictionary attributes) {
  return run_on_cuda(functions[INDEX], device, stream, scratch, in, out, attributes);
}

nb::object capsule(XLA_FFI_Handler *handler) {
  return nb::capsule(reinterpret_cast<void *>(handler), "xla._CUSTOM_CALL_TARGET");
}

template <int INDEX> nb::tuple handlers_of() {
  XLA_FFI_DEFINE_HANDLER(host, on_host<INDEX>, ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attrs());
  XLA_FFI_DEFINE_HANDLER(cuda, on_cuda<INDEX>,
                         ffi::Ffi::Bind()
                             .Ctx<ffi::DeviceOrdinal>()
                             .Ctx<ffi::PlatformStream<Stream>>()
                             .Ctx<ffi::ScratchAllocator>()
                             .RemainingArgs()
                             .RemainingRets()
                             .Attrs(),
                         {ffi::Traits::kCmdBufferCompatible});
  return nb::make_tuple(capsule(host), capsule(cuda));
}

template <int... INDEX> nb::dict all_handlers(std::integer_sequence<int, INDEX...>) {
  nb::dict all;
  ((all[functions[INDEX].name] = handlers_of<INDEX>()), ...);
  return all;
}

ffi::DataType type_named(const std::string &name) {
  return name == "float32"     ? ffi::DataType::F32
         : name == "float64"   ? ffi::DataType::F64
         : name == "complex64" ? ffi::DataType::C64
         : name == "int32"     ? ffi::DataType::S32
                               : ffi::DataType::C128;
}

/* Arrays of which there is no more than type and shape. */
class Described {
public:
  /* (type, shape) of each. */
  explicit Described(const nb::list &arrays) {
    for (nb::handle array : arrays) {
      const auto pair = nb::cast<nb::tuple>(array);
      shapes.emplace_back();
      for (nb::handle size : nb::cast<nb::tuple>(pair[1])) shapes.back().push_back(nb::cast<int64_t>(size));
      XLA_FFI_Buffer x = {};
      x.struct_size = XLA_FFI_Buffer_STRUCT_SIZE;
      x.dtype = static_cast<XLA_FFI_DataType>(type_named(nb::cast<std::string>(pair[0])));
      x.rank = static_cast<int64_t>(shapes.back().size());
      described.push_back(x);
    }
    for (size_t i = 0; i < described.size(); i++) described[i].dims = shapes[i].data();
  }

  std::vector<ffi::AnyBuffer> buffers() const {
    std::vector<ffi::AnyBuffer> all;
    for (const XLA_FFI_Buffer &x : described) all.emplace_back(&x);
    return all;
  }

private:
  std::vector<std::vector<int64_t>> shapes;
  std::vector<XLA_FFI_Buffer> described;
};

/* Of the array that a call on this CUDA device wants behind its results. */
size_t workspace_size(const std::string &name, int device, const nb::list &in, const nb::list &out,
                      const nb::dict &attributes) {
  const Function *function = functions;
  while (function < functions + FUNCTIONS && name != function->name) function++;
  if (function == functions + FUNCTIONS) throw std::invalid_argument("no function " + name);
  const Described given(in), made(out);
  const Attributes read = Attributes::from([&](const char *key, auto &value) {
    if (attributes.contains(key)) value = nb::cast<std::decay_t<decltype(value)>>(attributes[key]);
  });
  const Work work = function->work({given.buffers(), made.buffers(), read});
  const OnDevice there(device);
  const Turn turn(BATCHQR_BACKEND_CUDA, device, work);
  if (turn.status) throw std::runtime_error(turn.text());
  return turn.bytes > 0 ? turn.bytes + ALIGNMENT : 0;
}

} // namespace

NB_MODULE(_jax, m) {
  m.def("handlers", [] { return all_handlers(std::make_integer_sequence<int, FUNCTIONS>()); });
  m.def("workspace_size", workspace_size);
  m.def("calls_on_cuda", [] { return calls_on_cuda.load(); });
}
