/* SPDX-License-Identifier: BSD-3-Clause */
/* Options, from a table of them. */
#include "program.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void bad_value(const ex_option *o, const char *value, const char *wanted) {
  ex_die(EX_BAD_INPUT, "--%s '%s': %s expected; --help lists the options", o->name, value, wanted);
}

static int parse_int(const ex_option *o, const char *value) {
  char *end, wanted[64];
  errno = 0;
  long number = strtol(value, &end, 10);
  snprintf(wanted, sizeof wanted, "a number from %.0f to %.0f", o->least, o->most);
  if (errno || end == value || *end || number < o->least || number > o->most) bad_value(o, value, wanted);
  return (int)number;
}

static double parse_double(const ex_option *o, const char *value) {
  char *end, wanted[64];
  double number = strtod(value, &end);
  snprintf(wanted, sizeof wanted, "a number from %g to %g", o->least, o->most);
  if (end == value || *end || !(number >= o->least && number <= o->most)) bad_value(o, value, wanted);
  return number;
}

/* The index of the value among the names. */
static int parse_name(const ex_option *o, const char *value, const char *const *names) {
  char wanted[128] = "";
  for (int i = 0; names[i]; i++) {
    if (strcmp(value, names[i]) == 0) return i;
    size_t length = strlen(wanted);
    const char *before = i == 0 ? "" : names[i + 1] ? ", " : " or ";
    snprintf(wanted + length, sizeof wanted - length, "%s%s", before, names[i]);
  }
  bad_value(o, value, wanted);
}

static batchqr_backend parse_backend(const ex_option *o, const char *value) {
  static const char *const names[] = {"auto", "cpu", "cuda", NULL};
  static const batchqr_backend backends[] = {BATCHQR_BACKEND_AUTO, BATCHQR_BACKEND_CPU, BATCHQR_BACKEND_CUDA};
  return backends[parse_name(o, value, names)];
}

static void take(const ex_option *o, const char *value) {
  switch (o->kind) {
  case EX_FLAG:
    *(bool *)o->to = true;
    break;
  case EX_INT:
    *(int *)o->to = parse_int(o, value);
    break;
  case EX_DOUBLE:
    *(double *)o->to = parse_double(o, value);
    break;
  case EX_NAME:
    *(int *)o->to = parse_name(o, value, o->names);
    break;
  case EX_TEXT:
    *(const char **)o->to = value;
    break;
  case EX_PICTURE:
    *(const char **)o->to = strcmp(value, "-") ? value : NULL;
    break;
  case EX_BACKEND:
    *(batchqr_backend *)o->to = parse_backend(o, value);
    break;
  }
}

void ex_parse_options(int argc, char **argv, const char *usage, const ex_option *options) {
  enum { HELP = 0, FIRST = 1, MOST = 30 };
  struct option known[MOST + 2] = {{"help", no_argument, NULL, HELP}};
  for (int i = 0; options[i].name; i++) {
    assert(i < MOST);
    int argument = options[i].kind == EX_FLAG ? no_argument : required_argument;
    known[i + 1] = (struct option){options[i].name, argument, NULL, FIRST + i};
  }
  for (int code; (code = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
    if (code == '?') ex_die(EX_BAD_INPUT, "--help lists the options");
    if (code == HELP || code == 'h') {
      fputs(usage, stdout);
      ex_finish(stdout, "standard output");
      exit(EX_GOOD);
    }
    take(&options[code - FIRST], optarg);
  }
  if (optind < argc) ex_die(EX_BAD_INPUT, "'%s' is not an option; --help lists them", argv[optind]);
}
