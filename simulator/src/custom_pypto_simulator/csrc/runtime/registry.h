// The objects of one kind that callers hold by handles.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {

// A handle is the address of its object. Registries are never destroyed: Python may destroy
// objects, and streams may have pending work, after static destructors.
template <class Object>
class Registry {
 public:
  // Live objects are counted as `kind`. `name` is one object, and `error` the code of a handle of
  // none.
  Registry(const char* kind, const char* name, int error)
      : count_(*custom_pypto_sim_counter(kind)), name_(name), error_(error) {}

  std::shared_ptr<Object> add(std::shared_ptr<Object> object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    objects_[object.get()] = object;
    return object;
  }

  // Null, with the recent error set, when there is none.
  std::shared_ptr<Object> find(const char* function, const void* handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(handle);
    if (found != objects_.end()) return found->second;
    fail(error_, function, ": not ", name_, ": ", handle);
    return nullptr;
  }

  int remove(const char* function, const void* handle) {
    // Held until the lock is released: objects are destroyed outside of it.
    const auto object = find(function, handle);
    if (!object) return error_;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (objects_.erase(handle) != 0) --count_;
    return ACL_SUCCESS;
  }

  std::vector<std::shared_ptr<Object>> all() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::shared_ptr<Object>> result;
    for (const auto& [handle, object] : objects_) result.push_back(object);
    return result;
  }

 private:
  std::atomic<int64_t>& count_;
  const char* const name_;
  const int error_;
  std::mutex mutex_;
  std::map<const void*, std::shared_ptr<Object>> objects_;
};

}  // namespace custom_pypto_simulator
