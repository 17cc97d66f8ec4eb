// The tensors that an op writes to. Each element needs memory of its own, or values are lost. Their
// version counters are bumped: autograd compares the counter of a saved tensor with its value at
// saving, and a write without a bump gives silently wrong gradients.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/torch_error.h>
#include <torch/csrc/stable/stableivalue_conversions.h>
#include <torch/csrc/stable/tensor.h>

#include <array>
#include <cstddef>
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

// Bumps an argument that `op` is about to write to.
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

// The tensors that a call is about to write to.
class Written {
 public:
  explicit Written(const char* op) : op_(op) {}

  void add(const char* argument, const Tensor& tensor) {
    if (tensor.numel() != 0) {
      expect_own_elements(argument, tensor);
      expect_own_start(argument, tensor);
    }
    bump_version(op_, argument, tensor);
  }
  template <typename T>
  void add(const char* argument, const std::optional<T>& tensor) {
    if (tensor.has_value()) add(argument, *tensor);
  }
  template <typename T>
  void add(const char* argument, const std::vector<T>& tensors) {
    for (const T& each : tensors) add(argument, each);
  }

 private:
  struct Start {
    const void* data;
    const char* argument;
  };

  // Refuses what torch's in-place ops refuse.
  void expect_own_elements(const char* argument, const Tensor& tensor) const {
    const auto sizes = tensor.sizes();
    const auto strides = tensor.strides();
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
      if (CUSTOM_PYPTO_UNLIKELY(sizes[dim] > 1 && strides[dim] == 0)) {
        fail(op_, argument, "is written in place, but all ", sizes[dim], " of its dimension ", dim,
             " are at the same memory (stride 0), as expand() makes them; pass a tensor with"
             " memory for each element, such as its contiguous()");
      }
    }
  }

  void expect_own_start(const char* argument, const Tensor& tensor) {
    const void* data = tensor.data_ptr();
    // On meta there is none.
    if (data == nullptr) return;
    for (std::size_t i = 0; i < few_; ++i) expect_other_start(argument, data, starts_[i]);
    for (const Start& each : more_starts_) expect_other_start(argument, data, each);
    if (few_ < kFew) {
      starts_[few_++] = {data, argument};
    } else {
      more_starts_.push_back({data, argument});
    }
  }

  void expect_other_start(const char* argument, const void* data, const Start& earlier) const {
    if (CUSTOM_PYPTO_UNLIKELY(earlier.data == data)) {
      fail(op_, argument, "is written in place, but begins at the same memory as argument '",
           earlier.argument,
           "', which is written too; pass a tensor of its own, such as a clone()");
    }
  }

  // Up to this many tensors are compared without an allocation.
  static constexpr std::size_t kFew = 4;

  const char* op_;
  std::size_t few_ = 0;
  std::array<Start, kFew> starts_;
  std::vector<Start> more_starts_;
};

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
