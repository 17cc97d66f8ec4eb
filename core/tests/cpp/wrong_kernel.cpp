// Must not compile: kernels of another type than their op's.
#include "ops.h"

using custom_pypto::Tensor;
using scaled = ops::headers_scaled;
using made = ops::headers_made;

// The form for TORCH_LIBRARY_IMPL.
static Tensor with_values(const Tensor& self, double) { return self; }

// A kernel of another op.
static void with_others(const made::Arguments&, const made::CallShape&, const made::Outputs&) {}

static Tensor returns_a_tensor(const scaled::Arguments& a, const scaled::CallShape&) {
  return a.self;
}

// Fills outputs, which the contract does not describe.
static void fills(const made::Arguments&, const made::CallShape&, const made::Outputs&) {}

CUSTOM_PYPTO_PLUGIN(plugin) {
  auto op = plugin.def<scaled>();
  op.impl<&with_values>("CPU").impl<&with_others>("CPU").impl<&returns_a_tensor>("CPU");
  plugin.def<made>().impl<&fills>("CPU");
}
