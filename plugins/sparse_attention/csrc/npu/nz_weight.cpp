// Weights for aclnnSparseAttentionPto: 2-D tensors in fractal NZ order.
#include "npu/nz_weight.h"

#include <custom_pypto/npu/storage_format.h>
#include <custom_pypto/npu/tensor_ops.h>
#include <custom_pypto/npu/torch_npu.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <vector>

#include "weight_order.h"

namespace custom_pypto_sparse_attention::npu {
namespace {

using namespace custom_pypto::npu;

// Whether torch_npu keeps the matrix, and all of it, in fractal NZ order: its tiles are of 16 rows,
// which follow each other, so that those of a whole number of tiles have no padding.
bool is_kept_as_nz(const Tensor& weight) {
  if (!is_fractal_nz(weight) || !weight.is_contiguous() || weight.storage_offset() != 0)
    return false;
  const int64_t rows = weight.size(0);
  const int64_t columns = weight.size(1);
  return rows % 16 == 0 &&
         torch_npu().storage_sizes(weight.get()) ==
             std::vector<int64_t>{columns / kTileColumns, rows / 16, 16, kTileColumns};
}

void warn_of_plain() {
  if (const char* text = plain_weight_warning()) {
    aoti_torch_warn(__func__, __FILE__, static_cast<uint32_t>(__LINE__), text);
  }
}

}  // namespace

bool can_be_nz(const Tensor& weight) {
  return weight.dim() == 3 || is_plain(weight) || is_kept_as_nz(weight);
}

RawTensor nz_weight(const Tensor& weight) {
  if (weight.dim() == 3) {
    return {to_contiguous(weight), {weight.size(1), weight.size(0) * kTileColumns}};
  }
  const int64_t rows = weight.size(0);
  const int64_t columns = weight.size(1);
  if (is_fractal_nz(weight) || is_declared_nz(weight)) return {weight, {rows, columns}};
  warn_of_plain();
  const Tensor panels = reshaped(weight, {rows, columns / kTileColumns, kTileColumns});
  return {to_contiguous(permute(panels, {1, 0, 2})), {rows, columns}};
}

}  // namespace custom_pypto_sparse_attention::npu
