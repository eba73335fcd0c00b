/* SPDX-License-Identifier: BSD-3-Clause */
/* The picture: a row for each level, from the root down to the leaves, with the numbers of fronts by their
 * columns, and the level's shares of the work and of the time. */
#include "fronts.h"

#include <math.h>

enum { margin = 40, header = 134, label_width = 60, cell = 76, row_height = 32, gap = 60, bar_width = 150 };

/* From few fronts to many, with a readable colour for the number. */
enum { num_shades = 6 };
static const char *const shade_colours[num_shades] = {"#e6f2ef", "#c4e3dc", "#97cfc8",
                                                      "#3d949f", "#27728a", "#1b4f6c"};
static const char *const number_colours[num_shades] = {"#1f2f36", "#1f2f36", "#1f2f36",
                                                       "#ffffff", "#ffffff", "#ffffff"};

typedef struct picture {
  FILE *file;
  const fr_tree *tree;
  const fr_report *report;
  int least, most; /* classes of columns: c holds 2^c .. 2^(c+1) - 1 */
  double seconds;
  double longest_flops, longest_time; /* shares: the longest bars' */
} picture;

static const char *const grey = "fill=\"#6b7d85\"";
static const char *const grey_middle = "fill=\"#6b7d85\" text-anchor=\"middle\"";

static int class_of(const fr_front *f) { return ilogb(f->n + 1); }

static double level_seconds(const fr_level_report *times) {
  return times->t_fill + times->t_qr + times->t_rank + times->t_keep;
}

static void find_scales(picture *p) {
  for (int l = 0; l < p->tree->num_levels; l++) p->seconds += level_seconds(&p->report->levels[l]);
  for (int l = 0; l < p->tree->num_levels; l++) {
    p->longest_flops = fmax(p->longest_flops, p->tree->levels[l].flops / p->tree->flops);
    p->longest_time = fmax(p->longest_time, level_seconds(&p->report->levels[l]) / p->seconds);
  }
}

static void find_classes(picture *p) {
  p->least = p->most = class_of(&p->tree->fronts[0]);
  for (int i = 0; i < p->tree->count; i++) {
    const int c = class_of(&p->tree->fronts[i]);
    if (c < p->least) p->least = c;
    if (c > p->most) p->most = c;
  }
}

static int right_of_cells(const picture *p) { return margin + label_width + cell * (p->most - p->least + 1); }
static int bar_left(const picture *p, int bar) { return right_of_cells(p) + gap + bar * (bar_width + gap); }

/* The root is the last level, and on top. */
static int top_of(const picture *p, int level) {
  return header + row_height * (p->tree->num_levels - 1 - level);
}

static void write_heads(const picture *p) {
  char text[32];
  const double y = header - 12;
  ex_svg_text(p->file, margin, y, 13, grey, "level");
  for (int c = p->least; c <= p->most; c++) {
    snprintf(text, sizeof text, "%d\u2013%d", 1 << c, (1 << (c + 1)) - 1);
    ex_svg_text(p->file, margin + label_width + cell * (c - p->least + 0.5), y, 13, grey_middle, text);
  }
  ex_svg_text(p->file, margin + label_width, y - 24, 13, grey, "fronts, by columns");
  ex_svg_text(p->file, bar_left(p, 0), y, 13, grey, "share of operations");
  ex_svg_text(p->file, bar_left(p, 1), y, 13, grey, "share of time (grey: assembly)");
}

/* A shade for each factor of 5. */
static int shade(int count) {
  const int s = (int)(log(count) / log(5));
  return s < num_shades ? s : num_shades - 1;
}

static void write_cell(const picture *p, int level, int class, int count) {
  const int x = margin + label_width + cell * (class - p->least), y = top_of(p, level);
  char number[16], style[64];
  fprintf(p->file,
          "<rect class=\"fronts\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\"/>\n",
          x + 2, y + 2, cell - 4, row_height - 4, shade_colours[shade(count)]);
  snprintf(number, sizeof number, "%d", count);
  snprintf(style, sizeof style, "fill=\"%s\" text-anchor=\"middle\"", number_colours[shade(count)]);
  ex_svg_text(p->file, x + 0.5 * cell, y + 0.5 * row_height + 5, 14, style, number);
}

static void write_bar(const picture *p, int level, double x, double length, const char *colour) {
  fprintf(p->file, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>\n", x,
          top_of(p, level) + 7, length * bar_width, row_height - 14, colour);
}

static void write_share(const picture *p, int level, double x, double share) {
  char text[16];
  if (share < 0.0005) return;
  snprintf(text, sizeof text, "%.1f %%", 100 * share);
  ex_svg_text(p->file, x + 6, top_of(p, level) + 0.5 * row_height + 4, 12, grey, text);
}

/* The shares of work and time, the latter with the assembly's part at the end. */
static void write_bars(const picture *p, int l) {
  const fr_level_report *times = &p->report->levels[l];
  const double flops = p->tree->levels[l].flops / p->tree->flops, all = level_seconds(times) / p->seconds;
  const double scale = 1 / p->longest_time, qr = times->t_qr / p->seconds;
  write_bar(p, l, bar_left(p, 0), flops / p->longest_flops, "#e4572e");
  write_share(p, l, bar_left(p, 0) + flops / p->longest_flops * bar_width, flops);
  write_bar(p, l, bar_left(p, 1), qr * scale, "#27728a");
  write_bar(p, l, bar_left(p, 1) + qr * scale * bar_width, (all - qr) * scale, "#a9b7bc");
  write_share(p, l, bar_left(p, 1) + all * scale * bar_width, all);
}

static void write_level(const picture *p, int l) {
  const fr_level *level = &p->tree->levels[l];
  int counts[EX_SIZE_CLASSES] = {0};
  char number[16];
  snprintf(number, sizeof number, "%d", l + 1);
  ex_svg_text(p->file, margin + 8, top_of(p, l) + 0.5 * row_height + 5, 14, "", number);
  for (int i = level->begin; i < level->end; i++) counts[class_of(&p->tree->fronts[i])]++;
  for (int c = p->least; c <= p->most; c++)
    if (counts[c]) write_cell(p, l, c, counts[c]);
  write_bars(p, l);
}

void fr_write_svg(const char *file, const fr_tree *tree, const fr_report *report, const char *title,
                  const char *subtitle) {
  picture p = {.tree = tree, .report = report};
  find_classes(&p);
  find_scales(&p);
  p.file =
      ex_svg_begin(file, bar_left(&p, 1) + bar_width + gap + margin, top_of(&p, 0) + row_height + margin);
  ex_svg_text(p.file, margin, 42, 24, "font-weight=\"bold\"", title);
  ex_svg_text(p.file, margin, 68, 15, "fill=\"#52656d\"", subtitle);
  write_heads(&p);
  for (int l = 0; l < tree->num_levels; l++) write_level(&p, l);
  ex_svg_end(p.file, file);
}
