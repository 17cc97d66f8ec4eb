// The kernel that an opp package of this op has, simulated: it computes with the CPU kernel.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/contiguous.h>

#include <stdexcept>
#include <vector>

CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnLightningIndexerPto, custom_pypto_simulator::contiguous,
                               std::vector<at::Tensor> x, at::Tensor& y0) {
  for (const size_t integers : {3, 4}) {
    if (x.at(integers).scalar_type() != at::kInt) {
      throw std::invalid_argument("lengths and block_table must be int32");
    }
  }
  const std::optional<at::Tensor> none;
  y0.copy_(custom_pypto_simulator::call<at::Tensor>(
      "custom_pypto::npu_lightning_indexer_pto", x.at(0), x.at(1), x.at(2), none,
      std::optional(x.at(3)), std::optional(x.at(4))));
}
