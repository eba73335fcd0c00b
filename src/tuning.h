/* SPDX-License-Identifier: BSD-3-Clause */
/* Tuning tables: which family and variant serve which problems best, as measured.
 *
 *     batchqr-tuning 1
 *     # op  types m     n    count  family     variant             gain
 *     geqrf d     1..32 1..8 1..    geqrf_warp rows32.cols8.lanes4  2.9
 *
 * `#` starts a comment. The first line that holds anything else names the format; each of the others is a
 * rule. A range is `a..b`, `a..` or `a`, ends included; types are letters of sdcz; gain is the measured
 * speed-up over the next best choice, a positive decimal number. The first rule whose ranges hold the problem
 * and whose variant supports it wins. `geqrf.panel` and `geqrf.leaf` in place of an operation
 * are the children of families that drive others, see bqr_role. `steps -` in place of a family and a variant
 * leaves the problem of qr, geqr_r or gels to several families, one for each step. One bad line rejects the
 * whole table. A rule for a family that the build's option `families` left out is passed over. */
#ifndef BQR_SRC_TUNING_H
#define BQR_SRC_TUNING_H

#include "error.h"
#include "registry.h"

typedef struct bqr_interval {
  int64_t first, last;
} bqr_interval;

typedef struct bqr_rule {
  int line; /* in the table, from 1 */
  int op;
  bqr_role role;
  unsigned types;
  bqr_interval m, n, count;
  const bqr_family *family; /* NULL: in steps */
  int variant;
  double gain;
} bqr_rule;

typedef struct bqr_table {
  char *name; /* "sm_90.tune", without directories */
  int sm;     /* the architecture that it was measured on; 0: not known */
  bqr_rule *rules;
  int num_rules;
} bqr_table;

/* Reads a table's text. `path` is for messages: "path:line: what is wrong". */
batchqr_status bqr_table_parse(const bqr_registry *registry, const char *path, const char *text,
                               size_t length, bqr_table **table, bqr_error *error);
batchqr_status bqr_table_read(const bqr_registry *registry, const char *path, bqr_table **table,
                              bqr_error *error);
/* NULL is allowed. */
void bqr_table_free(bqr_table *table);

bool bqr_interval_holds(bqr_interval interval, int64_t value);

/* The built-in tables, in ascending order of sm. */
int bqr_num_builtin_tables(void);
int bqr_builtin_table_sm(int i);
const char *bqr_builtin_table_name(int i);
const char *bqr_builtin_table_text(int i);

/* Index of the table for an architecture: its own, else that of the nearest older one, else -1. `sms`
 * ascends. */
int bqr_nearest_table(const int *sms, int count, int sm);
/* The table built in for an architecture; *table is NULL where there is none. */
batchqr_status bqr_table_builtin(const bqr_registry *registry, int sm, bqr_table **table, bqr_error *error);
/* The table of children, which is built in for all architectures. */
batchqr_status bqr_table_children(const bqr_registry *registry, bqr_table **table, bqr_error *error);

#endif
