// Fault injection: the k-th call of a kind fails, once.
//
// Kinds: "allocation" (aclrtMalloc*), "creation" (aclCreate* of tensors, scalars, arrays, lists),
// "phase1" (aclnn*GetWorkspaceSize), "phase2" (aclnn*), "execution" (the op itself, on its stream),
// and "call", which counts every call of the first four. CUSTOM_PYPTO_SIM_FAIL=kind:k[,kind:k] arms
// them when the first call is counted; custom_pypto_sim_fail arms them later.
// custom_pypto_sim_fail_function lets the k-th call of one function fail, by its name.
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>

#include "custom_pypto_simulator/runtime.h"
#include "error.h"
#include "setting.h"

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
    const auto arm_entry = [this](const std::string& name, const char* value) {
      char* end = nullptr;
      const uint64_t nth = std::strtoull(value, &end, 10);
      return nth != 0 && *end == '\0' && arm(name, nth);
    };
    read_entries("CUSTOM_PYPTO_SIM_FAIL", ':', arm_entry,
                 "kind:k[,kind:k], k from 1, kind one of allocation, creation, phase1, "
                 "phase2, execution, call");
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

// The one function of which a call fails.
class FunctionFault {
 public:
  void arm(const char* name, uint64_t nth) {
    const std::lock_guard<std::mutex> lock(mutex_);
    name_ = name;
    remaining_ = nth;
  }

  bool is_armed() const { return remaining_ != 0; }

  bool count(const char* name) {
    if (remaining_ == 0) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    return name_ == name && remaining_ != 0 && --remaining_ == 0;
  }

 private:
  std::mutex mutex_;
  std::string name_;
  std::atomic<uint64_t> remaining_{0};
};

FunctionFault& function_fault() {
  static auto* instance = new FunctionFault;  // the queue's threads outlive static objects
  return *instance;
}

// Counts one call; true, with the recent error set, if it must fail.
bool count(Kind& kind, const char* name) {
  const uint64_t number = ++kind.calls;
  uint64_t expected = number;
  if (!kind.fails_at.compare_exchange_strong(expected, 0)) return false;
  fail(ACL_ERROR_INTERNAL_ERROR, name, ": fault injected (", kind.name, " ", number, ")");
  return true;
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
  if (!sim::function_fault().count(name)) return false;
  sim::fail(ACL_ERROR_INTERNAL_ERROR, name, ": fault injected");
  return true;
}

// The nth call of the function `name` from now fails, and no call of another; 0 disarms.
CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_fail_function(const char* name, uint64_t nth) {
  sim::function_fault().arm(name, nth);
}

// Whether that fault is still pending.
CUSTOM_PYPTO_SIM_EXPORT bool custom_pypto_sim_function_armed() {
  return sim::function_fault().is_armed();
}

// The nth call of `kind` from now fails; 0 disarms. Not 0 when there is no such kind.
CUSTOM_PYPTO_SIM_EXPORT int custom_pypto_sim_fail(const char* kind, uint64_t nth) {
  return sim::faults().arm(kind, nth) ? 0 : 1;
}

// The number of calls of `kind` so far; UINT64_MAX when there is no such kind.
CUSTOM_PYPTO_SIM_EXPORT uint64_t custom_pypto_sim_calls(const char* kind) {
  const auto* found = sim::faults().find(kind);
  return found == nullptr ? UINT64_MAX : found->calls.load();
}

// Whether a fault of `kind` is armed and still pending.
CUSTOM_PYPTO_SIM_EXPORT bool custom_pypto_sim_armed(const char* kind) {
  const auto* found = sim::faults().find(kind);
  return found != nullptr && found->fails_at != 0;
}
