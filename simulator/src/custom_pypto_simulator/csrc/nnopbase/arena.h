// CANN's arenas ("huge memory") for what phase 1 allocates. A thread takes one with
// InitHugeMemThreadLocal and only forgets it with UnInitHugeMemThreadLocal: ReleaseHugeMem gives it
// back, in the thread that ran phase 2 with, or destroyed, an executor in it.
#pragma once

#include <atomic>
#include <memory>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {

// Counted as "huge memory" until it is given back.
class Arena {
 public:
  Arena() { ++count(); }

  bool is_taken() const { return is_taken_; }

  void give_back() {
    if (is_taken_.exchange(false)) --count();
  }

 private:
  static std::atomic<int64_t>& count() {
    static std::atomic<int64_t>& live = *custom_pypto_sim_counter("huge memory");
    return live;
  }

  std::atomic<bool> is_taken_{true};
};

// The one that the calling thread would use and give back; null when it has none.
std::shared_ptr<Arena>& arena_of_thread();

}  // namespace custom_pypto_simulator
