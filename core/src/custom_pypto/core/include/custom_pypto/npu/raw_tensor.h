// A tensor for a kernel that reads memory in an order of its own, through a plain tensor of other
// sizes.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/torch_error.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

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
