// Tensors as CANN's kernels want them, by torch's own ops: each queues its work on the device and
// returns. Nothing is done for a tensor that is right already.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/tensor_ops.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// As torch's NoGradGuard: no gradients are recorded in its scope. Kernels that are composed of
// torch's ops have none, as those that are one launch have none.
class NoGradGuard {
 public:
  NoGradGuard() : before_(aoti_torch_grad_mode_is_enabled()) {
    aoti_torch_grad_mode_set_enabled(false);
  }
  ~NoGradGuard() { aoti_torch_grad_mode_set_enabled(before_); }
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  bool before_;
};

using custom_pypto::to_contiguous;
using custom_pypto::to_dtype;

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

inline torch::stable::Tensor reshaped(const torch::stable::Tensor& tensor,
                                      const std::vector<int64_t>& sizes) {
  return torch::stable::reshape(tensor, sizes);
}

inline torch::stable::Tensor permute(const torch::stable::Tensor& tensor,
                                     const std::vector<int64_t>& dims) {
  return call_op<torch::stable::Tensor>("aten::permute", "", tensor, dims);
}

// [.., begin .. begin + size) of the last dimension; a view.
inline torch::stable::Tensor columns(const torch::stable::Tensor& tensor, int64_t begin,
                                     int64_t size) {
  return call_op<torch::stable::Tensor>("aten::narrow", "", tensor, -1, begin, size);
}

// Side by side in the last dimension.
inline torch::stable::Tensor concatenate(const std::vector<torch::stable::Tensor>& tensors) {
  return call_op<torch::stable::Tensor>("aten::cat", "", tensors, -1);
}

inline torch::stable::Tensor add(const torch::stable::Tensor& a, const torch::stable::Tensor& b) {
  // The stable ABI cannot pass the Scalar that aten::add takes.
  return torch::stable::subtract(a, b, -1.0);
}

inline torch::stable::Tensor multiply(const torch::stable::Tensor& a,
                                      const torch::stable::Tensor& b) {
  return call_op<torch::stable::Tensor>("aten::mul", "Tensor", a, b);
}

inline torch::stable::Tensor negate(const torch::stable::Tensor& a) {
  return call_op<torch::stable::Tensor>("aten::neg", "", a);
}

inline torch::stable::Tensor logarithm(const torch::stable::Tensor& a) {
  return call_op<torch::stable::Tensor>("aten::log", "", a);
}

// Accumulated in fp32, rounded to the operands' dtype.
inline torch::stable::Tensor matrix_product(const torch::stable::Tensor& a,
                                            const torch::stable::Tensor& b) {
  return call_op<torch::stable::Tensor>("aten::mm", "", a, b);
}

inline torch::stable::Tensor batched_product(const torch::stable::Tensor& a,
                                             const torch::stable::Tensor& b) {
  return call_op<torch::stable::Tensor>("aten::bmm", "", a, b);
}

// In fp32, along the last dimension of x.
inline torch::stable::Tensor rms_norm(const torch::stable::Tensor& x,
                                      const torch::stable::Tensor& gamma, double epsilon) {
  return call_op<torch::stable::Tensor>(
      "aten::rms_norm", "", to_dtype(x, torch::headeronly::ScalarType::Float),
      std::vector<int64_t>{x.size(-1)},
      std::optional<torch::stable::Tensor>(to_dtype(gamma, torch::headeronly::ScalarType::Float)),
      std::optional<double>(epsilon));
}

inline torch::stable::Tensor layer_norm(const torch::stable::Tensor& x,
                                        const torch::stable::Tensor& gamma,
                                        const torch::stable::Tensor& beta, double epsilon) {
  return call_op<torch::stable::Tensor>(
      "aten::layer_norm", "", to_dtype(x, torch::headeronly::ScalarType::Float),
      std::vector<int64_t>{x.size(-1)},
      std::optional<torch::stable::Tensor>(to_dtype(gamma, torch::headeronly::ScalarType::Float)),
      std::optional<torch::stable::Tensor>(to_dtype(beta, torch::headeronly::ScalarType::Float)),
      epsilon, false);
}

// Each row with its largest numbers first.
inline torch::stable::Tensor sorted_down(const torch::stable::Tensor& tensor) {
  return std::get<0>(call_op<std::tuple<torch::stable::Tensor, torch::stable::Tensor>>(
      "aten::sort", "", tensor, -1, true));
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
