// The launches that torch_npu makes for npu_quant_matmul.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/tensor_ops.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <optional>

#include "registered.h"

namespace custom_pypto_quant_matmul {

using namespace custom_pypto;
using custom_pypto::npu::KernelChoice;

namespace {

const KernelChoice multiply_kernels(Multiply::name, {"aclnnQuantMatmulV5"});
const KernelChoice encode_kernels(Multiply::name,
                                  {"aclnnTransQuantParamV3", "aclnnTransQuantParamV2"});

std::optional<Tensor> dense(const std::optional<Tensor>& tensor) {
  return tensor.has_value() ? std::optional<Tensor>(to_contiguous(*tensor)) : std::nullopt;
}

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
    const auto& encode = encode_kernels.get();
    if (encode.is("aclnnTransQuantParamV3")) {
      CUSTOM_PYPTO_LAUNCH(encode, aclnnTransQuantParamV3, to_contiguous(a.scale), dense(a.offset),
                          int64_t{0}, scale);
    } else {
      CUSTOM_PYPTO_LAUNCH(encode, aclnnTransQuantParamV2, to_contiguous(a.scale), dense(a.offset),
                          scale);
    }
  }
  // It takes a transposed view, and no other that is not contiguous.
  const bool is_view = torch::stable::transpose(a.x2, 0, 1).is_contiguous();
  CUSTOM_PYPTO_LAUNCH(multiply_kernels.get(), aclnnQuantMatmulV5, to_contiguous(a.x1),
                      is_view ? a.x2 : to_contiguous(a.x2), dense(a.pertoken_scale),
                      to_contiguous(scale), none, none, dense(a.offset), none, dense(a.bias), false,
                      false, int64_t{0}, out);
  return {out};
}

}  // namespace custom_pypto_quant_matmul
