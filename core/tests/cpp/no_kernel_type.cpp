// Must not compile: a kernel with a type that no schema has.
#include <custom_pypto/plugin.h>

static void narrow(const torch::stable::Tensor&, int) {}

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_narrow(Tensor self, int k) -> ()")).impl<&narrow>("CPU");
}
