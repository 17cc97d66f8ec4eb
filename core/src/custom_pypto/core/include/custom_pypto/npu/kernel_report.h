// What launches pass. Core asks a library for that without a launch. Before the first launch of a
// kernel, core compares it with the header of the kernel's opp package.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/argument.h>
#include <custom_pypto/npu/kernel_choice.h>
#include <custom_pypto/npu/kernel_search.h>
#include <custom_pypto/npu/torch_npu.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {
namespace detail {

// The C types of a launch's arguments. The same types are the same object.
template <const char*... types>
struct TypeList {
  static constexpr std::array<const char*, sizeof...(types)> list{types...};
};
template <typename... Args>
using PassedTypes = TypeList<ArgumentOf<Args>::c_type...>;

template <std::size_t count>
std::string join(const std::array<const char*, count>& types) {
  std::string text;
  for (const char* type : types) text += (text.empty() ? "" : ",") + std::string(type);
  return text;
}

// A place in the source that launches a kernel by name.
struct LaunchSite {
  LaunchSite(const char* kernel, const char* passed, std::string passed_types)
      : symbol(kernel), arguments(passed), types(std::move(passed_types)), next(first()) {
    first() = this;
  }
  LaunchSite(const LaunchSite&) = delete;
  LaunchSite& operator=(const LaunchSite&) = delete;

  // All sites of this library, known once it is loaded: a list linked by `next`.
  static const LaunchSite*& first() noexcept {
    static const LaunchSite* head = nullptr;
    return head;
  }

  const char* const symbol;
  const char* const arguments;  // as in the source: "a.x, out.result"
  const std::string types;      // "aclTensor *,aclTensor *"
  const LaunchSite* const next;
};

// The site that `Site` describes, with arguments of the types `Args`.
template <typename Site, typename... Args>
inline const LaunchSite launch_site(Site::symbol(), Site::arguments(),
                                    join(PassedTypes<Args...>::list));

// Core's comparison. Returns 0 if the kernel's header declares what is passed, or if it has none;
// else writes what differs, to follow the kernel's name. Called from any thread, with no lock held.
using CompareLaunch = int (*)(const char* symbol, const char* library, const char* types,
                              const char* arguments, char* text, std::size_t size);

// Null until core has given it, and when Python ends.
inline std::atomic<CompareLaunch>& comparison() noexcept {
  static std::atomic<CompareLaunch> given{nullptr};
  return given;
}

// For each launch by name: symbol, C types and arguments. Then the library of each opp package, in
// the order of the search, whether it is there or not; opens none.
CUSTOM_PYPTO_COLD inline std::string report_launches() {
  std::string report;
  for (const LaunchSite* site = LaunchSite::first(); site != nullptr; site = site->next) {
    put(report, "launch", site->symbol);
    put(report, "types", site->types);
    put(report, "arguments", site->arguments);
  }
  for (const KernelLibrary& library : kernel_libraries()) {
    if (library.origin == Origin::cann || library.is_ascendc || library.name.empty()) continue;
    put(report, "package", library.name);
  }
  return report;
}

// Core calls it once a library is open.
CUSTOM_PYPTO_EXPORT inline void custom_pypto_npu_compare_by_v1(CompareLaunch compare) noexcept {
  comparison().store(compare, std::memory_order_release);
}

CUSTOM_PYPTO_EXPORT inline std::size_t custom_pypto_npu_launches_v1(char* text,
                                                                    std::size_t size) noexcept {
  return copy_report(&report_launches, text, size);
}

// Throws std::runtime_error when the kernel's header declares other arguments. `types` is the list
// of a TypeList.
template <std::size_t count>
CUSTOM_PYPTO_COLD void compare_launch(const Kernel& kernel,
                                      const std::array<const char*, count>& types,
                                      const char* arguments) {
  // Nothing calls these two: core finds them by name. Sources that launch nothing lack them.
  asm volatile("" ::"r"(&custom_pypto_npu_compare_by_v1), "r"(&custom_pypto_npu_launches_v1));
  // Of kernels that are launched with several lists of types. Never destroyed.
  static std::mutex& mutex = *std::make_unique<std::mutex>().release();
  static auto& compared =
      *std::make_unique<std::set<std::pair<const void*, const void*>>>().release();
  const std::pair<const void*, const void*> launch(&kernel, &types);
  bool is_known = false;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    is_known = compared.count(launch) != 0;
  }
  const CompareLaunch compare = comparison().load(std::memory_order_acquire);
  if (!is_known && compare != nullptr && is_switched_on(kHeadersVariable, true)) {
    std::array<char, 8192> text{};
    if (compare(kernel.symbol.c_str(), kernel.library.c_str(), join(types).c_str(), arguments,
                text.data(), text.size()) != 0) {
      throw std::runtime_error(kernel.title + text.data());
    }
  }
  const std::lock_guard<std::mutex> lock(mutex);
  compared.insert(launch);
  kernel.compared.store(&types, std::memory_order_relaxed);
}

}  // namespace detail
}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
