/* SPDX-License-Identifier: BSD-3-Clause */
/* The level's fronts are filled, and rows of R are kept: by threads on the CPU, by the kernels of
 * fronts_assemble.cu on the GPU. Both do what fronts_assemble.h says. */
#include "fronts_solver.h"

#include <string.h>

/* Fronts are filled in slices of about so many columns; on the CPU only where there are not many fronts. */
enum { slice_cols = 32, many_fronts = 256 };

static int num_slices(const fr_solver *s, const fr_level *level) {
  if (!s->backend.on_device && level->end - level->begin >= many_fronts) return 1;
  return level->most_cols / slice_cols + 1;
}

static fr_share slice(int item, int slices) { return (fr_share){0, 1, item % slices, slices}; }

static void host_fill(const fr_solver *s, const fr_level *level, double *to, const fr_level *children,
                      const double *from) {
  enum { page = 1 << 15 };
  const int64_t pages = (level->size + page - 1) / page;
  const int fronts = level->end - level->begin, slices = children ? num_slices(s, children) : 0;
  const int parts = children ? (children->end - children->begin) * slices : 0;
#pragma omp parallel
  {
#pragma omp for
    for (int64_t p = 0; p < pages; p++)
      memset(to + p * page, 0, (size_t)(p + 1 < pages ? page : level->size - p * page) * sizeof *to);
#pragma omp for schedule(dynamic, 16)
    for (int i = 0; i < fronts; i++) {
      const fr_front *f = &s->x.fronts[level->begin + i];
      fr_put_rows(&s->x, f, to + f->front_at, slice(0, 1));
    }
#pragma omp for schedule(dynamic, 16)
    for (int i = 0; i < parts; i++) {
      const fr_front *f = &s->x.fronts[children->begin + i / slices];
      fr_put_contribution(&s->x, f, from + f->front_at, to + s->x.fronts[f->parent].front_at,
                          slice(i, slices));
    }
  }
}

static void host_keep(const fr_solver *s, const fr_level *level, const double *from) {
  const int slices = num_slices(s, level), parts = (level->end - level->begin) * slices;
#pragma omp parallel for schedule(dynamic, 16)
  for (int i = 0; i < parts; i++) {
    const int f = level->begin + i / slices;
    fr_keep_r(&s->x, f, from + s->x.fronts[f].front_at, slice(i, slices));
  }
}

static void host_clear(const fr_solver *s, double *level, int count, int *fronts) {
#pragma omp parallel for schedule(dynamic, 1)
  for (int i = 0; i < count; i++) {
    const fr_front *f = &s->x.fronts[fronts[i]];
    fr_clear_reflectors(f, level + f->front_at, slice(0, 1));
  }
}

#if HAVE_CUDA
static void device_fill(const fr_solver *s, const fr_level *level, double *to, const fr_level *children,
                        const double *from) {
  ex_check_cuda(fr_device_put_rows(&s->x, level->begin, level->end, num_slices(s, level), to, level->size));
  if (children)
    ex_check_cuda(fr_device_put_contributions(&s->x, children->begin, children->end, num_slices(s, children),
                                              from, to));
}

static void device_keep(const fr_solver *s, const fr_level *level, const double *from) {
  ex_check_cuda(fr_device_keep_r(&s->x, level->begin, level->end, num_slices(s, level), from));
}

static void device_clear(const fr_solver *s, double *level, int count, int *fronts) {
  int *list = ex_copy_to_backend(&s->backend, fronts, (size_t)count * sizeof *fronts), most_cols = 0;
  for (int i = 0; i < count; i++)
    if (s->tree->fronts[fronts[i]].n > most_cols) most_cols = s->tree->fronts[fronts[i]].n;
  ex_check_cuda(fr_device_clear_reflectors(&s->x, list, count, most_cols / slice_cols + 1, level));
  ex_free_copy(&s->backend, list);
}
#else
/* Never called: without CUDA no backend is on a device. */
#define device_fill  host_fill
#define device_keep  host_keep
#define device_clear host_clear
#endif

void fr_fill_level(const fr_solver *s, int l) {
  const fr_level *level = &s->tree->levels[l];
  (s->backend.on_device ? device_fill : host_fill)(s, level, s->fronts[l % 2], l > 0 ? level - 1 : NULL,
                                                   s->fronts[(l + 1) % 2]);
}

void fr_keep_level(const fr_solver *s, int l) {
  (s->backend.on_device ? device_keep : host_keep)(s, &s->tree->levels[l], s->fronts[l % 2]);
}

void fr_clear_fronts(const fr_solver *s, int l, int count, int *fronts) {
  (s->backend.on_device ? device_clear : host_clear)(s, s->fronts[l % 2], count, fronts);
}
