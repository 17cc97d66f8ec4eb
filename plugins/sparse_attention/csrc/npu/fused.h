#pragma once

#include "indexer_prolog.h"
#include "mla_prolog.h"

namespace custom_pypto_sparse_attention::npu {

// npu_sparse_attention_pto: by a custom package's aclnnSparseAttentionPto if the caches are
// contiguous and NZ order can hold the weights, else by the ops it is made of. Queues its work and
// waits for nothing.
Tensor sparse_attention(const MlaArguments& mla, const IndexerArguments& indexer,
                        const Tensor& block_table, const Tensor& act_seqs);

}  // namespace custom_pypto_sparse_attention::npu
