#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor foreign_op_in_hook(const Tensor& self) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("foreign_op_in_hook(Tensor self) -> Tensor"))
      .impl<&foreign_op_in_hook>("CPU");
}
