/* SPDX-License-Identifier: BSD-3-Clause */
#include "spectra.h"
#include "handle.h"
#include "inspect.h"

#include <math.h>
#include <string.h>

enum { MEMBERS = 24 };
static const int sizes_m[MEMBERS] = {0,  3,  1,  1,  5,  2,  3,  4,  8,  7,  16, 9,
                                     17, 32, 12, 33, 20, 40, 33, 64, 48, 65, 90, 100},
                 sizes_n[MEMBERS] = {3,  0,  1,  5,  1,  2,  3,  6,  8,  5,  16, 13,
                                     11, 32, 30, 33, 33, 12, 32, 20, 64, 65, 35, 70};

static rows_call new_call(const spectra *test, batchqr_type type, batchqr_sizes kind, batchqr_layout layout,
                          int64_t count, const int *m, const int *n, const int *unwanted) {
  int *k = calloc((size_t)count + 1, sizeof *k);
  for (int64_t i = 0; i < count; i++) k[i] = kind == BATCHQR_UNIFORM ? 2 : (int)(i % 4);
  rows_call c = rows_new(test->op, type, kind, layout, count, test->square ? n : m, n, k, unwanted);
  free(k);
  return c;
}

static rows_call mixed_call(const spectra *test, batchqr_type type) {
  return new_call(test, type, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, MEMBERS, sizes_m, sizes_n, NULL);
}

static rows_call uniform_call(const spectra *test, batchqr_type type, batchqr_sizes kind,
                              batchqr_layout layout, int count, int m, int n) {
  int ms[MEMBERS], ns[MEMBERS];
  for (int i = 0; i < count; i++) ms[i] = m, ns[i] = n;
  return new_call(test, type, kind, layout, count, ms, ns, NULL);
}

void spectra_fill(rows_call *c, const int *kinds, int number, uint64_t seed) {
  for (int64_t i = 0; i < c->batch.count; i++)
    hard_fill(c->batch.type, kinds[i % number], seed + (uint64_t)i, c->m[i], c->n[i], rows_at(c, BQR_A, i),
              rows_ld(c, BQR_A, i));
}

void spectra_expect(const rows_call *c, int64_t i, const char *what, const char *ratio, double value,
                    double most) {
  ck_assert_msg(value <= most, "%s %c, %s, member %lld of %d x %d: %s is %g", c->operation->name,
                type_letter(c->batch.type), what, (long long)i, c->m[i], c->n[i], ratio, value);
}

static void execute(const spectra *test, rows_call *c, batchqr_handle_t handle) {
  if (test->fill) test->fill(c);
  ck_assert_msg(rows_run(c, handle) == BATCHQR_SUCCESS, "%s", batchqr_error_message(handle));
}

void spectra_run(const spectra *test, rows_call *c, batchqr_handle_t handle, const char *what) {
  execute(test, c, handle);
  for (int64_t i = 0; i < c->batch.count; i++) test->judge(c, i, what);
}

void spectra_every_kind(const spectra *test, batchqr_type type) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int kind = 0; kind < HARD_NUM_KINDS; kind++) {
    rows_call c = mixed_call(test, type);
    spectra_fill(&c, &kind, 1, 5);
    spectra_run(test, &c, handle, hard_name(kind));
    rows_free(&c);
  }
  batchqr_destroy(handle);
}

static const int usual[] = {MATGEN_RANDOM, HARD_GRADED_COLUMNS, MATGEN_RANK_DEFICIENT, MATGEN_ZERO,
                            HARD_KAHAN};
enum { NUM_USUAL = sizeof usual / sizeof usual[0] };

void spectra_every_form(const spectra *test, batchqr_type type) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int form = 0; form < 4; form++) /* members of several strides have addresses */
    for (int n = 1; n <= 40; n += 13) {
      const batchqr_sizes sizes = (batchqr_sizes)(form > 1 ? form - 1 : 0);
      rows_call c = uniform_call(test, type, sizes, form ? BATCHQR_POINTERS : BATCHQR_STRIDED, 11, n + 2, n);
      spectra_fill(&c, usual, NUM_USUAL, 9);
      spectra_run(test, &c, handle, "every form");
      rows_free(&c);
    }
  batchqr_destroy(handle);
}

static void test_variant(const spectra *test, const bqr_family *family, const bqr_variant *variant,
                         batchqr_type type, int m, int n) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  char what[100];
  snprintf(what, sizeof what, "%.40s %.40s", family->name, variant->name);
  ck_assert_int_eq(bqr_force(handle, test->op, family->name, variant->name), BATCHQR_SUCCESS);
  const int count = n < 90 ? 13 : NUM_USUAL; /* the judge takes O(n^3) */
  rows_call c = uniform_call(test, type, BATCHQR_UNIFORM, BATCHQR_STRIDED, count, m, n);
  spectra_fill(&c, usual, NUM_USUAL, 11);
  if (test->fill) test->fill(&c);
  const batchqr_status status = rows_run(&c, handle);
  ck_assert(status == BATCHQR_SUCCESS || status == BATCHQR_UNSUPPORTED);
  for (int64_t i = 0; i < c.batch.count && !status; i++) test->judge(&c, i, what);
  rows_free(&c);
  batchqr_destroy(handle);
}

void spectra_every_variant(const spectra *test, batchqr_type type) {
  static const int sizes[][2] = {{1, 1},   {3, 2},   {2, 3},   {8, 8},     {16, 9},  {16, 16},  {9, 16},
                                 {24, 24}, {32, 32}, {40, 31}, {31, 40},   {64, 64}, {100, 50}, {50, 100},
                                 {96, 96}, {200, 7}, {7, 200}, {130, 130}, {48, 47}, {77, 90},  {128, 128}};
  for (int f = 0; f < bqr_num_families(); f++) {
    const bqr_family *family = bqr_family_at(f);
    if (family->op != test->op || family->backend != memory_backend()) continue;
    for (int v = 0; v < family->nvariants; v++)
      for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        test_variant(test, family, &family->variants[v], type, sizes[s][0], sizes[s][1]);
  }
}

static void expect_same_bits(const rows_call *x, int64_t i, const rows_call *y, int64_t j) {
  for (const bqr_use *use = x->operation->uses; use->place; use++) {
    const int place = (int)use->place;
    if (!(use->access & BQR_WRITTEN) || place == BQR_A || !x->operands[place].wanted) continue;
    const bqr_shape shape = bqr_shape_of(use, &x->batch, (bqr_dims){x->m[i], x->n[i], x->k[i]});
    const size_t size = x->operands[place].data.size;
    for (int col = 0; col < shape.cols; col++)
      ck_assert_msg(memcmp((char *)rows_at(x, place, i) + size * (size_t)col * (size_t)rows_ld(x, place, i),
                           (char *)rows_at(y, place, j) + size * (size_t)col * (size_t)rows_ld(y, place, j),
                           size * (size_t)shape.rows) == 0,
                    "%s %c: %s of member %lld of %d x %d depends on its place", x->operation->name,
                    type_letter(x->batch.type), bqr_places[place].name, (long long)i, x->m[i], x->n[i]);
  }
}

/* The same members in a call and, all the other way round, in another. */
void spectra_places(const spectra *test, batchqr_type type) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  int m[MEMBERS], n[MEMBERS];
  for (int i = 0; i < MEMBERS; i++) m[i] = sizes_m[MEMBERS - 1 - i], n[i] = sizes_n[MEMBERS - 1 - i];
  rows_call x = mixed_call(test, type);
  rows_call y = new_call(test, type, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, MEMBERS, m, n, NULL);
  for (int i = 0; i < MEMBERS; i++) y.k[i] = 0;
  for (int i = 0; i < MEMBERS; i++) x.k[i] = 0;
  spectra_fill(&x, usual, NUM_USUAL, 13);
  for (int64_t i = 0; i < MEMBERS; i++)
    hard_fill(type, usual[i % NUM_USUAL], 13 + (uint64_t)i, x.m[i], x.n[i],
              rows_at(&y, BQR_A, MEMBERS - 1 - i), rows_ld(&y, BQR_A, MEMBERS - 1 - i));
  execute(test, &x, handle);
  execute(test, &y, handle);
  for (int64_t i = 0; i < MEMBERS; i++) expect_same_bits(&x, i, &y, MEMBERS - 1 - i);
  rows_free(&x);
  rows_free(&y);
  batchqr_destroy(handle);
}

void spectra_nonfinite(const spectra *test, batchqr_type type) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int bad = 0; bad < 2; bad++)
    for (int n = 2; n < 70; n += 22) {
      rows_call c = uniform_call(test, type, BATCHQR_UNIFORM, BATCHQR_STRIDED, 9, n, n);
      spectra_fill(&c, usual, NUM_USUAL, 17);
      const double value = bad ? (double)INFINITY : (double)NAN;
      for (int64_t i = 1; i < 9; i += 3) {
        void *entry = rows_at(&c, BQR_A, i);
        if (type_is_double(type))
          memcpy(entry, &value, sizeof value);
        else
          memcpy(entry, &(float){(float)value}, sizeof(float));
      }
      execute(test, &c, handle);
      for (int64_t i = 0; i < 9; i++)
        if (i % 3 == 1)
          ck_assert_int_eq(c.info[i], BATCHQR_INFO_NONFINITE);
        else
          test->judge(&c, i, "beside a NaN");
      rows_free(&c);
    }
  batchqr_destroy(handle);
}

/* Sizes on the device: members that do not fit are left alone. */
void spectra_wrong_sizes(const spectra *test, batchqr_type type) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  rows_call c = uniform_call(test, type, BATCHQR_DEVICE_SIZES, BATCHQR_POINTERS, 5, 6, 6);
  spectra_fill(&c, usual, 1, 19);
  c.m[1] = 7;
  c.n[2] = -1;
  c.operands[BQR_A].ld[3] = 5;
  if (test->square) c.n[4] = 5;
  execute(test, &c, handle);
  for (int64_t i = 0; i < 5; i++) {
    const bool wrong = i > 0 && (i < 4 || test->square);
    ck_assert_int_eq(c.info[i] == BATCHQR_INFO_SIZES, wrong);
    if (!wrong) test->judge(&c, i, "wrong sizes");
    for (const bqr_use *use = c.operation->uses; use->place && wrong; use++)
      if (c.operands[use->place].wanted)
        ck_assert_mem_eq(rows_at(&c, (int)use->place, i), rows_before(&c, (int)use->place, i),
                         c.operands[use->place].data.size);
  }
  rows_free(&c);
  batchqr_destroy(handle);
}
