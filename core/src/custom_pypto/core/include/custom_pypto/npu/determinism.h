// torch.use_deterministic_algorithms, which CANN does not see by itself.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/cann.h>
#include <custom_pypto/npu/torch_npu.h>
#include <custom_pypto/torch_symbol.h>

#include <cstdint>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {
namespace detail {

// Where torch keeps the flag; null functions when this torch has it elsewhere.
struct TorchContext {
  void* (*context)();
  bool (*is_deterministic)(const void* context);
};

inline TorchContext find_torch_context() {
  const auto find = [](const char* name, auto& function) {
    using Function = std::remove_reference_t<decltype(function)>;
    function = reinterpret_cast<Function>(custom_pypto::detail::find_in_torch(name));
  };
  TorchContext torch{};
  find("_ZN2at13globalContextEv", torch.context);
  find("_ZNK2at7Context23deterministicAlgorithmsEv", torch.is_deterministic);
  return torch;
}

}  // namespace detail

// How deterministic kernels must be: 0 for not, else the level that torch_npu was set to.
inline int64_t deterministic_level() {
  static const detail::TorchContext torch = detail::find_torch_context();
  if (torch.context == nullptr || torch.is_deterministic == nullptr) return 0;
  if (!torch.is_deterministic(torch.context())) return 0;
  const uint32_t level = torch_npu().deterministic_level();
  return level == 0 ? 1 : level;
}

// Tells CANN, as torch_npu does before each of its own ops: phase 1 chooses by it.
inline void apply_deterministic_level(int64_t level) {
  // ACL_OPT_DETERMINISTIC.
  constexpr int kDeterministic = 0;
  int64_t current = -1;
  const auto option = cann().system_option;
  if (option != nullptr && option(kDeterministic, &current) == 0 && current == level) return;
  torch_npu().apply_deterministic_level(level, level != 0, true);
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
