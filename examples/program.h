/* SPDX-License-Identifier: BSD-3-Clause */
/* What the example programs share: how they end, options, progress, text files, pictures, and the memory of
 * the backend that they work on. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <batchqr/batchqr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* --- program.c: ending, memory, time, threads */

/* Exit statuses. */
enum { EX_GOOD = 0, EX_INACCURATE = 1, EX_BAD_INPUT = 2, EX_FAILED = 3 };

/* The program's name, which stands before its messages; the program defines it. */
extern const char ex_program[];

/* Prints "<program>: ..." to stderr and exits with the status. */
_Noreturn void ex_die(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* malloc, calloc and realloc (n * size bytes) that do not return NULL. */
void *ex_alloc(size_t n, size_t size);
void *ex_zeros(size_t n, size_t size);
void *ex_resize(void *memory, size_t n, size_t size);
double ex_seconds(void);
/* Has OpenMP use so many threads, 0: as many as it would. Returns how many. */
int ex_use_threads(int threads);

/* --- program_memory.c */

/* Bytes of the host's memory that this process can still get. */
double ex_available_memory(void);
/* The same without the process's own limits, by the files /proc and /sys/fs/cgroup in the folder `root`;
 * infinite where these say nothing. */
double ex_available_below(const char *root);

/* --- program_options.c */

/* What an option's value is, and in brackets what `to` points to. */
typedef enum ex_kind {
  EX_FLAG,    /* there is none: the option sets it (bool) */
  EX_INT,     /* a number from `least` to `most` (int) */
  EX_DOUBLE,  /* likewise (double) */
  EX_NAME,    /* one of `names`, of which the last is followed by NULL (int: its index) */
  EX_TEXT,    /* (const char *) */
  EX_PICTURE, /* a file, or - for none (const char *) */
  EX_BACKEND  /* auto, cpu or cuda (batchqr_backend) */
} ex_kind;

typedef struct ex_option {
  const char *name;
  ex_kind kind;
  void *to;
  double least, most;
  const char *const *names;
} ex_option;

/* Sets what the command line says; `options` ends with one without a name. Prints `usage` where --help or -h
 * asks for it; exits with EX_BAD_INPUT when a value is not what is wanted. */
void ex_parse_options(int argc, char **argv, const char *usage, const ex_option *options);

/* --- program_report.c: progress, what is known and measured, pictures */

/* A stage of the run: on a terminal a bar, redrawn, and a line with the time at the end; elsewhere a line at
 * each quarter of a long stage. ex_progress() is to be called by one thread at a time. */
void ex_progress_begin(const char *stage, bool quiet);
void ex_progress(double fraction);
/* Returns the stage's seconds. */
double ex_progress_end(void);

/* Lines of a report: a fact; a time; an amount of memory; the most that the process had. `note` stands behind
 * the number. */
void ex_print_fact(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ex_print_time(const char *what, double seconds, const char *note);
void ex_print_memory(const char *what, double bytes, const char *note);
void ex_print_largest_use(void);

/* Members of batches, counted by rows and by columns: class c holds the sizes 2^c .. 2^(c+1) - 1. */
enum { EX_SIZE_CLASSES = 31 };
typedef struct ex_histogram {
  int64_t members[EX_SIZE_CLASSES][EX_SIZE_CLASSES];
} ex_histogram;
void ex_count_member(ex_histogram *histogram, int rows, int cols);
void ex_print_histogram(const char *title, const ex_histogram *histogram);
/* What batchqr_plan_describe() said, a line for each group of members. */
void ex_print_plan(const char *name, const char *text);

/* An SVG of this size on white, in the font of all of them. */
FILE *ex_svg_begin(const char *name, int width, int height);
void ex_svg_end(FILE *f, const char *name);
void ex_svg_text(FILE *f, double x, double y, double size, const char *style, const char *text);

/* --- program_files.c: text files, read line by line, and written */

/* A new file; exits if it cannot be made, or cannot be written to its end. */
FILE *ex_create(const char *name);
void ex_finish(FILE *f, const char *name);

typedef struct ex_reader {
  FILE *file;
  const char *name;
  const char *comments; /* a line that begins with one of these characters is skipped by ex_next_content() */
  long long line;       /* number of `text`, from 1 */
  char *text;
  size_t size;
} ex_reader;

void ex_open(ex_reader *r, const char *name, const char *comments);
void ex_close(ex_reader *r);
/* Exits with EX_BAD_INPUT: "file:line: ..." */
_Noreturn void ex_bad_line(const ex_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next line without its end; NULL at the end of the file. */
char *ex_next_line(ex_reader *r);
/* Like ex_next_line(), from its first character that is not blank; skips empty lines and comments. */
char *ex_next_content(ex_reader *r);
char *ex_skip_blanks(char *s);
char *ex_end_of_word(char *s);
/* Reads a whole number >= 0 from *s and moves *s behind it; false if there is none up to `most`. */
bool ex_read_count(char **s, int64_t most, int64_t *count);
/* Reads the number that *s begins with and moves *s behind it; `what` names it in messages. */
double ex_read_number(const ex_reader *r, char **s, const char *what);

/* --- program_backend.c: the library, and memory of the backend (on the CPU the host's own) */

typedef struct ex_backend {
  batchqr_handle_t handle;
  bool on_device;
} ex_backend;

void ex_open_backend(ex_backend *b, batchqr_backend backend, int threads);
void ex_close_backend(ex_backend *b);
/* Exits if the backend cannot be opened. */
void ex_require_backend(batchqr_backend backend);
void ex_check(const ex_backend *b, batchqr_status status, const char *what);
/* Bytes of the backend's memory that this process can still get. */
double ex_available_to_backend(const ex_backend *b);
/* Aligned as workspaces are; NULL for 0 bytes. */
void *ex_new_memory(const ex_backend *b, size_t bytes);
void ex_free_memory(const ex_backend *b, void *memory);
/* The address for the backend of a copy of `bytes` bytes at `host`: `host` itself on the CPU. */
void *ex_copy_to_backend(const ex_backend *b, void *host, size_t bytes);
/* Brings what is at `host` now into the copy. */
void ex_update_copy(const ex_backend *b, void *copy, const void *host, size_t bytes);
/* Brings the copy's contents back to `host`. */
void ex_copy_from_backend(const ex_backend *b, void *host, const void *copy, size_t bytes);
void ex_free_copy(const ex_backend *b, void *copy);
/* Memory of the host that copies from the backend are fast to. */
void *ex_new_host_memory(const ex_backend *b, size_t bytes);
void ex_free_host_memory(const ex_backend *b, void *memory);
void ex_wait_for_backend(const ex_backend *b);
/* Exits if this cudaError_t is one. */
void ex_check_cuda(int error);

#endif
