/* SPDX-License-Identifier: BSD-3-Clause */
/* Workspaces cut into arrays: the same code that counts the bytes hands out the addresses. */
#ifndef BQR_SRC_ARENA_H
#define BQR_SRC_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct bqr_arena {
  char *base;   /* NULL: count only */
  size_t bytes; /* taken; SIZE_MAX: more than can be counted */
} bqr_arena;

/* `count` elements of `size` bytes, aligned to 256; NULL while counting. */
static inline void *bqr_arena_take(bqr_arena *arena, int64_t count, size_t size) {
  size_t start = arena->bytes, bytes;
  if (__builtin_mul_overflow((size_t)count, size, &bytes) || bytes > SIZE_MAX - 255 ||
      __builtin_add_overflow(start, (bytes + 255) / 256 * 256, &arena->bytes))
    arena->bytes = SIZE_MAX;
  return arena->base ? arena->base + start : NULL;
}

#endif
