#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor copy_of(const Tensor& self) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("PACKAGE(Tensor self) -> Tensor")).impl<&copy_of>("CPU");
}
