/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the API share: a handle for each test, memory for its operands, what calls are expected
 * to say, and problems of which every operand matters. */
#ifndef BQR_TESTS_API_H
#define BQR_TESTS_API_H

#include "suite.h"

extern batchqr_backend backend;
extern batchqr_handle_t handle;
extern char *pool;                                          /* backend memory that operands may point to */
enum { POOL_BYTES = 1 << 21, POOL_PLACE = POOL_BYTES / 4 }; /* a place: for 24 members of `tall` */

Suite *api_suite(const char *name);
/* A case of the suite whose tests begin with a new handle and a pool of zeros. */
TCase *api_case(Suite *suite, const char *name);

/* text: what batchqr_error_message() must be; or NULL. */
void expect(batchqr_status status, batchqr_status expected, const char *text);
void expect_success(batchqr_status status);

/* Two members of 4 x 3, and two of 300 x 9: more than a single launch serves, so that their QR is done
 * in steps, which need workspace. */
extern const batchqr_batch small, tall;

/* --- problems of all types, of a size that QR is done in steps for */

enum { M = 300, N = 40, COUNT = 3, LDA = 301, STRIDE = 12060, STRIDE_TAU = 41 };

typedef struct operand_set {
  size_t bytes, tau_bytes;
  char *a, *q, *r, *tau;          /* in the backend's memory */
  char *a0, *ah, *qh, *rh, *tauh; /* on the host; a0 is A */
} operand_set;

batchqr_batch batch_of(batchqr_type type);
/* The same members, of other sizes each: of most steps there are several groups. */
batchqr_batch mixed_of(batchqr_type type);
operand_set make_set(batchqr_type type);
operand_set make_set_of(batchqr_type type, uint64_t seed); /* another A for each seed */
void download(operand_set *s);
void free_set(operand_set *s);

#endif
