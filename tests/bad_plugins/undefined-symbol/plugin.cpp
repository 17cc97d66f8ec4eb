#include <custom_pypto/plugin.h>

extern "C" void a_function_that_no_library_has();

namespace {

using torch::stable::Tensor;

Tensor undefined_symbol(const Tensor& self) {
  a_function_that_no_library_has();
  return torch::stable::clone(self);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("undefined_symbol(Tensor self) -> Tensor"))
      .impl<&undefined_symbol>("CPU");
}
