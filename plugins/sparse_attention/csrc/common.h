// What files of all the ops use.
#pragma once

#include <custom_pypto/message.h>
#include <custom_pypto/tensor_ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>

#include "cpu/kernels.h"
#include "ops.h"

namespace custom_pypto_sparse_attention {

using custom_pypto::check;
using custom_pypto::fail;
using custom_pypto::ScalarType;
using custom_pypto::Tensor;
using custom_pypto::to_contiguous;

// How many tokens x [*tokens, H] holds.
inline int64_t token_count(const custom_pypto::Span& tokens) {
  int64_t count = 1;
  for (const int64_t size : tokens) count *= size;
  return count;
}

}  // namespace custom_pypto_sparse_attention
