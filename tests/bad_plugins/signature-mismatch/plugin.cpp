#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor signature_mismatch(const Tensor& self, double) { return torch::stable::clone(self); }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("signature_mismatch(Tensor self, int k) -> Tensor"))
      .impl<&signature_mismatch>("CPU");
}
