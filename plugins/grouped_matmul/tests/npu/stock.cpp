// CANN's kernel of this op, simulated: it calls the CPU kernel, within the limits that CANN
// documents.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/need.h>

#include <optional>
#include <vector>

CUSTOM_PYPTO_SIM_ACLNN(aclnnGroupedMatmulV5, std::vector<at::Tensor> x,
                       std::vector<at::Tensor> weight, std::optional<std::vector<at::Tensor>> bias,
                       std::optional<std::vector<at::Tensor>> scale,
                       std::optional<std::vector<at::Tensor>> offset,
                       std::optional<std::vector<at::Tensor>> antiquant_scale,
                       std::optional<std::vector<at::Tensor>> antiquant_offset,
                       std::optional<std::vector<at::Tensor>> per_token_scale,
                       std::optional<at::Tensor> group_list,
                       std::optional<std::vector<at::Tensor>> activation_input,
                       std::optional<std::vector<at::Tensor>> activation_quant_scale,
                       std::optional<std::vector<at::Tensor>> activation_quant_offset,
                       int64_t split_item, int64_t group_type, int64_t group_list_type,
                       int64_t act_type, std::optional<std::vector<int64_t>> tuning_config,
                       std::vector<at::Tensor> out,
                       std::optional<std::vector<at::Tensor>> activation_feature,
                       std::optional<std::vector<at::Tensor>> dynamic_scale) {
  using custom_pypto_simulator::need;
  need(!activation_feature && !dynamic_scale, "activations are not simulated");
  if (bias) {
    const auto dtype = x[0].scalar_type() == at::kHalf ? at::kHalf : at::kFloat;
    need(bias->at(0).scalar_type() == dtype, "bias must be FLOAT16 or FLOAT, by x");
  }
  need(group_type != 0 || split_item == 2 || split_item == 3, "splitItem must be 2 or 3");
  for (const at::Tensor& each : out) need(each.numel() > 0, "out must not be empty");
  const auto made = custom_pypto_simulator::call<std::vector<at::Tensor>>(
      "custom_pypto::npu_grouped_matmul", x, weight, bias, scale, offset, antiquant_scale,
      antiquant_offset, per_token_scale, group_list, activation_input, activation_quant_scale,
      activation_quant_offset, split_item, group_type, group_list_type, act_type, tuning_config);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].copy_(made[i]);
}
