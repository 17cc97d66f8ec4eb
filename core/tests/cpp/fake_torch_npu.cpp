// Stands in for libtorch_npu.so, and for CANN behind it, as far as a plugin calls them. Tests can
// read the number of live objects and the last launch.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#define EXPORT __attribute__((visibility("default")))

namespace at {
class Tensor;
}

namespace {

int live = 0;
int launched_on = 0;
void* limited_to = nullptr;
std::function<int()> waiting;

void* create() {
  ++live;
  return std::make_unique<int>(live).release();
}

int destroy(const void* object) {
  const std::unique_ptr<const int> gone(static_cast<const int*>(object));
  --live;
  return 0;
}

// CANN's cache of executors, for kernels that FAKE_CACHE names.
std::set<std::string> cached;
const char* key = nullptr;  // the caller's memory, which phase 1 reads
std::size_t key_size = 0;
int cache_uses = 0;

void cache_begin() { ++cache_uses; }
void cache_end() { --cache_uses; }
bool cache_takes(const char* symbol) {
  const char* wanted = std::getenv("FAKE_CACHE");
  return wanted != nullptr && std::strcmp(wanted, symbol) == 0;
}
void cache_address(void*) {}
void cache_key(unsigned char* bytes, std::size_t size) {
  key = reinterpret_cast<const char*>(bytes);
  key_size = size;
}
void* cache_find(unsigned char* bytes, std::size_t size, uint64_t* workspace) {
  *workspace = 0;
  return cached.count({reinterpret_cast<char*>(bytes), size}) != 0 ? create() : nullptr;
}

void* create_array(const void*, uint64_t) { return create(); }
void* create_scalar(const void*, int) { return create(); }

}  // namespace

EXPORT void* GetAclStream() { return &launched_on; }

EXPORT uint32_t OpApiGetTaskQueueEnable() {
  const char* setting = std::getenv("FAKE_QUEUE");
  return setting == nullptr ? 0 : static_cast<uint32_t>(std::atoi(setting));
}

namespace c10_npu {
EXPORT uint32_t GetDeterministicLevel() { return 0; }
}  // namespace c10_npu
namespace at_npu::native {
EXPORT void ApplyDeterministicLevel(int64_t, bool, bool) {}
EXPORT int64_t get_npu_format(const at::Tensor&) { return 2; }
EXPORT std::vector<int64_t> get_npu_storage_sizes(const at::Tensor&) { return {}; }
}  // namespace at_npu::native

EXPORT void InitExecSubTheadCtx(void* stream) { limited_to = stream; }

class aclOpExecutor;
EXPORT int ExecuteApiFuncV2(const void* phase_2, void* stream, uint64_t workspace_size,
                            aclOpExecutor* executor) {
  using Function = int (*)(void*, uint64_t, aclOpExecutor*, void*);
  const std::unique_ptr<char[]> workspace(new char[workspace_size]);
  return reinterpret_cast<Function>(const_cast<void*>(phase_2))(workspace.get(), workspace_size,
                                                                executor, stream);
}

EXPORT void RunAclCall(const std::string&, const std::function<int()>& function) {
  limited_to = nullptr;
  if (OpApiGetTaskQueueEnable() != 0) {
    waiting = function;
  } else {
    function();
  }
}

EXPORT void* GetOpApiFuncAddr(const char* name) {
  const std::string wanted = name;
  if (wanted == "aclCreateScalar") return reinterpret_cast<void*>(&create_scalar);
  if (wanted.rfind("aclCreate", 0) == 0) return reinterpret_cast<void*>(&create_array);
  if (wanted.rfind("aclDestroy", 0) == 0) return reinterpret_cast<void*>(&destroy);
  if (std::getenv("FAKE_CACHE") == nullptr) return nullptr;
  if (wanted == "InitPTACacheThreadLocal") return reinterpret_cast<void*>(&cache_begin);
  if (wanted == "UnInitPTACacheThreadLocal") return reinterpret_cast<void*>(&cache_end);
  if (wanted == "CanUsePTACache") return reinterpret_cast<void*>(&cache_takes);
  if (wanted == "AddTensorAddrToCachedList") return reinterpret_cast<void*>(&cache_address);
  if (wanted == "SetPTACacheHashKey") return reinterpret_cast<void*>(&cache_key);
  if (wanted == "PTAFindExecCache") return reinterpret_cast<void*>(&cache_find);
  return nullptr;
}

#ifndef OLD
EXPORT void* ConvertType(const at::Tensor&) { return create(); }
#endif

extern "C" EXPORT int fake_live() { return live; }
// Whether the thread that ran the last launch took over the limits of its stream.
extern "C" EXPORT int fake_is_limited() { return limited_to == &launched_on ? 1 : 0; }
extern "C" EXPORT int fake_cache_uses() { return cache_uses; }
// Phase 1 makes one, which the cache keeps where a key is set.
extern "C" EXPORT void* fake_executor() {
  if (key != nullptr) cached.emplace(key, key_size);
  return create();
}
extern "C" EXPORT void fake_use(void* executor) { destroy(executor); }

// Runs the queued task, as torch_npu does later.
extern "C" EXPORT int fake_run_queue() { return std::exchange(waiting, nullptr)(); }
