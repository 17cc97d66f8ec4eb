// CANN's own products of int8 matrices, simulated, as far as the composed op needs them. op-plugin
// passes these parameters to aclnnQuantMatmulWeightNz, and passed them to aclnnQuantMatmulV4 before
// aclnnQuantMatmulV5. The operator of graphs is among the kernels of quant_matmul.
#include <ATen/ops/mm.h>
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/fractal_nz.h>
#include <custom_pypto_simulator/need.h>

#include <optional>
#include <string>

namespace {

using custom_pypto_simulator::need;
using custom_pypto_simulator::Optional;

// int32 sums, exact in fp64, times the scales in fp32.
void multiply(const at::Tensor& x1, const at::Tensor& x2, const at::Tensor& scale,
              const Optional& pertoken_scale, at::Tensor& out) {
  need(x1.scalar_type() == at::kChar && x2.scalar_type() == at::kChar, "x1 and x2 must be INT8");
  need(x1.dim() == 2 && x2.dim() == 2 && x1.is_contiguous() && x2.is_contiguous(),
       "x1 and x2 must be contiguous matrices");
  need(pertoken_scale.has_value(), "only products with a scale of each token are simulated");
  need(scale.scalar_type() == at::kFloat && scale.dim() == 1 && scale.size(0) == x2.size(1),
       "the scale of x2 must be FLOAT and of shape (n)");
  need(pertoken_scale->scalar_type() == at::kFloat && pertoken_scale->dim() == 1 &&
           pertoken_scale->size(0) == x1.size(0),
       "the scale of x1 must be FLOAT and of shape (m)");
  need(out.scalar_type() == at::kBFloat16, "out must be BFLOAT16");
  const at::Tensor sums = at::mm(x1.to(at::kDouble), x2.to(at::kDouble)).to(at::kFloat);
  out.copy_(sums.mul(pertoken_scale->unsqueeze(1)).mul(scale));
}

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN(aclnnQuantMatmulV4, at::Tensor x1, at::Tensor x2, at::Tensor scale,
                       Optional offset, Optional pertoken_scale, Optional bias, bool transpose_x1,
                       bool transpose_x2, at::Tensor& out) {
  need(!offset && !bias && !transpose_x1 && !transpose_x2, "only the plain product is simulated");
  multiply(x1, x2, scale, pertoken_scale, out);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnQuantMatmulWeightNz, at::Tensor x1, const aclTensor& x2,
                       Optional x1_scale, Optional x2_scale, Optional y_scale, Optional x1_offset,
                       Optional x2_offset, Optional y_offset, Optional bias, bool transpose_x1,
                       bool transpose_x2, int64_t group_size, at::Tensor& out) {
  need(x2_scale.has_value(), "the scale of x2 is needed");
  need(!y_scale && !x1_offset && !x2_offset && !y_offset && !bias && !transpose_x1 &&
           !transpose_x2 && group_size == 0,
       "only the plain product is simulated");
  multiply(x1, custom_pypto_simulator::from_fractal_nz(x2), *x2_scale, x1_scale, out);
}
