// What tests do to CANN, and count of it: faults, delays, live objects.
//
// Kinds of calls: "allocation" (aclrtMalloc*), "creation" (aclCreate* of tensors, scalars, arrays,
// lists), "phase1" (aclnn*GetWorkspaceSize), "phase2" (aclnn*), "execution" (the op itself, on its
// stream), and "call", which counts every call of the first four.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {
namespace {

struct Kind {
  const char* name;
  bool is_call;
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> fails_at{0};  // the number of the call that fails; 0: none
};

class Faults {
 public:
  Faults() {
    const char* variable = std::getenv("CUSTOM_PYPTO_SIM_FAIL");
    std::istringstream entries(variable == nullptr ? "" : variable);
    for (std::string entry; std::getline(entries, entry, ',');) {
      const auto colon = entry.find(':');
      char* end = nullptr;
      const uint64_t nth =
          colon == std::string::npos ? 0 : std::strtoull(&entry[colon + 1], &end, 10);
      if (nth != 0 && *end == '\0' && arm(entry.substr(0, colon), nth)) continue;
      std::fprintf(stderr,
                   "custom_pypto_simulator: CUSTOM_PYPTO_SIM_FAIL must be kind:k[,kind:k], k from "
                   "1, kind one of allocation, creation, phase1, phase2, execution, call, got "
                   "'%s'\n",
                   entry.c_str());
      std::abort();
    }
  }

  Kind& get(FaultKind kind) { return kinds_[kind]; }
  Kind& call() { return kinds_[5]; }

  Kind* find(const std::string& name) {
    for (Kind& kind : kinds_) {
      if (name == kind.name) return &kind;
    }
    return nullptr;
  }

  bool arm(const std::string& name, uint64_t nth) {
    Kind* kind = find(name);
    if (kind == nullptr) return false;
    kind->fails_at = nth == 0 ? 0 : kind->calls + nth;
    return true;
  }

 private:
  Kind kinds_[6] = {{"allocation", true}, {"creation", true},   {"phase1", true},
                    {"phase2", true},     {"execution", false}, {"call", false}};
};

Faults& faults() {
  static Faults instance;
  return instance;
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
  sim::Kind& found = sim::faults().get(kind);
  const bool fails = sim::count(found, name) || custom_pypto_sim_function_fault(name);
  return (found.is_call && sim::count(sim::faults().call(), name)) || fails;
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
  const bool was_armed = sim::faults().find(kind)->fails_at != 0;
  sim::faults().arm(kind, nth);
  return was_armed;
}

// The number of calls of `kind` so far.
CUSTOM_PYPTO_SIM_EXPORT uint64_t custom_pypto_sim_calls(const char* kind) {
  return sim::faults().find(kind)->calls;
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
