/* SPDX-License-Identifier: BSD-3-Clause */
/* A planner with made-up families on a made-up device: no GPU, and nothing computed. */
#ifndef BQR_TESTS_FAKES_H
#define BQR_TESTS_FAKES_H

#include "plan.h"
#include "suite.h"

/* A variant serves m <= rows, n <= cols, m * n <= most, where these are not 0. Workspace: of orgqr_any 10
 * bytes for each row of the largest member, of geqrf_huge more than can be counted, of the others none. */
extern bqr_family geqrf_new; /* n8 up to 32 x 8, n16 up to 64 x 16; from sm_90 on */
extern bqr_family geqrf_any, geqrf_area, geqrf_huge, geqrf_emulated, geqrf_half;
extern bqr_family orgqr_any, ormqr_any, copy_r_any, copy_any, transpose_any, trsm_any, r_range_any, sort_any;
extern bqr_family gesvd_any, turn_any, syevd_any, select_any; /* not in use unless a test asks for them */
extern bqr_family qr_tiny;                                    /* up to 4 x 4 */

/* Those that are in use unless a test has others; and the names of none, for registries. */
extern const bqr_registry fake_usual;
extern const bqr_registry fake_sorting; /* what sorts members, and some of the others */
extern const char *const fake_none[];

enum { FAKE_MOST_LAUNCHES = 64 };
extern struct fake {
  bqr_device device;
  bqr_planner planner;
  bqr_forced forced[BQR_NUM_FORCED];
  bqr_error error;
  struct {
    bqr_problem problem;
    bqr_args args;
    const bqr_variant *variant;
  } launched[FAKE_MOST_LAUNCHES]; /* what launches were given */
  int num_launched, num_prepared;
  batchqr_status launch_status; /* what they return */
} fake;

/* A case whose tests begin with the usual families, an sm_90 GPU that is not there, and no table. */
TCase *fake_case(Suite *suite, const char *name);
/* The same families on the CPU, where plans can be executed. */
void fake_move_to_cpu(void);

batchqr_batch uniform(int m, int n, int64_t count);
batchqr_batch host_sizes(const int *m, const int *n, int64_t count);

batchqr_plan_t plan_of(batchqr_op op, const batchqr_batch *batch);
/* That there is no plan, and what is said then; what the plan's description is. */
void expect_failure(batchqr_op op, const batchqr_batch *batch, batchqr_status status, const char *text);
void expect_text(batchqr_op op, const batchqr_batch *batch, const char *text);
/* That a group's members are these, in this order. */
void expect_members(batchqr_plan_t plan, int group, const int *members, int count);

/* A tuning table for that architecture, called t.tune. */
void set_table(const char *text, int sm);
void drop_table(void);

/* Prepares and launches. `operands` are addresses to recognize; nothing is read there. */
void execute(batchqr_plan_t plan, const batchqr_operands *operands, void *space);
extern const batchqr_operands operands;
extern char space[1024];

#endif
