/* SPDX-License-Identifier: BSD-3-Clause */
/** @file typed.h
 * The typed wrappers of the routines of batchqr.h, which includes this header.
 */
#ifndef BATCHQR_TYPED_H
#define BATCHQR_TYPED_H

#include <batchqr/batchqr.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup typed Typed wrappers
 * The routines for the everyday cases, uniform m x n, without norms and, for geqrf, orgqr, ormqr, qr and
 * geqr_r, without info. They return what the routines return; error messages name the arguments as they are
 * called here. Argument order as in `cublas<t>geqrfBatched` and `cublas<t>gelsBatched`. Member i of a strided
 * operand x lies at `x + i * stride_x`.
 * @{ */

/** Member i lies at `a + i * stride_a`, its min(m,n) factors at `tau + i * stride_tau`. */
BATCHQR_API batchqr_status batch_sgeqrf_strided(batchqr_handle_t handle, int m, int n, float *a, int lda,
                                                int64_t stride_a, float *tau, int64_t stride_tau,
                                                int64_t count);
BATCHQR_API batchqr_status batch_dgeqrf_strided(batchqr_handle_t handle, int m, int n, double *a, int lda,
                                                int64_t stride_a, double *tau, int64_t stride_tau,
                                                int64_t count);
BATCHQR_API batchqr_status batch_cgeqrf_strided(batchqr_handle_t handle, int m, int n,
                                                batchqr_complex_float *a, int lda, int64_t stride_a,
                                                batchqr_complex_float *tau, int64_t stride_tau,
                                                int64_t count);
BATCHQR_API batchqr_status batch_zgeqrf_strided(batchqr_handle_t handle, int m, int n,
                                                batchqr_complex_double *a, int lda, int64_t stride_a,
                                                batchqr_complex_double *tau, int64_t stride_tau,
                                                int64_t count);

/** `a_array` and `tau_array` are arrays of `count` addresses in the backend's memory. */
BATCHQR_API batchqr_status batch_sgeqrf(batchqr_handle_t handle, int m, int n, float *const *a_array, int lda,
                                        float *const *tau_array, int64_t count);
BATCHQR_API batchqr_status batch_dgeqrf(batchqr_handle_t handle, int m, int n, double *const *a_array,
                                        int lda, double *const *tau_array, int64_t count);
BATCHQR_API batchqr_status batch_cgeqrf(batchqr_handle_t handle, int m, int n,
                                        batchqr_complex_float *const *a_array, int lda,
                                        batchqr_complex_float *const *tau_array, int64_t count);
BATCHQR_API batchqr_status batch_zgeqrf(batchqr_handle_t handle, int m, int n,
                                        batchqr_complex_double *const *a_array, int lda,
                                        batchqr_complex_double *const *tau_array, int64_t count);

/** Forms Q in place from k reflectors: see batch_orgqr(). */
BATCHQR_API batchqr_status batch_sorgqr_strided(batchqr_handle_t handle, int m, int n, int k, float *a,
                                                int lda, int64_t stride_a, const float *tau,
                                                int64_t stride_tau, int64_t count);
BATCHQR_API batchqr_status batch_dorgqr_strided(batchqr_handle_t handle, int m, int n, int k, double *a,
                                                int lda, int64_t stride_a, const double *tau,
                                                int64_t stride_tau, int64_t count);
BATCHQR_API batchqr_status batch_cungqr_strided(batchqr_handle_t handle, int m, int n, int k,
                                                batchqr_complex_float *a, int lda, int64_t stride_a,
                                                const batchqr_complex_float *tau, int64_t stride_tau,
                                                int64_t count);
BATCHQR_API batchqr_status batch_zungqr_strided(batchqr_handle_t handle, int m, int n, int k,
                                                batchqr_complex_double *a, int lda, int64_t stride_a,
                                                const batchqr_complex_double *tau, int64_t stride_tau,
                                                int64_t count);

/** `a_array` and `tau_array` are arrays of `count` addresses in the backend's memory. */
BATCHQR_API batchqr_status batch_sorgqr(batchqr_handle_t handle, int m, int n, int k, float *const *a_array,
                                        int lda, const float *const *tau_array, int64_t count);
BATCHQR_API batchqr_status batch_dorgqr(batchqr_handle_t handle, int m, int n, int k, double *const *a_array,
                                        int lda, const double *const *tau_array, int64_t count);
BATCHQR_API batchqr_status batch_cungqr(batchqr_handle_t handle, int m, int n, int k,
                                        batchqr_complex_float *const *a_array, int lda,
                                        const batchqr_complex_float *const *tau_array, int64_t count);
BATCHQR_API batchqr_status batch_zungqr(batchqr_handle_t handle, int m, int n, int k,
                                        batchqr_complex_double *const *a_array, int lda,
                                        const batchqr_complex_double *const *tau_array, int64_t count);

/** Applies Q of k reflectors to C, m x n: see batch_ormqr(). */
BATCHQR_API batchqr_status batch_sormqr_strided(batchqr_handle_t handle, batchqr_side side,
                                                batchqr_trans trans, int m, int n, int k, const float *a,
                                                int lda, int64_t stride_a, const float *tau,
                                                int64_t stride_tau, float *c, int ldc, int64_t stride_c,
                                                int64_t count);
BATCHQR_API batchqr_status batch_dormqr_strided(batchqr_handle_t handle, batchqr_side side,
                                                batchqr_trans trans, int m, int n, int k, const double *a,
                                                int lda, int64_t stride_a, const double *tau,
                                                int64_t stride_tau, double *c, int ldc, int64_t stride_c,
                                                int64_t count);
BATCHQR_API batchqr_status batch_cunmqr_strided(batchqr_handle_t handle, batchqr_side side,
                                                batchqr_trans trans, int m, int n, int k,
                                                const batchqr_complex_float *a, int lda, int64_t stride_a,
                                                const batchqr_complex_float *tau, int64_t stride_tau,
                                                batchqr_complex_float *c, int ldc, int64_t stride_c,
                                                int64_t count);
BATCHQR_API batchqr_status batch_zunmqr_strided(batchqr_handle_t handle, batchqr_side side,
                                                batchqr_trans trans, int m, int n, int k,
                                                const batchqr_complex_double *a, int lda, int64_t stride_a,
                                                const batchqr_complex_double *tau, int64_t stride_tau,
                                                batchqr_complex_double *c, int ldc, int64_t stride_c,
                                                int64_t count);

/** The same with arrays of `count` addresses in the backend's memory. */
BATCHQR_API batchqr_status batch_sormqr(batchqr_handle_t handle, batchqr_side side, batchqr_trans trans,
                                        int m, int n, int k, const float *const *a_array, int lda,
                                        const float *const *tau_array, float *const *c_array, int ldc,
                                        int64_t count);
BATCHQR_API batchqr_status batch_dormqr(batchqr_handle_t handle, batchqr_side side, batchqr_trans trans,
                                        int m, int n, int k, const double *const *a_array, int lda,
                                        const double *const *tau_array, double *const *c_array, int ldc,
                                        int64_t count);
BATCHQR_API batchqr_status batch_cunmqr(batchqr_handle_t handle, batchqr_side side, batchqr_trans trans,
                                        int m, int n, int k, const batchqr_complex_float *const *a_array,
                                        int lda, const batchqr_complex_float *const *tau_array,
                                        batchqr_complex_float *const *c_array, int ldc, int64_t count);
BATCHQR_API batchqr_status batch_zunmqr(batchqr_handle_t handle, batchqr_side side, batchqr_trans trans,
                                        int m, int n, int k, const batchqr_complex_double *const *a_array,
                                        int lda, const batchqr_complex_double *const *tau_array,
                                        batchqr_complex_double *const *c_array, int ldc, int64_t count);

/** Thin QR, Q in q and R in r: see batch_qr(). q may be a, stored as a is. */
BATCHQR_API batchqr_status batch_sqr_strided(batchqr_handle_t handle, int m, int n, float *a, int lda,
                                             int64_t stride_a, float *q, int ldq, int64_t stride_q, float *r,
                                             int ldr, int64_t stride_r, int64_t count);
BATCHQR_API batchqr_status batch_dqr_strided(batchqr_handle_t handle, int m, int n, double *a, int lda,
                                             int64_t stride_a, double *q, int ldq, int64_t stride_q,
                                             double *r, int ldr, int64_t stride_r, int64_t count);
BATCHQR_API batchqr_status batch_cqr_strided(batchqr_handle_t handle, int m, int n, batchqr_complex_float *a,
                                             int lda, int64_t stride_a, batchqr_complex_float *q, int ldq,
                                             int64_t stride_q, batchqr_complex_float *r, int ldr,
                                             int64_t stride_r, int64_t count);
BATCHQR_API batchqr_status batch_zqr_strided(batchqr_handle_t handle, int m, int n, batchqr_complex_double *a,
                                             int lda, int64_t stride_a, batchqr_complex_double *q, int ldq,
                                             int64_t stride_q, batchqr_complex_double *r, int ldr,
                                             int64_t stride_r, int64_t count);

/** The same with arrays of `count` addresses in the backend's memory; q_array may be a_array. */
BATCHQR_API batchqr_status batch_sqr(batchqr_handle_t handle, int m, int n, float *const *a_array, int lda,
                                     float *const *q_array, int ldq, float *const *r_array, int ldr,
                                     int64_t count);
BATCHQR_API batchqr_status batch_dqr(batchqr_handle_t handle, int m, int n, double *const *a_array, int lda,
                                     double *const *q_array, int ldq, double *const *r_array, int ldr,
                                     int64_t count);
BATCHQR_API batchqr_status batch_cqr(batchqr_handle_t handle, int m, int n,
                                     batchqr_complex_float *const *a_array, int lda,
                                     batchqr_complex_float *const *q_array, int ldq,
                                     batchqr_complex_float *const *r_array, int ldr, int64_t count);
BATCHQR_API batchqr_status batch_zqr(batchqr_handle_t handle, int m, int n,
                                     batchqr_complex_double *const *a_array, int lda,
                                     batchqr_complex_double *const *q_array, int ldq,
                                     batchqr_complex_double *const *r_array, int ldr, int64_t count);

/** R alone: see batch_geqr_r(). r may be a, stored as a is. */
BATCHQR_API batchqr_status batch_sgeqr_r_strided(batchqr_handle_t handle, int m, int n, float *a, int lda,
                                                 int64_t stride_a, float *r, int ldr, int64_t stride_r,
                                                 int64_t count);
BATCHQR_API batchqr_status batch_dgeqr_r_strided(batchqr_handle_t handle, int m, int n, double *a, int lda,
                                                 int64_t stride_a, double *r, int ldr, int64_t stride_r,
                                                 int64_t count);
BATCHQR_API batchqr_status batch_cgeqr_r_strided(batchqr_handle_t handle, int m, int n,
                                                 batchqr_complex_float *a, int lda, int64_t stride_a,
                                                 batchqr_complex_float *r, int ldr, int64_t stride_r,
                                                 int64_t count);
BATCHQR_API batchqr_status batch_zgeqr_r_strided(batchqr_handle_t handle, int m, int n,
                                                 batchqr_complex_double *a, int lda, int64_t stride_a,
                                                 batchqr_complex_double *r, int ldr, int64_t stride_r,
                                                 int64_t count);

/** The same with arrays of `count` addresses in the backend's memory; r_array may be a_array. */
BATCHQR_API batchqr_status batch_sgeqr_r(batchqr_handle_t handle, int m, int n, float *const *a_array,
                                         int lda, float *const *r_array, int ldr, int64_t count);
BATCHQR_API batchqr_status batch_dgeqr_r(batchqr_handle_t handle, int m, int n, double *const *a_array,
                                         int lda, double *const *r_array, int ldr, int64_t count);
BATCHQR_API batchqr_status batch_cgeqr_r(batchqr_handle_t handle, int m, int n,
                                         batchqr_complex_float *const *a_array, int lda,
                                         batchqr_complex_float *const *r_array, int ldr, int64_t count);
BATCHQR_API batchqr_status batch_zgeqr_r(batchqr_handle_t handle, int m, int n,
                                         batchqr_complex_double *const *a_array, int lda,
                                         batchqr_complex_double *const *r_array, int ldr, int64_t count);

/** k right-hand sides; member i lies at `a + i * stride_a`, its B and X at `c + i * stride_c`; `info` may be
 * NULL. */
BATCHQR_API batchqr_status batch_sgels_strided(batchqr_handle_t handle, batchqr_trans trans, int m, int n,
                                               int k, float *a, int lda, int64_t stride_a, float *c, int ldc,
                                               int64_t stride_c, int *info, int64_t count);
BATCHQR_API batchqr_status batch_dgels_strided(batchqr_handle_t handle, batchqr_trans trans, int m, int n,
                                               int k, double *a, int lda, int64_t stride_a, double *c,
                                               int ldc, int64_t stride_c, int *info, int64_t count);
BATCHQR_API batchqr_status batch_cgels_strided(batchqr_handle_t handle, batchqr_trans trans, int m, int n,
                                               int k, batchqr_complex_float *a, int lda, int64_t stride_a,
                                               batchqr_complex_float *c, int ldc, int64_t stride_c, int *info,
                                               int64_t count);
BATCHQR_API batchqr_status batch_zgels_strided(batchqr_handle_t handle, batchqr_trans trans, int m, int n,
                                               int k, batchqr_complex_double *a, int lda, int64_t stride_a,
                                               batchqr_complex_double *c, int ldc, int64_t stride_c,
                                               int *info, int64_t count);

/** `a_array` and `c_array` are arrays of `count` addresses in the backend's memory. */
BATCHQR_API batchqr_status batch_sgels(batchqr_handle_t handle, batchqr_trans trans, int m, int n, int k,
                                       float *const *a_array, int lda, float *const *c_array, int ldc,
                                       int *info, int64_t count);
BATCHQR_API batchqr_status batch_dgels(batchqr_handle_t handle, batchqr_trans trans, int m, int n, int k,
                                       double *const *a_array, int lda, double *const *c_array, int ldc,
                                       int *info, int64_t count);
BATCHQR_API batchqr_status batch_cgels(batchqr_handle_t handle, batchqr_trans trans, int m, int n, int k,
                                       batchqr_complex_float *const *a_array, int lda,
                                       batchqr_complex_float *const *c_array, int ldc, int *info,
                                       int64_t count);
BATCHQR_API batchqr_status batch_zgels(batchqr_handle_t handle, batchqr_trans trans, int m, int n, int k,
                                       batchqr_complex_double *const *a_array, int lda,
                                       batchqr_complex_double *const *c_array, int ldc, int *info,
                                       int64_t count);

/** Solves op(R) X = B, R n x n, k right-hand sides: see batch_trsm(). `info` may be NULL. */
BATCHQR_API batchqr_status batch_strsm_strided(batchqr_handle_t handle, batchqr_trans trans, int n, int k,
                                               const float *a, int lda, int64_t stride_a, float *c, int ldc,
                                               int64_t stride_c, int *info, int64_t count);
BATCHQR_API batchqr_status batch_dtrsm_strided(batchqr_handle_t handle, batchqr_trans trans, int n, int k,
                                               const double *a, int lda, int64_t stride_a, double *c, int ldc,
                                               int64_t stride_c, int *info, int64_t count);
BATCHQR_API batchqr_status batch_ctrsm_strided(batchqr_handle_t handle, batchqr_trans trans, int n, int k,
                                               const batchqr_complex_float *a, int lda, int64_t stride_a,
                                               batchqr_complex_float *c, int ldc, int64_t stride_c, int *info,
                                               int64_t count);
BATCHQR_API batchqr_status batch_ztrsm_strided(batchqr_handle_t handle, batchqr_trans trans, int n, int k,
                                               const batchqr_complex_double *a, int lda, int64_t stride_a,
                                               batchqr_complex_double *c, int ldc, int64_t stride_c,
                                               int *info, int64_t count);

/** The same with arrays of `count` addresses in the backend's memory. */
BATCHQR_API batchqr_status batch_strsm(batchqr_handle_t handle, batchqr_trans trans, int n, int k,
                                       const float *const *a_array, int lda, float *const *c_array, int ldc,
                                       int *info, int64_t count);
BATCHQR_API batchqr_status batch_dtrsm(batchqr_handle_t handle, batchqr_trans trans, int n, int k,
                                       const double *const *a_array, int lda, double *const *c_array, int ldc,
                                       int *info, int64_t count);
BATCHQR_API batchqr_status batch_ctrsm(batchqr_handle_t handle, batchqr_trans trans, int n, int k,
                                       const batchqr_complex_float *const *a_array, int lda,
                                       batchqr_complex_float *const *c_array, int ldc, int *info,
                                       int64_t count);
BATCHQR_API batchqr_status batch_ztrsm(batchqr_handle_t handle, batchqr_trans trans, int n, int k,
                                       const batchqr_complex_double *const *a_array, int lda,
                                       batchqr_complex_double *const *c_array, int ldc, int *info,
                                       int64_t count);

/** The smallest and the largest |R(j,j)|: see batch_r_range(). `info` may be NULL. */
BATCHQR_API batchqr_status batch_sr_range_strided(batchqr_handle_t handle, int m, int n, const float *a,
                                                  int lda, int64_t stride_a, float *range,
                                                  int64_t stride_range, int *info, int64_t count);
BATCHQR_API batchqr_status batch_dr_range_strided(batchqr_handle_t handle, int m, int n, const double *a,
                                                  int lda, int64_t stride_a, double *range,
                                                  int64_t stride_range, int *info, int64_t count);
BATCHQR_API batchqr_status batch_cr_range_strided(batchqr_handle_t handle, int m, int n,
                                                  const batchqr_complex_float *a, int lda, int64_t stride_a,
                                                  float *range, int64_t stride_range, int *info,
                                                  int64_t count);
BATCHQR_API batchqr_status batch_zr_range_strided(batchqr_handle_t handle, int m, int n,
                                                  const batchqr_complex_double *a, int lda, int64_t stride_a,
                                                  double *range, int64_t stride_range, int *info,
                                                  int64_t count);

/** The same with arrays of `count` addresses in the backend's memory. */
BATCHQR_API batchqr_status batch_sr_range(batchqr_handle_t handle, int m, int n, const float *const *a_array,
                                          int lda, float *const *range_array, int *info, int64_t count);
BATCHQR_API batchqr_status batch_dr_range(batchqr_handle_t handle, int m, int n, const double *const *a_array,
                                          int lda, double *const *range_array, int *info, int64_t count);
BATCHQR_API batchqr_status batch_cr_range(batchqr_handle_t handle, int m, int n,
                                          const batchqr_complex_float *const *a_array, int lda,
                                          float *const *range_array, int *info, int64_t count);
BATCHQR_API batchqr_status batch_zr_range(batchqr_handle_t handle, int m, int n,
                                          const batchqr_complex_double *const *a_array, int lda,
                                          double *const *range_array, int *info, int64_t count);

/** QR with column pivoting, which stops at a rank: see batch_geqp3(). kmax, abstol and reltol of 0: all of
 * it. `jpvt`, `rank` and `info` may be NULL. */
BATCHQR_API batchqr_status batch_sgeqp3_strided(batchqr_handle_t handle, int m, int n, int kmax,
                                                double abstol, double reltol, float *a, int lda,
                                                int64_t stride_a, int *jpvt, int64_t stride_jpvt, float *tau,
                                                int64_t stride_tau, int *rank, int64_t stride_rank, int *info,
                                                int64_t count);
BATCHQR_API batchqr_status batch_dgeqp3_strided(batchqr_handle_t handle, int m, int n, int kmax,
                                                double abstol, double reltol, double *a, int lda,
                                                int64_t stride_a, int *jpvt, int64_t stride_jpvt, double *tau,
                                                int64_t stride_tau, int *rank, int64_t stride_rank, int *info,
                                                int64_t count);
BATCHQR_API batchqr_status batch_cgeqp3_strided(batchqr_handle_t handle, int m, int n, int kmax,
                                                double abstol, double reltol, batchqr_complex_float *a,
                                                int lda, int64_t stride_a, int *jpvt, int64_t stride_jpvt,
                                                batchqr_complex_float *tau, int64_t stride_tau, int *rank,
                                                int64_t stride_rank, int *info, int64_t count);
BATCHQR_API batchqr_status batch_zgeqp3_strided(batchqr_handle_t handle, int m, int n, int kmax,
                                                double abstol, double reltol, batchqr_complex_double *a,
                                                int lda, int64_t stride_a, int *jpvt, int64_t stride_jpvt,
                                                batchqr_complex_double *tau, int64_t stride_tau, int *rank,
                                                int64_t stride_rank, int *info, int64_t count);

/** The same with arrays of `count` addresses in the backend's memory; of `jpvt` and `rank` too. */
BATCHQR_API batchqr_status batch_sgeqp3(batchqr_handle_t handle, int m, int n, int kmax, double abstol,
                                        double reltol, float *const *a_array, int lda, int *const *jpvt_array,
                                        float *const *tau_array, int *const *rank_array, int *info,
                                        int64_t count);
BATCHQR_API batchqr_status batch_dgeqp3(batchqr_handle_t handle, int m, int n, int kmax, double abstol,
                                        double reltol, double *const *a_array, int lda,
                                        int *const *jpvt_array, double *const *tau_array,
                                        int *const *rank_array, int *info, int64_t count);
BATCHQR_API batchqr_status batch_cgeqp3(batchqr_handle_t handle, int m, int n, int kmax, double abstol,
                                        double reltol, batchqr_complex_float *const *a_array, int lda,
                                        int *const *jpvt_array, batchqr_complex_float *const *tau_array,
                                        int *const *rank_array, int *info, int64_t count);
BATCHQR_API batchqr_status batch_zgeqp3(batchqr_handle_t handle, int m, int n, int kmax, double abstol,
                                        double reltol, batchqr_complex_double *const *a_array, int lda,
                                        int *const *jpvt_array, batchqr_complex_double *const *tau_array,
                                        int *const *rank_array, int *info, int64_t count);

/** Least squares of any rank, the shortest solution: see batch_gelsy(). rcond is the batch's reltol. `jpvt`,
 * `rank` and `info` may be NULL. */
BATCHQR_API batchqr_status batch_sgelsy_strided(batchqr_handle_t handle, int m, int n, int k, double rcond,
                                                float *a, int lda, int64_t stride_a, float *c, int ldc,
                                                int64_t stride_c, int *jpvt, int64_t stride_jpvt, int *rank,
                                                int64_t stride_rank, int *info, int64_t count);
BATCHQR_API batchqr_status batch_dgelsy_strided(batchqr_handle_t handle, int m, int n, int k, double rcond,
                                                double *a, int lda, int64_t stride_a, double *c, int ldc,
                                                int64_t stride_c, int *jpvt, int64_t stride_jpvt, int *rank,
                                                int64_t stride_rank, int *info, int64_t count);
BATCHQR_API batchqr_status batch_cgelsy_strided(batchqr_handle_t handle, int m, int n, int k, double rcond,
                                                batchqr_complex_float *a, int lda, int64_t stride_a,
                                                batchqr_complex_float *c, int ldc, int64_t stride_c,
                                                int *jpvt, int64_t stride_jpvt, int *rank,
                                                int64_t stride_rank, int *info, int64_t count);
BATCHQR_API batchqr_status batch_zgelsy_strided(batchqr_handle_t handle, int m, int n, int k, double rcond,
                                                batchqr_complex_double *a, int lda, int64_t stride_a,
                                                batchqr_complex_double *c, int ldc, int64_t stride_c,
                                                int *jpvt, int64_t stride_jpvt, int *rank,
                                                int64_t stride_rank, int *info, int64_t count);

/** The same with arrays of `count` addresses in the backend's memory; of `jpvt` and `rank` too. */
BATCHQR_API batchqr_status batch_sgelsy(batchqr_handle_t handle, int m, int n, int k, double rcond,
                                        float *const *a_array, int lda, float *const *c_array, int ldc,
                                        int *const *jpvt_array, int *const *rank_array, int *info,
                                        int64_t count);
BATCHQR_API batchqr_status batch_dgelsy(batchqr_handle_t handle, int m, int n, int k, double rcond,
                                        double *const *a_array, int lda, double *const *c_array, int ldc,
                                        int *const *jpvt_array, int *const *rank_array, int *info,
                                        int64_t count);
BATCHQR_API batchqr_status batch_cgelsy(batchqr_handle_t handle, int m, int n, int k, double rcond,
                                        batchqr_complex_float *const *a_array, int lda,
                                        batchqr_complex_float *const *c_array, int ldc,
                                        int *const *jpvt_array, int *const *rank_array, int *info,
                                        int64_t count);
BATCHQR_API batchqr_status batch_zgelsy(batchqr_handle_t handle, int m, int n, int k, double rcond,
                                        batchqr_complex_double *const *a_array, int lda,
                                        batchqr_complex_double *const *c_array, int ldc,
                                        int *const *jpvt_array, int *const *rank_array, int *info,
                                        int64_t count);

/** The pseudoinverse, n x m, its columns times w: see batch_pinv(). rcond is the batch's reltol. `w`, `rank`
 * and `info` may be NULL. */
BATCHQR_API batchqr_status batch_spinv_strided(batchqr_handle_t handle, int m, int n, double rcond, float *a,
                                               int lda, int64_t stride_a, float *c, int ldc, int64_t stride_c,
                                               const float *w, int64_t stride_w, int *rank,
                                               int64_t stride_rank, int *info, int64_t count);
BATCHQR_API batchqr_status batch_dpinv_strided(batchqr_handle_t handle, int m, int n, double rcond, double *a,
                                               int lda, int64_t stride_a, double *c, int ldc,
                                               int64_t stride_c, const double *w, int64_t stride_w, int *rank,
                                               int64_t stride_rank, int *info, int64_t count);
BATCHQR_API batchqr_status batch_cpinv_strided(batchqr_handle_t handle, int m, int n, double rcond,
                                               batchqr_complex_float *a, int lda, int64_t stride_a,
                                               batchqr_complex_float *c, int ldc, int64_t stride_c,
                                               const float *w, int64_t stride_w, int *rank,
                                               int64_t stride_rank, int *info, int64_t count);
BATCHQR_API batchqr_status batch_zpinv_strided(batchqr_handle_t handle, int m, int n, double rcond,
                                               batchqr_complex_double *a, int lda, int64_t stride_a,
                                               batchqr_complex_double *c, int ldc, int64_t stride_c,
                                               const double *w, int64_t stride_w, int *rank,
                                               int64_t stride_rank, int *info, int64_t count);

/** The same with arrays of `count` addresses in the backend's memory; of `w` and `rank` too. */
BATCHQR_API batchqr_status batch_spinv(batchqr_handle_t handle, int m, int n, double rcond,
                                       float *const *a_array, int lda, float *const *c_array, int ldc,
                                       const float *const *w_array, int *const *rank_array, int *info,
                                       int64_t count);
BATCHQR_API batchqr_status batch_dpinv(batchqr_handle_t handle, int m, int n, double rcond,
                                       double *const *a_array, int lda, double *const *c_array, int ldc,
                                       const double *const *w_array, int *const *rank_array, int *info,
                                       int64_t count);
BATCHQR_API batchqr_status batch_cpinv(batchqr_handle_t handle, int m, int n, double rcond,
                                       batchqr_complex_float *const *a_array, int lda,
                                       batchqr_complex_float *const *c_array, int ldc,
                                       const float *const *w_array, int *const *rank_array, int *info,
                                       int64_t count);
BATCHQR_API batchqr_status batch_zpinv(batchqr_handle_t handle, int m, int n, double rcond,
                                       batchqr_complex_double *const *a_array, int lda,
                                       batchqr_complex_double *const *c_array, int ldc,
                                       const double *const *w_array, int *const *rank_array, int *info,
                                       int64_t count);

/** Thin singular value decomposition: see batch_gesvd(). `u`, `v` and `info` may be NULL, with an ldu or ldv
 * of 0; u or v may be a, stored as a is. */
BATCHQR_API batchqr_status batch_sgesvd_strided(batchqr_handle_t handle, int m, int n, float *a, int lda,
                                                int64_t stride_a, float *s, int64_t stride_s, float *u,
                                                int ldu, int64_t stride_u, float *v, int ldv,
                                                int64_t stride_v, int *info, int64_t count);
BATCHQR_API batchqr_status batch_dgesvd_strided(batchqr_handle_t handle, int m, int n, double *a, int lda,
                                                int64_t stride_a, double *s, int64_t stride_s, double *u,
                                                int ldu, int64_t stride_u, double *v, int ldv,
                                                int64_t stride_v, int *info, int64_t count);
BATCHQR_API batchqr_status batch_cgesvd_strided(batchqr_handle_t handle, int m, int n,
                                                batchqr_complex_float *a, int lda, int64_t stride_a, float *s,
                                                int64_t stride_s, batchqr_complex_float *u, int ldu,
                                                int64_t stride_u, batchqr_complex_float *v, int ldv,
                                                int64_t stride_v, int *info, int64_t count);
BATCHQR_API batchqr_status batch_zgesvd_strided(batchqr_handle_t handle, int m, int n,
                                                batchqr_complex_double *a, int lda, int64_t stride_a,
                                                double *s, int64_t stride_s, batchqr_complex_double *u,
                                                int ldu, int64_t stride_u, batchqr_complex_double *v, int ldv,
                                                int64_t stride_v, int *info, int64_t count);

/** The same with arrays of `count` addresses in the backend's memory. */
BATCHQR_API batchqr_status batch_sgesvd(batchqr_handle_t handle, int m, int n, float *const *a_array, int lda,
                                        float *const *s_array, float *const *u_array, int ldu,
                                        float *const *v_array, int ldv, int *info, int64_t count);
BATCHQR_API batchqr_status batch_dgesvd(batchqr_handle_t handle, int m, int n, double *const *a_array,
                                        int lda, double *const *s_array, double *const *u_array, int ldu,
                                        double *const *v_array, int ldv, int *info, int64_t count);
BATCHQR_API batchqr_status batch_cgesvd(batchqr_handle_t handle, int m, int n,
                                        batchqr_complex_float *const *a_array, int lda, float *const *s_array,
                                        batchqr_complex_float *const *u_array, int ldu,
                                        batchqr_complex_float *const *v_array, int ldv, int *info,
                                        int64_t count);
BATCHQR_API batchqr_status batch_zgesvd(batchqr_handle_t handle, int m, int n,
                                        batchqr_complex_double *const *a_array, int lda,
                                        double *const *s_array, batchqr_complex_double *const *u_array,
                                        int ldu, batchqr_complex_double *const *v_array, int ldv, int *info,
                                        int64_t count);

/** The largest singular values: see batch_gesvdr(). `info` may be NULL. */
BATCHQR_API batchqr_status batch_sgesvdr_strided(batchqr_handle_t handle, int m, int n, int k,
                                                 int oversampling, int power_steps, uint64_t seed,
                                                 const float *a, int lda, int64_t stride_a, float *s,
                                                 int64_t stride_s, float *u, int ldu, int64_t stride_u,
                                                 float *v, int ldv, int64_t stride_v, int *info,
                                                 int64_t count);
BATCHQR_API batchqr_status batch_dgesvdr_strided(batchqr_handle_t handle, int m, int n, int k,
                                                 int oversampling, int power_steps, uint64_t seed,
                                                 const double *a, int lda, int64_t stride_a, double *s,
                                                 int64_t stride_s, double *u, int ldu, int64_t stride_u,
                                                 double *v, int ldv, int64_t stride_v, int *info,
                                                 int64_t count);
BATCHQR_API batchqr_status batch_cgesvdr_strided(batchqr_handle_t handle, int m, int n, int k,
                                                 int oversampling, int power_steps, uint64_t seed,
                                                 const batchqr_complex_float *a, int lda, int64_t stride_a,
                                                 float *s, int64_t stride_s, batchqr_complex_float *u,
                                                 int ldu, int64_t stride_u, batchqr_complex_float *v, int ldv,
                                                 int64_t stride_v, int *info, int64_t count);
BATCHQR_API batchqr_status batch_zgesvdr_strided(batchqr_handle_t handle, int m, int n, int k,
                                                 int oversampling, int power_steps, uint64_t seed,
                                                 const batchqr_complex_double *a, int lda, int64_t stride_a,
                                                 double *s, int64_t stride_s, batchqr_complex_double *u,
                                                 int ldu, int64_t stride_u, batchqr_complex_double *v,
                                                 int ldv, int64_t stride_v, int *info, int64_t count);

/** The same with arrays of `count` addresses in the backend's memory. */
BATCHQR_API batchqr_status batch_sgesvdr(batchqr_handle_t handle, int m, int n, int k, int oversampling,
                                         int power_steps, uint64_t seed, const float *const *a_array, int lda,
                                         float *const *s_array, float *const *u_array, int ldu,
                                         float *const *v_array, int ldv, int *info, int64_t count);
BATCHQR_API batchqr_status batch_dgesvdr(batchqr_handle_t handle, int m, int n, int k, int oversampling,
                                         int power_steps, uint64_t seed, const double *const *a_array,
                                         int lda, double *const *s_array, double *const *u_array, int ldu,
                                         double *const *v_array, int ldv, int *info, int64_t count);
BATCHQR_API batchqr_status batch_cgesvdr(batchqr_handle_t handle, int m, int n, int k, int oversampling,
                                         int power_steps, uint64_t seed,
                                         const batchqr_complex_float *const *a_array, int lda,
                                         float *const *s_array, batchqr_complex_float *const *u_array,
                                         int ldu, batchqr_complex_float *const *v_array, int ldv, int *info,
                                         int64_t count);
BATCHQR_API batchqr_status batch_zgesvdr(batchqr_handle_t handle, int m, int n, int k, int oversampling,
                                         int power_steps, uint64_t seed,
                                         const batchqr_complex_double *const *a_array, int lda,
                                         double *const *s_array, batchqr_complex_double *const *u_array,
                                         int ldu, batchqr_complex_double *const *v_array, int ldv, int *info,
                                         int64_t count);

/** Eigenvalues and eigenvectors: see batch_syevd(). `v`, with an ldv of 0, and `info` may be NULL; v may be
 * a, stored as a is. */
BATCHQR_API batchqr_status batch_ssyevd_strided(batchqr_handle_t handle, batchqr_uplo uplo, int n, float *a,
                                                int lda, int64_t stride_a, float *w, int64_t stride_w,
                                                float *v, int ldv, int64_t stride_v, int *info,
                                                int64_t count);
BATCHQR_API batchqr_status batch_dsyevd_strided(batchqr_handle_t handle, batchqr_uplo uplo, int n, double *a,
                                                int lda, int64_t stride_a, double *w, int64_t stride_w,
                                                double *v, int ldv, int64_t stride_v, int *info,
                                                int64_t count);
BATCHQR_API batchqr_status batch_cheevd_strided(batchqr_handle_t handle, batchqr_uplo uplo, int n,
                                                batchqr_complex_float *a, int lda, int64_t stride_a, float *w,
                                                int64_t stride_w, batchqr_complex_float *v, int ldv,
                                                int64_t stride_v, int *info, int64_t count);
BATCHQR_API batchqr_status batch_zheevd_strided(batchqr_handle_t handle, batchqr_uplo uplo, int n,
                                                batchqr_complex_double *a, int lda, int64_t stride_a,
                                                double *w, int64_t stride_w, batchqr_complex_double *v,
                                                int ldv, int64_t stride_v, int *info, int64_t count);

/** The same with arrays of `count` addresses in the backend's memory. */
BATCHQR_API batchqr_status batch_ssyevd(batchqr_handle_t handle, batchqr_uplo uplo, int n,
                                        float *const *a_array, int lda, float *const *w_array,
                                        float *const *v_array, int ldv, int *info, int64_t count);
BATCHQR_API batchqr_status batch_dsyevd(batchqr_handle_t handle, batchqr_uplo uplo, int n,
                                        double *const *a_array, int lda, double *const *w_array,
                                        double *const *v_array, int ldv, int *info, int64_t count);
BATCHQR_API batchqr_status batch_cheevd(batchqr_handle_t handle, batchqr_uplo uplo, int n,
                                        batchqr_complex_float *const *a_array, int lda, float *const *w_array,
                                        batchqr_complex_float *const *v_array, int ldv, int *info,
                                        int64_t count);
BATCHQR_API batchqr_status batch_zheevd(batchqr_handle_t handle, batchqr_uplo uplo, int n,
                                        batchqr_complex_double *const *a_array, int lda,
                                        double *const *w_array, batchqr_complex_double *const *v_array,
                                        int ldv, int *info, int64_t count);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
