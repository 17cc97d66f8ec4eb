// The stock torch ops that the composed kernels are made of; each queues its work and returns.
#pragma once

#include <custom_pypto/npu/tensor_ops.h>

#include "common.h"

namespace custom_pypto_sparse_attention::npu {

using custom_pypto::npu::add;
using custom_pypto::npu::batched_product;
using custom_pypto::npu::clamp_max;
using custom_pypto::npu::columns;
using custom_pypto::npu::concatenate;
using custom_pypto::npu::layer_norm;
using custom_pypto::npu::logarithm;
using custom_pypto::npu::matrix_product;
using custom_pypto::npu::NoGradients;
using custom_pypto::npu::permute;
using custom_pypto::npu::reshaped;
using custom_pypto::npu::rms_norm;
using custom_pypto::npu::sorted_down;
using custom_pypto::npu::to_contiguous;
using custom_pypto::npu::to_dtype;
using custom_pypto::npu::to_int32;

}  // namespace custom_pypto_sparse_attention::npu
