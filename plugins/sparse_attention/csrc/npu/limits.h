// What CANN's own kernels can be given. limits.py says the same for graphs.
#pragma once

#include "mla_prolog.h"

namespace custom_pypto_sparse_attention::npu {

// Whether the sizes and dtypes are those that aclnnMlaPrologV3WeightNz is made for.
bool fits_mla_prolog(const MlaArguments& arguments, const MlaShapes& shapes);

// Throws std::runtime_error, naming the argument, the limit and the way out, for what
// aclnnSparseFlashAttention cannot be given. `holder` is the argument that has the heads.
void check_attention_limits(const Arg& holder, int64_t heads, const Arg& kv_cache,
                            const Arg& kr_cache);

// The same for aclnnLightningIndexer, of what npu_sparse_attention_pto can give it that
// check_attention_limits has let through: `holder` is the argument that has the indexer's heads.
void check_indexer_limits(const Arg& holder, int64_t heads, const Arg& index_k_cache);

}  // namespace custom_pypto_sparse_attention::npu
