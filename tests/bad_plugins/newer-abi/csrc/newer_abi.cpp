#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor newer_abi(const Tensor& self) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("newer_abi(Tensor self) -> Tensor")).impl<&newer_abi>("CPU");
}
