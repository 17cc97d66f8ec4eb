// Live objects, by kind: tensor, scalar, ..., executor, stream, event, graph, device memory, ...
#include <map>
#include <mutex>
#include <string>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {
namespace {

class Counts {
 public:
  void change(const char* kind, int by) {
    const std::lock_guard<std::mutex> lock(mutex_);
    counts_[kind] += by;
  }

  std::string text() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string result;
    for (const auto& [kind, count] : counts_) {
      result += kind + "=" + std::to_string(count) + "\n";
    }
    return result;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int64_t> counts_;
};

Counts& counts() {
  static auto* instance = new Counts;  // outlives the objects of static storage that it counts
  return *instance;
}

}  // namespace
}  // namespace custom_pypto_simulator

CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_count(const char* kind, int change) {
  custom_pypto_simulator::counts().change(kind, change);
}

// One line "kind=number" for each kind that has ever had an object; valid until the next call.
CUSTOM_PYPTO_SIM_EXPORT const char* custom_pypto_sim_live() {
  static thread_local std::string text;
  text = custom_pypto_simulator::counts().text();
  return text.c_str();
}
