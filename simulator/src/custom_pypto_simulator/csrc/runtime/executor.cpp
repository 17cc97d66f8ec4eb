// Executors: phase 1 creates them, phase 2 puts them on a stream.
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "arena.h"
#include "custom_pypto_simulator/abi.h"
#include "executor_cache.h"
#include "pool.h"

namespace custom_pypto_simulator {

namespace {

// One launch of an op; a graph that captured it runs it at every replay.
struct Launch {
  const char* name;
  void* workspace;
  uint64_t workspace_size;
  std::vector<Extent> extents;
  std::shared_ptr<PreparedOp> op;

  int operator()() const {
    custom_pypto_sim_delay(name);
    if (custom_pypto_sim_fault(kExecution, name)) return kOpFailed;
    for (const Extent& extent : extents) {
      if (extent.bytes == 0 || custom_pypto_sim_on_device(extent.begin, extent.bytes)) continue;
      return fail(kOpFailed, name,
                  ": a tensor's memory is not in a live allocation of the stream's device when the "
                  "op runs");
    }
    if (workspace_size != 0 && !custom_pypto_sim_on_device(workspace, workspace_size)) {
      return fail(kOpFailed, name,
                  ": the workspace is not in a live allocation of the stream's device when the op "
                  "runs");
    }
    try {
      op->run(workspace, workspace_size);
    } catch (const std::exception& exception) {
      return fail(kOpFailed, name, ": ", exception.what());
    }
    return ACL_SUCCESS;
  }
};

// Gives an executor back to the pool, which keeps it, without what it holds.
int destroy(const char* function, aclOpExecutor* executor) {
  if (executor != nullptr && executor->alive) {
    *executor = {};
    executor->alive = true;
  }
  return executors().destroy(function, executor);
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT int custom_pypto_sim_check_abi(const char* abi, const char* name) {
  if (std::strcmp(abi, CUSTOM_PYPTO_SIM_ABI) == 0) return ACL_SUCCESS;
  return sim::fail(
      sim::kInnerError, name, ": its library was built for another simulator: for ", abi,
      ", not for " CUSTOM_PYPTO_SIM_ABI "; build it again with `custom-pypto-sim kernels`");
}

CUSTOM_PYPTO_SIM_EXPORT int custom_pypto_sim_make_executor(const char* name, uint64_t workspace,
                                                           sim::WatchedArguments* watched,
                                                           std::shared_ptr<sim::PreparedOp>* op,
                                                           uint64_t* workspace_size,
                                                           aclOpExecutor** executor) {
  if (workspace_size == nullptr || executor == nullptr) {
    return sim::fail(sim::kParameterNull, name, "GetWorkspaceSize: null workspaceSize or executor");
  }
  aclOpExecutor* prepared = sim::executors().create();
  prepared->name = name;
  prepared->workspace = workspace;
  prepared->arena = sim::arena_of_thread();
  prepared->watched = std::move(*watched);
  for (const aclTensor* tensor : prepared->watched.tensors) {
    prepared->extents.push_back(sim::extent_of(*tensor, tensor->data));
  }
  prepared->op.swap(*op);
  sim::add_to_cache(*prepared);
  *workspace_size = workspace;
  *executor = prepared;
  return ACL_SUCCESS;
}

CUSTOM_PYPTO_SIM_EXPORT int custom_pypto_sim_launch(const char* name, void* workspace,
                                                    uint64_t workspace_size,
                                                    aclOpExecutor* executor, aclrtStream stream) {
  custom_pypto_sim_delay((std::string("launch:") + name).c_str());
  if (executor == nullptr || !executor->alive || std::strcmp(executor->name, name) != 0) {
    return sim::fail(sim::kNullExecutor, name, ": the executor is null, used up, or of another op");
  }
  const auto destroy = [](aclOpExecutor* used) { sim::destroy("phase 2", used); };
  const std::unique_ptr<aclOpExecutor, decltype(destroy)> used(executor, destroy);
  if (executor->arena != nullptr) sim::arena_of_thread() = executor->arena;
  if (custom_pypto_sim_fault(sim::kPhase2, name)) return sim::kInnerError;
  if (!executor->refusal.empty()) {
    return sim::fail(sim::kInnerError, name, ": ", executor->refusal);
  }
  if (workspace_size < executor->workspace || (workspace == nullptr && executor->workspace != 0)) {
    return sim::fail(sim::kSmallWorkspace, name, ": the workspace has ", workspace_size,
                     " bytes, phase 1 requested ", executor->workspace);
  }
  for (const aclTensor* tensor : executor->watched.tensors) {
    if (tensor->alive) continue;
    return sim::fail(sim::kParameterInvalid, name,
                     ": a tensor was destroyed between phase 1 and phase 2");
  }
  for (const std::function<bool()>& is_intact : executor->watched.others) {
    if (is_intact()) continue;
    return sim::fail(sim::kParameterInvalid, name,
                     ": an array, a scalar or a text was destroyed between phase 1 and phase 2");
  }
  const int code = sim::enqueue(
      stream, name,
      sim::Launch{executor->name, workspace, executor->workspace, executor->extents, executor->op});
  if (code == ACL_SUCCESS && executor->cached != nullptr) executor->cached->is_usable = true;
  return code;
}

CUSTOM_PYPTO_SIM_EXPORT int aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  const bool is_live = executor != nullptr && executor->alive;
  if (is_live && executor->arena != nullptr) sim::arena_of_thread() = executor->arena;
  return sim::destroy("aclDestroyAclOpExecutor", executor);
}

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
