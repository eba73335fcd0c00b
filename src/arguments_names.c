/* SPDX-License-Identifier: BSD-3-Clause */
/* What errors call a caller's arguments. */
#include "arguments_check.h"
#include <stdio.h>

/* What the routine calls its argument. */
static const char *argument_name(const bqr_use *use) {
  return use->called ? use->called : bqr_place_name(use);
}

bqr_name bqr_scalar_name(const bqr_check *c, const char *field) {
  bqr_name n;
  snprintf(n.text, sizeof n.text, "%s%s", bqr_is_typed(c->caller) ? "" : "batch.", field);
  return n;
}

/* side and trans are arguments of their own but in the planned tier. */
bqr_name bqr_way_name(const bqr_check *c, const char *field) {
  bqr_name n;
  snprintf(n.text, sizeof n.text, "%s%s", c->caller == BQR_PLANNED ? "batch." : "", field);
  return n;
}

/* batch.m, or batch.m_array[17]. */
bqr_name bqr_size_name(const bqr_check *c, const char *field, int64_t i) {
  bqr_name n = bqr_scalar_name(c, field);
  bool one_for_all = *field == 'k' && !c->batch->k_array;
  if (c->batch->sizes == BATCHQR_HOST_SIZES && !one_for_all)
    snprintf(n.text, sizeof n.text, "batch.%s_array[%lld]", field, (long long)i);
  return n;
}

/* batch.a.ld, or batch.a.ld_array[17]. */
bqr_name bqr_ld_name(const bqr_check *c, const bqr_use *use, int64_t i) {
  bqr_name n;
  snprintf(n.text, sizeof n.text, "ld%s", argument_name(use));
  if (bqr_storage_at(c->batch, (int)use->place)->ld_array)
    snprintf(n.text, sizeof n.text, "batch.%s.ld_array[%lld]", bqr_place_name(use), (long long)i);
  else if (!bqr_is_typed(c->caller))
    snprintf(n.text, sizeof n.text, "batch.%s.ld", bqr_place_name(use));
  return n;
}

bqr_name bqr_row_stride_name(const bqr_use *use) {
  bqr_name n;
  snprintf(n.text, sizeof n.text, "batch.%s.row_stride", bqr_place_name(use));
  return n;
}

bqr_name bqr_stride_name(const bqr_check *c, const bqr_use *use) {
  bqr_name n;
  if (bqr_is_typed(c->caller))
    snprintf(n.text, sizeof n.text, "stride_%s", argument_name(use));
  else
    snprintf(n.text, sizeof n.text, "batch.%s.stride", bqr_place_name(use));
  return n;
}

bqr_name bqr_operand_name(const bqr_use *use, bqr_caller caller) {
  bqr_name n;
  const char *called = !use ? "info" : caller == BQR_PLANNED ? bqr_place_name(use) : argument_name(use);
  snprintf(n.text, sizeof n.text, "%s%s%s", caller == BQR_PLANNED ? "operands." : "", called,
           use && caller == BQR_TYPED_POINTERS ? "_array" : "");
  return n;
}

/* An extent in the words of the errors. */
const char *bqr_extent_name(const bqr_check *c, bqr_extent extent) {
  static const char *const names[] = {[BQR_ONE] = "1",
                                      [BQR_TWO] = "2",
                                      [BQR_M] = "m",
                                      [BQR_N] = "n",
                                      [BQR_K] = "k",
                                      [BQR_MIN_MN] = "min(m, n)",
                                      [BQR_MAX_MN] = "max(m, n)",
                                      [BQR_CHOSEN] = "min(iu, n) - il + 1",
                                      [BQR_SAMPLES] = "k + oversampling"};
  if (extent == BQR_ORDER) return c->batch->side == BATCHQR_LEFT ? "m" : "n";
  if (extent == BQR_CHOSEN && bqr_batch_range(c->batch) != BQR_BY_INDEX) return "n";
  return names[extent];
}
