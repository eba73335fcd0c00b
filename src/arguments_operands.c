/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of an execute. */
#include "arguments_check.h"
#include "device.h"

/* The GPU loads whole elements; the CPU needs what its compiler would give an array. */
static size_t alignment(const struct batchqr_plan *plan, const bqr_use *use) {
  const batchqr_batch *b = &plan->batch;
  if (bqr_storage_at(b, (int)use->place)->layout == BATCHQR_POINTERS) return sizeof(void *);
  if (plan->aligned[use->place]) return BQR_COLUMN_ALIGNMENT;
  return plan->device.backend == BATCHQR_BACKEND_CUDA ? bqr_kind_bytes(use->kind, b->type)
                                                      : bqr_kind_alignment(use->kind, b->type);
}

static batchqr_status check_address(bqr_name called, const void *address, size_t align, bqr_error *error) {
  if ((uintptr_t)address % align == 0) return BATCHQR_SUCCESS;
  return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s = %p is not aligned to %zu bytes", called.text,
                  address, align);
}

static batchqr_status check_operand(const struct batchqr_plan *plan, const bqr_use *use, const void *address,
                                    bqr_caller caller, bqr_error *error) {
  const bqr_name called = bqr_operand_name(use, caller);
  const bool optional = use->access & BQR_OPTIONAL;
  if (plan->largest[use->place] > 0 && !address && !optional)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s is NULL", called.text);
  const size_t align = alignment(plan, use);
  if (plan->aligned[use->place] && (uintptr_t)address % align != 0)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT,
                    "%s = %p is not aligned to %zu bytes: plans with batch.unaligned = 1 take such addresses",
                    called.text, address, align);
  return check_address(called, address, align, error);
}

/* The storage of an optional vector is looked at where it is wanted; of a matrix, it has been. */
static batchqr_status check_wanted(const struct batchqr_plan *plan, const bqr_use *use, const void *address,
                                   bqr_caller caller, bqr_error *error) {
  if (!(use->access & BQR_OPTIONAL) || !address) return BATCHQR_SUCCESS;
  const bqr_check c = {plan->operation, &plan->batch, caller, error};
  const bqr_checked x = {&c, use, bqr_storage_at(&plan->batch, (int)use->place)};
  if ((use->access & BQR_ANNOUNCED) && plan->largest[use->place] > 0 && !bqr_is_announced(x.storage))
    return BQR_INVALID(&c, "%s = 0: %s is not NULL", bqr_stride_name(&c, use).text,
                       bqr_operand_name(use, caller).text);
  if (!bqr_is_matrix(&x)) return bqr_check_optional(&x, plan->largest[use->place]);
  if (plan->largest[use->place] == 0 || bqr_is_stored(&x)) return BATCHQR_SUCCESS;
  return BQR_INVALID(&c, "%s is not NULL, but batch.%s.ld is 0", bqr_operand_name(use, caller).text,
                     bqr_place_name(use));
}

/* A batch that has served GEQRF says nothing of reflectors, and Q of none is the identity: who wants that
 * gives neither V nor tau. Typed wrappers have k among their arguments. */
static batchqr_status check_reflectors_wanted(const struct batchqr_plan *plan,
                                              const batchqr_operands *operands, bqr_caller caller,
                                              bqr_error *error) {
  const batchqr_batch *b = &plan->batch;
  if (plan->operation->k != BQR_REFLECTORS || bqr_is_typed(caller) || b->sizes == BATCHQR_HOST_SIZES ||
      b->k_array || b->k != 0 || b->count == 0 || b->m == 0 || b->n == 0)
    return BATCHQR_SUCCESS;
  for (const bqr_use *use = plan->operation->uses; use->place; use++)
    if ((use->rows == BQR_K || use->cols == BQR_K) && bqr_address_at(operands, (int)use->place))
      return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch.k = 0 counts no reflectors, but %s is not NULL",
                      bqr_operand_name(use, caller).text);
  return BATCHQR_SUCCESS;
}

/* Of all eigenvalues there is nothing to count. */
static batchqr_status check_found(const struct batchqr_plan *plan, const batchqr_operands *operands,
                                  bqr_caller caller, bqr_error *error) {
  const bqr_use *found = bqr_use_at(plan->operation, BQR_RANK);
  if (!plan->operation->ranges || !operands->rank || bqr_batch_range(&plan->batch)) return BATCHQR_SUCCESS;
  return bqr_fail(error, BATCHQR_INVALID_ARGUMENT,
                  "%s is not NULL, but the batch chooses no eigenvalues by il and iu or by vl and vu",
                  bqr_operand_name(found, caller).text);
}

/* An operand that a call uses, of which at least one element is there. */
typedef struct used {
  const void *address;
  const bqr_use *use; /* NULL: info */
  bool written;       /* by the call */
} used;
enum { MOST_USED = BQR_MOST_USES + 1 };

static int list_used(const struct batchqr_plan *plan, const batchqr_operands *operands, used *list) {
  int n = 0;
  for (const bqr_use *use = plan->operation->uses; use->place; use++) {
    const void *address = bqr_address_at(operands, (int)use->place);
    if (plan->largest[use->place] > 0 && address)
      list[n++] = (used){address, use, (use->access & BQR_WRITTEN) != 0};
  }
  if (plan->batch.count > 0 && operands->info) list[n++] = (used){operands->info, NULL, true};
  return n;
}

/* Operands that are one another must be meant so. */
static batchqr_status check_aliases(const struct batchqr_plan *plan, const batchqr_operands *operands,
                                    bqr_caller caller, bqr_error *error) {
  used list[MOST_USED];
  const int n = list_used(plan, operands, list);
  for (int i = 1; i < n; i++)
    for (int j = i - 1; j >= 0; j--) {
      const used *x = &list[i], *y = &list[j];
      if (x->address != y->address || !(x->written || y->written)) continue;
      const bqr_name called = bqr_operand_name(x->use, caller), other = bqr_operand_name(y->use, caller);
      if (!x->use || !(x->use->access & BQR_MAY_BE_A) || y->use->place != BQR_A || plan->batch.keep_a)
        return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s is the same address as %s", called.text,
                        other.text);
      if (!plan->stored_as_a[x->use->place])
        return bqr_fail(error, BATCHQR_INVALID_ARGUMENT,
                        "%s is %s, but batch.%s is not the storage of batch.a", called.text, other.text,
                        bqr_place_name(x->use));
    }
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_check_operands(const struct batchqr_plan *plan, const batchqr_operands *operands,
                                  bqr_caller caller, bqr_error *error) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (const bqr_use *use = plan->operation->uses; use->place && !status; use++)
    status = check_operand(plan, use, bqr_address_at(operands, (int)use->place), caller, error);
  if (!status) status = check_address(bqr_operand_name(NULL, caller), operands->info, sizeof(int), error);
  if (!status) status = check_reflectors_wanted(plan, operands, caller, error);
  if (!status) status = check_found(plan, operands, caller, error);
  if (!status) status = check_aliases(plan, operands, caller, error);
  for (const bqr_use *use = plan->operation->uses; use->place && !status; use++)
    status = check_wanted(plan, use, bqr_address_at(operands, (int)use->place), caller, error);
  return status;
}

batchqr_status bqr_check_workspace(const struct batchqr_plan *plan, const void *workspace, size_t bytes,
                                   bqr_error *error) {
  const size_t needed = plan->workspace_bytes;
  if (bytes < needed)
    return bqr_fail(error, BATCHQR_WORKSPACE_TOO_SMALL, "workspace holds %zu bytes, %zu are needed", bytes,
                    needed);
  if (needed > 0 && !workspace)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "workspace is NULL, %zu bytes are needed", needed);
  return needed > 0 ? check_address((bqr_name){"workspace"}, workspace, BQR_ALIGNMENT, error)
                    : BATCHQR_SUCCESS;
}
