// Executors: phase 1 creates them, phase 2 puts them on a stream; and CANN's cache of them, by keys
// of the caller (PTA: PyTorch adapter).
//
// Each thread has its own cache. Between InitPTACacheThreadLocal and UnInitPTACacheThreadLocal, the
// executors of phase 1 are added under the key of SetPTACacheHashKey, and are usable once phase 2
// has run. PTAFindExecCache returns one to a launch with an equal key, for the storages passed to
// AddTensorAddrToCachedList, in the order of the op's signature.
#include <atomic>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pool.h"
#include "setting.h"

namespace custom_pypto_simulator {

// CANN's arena ("huge memory") for allocations of phase 1. A thread acquires one with
// InitHugeMemThreadLocal; UnInitHugeMemThreadLocal only detaches it. ReleaseHugeMem releases it, in
// the thread that ran phase 2 with an executor in it, or destroyed that. Counted until then.
class Arena {
 public:
  Arena() { ++count(); }

  bool is_held() const { return is_held_; }

  void release() {
    if (is_held_.exchange(false)) --count();
  }

 private:
  static std::atomic<int64_t>& count() {
    static std::atomic<int64_t>& live = *custom_pypto_sim_counter("huge memory");
    return live;
  }

  std::atomic<bool> is_held_{true};
};

// A cache entry. Several threads may use it at a time.
struct CachedExecutor {
  const char* op_name;  // of CanUsePTACache; compared by address, as CANN does
  const char* name;
  uint64_t workspace;
  std::vector<aclTensor> tensors;
  std::shared_ptr<PreparedOp> op;
  std::atomic<bool> is_usable{false};  // phase 2 of its executor has succeeded
};

namespace {

// The arena of the calling thread; null when it has none.
std::shared_ptr<Arena>& arena_of_thread() {
  static thread_local std::shared_ptr<Arena> arena;
  return arena;
}

// One launch of an op; a graph that captured it runs it at every replay.
struct Launch {
  const char* name;
  void* workspace;
  uint64_t workspace_size;
  std::vector<Extent> extents;
  std::shared_ptr<PreparedOp> op;

  int operator()() const {
    custom_pypto_sim_delay(name);
    if (custom_pypto_sim_function_fault((std::string("run:") + name).c_str())) return kOpFailed;
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

// The cache of one thread.
struct Cache {
  std::map<std::string, std::shared_ptr<CachedExecutor>, std::less<>> executors;
  bool is_in_use = false;
  const char* op = "";
  // The caller's memory, as in CANN, which copies it in phase 1.
  const uint8_t* key = nullptr;
  size_t key_size = 0;
  std::vector<void*> storages;
};

Cache& cache() {
  static thread_local Cache instance;
  return instance;
}

std::string_view text_of(const uint8_t* key, size_t size) {
  return {reinterpret_cast<const char*>(key), size};
}

// A tensor's bytes when its storage is at `data`.
Extent extent_of(const aclTensor& tensor, const void* data) {
  const size_t item = aclDataTypeSize(tensor.dtype);
  int64_t last = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return {nullptr, 0};
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  const char* begin = static_cast<const char*>(data) + tensor.offset * item;
  return {begin, (static_cast<size_t>(last) + 1) * item};
}

// Sets `executor` up to launch `cached` for these storages.
void fill(aclOpExecutor& executor, const CachedExecutor& cached,
          const std::vector<void*>& storages) {
  executor.name = cached.name;
  executor.workspace = cached.workspace;
  if (storages.size() != cached.tensors.size()) {
    executor.refusal = "the launch in the cache has " + std::to_string(cached.tensors.size()) +
                       " tensors, but AddTensorAddrToCachedList was called for " +
                       std::to_string(storages.size());
    return;
  }
  for (size_t i = 0; i < storages.size(); ++i) {
    executor.extents.push_back(extent_of(cached.tensors[i], storages[i]));
  }
  executor.op = cached.op->with_storages(storages.data());
}

// Adds `executor`, which phase 1 created in this thread, to the cache when a key is set.
void add_to_cache(aclOpExecutor& executor) {
  Cache& here = cache();
  if (!here.is_in_use || here.key == nullptr || here.key_size == 0) return;
  const std::vector<void*> storages(executor.watched.tensors.size());
  if (executor.op->with_storages(storages.data()) == nullptr) return;
  auto& entry = here.executors[std::string(text_of(here.key, here.key_size))];
  entry.reset(new CachedExecutor{here.op, executor.name, executor.workspace, {}, executor.op});
  for (const aclTensor* tensor : executor.watched.tensors) entry->tensors.push_back(*tensor);
  executor.cached = entry;
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
  if (custom_pypto_sim_function_fault(name)) return sim::kInnerError;
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

CUSTOM_PYPTO_SIM_EXPORT bool CanUsePTACache(const char* op) {
  sim::cache().op = op;
  return sim::settings().executor_cache && !custom_pypto_sim_function_fault("CanUsePTACache");
}

CUSTOM_PYPTO_SIM_EXPORT void InitPTACacheThreadLocal() {
  sim::Cache& cache = sim::cache();
  cache.is_in_use = true;
  cache.key = nullptr;
  cache.key_size = 0;
  cache.storages.clear();
}

CUSTOM_PYPTO_SIM_EXPORT void UnInitPTACacheThreadLocal() { sim::cache().is_in_use = false; }

CUSTOM_PYPTO_SIM_EXPORT void AddTensorAddrToCachedList(void* storage) {
  sim::cache().storages.push_back(storage);
}

CUSTOM_PYPTO_SIM_EXPORT void SetPTACacheHashKey(uint8_t* key, size_t size) {
  sim::cache().key = key;
  sim::cache().key_size = size;
}

CUSTOM_PYPTO_SIM_EXPORT aclOpExecutor* PTAFindExecCache(uint8_t* key, size_t size,
                                                        uint64_t* workspace_size) {
  if (custom_pypto_sim_function_fault("PTAFindExecCache")) return nullptr;
  sim::Cache& cache = sim::cache();
  const auto found = cache.executors.find(sim::text_of(key, size));
  if (found == cache.executors.end()) return nullptr;
  const sim::CachedExecutor& cached = *found->second;
  // Two ops with one key are not confused.
  if (!cached.is_usable || cached.op_name != cache.op) return nullptr;
  aclOpExecutor* executor = sim::executors().create();
  sim::fill(*executor, cached, cache.storages);
  *workspace_size = executor->workspace;
  return executor;
}
