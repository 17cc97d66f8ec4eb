#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor duplicate_op(const Tensor& self) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("duplicate_op(Tensor self) -> Tensor")).impl<&duplicate_op>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("duplicate_plugin_name(Tensor self) -> Tensor"));
}
