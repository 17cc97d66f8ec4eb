// Ops that launch the empty kernel by custom_pypto's EXEC_NPU_CMD, in steps: each does what the
// step before does, and one thing more.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/plugin.h>

#include <tuple>

namespace {

using custom_pypto::npu::KernelChoice;
using custom_pypto::npu::torch_npu;
using custom_pypto::npu::detail::Argument;
using custom_pypto::npu::detail::Launch;
using torch::stable::Tensor;
using Arguments = std::tuple<Argument<Tensor>, Argument<Tensor>>;

const KernelChoice kernels("benchmark", {"aclnnBenchmarkNoOp"});

Arguments describe(const Tensor& self, const Tensor& out) {
  const std::string& title = kernels.get().title;
  return {Argument<Tensor>({title, 1}, self), Argument<Tensor>({title, 2}, out)};
}

Tensor dispatched(const Tensor& self) { return self; }

Tensor allocated(const Tensor& self) { return custom_pypto::empty_like_contiguous(self); }

Tensor described(const Tensor& self) {
  Tensor out = custom_pypto::empty_like_contiguous(self);
  describe(self, out);
  return out;
}

Tensor called(const Tensor& self) {
  Tensor out = custom_pypto::empty_like_contiguous(self);
  Launch<Arguments> task(kernels.get(), torch_npu().stream(), 0);
  task.hold(describe(self, out));
  task.prepare();
  task.run();
  return out;
}

Tensor launched(const Tensor& self) {
  Tensor out = custom_pypto::empty_like_contiguous(self);
  EXEC_NPU_CMD(aclnnBenchmarkNoOp, self, out);
  return out;
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("benchmark_dispatched(Tensor self) -> Tensor"))
      .impl<&dispatched>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("benchmark_allocated(Tensor self) -> Tensor"))
      .impl<&allocated>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("benchmark_described(Tensor self) -> Tensor"))
      .impl<&described>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("benchmark_called(Tensor self) -> Tensor"))
      .impl<&called>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("benchmark_launched(Tensor self) -> Tensor"))
      .impl<&launched>("PrivateUse1");
}
