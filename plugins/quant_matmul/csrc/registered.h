// The kernels on an NPU, for the registration, and what both devices share.
#pragma once

#include "ops.h"

namespace custom_pypto_quant_matmul {

using Multiply = ops::npu_quant_matmul;
using Quantise = ops::npu_dynamic_quant;

custom_pypto::Tensor empty_result(const Multiply::Arguments& a, const Multiply::CallShape& s);
Multiply::Outputs multiply_npu(const Multiply::Arguments& a, const Multiply::CallShape& s);

}  // namespace custom_pypto_quant_matmul
