// Ops that write to their arguments.
#include <custom_pypto/dispatcher.h>

#include "ops.h"

using custom_pypto::Tensor;

namespace {

void negate(const Tensor& tensor) {
  float* data = tensor.mutable_data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    int64_t rest = i;
    int64_t at = 0;
    for (int64_t dim = tensor.dim(); dim-- > 0; rest /= tensor.size(dim)) {
      at += rest % tensor.size(dim) * tensor.stride(dim);
    }
    data[at] = -data[at];
  }
}

ops::headers_write::Outputs write(const ops::headers_write::Arguments& a,
                                  const ops::headers_write::CallShape&) {
  negate(a.x);
  if (a.maybe.has_value()) negate(*a.maybe);
  if (a.list.has_value()) {
    for (const Tensor& each : *a.list) negate(each);
  }
  return {custom_pypto::call_op<Tensor>("aten::mul", "Tensor", a.x, a.read)};
}

void unannounced(const ops::headers_write_composite::Arguments& a,
                 const ops::headers_write_composite::CallShape&,
                 const ops::headers_write_composite::Outputs&) {
  negate(a.x);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::headers_write>().impl<&write>("CPU");
  plugin.def<ops::headers_write_composite>().impl<&unannounced>("CompositeImplicitAutograd");
}
