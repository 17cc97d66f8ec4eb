// Tensors as kernels want them, of any device. Nothing is done for a tensor that is right already.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dispatcher.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>

CUSTOM_PYPTO_NAMESPACE_BEGIN

inline torch::stable::Tensor to_contiguous(const torch::stable::Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

inline torch::stable::Tensor to_dtype(const torch::stable::Tensor& tensor,
                                      torch::headeronly::ScalarType dtype) {
  if (tensor.scalar_type() == dtype) return tensor;
  return call_op<torch::stable::Tensor>("aten::to", "dtype", tensor, dtype, false, false,
                                        std::nullopt);
}

CUSTOM_PYPTO_NAMESPACE_END
