// CANN's own kernels, simulated: they compute with the CPU kernel, within the limits that
// torch_npu documents. Names are those of the op in graphs.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/need.h>

#include <optional>

namespace {

using at::Tensor;
using custom_pypto_simulator::need;
using custom_pypto_simulator::Optional;

void run(const Tensor& x, const Tensor& weight, const Tensor& scale, const Optional& offset,
         const Optional& quant_scale, const Optional& quant_offset, const Optional& bias,
         int64_t group, int64_t inner_precise, Tensor& y) {
  need(x.dim() == 2 && weight.dim() == 2, "x and weight must have 2 dimensions");
  need(x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf,
       "x must be BFLOAT16 or FLOAT16");
  need(x.numel() > 0 && weight.numel() > 0, "x and weight must not be empty");
  need(x.size(1) <= 65535 && y.size(1) <= 65535, "K and N must be at most 65535");
  need(group == 0 || group < x.size(1), "antiquantGroupSize must be less than K");
  need(!offset || offset->sizes() == scale.sizes(), "antiquantOffset must be as antiquantScale");
  need(!bias || (bias->scalar_type() == at::kHalf) == (x.scalar_type() == at::kHalf),
       "bias must be FLOAT16 with x of FLOAT16, else FLOAT");
  y.copy_(custom_pypto_simulator::call<Tensor>(
      "custom_pypto::npu_weight_quant_batchmatmul", x, weight, scale, offset, quant_scale,
      quant_offset, bias, group, inner_precise, std::optional<int64_t>()));
}

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN(aclnnWeightQuantBatchMatmulV3, at::Tensor x, at::Tensor weight,
                       at::Tensor antiquant_scale, Optional antiquant_offset, Optional quant_scale,
                       Optional quant_offset, Optional bias, int64_t antiquant_group_size,
                       int64_t inner_precise, at::Tensor& y) {
  run(x, weight, antiquant_scale, antiquant_offset, quant_scale, quant_offset, bias,
      antiquant_group_size, inner_precise, y);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnWeightQuantBatchMatmulV2, at::Tensor x, at::Tensor weight,
                       at::Tensor antiquant_scale, Optional antiquant_offset, Optional quant_scale,
                       Optional quant_offset, Optional bias, int64_t antiquant_group_size,
                       at::Tensor& y) {
  run(x, weight, antiquant_scale, antiquant_offset, quant_scale, quant_offset, bias,
      antiquant_group_size, 0, y);
}
