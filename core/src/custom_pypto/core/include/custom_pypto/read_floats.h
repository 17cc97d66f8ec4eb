// read_floats: the numbers of a CPU tensor, as fp32.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dtype.h>
#include <custom_pypto/tensor_ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// All numbers of a tensor in row-major order, as fp32.
inline std::vector<float> read_floats(const Tensor& tensor) {
  const Tensor source = to_contiguous(tensor);
  std::vector<float> values(static_cast<std::size_t>(source.numel()));
  visit_element(element_of(source.scalar_type()), [&](auto number) {
    const auto* data = static_cast<const decltype(number)*>(source.const_data_ptr());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(data[i]);
  });
  return values;
}

CUSTOM_PYPTO_NAMESPACE_END
