// Options of the process and of contexts, such as determinism, and limits on the number of cores of
// a stream. They only change what is reported, from which phase 1 computes its tiling.
#include <map>
#include <mutex>
#include <utility>

#include "custom_pypto_simulator/runtime.h"
#include "device.h"

namespace custom_pypto_simulator {
namespace {

// By owner and kind: the process has none, a context is a number from 1, a stream a handle. Never
// destroyed: the queue's threads outlive static objects.
template <class Kind>
struct Values {
  std::mutex mutex;
  std::map<std::pair<intptr_t, Kind>, int64_t> values;

  int set(intptr_t owner, Kind kind, int64_t value) {
    const std::lock_guard<std::mutex> lock(mutex);
    values[{owner, kind}] = value;
    return ACL_SUCCESS;
  }

  template <class Value>
  int get(intptr_t owner, Kind kind, int64_t otherwise, Value* value) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = values.find({owner, kind});
    *value = static_cast<Value>(found == values.end() ? otherwise : found->second);
    return ACL_SUCCESS;
  }
};

auto& options = *new Values<aclSysParamOpt>;
auto& limits = *new Values<aclrtDevResLimitType>;

thread_local aclrtStream stream_of_thread = nullptr;  // whose limits the thread uses

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

aclError aclrtSetSysParamOpt(aclSysParamOpt option, int64_t value) {
  return sim::options.set(0, option, value);
}

aclError aclrtGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
  return sim::options.get(0, option, 0, value);
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt option, int64_t value) {
  return sim::options.set(sim::current_device() + 1, option, value);
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
  if (custom_pypto_sim_function_fault("aclrtCtxGetSysParamOpt")) return ACL_ERROR_INTERNAL_ERROR;
  return sim::options.get(sim::current_device() + 1, option, 0, value);
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  return sim::limits.set(reinterpret_cast<intptr_t>(stream), type, value);
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value) {
  const int64_t all = type == ACL_RT_DEV_RES_CUBE_CORE ? sim::kCubeCores : sim::kVectorCores;
  return sim::limits.get(reinterpret_cast<intptr_t>(stream), type, all, value);
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  sim::stream_of_thread = stream;
  return ACL_SUCCESS;
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream) {
  return aclrtUseStreamResInCurrentThread(nullptr);
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  if (custom_pypto_sim_function_fault("aclrtGetResInCurrentThread")) {
    return ACL_ERROR_INTERNAL_ERROR;
  }
  return aclrtGetStreamResLimit(sim::stream_of_thread, type, value);
}
