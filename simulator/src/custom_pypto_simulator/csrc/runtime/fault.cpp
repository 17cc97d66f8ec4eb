// What tests do to CANN, and count of it: faults, delays, live objects.
//
// Kinds of calls: "allocation" (aclrtMalloc*), "creation" (aclCreate* of tensors, scalars, arrays,
// lists), "phase1" (aclnn*GetWorkspaceSize), "phase2" (aclnn*), "execution" (the op itself, on its
// stream), and "call", which counts every call of the first four.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {
namespace {

// A kind of calls.
struct Kind {
  const char* name;
  bool is_call;
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> fails_at{0};  // the number of the call that fails; 0: none
};

// In the order of FaultKind.
Kind kinds[] = {{"allocation", true}, {"creation", true},   {"phase1", true},
                {"phase2", true},     {"execution", false}, {"call", false}};

Kind& find_kind(const std::string& name) {
  return *std::find_if(std::begin(kinds), std::end(kinds),
                       [&](const Kind& kind) { return name == kind.name; });
}

// Counts one call; true, with the recent error set, if it must fail.
bool count(Kind& kind, const char* name) {
  const uint64_t number = ++kind.calls;
  uint64_t expected = number;
  if (!kind.fails_at.compare_exchange_strong(expected, 0)) return false;
  fail(ACL_ERROR_INTERNAL_ERROR, name, ": fault injected (", kind.name, " ", number, ")");
  return true;
}

// The other things that tests set. Never destroyed: threads outlive static objects.
struct TestState {
  std::mutex mutex;
  // The one function of which a call fails.
  std::string function;
  std::atomic<uint64_t> remaining{0};
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

CUSTOM_PYPTO_SIM_EXPORT bool custom_pypto_sim_fault(sim::FaultKind kind, const char* name) {
  sim::Kind& found = sim::kinds[kind];
  const bool fails = sim::count(found, name) || custom_pypto_sim_function_fault(name);
  return (found.is_call && sim::count(sim::kinds[sim::kCall], name)) || fails;
}

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

// The nth call of the function `name` from now fails, and no call of another; 0 disarms. Returns
// whether a fault was pending.
CUSTOM_PYPTO_SIM_EXPORT bool custom_pypto_sim_fail_function(const char* name, uint64_t nth) {
  const std::lock_guard<std::mutex> lock(sim::test_state().mutex);
  sim::test_state().function = name;
  return sim::test_state().remaining.exchange(nth) != 0;
}

// The nth call of `kind` from now fails; 0 disarms. Returns whether a fault was pending.
CUSTOM_PYPTO_SIM_EXPORT bool custom_pypto_sim_fail(const char* kind, uint64_t nth) {
  sim::Kind& found = sim::find_kind(kind);
  return found.fails_at.exchange(nth == 0 ? 0 : found.calls + nth) != 0;
}

// The number of calls of `kind` so far.
CUSTOM_PYPTO_SIM_EXPORT uint64_t custom_pypto_sim_calls(const char* kind) {
  return sim::find_kind(kind).calls;
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
