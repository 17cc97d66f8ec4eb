// aclnn functions of one tensor, and arithmetic and comparisons of tensors and scalars.
#include "pattern.h"

namespace {

// CANN's mode: 0 true division, 1 truncates, 2 floors.
std::optional<c10::string_view> rounding(int64_t mode) {
  if (mode == 0) return std::nullopt;
  return mode == 1 ? "trunc" : "floor";
}

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN(aclnnEqual, at::Tensor self, at::Tensor other, at::Tensor& out) {
  out.fill_(at::equal(self, other));
}

// clang-format off
CUSTOM_PYPTO_SIM_UNARY(Abs, at::abs(self))
CUSTOM_PYPTO_SIM_UNARY(IsFinite, at::isfinite(self))
CUSTOM_PYPTO_SIM_UNARY(IsNegInf, at::isneginf(self))
CUSTOM_PYPTO_SIM_UNARY(IsPosInf, at::isposinf(self))
CUSTOM_PYPTO_SIM_UNARY(BitwiseNot, at::bitwise_not(self))
CUSTOM_PYPTO_SIM_UNARY(Sign, at::sign(self))
CUSTOM_PYPTO_SIM_UNARY(Silu, at::silu(self))
CUSTOM_PYPTO_SIM_UNARY(Gelu, at::gelu(self))
CUSTOM_PYPTO_SIM_UNARY(Softplus, at::softplus(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Ceil, at::ceil(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Cos, at::cos(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Erf, at::erf(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Exp, at::exp(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Exp2, at::exp2(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Floor, at::floor(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Log, at::log(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Log10, at::log10(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Log2, at::log2(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(LogicalNot, at::logical_not(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Neg, at::neg(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Reciprocal, at::reciprocal(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Relu, at::relu(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Round, at::round(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Rsqrt, at::rsqrt(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Sigmoid, at::sigmoid(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Sin, at::sin(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Sqrt, at::sqrt(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Tanh, at::tanh(self))
CUSTOM_PYPTO_SIM_UNARY_INPLACE(Trunc, at::trunc(self))
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
CUSTOM_PYPTO_SIM_BINARY_PAIR(EqTensor, EqScalar, at::eq)
CUSTOM_PYPTO_SIM_BINARY_PAIR(NeTensor, NeScalar, at::ne)
CUSTOM_PYPTO_SIM_BINARY_PAIR(LtTensor, LtScalar, at::lt)
CUSTOM_PYPTO_SIM_BINARY_PAIR(LeTensor, LeScalar, at::le)
CUSTOM_PYPTO_SIM_BINARY_PAIR(GtTensor, GtScalar, at::gt)
CUSTOM_PYPTO_SIM_BINARY_PAIR(GeTensor, GeScalar, at::ge)
CUSTOM_PYPTO_SIM_OUT(PowScalarTensor, at::pow(self, other), at::Scalar self, at::Tensor other)
CUSTOM_PYPTO_SIM_OUT(Clamp, at::clamp(self, min, max),
                     at::Tensor self, std::optional<at::Scalar> min, std::optional<at::Scalar> max)
CUSTOM_PYPTO_SIM_OUT(DivMod, at::div(self, other, rounding(mode)),
                     at::Tensor self, at::Tensor other, int64_t mode)
CUSTOM_PYPTO_SIM_OUT(DivMods, at::div(self, other, rounding(mode)),
                     at::Tensor self, at::Scalar other, int64_t mode)
CUSTOM_PYPTO_SIM_OUT(Addcmul, at::addcmul(self, tensor1, tensor2, value),
                     at::Tensor self, at::Tensor tensor1, at::Tensor tensor2, at::Scalar value)
CUSTOM_PYPTO_SIM_OUT(Addcdiv, at::addcdiv(self, tensor1, tensor2, value),
                     at::Tensor self, at::Tensor tensor1, at::Tensor tensor2, at::Scalar value)
CUSTOM_PYPTO_SIM_OUT(IsClose, at::isclose(self, other, rtol, atol, equal_nan),
                     at::Tensor self, at::Tensor other, double rtol, double atol, bool equal_nan)
CUSTOM_PYPTO_SIM_OUT(SWhere, at::where(condition.to(at::kBool), self, other),
                     at::Tensor condition, at::Tensor self, at::Tensor other)
// clang-format on
