/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors over the distance of points, both in powers of ten. */
#include "reconstruct.h"

#include <math.h>

enum { width = 690, height = 520, left = 90, right = 120, top = 90, bottom = 70 };

typedef struct axes {
  double x0, x1, y0, y1; /* logarithms */
} axes;

static double at_x(const axes *a, double spacing) {
  return left + (log10(spacing) - a->x0) / (a->x1 - a->x0) * (width - left - right);
}
static double at_y(const axes *a, double error) {
  return height - bottom - (log10(error) - a->y0) / (a->y1 - a->y0) * (height - top - bottom);
}

static axes choose_axes(const rc_result *r, int count) {
  double least = INFINITY, most = 0;
  for (int i = 0; i < count; i++) {
    least = fmin(least, 0.4 * fmin(r[i].gradient, r[i].convection));
    most = fmax(most, fmax(r[i].gradient, r[i].convection));
  }
  return (axes){log10(r[count - 1].spacing) - 0.12, log10(r[0].spacing) + 0.12, floor(log10(least)),
                ceil(log10(most))};
}

static void write_line(FILE *f, double x0, double y0, double x1, double y1, const char *style) {
  fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x0, y0, x1, y1, style);
}

static void write_frame(FILE *f, const axes *a, const rc_result *r, int count) {
  char text[48];
  for (int e = (int)a->y0; e <= (int)a->y1; e++) {
    double y = at_y(a, pow(10, e));
    write_line(f, left, y, width - right, y, "stroke=\"#dde4e6\"");
    snprintf(text, sizeof text, "1e%d", e);
    ex_svg_text(f, left - 10, y + 5, 14, "text-anchor=\"end\"", text);
  }
  for (int i = 0; i < count; i++) {
    double x = at_x(a, r[i].spacing);
    write_line(f, x, top, x, height - bottom, "stroke=\"#dde4e6\"");
    snprintf(text, sizeof text, "%d", r[i].n);
    ex_svg_text(f, x, height - bottom + 22, 14, "text-anchor=\"middle\"", text);
  }
  ex_svg_text(f, (left + width - right) / 2.0, height - 18, 15, "text-anchor=\"middle\"",
              "points (their distance on a logarithmic scale)");
}

static double error_of(const rc_result *r, bool gradient) { return gradient ? r->gradient : r->convection; }

static void write_curve(FILE *f, const axes *a, const rc_result *r, int count, bool gradient) {
  const char *colour = gradient ? "#27728a" : "#e4572e";
  char style[64];
  fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\" points=\"", colour);
  for (int i = 0; i < count; i++)
    fprintf(f, "%.1f,%.1f ", at_x(a, r[i].spacing), at_y(a, error_of(&r[i], gradient)));
  fputs("\"/>\n", f);
  for (int i = 0; i < count; i++)
    fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\"/>\n", at_x(a, r[i].spacing),
            at_y(a, error_of(&r[i], gradient)), colour);
  snprintf(style, sizeof style, "font-weight=\"bold\" style=\"fill:%s\"", colour);
  ex_svg_text(f, at_x(a, r[0].spacing) + 14, at_y(a, error_of(&r[0], gradient)) + (gradient ? 14 : -4), 15,
              style, gradient ? "gradient" : "convection");
}

/* The slope of theory, below the curves. */
static void write_slope(FILE *f, const axes *a, const rc_result *r, int count) {
  const rc_result *fine = &r[count - 1], *coarse = &r[0];
  double error = 0.4 * fmin(fine->gradient, fine->convection), ratio = coarse->spacing / fine->spacing;
  write_line(f, at_x(a, fine->spacing), at_y(a, error), at_x(a, coarse->spacing),
             at_y(a, error * ratio * ratio),
             "stroke=\"#6b7d85\" stroke-width=\"1.5\" stroke-dasharray=\"6 5\"");
  ex_svg_text(f, at_x(a, coarse->spacing) + 14, at_y(a, error * ratio * ratio) + 5, 15,
              "style=\"fill:#6b7d85\"", "order 2");
}

void rc_write_svg(const char *file, const rc_result *results, int count, const char *subtitle) {
  FILE *f = ex_svg_begin(file, width, height);
  axes a = choose_axes(results, count);
  ex_svg_text(f, 30, 38, 22, "font-weight=\"bold\"", "Moving least squares: relative errors");
  ex_svg_text(f, 30, 64, 15, "style=\"fill:#52656d\"", subtitle);
  write_frame(f, &a, results, count);
  if (count > 1) write_slope(f, &a, results, count);
  write_curve(f, &a, results, count, true);
  write_curve(f, &a, results, count, false);
  ex_svg_end(f, file);
}
