/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches, but for how operands are stored. */
#include "arguments_check.h"
#include "device.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>

/* --- enums and counts */

static batchqr_status check_enum(const bqr_check *c, bqr_name called, int value, int last, const char *what) {
  if (value >= 0 && value <= last) return BATCHQR_SUCCESS;
  return BQR_INVALID(c, "%s = %d is not a %s", called.text, value, what);
}

static batchqr_status check_layouts(const bqr_check *c) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (const bqr_use *use = c->operation->uses; use->place && !status; use++) {
    bqr_name n;
    snprintf(n.text, sizeof n.text, "batch.%s.layout", bqr_place_name(use));
    status = check_enum(c, n, (int)bqr_storage_at(c->batch, (int)use->place)->layout, BATCHQR_POINTERS,
                        "batchqr_layout");
  }
  return status;
}

static batchqr_status check_ways(const bqr_check *c) {
  const batchqr_batch *b = c->batch;
  batchqr_status status = BATCHQR_SUCCESS;
  if (c->operation->reads_side)
    status = check_enum(c, bqr_way_name(c, "side"), (int)b->side, BATCHQR_RIGHT, "batchqr_side");
  if (c->operation->reads_uplo)
    status = check_enum(c, bqr_scalar_name(c, "uplo"), (int)b->uplo, BATCHQR_UPPER, "batchqr_uplo");
  if (status || !c->operation->reads_trans) return status;
  status = check_enum(c, bqr_way_name(c, "trans"), (int)b->trans, BATCHQR_CONJ_TRANS, "batchqr_trans");
  if (!status && b->trans == BATCHQR_TRANS && (b->type == BATCHQR_C || b->type == BATCHQR_Z))
    return BQR_INVALID(c, "%s = BATCHQR_TRANS with a complex type: %c^H is BATCHQR_CONJ_TRANS",
                       bqr_way_name(c, "trans").text, c->operation->transposed);
  return status;
}

/* Where the rank is looked for. */
static batchqr_status check_rank(const bqr_check *c) {
  const batchqr_batch *b = c->batch;
  if (!c->operation->finds_rank) return BATCHQR_SUCCESS;
  if (b->kmax < 0) return BQR_INVALID(c, "%s = %d is negative", bqr_scalar_name(c, "kmax").text, b->kmax);
  if (isnan(b->abstol)) return BQR_INVALID(c, "%s is a NaN", bqr_scalar_name(c, "abstol").text);
  if (isnan(b->reltol)) return BQR_INVALID(c, "%s is a NaN", bqr_scalar_name(c, "reltol").text);
  return BATCHQR_SUCCESS;
}

/* Which part of the spectrum. Members' sizes are looked at later. */
static batchqr_status check_range(const bqr_check *c) {
  const batchqr_batch *b = c->batch;
  if (!c->operation->ranges) return BATCHQR_SUCCESS;
  if (isnan(b->vl)) return BQR_INVALID(c, "%s is a NaN", bqr_scalar_name(c, "vl").text);
  if (isnan(b->vu)) return BQR_INVALID(c, "%s is a NaN", bqr_scalar_name(c, "vu").text);
  const bool by_value = b->vl != 0 || b->vu != 0, by_index = b->il || b->iu;
  if (by_value && by_index)
    return BQR_INVALID(c, "%s = %d, %s = %d and %s = %g, %s = %g: a range is of indices or of values",
                       bqr_scalar_name(c, "il").text, b->il, bqr_scalar_name(c, "iu").text, b->iu,
                       bqr_scalar_name(c, "vl").text, b->vl, bqr_scalar_name(c, "vu").text, b->vu);
  if (by_value && b->vl >= b->vu)
    return BQR_INVALID(c, "%s = %g is not less than %s = %g", bqr_scalar_name(c, "vl").text, b->vl,
                       bqr_scalar_name(c, "vu").text, b->vu);
  if (by_index && b->il < 1)
    return BQR_INVALID(c, "%s = %d is less than 1", bqr_scalar_name(c, "il").text, b->il);
  if (b->il > b->iu)
    return BQR_INVALID(c, "%s = %d is larger than %s = %d", bqr_scalar_name(c, "il").text, b->il,
                       bqr_scalar_name(c, "iu").text, b->iu);
  return BATCHQR_SUCCESS;
}

static batchqr_status check_samples(const bqr_check *c) {
  enum { MOST_STEPS = 100 };
  const batchqr_batch *b = c->batch;
  if (!c->operation->sketches) return BATCHQR_SUCCESS;
  if (b->oversampling < 0)
    return BQR_INVALID(c, "%s = %d is negative", bqr_scalar_name(c, "oversampling").text, b->oversampling);
  if (b->power_steps < 0 || b->power_steps > MOST_STEPS)
    return BQR_INVALID(c, "%s = %d is not between 0 and %d", bqr_scalar_name(c, "power_steps").text,
                       b->power_steps, MOST_STEPS);
  return BATCHQR_SUCCESS;
}

static batchqr_status check_gram_schmidt(const bqr_check *c) {
  const int times = c->batch->gram_schmidt;
  if (!c->operation->orthogonalises || (times >= 0 && times <= 2)) return BATCHQR_SUCCESS;
  return BQR_INVALID(c, "%s = %d is not 0, 1 or 2", bqr_scalar_name(c, "gram_schmidt").text, times);
}

batchqr_status bqr_check_mode(const batchqr_batch *batch, batchqr_compute compute, bqr_error *error) {
  if (!batch->gram_schmidt || compute == BATCHQR_COMPUTE_HALF) return BATCHQR_SUCCESS;
  return bqr_fail(
      error, BATCHQR_INVALID_ARGUMENT,
      "batch.gram_schmidt = %d, but the compute mode is not BATCHQR_COMPUTE_HALF: no other one's bounds "
      "are kept so",
      batch->gram_schmidt);
}

/* A program that was compiled for a later version may say what this one does not know. */
static batchqr_status check_reserved(const bqr_check *c) {
  for (size_t i = 0; i < sizeof c->batch->reserved / sizeof c->batch->reserved[0]; i++)
    if (c->batch->reserved[i])
      return BQR_INVALID(
          c,
          "batch.reserved[%zu] = %llu: the batch was not initialized, or asks for what this version of "
          "batchqr does not have",
          i, (unsigned long long)c->batch->reserved[i]);
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_check_enums(const bqr_operation *operation, const batchqr_batch *b, bqr_caller caller,
                               bqr_error *error) {
  const bqr_check all = {operation, b, caller, error}, *c = &all;
  batchqr_status status = check_enum(c, bqr_scalar_name(c, "type"), (int)b->type, BATCHQR_Z, "batchqr_type");
  if (!status)
    status = check_enum(c, bqr_scalar_name(c, "sizes"), (int)b->sizes, BATCHQR_DEVICE_SIZES, "batchqr_sizes");
  if (!status) status = check_layouts(c);
  if (!status) status = check_ways(c);
  if (!status) status = check_rank(c);
  if (!status) status = check_range(c);
  if (!status) status = check_samples(c);
  if (!status) status = check_gram_schmidt(c);
  return status ? status : check_reserved(c);
}

static batchqr_status check_arrays(const bqr_check *c) {
  const batchqr_batch *b = c->batch;
  if (b->count < 0)
    return BQR_INVALID(c, "%s = %lld is negative", bqr_scalar_name(c, "count").text, (long long)b->count);
  if (b->sizes == BATCHQR_HOST_SIZES && b->count > INT_MAX)
    return bqr_fail(c->error, BATCHQR_UNSUPPORTED,
                    "batch.count = %lld: sizes in host arrays are limited to %d members", (long long)b->count,
                    INT_MAX);
  if (b->sizes == BATCHQR_DEVICE_SIZES && c->operation->host_sizes)
    return bqr_fail(c->error, BATCHQR_UNSUPPORTED,
                    "batch.sizes is BATCHQR_DEVICE_SIZES: %s takes sizes on the host", c->operation->name);
  if (b->sizes != BATCHQR_UNIFORM) {
    if (b->count > 0 && !b->m_array) return BQR_INVALID(c, "batch.m_array is NULL");
    if (b->count > 0 && !b->n_array) return BQR_INVALID(c, "batch.n_array is NULL");
    return BATCHQR_SUCCESS;
  }
  for (const bqr_use *use = c->operation->uses; use->place; use++)
    if (bqr_storage_at(b, (int)use->place)->ld_array)
      return BQR_INVALID(c, "batch.%s.ld_array is not NULL, but batch.sizes is BATCHQR_UNIFORM",
                         bqr_place_name(use));
  return BATCHQR_SUCCESS;
}

/* --- sizes */

static batchqr_status check_size(const bqr_check *c, const char *field, int value, int64_t i) {
  if (value >= 0) return BATCHQR_SUCCESS;
  return BQR_INVALID(c, "%s = %d is negative", bqr_size_name(c, field, i).text, value);
}

/* The operation's own rules. Upper bounds need not obey them: members are checked on the device. */
static batchqr_status check_reflectors(const bqr_check *c, bqr_dims s, int64_t i) {
  const bqr_extent most = c->operation->reads_side ? BQR_ORDER : BQR_N;
  const int fit = bqr_extent_of(most, c->batch, s);
  if (s.k > fit)
    return BQR_INVALID(c, "%s = %d is larger than %s = %d", bqr_size_name(c, "k", i).text, s.k,
                       bqr_extent_name(c, most), fit);
  return BATCHQR_SUCCESS;
}

static batchqr_status check_tall(const bqr_check *c, bqr_dims s, int64_t i) {
  if (!c->operation->tall || s.n <= s.m) return BATCHQR_SUCCESS;
  return BQR_INVALID(c, "%s = %d is larger than m = %d", bqr_size_name(c, "n", i).text, s.n, s.m);
}

static batchqr_status check_square(const bqr_check *c, bqr_dims s, int64_t i) {
  if (!c->operation->square || s.m == s.n) return BATCHQR_SUCCESS;
  return BQR_INVALID(c, "%s = %d is not n = %d", bqr_size_name(c, "m", i).text, s.m, s.n);
}

static batchqr_status check_sizes(const bqr_check *c) {
  const bool known = c->batch->sizes != BATCHQR_DEVICE_SIZES;
  const int64_t members = bqr_visible_members(c->batch);
  for (int64_t i = 0; i < members; i++) {
    bqr_dims s = bqr_member_sizes(c->operation, c->batch, i);
    batchqr_status status = check_size(c, "m", s.m, i);
    if (!status) status = check_size(c, "n", s.n, i);
    if (!status && c->operation->k) status = check_size(c, "k", s.k, i);
    if (!status && c->operation->k == BQR_REFLECTORS && known) status = check_reflectors(c, s, i);
    if (!status && known) status = check_tall(c, s, i);
    if (!status && known) status = check_square(c, s, i);
    if (status) return status;
  }
  return BATCHQR_SUCCESS;
}

/* A smaller member has what there is of the range. */
static batchqr_status check_last(const bqr_check *c) {
  const int64_t members = bqr_visible_members(c->batch);
  const bool one = c->batch->sizes != BATCHQR_HOST_SIZES;
  int most = 0;
  if (!c->operation->ranges) return BATCHQR_SUCCESS;
  for (int64_t i = 0; i < members; i++) most = bqr_max(most, bqr_member_sizes(c->operation, c->batch, i).n);
  if (most == 0 || c->batch->iu <= most) return BATCHQR_SUCCESS;
  return BQR_INVALID(c, "%s = %d is larger than %s = %d", bqr_scalar_name(c, "iu").text, c->batch->iu,
                     one ? bqr_scalar_name(c, "n").text : "the largest n", most);
}

/* --- all of it */

batchqr_status bqr_check_batch(const bqr_operation *operation, const batchqr_batch *batch, bqr_caller caller,
                               bqr_error *error) {
  const bqr_check c = {operation, batch, caller, error};
  batchqr_status status = check_arrays(&c);
  if (!status) status = check_sizes(&c);
  if (!status) status = check_last(&c);
  for (const bqr_use *use = operation->uses; use->place && !status; use++) {
    const bqr_checked x = {&c, use, bqr_storage_at(batch, (int)use->place)};
    if (!(use->access & BQR_OPTIONAL) || bqr_is_stored(&x)) status = bqr_check_storage(&x);
  }
  return status;
}

batchqr_status bqr_check_array_memory(const bqr_operation *operation, const batchqr_batch *batch,
                                      const bqr_device *device, bqr_error *error) {
  const bool host = batch->sizes == BATCHQR_HOST_SIZES;
  batchqr_batch copy = *batch;
  bqr_batch_array arrays[BQR_MOST_ARRAYS];
  const int count = batch->sizes == BATCHQR_UNIFORM ? 0 : bqr_batch_arrays(operation, &copy, arrays);
  for (int i = 0; i < count; i++) {
    const int *array = *arrays[i].at;
    if (!array || (host ? bqr_address_serves_host(device, array) : bqr_address_serves_device(device, array)))
      continue;
    const char *owner = arrays[i].owner;
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch.%s%s%s = %p is %s memory, but batch.sizes is %s",
                    owner ? owner : "", owner ? "." : "", arrays[i].field, (const void *)array,
                    host ? "device" : "host", host ? "BATCHQR_HOST_SIZES" : "BATCHQR_DEVICE_SIZES");
  }
  return BATCHQR_SUCCESS;
}
