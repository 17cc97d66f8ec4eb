// Which of several NPU kernels serves an op here: chosen at first use, once, and reported to core.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/kernel_search.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {
namespace detail {
inline void keep_report() noexcept;
}

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
    detail::keep_report();
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

// A line "<field>\t<value>", as core's kernel_queries.py reads it.
CUSTOM_PYPTO_COLD inline void put(std::string& report, const char* field, std::string value) {
  std::replace(value.begin(), value.end(), '\n', ' ');
  report += std::string(field) + '\t' + value + '\n';
}

// For each choice, in the order of the source: its op, symbols, the kernel (if there is one) or why
// it must not be used, and the places searched.
CUSTOM_PYPTO_COLD inline std::string report_kernels() {
  std::vector<const KernelChoice*> choices;
  for (const KernelChoice* each = KernelChoice::first(); each != nullptr; each = each->next()) {
    choices.insert(choices.begin(), each);
  }
  std::string report;
  for (const KernelChoice* choice : choices) {
    const KernelSearch search = choice->peek();
    put(report, "op", choice->op());
    for (const char* symbol : choice->symbols()) put(report, "candidate", symbol);
    if (search.kernel != nullptr) {
      put(report, "symbol", search.kernel->symbol);
      put(report, "library", search.kernel->library);
      put(report, "origin", origin_name(search.kernel->origin));
    }
    if (!search.fault.empty()) put(report, "fault", search.fault);
    for (const std::string& place : search.searched) put(report, "searched", place);
  }
  return report;
}

// Returns how many bytes a report takes with its NUL, and writes it when `size` is at least that;
// returns 0 when it failed.
CUSTOM_PYPTO_COLD inline std::size_t copy_report(std::string (*make)(), char* text,
                                                 std::size_t size) noexcept {
  try {
    const std::string all = make();
    if (text != nullptr && size > all.size()) std::memcpy(text, all.c_str(), all.size() + 1);
    return all.size() + 1;
  } catch (const std::exception&) {
    return 0;
  }
}

CUSTOM_PYPTO_EXPORT inline std::size_t custom_pypto_npu_kernels_v1(char* text,
                                                                   std::size_t size) noexcept {
  return copy_report(&report_kernels, text, size);
}

// Nothing calls it: core finds it by name. Sources that use no choice lack it.
inline void keep_report() noexcept { asm volatile("" ::"r"(&custom_pypto_npu_kernels_v1)); }

}  // namespace detail
}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
