/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of families. The planner takes it as an argument, so that tests can plan with made-up ones. */
#ifndef BQR_SRC_REGISTRY_H
#define BQR_SRC_REGISTRY_H

#include "operations.h"

typedef struct bqr_registry {
  const bqr_family *const *families;      /* in order of preference, ended by NULL */
  const char *const *left_out;            /* names of families that this build knows and lacks; likewise */
  const bqr_operation *const *operations; /* likewise */
} bqr_registry;

/* The families of this build. */
const bqr_registry *bqr_registry_builtin(void);

/* The family named by the first `length` characters of `name`; NULL if there is none. */
const bqr_family *bqr_registry_find(const bqr_registry *registry, const char *name, size_t length);
bool bqr_registry_left_out(const bqr_registry *registry, const char *name, size_t length);

/* The index of a variant, or -1. */
int bqr_registry_variant(const bqr_family *family, const char *name, size_t length);

/* What follows an operation's name where it is meant as a child: "", ".panel", ".leaf". */
const char *bqr_role_suffix(bqr_role role);

/* The row of an operation, by its number or its name; NULL if there is none. */
const bqr_operation *bqr_registry_operation(const bqr_registry *registry, int op);
const bqr_operation *bqr_registry_named(const bqr_registry *registry, const char *name, size_t length);

#endif
