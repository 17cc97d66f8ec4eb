#include "add.h"

#include <custom_pypto/check.h>
#include <custom_pypto/npu/launch.h>

namespace npu {
namespace {

using custom_pypto::ScalarType;
using custom_pypto::npu::Kernel;
using custom_pypto::npu::KernelChoice;
using custom_pypto::npu::launch;
using custom_pypto::npu::TypedScalar;
using torch::stable::Tensor;

const KernelChoice kernels("add_custom", {"aclnnAddCustom", "aclnnAdd"});

}  // namespace

void add(const Tensor& self, const Tensor& other, const Tensor& out) {
  // What aclnnAddCustom takes; aclnnAdd takes more, but a script must not depend on which is there.
  custom_pypto::Arg("add_custom", "self", self)
      .dtype({ScalarType::Half, ScalarType::BFloat16, ScalarType::Float, ScalarType::Int});
  if (self.numel() == 0) return;
  const Kernel& kernel = kernels.get();
  if (kernel.is("aclnnAddCustom")) {
    launch(kernel, self, other, out);
  } else {
    launch(kernel, self, other, TypedScalar(1), out);
  }
}

}  // namespace npu
