// Must not compile: kernels of another type than their op's. -DKERNEL chooses one.
#include "ops.h"

using custom_pypto::Tensor;
using scaled = ops::headers_scaled;
using made = ops::headers_made;

// The form for TORCH_LIBRARY_IMPL.
[[maybe_unused]] static Tensor with_values(const Tensor& self, double) { return self; }

// A kernel of another op.
[[maybe_unused]] static void with_others(const made::Arguments&, const made::CallShape&,
                                         const made::Outputs&) {}

[[maybe_unused]] static Tensor returns_a_tensor(const scaled::Arguments& a,
                                                const scaled::CallShape&) {
  return a.self;
}

// Fills outputs, which the contract does not describe.
[[maybe_unused]] static void fills(const made::Arguments&, const made::CallShape&,
                                   const made::Outputs&) {}

CUSTOM_PYPTO_PLUGIN(plugin) { plugin.def<OP>().impl<&KERNEL>("CPU"); }
