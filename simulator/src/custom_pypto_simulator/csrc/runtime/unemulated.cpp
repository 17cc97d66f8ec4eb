// Functions that torch_npu links against, or calls, and that are not emulated: each fails with its
// name, or succeeds and does nothing. Other functions that it looks up by name are absent.
#include <cstdint>
#include <cstdio>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {
namespace {

int refuse(const char* name) {
  std::fprintf(stderr, "custom_pypto_simulator: %s is not emulated\n", name);
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, name, " is not emulated");
}

}  // namespace
}  // namespace custom_pypto_simulator

// Of another name here: the header of ACL declares some with their types.
#define FUNCTION(name, result)                                        \
  CUSTOM_PYPTO_SIM_EXPORT int64_t unemulated_##name() __asm__(#name); \
  int64_t unemulated_##name() { return result; }
#define UNEMULATED(name) FUNCTION(name, custom_pypto_simulator::refuse(#name))
// Logs, profiles, timeouts, hints, and attributes of compiled operators.
#define WITHOUT_EFFECT(name) FUNCTION(name, 0)

WITHOUT_EFFECT(HcclSetConfig)
WITHOUT_EFFECT(MsprofGetHashId)
WITHOUT_EFFECT(MsprofRegisterCallback)
WITHOUT_EFFECT(MsprofReportAdditionalInfo)
WITHOUT_EFFECT(MsprofReportApi)
WITHOUT_EFFECT(MsprofReportCompactInfo)
WITHOUT_EFFECT(MsprofSysCycleTime)
WITHOUT_EFFECT(aclAppLog)
WITHOUT_EFFECT(aclFinalize)
WITHOUT_EFFECT(aclSetCompileopt)
WITHOUT_EFFECT(aclSetTensorDescName)
WITHOUT_EFFECT(aclSetTensorPlaceMent)
WITHOUT_EFFECT(aclopSetAttrBool)
WITHOUT_EFFECT(aclopSetAttrDataType)
WITHOUT_EFFECT(aclopSetAttrFloat)
WITHOUT_EFFECT(aclopSetAttrInt)
WITHOUT_EFFECT(aclopSetAttrListBool)
WITHOUT_EFFECT(aclopSetAttrListFloat)
WITHOUT_EFFECT(aclopSetAttrListInt)
WITHOUT_EFFECT(aclopSetAttrListListInt)
WITHOUT_EFFECT(aclopSetAttrString)
WITHOUT_EFFECT(aclrtDeviceEnablePeerAccess)
WITHOUT_EFFECT(aclrtResetEvent)
WITHOUT_EFFECT(aclrtSetDeviceSatMode)
WITHOUT_EFFECT(aclrtSetOpExecuteTimeOut)
WITHOUT_EFFECT(aclrtSetOpWaitTimeout)
WITHOUT_EFFECT(aclrtSetStreamAttribute)
WITHOUT_EFFECT(aclrtSetStreamFailureMode)
WITHOUT_EFFECT(aclrtSubscribeReport)
WITHOUT_EFFECT(aclrtUnSubscribeReport)

UNEMULATED(aclmdlFinalizeDump)
UNEMULATED(aclmdlInitDump)
UNEMULATED(aclmdlSetDump)
UNEMULATED(aclrtBinaryGetFunction)
UNEMULATED(aclrtBinaryLoadFromData)
UNEMULATED(aclrtDeviceGetBareTgid)
UNEMULATED(aclrtFreePhysical)
UNEMULATED(aclrtGetFunctionAddr)
UNEMULATED(aclrtMallocPhysical)
UNEMULATED(aclrtMapMem)
UNEMULATED(aclrtMemExportToShareableHandle)
UNEMULATED(aclrtMemImportFromShareableHandle)
UNEMULATED(aclrtMemSetPidToShareableHandle)
UNEMULATED(aclrtReleaseMemAddress)
UNEMULATED(aclrtReserveMemAddress)
UNEMULATED(aclrtUnmapMem)
UNEMULATED(rtDevBinaryRegister)
UNEMULATED(rtFunctionRegister)
UNEMULATED(rtGetC2cCtrlAddr)
UNEMULATED(rtKernelLaunch)
