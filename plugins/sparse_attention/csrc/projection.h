// Weights in any of their orders, and the products with them by this plugin's kernels.
#pragma once

#include <custom_pypto/projection.h>

#include "common.h"

namespace custom_pypto_sparse_attention {

using custom_pypto::as_const;
using custom_pypto::ConstRows;
using custom_pypto::Rows;
using custom_pypto::Weight;

// Of a matrix [depth, columns], which may be declared to hold fractal NZ bytes, or of that order
// [columns / 16, depth, 16].
Weight weight_of(const Tensor& weight);

// The kernel of products of this dtype, accumulated in fp32 and rounded to it.
inline const custom_pypto::cpu::MatmulKernel& matmul(Element element) {
  return kernels().matmul[static_cast<int>(element)];
}

}  // namespace custom_pypto_sparse_attention
