// aclnn random numbers: reproducible by seed and offset, but not those of an NPU.
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
CUSTOM_PYPTO_SIM_ACLNN(aclnnRandperm, int64_t n, int64_t seed, int64_t offset, at::Tensor& out) {
  out.copy_(at::randperm(n, generator(seed, offset)));
}
