// aclnn ops that index, scatter, concatenate, pad and repeat.
#include "pattern.h"

using custom_pypto_simulator::DynamicOutput;
using Dims = std::vector<int64_t>;

namespace {

// torch_npu passes an empty tensor for a dimension that is not indexed.
c10::List<std::optional<at::Tensor>> indices_of(const std::vector<at::Tensor>& tensors) {
  c10::List<std::optional<at::Tensor>> result;
  for (const auto& tensor : tensors) {
    const bool given = tensor.numel() != 0 || tensor.dim() != 1;
    result.push_back(given ? std::optional<at::Tensor>(tensor) : std::nullopt);
  }
  return result;
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

CUSTOM_PYPTO_SIM_ACLNN(aclnnIndexPutImpl, at::Tensor& self, std::vector<at::Tensor> indices,
                       at::Tensor values, bool accumulate, bool) {
  self.index_put_(indices_of(indices), values, accumulate);
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceIndexCopy, at::Tensor& self, int64_t dim, at::Tensor index,
                       at::Tensor source) {
  self.index_copy_(dim, index, source);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceScatter, at::Tensor& self, int64_t dim, at::Tensor index,
                       at::Tensor source, int64_t reduce) {
  scatter(self, dim, index, source, reduce);
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceScatterValue, at::Tensor& self, int64_t dim, at::Tensor index,
                       at::Scalar value, int64_t reduce) {
  scatter(self, dim, index, value, reduce);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnMaskedSelect, at::Tensor self, at::Tensor mask, DynamicOutput out) {
  out.set(at::masked_select(self, mask.to(at::kBool)));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnNonzero, at::Tensor self, DynamicOutput out) {
  out.set(at::nonzero(self));
}
// One row for each dimension.
CUSTOM_PYPTO_SIM_ACLNN(aclnnNonzeroV2, at::Tensor self, DynamicOutput out) {
  out.set(at::nonzero(self).t());
}

// clang-format off
CUSTOM_PYPTO_SIM_OUT(Cat, at::cat(tensors, dim), std::vector<at::Tensor> tensors, int64_t dim)
CUSTOM_PYPTO_SIM_OUT(Stack, at::stack(tensors, dim), std::vector<at::Tensor> tensors, int64_t dim)
CUSTOM_PYPTO_SIM_OUT(Index, at::index(self, indices_of(indices)),
                     at::Tensor self, std::vector<at::Tensor> indices)
CUSTOM_PYPTO_SIM_OUT(IndexSelect, at::index_select(self, dim, index),
                     at::Tensor self, int64_t dim, at::Tensor index)
CUSTOM_PYPTO_SIM_OUT(IndexCopy, at::index_copy(self, dim, index, source),
                     at::Tensor self, int64_t dim, at::Tensor index, at::Tensor source)
CUSTOM_PYPTO_SIM_OUT(Gather, at::gather(self, dim, index.to(at::kLong)),
                     at::Tensor self, int64_t dim, at::Tensor index)
CUSTOM_PYPTO_SIM_OUT(Embedding, at::embedding(weight, indices),
                     at::Tensor weight, at::Tensor indices)
CUSTOM_PYPTO_SIM_OUT(ScatterAdd, at::scatter_add(self, dim, index, source),
                     at::Tensor self, int64_t dim, at::Tensor index, at::Tensor source)
CUSTOM_PYPTO_SIM_OUT(Expand, self.expand(size), at::Tensor self, Dims size)
CUSTOM_PYPTO_SIM_OUT(Flip, at::flip(self, dims), at::Tensor self, Dims dims)
CUSTOM_PYPTO_SIM_OUT(Repeat, self.repeat(repeats), at::Tensor self, Dims repeats)
CUSTOM_PYPTO_SIM_OUT(Roll, at::roll(self, shifts, dims), at::Tensor self, Dims shifts, Dims dims)
CUSTOM_PYPTO_SIM_OUT(ConstantPadNd, at::constant_pad_nd(self, pad, value),
                     at::Tensor self, Dims pad, at::Scalar value)
// clang-format on
