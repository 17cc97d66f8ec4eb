// Tensors as kernels need them, on any device. A tensor that needs no change is returned as it is.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/message.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>

CUSTOM_PYPTO_NAMESPACE_BEGIN

inline Tensor to_contiguous(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

inline Tensor to_dtype(const Tensor& tensor, ScalarType dtype) {
  if (tensor.scalar_type() == dtype) return tensor;
  return call_op<Tensor>("aten::to", "dtype", tensor, dtype, false, false, std::nullopt);
}

CUSTOM_PYPTO_NAMESPACE_END
