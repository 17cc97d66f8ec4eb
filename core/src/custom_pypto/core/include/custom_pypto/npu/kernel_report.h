// The export through which core asks a library which NPU kernels its ops would use.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/kernel_choice.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {
namespace detail {

// Lines "<field>\t<value>", as core's kernel_queries.py reads them: for each choice, in the order
// of the source, its op, symbols, the kernel (if there is one) and the places searched.
inline std::string report_kernels() {
  std::vector<const KernelChoice*> choices;
  for (const KernelChoice* each = KernelChoice::first(); each != nullptr; each = each->next()) {
    choices.insert(choices.begin(), each);
  }
  std::string report;
  const auto put = [&](const char* field, std::string value) {
    std::replace(value.begin(), value.end(), '\n', ' ');
    report += std::string(field) + '\t' + value + '\n';
  };
  for (const KernelChoice* choice : choices) {
    const KernelSearch search = choice->preview();
    put("op", choice->op());
    for (const char* symbol : choice->symbols()) put("candidate", symbol);
    if (search.kernel.has_value()) {
      put("symbol", search.kernel->symbol);
      put("library", search.kernel->library);
      put("origin", origin_name(search.kernel->origin));
    }
    for (const std::string& place : search.searched) put("searched", place);
  }
  return report;
}

}  // namespace detail
}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END

// Returns how many bytes the report takes with its NUL, and writes it when `size` is at least that;
// returns 0 when it failed.
extern "C" __attribute__((visibility("default"), used)) inline std::size_t
custom_pypto_npu_kernels_v2(char* text, std::size_t size) noexcept {
  try {
    const std::string report = ::custom_pypto::npu::detail::report_kernels();
    if (text != nullptr && size > report.size()) {
      std::memcpy(text, report.c_str(), report.size() + 1);
    }
    return report.size() + 1;
  } catch (const std::exception&) {
    return 0;
  }
}
