// The description of the simulated machine: by default an Atlas A2 with CANN 8.5.
#include <cstddef>
#include <string>

#include "custom_pypto_simulator/runtime.h"
#include "device.h"
#include "setting.h"

namespace sim = custom_pypto_simulator;

namespace {

constexpr int64_t kL2Bytes = 192 << 20;

aclError give(int64_t given, int64_t* value) {
  *value = given;
  return ACL_SUCCESS;
}

template <size_t size>
void put(const std::string& value, char (&text)[size]) {
  text[value.copy(text, size - 1)] = '\0';
}

}  // namespace

const char* aclrtGetSocName() { return sim::settings().soc.c_str(); }

aclError aclGetDeviceCapability(uint32_t, aclDeviceInfo info, int64_t* value) {
  switch (info) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
      return give(sim::kCubeCores, value);
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      return give(sim::kVectorCores, value);
    case ACL_DEVICE_INFO_L2_SIZE:
      return give(kL2Bytes, value);
    default:
      return sim::fail(ACL_ERROR_INVALID_PARAM, "aclGetDeviceCapability: no information ", info);
  }
}

aclError aclrtGetDeviceInfo(uint32_t, aclrtDevAttr attribute, int64_t* value) {
  switch (attribute) {
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
      return give(sim::kCubeCores, value);
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
      return give(sim::kVectorCores, value);
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      return give(static_cast<int64_t>(sim::settings().memory), value);
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
      return give(kL2Bytes, value);
    default:
      return sim::fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtGetDeviceInfo: attribute ",
                       attribute, " is not emulated");
  }
}

// The version as one text, which torch_npu and core read; not its parts.
aclError aclsysGetCANNVersion(aclCANNPackageName, aclCANNPackageVersion* version) {
  *version = {};
  put(sim::cann(), version->version);
  return ACL_SUCCESS;
}

aclError aclsysGetVersionStr(char*, char* version) {
  char (&text)[ACL_PKG_VERSION_MAX_SIZE] =
      *reinterpret_cast<char (*)[ACL_PKG_VERSION_MAX_SIZE]>(version);
  put(sim::cann(), text);
  return ACL_SUCCESS;
}
