#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor changed_library(const Tensor& self) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("changed_library(Tensor self) -> Tensor"))
      .impl<&changed_library>("CPU");
}
