/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard.h"
#include "memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Quiet NaNs whose low bits are a hash of the position. */
static void poison(guard *g) {
  bool doubles = g->size % 8 == 0;
  size_t numbers = guard_bytes(g) / (doubles ? 8 : 4);
  for (size_t i = 0; i < numbers; i++) {
    uint64_t hash = (i + 1) * 0x9e3779b97f4a7c15u;
    if (doubles)
      ((uint64_t *)(void *)g->data)[i] = 0x7ff8000000000000u | (hash >> 13 & 0x7ffffffffffffu);
    else
      ((uint32_t *)(void *)g->data)[i] = 0x7fc00000u | (uint32_t)(hash >> 42);
  }
}

guard guard_create(size_t size, int64_t elements) {
  guard g = {.size = size, .elements = elements};
  g.data = memory_host(guard_bytes(&g));
  g.before = memory_host(guard_bytes(&g));
  g.open = memory_host((size_t)elements);
  poison(&g);
  return g;
}

void guard_destroy(guard *g) {
  free(g->data);
  free(g->before);
  free(g->open);
  *g = (guard){0};
}

size_t guard_bytes(const guard *g) { return g->size * (size_t)g->elements; }

void *guard_at(const guard *g, int64_t element) { return g->data + g->size * (size_t)element; }

const void *guard_before(const guard *g, int64_t element) { return g->before + g->size * (size_t)element; }

void guard_open(guard *g, int64_t element, int rows, int cols, int ld) {
  for (int j = 0; j < cols && rows > 0; j++) memset(g->open + element + (int64_t)j * ld, 1, (size_t)rows);
}

void guard_seal(guard *g) { memcpy(g->before, g->data, guard_bytes(g)); }

void guard_restore(guard *g) { memcpy(g->data, g->before, guard_bytes(g)); }

/* The end of the run of elements that starts at i and is open, or is not. */
static int64_t run_end(const guard *g, int64_t i) {
  const unsigned char *other = memchr(g->open + i, !g->open[i], (size_t)(g->elements - i));
  return other != NULL ? other - g->open : g->elements;
}

int64_t guard_check(const guard *g) {
  for (int64_t i = 0, end; i < g->elements; i = end) {
    end = run_end(g, i);
    size_t bytes = (size_t)(end - i) * g->size;
    if (g->open[i] || memcmp(guard_at(g, i), guard_before(g, i), bytes) == 0) continue;
    while (memcmp(guard_at(g, i), guard_before(g, i), g->size) == 0) i++;
    return i;
  }
  return -1;
}
