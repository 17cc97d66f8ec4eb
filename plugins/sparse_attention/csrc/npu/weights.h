// Weights on NPUs: as matrices, and as aclnnSparseAttentionPto reads them, whose bytes are in
// fractal NZ order.
#pragma once

#include <custom_pypto/npu/storage_format.h>

#include "weight_order.h"

namespace custom_pypto_sparse_attention::npu {

// A matrix [K, N], from a plain one or its fractal NZ order.
Tensor plain_weight(const Tensor& weight);

// Whether nz_weight() takes a weight of whole tiles: torch_npu must keep it plain or in that order.
bool can_be_nz(const Tensor& weight);

// The weight [K, N] in fractal NZ order. The device reorders a plain one, with one warning in a
// process.
custom_pypto::npu::RawTensor nz_weight(const Tensor& weight);

}  // namespace custom_pypto_sparse_attention::npu
