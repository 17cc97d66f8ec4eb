// The orders of weights.
#include "projection.h"

#include "weight_order.h"

namespace custom_pypto_sparse_attention {

Weight weight_of(const Tensor& weight) {
  const void* data = weight.const_data_ptr();
  if (weight.dim() == 3) {
    return {data,
            weight.size(1),
            weight.size(0) * kTileColumns,
            weight.stride(1),
            weight.stride(2),
            kTileColumns,
            weight.stride(0)};
  }
  const int64_t depth = weight.size(0);
  const int64_t columns = weight.size(1);
  if (CUSTOM_PYPTO_UNLIKELY(is_declared_nz(weight))) {
    return {data, depth, columns, kTileColumns, 1, kTileColumns, depth * kTileColumns};
  }
  return custom_pypto::weight_of_matrix(weight);
}

}  // namespace custom_pypto_sparse_attention
