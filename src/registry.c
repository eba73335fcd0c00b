/* SPDX-License-Identifier: BSD-3-Clause */
/* The families of this build, and how things are called. */
#include "registry.h"
#include "inspect.h"
#include <string.h>

#define BQR_FAMILY(name) extern const bqr_family bqr_family_##name;
#define BQR_FAMILY_LEFT_OUT(name)
#include "families.inc"
#undef BQR_FAMILY
#undef BQR_FAMILY_LEFT_OUT

static const bqr_family *const families[] = {
#define BQR_FAMILY(name) &bqr_family_##name,
#define BQR_FAMILY_LEFT_OUT(name)
#include "families.inc"
#undef BQR_FAMILY
#undef BQR_FAMILY_LEFT_OUT
    NULL};

static const char *const left_out[] = {
#define BQR_FAMILY(name)
#define BQR_FAMILY_LEFT_OUT(name) #name,
#include "families.inc"
#undef BQR_FAMILY
#undef BQR_FAMILY_LEFT_OUT
    NULL};

static bool equal(const char *name, const char *text, size_t length) {
  return strlen(name) == length && memcmp(name, text, length) == 0;
}

const bqr_registry *bqr_registry_builtin(void) {
  static const bqr_registry builtin = {families, left_out, bqr_builtin_operations};
  return &builtin;
}

const bqr_family *bqr_registry_find(const bqr_registry *registry, const char *name, size_t length) {
  for (const bqr_family *const *f = registry->families; *f; f++)
    if (equal((*f)->name, name, length)) return *f;
  return NULL;
}

bool bqr_registry_left_out(const bqr_registry *registry, const char *name, size_t length) {
  for (const char *const *f = registry->left_out; *f; f++)
    if (equal(*f, name, length)) return true;
  return false;
}

int bqr_registry_variant(const bqr_family *family, const char *name, size_t length) {
  for (int i = 0; i < family->nvariants; i++)
    if (equal(family->variants[i].name, name, length)) return i;
  return -1;
}

const bqr_operation *bqr_registry_operation(const bqr_registry *registry, int op) {
  for (const bqr_operation *const *o = registry->operations; *o; o++)
    if ((*o)->op == op) return *o;
  return NULL;
}

const bqr_operation *bqr_registry_named(const bqr_registry *registry, const char *name, size_t length) {
  for (const bqr_operation *const *o = registry->operations; *o; o++)
    if (equal((*o)->name, name, length)) return *o;
  return NULL;
}

int bqr_num_families(void) { return (int)(sizeof families / sizeof families[0]) - 1; }

const bqr_family *bqr_family_at(int i) { return i >= 0 && i < bqr_num_families() ? families[i] : NULL; }

const bqr_family *bqr_family_find(const char *name) {
  return bqr_registry_find(bqr_registry_builtin(), name, strlen(name));
}

int bqr_variant_find(const bqr_family *family, const char *name) {
  return bqr_registry_variant(family, name, strlen(name));
}

const char *bqr_op_name(int op) {
  const bqr_operation *operation = bqr_registry_operation(bqr_registry_builtin(), op);
  return operation ? operation->name : "no operation";
}

const char *bqr_role_suffix(bqr_role role) {
  static const char *const suffixes[BQR_NUM_ROLES] = {"", ".panel", ".leaf"};
  return suffixes[role];
}
