// Kernels that CANN ships and the plugins fall back to, computed by the CPU kernels. The
// parameters' names are the graph engine's names of inputs, outputs and attributes.
#include <ATen/ATen.h>
#include <custom_pypto_simulator/aclnn.h>

#include <cstdint>
#include <limits>

namespace {

constexpr int64_t kAllTokens = std::numeric_limits<int64_t>::max();

void check_windows(int64_t pre_tokens, int64_t next_tokens) {
  TORCH_CHECK(pre_tokens == kAllTokens && next_tokens == kAllTokens, "token windows");
}

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN(aclnnLightningIndexer, at::Tensor query, at::Tensor key, at::Tensor weights,
                       std::optional<at::Tensor> actual_seq_lengths_query,
                       std::optional<at::Tensor> actual_seq_lengths_key,
                       std::optional<at::Tensor> block_table, std::string layout_query,
                       std::string layout_key, int64_t sparse_count, int64_t sparse_mode,
                       int64_t pre_tokens, int64_t next_tokens, bool return_values,
                       at::Tensor& sparse_indices, at::Tensor& sparse_values) {
  check_windows(pre_tokens, next_tokens);
  TORCH_CHECK(!return_values && sparse_values.numel() == 0, "values are not asked for");
  for (const auto& integers : {actual_seq_lengths_query, actual_seq_lengths_key, block_table}) {
    TORCH_CHECK(!integers || integers->scalar_type() == at::kInt, "CANN takes int32 alone");
  }
  TORCH_CHECK(query.is_contiguous() && weights.is_contiguous(), "CANN takes dense tensors alone");
  sparse_indices.copy_(custom_pypto_simulator::call<at::Tensor>(
      "custom_pypto::npu_lightning_indexer_pto", query, key, weights, actual_seq_lengths_query,
      actual_seq_lengths_key, block_table, layout_query, layout_key, sparse_count, sparse_mode));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnSparseFlashAttention, at::Tensor query, at::Tensor key,
                       at::Tensor value, at::Tensor sparse_indices,
                       std::optional<at::Tensor> block_table,
                       std::optional<at::Tensor> actual_seq_lengths_query,
                       std::optional<at::Tensor> actual_seq_lengths_kv,
                       std::optional<at::Tensor> query_rope, std::optional<at::Tensor> key_rope,
                       double scale_value, int64_t sparse_block_size, std::string layout_query,
                       std::string layout_kv, int64_t sparse_mode, int64_t pre_tokens,
                       int64_t next_tokens, int64_t attention_mode, bool return_softmax_lse,
                       at::Tensor& attention_out, at::Tensor& softmax_max,
                       at::Tensor& softmax_sum) {
  check_windows(pre_tokens, next_tokens);
  TORCH_CHECK(key.data_ptr() == value.data_ptr(), "key and value are one cache");
  TORCH_CHECK(sparse_block_size == 1 && layout_kv == "PA_BSND" && attention_mode == 2);
  TORCH_CHECK(layout_query == (query.dim() == 4 ? "BSND" : "TND"), "layout_query");
  TORCH_CHECK(sparse_indices.scalar_type() == at::kInt && block_table->scalar_type() == at::kInt);
  const auto [out, log_sum_exp] = custom_pypto_simulator::call<std::tuple<at::Tensor, at::Tensor>>(
      "custom_pypto::npu_sparse_flash_attention", query, *query_rope, key, *key_rope,
      sparse_indices, *block_table, *actual_seq_lengths_kv, scale_value, actual_seq_lengths_query,
      sparse_mode, return_softmax_lse);
  attention_out.copy_(out);
  if (return_softmax_lse) {
    softmax_max.copy_(log_sum_exp.reshape(softmax_max.sizes()));
    softmax_sum.fill_(1);
  }
}
