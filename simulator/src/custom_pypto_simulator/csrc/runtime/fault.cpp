// What tests do to CANN, and count of it: faults, delays, live objects.
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {
namespace {

// What tests set, and count. Never destroyed: threads outlive static objects.
struct TestState {
  std::mutex mutex;
  // The one function of which a call fails.
  std::string function;
  std::atomic<uint64_t> remaining{0};
  std::atomic<uint64_t> phase_1_calls{0};
  std::map<std::string, double> delays;
  std::map<std::string, std::atomic<int64_t>> live;
};

TestState& test_state() {
  static auto* instance = new TestState;
  return *instance;
}

double delay_of(const std::string& name) {
  const std::lock_guard<std::mutex> lock(test_state().mutex);
  const auto& delays = test_state().delays;
  if (delays.empty()) return 0;
  auto found = delays.find(name);
  const bool is_op = name.find(':') == std::string::npos;
  if (found == delays.end() && is_op) found = delays.find("*");
  return found == delays.end() ? 0 : found->second;
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT bool custom_pypto_sim_function_fault(const char* name) {
  auto& state = sim::test_state();
  if (state.remaining == 0) return false;
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.function != name || state.remaining == 0 || --state.remaining != 0) return false;
  }
  sim::fail(ACL_ERROR_INTERNAL_ERROR, name, ": fault injected");
  return true;
}

CUSTOM_PYPTO_SIM_EXPORT bool custom_pypto_sim_phase_1_fault(const char* name) {
  ++sim::test_state().phase_1_calls;
  if (sim::test_state().remaining == 0) return false;
  return custom_pypto_sim_function_fault((std::string(name) + "GetWorkspaceSize").c_str());
}

// The nth call of the function `name` from now fails, and no call of another; 0 disarms. Returns
// whether a fault was pending.
CUSTOM_PYPTO_SIM_EXPORT bool custom_pypto_sim_fail(const char* name, uint64_t nth) {
  const std::lock_guard<std::mutex> lock(sim::test_state().mutex);
  sim::test_state().function = name;
  return sim::test_state().remaining.exchange(nth) != 0;
}

CUSTOM_PYPTO_SIM_EXPORT uint64_t custom_pypto_sim_phase_1_calls() {
  return sim::test_state().phase_1_calls;
}

CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_delay(const char* name) {
  const double seconds = sim::delay_of(name);
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Delays each further run of `name`, "*" for every op, by `seconds`; 0 removes the delay. The
// thread that launches an op is delayed by "launch:aclnnAdd".
CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_set_delay(const char* name, double seconds) {
  const std::lock_guard<std::mutex> lock(sim::test_state().mutex);
  sim::test_state().delays.erase(name);
  if (seconds > 0) sim::test_state().delays[name] = seconds;
}

CUSTOM_PYPTO_SIM_EXPORT std::atomic<int64_t>* custom_pypto_sim_counter(const char* kind) {
  const std::lock_guard<std::mutex> lock(sim::test_state().mutex);
  return &sim::test_state().live[kind];  // elements of a map stay where they are
}

// One line "kind=number" for each kind that has ever had an object; valid until the next call.
CUSTOM_PYPTO_SIM_EXPORT const char* custom_pypto_sim_live() {
  static thread_local std::string text;
  text.clear();
  const std::lock_guard<std::mutex> lock(sim::test_state().mutex);
  for (const auto& [kind, count] : sim::test_state().live) {
    text += kind + "=" + std::to_string(count) + "\n";
  }
  return text.c_str();
}
