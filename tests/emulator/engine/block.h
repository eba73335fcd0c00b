/* SPDX-License-Identifier: BSD-3-Clause */
/* A running block: its threads, which of them can go on, and what the others wait for. */
#ifndef EMULATOR_BLOCK_H
#define EMULATOR_BLOCK_H

#include "emulator/engine.h"
#include "fiber.h"
#include <atomic>
#include <cstdint>
#include <vector>

namespace emulator {

struct pending_copy {
  void *to;
  const void *from;
  int bytes, room; /* what is copied; the rest of the room becomes zeros */
  int group;
};

struct fiber {
  context place;
  unsigned number;
  bool ended;
  bool vote;            /* of the barrier that it waits at */
  const char *waits_at; /* for messages */
  fiber *next;          /* in the one queue that it is in */
  std::vector<pending_copy> copies;
  int groups;
};

/* Fibers in the order in which they came. */
class queue {
public:
  bool empty() const { return first_ == nullptr; }
  fiber *first() const { return first_; }
  void push(fiber *f);
  fiber *pop();
  /* All of `other` behind all of this, or before. */
  void append(queue &other);
  void put_first(queue &other);

private:
  fiber *first_ = nullptr, *last_ = nullptr;
};

struct barrier {
  int arrived = 0, wanted = 0; /* wanted 0: all that live */
  bool vote = false;
  queue waiting;
};

/* Threads that do something together. */
struct meeting {
  unsigned mask = 0;
  int count = 0; /* that are there */
  joint_act act = nullptr;
  queue waiting;
  void *posted[128];
};

/* Blocks that share a cluster. */
struct team {
  int size = 1;
  char *thread_pointer[16] = {}; /* of the host's threads that run the blocks */
  std::atomic<int> arrived{0};
  std::atomic<unsigned> generation{0};

  /* Returns the generation that is over when all blocks have come. */
  unsigned arrive();
};

/* Of a launch: blocks that run, and those of them of which no thread goes on, until another block changes
 * something. */
class grid_state {
public:
  std::atomic<int> running{0}, idle{0};

  unsigned changes() const { return changes_; }
  /* Tells those who sleep. */
  void changed();
  /* Until there are other changes than `seen`, or for a few milliseconds. */
  void sleep(unsigned seen);

private:
  std::atomic<unsigned> changes_{0};
};

class block {
public:
  void run(const launch &work, unsigned index, team *cluster, int rank, grid_state *grid);

  fiber *current() const { return current_; }
  team *cluster() const { return team_; }
  int rank() const { return rank_; }

  void yield();
  /* Something changed that threads of the block, or of all blocks, may wait for. */
  void progress();
  void progress_of_all();
  bool wait_at(int number, int threads, bool vote);
  void wait_for_cluster();
  void meet(meeting &m, int place, unsigned mask, int threads, void *mine, joint_act act);
  void meet_lanes(unsigned mask, void *mine, joint_act act);
  void meet_warps(void *mine, joint_act act);
  [[noreturn]] void die(const char *what) const;

private:
  static void entry();
  void begin(const launch &work, unsigned index);
  void check_end(const launch &work);
  void resume(fiber *f);
  void leave(const char *waits_at);
  void release(queue &waiting);
  void release_first(queue &waiting);
  void release_barriers();
  void release_lanes(unsigned number);
  void idle();

  struct warp {
    std::vector<meeting> meetings; /* one for each set of lanes that is at something */
    unsigned alive = 0;
  };

  const launch *work_ = nullptr;
  grid_state *grid_ = nullptr;
  team *team_ = nullptr;
  int rank_ = 0;
  context host_;
  std::vector<fiber> fibers_;
  std::vector<warp> warps_;
  std::vector<meeting> four_warps_;
  stacks stacks_;
  queue ready_;
  fiber *current_ = nullptr;
  int alive_ = 0;
  barrier barriers_[16];
  int at_cluster_ = 0;
  bool cluster_asked_ = false;
  unsigned cluster_generation_ = 0;
  long polls_ = 0, idle_at_ = 0; /* since something went on; when nobody seems to */
  double idle_since_ = 0;
  unsigned seen_ = 0; /* changes of the grid's */
  bool is_idle_ = false;
};

/* The block that this thread of the host runs. */
extern thread_local block *here;

} // namespace emulator

#endif
