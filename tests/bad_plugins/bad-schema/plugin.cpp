#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor bad_schema(const Tensor& self) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("bad_schema(Tensr self) -> Tensor")).impl<&bad_schema>("CPU");
}
