// Launched by EXEC_NPU_CMD of custom_pypto, and, for the cost of the rest, not at all.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/plugin.h>

namespace {

using torch::stable::Tensor;

Tensor launched(const Tensor& self) {
  Tensor out = custom_pypto::empty_like_contiguous(self);
  EXEC_NPU_CMD(aclnnBenchmarkNothing, self, out);
  return out;
}

Tensor allocated(const Tensor& self) { return custom_pypto::empty_like_contiguous(self); }

Tensor dispatched(const Tensor& self) { return self; }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("benchmark_launched(Tensor self) -> Tensor"))
      .impl<&launched>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("benchmark_allocated(Tensor self) -> Tensor"))
      .impl<&allocated>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("benchmark_dispatched(Tensor self) -> Tensor"))
      .impl<&dispatched>("PrivateUse1");
}
