// aclnn arithmetic of two tensors, or of a tensor and a scalar.
#include "pattern.h"

// clang-format off
CUSTOM_PYPTO_SIM_SCALED(Add, at::Tensor, at::add(self, other, alpha))
CUSTOM_PYPTO_SIM_SCALED(Adds, at::Scalar, at::add(self, other, alpha))
CUSTOM_PYPTO_SIM_SCALED(Sub, at::Tensor, at::sub(self, other, alpha))
CUSTOM_PYPTO_SIM_SCALED(Subs, at::Scalar, at::sub(self, other, alpha))
CUSTOM_PYPTO_SIM_BINARY_PAIR(Mul, Muls, at::mul)
CUSTOM_PYPTO_SIM_BINARY_PAIR(Div, Divs, at::div)
CUSTOM_PYPTO_SIM_BINARY_PAIR(FloorDivide, FloorDivides, at::floor_divide)
CUSTOM_PYPTO_SIM_BINARY_PAIR(FmodTensor, FmodScalar, at::fmod)
CUSTOM_PYPTO_SIM_BINARY_PAIR(RemainderTensorTensor, RemainderTensorScalar, at::remainder)
CUSTOM_PYPTO_SIM_BINARY_PAIR(PowTensorTensor, PowTensorScalar, at::pow)
CUSTOM_PYPTO_SIM_BINARY(Maximum, at::Tensor, at::maximum(self, other))
CUSTOM_PYPTO_SIM_BINARY(Minimum, at::Tensor, at::minimum(self, other))
CUSTOM_PYPTO_SIM_BINARY(ClampMin, at::Scalar, at::clamp_min(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(ClampMax, at::Scalar, at::clamp_max(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(LogicalAnd, at::Tensor, at::logical_and(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(LogicalOr, at::Tensor, at::logical_or(self, other))
CUSTOM_PYPTO_SIM_BINARY(LogicalXor, at::Tensor, at::logical_xor(self, other))
CUSTOM_PYPTO_SIM_BINARY_PAIR(BitwiseAndTensor, BitwiseAndScalar, at::bitwise_and)
CUSTOM_PYPTO_SIM_BINARY_PAIR(BitwiseOrTensor, BitwiseOrScalar, at::bitwise_or)
CUSTOM_PYPTO_SIM_BINARY_PAIR(BitwiseXorTensor, BitwiseXorScalar, at::bitwise_xor)
// clang-format on

CUSTOM_PYPTO_SIM_ACLNN(aclnnPowScalarTensor, at::Scalar self, at::Tensor other, at::Tensor& out) {
  out.copy_(at::pow(self, other));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnClamp, at::Tensor self, std::optional<at::Scalar> min,
                       std::optional<at::Scalar> max, at::Tensor& out) {
  out.copy_(at::clamp(self, min, max));
}

// CANN's mode: 0 true division, 1 truncates, 2 floors.
namespace {

std::optional<c10::string_view> rounding(int64_t mode) {
  if (mode == 0) return std::nullopt;
  return mode == 1 ? "trunc" : "floor";
}

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN(aclnnDivMod, at::Tensor self, at::Tensor other, int64_t mode,
                       at::Tensor& out) {
  out.copy_(at::div(self, other, rounding(mode)));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnDivMods, at::Tensor self, at::Scalar other, int64_t mode,
                       at::Tensor& out) {
  out.copy_(at::div(self, other, rounding(mode)));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnAddcmul, at::Tensor self, at::Tensor tensor1, at::Tensor tensor2,
                       at::Scalar value, at::Tensor& out) {
  out.copy_(at::addcmul(self, tensor1, tensor2, value));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnAddcdiv, at::Tensor self, at::Tensor tensor1, at::Tensor tensor2,
                       at::Scalar value, at::Tensor& out) {
  out.copy_(at::addcdiv(self, tensor1, tensor2, value));
}
