#include "npu/select.h"

#include <custom_pypto/dispatcher.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <torch/csrc/stable/ops.h>

#include <limits>
#include <vector>

#include "npu/limits.h"

namespace custom_pypto_lightning_indexer::npu {
namespace {

using custom_pypto::call_op;
using custom_pypto::npu::Kernel;
using custom_pypto::npu::KernelChoice;
using custom_pypto::npu::launch;

constexpr int64_t kAllTokens = std::numeric_limits<int64_t>::max();

// LightningIndexerPto has no attributes: it serves the calls that need none.
const KernelChoice kernels(kOp, {"aclnnLightningIndexerPto", "aclnnLightningIndexer"});
const KernelChoice kernels_with_options(kOp, {"aclnnLightningIndexer"});

bool needs_options(const Arguments& a) {
  return a.actual_seq_lengths_query.has_value() || a.layout_query != "BSND" ||
         a.layout_key != "PA_BSND" || a.sparse_count != 2048 || a.sparse_mode != 3;
}

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
std::optional<Tensor> query_lengths(const Arguments& a) {
  if (!a.actual_seq_lengths_query.has_value() || a.layout_query != "BSND") {
    return int32(a.actual_seq_lengths_query);
  }
  const Tensor& lengths = *a.actual_seq_lengths_query;
  const Tensor longest = torch::stable::full({1}, static_cast<double>(a.query.size(1)),
                                             lengths.scalar_type(), std::nullopt, lengths.device());
  return int32(call_op<Tensor>("aten::minimum", "", lengths, longest));
}

}  // namespace

void select(const Arguments& a, const Tensor& positions) {
  if (positions.numel() == 0) return;
  if (a.query.numel() == 0 || a.key.numel() == 0) {
    Tensor unselected = positions;
    torch::stable::fill_(unselected, -1);
    return;
  }
  const Kernel& kernel = needs_options(a) ? kernels_with_options.get() : kernels.get();
  const bool is_stock = !kernel.is("aclnnLightningIndexerPto");
  if (is_stock) check_limits(a);
  const Tensor query = dense(a.query);
  const Tensor key = dense(a.key);
  const Tensor weights = dense(a.weights);
  const std::optional<Tensor> key_lengths = int32(a.actual_seq_lengths_key);
  const std::optional<Tensor> block_table = int32(a.block_table);
  if (!is_stock) {
    launch(kernel, std::vector<Tensor>{query, key, weights, *key_lengths, *block_table}, positions);
    return;
  }
  const Tensor no_values = custom_pypto::empty({0}, query);
  launch(kernel, query, key, weights, query_lengths(a), key_lengths, block_table, a.layout_query,
         a.layout_key, a.sparse_count, a.sparse_mode, kAllTokens, kAllTokens, false, positions,
         no_values);
}

}  // namespace custom_pypto_lightning_indexer::npu
