// The stock torch ops that the composed kernels are made of; each queues its work and returns.
#pragma once

#include <custom_pypto/npu/tensor_ops.h>

#include <initializer_list>
#include <vector>

#include "common.h"

namespace custom_pypto_sparse_attention::npu {

using custom_pypto::npu::clamp_max;
using custom_pypto::npu::NoGradients;
using custom_pypto::npu::to_contiguous;
using custom_pypto::npu::to_dtype;
using custom_pypto::npu::to_int32;

Tensor reshaped(const Tensor& tensor, const std::vector<int64_t>& sizes);
Tensor permute(const Tensor& tensor, const std::vector<int64_t>& dims);
// [.., begin .. begin + size) of the last dimension; a view.
Tensor columns(const Tensor& tensor, int64_t begin, int64_t size);
// Side by side in the last dimension.
Tensor concatenate(const std::vector<Tensor>& tensors);

Tensor add(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
Tensor negate(const Tensor& a);
// Accumulated in fp32, rounded to the operands' dtype.
Tensor matrix_product(const Tensor& a, const Tensor& b);
Tensor batched_product(const Tensor& a, const Tensor& b);
// In fp32, along the last dimension of x.
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double epsilon);
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon);

// Each row with its largest numbers first.
Tensor sorted_down(const Tensor& tensor);

}  // namespace custom_pypto_sparse_attention::npu
