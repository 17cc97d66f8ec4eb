// Options of the process and of contexts, such as determinism. They are stored and have no effect.
#include <map>
#include <mutex>
#include <utility>

#include "custom_pypto_simulator/runtime.h"

namespace {

constexpr int32_t kProcess = -1;
std::mutex mutex;

// By the device of a context. Never destroyed: the queue's threads outlive static objects.
auto& options() {
  static auto* values = new std::map<std::pair<int32_t, aclSysParamOpt>, int64_t>;
  return *values;
}

void set(int32_t owner, aclSysParamOpt option, int64_t value) {
  const std::lock_guard<std::mutex> lock(mutex);
  options()[{owner, option}] = value;
}

int64_t get(int32_t owner, aclSysParamOpt option) {
  const std::lock_guard<std::mutex> lock(mutex);
  return options()[{owner, option}];
}

}  // namespace

aclError aclrtSetSysParamOpt(aclSysParamOpt option, int64_t value) {
  set(kProcess, option, value);
  return ACL_SUCCESS;
}

aclError aclrtGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
  *value = get(kProcess, option);
  return ACL_SUCCESS;
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt option, int64_t value) {
  int32_t device = 0;
  const aclError error = aclrtGetDevice(&device);
  if (error == ACL_SUCCESS) set(device, option, value);
  return error;
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
  if (custom_pypto_sim_function_fault("aclrtCtxGetSysParamOpt")) return ACL_ERROR_INTERNAL_ERROR;
  int32_t device = 0;
  const aclError error = aclrtGetDevice(&device);
  if (error == ACL_SUCCESS) *value = get(device, option);
  return error;
}
