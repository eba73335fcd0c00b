/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches: threads of the host take blocks, or clusters, in their order, as a device's multiprocessors do.
 */
#include "block.h"
#include "division.h"
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace emulator {

namespace {

struct job {
  const launch &work;
  unsigned blocks;
  std::vector<team> teams;
  grid_state state;
  std::atomic<unsigned> next{0};

  explicit job(const launch &w)
      : work(w), blocks(w.grid.x * w.grid.y * w.grid.z),
        teams(w.cluster > 1 ? blocks / unsigned(w.cluster) : 0) {
    for (team &t : teams) t.size = w.cluster;
  }

  void take_blocks() {
    thread_local block mine;
    for (unsigned i; (i = next++) < blocks;) {
      const unsigned size = static_cast<unsigned>(work.cluster);
      mine.run(work, i, size > 1 ? &teams[i / size] : nullptr, static_cast<int>(i % size), &state);
    }
  }
};

/* Threads that wait for launches; as many as were ever needed. */
class helpers {
public:
  helpers() { allow_division_by_zero(); }
  ~helpers() {
    {
      std::lock_guard<std::mutex> hold(lock_);
      over_ = true;
    }
    wake_.notify_all();
    for (std::thread &t : threads_) t.join();
  }

  /* One launch at a time. `others` threads help the calling one. */
  void run(job &work, int others) {
    std::lock_guard<std::mutex> one(launch_);
    if (others > 0) {
      std::lock_guard<std::mutex> hold(lock_);
      while (static_cast<int>(threads_.size()) < others) threads_.emplace_back([this] { serve(); });
      work_ = &work;
      wanted_ = busy_ = others;
      wake_.notify_all();
    }
    work.take_blocks();
    std::unique_lock<std::mutex> hold(lock_);
    over_all_.wait(hold, [this] { return busy_ == 0; });
  }

private:
  void serve() {
    std::unique_lock<std::mutex> hold(lock_);
    for (;;) {
      wake_.wait(hold, [this] { return over_ || wanted_ > 0; });
      if (over_) return;
      wanted_--;
      job *work = work_;
      hold.unlock();
      work->take_blocks();
      hold.lock();
      if (--busy_ == 0) over_all_.notify_one();
    }
  }

  std::mutex launch_, lock_;
  std::condition_variable wake_, over_all_;
  std::vector<std::thread> threads_;
  job *work_ = nullptr;
  int wanted_ = 0, busy_ = 0;
  bool over_ = false;
};

} // namespace

void run(const launch &work) {
  static helpers all;
  static const int usual =
      option("BATCHQR_EMULATOR_THREADS", static_cast<int>(std::thread::hardware_concurrency()));
  job blocks(work);
  int threads = work.together ? static_cast<int>(blocks.blocks) : usual;
  if (threads < work.cluster) threads = work.cluster;
  threads = threads / work.cluster * work.cluster; /* whole clusters */
  if (static_cast<unsigned>(threads) > blocks.blocks) threads = static_cast<int>(blocks.blocks);
  all.run(blocks, threads - 1);
}

} // namespace emulator
