// The kernel that an opp package of this op has, simulated: it computes with the CPU kernel. The
// real one takes weights in the format FRACTAL_NZ alone; in graphs the engine brings them into it.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/fractal_nz.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

CUSTOM_PYPTO_SIM_ACLNN(aclnnLightningIndexerPrologPto, std::vector<aclTensor> x,
                       double layernorm_epsilon_k, std::string layout_query, std::string layout_key,
                       at::Tensor& y0, at::Tensor& y1, at::Tensor& y2) {
  if (x.size() != 16) throw std::invalid_argument("16 inputs are needed");
  std::vector<at::Tensor> given;
  for (const aclTensor& each : x) {
    given.push_back(custom_pypto_simulator::plain(each));
    if (!given.back().is_contiguous()) throw std::invalid_argument("inputs must be contiguous");
  }
  if (given[15].scalar_type() != at::kLong) {
    throw std::invalid_argument("idx_k_cache_index must be int64");
  }
  for (const size_t number : {7, 8, 9, 10}) {
    if (given[number].scalar_type() != at::kBFloat16) {
      throw std::invalid_argument("parameters of the norm and angles must be bfloat16");
    }
  }
  using Text = std::optional<std::string>;
  custom_pypto_simulator::call_into(
      std::tie(y0, y1, y2), "custom_pypto::npu_lightning_indexer_prolog_pto", given[0], given[1],
      given[2], given[3], given[4], given[5], given[6], given[7], given[8], given[9], given[10],
      given[11], given[12], given[13], given[14], given[15], layernorm_epsilon_k,
      Text(layout_query), Text(layout_key));
}
