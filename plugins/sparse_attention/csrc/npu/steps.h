// Steps that both composed prologs take.
#pragma once

#include "common.h"

namespace custom_pypto_sparse_attention::npu {

// [tokens, size] of x [.., size].
Tensor as_rows(const Tensor& x);

// rows [tokens, ..] with the leading dimensions of x [.., H] in place of the first; contiguous.
Tensor like_tokens(const Tensor& x, const Tensor& rows);

// [K, N] of a plain matrix or of its fractal NZ order.
Tensor plain_weight(const Tensor& weight);

// Rotates x [tokens, heads, R] by sin and cos [tokens, R], in fp32: even dims come first, then odd
// ones. In x's dtype.
Tensor rope(const Tensor& x, const Tensor& sin, const Tensor& cos);

// cache[slot / block_size, slot % block_size, 0] = row, for each of the rows [tokens, size].
void scatter(const Tensor& cache, const Tensor& slots, const Tensor& rows);

}  // namespace custom_pypto_sparse_attention::npu
