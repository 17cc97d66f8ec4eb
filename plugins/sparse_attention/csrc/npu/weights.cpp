// Weights on NPUs.
#include "npu/weights.h"

#include <custom_pypto/npu/storage_format.h>
#include <custom_pypto/npu/torch_npu.h>
#include <custom_pypto_blocks/npu/tensor_ops.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <vector>

namespace custom_pypto_sparse_attention::npu {
namespace {

using namespace custom_pypto::npu;

// Whether torch_npu keeps all of the matrix in fractal NZ order, in whole tiles of 16 rows, which
// have no padding.
bool is_kept_as_nz(const Tensor& weight) {
  if (!is_fractal_nz(weight) || !weight.is_contiguous() || weight.storage_offset() != 0)
    return false;
  const int64_t rows = weight.size(0);
  const int64_t columns = weight.size(1);
  return rows % 16 == 0 &&
         torch_npu().storage_sizes(weight.get()) ==
             std::vector<int64_t>{columns / kTileColumns, rows / 16, 16, kTileColumns};
}

}  // namespace

Tensor plain_weight(const Tensor& weight) {
  if (is_declared_nz(weight)) {
    return plain_weight(
        reshape(weight, {weight.size(1) / kTileColumns, weight.size(0), kTileColumns}));
  }
  if (weight.dim() == 2) return weight;
  return reshape(permute(weight, {1, 0, 2}), {weight.size(1), weight.size(0) * weight.size(2)});
}

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
  if (const char* text = take_plain_weight_warning()) {
    aoti_torch_warn(__func__, __FILE__, static_cast<uint32_t>(__LINE__), text);
  }
  const Tensor panels = reshape(weight, {rows, columns / kTileColumns, kTileColumns});
  return {to_contiguous(permute(panels, {1, 0, 2})), {rows, columns}};
}

}  // namespace custom_pypto_sparse_attention::npu
