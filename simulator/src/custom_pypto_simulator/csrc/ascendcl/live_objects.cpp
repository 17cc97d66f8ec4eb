// Counts live objects by kind: tensor, scalar, ..., executor, stream, event, graph, device memory,
// ...
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {
namespace {

class Counts {
 public:
  std::atomic<int64_t>* of(const char* kind) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return &counts_[kind];  // elements of a map stay where they are
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
  std::map<std::string, std::atomic<int64_t>> counts_;
};

Counts& counts() {
  static auto* instance = new Counts;  // outlives the objects of static storage that it counts
  return *instance;
}

}  // namespace
}  // namespace custom_pypto_simulator

CUSTOM_PYPTO_SIM_EXPORT std::atomic<int64_t>* custom_pypto_sim_counter(const char* kind) {
  return custom_pypto_simulator::counts().of(kind);
}

// One line "kind=number" for each kind that has ever had an object; valid until the next call.
CUSTOM_PYPTO_SIM_EXPORT const char* custom_pypto_sim_live() {
  static thread_local std::string text;
  text = custom_pypto_simulator::counts().text();
  return text.c_str();
}
