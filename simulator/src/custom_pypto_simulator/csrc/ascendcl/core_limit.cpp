// Limits on the number of cores that kernels use. They only change what is reported, from which a
// kernel's phase 1 computes its tiling.
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "custom_pypto_simulator/runtime.h"
#include "device.h"
#include "error.h"

namespace custom_pypto_simulator {
namespace {

template <class Key>
class Limits {
 public:
  void set(Key key, aclrtDevResLimitType type, uint32_t value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_[{key, type}] = value;
    has_any_ = true;
  }

  void reset(Key key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto each = values_.begin(); each != values_.end();) {
      each = each->first.first == key ? values_.erase(each) : std::next(each);
    }
  }

  uint32_t get(Key key, aclrtDevResLimitType type, uint32_t otherwise) {
    // Read at every launch, and seldom set.
    if (!has_any_) return otherwise;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = values_.find({key, type});
    return found == values_.end() ? otherwise : found->second;
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> has_any_{false};
  std::map<std::pair<Key, aclrtDevResLimitType>, uint32_t> values_;
};

// Never destroyed: the queue's threads outlive static objects.
auto& device_limits() {
  static auto* limits = new Limits<int32_t>;
  return *limits;
}
auto& stream_limits() {
  static auto* limits = new Limits<aclrtStream>;
  return *limits;
}

// The stream whose limits the calling thread uses.
aclrtStream& stream_of_thread() {
  static thread_local aclrtStream stream = nullptr;
  return stream;
}

uint32_t limit_of_device(int32_t device, aclrtDevResLimitType type) {
  const int64_t all = type == ACL_RT_DEV_RES_CUBE_CORE ? kCubeCores : kVectorCores;
  return device_limits().get(device, type, static_cast<uint32_t>(all));
}

uint32_t limit_of_stream(aclrtStream stream, aclrtDevResLimitType type) {
  return stream_limits().get(stream, type, limit_of_device(current_device(), type));
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

aclError aclrtSetDeviceResLimit(int32_t device, aclrtDevResLimitType type, uint32_t value) {
  sim::device_limits().set(device, type, value);
  return ACL_SUCCESS;
}

aclError aclrtResetDeviceResLimit(int32_t device) {
  sim::device_limits().reset(device);
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceResLimit(int32_t device, aclrtDevResLimitType type, uint32_t* value) {
  *value = sim::limit_of_device(device, type);
  return ACL_SUCCESS;
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  sim::stream_limits().set(stream, type, value);
  return ACL_SUCCESS;
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
  sim::stream_limits().reset(stream);
  return ACL_SUCCESS;
}

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
  *value = sim::limit_of_stream(sim::stream_of_thread(), type);
  return ACL_SUCCESS;
}
