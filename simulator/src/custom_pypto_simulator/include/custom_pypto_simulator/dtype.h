// Conversion between CANN's data types and torch's.
#pragma once

#include <c10/core/ScalarType.h>

#include "acl/acl.h"
#include "custom_pypto_simulator/need.h"

namespace custom_pypto_simulator {

// CANN's types that torch has, too.
struct TypePair {
  aclDataType of_cann;
  at::ScalarType of_torch;
};
constexpr TypePair kTypePairs[] = {
    {ACL_FLOAT, at::kFloat},
    {ACL_FLOAT16, at::kHalf},
    {ACL_BF16, at::kBFloat16},
    {ACL_DOUBLE, at::kDouble},
    {ACL_INT8, at::kChar},
    {ACL_UINT8, at::kByte},
    {ACL_INT16, at::kShort},
    {ACL_UINT16, at::kUInt16},
    {ACL_INT32, at::kInt},
    {ACL_UINT32, at::kUInt32},
    {ACL_INT64, at::kLong},
    {ACL_UINT64, at::kUInt64},
    {ACL_BOOL, at::kBool},
    {ACL_COMPLEX32, at::kComplexHalf},
    {ACL_COMPLEX64, at::kComplexFloat},
    {ACL_COMPLEX128, at::kComplexDouble},
    {ACL_FLOAT8_E5M2, at::kFloat8_e5m2},
    {ACL_FLOAT8_E4M3FN, at::kFloat8_e4m3fn},
};

// Throws when torch has no such type.
inline at::ScalarType scalar_type(aclDataType dtype) {
  for (const TypePair& pair : kTypePairs) {
    if (pair.of_cann == dtype) return pair.of_torch;
  }
  refuse("the data type ", dtype, " is not emulated");
}

}  // namespace custom_pypto_simulator
