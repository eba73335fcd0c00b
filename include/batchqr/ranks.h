/* SPDX-License-Identifier: BSD-3-Clause */
/** @file ranks.h
 * Several GPUs, or several processes on CPUs: batches dealt to ranks, tall matrices whose rows are spread
 * over them, and large matrices whose columns are.
 *
 * A rank is a thread or a process with a handle of its own, mostly one for each GPU. What carries data
 * between ranks is a #batchqr_communicator, which libbatchqr_nccl makes of an `ncclComm_t` (batchqr/nccl.h)
 * and libbatchqr_mpi of an `MPI_Comm` (batchqr/mpi.h). The library itself is linked with neither, and a
 * program may fill in a communicator of its own.
 *
 * **Collective calls.** Where this page calls a function collective, all ranks of the communicator call it,
 * in the same order. If one of them cannot do its part, or if they disagree on what is to be done, every rank
 * gets an error and none waits for ever: the ranks first agree on the problem, and what a rank waits for has
 * a time limit, see batchqr/nccl.h and batchqr/mpi.h.
 */
#ifndef BATCHQR_RANKS_H
#define BATCHQR_RANKS_H

#include <batchqr/batchqr.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup ranks Several ranks
 * @{ */

/** Carries data between ranks. The addresses are of the memory of `backend`; what is enqueued is done in the
 * order of the stream. The functions return #BATCHQR_SUCCESS or an error that `message` explains. */
typedef struct batchqr_communicator {
  int rank;                /**< of the caller, 0 .. size-1 */
  int size;                /**< ranks */
  batchqr_backend backend; /**< whose memory it carries: CPU, CUDA, or AUTO for either */
  int device;              /**< CUDA device whose memory it carries; -1: that of any */
  void *context;           /**< given to each function */
  /** Enqueues: `receive` gets `bytes` bytes from each rank, in the order of ranks. */
  batchqr_status (*all_gather)(void *context, const void *send, void *receive, size_t bytes,
                               batchqr_stream stream);
  /** Enqueues: all get what `root` has. */
  batchqr_status (*broadcast)(void *context, void *data, size_t bytes, int root, batchqr_stream stream);
  /** Enqueues: to another rank, which receives as many bytes. */
  batchqr_status (*send)(void *context, const void *data, size_t bytes, int to, batchqr_stream stream);
  /** Enqueues: from another rank. */
  batchqr_status (*receive)(void *context, void *data, size_t bytes, int from, batchqr_stream stream);
  /** The same as all_gather, of host memory, and complete on return; with a time limit. */
  batchqr_status (*agree)(void *context, const void *mine, void *all, size_t bytes);
  /** Waits until all is done that the stream has been given; with a time limit, and with an eye on ranks that
   * fail. */
  batchqr_status (*wait)(void *context, batchqr_stream stream);
  /** What was wrong last. */
  const char *(*message)(void *context);
  /** Releases what the layer made; not the user's communicator below it. */
  void (*destroy)(struct batchqr_communicator *communicator);
  void *reserved[4]; /**< NULL */
} batchqr_communicator;

/** Releases a communicator; NULL is allowed. For MPI it is collective. */
static inline void batchqr_communicator_destroy(batchqr_communicator *communicator) {
  if (communicator && communicator->destroy) communicator->destroy(communicator);
}

/** Waits until the stream has reached its end, and for no longer than the communicator's time limit:
 * #BATCHQR_RANK_ERROR where another rank has failed meanwhile. A communicator that has failed is of no
 * further use, and an `ncclComm_t` below it has to be aborted by its owner.
 * @param handle        whose stream is meant, and who gets the error's text
 * @param communicator  what the stream's work goes over */
BATCHQR_API batchqr_status batchqr_wait(batchqr_handle_t handle, const batchqr_communicator *communicator);

/** Deals a batch to ranks so that each has about as much to do, by the time that the members are predicted to
 * take. A function of its arguments and of the handle's kind of device: ranks that call it with the same
 * batch get the same answer without a word between them. Members of one size are dealt in contiguous parts.
 * @param handle  on whose backend the batch is to be worked on
 * @param op      what is to be done
 * @param batch   sizes of all members: uniform or in host arrays; storage is not looked at
 * @param size    ranks, > 0
 * @param[out] rank_of  `count` ints: the rank that gets member k
 * @param[out] times  `size` numbers, or NULL: the seconds that each rank is predicted to take; good for
 *                comparing ranks, not for a clock */
BATCHQR_API batchqr_status batchqr_split(batchqr_handle_t handle, batchqr_op op, const batchqr_batch *batch,
                                         int size, int *rank_of, double *times);

/** A routine on matrices whose rows are spread over ranks: what it does, planned. */
typedef struct batchqr_tsqr *batchqr_tsqr_t;

/** Plans a routine on matrices whose rows are spread over ranks. Collective; allocates and waits.
 *
 * Rank 0 has the first rows, rank 1 those that follow, and so on; a rank may have any number of rows, also
 * none. A routine then means what it means for the whole matrix, with these operands: of matrices with m
 * rows (`a`, `u`, Q of QR, C of ORMQR) each rank has its own rows; all else is the same on all ranks, bitwise
 * (R, tau, singular values, V, `info`; X of GELS and its norms).
 *
 * | operation | on each rank | the same on all |
 * | --- | --- | --- |
 * | GEQR_R | a, destroyed | R |
 * | GEQRF | a: its rows of LAPACK's format, R on top of the first ranks' | tau |
 * | ORGQR | a: its rows of V, on exit of Q | tau |
 * | ORMQR, from the left | a: its rows of V; C, its rows | tau |
 * | QR | a, destroyed unless it is Q; Q | R |
 * | GELS, A not transposed and not wide | a, destroyed; c: max(m,n) x k, B in its m rows | X in c's first n
 *   rows, norms |
 * | GESVD | a, destroyed; U | s, V, rank |
 *
 * Method: TSQR. Each rank factors its own rows; one all-gather brings every R to all ranks, which factor them
 * on top of one another, all alike. LAPACK's format is that of the matrix that has the first n rows of A and
 * then every R: its reflectors are A's but for what the ranks' own Q are multiplied by. So they are found
 * without a division by R, whatever its condition.
 *
 * @param handle        of this rank. Its options, compute mode and tuning table have to be those of the other
 *                      ranks, its GPU of the same kind
 * @param communicator  stays the caller's, and must outlive the plan; carries the memory of the handle's
 *                      device
 * @param op            see the table
 * @param batch         what this rank has, uniform and strided: m counts its own rows. `type`, n, k, count
 * and what says what to do are the same on all ranks. keep_a must be 0, row strides 1
 * @param[out] plan     NULL after an error
 * @retval BATCHQR_RANK_ERROR  the ranks disagree, or another one has failed: the text says which and why */
BATCHQR_API batchqr_status batchqr_tsqr_create(batchqr_handle_t handle,
                                               const batchqr_communicator *communicator, batchqr_op op,
                                               const batchqr_batch *batch, batchqr_tsqr_t *plan);

/** Enqueues the planned work on the handle's stream. Collective. With NCCL it neither allocates nor waits,
 * and can be captured; MPI's calls wait for the stream. A rank whose call fails for its operands takes part
 * with NaNs, so that the others find #BATCHQR_INFO_NONFINITE in `info`.
 * @param handle    the one that the plan was made with
 * @param plan      what to do
 * @param operands  as the table says; `info`: `count` ints, the same on all ranks, or NULL */
BATCHQR_API batchqr_status batchqr_tsqr_execute(batchqr_handle_t handle, batchqr_tsqr_t plan,
                                                const batchqr_operands *operands);

/** Bytes of the backend's memory that the plan keeps: most of them a copy of the rank's own rows where Q is
 * formed in place of A. */
BATCHQR_API size_t batchqr_tsqr_memory(batchqr_tsqr_t plan);

/** The plans of its steps, as batchqr_plan_describe() prints them. Lives as long as the plan. */
BATCHQR_API const char *batchqr_tsqr_describe(batchqr_tsqr_t plan);

/** Releases a plan; its enqueued work must be done. NULL is allowed. Not collective. After an execute that
 * the communicator failed in, its memory is left to what may still be sent to it. */
BATCHQR_API void batchqr_tsqr_destroy(batchqr_tsqr_t plan);

/** A routine on one matrix whose columns are dealt to ranks in blocks: what it does, planned. */
typedef struct batchqr_columns *batchqr_columns_t;

/** Columns that a rank has of a matrix of n columns in blocks of nb. Block b = j / nb, of columns b nb to
 * b nb + nb - 1 or to the last one, belongs to rank b % size, which has its blocks one behind the other:
 * column j is its column b / size * nb + j % nb. As ScaLAPACK's NUMROC for one row of processes; 0 for
 * arguments without a meaning.
 * @param n     columns of the whole matrix
 * @param nb    columns of a block
 * @param rank, size  which of how many ranks */
BATCHQR_API int batchqr_columns_count(int n, int nb, int rank, int size);

/** Plans a routine on one matrix whose columns are dealt to ranks in blocks. Collective; allocates and waits.
 *
 * A rank stores its own block columns of A, all their rows, batchqr_columns_count() columns in all, and so
 * may A be larger than the memory of any rank. Of C each rank has columns of its own, as many as it likes,
 * also none, all their rows: the same C on all ranks gives all of them the result, a part of a large C to
 * each gives each its part.
 *
 * | operation | A | C | the same on all |
 * | --- | --- | --- | --- |
 * | GEQRF | m x n, in and out, LAPACK's format | | tau, min(m,n) elements; info |
 * | ORMQR, from the left | m x k, V as GEQRF leaves it | m x own n, in and out | tau, min(m,k) elements, in |
 * | GELS, A not transposed, m >= n | m x n, then as of GEQRF | m x own k: B, then X above | info |
 *
 * `info` of GEQRF and GELS is an int for each block of min(m,n) columns: 0; j > 0: R's diagonal is zero in
 * the block's column j, counted from 1, and X is undefined; #BATCHQR_INFO_NONFINITE: there is a NaN or an Inf
 * in the block, and then NaNs in it, in all blocks behind it, and in C. ORMQR does not write it. `norms` of
 * GELS are those of the rank's own right-hand sides.
 *
 * Method: right-looking, LAPACK's xGEQRF on block columns; the factored block and tau go to all ranks by a
 * broadcast, and the next block is updated, factored and sent beside the update of all others. GELS applies
 * Q^H to C meanwhile, and solves with R's block columns, which are broadcast from the last to the first.
 * Results are bitwise the same from run to run; on another number of ranks, or with another nb, they differ
 * by rounding.
 *
 * @param handle        of this rank. Its options and compute mode have to be those of the other ranks, its
 * GPU of the same kind
 * @param communicator  stays the caller's, and must outlive the plan; carries the memory of the handle's
 *                      device
 * @param op            see the table
 * @param batch         uniform and strided, count 1: sizes of A are those of the whole matrix, columns of C
 * this rank's own. `type`, m, trans and the columns of A are the same on all ranks. keep_a must be 0, row
 * strides 1
 * @param nb            columns of a block, > 0, the same on all ranks; 512 is good on GPUs, 64 on CPUs
 * @param[out] plan     NULL after an error
 * @retval BATCHQR_RANK_ERROR  the ranks disagree, or another one has failed: the text says which and why */
BATCHQR_API batchqr_status batchqr_columns_create(batchqr_handle_t handle,
                                                  const batchqr_communicator *communicator, batchqr_op op,
                                                  const batchqr_batch *batch, int nb,
                                                  batchqr_columns_t *plan);

/** Enqueues the planned work on the handle's stream and one of the plan's own. Collective. With NCCL it
 * neither allocates nor waits, and can be captured; MPI's calls wait for what they send. A rank whose call
 * fails for its operands takes part with NaNs in place of its blocks, so that the others find
 * #BATCHQR_INFO_NONFINITE.
 * @param handle    the one that the plan was made with
 * @param plan      what to do
 * @param operands  as the table says; `info` and `norms` may be NULL */
BATCHQR_API batchqr_status batchqr_columns_execute(batchqr_handle_t handle, batchqr_columns_t plan,
                                                   const batchqr_operands *operands);

/** Bytes of the backend's memory that the plan keeps: two blocks of m x nb, and workspace for the update of
 * the rank's own columns, 2^29 elements at once at most. */
BATCHQR_API size_t batchqr_columns_memory(batchqr_columns_t plan);

/** What the plan launches, a line for each step and choice. Lives as long as the plan. */
BATCHQR_API const char *batchqr_columns_describe(batchqr_columns_t plan);

/** Releases a plan; its enqueued work must be done. NULL is allowed. Not collective. After an execute that
 * the communicator failed in, its memory is left to what may still be sent to it. */
BATCHQR_API void batchqr_columns_destroy(batchqr_columns_t plan);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
