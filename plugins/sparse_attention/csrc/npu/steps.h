// Steps that both composed prologs take, beside those of core.
#pragma once

#include <custom_pypto/npu/prolog_steps.h>

#include "common.h"

namespace custom_pypto_sparse_attention::npu {

using custom_pypto::npu::as_rows;
using custom_pypto::npu::rope;
using custom_pypto::npu::rope_first;
using custom_pypto::npu::scatter;

// rows [tokens, ..] with the leading dimensions of x [.., H] in place of the first; contiguous.
Tensor like_tokens(const Tensor& x, const Tensor& rows);

// [K, N] of a plain matrix or of its fractal NZ order.
Tensor plain_weight(const Tensor& weight);

}  // namespace custom_pypto_sparse_attention::npu
