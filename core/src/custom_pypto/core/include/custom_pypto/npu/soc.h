// Which NPU this machine has, for kernels that were compiled for one architecture.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/loaded_library.h>

#include <string>
#include <string_view>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// CANN's name of the NPU, "Ascend910B1"; "" where CANN is not loaded or finds none.
inline std::string soc_name() {
  const char* (*get)() = nullptr;
  custom_pypto::detail::find_loaded("libascendcl.so", "aclrtGetSocName", get);
  const char* name = get == nullptr ? nullptr : get();
  return name == nullptr ? "" : name;
}

// The --npu-arch of bisheng for an NPU; "" for one that is not known here.
inline std::string_view architecture_of(std::string_view soc) noexcept {
  struct Family {
    std::string_view prefix;
    std::string_view architecture;
  };
  // Without a digit, Ascend910B is a chip of the first generation.
  for (const Family& family : {Family{"Ascend910B1", "dav-2201"}, Family{"Ascend910B2", "dav-2201"},
                               Family{"Ascend910B3", "dav-2201"}, Family{"Ascend910B4", "dav-2201"},
                               Family{"Ascend910_93", "dav-2201"}, Family{"Ascend950", "dav-3510"},
                               Family{"Ascend310P", "dav-2002"}}) {
    if (soc.substr(0, family.prefix.size()) == family.prefix) return family.architecture;
  }
  return "";
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
