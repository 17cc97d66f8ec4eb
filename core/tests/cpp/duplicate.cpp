// Defines an op of its own, then one that plugin.cpp has: none of it may stay.
#include <custom_pypto/plugin.h>

using torch::stable::Tensor;

static int64_t one(const Tensor&) { return 1; }

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_duplicate_own(Tensor self) -> int")).impl<&one>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_length(Tensor self, str text='') -> int"));
}
