/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles: creation, settings, forced choices. */
#include "handle.h"
#include "inspect.h"
#include "verbose.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* OpenMP ends the process where it cannot start a thread. */
enum { MOST_THREADS = 4096 };

/* What was wrong when a thread's last creation failed: there is no handle then that could say it. */
static _Thread_local bqr_error create_error;

static batchqr_status check_options(const batchqr_options *o) {
  bqr_error *error = &create_error;
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  if ((unsigned)o->backend > BATCHQR_BACKEND_CUDA)
    return bqr_fail(error, invalid, "options.backend = %d is not a batchqr_backend", (int)o->backend);
  if (o->threads < 0 || o->threads > MOST_THREADS)
    return bqr_fail(error, invalid, "options.threads = %d is not in 0 .. %d", o->threads, MOST_THREADS);
  if (o->plans < 0) return bqr_fail(error, invalid, "options.plans = %d is negative", o->plans);
  for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
    if (o->reserved[i])
      return bqr_fail(
          error, invalid,
          "options.reserved[%zu] = %d: the options were not initialized, or ask for what this version of "
          "batchqr does not have",
          i, o->reserved[i]);
  return BATCHQR_SUCCESS;
}

/* *reason: why AUTO did not take CUDA; else "". */
static batchqr_status choose_device(bqr_device *device, const batchqr_options *o, bqr_error *reason) {
  reason->text[0] = '\0';
  if (o->backend != BATCHQR_BACKEND_CPU) {
    batchqr_status status = bqr_device_cuda(device, reason);
    if (!status || o->backend == BATCHQR_BACKEND_CUDA) return status;
  }
  bqr_device_cpu(device, o->threads);
  return BATCHQR_SUCCESS;
}

static batchqr_status choose_table(struct batchqr_handle *h, const batchqr_options *o) {
  const bqr_registry *registry = bqr_registry_builtin();
  const char *path = o->tuning_file ? o->tuning_file : getenv("BATCHQR_TUNING_FILE");
  if (path && (o->tuning_file || *path)) return bqr_table_read(registry, path, &h->table, &h->error);
  if (h->device.backend == BATCHQR_BACKEND_CPU) return BATCHQR_SUCCESS;
  return bqr_table_builtin(registry, h->device.sm, &h->table, &h->error);
}

/* Whatever table the user has, it need not say anything of children. */
static batchqr_status choose_tables(struct batchqr_handle *h, const batchqr_options *o) {
  batchqr_status status = choose_table(h, o);
  if (status || h->device.backend == BATCHQR_BACKEND_CPU) return status;
  return bqr_table_children(bqr_registry_builtin(), &h->child_table, &h->error);
}

static void describe(struct batchqr_handle *h, const char *reason) {
  const bqr_device *d = &h->device;
  char machine[256], table[128] = "no tuning table: by heuristic";
  if (d->backend == BATCHQR_BACKEND_CUDA)
    snprintf(machine, sizeof machine, "%.100s (sm_%d, %d multiprocessors)", d->name, d->sm,
             d->multiprocessors);
  else
    snprintf(machine, sizeof machine, "CPU, %d thread%s%s%.150s%s", d->threads, d->threads == 1 ? "" : "s",
             *reason ? " (no CUDA: " : "", reason, *reason ? ")" : "");
  if (h->table) snprintf(table, sizeof table, "tuning table %.80s", h->table->name);
  snprintf(h->description, sizeof h->description, "%s; %s", machine, table);
}

batchqr_status batchqr_create(batchqr_handle_t *handle, const batchqr_options *options) {
  static const batchqr_options defaults = {.backend = BATCHQR_BACKEND_AUTO};
  if (!handle) return bqr_fail(&create_error, BATCHQR_INVALID_ARGUMENT, "handle is NULL");
  *handle = NULL;
  if (!options) options = &defaults;
  batchqr_status status = check_options(options);
  if (status) return status;
  struct batchqr_handle *h = calloc(1, sizeof *h);
  if (!h) return bqr_fail_memory(&create_error, "the handle");
  bqr_error reason;
  status = choose_device(&h->device, options, &reason);
  if (status) h->error = reason;
  if (!status) status = choose_tables(h, options);
  if (status) {
    create_error = h->error;
    bqr_table_free(h->table);
    free(h);
    return status;
  }
  h->positive = options->positive_diagonal != 0;
  h->most_plans = options->plans > 0 ? options->plans : BQR_PLANS_KEPT;
  h->verbose = bqr_verbose_wanted();
  describe(h, reason.text);
  *handle = h;
  return BATCHQR_SUCCESS;
}

void batchqr_destroy(batchqr_handle_t handle) {
  if (!handle) return;
  bqr_cache_free(handle);
  bqr_table_free(handle->table);
  bqr_table_free(handle->child_table);
  free(handle);
}

batchqr_status batchqr_set_stream(batchqr_handle_t handle, batchqr_stream stream) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  handle->stream = stream;
  return BATCHQR_SUCCESS;
}

batchqr_status batchqr_set_workspace(batchqr_handle_t handle, void *workspace, size_t bytes) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  bqr_error *error = &handle->error;
  if (!workspace && bytes > 0)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "workspace is NULL, but bytes = %zu", bytes);
  if ((uintptr_t)workspace % BQR_ALIGNMENT != 0)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "workspace = %p is not aligned to %d bytes", workspace,
                    BQR_ALIGNMENT);
  if (workspace && !bqr_address_serves_device(&handle->device, workspace))
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "workspace = %p is host memory that %s cannot reach",
                    workspace, handle->device.name);
  handle->lent = workspace;
  handle->lent_bytes = bytes;
  return BATCHQR_SUCCESS;
}

batchqr_status batchqr_set_workspace_limit(batchqr_handle_t handle, size_t bytes) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  handle->workspace_limit = bytes;
  return BATCHQR_SUCCESS;
}

batchqr_status batchqr_set_compute(batchqr_handle_t handle, batchqr_compute compute) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  if ((unsigned)compute > BATCHQR_COMPUTE_HALF)
    return bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "compute = %d is not a batchqr_compute",
                    (int)compute);
  handle->compute = compute;
  return BATCHQR_SUCCESS;
}

batchqr_backend batchqr_get_backend(batchqr_handle_t handle) {
  return handle ? handle->device.backend : BATCHQR_BACKEND_AUTO;
}

const char *batchqr_describe(batchqr_handle_t handle) { return handle ? handle->description : ""; }

const char *batchqr_error_message(batchqr_handle_t handle) {
  if (handle) return handle->error.text;
  return create_error.text[0] ? create_error.text : "handle is NULL";
}

bqr_planner bqr_handle_planner(const struct batchqr_handle *handle) {
  return (bqr_planner){.registry = bqr_registry_builtin(),
                       .device = &handle->device,
                       .table = handle->table,
                       .child_table = handle->child_table,
                       .forced = handle->forced,
                       .compute = handle->compute,
                       .workspace_limit = handle->workspace_limit,
                       .positive = handle->positive,
                       .sorts_always = handle->sorts_always};
}

batchqr_status bqr_make_plan(struct batchqr_handle *handle, const bqr_operation *operation,
                             const batchqr_batch *normalized, bqr_caller caller, struct batchqr_plan **plan) {
  bqr_error *error = &handle->error;
  *plan = NULL;
  batchqr_status status = bqr_check_array_memory(operation, normalized, &handle->device, error);
  if (!status) status = bqr_check_batch(operation, normalized, caller, error);
  if (!status) status = bqr_check_mode(normalized, handle->compute, error);
  if (status) return status;
  bqr_planner planner = bqr_handle_planner(handle);
  status = bqr_plan_new(&planner, operation->op, normalized, plan, error);
  if (!status) status = bqr_plan_prepare(*plan, error);
  if (status) {
    bqr_plan_free(*plan);
    *plan = NULL;
  }
  return status;
}

const bqr_device *bqr_handle_device(batchqr_handle_t handle) { return &handle->device; }

batchqr_status bqr_force_child(batchqr_handle_t handle, int op, bqr_role role, const char *family,
                               const char *variant) {
  bqr_error *error = &handle->error;
  if (!bqr_registry_operation(bqr_registry_builtin(), op))
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "op = %d is not an operation", op);
  bqr_forced forced = {.family = NULL, .variant = -1};
  if (family) {
    forced.family = bqr_family_find(family);
    if (!forced.family || forced.family->op != op)
      return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "there is no family %s for %s", family,
                      bqr_op_name(op));
    if (variant) forced.variant = bqr_variant_find(forced.family, variant);
    if (variant && forced.variant < 0)
      return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s has no variant %s", family, variant);
  }
  bqr_cache_clear(handle);
  handle->forced[bqr_forced_index(op, role)] = forced;
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_force(batchqr_handle_t handle, int op, const char *family, const char *variant) {
  return bqr_force_child(handle, op, BQR_ROLE_STEP, family, variant);
}

void bqr_sort_always(batchqr_handle_t handle, bool always) {
  bqr_cache_clear(handle);
  handle->sorts_always = always;
}

void bqr_set_strip(batchqr_handle_t handle, int64_t elements) { handle->strip_elements = elements; }
