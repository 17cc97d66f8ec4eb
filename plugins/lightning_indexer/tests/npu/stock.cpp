// CANN's own kernel, simulated: it computes with the CPU kernel. Names are those of the op's IR.
#include <custom_pypto_simulator/aclnn.h>

#include <limits>

CUSTOM_PYPTO_SIM_ACLNN(aclnnLightningIndexer, at::Tensor query, at::Tensor key, at::Tensor weights,
                       std::optional<at::Tensor> actual_seq_lengths_query,
                       std::optional<at::Tensor> actual_seq_lengths_key,
                       std::optional<at::Tensor> block_table, std::string layout_query,
                       std::string layout_key, int64_t sparse_count, int64_t sparse_mode,
                       int64_t pre_tokens, int64_t next_tokens, bool return_values,
                       at::Tensor& sparse_indices, at::Tensor& sparse_values) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  if (pre_tokens != kAll || next_tokens != kAll || return_values || sparse_values.numel() > 1) {
    throw std::invalid_argument("only whole token windows and no values are simulated");
  }
  for (const auto& integers : {actual_seq_lengths_query, actual_seq_lengths_key, block_table}) {
    if (integers && integers->scalar_type() != at::kInt) {
      throw std::invalid_argument("lengths and block_table must be int32");
    }
  }
  sparse_indices.copy_(custom_pypto_simulator::call<at::Tensor>(
      "custom_pypto::npu_lightning_indexer_pto", query, key, weights, actual_seq_lengths_query,
      actual_seq_lengths_key, block_table, layout_query, layout_key, sparse_count, sparse_mode));
}
