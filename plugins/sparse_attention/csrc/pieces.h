// The steps between the pieces of npu_sparse_attention_pto, on any device.
#pragma once

#include <custom_pypto/dispatcher.h>

#include <cmath>
#include <optional>

#include "attention.h"
#include "prologs.h"

namespace custom_pypto_sparse_attention {

// The positions [.., 1, 2048] that each token attends to.
inline Tensor select_keys(const ops::npu_sparse_attention_pto::Arguments& a,
                          const IndexerOutputs& index) {
  return call_op<Tensor>("custom_pypto::npu_lightning_indexer_pto", "", index.query_index,
                         a.index_k_cache, index.weights, std::optional<Tensor>(),
                         std::optional<Tensor>(a.act_seqs), std::optional<Tensor>(a.block_table),
                         "BSND", "PA_BSND", ops::TOP_K, kCausal);
}

// The arguments of npu_sparse_flash_attention for these positions. Borrows all four.
class SelectedAttention {
 public:
  SelectedAttention(const ops::npu_sparse_attention_pto::Arguments& a,
                    const ops::npu_sparse_attention_pto::CallShape& s, const MlaOutputs& prolog,
                    const Tensor& selected)
      : block_table_(a.block_table),
        lengths_(a.act_seqs),
        arguments_{prolog.query, prolog.query_rope, a.kv_cache,  a.kr_cache, selected, block_table_,
                   lengths_,     scale_of(s),       all_tokens_, kCausal,    false,    "PA_BSND"} {}
  SelectedAttention(const SelectedAttention&) = delete;
  SelectedAttention& operator=(const SelectedAttention&) = delete;

  const AttentionArguments& arguments() const { return arguments_; }

 private:
  static double scale_of(const ops::npu_sparse_attention_pto::CallShape& s) {
    return 1.0 / std::sqrt(static_cast<double>(s.L + s.R));
  }

  const std::optional<Tensor> block_table_;
  const std::optional<Tensor> lengths_;
  const std::optional<Tensor> all_tokens_;
  const AttentionArguments arguments_;
};

}  // namespace custom_pypto_sparse_attention
