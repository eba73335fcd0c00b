/* SPDX-License-Identifier: BSD-3-Clause */
/* batchqr._core: the C library's handles, batches and plans, as Python sees them. Operands are addresses;
 * what owns the memory, and whether it is stored as the batch says, is the business of the Python files. */
#include "call.hpp"
#include <array>
#include <batchqr/batchqr.h>
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using batchqr_python::call;
using Address = uintptr_t;
using Addresses = std::array<Address, 13>; /* of operands(), in its order */
/* Leading dimension, elements from member to member, elements from row to row. */
using Matrix = std::tuple<int, int64_t, int64_t>;

PyObject *error_type; /* batchqr.Error, which this module owns */

[[noreturn]] void raise(batchqr_status status, const std::string &text) {
  PyObject *type = status == BATCHQR_INVALID_ARGUMENT ? PyExc_ValueError
                   : status == BATCHQR_OUT_OF_MEMORY  ? PyExc_MemoryError
                                                      : error_type;
  std::string message = text.empty() ? batchqr_status_string(status) : text;
  PyErr_SetString(type, message.c_str());
  throw nb::python_error();
}

template <typename T> T *pointer(Address address) { return reinterpret_cast<T *>(address); }

batchqr_storage storage(const Matrix &x) {
  batchqr_storage s = {};
  s.ld = std::get<0>(x);
  s.stride = std::get<1>(x);
  s.row_stride = std::get<2>(x);
  return s;
}

/* A batch, with the size arrays that it points to. */
class Batch {
public:
  Batch(batchqr_type type, int64_t count, int m, int n, int k, batchqr_side side, batchqr_trans trans,
        Matrix a, Matrix c, Matrix r, int64_t tau, int64_t norms, int64_t iterations, bool keep_a,
        int gram_schmidt) {
    batch.type = type;
    batch.count = count;
    batch.m = m, batch.n = n, batch.k = k;
    batch.side = side;
    batch.trans = trans;
    batch.a = storage(a);
    batch.c = storage(c);
    batch.r = storage(r);
    batch.tau.stride = tau;
    batch.norms.stride = norms;
    batch.iterations.stride = batch.relres.stride = iterations;
    batch.keep_a = keep_a;
    batch.gram_schmidt = gram_schmidt;
  }

  /* Of GEQP3, GELSY, PINV, GESVD, GESVDR and SYEVD. Vectors' storage is their stride. */
  static std::unique_ptr<Batch> spectral(batchqr_type type, int64_t count, int m, int n, int k, Matrix a,
                                         Matrix c, Matrix u, Matrix v, int64_t tau, int64_t s, int64_t jpvt,
                                         bool lower, int kmax, double abstol, double reltol, int oversampling,
                                         int power_steps, uint64_t seed, int il, int iu, double vl,
                                         double vu) {
    auto made = std::make_unique<Batch>(type, count, m, n, k, BATCHQR_LEFT, BATCHQR_NO_TRANS, a, c, Matrix(),
                                        tau, 0, 0, false, 0);
    batchqr_batch &b = made->batch;
    b.u = storage(u);
    b.v = storage(v);
    b.s.stride = s;
    b.jpvt.stride = jpvt;
    b.rank.stride = 1;
    b.uplo = lower ? BATCHQR_LOWER : BATCHQR_UPPER;
    b.kmax = kmax;
    b.abstol = abstol;
    b.reltol = reltol;
    b.oversampling = oversampling;
    b.power_steps = power_steps;
    b.seed = seed;
    b.il = il, b.iu = iu;
    b.vl = vl, b.vu = vu;
    return made;
  }

  /* Members of different sizes, each operand an array of addresses. */
  static std::unique_ptr<Batch> of_sizes(batchqr_type type, std::vector<int> m, std::vector<int> n,
                                         std::vector<int> a_ld, std::vector<int> c_ld,
                                         std::vector<int> r_ld) {
    auto made = std::make_unique<Batch>(type, (int64_t)m.size(), 0, 0, 0, BATCHQR_LEFT, BATCHQR_NO_TRANS,
                                        Matrix(), Matrix(), Matrix(), 0, 0, 0, true, 0);
    if (n.size() != m.size() || a_ld.size() != m.size() || c_ld.size() != m.size() || r_ld.size() != m.size())
      raise(BATCHQR_INVALID_ARGUMENT, "the arrays of sizes differ in length");
    made->arrays = {std::move(m), std::move(n), std::move(a_ld), std::move(c_ld), std::move(r_ld)};
    batchqr_batch &b = made->batch;
    b.sizes = BATCHQR_HOST_SIZES;
    b.m_array = made->arrays[0].data();
    b.n_array = made->arrays[1].data();
    b.a.ld_array = made->arrays[2].data();
    b.c.ld_array = made->arrays[3].data();
    b.r.ld_array = made->arrays[4].data();
    b.a.layout = b.c.layout = b.r.layout = BATCHQR_POINTERS;
    return made;
  }

  batchqr_batch batch = {};

private:
  std::vector<std::vector<int>> arrays;
};

batchqr_operands operands(const Addresses &at) {
  batchqr_operands o = {};
  o.a = pointer<void>(at[0]);
  o.tau = pointer<void>(at[1]);
  o.c = pointer<void>(at[2]);
  o.r = pointer<void>(at[3]);
  o.info = pointer<int>(at[4]);
  o.norms = pointer<void>(at[5]);
  o.s = pointer<void>(at[6]);
  o.u = pointer<void>(at[7]);
  o.v = pointer<void>(at[8]);
  o.jpvt = pointer<void>(at[9]);
  o.rank = pointer<void>(at[10]);
  o.iterations = pointer<void>(at[11]);
  o.relres = pointer<void>(at[12]);
  return o;
}

/* The library's handle, and a lock: a handle belongs to one thread at a time, and the interpreter runs others
 * while the library computes. The lock is never waited for with the interpreter's lock held. */
class Handle {
public:
  Handle(batchqr_backend backend, bool positive, int threads, const std::optional<std::string> &tuning_file,
         batchqr_compute compute) {
    batchqr_options options = {};
    options.backend = backend;
    options.positive_diagonal = positive;
    options.threads = threads;
    options.tuning_file = tuning_file ? tuning_file->c_str() : nullptr;
    batchqr_status status = batchqr_create(&handle, &options);
    if (status) raise(status, batchqr_error_message(nullptr));
    status = batchqr_set_compute(handle, compute);
    if (status) raise(status, batchqr_error_message(handle));
  }
  Handle(const Handle &) = delete;
  ~Handle() {
    nb::gil_scoped_release released;
    batchqr_destroy(handle);
  }

  /* Runs `use(handle)` as the only one, and raises the error that it returns. */
  template <typename Use> void alone(Use use) {
    batchqr_status status;
    std::string text;
    {
      nb::gil_scoped_release released;
      std::lock_guard<std::mutex> lock(mutex);
      status = use(handle);
      if (status) text = batchqr_error_message(handle);
    }
    if (status) raise(status, text);
  }

  void run(batchqr_op op, const Batch &b, const Addresses &at, Address stream, const nb::object &allocate) {
    batchqr_operands o = operands(at);
    nb::object buffer;
    size_t bytes = 0;
    Address workspace = 0;
    if (!allocate.is_none()) {
      alone([&](batchqr_handle_t h) { return batchqr_workspace_size(h, op, &b.batch, &bytes); });
      if (bytes > 0) {
        buffer = allocate(bytes);
        workspace = nb::cast<Address>(buffer[1]);
      }
    }
    alone([&](batchqr_handle_t h) {
      batchqr_set_stream(h, pointer<CUstream_st>(stream));
      batchqr_status status = batchqr_set_workspace(h, pointer<void>(workspace), bytes);
      return status ? status : call(h, op, b.batch, o);
    });
  }

  batchqr_backend backend() const { return batchqr_get_backend(handle); }
  const char *describe() const { return batchqr_describe(handle); }

private:
  batchqr_handle_t handle = nullptr;
  std::mutex mutex;
};

class Plan {
public:
  Plan(Handle &handle, batchqr_op op, const Batch &b) {
    batchqr_batch batch = b.batch;
    batch.unaligned = op == BATCHQR_GEQRF; /* works in whatever arrays it is given later */
    handle.alone([&](batchqr_handle_t h) { return batchqr_plan_create(h, op, &batch, &plan); });
  }
  Plan(const Plan &) = delete;
  ~Plan() { batchqr_plan_destroy(plan); }

  void execute(Handle &handle, const Addresses &at, Address stream, Address workspace, size_t bytes) {
    batchqr_operands o = operands(at);
    handle.alone([&](batchqr_handle_t h) {
      batchqr_set_stream(h, pointer<CUstream_st>(stream));
      return batchqr_plan_execute(h, plan, &o, pointer<void>(workspace), bytes);
    });
  }

  size_t workspace() const { return batchqr_plan_workspace(plan); }
  int launches() const { return batchqr_plan_launches(plan); }
  const char *describe() const { return batchqr_plan_describe(plan); }

private:
  batchqr_plan_t plan = nullptr;
};

std::string version() {
  int number = batchqr_version();
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

/* Of the first element of what has Python's buffer protocol. */
Address host_address(nb::handle array) {
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_STRIDED_RO)) throw nb::python_error();
  const Address address = reinterpret_cast<Address>(view.buf);
  PyBuffer_Release(&view);
  return address;
}

void bind_enums(nb::module_ &m) {
  nb::enum_<batchqr_type>(m, "Type", nb::is_arithmetic())
      .value("S", BATCHQR_S)
      .value("D", BATCHQR_D)
      .value("C", BATCHQR_C)
      .value("Z", BATCHQR_Z);
  nb::enum_<batchqr_op>(m, "Op", nb::is_arithmetic())
      .value("GEQRF", BATCHQR_GEQRF)
      .value("ORGQR", BATCHQR_ORGQR)
      .value("ORMQR", BATCHQR_ORMQR)
      .value("QR", BATCHQR_QR)
      .value("GEQR_R", BATCHQR_GEQR_R)
      .value("GELS", BATCHQR_GELS)
      .value("GEQP3", BATCHQR_GEQP3)
      .value("GESVD", BATCHQR_GESVD)
      .value("SYEVD", BATCHQR_SYEVD)
      .value("GESVDR", BATCHQR_GESVDR)
      .value("GELSY", BATCHQR_GELSY)
      .value("PINV", BATCHQR_PINV);
  nb::enum_<batchqr_side>(m, "Side", nb::is_arithmetic())
      .value("LEFT", BATCHQR_LEFT)
      .value("RIGHT", BATCHQR_RIGHT);
  nb::enum_<batchqr_trans>(m, "Trans", nb::is_arithmetic())
      .value("NO_TRANS", BATCHQR_NO_TRANS)
      .value("CONJ_TRANS", BATCHQR_CONJ_TRANS);
  nb::enum_<batchqr_backend>(m, "Backend", nb::is_arithmetic())
      .value("AUTO", BATCHQR_BACKEND_AUTO)
      .value("CPU", BATCHQR_BACKEND_CPU)
      .value("CUDA", BATCHQR_BACKEND_CUDA);
  nb::enum_<batchqr_compute>(m, "Compute", nb::is_arithmetic())
      .value("AUTO", BATCHQR_COMPUTE_AUTO)
      .value("NATIVE", BATCHQR_COMPUTE_NATIVE)
      .value("EMULATED", BATCHQR_COMPUTE_EMULATED)
      .value("HALF", BATCHQR_COMPUTE_HALF);
}

} // namespace

NB_MODULE(_core, m) {
  /* The handles that calls share last as long as the process. */
  nb::set_leak_warnings(false);
  error_type = nb::exception<std::runtime_error>(m, "Error", PyExc_RuntimeError).release().ptr();
  bind_enums(m);
  m.def("version", version);
  m.def("host_address", host_address, "array"_a);

  nb::class_<Batch>(m, "Batch")
      .def(nb::init<batchqr_type, int64_t, int, int, int, batchqr_side, batchqr_trans, Matrix, Matrix, Matrix,
                    int64_t, int64_t, int64_t, bool, int>(),
           "type"_a, "count"_a, "m"_a, "n"_a, "k"_a = 0, "side"_a = BATCHQR_LEFT,
           "trans"_a = BATCHQR_NO_TRANS, "a"_a = Matrix(), "c"_a = Matrix(), "r"_a = Matrix(), "tau"_a = 0,
           "norms"_a = 0, "iterations"_a = 0, "keep_a"_a = false, "gram_schmidt"_a = 0)
      .def_static("spectral", &Batch::spectral, "type"_a, "count"_a, "m"_a, "n"_a, "k"_a, "a"_a, "c"_a, "u"_a,
                  "v"_a, "tau"_a, "s"_a, "jpvt"_a, "lower"_a, "kmax"_a, "abstol"_a, "reltol"_a,
                  "oversampling"_a, "power_steps"_a, "seed"_a, "il"_a = 0, "iu"_a = 0, "vl"_a = 0, "vu"_a = 0)
      .def_static("of_sizes", &Batch::of_sizes, "type"_a, "m"_a, "n"_a, "a_ld"_a, "c_ld"_a, "r_ld"_a);

  nb::class_<Handle>(m, "Handle")
      .def(nb::init<batchqr_backend, bool, int, const std::optional<std::string> &, batchqr_compute>(),
           "backend"_a = BATCHQR_BACKEND_AUTO, "positive"_a = false, "threads"_a = 0,
           "tuning_file"_a = nb::none(), "compute"_a = BATCHQR_COMPUTE_AUTO)
      .def("run", &Handle::run, "op"_a, "batch"_a, "addresses"_a, "stream"_a, "allocate"_a.none())
      .def_prop_ro("backend", &Handle::backend)
      .def("describe", &Handle::describe);

  nb::class_<Plan>(m, "Plan")
      .def(nb::init<Handle &, batchqr_op, const Batch &>(), "handle"_a, "op"_a, "batch"_a)
      .def("execute", &Plan::execute, "handle"_a, "addresses"_a, "stream"_a, "workspace"_a, "bytes"_a)
      .def_prop_ro("workspace", &Plan::workspace)
      .def_prop_ro("launches", &Plan::launches)
      .def("describe", &Plan::describe);
}
