// libacl_tdt_channel.so: channels between host and device are not emulated.
#include <cstdio>

extern "C" int custom_pypto_sim_error(int code, const char* text);

#define CUSTOM_PYPTO_SIM_REFUSED(Result, result, name)                         \
  extern "C" __attribute__((visibility("default"))) Result name();             \
  Result name() {                                                              \
    std::fputs("custom_pypto_simulator: " #name " is not emulated\n", stderr); \
    custom_pypto_sim_error(207000, #name " is not emulated");                  \
    return result;                                                             \
  }
#define CUSTOM_PYPTO_SIM_REFUSED_STATUS(name) CUSTOM_PYPTO_SIM_REFUSED(int, 207000, name)
#define CUSTOM_PYPTO_SIM_REFUSED_RESULT(name) CUSTOM_PYPTO_SIM_REFUSED(void*, nullptr, name)

CUSTOM_PYPTO_SIM_REFUSED_RESULT(acltdtCreateChannelWithCapacity)
CUSTOM_PYPTO_SIM_REFUSED_RESULT(acltdtCreateDataset)
CUSTOM_PYPTO_SIM_REFUSED_STATUS(acltdtDestroyChannel)
CUSTOM_PYPTO_SIM_REFUSED_STATUS(acltdtDestroyDataset)
CUSTOM_PYPTO_SIM_REFUSED_RESULT(acltdtGetDataAddrFromItem)
CUSTOM_PYPTO_SIM_REFUSED_RESULT(acltdtGetDataItem)
CUSTOM_PYPTO_SIM_REFUSED_RESULT(acltdtGetDataSizeFromItem)
CUSTOM_PYPTO_SIM_REFUSED_RESULT(acltdtGetDataTypeFromItem)
CUSTOM_PYPTO_SIM_REFUSED_RESULT(acltdtGetDatasetSize)
CUSTOM_PYPTO_SIM_REFUSED_RESULT(acltdtGetDimNumFromItem)
CUSTOM_PYPTO_SIM_REFUSED_STATUS(acltdtGetDimsFromItem)
CUSTOM_PYPTO_SIM_REFUSED_STATUS(acltdtReceiveTensor)
