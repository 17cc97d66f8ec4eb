// Global settings of torch that its C interface does not expose.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/torch_symbol.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// torch.are_deterministic_algorithms_enabled(); false when this torch keeps it elsewhere.
inline bool wants_deterministic_algorithms() {
  using Context = void* (*)();
  using Flag = bool (*)(const void* context);
  static const auto context = reinterpret_cast<Context>(find_in_torch("_ZN2at13globalContextEv"));
  static const auto flag =
      reinterpret_cast<Flag>(find_in_torch("_ZNK2at7Context23deterministicAlgorithmsEv"));
  return context != nullptr && flag != nullptr && flag(context());
}

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
