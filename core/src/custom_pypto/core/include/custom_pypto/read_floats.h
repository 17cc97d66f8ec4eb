// read_floats: the numbers of a CPU tensor, as fp32 or double.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dtype.h>
#include <custom_pypto/tensor_ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// All numbers of a tensor in row-major order, as fp32, or as double.
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
