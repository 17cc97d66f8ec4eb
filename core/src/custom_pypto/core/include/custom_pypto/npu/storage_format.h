// The order of a tensor's elements on the NPU, which torch_npu may have changed (npu_format_cast)
// without a trace in shape or strides; RawTensor, for kernels with an order of their own.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/npu/torch_npu.h>
#include <custom_pypto/placement.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

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

// The tensor's memory from its first element on, described to CANN as a contiguous tensor of
// `sizes` in the format ND, whatever format torch_npu knows. For arguments that are only read.
struct RawTensor {
  torch::stable::Tensor tensor;
  std::vector<int64_t> sizes;
};

namespace detail {

// The size in bytes.
inline int64_t storage_size(const torch::stable::Tensor& tensor) {
  int64_t bytes = 0;
  custom_pypto::detail::expect_success(aoti_torch_get_storage_size(tensor.get(), &bytes),
                                       "aoti_torch_get_storage_size");
  return bytes;
}

// The beginning of a tensor's storage; null if it has none.
inline const void* storage_data(const torch::stable::Tensor& tensor) {
  const auto* first = static_cast<const char*>(tensor.const_data_ptr());
  const auto offset = tensor.storage_offset() * static_cast<int64_t>(tensor.element_size());
  return first == nullptr ? first : first - offset;
}

}  // namespace detail
}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
