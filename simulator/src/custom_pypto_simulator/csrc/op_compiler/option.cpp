// Options of the process and of contexts, such as whether kernels must be deterministic. They are
// kept, and change nothing that the CPU computes.
#include <map>
#include <mutex>

#include "custom_pypto_simulator/runtime.h"

namespace {

std::mutex mutex;

// Never destroyed: the queue's threads outlive static objects.
auto& options() {
  static auto* values = new std::map<aclSysParamOpt, int64_t>;
  return *values;
}

}  // namespace

aclError aclrtSetSysParamOpt(aclSysParamOpt option, int64_t value) {
  const std::lock_guard<std::mutex> lock(mutex);
  options()[option] = value;
  return ACL_SUCCESS;
}

aclError aclrtGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
  const std::lock_guard<std::mutex> lock(mutex);
  *value = options()[option];
  return ACL_SUCCESS;
}

// All contexts share the process's options here.
aclError aclrtCtxSetSysParamOpt(aclSysParamOpt option, int64_t value) {
  return aclrtSetSysParamOpt(option, value);
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
  return aclrtGetSysParamOpt(option, value);
}
