// Tensors as kernels need them: converted on any device, where a tensor that needs no change is
// returned as it is; read as numbers on a CPU.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/dtype.h>
#include <custom_pypto/message.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <optional>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

inline Tensor to_contiguous(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

inline Tensor to_dtype(const Tensor& tensor, ScalarType dtype) {
  if (tensor.scalar_type() == dtype) return tensor;
  return call_op<Tensor>("aten::to", "dtype", tensor, dtype, false, false, std::nullopt);
}

// All numbers of a CPU tensor in row-major order, as fp32, or as double.
template <class Real = float>
std::vector<Real> read_floats(const Tensor& tensor) {
  const Tensor source = to_contiguous(tensor);
  std::vector<Real> values(static_cast<std::size_t>(source.numel()));
  visit_dtype<float, Half, BFloat16, double>(
      "read_floats", "tensor", source.scalar_type(), [&](auto tag) {
        const auto* data = source.const_data_ptr<typename decltype(tag)::type>();
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Real>(data[i]);
      });
  return values;
}

CUSTOM_PYPTO_NAMESPACE_END
