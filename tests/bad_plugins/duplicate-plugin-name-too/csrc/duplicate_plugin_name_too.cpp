#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor duplicate_plugin_name_too(const Tensor& self) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("duplicate_plugin_name_too(Tensor self) -> Tensor"))
      .impl<&duplicate_plugin_name_too>("CPU");
}
