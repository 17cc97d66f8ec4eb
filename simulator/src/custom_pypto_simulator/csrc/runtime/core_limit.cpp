// Limits on the number of cores that kernels use, of a stream or a device. They only change what is
// reported, from which a kernel's phase 1 computes its tiling.
#include <map>
#include <mutex>
#include <utility>

#include "custom_pypto_simulator/runtime.h"
#include "device.h"

namespace custom_pypto_simulator {
namespace {

std::mutex limits_mutex;

// By stream, or by the number of a device from 1, and kind of cores. Never destroyed: the queue's
// threads outlive static objects.
auto& limits() {
  static auto* values = new std::map<std::pair<aclrtStream, aclrtDevResLimitType>, uint32_t>;
  return *values;
}

aclrtStream owner_of(int32_t device) {
  return reinterpret_cast<aclrtStream>(static_cast<intptr_t>(device) + 1);
}

thread_local aclrtStream stream_of_thread = nullptr;  // whose limits the thread uses

int set(aclrtStream owner, aclrtDevResLimitType type, uint32_t value) {
  const std::lock_guard<std::mutex> lock(limits_mutex);
  limits()[{owner, type}] = value;
  return ACL_SUCCESS;
}

int reset(aclrtStream owner) {
  const std::lock_guard<std::mutex> lock(limits_mutex);
  for (const auto type : {ACL_RT_DEV_RES_CUBE_CORE, ACL_RT_DEV_RES_VECTOR_CORE}) {
    limits().erase({owner, type});
  }
  return ACL_SUCCESS;
}

int get(aclrtStream stream, int32_t device, aclrtDevResLimitType type, uint32_t* value) {
  const std::lock_guard<std::mutex> lock(limits_mutex);
  const auto of_stream = limits().find({stream, type});
  const auto of_device = limits().find({owner_of(device), type});
  *value = of_stream != limits().end()        ? of_stream->second
           : of_device != limits().end()      ? of_device->second
           : type == ACL_RT_DEV_RES_CUBE_CORE ? kCubeCores
                                              : kVectorCores;
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

aclError aclrtSetDeviceResLimit(int32_t device, aclrtDevResLimitType type, uint32_t value) {
  return sim::set(sim::owner_of(device), type, value);
}

aclError aclrtResetDeviceResLimit(int32_t device) { return sim::reset(sim::owner_of(device)); }

aclError aclrtGetDeviceResLimit(int32_t device, aclrtDevResLimitType type, uint32_t* value) {
  return sim::get(sim::owner_of(device), device, type, value);
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  return sim::set(stream, type, value);
}

aclError aclrtResetStreamResLimit(aclrtStream stream) { return sim::reset(stream); }

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value) {
  return sim::get(stream, sim::current_device(), type, value);
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  sim::stream_of_thread = stream;
  return ACL_SUCCESS;
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream) {
  sim::stream_of_thread = nullptr;
  return ACL_SUCCESS;
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  if (custom_pypto_sim_function_fault("aclrtGetResInCurrentThread")) {
    return ACL_ERROR_INTERNAL_ERROR;
  }
  return aclrtGetStreamResLimit(sim::stream_of_thread, type, value);
}
