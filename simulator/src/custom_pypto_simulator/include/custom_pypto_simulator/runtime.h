// Functions of the simulated libascendcl.so for the other simulated libraries.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <utility>

#include "acl/acl.h"

#define CUSTOM_PYPTO_SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace custom_pypto_simulator {

// The status of a failed kernel, reported at the next synchronisation.
constexpr int kOpFailed = 507015;

}  // namespace custom_pypto_simulator

extern "C" {

// Sets this thread's recent error to `text` (aclGetRecentErrMsg) and returns `code`.
int custom_pypto_sim_error(int code, const char* text);

// 0 when `abi`, of the library of op `name`, is that of this process, the headers that it was
// compiled against (libraries.py); else a status code, with the recent error set. Simulator and
// kernels are built separately and pass each other C++ objects. This function and the position of
// `abi` in Op never change.
int custom_pypto_sim_check_abi(const char* abi, const char* name);

// Whether this call of the function `name` must fail; if so, the recent error is set and names it.
// The run of an op on its stream is "run:aclnnAdd".
bool custom_pypto_sim_function_fault(const char* name);

// The same for phase 1 of the op `name`, which it counts.
bool custom_pypto_sim_phase_1_fault(const char* name);

// Runs `run(state)` after everything that `stream` holds already. A non-zero result is the stream's
// asynchronous error; `run` sets the recent error of its own thread. While the stream is captured
// the work goes into the graph and runs at each replay; `destroy(state)` comes after the last run.
int custom_pypto_sim_enqueue(aclrtStream stream, const char* name, int (*run)(void*), void* state,
                             void (*destroy)(void*));

// Whether [data, data + bytes) lies in one live allocation of the calling thread's device.
bool custom_pypto_sim_on_device(const void* data, size_t bytes);

// Sleeps for the delay of `name`: custom_pypto_sim_set_delay.
void custom_pypto_sim_delay(const char* name);

// The counter of live objects of one kind, which the caller updates. It is never freed.
std::atomic<int64_t>* custom_pypto_sim_counter(const char* kind);
}

namespace custom_pypto_simulator {

// custom_pypto_sim_error with the text of `parts`.
template <class... Parts>
int fail(int code, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return custom_pypto_sim_error(code, text.str().c_str());
}

// custom_pypto_sim_enqueue for a callable, which the stream owns.
template <class Task>
int enqueue(aclrtStream stream, const char* name, Task task) {
  const auto run = [](void* state) -> int { return (*static_cast<Task*>(state))(); };
  const auto destroy = [](void* state) { delete static_cast<Task*>(state); };
  return custom_pypto_sim_enqueue(stream, name, run, new Task(std::move(task)), destroy);
}

}  // namespace custom_pypto_simulator
