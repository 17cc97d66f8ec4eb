// The ops on an NPU. They queue their work and wait for nothing: what the values of lengths, slots,
// block_table and indices are is not checked.
#pragma once

#include "attention.h"
#include "prologs.h"

namespace custom_pypto_sparse_attention::npu {

// By CANN's aclnnMlaPrologV3WeightNz where the weights are in NZ format and it takes the sizes,
// else by stock torch ops. Errors begin with `op`.
MlaOutputs mla_prolog(const char* op, const ops::mla::Arguments& arguments,
                      const ops::mla::Sizes& sizes);

// By stock torch ops.
IndexerOutputs indexer_prolog(const char* op, const ops::indexer::Arguments& arguments,
                              const ops::indexer::Sizes& sizes, const Tensor& q_norm);

// By CANN's aclnnSparseFlashAttention.
void attention(const AttentionArguments& arguments, const AttentionSizes& sizes,
               const ops::npu_sparse_flash_attention::Outputs& outputs);

// The same for another op, which has checked the limits of the kernel, with each token's -1 last
// among its indices. Fills `out`.
void selected_attention(const AttentionArguments& arguments, const Tensor& out);

// By CANN's aclnnSparseFlashAttentionGrad.
void attention_grad(const ops::npu_sparse_flash_attention_grad::Arguments& arguments,
                    const ops::npu_sparse_flash_attention_grad::Sizes& sizes,
                    const ops::npu_sparse_flash_attention_grad::Outputs& outputs);

// By a custom package's aclnnSparseAttentionPto if the caches are contiguous and NZ order can hold
// the weights, else by the ops it is made of.
void sparse_attention(const ops::npu_sparse_attention_pto::Arguments& arguments,
                      const ops::npu_sparse_attention_pto::Sizes& sizes,
                      const ops::npu_sparse_attention_pto::Outputs& outputs);

}  // namespace custom_pypto_sparse_attention::npu
