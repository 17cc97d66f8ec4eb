// Tensors as CANN's kernels want them, by torch's own ops: each queues its work on the device and
// returns. Nothing is done for a tensor that is right already.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dispatcher.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// No gradients are recorded in its scope: kernels that are composed of torch's ops have none, as
// those that are one launch have none.
class NoGradients {
 public:
  NoGradients() : before_(aoti_torch_grad_mode_is_enabled()) {
    aoti_torch_grad_mode_set_enabled(false);
  }
  ~NoGradients() { aoti_torch_grad_mode_set_enabled(before_); }
  NoGradients(const NoGradients&) = delete;
  NoGradients& operator=(const NoGradients&) = delete;

 private:
  bool before_;
};

inline torch::stable::Tensor to_contiguous(const torch::stable::Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

inline torch::stable::Tensor to_dtype(const torch::stable::Tensor& tensor,
                                      torch::headeronly::ScalarType dtype) {
  if (tensor.scalar_type() == dtype) return tensor;
  return call_op<torch::stable::Tensor>("aten::to", "dtype", tensor, dtype, false, false,
                                        std::nullopt);
}

// Contiguous and int32: the only integers that CANN's kernels read.
inline torch::stable::Tensor to_int32(const torch::stable::Tensor& tensor) {
  return to_contiguous(to_dtype(tensor, torch::headeronly::ScalarType::Int));
}
inline std::optional<torch::stable::Tensor> to_int32(
    const std::optional<torch::stable::Tensor>& tensor) {
  if (!tensor.has_value()) return std::nullopt;
  return to_int32(*tensor);
}

// The integers of a tensor, those above `limit` replaced by it.
inline torch::stable::Tensor clamp_max(const torch::stable::Tensor& integers, int64_t limit) {
  const torch::stable::Tensor limits = torch::stable::full(
      {1}, static_cast<double>(limit), integers.scalar_type(), std::nullopt, integers.device());
  return call_op<torch::stable::Tensor>("aten::minimum", "", integers, limits);
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
