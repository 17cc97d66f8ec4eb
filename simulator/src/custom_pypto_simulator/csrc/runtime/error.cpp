// The recent error of each thread: aclGetRecentErrMsg.
#include "error.h"

#include <utility>

namespace custom_pypto_simulator {
namespace {

thread_local std::optional<Error> recent;

}  // namespace

std::optional<Error> take_recent() { return std::exchange(recent, std::nullopt); }

}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT int custom_pypto_sim_error(int code, const char* text) {
  sim::recent = sim::Error{code, text};
  return code;
}

const char* aclGetRecentErrMsg() {
  static thread_local std::string text;
  auto error = sim::take_recent();
  if (!error) return nullptr;
  text = "EZ9999: custom_pypto_simulator: " + error->text;
  return text.c_str();
}
