// Ops whose derivative Python gives.
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/plugin.h>

#include <optional>
#include <stdexcept>
#include <vector>

using torch::stable::Tensor;

namespace {

Tensor product(const Tensor& x, double factor, const std::optional<Tensor>& maybe) {
  if (factor < 0) throw std::runtime_error("headers_product: argument 'factor' is negative");
  const Tensor scaled = custom_pypto::call_op<Tensor>("aten::mul", "Tensor", x, x);
  return maybe.has_value() ? custom_pypto::call_op<Tensor>("aten::mul", "Tensor", scaled, *maybe)
                           : scaled;
}

Tensor first(const std::vector<Tensor>& tensors) {
  return custom_pypto::call_op<Tensor>("aten::clone", "", tensors.at(0), std::nullopt);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "headers_product(Tensor x, float factor=1.0, Tensor? maybe=None) -> Tensor"))
      .differentiable()
      .impl<&product>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_first(Tensor[] tensors) -> Tensor"))
      .differentiable()
      .impl<&first>("CPU");
}
