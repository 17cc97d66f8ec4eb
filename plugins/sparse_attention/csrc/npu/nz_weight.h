// Weights as aclnnSparseAttentionPto reads them: matrices [K, N] whose bytes are in fractal NZ
// order.
#pragma once

#include <custom_pypto/npu/raw_tensor.h>

#include "common.h"

namespace custom_pypto_sparse_attention::npu {

// Whether a weight of whole tiles has, or can be brought into, that order: torch_npu keeps it plain
// or in that very order.
bool can_be_nz(const Tensor& weight);

// A weight that has it, as it is; a plain one brought into it by the device, with one warning in a
// process.
custom_pypto::npu::RawTensor nz_weight(const Tensor& weight);

}  // namespace custom_pypto_sparse_attention::npu
