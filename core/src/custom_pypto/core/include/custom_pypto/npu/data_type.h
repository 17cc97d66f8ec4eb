// CANN's numbers for dtypes (aclDataType), which are part of its binary interface.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// An aclDataType; an enumeration, hence an int, in C.
using AclDataType = int;

// -1 (ACL_DT_UNDEFINED) for dtypes that CANN does not have.
constexpr AclDataType acl_data_type(ScalarType dtype) noexcept {
  switch (dtype) {
    case ScalarType::Float:
      return 0;
    case ScalarType::Half:
      return 1;
    case ScalarType::Char:
      return 2;
    case ScalarType::Int:
      return 3;
    case ScalarType::Byte:
      return 4;
    case ScalarType::Short:
      return 6;
    case ScalarType::UInt16:
      return 7;
    case ScalarType::UInt32:
      return 8;
    case ScalarType::Long:
      return 9;
    case ScalarType::UInt64:
      return 10;
    case ScalarType::Double:
      return 11;
    case ScalarType::Bool:
      return 12;
    case ScalarType::ComplexFloat:
      return 16;
    case ScalarType::ComplexDouble:
      return 17;
    case ScalarType::BFloat16:
      return 27;
    case ScalarType::ComplexHalf:
      return 33;
    case ScalarType::Float8_e5m2:
      return 35;
    case ScalarType::Float8_e4m3fn:
      return 36;
    default:
      return -1;
  }
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
