// Global settings of torch that its C interface does not expose.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/loaded_library.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// torch.are_deterministic_algorithms_enabled(); false when this torch keeps it elsewhere.
inline bool wants_deterministic_algorithms() {
  struct Context {
    void* (*global)();
    bool (*is_deterministic)(const void* context);
  };
  static const Context context = [] {
    Context found{};
    find_in_torch("_ZN2at13globalContextEv", found.global);
    find_in_torch("_ZNK2at7Context23deterministicAlgorithmsEv", found.is_deterministic);
    return found;
  }();
  return context.global != nullptr && context.is_deterministic != nullptr &&
         context.is_deterministic(context.global());
}

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
