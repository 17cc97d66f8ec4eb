// Steps that both composed prologs take.
#include "npu/steps.h"

#include <custom_pypto/dispatcher.h>
#include <torch/csrc/stable/ops.h>

#include <optional>
#include <vector>

#include "npu/tensors.h"
#include "weight_order.h"

namespace custom_pypto_sparse_attention::npu {

using custom_pypto::call_op;

Tensor as_rows(const Tensor& x) { return reshaped(x, {-1, x.size(-1)}); }

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

Tensor rope(const Tensor& x, const Tensor& sin, const Tensor& cos) {
  const int64_t tokens = x.size(0);
  const int64_t heads = x.size(1);
  const int64_t size = x.size(2);
  const Tensor pairs = reshaped(to_dtype(x, ScalarType::Float), {tokens, heads, size / 2, 2});
  const Tensor even = torch::stable::select(pairs, 3, 0);
  const Tensor odd = torch::stable::select(pairs, 3, 1);
  const auto angles = [&](const Tensor& of) {
    return reshaped(to_dtype(of, ScalarType::Float), {tokens, 1, size});
  };
  const Tensor straight = multiply(concatenate({even, odd}), angles(cos));
  const Tensor crossed = multiply(concatenate({negate(odd), even}), angles(sin));
  return to_dtype(add(straight, crossed), x.scalar_type());
}

void scatter(const Tensor& cache, const Tensor& slots, const Tensor& rows) {
  const int64_t block_size = cache.size(1);
  const Tensor slot = to_dtype(reshaped(slots, {-1}), ScalarType::Long);
  std::vector<std::optional<Tensor>> indices;
  Tensor target = torch::stable::select(cache, 2, 0);
  if (target.stride(0) == block_size * target.stride(1)) {
    target = torch::stable::view(target, {cache.size(0) * block_size, cache.size(3)});
    indices = {slot};
  } else {
    const Tensor size = torch::stable::full({1}, static_cast<double>(block_size), ScalarType::Long,
                                            std::nullopt, slot.device());
    const Tensor block = call_op<Tensor>("aten::floor_divide", "", slot, size);
    const Tensor before = multiply(block, size);
    indices = {block, torch::stable::subtract(slot, before)};
  }
  call_op<Tensor>("aten::index_put_", "", target, indices, rows, false);
}

}  // namespace custom_pypto_sparse_attention::npu
