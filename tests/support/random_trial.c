/* SPDX-License-Identifier: BSD-3-Clause */
/* Right calls drawn at random. */
#include "random_call.h"

#include <math.h>

int roll(dice *d, int low, int high) { return rng_int(d->seed, d->next++, low, high); }
bool chance(dice *d, int one_in) { return roll(d, 1, one_in) == 1; }

enum { MOST_MEMBERS = 24, MOST_SIZE = 300, USUAL_SIZE = 34, MOST_RHS = 9 };

/* Mostly log-uniform from 0 on: small numbers are as likely as all larger ones of as many digits. Some are
 * powers of two, or beside one. */
static int draw_size(dice *d, int most) {
  const int bits = roll(d, 0, 31 - __builtin_clz((unsigned)most + 1));
  if (chance(d, 4)) return bqr_min(most, (1 << bits) + roll(d, -1, 1));
  return roll(d, (1 << bits) - 1, bqr_min(most, (2 << bits) - 2));
}

/* Most reflectors that fit. */
static int fitting(const trial *t, const trial_member *x) {
  return t->operation->reads_side && t->side == BATCHQR_LEFT ? x->m : x->n;
}

static void draw_shape(dice *d, const trial *t, trial_member *x, int most) {
  x->m = draw_size(d, most);
  x->n = chance(d, 4) ? x->m : draw_size(d, most);
  if (t->operation->square) x->m = x->n;
  if (t->operation->tall && x->n > x->m) {
    const int m = x->m;
    x->m = x->n, x->n = m;
  }
  const int fit = fitting(t, x);
  if (t->operation->k == BQR_REFLECTORS) x->k = t->all_k || chance(d, 3) ? fit : roll(d, 0, fit);
  if (t->operation->k == BQR_TRIPLETS) x->k = roll(d, 0, bqr_min(x->m, x->n));
  if (t->operation->k == BQR_RIGHT_HAND_SIDES) x->k = t->all_k ? t->members->k : roll(d, 0, MOST_RHS);
}

/* What sizes on the device claim. A leading dimension that is too small needs a member that has one. */
static void draw_claim(dice *d, const trial *t, trial_member *x) {
  x->claim = (trial_claim)roll(d, TRIAL_NEGATIVE_M, TRIAL_SMALL_LDR);
  const bool ld = x->claim >= TRIAL_SMALL_LDA, k = x->claim == TRIAL_LARGE_K;
  if (!trial_sees_claim(t, x) || (ld && (!t->ld_vary || x->m < 2 || x->n < 2 || x->k < 2)) || (k && t->all_k))
    x->claim = TRIAL_TRUE;
}

static void draw_members(dice *d, trial *t) {
  const bool spoils = !t->shared && chance(d, 3), claims = t->sizes == BATCHQR_DEVICE_SIZES && chance(d, 3);
  const int most = t->count <= 4 && chance(d, 6) ? MOST_SIZE : USUAL_SIZE;
  if (t->all_k) t->members->k = roll(d, 0, MOST_RHS);
  for (int64_t i = 0; i < t->count; i++) {
    trial_member *x = &t->members[i];
    if (i == 0 || (t->sizes != BATCHQR_UNIFORM && chance(d, 2)))
      draw_shape(d, t, x, most);
    else
      *x = (trial_member){.m = x[-1].m, .n = x[-1].n, .k = x[-1].k};
    x->seed = (uint64_t)roll(d, 1, 1 << 30);
    x->kind = (matgen_kind)(chance(d, 3) ? MATGEN_RANDOM : roll(d, 0, MATGEN_NUM_KINDS - 1));
    if (spoils && x->m > 0 && x->n > 0 && (x->k > 0 || t->operation->k != BQR_TRIPLETS) && chance(d, 3))
      x->spoil = (trial_spoil)roll(d, TRIAL_NAN, TRIAL_MINUS_INF);
    if (claims && chance(d, 3)) draw_claim(d, t, x);
  }
}

/* A part of the spectrum. Calls of one member cannot ask for nothing, so that il is in reach of all. */
static void draw_range(dice *d, trial *t) {
  int least = 0, most = 0;
  if (!t->operation->ranges || chance(d, 2)) return;
  if (chance(d, 2)) {
    t->vl = chance(d, 8) ? -(double)INFINITY : ldexp(roll(d, -100, 99), roll(d, -9, -2));
    t->vu = chance(d, 8) ? (double)INFINITY : t->vl + ldexp(roll(d, 1, 99), roll(d, -9, 0));
    if (t->vu <= t->vl) t->vu = 1; /* from -Inf on */
    return;
  }
  for (int64_t i = 0; i < t->count; i++) {
    const int n = t->members[i].n;
    if (n > 0 && (least == 0 || n < least)) least = n;
    most = bqr_max(most, n);
  }
  t->il = roll(d, 1, bqr_max(1, least));
  t->iu = roll(d, t->il, bqr_max(t->il, most));
}

trial draw_trial(dice *d, const bqr_operation *operation) {
  const batchqr_type type = (batchqr_type)roll(d, 0, 3);
  trial t = trial_new((batchqr_op)operation->op, type,
                      chance(d, 40)  ? 0
                      : chance(d, 4) ? 1
                                     : draw_size(d, MOST_MEMBERS));
  t.layout = (batchqr_layout)roll(d, 0, 1);
  t.own_layouts = chance(d, 3);
  t.sizes = (batchqr_sizes)roll(d, 0, operation->host_sizes ? BATCHQR_HOST_SIZES : BATCHQR_DEVICE_SIZES);
  t.side = operation->reads_side ? (batchqr_side)roll(d, 0, 1) : BATCHQR_LEFT;
  if (operation->reads_trans && chance(d, 2))
    t.trans = type_is_complex(type) || chance(d, 2) ? BATCHQR_CONJ_TRANS : BATCHQR_TRANS;
  t.in_place = chance(d, 3);
  t.shared = operation->k == BQR_REFLECTORS && operation->reads_side && t.sizes == BATCHQR_UNIFORM &&
             t.layout == BATCHQR_STRIDED && !t.own_layouts && chance(d, 4);
  t.keep_a = bqr_may_keep_a(operation) && !t.in_place && chance(d, 4);
  t.ld_vary = !(t.keep_a && t.sizes == BATCHQR_DEVICE_SIZES) && chance(d, 2);
  t.no_info = chance(d, 5);
  t.left_out = chance(d, 2) ? 0 : (unsigned)roll(d, 0, (1 << BQR_NUM_OPERANDS) - 1);
  t.uplo = (batchqr_uplo)roll(d, 0, 1);
  t.kmax = chance(d, 3) ? draw_size(d, USUAL_SIZE) : 0;
  t.abstol = chance(d, 4) ? ldexp(1, roll(d, -60, 10)) : roll(d, -1, 0);
  t.reltol = chance(d, 4) ? ldexp(1, roll(d, -30, 0)) : roll(d, -1, 0);
  t.oversampling = chance(d, 3) ? 0 : draw_size(d, MOST_SIZE);
  t.power_steps = chance(d, 3) ? 0 : roll(d, 1, 5);
  t.all_k = operation->k && operation->k != BQR_TRIPLETS && t.sizes != BATCHQR_UNIFORM && chance(d, 4);
  t.tight = chance(d, 5);
  t.slack = t.all_k ? 0 : roll(d, 0, 3);
  draw_members(d, &t);
  draw_range(d, &t);
  return t;
}
