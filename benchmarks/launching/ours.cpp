// Ops that launch the empty kernel by custom_pypto's EXEC_NPU_CMD, in steps: each does what the
// step before does, and one thing more.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>

#include <tuple>

#include "ops.h"

namespace {

using custom_pypto::npu::KernelChoice;
using custom_pypto::npu::torch_npu;
using custom_pypto::npu::detail::Argument;
using custom_pypto::npu::detail::Launch;
using torch::stable::Tensor;
using Both = std::tuple<Argument<Tensor>, Argument<Tensor>>;

const KernelChoice kernels("benchmark", {"aclnnBenchmarkNoOp"});

Both describe(const Tensor& self, const Tensor& out) {
  const std::string& title = kernels.get().title;
  return {Argument<Tensor>({title, 1}, self), Argument<Tensor>({title, 2}, out)};
}

ops::benchmark_dispatched::Outputs dispatched(const ops::benchmark_dispatched::Arguments& a,
                                              const ops::benchmark_dispatched::Sizes&) {
  return {a.self};
}

ops::benchmark_allocated::Outputs allocated(const ops::benchmark_allocated::Arguments& a,
                                            const ops::benchmark_allocated::Sizes&) {
  return {custom_pypto::empty_like_contiguous(a.self)};
}

ops::benchmark_described::Outputs described(const ops::benchmark_described::Arguments& a,
                                            const ops::benchmark_described::Sizes&) {
  Tensor out = custom_pypto::empty_like_contiguous(a.self);
  describe(a.self, out);
  return {out};
}

ops::benchmark_called::Outputs called(const ops::benchmark_called::Arguments& a,
                                      const ops::benchmark_called::Sizes&) {
  Tensor out = custom_pypto::empty_like_contiguous(a.self);
  Launch<Both> task(kernels.get(), torch_npu().stream(), 0);
  task.hold(describe(a.self, out));
  task.prepare();
  task.run();
  return {out};
}

ops::benchmark_launched::Outputs launched(const ops::benchmark_launched::Arguments& a,
                                          const ops::benchmark_launched::Sizes&) {
  Tensor out = custom_pypto::empty_like_contiguous(a.self);
  EXEC_NPU_CMD(aclnnBenchmarkNoOp, a.self, out);
  return {out};
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::benchmark_dispatched>().impl<&dispatched>("PrivateUse1");
  plugin.def<ops::benchmark_allocated>().impl<&allocated>("PrivateUse1");
  plugin.def<ops::benchmark_described>().impl<&described>("PrivateUse1");
  plugin.def<ops::benchmark_called>().impl<&called>("PrivateUse1");
  plugin.def<ops::benchmark_launched>().impl<&launched>("PrivateUse1");
}
