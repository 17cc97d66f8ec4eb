// The kernel that an opp package of this op has, simulated: it computes with the CPU kernel. Like
// the real one it takes weights in fractal NZ order alone, which the graph engine brings them into.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/contiguous.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnLightningIndexerPrologPto, custom_pypto_simulator::contiguous,
                               std::vector<at::Tensor> x, double layernorm_epsilon_k,
                               std::string layout_query, std::string layout_key, at::Tensor& y0,
                               at::Tensor& y1, at::Tensor& y2) {
  if (x.size() != 16) throw std::invalid_argument("16 inputs are needed");
  if (x.at(15).scalar_type() != at::kLong) {
    throw std::invalid_argument("idx_k_cache_index must be int64");
  }
  for (const size_t number : {7, 8, 9, 10}) {
    if (x.at(number).scalar_type() != at::kBFloat16) {
      throw std::invalid_argument("parameters of the norm and angles must be bfloat16");
    }
  }
  using Text = std::optional<std::string>;
  const auto results = custom_pypto_simulator::call<std::tuple<at::Tensor, at::Tensor, at::Tensor>>(
      "custom_pypto::npu_lightning_indexer_prolog_pto", x.at(0), x.at(1), x.at(2), x.at(3), x.at(4),
      x.at(5), x.at(6), x.at(7), x.at(8), x.at(9), x.at(10), x.at(11), x.at(12), x.at(13), x.at(14),
      x.at(15), layernorm_epsilon_k, Text(layout_query), Text(layout_key));
  y0.copy_(std::get<0>(results));
  y1.copy_(std::get<1>(results));
  y2.copy_(std::get<2>(results));
}
