// Devices: which one a thread has chosen; the asynchronous errors of each, the last of a thread.
#include "device.h"

#include <sys/prctl.h>

#include <atomic>
#include <map>
#include <mutex>

#include "custom_pypto_simulator/runtime.h"
#include "memory.h"
#include "setting.h"
#include "stream.h"

namespace custom_pypto_simulator {
namespace {

thread_local int32_t chosen = -1;
std::atomic<int32_t> lost{-1};

struct DeviceErrors {
  std::mutex mutex;
  std::map<int32_t, Error> first;
};

DeviceErrors& errors() {
  static auto* instance = new DeviceErrors;  // stream threads may outlive static destructors
  return *instance;
}

}  // namespace

std::optional<int32_t> chosen_device() {
  return chosen < 0 ? std::nullopt : std::optional<int32_t>(chosen);
}

int32_t current_device() { return chosen < 0 ? 0 : chosen; }

void choose_device(int32_t device) { chosen = device; }

void raise_on_device(int32_t device, const Error& error) {
  const std::lock_guard<std::mutex> lock(errors().mutex);
  errors().first.emplace(device, error);
}

int refuse_if_lost(const char* function, int32_t device) {
  if (device != lost) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_LOST_HEARTBEAT, function, ": device ", device, " is lost");
}

int device_status(int32_t device) {
  if (const int code = refuse_if_lost("synchronisation", device)) return code;
  const std::lock_guard<std::mutex> lock(errors().mutex);
  const auto taken = errors().first.extract(device);
  return taken.empty() ? ACL_SUCCESS : fail(taken.mapped().code, taken.mapped().text);
}

}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

// From now on the device takes no work and gives no memory, and its synchronisations fail.
CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_lose_device(int32_t device) { sim::lost = device; }

aclError aclInit(const char*) {
  // A thread of torch_npu polls every microsecond. It inherits this slack: every millisecond.
  prctl(PR_SET_TIMERSLACK, 1'000'000);
  static std::atomic<bool> initialised{false};
  return initialised.exchange(true) ? ACL_ERROR_REPEAT_INITIALIZE : ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  *count = static_cast<uint32_t>(sim::settings().devices);
  return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t* device) {
  const auto chosen = sim::chosen_device();
  if (!chosen) return sim::fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtGetDevice: no device was set");
  *device = *chosen;
  return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t device) {
  if (device < 0 || device >= sim::settings().devices) {
    return sim::fail(ACL_ERROR_RT_INVALID_DEVICEID, "aclrtSetDevice: device ", device,
                     " does not exist; there are ", sim::settings().devices,
                     " (CUSTOM_PYPTO_SIM_DEVICES)");
  }
  sim::choose_device(device);
  return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t) {
  sim::choose_device(-1);
  return ACL_SUCCESS;
}

// A context is the device's primary one, as a number from 1.
aclError aclrtGetCurrentContext(aclrtContext* context) {
  const auto chosen = sim::chosen_device();
  if (!chosen) {
    return sim::fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtGetCurrentContext: no device was set");
  }
  *context = reinterpret_cast<aclrtContext>(static_cast<intptr_t>(*chosen) + 1);
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  const auto number = reinterpret_cast<intptr_t>(context);
  if (number < 1 || number > sim::settings().devices) {
    return sim::fail(ACL_ERROR_INVALID_PARAM, "aclrtSetCurrentContext: not a context: ", context);
  }
  sim::choose_device(static_cast<int32_t>(number - 1));
  return ACL_SUCCESS;
}

aclError aclrtGetPrimaryCtxState(int32_t, uint32_t* flags, int32_t* active) {
  if (flags != nullptr) *flags = 0;
  if (active != nullptr) *active = 1;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeDevice() {
  const int32_t device = sim::current_device();
  if (const int code = sim::refuse_while_capturing("aclrtSynchronizeDevice")) return code;
  for (const auto& stream : sim::streams_of(device)) stream->wait();
  return sim::device_status(device);
}

aclError aclrtDeviceCanAccessPeer(int32_t* can, int32_t, int32_t) {
  *can = 1;
  return ACL_SUCCESS;
}

aclError aclrtGetMemInfo(aclrtMemAttr, size_t* free, size_t* total) {
  *total = sim::settings().memory;
  *free = *total - sim::used_memory(sim::current_device());
  return ACL_SUCCESS;
}

CUSTOM_PYPTO_SIM_EXPORT int custom_pypto_sim_error(int code, const char* text) {
  sim::recent_error = sim::Error{code, text};
  return code;
}

const char* aclGetRecentErrMsg() {
  static thread_local std::string text;
  auto error = sim::take_recent();
  if (!error) return nullptr;
  text = "EZ9999: custom_pypto_simulator: " + error->text;
  return text.c_str();
}
