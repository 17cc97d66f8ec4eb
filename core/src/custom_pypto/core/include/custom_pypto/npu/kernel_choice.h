// Which of several NPU kernels serves an op on this machine: chosen at first use, once per process.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/kernel_search.h>

#include <atomic>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// Defined at namespace scope:
//   const KernelChoice add_kernels("add_custom", {"aclnnAddCustom", "aclnnAdd"});
class KernelChoice {
 public:
  // `op` as in the op's schema; null when the symbol says enough. `symbols`: the preferred first.
  KernelChoice(const char* op, std::initializer_list<const char*> symbols)
      : state_(*std::make_unique<State>(op == nullptr ? "" : op, symbols).release()),
        next_(first()) {
    first() = this;
  }
  KernelChoice(const KernelChoice&) = delete;
  KernelChoice& operator=(const KernelChoice&) = delete;

  // The chosen kernel, which never changes. Throws std::runtime_error when no library has any,
  // which lists every place that was searched, or when one's functions are in two libraries; the
  // next call searches again.
  const Kernel& get() const {
    const Kernel* chosen = state_.chosen.load(std::memory_order_acquire);
    return CUSTOM_PYPTO_UNLIKELY(chosen == nullptr) ? choose() : *chosen;
  }

  // The chosen kernel; null when no library has any. Searches once only, but throws as get() does.
  const Kernel* try_get() const {
    const Kernel* chosen = state_.chosen.load(std::memory_order_acquire);
    if (chosen != nullptr || state_.is_missing.load(std::memory_order_acquire)) return chosen;
    const std::lock_guard<std::mutex> lock(state_.mutex);
    if (state_.chosen.load(std::memory_order_relaxed) == nullptr) keep(search());
    return state_.chosen.load(std::memory_order_relaxed);
  }

  // The result of a search now, without choosing it.
  KernelSearch peek() const {
    const Kernel* chosen = state_.chosen.load(std::memory_order_acquire);
    return chosen == nullptr ? search() : KernelSearch{state_.kernel, {}, ""};
  }

  const std::string& op() const noexcept { return state_.op; }
  const std::vector<const char*>& symbols() const noexcept { return state_.symbols; }

  // All choices of this library, known once it is loaded: a list linked by next().
  static const KernelChoice*& first() noexcept {
    static const KernelChoice* head = nullptr;
    return head;
  }
  const KernelChoice* next() const noexcept { return next_; }

 private:
  // Never destroyed: at exit, other threads may still launch.
  struct State {
    State(const char* op_name, std::initializer_list<const char*> names)
        : op(op_name), symbols(names) {}

    const std::string op;
    const std::vector<const char*> symbols;
    std::mutex mutex;
    std::shared_ptr<const Kernel> kernel;
    std::atomic<const Kernel*> chosen{nullptr};
    std::atomic<bool> is_missing{false};
  };

  KernelSearch search() const { return search_kernel(state_.op, state_.symbols); }

  CUSTOM_PYPTO_COLD const Kernel& choose() const {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    if (state_.chosen.load(std::memory_order_relaxed) == nullptr) {
      KernelSearch found = search();
      if (found.kernel == nullptr && found.fault.empty()) {
        throw std::runtime_error(explain_missing_kernel(op(), symbols(), found.searched));
      }
      keep(std::move(found));
    }
    return *state_.chosen.load(std::memory_order_relaxed);
  }

  void keep(KernelSearch&& found) const {
    if (!found.fault.empty()) throw std::runtime_error(found.fault);
    if (found.kernel != nullptr) {
      state_.kernel = std::move(found.kernel);
      state_.chosen.store(state_.kernel.get(), std::memory_order_release);
    } else {
      state_.is_missing.store(true, std::memory_order_release);
    }
  }

  State& state_;
  const KernelChoice* const next_;
};

namespace detail {

// The choice of the one symbol that CUSTOM_PYPTO_EXEC_NPU_CMD names.
template <typename Name>
inline const KernelChoice named_kernel(nullptr, {Name::symbol()});

}  // namespace detail
}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
