// The ops on an NPU whose launch ops.toml cannot say.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>

#include "attention.h"

namespace custom_pypto_sparse_flash_mla {
namespace {

using namespace custom_pypto::npu;

const KernelChoice grad_kernels(Grad::name, {"aclnnSparseFlashMlaGrad"});
const KernelChoice metadata_kernels(Metadata::name, {"aclnnSparseFlashMlaMetadata"});

// What the kernel of gradients takes for None: an empty tensor.
Tensor given_or_empty(const std::optional<Tensor>& argument, ScalarType dtype, const Tensor& q) {
  return argument ? to_contiguous(*argument) : empty({0}, dtype, q);
}

}  // namespace

Grad::Outputs launch_grad(const Grad::Arguments& a, const Grad::CallShape& s) {
  Grad::Outputs out = allocate(a);
  if (a.q.numel() == 0 || a.ori_kv->numel() == 0) {
    fill_zeros(out);
    return out;
  }
  Grad::check_limits_of_aclnnSparseFlashMlaGrad(a, s);
  const ScalarType dtype = a.q.scalar_type();
  const auto integers = [&](const std::optional<Tensor>& each) {
    return given_or_empty(each, ScalarType::Int, a.q);
  };
  CUSTOM_PYPTO_LAUNCH(grad_kernels.get(), aclnnSparseFlashMlaGrad, to_contiguous(a.q),
                      to_contiguous(a.dout), to_contiguous(a.attn_out),
                      to_contiguous(a.softmax_lse), to_contiguous(*a.ori_kv),
                      given_or_empty(a.cmp_kv, dtype, a.q), integers(a.ori_sparse_indices),
                      integers(a.cmp_sparse_indices), a.cu_seqlens_q, a.cu_seqlens_ori_kv,
                      a.cu_seqlens_cmp_kv, a.seqused_q, a.seqused_ori_kv, a.seqused_cmp_kv,
                      a.cmp_residual_kv, a.ori_topk_length, a.cmp_topk_length, *a.sinks, a.metadata,
                      a.softmax_scale.value_or(1 / std::sqrt(static_cast<double>(s.D))),
                      a.cmp_ratio, a.ori_mask_mode, a.cmp_mask_mode, a.ori_win_left,
                      a.ori_win_right, a.layout_q, a.layout_kv, out.dq, out.dori_kv, out.dcmp_kv,
                      out.dsinks, out.ori_softmax_l1_norm, out.cmp_softmax_l1_norm);
  return out;
}

Metadata::Outputs launch_metadata(const Metadata::Arguments& a, const Metadata::CallShape&) {
  const Tensor result = empty({ops::METADATA_SIZE}, ScalarType::Int, given_tensor(a));
  CUSTOM_PYPTO_LAUNCH(
      metadata_kernels.get(), aclnnSparseFlashMlaMetadata, a.cu_seqlens_q, a.cu_seqlens_ori_kv,
      a.cu_seqlens_cmp_kv, a.seqused_q, a.seqused_ori_kv, a.seqused_cmp_kv, a.cmp_residual_kv,
      a.ori_topk_length, a.cmp_topk_length, a.num_heads_q, a.num_heads_kv, a.head_dim,
      a.batch_size.value_or(0), a.max_seqlen_q.value_or(0), a.max_seqlen_ori_kv.value_or(0),
      a.max_seqlen_cmp_kv.value_or(0), a.ori_topk.value_or(0), a.cmp_topk.value_or(0),
      a.cmp_ratio.value_or(1), a.ori_mask_mode.value_or(0), a.cmp_mask_mode.value_or(0),
      a.ori_win_left.value_or(-1), a.ori_win_right.value_or(-1), a.layout_q.value_or("BSND"),
      a.layout_kv.value_or("BSND"), a.has_ori_kv.value_or(true), a.has_cmp_kv.value_or(true),
      result);
  return {result};
}

}  // namespace custom_pypto_sparse_flash_mla
