// Steps that both composed prologs take, beside those of core.
#include "npu/steps.h"

#include <custom_pypto/npu/tensor_ops.h>

#include <vector>

#include "weight_order.h"

namespace custom_pypto_sparse_attention::npu {

using namespace custom_pypto::npu;

Tensor like_tokens(const Tensor& x, const Tensor& rows) {
  std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().end() - 1);
  sizes.insert(sizes.end(), rows.sizes().begin() + 1, rows.sizes().end());
  return to_contiguous(reshaped(rows, sizes));
}

Tensor plain_weight(const Tensor& weight) {
  if (is_declared_nz(weight)) {
    return plain_weight(
        reshaped(weight, {weight.size(1) / kTileColumns, weight.size(0), kTileColumns}));
  }
  if (weight.dim() == 2) return weight;
  return reshaped(permute(weight, {1, 0, 2}), {weight.size(1), weight.size(0) * weight.size(2)});
}

}  // namespace custom_pypto_sparse_attention::npu
