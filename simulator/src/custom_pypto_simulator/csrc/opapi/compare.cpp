// aclnn comparisons.
#include "pattern.h"

CUSTOM_PYPTO_SIM_BINARY_PAIR(EqTensor, EqScalar, at::eq)
CUSTOM_PYPTO_SIM_BINARY_PAIR(NeTensor, NeScalar, at::ne)
CUSTOM_PYPTO_SIM_BINARY_PAIR(LtTensor, LtScalar, at::lt)
CUSTOM_PYPTO_SIM_BINARY_PAIR(LeTensor, LeScalar, at::le)
CUSTOM_PYPTO_SIM_BINARY_PAIR(GtTensor, GtScalar, at::gt)
CUSTOM_PYPTO_SIM_BINARY_PAIR(GeTensor, GeScalar, at::ge)

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
