/* SPDX-License-Identifier: BSD-3-Clause */
/** @file batchqr.h
 * QR factorization of batches of dense matrices, on NVIDIA GPUs and on the CPU.
 *
 * A batch holds `count` members. Member k is a matrix A_k of m_k rows and n_k columns in LAPACK's
 * column-major storage: entry (i, j) lies at `a[i + j * lda]`. Factored, it holds R on and above the
 * diagonal and below it the Householder vectors v_j (their leading 1 is not stored), so that
 * `A_k = Q_k R_k`, `Q_k = H_1 H_2 ... H_min(m,n)`, `H_j = I - tau_j v_j v_j^H`: the format of LAPACK's
 * xGEQRF. All sizes, leading dimensions and strides count elements, never bytes; indices start at 0,
 * except in `info`, which counts columns from 1 as LAPACK does.
 *
 * **Where data lives.** A handle works on one backend. With #BATCHQR_BACKEND_CUDA every data pointer
 * (matrices, tau, info, workspace, arrays of pointers) is an address that the GPU can use; with
 * #BATCHQR_BACKEND_CPU it is a host address. Size arrays say for themselves where they live (see
 * #batchqr_sizes).
 *
 * **Asynchrony.** On the CUDA backend a routine checks its arguments, enqueues its kernels on the
 * handle's stream and returns; results are there once the stream has reached that point. On the CPU
 * backend a routine returns when it is done. An execute allocates nothing and never synchronises, so it
 * can be captured into a CUDA graph.
 *
 * **Errors.** The returned #batchqr_status tells what the caller did or the machine lacks; nothing has
 * been read or written when it is not #BATCHQR_SUCCESS, and batchqr_error_message() names the argument
 * and its value. What is in the numbers goes to the optional array `info`, one int a member:
 * - 0: all is well,
 * - j > 0: R(j,j) is exactly zero, and j is the first such column (counted from 1); of batch_gesvd() and
 *   batch_syevd(): no convergence,
 * - #BATCHQR_INFO_NONFINITE: the member holds a NaN or an Inf, and so do then its results: R's column and,
 *   where there are reflectors, tau and Q, from A's first such column; Q from V and tau; all of op(Q) C from
 *   V and tau, else those columns (left) or rows (right) that had one, while the others come out as ever;
 *   norms and ranges are NaN,
 * - #BATCHQR_INFO_SIZES: the member's sizes, read on the device, do not fit the batch; it was left alone.
 *
 * A bad member never disturbs another one.
 *
 * **Threads.** A handle belongs to one thread at a time. Plans do not change once created and may be
 * shared. A child of fork() may go on with its parent's handles of the CPU backend and make new ones; it
 * works on one thread if the parent has worked on several.
 *
 * **Numerics.** For every member, also with entries near overflow:
 * `||A - QR||_1 / (max(m,n) ||A||_1 eps) < 30` and `||I - Q^H Q||_1 / (m eps) < 30`, the test ratios of
 * LAPACK (TESTING/LIN/xQRT01). Below the smallest normal number R is rounded to multiples of the smallest
 * subnormal one, eta, and the first bound holds with `||A||_1 eps + eta` in place of `||A||_1 eps`, a
 * difference to be seen for ||A||_1 below the smallest normal number / eps. Results are bitwise reproducible
 * from run to run and do not depend on a member's place in the batch or on its neighbours.
 */
#ifndef BATCHQR_H
#define BATCHQR_H

#include <batchqr/version.h>
#include <stddef.h>
#include <stdint.h>

/** Complex element types, laid out as cuComplex, LAPACK and Fortran lay them out. A program with types of its
 *  own that are laid out so may define BATCHQR_COMPLEX_FLOAT and BATCHQR_COMPLEX_DOUBLE as these before. */
#if defined(BATCHQR_COMPLEX_FLOAT) && defined(BATCHQR_COMPLEX_DOUBLE)
typedef BATCHQR_COMPLEX_FLOAT batchqr_complex_float;
typedef BATCHQR_COMPLEX_DOUBLE batchqr_complex_double;
#elif defined(__cplusplus)
#include <complex>
typedef std::complex<float> batchqr_complex_float;
typedef std::complex<double> batchqr_complex_double;
#else
typedef float _Complex batchqr_complex_float;
typedef double _Complex batchqr_complex_double;
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BATCHQR_API __attribute__((visibility("default")))
#else
#define BATCHQR_API
#endif

/** @defgroup types Types
 * @{ */

/** What a call returns. The values are frozen. */
typedef enum batchqr_status {
  BATCHQR_SUCCESS = 0,             /**< done, or enqueued */
  BATCHQR_INVALID_ARGUMENT = 1,    /**< an argument is wrong: batchqr_error_message() says which */
  BATCHQR_UNSUPPORTED = 2,         /**< legal, but this build or this machine cannot do it */
  BATCHQR_WORKSPACE_TOO_SMALL = 3, /**< the caller's workspace has too few bytes */
  BATCHQR_OUT_OF_MEMORY = 4,       /**< host or device memory ran out */
  BATCHQR_CUDA_ERROR = 5,          /**< the CUDA runtime reported an error */
  BATCHQR_TUNING_ERROR = 6,        /**< a tuning table could not be read or was rejected */
  BATCHQR_CAPTURE_ERROR = 7,       /**< the call would have to allocate while its stream is being captured */
  BATCHQR_RANK_ERROR = 8           /**< ranks disagree, or another one has failed: see batchqr/ranks.h */
} batchqr_status;

/** Values of info[k] below zero. */
enum {
  BATCHQR_INFO_NONFINITE = -1, /**< the member holds a NaN or an Inf */
  BATCHQR_INFO_SIZES = -2      /**< sizes read on the device are out of range; the member was left alone */
};

/** Element type, LAPACK's letters. */
typedef enum batchqr_type {
  BATCHQR_S = 0, /**< float */
  BATCHQR_D = 1, /**< double */
  BATCHQR_C = 2, /**< #batchqr_complex_float */
  BATCHQR_Z = 3  /**< #batchqr_complex_double */
} batchqr_type;

/** How the members' data is found, of each operand for itself. */
typedef enum batchqr_layout {
  BATCHQR_STRIDED = 0, /**< operand x is one address; member k starts at `x + k * x.stride` */
  BATCHQR_POINTERS = 1 /**< operand x is an array of `count` addresses, in the backend's memory */
} batchqr_layout;

/** Where the members' sizes are. */
typedef enum batchqr_sizes {
  BATCHQR_UNIFORM = 0,     /**< all members are m x n */
  BATCHQR_HOST_SIZES = 1,  /**< m_array, n_array (k_array, ld_array) are host arrays of `count` ints */
  BATCHQR_DEVICE_SIZES = 2 /**< they are in the backend's memory; m, n, k hold upper bounds */
} batchqr_sizes;

/** Which side of C the matrix Q stands on. */
typedef enum batchqr_side {
  BATCHQR_LEFT = 0, /**< op(Q) C */
  BATCHQR_RIGHT = 1 /**< C op(Q) */
} batchqr_side;

/** op(Q), op(A) of GELS, or op(R) of TRSM. */
typedef enum batchqr_trans {
  BATCHQR_NO_TRANS = 0,  /**< Q */
  BATCHQR_TRANS = 1,     /**< Q^T; real types only, as in xORMQR and xGELS */
  BATCHQR_CONJ_TRANS = 2 /**< Q^H; for real types the same as Q^T */
} batchqr_trans;

/** Which triangle of a symmetric or Hermitian matrix is read. */
typedef enum batchqr_uplo {
  BATCHQR_LOWER = 0, /**< the lower one, with the diagonal */
  BATCHQR_UPPER = 1  /**< the upper one, with the diagonal */
} batchqr_uplo;

/** The routines, for the planned tier. */
typedef enum batchqr_op {
  BATCHQR_GEQRF = 0,
  BATCHQR_ORGQR = 1,
  BATCHQR_ORMQR = 2,
  BATCHQR_QR = 3,
  BATCHQR_GEQR_R = 4,
  BATCHQR_GELS = 5,
  BATCHQR_R_RANGE = 6,
  BATCHQR_GEQP3 = 7,
  BATCHQR_GESVD = 8,
  BATCHQR_SYEVD = 9, /**< complex types: xHEEVD */
  BATCHQR_TRSM = 10,
  BATCHQR_GESVDR = 11,
  BATCHQR_GELSY = 12,
  BATCHQR_PINV = 13
} batchqr_op;

/** Who computes. */
typedef enum batchqr_backend {
  BATCHQR_BACKEND_AUTO = 0, /**< CUDA where the library has it and a device is there, else the CPU */
  BATCHQR_BACKEND_CPU = 1,
  BATCHQR_BACKEND_CUDA = 2
} batchqr_backend;

/** Which arithmetic may be used. A mode permits; it does not oblige: where no faster kernel of that mode
 * exists, native arithmetic serves, and batchqr_plan_describe() says so. */
typedef enum batchqr_compute {
  BATCHQR_COMPUTE_AUTO = 0,     /**< the fastest that keeps the working precision's bounds */
  BATCHQR_COMPUTE_NATIVE = 1,   /**< products in the working precision */
  BATCHQR_COMPUTE_EMULATED = 2, /**< tensor-core splits that keep the working precision's bounds */
  BATCHQR_COMPUTE_HALF = 3      /**< FP16 products, FP32 sums: the bounds hold with eps = 2^-11 */
} batchqr_compute;

/** A CUDA stream (`cudaStream_t`); NULL is the default stream. Ignored by the CPU backend. */
typedef struct CUstream_st *batchqr_stream;

/** Library state of one thread: backend, stream, workspace, cached plans, the last error's text. */
typedef struct batchqr_handle *batchqr_handle_t;

/** What will be launched for one problem: immutable, printable, shareable. */
typedef struct batchqr_plan *batchqr_plan_t;

/** How one operand is stored. Vectors have no leading dimension: their elements are adjacent. */
typedef struct batchqr_storage {
  batchqr_layout layout; /**< one address, or an address for each member */
  int ld;              /**< leading dimension, >= max(1, rows); an upper bound is not needed with ld_array */
  int64_t stride;      /**< elements from one member to the next (#BATCHQR_STRIDED); >= 0 */
  const int *ld_array; /**< a leading dimension for each member, where the sizes are; NULL: `ld` for all. For
                            members without elements 0 or their number of rows will do, too */
  int64_t row_stride;  /**< elements from one row to the next. 0 and 1: LAPACK's storage by columns. Any other
                            number: element (i, j) is at i row_stride + j ld, as a matrix by rows has it with
                            ld = 1 and row_stride >= max(2, its columns); for `a` of QR, GEQR_R and GELS, which
                            is then only read and whose ld may be any number, too, and for Q and R of QR and
                            GEQR_R. There is no ld_array with it. */
} batchqr_storage;

/** What there is: a batch of problems. Fields that an operation does not name are not looked at, so
 * `{.type = BATCHQR_D, .count = 1000, .m = 32, .n = 16, .a = {.ld = 32, .stride = 512}, .tau = {.stride =
 * 16}}` is a whole batch for #BATCHQR_GEQRF. All that is not named must be zero, as an initializer or memset
 * leave it: later versions of the library give zeros the meaning that they have today.
 *
 * Matrices, of the batch's type:
 *
 * | operation | m x n | k | a | c | r |
 * | --- | --- | --- | --- | --- | --- |
 * | GEQRF | A | | m x n, in and out | | |
 * | ORGQR | Q, m >= n >= k | reflectors | m x n, V in, Q out | | |
 * | ORMQR | C | reflectors | V, p x k, p = m (left) or n (right), p >= k, in | m x n, in and out | |
 * | QR | A | | m x n, in, then undefined | Q, m x min(m,n), out, may be a | R, min(m,n) x n, out |
 * | GEQR_R | A | | m x n, in, then undefined | | R, min(m,n) x n, out, may be a |
 * | GELS | A | right-hand sides | m x n, in, then undefined | B in, X out, max(m,n) x k | |
 * | R_RANGE | A | | m x n, R in, not written | | |
 * | GEQP3 | A | columns of C | m x n, in and out | C, m x k, in, Q^H C out, or none | |
 * | GELSY | A | right-hand sides | m x n, in, then undefined | B in, X out, max(m,n) x k | |
 * | PINV | A | | m x n, in, then undefined | n x m, out | |
 * | GESVD | A | | m x n, in, then undefined | | |
 * | SYEVD | A, m = n | | n x n, one triangle in, then undefined | | |
 * | TRSM | A, m >= n | right-hand sides | m x n, R in, not written | m x k: B in, X out, n x k | |
 * | GESVDR | A | singular values | m x n, in | | |
 *
 * GESVD has u, m x min(m,n), and v, n x min(m,n), out; SYEVD has v, n x n, out, n x l with l = min(iu,n) - il
 * + 1 where il and iu are given. Either may be a, or not be there. GESVDR has u, m x k, and v, n x k, out,
 * with min(k,m,n) for k.
 *
 * Vectors: tau, of the batch's type, has min(m,n) elements (GEQRF, GEQP3, out) or k (ORGQR, ORMQR, in); norms
 * and relres k (GELS, out), range 2 (R_RANGE, out) and s min(m,n) (GESVD, SYEVD, out; l as above),
 * min(k,m,n) (GESVDR, out) or m (PINV, in) real numbers; iterations k (GELS, out), jpvt n (GEQP3, GELSY, out)
 * and rank 1 (GEQP3, GELSY, PINV, GESVD, SYEVD, out) ints.
 *
 * A matrix that need not be there, `c` of GEQP3, `u` and `v`, is not wanted by any execute of a batch that
 * leaves its `ld` at 0, without ld_array. Likewise `iterations` and `relres` of GELS where the `stride` of
 * #BATCHQR_STRIDED is 0, of one member, too.
 */
typedef struct batchqr_batch {
  batchqr_type type;   /**< of all matrices and of tau; vectors that are real have its precision */
  batchqr_sizes sizes; /**< where sizes are */
  int64_t count;       /**< members, >= 0 */
  int m, n, k;         /**< sizes (uniform) or upper bounds (sizes on the device); not read with
                            #BATCHQR_HOST_SIZES */
  batchqr_side side;   /**< ORMQR */
  batchqr_trans trans; /**< ORMQR, GELS, TRSM */
  const int *m_array;  /**< `count` ints, with sizes other than #BATCHQR_UNIFORM */
  const int *n_array;  /**< likewise */
  const int *k_array;  /**< likewise, for ORGQR, ORMQR, GELS, GELSY, GEQP3, TRSM and GESVDR; NULL: as many
                            reflectors as fit; `k` right-hand sides, columns of C or singular values for all */
  batchqr_storage a, c, r, tau; /**< see the tables; `c` is Q's storage for QR */
  batchqr_storage norms;        /**< GELS: not needed where norms are not wanted */
  batchqr_storage range;        /**< R_RANGE */
  batchqr_storage jpvt, rank;   /**< GEQP3, GELSY, PINV, GESVD, SYEVD: not needed where these are not
                                     wanted; `rank` holds how many eigenvalues SYEVD found */
  batchqr_storage s, u, v;      /**< GESVD, SYEVD, GESVDR; `s` holds SYEVD's eigenvalues and PINV's
                                     weights */
  batchqr_uplo uplo;            /**< SYEVD */
  int kmax;                     /**< GEQP3, GELSY, PINV, GESVD: the largest rank; 0: min(m,n) */
  int keep_a;                   /**< QR, GEQR_R, GELS; not 0: A is only read. Small members take no longer
                                     so, others are copied first */
  int unaligned;         /**< not 0: `a` and `c` may be any addresses of elements. With 0 they are multiples
                              of 16 bytes in every execute of a plan that works on large members in
                              place; such a plan takes less workspace. The one-call tier looks at the
                              addresses itself */
  double abstol, reltol; /**< GEQP3, GELSY, PINV, GESVD: see batch_geqp3(), batch_gelsy() and
                              batch_gesvd(); 0 or less: none */
  int oversampling;      /**< GESVDR: columns of the sketch beyond k */
  int power_steps;       /**< GESVDR: how often A A^H is applied to it, up to 100 */
  uint64_t seed;         /**< GESVDR: of its random numbers */
  batchqr_storage iterations, relres; /**< GELS: see batch_gels_refined(); not needed where these
                                           are not wanted */
  int gram_schmidt;     /**< QR in #BATCHQR_COMPUTE_HALF: 1: Gram-Schmidt serves as well, 2: the same twice;
                             see batch_qr() */
  int il, iu;           /**< SYEVD: the il-th to the iu-th smallest eigenvalue, counted from 1, are wanted; 0:
                             not chosen so. See batch_syevr() */
  double vl, vu;        /**< SYEVD: eigenvalues w, vl < w <= vu, are wanted; both 0: not chosen so */
  uint64_t reserved[8]; /**< zeros: room for what later versions add */
} batchqr_batch;

/** The operands of an execute: each an address with #BATCHQR_STRIDED, an array of addresses with
 * #BATCHQR_POINTERS. Those that an operation does not use are ignored. */
typedef struct batchqr_operands {
  void *a;            /**< see #batchqr_batch */
  void *tau;          /**< GEQRF, ORGQR, ORMQR, GEQP3 */
  void *c;            /**< ORMQR: C; QR: Q; GELS, GELSY, TRSM: B and X; GEQP3: C, or NULL; PINV: the result */
  void *r;            /**< QR, GEQR_R */
  int *info;          /**< `count` ints in the backend's memory, or NULL */
  void *norms;        /**< GELS: residual norms, or NULL; see batch_gels() */
  void *range;        /**< R_RANGE: see batch_r_range() */
  void *jpvt;         /**< GEQP3, GELSY: the columns' order, ints, or NULL */
  void *rank;         /**< GEQP3, GELSY, PINV, GESVD: ints, or NULL; SYEVD: see batch_syevr() */
  void *s;            /**< GESVD, GESVDR: singular values; SYEVD: eigenvalues; PINV: weights, or NULL */
  void *u;            /**< GESVD: U, or NULL; GESVDR: U */
  void *v;            /**< GESVD: V; SYEVD: eigenvectors; or NULL; GESVDR: V */
  void *iterations;   /**< GELS: ints, or NULL */
  void *relres;       /**< GELS: real numbers, or NULL */
  void *reserved[10]; /**< NULL: room for what later versions add */
} batchqr_operands;

/** The batch of an operation whose members lie close-packed, one after the other: uniform m x n (and k) in
 * #BATCHQR_STRIDED layout, every leading dimension and stride the least that there can be. Change what
 * differs.
 * @param op     what the batch is for
 * @param type   element type
 * @param m, n, k  sizes, as the table of #batchqr_batch says; k is not looked at where the operation has none
 * @param count  members */
BATCHQR_API batchqr_batch batchqr_batch_packed(batchqr_op op, batchqr_type type, int m, int n, int k,
                                               int64_t count);

/** Options of a handle. All bytes zero means all defaults. */
typedef struct batchqr_options {
  batchqr_backend backend; /**< who computes */
  int positive_diagonal;   /**< not 0: R(j,j) >= 0, as LAPACK's xGEQRFP */
  int threads;             /**< CPU backend: OpenMP threads, up to 4096, of which as many work as there
                                are processors; 0: as many as OpenMP gives */
  const char *tuning_file; /**< a tuning table to use instead of the built-in ones; NULL: the environment's
                                BATCHQR_TUNING_FILE, else the built-in table of the architecture */
  int plans;               /**< plans that the one-call tier keeps; 0: 256 */
  int reserved[15];        /**< zeros: room for what later versions add */
} batchqr_options;

/** @} */

/** @defgroup handle Handles
 * Those that return a status return #BATCHQR_INVALID_ARGUMENT where the handle is NULL or another argument is
 * wrong, and then change nothing.
 * @{ */

/** Creates a handle. On the CUDA backend it is bound to the calling thread's current device. Where that
 * fails, `batchqr_error_message(NULL)` says why.
 *
 * @param[out] handle   the new handle; NULL after an error
 * @param options       NULL for defaults
 * @retval BATCHQR_INVALID_ARGUMENT `handle` is NULL or an option has no meaning
 * @retval BATCHQR_UNSUPPORTED  the CUDA backend was asked for and is not in this build, or no device is there
 * @retval BATCHQR_TUNING_ERROR the tuning table was rejected; batchqr_check_tuning_file() says why
 */
BATCHQR_API batchqr_status batchqr_create(batchqr_handle_t *handle, const batchqr_options *options);

/** Releases a handle with all that it owns; waits for the device work that uses it. NULL is allowed. */
BATCHQR_API void batchqr_destroy(batchqr_handle_t handle);

/** Sets the stream that later calls enqueue on.
 * @param handle  whose calls are to go there
 * @param stream  of the handle's device, and there as long as the handle uses it; NULL: the default stream */
BATCHQR_API batchqr_status batchqr_set_stream(batchqr_handle_t handle, batchqr_stream stream);

/** Lends the one-call tier a workspace in the backend's memory. It then never allocates one; a call that
 * needs more returns #BATCHQR_WORKSPACE_TOO_SMALL. NULL with 0 bytes takes it back.
 * @param handle     whose calls are to use it
 * @param workspace  aligned to 256 bytes
 * @param bytes      how many there are at `workspace` */
BATCHQR_API batchqr_status batchqr_set_workspace(batchqr_handle_t handle, void *workspace, size_t bytes);

/** Sets how many bytes of workspace later plans may take, those of the one-call tier, too. Within the limit a
 * plan is as fast as it can be: large members may be worked on one after another, in smaller pieces, or by
 * another family. A batch that no family serves within the limit is #BATCHQR_UNSUPPORTED, and the error's
 * text tells the least that it takes. 0, the default: as many as make it fast. */
BATCHQR_API batchqr_status batchqr_set_workspace_limit(batchqr_handle_t handle, size_t bytes);

/** Sets the arithmetic that later plans may use, those of the one-call tier, too. At first it is
 * #BATCHQR_COMPUTE_AUTO. Plans that have been made stay as they are. */
BATCHQR_API batchqr_status batchqr_set_compute(batchqr_handle_t handle, batchqr_compute compute);

/** The backend that the handle works on: CPU or CUDA; AUTO only where `handle` is NULL. */
BATCHQR_API batchqr_backend batchqr_get_backend(batchqr_handle_t handle);

/** One line on the backend: device or threads, and the tuning table in use. Lives as long as the handle; ""
 * where `handle` is NULL. */
BATCHQR_API const char *batchqr_describe(batchqr_handle_t handle);

/** What was wrong in the last call on this handle that failed; "" if none did. The text names the argument,
 * the member and the value. Valid until the next call on the handle. With handle NULL: what was wrong in the
 * calling thread's last batchqr_create() that failed. */
BATCHQR_API const char *batchqr_error_message(batchqr_handle_t handle);

/** The name of a status, for instance "BATCHQR_INVALID_ARGUMENT"; never NULL. */
BATCHQR_API const char *batchqr_status_string(batchqr_status status);

/** #BATCHQR_VERSION of the library at run time. */
BATCHQR_API int batchqr_version(void);

/** Reads a tuning table as batchqr_create() would and says what is wrong with it.
 * @param path          the file
 * @param[out] message  gets "file:line: what is wrong", or "" ; may be NULL
 * @param size          bytes at `message`
 * @retval BATCHQR_TUNING_ERROR  the file cannot be read, or holds a line that is wrong */
BATCHQR_API batchqr_status batchqr_check_tuning_file(const char *path, char *message, size_t size);

/** @} */

/** @defgroup routines Routines
 * The one-call tier. Each call makes a plan, or finds it in the handle's cache, and executes it with the
 * handle's workspace. Operands are as in #batchqr_operands; they do not overlap, but for what a routine
 * allows. All of them return #BATCHQR_INVALID_ARGUMENT, #BATCHQR_UNSUPPORTED, #BATCHQR_WORKSPACE_TOO_SMALL,
 * #BATCHQR_OUT_OF_MEMORY, #BATCHQR_CUDA_ERROR or #BATCHQR_CAPTURE_ERROR (the first call for a problem cannot
 * be captured, since it allocates; a repeated one can) when they fail.
 * @{ */

/** QR factorization, A = QR, Q as Householder vectors. Method: LAPACK's xGEQRF.
 * @param handle the library's state: backend, stream, workspace
 * @param batch  what the batch holds and how it is stored
 * @param a     m x n members; on exit R and V
 * @param tau   min(m,n) elements for each member, out
 * @param info  `count` ints, out, or NULL */
BATCHQR_API batchqr_status batch_geqrf(batchqr_handle_t handle, const batchqr_batch *batch, void *a,
                                       void *tau, int *info);

/** Forms the first n columns of Q = H_1 ... H_k, in place. Method: LAPACK's xORGQR, xUNGQR.
 * @param handle, batch  see batch_geqrf()
 * @param a     m x n, m >= n >= k: the vectors V in its first k columns; on exit Q
 * @param tau   k elements for each member, in. With a batch whose k is 0 it must be NULL: 0 is what a batch
 *              has that was made for batch_geqrf()
 * @param info  0 or #BATCHQR_INFO_NONFINITE for each member, or NULL */
BATCHQR_API batchqr_status batch_orgqr(batchqr_handle_t handle, const batchqr_batch *batch, void *a,
                                       const void *tau, int *info);

/** batch_orgqr() by its name for complex types. */
BATCHQR_API batchqr_status batch_ungqr(batchqr_handle_t handle, const batchqr_batch *batch, void *a,
                                       const void *tau, int *info);

/** Applies Q: C := op(Q) C or C op(Q), Q = H_1 ... H_k. Method: LAPACK's xORMQR, xUNMQR.
 * @param handle, batch  see batch_geqrf()
 * @param side, trans  replace the batch's fields of these names
 * @param a     the vectors V as batch_geqrf() left them, p x k, p = m (left) or n (right); not written,
 *              so that members may share it (`a.stride` 0)
 * @param tau   k elements for each member, in. With a batch whose k is 0, `a` and `tau` must be NULL: see
 *              batch_orgqr()
 * @param c     m x n, in and out
 * @param info  0 or #BATCHQR_INFO_NONFINITE for each member, or NULL */
BATCHQR_API batchqr_status batch_ormqr(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_side side,
                                       batchqr_trans trans, const void *a, const void *tau, void *c,
                                       int *info);

/** batch_ormqr() by its name for complex types. */
BATCHQR_API batchqr_status batch_unmqr(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_side side,
                                       batchqr_trans trans, const void *a, const void *tau, void *c,
                                       int *info);

/** Thin QR in one call: Q (m x min(m,n), orthonormal columns) and R (min(m,n) x n, zeros below the diagonal).
 * Method: LAPACK's xGEQRF and xORGQR, or their like in one kernel.
 *
 * With compute mode #BATCHQR_COMPUTE_HALF and the batch's `gram_schmidt` other than 0, large members that are
 * not wide may be factored by recursive Gram-Schmidt in FP16 products instead, which makes half as many of
 * them (Zhang, Baharlouei and Wu, High Accuracy Matrix Computations on Neural Engines, 2020). Then the bound
 * of A - QR holds with eps = 2^-11, as in that mode, but not that of Q's orthogonality: ||I - Q^H Q|| is of
 * the order of cond(A) 2^-11, with A's columns brought to one length. With `gram_schmidt` 2, Q is
 * orthogonalised once more, which brings that to 2^-11 where cond(A) 2^-11 is well below 1. Members for which
 * there is no such kernel are factored by reflectors. With any other mode it is an error.
 * @param handle, batch  see batch_geqrf()
 * @param a     m x n; its contents are undefined on exit unless q is a
 * @param q     stored as the batch's `c`; `q == a` overwrites A's first min(m,n) columns with Q
 *              (then `c` must say the same storage as `a`)
 * @param r     stored as the batch's `r`; must not overlap a or q
 * @param info  `count` ints, out, or NULL */
BATCHQR_API batchqr_status batch_qr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *q,
                                    void *r, int *info);

/** R only: min(m,n) x n, zeros below the diagonal. Method: LAPACK's xGEQRF.
 * @param handle, batch  see batch_geqrf()
 * @param a     m x n; its contents are undefined on exit unless r is a
 * @param r     stored as the batch's `r`; `r == a` writes R into A, zeros below A's whole diagonal
 *              (then `r` must say the same storage as `a`)
 * @param info  `count` ints, out, or NULL */
BATCHQR_API batchqr_status batch_geqr_r(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *r,
                                        int *info);

/** Least squares and least norm: for each column b of B, the x that minimizes ||b - op(A) x||_2 where op(A)
 * has at least as many rows as columns, and else the shortest one with op(A) x = b. A must be of full rank.
 *
 * Method: LAPACK's xGELS, but by QR throughout: where A is wide, A^H is factored, in a copy in the workspace,
 * where xGELS makes an LQ factorization of A. With A or A^H = QR, x is R^-1 (Q^H b) (least squares) or
 * Q (R^-H b) (least norm). As in xGELS, members of A or B whose largest entry lies at the ends of the
 * exponent range are scaled, and X back. On GPUs, with compute modes auto and emulated, large real members
 * that are not wide are solved by refinement where that is faster: R comes from FP16 products, and
 * conjugate gradients with it as preconditioner (CGLS), in the working precision, go on until X's backward
 * error is what QR would leave (Zhang, Baharlouei and Wu, High Accuracy Matrix Computations on Neural
 * Engines, 2020); or R is A^H A's Cholesky factor, for tall members (Bjorck, Stability analysis of the method
 * of seminormal equations, 1987). Members for which the steps do not come to that are solved by QR:
 * batch_gels_refined() says which.
 *
 * A member whose info is not 0 gets no solution: its part of `c` is undefined, its norms are NaN.
 * @param handle, batch  see batch_geqrf(); the batch's k counts right-hand sides
 * @param trans replaces the batch's field: #BATCHQR_NO_TRANS, or #BATCHQR_CONJ_TRANS (real types also
 *              #BATCHQR_TRANS) for op(A) = A^H
 * @param a     m x n; its contents are undefined on exit
 * @param c     max(m,n) x k, stored as the batch's `c`: B in its first rows (m, or n if transposed), on exit
 *              X in its first rows (n, or m); what then is below X is undefined
 * @param norms ||b - op(A) x||_2 for each column of B, 0 where op(A) is not taller than wide; k real numbers
 *              for each member, stored as the batch's `norms`; or NULL
 * @param info  0; j > 0: R(j,j) is exactly zero, and j is the first such: A is not of full rank (a zero
 *              matrix too, for which xGELS says 0); #BATCHQR_INFO_NONFINITE: A or B holds a NaN or an Inf;
 *              or NULL */
BATCHQR_API batchqr_status batch_gels(batchqr_handle_t handle, const batchqr_batch *batch,
                                      batchqr_trans trans, void *a, void *c, void *norms, int *info);

/** batch_gels() that tells how each X was found.
 * @param handle, batch, trans, a, c, norms, info  see batch_gels()
 * @param iterations  of each column of B, the steps of the refinement that has found X, as LAPACK's xSGESV
 *              counts them: 0 or more; 0 also where QR was taken at once, as for small members; -1 - j: j
 *              steps were not enough for the member, and X is QR's. k ints for each member, stored as the
 *              batch's `iterations`; or NULL
 * @param relres  of each column of B, the backward error with which the refinement has ended: X solves the
 *              problem for some A + E, ||E||_F <= relres ||A||_F (columns of A brought to one length), to
 *              the accuracy with which that can be told; -1 where X is QR's. k real numbers for each
 *              member, stored as the batch's `relres`; or NULL */
BATCHQR_API batchqr_status batch_gels_refined(batchqr_handle_t handle, const batchqr_batch *batch,
                                              batchqr_trans trans, void *a, void *c, void *norms,
                                              void *iterations, void *relres, int *info);

/** The smallest and the largest |R(j,j)|, j < min(m,n), of factored members: largest / smallest is a lower
 * bound of R's condition number, which tells of members whose rank is in doubt.
 * @param handle, batch  see batch_geqrf()
 * @param a     m x n: R in its upper triangle, as batch_geqrf() and batch_geqr_r() leave it; not written. R
 * of batch_qr() is an `a` of min(m,n) x n
 * @param range 2 real numbers for each member, stored as the batch's `range`: smallest, largest; 0 and 0
 * where min(m,n) = 0, NaN and NaN where the diagonal holds a NaN or an Inf
 * @param info  0; j > 0: R(j,j) is exactly zero, and j is the first such; #BATCHQR_INFO_NONFINITE; or NULL */
BATCHQR_API batchqr_status batch_r_range(batchqr_handle_t handle, const batchqr_batch *batch, const void *a,
                                         void *range, int *info);

/** Solves op(R) X = B with the upper triangular R of a factorization. Method: BLAS's xTRSM from the left,
 * with xTRTRS's look at the diagonal. A member's right-hand sides are independent of one another.
 * @param handle, batch  see batch_geqrf(); the batch's k counts right-hand sides
 * @param trans replaces the batch's field: #BATCHQR_NO_TRANS, or #BATCHQR_CONJ_TRANS (real types also
 *              #BATCHQR_TRANS) for op(R) = R^H
 * @param a     m x n, m >= n: R, n x n, in its upper triangle, as batch_geqrf() and batch_geqr_r() leave it;
 *              what is below is not read, and nothing is written, so that members may share it (`a.stride` 0)
 * @param c     m x k, stored as the batch's `c`: B in its first n rows, on exit X; the other rows are left
 *              alone. C as batch_ormqr() leaves Q^H C is such a B
 * @param info  0; j > 0: R(j,j) is exactly zero, j is the first such, and B was left as it is;
 *              #BATCHQR_INFO_NONFINITE: R or X holds a NaN or an Inf, as X does where B did or where a number
 *              on the way to it overflows; or NULL */
BATCHQR_API batchqr_status batch_trsm(batchqr_handle_t handle, const batchqr_batch *batch,
                                      batchqr_trans trans, const void *a, void *c, int *info);

/** QR factorization with column pivoting, A P = Q R, which stops at the rank that is asked for. Method:
 * LAPACK's xGEQP3 with the stopping rule of xGEQP3RK.
 *
 * In step j the column whose remaining part, in rows j .. m-1, is the longest is exchanged with column j, the
 * first of them where several are equal. The steps end with the first j for which that length is at most
 * max(abstol, reltol * L), where L is the length of the longest column of A; or after kmax steps; `rank` is
 * their number. With abstol and reltol of 0 they end where nothing but zeros remain. A then holds R's first
 * `rank` rows and the reflectors' vectors as batch_geqrf() leaves them, what remains of A in rows and columns
 * from `rank` on, and tau is zero from `rank` on. |R(j,j)| do not increase, but for rounding.
 * positive_diagonal of the handle does not matter here.
 * @param handle, batch  see batch_geqrf(); the batch's k counts C's columns, kmax, abstol and reltol say
 * where to stop
 * @param a     m x n; on exit R and V
 * @param tau   min(m,n) elements for each member, out
 * @param jpvt  n ints for each member, stored as the batch's `jpvt`: column j of A P is column jpvt[j] of A,
 *              counted from 0; or NULL
 * @param rank  one int for each member, stored as the batch's `rank`; or NULL
 * @param c     m x k, stored as the batch's `c`: C, on exit Q^H C; or NULL
 * @param info  0; #BATCHQR_INFO_NONFINITE: A or C holds a NaN or an Inf, the member's rank is 0 and its other
 *              results are undefined; or NULL */
BATCHQR_API batchqr_status batch_geqp3(batchqr_handle_t handle, const batchqr_batch *batch, void *a,
                                       void *tau, void *jpvt, void *rank, void *c, int *info);

/** Least squares of any rank: for each column b of B, of those x that minimize ||b - A x||_2 the shortest
 * one. Columns of A that depend on others are no error, and A may be wide.
 *
 * Method: LAPACK's xGELSY. A P = Q R with column pivoting; what of R is beyond the rank counts as zeros; the
 * other rows are [R11 R12] = [T 0] Z, and x = P Z^H [T^-1 y; 0] with y the first entries of Q^H b. The rank
 * is found member by member, as by batch_geqp3(): the number of steps before the longest remaining column is
 * not longer than reltol times the longest one of A, or than abstol; kmax at most. xGELSY estimates the
 * condition of R11 where this looks at R's diagonal: its rcond is a reltol. A reltol of 0 or less
 * stands for max(m,n), of the member, times the distance from 1 to the next number: what roundings leave of
 * columns that depend on others. As in xGELSY, members of A
 * or B whose largest entry lies at the ends of the exponent range are scaled, and X back.
 * @param handle, batch  see batch_geqrf(); the batch's k counts right-hand sides; kmax, abstol and reltol as
 * of batch_geqp3()
 * @param a     m x n; its contents are undefined on exit
 * @param c     max(m,n) x k, stored as the batch's `c`: B in its first m rows, on exit X in its first n rows;
 *              what then is below X is undefined
 * @param jpvt  n ints for each member, as of batch_geqp3(), stored as the batch's `jpvt`; or NULL
 * @param rank  one int for each member, stored as the batch's `rank`; or NULL
 * @param info  0; #BATCHQR_INFO_NONFINITE: A or B holds a NaN or an Inf, the member's rank is 0 and X holds
 *              NaNs; or NULL */
BATCHQR_API batchqr_status batch_gelsy(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *c,
                                       void *jpvt, void *rank, int *info);

/** The pseudoinverse, times a diagonal: C = A^+ diag(w), the matrix that makes of each right-hand side, once
 * its entries are multiplied by w, the solution of batch_gelsy(). Of A of full rank, not wide, that is
 * R^-1 Q^H diag(w): with A = diag(w) V the weights of stencils that weighted least squares define.
 *
 * Method: as batch_gelsy(), with the rows of Q in place of right-hand sides. Sizes on the device are not
 * supported.
 * @param handle, batch  see batch_geqrf(); kmax, abstol and reltol say what the rank is, as of batch_gelsy()
 * @param a     m x n; its contents are undefined on exit
 * @param c     n x m, stored as the batch's `c`
 * @param w     m real numbers for each member, stored as the batch's `s`; not written; or NULL: ones
 * @param rank  one int for each member, stored as the batch's `rank`; or NULL
 * @param info  0; #BATCHQR_INFO_NONFINITE: A or w holds a NaN or an Inf, the member's rank is 0 and C holds
 * NaNs; or NULL */
BATCHQR_API batchqr_status batch_pinv(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *c,
                                      const void *w, void *rank, int *info);

/** Thin singular value decomposition, A = U S V^H. Method: QR and one-sided Jacobi, as LAPACK's xGESVJ, or
 * Jacobi after eigenvectors of A^H A. Small singular values are found to high relative accuracy where A's
 * columns (rows, if it is wide) are a well-conditioned matrix's, scaled.
 *
 * The singular values descend. In each column of V, or of U where V is not wanted, the first of the entries
 * of largest magnitude is real and positive. The columns of U and of V are orthonormal, those that belong to
 * singular values of 0 too.
 * @param handle, batch  see batch_geqrf(); kmax, abstol and reltol say what counts as the rank
 * @param a     m x n; its contents are undefined on exit unless u or v is a
 * @param s     min(m,n) real numbers for each member, stored as the batch's `s`: the singular values
 * @param u     m x min(m,n), stored as the batch's `u`, may be a; or NULL
 * @param v     n x min(m,n), stored as the batch's `v`: V, not V^H; may be a; or NULL
 * @param rank  one int for each member, stored as the batch's `rank`: how many singular values are above
 *              max(abstol, reltol * s[0]), kmax at most; or NULL
 * @param info  0; j > 0: the iteration did not converge, and the results are what it came to;
 *              #BATCHQR_INFO_NONFINITE: the member holds a NaN or an Inf, its s are NaN, its rank is 0, U and
 * V are undefined; or NULL */
BATCHQR_API batchqr_status batch_gesvd(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *s,
                                       void *u, void *v, void *rank, int *info);

/** The k largest singular values and their vectors, approximately: A is near U S V^H. Method: a basis Q of
 * the range of A (A^H A)^q Omega, Omega random, made orthonormal after each product, then the singular value
 * decomposition of Q^H A (N. Halko, P. G. Martinsson, J. A. Tropp, Finding structure with randomness, SIAM
 * Review 53, 2011, algorithms 4.4 and 5.1).
 *
 * With l = min(k + oversampling, m, n) and s the true singular values, ||A - Q Q^H A|| is in the mean at most
 * (1 + 4 sqrt(2 min(m,n) / (k - 1))) ^ (1 / (2q + 1)) s[k] for l = 2k (theorem 1.2): good where singular
 * values fall off, and poor for a flat spectrum, of which only many power steps find the largest. Where l is
 * min(m,n) the results are those of batch_gesvd(), to the accuracy of its largest singular value.
 *
 * Omega is made of `batch->seed` and the coordinates of its entries by Philox4x32-10: the same seed gives the
 * same bits for a member, wherever it lies in the batch, and the same Omega on all backends. The columns of U
 * and of V are orthonormal, also of members of lower rank and of zeros.
 * @param handle, batch  see batch_geqrf(); the batch's k counts the singular values that are wanted, where it
 *              is more than min(m,n) these are; oversampling, power_steps (q) and seed are the batch's, too.
 *              Good choices: 2 power steps, and an oversampling of 5 to k. Sizes on the device are
 *              #BATCHQR_UNSUPPORTED; with host arrays, members of one size are launched together
 * @param a     m x n, not written; members may share it (`a.stride` 0)
 * @param s     k real numbers for each member, stored as the batch's `s`: they descend
 * @param u     m x k, stored as the batch's `u`
 * @param v     n x k, stored as the batch's `v`: V, not V^H
 * @param info  0; j > 0: the iteration of batch_gesvd() did not converge; #BATCHQR_INFO_NONFINITE: the member
 *              holds a NaN or an Inf, its s are NaN, U and V are undefined; or NULL */
BATCHQR_API batchqr_status batch_gesvdr(batchqr_handle_t handle, const batchqr_batch *batch, const void *a,
                                        void *s, void *u, void *v, int *info);

/** Eigenvalues and eigenvectors of symmetric or Hermitian matrices, A = V diag(w) V^H. Method: LAPACK's
 * xSYEVD, xHEEVD, or Jacobi's; on a GPU, of members of more than 1024 rows, in two stages (C. Bischof, B.
 * Lang, X. Sun, A framework for symmetric band reduction, ACM TOMS 26, 2000), for which members need to be of
 * sizes that the host knows. The workspace of these is that of one member, about 1 n x n matrix of the type
 * for values alone, and 6 with vectors: a batch that does not say how V is stored takes the less.
 *
 * The eigenvalues ascend. In each eigenvector the first of the entries of largest magnitude is real and
 * positive.
 * @param handle, batch  see batch_geqrf(); m and n are equal; `uplo` says which triangle of A is read. The
 *              imaginary parts of a diagonal are not. il and iu, or vl and vu: see batch_syevr()
 * @param a     n x n; its contents are undefined on exit unless v is a
 * @param w     n real numbers for each member, stored as the batch's `s`: the eigenvalues
 * @param v     n x n, stored as the batch's `v`: the eigenvectors; may be a; or NULL
 * @param info  0; j > 0: the iteration did not converge, and the results are what it came to;
 *              #BATCHQR_INFO_NONFINITE: the triangle holds a NaN or an Inf, the member's w are NaN, its V is
 *              undefined; or NULL */
BATCHQR_API batchqr_status batch_syevd(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *w,
                                       void *v, int *info);

/** batch_syevd() by its name for complex types. */
BATCHQR_API batchqr_status batch_heevd(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *w,
                                       void *v, int *info);

/** batch_syevd() for a part of the spectrum, as LAPACK's xSYEVR and xHEEVR: the batch's il and iu, 1 <= il <=
 * iu <= n, choose the il-th to the iu-th smallest eigenvalue of each member, vl and vu, vl < vu, those in
 * (vl, vu], where either may be infinite. One of the two is given. Values that were chosen come first in w,
 * in ascending order, and their vectors are V's first columns.
 *
 * The same is chosen of every member. Where members differ in size, iu is at most the largest n, and one of
 * fewer rows has the il-th to its last, which are none if it has fewer than il. With vl and vu it depends on
 * A how many there are: w and V need room for n, w is filled up with NaNs, and V's further columns are left
 * as they are or hold anything.
 *
 * On a GPU, indices save time in members that are solved in two stages: vectors that are not wanted are not
 * transformed. Other members, and those chosen by values, are solved as by batch_syevd(), with the same bits.
 * @param handle, batch, a  see batch_syevd()
 * @param w     min(iu,n) - il + 1 real numbers for each member, n with vl and vu, stored as the batch's `s`
 * @param v     n x as many, stored as the batch's `v`; may be a; or NULL
 * @param found one int for each member, stored as the batch's `rank`: how many eigenvalues were chosen; or
 * NULL
 * @param info  as batch_syevd(). The `found` of a member that holds a NaN or an Inf is 0 */
BATCHQR_API batchqr_status batch_syevr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *w,
                                       void *v, void *found, int *info);

/** batch_syevr() by its name for complex types. */
BATCHQR_API batchqr_status batch_heevr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *w,
                                       void *v, void *found, int *info);

/** @} */

/** @defgroup plan The planned tier
 * For inner loops: plan once, execute often.
 * @{ */

/** Plans an operation. Allocates; must not run under capture. Host size arrays are copied; sizes on the
 * device are read by each execute.
 * @param handle     whose backend, device, options and compute mode the plan is made for
 * @param op         what to do
 * @param batch      what the batch holds and how it is stored; not needed any more when the call returns,
 *                   except for size arrays on the device
 * @param[out] plan  NULL after an error
 * @retval BATCHQR_INVALID_ARGUMENT  the handle or `plan` is NULL, or the batch is wrong: the text says where
 * @retval BATCHQR_UNSUPPORTED  no kernel family of this build serves the batch within the limit of workspace
 * @retval BATCHQR_OUT_OF_MEMORY  there is no memory for the plan
 * @retval BATCHQR_CAPTURE_ERROR  the handle's stream is being captured */
BATCHQR_API batchqr_status batchqr_plan_create(batchqr_handle_t handle, batchqr_op op,
                                               const batchqr_batch *batch, batchqr_plan_t *plan);

/** Bytes of workspace that an execute needs, in the backend's memory; may be 0, as it is of NULL. */
BATCHQR_API size_t batchqr_plan_workspace(batchqr_plan_t plan);

/** Bytes of workspace that a call of the one-call tier needs for this problem: what a caller with an
 * allocator of its own hands to batchqr_set_workspace(). Answered from the handle's plans; makes the plan
 * where there is none, and so must not be the first call for a problem under capture.
 * @param handle      whose backend, device, options and compute mode count
 * @param op          what to do; batch->side and batch->trans say how
 * @param batch       what the batch holds and how it is stored
 * @param[out] bytes  0 after an error
 * @return what batchqr_plan_create() returns */
BATCHQR_API batchqr_status batchqr_workspace_size(batchqr_handle_t handle, batchqr_op op,
                                                  const batchqr_batch *batch, size_t *bytes);

/** Kernel launches of one execute (CPU backend: parallel loops); 0 of NULL. */
BATCHQR_API int batchqr_plan_launches(batchqr_plan_t plan);

/** A line for each group of members: operation, members, sizes, type, family, variant, the table's line that
 * chose it, workspace. Lives as long as the plan; "" of NULL. */
BATCHQR_API const char *batchqr_plan_describe(batchqr_plan_t plan);

/** Enqueues the planned work on the handle's stream: no allocation, no synchronisation, capturable.
 * @param handle     a handle of the backend and device that the plan was made for
 * @param plan       what to do
 * @param operands   the addresses to do it on
 * @param workspace  aligned to 256 bytes, at least batchqr_plan_workspace() bytes; NULL if that is 0
 * @param workspace_bytes  how many there are at `workspace`
 * @retval BATCHQR_INVALID_ARGUMENT  an operand that the batch needs is NULL or stands where another one does,
 * an address is not aligned or none of the backend's, or the handle is of another device
 * @retval BATCHQR_WORKSPACE_TOO_SMALL  `workspace_bytes` is less than batchqr_plan_workspace() says
 * @retval BATCHQR_CUDA_ERROR  a launch failed */
BATCHQR_API batchqr_status batchqr_plan_execute(batchqr_handle_t handle, batchqr_plan_t plan,
                                                const batchqr_operands *operands, void *workspace,
                                                size_t workspace_bytes);

/** Releases a plan; its enqueued work must be done. NULL is allowed. */
BATCHQR_API void batchqr_plan_destroy(batchqr_plan_t plan);

/** @} */

#ifdef __cplusplus
}
#endif

#include <batchqr/typed.h>

#endif
