// A tensor's dtype and device as the numbers of libtorch's C interface: cheaper to compare, and to
// allocate with, than C++ enumerations.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/torch_error.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

struct Placement {
  int32_t device_type = 0;
  int32_t device_index = 0;

  friend bool operator==(const Placement& a, const Placement& b) {
    return a.device_type == b.device_type && a.device_index == b.device_index;
  }
};

inline Placement placement_of(const torch::stable::Tensor& tensor) {
  Placement place;
  expect_success(aoti_torch_get_device_type(tensor.get(), &place.device_type),
                 "aoti_torch_get_device_type");
  expect_success(aoti_torch_get_device_index(tensor.get(), &place.device_index),
                 "aoti_torch_get_device_index");
  return place;
}

inline int32_t dtype_code(const torch::stable::Tensor& tensor) {
  int32_t code = 0;
  expect_success(aoti_torch_get_dtype(tensor.get(), &code), "aoti_torch_get_dtype");
  return code;
}

inline int32_t dtype_code(torch::headeronly::ScalarType dtype) {
  return torch::stable::detail::to<int32_t>(torch::stable::detail::from(dtype));
}

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
