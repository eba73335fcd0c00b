/* SPDX-License-Identifier: BSD-3-Clause */
/* Points: a wing, or a file. */
#define _POSIX_C_SOURCE 200809L
#include "hmatrix.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const double pi = 3.14159265358979323846;

static void add_point(hm_points *p, int *capacity, const double xyz[3]) {
  if (p->n == *capacity) {
    *capacity = *capacity ? 2 * *capacity : 1024;
    double **axes[3] = {&p->x, &p->y, &p->z};
    for (int d = 0; d < 3; d++) {
      double *grown = realloc(*axes[d], (size_t)*capacity * sizeof *grown);
      if (!grown) hm_die(HM_FAILED, "no memory for %d points", *capacity);
      *axes[d] = grown;
    }
  }
  p->x[p->n] = xyz[0], p->y[p->n] = xyz[1], p->z[p->n] = xyz[2];
  p->n++;
}

/* --- the wing */

/* Half the thickness of the NACA 0012 section at x in [0, 1]; the last coefficient closes the trailing edge
 * (Abbott, von Doenhoff: Theory of Wing Sections, 1959, section 6.4). */
static double naca0012(double x) {
  return 0.6 * (0.2969 * sqrt(x) + x * (-0.1260 + x * (-0.3516 + x * (0.2843 - 0.1036 * x))));
}

/* Chord 1, span 3, open tips. The centres of panels: in rows along the span, in each row around the section
 * with cosine spacing, which makes panels small at the leading and trailing edges, as flow solvers do. The
 * rows share out the n points as evenly as they can. */
void hm_wing_points(hm_points *points, int n) {
  const double span = 3, girth = 2.04;
  int rows = (int)lround(sqrt(n * span / girth)), capacity = 0;
  if (rows < 1) rows = 1;
  *points = (hm_points){0};
  for (int r = 0; r < rows; r++) {
    int count = (int)((int64_t)n * (r + 1) / rows - (int64_t)n * r / rows);
    for (int j = 0; j < count; j++) {
      double angle = 2 * pi * (j + 0.5) / count, x = 0.5 * (1 + cos(angle));
      add_point(points, &capacity,
                (double[3]){x, span * ((r + 0.5) / rows - 0.5), copysign(naca0012(x), sin(angle))});
    }
  }
  snprintf(points->source, sizeof points->source, "NACA 0012 wing, chord 1, span %g", span);
}

/* --- files */

typedef struct reader {
  FILE *file;
  const char *name;
  long long line; /* number of `text`, from 1 */
  char *text;
  size_t size;
} reader;

_Noreturn static void bad_line(const reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn static void bad_line(const reader *r, const char *format, ...) {
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  hm_die(HM_BAD_INPUT, "%s:%lld: %s", r->name, r->line ? r->line : 1, message);
}

/* The next line without its end; NULL at the end of the file. */
static char *next_line(reader *r) {
  errno = 0;
  ssize_t length = getline(&r->text, &r->size, r->file);
  if (length < 0) {
    if (ferror(r->file)) hm_die(HM_BAD_INPUT, "%s: cannot read: %s", r->name, strerror(errno));
    return NULL;
  }
  r->line++;
  if (memchr(r->text, 0, (size_t)length)) bad_line(r, "a zero byte: this is not a text file");
  r->text[strcspn(r->text, "\r\n")] = 0;
  return r->text;
}

static char *skip_blanks(char *s) {
  while (isspace((unsigned char)*s)) s++;
  return s;
}

/* Like next_line(), from its first character that is not blank; skips empty lines and comments. */
static char *next_content(reader *r) {
  for (char *s; (s = next_line(r));) {
    s = skip_blanks(s);
    if (*s && *s != '#') return s;
  }
  return NULL;
}

static char *end_of_word(char *s) {
  while (*s && !isspace((unsigned char)*s)) s++;
  return s;
}

/* Reads x, y and z from s. Whatever follows them on the line (normals, colours, weights) is not looked at. */
static void read_xyz(const reader *r, char *s, double xyz[3]) {
  for (int d = 0; d < 3; d++) {
    s = skip_blanks(s);
    if (!*s) bad_line(r, "the line ends after %d of 3 coordinates", d);
    char *end = end_of_word(s), *number_end;
    int length = end - s < 40 ? (int)(end - s) : 40;
    xyz[d] = strtod(s, &number_end);
    if (number_end != end) bad_line(r, "coordinate %c is not a number: '%.*s'", "xyz"[d], length, s);
    if (!isfinite(xyz[d])) bad_line(r, "coordinate %c is not finite: '%.*s'", "xyz"[d], length, s);
    s = end;
  }
}

/* Reads a count from *s and moves *s behind it; false if there is none. */
static bool read_count(char **s, int *count) {
  char *start = skip_blanks(*s), *end;
  if (!isdigit((unsigned char)*start)) return false;
  errno = 0;
  long value = strtol(start, &end, 10);
  if (errno || value > INT_MAX || end != end_of_word(start)) return false;
  *count = (int)value;
  *s = end;
  return true;
}

/* Whether s is three numbers and nothing else. */
static bool is_bare_xyz(const char *s) {
  for (int d = 0; d < 3; d++) {
    char *end;
    strtod(s, &end);
    if (end == s) return false;
    s = end;
  }
  return !*skip_blanks((char *)s);
}

/* Either "x y z" on each line, or the chemists' format: a line with the number of points, a comment line (not
 * required if it looks like a point), then a point on each line, which an element's symbol may precede. */
static void read_xyz_file(reader *r, hm_points *points) {
  int capacity = 0, announced = -1;
  double xyz[3];
  char *s = next_content(r), *rest = s;
  long long header = r->line;
  if (s && read_count(&rest, &announced) && !*skip_blanks(rest)) {
    s = next_line(r);
    if (s && !is_bare_xyz(s)) s = next_content(r);
  } else {
    announced = -1;
  }
  for (; s; s = next_content(r)) {
    if (points->n == announced)
      bad_line(r, "more points than the %d that line %lld announces", announced, header);
    if (announced >= 0 && isalpha((unsigned char)*skip_blanks(s))) s = end_of_word(skip_blanks(s));
    read_xyz(r, s, xyz);
    add_point(points, &capacity, xyz);
  }
  if (points->n < announced)
    bad_line(r, "the file ends after %d of the %d points that line %lld announces", points->n, announced,
             header);
}

/* Geomview's OFF, as text; the coordinates come first in all its kinds (OFF, COFF, NOFF, STOFF, ...). Faces
 * are counted, to find truncated files. */
static void read_off_file(reader *r, hm_points *points) {
  int capacity = 0, vertices = 0, faces = 0;
  double xyz[3];
  char *s = next_content(r);
  if (!s) bad_line(r, "the file is empty");
  char *end = end_of_word(s);
  if (end - s < 3 || strncmp(end - 3, "OFF", 3) != 0 || strspn(s, "STCN") != (size_t)(end - 3 - s))
    bad_line(r, "an .off file of points in space starts with OFF, not '%.40s'", s);
  s = skip_blanks(end);
  if (!*s || *s == '#') s = next_content(r);
  if (!s) bad_line(r, "the file ends before the numbers of vertices and faces");
  if (!read_count(&s, &vertices) || !read_count(&s, &faces))
    bad_line(r, "the numbers of vertices and faces should be here: '%.40s'", skip_blanks(s));
  for (int i = 0; i < vertices; i++) {
    if (!(s = next_content(r))) bad_line(r, "the file ends after %d of %d vertices", i, vertices);
    read_xyz(r, s, xyz);
    add_point(points, &capacity, xyz);
  }
  for (int i = 0; i < faces; i++)
    if (!next_content(r)) bad_line(r, "the file ends after %d of %d faces", i, faces);
}

/* Wavefront's OBJ: the lines "v x y z"; all others are skipped. */
static void read_obj_file(reader *r, hm_points *points) {
  int capacity = 0;
  double xyz[3];
  for (char *s; (s = next_content(r));) {
    if (s[0] != 'v' || (s[1] && !isspace((unsigned char)s[1]))) continue;
    read_xyz(r, s + 1, xyz);
    add_point(points, &capacity, xyz);
  }
}

void hm_read_points(hm_points *points, const char *file) {
  static const struct {
    const char *ending;
    void (*read)(reader *, hm_points *);
  } formats[] = {{".xyz", read_xyz_file}, {".off", read_off_file}, {".obj", read_obj_file}};
  *points = (hm_points){0};
  const char *dot = strrchr(file, '.');
  size_t f = 0;
  while (f < 3 && !(dot && strcasecmp(dot, formats[f].ending) == 0)) f++;
  if (f == 3) hm_die(HM_BAD_INPUT, "%s: the name should end in .xyz, .off or .obj", file);
  reader r = {.file = fopen(file, "r"), .name = file};
  if (!r.file) hm_die(HM_BAD_INPUT, "%s: cannot open: %s", file, strerror(errno));
  formats[f].read(&r, points);
  if (points->n < 2) bad_line(&r, "the file ends with %d points; at least 2 are needed", points->n);
  fclose(r.file);
  free(r.text);
  snprintf(points->source, sizeof points->source, "%s", file);
}

/* --- duplicates */

typedef struct cell {
  int64_t key[3];
  int point;
} cell;

static int compare_cells(const void *a, const void *b) {
  const cell *x = a, *y = b;
  for (int d = 0; d < 3; d++)
    if (x->key[d] != y->key[d]) return x->key[d] < y->key[d] ? -1 : 1;
  return (x->point > y->point) - (x->point < y->point);
}

/* The kernel is singular where points coincide. Points of one cell of a grid with 1e-12 of the bounding box's
 * diagonal as its width count as one. Two points on the two sides of a cell's face may be closer, but in
 * coordinates that start at the box's corner they still differ by some 1e-28 of the diagonal: the square of
 * that does not underflow. */
void hm_merge_duplicates(hm_points *points) {
  double *axes[3] = {points->x, points->y, points->z}, lo[3], diagonal = 0;
  for (int d = 0; d < 3; d++) {
    double hi = lo[d] = axes[d][0];
    for (int i = 1; i < points->n; i++) lo[d] = fmin(lo[d], axes[d][i]), hi = fmax(hi, axes[d][i]);
    diagonal = hypot(diagonal, hi - lo[d]);
  }
  if (diagonal > 0 && !(diagonal > 1e-100 && diagonal < 1e100))
    hm_die(HM_BAD_INPUT, "%s: the points span %.3g; this program needs 1e-100 to 1e100", points->source,
           diagonal);
  cell *cells = hm_alloc((size_t)points->n, sizeof *cells);
  for (int i = 0; i < points->n; i++) {
    cells[i].point = i;
    for (int d = 0; d < 3; d++) {
      axes[d][i] -= lo[d];
      cells[i].key[d] = diagonal > 0 ? llround(axes[d][i] / diagonal * 1e12) : 0;
    }
  }
  qsort(cells, (size_t)points->n, sizeof *cells, compare_cells);
  bool *keep = hm_zeros((size_t)points->n, sizeof *keep);
  for (int i = 0; i < points->n; i++)
    keep[cells[i].point] = i == 0 || memcmp(cells[i].key, cells[i - 1].key, sizeof cells[i].key) != 0;
  int kept = 0;
  for (int i = 0; i < points->n; i++) {
    if (!keep[i]) continue;
    for (int d = 0; d < 3; d++) axes[d][kept] = axes[d][i];
    kept++;
  }
  points->merged = points->n - kept;
  points->n = kept;
  free(keep);
  free(cells);
  if (kept < 2) hm_die(HM_BAD_INPUT, "%s: all points coincide; at least 2 are needed", points->source);
}

void hm_free_points(hm_points *points) {
  free(points->x);
  free(points->y);
  free(points->z);
  free(points->self);
}
