#include "npu/fused.h"

#include <custom_pypto/dispatcher.h>
#include <custom_pypto/npu/launch.h>

#include <cmath>
#include <optional>
#include <variant>
#include <vector>

#include "npu/kernels.h"
#include "npu/limits.h"
#include "npu/nz_weight.h"
#include "npu/tensors.h"

namespace custom_pypto_sparse_attention::npu {
namespace {

using custom_pypto::npu::Kernel;
using custom_pypto::npu::KernelChoice;
using custom_pypto::npu::launch;
using custom_pypto::npu::RawTensor;

constexpr const char* kOp = "npu_sparse_attention_pto";
// How many keys each query token attends to at most.
constexpr int64_t kTopK = 2048;
constexpr int64_t kCausal = 3;

const KernelChoice fused(kOp, {"aclnnSparseAttentionPto"});
// What npu_lightning_indexer_pto and attention() will launch, as far as limits depend on it.
const KernelChoice indexer(kOp, {"aclnnLightningIndexerPto", "aclnnLightningIndexer"});
const KernelChoice attender(kOp, {"aclnnSparseFlashAttention"});

void check_table(const Arg& x, const Tensor& block_table, const Tensor& act_seqs) {
  const int64_t sequences = x.tensor().size(0);
  Arg(kOp, "block_table", block_table)
      .rank(2)
      .same_device(x)
      .dtype({ScalarType::Int, ScalarType::Long})
      .size(0, sequences, "the number of sequences");
  Arg(kOp, "act_seqs", act_seqs)
      .rank(1)
      .same_device(x)
      .dtype({ScalarType::Int, ScalarType::Long})
      .size(0, sequences, "the number of sequences");
}

// All that the pieces refuse and all that the machine lacks, before any of them writes a cache.
void check_pieces(const MlaArguments& m, const IndexerArguments& i, const IndexerShapes& shapes) {
  attender.get();
  check_attention_limits(Arg(kOp, "w_uk", m.w_uk), m.w_uk.size(0), Arg(kOp, "kv_cache", m.kv_cache),
                         Arg(kOp, "kr_cache", m.kr_cache));
  if (indexer.get().is("aclnnLightningIndexerPto")) return;
  check_indexer_limits(Arg(kOp, "w_idx_proj", i.w_idx_proj), shapes.heads,
                       Arg(kOp, "index_k_cache", i.index_k_cache));
}

Tensor compose(const MlaArguments& m, const IndexerArguments& i, const IndexerShapes& shapes,
               const Tensor& block_table, const Tensor& act_seqs) {
  check_pieces(m, i, shapes);
  const MlaOutputs prolog = mla_prolog(kOp, m);
  const IndexerOutputs index = indexer_prolog(kOp, i, prolog.q_norm);
  const Tensor selected = custom_pypto::call_op<Tensor>(
      "custom_pypto::npu_lightning_indexer_pto", "", index.query, i.index_k_cache, index.weights,
      std::optional<Tensor>(), std::optional<Tensor>(act_seqs), std::optional<Tensor>(block_table),
      "BSND", "PA_BSND", kTopK, kCausal);
  const double size = static_cast<double>(m.kv_cache.size(-1) + m.kr_cache.size(-1));
  return attention(kOp,
                   {prolog.query, prolog.query_rope, m.kv_cache, m.kr_cache, selected, block_table,
                    act_seqs, std::nullopt, 1.0 / std::sqrt(size), kCausal},
                   IndexOrder::last);
}

}  // namespace

Tensor sparse_attention(const MlaArguments& m, const IndexerArguments& i, const Tensor& block_table,
                        const Tensor& act_seqs) {
  const Arg x(kOp, "x", m.x);
  x.rank(3);
  const MlaShapes shapes = check_shapes(kOp, m);
  const IndexerShapes indexer_shapes = check_shapes(kOp, i, shapes.down_query.columns);
  check_same_blocks(Arg(kOp, "index_k_cache", i.index_k_cache), Arg(kOp, "kv_cache", m.kv_cache));
  check_table(x, block_table, act_seqs);
  if (m.x.size(0) == 0 || m.x.size(1) == 0) {
    return empty_like_tokens(m.x, {shapes.heads, shapes.latent});
  }
  // The kernel writes where it finds contiguous caches, and a copy would not be updated in place.
  const bool is_in_order =
      m.kv_cache.is_contiguous() && m.kr_cache.is_contiguous() && i.index_k_cache.is_contiguous();
  const Kernel* kernel = is_in_order && have_nz_order(m, i) ? fused.find() : nullptr;
  if (kernel == nullptr) return compose(m, i, indexer_shapes, block_table, act_seqs);
  const Tensor out = empty_like_tokens(m.x, {shapes.heads, shapes.latent});
  // The kernel reads memory in order, weights in fractal NZ order, and of integers int32 alone.
  launch(*kernel,
         std::vector<std::variant<Tensor, RawTensor>>{dense(m.x),
                                                      nz_weight(m.w_dq),
                                                      nz_weight(m.w_uq_qr),
                                                      dense(m.w_uk),
                                                      nz_weight(m.w_dkv_kr),
                                                      dense(m.gamma_cq),
                                                      dense(m.gamma_ckv),
                                                      dense(m.sin),
                                                      dense(m.cos),
                                                      int32(m.cache_index),
                                                      m.kv_cache,
                                                      m.kr_cache,
                                                      int32(block_table),
                                                      int32(act_seqs),
                                                      nz_weight(i.w_idx_qb),
                                                      nz_weight(i.w_idx_k),
                                                      nz_weight(i.w_idx_proj),
                                                      dense(i.in_gamma_k),
                                                      dense(i.in_beta_k),
                                                      i.index_k_cache},
         out);
  return out;
}

}  // namespace custom_pypto_sparse_attention::npu
