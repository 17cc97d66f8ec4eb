// parallel_for, on torch's own threads: torch.set_num_threads applies to plugins too.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// How many threads a parallel_for may use.
inline int64_t num_threads() {
  uint32_t count = 0;
  detail::expect_success(torch_get_num_threads(&count), "torch_get_num_threads");
  return count;
}

namespace detail {

template <typename F>
class ParallelLoop {
 public:
  explicit ParallelLoop(const F& f) : f_(f) {}

  void run(int64_t begin, int64_t end, int64_t grain) {
    const AOTITorchError code = torch_parallel_for(begin, end, grain, &ParallelLoop::chunk, this);
    if (error_ != nullptr) std::rethrow_exception(error_);
    expect_success(code, "torch_parallel_for");
  }

 private:
  // No exception may reach torch_parallel_for: it would become an error code, without its text.
  static void chunk(int64_t begin, int64_t end, void* context) noexcept {
    auto& loop = *static_cast<ParallelLoop*>(context);
    if (loop.failed_.load(std::memory_order_relaxed)) return;
    try {
      loop.f_(begin, end);
    } catch (...) {
      if (!loop.failed_.exchange(true)) loop.error_ = std::current_exception();
    }
  }

  const F& f_;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};

}  // namespace detail

// Calls f(b, e) from several threads on disjoint ranges that together are [begin, end), each of at
// least `grain` (the last may be shorter). The first exception that f throws reaches the caller;
// ranges not begun by then are skipped. A nested call runs on the calling thread alone.
template <typename F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  if (begin >= end) return;
  const int64_t least = std::max<int64_t>(grain, 1);
  if (end - begin <= least) {
    f(begin, end);
    return;
  }
  detail::ParallelLoop<F>(f).run(begin, end, least);
}

CUSTOM_PYPTO_NAMESPACE_END
