// A plugin as its author writes it: two ops, one with an overload.
#include <custom_pypto/plugin.h>

#include <string_view>

using torch::stable::Tensor;

static int64_t length(const Tensor& self, std::string_view text) {
  return self.numel() + static_cast<int64_t>(text.size());
}

static int64_t length_twice(const Tensor& self) { return 2 * self.numel(); }

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_length(Tensor self, str text='') -> int"))
      .impl<&length>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_length.twice(Tensor self) -> int"))
      .impl<&length_twice>("CPU");
}
