// The exports through which core asks a library which NPU kernels its ops would use, and what they
// would pass.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/kernel_choice.h>
#include <custom_pypto/npu/kernel_library.h>
#include <custom_pypto/npu/launch_site.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {
namespace detail {

// Lines "<field>\t<value>", as core's kernel_queries.py reads them.
class Report {
 public:
  void put(const char* field, std::string value) {
    std::replace(value.begin(), value.end(), '\n', ' ');
    text_ += std::string(field) + '\t' + value + '\n';
  }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

// For each choice, in the order of the source: its op, symbols, the kernel (if there is one) or why
// it must not be used, and the places searched.
inline Report report_kernels() {
  std::vector<const KernelChoice*> choices;
  for (const KernelChoice* each = KernelChoice::first(); each != nullptr; each = each->next()) {
    choices.insert(choices.begin(), each);
  }
  Report report;
  for (const KernelChoice* choice : choices) {
    const KernelSearch search = choice->preview();
    report.put("op", choice->op());
    for (const char* symbol : choice->symbols()) report.put("candidate", symbol);
    if (search.kernel.has_value()) {
      report.put("symbol", search.kernel->symbol);
      report.put("library", search.kernel->library);
      report.put("origin", origin_name(search.kernel->origin));
    }
    if (!search.fault.empty()) report.put("fault", search.fault);
    for (const std::string& place : search.searched) report.put("searched", place);
  }
  return report;
}

// For each launch by name: symbol, C types and arguments. Then the library of each opp package, in
// the order of the search, whether it is there or not; opens none.
inline Report report_launches() {
  Report report;
  for (const LaunchSite* site = LaunchSite::first(); site != nullptr; site = site->next) {
    report.put("launch", site->symbol);
    report.put("types", site->types);
    report.put("arguments", site->arguments);
  }
  for (const KernelLibrary& library : kernel_libraries()) {
    if (library.origin == Origin::cann || library.has_launchers || library.name.empty()) continue;
    report.put("package", library.name);
  }
  return report;
}

inline std::size_t copy_report(Report (*make)(), char* text, std::size_t size) noexcept {
  try {
    const Report report = make();
    const std::string& all = report.text();
    if (text != nullptr && size > all.size()) std::memcpy(text, all.c_str(), all.size() + 1);
    return all.size() + 1;
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace detail
}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END

// Each returns how many bytes its report takes with its NUL, and writes it when `size` is at least
// that; returns 0 when it failed.
extern "C" __attribute__((visibility("default"), used)) inline std::size_t
custom_pypto_npu_kernels_v2(char* text, std::size_t size) noexcept {
  using namespace ::custom_pypto::npu::detail;
  return copy_report(&report_kernels, text, size);
}

extern "C" __attribute__((visibility("default"), used)) inline std::size_t
custom_pypto_npu_launches_v1(char* text, std::size_t size) noexcept {
  using namespace ::custom_pypto::npu::detail;
  return copy_report(&report_launches, text, size);
}
