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

Pool<aclOpExecutor>& executors() {
  static auto* instance = new Pool<aclOpExecutor>("executor");  // see object.cpp
  return *instance;
}

Extent extent_of(const aclTensor& tensor, const void* data) {
  const size_t item = custom_pypto_sim_item_size(tensor.dtype);
  int64_t last = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return {nullptr, 0};
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  const char* begin = static_cast<const char*>(data) + tensor.offset * item;
  return {begin, (static_cast<size_t>(last) + 1) * item};
}

namespace {

int error(int code, const std::string& text) { return custom_pypto_sim_error(code, text.c_str()); }

// One launch of an op, shared by every replay when it was captured into a graph.
struct Launch {
  const char* name;
  void* workspace;
  uint64_t workspace_size;
  std::vector<Extent> extents;
  std::shared_ptr<PreparedOp> op;
};

// Clears a destroyed executor, which the pool keeps.
void clear(aclOpExecutor& executor) {
  executor.repeatable = false;
  executor.is_from_cache = false;
  executor.workspace = 0;
  executor.refusal.clear();
  executor.arena = nullptr;
  executor.watched = {};
  executor.extents.clear();
  executor.op = nullptr;
  executor.cached = nullptr;
}

int run_launch(void* state) {
  const auto& launch = *static_cast<Launch*>(state);
  custom_pypto_sim_delay(launch.name);
  if (custom_pypto_sim_fault(kExecution, launch.name)) return kOpFailed;
  for (const Extent& extent : launch.extents) {
    if (extent.bytes != 0 && !custom_pypto_sim_on_device(extent.begin, extent.bytes)) {
      return error(kOpFailed, std::string(launch.name) +
                                  ": a tensor's memory is not in a live allocation of "
                                  "the stream's device when the op runs");
    }
  }
  if (launch.workspace_size != 0 &&
      !custom_pypto_sim_on_device(launch.workspace, launch.workspace_size)) {
    return error(kOpFailed, std::string(launch.name) +
                                ": the workspace is not in a live allocation of the "
                                "stream's device when the op runs");
  }
  try {
    launch.op->run(launch.workspace, launch.workspace_size);
  } catch (const std::exception& exception) {
    return error(kOpFailed, std::string(launch.name) + ": " + exception.what());
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT int custom_pypto_sim_check_abi(const char* abi, const char* name) {
  if (std::strcmp(abi, CUSTOM_PYPTO_SIM_ABI) == 0) return ACL_SUCCESS;
  return sim::error(sim::kInnerError, std::string(name) +
                                          ": its library was built for another simulator: for " +
                                          abi + ", not for " + CUSTOM_PYPTO_SIM_ABI +
                                          "; build it again with `custom-pypto-sim kernels`");
}

CUSTOM_PYPTO_SIM_EXPORT int custom_pypto_sim_make_executor(const char* name, uint64_t workspace,
                                                           sim::WatchedArguments* watched,
                                                           std::shared_ptr<sim::PreparedOp>* op,
                                                           uint64_t* workspace_size,
                                                           aclOpExecutor** executor) {
  if (workspace_size == nullptr || executor == nullptr) {
    return sim::error(sim::kParameterNull,
                      std::string(name) + "GetWorkspaceSize: null workspaceSize or executor");
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
    return sim::error(sim::kNullExecutor,
                      std::string(name) + ": the executor is null, used up, or of another op");
  }
  const auto destroy = [](aclOpExecutor* used) {
    if (used->repeatable) return;
    sim::clear(*used);
    sim::executors().destroy("phase 2", used);
  };
  const std::unique_ptr<aclOpExecutor, decltype(destroy)> used(executor, destroy);
  if (executor->arena != nullptr) sim::arena_of_thread() = executor->arena;
  if (custom_pypto_sim_fault(sim::kPhase2, name)) return sim::kInnerError;
  if (!executor->refusal.empty()) {
    return sim::error(sim::kInnerError, std::string(name) + ": " + executor->refusal);
  }
  if (workspace_size < executor->workspace || (workspace == nullptr && executor->workspace != 0)) {
    return sim::error(sim::kSmallWorkspace,
                      std::string(name) + ": the workspace has " + std::to_string(workspace_size) +
                          " bytes, phase 1 requested " + std::to_string(executor->workspace));
  }
  for (const aclTensor* tensor : executor->watched.tensors) {
    if (!tensor->alive) {
      return sim::error(sim::kParameterInvalid,
                        std::string(name) + ": a tensor was destroyed between phase 1 and phase 2");
    }
  }
  for (const std::function<bool()>& is_intact : executor->watched.others) {
    if (!is_intact()) {
      return sim::error(sim::kParameterInvalid,
                        std::string(name) +
                            ": an array, a scalar or a text was destroyed between "
                            "phase 1 and phase 2");
    }
  }
  auto launch = std::make_unique<sim::Launch>(
      sim::Launch{executor->name, workspace, executor->workspace, executor->extents, executor->op});
  const int code =
      custom_pypto_sim_enqueue(stream, name, sim::run_launch, launch.release(),
                               [](void* state) { delete static_cast<sim::Launch*>(state); });
  if (code == ACL_SUCCESS && executor->cached != nullptr) executor->cached->mark_usable();
  return code;
}

CUSTOM_PYPTO_SIM_EXPORT int aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  if (executor == nullptr || !executor->alive) {
    return sim::error(sim::kNullExecutor, "aclSetAclOpExecutorRepeatable: not a live executor");
  }
  if (executor->is_from_cache) {
    return sim::error(sim::kInnerError,
                      std::string(executor->name) +
                          ": aclSetAclOpExecutorRepeatable: the executor is from the cache, and "
                          "for one launch");
  }
  executor->repeatable = true;
  // Owned by the caller from now on.
  executor->cached = nullptr;
  return ACL_SUCCESS;
}

CUSTOM_PYPTO_SIM_EXPORT int aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  if (executor != nullptr && executor->alive) {
    if (executor->arena != nullptr) sim::arena_of_thread() = executor->arena;
    sim::clear(*executor);
  }
  return sim::executors().destroy("aclDestroyAclOpExecutor", executor);
}
