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

// The graph engine's operator, in whose lists an empty tensor stands for none.
CUSTOM_PYPTO_SIM_ACLNN(
    aclnnGroupedMatmul, std::vector<at::Tensor> x, std::vector<at::Tensor> weight,
    std::vector<at::Tensor> bias, std::vector<at::Tensor> scale, std::vector<at::Tensor> offset,
    std::vector<at::Tensor> antiquant_scale, std::vector<at::Tensor> antiquant_offset,
    std::optional<at::Tensor> group_list, std::optional<at::Tensor> per_token_scale,
    int64_t split_item, int64_t dtype, bool transpose_weight, bool transpose_x, int64_t group_type,
    int64_t group_list_type, int64_t act_type, std::vector<int64_t> tuning_config, at::Tensor& y0) {
  using custom_pypto_simulator::need;
  need(dtype == -1 && !transpose_weight && !transpose_x && !per_token_scale, "not simulated");
  using Given = std::optional<std::vector<at::Tensor>>;
  const auto given = [](const std::vector<at::Tensor>& list) {
    need(!list.empty(), "every list must have a tensor");
    return list[0].numel() == 0 ? Given() : Given(list);
  };
  y0.copy_(custom_pypto_simulator::call<std::vector<at::Tensor>>(
      "custom_pypto::npu_grouped_matmul", x, weight, given(bias), given(scale), given(offset),
      given(antiquant_scale), given(antiquant_offset), Given(), group_list, Given(), Given(),
      Given(), split_item, group_type, group_list_type, act_type, tuning_config)[0]);
}
