// CANN's own kernels, simulated: they compute with the CPU kernels. The ops' IR has these names.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/need.h>

#include <initializer_list>
#include <string>
#include <tuple>

namespace {

using custom_pypto_simulator::call_into;
using custom_pypto_simulator::kAllTokens;
using custom_pypto_simulator::need;
using custom_pypto_simulator::Optional;

// The limits of every version. None documents empty tensors.
void check_common(std::initializer_list<const at::Tensor*> tensors, const at::Tensor& query,
                  const at::Tensor& key, std::initializer_list<const Optional*> integers,
                  const std::string& layout_query, const std::string& layout_key, bool is_paged,
                  int64_t mode) {
  for (const at::Tensor* each : tensors) {
    need(each->is_contiguous() && each->numel() > 0, "tensors must be contiguous and not empty");
  }
  for (const Optional* each : integers) {
    need(!*each || ((*each)->scalar_type() == at::kInt && (*each)->is_contiguous()),
         "lengths and block_table must be contiguous and int32");
  }
  need(key.scalar_type() == query.scalar_type(), "key must have query's type");
  need(query.size(-2) <= 64 && key.size(-2) == 1, "N1 must be at most 64, and N2 1");
  need(query.size(-1) == 128 && key.size(-1) == 128, "D must be 128");
  need(query.dim() == (layout_query == "BSND" ? 4 : 3), "query is of another layout");
  need(is_paged || layout_key == layout_query, "the layouts must be equal");
  need(!is_paged || (key.size(1) % 16 == 0 && key.size(1) <= 1024),
       "block_size must be a multiple of 16 and at most 1024");
  need(mode == 0 || mode == 3, "the mode of the mask must be 0 or 3");
}

// The limits of the first version on the simulated machine, an Atlas A2.
void check_v1(std::initializer_list<const at::Tensor*> tensors, const at::Tensor& query,
              const at::Tensor& key, const Optional& query_lengths, const Optional& key_lengths,
              const Optional& block_table, const std::string& layout_query,
              const std::string& layout_key, int64_t mode, int64_t pre_tokens,
              int64_t next_tokens) {
  const bool is_paged = layout_key == "PA_BSND";
  check_common(tensors, query, key, {&query_lengths, &key_lengths, &block_table}, layout_query,
               layout_key, is_paged, mode);
  need(is_paged == block_table.has_value(), "block_table goes with PA_BSND");
  need(layout_query == "BSND" || query_lengths, "TND needs actual_seq_lengths_query");
  need(layout_query == "TND" || !query_lengths ||
           query_lengths->le(query.size(1)).all().item<bool>(),
       "actual_seq_lengths_query of BSND must not exceed S1");
  need(layout_key == "BSND" || key_lengths, "this layout needs actual_seq_lengths_key");
  need(pre_tokens == kAllTokens && next_tokens == kAllTokens, "token windows must be whole");
}

// The rows that a kernel writes: of TND queries, those up to the last prefix sum.
at::Tensor written(const at::Tensor& rows, const Optional& query_lengths,
                   const std::string& layout_query) {
  return layout_query == "BSND" ? rows : rows.slice(0, 0, query_lengths->max().item<int64_t>());
}

}  // namespace

// The limits in aclnnLightningIndexer.md ("约束说明" and the table of parameters) of CANN's
// ops-transformer.
CUSTOM_PYPTO_SIM_ACLNN(aclnnLightningIndexer, at::Tensor query, at::Tensor key, at::Tensor weights,
                       Optional actual_seq_lengths_query, Optional actual_seq_lengths_key,
                       Optional block_table, std::string layout_query, std::string layout_key,
                       int64_t sparse_count, int64_t sparse_mode, int64_t pre_tokens,
                       int64_t next_tokens, bool return_values, at::Tensor& sparse_indices,
                       at::Tensor& sparse_values) {
  check_v1({&query, &key, &weights, &sparse_indices}, query, key, actual_seq_lengths_query,
           actual_seq_lengths_key, block_table, layout_query, layout_key, sparse_mode, pre_tokens,
           next_tokens);
  need(query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16,
       "query must be FLOAT16 or BFLOAT16");
  need(weights.scalar_type() == at::kFloat || weights.scalar_type() == query.scalar_type(),
       "weights must have query's type, or be FLOAT");
  need((sparse_count >= 1 && sparse_count <= 2048) ||
           (sparse_count % 1024 == 0 && sparse_count <= 8192),
       "sparse_count must be in [1, 2048], or 3072, 4096, 5120, 6144, 7168 or 8192");
  need(!return_values || layout_key != "PA_BSND",
       "return_values is for layouts other than PA_BSND");
  need(return_values ? sparse_values.numel() == sparse_indices.numel() : sparse_values.numel() <= 1,
       "values must be as many as indices, or none");
  need(!return_values || sparse_values.scalar_type() == query.scalar_type(),
       "values must have query's type");
  const auto found = custom_pypto_simulator::call<std::tuple<at::Tensor, at::Tensor>>(
      "custom_pypto::npu_lightning_indexer", query, key, weights, actual_seq_lengths_query,
      actual_seq_lengths_key, block_table, layout_query, layout_key, sparse_count, sparse_mode,
      pre_tokens, next_tokens, return_values);
  const auto rows = [&](const at::Tensor& each) {
    return written(each, actual_seq_lengths_query, layout_query);
  };
  rows(sparse_indices).copy_(rows(std::get<0>(found)));
  if (return_values) rows(sparse_values).copy_(rows(std::get<1>(found)));
}

// aclnnLightningIndexerGrad.md, the table of parameters and the constraints, of CANN's
// ops-transformer; its bounds of S1, S2 and B are for sizes that no test has.
CUSTOM_PYPTO_SIM_ACLNN(aclnnLightningIndexerGrad, at::Tensor query, at::Tensor key, at::Tensor dy,
                       at::Tensor sparse_indices, at::Tensor weights,
                       Optional actual_seq_lengths_query, Optional actual_seq_lengths_key,
                       int64_t headNum, std::string layout, int64_t sparseMode, int64_t preTokens,
                       int64_t nextTokens, bool determinstic, at::Tensor& dq, at::Tensor& dk,
                       at::Tensor& dweights) {
  // They select nothing here.
  std::ignore = std::tie(headNum, preTokens, nextTokens, determinstic);
  need(query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16,
       "query must be FLOAT16 or BFLOAT16");
  const std::initializer_list<const at::Tensor*> tensors = {&query, &key, &dy,      &weights,
                                                            &dq,    &dk,  &dweights};
  const Optional indices = sparse_indices;
  check_common(tensors, query, key, {&indices, &actual_seq_lengths_query, &actual_seq_lengths_key},
               layout, layout, false, sparseMode);
  for (const at::Tensor* each : tensors) {
    need(each->scalar_type() == query.scalar_type(), "the tensors' types must be equal");
  }
  for (const Optional* each : {&actual_seq_lengths_query, &actual_seq_lengths_key}) {
    need(each->has_value() == (layout == "TND"), "lengths go with TND");
  }
  need(query.size(-2) == 64 && sparse_indices.size(-1) == 2048, "N1 must be 64, and TopK 2048");
  call_into(std::tie(dq, dk, dweights), "custom_pypto::npu_lightning_indexer_grad", query, key, dy,
            sparse_indices, weights, actual_seq_lengths_query, actual_seq_lengths_key, layout,
            sparseMode, kAllTokens, kAllTokens);
}

// The limits in torch_npu-npu_quant_lightning_indexer.md ("约束说明" and the parameters) of
// op-plugin.
CUSTOM_PYPTO_SIM_ACLNN(aclnnQuantLightningIndexer, at::Tensor query, at::Tensor key,
                       at::Tensor weights, at::Tensor query_dequant_scale,
                       at::Tensor key_dequant_scale, Optional actual_seq_lengths_query,
                       Optional actual_seq_lengths_key, Optional block_table,
                       int64_t query_quant_mode, int64_t key_quant_mode, std::string layout_query,
                       std::string layout_key, int64_t sparse_count, int64_t sparse_mode,
                       int64_t pre_tokens, int64_t next_tokens, at::Tensor& sparse_indices) {
  check_v1({&query, &key, &weights, &query_dequant_scale, &key_dequant_scale, &sparse_indices},
           query, key, actual_seq_lengths_query, actual_seq_lengths_key, block_table, layout_query,
           layout_key, sparse_mode, pre_tokens, next_tokens);
  need(query.scalar_type() == at::kChar, "query must be INT8");
  for (const at::Tensor* each : {&weights, &query_dequant_scale, &key_dequant_scale}) {
    need(each->scalar_type() == at::kHalf, "weights and scales must be FLOAT16");
  }
  need(query_dequant_scale.sizes() == weights.sizes(),
       "query_dequant_scale must have a scale a head");
  need(key_dequant_scale.sizes() == key.sizes().slice(0, key.dim() - 1),
       "key_dequant_scale must have a scale a key");
  need(query_quant_mode == 0 && key_quant_mode == 0, "the quant modes must be 0");
  need(sparse_count >= 1 && sparse_count <= 2048, "sparse_count must be in [1, 2048]");
  const std::optional<int64_t> none;
  const at::Tensor found = custom_pypto_simulator::call<at::Tensor>(
      "custom_pypto::npu_quant_lightning_indexer", query, key, weights, query_dequant_scale,
      key_dequant_scale, query_quant_mode, key_quant_mode, actual_seq_lengths_query,
      actual_seq_lengths_key, block_table, layout_query, layout_key, sparse_count, sparse_mode,
      pre_tokens, next_tokens, none, none);
  written(sparse_indices, actual_seq_lengths_query, layout_query)
      .copy_(written(found, actual_seq_lengths_query, layout_query));
}

namespace {

// The limits of the second version on any machine: "约束说明" of torchapi_lightning_indexer.md and
// torchapi_quant_lightning_indexer.md of CANN's ops-transformer.
void check_v2(std::initializer_list<const at::Tensor*> tensors, const at::Tensor& q,
              const at::Tensor& k, std::initializer_list<const Optional*> integers, int64_t topk,
              const std::string& layout_q, const std::string& layout_k, int64_t mask_mode,
              int64_t cmp_ratio, int64_t return_value, const at::Tensor& indices,
              const at::Tensor& values) {
  const bool is_paged = layout_k == "PA_BBND";
  check_common(tensors, q, k, integers, layout_q, layout_k, is_paged, mask_mode);
  const auto given = [&](int index) { return (*(integers.begin() + index))->has_value(); };
  need(given(0) == (layout_q == "TND"), "cu_seqlens_q goes with TND");
  need(given(1) == (layout_k == "TND"), "cu_seqlens_k goes with TND");
  need(given(3) || !is_paged, "PA_BBND needs seqused_k");
  need(cmp_ratio >= 1 && cmp_ratio <= 128, "cmp_ratio must be in [1, 128]");
  need(given(4) == (mask_mode == 3 && cmp_ratio > 1), "cmp_residual_k goes with compression");
  need(given(5) == is_paged, "block_table goes with PA_BBND");
  need(topk >= 1 && topk <= 8192, "topk must be in [1, 8192]");
  need(values.numel() == (return_value == 0 ? 0 : indices.numel()),
       "values must be as many as indices, or none");
}

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN(aclnnLightningIndexerV2, at::Tensor q, at::Tensor k, at::Tensor w,
                       Optional cu_seqlens_q, Optional cu_seqlens_k, Optional seqused_q,
                       Optional seqused_k, Optional cmp_residual_k, Optional block_table,
                       Optional output_idx_offset, Optional metadata, int64_t topk,
                       int64_t max_seqlen_q, std::string layout_q, std::string layout_k,
                       int64_t mask_mode, int64_t cmp_ratio, int64_t return_value,
                       at::Tensor& sparse_indices, at::Tensor& sparse_values) {
  check_v2({&q, &k, &w, &sparse_indices}, q, k,
           {&cu_seqlens_q, &cu_seqlens_k, &seqused_q, &seqused_k, &cmp_residual_k, &block_table,
            &output_idx_offset, &metadata},
           topk, layout_q, layout_k, mask_mode, cmp_ratio, return_value, sparse_indices,
           sparse_values);
  need(q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16,
       "q must be FLOAT16 or BFLOAT16");
  need(w.scalar_type() == at::kFloat && sparse_values.scalar_type() == at::kFloat,
       "w and values must be FLOAT");
  call_into(std::tie(sparse_indices, sparse_values), "custom_pypto::npu_lightning_indexer_v2", q, k,
            w, topk, cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k, cmp_residual_k, block_table,
            output_idx_offset, metadata, max_seqlen_q, layout_q, layout_k, mask_mode, cmp_ratio,
            return_value);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnQuantLightningIndexerV2, at::Tensor q, at::Tensor k, at::Tensor w,
                       at::Tensor q_descale, at::Tensor k_descale, Optional cu_seqlens_q,
                       Optional cu_seqlens_k, Optional seqused_q, Optional seqused_k,
                       Optional cmp_residual_k, Optional block_table, Optional output_idx_offset,
                       Optional metadata, int64_t topk, int64_t quant_mode, int64_t max_seqlen_q,
                       std::string layout_q, std::string layout_k, int64_t mask_mode,
                       int64_t cmp_ratio, int64_t return_value, at::Tensor& sparse_indices,
                       at::Tensor& sparse_values) {
  check_v2({&q, &k, &w, &q_descale, &k_descale, &sparse_indices}, q, k,
           {&cu_seqlens_q, &cu_seqlens_k, &seqused_q, &seqused_k, &cmp_residual_k, &block_table,
            &output_idx_offset, &metadata},
           topk, layout_q, layout_k, mask_mode, cmp_ratio, return_value, sparse_indices,
           sparse_values);
  need(quant_mode == 2 && q.scalar_type() == at::kChar, "q must be INT8, with quant_mode 2");
  for (const at::Tensor* each : {&w, &q_descale, &k_descale}) {
    need(each->scalar_type() == at::kHalf, "w and scales must be FLOAT16");
  }
  need(sparse_values.scalar_type() == at::kBFloat16, "values must be BFLOAT16");
  call_into(std::tie(sparse_indices, sparse_values), "custom_pypto::npu_quant_lightning_indexer_v2",
            q, k, w, q_descale, k_descale, topk, quant_mode, cu_seqlens_q, cu_seqlens_k, seqused_q,
            seqused_k, cmp_residual_k, block_table, output_idx_offset, metadata, max_seqlen_q,
            layout_q, layout_k, mask_mode, cmp_ratio, return_value);
}
