// The stock torch ops that the composed kernels are made of.
#include "npu/tensors.h"

#include <custom_pypto/dispatcher.h>
#include <torch/csrc/stable/ops.h>

#include <optional>
#include <tuple>

namespace custom_pypto_sparse_attention::npu {

using custom_pypto::call_op;

Tensor reshaped(const Tensor& tensor, const std::vector<int64_t>& sizes) {
  return torch::stable::reshape(tensor, sizes);
}

Tensor permute(const Tensor& tensor, const std::vector<int64_t>& dims) {
  return call_op<Tensor>("aten::permute", "", tensor, dims);
}

Tensor columns(const Tensor& tensor, int64_t begin, int64_t size) {
  return call_op<Tensor>("aten::narrow", "", tensor, -1, begin, size);
}

Tensor concatenate(const std::vector<Tensor>& tensors) {
  return call_op<Tensor>("aten::cat", "", tensors, -1);
}

Tensor add(const Tensor& a, const Tensor& b) {
  // The stable ABI cannot pass the Scalar that aten::add takes.
  return torch::stable::subtract(a, b, -1.0);
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  return call_op<Tensor>("aten::mul", "Tensor", a, b);
}

Tensor negate(const Tensor& a) { return call_op<Tensor>("aten::neg", "", a); }

Tensor matrix_product(const Tensor& a, const Tensor& b) {
  return call_op<Tensor>("aten::mm", "", a, b);
}

Tensor batched_product(const Tensor& a, const Tensor& b) {
  return call_op<Tensor>("aten::bmm", "", a, b);
}

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double epsilon) {
  return call_op<Tensor>(
      "aten::rms_norm", "", to_dtype(x, ScalarType::Float), std::vector<int64_t>{x.size(-1)},
      std::optional<Tensor>(to_dtype(gamma, ScalarType::Float)), std::optional<double>(epsilon));
}

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon) {
  return call_op<Tensor>("aten::layer_norm", "", to_dtype(x, ScalarType::Float),
                         std::vector<int64_t>{x.size(-1)},
                         std::optional<Tensor>(to_dtype(gamma, ScalarType::Float)),
                         std::optional<Tensor>(to_dtype(beta, ScalarType::Float)), epsilon, false);
}

Tensor sorted_down(const Tensor& tensor) {
  return std::get<0>(call_op<std::tuple<Tensor, Tensor>>("aten::sort", "", tensor, -1, true));
}

}  // namespace custom_pypto_sparse_attention::npu
