// npu_sparse_flash_attention and its gradient on NPUs: launches of CANN's kernels.
#include "attention.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto_blocks/npu/tensor_ops.h>
#include <torch/csrc/stable/ops.h>

#include <limits>
#include <optional>
#include <vector>

#include "npu/kernels.h"
#include "npu/steps.h"

namespace custom_pypto_sparse_attention::npu {
namespace {

using namespace custom_pypto::npu;
using Op = ops::npu_sparse_flash_attention;

// The latent part of query and cache is followed by the rotated part, in tensors of their own.
constexpr int64_t kAbsorbed = 2;

const KernelChoice kernels(Op::name, {"aclnnSparseFlashAttention"});

// The places of -1 among a token's indices. The kernel needs all of them last.
enum class IndexOrder { last, any };

// Whether no launch is needed: there is no result, or nothing to attend to, and the kernel takes no
// empty tensors. Fills the results then.
bool is_done(const AttentionArguments& a, const Tensor& out, const std::optional<Tensor>& lse) {
  if (out.numel() == 0 && (!lse.has_value() || lse->numel() == 0)) return true;
  const bool has_keys = a.kv_cache.numel() != 0 || a.kr_cache.numel() != 0;
  if (has_keys && a.sparse_indices.numel() != 0) return false;
  Tensor zeros = out;
  torch::stable::fill_(zeros, 0);
  if (lse.has_value()) {
    Tensor nothing = *lse;
    torch::stable::fill_(nothing, -std::numeric_limits<double>::infinity());
  }
  return true;
}

void attend(const AttentionArguments& a, const Tensor& out, const std::optional<Tensor>& lse,
            IndexOrder order) {
  // [B, 1, S1, N1] or [1, T, N1]: one key head.
  const std::vector<int64_t> of_heads =
      !lse.has_value() ? std::vector<int64_t>{0}
      : a.query.dim() == 4
          ? std::vector<int64_t>{a.query.size(0), 1, a.query.size(1), a.query.size(2)}
          : std::vector<int64_t>{1, a.query.size(0), a.query.size(1)};
  const Tensor max = empty(of_heads, ScalarType::Float, a.query);
  const Tensor sum = empty(of_heads, ScalarType::Float, a.query);
  std::optional<Tensor> lengths_query = a.actual_seq_lengths_query;
  if (lengths_query.has_value()) {
    // A length of BSND queries above S1 means S1, but the kernel does not take it.
    if (a.query.dim() == 4) lengths_query = clamp_max(*lengths_query, a.query.size(1));
    lengths_query = to_int32(*lengths_query);
  }
  const Tensor indices = to_int32(a.sparse_indices);
  // One tensor for keys and values: a cache that is not contiguous is copied once.
  const Tensor kv_cache = to_contiguous(a.kv_cache);
  CUSTOM_PYPTO_LAUNCH(kernels.get(), aclnnSparseFlashAttention, to_contiguous(a.query), kv_cache,
                      kv_cache, order == IndexOrder::any ? sort_descending(indices) : indices,
                      to_int32(a.block_table), lengths_query, to_int32(a.actual_seq_lengths_kv),
                      to_contiguous(a.query_rope), to_contiguous(a.kr_cache), a.scale, 1,
                      a.query.dim() == 4 ? "BSND" : "TND", a.layout_kv, a.sparse_mode,
                      ops::ALL_TOKENS, ops::ALL_TOKENS, kAbsorbed, lse.has_value(), out, max, sum);
  if (!lse.has_value()) return;
  Tensor to = *lse;
  const std::vector<int64_t> sizes(to.sizes().begin(), to.sizes().end());
  torch::stable::copy_(to, reshape(add(max, logarithm(sum)), sizes));
}

using GradOp = ops::npu_sparse_flash_attention_grad;

const KernelChoice grad_kernels(GradOp::name, {"aclnnSparseFlashAttentionGrad"});
constexpr bool kDeterministic = true;

// Whether every gradient is zero, since no gradient arrives or nothing is attended to. The kernel
// takes no empty tensors.
bool is_zero(const GradOp::Arguments& a) {
  const bool has_keys = a.key.numel() != 0 || a.key_rope.numel() != 0;
  const bool has_gradient = a.d_out.numel() != 0 || (a.d_lse.has_value() && a.d_lse->numel() != 0);
  return !has_gradient || !has_keys || a.sparse_indices.numel() == 0;
}

}  // namespace

void attention(const AttentionArguments& a, const AttentionSizes& s, const Op::Outputs& outputs) {
  const auto lse = a.return_softmax_lse ? std::optional<Tensor>(outputs.lse) : std::nullopt;
  if (is_done(a, outputs.out, lse)) return;
  Op::check_limits_of_aclnnSparseFlashAttention(a, s);
  const bool is_paged = s.layout_kv == Op::LayoutKv::PA_BSND;
  check(!lse.has_value() || !is_paged || kernels.get().origin != Origin::cann, Op::name,
        "return_softmax_lse",
        "must be False on an NPU with a paged cache: CANN's own aclnnSparseFlashAttention has no "
        "log-sum-exp for it; install an opp package whose kernel has, vllm-ascend's (since 0.24) "
        "or sgl-kernel-npu's, or call it on a CPU");
  attend(a, outputs.out, lse, IndexOrder::any);
}

void selected_attention(const AttentionArguments& a, const Tensor& out) {
  if (is_done(a, out, std::nullopt)) return;
  attend(a, out, std::nullopt, IndexOrder::last);
}

void attention_grad(const GradOp::Arguments& a, const GradOp::CallShape& s,
                    const GradOp::Outputs& out) {
  if (is_zero(a)) {
    for (Tensor each : {out.d_query, out.d_key, out.d_value, out.d_query_rope, out.d_key_rope}) {
      torch::stable::fill_(each, 0);
    }
    return;
  }
  GradOp::check_limits_of_aclnnSparseFlashAttentionGrad(a, s);
  CUSTOM_PYPTO_LAUNCH(
      grad_kernels.get(), aclnnSparseFlashAttentionGrad, to_contiguous(a.query),
      to_contiguous(a.key), to_contiguous(a.value), sort_descending(to_int32(a.sparse_indices)),
      to_contiguous(a.d_out), to_contiguous(a.out), to_contiguous(a.softmax_max),
      to_contiguous(a.softmax_sum), to_int32(a.actual_seq_qlen), to_int32(a.actual_seq_kvlen),
      to_contiguous(a.query_rope), to_contiguous(a.key_rope), a.scale_value, a.sparse_block_size,
      a.layout, a.sparse_mode, a.pre_tokens, a.next_tokens, kDeterministic, out.d_query, out.d_key,
      out.d_value, out.d_query_rope, out.d_key_rope);
}

}  // namespace custom_pypto_sparse_attention::npu
