#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor foreign_platform(const Tensor& self) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("foreign_platform(Tensor self) -> Tensor"))
      .impl<&foreign_platform>("CPU");
}
