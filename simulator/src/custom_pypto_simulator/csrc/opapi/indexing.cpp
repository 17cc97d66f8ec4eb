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

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN(aclnnCat, std::vector<at::Tensor> tensors, int64_t dim, at::Tensor& out) {
  out.copy_(at::cat(tensors, dim));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnStack, std::vector<at::Tensor> tensors, int64_t dim, at::Tensor& out) {
  out.copy_(at::stack(tensors, dim));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnIndex, at::Tensor self, std::vector<at::Tensor> indices,
                       at::Tensor& out) {
  out.copy_(at::index(self, indices_of(indices)));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnIndexPutImpl, at::Tensor& self, std::vector<at::Tensor> indices,
                       at::Tensor values, bool accumulate, bool) {
  self.index_put_(indices_of(indices), values, accumulate);
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnIndexSelect, at::Tensor self, int64_t dim, at::Tensor index,
                       at::Tensor& out) {
  out.copy_(at::index_select(self, dim, index));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnIndexCopy, at::Tensor self, int64_t dim, at::Tensor index,
                       at::Tensor source, at::Tensor& out) {
  out.copy_(at::index_copy(self, dim, index, source));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceIndexCopy, at::Tensor& self, int64_t dim, at::Tensor index,
                       at::Tensor source) {
  self.index_copy_(dim, index, source);
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnGather, at::Tensor self, int64_t dim, at::Tensor index,
                       at::Tensor& out) {
  out.copy_(at::gather(self, dim, index.to(at::kLong)));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnEmbedding, at::Tensor weight, at::Tensor indices, at::Tensor& out) {
  out.copy_(at::embedding(weight, indices));
}

// CANN's reduce: 0 none, 1 add, 2 multiply.
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceScatter, at::Tensor& self, int64_t dim, at::Tensor index,
                       at::Tensor source, int64_t reduce) {
  if (reduce == 0) {
    self.scatter_(dim, index, source);
  } else {
    self.scatter_(dim, index, source, reduce == 1 ? "add" : "multiply");
  }
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnInplaceScatterValue, at::Tensor& self, int64_t dim, at::Tensor index,
                       at::Scalar value, int64_t reduce) {
  if (reduce == 0) {
    self.scatter_(dim, index, value);
  } else {
    self.scatter_(dim, index, value, reduce == 1 ? "add" : "multiply");
  }
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnScatterAdd, at::Tensor self, int64_t dim, at::Tensor index,
                       at::Tensor source, at::Tensor& out) {
  out.copy_(at::scatter_add(self, dim, index, source));
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

CUSTOM_PYPTO_SIM_ACLNN(aclnnFlip, at::Tensor self, Dims dims, at::Tensor& out) {
  out.copy_(at::flip(self, dims));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnRepeat, at::Tensor self, Dims repeats, at::Tensor& out) {
  out.copy_(self.repeat(repeats));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnExpand, at::Tensor self, Dims size, at::Tensor& out) {
  out.copy_(self.expand(size));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnRoll, at::Tensor self, Dims shifts, Dims dims, at::Tensor& out) {
  out.copy_(at::roll(self, shifts, dims));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnConstantPadNd, at::Tensor self, Dims pad, at::Scalar value,
                       at::Tensor& out) {
  out.copy_(at::constant_pad_nd(self, pad, value));
}
