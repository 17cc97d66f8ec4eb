// Functions that torch_npu or torchair link against, or call, and that are not emulated: each fails
// with its name, or succeeds and does nothing. Other functions that they look up by name are
// absent.
//
// No ACL header here: the declarations would not agree.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" int custom_pypto_sim_error(int code, const char* text);

namespace {

int refuse(const char* name) {
  constexpr int kFeatureNotSupported = 207000;
  const std::string text = std::string(name) + " is not emulated";
  std::fprintf(stderr, "custom_pypto_simulator: %s\n", text.c_str());
  return custom_pypto_sim_error(kFeatureNotSupported, text.c_str());
}

}  // namespace

#define FUNCTION(type, name, result)                             \
  extern "C" __attribute__((visibility("default"))) type name(); \
  type name() { return result; }
#define UNEMULATED(name) FUNCTION(int, name, refuse(#name))
#define UNEMULATED_OBJECT(name) FUNCTION(void*, name, (refuse(#name), nullptr))
// Logs, profiles, timeouts, hints, and attributes of compiled operators.
#define WITHOUT_EFFECT(name) FUNCTION(int64_t, name, 0)

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
UNEMULATED(aclopStartDumpArgs)
UNEMULATED(aclopStopDumpArgs)
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
UNEMULATED(acltdtDestroyChannel)
UNEMULATED(acltdtDestroyDataset)
UNEMULATED(acltdtGetDimsFromItem)
UNEMULATED(acltdtReceiveTensor)
UNEMULATED(rtDevBinaryRegister)
UNEMULATED(rtFunctionRegister)
UNEMULATED(rtGetC2cCtrlAddr)
UNEMULATED(rtKernelLaunch)

UNEMULATED_OBJECT(acltdtCreateChannelWithCapacity)
UNEMULATED_OBJECT(acltdtCreateDataset)
UNEMULATED_OBJECT(acltdtGetDataAddrFromItem)
UNEMULATED_OBJECT(acltdtGetDataItem)
UNEMULATED_OBJECT(acltdtGetDataSizeFromItem)
UNEMULATED_OBJECT(acltdtGetDataTypeFromItem)
UNEMULATED_OBJECT(acltdtGetDatasetSize)
UNEMULATED_OBJECT(acltdtGetDimNumFromItem)
