/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of batchqr/_xla.py as problems of the library: what an array of XLA's is to it. */
#ifndef BATCHQR_PYTHON_PROBLEMS_HPP
#define BATCHQR_PYTHON_PROBLEMS_HPP

#include <batchqr/batchqr.h>
#include <cstdint>
#include <vector>
#include <xla/ffi/api/ffi.h>

namespace batchqr_python {

/* Of all functions; each has some of them. */
struct Attributes {
  bool positive = false, adjoint = false, left = false, transpose = false, lower = false, vectors = false;
  int64_t kmax = 0, oversampling = 0, power_steps = 0, seed = 0;
  double rcond = 0, atol = 0, rtol = 0;

  /* read(name, value) changes the value where there is an attribute of that name. */
  template <typename Read> static Attributes from(const Read &read) {
    Attributes x;
    read("positive", x.positive), read("adjoint", x.adjoint), read("left", x.left);
    read("transpose", x.transpose), read("lower", x.lower), read("vectors", x.vectors);
    read("kmax", x.kmax), read("oversampling", x.oversampling), read("power_steps", x.power_steps);
    read("seed", x.seed), read("rcond", x.rcond), read("atol", x.atol), read("rtol", x.rtol);
    return x;
  }
};

/* A call that XLA makes, or of which it only asks how much workspace it would need: then the arrays have no
 * addresses. */
struct Arguments {
  std::vector<xla::ffi::AnyBuffer> in, out;
  Attributes attributes;
};

struct Copy {
  xla::ffi::AnyBuffer from, to;
};

/* What a call is to the library, after some copies that make room for results. */
struct Work {
  batchqr_op op;
  bool positive = false;
  batchqr_batch batch = {};
  batchqr_operands operands = {};
  std::vector<Copy> copies = {};
};

struct Function {
  const char *name;
  size_t results; /* workspace comes behind them */
  Work (*work)(const Arguments &);
};

/* In the order of handlers(). */
constexpr int FUNCTIONS = 12;
extern const Function functions[FUNCTIONS];

} // namespace batchqr_python

#endif
