/* SPDX-License-Identifier: BSD-3-Clause */
/* What the benchmark's files share: cases, the machine they run on, implementations, rows of results. What an
 * operation reads and writes is what its row says; how it is judged and counted is the laboratory's. */
#ifndef BQR_BENCH_H
#define BQR_BENCH_H

#include "input.h"
#include "inspect.h"
#include "memory.h"
#include "routines.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_TEXT = 512 }; /* room for an error message or a joined name */

/* ---- cases.c: what is measured ---- */

typedef struct bench_case {
  const bqr_operation *operation;
  batchqr_compute compute;
  batchqr_type type;
  int m, n;
  int64_t batch;
  bool values; /* without the vectors that the operation could find, as `syevd_values` */
} bench_case;

typedef struct bench_cases {
  const bqr_operation *const *operations; /* what can be measured, and steps, which cannot; ended by NULL */
  bench_case *at;
  int count, room;
} bench_cases;

/* Each appends to `cases`, or writes to `error` what is wrong, with the word and its value. */
bool bench_cases_line(bench_cases *cases, const char *line, char error[BENCH_TEXT]);
bool bench_cases_file(bench_cases *cases, const char *path, char error[BENCH_TEXT]);
bool bench_cases_sweep(bench_cases *cases, const char *sweep, char error[BENCH_TEXT]);
void bench_cases_append(bench_cases *cases, const bench_case *what);
void bench_cases_free(bench_cases *cases);

const char *bench_compute_name(batchqr_compute compute);

/* Its operation's name, or "syevd_values". */
const char *bench_routine_name(const bench_case *what, char text[BENCH_TEXT]);
batchqr_op bench_op(const bench_case *what);
/* A member: dense operands, one right-hand side, as many reflectors as fit, from the left and
 * conjugate-transposed. */
lab_member bench_member(const bench_case *what);

double bench_flops(const bench_case *what); /* LAPACK's operation counts, all members; 0: not counted */
double bench_bytes(const bench_case *what); /* each matrix read and written once, all members */

/* ---- random.c: cases that nobody chose ---- */

/* As many as asked for, in pairs: sizes, number of members, type and routine of the first are drawn, and the
 * second is a little larger. The same for the same seed. */
void bench_cases_random(bench_cases *cases, int seed, int count);

/* ---- target_host.c, target_cuda.c: where it is measured ---- */

/* One measured call: `restore` puts the input back, outside the timing. Both return false on failure. */
typedef struct bench_work {
  bool (*restore)(void *context);
  bool (*run)(void *context);
  void *context;
} bench_work;

typedef struct bench_target bench_target;

/* The clock of a backend. */
typedef struct bench_clock {
  double (*time)(bench_target *, const bench_work *);  /* milliseconds of one run; < 0: it failed */
  void *(*record)(bench_target *, const bench_work *); /* a CUDA graph of one run; NULL: not possible */
  double (*replay)(bench_target *, void *graph);       /* milliseconds of its run */
  void (*forget)(bench_target *, void *graph);
  void (*close)(bench_target *);
} bench_clock;

struct bench_target {
  const bench_clock *clock;
  memory_space space; /* its memory, and the stream of all that is measured */
  const bqr_device *device;
  batchqr_handle_t handle;
  bool cold;          /* empty the cache before each run */
  bool host_time;     /* time what a call takes on the host, until it returns */
  void *cache_filler; /* written over for that */
  size_t cache_bytes;
  char cuda[16];  /* version of the runtime, "none" on the CPU */
  char name[128]; /* of the device */
  void *own;      /* the backend's */
};

typedef struct bench_target_options {
  batchqr_backend backend;
  int device;
  int threads;
  bool cold, host_time, positive;
  const char *tuning_file;
} bench_target_options;

double bench_now_ms(void); /* the monotonic clock */
bool bench_target_open(bench_target *target, const bench_target_options *options, char error[BENCH_TEXT]);
void bench_target_close(bench_target *target);
/* Whether a CUDA device can be used, and if not, why. */
bool bench_cuda_present(char why[BENCH_TEXT]);
void bench_host_open(bench_target *target);
void bench_cuda_open(bench_target *target);
bool bench_cuda_select(int device, char error[BENCH_TEXT]);
/* ---- options.c: what is in the matrices ---- */

typedef struct bench_input {
  input_kind kind;
  double condition; /* the largest over the smallest singular value */
  char text[32];    /* as it is asked for */
} bench_input;

/* ---- job.c: the operands of one case ---- */

/* Members lie densely, without gaps. An operand that is read is kept in `before`; it is restored to `now`
 * before each run, unless nothing is written to it: then both are the same. An operand that may be A, and has
 * as many rows, is A (the Q of qr). Of optional
 * operands there are results alone, and these where the laboratory wants them. There is a tau in any case:
 * where the operation has none, it is for peers that take several calls. Reflectors are those of random
 * matrices. */
typedef struct bench_job {
  bench_target *target;
  bench_case what;
  int k;             /* min(m, n) */
  lab_member member; /* sizes and leading dimensions; no contents */
  bqr_shape shape[BQR_NUM_OPERANDS];
  int64_t size[BQR_NUM_OPERANDS]; /* bytes from one member to the next */
  void *input; /* on the host, what each member of A is; NULL: A is from the random sequence */
  void *before[BQR_NUM_OPERANDS], *now[BQR_NUM_OPERANDS];
  void *addresses[BQR_NUM_OPERANDS]; /* of what is now, as arrays */
  void *workspace;
  size_t workspace_bytes;
  double end_ms; /* when a peer's loop over members is given up */
  bool given_up; /* it was */
} bench_job;

/* Whether the operand is the memory of A. */
bool bench_job_is_a(const bench_job *job, const bqr_use *use);
/* Member i of an operand as it is now. Peers' Q is over A: they have no C where this is A. NULL: there is
 * none. */
void *bench_job_member(const bench_job *job, int place, int64_t i);
/* Where an operand that is read starts in the random sequence. */
int64_t bench_job_first(const bqr_use *use);

/* False with the reason in `why` when the case does not fit in memory or its input cannot be formed. */
bool bench_job_open(bench_job *job, bench_target *target, const bench_case *what, const bench_input *input,
                    char why[BENCH_TEXT]);
void bench_job_close(bench_job *job);
void bench_job_poison(bench_job *job); /* the outputs that no input shares */
bool bench_job_restore(bench_job *job);
void *bench_job_workspace(bench_job *job, size_t bytes); /* the one for all plans; NULL: out of memory */
bool bench_job_late(bench_job *job);                     /* gives it up when it is time */
/* To see that checks see it: adds 1 to one element of the last member's result. */
typedef enum bench_spoil {
  BENCH_SPOIL_NOTHING,
  BENCH_SPOIL_R,
  BENCH_SPOIL_V,
  BENCH_SPOIL_TAU,
  BENCH_SPOIL_Q,
  BENCH_SPOIL_C
} bench_spoil;
bool bench_job_spoil(bench_job *job, bench_spoil what); /* false: there is no such result */
bool bench_job_pointers(bench_job *job); /* makes the arrays of addresses; false: out of memory */

/* ---- check.c: is it right? ---- */

/* Test ratios, the largest of the sampled members; < 0: does not apply. */
typedef lab_ratios bench_errors;

/* Checks sampled members of a job that has run. `strict_r`: what lies below R's diagonal must be zero.
 * `quick`: probe all but small members. */
bench_errors bench_check(const bench_job *job, bool strict_r, bool quick);
bool bench_errors_pass(const bench_errors *errors);

/* ---- timing.c ---- */

typedef struct bench_timing_options {
  int warmups, reps; /* reps 0: at least 7, more while they take less than budget_ms */
  double budget_ms;
  double
      limit_ms; /* a first run longer than this stays the only one; others end when they have taken so long */
  double race_ms; /* a first run longer than this stays the only one */
  bool graph;
} bench_timing_options;

typedef struct bench_timing {
  double median, min, max;
  int reps; /* 0: failed */
} bench_timing;

bench_timing bench_measure(bench_target *target, const bench_work *work, const bench_timing_options *options);

/* ---- implementations: ours.c, baselines*.c ---- */

/* A choice of family and variant for our rows; NULL: the planner's. */
typedef struct bench_choice {
  const char *family, *variant;
} bench_choice;

typedef struct bench_impl_options {
  batchqr_layout layout; /* ours */
  batchqr_sizes sizes;   /* ours: uniform, or all the same in host arrays */
  bool one_call;         /* ours: not the planned tier */
  bench_choice choice;   /* ours */
} bench_impl_options;

/* What an implementation says of itself in its row. */
typedef struct bench_facts {
  char family[BENCH_TEXT], variant[BENCH_TEXT];
  int launches;      /* < 0: not known */
  int64_t workspace; /* bytes; < 0: not known */
  batchqr_layout layout;
  batchqr_sizes sizes;
} bench_facts;

typedef struct bench_impl {
  const char *name;
  batchqr_backend backend;
  unsigned routines; /* sum of 1 << batchqr_op; ours: all */
  /* NULL with the reason when this case is not possible. */
  void *(*open)(bench_job *job, const bench_impl_options *options, bench_facts *facts, char why[BENCH_TEXT]);
  bool (*run)(void *state);
  void (*close)(void *state);
  bool at_once;         /* members side by side: fewer of them may take as long */
  double member_gflops; /* a large member's, at most, of all that are side by side; 0: not known */
} bench_impl;

extern const bench_impl bench_ours;
/* The peers compiled in, of all backends, ending with NULL. */
extern const bench_impl *const bench_peers[];
extern const bench_impl bench_lapack, bench_lapack_omp, bench_cublas, bench_cusolver, bench_cusolver_gesvdr,
    bench_cusolver_syevd, bench_magma;
void bench_baselines_cuda_close(void);

/* ---- history.c: what earlier cases tell of later ones ---- */

/* What an implementation took for a case. */
void bench_remember(const char *impl, const bench_case *what, double ms);
/* Milliseconds that the last long case predicts for one with larger members; 0: unknown. */
double bench_predict(const bench_impl *impl, const bench_case *what);
/* That a variant was far behind; whether it will be again. */
void bench_remember_defeat(const bench_choice *choice, const bench_case *what);
bool bench_cannot_win(const bench_choice *choice, const bench_case *what);
void bench_forget(void);

/* ---- report.c ---- */

typedef struct bench_row {
  bench_case what;
  const char *impl;
  bench_facts facts;
  bench_timing timing;
  bench_errors errors;
} bench_row;

typedef struct bench_report {
  void *csv; /* FILE *, or NULL */
  char path[BENCH_TEXT];
  char device[128], cuda[16], commit[64];
  const char *input;
  bool rates;     /* times are the work's, so that flops and bytes may be divided by them */
  double ours_ms; /* of the case in progress, for the peers' rows; 0: none */
  char **known;   /* the rows that the CSV had, where only missing ones are wanted */
  int nknown;
} bench_report;

void bench_report_open(bench_report *report, const bench_target *target, const bench_input *input,
                       const char *commit);
/* Starts DIR/NAME.csv, or goes on with it; `missing`: keeps in mind what it has. */
bool bench_report_csv(bench_report *report, const char *directory, const char *name, bool append,
                      bool missing, char error[BENCH_TEXT]);
/* Whether it had the row at this commit; `facts`: as it will be called, NULL: in any way. */
bool bench_report_knows(const bench_report *report, const bench_case *what, const char *impl,
                        const bench_impl_options *as);
void bench_report_heading(int cases, const char *title);
void bench_report_row(bench_report *report, int index, int cases, const bench_row *row);
void bench_report_skip(int index, int cases, const bench_case *what, const char *impl, const char *why);
void bench_report_close_csv(bench_report *report);

/* ---- options.c ---- */

enum { BENCH_MAX_NAMES = 32 };

typedef struct bench_options {
  const char *suites[BENCH_MAX_NAMES];
  int nsuites;
  const char *sweeps[BENCH_MAX_NAMES];
  int nsweeps;
  int random_seed, random_cases; /* 0: none */
  char line[BENCH_TEXT];         /* a case given as words, or "" */
  const char *out, *suite_directory, *commit, *peers;
  bool append, missing, all_families, check_only, no_check, probe, dry_run, list, help;
  bench_target_options target;
  bench_timing_options timing;
  bench_impl_options impl;
  bench_spoil spoil;
  bench_input input;
  double patience_s, peer_limit_s, minutes, race; /* peer_limit_s, minutes 0: none */
} bench_options;

bool bench_options_parse(bench_options *options, int argc, char **argv, char error[BENCH_TEXT]);
void bench_options_usage(void);

#endif
