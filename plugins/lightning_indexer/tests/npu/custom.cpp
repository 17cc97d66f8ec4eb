// The kernel that an opp package of this op has, simulated: it computes with the CPU kernel.
#include <custom_pypto_simulator/aclnn.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct InOrder {
  uint64_t operator()(const std::vector<at::Tensor>& x, const at::Tensor& y0) const {
    for (size_t index = 0; index < x.size(); ++index) {
      if (!x[index].is_contiguous()) {
        throw std::invalid_argument("x" + std::to_string(index) + " must be contiguous");
      }
    }
    if (!y0.is_contiguous()) throw std::invalid_argument("y0 must be contiguous");
    return 0;
  }
};
constexpr InOrder in_order;

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnLightningIndexerPto, in_order, std::vector<at::Tensor> x,
                               at::Tensor& y0) {
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
