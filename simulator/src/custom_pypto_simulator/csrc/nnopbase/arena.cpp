// CANN's arenas: see arena.h.
#include "arena.h"

#include "custom_pypto_simulator/objects.h"

namespace custom_pypto_simulator {

std::shared_ptr<Arena>& arena_of_thread() {
  static thread_local std::shared_ptr<Arena> arena;
  return arena;
}

}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT int InitHugeMemThreadLocal(void*, bool) {
  if (custom_pypto_sim_function_fault("InitHugeMemThreadLocal")) return sim::kInnerError;
  auto& arena = sim::arena_of_thread();
  if (arena == nullptr || !arena->is_held()) arena = std::make_shared<sim::Arena>();
  return ACL_SUCCESS;
}

CUSTOM_PYPTO_SIM_EXPORT void UnInitHugeMemThreadLocal(void*, bool) {
  sim::arena_of_thread() = nullptr;
}

CUSTOM_PYPTO_SIM_EXPORT void ReleaseHugeMem(void*, bool) {
  if (auto& arena = sim::arena_of_thread()) arena->release();
}
