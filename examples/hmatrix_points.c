/* SPDX-License-Identifier: BSD-3-Clause */
/* Points: a wing, or a file. */
#define _POSIX_C_SOURCE 200809L
#include "hmatrix.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
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
      if (!grown) ex_die(EX_FAILED, "no memory for %d points", *capacity);
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

/* Reads x, y and z from s. Whatever follows them on the line (normals, colours, weights) is not looked at. */
static void read_xyz(const ex_reader *r, char *s, double xyz[3]) {
  static const char *const names[3] = {"coordinate x", "coordinate y", "coordinate z"};
  for (int d = 0; d < 3; d++) {
    if (!*ex_skip_blanks(s)) ex_bad_line(r, "the line ends after %d of 3 coordinates", d);
    xyz[d] = ex_read_number(r, &s, names[d]);
  }
}

/* Whether s is three numbers and nothing else. */
static bool is_bare_xyz(const char *s) {
  for (int d = 0; d < 3; d++) {
    char *end;
    strtod(s, &end);
    if (end == s) return false;
    s = end;
  }
  return !*ex_skip_blanks((char *)s);
}

/* Either "x y z" on each line, or the chemists' format: a line with the number of points, a comment line (not
 * required if it looks like a point), then a point on each line, which an element's symbol may precede. */
static void read_xyz_file(ex_reader *r, hm_points *points) {
  int capacity = 0;
  int64_t announced = -1;
  double xyz[3];
  char *s = ex_next_content(r), *rest = s;
  long long header = r->line;
  if (s && ex_read_count(&rest, INT_MAX, &announced) && !*ex_skip_blanks(rest)) {
    s = ex_next_line(r);
    if (s && !is_bare_xyz(s)) s = ex_next_content(r);
  } else {
    announced = -1;
  }
  for (; s; s = ex_next_content(r)) {
    if (points->n == announced)
      ex_bad_line(r, "more points than the %lld that line %lld announces", (long long)announced, header);
    if (announced >= 0 && isalpha((unsigned char)*ex_skip_blanks(s))) s = ex_end_of_word(ex_skip_blanks(s));
    read_xyz(r, s, xyz);
    add_point(points, &capacity, xyz);
  }
  if (points->n < announced)
    ex_bad_line(r, "the file ends after %d of the %lld points that line %lld announces", points->n,
                (long long)announced, header);
}

/* What a face says in a line of an OFF file: how many corners, and which vertices they are. */
static void check_face(const ex_reader *r, char *s, int vertices) {
  int64_t corners, vertex;
  if (!ex_read_count(&s, INT_MAX, &corners))
    ex_bad_line(r, "the number of the face's corners should be here: '%.40s'", ex_skip_blanks(s));
  for (int64_t i = 0; i < corners; i++) {
    if (!*ex_skip_blanks(s))
      ex_bad_line(r, "the line ends after %lld of %lld corners", (long long)i, (long long)corners);
    if (!ex_read_count(&s, vertices - 1, &vertex)) {
      s = ex_skip_blanks(s);
      ex_bad_line(r, "vertex '%.*s' of the face is not in 0 .. %d", (int)(ex_end_of_word(s) - s), s,
                  vertices - 1);
    }
  }
}

/* Geomview's OFF, as text; the coordinates come first in all its kinds (OFF, COFF, NOFF, STOFF, ...). Faces
 * are looked at to find files that are truncated, or mixed up. */
static void read_off_file(ex_reader *r, hm_points *points) {
  int capacity = 0;
  int64_t vertices = 0, faces = 0;
  double xyz[3];
  char *s = ex_next_content(r);
  if (!s) ex_bad_line(r, "the file is empty");
  char *end = ex_end_of_word(s);
  if (end - s < 3 || strncmp(end - 3, "OFF", 3) != 0 || strspn(s, "STCN") != (size_t)(end - 3 - s))
    ex_bad_line(r, "an .off file of points in space starts with OFF, not '%.40s'", s);
  s = ex_skip_blanks(end);
  if (!*s || *s == '#') s = ex_next_content(r);
  if (!s) ex_bad_line(r, "the file ends before the numbers of vertices and faces");
  if (!ex_read_count(&s, INT_MAX, &vertices) || !ex_read_count(&s, INT_MAX, &faces))
    ex_bad_line(r, "the numbers of vertices and faces should be here: '%.40s'", ex_skip_blanks(s));
  for (int64_t i = 0; i < vertices; i++) {
    if (!(s = ex_next_content(r)))
      ex_bad_line(r, "the file ends after %lld of %lld vertices", (long long)i, (long long)vertices);
    read_xyz(r, s, xyz);
    add_point(points, &capacity, xyz);
  }
  for (int64_t i = 0; i < faces; i++) {
    if (!(s = ex_next_content(r)))
      ex_bad_line(r, "the file ends after %lld of %lld faces", (long long)i, (long long)faces);
    check_face(r, s, points->n);
  }
}

/* The largest vertex that an OBJ file's face names, from 1: its corners are v, v/t, v//n or v/t/n, where -1
 * is the vertex that came last. A backslash leads to a line more, which is not looked at. */
static long last_vertex(const ex_reader *r, char *s, int vertices) {
  long last = 0;
  for (char *end; !strchr("\\#", *(s = ex_skip_blanks(s))); s = ex_end_of_word(s)) {
    long vertex = strtol(s, &end, 10);
    if (vertex == 0 || vertex < -vertices || (*end && *end != '/' && !isspace((unsigned char)*end)))
      ex_bad_line(r, "'%.*s' is not a vertex of the %d so far", (int)(ex_end_of_word(s) - s), s, vertices);
    if (vertex > last) last = vertex;
  }
  return last;
}

/* Wavefront's OBJ: the lines "v x y z". Those of faces, "f ...", are looked at; all others are skipped. */
static void read_obj_file(ex_reader *r, hm_points *points) {
  int capacity = 0;
  double xyz[3];
  long most = 0;
  long long most_at = 0;
  for (char *s; (s = ex_next_content(r));) {
    const bool alone = !s[1] || isspace((unsigned char)s[1]);
    if (s[0] == 'v' && alone) {
      read_xyz(r, s + 1, xyz);
      add_point(points, &capacity, xyz);
    } else if (s[0] == 'f' && alone) {
      const long last = last_vertex(r, s + 1, points->n);
      if (last > most) most = last, most_at = r->line;
    }
  }
  if (points->n > 1 && most > points->n)
    ex_die(EX_BAD_INPUT, "%s:%lld: vertex %ld of a face, in a file of %d vertices", r->name, most_at, most,
           points->n);
}

void hm_read_points(hm_points *points, const char *file) {
  static const struct {
    const char *ending;
    void (*read)(ex_reader *, hm_points *);
  } formats[] = {{".xyz", read_xyz_file}, {".off", read_off_file}, {".obj", read_obj_file}};
  *points = (hm_points){0};
  const char *dot = strrchr(file, '.');
  size_t f = 0;
  while (f < 3 && !(dot && strcasecmp(dot, formats[f].ending) == 0)) f++;
  if (f == 3) ex_die(EX_BAD_INPUT, "%s: the name should end in .xyz, .off or .obj", file);
  ex_reader r;
  ex_open(&r, file, "#");
  formats[f].read(&r, points);
  if (points->n < 2) ex_bad_line(&r, "the file ends with %d points; at least 2 are needed", points->n);
  ex_close(&r);
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
    ex_die(EX_BAD_INPUT, "%s: the points span %.3g; this program needs 1e-100 to 1e100", points->source,
           diagonal);
  cell *cells = ex_alloc((size_t)points->n, sizeof *cells);
  for (int i = 0; i < points->n; i++) {
    cells[i].point = i;
    for (int d = 0; d < 3; d++) {
      axes[d][i] -= lo[d];
      cells[i].key[d] = diagonal > 0 ? llround(axes[d][i] / diagonal * 1e12) : 0;
    }
  }
  qsort(cells, (size_t)points->n, sizeof *cells, compare_cells);
  bool *keep = ex_zeros((size_t)points->n, sizeof *keep);
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
  if (kept < 2) ex_die(EX_BAD_INPUT, "%s: all points coincide; at least 2 are needed", points->source);
}

void hm_free_points(hm_points *points) {
  free(points->x);
  free(points->y);
  free(points->z);
  free(points->self);
}
