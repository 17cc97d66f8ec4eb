// Switches for uses of torch_npu and CANN that no hardware has confirmed yet.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/printable.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// Launches use CANN's executor cache (executor_cache.h): off, unless it is 1.
inline constexpr const char* kExecutorCacheVariable = "CUSTOM_PYPTO_NPU_EXECUTOR_CACHE";
// Results are allocated as torch_npu's own ops allocate theirs (allocation.h): off, unless it is 1.
inline constexpr const char* kAllocationVariable = "CUSTOM_PYPTO_NPU_ALLOCATION";
// Launches are compared with the headers of opp packages (kernel_report.h): on, unless it is 0.
inline constexpr const char* kHeadersVariable = "CUSTOM_PYPTO_NPU_HEADERS";

// Whether the environment variable is 1, or what it is `otherwise` if it is unset. Throws
// std::runtime_error for values but 0 and 1.
inline bool is_switched_on(const char* variable, bool otherwise) {
  const char* text = std::getenv(variable);
  const std::string_view value = text == nullptr ? "" : text;
  if (value.empty()) return otherwise;
  if (value == "1") return true;
  if (value == "0") return false;
  throw std::runtime_error(std::string(variable) + " must be 0 or 1, got '" + printable(value) +
                           "'");
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
