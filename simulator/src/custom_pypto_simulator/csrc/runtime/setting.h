// The environment variables CUSTOM_PYPTO_SIM_*.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace custom_pypto_simulator {

struct Settings {
  int32_t devices;      // CUSTOM_PYPTO_SIM_DEVICES, default 1
  size_t memory;        // CUSTOM_PYPTO_SIM_MEMORY, bytes of each device, default 4 GiB
  std::string soc;      // CUSTOM_PYPTO_SIM_SOC, default Ascend910B1
  bool poison;          // CUSTOM_PYPTO_SIM_POISON=1: fill memory when allocated and when freed
  bool executor_cache;  // CUSTOM_PYPTO_SIM_EXECUTOR_CACHE=0: none, default 1
};

inline std::string text_setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// An invalid setting ends the process: else a test could pass without testing anything.
inline uint64_t number_setting(const char* name, const char* otherwise) {
  const std::string value = text_setting(name, otherwise);
  char* end = nullptr;
  errno = 0;
  const uint64_t result = std::strtoull(value.c_str(), &end, 10);
  if (errno != 0 || *end != '\0' || value[0] == '-') {
    std::fprintf(stderr, "custom_pypto_simulator: %s must be a whole number, got '%s'\n", name,
                 value.c_str());
    std::abort();
  }
  return result;
}

// Read at first use.
inline const Settings& settings() {
  static const Settings values = {
      static_cast<int32_t>(number_setting("CUSTOM_PYPTO_SIM_DEVICES", "1")),
      number_setting("CUSTOM_PYPTO_SIM_MEMORY", "4294967296"),
      text_setting("CUSTOM_PYPTO_SIM_SOC", "Ascend910B1"),
      number_setting("CUSTOM_PYPTO_SIM_POISON", "0") != 0,
      number_setting("CUSTOM_PYPTO_SIM_EXECUTOR_CACHE", "1") != 0,
  };
  return values;
}

// CUSTOM_PYPTO_SIM_CANN, default 8.5.0. Read anew each time: torch_npu asks while it is imported,
// plugins when they are first used.
inline std::string cann() { return text_setting("CUSTOM_PYPTO_SIM_CANN", "8.5.0"); }

}  // namespace custom_pypto_simulator
