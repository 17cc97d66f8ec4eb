// Dtypes and devices of tensors: as numbers of libtorch's C interface, which are cheaper to
// compare, and to allocate with, than C++ enumerations; as Python and CANN name them.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>

CUSTOM_PYPTO_NAMESPACE_BEGIN

using torch::headeronly::ScalarType;

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

inline int32_t dtype_code(ScalarType dtype) {
  return torch::stable::detail::to<int32_t>(torch::stable::detail::from(dtype));
}

// The dtypes that torch and CANN have in common.
struct NamedDtype {
  ScalarType dtype;
  const char* name;   // in Python, without "torch."
  int acl_data_type;  // an aclDataType, part of CANN's binary interface
};
inline constexpr NamedDtype kDtypes[] = {
    {ScalarType::Float, "float32", 0},
    {ScalarType::Half, "float16", 1},
    {ScalarType::Char, "int8", 2},
    {ScalarType::Int, "int32", 3},
    {ScalarType::Byte, "uint8", 4},
    {ScalarType::Short, "int16", 6},
    {ScalarType::UInt16, "uint16", 7},
    {ScalarType::UInt32, "uint32", 8},
    {ScalarType::Long, "int64", 9},
    {ScalarType::UInt64, "uint64", 10},
    {ScalarType::Double, "float64", 11},
    {ScalarType::Bool, "bool", 12},
    {ScalarType::ComplexFloat, "complex64", 16},
    {ScalarType::ComplexDouble, "complex128", 17},
    {ScalarType::BFloat16, "bfloat16", 27},
    {ScalarType::ComplexHalf, "complex32", 33},
    {ScalarType::Float8_e5m2, "float8_e5m2", 35},
    {ScalarType::Float8_e4m3fn, "float8_e4m3fn", 36},
};

}  // namespace detail

// The name in Python, without "torch.": "float16" for ScalarType::Half.
inline const char* dtype_name(ScalarType dtype) noexcept {
  for (const detail::NamedDtype& each : detail::kDtypes) {
    if (each.dtype == dtype) return each.name;
  }
  return torch::headeronly::toString(dtype);
}

namespace npu {

// -1 (ACL_DT_UNDEFINED) for dtypes that CANN does not have.
constexpr int acl_data_type(ScalarType dtype) noexcept {
  for (const auto& each : custom_pypto::detail::kDtypes) {
    if (each.dtype == dtype) return each.acl_data_type;
  }
  return -1;
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
