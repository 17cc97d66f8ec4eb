// aclnn ops that fill, copy, cast and mask tensors.
#include "pattern.h"

CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceCopy, at::Tensor& self, at::Tensor source) {
  self.copy_(source);
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnCast, at::Tensor self, at::ScalarType, at::Tensor& out) {
  out.copy_(self);
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceZero, at::Tensor& self) { self.zero_(); }
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceOne, at::Tensor& self) { self.fill_(1); }
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceFillScalar, at::Tensor& self, at::Scalar value) {
  self.fill_(value);
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceFillTensor, at::Tensor& self, at::Tensor value) {
  self.copy_(value);
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceMaskedFillScalar, at::Tensor& self, at::Tensor mask,
                       at::Scalar value) {
  self.masked_fill_(mask, value);
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceMaskedFillTensor, at::Tensor& self, at::Tensor mask,
                       at::Tensor value) {
  self.masked_fill_(mask, value.reshape({}));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnArange, at::Scalar start, at::Scalar end, at::Scalar step,
                       at::Tensor& out) {
  out.copy_(at::arange(start, end, step, out.options()));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnLinspace, at::Scalar start, at::Scalar end, int64_t steps,
                       at::Tensor& out) {
  out.copy_(at::linspace(start, end, steps, out.options()));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnEye, int64_t rows, int64_t columns, at::Tensor& out) {
  out.copy_(at::eye(rows, columns, out.options()));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnTril, at::Tensor self, int64_t diagonal, at::Tensor& out) {
  out.copy_(at::tril(self, diagonal));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnTriu, at::Tensor self, int64_t diagonal, at::Tensor& out) {
  out.copy_(at::triu(self, diagonal));
}
