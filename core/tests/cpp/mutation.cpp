// Ops that write to their arguments.
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/mutation.h>
#include <custom_pypto/plugin.h>

#include <optional>
#include <stdexcept>
#include <vector>

using torch::stable::Tensor;

namespace {

void negate(const Tensor& tensor) {
  float* data = tensor.mutable_data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = -data[i];
}

Tensor write(const Tensor& x, const Tensor& read, const std::optional<Tensor>& maybe,
             const std::optional<std::vector<Tensor>>& list) {
  negate(x);
  if (maybe.has_value()) negate(*maybe);
  if (list.has_value()) {
    for (const Tensor& each : *list) negate(each);
  }
  return custom_pypto::call_op<Tensor>("aten::mul", "Tensor", x, read);
}

void fails(const Tensor&) { throw std::runtime_error("headers_write_fails: on purpose"); }

void unannounced(const Tensor& x) { negate(x); }

void by_hand(const Tensor& x) {
  custom_pypto::bump_version(x);
  negate(x);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin
      .def(
          CUSTOM_PYPTO_SCHEMA("headers_write(Tensor(a!) x, Tensor read, *, Tensor(b!)? maybe=None, "
                              "Tensor(c!)[]? list=None) -> Tensor"))
      .impl<&write>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_write_fails(Tensor(a!) x) -> ()")).impl<&fails>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_write_composite(Tensor(a!) x) -> ()"))
      .impl<&unannounced>("CompositeImplicitAutograd");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_write_by_hand(Tensor x) -> ()")).impl<&by_hand>("CPU");
}
