// The order of a tensor's elements on the NPU, which torch_npu may have changed (npu_format_cast)
// without a trace in shape or strides.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/torch_npu.h>
#include <custom_pypto/placement.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// An aclFormat; null for a tensor that is not on an NPU.
inline std::optional<int64_t> storage_format(const torch::stable::Tensor& tensor) {
  const custom_pypto::detail::Placement place = custom_pypto::detail::placement_of(tensor);
  if (place.device_type != aoti_torch_device_type_privateuse1()) return std::nullopt;
  return torch_npu().storage_format(tensor.get());
}

// Whether the matrix is stored as tiles of 16 columns (FRACTAL_NZ), which CANN's matrix units
// prefer.
inline bool is_fractal_nz(const torch::stable::Tensor& tensor) {
  return storage_format(tensor) == 29;
}

// Whether elements in this format are ordered as shape and strides say. ND, NCHW, NHWC and NCDHW
// are names for that order: torch_npu moves no memory between them.
inline bool is_base_format(int64_t format) {
  return format == 2 || format == 0 || format == 1 || format == 30;
}

// Whether the elements are ordered as shape and strides say.
inline bool is_plain(const torch::stable::Tensor& tensor) {
  return is_base_format(storage_format(tensor).value_or(2));
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
