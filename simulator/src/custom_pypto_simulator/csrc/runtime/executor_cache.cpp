// CANN's cache of executors: see executor_cache.h.
#include "executor_cache.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "custom_pypto_simulator/runtime.h"
#include "pool.h"
#include "setting.h"

namespace custom_pypto_simulator {
namespace {

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

}  // namespace

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

}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

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
