#pragma once

#include <torch/csrc/stable/tensor.h>

namespace custom_pypto_add_custom {

// Writes self + other into `out`. All three are CPU tensors of one shape and one of the dtypes that
// add_custom allows; `out` is contiguous, the inputs have any strides and may overlap themselves.
void add_cpu(const torch::stable::Tensor& self, const torch::stable::Tensor& other,
             const torch::stable::Tensor& out);

}  // namespace custom_pypto_add_custom
