// Reads the environment variables of setting.h.
#include "setting.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace custom_pypto_simulator {
namespace {

std::string text(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// An invalid setting ends the process: else a test could pass without testing anything.
uint64_t number(const char* name, const char* otherwise) {
  const std::string value = text(name, otherwise);
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

}  // namespace

const Settings& settings() {
  static const Settings values = {
      static_cast<int32_t>(number("CUSTOM_PYPTO_SIM_DEVICES", "1")),
      number("CUSTOM_PYPTO_SIM_MEMORY", "4294967296"),
      text("CUSTOM_PYPTO_SIM_SOC", "Ascend910B1"),
      number("CUSTOM_PYPTO_SIM_POISON", "0") != 0,
      number("CUSTOM_PYPTO_SIM_EXECUTOR_CACHE", "1") != 0,
  };
  return values;
}

std::string cann() { return text("CUSTOM_PYPTO_SIM_CANN", "8.5.0"); }

}  // namespace custom_pypto_simulator
