// The four ops: schemas, kernels, registration.
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/plugin.h>

#include <cmath>
#include <optional>
#include <tuple>

#include "attention.h"
#include "indexer_prolog.h"
#include "mla_prolog.h"
#include "npu/fused.h"
#include "npu/kernels.h"

namespace custom_pypto_sparse_attention {
namespace {

// How many keys each query token of the fused op attends to at most.
constexpr int64_t kTopK = 2048;
constexpr int64_t kCausal = 3;

std::tuple<Tensor, Tensor, Tensor> mla_prolog_cpu(const Tensor& x, const Tensor& w_dq,
                                                  const Tensor& w_uq_qr, const Tensor& w_uk,
                                                  const Tensor& w_dkv_kr, const Tensor& gamma_cq,
                                                  const Tensor& gamma_ckv, const Tensor& sin,
                                                  const Tensor& cos, const Tensor& cache_index,
                                                  const Tensor& kv_cache, const Tensor& kr_cache) {
  const MlaProlog prolog("npu_mla_prolog", {x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv,
                                            sin, cos, cache_index, kv_cache, kr_cache});
  MlaOutputs outputs = prolog.run();
  return {outputs.query, outputs.query_rope, outputs.q_norm};
}

std::tuple<Tensor, Tensor, Tensor> mla_prolog_npu(const Tensor& x, const Tensor& w_dq,
                                                  const Tensor& w_uq_qr, const Tensor& w_uk,
                                                  const Tensor& w_dkv_kr, const Tensor& gamma_cq,
                                                  const Tensor& gamma_ckv, const Tensor& sin,
                                                  const Tensor& cos, const Tensor& cache_index,
                                                  const Tensor& kv_cache, const Tensor& kr_cache) {
  MlaOutputs outputs =
      npu::mla_prolog("npu_mla_prolog", {x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv, sin,
                                         cos, cache_index, kv_cache, kr_cache});
  return {outputs.query, outputs.query_rope, outputs.q_norm};
}

void check_query(const char* op, const Tensor& x, const Tensor& q_norm) {
  const Arg tokens(op, "x", x);
  const Arg normed(op, "q_norm", q_norm);
  tokens.rank({2, 3});
  normed.rank(x.dim()).same_dtype(tokens);
  check_like_tokens(normed, tokens, q_norm.size(-1), "");
}

std::tuple<Tensor, Tensor> indexer_prolog_cpu(const Tensor& x, const Tensor& q_norm,
                                              const Tensor& w_idx_qb, const Tensor& w_idx_k,
                                              const Tensor& w_idx_proj, const Tensor& in_gamma_k,
                                              const Tensor& in_beta_k, const Tensor& sin,
                                              const Tensor& cos, const Tensor& cache_index,
                                              const Tensor& index_k_cache) {
  const char* op = "npu_indexer_prolog";
  check_query(op, x, q_norm);
  const IndexerProlog prolog(op,
                             {x, w_idx_qb, w_idx_k, w_idx_proj, in_gamma_k, in_beta_k, sin, cos,
                              cache_index, index_k_cache},
                             q_norm.size(-1));
  IndexerOutputs outputs = prolog.run(dense(q_norm));
  return {outputs.query, outputs.weights};
}

std::tuple<Tensor, Tensor> indexer_prolog_npu(const Tensor& x, const Tensor& q_norm,
                                              const Tensor& w_idx_qb, const Tensor& w_idx_k,
                                              const Tensor& w_idx_proj, const Tensor& in_gamma_k,
                                              const Tensor& in_beta_k, const Tensor& sin,
                                              const Tensor& cos, const Tensor& cache_index,
                                              const Tensor& index_k_cache) {
  const char* op = "npu_indexer_prolog";
  check_query(op, x, q_norm);
  IndexerOutputs outputs = npu::indexer_prolog(op,
                                               {x, w_idx_qb, w_idx_k, w_idx_proj, in_gamma_k,
                                                in_beta_k, sin, cos, cache_index, index_k_cache},
                                               q_norm);
  return {outputs.query, outputs.weights};
}

std::tuple<Tensor, Tensor> sparse_flash_attention_cpu(
    const Tensor& query, const Tensor& query_rope, const Tensor& kv_cache, const Tensor& kr_cache,
    const Tensor& sparse_indices, const Tensor& block_table, const Tensor& actual_seq_lengths_kv,
    double scale, const std::optional<Tensor>& actual_seq_lengths_query, int64_t sparse_mode,
    bool return_softmax_lse) {
  const Attention attention("npu_sparse_flash_attention",
                            {query, query_rope, kv_cache, kr_cache, sparse_indices, block_table,
                             actual_seq_lengths_kv, actual_seq_lengths_query, scale, sparse_mode});
  AttentionOutputs outputs = attention.run(return_softmax_lse);
  return {outputs.out, outputs.log_sum_exp};
}

std::tuple<Tensor, Tensor> sparse_flash_attention_npu(
    const Tensor& query, const Tensor& query_rope, const Tensor& kv_cache, const Tensor& kr_cache,
    const Tensor& sparse_indices, const Tensor& block_table, const Tensor& actual_seq_lengths_kv,
    double scale, const std::optional<Tensor>& actual_seq_lengths_query, int64_t sparse_mode,
    bool return_softmax_lse) {
  const char* op = "npu_sparse_flash_attention";
  check(!return_softmax_lse, op, "return_softmax_lse",
        "must be False on an NPU: aclnnSparseFlashAttention does not return it for a paged cache; "
        "it is there on a CPU");
  const Tensor out =
      npu::attention(op,
                     {query, query_rope, kv_cache, kr_cache, sparse_indices, block_table,
                      actual_seq_lengths_kv, actual_seq_lengths_query, scale, sparse_mode},
                     npu::IndexOrder::any);
  return {out, custom_pypto::empty({0}, ScalarType::Float, query)};
}

Tensor sparse_attention_cpu(const Tensor& x, const Tensor& w_dq, const Tensor& w_uq_qr,
                            const Tensor& w_uk, const Tensor& w_dkv_kr, const Tensor& gamma_cq,
                            const Tensor& gamma_ckv, const Tensor& sin, const Tensor& cos,
                            const Tensor& cache_index, const Tensor& kv_cache,
                            const Tensor& kr_cache, const Tensor& block_table,
                            const Tensor& act_seqs, const Tensor& w_idx_qb, const Tensor& w_idx_k,
                            const Tensor& w_idx_proj, const Tensor& in_gamma_k,
                            const Tensor& in_beta_k, const Tensor& index_k_cache) {
  // All that can be wrong is found before the first cache is written.
  const char* op = "npu_sparse_attention_pto";
  const Arg tokens(op, "x", x);
  tokens.rank(3);
  const MlaProlog mla(op, {x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv, sin, cos,
                           cache_index, kv_cache, kr_cache});
  const IndexerProlog indexer(op,
                              {x, w_idx_qb, w_idx_k, w_idx_proj, in_gamma_k, in_beta_k, sin, cos,
                               cache_index, index_k_cache},
                              mla.query_rank());
  check_same_blocks(Arg(op, "index_k_cache", index_k_cache), Arg(op, "kv_cache", kv_cache));
  const BlockTable table(Arg(op, "block_table", block_table), tokens, x.size(0));
  const std::vector<int64_t> lengths = read_lengths(Arg(op, "act_seqs", act_seqs), tokens,
                                                    x.size(0), table, mla.kv_cache().block_size);
  check_blocks(table, lengths, mla.kv_cache());

  const MlaOutputs prolog = mla.run();
  if (token_count(x) == 0) return prolog.query;
  const IndexerOutputs index = indexer.run(prolog.q_norm);
  const Tensor selected = custom_pypto::call_op<Tensor>(
      "custom_pypto::npu_lightning_indexer_pto", "", index.query, index_k_cache, index.weights,
      std::optional<Tensor>(), std::optional<Tensor>(act_seqs), std::optional<Tensor>(block_table),
      "BSND", "PA_BSND", kTopK, kCausal);
  const double size = static_cast<double>(kv_cache.size(-1) + kr_cache.size(-1));
  const Attention attention(
      op, {prolog.query, prolog.query_rope, kv_cache, kr_cache, selected, block_table, act_seqs,
           std::nullopt, 1.0 / std::sqrt(size), kCausal});
  return attention.run(false).out;
}

Tensor sparse_attention_npu(const Tensor& x, const Tensor& w_dq, const Tensor& w_uq_qr,
                            const Tensor& w_uk, const Tensor& w_dkv_kr, const Tensor& gamma_cq,
                            const Tensor& gamma_ckv, const Tensor& sin, const Tensor& cos,
                            const Tensor& cache_index, const Tensor& kv_cache,
                            const Tensor& kr_cache, const Tensor& block_table,
                            const Tensor& act_seqs, const Tensor& w_idx_qb, const Tensor& w_idx_k,
                            const Tensor& w_idx_proj, const Tensor& in_gamma_k,
                            const Tensor& in_beta_k, const Tensor& index_k_cache) {
  return npu::sparse_attention({x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv, sin, cos,
                                cache_index, kv_cache, kr_cache},
                               {x, w_idx_qb, w_idx_k, w_idx_proj, in_gamma_k, in_beta_k, sin, cos,
                                cache_index, index_k_cache},
                               block_table, act_seqs);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "npu_mla_prolog(Tensor x, Tensor w_dq, Tensor w_uq_qr, Tensor w_uk, Tensor w_dkv_kr, "
          "Tensor gamma_cq, Tensor gamma_ckv, Tensor sin, Tensor cos, Tensor cache_index, "
          "Tensor(a!) kv_cache, Tensor(b!) kr_cache) "
          "-> (Tensor query, Tensor query_rope, Tensor q_norm)"))
      .impl<&mla_prolog_cpu>("CPU")
      .impl<&mla_prolog_npu>("PrivateUse1");
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "npu_indexer_prolog(Tensor x, Tensor q_norm, Tensor w_idx_qb, Tensor w_idx_k, "
          "Tensor w_idx_proj, Tensor in_gamma_k, Tensor in_beta_k, Tensor sin, Tensor cos, "
          "Tensor cache_index, Tensor(a!) index_k_cache) -> (Tensor query_index, Tensor weights)"))
      .impl<&indexer_prolog_cpu>("CPU")
      .impl<&indexer_prolog_npu>("PrivateUse1");
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "npu_sparse_flash_attention(Tensor query, Tensor query_rope, Tensor kv_cache, "
          "Tensor kr_cache, Tensor sparse_indices, Tensor block_table, "
          "Tensor actual_seq_lengths_kv, *, float scale, Tensor? actual_seq_lengths_query=None, "
          "int sparse_mode=3, bool return_softmax_lse=False) -> (Tensor out, Tensor lse)"))
      .impl<&sparse_flash_attention_cpu>("CPU")
      .impl<&sparse_flash_attention_npu>("PrivateUse1");
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "npu_sparse_attention_pto(Tensor x, Tensor w_dq, Tensor w_uq_qr, Tensor w_uk, "
          "Tensor w_dkv_kr, Tensor gamma_cq, Tensor gamma_ckv, Tensor sin, Tensor cos, "
          "Tensor cache_index, Tensor(a!) kv_cache, Tensor(b!) kr_cache, Tensor block_table, "
          "Tensor act_seqs, Tensor w_idx_qb, Tensor w_idx_k, Tensor w_idx_proj, "
          "Tensor in_gamma_k, Tensor in_beta_k, Tensor(c!) index_k_cache) -> Tensor"))
      .impl<&sparse_attention_cpu>("CPU")
      .impl<&sparse_attention_npu>("PrivateUse1");
}

}  // namespace custom_pypto_sparse_attention
