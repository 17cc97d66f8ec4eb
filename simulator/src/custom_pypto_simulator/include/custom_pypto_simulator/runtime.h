// What libascendcl.so of the simulator offers to the other simulated libraries.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "acl/acl.h"

#define CUSTOM_PYPTO_SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace custom_pypto_simulator {

// What can fail on demand, in the order of their names in fault.cpp.
enum FaultKind { kAllocation, kCreation, kPhase1, kPhase2, kExecution };

}  // namespace custom_pypto_simulator

extern "C" {

// Remembers `text` as this thread's recent error (aclGetRecentErrMsg) and returns `code`.
int custom_pypto_sim_error(int code, const char* text);

// Whether the call that is about to happen must fail; `name` is what the error text shall call it.
// The recent error is set when it must.
bool custom_pypto_sim_fault(custom_pypto_simulator::FaultKind kind, const char* name);

// Runs `run(state)` after everything that `stream` holds already. A non-zero result is the stream's
// asynchronous error; `run` sets the recent error of its own thread. While the stream is captured
// the work goes into the graph and runs at each replay; `destroy(state)` comes after the last run.
int custom_pypto_sim_enqueue(aclrtStream stream, const char* name, int (*run)(void*), void* state,
                             void (*destroy)(void*));

// Whether [data, data + bytes) lies in one live allocation of the calling thread's device.
bool custom_pypto_sim_on_device(const void* data, size_t bytes);

// Whether there is a cache of executors: CUSTOM_PYPTO_SIM_EXECUTOR_CACHE.
bool custom_pypto_sim_has_executor_cache();

// Sleeps as long as CUSTOM_PYPTO_SIM_DELAY or custom_pypto_sim_set_delay says for `name`.
void custom_pypto_sim_delay(const char* name);

// The number of live objects of one kind, for the caller to keep right. It is never freed.
std::atomic<int64_t>* custom_pypto_sim_counter(const char* kind);
}
