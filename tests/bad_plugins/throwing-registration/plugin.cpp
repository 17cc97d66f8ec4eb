#include <custom_pypto/plugin.h>

#include <stdexcept>

namespace {

using torch::stable::Tensor;

Tensor throwing_registration(const Tensor& self) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("throwing_registration(Tensor self) -> Tensor"))
      .impl<&throwing_registration>("CPU");
  throw std::runtime_error("the licence server of this plugin is on holiday");
}
