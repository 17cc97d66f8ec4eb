// Logging and profiling, which are always off.
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "custom_pypto_simulator/runtime.h"

// CUSTOM_PYPTO_SIM_LOG=1 prints what torch_npu writes to CANN's log.
void aclAppLog(aclLogLevel level, const char* function, const char* file, uint32_t line,
               const char* format, ...) {
  static const bool shown = std::getenv("CUSTOM_PYPTO_SIM_LOG") != nullptr;
  if (!shown) return;
  std::va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "[%d] %s:%u %s: ", static_cast<int>(level), file, line, function);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
}

CUSTOM_PYPTO_SIM_EXPORT int32_t MsprofRegisterCallback(uint32_t, void*) { return 0; }
CUSTOM_PYPTO_SIM_EXPORT int32_t MsprofReportApi(uint32_t, const void*) { return 0; }
CUSTOM_PYPTO_SIM_EXPORT int32_t MsprofReportCompactInfo(uint32_t, const void*, uint32_t) {
  return 0;
}
CUSTOM_PYPTO_SIM_EXPORT int32_t MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t) {
  return 0;
}
CUSTOM_PYPTO_SIM_EXPORT uint64_t MsprofGetHashId(const char*, size_t) { return 0; }
CUSTOM_PYPTO_SIM_EXPORT uint64_t MsprofSysCycleTime() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
