// npu_lightning_indexer and its gradient on NPUs: launches of CANN's kernels.
#include "npu/launch_values.h"

#include <custom_pypto/npu/launch.h>
#include <custom_pypto/npu/tensor_ops.h>
#include <torch/csrc/stable/ops.h>

#include <limits>

namespace custom_pypto_lightning_indexer::npu {
namespace {

using custom_pypto::Tensor;
using custom_pypto::npu::clamp_max;
using custom_pypto::npu::KernelChoice;
using custom_pypto::npu::to_contiguous;
using custom_pypto::npu::to_int32;
using Op = ops::npu_lightning_indexer;
using Grad = ops::npu_lightning_indexer_grad;

const KernelChoice kernels(Op::name, {"aclnnLightningIndexer"});
const KernelChoice grad_kernels(Grad::name, {"aclnnLightningIndexerGrad"});
// What torch_npu passes; the kernel takes the number from the query.
constexpr int64_t kHeads = 0;
constexpr bool kDeterministic = true;

void fill(Tensor tensor, double value) { torch::stable::fill_(tensor, value); }

}  // namespace

void launch_values(const Op::Arguments& a, const Op::Sizes& s, const Op::Outputs& out) {
  Op::check_limits_of_aclnnLightningIndexer(a, s);
  if (out.sparse_indices.numel() == 0) return;
  if (a.query.numel() == 0 || a.key.numel() == 0) {
    fill(out.sparse_indices, -1);
    return fill(out.sparse_values, -std::numeric_limits<double>::infinity());
  }
  std::optional<Tensor> query_lengths = to_int32(a.actual_seq_lengths_query);
  // Of BSND queries a length above S1 means S1, but is not for the kernel. Clamped on the device.
  if (query_lengths.has_value() && a.layout_query == "BSND") {
    query_lengths = clamp_max(*query_lengths, s.S1);
  }
  custom_pypto::npu::launch(
      kernels.get(), to_contiguous(a.query), to_contiguous(a.key), to_contiguous(a.weights),
      query_lengths, to_int32(a.actual_seq_lengths_key), to_int32(a.block_table), a.layout_query,
      a.layout_key, a.sparse_count, a.sparse_mode, a.pre_tokens, a.next_tokens, a.return_value,
      out.sparse_indices, out.sparse_values);
}

void launch_grad(const Grad::Arguments& a, const Grad::Sizes& s, const Grad::Outputs& out) {
  Grad::check_limits_of_aclnnLightningIndexerGrad(a, s);
  if (a.query.numel() == 0 || a.key.numel() == 0) {
    fill(out.d_query, 0);
    fill(out.d_key, 0);
    return fill(out.d_weights, 0);
  }
  custom_pypto::npu::launch(
      grad_kernels.get(), to_contiguous(a.query), to_contiguous(a.key), to_contiguous(a.dy),
      to_int32(a.sparse_indices), to_contiguous(a.weights), to_int32(a.actual_seq_lengths_query),
      to_int32(a.actual_seq_lengths_key), kHeads, a.layout, a.sparse_mode, a.pre_tokens,
      a.next_tokens, kDeterministic, out.d_query, out.d_key, out.d_weights);
}

}  // namespace custom_pypto_lightning_indexer::npu
