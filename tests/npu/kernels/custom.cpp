// Kernels of a custom opp package: what the plugins prefer to CANN's own.
#include <ATen/ATen.h>
#include <custom_pypto_simulator/aclnn.h>

#include <vector>

using custom_pypto_simulator::call;

CUSTOM_PYPTO_SIM_ACLNN(aclnnAddCustom, at::Tensor x, at::Tensor y, at::Tensor& z) {
  z.copy_(call<at::Tensor>("custom_pypto::add_custom", x, y));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnLightningIndexerPto, std::vector<at::Tensor> x, at::Tensor& y) {
  TORCH_CHECK(x.size() == 5, "five inputs");
  y.copy_(call<at::Tensor>("custom_pypto::npu_lightning_indexer_pto", x[0], x[1], x[2],
                           std::optional<at::Tensor>(), std::optional<at::Tensor>(x[3]),
                           std::optional<at::Tensor>(x[4])));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnSparseAttentionPto, std::vector<at::Tensor> x, at::Tensor& y) {
  TORCH_CHECK(x.size() == 20, "twenty inputs");
  y.copy_(call<at::Tensor>("custom_pypto::npu_sparse_attention_pto", x[0], x[1], x[2], x[3], x[4],
                           x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], x[13], x[14], x[15],
                           x[16], x[17], x[18], x[19]));
}
