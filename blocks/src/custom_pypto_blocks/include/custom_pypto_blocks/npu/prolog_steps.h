// Steps of prologs that are composed of stock torch ops on NPUs.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto_blocks/npu/tensor_ops.h>

#include <cstdint>
#include <optional>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// [tokens, size] of x [.., size].
inline Tensor as_rows(const Tensor& x) { return reshape(x, {-1, x.size(-1)}); }

// [*tokens, ..] from rows [tokens, ..], with the leading dimensions of x [*tokens, H]; contiguous.
inline Tensor unflatten_tokens(const Tensor& x, const Tensor& rows) {
  std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().end() - 1);
  sizes.insert(sizes.end(), rows.sizes().begin() + 1, rows.sizes().end());
  return to_contiguous(reshape(rows, sizes));
}

// Rotates x [tokens, heads, R] by sin and cos [tokens, R], in fp32, and rounds to x's dtype. Even
// dims come first, then odd ones.
inline Tensor rope(const Tensor& x, const Tensor& sin, const Tensor& cos) {
  const int64_t tokens = x.size(0);
  const int64_t heads = x.size(1);
  const int64_t size = x.size(2);
  const Tensor pairs = reshape(to_dtype(x, ScalarType::Float), {tokens, heads, size / 2, 2});
  const Tensor even = torch::stable::select(pairs, 3, 0);
  const Tensor odd = torch::stable::select(pairs, 3, 1);
  const auto angles = [&](const Tensor& of) {
    return reshape(to_dtype(of, ScalarType::Float), {tokens, 1, size});
  };
  const Tensor straight = multiply(concatenate({even, odd}), angles(cos));
  const Tensor crossed = multiply(concatenate({negate(odd), even}), angles(sin));
  return to_dtype(add(straight, crossed), x.scalar_type());
}

// Rotates only the first dims of x [tokens, heads, size]: as many as sin has.
inline Tensor rope_first(const Tensor& x, const Tensor& sin, const Tensor& cos) {
  const int64_t rotated = sin.size(-1);
  const Tensor front = rope(columns(x, 0, rotated), sin, cos);
  const int64_t rest = x.size(2) - rotated;
  return rest == 0 ? front : concatenate({front, columns(x, rotated, rest)});
}

// cache[slot / block_size, slot % block_size, 0] = row, for each of the rows [tokens, size], in a
// cache [blocks, block_size, 1, size].
inline void scatter(const Tensor& cache, const Tensor& slots, const Tensor& rows) {
  const int64_t block_size = cache.size(1);
  const Tensor slot = to_dtype(reshape(slots, {-1}), ScalarType::Long);
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

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
