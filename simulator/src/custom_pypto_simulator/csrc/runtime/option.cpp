// Options of the process and of contexts, such as determinism. They are stored and have no effect.
#include <map>
#include <mutex>
#include <utility>

#include "custom_pypto_simulator/runtime.h"
#include "device.h"

namespace custom_pypto_simulator {
namespace {

constexpr int32_t kProcess = -1;
std::mutex options_mutex;

// By the device of a context. Never destroyed: the queue's threads outlive static objects.
int64_t& option_of(int32_t owner, aclSysParamOpt option) {
  static auto* values = new std::map<std::pair<int32_t, aclSysParamOpt>, int64_t>;
  return (*values)[{owner, option}];
}

int set_option(int32_t owner, aclSysParamOpt option, int64_t value) {
  const std::lock_guard<std::mutex> lock(options_mutex);
  option_of(owner, option) = value;
  return ACL_SUCCESS;
}

int get_option(int32_t owner, aclSysParamOpt option, int64_t* value) {
  const std::lock_guard<std::mutex> lock(options_mutex);
  *value = option_of(owner, option);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

aclError aclrtSetSysParamOpt(aclSysParamOpt option, int64_t value) {
  return sim::set_option(sim::kProcess, option, value);
}

aclError aclrtGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
  return sim::get_option(sim::kProcess, option, value);
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt option, int64_t value) {
  return sim::set_option(sim::current_device(), option, value);
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
  if (custom_pypto_sim_function_fault("aclrtCtxGetSysParamOpt")) return ACL_ERROR_INTERNAL_ERROR;
  return sim::get_option(sim::current_device(), option, value);
}
