// Delays ops: CUSTOM_PYPTO_SIM_DELAY=aclnnAdd=0.05[,...] in seconds, "*" for every op; the thread
// that launches one: launch:aclnnAdd.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "custom_pypto_simulator/runtime.h"
#include "setting.h"

namespace custom_pypto_simulator {
namespace {

struct Delays {
  Delays() {
    const auto add = [this](const std::string& name, const char* value) {
      char* end = nullptr;
      const double given = std::strtod(value, &end);
      if (*end != '\0' || given < 0) return false;
      seconds[name] = given;
      return true;
    };
    read_entries("CUSTOM_PYPTO_SIM_DELAY", '=', add, "name=seconds[,name=seconds]");
  }

  std::mutex mutex;
  std::map<std::string, double> seconds;
};

Delays& delays() {
  static auto* instance = new Delays;  // stream threads may outlive static destructors
  return *instance;
}

double delay_of(const char* name) {
  const std::lock_guard<std::mutex> lock(delays().mutex);
  const auto& seconds = delays().seconds;
  if (seconds.empty()) return 0;
  auto found = seconds.find(name);
  const bool is_op = std::strchr(name, ':') == nullptr;
  if (found == seconds.end() && is_op) found = seconds.find("*");
  return found == seconds.end() ? 0 : found->second;
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_delay(const char* name) {
  const double seconds = sim::delay_of(name);
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Delays each further run of `name` by `seconds`; 0 removes the delay.
CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_set_delay(const char* name, double seconds) {
  const std::lock_guard<std::mutex> lock(sim::delays().mutex);
  sim::delays().seconds.erase(name);
  if (seconds > 0) sim::delays().seconds[name] = seconds;
}
