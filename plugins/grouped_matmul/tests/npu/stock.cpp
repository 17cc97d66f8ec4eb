// CANN's kernel of this op, simulated: it calls the CPU kernel, within the limits that CANN
// documents.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/need.h>

#include <optional>
#include <vector>

using custom_pypto_simulator::Optional;
using Lists = std::optional<std::vector<at::Tensor>>;

CUSTOM_PYPTO_SIM_ACLNN(aclnnGroupedMatmulV5, std::vector<at::Tensor> x,
                       std::vector<at::Tensor> weight, Lists bias, Lists scale, Lists offset,
                       Lists antiquant_scale, Lists antiquant_offset, Lists per_token_scale,
                       Optional group_list, Lists activation_input, Lists activation_quant_scale,
                       Lists activation_quant_offset, int64_t split_item, int64_t group_type,
                       int64_t group_list_type, int64_t act_type,
                       std::optional<std::vector<int64_t>> tuning_config,
                       std::vector<at::Tensor> out, Lists activation_feature, Lists dynamic_scale) {
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

// The graph engine's operator, in whose lists an empty tensor stands for none.
CUSTOM_PYPTO_SIM_ACLNN(aclnnGroupedMatmul, std::vector<at::Tensor> x,
                       std::vector<at::Tensor> weight, std::vector<at::Tensor> bias,
                       std::vector<at::Tensor> scale, std::vector<at::Tensor> offset,
                       std::vector<at::Tensor> antiquant_scale,
                       std::vector<at::Tensor> antiquant_offset, Optional group_list,
                       Optional per_token_scale, int64_t split_item, int64_t dtype,
                       bool transpose_weight, bool transpose_x, int64_t group_type,
                       int64_t group_list_type, int64_t act_type,
                       std::vector<int64_t> tuning_config, at::Tensor& y0) {
  using custom_pypto_simulator::need;
  need(dtype == -1 && !transpose_weight && !transpose_x && !per_token_scale, "not simulated");
  const auto given = [](const std::vector<at::Tensor>& list) {
    need(!list.empty(), "every list must have a tensor");
    return list[0].numel() == 0 ? Lists() : Lists(list);
  };
  y0.copy_(custom_pypto_simulator::call<std::vector<at::Tensor>>(
      "custom_pypto::npu_grouped_matmul", x, weight, given(bias), given(scale), given(offset),
      given(antiquant_scale), given(antiquant_offset), Lists(), group_list, Lists(), Lists(),
      Lists(), split_item, group_type, group_list_type, act_type, tuning_config)[0]);
}
