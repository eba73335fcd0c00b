/* SPDX-License-Identifier: BSD-3-Clause */
#include "block.h"
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

/* Behind a block's part of it there is what must not be written to. */
static constexpr size_t guard_bytes = 1024;
alignas(1024) thread_local unsigned char emulator_shared[emulator_most_shared + guard_bytes];

namespace emulator {

thread_local block *here;

static constexpr int unset = 0xff; /* as bytes of float or double: a NaN; of an int: -1 */
static constexpr double deadlock_seconds = 20;

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/* --- queues */

void queue::push(fiber *f) {
  f->next = nullptr;
  (first_ ? last_->next : first_) = f;
  last_ = f;
}

fiber *queue::pop() {
  fiber *f = first_;
  if (f) first_ = f->next;
  return f;
}

void queue::append(queue &other) {
  if (other.empty()) return;
  (first_ ? last_->next : first_) = other.first_;
  last_ = other.last_;
  other.first_ = nullptr;
}

void queue::put_first(queue &other) {
  if (other.empty()) return;
  if (first_)
    other.last_->next = first_;
  else
    last_ = other.last_;
  first_ = other.first_;
  other.first_ = nullptr;
}

/* --- blocks that wait for others */

void grid_state::changed() {
  if (idle == 0) return;
  changes_++;
  syscall(SYS_futex, reinterpret_cast<unsigned *>(&changes_), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr,
          0);
}

void grid_state::sleep(unsigned seen) {
  const timespec most = {0, 5000000};
  syscall(SYS_futex, reinterpret_cast<unsigned *>(&changes_), FUTEX_WAIT_PRIVATE, seen, &most, nullptr, 0);
}

unsigned team::arrive() {
  const unsigned before = generation;
  if (++arrived == size) {
    arrived = 0;
    generation++;
  }
  return before;
}

/* --- from one thread to the next */

void block::resume(fiber *f) {
  fiber *from = current_;
  if (f == from) return;
  current_ = f;
  threadIdx.x = f->number;
  switch_context(from->place, f->place);
}

/* The thread goes on once somebody has put it among those that are ready. */
void block::leave(const char *waits_at) {
  current_->waits_at = waits_at;
  fiber *next = ready_.pop();
  if (!next) die("deadlock: no thread of the block can go on");
  resume(next);
}

void block::release(queue &waiting) {
  ready_.append(waiting);
  progress();
}

/* Lanes of a warp go on before other warps do: kernels rely on it where lanes wait at a barrier in shared
 * memory and one of them arrives at the next for all. */
void block::release_first(queue &waiting) {
  ready_.put_first(waiting);
  progress();
}

void block::progress() {
  polls_ = 0;
  idle_at_ = 2 * alive_;
  if (!is_idle_) return;
  is_idle_ = false;
  grid_->idle--;
}

void block::progress_of_all() {
  progress();
  grid_->changed();
}

/* All threads wait for memory to change: another block must go on. */
void block::idle() {
  idle_at_ = polls_ + alive_;
  if (!is_idle_) { /* once more, now that others would tell */
    is_idle_ = true;
    grid_->idle++;
    seen_ = grid_->changes();
    idle_since_ = now();
    return;
  }
  if (grid_->idle < grid_->running)
    idle_since_ = now();
  else if (now() - idle_since_ > deadlock_seconds)
    die("deadlock: no thread of the grid goes on");
  grid_->sleep(seen_);
  seen_ = grid_->changes();
}

void block::yield() {
  if (++polls_ > idle_at_) idle();
  current_->waits_at = "memory to change";
  ready_.push(current_);
  resume(ready_.pop());
}

/* --- barriers */

bool block::wait_at(int number, int threads, bool vote) {
  barrier &b = barriers_[number];
  if (b.arrived == 0) b.vote = false;
  if (b.arrived > 0 && b.wanted != threads) die("threads are at one barrier with different counts");
  b.wanted = threads;
  b.vote |= vote;
  if (++b.arrived < (threads ? threads : alive_)) {
    b.waiting.push(current_);
    leave(number == 0 ? "__syncthreads()" : "a named barrier");
    return current_->vote;
  }
  b.arrived = 0;
  const bool any = b.vote;
  for (fiber *f = b.waiting.first(); f; f = f->next) f->vote = any;
  release(b.waiting);
  return any;
}

/* What waits for all that live may have waited for the one that ended. */
void block::release_barriers() {
  barrier &b = barriers_[0];
  if (b.arrived == 0 || b.arrived < alive_) return;
  b.arrived = 0;
  for (fiber *f = b.waiting.first(); f; f = f->next) f->vote = b.vote;
  release(b.waiting);
}

void block::wait_for_cluster() {
  const unsigned generation = cluster_generation_;
  at_cluster_++;
  while (cluster_generation_ == generation) {
    if (at_cluster_ >= alive_ && !cluster_asked_) { /* one speaks for the block */
      cluster_asked_ = true;
      const unsigned before = team_->arrive();
      progress_of_all();
      while (team_->generation == before) yield();
      cluster_asked_ = false;
      at_cluster_ = 0;
      cluster_generation_++;
      progress();
    } else {
      yield();
    }
  }
}

/* --- meetings */

void block::meet(meeting &m, int place, unsigned mask, int threads, void *mine, joint_act act) {
  if (m.count > 0 && m.act != act) die("lanes of a warp do different things together");
  m.mask = mask;
  m.act = act;
  m.posted[place] = mine;
  if (++m.count < threads) {
    m.waiting.push(current_);
    leave(act ? "a shuffle, vote or product of its warp" : "__syncwarp()");
    return;
  }
  m.count = 0;
  if (act) act(m.posted, mask);
  release_first(m.waiting);
}

void block::meet_lanes(unsigned mask, void *mine, joint_act act) {
  const unsigned lane = current_->number % 32, w = current_->number / 32;
  if (!(mask >> lane & 1)) die("a thread is not in the mask that it gives");
  const unsigned present = mask & warps_[w].alive;
  meeting *place = nullptr;
  for (meeting &m : warps_[w].meetings) {
    if (m.count > 0 && m.mask == mask) {
      place = &m;
      break;
    }
    if (m.count == 0 && !place) place = &m;
  }
  if (!place) place = &warps_[w].meetings.emplace_back();
  meet(*place, static_cast<int>(lane), mask, present == ~0u ? 32 : __builtin_popcount(present), mine, act);
}

/* Lanes that wait for one that ended go on without it. */
void block::release_lanes(unsigned number) {
  warp &w = warps_[number / 32];
  w.alive &= ~(1u << number % 32);
  for (meeting &m : w.meetings) {
    if (m.count == 0 || m.count < __builtin_popcount(m.mask & w.alive)) continue;
    m.count = 0;
    if (m.act) die("lanes wait for one that ended");
    release(m.waiting);
  }
}

void block::meet_warps(void *mine, joint_act act) {
  const unsigned number = current_->number;
  meet(four_warps_[number / 128], static_cast<int>(number % 128), ~0u, 128, mine, act);
}

/* --- a block's life */

void block::entry() {
  block &b = *here;
  b.work_->thread();
  finish_copies();
  fiber &f = *b.current_;
  f.ended = true;
  b.alive_--;
  b.release_barriers();
  b.release_lanes(f.number);
  b.progress();
  if (b.alive_ > 0) b.leave("its end");
  switch_context(f.place, b.host_);
  abort(); /* nobody comes back */
}

/* Which of the threads goes first: what lacks a barrier is wrong in one of the two orders, often. */
static bool reversed() {
  static const char *order = getenv("BATCHQR_EMULATOR_ORDER");
  return order && strcmp(order, "reversed") == 0;
}

void block::begin(const launch &work, unsigned index) {
  const unsigned threads = work.block.x;
  work_ = &work;
  blockIdx = {index % work.grid.x, index / work.grid.x % work.grid.y, index / work.grid.x / work.grid.y};
  blockDim = {threads, 1, 1};
  gridDim = {work.grid.x, work.grid.y, work.grid.z};
  threadIdx = {0, 0, 0};
  memset(emulator_shared, unset, work.shared + guard_bytes);
  if (fibers_.size() != threads) fibers_.resize(threads);
  warps_.resize((threads + 31) / 32);
  four_warps_.resize((threads + 127) / 128);
  stacks_.reserve(threads);
  for (size_t w = 0; w < warps_.size(); w++)
    warps_[w].alive = threads - 32 * w >= 32 ? ~0u : (1u << threads % 32) - 1;
  alive_ = static_cast<int>(threads);
  for (unsigned i = 0; i < threads; i++) {
    fiber &f = fibers_[i];
    f.number = i;
    f.ended = false;
    f.groups = 0;
    stacks_.begin(i, f.place, entry);
  }
  for (unsigned i = 0; i < threads; i++) ready_.push(&fibers_[reversed() ? threads - 1 - i : i]);
}

void block::check_end(const launch &work) {
  for (size_t i = 0; i < fibers_.size(); i++)
    if (stacks_.overrun(i)) die("a thread's stack overran");
  const unsigned char *guard = emulator_shared + work.shared;
  for (size_t i = 0; i < guard_bytes; i++)
    if (guard[i] != unset) die("the block wrote behind its dynamic shared memory");
}

void block::run(const launch &work, unsigned index, team *cluster, int rank, grid_state *grid) {
  here = this;
  team_ = cluster;
  rank_ = rank;
  grid_ = grid;
  grid_->running++;
  begin(work, index);
  if (team_) { /* all blocks of the cluster are there before one begins */
    team_->thread_pointer[rank] = static_cast<char *>(__builtin_thread_pointer());
    unsigned seen = grid_->changes();
    const unsigned before = team_->arrive();
    grid_->idle++;
    grid_->changed();
    for (; team_->generation == before; seen = grid_->changes()) grid_->sleep(seen);
    grid_->idle--;
  }
  current_ = ready_.pop();
  threadIdx.x = current_->number;
  switch_context(host_, current_->place);
  check_end(work);
  progress();
  grid_->running--;
  here = nullptr;
}

void block::die(const char *what) const {
  fprintf(stderr, "emulator: %s: block %u, thread %u\n", what, blockIdx.x, current_ ? current_->number : 0);
  for (size_t i = 0, first = 0; i < fibers_.size(); i++) { /* those that do the same, in a line */
    const char *state = fibers_[i].ended ? "ended" : &fibers_[i] == current_ ? "runs" : fibers_[i].waits_at;
    const fiber *next = i + 1 < fibers_.size() ? &fibers_[i + 1] : nullptr;
    const char *after = !next ? nullptr : next->ended ? "ended" : next == current_ ? "runs" : next->waits_at;
    if (after == state) continue;
    fprintf(stderr, "  threads %zu to %zu: %s\n", first, i, state ? state : "not begun");
    first = i + 1;
  }
  abort();
}

/* --- the calling thread's */

void yield() { here->yield(); }
void progress() { here->progress(); }
void progress_of_all() { here->progress_of_all(); }
bool block_barrier(int number, int threads, bool vote) { return here->wait_at(number, threads, vote); }
void with_lanes(unsigned mask, void *mine, joint_act act) { here->meet_lanes(mask, mine, act); }
void with_four_warps(void *mine, joint_act act) { here->meet_warps(mine, act); }

void die(const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (here) here->die(text);
  fprintf(stderr, "emulator: %s\n", text);
  abort();
}

int option(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

} // namespace emulator
