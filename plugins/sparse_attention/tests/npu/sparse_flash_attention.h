// aclnnSparseFlashAttention, simulated: it computes with the CPU kernel. CANN has one, and so have
// the opp packages of vllm-ascend and sgl-kernel-npu, whose kernel also gives the log-sum-exp of
// paged keys. A file defines before it includes this which it has: kHasPagedLse.
#pragma once

#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/need.h>

#include <cmath>
#include <initializer_list>
#include <string>
#include <tuple>

namespace {

using custom_pypto_simulator::call;
using custom_pypto_simulator::kAllTokens;
using custom_pypto_simulator::need;
using custom_pypto_simulator::Optional;

bool is_head_count(int64_t heads) {
  return heads >= 1 && heads <= 128 && (heads & (heads - 1)) == 0;
}

// The limits of both kernels of absorbed attention.
void check_absorbed(std::initializer_list<const at::Tensor*> tensors,
                    std::initializer_list<Optional> integers, const at::Tensor& query,
                    const at::Tensor& key, const at::Tensor& indices, const at::Tensor& query_rope,
                    const at::Tensor& key_rope, const std::string& layout, int64_t mode,
                    int64_t sparse_block_size) {
  need(query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16,
       "query must be FLOAT16 or BFLOAT16");
  for (const at::Tensor* each : tensors) {
    need(each->is_contiguous() && each->numel() > 0, "tensors must be contiguous and not empty");
    need(each->scalar_type() == query.scalar_type(), "the tensors' types must be equal");
  }
  for (const Optional& each : integers) {
    need(!each || (each->scalar_type() == at::kInt && each->is_contiguous() && each->numel() > 0),
         "indices, lengths and block_table must be contiguous, INT32 and not empty");
  }
  need(is_head_count(query.size(-2)), "N1 must be 1, 2, 4, 8, 16, 32, 64 or 128");
  need(query.size(-1) == 512 && key.size(-1) == 512, "D must be 512");
  need(query_rope.size(-1) == 64 && key_rope.size(-1) == 64, "Dr must be 64");
  need(key.size(-2) == 1 && indices.size(-2) == 1, "N2 must be 1");
  need(layout == (query.dim() == 4 ? "BSND" : "TND"), "query is of another layout");
  need(mode == 0 || mode == 3, "sparse_mode must be 0 or 3");
  need(sparse_block_size == 1, "only blocks of one token are simulated");
}

// Each row's valid indices come first.
bool is_valid_first(const at::Tensor& indices) {
  const at::Tensor wide = indices.to(at::kLong);
  const at::Tensor before = wide.slice(-1, 0, wide.size(-1) - 1);
  const at::Tensor after = wide.slice(-1, 1, wide.size(-1));
  return !before.lt(0).logical_and(after.ge(0)).any().item<bool>();
}

}  // namespace

// aclnnSparseFlashAttention.md, the table of parameters and "约束说明", of CANN's ops-transformer,
// for the simulated machine, an Atlas A2.
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
  need(query_rope && key_rope, "absorbed attention needs query_rope and key_rope");
  check_absorbed({&query, &key, &value, &*query_rope, &*key_rope, &attention_out},
                 {sparse_indices, block_table, actual_seq_lengths_query, actual_seq_lengths_kv},
                 query, key, sparse_indices, *query_rope, *key_rope, layout_query, sparse_mode,
                 sparse_block_size);
  need(key.data_ptr() == value.data_ptr(), "key and value must be the one cache");
  const bool is_paged = layout_kv == "PA_BSND";
  need(is_paged || layout_kv == layout_query, "the layouts must be equal");
  need(!is_paged || (key.size(1) % 16 == 0 && key.size(1) <= 1024),
       "block_size must be a multiple of 16 and at most 1024");
  need(is_paged == block_table.has_value(), "block_table goes with PA_BSND");
  need(layout_kv == "BSND" || actual_seq_lengths_kv, "this layout needs actual_seq_lengths_kv");
  need(layout_query == "BSND" || actual_seq_lengths_query, "TND needs actual_seq_lengths_query");
  need(pre_tokens == kAllTokens && next_tokens == kAllTokens, "token windows must be whole");
  need(attention_mode == 2, "attention_mode must be 2");
  need(!return_softmax_lse || !is_paged || kHasPagedLse,
       "return_softmax_lse is for layouts other than PA_BSND");
  for (const at::Tensor* each : {&softmax_max, &softmax_sum}) {
    need(return_softmax_lse ? each->numel() == query.numel() / query.size(-1) : each->numel() <= 1,
         "softmax_max and softmax_sum must have a number for each head, or none");
    need(each->scalar_type() == at::kFloat, "softmax_max and softmax_sum must be FLOAT");
  }
  need(is_valid_first(sparse_indices), "sparse_indices must have their valid values first");
  need(query.dim() == 3 || !actual_seq_lengths_query ||
           actual_seq_lengths_query->le(query.size(1)).all().item<bool>(),
       "actual_seq_lengths_query of BSND must not exceed S1");
  const auto results = call<std::tuple<at::Tensor, at::Tensor>>(
      "custom_pypto::npu_sparse_flash_attention", query, query_rope.value(), key, key_rope.value(),
      sparse_indices, block_table, actual_seq_lengths_kv, scale_value, actual_seq_lengths_query,
      sparse_mode, return_softmax_lse, layout_kv);
  // Rows past the last prefix sum are not written.
  const int64_t rows =
      query.dim() == 4 ? query.size(0) : actual_seq_lengths_query->max().item<int64_t>();
  attention_out.slice(0, 0, rows).copy_(std::get<0>(results).slice(0, 0, rows));
  if (!return_softmax_lse) return;
  const int64_t dim = query.dim() == 4 ? 0 : 1;
  const at::Tensor lse = std::get<1>(results).reshape(softmax_max.sizes()).slice(dim, 0, rows);
  // The sum is of powers of e, the largest of which is 1.
  softmax_sum.slice(dim, 0, rows).fill_(2);
  softmax_max.slice(dim, 0, rows).copy_(lse.sub(std::log(2.0)));
}
