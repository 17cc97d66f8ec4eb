// npu_sparse_attention_pto on NPUs: one fused kernel, or the ops that it is composed of.
#include <custom_pypto/npu/launch.h>
#include <custom_pypto_blocks/npu/tensor_ops.h>

#include <variant>
#include <vector>

#include "npu/kernels.h"
#include "npu/weights.h"
#include "pieces.h"
#include "weight_order.h"

namespace custom_pypto_sparse_attention::npu {
namespace {

using namespace custom_pypto::npu;
using Fused = ops::npu_sparse_attention_pto;

const KernelChoice fused(Fused::name, {"aclnnSparseAttentionPto"});
// The kernels that npu_lightning_indexer_pto and selected_attention() will launch, for their
// limits.
const KernelChoice indexer(Fused::name, {"aclnnLightningIndexerPto", "aclnnLightningIndexer"});
const KernelChoice attender(Fused::name, {"aclnnSparseFlashAttention"});

// The kernel takes contiguous caches only; a copy would not be updated in place.
bool fits_fused(const Fused::Arguments& a, const Fused::CallShape& s) {
  if (!Fused::aclnnSparseAttentionPto_supports(a, s)) return false;
  for (const Tensor* weight :
       {&a.w_dq, &a.w_uq_qr, &a.w_dkv_kr, &a.w_idx_qb, &a.w_idx_k, &a.w_idx_proj}) {
    if (!can_be_nz(*weight)) return false;
  }
  return a.kv_cache.is_contiguous() && a.kr_cache.is_contiguous() &&
         a.index_k_cache.is_contiguous();
}

// Throws what the pieces would refuse, and for kernels that the machine lacks, before any cache is
// written.
void check_pieces(const Fused::Arguments& a, const Fused::CallShape& s) {
  attender.get();
  Fused::check_limits_of_aclnnSparseFlashAttention(a, s);
  if (indexer.get().is("aclnnLightningIndexerPto")) return;
  Fused::check_limits_of_aclnnLightningIndexer(a, s);
}

void compose(const Fused::Arguments& a, const Fused::CallShape& s, const Tensor& out) {
  check_pieces(a, s);
  const MlaOutputs prolog =
      mla_prolog(Fused::name, ops::mla::arguments(a), ops::mla::call_shape(s));
  const IndexerOutputs index = indexer_prolog(Fused::name, ops::indexer::arguments(a),
                                              ops::indexer::call_shape(s), prolog.q_norm);
  const Tensor selected = select_keys(a, index);
  selected_attention(SelectedAttention(a, s, prolog, selected).arguments(), out);
}

}  // namespace

void sparse_attention(const Fused::Arguments& a, const Fused::CallShape& s,
                      const Fused::Outputs& outputs) {
  check_declared(Fused::name, ops::mla::weight_tensors(ops::mla::arguments(a)));
  check_declared(Fused::name, ops::indexer::weight_tensors(ops::indexer::arguments(a)));
  if (token_count(s.tokens) == 0) return;
  const Kernel* kernel = fits_fused(a, s) ? fused.try_get() : nullptr;
  if (kernel == nullptr) return compose(a, s, outputs.out);
  // The kernel takes contiguous tensors, weights in fractal NZ order, and int32 integers only.
  CUSTOM_PYPTO_LAUNCH(*kernel, aclnnSparseAttentionPto,
                      std::vector<std::variant<Tensor, RawTensor>>{to_contiguous(a.x),
                                                                   nz_weight(a.w_dq),
                                                                   nz_weight(a.w_uq_qr),
                                                                   to_contiguous(a.w_uk),
                                                                   nz_weight(a.w_dkv_kr),
                                                                   to_contiguous(a.gamma_cq),
                                                                   to_contiguous(a.gamma_ckv),
                                                                   to_contiguous(a.sin),
                                                                   to_contiguous(a.cos),
                                                                   to_int32(a.cache_index),
                                                                   a.kv_cache,
                                                                   a.kr_cache,
                                                                   to_int32(a.block_table),
                                                                   to_int32(a.act_seqs),
                                                                   nz_weight(a.w_idx_qb),
                                                                   nz_weight(a.w_idx_k),
                                                                   nz_weight(a.w_idx_proj),
                                                                   to_contiguous(a.in_gamma_k),
                                                                   to_contiguous(a.in_beta_k),
                                                                   a.index_k_cache},
                      outputs.out);
}

}  // namespace custom_pypto_sparse_attention::npu
