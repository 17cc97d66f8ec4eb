// CANN's arenas ("huge memory") for allocations of phase 1. A thread acquires one with
// InitHugeMemThreadLocal; UnInitHugeMemThreadLocal only detaches it. ReleaseHugeMem releases it, in
// the thread that ran phase 2 with an executor in it, or destroyed that.
#pragma once

#include <atomic>
#include <memory>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {

// Counted as "huge memory" until it is released.
class Arena {
 public:
  Arena() { ++count(); }

  bool is_held() const { return is_held_; }

  void release() {
    if (is_held_.exchange(false)) --count();
  }

 private:
  static std::atomic<int64_t>& count() {
    static std::atomic<int64_t>& live = *custom_pypto_sim_counter("huge memory");
    return live;
  }

  std::atomic<bool> is_held_{true};
};

// The arena of the calling thread; null when it has none.
inline std::shared_ptr<Arena>& arena_of_thread() {
  static thread_local std::shared_ptr<Arena> arena;
  return arena;
}

}  // namespace custom_pypto_simulator
