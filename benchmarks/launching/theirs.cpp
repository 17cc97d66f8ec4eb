// An op that launches the empty kernel by EXEC_NPU_CMD_EXT, torch_npu's macro for custom ops.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "op_plugin/utils/op_api_common_base.h"

namespace {

at::Tensor launched(const at::Tensor& self) {
  at::Tensor out = at::empty_like(self);
  EXEC_NPU_CMD_EXT(aclnnBenchmarkNoOp, self, out);
  return out;
}

}  // namespace

TORCH_LIBRARY(custom_pypto_benchmark, library) { library.def("launched(Tensor self) -> Tensor"); }
TORCH_LIBRARY_IMPL(custom_pypto_benchmark, PrivateUse1, library) {
  library.impl("launched", &launched);
}
