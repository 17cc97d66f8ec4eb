// aclnn reductions, cumulative sums, sort and top-k.
#include <numeric>

#include "pattern.h"

using Dims = std::vector<int64_t>;

namespace {

// CANN takes an empty list, and no list, as all dimensions.
Dims all_of(const at::Tensor& self, const std::optional<Dims>& dims) {
  if (dims && !dims->empty()) return *dims;
  Dims result(static_cast<size_t>(self.dim()));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

}  // namespace

#define CUSTOM_PYPTO_SIM_REDUCE(name, expression, ...)                           \
  CUSTOM_PYPTO_SIM_ACLNN(aclnn##name, at::Tensor self, std::optional<Dims> dims, \
                         bool keep, ##__VA_ARGS__, at::Tensor& out) {            \
    const Dims over = all_of(self, dims);                                        \
    out.copy_(expression);                                                       \
  }
#define CUSTOM_PYPTO_SIM_EXTREME(name, function)                                    \
  CUSTOM_PYPTO_SIM_ACLNN(aclnn##name##Dim, at::Tensor self, int64_t dim, bool keep, \
                         at::Tensor& out, at::Tensor& indices) {                    \
    const auto found = function(self, dim, keep);                                   \
    out.copy_(std::get<0>(found));                                                  \
    indices.copy_(std::get<1>(found));                                              \
  }                                                                                 \
  CUSTOM_PYPTO_SIM_UNARY(name, function(self))

// clang-format off
CUSTOM_PYPTO_SIM_REDUCE(All, self.dim() == 0 ? at::all(self) : at::all(self.to(at::kBool), over, keep))
CUSTOM_PYPTO_SIM_REDUCE(Any, self.dim() == 0 ? at::any(self) : at::any(self.to(at::kBool), over, keep))
CUSTOM_PYPTO_SIM_REDUCE(Amax, at::amax(self, over, keep))
CUSTOM_PYPTO_SIM_REDUCE(Amin, at::amin(self, over, keep))
CUSTOM_PYPTO_SIM_REDUCE(ReduceSum, at::sum(self, over, keep, dtype), at::ScalarType dtype)
CUSTOM_PYPTO_SIM_REDUCE(Mean, at::mean(self, over, keep, dtype), at::ScalarType dtype)
CUSTOM_PYPTO_SIM_EXTREME(Max, at::max)
CUSTOM_PYPTO_SIM_EXTREME(Min, at::min)
// clang-format on

CUSTOM_PYPTO_SIM_ACLNN(aclnnTopk, at::Tensor self, int64_t k, int64_t dim, bool largest,
                       bool sorted, at::Tensor& values, at::Tensor& indices) {
  const auto [found, where] = at::topk(self, k, dim, largest, sorted);
  values.copy_(found);
  indices.copy_(where);
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnSort, at::Tensor self, bool stable, int64_t dim, bool descending,
                       at::Tensor& values, at::Tensor& indices) {
  const auto [found, where] = at::sort(self, stable, dim, descending);
  values.copy_(found);
  indices.copy_(where);
}

// clang-format off
CUSTOM_PYPTO_SIM_OUT(ArgMax, at::argmax(self, dim, keep).reshape(out.sizes()),
                     at::Tensor self, int64_t dim, bool keep)
CUSTOM_PYPTO_SIM_OUT(ArgMin, at::argmin(self, dim, keep).reshape(out.sizes()),
                     at::Tensor self, int64_t dim, bool keep)
CUSTOM_PYPTO_SIM_OUT(Prod, at::prod(self, dtype), at::Tensor self, at::ScalarType dtype)
CUSTOM_PYPTO_SIM_OUT(Cumsum, at::cumsum(self, dim, dtype),
                     at::Tensor self, int64_t dim, at::ScalarType dtype)
CUSTOM_PYPTO_SIM_OUT(LinalgVectorNorm,
                     at::linalg_vector_norm(self, order, all_of(self, dims), keep, dtype),
                     at::Tensor self, at::Scalar order, std::optional<Dims> dims, bool keep,
                     at::ScalarType dtype)
// clang-format on
