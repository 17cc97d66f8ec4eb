// Counts live objects by kind: tensor, scalar, ..., executor, stream, event, graph, device memory,
// ...
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, std::atomic<int64_t>> by_kind;
};

Counts& counts() {
  static auto* instance = new Counts;  // outlives the objects of static storage that it counts
  return *instance;
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT std::atomic<int64_t>* custom_pypto_sim_counter(const char* kind) {
  const std::lock_guard<std::mutex> lock(sim::counts().mutex);
  return &sim::counts().by_kind[kind];  // elements of a map stay where they are
}

// One line "kind=number" for each kind that has ever had an object; valid until the next call.
CUSTOM_PYPTO_SIM_EXPORT const char* custom_pypto_sim_live() {
  static thread_local std::string text;
  text.clear();
  const std::lock_guard<std::mutex> lock(sim::counts().mutex);
  for (const auto& [kind, count] : sim::counts().by_kind) {
    text += kind + "=" + std::to_string(count) + "\n";
  }
  return text.c_str();
}
