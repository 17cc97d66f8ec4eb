// The ops on an NPU. They queue their work and wait for nothing: what the values of lengths, slots,
// block_table and indices are is not checked. Arguments are checked as far as shapes go.
#pragma once

#include <optional>
#include <tuple>

#include "attention.h"
#include "indexer_prolog.h"
#include "mla_prolog.h"

namespace custom_pypto_sparse_attention::npu {

// By CANN's aclnnMlaPrologV3WeightNz where the weights are in NZ format, else by stock torch ops.
MlaOutputs mla_prolog(const char* op, const MlaArguments& arguments);

// By stock torch ops.
IndexerOutputs indexer_prolog(const char* op, const IndexerArguments& arguments,
                              const Tensor& q_norm);

// By CANN's aclnnSparseFlashAttention.
AttentionOutputs attention(const char* op, const AttentionArguments& arguments,
                           bool with_log_sum_exp);

}  // namespace custom_pypto_sparse_attention::npu
