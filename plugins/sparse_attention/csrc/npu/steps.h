// Steps that both composed prologs take, beside those of core.
#pragma once

#include "common.h"

namespace custom_pypto_sparse_attention::npu {

// rows [tokens, ..] with the leading dimensions of x [.., H] in place of the first; contiguous.
Tensor like_tokens(const Tensor& x, const Tensor& rows);

// [K, N] of a plain matrix or of its fractal NZ order.
Tensor plain_weight(const Tensor& weight);

}  // namespace custom_pypto_sparse_attention::npu
