// Tensors as CANN's kernels need them, by torch's own ops. Each op queues its work on the device
// and returns; a tensor that needs no change is returned as it is.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/message.h>
#include <custom_pypto/tensor_ops.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// As torch's NoGradGuard: no gradients are recorded in its scope. Kernels composed of torch's ops
// use it, so that they have no gradient, like kernels that are one launch.
class NoGradGuard {
 public:
  NoGradGuard() : before_(aoti_torch_grad_mode_is_enabled()) {
    aoti_torch_grad_mode_set_enabled(false);
  }
  ~NoGradGuard() { aoti_torch_grad_mode_set_enabled(before_); }
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  bool before_;
};

using custom_pypto::to_contiguous;
using custom_pypto::to_dtype;

// Contiguous and int32: the only integers that CANN's kernels read.
inline Tensor to_int32(const Tensor& tensor) {
  return to_contiguous(to_dtype(tensor, ScalarType::Int));
}
inline std::optional<Tensor> to_int32(const std::optional<Tensor>& tensor) {
  if (!tensor.has_value()) return std::nullopt;
  return to_int32(*tensor);
}

// Replaces integers above `limit` by it.
inline Tensor clamp_max(const Tensor& integers, int64_t limit) {
  const Tensor limits = torch::stable::full({1}, static_cast<double>(limit), integers.scalar_type(),
                                            std::nullopt, integers.device());
  return call_op<Tensor>("aten::minimum", "", integers, limits);
}

inline Tensor permute(const Tensor& tensor, const std::vector<int64_t>& dims) {
  return call_op<Tensor>("aten::permute", "", tensor, dims);
}

// A view of [begin, begin + size) of the last dimension.
inline Tensor columns(const Tensor& tensor, int64_t begin, int64_t size) {
  return call_op<Tensor>("aten::narrow", "", tensor, -1, begin, size);
}

// Along the last dimension.
inline Tensor concatenate(const std::vector<Tensor>& tensors) {
  return call_op<Tensor>("aten::cat", "", tensors, -1);
}

inline Tensor add(const Tensor& a, const Tensor& b) {
  // The stable ABI cannot pass the Scalar that aten::add takes.
  return torch::stable::subtract(a, b, -1.0);
}

inline Tensor multiply(const Tensor& a, const Tensor& b) {
  return call_op<Tensor>("aten::mul", "Tensor", a, b);
}

inline Tensor negate(const Tensor& a) { return call_op<Tensor>("aten::neg", "", a); }

// Accumulated in fp32, rounded to the operands' dtype.
inline Tensor matrix_product(const Tensor& a, const Tensor& b) {
  return call_op<Tensor>("aten::mm", "", a, b);
}

// In fp32, along the last dimension of x.
inline Tensor rms_norm(const Tensor& x, const Tensor& gamma, double epsilon) {
  return call_op<Tensor>(
      "aten::rms_norm", "", to_dtype(x, ScalarType::Float), std::vector<int64_t>{x.size(-1)},
      std::optional<Tensor>(to_dtype(gamma, ScalarType::Float)), std::optional<double>(epsilon));
}

inline Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon) {
  return call_op<Tensor>("aten::layer_norm", "", to_dtype(x, ScalarType::Float),
                         std::vector<int64_t>{x.size(-1)},
                         std::optional<Tensor>(to_dtype(gamma, ScalarType::Float)),
                         std::optional<Tensor>(to_dtype(beta, ScalarType::Float)), epsilon, false);
}

// [tokens, size] of x [.., size].
inline Tensor as_rows(const Tensor& x) { return reshape(x, {-1, x.size(-1)}); }

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
    indices = {call_op<Tensor>("aten::floor_divide", "", slot, size),
               call_op<Tensor>("aten::remainder", "Tensor", slot, size)};
  }
  call_op<Tensor>("aten::index_put_", "", target, indices, rows, false);
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
