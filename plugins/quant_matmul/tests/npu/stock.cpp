// CANN's own kernels, simulated: they compute with the CPU kernels, within the limits that CANN
// documents for Atlas A2 and A3 (the documents of its ops-nn).
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/need.h>

#include <optional>
#include <tuple>

namespace {

using at::Tensor;
using custom_pypto_simulator::call;
using custom_pypto_simulator::call_into;
using custom_pypto_simulator::need;
using custom_pypto_simulator::Optional;

// A scale and its offset in 64 bits: 19 bits of an fp32 number, and an integer of 9 bits.
constexpr int64_t kScaleBits = 0xffffe000;
constexpr int kOffsetPlace = 37;

void multiply(const Tensor& x1, const Tensor& x2, Tensor scale, Optional offset,
              const Optional& bias, const Optional& row_scale, Tensor& out) {
  const auto dtype = out.scalar_type();
  need(x1.scalar_type() == at::kChar && x2.scalar_type() == at::kChar, "x1 and x2 must be INT8");
  need(x1.numel() > 0 && x2.numel() > 0, "x1 and x2 must not be empty");
  const bool is_encoded = scale.scalar_type() == at::kLong;
  const bool is_plain = row_scale || dtype == at::kBFloat16 || dtype == at::kInt;
  need(is_encoded != is_plain, "the scale must be INT64 for this result, and only then");
  need(is_encoded || !offset, "the offset must be null for this result");
  if (is_encoded) {
    if (dtype == at::kChar) {
      const Tensor places = scale.bitwise_left_shift(64 - 9 - kOffsetPlace);
      offset = places.bitwise_right_shift(64 - 9).to(at::kFloat);
    }
    scale = scale.bitwise_and(kScaleBits).to(at::kInt).view(at::kFloat);
  }
  out.copy_(call<Tensor>("custom_pypto::npu_quant_matmul", x1, x2, scale, offset, row_scale, bias,
                         static_cast<int64_t>(dtype)));
}

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN(aclnnTransQuantParamV3, at::Tensor scale, Optional offset,
                       int64_t round_mode, at::Tensor& y) {
  need(scale.scalar_type() == at::kFloat && scale.numel() > 0, "scale must be FLOAT");
  need(round_mode == 0, "roundMode must be 0");
  const Tensor bits = scale.contiguous().view(at::kInt).to(at::kLong).bitwise_and(kScaleBits);
  y.copy_(bits);
  if (offset) {
    const Tensor places = offset->round().clamp(-256, 255).to(at::kLong).bitwise_and(511);
    y.add_(places.bitwise_left_shift(kOffsetPlace));
  }
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnQuantMatmulV5, at::Tensor x1, at::Tensor x2, Optional x1_scale,
                       at::Tensor x2_scale, Optional y_scale, Optional x1_offset,
                       Optional x2_offset, Optional y_offset, Optional bias, bool transpose_x1,
                       bool transpose_x2, int64_t group_size, at::Tensor& out) {
  need(!y_scale && !x1_offset && !y_offset, "yScale, x1Offset and yOffset must be null");
  need(!transpose_x1 && !transpose_x2 && group_size == 0, "nothing is transposed or grouped");
  multiply(x1, x2, x2_scale, x2_offset, bias, x1_scale, out);
}

// The operator of graphs.
CUSTOM_PYPTO_SIM_ACLNN(aclnnQuantBatchMatmulV3, at::Tensor x1, at::Tensor x2, at::Tensor scale,
                       Optional offset, Optional bias, Optional pertoken_scale, int64_t dtype,
                       bool transpose_x1, bool transpose_x2, at::Tensor& y) {
  const auto of_result = y.scalar_type();
  need(dtype == (of_result == at::kHalf   ? 1
                 : of_result == at::kChar ? 2
                 : of_result == at::kInt  ? 3
                                          : 27),
       "dtype must be that of y, as the graph engine numbers it");
  need(!transpose_x1 && !transpose_x2, "nothing is transposed");
  multiply(x1, x2, scale, offset, bias, pertoken_scale, y);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnDynamicQuant, at::Tensor x, Optional smooth_scales, at::Tensor& y,
                       at::Tensor& scale) {
  need(x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16,
       "x must be FLOAT16 or BFLOAT16");
  need(x.dim() > 1, "x must have more than 1 dimension");
  call_into(std::tie(y, scale), "custom_pypto::npu_dynamic_quant", x, smooth_scales, Optional(),
            std::optional<int64_t>(), "pertoken", 0.0);
}
