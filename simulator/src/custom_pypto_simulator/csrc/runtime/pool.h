// A pool of the objects of one kind.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "custom_pypto_simulator/objects.h"
#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {

// Keeps destroyed objects for reuse, so that using or destroying one again is detected.
template <class Object>
class Pool {
 public:
  explicit Pool(const char* kind) : count_(*custom_pypto_sim_counter(kind)) {}

  // Null, with the recent error set, when a fault is injected.
  Object* create(const char* function) {
    if (custom_pypto_sim_function_fault(function)) return nullptr;
    return create();
  }

  Object* create() {
    ++count_;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) free_.push_back(new Object);
    Object* object = free_.back();
    free_.pop_back();
    object->alive = true;
    return object;
  }

  int destroy(const char* function, const Object* constant) {
    if (constant == nullptr) return ACL_SUCCESS;
    if (custom_pypto_sim_function_fault(function)) return kInnerError;
    auto* object = const_cast<Object*>(constant);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!object->alive) {
      return fail(kParameterInvalid, function, ": the object was destroyed before");
    }
    object->alive = false;
    free_.push_back(object);
    --count_;
    return ACL_SUCCESS;
  }

 private:
  std::atomic<int64_t>& count_;
  std::mutex mutex_;
  std::vector<Object*> free_;
};

// Leaked: torch_npu's queue may destroy objects after static destructors have run.
template <class Object>
Pool<Object>& pool(const char* kind) {
  static auto* instance = new Pool<Object>(kind);
  return *instance;
}

inline Pool<aclOpExecutor>& executors() { return pool<aclOpExecutor>("executor"); }

}  // namespace custom_pypto_simulator
