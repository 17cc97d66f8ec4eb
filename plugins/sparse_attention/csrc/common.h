// Names that every file of the ops uses.
#pragma once

#include <custom_pypto/message.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>

#include "cpu/kernels.h"
#include "ops.h"

namespace custom_pypto_sparse_attention {

using custom_pypto::check;
using custom_pypto::fail;
using custom_pypto::ScalarType;
using custom_pypto::Tensor;

}  // namespace custom_pypto_sparse_attention
