/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of operations. Operands stand in the order in which they are checked. */
#include "operations.h"
#include <math.h>

#define PLACE(x, is_matrix)                                                                                  \
  { #x, offsetof(batchqr_batch, x), offsetof(batchqr_operands, x), offsetof(bqr_args, x), is_matrix }
#define MATRIX(x) PLACE(x, true)
#define VECTOR(x) PLACE(x, false)
const bqr_place bqr_places[BQR_NUM_OPERANDS] = {
    [BQR_A] = MATRIX(a),           [BQR_C] = MATRIX(c),         [BQR_R] = MATRIX(r),
    [BQR_TAU] = VECTOR(tau),       [BQR_NORMS] = VECTOR(norms), [BQR_RANGE] = VECTOR(range),
    [BQR_JPVT] = VECTOR(jpvt),     [BQR_RANK] = VECTOR(rank),   [BQR_S] = VECTOR(s),
    [BQR_U] = MATRIX(u),           [BQR_V] = MATRIX(v),         [BQR_ITERATIONS] = VECTOR(iterations),
    [BQR_RELRES] = VECTOR(relres),
};

enum { IN = BQR_READ, OUT = BQR_WRITTEN, INOUT = BQR_READ | BQR_WRITTEN };

/* A step of a program; what is left out is 0. */
#define STEP(OP, ...)                                                                                        \
  { .op = OP, __VA_ARGS__ }

/* --- counts of operations: LAPACK Working Note 41, appendix C; of Jacobi's methods eight sweeps */

static double orgqr_flops(double m, double n, double k) {
  return 4 * m * n * k - 2 * (m + n) * k * k + 4.0 / 3.0 * k * k * k;
}
static double geqrf_flops(double m, double n, double k) { return (void)k, orgqr_flops(m, n, fmin(m, n)); }
static double qr_flops(double m, double n, double k) {
  const double q = fmin(m, n);
  return geqrf_flops(m, n, k) + orgqr_flops(m, q, q);
}
static double ormqr_flops(double m, double n, double k) { return 2 * n * k * (2 * m - k); }
static double trsm_flops(double m, double n, double k) { return (void)m, n * n * k; }
static double gels_flops(double m, double n, double k) {
  const double q = fmin(m, n);
  return geqrf_flops(m, n, k) + (2 * q * (2 * fmax(m, n) - q) + q * q) * k;
}
static double gelsy_flops(double m, double n, double k) { return geqrf_flops(m, n, k) + 4 * m * n * k; }
static double r_range_flops(double m, double n, double k) { return (void)k, fmin(m, n); }
static double gesvd_flops(double m, double n, double k) {
  const double q = fmin(m, n);
  return geqrf_flops(m, n, k) + 48 * q * q * q;
}
static double syevd_flops(double m, double n, double k) { return (void)m, (void)k, 48 * n * n * n; }

/* --- factorizations */

static const bqr_operation geqrf = {
    .op = BATCHQR_GEQRF,
    .name = "geqrf",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, INOUT}, {BQR_TAU, BQR_VECTOR, BQR_MIN_MN, BQR_ONE, OUT}},
    .makes_r = true,
    .sorting = BQR_SORTED,
    .flops = geqrf_flops,
};

/* The steps of QR and GEQR_R are given all of the caller's matrices: with sizes on the device, every step
 * must find the same leading dimensions too small. */
static const bqr_step qr_steps[] = {
    STEP(BATCHQR_GEQRF, .a = BQR_A, .c = BQR_C, .r = BQR_R, .tau = BQR_WORK_TAU, .m = BQR_M, .n = BQR_N,
         .tells_info = true, .introduces = BQR_TEMPORARY(BQR_WORK_TAU), .called = "tau"),
    STEP(BQR_COPY_R, .a = BQR_A, .c = BQR_C, .r = BQR_R, .m = BQR_M, .n = BQR_N),
    STEP(BQR_COPY, .a = BQR_A, .c = BQR_C, .r = BQR_R, .m = BQR_M, .n = BQR_MIN_MN, .skipped_in_place = true),
    STEP(BATCHQR_ORGQR, .a = BQR_C, .c = BQR_A, .r = BQR_R, .tau = BQR_WORK_TAU, .m = BQR_M, .n = BQR_MIN_MN,
         .k = BQR_MIN_MN),
};
static const bqr_program qr_program = {
    .steps = qr_steps, .num_steps = 4, .temporaries = BQR_TEMPORARY(BQR_WORK_TAU)};
static const bqr_operation qr = {
    .op = BATCHQR_QR,
    .name = "qr",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, INOUT | BQR_STRIDES},
             {BQR_C, BQR_MATRIX, BQR_M, BQR_MIN_MN, OUT | BQR_MAY_BE_A | BQR_STRIDES, "q"},
             {BQR_R, BQR_MATRIX, BQR_MIN_MN, BQR_N, OUT | BQR_STRIDES}},
    .makes_r = true,
    .orthogonalises = true,
    .flops = qr_flops,
    .program = &qr_program,
};

/* The first two of QR's steps. */
static const bqr_program geqr_r_program = {
    .steps = qr_steps, .num_steps = 2, .temporaries = BQR_TEMPORARY(BQR_WORK_TAU)};
static const bqr_operation geqr_r = {
    .op = BATCHQR_GEQR_R,
    .name = "geqr_r",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, INOUT | BQR_STRIDES},
             {BQR_R, BQR_MATRIX, BQR_MIN_MN, BQR_N, OUT | BQR_MAY_BE_A | BQR_STRIDES}},
    .makes_r = true,
    .sorting = BQR_SORTED,
    .flops = geqrf_flops,
    .program = &geqr_r_program,
};

/* --- Q */

static const bqr_operation orgqr = {
    .op = BATCHQR_ORGQR,
    .name = "orgqr",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, INOUT}, {BQR_TAU, BQR_VECTOR, BQR_K, BQR_ONE, IN}},
    .k = BQR_REFLECTORS,
    .tall = true,
    .flops = orgqr_flops,
};

static const bqr_operation ormqr = {
    .op = BATCHQR_ORMQR,
    .name = "ormqr",
    .uses = {{BQR_A, BQR_MATRIX, BQR_ORDER, BQR_K, IN},
             {BQR_C, BQR_MATRIX, BQR_M, BQR_N, INOUT},
             {BQR_TAU, BQR_VECTOR, BQR_K, BQR_ONE, IN}},
    .k = BQR_REFLECTORS,
    .reads_side = true,
    .reads_trans = true,
    .transposed = 'Q',
    .flops = ormqr_flops,
};

/* --- least squares: see TRANSPOSE in family.h */

static const bqr_step gels_steps[] = {
    STEP(BQR_TRANSPOSE, .a = BQR_A, .c = BQR_C, .r = BQR_WORK_A, .m = BQR_M, .n = BQR_N, .k = BQR_K,
         .trans = BQR_AS_BATCH,
         .introduces =
             BQR_TEMPORARY(BQR_WORK_A) | BQR_TEMPORARY(BQR_WORK_SCALES) | BQR_TEMPORARY(BQR_WORK_SIZES),
         .called = "scales and copies of all"),
    STEP(BATCHQR_GEQRF, .a = BQR_WORK_A, .tau = BQR_WORK_TAU, .m = BQR_MAX_MN, .n = BQR_MIN_MN,
         .tells_info = true, .introduces = BQR_TEMPORARY(BQR_WORK_TAU), .called = "tau"),
    STEP(BATCHQR_TRSM, .systems = BQR_LEAST_NORM, .a = BQR_WORK_A, .c = BQR_C, .m = BQR_MAX_MN,
         .n = BQR_MIN_MN, .k = BQR_K, .trans = BQR_ADJOINT, .tells_info = true),
    STEP(BATCHQR_ORMQR, .systems = BQR_LEAST_NORM, .a = BQR_WORK_A, .c = BQR_C, .tau = BQR_WORK_TAU,
         .m = BQR_MAX_MN, .n = BQR_K, .k = BQR_MIN_MN),
    STEP(BATCHQR_ORMQR, .systems = BQR_LEAST_SQUARES, .a = BQR_WORK_A, .c = BQR_C, .tau = BQR_WORK_TAU,
         .m = BQR_MAX_MN, .n = BQR_K, .k = BQR_MIN_MN, .trans = BQR_ADJOINT, .joins_geqrf = true),
    STEP(BATCHQR_TRSM, .systems = BQR_LEAST_SQUARES, .a = BQR_WORK_A, .c = BQR_C, .m = BQR_MAX_MN,
         .n = BQR_MIN_MN, .k = BQR_K, .tells_info = true),
};
static const bqr_program gels_program = {.steps = gels_steps,
                                         .num_steps = 6,
                                         .temporaries =
                                             BQR_TEMPORARY(BQR_WORK_TAU) | BQR_TEMPORARY(BQR_WORK_A) |
                                             BQR_TEMPORARY(BQR_WORK_SCALES) | BQR_TEMPORARY(BQR_WORK_SIZES),
                                         .transposes_wide = true};
static const bqr_step gels_preset = STEP(BQR_PRESET, .a = BQR_A, .c = BQR_C, .m = BQR_M, .n = BQR_N,
                                         .k = BQR_K, .needs = BQR_ITERATIONS, .or_needs = BQR_RELRES);
static const bqr_operation gels = {
    .op = BATCHQR_GELS,
    .name = "gels",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, INOUT | BQR_STRIDES},
             {BQR_C, BQR_MATRIX, BQR_MAX_MN, BQR_K, INOUT},
             {BQR_NORMS, BQR_REALS, BQR_K, BQR_ONE, OUT | BQR_OPTIONAL},
             {BQR_ITERATIONS, BQR_INTS, BQR_K, BQR_ONE, OUT | BQR_OPTIONAL | BQR_ANNOUNCED},
             {BQR_RELRES, BQR_REALS, BQR_K, BQR_ONE, OUT | BQR_OPTIONAL | BQR_ANNOUNCED}},
    .k = BQR_RIGHT_HAND_SIDES,
    .reads_trans = true,
    .transposed = 'A',
    .sorting = BQR_SORTED_SMALL,
    .flops = gels_flops,
    .preset = &gels_preset,
    .program = &gels_program,
};

/* --- R of a factorization */

/* A step of GELS, too. */
static const bqr_operation trsm = {
    .op = BATCHQR_TRSM,
    .name = "trsm",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, IN}, {BQR_C, BQR_MATRIX, BQR_M, BQR_K, INOUT}},
    .k = BQR_RIGHT_HAND_SIDES,
    .reads_trans = true,
    .transposed = 'R',
    .tall = true,
    .flops = trsm_flops,
};

static const bqr_operation r_range = {
    .op = BATCHQR_R_RANGE,
    .name = "r_range",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, IN}, {BQR_RANGE, BQR_REALS, BQR_TWO, BQR_ONE, OUT}},
    .flops = r_range_flops,
    .estimated = true,
};

/* --- rank, singular values, eigenvalues */

static const bqr_operation geqp3 = {
    .op = BATCHQR_GEQP3,
    .name = "geqp3",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, INOUT},
             {BQR_C, BQR_MATRIX, BQR_M, BQR_K, INOUT | BQR_OPTIONAL},
             {BQR_TAU, BQR_VECTOR, BQR_MIN_MN, BQR_ONE, OUT},
             {BQR_JPVT, BQR_INTS, BQR_N, BQR_ONE, OUT | BQR_OPTIONAL},
             {BQR_RANK, BQR_INTS, BQR_ONE, BQR_ONE, OUT | BQR_OPTIONAL}},
    .k = BQR_RIGHT_HAND_SIDES,
    .finds_rank = true,
    .flops = geqrf_flops,
};

/* The steps that GELSY and PINV have in common: A is brought into range and factored with pivots, and so is C
 * with its K columns, if there is one. */
#define FACTOR_ANY_RANK(C, K)                                                                                \
  STEP(BQR_TRANSPOSE, .a = BQR_A, .c = C, .m = BQR_M, .n = BQR_N, .k = K,                                    \
       .introduces = BQR_TEMPORARY(BQR_WORK_SCALES), .called = "scales"),                                    \
      STEP(BATCHQR_GEQP3, .a = BQR_A, .c = C, .tau = BQR_WORK_TAU, .m = BQR_M, .n = BQR_N, .k = K,           \
           .pivots = true, .no_abstol = true,                                                                \
           .introduces =                                                                                     \
               BQR_TEMPORARY(BQR_WORK_TAU) | BQR_TEMPORARY(BQR_WORK_JPVT) | BQR_TEMPORARY(BQR_WORK_RANK),    \
           .called = "tau, columns' order and rank")

/* [R11 R12] Z of the rank that GEQP3 has found. */
static const bqr_step gelsy_steps[] = {
    FACTOR_ANY_RANK(BQR_C, BQR_K),
    STEP(BQR_SOLVE, .a = BQR_A, .c = BQR_C, .tau = BQR_WORK_TAU, .m = BQR_M, .n = BQR_N, .k = BQR_K,
         .pivots = true, .tells_info = true),
};
static const bqr_program gelsy_program = {.steps = gelsy_steps,
                                          .num_steps = 3,
                                          .temporaries =
                                              BQR_TEMPORARY(BQR_WORK_TAU) | BQR_TEMPORARY(BQR_WORK_SCALES) |
                                              BQR_TEMPORARY(BQR_WORK_JPVT) | BQR_TEMPORARY(BQR_WORK_RANK)};
static const bqr_operation gelsy = {
    .op = BATCHQR_GELSY,
    .name = "gelsy",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, INOUT},
             {BQR_C, BQR_MATRIX, BQR_MAX_MN, BQR_K, INOUT},
             {BQR_JPVT, BQR_INTS, BQR_N, BQR_ONE, OUT | BQR_OPTIONAL},
             {BQR_RANK, BQR_INTS, BQR_ONE, BQR_ONE, OUT | BQR_OPTIONAL}},
    .k = BQR_RIGHT_HAND_SIDES,
    .finds_rank = true,
    .flops = gelsy_flops,
    .program = &gelsy_program,
};

/* Likewise, with Q's rows in place of the columns of Q^H B. */
static const bqr_step pinv_steps[] = {
    FACTOR_ANY_RANK(BQR_NO_OPERAND, 0),
    STEP(BQR_COPY, .a = BQR_A, .c = BQR_COPY_OF_C, .m = BQR_M, .n = BQR_MIN_MN,
         .introduces = BQR_TEMPORARY(BQR_COPY_OF_C), .called = "q"),
    STEP(BATCHQR_ORGQR, .a = BQR_COPY_OF_C, .tau = BQR_WORK_TAU, .m = BQR_M, .n = BQR_MIN_MN,
         .k = BQR_MIN_MN),
    STEP(BQR_SOLVE, .a = BQR_A, .c = BQR_C, .r = BQR_COPY_OF_C, .tau = BQR_WORK_TAU, .m = BQR_M, .n = BQR_N,
         .k = BQR_M, .pivots = true, .tells_info = true),
};
static const bqr_program pinv_program = {.steps = pinv_steps,
                                         .num_steps = 5,
                                         .temporaries =
                                             BQR_TEMPORARY(BQR_WORK_TAU) | BQR_TEMPORARY(BQR_WORK_SCALES) |
                                             BQR_TEMPORARY(BQR_WORK_JPVT) | BQR_TEMPORARY(BQR_WORK_RANK) |
                                             BQR_TEMPORARY(BQR_COPY_OF_C)};
static const bqr_operation pinv = {
    .op = BATCHQR_PINV,
    .name = "pinv",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, INOUT},
             {BQR_C, BQR_MATRIX, BQR_N, BQR_M, OUT},
             {BQR_S, BQR_REALS, BQR_M, BQR_ONE, IN | BQR_OPTIONAL, "w"},
             {BQR_RANK, BQR_INTS, BQR_ONE, BQR_ONE, OUT | BQR_OPTIONAL}},
    .finds_rank = true,
    .host_sizes = true,
    .flops = geqrf_flops,
    .estimated = true,
    .program = &pinv_program,
};

/* Of tall members: QR, and the SVD of R, U of which is completed by Q. */
static const bqr_step gesvd_steps[] = {
    STEP(BQR_COPY, .a = BQR_A, .c = BQR_COPY_OF_A, .m = BQR_M, .n = BQR_N, .if_aliased = true,
         .introduces = BQR_TEMPORARY(BQR_COPY_OF_A), .called = "a copy of a"),
    STEP(BATCHQR_GEQRF, .a = BQR_COPY_OF_A, .tau = BQR_WORK_TAU, .m = BQR_M, .n = BQR_N,
         .introduces = BQR_TEMPORARY(BQR_WORK_TAU), .called = "tau"),
    STEP(BQR_COPY_R, .a = BQR_COPY_OF_A, .r = BQR_WORK_R, .m = BQR_M, .n = BQR_N,
         .introduces = BQR_TEMPORARY(BQR_WORK_R), .called = "r"),
    STEP(BQR_COPY_R, .a = BQR_U, .r = BQR_U, .m = BQR_M, .n = BQR_N, .needs = BQR_U), /* zeros */
    STEP(BATCHQR_GESVD, .a = BQR_WORK_R, .m = BQR_N, .n = BQR_N, .tells_info = true),
    STEP(BATCHQR_ORMQR, .a = BQR_COPY_OF_A, .c = BQR_U, .tau = BQR_WORK_TAU, .m = BQR_M, .n = BQR_MIN_MN,
         .k = BQR_MIN_MN, .needs = BQR_U),
    STEP(BQR_TURN, .c = BQR_U, .m = BQR_M, .n = BQR_MIN_MN, .needs = BQR_U, .unless = BQR_V),
};

/* More than the rows that a warp holds (z: 16), and twice as high as wide: blocks of threads spend
 * on reflectors what other families do faster. */
static bool gesvd_is_tall(const bqr_problem *p) {
  const int rows = p->type == BATCHQR_Z ? 16 : 32;
  return p->n > 0 && p->m >= 2 * (int64_t)p->n && (p->m > rows || p->n > 32);
}

static const bqr_program gesvd_program = {
    .steps = gesvd_steps,
    .num_steps = 7,
    .temporaries = BQR_TEMPORARY(BQR_COPY_OF_A) | BQR_TEMPORARY(BQR_WORK_TAU) | BQR_TEMPORARY(BQR_WORK_R),
    .copies_aliased_a = true,
    .better = gesvd_is_tall};
static const bqr_operation gesvd = {
    .op = BATCHQR_GESVD,
    .name = "gesvd",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, INOUT},
             {BQR_S, BQR_REALS, BQR_MIN_MN, BQR_ONE, OUT},
             {BQR_U, BQR_MATRIX, BQR_M, BQR_MIN_MN, OUT | BQR_OPTIONAL | BQR_MAY_BE_A},
             {BQR_V, BQR_MATRIX, BQR_N, BQR_MIN_MN, OUT | BQR_OPTIONAL | BQR_MAY_BE_A},
             {BQR_RANK, BQR_INTS, BQR_ONE, BQR_ONE, OUT | BQR_OPTIONAL}},
    .finds_rank = true,
    .flops = gesvd_flops,
    .estimated = true,
    .rotates = true,
    .program = &gesvd_program,
};

/* Halko, Martinsson and Tropp, Finding structure with randomness, 2011, algorithms 4.4 and 5.1: Q becomes a
 * basis of the range of A (A^H A)^q Omega. The SVD of A^H Q = P R is that of R = U' S V'^H; hence A's vectors
 * are Q V' and P U'. A GESVD of which k is not 0 is that of R, which is exact to eps ||R|| only.
 */
#define FACTOR(X, ROWS, ...)                                                                                 \
  STEP(BATCHQR_GEQRF, .a = X, .tau = BQR_WORK_TAU, .m = ROWS, .n = BQR_SAMPLES, __VA_ARGS__)
#define FORM(X, ROWS, ...)                                                                                   \
  STEP(BATCHQR_ORGQR, .a = X, .tau = BQR_WORK_TAU, .m = ROWS, .n = BQR_SAMPLES, .k = BQR_SAMPLES, __VA_ARGS__)
#define TIMES_A(...)                                                                                         \
  STEP(BQR_MULTIPLY, .a = BQR_A, .r = BQR_WORK_P, .c = BQR_WORK_Q, .m = BQR_M, .n = BQR_N, .k = BQR_SAMPLES, \
       __VA_ARGS__)
#define TIMES_ADJOINT(...)                                                                                   \
  STEP(BQR_MULTIPLY, .a = BQR_A, .r = BQR_WORK_Q, .c = BQR_WORK_P, .m = BQR_M, .n = BQR_N, .k = BQR_SAMPLES, \
       .trans = BQR_ADJOINT, __VA_ARGS__)
#define VECTORS(FROM, X, CORE, ROWS)                                                                         \
  STEP(BQR_MULTIPLY, .a = FROM, .r = CORE, .c = X, .m = ROWS, .n = BQR_SAMPLES, .k = BQR_K, .unscaled = true)
static const bqr_step gesvdr_steps[] = {
    STEP(BQR_SKETCH, .a = BQR_A, .c = BQR_WORK_P, .m = BQR_M, .n = BQR_N, .k = BQR_SAMPLES,
         .introduces = BQR_TEMPORARY(BQR_WORK_P) | BQR_TEMPORARY(BQR_WORK_SCALES),
         .called = "scales and samples"),
    TIMES_A(.introduces = BQR_TEMPORARY(BQR_WORK_Q), .called = "a basis of the range"),
    FACTOR(BQR_WORK_Q, BQR_M, .repeated = true),
    FORM(BQR_WORK_Q, BQR_M, .repeated = true),
    TIMES_ADJOINT(.repeated = true),
    FACTOR(BQR_WORK_P, BQR_N, .repeated = true),
    FORM(BQR_WORK_P, BQR_N, .repeated = true),
    TIMES_A(.repeated = true),
    FACTOR(BQR_WORK_Q, BQR_M, .introduces = BQR_TEMPORARY(BQR_WORK_TAU), .called = "tau"),
    FORM(BQR_WORK_Q, BQR_M, .repeated = false),
    TIMES_ADJOINT(.repeated = false),
    FACTOR(BQR_WORK_P, BQR_N, .repeated = false),
    STEP(BQR_COPY_R, .a = BQR_WORK_P, .r = BQR_WORK_CORE, .m = BQR_N, .n = BQR_SAMPLES,
         .introduces = BQR_TEMPORARY(BQR_WORK_CORE), .called = "r"),
    FORM(BQR_WORK_P, BQR_N, .repeated = false),
    STEP(BATCHQR_GESVD, .a = BQR_WORK_CORE, .s = BQR_WORK_CORE_S, .u = BQR_WORK_CORE_U, .v = BQR_WORK_CORE,
         .m = BQR_SAMPLES, .n = BQR_SAMPLES, .k = BQR_SAMPLES, .tells_info = true,
         .introduces = BQR_TEMPORARY(BQR_WORK_CORE_U) | BQR_TEMPORARY(BQR_WORK_CORE_S),
         .called = "its singular values and vectors"),
    VECTORS(BQR_WORK_Q, BQR_U, BQR_WORK_CORE, BQR_M),
    VECTORS(BQR_WORK_P, BQR_V, BQR_WORK_CORE_U, BQR_N),
    STEP(BQR_COPY_S, .tau = BQR_WORK_CORE_S, .m = BQR_ONE, .n = BQR_K),
};
static const bqr_program gesvdr_program = {
    .steps = gesvdr_steps,
    .num_steps = sizeof gesvdr_steps / sizeof gesvdr_steps[0],
    .temporaries = BQR_TEMPORARY(BQR_WORK_TAU) | BQR_TEMPORARY(BQR_WORK_SCALES) | BQR_TEMPORARY(BQR_WORK_Q) |
                   BQR_TEMPORARY(BQR_WORK_P) | BQR_TEMPORARY(BQR_WORK_CORE) | BQR_TEMPORARY(BQR_WORK_CORE_U) |
                   BQR_TEMPORARY(BQR_WORK_CORE_S),
    .one_size = true};
static const bqr_operation gesvdr = {
    .op = BATCHQR_GESVDR,
    .name = "gesvdr",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, IN},
             {BQR_S, BQR_REALS, BQR_K, BQR_ONE, OUT},
             {BQR_U, BQR_MATRIX, BQR_M, BQR_K, OUT},
             {BQR_V, BQR_MATRIX, BQR_N, BQR_K, OUT}},
    .k = BQR_TRIPLETS,
    .sketches = true,
    .host_sizes = true,
    .flops = geqrf_flops,
    .estimated = true,
    .program = &gesvdr_program,
};

/* Of a range: all eigenvalues and vectors, these in A's place, and what is wanted of them. The step is given
 * V, too: with sizes on the device, both must find the same leading dimensions too small. */
static const bqr_step syevd_steps[] = {
    STEP(BATCHQR_SYEVD, .a = BQR_A, .c = BQR_V, .s = BQR_WORK_W, .v = BQR_A, .m = BQR_M, .n = BQR_N,
         .tells_info = true, .introduces = BQR_TEMPORARY(BQR_WORK_W), .called = "all eigenvalues"),
    STEP(BQR_SELECT, .a = BQR_A, .tau = BQR_WORK_W, .m = BQR_M, .n = BQR_N),
};
static const bqr_program syevd_program = {
    .steps = syevd_steps, .num_steps = 2, .temporaries = BQR_TEMPORARY(BQR_WORK_W)};
static const bqr_operation syevd = {
    .op = BATCHQR_SYEVD,
    .name = "syevd",
    .uses = {{BQR_A, BQR_MATRIX, BQR_N, BQR_N, INOUT},
             {BQR_S, BQR_REALS, BQR_CHOSEN, BQR_ONE, OUT, "w"},
             {BQR_V, BQR_MATRIX, BQR_N, BQR_CHOSEN, OUT | BQR_OPTIONAL | BQR_MAY_BE_A},
             {BQR_RANK, BQR_INTS, BQR_ONE, BQR_ONE, OUT | BQR_OPTIONAL, "found"}},
    .ranges = true,
    .program = &syevd_program,
    .square = true,
    .reads_uplo = true,
    .flops = syevd_flops,
    .estimated = true,
    .rotates = true,
};

/* --- steps: their operands are those that programs give them */

static const bqr_operation copy = {.op = BQR_COPY, .name = "copy"};
static const bqr_operation copy_r = {.op = BQR_COPY_R, .name = "copy_r"};
static const bqr_operation transpose = {
    .op = BQR_TRANSPOSE, .name = "transpose", .k = BQR_RIGHT_HAND_SIDES, .reads_trans = true};
static const bqr_operation turn = {.op = BQR_TURN, .name = "turn"};
static const bqr_operation sketch = {.op = BQR_SKETCH, .name = "sketch"};
static const bqr_operation multiply = {.op = BQR_MULTIPLY, .name = "multiply"};
static const bqr_operation select = {.op = BQR_SELECT, .name = "select"};
static const bqr_operation copy_s = {.op = BQR_COPY_S, .name = "copy_s"};
static const bqr_operation solve = {.op = BQR_SOLVE, .name = "solve", .k = BQR_RIGHT_HAND_SIDES};
static const bqr_operation preset = {
    .op = BQR_PRESET,
    .name = "preset",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, IN}, {BQR_C, BQR_MATRIX, BQR_MAX_MN, BQR_K, IN}},
    .k = BQR_RIGHT_HAND_SIDES};
static const bqr_operation sort = {.op = BQR_SORT, .name = "sort"};

const bqr_operation *const bqr_builtin_operations[] = {
    &geqrf,    &orgqr,  &ormqr,  &qr,    &geqr_r, &gels, &r_range, &geqp3,     &gesvd,
    &syevd,    &trsm,   &gesvdr, &gelsy, &pinv,   &copy, &copy_r,  &transpose, &sketch,
    &multiply, &copy_s, &turn,   &solve, &preset, &sort, &select,  NULL};

const bqr_use *bqr_use_at(const bqr_operation *operation, int place) {
  for (const bqr_use *use = operation->uses; use->place; use++)
    if ((int)use->place == place) return use;
  return NULL;
}
