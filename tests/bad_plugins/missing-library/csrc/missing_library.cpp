#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor missing_library(const Tensor& self) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("missing_library(Tensor self) -> Tensor"))
      .impl<&missing_library>("CPU");
}
