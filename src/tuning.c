/* SPDX-License-Identifier: BSD-3-Clause */
/* The one reader of tuning tables, built in or from a file. */
#include "tuning.h"
#include "inspect.h"
#include "tuning_tables.inc"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line has one field less than MAX_FIELDS; a table of MAX_BYTES is some other file. */
enum { NUM_FIELDS = 8, MAX_FIELDS = NUM_FIELDS + 1, MAX_BYTES = 16 << 20 };

typedef struct field {
  const char *text;
  int length;
} field;

typedef struct reader {
  const bqr_registry *registry;
  const char *path;
  int line;
  bool started; /* the line that names the format was seen */
  int capacity;
  bqr_table *table;
  bqr_error *error;
} reader;

__attribute__((format(printf, 2, 3))) static batchqr_status bad_line(const reader *r, const char *format,
                                                                     ...) {
  va_list args;
  va_start(args, format);
  bqr_error what;
  vsnprintf(what.text, sizeof what.text, format, args);
  va_end(args);
  return bqr_fail(r->error, BATCHQR_TUNING_ERROR, "%s:%d: %.300s", r->path, r->line, what.text);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Splits a line at blanks, up to a comment; finds at most MAX_FIELDS. */
static int split(const char *line, int length, field fields[MAX_FIELDS]) {
  int count = 0;
  for (int i = 0; i < length && line[i] != '#' && count < MAX_FIELDS;) {
    int start = i;
    while (i < length && line[i] != '#' && !is_blank(line[i])) i++;
    if (i > start) fields[count++] = (field){line + start, i - start};
    while (i < length && is_blank(line[i])) i++;
  }
  return count;
}

/* Reads digits from *at on, and moves *at behind them; false if there are none or too many. */
static bool read_integer(const char **at, const char *end, int64_t *value) {
  const char *start = *at;
  for (*value = 0; *at < end && is_digit(**at); (*at)++) {
    int digit = **at - '0';
    if (*value > (INT64_MAX - digit) / 10) return false;
    *value = *value * 10 + digit;
  }
  return *at > start;
}

static bool read_interval(field f, bqr_interval *range) {
  const char *at = f.text, *end = f.text + f.length;
  if (!read_integer(&at, end, &range->first)) return false;
  range->last = range->first;
  if (at == end) return true;
  if (end - at < 2 || at[0] != '.' || at[1] != '.') return false;
  at += 2;
  range->last = INT64_MAX;
  return at == end || (read_integer(&at, end, &range->last) && at == end && range->last >= range->first);
}

static bool read_types(field f, unsigned *types) {
  *types = 0;
  for (int i = 0; i < f.length; i++) {
    const char *letter = memchr("sdcz", f.text[i], 4);
    if (!letter) return false;
    *types |= 1u << (letter - "sdcz");
  }
  return true;
}

/* A decimal number > 0, read by hand because strtod() follows the locale. */
static bool read_gain(field f, double *gain) {
  double scale = 0;
  int digits = 0;
  *gain = 0;
  for (int i = 0; i < f.length; i++) {
    if (f.text[i] == '.' && scale == 0) {
      scale = 1;
    } else if (is_digit(f.text[i])) {
      *gain = *gain * 10 + (f.text[i] - '0');
      scale *= 10;
      digits++;
    } else {
      return false;
    }
  }
  if (scale > 1) *gain /= scale;
  return digits > 0 && digits < 30 && *gain > 0;
}

static bool is(field f, const char *word) {
  return (size_t)f.length == strlen(word) && memcmp(f.text, word, (size_t)f.length) == 0;
}

static const bqr_operation *row(const reader *r, int op) { return bqr_registry_operation(r->registry, op); }

static batchqr_status read_steps(const reader *r, field variant, const bqr_rule *rule) {
  const bqr_operation *operation = row(r, rule->op);
  if (!operation->program) return bad_line(r, "%s is not done in steps", operation->name);
  if (!is(variant, "-")) return bad_line(r, "steps have no variant %.*s", variant.length, variant.text);
  return BATCHQR_SUCCESS;
}

static batchqr_status read_choice(const reader *r, field family, field variant, bqr_rule *rule) {
  rule->family = bqr_registry_find(r->registry, family.text, (size_t)family.length);
  if (!rule->family) return bad_line(r, "there is no family %.*s", family.length, family.text);
  if (rule->family->op != rule->op)
    return bad_line(r, "%s does %s, not %s", rule->family->name, row(r, rule->family->op)->name,
                    row(r, rule->op)->name);
  if ((rule->types & rule->family->types) != rule->types)
    return bad_line(r, "%s does not have all the types", rule->family->name);
  rule->variant = bqr_registry_variant(rule->family, variant.text, (size_t)variant.length);
  if (rule->variant < 0)
    return bad_line(r, "%s has no variant %.*s", rule->family->name, variant.length, variant.text);
  return BATCHQR_SUCCESS;
}

static batchqr_status append(reader *r, const bqr_rule *rule) {
  bqr_table *t = r->table;
  if (t->num_rules == r->capacity) {
    int capacity = r->capacity ? 2 * r->capacity : 32;
    bqr_rule *rules = realloc(t->rules, (size_t)capacity * sizeof *rules);
    if (!rules) return bqr_fail_memory(r->error, "the tuning table");
    t->rules = rules;
    r->capacity = capacity;
  }
  t->rules[t->num_rules++] = *rule;
  return BATCHQR_SUCCESS;
}

/* Takes the role off the operation's name. */
static bqr_role split_role(field *operation) {
  for (bqr_role role = BQR_ROLE_PANEL; role < BQR_NUM_ROLES; role++) {
    const char *suffix = bqr_role_suffix(role);
    const int length = operation->length - (int)strlen(suffix);
    if (length < 0 || !is((field){operation->text + length, operation->length - length}, suffix)) continue;
    operation->length = length;
    return role;
  }
  return BQR_ROLE_STEP;
}

static batchqr_status read_rule(reader *r, field f[NUM_FIELDS]) {
  bqr_rule rule = {.line = r->line, .role = split_role(&f[0])};
  const bqr_operation *operation = bqr_registry_named(r->registry, f[0].text, (size_t)f[0].length);
  if (!operation) return bad_line(r, "there is no operation %.*s", f[0].length, f[0].text);
  rule.op = operation->op;
  if (!read_types(f[1], &rule.types))
    return bad_line(r, "types %.*s are not letters of sdcz", f[1].length, f[1].text);

  bqr_interval *const ranges[] = {&rule.m, &rule.n, &rule.count};
  static const char *const names[] = {"m", "n", "count"};
  for (int i = 0; i < 3; i++)
    if (!read_interval(f[2 + i], ranges[i]))
      return bad_line(r, "%s %.*s is not a range a..b, a.. or a", names[i], f[2 + i].length, f[2 + i].text);
  if (!read_gain(f[7], &rule.gain))
    return bad_line(r, "gain %.*s is not a positive number", f[7].length, f[7].text);

  if (bqr_registry_left_out(r->registry, f[5].text, (size_t)f[5].length)) return BATCHQR_SUCCESS;
  batchqr_status status = is(f[5], "steps") ? read_steps(r, f[6], &rule) : read_choice(r, f[5], f[6], &rule);
  return status ? status : append(r, &rule);
}

static batchqr_status read_line(reader *r, const char *line, int length) {
  field f[MAX_FIELDS];
  int count = split(line, length, f);
  if (count == 0) return BATCHQR_SUCCESS;
  if (!r->started) {
    r->started = true;
    bool known = count == 2 && is(f[0], "batchqr-tuning") && is(f[1], "1");
    return known ? BATCHQR_SUCCESS : bad_line(r, "the first line must be `batchqr-tuning 1`");
  }
  if (count != NUM_FIELDS)
    return bad_line(r, "%s than the 8 fields `op types m n count family variant gain`",
                    count < NUM_FIELDS ? "fewer" : "more");
  return read_rule(r, f);
}

static batchqr_status read_text(reader *r, const char *text, size_t length) {
  if (length > MAX_BYTES) return bqr_fail(r->error, BATCHQR_TUNING_ERROR, "%s: too long a file", r->path);
  for (const char *end = text + length; text < end;) {
    const char *newline = memchr(text, '\n', (size_t)(end - text));
    const char *stop = newline ? newline : end;
    r->line++;
    if (memchr(text, '\0', (size_t)(stop - text))) return bad_line(r, "not a text: it holds a zero byte");
    batchqr_status status = read_line(r, text, (int)(stop - text));
    if (status) return status;
    text = newline ? newline + 1 : end;
  }
  r->line++;
  return r->started ? BATCHQR_SUCCESS : bad_line(r, "the line `batchqr-tuning 1` is missing");
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static char *copy_text(const char *text) {
  size_t bytes = strlen(text) + 1;
  char *copy = malloc(bytes);
  return copy ? memcpy(copy, text, bytes) : NULL;
}

batchqr_status bqr_table_parse(const bqr_registry *registry, const char *path, const char *text,
                               size_t length, bqr_table **table, bqr_error *error) {
  *table = NULL;
  bqr_table *t = calloc(1, sizeof *t);
  if (!t || !(t->name = copy_text(base_name(path)))) {
    bqr_table_free(t);
    return bqr_fail_memory(error, "the tuning table");
  }
  reader r = {.registry = registry, .path = path, .table = t, .error = error};
  batchqr_status status = read_text(&r, text, length);
  if (status) {
    bqr_table_free(t);
    return status;
  }
  *table = t;
  return BATCHQR_SUCCESS;
}

/* Reads a whole file; the caller frees *text. */
static batchqr_status read_file(const char *path, char **text, size_t *length, bqr_error *error) {
  *text = NULL;
  FILE *file = fopen(path, "rb");
  if (!file) return bqr_fail(error, BATCHQR_TUNING_ERROR, "%s: %s", path, strerror(errno));
  batchqr_status status = BATCHQR_SUCCESS;
  size_t capacity = 0, count = 0, got = 1;
  while (got > 0 && count <= MAX_BYTES) {
    if (count == capacity) {
      capacity = capacity ? 2 * capacity : 4096;
      char *more = realloc(*text, capacity);
      if (!more) {
        status = bqr_fail_memory(error, "the tuning table");
        break;
      }
      *text = more;
    }
    got = fread(*text + count, 1, capacity - count, file);
    count += got;
  }
  if (!status && ferror(file))
    status = bqr_fail(error, BATCHQR_TUNING_ERROR, "%s: %s", path, strerror(errno));
  fclose(file);
  *length = count;
  return status;
}

batchqr_status bqr_table_read(const bqr_registry *registry, const char *path, bqr_table **table,
                              bqr_error *error) {
  *table = NULL;
  char *text;
  size_t length = 0;
  batchqr_status status = read_file(path, &text, &length, error);
  if (!status) status = bqr_table_parse(registry, path, text, length, table, error);
  free(text);
  return status;
}

void bqr_table_free(bqr_table *table) {
  if (!table) return;
  free(table->name);
  free(table->rules);
  free(table);
}

bool bqr_interval_holds(bqr_interval interval, int64_t value) {
  return interval.first <= value && value <= interval.last;
}

enum { NUM_TABLES = sizeof bqr_tuning_tables / sizeof bqr_tuning_tables[0] - 1 };

int bqr_num_builtin_tables(void) { return NUM_TABLES; }
int bqr_builtin_table_sm(int i) { return bqr_tuning_tables[i].sm; }
const char *bqr_builtin_table_name(int i) { return bqr_tuning_tables[i].name; }
const char *bqr_builtin_table_text(int i) { return bqr_tuning_tables[i].text; }

int bqr_nearest_table(const int *sms, int count, int sm) {
  int nearest = -1;
  for (int i = 0; i < count && sms[i] <= sm; i++) nearest = i;
  return nearest;
}

batchqr_status bqr_table_builtin(const bqr_registry *registry, int sm, bqr_table **table, bqr_error *error) {
  *table = NULL;
  int sms[NUM_TABLES + 1];
  for (int i = 0; i < NUM_TABLES; i++) sms[i] = bqr_tuning_tables[i].sm;
  int i = bqr_nearest_table(sms, NUM_TABLES, sm);
  if (i < 0) return BATCHQR_SUCCESS;
  const char *text = bqr_tuning_tables[i].text;
  batchqr_status status =
      bqr_table_parse(registry, bqr_tuning_tables[i].name, text, strlen(text), table, error);
  if (!status) (*table)->sm = bqr_tuning_tables[i].sm;
  return status;
}

batchqr_status bqr_table_children(const bqr_registry *registry, bqr_table **table, bqr_error *error) {
  return bqr_table_parse(registry, bqr_child_table.name, bqr_child_table.text, strlen(bqr_child_table.text),
                         table, error);
}

batchqr_status batchqr_check_tuning_file(const char *path, char *message, size_t size) {
  bqr_error error = {""};
  bqr_table *table = NULL;
  batchqr_status status = path ? bqr_table_read(bqr_registry_builtin(), path, &table, &error)
                               : bqr_fail(&error, BATCHQR_INVALID_ARGUMENT, "path is NULL");
  bqr_table_free(table);
  if (message && size > 0) snprintf(message, size, "%s", error.text);
  return status;
}
