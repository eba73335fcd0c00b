/* SPDX-License-Identifier: BSD-3-Clause */
/* Text files, read line by line; what is wrong with one is said with the file and the line. And written. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void ex_open(ex_reader *r, const char *name, const char *comments) {
  *r = (ex_reader){.file = fopen(name, "r"), .name = name, .comments = comments};
  if (!r->file) ex_die(EX_BAD_INPUT, "%s: cannot open: %s", name, strerror(errno));
}

void ex_close(ex_reader *r) {
  fclose(r->file);
  free(r->text);
}

FILE *ex_create(const char *name) {
  FILE *f = fopen(name, "w");
  if (!f) ex_die(EX_BAD_INPUT, "%s: cannot write: %s", name, strerror(errno));
  return f;
}

void ex_finish(FILE *f, const char *name) {
  const bool failed = ferror(f);
  if (fclose(f) != 0 || failed) ex_die(EX_BAD_INPUT, "%s: cannot write: %s", name, strerror(errno));
}

void ex_bad_line(const ex_reader *r, const char *format, ...) {
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  ex_die(EX_BAD_INPUT, "%s:%lld: %s", r->name, r->line ? r->line : 1, message);
}

char *ex_next_line(ex_reader *r) {
  errno = 0;
  ssize_t length = getline(&r->text, &r->size, r->file);
  if (length < 0) {
    if (ferror(r->file)) ex_die(EX_BAD_INPUT, "%s: cannot read: %s", r->name, strerror(errno));
    return NULL;
  }
  r->line++;
  if (memchr(r->text, 0, (size_t)length)) ex_bad_line(r, "a zero byte: this is not a text file");
  r->text[strcspn(r->text, "\r\n")] = 0;
  return r->text;
}

char *ex_skip_blanks(char *s) {
  while (isspace((unsigned char)*s)) s++;
  return s;
}

char *ex_end_of_word(char *s) {
  while (*s && !isspace((unsigned char)*s)) s++;
  return s;
}

char *ex_next_content(ex_reader *r) {
  for (char *s; (s = ex_next_line(r));) {
    s = ex_skip_blanks(s);
    if (*s && !strchr(r->comments, *s)) return s;
  }
  return NULL;
}

bool ex_read_count(char **s, int64_t most, int64_t *count) {
  char *start = ex_skip_blanks(*s), *end;
  if (!isdigit((unsigned char)*start)) return false;
  errno = 0;
  long long value = strtoll(start, &end, 10);
  if (errno || value > most || end != ex_end_of_word(start)) return false;
  *count = value;
  *s = end;
  return true;
}

double ex_read_number(const ex_reader *r, char **s, const char *what) {
  char *start = ex_skip_blanks(*s), *end = ex_end_of_word(start), *number_end;
  int length = end - start < 40 ? (int)(end - start) : 40;
  double number = strtod(start, &number_end);
  if (number_end != end || end == start) ex_bad_line(r, "%s is not a number: '%.*s'", what, length, start);
  if (!isfinite(number)) ex_bad_line(r, "%s is not finite: '%.*s'", what, length, start);
  *s = end;
  return number;
}
