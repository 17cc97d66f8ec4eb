// The aclnn functions that are not one op of ATen. Random numbers are reproducible by seed and
// offset, but not those of an NPU.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/List.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/randperm.h>

#include <numeric>

#include "custom_pypto_simulator/aclnn.h"
#include "custom_pypto_simulator/fractal_nz.h"

using custom_pypto_simulator::DynamicOutput;
using custom_pypto_simulator::from_fractal_nz;
using Dims = std::vector<int64_t>;

namespace {

at::Generator generator(int64_t seed, int64_t offset) {
  return at::detail::createCPUGenerator(static_cast<uint64_t>(seed * 1000003 + offset));
}

// A captured graph reads seed and offset from device memory, so each replay differs.
at::Generator generator(const at::Tensor& seed, const at::Tensor& first, int64_t offset) {
  return generator(seed.item<int64_t>(), first.item<int64_t>() + offset);
}

// CANN takes an empty list, and no list, as all dimensions.
Dims all_of(const at::Tensor& self, const std::optional<Dims>& dims) {
  if (dims && !dims->empty()) return *dims;
  Dims result(static_cast<size_t>(self.dim()));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

// torch_npu passes an empty tensor for a dimension that is not indexed.
c10::List<std::optional<at::Tensor>> indices_of(const std::vector<at::Tensor>& tensors) {
  c10::List<std::optional<at::Tensor>> result;
  for (const auto& tensor : tensors) {
    const bool given = tensor.numel() != 0 || tensor.dim() != 1;
    result.push_back(given ? std::optional<at::Tensor>(tensor) : std::nullopt);
  }
  return result;
}

// CANN's mode: 0 true division, 1 truncates, 2 floors.
std::optional<c10::string_view> rounding(int64_t mode) {
  if (mode == 0) return std::nullopt;
  return mode == 1 ? "trunc" : "floor";
}

// CANN's reduce: 0 none, 1 add, 2 multiply.
template <class Source>
void scatter(at::Tensor& self, int64_t dim, const at::Tensor& index, const Source& source,
             int64_t reduce) {
  if (reduce == 0) {
    self.scatter_(dim, index, source);
  } else {
    self.scatter_(dim, index, source, reduce == 1 ? "add" : "multiply");
  }
}

}  // namespace

#define KERNEL(aclnn_name, ...) CUSTOM_PYPTO_SIM_ACLNN_KERNEL(aclnn_name, nullptr, __VA_ARGS__)
// An op with one output, by an expression of the inputs, which follow.
#define OP(name, expression, ...) \
  KERNEL(aclnn##name, __VA_ARGS__, at::Tensor& out) { out.copy_(expression); }
#define REDUCTION(name, expression, ...) \
  OP(name, expression, at::Tensor self, std::optional<Dims> dims, bool keep, ##__VA_ARGS__)
#define INPLACE(name, statement, ...) \
  KERNEL(aclnnInplace##name, at::Tensor& self, __VA_ARGS__) { self.statement; }

// clang-format off
OP(Arange, at::arange(start, end, step, out.options()),
   at::Scalar start, at::Scalar end, at::Scalar step)
OP(ArgMax, self.argmax(dim, keep).reshape(out.sizes()),
   at::Tensor self, int64_t dim, bool keep)
OP(ArgMin, self.argmin(dim, keep).reshape(out.sizes()),
   at::Tensor self, int64_t dim, bool keep)
OP(Cast, self, at::Tensor self, at::ScalarType)
OP(DivMod, self.div(other, rounding(mode)), at::Tensor self, at::Tensor other, int64_t mode)
OP(DivMods, self.div(other, rounding(mode)), at::Tensor self, at::Scalar other, int64_t mode)
OP(Gather, self.gather(dim, index.to(at::kLong)),
   at::Tensor self, int64_t dim, at::Tensor index)
OP(Index, self.index(indices_of(indices)), at::Tensor self, std::vector<at::Tensor> indices)
OP(LinalgVectorNorm, at::linalg_vector_norm(self, order, all_of(self, dims), keep, dtype),
   at::Tensor self, at::Scalar order, std::optional<Dims> dims, bool keep, at::ScalarType dtype)
OP(Linspace, at::linspace(start, end, steps, out.options()),
   at::Scalar start, at::Scalar end, int64_t steps)
OP(LogSoftmax, self.log_softmax(dim, out.scalar_type()), at::Tensor self, int64_t dim)
OP(Randperm, at::randperm(n, generator(seed, offset)), int64_t n, int64_t seed, int64_t offset)
OP(Softmax, self.softmax(dim, out.scalar_type()), at::Tensor self, int64_t dim)
OP(SoftmaxBackward, at::_softmax_backward_data(grad, output, dim, output.scalar_type()),
   at::Tensor grad, at::Tensor output, int64_t dim)
OP(SWhere, self.where(condition.to(at::kBool), other),
   at::Tensor condition, at::Tensor self, at::Tensor other)

REDUCTION(All, self.dim() == 0 ? self.all() : self.to(at::kBool).all(all_of(self, dims), keep))
REDUCTION(Any, self.dim() == 0 ? self.any() : self.to(at::kBool).any(all_of(self, dims), keep))
REDUCTION(Amax, self.amax(all_of(self, dims), keep))
REDUCTION(Amin, self.amin(all_of(self, dims), keep))
REDUCTION(Mean, self.mean(all_of(self, dims), keep, dtype), at::ScalarType dtype)
REDUCTION(ReduceSum, self.sum(all_of(self, dims), keep, dtype), at::ScalarType dtype)

INPLACE(MaskedFillTensor, masked_fill_(mask, value.reshape({})), at::Tensor mask, at::Tensor value)
INPLACE(Normal, normal_(mean, deviation, generator(seed, offset)),
        float mean, float deviation, int64_t seed, int64_t offset)
INPLACE(NormalTensor, normal_(mean, deviation, generator(seed, first, offset)),
        float mean, float deviation, at::Tensor seed, at::Tensor first, int64_t offset)
INPLACE(Random, random_(from, to, generator(seed, offset)),
        int64_t from, int64_t to, int64_t seed, int64_t offset)
INPLACE(RandomTensor, random_(from, to, generator(seed, first, offset)),
        int64_t from, int64_t to, at::Tensor seed, at::Tensor first, int64_t offset)
INPLACE(Uniform, uniform_(from, to, generator(seed, offset)),
        double from, double to, int64_t seed, int64_t offset)
INPLACE(UniformTensor, uniform_(from, to, generator(seed, first, offset)),
        double from, double to, at::Tensor seed, at::Tensor first, int64_t offset)
// clang-format on

KERNEL(aclnnEqual, at::Tensor self, at::Tensor other, at::Tensor& out) {
  out.fill_(self.equal(other));
}
KERNEL(aclnnIndexPutImpl, at::Tensor& self, std::vector<at::Tensor> indices, at::Tensor values,
       bool accumulate, bool) {
  self.index_put_(indices_of(indices), values, accumulate);
}
KERNEL(aclnnInplaceScatter, at::Tensor& self, int64_t dim, at::Tensor index, at::Tensor source,
       int64_t reduce) {
  scatter(self, dim, index, source, reduce);
}
KERNEL(aclnnInplaceScatterValue, at::Tensor& self, int64_t dim, at::Tensor index, at::Scalar value,
       int64_t reduce) {
  scatter(self, dim, index, value, reduce);
}
KERNEL(aclnnMaskedSelect, at::Tensor self, at::Tensor mask, DynamicOutput out) {
  out.set(self.masked_select(mask.to(at::kBool)));
}
KERNEL(aclnnNonzero, at::Tensor self, DynamicOutput out) { out.set(self.nonzero()); }
// One row for each dimension.
KERNEL(aclnnNonzeroV2, at::Tensor self, DynamicOutput out) { out.set(self.nonzero().t()); }
KERNEL(aclnnMatmulWeightNz, at::Tensor self, const aclTensor& mat2, at::Tensor& out, int8_t) {
  out.copy_(self.mm(from_fractal_nz(mat2)));
}
KERNEL(aclnnRmsNorm, at::Tensor self, at::Tensor weight, double epsilon, at::Tensor& out,
       at::Tensor& scale) {
  const auto wide = self.to(at::kFloat);
  Dims dims;
  for (int64_t i = -weight.dim(); i < 0; ++i) dims.push_back(i);
  const auto inverse = wide.square().mean(dims, true).add(epsilon).rsqrt();
  out.copy_(wide.mul(inverse).mul(weight.to(at::kFloat)));
  scale.copy_(inverse);
}
KERNEL(aclnnLayerNorm, at::Tensor self, Dims shape, std::optional<at::Tensor> weight,
       std::optional<at::Tensor> bias, double epsilon, at::Tensor& out,
       std::optional<at::Tensor> mean, std::optional<at::Tensor> scale) {
  const auto [result, center, inverse] = at::native_layer_norm(self, shape, weight, bias, epsilon);
  out.copy_(result);
  if (mean) mean->copy_(center);
  if (scale) scale->copy_(inverse);
}
