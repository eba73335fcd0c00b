/* SPDX-License-Identifier: BSD-3-Clause */
/* Where threads meet that are ranks of one communicator (communicators/meeting.h). */
#include "../communicators/meeting.h"
#include "suite.h"

#include <pthread.h>
#include <stdint.h>

enum { RANKS = 4, ROUNDS = 300, AWAY = 2 };

typedef struct rank {
  pthread_t thread;
  meeting *place;
  int number, mistakes;
  bool came; /* to the last round */
} rank;

static const bool everybody[RANKS] = {true, true, true, true}, some[RANKS] = {true, true, false, true};

static void *all_rounds(void *argument) {
  rank *r = argument;
  for (int i = 0; i < ROUNDS; i++) {
    const int mine[2] = {i, r->number};
    int all[RANKS][2] = {{0}};
    r->mistakes += !meeting_gather(r->place, r->number, everybody, mine, all, sizeof mine, 60);
    for (int j = 0; j < RANKS; j++) r->mistakes += all[j][0] != i || all[j][1] != j;
  }
  return NULL;
}

static void *without_one(void *argument) {
  rank *r = argument;
  const int mine = r->number;
  int all[RANKS] = {-1, -1, -1, -1};
  r->mistakes += !meeting_gather(r->place, r->number, some, &mine, all, sizeof mine, 60);
  for (int j = 0; j < RANKS; j++) r->mistakes += all[j] != (some[j] ? j : -1);
  r->came = meeting_gather(r->place, r->number, everybody, &mine, all, sizeof mine, 0.05);
  return NULL;
}

static void run(rank ranks[RANKS], meeting *place, void *(*what)(void *), const bool *who) {
  for (int i = 0; i < RANKS; i++) {
    ranks[i] = (rank){.place = place, .number = i};
    if (who[i]) pthread_create(&ranks[i].thread, NULL, what, &ranks[i]);
  }
  for (int i = 0; i < RANKS; i++)
    if (who[i]) pthread_join(ranks[i].thread, NULL);
}

START_TEST(all_get_what_all_give) {
  meeting_token token;
  rank ranks[RANKS];
  meeting *place = meeting_new(RANKS, &token);
  ck_assert_ptr_nonnull(place);
  run(ranks, place, all_rounds, everybody);
  for (int i = 0; i < RANKS; i++) ck_assert_int_eq(ranks[i].mistakes, 0);
  meeting_leave(place);
}
END_TEST

START_TEST(nobody_waits_for_ever) {
  meeting_token token;
  rank ranks[RANKS];
  meeting *place = meeting_new(RANKS, &token);
  run(ranks, place, without_one, some);
  for (int i = 0; i < RANKS; i++) ck_assert(ranks[i].mistakes == 0 && !ranks[i].came);
  const int late = AWAY; /* comes when the others have gone */
  int all[RANKS];
  ck_assert(!meeting_gather(place, AWAY, everybody, &late, all, sizeof late, 60));
  meeting_leave(place);
}
END_TEST

START_TEST(meetings_are_found_by_their_tokens) {
  meeting_token token, other;
  meeting *place = meeting_new(RANKS, &token), *elsewhere = meeting_new(1, &other);
  ck_assert_ptr_eq(meeting_join(&token), place);
  meeting_leave(place);
  ck_assert_ptr_eq(meeting_join(&token), place);
  meeting_leave(place);
  meeting_leave(place);
  ck_assert_ptr_null(meeting_join(&token));
  ck_assert_ptr_eq(meeting_join(&other), elsewhere);
  meeting_leave(elsewhere);
  meeting_leave(elsewhere);
  ck_assert_ptr_null(meeting_join(&other));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("meeting");
  TCase *tc = tcase_create("meeting");
  tcase_add_test(tc, all_get_what_all_give);
  tcase_add_test(tc, nobody_waits_for_ever);
  tcase_add_test(tc, meetings_are_found_by_their_tokens);
  suite_add_tcase(suite, tc);
  return suite_run(suite);
}
