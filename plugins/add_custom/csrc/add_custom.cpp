// The kernels of add_custom and its backward, and their registration.
#include <torch/csrc/stable/ops.h>

#include "cpu/add.h"
#include "ops.h"

namespace {

void add_cpu(const ops::add_custom::Arguments& a, const ops::add_custom::Sizes&,
             const ops::add_custom::Outputs& out) {
  custom_pypto_add_custom::add_cpu(a.self, a.other, out.sum);
}

// Copies, on whatever device `self` is: autograd may change a gradient in place, so the two must
// not be views of one tensor.
ops::add_custom_backward::Outputs add_backward(const ops::add_custom_backward::Arguments& a,
                                               const ops::add_custom_backward::Sizes&) {
  return {torch::stable::clone(a.self), torch::stable::clone(a.self)};
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::add_custom>().impl<&add_cpu>("CPU").impl<&ops::add_custom::launch>("PrivateUse1");
  plugin.def<ops::add_custom_backward>().impl<&add_backward>("CompositeExplicitAutograd");
}
