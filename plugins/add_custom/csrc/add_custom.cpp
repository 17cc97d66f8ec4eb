// The kernels of add_custom and its backward, and their registration.
#include <custom_pypto_blocks/elementwise.h>
#include <torch/csrc/stable/ops.h>

#include "cpu/add_kernels.h"
#include "ops.h"

namespace custom_pypto_add_custom {
namespace {

using custom_pypto::ScalarType;

Add* kernel_of(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Half:
      return kernels().float16;
    case ScalarType::BFloat16:
      return kernels().bfloat16;
    case ScalarType::Float:
      return kernels().float32;
    case ScalarType::Double:
      return kernels().float64;
    case ScalarType::Int:
      return kernels().int32;
    default:
      return kernels().int64;
  }
}

// The arguments are as ops.toml says: they need no check here.
void add_cpu(const ops::add_custom::Arguments& a, const ops::add_custom::CallShape&,
             const ops::add_custom::Outputs& out) {
  custom_pypto::elementwise(kernel_of(out.sum.scalar_type()), out.sum, a.self, a.other);
}

// Copies, on whatever device `self` is: autograd may change a gradient in place, so the two must
// not be views of one tensor.
ops::add_custom_backward::Outputs add_backward(const ops::add_custom_backward::Arguments& a,
                                               const ops::add_custom_backward::CallShape&) {
  return {torch::stable::clone(a.self), torch::stable::clone(a.self)};
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::add_custom>().impl<&add_cpu>("CPU").impl<&ops::add_custom::launch>("PrivateUse1");
  plugin.def<ops::add_custom_backward>().impl<&add_backward>("CompositeExplicitAutograd");
}

}  // namespace custom_pypto_add_custom
