/* SPDX-License-Identifier: BSD-3-Clause */
/* The families of this build, and how things are called. */
#include "registry.h"
#include "inspect.h"
#include <string.h>

#define BATCHQR_FAMILY(name) extern const batchqr_family batchqr_family_##name;
#define BATCHQR_FAMILY_LEFT_OUT(name)
#include "families.inc"
#undef BATCHQR_FAMILY
#undef BATCHQR_FAMILY_LEFT_OUT

static const batchqr_family *const families[] = {
#define BATCHQR_FAMILY(name) &batchqr_family_##name,
#define BATCHQR_FAMILY_LEFT_OUT(name)
#include "families.inc"
#undef BATCHQR_FAMILY
#undef BATCHQR_FAMILY_LEFT_OUT
    NULL};

static const char *const left_out[] = {
#define BATCHQR_FAMILY(name)
#define BATCHQR_FAMILY_LEFT_OUT(name) #name,
#include "families.inc"
#undef BATCHQR_FAMILY
#undef BATCHQR_FAMILY_LEFT_OUT
    NULL};

static const char *const op_names[BATCHQR_NUM_OPS] = {
    [BATCHQR_GEQRF] = "geqrf",     [BATCHQR_ORGQR] = "orgqr",   [BATCHQR_ORMQR] = "ormqr",
    [BATCHQR_QR] = "qr",           [BATCHQR_GEQR_R] = "geqr_r", [BATCHQR_GELS] = "gels",
    [BATCHQR_R_RANGE] = "r_range", [BATCHQR_COPY_R] = "copy_r", [BATCHQR_COPY_V] = "copy_v",
    [BATCHQR_UPRIGHT] = "upright", [BATCHQR_TRSM] = "trsm",     [BATCHQR_SORT] = "sort"};

static bool equal(const char *name, const char *text, size_t length) {
  return strlen(name) == length && memcmp(name, text, length) == 0;
}

const bqr_registry *bqr_registry_builtin(void) {
  static const bqr_registry builtin = {families, left_out};
  return &builtin;
}

const batchqr_family *bqr_registry_find(const bqr_registry *registry, const char *name, size_t length) {
  for (const batchqr_family *const *f = registry->families; *f; f++)
    if (equal((*f)->name, name, length)) return *f;
  return NULL;
}

bool bqr_registry_left_out(const bqr_registry *registry, const char *name, size_t length) {
  for (const char *const *f = registry->left_out; *f; f++)
    if (equal(*f, name, length)) return true;
  return false;
}

int bqr_registry_variant(const batchqr_family *family, const char *name, size_t length) {
  for (int i = 0; i < family->nvariants; i++)
    if (equal(family->variants[i].name, name, length)) return i;
  return -1;
}

int bqr_registry_op(const char *name, size_t length) {
  for (int op = 0; op < BATCHQR_NUM_OPS; op++)
    if (equal(op_names[op], name, length)) return op;
  return -1;
}

int bqr_num_families(void) { return (int)(sizeof families / sizeof families[0]) - 1; }

const batchqr_family *bqr_family_at(int i) { return i >= 0 && i < bqr_num_families() ? families[i] : NULL; }

const batchqr_family *bqr_family_find(const char *name) {
  return bqr_registry_find(bqr_registry_builtin(), name, strlen(name));
}

int bqr_variant_find(const batchqr_family *family, const char *name) {
  return bqr_registry_variant(family, name, strlen(name));
}

const char *bqr_op_name(int op) { return op >= 0 && op < BATCHQR_NUM_OPS ? op_names[op] : "no operation"; }
