// The launches that torch_npu makes for npu_quant_matmul.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/tensor_ops.h>

#include <algorithm>
#include <optional>

#include "registered.h"

namespace custom_pypto_quant_matmul {

using namespace custom_pypto;
using custom_pypto::npu::KernelChoice;

namespace {

const KernelChoice multiply_kernels(Multiply::name, {"aclnnQuantMatmulV5"});
const KernelChoice encode_kernels(Multiply::name, {"aclnnTransQuantParamV2"});

}  // namespace

Multiply::Outputs multiply_npu(const Multiply::Arguments& a, const Multiply::CallShape& s) {
  Multiply::check_limits(a, s);
  const Tensor out = empty_result(a, s);
  const std::optional<Tensor> none;
  Tensor scale = a.scale;
  // The kernel takes such a scale and its offset as one number of 64 bits.
  if (scale.scalar_type() == ScalarType::Float && !a.pertoken_scale.has_value() &&
      out.scalar_type() != ScalarType::BFloat16 && out.scalar_type() != ScalarType::Int) {
    const int64_t count =
        std::max(a.scale.size(0), a.offset.has_value() ? a.offset->size(0) : int64_t{1});
    scale = empty({count}, ScalarType::Long, a.scale);
    CUSTOM_PYPTO_LAUNCH(encode_kernels.get(), aclnnTransQuantParamV2, to_contiguous(a.scale),
                        a.offset, scale);
  }
  const auto& kernel = multiply_kernels.get();
  CUSTOM_PYPTO_LAUNCH(kernel, aclnnQuantMatmulV5, to_contiguous(a.x1), a.x2, a.pertoken_scale,
                      scale, none, none, a.offset, none, a.bias, false, false, int64_t{0}, out);
  return {out};
}

}  // namespace custom_pypto_quant_matmul
