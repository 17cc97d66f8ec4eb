// CANN's own kernels, simulated: they compute with the CPU kernels. Names are those of the ops' IR.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/need.h>

#include <initializer_list>
#include <string>
#include <tuple>

namespace {

using custom_pypto_simulator::call;
using custom_pypto_simulator::call_into;
using custom_pypto_simulator::need;
using custom_pypto_simulator::Optional;

constexpr int64_t kMetadataSize = 1024;
// What the metadata of this simulated machine begins with.
constexpr int64_t kMark = 39;

// An empty tensor is None.
Optional given(const Optional& tensor) {
  return tensor && tensor->numel() != 0 ? tensor : std::nullopt;
}

void check_queries(const at::Tensor& q, int64_t window_left, int64_t window_right, bool is_listed) {
  need(q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16,
       "q must be FLOAT16 or BFLOAT16");
  need(q.size(-1) == 512, "D must be 512");
  need(is_listed || (window_left == 127 && window_right == 0), "the window must be 127 and 0");
}

void check_integers(std::initializer_list<Optional> integers) {
  for (const Optional& each : integers) {
    need(!each || each->scalar_type() == at::kInt, "integers must be INT32");
  }
}

}  // namespace

// aclnnSparseFlashMla.md, the table of parameters and what it refuses, for Atlas A2.
CUSTOM_PYPTO_SIM_ACLNN(aclnnSparseFlashMla, at::Tensor q, Optional ori_kv, Optional cmp_kv,
                       Optional ori_sparse_indices, Optional cmp_sparse_indices,
                       Optional ori_block_table, Optional cmp_block_table, Optional cu_seqlens_q,
                       Optional cu_seqlens_ori_kv, Optional cu_seqlens_cmp_kv, Optional seqused_q,
                       Optional seqused_ori_kv, Optional seqused_cmp_kv, Optional cmp_residual_kv,
                       Optional ori_topk_length, Optional cmp_topk_length, Optional sinks,
                       Optional metadata, double softmax_scale, int64_t cmp_ratio,
                       int64_t ori_mask_mode, int64_t cmp_mask_mode, int64_t ori_win_left,
                       int64_t ori_win_right, std::string layout_q, std::string layout_kv,
                       int64_t topk_value_mode, bool return_softmax_lse, at::Tensor& attn_out,
                       at::Tensor& softmax_lse) {
  const int64_t heads = q.size(-2);
  check_queries(q, ori_win_left, ori_win_right, ori_sparse_indices.has_value());
  need(heads >= 1 && heads <= 128 && (heads & (heads - 1)) == 0, "N1 must be a power of 2");
  need(ori_kv && sinks && metadata, "ori_kv, sinks and metadata are required");
  need(metadata->numel() == kMetadataSize && metadata->select(0, 0).item<int64_t>() == kMark,
       "metadata must come from aclnnSparseFlashMlaMetadata");
  need(!seqused_q && !cmp_topk_length, "seqused_q and cmp_topk_length must be null");
  need(ori_sparse_indices.has_value() == ori_topk_length.has_value(),
       "ori_topk_length goes with ori_sparse_indices");
  need(ori_mask_mode == (ori_sparse_indices ? 0 : 4), "the wrong ori_mask_mode");
  need(cmp_ratio == (!cmp_kv ? 1 : cmp_sparse_indices ? 4 : 128), "the wrong cmp_ratio");
  need(!cmp_kv || (cmp_mask_mode == 3 && cmp_residual_kv), "compressed rows need their mask");
  check_integers({ori_sparse_indices, cmp_sparse_indices, ori_block_table, cmp_block_table,
                  cu_seqlens_q, cu_seqlens_ori_kv, cu_seqlens_cmp_kv, seqused_ori_kv,
                  seqused_cmp_kv, cmp_residual_kv, ori_topk_length, metadata});
  const auto [out, lse] = call<std::tuple<at::Tensor, at::Tensor>>(
      "custom_pypto::npu_sparse_flash_mla", q, ori_kv, cmp_kv, ori_sparse_indices,
      cmp_sparse_indices, ori_block_table, cmp_block_table, cu_seqlens_q, cu_seqlens_ori_kv,
      cu_seqlens_cmp_kv, seqused_q, seqused_ori_kv, seqused_cmp_kv, cmp_residual_kv,
      ori_topk_length, cmp_topk_length, sinks, metadata, softmax_scale, cmp_ratio, ori_mask_mode,
      cmp_mask_mode, ori_win_left, ori_win_right, layout_q, layout_kv, topk_value_mode,
      return_softmax_lse);
  attn_out.copy_(out);
  // Where nothing is visible the kernel leaves 0.
  softmax_lse.copy_(lse.masked_fill(lse.isinf(), 0));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnSparseFlashMlaMetadata, Optional cu_seqlens_q,
                       Optional cu_seqlens_ori_kv, Optional cu_seqlens_cmp_kv, Optional seqused_q,
                       Optional seqused_ori_kv, Optional seqused_cmp_kv, Optional cmp_residual_kv,
                       Optional ori_topk_length, Optional cmp_topk_length, int64_t num_heads_q,
                       int64_t num_heads_kv, int64_t head_dim, int64_t batch_size,
                       int64_t max_seqlen_q, int64_t max_seqlen_ori_kv, int64_t max_seqlen_cmp_kv,
                       int64_t ori_topk, int64_t cmp_topk, int64_t cmp_ratio, int64_t ori_mask_mode,
                       int64_t cmp_mask_mode, int64_t ori_win_left, int64_t ori_win_right,
                       std::string layout_q, std::string layout_kv, bool has_ori_kv,
                       bool has_cmp_kv, at::Tensor& metadata) {
  check_integers({cu_seqlens_q, cu_seqlens_ori_kv, cu_seqlens_cmp_kv, seqused_q, seqused_ori_kv,
                  seqused_cmp_kv, cmp_residual_kv, ori_topk_length, cmp_topk_length});
  need(num_heads_q >= 1 && num_heads_q <= 128 && num_heads_kv == 1 && head_dim == 512,
       "the wrong sizes");
  need(layout_q == "TND" ? cu_seqlens_q && max_seqlen_q > 0 : batch_size > 0,
       "the sequences are not described");
  need(cmp_ratio >= 1 && cmp_ratio <= 128, "cmp_ratio must be from 1 to 128");
  need(max_seqlen_ori_kv >= 0 && max_seqlen_cmp_kv >= 0, "the lengths must not be negative");
  need(ori_topk >= 0 && cmp_topk >= 0 && (has_cmp_kv || cmp_topk == 0), "the wrong topk");
  need(ori_mask_mode == 0 || ori_mask_mode == 4, "ori_mask_mode must be 0 or 4");
  need(cmp_mask_mode == 0 || cmp_mask_mode == 3, "cmp_mask_mode must be 0 or 3");
  need(ori_win_left >= -1 && ori_win_right >= -1, "the windows must be at least -1");
  need(layout_kv == "PA_BBND" || layout_kv == layout_q, "the layouts must be equal");
  need(has_ori_kv, "ori_kv is required");
  metadata.zero_();
  metadata.select(0, 0).fill_(kMark);
}

// torchapi_sparse_flash_mla_grad.md, for Atlas A2.
CUSTOM_PYPTO_SIM_ACLNN(aclnnSparseFlashMlaGrad, at::Tensor query, at::Tensor d_out, at::Tensor out,
                       at::Tensor lse, Optional ori_kv, Optional cmp_kv,
                       Optional ori_sparse_indices, Optional cmp_sparse_indices,
                       Optional cu_seqlens_q, Optional cu_seqlens_ori_kv,
                       Optional cu_seqlens_cmp_kv, Optional seqused_q, Optional seqused_ori_kv,
                       Optional seqused_cmp_kv, Optional cmp_residual_kv, Optional ori_topk_length,
                       Optional cmp_topk_length, Optional sinks, Optional metadata,
                       double scale_value, int64_t cmp_ratio, int64_t ori_mask_mode,
                       int64_t cmp_mask_mode, int64_t ori_win_left, int64_t ori_win_right,
                       std::string layout_q, std::string layout_kv, at::Tensor& d_query,
                       at::Tensor& d_ori_kv, at::Tensor& d_cmp_kv, at::Tensor& d_sinks,
                       at::Tensor& ori_softmax_l1_norm, at::Tensor& cmp_softmax_l1_norm) {
  check_queries(query, ori_win_left, ori_win_right, false);
  need(ori_kv && sinks && !metadata, "ori_kv and sinks are required, metadata must be null");
  need(!seqused_q && !seqused_ori_kv && !seqused_cmp_kv, "seqused must be null");
  need(!ori_topk_length && !cmp_topk_length, "topk_length must be null");
  need(ori_mask_mode == 4 && cmp_mask_mode == 3, "the masks must be 4 and 3");
  call_into(
      std::tie(d_query, d_ori_kv, d_cmp_kv, d_sinks, ori_softmax_l1_norm, cmp_softmax_l1_norm),
      "custom_pypto::npu_sparse_flash_mla_grad", query, d_out, out, lse, ori_kv, given(cmp_kv),
      given(ori_sparse_indices), given(cmp_sparse_indices), cu_seqlens_q, cu_seqlens_ori_kv,
      cu_seqlens_cmp_kv, seqused_q, seqused_ori_kv, seqused_cmp_kv, cmp_residual_kv,
      ori_topk_length, cmp_topk_length, sinks, metadata, std::optional<double>(scale_value),
      cmp_ratio, ori_mask_mode, cmp_mask_mode, ori_win_left, ori_win_right, layout_q, layout_kv);
}
