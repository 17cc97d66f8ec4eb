#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor wrong_abi(const Tensor& self) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("wrong_abi(Tensor self) -> Tensor")).impl<&wrong_abi>("CPU");
}
