/* SPDX-License-Identifier: BSD-3-Clause */
#include "meeting.h"
#include "limit.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

typedef struct seat {
  uint64_t come, gone; /* times */
  const void *mine;
} seat;

struct meeting {
  meeting *next;
  meeting_token token;
  int references;
  pthread_mutex_t lock; /* of all that follows */
  bool failed;
  int size;
  seat seats[];
};

/* All of the process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static meeting *meetings;

meeting *meeting_new(int size, meeting_token *token) {
  meeting *m = calloc(1, sizeof *m + (size_t)size * sizeof(seat));
  if (!m) return NULL;
  if (getrandom(&m->token, sizeof m->token, 0) != (ssize_t)sizeof m->token) {
    free(m);
    return NULL;
  }
  *token = m->token;
  m->references = 1;
  m->size = size;
  pthread_mutex_init(&m->lock, NULL);
  pthread_mutex_lock(&lock);
  m->next = meetings;
  meetings = m;
  pthread_mutex_unlock(&lock);
  return m;
}

meeting *meeting_join(const meeting_token *token) {
  pthread_mutex_lock(&lock);
  meeting *m = meetings;
  while (m && memcmp(&m->token, token, sizeof *token) != 0) m = m->next;
  if (m) m->references++;
  pthread_mutex_unlock(&lock);
  return m;
}

void meeting_leave(meeting *m) {
  if (!m) return;
  pthread_mutex_lock(&lock);
  const bool last = --m->references == 0;
  meeting **at = &meetings;
  while (last && *at != m) at = &(*at)->next;
  if (last) *at = m->next;
  pthread_mutex_unlock(&lock);
  if (!last) return;
  pthread_mutex_destroy(&m->lock);
  free(m);
}

/* Whether all of them have come, or gone, as often as the rank has. */
static bool all_there(meeting *m, int rank, const bool *here, bool gone) {
  bool there = true;
  pthread_mutex_lock(&m->lock);
  const seat *mine = &m->seats[rank];
  for (int r = 0; r < m->size; r++)
    if (here[r]) there = there && (gone ? m->seats[r].gone >= mine->gone : m->seats[r].come >= mine->come);
  pthread_mutex_unlock(&m->lock);
  return there;
}

static void come(meeting *m, int rank, const void *mine) {
  pthread_mutex_lock(&m->lock);
  m->seats[rank].mine = mine;
  m->seats[rank].come++;
  pthread_mutex_unlock(&m->lock);
}

/* Nobody reads what a rank gave that has given up. */
static bool give_up(meeting *m, int rank, const bool *here) {
  bool there = true;
  pthread_mutex_lock(&m->lock);
  for (int r = 0; r < m->size; r++)
    if (here[r]) there = there && m->seats[r].come >= m->seats[rank].come;
  m->failed = m->failed || !there;
  pthread_mutex_unlock(&m->lock);
  return !there;
}

static bool has_failed(meeting *m) {
  pthread_mutex_lock(&m->lock);
  const bool failed = m->failed;
  pthread_mutex_unlock(&m->lock);
  return failed;
}

bool meeting_gather(meeting *m, int rank, const bool *here, const void *mine, void *all, size_t bytes,
                    double seconds) {
  limit_wait wait = limit_begin(seconds);
  come(m, rank, mine);
  while (!all_there(m, rank, here, false))
    if (has_failed(m) || (!limit_rest(&wait) && give_up(m, rank, here))) return false;
  if (has_failed(m)) return false;
  for (int r = 0; r < m->size && all; r++)
    if (here[r]) memcpy((char *)all + (size_t)r * bytes, m->seats[r].mine, bytes);
  pthread_mutex_lock(&m->lock);
  m->seats[rank].gone++;
  pthread_mutex_unlock(&m->lock);
  wait = limit_begin(seconds);
  while (!all_there(m, rank, here, true)) limit_rest(&wait); /* they are copying */
  return true;
}
