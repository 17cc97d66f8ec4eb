#include <custom_pypto/check.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/plugin.h>

#include <tuple>

#include "cpu/add.h"
#include "npu/add.h"

namespace custom_pypto_add_custom {
namespace {

using custom_pypto::Arg;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

void validate(const Tensor& self, const Tensor& other) {
  const Arg first("add_custom", "self", self);
  const Arg second("add_custom", "other", other);
  second.same_device(first).same_dtype(first);
  custom_pypto::check(self.sizes().equals(other.sizes()), "add_custom", "other",
                      "must have the shape of 'self' ", self.sizes(), ", got ", other.sizes(),
                      "; add_custom does not broadcast: expand the smaller one before");
  first.dtype({ScalarType::Half, ScalarType::BFloat16, ScalarType::Float, ScalarType::Double,
               ScalarType::Int, ScalarType::Long});
}

Tensor add_custom_cpu(const Tensor& self, const Tensor& other) {
  validate(self, other);
  Tensor out = custom_pypto::empty_like_contiguous(self);
  add_cpu(self, other, out);
  return out;
}

Tensor add_custom_npu(const Tensor& self, const Tensor& other) {
  validate(self, other);
  Tensor out = custom_pypto::empty_like_contiguous(self);
  npu::add(self, other, out);
  return out;
}

// Copies, on whatever device `grad` is: autograd may change a gradient in place, so the two must
// not be views of one tensor.
std::tuple<Tensor, Tensor> add_custom_backward(const Tensor& grad) {
  return {torch::stable::clone(grad), torch::stable::clone(grad)};
}

}  // namespace
}  // namespace custom_pypto_add_custom

CUSTOM_PYPTO_PLUGIN(plugin) {
  using namespace custom_pypto_add_custom;
  plugin.def(CUSTOM_PYPTO_SCHEMA("add_custom(Tensor self, Tensor other) -> Tensor"))
      .impl<&add_custom_cpu>("CPU")
      .impl<&add_custom_npu>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("add_custom_backward(Tensor self) -> (Tensor, Tensor)"))
      .impl<&add_custom_backward>("CompositeExplicitAutograd");
}
