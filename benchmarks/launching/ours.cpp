// An op that launches the empty kernel by EXEC_NPU_CMD, custom_pypto's macro.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>

#include "ops.h"

namespace {

using Op = ops::benchmark_launched;

Op::Outputs launched(const Op::Arguments& a, const Op::CallShape&) {
  torch::stable::Tensor out = custom_pypto::empty_like_contiguous(a.self);
  EXEC_NPU_CMD(aclnnBenchmarkNoOp, a.self, out);
  return {out};
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) { plugin.def<Op>().impl<&launched>("PrivateUse1"); }
