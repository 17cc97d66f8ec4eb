// aclnnCompressor as the opp packages of vllm-ascend and SGLang have it, with norm and rotation:
// the name of CANN's own kernel, and other parameters. No launch of ours fits it.
#include <custom_pypto_simulator/aclnn.h>

#include <stdexcept>

CUSTOM_PYPTO_SIM_ACLNN(aclnnCompressor, at::Tensor, at::Tensor, at::Tensor, at::Tensor&, at::Tensor,
                       at::Tensor, at::Tensor, at::Tensor, std::optional<at::Tensor>,
                       std::optional<at::Tensor>, std::optional<at::Tensor>,
                       std::optional<at::Tensor>, int64_t, int64_t, int64_t, double, int64_t,
                       int64_t, int64_t, at::Tensor&) {
  throw std::runtime_error("the kernel with norm and rotation was launched");
}
