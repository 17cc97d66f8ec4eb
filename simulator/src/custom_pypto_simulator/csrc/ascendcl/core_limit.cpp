// Limits on the number of cores that kernels use. They only change what is reported, from which a
// kernel's phase 1 computes its tiling.
#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <variant>

#include "custom_pypto_simulator/runtime.h"
#include "device.h"
#include "error.h"

namespace custom_pypto_simulator {
namespace {

// A device, or a stream.
using Owner = std::variant<int32_t, aclrtStream>;

class Limits {
 public:
  int set(Owner owner, aclrtDevResLimitType type, uint32_t value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_[{owner, type}] = value;
    has_any_ = true;
    return ACL_SUCCESS;
  }

  int reset(Owner owner) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto each = values_.begin(); each != values_.end();) {
      each = each->first.first == owner ? values_.erase(each) : std::next(each);
    }
    return ACL_SUCCESS;
  }

  uint32_t get(Owner owner, aclrtDevResLimitType type, uint32_t otherwise) {
    // Read at every launch, and seldom set.
    if (!has_any_) return otherwise;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = values_.find({owner, type});
    return found == values_.end() ? otherwise : found->second;
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> has_any_{false};
  std::map<std::pair<Owner, aclrtDevResLimitType>, uint32_t> values_;
};

Limits& limits() {
  static auto* instance = new Limits;  // the queue's threads outlive static objects
  return *instance;
}

// The stream whose limits the calling thread uses.
aclrtStream& stream_of_thread() {
  static thread_local aclrtStream stream = nullptr;
  return stream;
}

uint32_t limit_of_device(int32_t device, aclrtDevResLimitType type) {
  const int64_t all = type == ACL_RT_DEV_RES_CUBE_CORE ? kCubeCores : kVectorCores;
  return limits().get(device, type, static_cast<uint32_t>(all));
}

uint32_t limit_of_stream(aclrtStream stream, aclrtDevResLimitType type) {
  return limits().get(stream, type, limit_of_device(current_device(), type));
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

aclError aclrtSetDeviceResLimit(int32_t device, aclrtDevResLimitType type, uint32_t value) {
  return sim::limits().set(device, type, value);
}

aclError aclrtResetDeviceResLimit(int32_t device) { return sim::limits().reset(device); }

aclError aclrtGetDeviceResLimit(int32_t device, aclrtDevResLimitType type, uint32_t* value) {
  *value = sim::limit_of_device(device, type);
  return ACL_SUCCESS;
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  return sim::limits().set(stream, type, value);
}

aclError aclrtResetStreamResLimit(aclrtStream stream) { return sim::limits().reset(stream); }

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value) {
  *value = sim::limit_of_stream(stream, type);
  return ACL_SUCCESS;
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  sim::stream_of_thread() = stream;
  return ACL_SUCCESS;
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream) {
  sim::stream_of_thread() = nullptr;
  return ACL_SUCCESS;
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  if (custom_pypto_sim_function_fault("aclrtGetResInCurrentThread")) {
    return ACL_ERROR_INTERNAL_ERROR;
  }
  *value = sim::limit_of_stream(sim::stream_of_thread(), type);
  return ACL_SUCCESS;
}
