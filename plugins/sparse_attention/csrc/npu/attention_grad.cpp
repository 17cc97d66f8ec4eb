// npu_sparse_flash_attention_grad on NPUs: a launch of CANN's kernel.
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/npu/tensor_ops.h>
#include <torch/csrc/stable/ops.h>

#include "npu/kernels.h"

namespace custom_pypto_sparse_attention::npu {
namespace {

using namespace custom_pypto::npu;
using Op = ops::npu_sparse_flash_attention_grad;

const KernelChoice kernels(Op::name, {"aclnnSparseFlashAttentionGrad"});
constexpr bool kDeterministic = true;

// Whether every gradient is zero, since no gradient arrives or nothing is attended to. The kernel
// takes no empty tensors.
bool is_zero(const Op::Arguments& a) {
  const bool has_keys = a.key.numel() != 0 || a.key_rope.numel() != 0;
  const bool has_gradient = a.d_out.numel() != 0 || (a.d_lse.has_value() && a.d_lse->numel() != 0);
  return !has_gradient || !has_keys || a.sparse_indices.numel() == 0;
}

}  // namespace

void attention_grad(const Op::Arguments& a, const Op::Sizes& s, const Op::Outputs& out) {
  if (is_zero(a)) {
    for (Tensor each : {out.d_query, out.d_key, out.d_value, out.d_query_rope, out.d_key_rope}) {
      torch::stable::fill_(each, 0);
    }
    return;
  }
  Op::check_limits_of_aclnnSparseFlashAttentionGrad(a, s);
  launch(kernels.get(), to_contiguous(a.query), to_contiguous(a.key), to_contiguous(a.value),
         sort_descending(to_int32(a.sparse_indices)), to_contiguous(a.d_out), to_contiguous(a.out),
         to_contiguous(a.softmax_max), to_contiguous(a.softmax_sum), to_int32(a.actual_seq_qlen),
         to_int32(a.actual_seq_kvlen), to_contiguous(a.query_rope), to_contiguous(a.key_rope),
         a.scale_value, a.sparse_block_size, a.layout, a.sparse_mode, a.pre_tokens, a.next_tokens,
         kDeterministic, out.d_query, out.d_key, out.d_value, out.d_query_rope, out.d_key_rope);
}

}  // namespace custom_pypto_sparse_attention::npu
