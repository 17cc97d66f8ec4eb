// The op's kernel for NPUs: which aclnn kernel is launched, and with which arguments.
#include "npu/launch.h"

#include <custom_pypto/dispatcher.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <torch/csrc/stable/ops.h>

#include <limits>
#include <vector>

namespace custom_pypto_lightning_indexer::npu {
namespace {

using custom_pypto::call_op;
using custom_pypto::ScalarType;
using custom_pypto::Tensor;
using custom_pypto::npu::Kernel;
using custom_pypto::npu::KernelChoice;
using Op = ops::npu_lightning_indexer_pto;

constexpr int64_t kAllTokens = std::numeric_limits<int64_t>::max();

const KernelChoice any_kernel(Op::name, {"aclnnLightningIndexerPto", "aclnnLightningIndexer"});
const KernelChoice stock_kernel(Op::name, {"aclnnLightningIndexer"});

// The kernels read memory in order.
Tensor dense(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

// The only integers that the kernels read, converted on the device.
std::optional<Tensor> int32(const std::optional<Tensor>& tensor) {
  if (!tensor.has_value()) return std::nullopt;
  if (tensor->scalar_type() == ScalarType::Int) return dense(*tensor);
  return dense(
      call_op<Tensor>("aten::to", "dtype", *tensor, ScalarType::Int, false, false, std::nullopt));
}

// Of BSND queries a length above S1 means S1, but is not for the kernel. Clamped on the device.
std::optional<Tensor> query_lengths(const Op::Arguments& a, const Op::Sizes& s) {
  if (!a.actual_seq_lengths_query.has_value() || s.layout_query != Op::LayoutQuery::BSND) {
    return int32(a.actual_seq_lengths_query);
  }
  const Tensor& lengths = *a.actual_seq_lengths_query;
  const Tensor longest = torch::stable::full({1}, static_cast<double>(s.S1), lengths.scalar_type(),
                                             std::nullopt, lengths.device());
  return int32(call_op<Tensor>("aten::minimum", "", lengths, longest));
}

}  // namespace

void launch(const Op::Arguments& a, const Op::Sizes& s, const Op::Outputs& out) {
  if (out.positions.numel() == 0) return;
  if (a.query.numel() == 0 || a.key.numel() == 0) {
    Tensor unselected = out.positions;
    torch::stable::fill_(unselected, -1);
    return;
  }
  const Kernel& kernel =
      Op::fits_aclnnLightningIndexerPto(a, s) ? any_kernel.get() : stock_kernel.get();
  const bool is_stock = !kernel.is("aclnnLightningIndexerPto");
  if (is_stock) Op::check_limits_of_aclnnLightningIndexer(a, s);
  const Tensor query = dense(a.query);
  const Tensor key = dense(a.key);
  const Tensor weights = dense(a.weights);
  const std::optional<Tensor> key_lengths = int32(a.actual_seq_lengths_key);
  const std::optional<Tensor> block_table = int32(a.block_table);
  if (!is_stock) {
    custom_pypto::npu::launch(kernel,
                              std::vector<Tensor>{query, key, weights, *key_lengths, *block_table},
                              out.positions);
    return;
  }
  const Tensor no_values = custom_pypto::empty({0}, query);
  custom_pypto::npu::launch(kernel, query, key, weights, query_lengths(a, s), key_lengths,
                            block_table, a.layout_query, a.layout_key, a.sparse_count,
                            a.sparse_mode, kAllTokens, kAllTokens, false, out.positions, no_values);
}

}  // namespace custom_pypto_lightning_indexer::npu
