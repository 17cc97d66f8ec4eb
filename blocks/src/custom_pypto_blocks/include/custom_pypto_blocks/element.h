// The Element of a dtype, and its place in tables.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dtype.h>
#include <custom_pypto_blocks/cpu/element.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// The Element of a dtype; throws std::runtime_error if it has none.
inline Element element_of(ScalarType dtype) {
  if (dtype == ScalarType::BFloat16) return Element::bf16;
  if (dtype == ScalarType::Half) return Element::fp16;
  if (dtype == ScalarType::Float8_e4m3fn) return Element::e4m3;
  if (dtype == ScalarType::Char) return Element::int8;
  check(dtype == ScalarType::Float, "custom_pypto::element_of", "dtype", "has no Element: ", dtype);
  return Element::fp32;
}

// The place of a dtype in a table of kFloatElements; throws std::runtime_error if it has none.
inline int float_index(ScalarType dtype) {
  const int index = static_cast<int>(element_of(dtype));
  check(index < kFloatElements, "custom_pypto::float_index", "dtype",
        "must be float32, float16 or bfloat16, got ", dtype);
  return index;
}

CUSTOM_PYPTO_NAMESPACE_END
