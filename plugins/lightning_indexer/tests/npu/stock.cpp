// CANN's own kernel, simulated: it computes with the CPU kernel. Names are those of the op's IR.
#include <custom_pypto_simulator/aclnn.h>

#include <initializer_list>
#include <limits>
#include <string>
#include <tuple>

namespace {

void need(bool condition, const std::string& what) {
  if (!condition) throw std::invalid_argument(what);
}

// What aclnnLightningIndexer.md ("约束说明" and the table of parameters) of CANN's ops-transformer
// allows on the simulated machine, an Atlas A2. Empty tensors are in no list of what it takes.
struct Limits {
  uint64_t operator()(const at::Tensor& query, const at::Tensor& key, const at::Tensor& weights,
                      const std::optional<at::Tensor>& query_lengths,
                      const std::optional<at::Tensor>& key_lengths,
                      const std::optional<at::Tensor>& block_table, const std::string& layout_query,
                      const std::string& layout_key, int64_t count, int64_t mode,
                      int64_t pre_tokens, int64_t next_tokens, bool return_values,
                      const at::Tensor& indices, const at::Tensor& values) const {
    constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
    const bool is_paged = layout_key == "PA_BSND";
    for (const at::Tensor* each : {&query, &key, &weights, &indices}) {
      need(each->is_contiguous() && each->numel() > 0, "tensors must be contiguous and not empty");
    }
    for (const auto* each : {&query_lengths, &key_lengths, &block_table}) {
      need(!*each || ((*each)->scalar_type() == at::kInt && (*each)->is_contiguous()),
           "lengths and block_table must be contiguous and int32");
    }
    need(query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16,
         "query must be FLOAT16 or BFLOAT16");
    need(key.scalar_type() == query.scalar_type(), "key must have query's type");
    need(weights.scalar_type() == at::kFloat || weights.scalar_type() == query.scalar_type(),
         "weights must have query's type, or be FLOAT");
    need(query.size(-2) <= 64, "N1 must be at most 64");
    need(key.size(-2) == 1, "N2 must be 1");
    need(query.size(-1) == 128 && key.size(-1) == 128, "D must be 128");
    need(query.dim() == (layout_query == "BSND" ? 4 : 3), "query is of another layout");
    need(is_paged || layout_key == layout_query, "the layouts must be equal");
    need(is_paged == block_table.has_value(), "block_table goes with PA_BSND");
    if (is_paged) {
      need(key.size(1) % 16 == 0 && key.size(1) <= 1024,
           "block_size must be a multiple of 16 and at most 1024");
    }
    need(layout_query == "BSND" || query_lengths, "TND needs actual_seq_lengths_query");
    need(layout_key == "BSND" || key_lengths, "this layout needs actual_seq_lengths_key");
    need((count >= 1 && count <= 2048) || (count % 1024 == 0 && count <= 8192),
         "sparse_count must be in [1, 2048], or 3072, 4096, 5120, 6144, 7168 or 8192");
    need(mode == 0 || mode == 3, "sparse_mode must be 0 or 3");
    need(pre_tokens == kAll && next_tokens == kAll, "token windows must be whole");
    need(!return_values && values.numel() <= 1, "no values are simulated");
    return 0;
  }
};
constexpr Limits limits;

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnLightningIndexer, limits, at::Tensor query, at::Tensor key,
                               at::Tensor weights,
                               std::optional<at::Tensor> actual_seq_lengths_query,
                               std::optional<at::Tensor> actual_seq_lengths_key,
                               std::optional<at::Tensor> block_table, std::string layout_query,
                               std::string layout_key, int64_t sparse_count, int64_t sparse_mode,
                               int64_t pre_tokens, int64_t next_tokens, bool return_values,
                               at::Tensor& sparse_indices, at::Tensor& sparse_values) {
  // What phase 1 alone looks at.
  std::ignore = std::tie(pre_tokens, next_tokens, return_values, sparse_values);
  need(layout_query == "TND" || !actual_seq_lengths_query ||
           actual_seq_lengths_query->le(query.size(1)).all().item<bool>(),
       "actual_seq_lengths_query of BSND must not exceed S1");
  sparse_indices.copy_(custom_pypto_simulator::call<at::Tensor>(
      "custom_pypto::npu_lightning_indexer_pto", query, key, weights, actual_seq_lengths_query,
      actual_seq_lengths_key, block_table, layout_query, layout_key, sparse_count, sparse_mode));
}
