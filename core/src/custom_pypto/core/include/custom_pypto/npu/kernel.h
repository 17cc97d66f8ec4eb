// One NPU kernel: of the two-phase aclnn interface, or launched directly.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/kernel_library.h>

#include <string>
#include <string_view>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

struct Kernel {
  std::string symbol;   // "aclnnAdd"
  std::string title;    // how messages begin: "add_custom: aclnnAdd"
  std::string library;  // its path
  Origin origin;
  void* prepare;  // aclnnAddGetWorkspaceSize; null for a kernel that is launched directly
  void* run;      // aclnnAdd

  // The launcher, of type F, of a kernel that is launched directly (direct_launch.h).
  template <typename F>
  F* launcher() const noexcept {
    return reinterpret_cast<F*>(run);
  }

  bool is(std::string_view name) const noexcept { return symbol == name; }
};

// Whether a symbol is of the two-phase interface: "aclnn..". Others are launched directly.
inline bool has_two_phases(std::string_view symbol) noexcept {
  return symbol.substr(0, 5) == "aclnn";
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
