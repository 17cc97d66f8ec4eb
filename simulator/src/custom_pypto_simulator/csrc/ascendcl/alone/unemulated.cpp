// Functions that torch_npu or torchair link against and that are not emulated: each fails with its
// name. Functions that they look up by name are absent.
//
// No ACL header here: the declarations would not agree.
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

#define CUSTOM_PYPTO_SIM_UNEMULATED(name)                       \
  extern "C" __attribute__((visibility("default"))) int name(); \
  int name() { return refuse(#name); }

// A function that returns an object: null.
#define CUSTOM_PYPTO_SIM_UNEMULATED_OBJECT(name)                  \
  extern "C" __attribute__((visibility("default"))) void* name(); \
  void* name() {                                                  \
    refuse(#name);                                                \
    return nullptr;                                               \
  }

CUSTOM_PYPTO_SIM_UNEMULATED(aclmdlInitDump)
CUSTOM_PYPTO_SIM_UNEMULATED(aclmdlSetDump)
CUSTOM_PYPTO_SIM_UNEMULATED(aclmdlFinalizeDump)
CUSTOM_PYPTO_SIM_UNEMULATED(aclopStartDumpArgs)
CUSTOM_PYPTO_SIM_UNEMULATED(aclopStopDumpArgs)
CUSTOM_PYPTO_SIM_UNEMULATED(acltdtDestroyChannel)
CUSTOM_PYPTO_SIM_UNEMULATED(acltdtDestroyDataset)
CUSTOM_PYPTO_SIM_UNEMULATED(acltdtGetDimsFromItem)
CUSTOM_PYPTO_SIM_UNEMULATED(acltdtReceiveTensor)
CUSTOM_PYPTO_SIM_UNEMULATED_OBJECT(acltdtCreateChannelWithCapacity)
CUSTOM_PYPTO_SIM_UNEMULATED_OBJECT(acltdtCreateDataset)
CUSTOM_PYPTO_SIM_UNEMULATED_OBJECT(acltdtGetDataAddrFromItem)
CUSTOM_PYPTO_SIM_UNEMULATED_OBJECT(acltdtGetDataItem)
CUSTOM_PYPTO_SIM_UNEMULATED_OBJECT(acltdtGetDataSizeFromItem)
CUSTOM_PYPTO_SIM_UNEMULATED_OBJECT(acltdtGetDataTypeFromItem)
CUSTOM_PYPTO_SIM_UNEMULATED_OBJECT(acltdtGetDatasetSize)
CUSTOM_PYPTO_SIM_UNEMULATED_OBJECT(acltdtGetDimNumFromItem)
CUSTOM_PYPTO_SIM_UNEMULATED(aclrtBinaryGetFunction)
CUSTOM_PYPTO_SIM_UNEMULATED(aclrtBinaryLoadFromData)
CUSTOM_PYPTO_SIM_UNEMULATED(aclrtDeviceGetBareTgid)
CUSTOM_PYPTO_SIM_UNEMULATED(aclrtGetFunctionAddr)
CUSTOM_PYPTO_SIM_UNEMULATED(aclrtMemExportToShareableHandle)
CUSTOM_PYPTO_SIM_UNEMULATED(aclrtMemImportFromShareableHandle)
CUSTOM_PYPTO_SIM_UNEMULATED(aclrtMemSetPidToShareableHandle)
CUSTOM_PYPTO_SIM_UNEMULATED(rtDevBinaryRegister)
CUSTOM_PYPTO_SIM_UNEMULATED(rtFunctionRegister)
CUSTOM_PYPTO_SIM_UNEMULATED(rtGetC2cCtrlAddr)
CUSTOM_PYPTO_SIM_UNEMULATED(rtKernelLaunch)
