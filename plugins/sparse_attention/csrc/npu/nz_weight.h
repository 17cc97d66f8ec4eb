// Weights as aclnnSparseAttentionPto reads them: matrices [K, N] whose bytes are in fractal NZ
// order.
#pragma once

#include <custom_pypto/npu/raw_tensor.h>

#include "indexer_prolog.h"
#include "mla_prolog.h"

namespace custom_pypto_sparse_attention::npu {

// Whether each of the weights has, or can be brought into, that order: 16-bit dtypes, and multiples
// of 16 columns.
bool have_nz_order(const MlaArguments& mla, const IndexerArguments& indexer);

// A weight that has it, as it is; a plain one brought into it by the device, with one warning in a
// process.
custom_pypto::npu::RawTensor nz_weight(const Tensor& weight);

}  // namespace custom_pypto_sparse_attention::npu
