// dtype_name: the dtypes that torch and CANN have in common, as Python and CANN name them.
#pragma once

#include <custom_pypto/abi.h>
#include <torch/headeronly/core/ScalarType.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN

using torch::headeronly::ScalarType;

namespace detail {

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
