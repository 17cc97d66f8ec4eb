// The ops on an NPU. They queue their work and do not wait for it; the values of lengths, slots,
// block_table and indices are not checked.
#pragma once

#include "attention.h"
#include "prologs.h"

namespace custom_pypto_sparse_attention::npu {

// Launches CANN's aclnnMlaPrologV3WeightNz if the weights are in NZ format and it takes the sizes,
// else stock torch ops. Errors begin with `op`.
MlaOutputs mla_prolog(const char* op, const ops::mla::Arguments& arguments,
                      const ops::mla::CallShape& sizes);

// Launches stock torch ops.
IndexerOutputs indexer_prolog(const char* op, const ops::indexer::Arguments& arguments,
                              const ops::indexer::CallShape& sizes, const Tensor& q_norm);

// Launches CANN's aclnnSparseFlashAttention.
void attention(const AttentionArguments& arguments, const AttentionSizes& sizes,
               const ops::npu_sparse_flash_attention::Outputs& outputs);

// The same for another op, which has checked the kernel's limits. Each token's -1 are the last of
// its indices. Fills `out`.
void selected_attention(const AttentionArguments& arguments, const Tensor& out);

// Launches CANN's aclnnSparseFlashAttentionGrad.
void attention_grad(const ops::npu_sparse_flash_attention_grad::Arguments& arguments,
                    const ops::npu_sparse_flash_attention_grad::CallShape& sizes,
                    const ops::npu_sparse_flash_attention_grad::Outputs& outputs);

// Launches a custom package's aclnnSparseAttentionPto if the caches are contiguous and NZ order can
// hold the weights, else the ops that it consists of.
void sparse_attention(const ops::npu_sparse_attention_pto::Arguments& arguments,
                      const ops::npu_sparse_attention_pto::CallShape& sizes,
                      const ops::npu_sparse_attention_pto::Outputs& outputs);

}  // namespace custom_pypto_sparse_attention::npu
