// aclnn comparisons.
#include "pattern.h"

// clang-format off
CUSTOM_PYPTO_SIM_BINARY_INPLACE(EqTensor, at::Tensor, at::eq(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(EqScalar, at::Scalar, at::eq(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(NeTensor, at::Tensor, at::ne(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(NeScalar, at::Scalar, at::ne(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(LtTensor, at::Tensor, at::lt(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(LtScalar, at::Scalar, at::lt(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(LeTensor, at::Tensor, at::le(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(LeScalar, at::Scalar, at::le(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(GtTensor, at::Tensor, at::gt(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(GtScalar, at::Scalar, at::gt(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(GeTensor, at::Tensor, at::ge(self, other))
CUSTOM_PYPTO_SIM_BINARY_INPLACE(GeScalar, at::Scalar, at::ge(self, other))
// clang-format on

CUSTOM_PYPTO_SIM_ACLNN(aclnnEqual, at::Tensor self, at::Tensor other, at::Tensor& out) {
  out.fill_(at::equal(self, other));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnIsClose, at::Tensor self, at::Tensor other, double rtol, double atol,
                       bool equal_nan, at::Tensor& out) {
  out.copy_(at::isclose(self, other, rtol, atol, equal_nan));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnSWhere, at::Tensor condition, at::Tensor self, at::Tensor other,
                       at::Tensor& out) {
  out.copy_(at::where(condition.to(at::kBool), self, other));
}
