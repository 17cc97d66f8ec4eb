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

class Delays {
 public:
  Delays() {
    const auto add = [this](const std::string& name, const char* value) {
      char* end = nullptr;
      const double seconds = std::strtod(value, &end);
      if (*end != '\0' || seconds < 0) return false;
      seconds_[name] = seconds;
      return true;
    };
    setting::read_entries("CUSTOM_PYPTO_SIM_DELAY", '=', add, "name=seconds[,name=seconds]");
  }

  double of(const char* name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (seconds_.empty()) return 0;
    auto found = seconds_.find(name);
    const bool is_op = std::strchr(name, ':') == nullptr;
    if (found == seconds_.end() && is_op) found = seconds_.find("*");
    return found == seconds_.end() ? 0 : found->second;
  }

  void set(const std::string& name, double seconds) {
    const std::lock_guard<std::mutex> lock(mutex_);
    seconds_.erase(name);
    if (seconds > 0) seconds_[name] = seconds;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, double> seconds_;
};

Delays& delays() {
  static auto* instance = new Delays;  // stream threads may outlive static destructors
  return *instance;
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_delay(const char* name) {
  const double seconds = sim::delays().of(name);
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Delays each further run of `name` by `seconds`; 0 removes the delay.
CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_set_delay(const char* name, double seconds) {
  sim::delays().set(name, seconds);
}
