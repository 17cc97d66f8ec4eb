// How the pieces of npu_sparse_attention_pto follow one another, on whatever device.
#pragma once

#include <custom_pypto/dispatcher.h>

#include <cmath>
#include <optional>

#include "attention.h"
#include "indexer_prolog.h"
#include "mla_prolog.h"

namespace custom_pypto_sparse_attention {

// The sparse_mode in which a token sees what stands before it.
inline constexpr int64_t kCausal = 3;

// The positions [.., 1, 2048] that each token attends to.
inline Tensor select_keys(const ops::npu_sparse_attention_pto::Arguments& a,
                          const IndexerOutputs& index) {
  constexpr int64_t kTopK = 2048;
  return custom_pypto::call_op<Tensor>(
      "custom_pypto::npu_lightning_indexer_pto", "", index.query_index, a.index_k_cache,
      index.weights, std::optional<Tensor>(), std::optional<Tensor>(a.act_seqs),
      std::optional<Tensor>(a.block_table), "BSND", "PA_BSND", kTopK, kCausal);
}

// Attention to them, as npu_sparse_flash_attention is called. Borrows all four.
inline AttentionArguments attention_of(const ops::npu_sparse_attention_pto::Arguments& a,
                                       const ops::npu_sparse_attention_pto::Sizes& s,
                                       const MlaOutputs& prolog, const Tensor& selected) {
  static const std::optional<Tensor> all_tokens;
  const double scale = 1.0 / std::sqrt(static_cast<double>(s.L + s.R));
  return {prolog.query, prolog.query_rope, a.kv_cache, a.kr_cache,
          selected,     a.block_table,     a.act_seqs, scale,
          all_tokens,   kCausal,           false};
}

}  // namespace custom_pypto_sparse_attention
