// aclnn ops that fill, copy, cast and mask tensors. Random numbers are reproducible by seed and
// offset, but not those of an NPU.
#include <ATen/CPUGeneratorImpl.h>

#include "pattern.h"

namespace {

at::Generator generator(int64_t seed, int64_t offset) {
  return at::detail::createCPUGenerator(static_cast<uint64_t>(seed * 1000003 + offset));
}

// A captured graph reads seed and offset from device memory, so each replay differs.
at::Generator generator(const at::Tensor& seed, const at::Tensor& first, int64_t offset) {
  return generator(seed.item<int64_t>(), first.item<int64_t>() + offset);
}

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceCopy, at::Tensor& self, at::Tensor source) {
  self.copy_(source);
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

CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceNormal, at::Tensor& self, float mean, float deviation,
                       int64_t seed, int64_t offset) {
  self.normal_(mean, deviation, generator(seed, offset));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceNormalTensor, at::Tensor& self, float mean, float deviation,
                       at::Tensor seed, at::Tensor first, int64_t offset) {
  self.normal_(mean, deviation, generator(seed, first, offset));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceUniform, at::Tensor& self, double from, double to, uint64_t seed,
                       uint64_t offset) {
  self.uniform_(from, to, generator(static_cast<int64_t>(seed), static_cast<int64_t>(offset)));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceUniformTensor, at::Tensor& self, double from, double to,
                       at::Tensor seed, at::Tensor first, uint64_t offset) {
  self.uniform_(from, to, generator(seed, first, static_cast<int64_t>(offset)));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceRandom, at::Tensor& self, int64_t from, int64_t to, int64_t seed,
                       int64_t offset) {
  self.random_(from, to, generator(seed, offset));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceRandomTensor, at::Tensor& self, int64_t from, int64_t to,
                       at::Tensor seed, at::Tensor first, int64_t offset) {
  self.random_(from, to, generator(seed, first, offset));
}

// clang-format off
CUSTOM_PYPTO_SIM_OUT(Cast, self, at::Tensor self, at::ScalarType)
CUSTOM_PYPTO_SIM_OUT(Arange, at::arange(start, end, step, out.options()),
                     at::Scalar start, at::Scalar end, at::Scalar step)
CUSTOM_PYPTO_SIM_OUT(Linspace, at::linspace(start, end, steps, out.options()),
                     at::Scalar start, at::Scalar end, int64_t steps)
CUSTOM_PYPTO_SIM_OUT(Eye, at::eye(rows, columns, out.options()), int64_t rows, int64_t columns)
CUSTOM_PYPTO_SIM_OUT(Tril, at::tril(self, diagonal), at::Tensor self, int64_t diagonal)
CUSTOM_PYPTO_SIM_OUT(Triu, at::triu(self, diagonal), at::Tensor self, int64_t diagonal)
CUSTOM_PYPTO_SIM_OUT(Randperm, at::randperm(n, generator(seed, offset)),
                     int64_t n, int64_t seed, int64_t offset)
// clang-format on
