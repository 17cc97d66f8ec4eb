// Tells CANN of torch.use_deterministic_algorithms.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/loaded_library.h>
#include <custom_pypto/npu/cann.h>
#include <custom_pypto/npu/torch_npu.h>

#include <cstdint>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {
namespace detail {

// torch.are_deterministic_algorithms_enabled(); false when this torch keeps it elsewhere.
inline bool wants_deterministic_algorithms() {
  struct Context {
    void* (*global)();
    bool (*is_deterministic)(const void* context);
  };
  static const Context context = [] {
    Context found{};
    custom_pypto::detail::find_in_torch("_ZN2at13globalContextEv", found.global);
    custom_pypto::detail::find_in_torch("_ZNK2at7Context23deterministicAlgorithmsEv",
                                        found.is_deterministic);
    return found;
  }();
  return context.global != nullptr && context.is_deterministic != nullptr &&
         context.is_deterministic(context.global());
}

}  // namespace detail

// The level of determinism that kernels need: 0 for none, else torch_npu's.
inline int64_t deterministic_level() {
  if (!detail::wants_deterministic_algorithms()) return 0;
  const uint32_t level = torch_npu().deterministic_level();
  return level == 0 ? 1 : level;
}

// Sets CANN's level, as torch_npu does before each of its own ops: phase 1 chooses by the level in
// the context of the calling thread, which belongs to one device.
inline void apply_deterministic_level(int64_t level) {
  constexpr int kDeterministic = 0;  // ACL_OPT_DETERMINISTIC
  int64_t current = -1;
  const auto option = cann().context_option;
  const bool is_off = option != nullptr && option(kDeterministic, &current) == 0 && current == 0;
  if (level != 0 || !is_off) torch_npu().apply_deterministic_level(level, level != 0, true);
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
