// The ops on an NPU. They queue their work and wait for nothing: what the values of lengths, slots,
// block_table and indices are is not checked. Arguments are checked as far as shapes go.
#pragma once

#include <optional>
#include <tuple>

#include "attention.h"
#include "indexer_prolog.h"
#include "mla_prolog.h"

namespace custom_pypto_sparse_attention::npu {

// By CANN's aclnnMlaPrologV3WeightNz where the weights are in NZ format and it takes the sizes,
// else by stock torch ops.
MlaOutputs mla_prolog(const char* op, const MlaArguments& arguments);

// By stock torch ops.
IndexerOutputs indexer_prolog(const char* op, const IndexerArguments& arguments,
                              const Tensor& q_norm);

// Where -1 may stand among a token's indices. CANN's kernel wants all of them last.
enum class IndexOrder { last, any };

// By CANN's aclnnSparseFlashAttention. It has no log-sum-exp to give for a paged cache.
Tensor attention(const char* op, const AttentionArguments& arguments, IndexOrder order);

}  // namespace custom_pypto_sparse_attention::npu
