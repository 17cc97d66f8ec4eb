// Version counters of the tensors that an op writes to. Autograd compares the counter of a saved
// tensor with its value at saving; a write without a bump gives silently wrong gradients.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/torch_error.h>
#include <torch/csrc/stable/stableivalue_conversions.h>
#include <torch/csrc/stable/tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// The stable ABI has no function for it. Transposing a dimension with itself changes nothing, is an
// in-place op to autograd and works on every device.
inline bool try_bump_version(const Tensor& tensor) {
  std::array<StableIValue, 3> stack{torch::stable::detail::from(tensor),
                                    torch::stable::detail::from(int64_t{0}),
                                    torch::stable::detail::from(int64_t{0})};
  if (torch_call_dispatcher("aten::transpose_", "", stack.data(), TORCH_ABI_VERSION) !=
      AOTI_TORCH_SUCCESS) {
    return false;
  }
  aoti_torch_delete_tensor_object(torch::stable::detail::to<AtenTensorHandle>(stack[0]));
  return true;
}

// True also for a tensor that does not require grad.
inline bool is_leaf(const Tensor& tensor) {
  std::array<StableIValue, 1> stack{torch::stable::detail::from(tensor)};
  expect_success(torch_call_dispatcher("aten::is_leaf", "", stack.data(), TORCH_ABI_VERSION),
                 "aten::is_leaf");
  return torch::stable::detail::to<bool>(stack[0]);
}

[[noreturn]] CUSTOM_PYPTO_COLD inline void fail_bump(const char* op, const char* argument) {
  std::string reason = torch_reason();
  if (reason.back() != '.') reason += '.';
  // torch's own text for inference tensors already says what to do.
  const bool inference = reason.find("nference tensor") != std::string::npos;
  fail(op, argument, "is written in place, which torch refuses: ", reason,
       inference ? "" : " Call the op under torch.no_grad() or pass a detached tensor.");
}

// For an argument that `op` is about to write to.
inline void bump_version(const char* op, const char* argument, const Tensor& tensor) {
  if (aoti_torch_grad_mode_is_enabled() && CUSTOM_PYPTO_UNLIKELY(!is_leaf(tensor))) {
    fail(op, argument,
         "is written in place, but it requires grad and an op that writes to an argument has no "
         "gradient. Call the op under torch.no_grad() or pass a detached tensor.");
  }
  if (CUSTOM_PYPTO_UNLIKELY(!try_bump_version(tensor))) fail_bump(op, argument);
}

// Whether T is a Tensor or a list or an optional of them.
template <typename T>
inline constexpr bool holds_tensors = std::is_same_v<T, Tensor>;
template <typename T>
inline constexpr bool holds_tensors<std::optional<T>> = holds_tensors<T>;
template <typename T>
inline constexpr bool holds_tensors<std::vector<T>> = holds_tensors<T>;

template <typename T>
void bump_version(const char* op, const char* argument, const std::vector<T>& tensors);

template <typename T>
void bump_version(const char* op, const char* argument, const std::optional<T>& tensor) {
  if (tensor.has_value()) bump_version(op, argument, *tensor);
}

template <typename T>
void bump_version(const char* op, const char* argument, const std::vector<T>& tensors) {
  for (const T& each : tensors) bump_version(op, argument, each);
}

}  // namespace detail

// Tells autograd that `tensor` was written to. Kernels registered by impl<> need not call it: their
// mutable arguments are bumped for them. Throws std::runtime_error where torch refuses an in-place
// op: a leaf that requires grad while grad mode is on, an inference tensor outside inference mode.
inline void bump_version(const Tensor& tensor) {
  if (CUSTOM_PYPTO_UNLIKELY(!detail::try_bump_version(tensor))) {
    detail::throw_torch_error("custom_pypto::bump_version");
  }
}

CUSTOM_PYPTO_NAMESPACE_END
