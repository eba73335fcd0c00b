/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays with poisoned padding. Every element starts as poison: a NaN whose payload depends on its index, so
 * that reading it spoils a result and neither writing to it nor copying padding to padding goes unnoticed.
 * Windows are opened where a routine may write; guard_check() tells the first element outside of them whose
 * bits changed. Inputs that must not change are simply not opened.
 *
 *   guard g = guard_create(sizeof(double), elements);
 *   matgen_fill(type, kind, seed, m, n, guard_at(&g, offset), ld);
 *   guard_open(&g, offset, m, n, ld);
 *   guard_seal(&g);
 *   ... upload g.data, run, download to g.data ...
 *   ck_assert_int_eq(guard_check(&g), -1);
 */
#ifndef BQR_LAB_GUARD_H
#define BQR_LAB_GUARD_H

#include <stddef.h>
#include <stdint.h>

typedef struct guard {
  unsigned char *data;   /* the array as it is now: elements * size bytes */
  unsigned char *before; /* as it was when sealed */
  unsigned char *open;   /* for each element: may it be written? */
  size_t size;           /* bytes of an element: 4, 8 or 16 */
  int64_t elements;
} guard;

guard guard_create(size_t size, int64_t elements);
void guard_destroy(guard *g);

/* Bytes of the whole array. */
size_t guard_bytes(const guard *g);
void *guard_at(const guard *g, int64_t element);
/* The same place in the array as it was when sealed. */
const void *guard_before(const guard *g, int64_t element);

/* Lets rows x cols elements of leading dimension ld be written. */
void guard_open(guard *g, int64_t element, int rows, int cols, int ld);

/* Remembers the contents: what is outside the windows must keep its bits from here on. */
void guard_seal(guard *g);
/* Puts the contents back to what they were when sealed. */
void guard_restore(guard *g);

/* The first element outside the windows that is not what it was; -1 if there is none. */
int64_t guard_check(const guard *g);

#endif
