// A plugin that launches kernels on an NPU, for test_npu_kernels.py.
#include <custom_pypto/npu/launch.h>

#include <string>

#include "kernel.h"

namespace {

using custom_pypto::npu::Kernel;
using custom_pypto::npu::KernelChoice;
using custom_pypto::npu::TypedScalar;
using torch::stable::Tensor;

const KernelChoice choice("npu_two", {"aclnnFirst", "aclnnSecond"});
const KernelChoice optional_choice("npu_optional", {"aclnnOptional"});
const KernelChoice launched_choice("npu_launched", {"launched", "aclnnSecond"});

KERNEL(chosen, headers_npu_chosen) {
  const Kernel& kernel = choice.get();
  return {kernel.symbol + " " + kernel.library};
}

KERNEL(found, headers_npu_found) {
  const Kernel* kernel = optional_choice.try_get();
  return {kernel == nullptr ? "none" : kernel->library};
}

KERNEL(launched, headers_npu_launched) {
  const Kernel& kernel = launched_choice.get();
  const int result = kernel.is("launched") ? kernel.launcher<int()>()() : 0;
  return {kernel.symbol + " " + kernel.library + " " + std::to_string(result)};
}

void first(const ops::headers_npu_first::Arguments&, const ops::headers_npu_first::CallShape&,
           const ops::headers_npu_first::Outputs&) {
  EXEC_NPU_CMD(aclnnFirst, 1);
}

// Every kind of argument that needs no device. It is not launched.
void kinds(const ops::headers_npu_kinds::Arguments& a, const ops::headers_npu_kinds::CallShape&,
           const ops::headers_npu_kinds::Outputs&) {
  EXEC_NPU_CMD(aclnnKinds, a.number, a.real, a.flag, a.text, a.maybe_text, a.numbers, a.reals,
               a.flags, a.maybe_real, custom_pypto::ScalarType::BFloat16, TypedScalar(0.5),
               std::nullopt, "literal");
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::headers_npu_chosen>().impl<&chosen>("CompositeExplicitAutograd");
  plugin.def<ops::headers_npu_found>().impl<&found>("CompositeExplicitAutograd");
  plugin.def<ops::headers_npu_launched>().impl<&launched>("CompositeExplicitAutograd");
  plugin.def<ops::headers_npu_first>().impl<&first>("CompositeExplicitAutograd");
  plugin.def<ops::headers_npu_kinds>().impl<&kinds>("CompositeExplicitAutograd");
}
