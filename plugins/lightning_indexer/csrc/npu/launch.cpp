// The ops' kernels for NPUs: which aclnn kernel is launched, and with which arguments.
#include "npu/launch.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto_blocks/npu/tensor_ops.h>
#include <torch/csrc/stable/ops.h>

#include <limits>
#include <vector>

namespace custom_pypto_lightning_indexer::npu {
namespace {

using namespace custom_pypto;
using namespace custom_pypto::npu;
using Op = ops::npu_lightning_indexer_pto;
using QuantOp = ops::npu_quant_lightning_indexer;
using WithValues = ops::npu_lightning_indexer;
using Grad = ops::npu_lightning_indexer_grad;
using V2 = ops::npu_lightning_indexer_v2;
using QuantV2 = ops::npu_quant_lightning_indexer_v2;

const KernelChoice any_kernel(Op::name, {"aclnnLightningIndexerPto", "aclnnLightningIndexer"});
const KernelChoice stock_kernel(Op::name, {"aclnnLightningIndexer"});
const KernelChoice quant_kernel(QuantOp::name, {"aclnnQuantLightningIndexer"});
const KernelChoice values_kernel(WithValues::name, {"aclnnLightningIndexer"});
const KernelChoice grad_kernel(Grad::name, {"aclnnLightningIndexerGrad"});
const KernelChoice v2_kernel(V2::name, {"aclnnLightningIndexerV2"});
const KernelChoice quant_v2_kernel(QuantV2::name, {"aclnnQuantLightningIndexerV2"});

// As torch_npu passes them to the gradient's kernel, which takes the number of heads from the
// query.
constexpr int64_t kHeads = 0;
constexpr bool kDeterministic = true;

// A length of BSND queries above S1 means S1, but the kernel does not take it: clamps it on the
// device.
template <class Arguments, class CallShape>
std::optional<Tensor> query_lengths(const Arguments& a, const CallShape& s) {
  if (!a.actual_seq_lengths_query.has_value() || s.layout_query != ops::LayoutQuery::BSND) {
    return to_int32(a.actual_seq_lengths_query);
  }
  return to_int32(clamp_max(*a.actual_seq_lengths_query, s.S1));
}

void fill(Tensor tensor, double value) { torch::stable::fill_(tensor, value); }

// Whether there are no keys to select, or no queries.
template <class Arguments>
bool is_empty(const Arguments& a) {
  return a.query.numel() == 0 || a.key.numel() == 0;
}
bool is_empty(const V2::Arguments& a) { return a.q.numel() == 0 || a.k.numel() == 0; }

// Whether no launch is needed, since there is no result or nothing to select; fills the result
// then.
template <class Arguments>
bool is_done(const Arguments& a, const Tensor& positions) {
  if (positions.numel() == 0) return true;
  if (!is_empty(a)) return false;
  fill(positions, -1);
  return true;
}

}  // namespace

void launch(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out) {
  if (is_done(a, out.positions)) return;
  const Kernel& kernel =
      Op::aclnnLightningIndexerPto_supports(a, s) ? any_kernel.get() : stock_kernel.get();
  const bool is_stock = !kernel.is("aclnnLightningIndexerPto");
  if (is_stock) Op::check_limits_of_aclnnLightningIndexer(a, s);
  const Tensor query = to_contiguous(a.query);
  const Tensor key = to_contiguous(a.key);
  const Tensor weights = to_contiguous(a.weights);
  const std::optional<Tensor> key_lengths = to_int32(a.actual_seq_lengths_key);
  const std::optional<Tensor> block_table = to_int32(a.block_table);
  if (!is_stock) {
    CUSTOM_PYPTO_LAUNCH(kernel, aclnnLightningIndexerPto,
                        std::vector<Tensor>{query, key, weights, *key_lengths, *block_table},
                        out.positions);
    return;
  }
  const Tensor no_values = empty({0}, query);
  CUSTOM_PYPTO_LAUNCH(kernel, aclnnLightningIndexer, query, key, weights, query_lengths(a, s),
                      key_lengths, block_table, a.layout_query, a.layout_key, a.sparse_count,
                      a.sparse_mode, ops::ALL_TOKENS, ops::ALL_TOKENS, false, out.positions,
                      no_values);
}

void launch_quant(const QuantOp::Arguments& a, const QuantOp::CallShape& s,
                  const QuantOp::Outputs& out) {
  if (is_done(a, out.positions)) return;
  const Kernel& kernel = quant_kernel.get();
  QuantOp::check_limits_of_aclnnQuantLightningIndexer(a, s);
  CUSTOM_PYPTO_LAUNCH(
      kernel, aclnnQuantLightningIndexer, to_contiguous(a.query), to_contiguous(a.key),
      to_contiguous(a.weights), to_contiguous(a.query_dequant_scale),
      to_contiguous(a.key_dequant_scale), query_lengths(a, s), to_int32(a.actual_seq_lengths_key),
      to_int32(a.block_table), a.query_quant_mode, a.key_quant_mode, a.layout_query, a.layout_key,
      a.sparse_count, a.sparse_mode, a.pre_tokens, a.next_tokens, out.positions);
}

void launch_values(const WithValues::Arguments& a, const WithValues::CallShape& s,
                   const WithValues::Outputs& out) {
  if (is_done(a, out.sparse_indices)) {
    return fill(out.sparse_values, -std::numeric_limits<double>::infinity());
  }
  WithValues::check_limits_of_aclnnLightningIndexer(a, s);
  CUSTOM_PYPTO_LAUNCH(values_kernel.get(), aclnnLightningIndexer, to_contiguous(a.query),
                      to_contiguous(a.key), to_contiguous(a.weights), query_lengths(a, s),
                      to_int32(a.actual_seq_lengths_key), to_int32(a.block_table), a.layout_query,
                      a.layout_key, a.sparse_count, a.sparse_mode, a.pre_tokens, a.next_tokens,
                      a.return_value, out.sparse_indices, out.sparse_values);
}

void launch_grad(const Grad::Arguments& a, const Grad::CallShape& s, const Grad::Outputs& out) {
  if (is_empty(a) || a.sparse_indices.numel() == 0) {
    for (const Tensor& gradient : {out.d_query, out.d_key, out.d_weights}) fill(gradient, 0);
    return;
  }
  Grad::check_limits_of_aclnnLightningIndexerGrad(a, s);
  CUSTOM_PYPTO_LAUNCH(grad_kernel.get(), aclnnLightningIndexerGrad, to_contiguous(a.query),
                      to_contiguous(a.key), to_contiguous(a.dy), to_int32(a.sparse_indices),
                      to_contiguous(a.weights), to_int32(a.actual_seq_lengths_query),
                      to_int32(a.actual_seq_lengths_key), kHeads, a.layout, a.sparse_mode,
                      a.pre_tokens, a.next_tokens, kDeterministic, out.d_query, out.d_key,
                      out.d_weights);
}

void launch_v2(const V2::Arguments& a, const V2::CallShape& s, const V2::Outputs& out) {
  if (is_done(a, out.sparse_indices)) {
    return fill(out.sparse_values, -std::numeric_limits<double>::infinity());
  }
  V2::check_limits_of_aclnnLightningIndexerV2(a, s);
  CUSTOM_PYPTO_LAUNCH(
      v2_kernel.get(), aclnnLightningIndexerV2, to_contiguous(a.q), to_contiguous(a.k),
      to_contiguous(a.w), to_int32(a.cu_seqlens_q), to_int32(a.cu_seqlens_k), to_int32(a.seqused_q),
      to_int32(a.seqused_k), to_int32(a.cmp_residual_k), to_int32(a.block_table),
      to_int32(a.output_idx_offset), to_int32(a.metadata), a.topk, a.max_seqlen_q, a.layout_q,
      a.layout_k, a.mask_mode, a.cmp_ratio, a.return_value, out.sparse_indices, out.sparse_values);
}

void launch_quant_v2(const QuantV2::Arguments& a, const QuantV2::CallShape& s,
                     const QuantV2::Outputs& out) {
  if (is_done(a, out.sparse_indices)) {
    return fill(out.sparse_values, -std::numeric_limits<double>::infinity());
  }
  QuantV2::check_limits_of_aclnnQuantLightningIndexerV2(a, s);
  CUSTOM_PYPTO_LAUNCH(quant_v2_kernel.get(), aclnnQuantLightningIndexerV2, to_contiguous(a.query),
                      to_contiguous(a.key), to_contiguous(a.weights),
                      to_contiguous(a.query_dequant_scale), to_contiguous(a.key_dequant_scale),
                      to_int32(a.cu_seqlens_q), to_int32(a.cu_seqlens_k), to_int32(a.seqused_q),
                      to_int32(a.seqused_k), to_int32(a.cmp_residual_k), to_int32(a.block_table),
                      to_int32(a.output_idx_offset), to_int32(a.metadata), a.topk, a.quant_mode,
                      a.max_seqlen_q, a.layout_q, a.layout_k, a.mask_mode, a.cmp_ratio,
                      a.return_value, out.sparse_indices, out.sparse_values);
}

}  // namespace custom_pypto_lightning_indexer::npu
