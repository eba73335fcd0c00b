/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress on the terminal, and the picture of the block structure. */
#include "hmatrix.h"

#include <math.h>
#include <stdio.h>

/* --- the picture */

enum { side = 1000, margin = 40, header = 92, legend = 260 };

/* Low-rank blocks from pale to deep, their numbers in a readable colour; dense blocks in a colour of their
 * own. */
enum { num_shades = 8 };
static const char *const shade_colours[num_shades] = {"#e6f2ef", "#c4e3dc", "#97cfc8", "#66b5b8",
                                                      "#3d949f", "#27728a", "#1b4f6c", "#132e4a"};
static const char *const number_colours[num_shades] = {"#2b4a55", "#2b4a55", "#1f3e49", "#ffffff",
                                                       "#ffffff", "#ffffff", "#ffffff", "#ffffff"};
static const char *const dense_colour = "#e4572e";

typedef struct picture_of {
  FILE *file;
  int n;
  const hm_blocks *low_rank, *dense;
  int least, step; /* shade s holds the ranks least + s * step .. least + (s + 1) * step - 1 */
} picture_of;

static void choose_shades(picture_of *p) {
  int least = 1, most = 1;
  for (int64_t b = 0; b < p->low_rank->count; b++) {
    int rank = p->low_rank->blocks[b].rank;
    if (b == 0 || rank < least) least = rank;
    if (rank > most) most = rank;
  }
  p->least = least;
  p->step = (most - least) / num_shades + 1;
}

static int shade(const picture_of *p, int rank) {
  return rank == HM_DENSE ? -1 : (rank - p->least) / p->step;
}

/* The block as a step of a path, in units of points. */
static void write_square(FILE *f, const hm_block *b) {
  fprintf(f, "M%d %dh%dv%dh-%dz", b->col, b->row, b->n, b->m, b->n);
}

/* A path of the blocks of one shade (dense blocks count as shade -1). White lines part the blocks, thinner
 * where blocks are small. */
static void write_path(const picture_of *p, const hm_blocks *list, int wanted, const char *colour) {
  double sides = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < list->count; i++) {
    const hm_block *b = &list->blocks[i];
    if (shade(p, b->rank) == wanted) sides += sqrt((double)b->m * b->n), count++;
  }
  if (count == 0) return;
  fprintf(p->file, "<path fill=\"%s\" stroke-width=\"%.4g\" d=\"", colour,
          fmin(0.6 * p->n / side, 0.06 * sides / (double)count));
  for (int64_t i = 0; i < list->count; i++)
    if (shade(p, list->blocks[i].rank) == wanted) write_square(p->file, &list->blocks[i]);
  fputs("\"/>\n", p->file);
}

/* The lower half, which `use` mirrors at the diagonal. */
static void write_blocks(const picture_of *p) {
  fprintf(p->file, "<g transform=\"translate(%d %d) scale(%.9g)\" stroke=\"#fff\">\n<g id=\"half\">\n",
          margin, header, (double)side / p->n);
  for (int s = 0; s < num_shades; s++) write_path(p, p->low_rank, s, shade_colours[s]);
  write_path(p, p->dense, -1, dense_colour);
  fputs("</g>\n<use href=\"#half\" transform=\"matrix(0 1 1 0 0 0)\"/>\n</g>\n", p->file);
}

static void write_number(const picture_of *p, int row, int m, int col, int n, int rank) {
  double scale = (double)side / p->n, room = scale * (m < n ? m : n), size = 0.4 * fmin(room, 60);
  if (room < 16) return;
  fprintf(p->file, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" fill=\"%s\">%d</text>\n",
          margin + scale * (col + 0.5 * n), header + scale * (row + 0.5 * m) + 0.35 * size, size,
          number_colours[shade(p, rank)], rank);
}

/* Ranks, in blocks with room for a number. */
static void write_ranks(const picture_of *p) {
  fputs("<g text-anchor=\"middle\">\n", p->file);
  for (int64_t i = 0; i < p->low_rank->count; i++) {
    const hm_block *b = &p->low_rank->blocks[i];
    write_number(p, b->row, b->m, b->col, b->n, b->rank);
    write_number(p, b->col, b->n, b->row, b->m, b->rank);
  }
  fputs("</g>\n", p->file);
}

static void write_entry(FILE *f, int y, const char *colour, const char *text, int64_t count) {
  const int x = margin + side + 30;
  char number[32];
  snprintf(number, sizeof number, "%lld", (long long)count);
  fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"26\" height=\"26\" rx=\"4\" fill=\"%s\" stroke=\"#c9d3d6\"/>\n",
          x, y, colour);
  ex_svg_text(f, x + 38, y + 19, 17, "", text);
  ex_svg_text(f, x + legend - margin, y + 19, 15, "fill=\"#6b7d85\" text-anchor=\"end\"", number);
}

static void write_legend(const picture_of *p) {
  FILE *f = p->file;
  const int x = margin + side + 30;
  int64_t counts[num_shades] = {0};
  int y = header;
  for (int64_t b = 0; b < p->low_rank->count; b++) counts[shade(p, p->low_rank->blocks[b].rank)]++;
  ex_svg_text(f, x, y + 14, 17, "font-weight=\"bold\"", "Rank");
  ex_svg_text(f, x + legend - margin, y + 14, 15, "fill=\"#6b7d85\" text-anchor=\"end\"", "blocks stored");
  y += 30;
  for (int s = 0; s < num_shades; s++) {
    int first = p->least + s * p->step, last = first + p->step - 1;
    char text[48];
    if (counts[s] == 0) continue;
    if (first == last)
      snprintf(text, sizeof text, "%d", first);
    else
      snprintf(text, sizeof text, "%d to %d", first, last);
    write_entry(f, y, shade_colours[s], text, counts[s]);
    y += 34;
  }
  write_entry(f, y + 14, dense_colour, "dense", p->dense->count);
  ex_svg_text(f, x, y + 76, 15, "fill=\"#6b7d85\"", "The matrix is symmetric:");
  ex_svg_text(f, x, y + 96, 15, "fill=\"#6b7d85\"", "its lower half is stored.");
}

void hm_write_svg(const char *file, int n, const hm_blocks *low_rank, const hm_blocks *dense,
                  const char *title, const char *subtitle) {
  const int width = margin + side + 30 + legend, height = header + side + margin;
  FILE *f = ex_svg_begin(file, width, height);
  picture_of p = {.file = f, .n = n, .low_rank = low_rank, .dense = dense};
  choose_shades(&p);
  ex_svg_text(f, margin, 42, 26, "font-weight=\"bold\"", title);
  ex_svg_text(f, margin, 70, 17, "fill=\"#52656d\"", subtitle);
  write_blocks(&p);
  write_ranks(&p);
  fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#1f2f36\"/>\n",
          margin, header, side, side);
  write_legend(&p);
  ex_svg_end(f, file);
}
