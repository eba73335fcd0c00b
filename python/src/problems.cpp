/* SPDX-License-Identifier: BSD-3-Clause */
#include "problems.hpp"
#include <algorithm>

namespace batchqr_python {

namespace {

using xla::ffi::AnyBuffer;

/* --- arrays: their last two axes are a matrix's */

struct Shape {
  int64_t members;
  int rows, cols;
};

Shape shape_of(const AnyBuffer &x) {
  const auto dims = x.dimensions();
  const size_t axes = dims.size();
  Shape s{1, static_cast<int>(dims[axes - 2]), static_cast<int>(dims[axes - 1])};
  for (size_t i = 0; i + 2 < axes; i++) s.members *= dims[i];
  return s;
}

int length_of(const AnyBuffer &x) { return static_cast<int>(x.dimensions()[x.dimensions().size() - 1]); }

batchqr_type type_of(const AnyBuffer &x) {
  switch (x.element_type()) {
  case xla::ffi::DataType::F32:
    return BATCHQR_S;
  case xla::ffi::DataType::F64:
    return BATCHQR_D;
  case xla::ffi::DataType::C64:
    return BATCHQR_C;
  default:
    return BATCHQR_Z;
  }
}

batchqr_storage by_columns(const AnyBuffer &x) {
  const Shape s = shape_of(x);
  batchqr_storage storage = {};
  storage.ld = std::max(s.rows, 1);
  storage.stride = int64_t(s.rows) * s.cols;
  return storage;
}

batchqr_storage by_rows(const AnyBuffer &x) {
  const Shape s = shape_of(x);
  if (s.cols < 2) return by_columns(x);
  batchqr_storage storage = {};
  storage.ld = 1;
  storage.row_stride = s.cols;
  storage.stride = int64_t(s.rows) * s.cols;
  return storage;
}

int *ints(const AnyBuffer &x) { return static_cast<int *>(x.untyped_data()); }

/* --- problems */

/* A problem of x's type and size. */
Work of_size(batchqr_op op, const AnyBuffer &x) {
  const Shape s = shape_of(x);
  Work work{op};
  work.batch.type = type_of(x);
  work.batch.count = s.members, work.batch.m = s.rows, work.batch.n = s.cols;
  return work;
}

/* One whose operand a, stored by columns, is work space or becomes a result, in out. */
Work on_columns(batchqr_op op, const AnyBuffer &a, const AnyBuffer &out) {
  Work work = of_size(op, a);
  work.batch.a = by_columns(a);
  work.operands.a = out.untyped_data();
  work.copies.push_back({a, out});
  return work;
}

/* One that only reads a, which is stored by rows, as XLA likes it. */
Work on_rows(batchqr_op op, const AnyBuffer &a) {
  Work work = of_size(op, a);
  work.batch.keep_a = 1;
  work.batch.a = by_rows(a);
  work.operands.a = a.untyped_data();
  return work;
}

/* The operand c becomes a result, in out. */
void works_in(Work &work, const AnyBuffer &c, const AnyBuffer &out) {
  work.batch.c = by_columns(c);
  work.operands.c = out.untyped_data();
  work.copies.push_back({c, out});
}

void with_tau(Work &work, const AnyBuffer &tau) {
  work.batch.tau.stride = length_of(tau);
  work.operands.tau = length_of(tau) > 0 ? tau.untyped_data() : nullptr;
}

void with_s(Work &work, const AnyBuffer &s) {
  work.batch.s.stride = length_of(s);
  work.operands.s = s.untyped_data();
}

void with_rank(Work &work, const AnyBuffer &rank) {
  work.batch.rank.stride = 1;
  work.operands.rank = ints(rank);
}

void with_vectors(Work &work, const AnyBuffer &u, const AnyBuffer &v) {
  work.batch.u = by_columns(u);
  work.batch.v = by_columns(v);
  work.operands.u = u.untyped_data();
  work.operands.v = v.untyped_data();
}

/* --- functions: the names of arguments and results are the Python file's */

/* a -> q, r */
Work qr(const Arguments &x) {
  Work work = on_rows(BATCHQR_QR, x.in[0]);
  work.positive = x.attributes.positive;
  work.batch.c = by_columns(x.out[0]);
  work.batch.r = by_columns(x.out[1]);
  work.operands.c = x.out[0].untyped_data();
  work.operands.r = x.out[1].untyped_data();
  return work;
}

/* a -> a, tau */
Work geqrf(const Arguments &x) {
  Work work = on_columns(BATCHQR_GEQRF, x.in[0], x.out[0]);
  work.positive = x.attributes.positive;
  with_tau(work, x.out[1]);
  return work;
}

/* a, tau -> q */
Work orgqr(const Arguments &x) {
  Work work = on_columns(BATCHQR_ORGQR, x.in[0], x.out[0]);
  work.batch.k = length_of(x.in[1]);
  with_tau(work, x.in[1]);
  return work;
}

/* a, tau, c -> c */
Work ormqr(const Arguments &x) {
  Work work = of_size(BATCHQR_ORMQR, x.in[2]);
  work.batch.k = length_of(x.in[1]);
  work.batch.side = x.attributes.left ? BATCHQR_LEFT : BATCHQR_RIGHT;
  work.batch.trans = x.attributes.transpose ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
  work.batch.a = by_columns(x.in[0]);
  work.operands.a = x.in[0].untyped_data();
  with_tau(work, x.in[1]);
  works_in(work, x.in[2], x.out[0]);
  return work;
}

/* a, c -> c, norms, info; B in the first rows of c, X in the first rows of the result. */
Work gels(const Arguments &x) {
  Work work = on_rows(BATCHQR_GELS, x.in[0]);
  work.batch.k = length_of(x.in[1]);
  work.batch.trans = x.attributes.adjoint ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
  work.batch.norms.stride = work.batch.k;
  work.operands.norms = x.out[1].untyped_data();
  work.operands.info = ints(x.out[2]);
  works_in(work, x.in[1], x.out[0]);
  return work;
}

/* a, c -> a, c, rank, info: as gels, of any rank. */
Work gelsy(const Arguments &x) {
  Work work = on_columns(BATCHQR_GELSY, x.in[0], x.out[0]);
  work.batch.k = length_of(x.in[1]);
  work.batch.reltol = x.attributes.rcond;
  with_rank(work, x.out[2]);
  work.operands.info = ints(x.out[3]);
  works_in(work, x.in[1], x.out[1]);
  return work;
}

/* a -> a, the inverse */
Work pinv(const Arguments &x) {
  Work work = on_columns(BATCHQR_PINV, x.in[0], x.out[0]);
  work.batch.c = by_columns(x.out[1]);
  work.batch.reltol = x.attributes.rcond;
  work.operands.c = x.out[1].untyped_data();
  return work;
}

/* a -> a, tau, jpvt, rank */
Work geqp3(const Arguments &x) {
  Work work = on_columns(BATCHQR_GEQP3, x.in[0], x.out[0]);
  with_tau(work, x.out[1]);
  work.batch.jpvt.stride = work.batch.n;
  work.operands.jpvt = ints(x.out[2]);
  with_rank(work, x.out[3]);
  work.batch.kmax = static_cast<int>(x.attributes.kmax);
  work.batch.abstol = x.attributes.atol, work.batch.reltol = x.attributes.rtol;
  return work;
}

/* a -> a, s, u, v, info */
Work gesvd(const Arguments &x) {
  Work work = on_columns(BATCHQR_GESVD, x.in[0], x.out[0]);
  with_s(work, x.out[1]);
  with_vectors(work, x.out[2], x.out[3]);
  work.operands.info = ints(x.out[4]);
  return work;
}

/* a -> a, s, rank, info */
Work gesvd_values(const Arguments &x) {
  Work work = on_columns(BATCHQR_GESVD, x.in[0], x.out[0]);
  with_s(work, x.out[1]);
  with_rank(work, x.out[2]);
  work.batch.abstol = x.attributes.atol, work.batch.reltol = x.attributes.rtol;
  work.operands.info = ints(x.out[3]);
  return work;
}

/* a -> s, u, v; a, stored by columns, is only read. */
Work gesvdr(const Arguments &x) {
  Work work = on_columns(BATCHQR_GESVDR, x.in[0], x.in[0]);
  work.batch.k = length_of(x.out[0]);
  with_s(work, x.out[0]);
  with_vectors(work, x.out[1], x.out[2]);
  work.batch.oversampling = static_cast<int>(x.attributes.oversampling);
  work.batch.power_steps = static_cast<int>(x.attributes.power_steps);
  work.batch.seed = static_cast<uint64_t>(x.attributes.seed);
  return work;
}

/* a -> a, w, info; eigenvectors in a, where they are wanted. */
Work syevd(const Arguments &x) {
  Work work = on_columns(BATCHQR_SYEVD, x.in[0], x.out[0]);
  work.batch.uplo = x.attributes.lower ? BATCHQR_LOWER : BATCHQR_UPPER;
  with_s(work, x.out[1]);
  if (x.attributes.vectors) {
    work.batch.v = work.batch.a;
    work.operands.v = work.operands.a;
  }
  work.operands.info = ints(x.out[2]);
  return work;
}

} // namespace

const Function functions[FUNCTIONS] = {
    {"batchqr_qr", 2, qr},         {"batchqr_geqrf", 2, geqrf},
    {"batchqr_orgqr", 1, orgqr},   {"batchqr_ormqr", 1, ormqr},
    {"batchqr_gels", 3, gels},     {"batchqr_gelsy", 4, gelsy},
    {"batchqr_pinv", 2, pinv},     {"batchqr_geqp3", 4, geqp3},
    {"batchqr_gesvd", 5, gesvd},   {"batchqr_gesvd_values", 4, gesvd_values},
    {"batchqr_gesvdr", 3, gesvdr}, {"batchqr_syevd", 3, syevd},
};

} // namespace batchqr_python
